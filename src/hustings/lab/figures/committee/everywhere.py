"""`committee-everywhere`: an experiment on Conjecture 1, from nearly all that know a bit to all.

The experiment combines ways of asking with attacks. A way that fails under an attack is no
counterexample to the conjecture. A way that withstands all attacks known here might be one.
Neither result proves anything about other ways.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from hustings.lab.figures.committee.measurements import FAMILY, SOURCE
from hustings.lab.figures.figure import (
    Axis,
    ClaimVerdict,
    Curve,
    Drawn,
    DrawnPanel,
    Finding,
    FormLine,
    Panel,
    Rendered,
    Value,
)
from hustings.lab.figures.measurement import Measurement
from hustings.lab.figures.measuring import Results

SIZES = (10_000, 30_000, 100_000)
RUNS = 10
COLUMNS = ("series", "members", "runs", "all_know", "left", "dark", "bits", "command")
SCRIPT = "python -m scripts.measure_everywhere"


@dataclass(frozen=True, slots=True)
class AskingWay:
    """How members ask, and what the bad members do against it."""

    label: str
    attack: str
    look: str
    labelled: bool = False
    all_answered: bool = False


QUIET = AskingWay("nobody floods", "none", "C2")
FLOODED = AskingWay("flood", "blind", "C3")
BLIND = AskingWay("labels, flood that sees nothing", "blind", "C0", labelled=True)
RUSHING = AskingWay("labels, flood that sees all questions", "rushing", "C1", labelled=True)
LINEAR = AskingWay("flood, n answers", "blind", "0.5", all_answered=True)
WAYS = (QUIET, FLOODED, BLIND, RUSHING, LINEAR)


@dataclass(frozen=True, slots=True)
class Came:
    """The mean result of one way at one size."""

    all_know: float  # share of the runs in which all good members learnt the bit
    left: float  # members that do not know the bit at the end
    dark: float  # members that did not know it at the start
    bits: float  # the most that one good member sends


Outcomes = Mapping[tuple[AskingWay, int], Came]


def measured(way: AskingWay, members: int, seed: int) -> Came:
    """One way at one size."""
    from hustings.lab.kernels.everywhere import Poll, play, rooted  # noqa: PLC0415  # an extra

    poll = Poll(
        members=members,
        attack=way.attack,
        labels=rooted(members) if way.labelled else 1,
        answers=members if way.all_answered else 0,
    )
    found = play(poll, seed, 0, RUNS).metrics
    return Came(*(float(found[name].mean()) for name in ("all_know", "left", "dark", "bits")))


def command(way: AskingWay, members: int, seed: int) -> str:
    """The command that gives the same numbers."""
    words = [SCRIPT, str(members), "--attack", way.attack]
    words += ["--labels", "root"] if way.labelled else []
    words += ["--answers", str(members)] if way.all_answered else []
    return " ".join([*words, "--runs", str(RUNS), "--seed", str(seed)])


@dataclass(frozen=True, slots=True)
class Everywhere:
    """The figure; it implements `Figure`, and plays its own runs, because they are short."""

    name: str = "committee-everywhere"
    family: str = FAMILY
    title: str = "From nearly all that know a bit to all: an experiment on Conjecture 1"
    pictured: bool = True

    def cells(self) -> list[Measurement]:
        """No cells: other figures could use none of them."""
        return []

    def make(self, results: Results, seed: int) -> Rendered:
        """Play all ways at all sizes, and judge."""
        return drawn({(way, n): measured(way, n, seed) for way in WAYS for n in SIZES}, seed)


def drawn(found: Outcomes, seed: int) -> Rendered:
    """The figure from its numbers."""
    rows: list[list[Value]] = [
        [way.label, n, RUNS, each.all_know, each.left, each.dark, each.bits, command(way, n, seed)]
        for (way, n), each in found.items()
    ]
    return Rendered(
        name="committee-everywhere",
        family=FAMILY,
        title=Everywhere().title,
        source=f"{SOURCE}, section 1.2, Conjecture 1",
        shows="If a share b < 1/2 is bad, 1 - o(1) of the good members agree on a bit, the bad may "
        "send what they like and every good member sends o(n) bits, then no protocol lets all good "
        "members learn the bit with constant probability, where all members see all messages.",
        columns=list(COLUMNS),
        rows=rows,
        findings=_judge(found),
        panels=[
            _panel("in the dark after asking", "share of those before", found, _share),
            _panel("what a good member sends", "bits over n", found, _bits),
        ],
        notes=[
            "b = 0.2; of the good members 1/(ln n)^2 do not know the bit. Everybody asks 10 ln n "
            "others, under each of the square root of n labels where there are labels, and "
            "answers three times as many questions. Seeing all, the bad flood whom a few members "
            "ask. A conjecture about all protocols cannot be measured: these are ways that fail or "
            "do not fail under these attacks. Not played: the quorums of King, Lonargan, Saia and "
            "Trehan (2011), who announce about sqrt(n) bits in this model."
        ],
    )


def _share(_: int, each: Came) -> float:
    return each.left / each.dark


def _bits(members: int, each: Came) -> float:
    return each.bits / members


def _panel(
    title: str, measure: str, found: Outcomes, value: Callable[[int, Came], float]
) -> DrawnPanel:
    shown = []
    for way in WAYS:
        values = [value(n, found[way, n]) for n in SIZES]
        curve = Curve(way.label, measure, (), look=way.look, mark="-")
        shown.append(Drawn(curve, [], [FormLine(list(SIZES), values, printed=False)]))
    panel = Panel(
        title,
        measure,
        tuple(each.curve for each in shown),
        axis=Axis("members n", lambda cell: cell.members, SIZES, logarithmic=True),
        forms="simulated",
    )
    return DrawnPanel(panel, shown)


def _judge(found: Outcomes) -> list[Finding]:
    told = partial(_told, found)
    return [
        Finding(
            "asking at random tells all good members, while no member floods",
            _always(found, [QUIET]),
            told(QUIET),
        ),
        Finding(
            "no way tried here tells all with constant probability by o(n) bits, if the bad flood "
            "and see all questions (as Conjecture 1 says of every way)",
            _never(found, [FLOODED, RUSHING]),
            f"{told(FLOODED)} {told(RUSHING)} This refutes nothing and proves nothing about other "
            "ways.",
        ),
        Finding(
            "a label thrown when all questions are out defeats a flood that saw none of them: "
            "there the conjecture needs that all members see all messages",
            _always(found, [BLIND]),
            f"{told(BLIND)} {_falling(found)}",
            theirs=False,
        ),
        Finding(
            "with n answers of each member a flood does no harm: the bound of o(n) is needed",
            _always(found, [LINEAR]),
            told(LINEAR),
            theirs=False,
        ),
    ]


def _always(found: Outcomes, ways: Sequence[AskingWay]) -> ClaimVerdict:
    parts = [found[way, n].all_know for way in ways for n in SIZES]
    if min(parts) == 1:
        return ClaimVerdict.HOLDS
    return ClaimVerdict.FAILS if max(parts) == 0 else ClaimVerdict.UNDECIDED


def _never(found: Outcomes, ways: Sequence[AskingWay]) -> ClaimVerdict:
    parts = [found[way, n].all_know for way in ways for n in SIZES]
    if max(parts) == 0:
        return ClaimVerdict.HOLDS
    return ClaimVerdict.FAILS if any(part == 1 for part in parts) else ClaimVerdict.UNDECIDED


def _told(found: Outcomes, way: AskingWay) -> str:
    parts = [
        f"{each.left:g} of {each.dark:g} stay in the dark at n = {n:,}"
        for n, each in ((n, found[way, n]) for n in SIZES)
    ]
    return f"{way.label}: {', '.join(parts)}."


def _falling(found: Outcomes) -> str:
    shares = [found[BLIND, n].bits / n for n in SIZES]
    told = ", ".join(f"{share:.2g}" for share in shares)
    return f"Its bits are {told} times n, which falls as (ln n)^2/sqrt(n) does."


FIGURES = (Everywhere(),)

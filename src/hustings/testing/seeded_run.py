"""What one seed makes of a test, and how a failure becomes smaller.

A seeded run says how many members there are, which faults happen, and whether the network is calm.
A seed draws it within what the test allows. If the test fails, smaller runs are tried, and the
smallest one that fails in the same way is what a person should read. First there are fewer members,
then fewer faults, then no loss, and last the faults come sooner and are shorter.

>>> drawn = SeededRun(seed=17, names=("a", "b"), faults=(parse_fault("kill:leader@3+1.5"),))
>>> str(drawn)
'seed=17 members=2 faults=kill:leader@3+1.5'
>>> parse_run(str(drawn)) == drawn
True
>>> [str(smaller) for smaller in drawn.smaller(least=1)][:3]
['seed=17 members=1 faults=kill:leader@3+1.5', 'seed=17 members=2', 'seed=17 members=2 \
faults=kill:leader@3+1.5 calm']
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from string import ascii_lowercase

from hustings.core.errors import BadInput
from hustings.core.streams import Stream, derive
from hustings.testing.faults import LEADER, SPAN, Fault, draw_faults, parse_fault

MOST_MEMBERS = len(ascii_lowercase)
MOST_FAULTS = 1000


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a test allows its seeds to draw."""

    members: tuple[int, int] = (3, 3)
    faults: int = 0  # at most
    span: float = SPAN  # seconds within which they begin

    def __post_init__(self) -> None:
        least, most = self.members
        if not 1 <= least <= most <= MOST_MEMBERS:
            raise BadInput(
                f"members must be a number from 1 to {MOST_MEMBERS}, or the least and the most, "
                f"not {self.members}"
            )
        if not 0 <= self.faults <= MOST_FAULTS:
            raise BadInput(f"faults must lie between 0 and {MOST_FAULTS}, not {self.faults}")
        draw_faults(0, (), 0, self.span)  # refuses what is no span

    def draw(self, seed: int) -> SeededRun:
        """The run of one seed."""
        least, most = self.members
        count = least + Stream(derive(seed, "members")).below(most - least + 1)
        names = names_of(count)
        return SeededRun(seed, names, tuple(draw_faults(seed, names, self.faults, self.span)))


@dataclass(frozen=True, slots=True)
class SeededRun:
    """One run of a test."""

    seed: int
    names: tuple[str, ...]
    faults: tuple[Fault, ...] = ()
    calm: bool = False  # nothing is lost, doubled or overtaken

    def __str__(self) -> str:
        parts = [f"seed={self.seed}", f"members={len(self.names)}"]
        if self.faults:
            parts.append("faults=" + ",".join(map(str, self.faults)))
        return " ".join([*parts, "calm"] if self.calm else parts)

    def smaller(self, least: int, rough: bool = True) -> Iterator[SeededRun]:
        """Runs that are a little simpler, the most welcome first.

        `least` is the number of members that the test needs; `rough` says whether its network
        loses, doubles or reorders anything.
        """
        for count in range(least, len(self.names)):
            yield self._with(count)
        if self.faults:
            yield replace(self, faults=())
        half = len(self.faults) // 2
        if half > 1:
            yield replace(self, faults=self.faults[:half])
            yield replace(self, faults=self.faults[half:])
        if len(self.faults) > 1:
            for place in range(len(self.faults)):
                yield replace(self, faults=self.faults[:place] + self.faults[place + 1 :])
        if rough and not self.calm:
            yield replace(self, calm=True)
        for place, fault in enumerate(self.faults):
            for simpler in fault.simpler():
                changed = [*self.faults[:place], simpler, *self.faults[place + 1 :]]
                yield replace(self, faults=tuple(sorted(changed, key=lambda each: each.at)))

    def _with(self, count: int) -> SeededRun:
        names = names_of(count)
        kept = tuple(each for each in self.faults if each.member in (*names, LEADER))
        return replace(self, names=names, faults=kept)


def names_of(count: int) -> tuple[str, ...]:
    """The names of `count` members: a, b, c."""
    return tuple(ascii_lowercase[:count])


def parse_run(text: str) -> SeededRun:
    """A seeded run from its own text."""
    values: dict[str, str] = {}
    for part in text.split():
        name, _, value = part.partition("=")
        if name not in ("seed", "members", "faults", "calm") or name in values:
            raise BadInput(f"a run is written as 'seed=17 members=3', not {text!r}")
        values[name] = value
    try:
        seed, count = int(values["seed"]), int(values["members"])
    except (KeyError, ValueError):
        raise BadInput(f"a run needs seed=NUMBER and members=NUMBER, unlike {text!r}") from None
    if not 1 <= count <= MOST_MEMBERS:
        raise BadInput(f"members must be a number from 1 to {MOST_MEMBERS}, not {count}")
    names = names_of(count)
    faults = tuple(parse_fault(each) for each in values.get("faults", "").split(",") if each)
    for fault in faults:
        if fault.member not in (*names, LEADER):
            raise BadInput(f"{fault} names a member that is not one of {', '.join(names)}")
    return SeededRun(seed, names, faults, "calm" in values)

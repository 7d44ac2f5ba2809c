"""`committee-bits`: what a member sends, by group size, compared with all-to-all elections."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import log

from hustings.lab.closed_forms.committee import costs, network
from hustings.lab.figures.committee.measurements import (
    COLUMNS,
    FAMILY,
    SOURCE,
    election,
    near,
    rows,
)
from hustings.lab.figures.figure import (
    Axis,
    ClaimVerdict,
    Curve,
    Drawn,
    DrawnPanel,
    Finding,
    FormLine,
    MeasuredPoint,
    Panel,
    Rendered,
    point,
)
from hustings.lab.figures.judging import ENOUGH
from hustings.lab.figures.measurement import Measurement
from hustings.lab.figures.measuring import Results

METRIC, MOST = "bits_mean", "bits_max"
PERCENT = 10
SIZES = (
    *(16, 24, 32, 48, 64, 128, 256, 512),
    *(1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000),
)
EARLY = 1_000  # from this size on at the latest, the tree must send fewer bits
PROFILES = {"lean": ("C0", "o", network.lean), "robust": ("C1", "s", network.robust)}
RIVALS: Mapping[str, tuple[str, Callable[[int], float]]] = {
    "everybody: path of n steps": ("C3", costs.everybody_by_path),
    "everybody: Feige": ("C4", costs.everybody_by_feige),
    "everybody: Feige, phase king": ("0.5", costs.everybody_by_phase_king),
}
NEAREST = "everybody: path of n steps"  # the cheapest all-to-all election
NEAR = 0.1  # share of the value: the precision of the closed form where networks are large,
FULL = 1_000  # from this many members on
STEEPEST = 0.5  # the power of n above which growth does not count as polylogarithmic here

AXIS = Axis("members n", lambda cell: cell.members, (100, 1_000, 10_000, 100_000, 1_000_000), True)

Points = Mapping[tuple[str, str], Sequence[MeasuredPoint]]  # by profile and metric
Meetings = Mapping[str, int | None]  # by profile: the crossover


@cache
def expected(profile: str, members: int) -> float:
    """The closed form: mean bits of a member, with all members on a full random path."""
    return costs.tree_bits(PROFILES[profile][2](members), PERCENT / 100)


def curve(profile: str, metric: str = METRIC) -> Curve:
    """One profile, mean or most."""
    look, mark, _ = PROFILES[profile]
    cells = tuple(election(n, PERCENT, "random", profile) for n in SIZES)

    def exact(cell: Measurement) -> float | None:
        return expected(profile, cell.members) if cell.members >= FULL else None

    if metric == MOST:
        return Curve(f"{profile}, most", metric, cells, look=look, mark="x")
    return Curve(f"{profile}, mean", metric, cells, exact=exact, look=look, mark=mark)


@dataclass(frozen=True, slots=True)
class BitsFigure:
    """The figure; it implements `Figure`."""

    name: str = "committee-bits"
    family: str = FAMILY
    title: str = "Bits that a good member sends, over the size of the group"
    pictured: bool = True

    def cells(self) -> list[Measurement]:
        """Both profiles at every size."""
        return [cell for profile in PROFILES for cell in curve(profile).cells]

    def make(self, results: Results, seed: int) -> Rendered:
        """The figure from its measured cells."""
        drawn = {
            (profile, metric): _drawn(profile, metric, results)
            for profile in PROFILES
            for metric in (METRIC, MOST)
        }
        found = {key: each.points for key, each in drawn.items()}
        meetings = {profile: crossing(found[profile, METRIC]) for profile in PROFILES}
        others = [_rival(label) for label in RIVALS]
        shown = [*drawn.values(), *others, *_marked(meetings)]
        panel = Panel(
            f"b = {PERCENT} per cent at random, which pack, lie, flood and claim",
            "bits",
            tuple(each.curve for each in shown),
            logarithmic=True,
            axis=AXIS,
        )
        return Rendered(
            name=self.name,
            family=self.family,
            title=self.title,
            source=f"{SOURCE}, Theorem 1.1",
            shows="Each good member sends polylogarithmically many bits; the paper knows of no "
            "election before it in which they are fewer than linearly many.",
            columns=list(COLUMNS),
            rows=[row for each in [*drawn.values(), *others] for row in rows(each, AXIS, seed)],
            findings=_judge(found, meetings),
            panels=[DrawnPanel(panel, shown)],
            notes=[
                "Bits of values, without what encoding adds. Lines of everybody are closed forms. "
                "Up to 128 members the path has 64 steps instead of 128; closed forms of trees are "
                f"shown from {FULL:,} members on."
            ],
        )


def _drawn(profile: str, metric: str, results: Results) -> Drawn:
    one = curve(profile, metric)
    points = [point(one, cell, results[cell]) for cell in one.cells]
    if metric == MOST:
        return Drawn(one, points, [])
    places = [n for n in SIZES if n >= FULL]
    values = [expected(profile, n) for n in places]
    return Drawn(one, points, [FormLine(places, values, printed=False)])


def _rival(label: str) -> Drawn:
    look, form = RIVALS[label]
    one = Curve(label, METRIC, (), look=look, mark="")
    return Drawn(one, [], [FormLine(list(SIZES), [form(n) for n in SIZES], printed=False)])


def crossing(points: Sequence[MeasuredPoint]) -> int | None:
    """The smallest measured n from which the tree sends fewer bits than any rival."""
    best = None
    for each in sorted(points, key=lambda one: -one.members):
        if each.mean >= min(form(each.members) for _, form in RIVALS.values()):
            break
        best = each.members
    return best


def _marked(meetings: Meetings) -> list[Drawn]:
    """The crossovers as vertical lines from one line to the other."""
    marked = []
    form = RIVALS[NEAREST][1]
    for profile, meeting in meetings.items():
        if meeting is not None:
            label = f"{profile}: fewer bits from n = {meeting:,} on"
            one = Curve(label, METRIC, (), look=PROFILES[profile][0], mark="")
            height = [form(SIZES[0]) / 10, form(SIZES[-1])]
            marked.append(Drawn(one, [], [FormLine([meeting, meeting], height, printed=False)]))
    return marked


def slope(points: Sequence[MeasuredPoint]) -> float:
    """The power of n by which the bits grow, from the first size of full networks to the last."""
    large = [each for each in points if each.members >= FULL]
    first, last = large[0], large[-1]
    return log(last.mean / first.mean) / log(last.members / first.members)


def _judge(points: Points, meetings: Meetings) -> list[Finding]:
    lean = points["lean", METRIC]
    growth = slope(lean)
    ends = lean[-1]
    compared = [
        each
        for profile in PROFILES
        for each in points[profile, METRIC]
        if each.runs >= ENOUGH and each.exact is not None
    ]
    last = max((each.members for each in compared), default=FULL)
    return [
        Finding(
            f"a member sends fewer bits than if all spoke to all, from n = {EARLY:,} on at latest",
            _early(meetings),
            f"{_told(meetings)} At n = {ends.members:,} a member of a lean network sends "
            f"{ends.mean:.2g}, and of the cheapest of the others "
            f"{RIVALS[NEAREST][1](ends.members):.2g}.",
            theirs=False,  # the paper gives no size
        ),
        Finding(
            "bits grow polylogarithmically",
            ClaimVerdict.HOLDS if growth < STEEPEST else ClaimVerdict.FAILS,
            f"From n = {FULL:,} to {ends.members:,} they grow as n^{growth:.2f} in a lean network, "
            "whose sizes are not the paper's.",
        ),
        _robust(points),
        near(
            f"runs and closed form agree to {NEAR:.0%} from n = {FULL:,} to {last:,}",
            compared,
            0.0,
            NEAR,
        ),
    ]


def _early(meetings: Meetings) -> ClaimVerdict:
    in_time = [meeting is not None and meeting <= EARLY for meeting in meetings.values()]
    if all(in_time):
        return ClaimVerdict.HOLDS
    return ClaimVerdict.PARTLY if any(in_time) else ClaimVerdict.FAILS


def _told(meetings: Meetings) -> str:
    parts = [
        f"{profile} {'at no size' if meeting is None else f'from n = {meeting:,} on'}"
        for profile, meeting in meetings.items()
    ]
    return f"Of the sizes measured: {', '.join(parts)}."


def _robust(points: Points) -> Finding:
    ratios = [
        robust.mean / lean.mean
        for robust, lean in zip(points["robust", METRIC], points["lean", METRIC], strict=True)
    ]
    return Finding(
        "many leaves for each member cost more than one",
        ClaimVerdict.HOLDS if min(ratios) > 1 else ClaimVerdict.FAILS,
        f"{min(ratios):.1f} to {max(ratios):.1f} times as many bits.",
        theirs=False,
    )


FIGURES = (BitsFigure(),)

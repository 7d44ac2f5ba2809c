"""`committee-informed`: how many good members know whom the root elected.

Two panels: one leaf for each member, and many leaves. The corruption knows the network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from hustings.lab.closed_forms.committee import aware
from hustings.lab.figures.committee.measurements import (
    BY_SHARE,
    COLUMNS,
    FAMILY,
    LOOKS,
    MARKS,
    SIZES,
    SOURCE,
    bounded,
    election,
    percent_of,
    rows,
)
from hustings.lab.figures.figure import (
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
from hustings.lab.figures.judging import above
from hustings.lab.figures.measurement import Measurement
from hustings.lab.figures.measuring import Results

METRIC = "informed"
ATTACK = "greedy"
PANELS = {"lean": "one leaf each (lean)", "robust": "eight leaves each (robust)"}
GROUPS = {"lean": SIZES, "robust": SIZES[:2]}  # to corrupt many leaves well takes long
PERCENTS = (0, 2, 5, 8, 10, 12, 15)  # with more bad members, roots fall
NEARLY_ALL = 0.95  # what "all but o(1)" is taken to mean

Points = Mapping[tuple[str, int], Sequence[MeasuredPoint]]  # by profile and size


@cache
def expected(percent: int) -> float:
    """The share of members that still hear, with one leaf each, under the worst corruption.

    It holds only while the root holds; if the root falls, no member is informed.
    """
    b = percent / 100
    return aware.informed(aware.broken(b, 1), b)


def curve(profile: str, members: int) -> Curve:
    """One size of one profile."""
    place = SIZES.index(members)
    return Curve(
        f"n = {members:,}",
        METRIC,
        tuple(election(members, percent, ATTACK, profile) for percent in PERCENTS),
        look=LOOKS[place],
        mark=MARKS[place],
    )


@dataclass(frozen=True, slots=True)
class Informed:
    """The figure; it implements `Figure`."""

    name: str = "committee-informed"
    family: str = FAMILY
    title: str = "Good members that know the elected leader, over the share of bad members"
    pictured: bool = True

    def cells(self) -> list[Measurement]:
        """Every size of both profiles."""
        return [
            cell for profile in PANELS for n in GROUPS[profile] for cell in curve(profile, n).cells
        ]

    def make(self, results: Results, seed: int) -> Rendered:
        """The figure from its measured cells."""
        drawn: dict[tuple[str, int], Drawn] = {}
        for profile in PANELS:
            for n in GROUPS[profile]:
                one = curve(profile, n)
                points = [point(one, cell, results[cell]) for cell in one.cells]
                drawn[profile, n] = Drawn(one, points, [])
        panels = [
            DrawnPanel(
                Panel(
                    title,
                    "share of the good members",
                    tuple(drawn[profile, n].curve for n in GROUPS[profile]),
                    axis=BY_SHARE,
                ),
                [drawn[profile, n] for n in GROUPS[profile]]
                + ([_bound()] if profile == "lean" else []),
            )
            for profile, title in PANELS.items()
        ]
        return Rendered(
            name=self.name,
            family=self.family,
            title=self.title,
            source=f"{SOURCE}, Theorem 1.1",
            shows="All but a vanishing share of the good members know the elected leader.",
            columns=["profile", *COLUMNS],
            rows=[
                [profile, *row]
                for (profile, _), each in drawn.items()
                for row in rows(each, BY_SHARE, seed)
            ]
            + [["lean", *row] for row in rows(_bound(), BY_SHARE, seed)],
            findings=_judge({key: each.points for key, each in drawn.items()}),
            panels=panels,
            notes=[
                "Corruption is greedy and knows the network. A run in which the adversary owns the "
                "root counts as 0. The line is 1 - (2/3) beta/(1-b), with every node broken that "
                "can be; it holds while the root does."
            ],
        )


def _bound() -> Drawn:
    values = [expected(percent) for percent in PERCENTS]
    one = Curve("while the root holds", METRIC, (), look="0.4", mark="")
    return Drawn(one, [], [FormLine(list(PERCENTS), values, printed=False)])


def _some(points: Points, profile: str, percents: Sequence[int]) -> list[MeasuredPoint]:
    return [
        each
        for n in GROUPS[profile]
        for each in points[profile, n]
        if percent_of(each.cell) in percents
    ]


def _judge(points: Points) -> list[Finding]:
    found = [
        bounded(
            f"nearly all ({NEARLY_ALL:g}) know the leader up to b = {percents[-1]} per cent, "
            f"whoever is bad ({profile})",
            _some(points, profile, percents),
            NEARLY_ALL,
        )
        for profile in PANELS
        for percents in ((0, 2, 5), PERCENTS[:5])
    ]
    found.append(
        bounded(
            "without bad members, all know the leader",
            [each for profile in PANELS for each in _some(points, profile, (0,))],
            1.0,
            theirs=False,
        )
    )
    found.append(
        above(
            "eight leaves inform more than one (b = 10 per cent)",
            _some(points, "robust", (10,)),
            _some(points, "lean", (10,)),
            theirs=False,
        )
    )
    return found


FIGURES = (Informed(),)

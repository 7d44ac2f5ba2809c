"""`committee-success`: how likely a good leader is, by the share of bad members.

Three panels, one for each way to choose the members to corrupt; in each, groups of several sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from hustings.lab.closed_forms.committee import network
from hustings.lab.figures.committee.measurements import (
    BY_SHARE,
    COLUMNS,
    FAMILY,
    LINE,
    LOOKS,
    MARKS,
    PERCENTS,
    SIZES,
    SOURCE,
    bounded,
    election,
    near,
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

METRIC = "p_good"
RANDOM = "random"
ATTACKS = {
    RANDOM: "corrupted at random",
    "greedy": "corrupted greedily, knowing the network",
    "mixed": "some nodes owned, the rest spread to pack",
}
AWARE = tuple(percent for percent in PERCENTS if percent <= 20)  # no root holds beyond this
CONSTANT = 0.1  # what "a constant probability" is taken to mean
CLOSE = {("mixed", 100_000, 10): 800}  # runs of a point that lies close to it
NEAR = 0.02  # the precision of the closed form

Points = Mapping[tuple[str, int], Sequence[MeasuredPoint]]  # by attack and size


@cache
def expected(members: int, percent: int) -> float:
    """The closed form under random corruption."""
    return network.good_leader(network.lean(members), percent / 100)


def _exact(cell: Measurement) -> float | None:
    return expected(cell.members, percent_of(cell))


def curve(attack: str, members: int) -> Curve:
    """One size under one attack."""
    place = SIZES.index(members)
    return Curve(
        f"n = {members:,}",
        METRIC,
        tuple(
            election(members, percent, attack, runs=CLOSE.get((attack, members, percent)))
            for percent in (PERCENTS if attack == RANDOM else AWARE)
        ),
        exact=_exact if attack == RANDOM else None,
        look=LOOKS[place],
        mark=MARKS[place],
    )


@dataclass(frozen=True, slots=True)
class Success:
    """The figure; it implements `Figure`."""

    name: str = "committee-success"
    family: str = FAMILY
    title: str = "P(good leader) of a lean network over the share of bad members"
    pictured: bool = True

    def cells(self) -> list[Measurement]:
        """Every size under every attack."""
        return [cell for attack in ATTACKS for n in SIZES for cell in curve(attack, n).cells]

    def make(self, results: Results, seed: int) -> Rendered:
        """The figure from its measured cells."""
        drawn = {
            (attack, n): _drawn(curve(attack, n), results) for attack in ATTACKS for n in SIZES
        }
        panels = [
            DrawnPanel(
                Panel(
                    title,
                    "P(good leader)",
                    tuple(drawn[attack, n].curve for n in SIZES),
                    axis=BY_SHARE,
                ),
                [drawn[attack, n] for n in SIZES],
            )
            for attack, title in ATTACKS.items()
        ]
        return Rendered(
            name=self.name,
            family=self.family,
            title=self.title,
            source=f"{SOURCE}, Theorem 1.1",
            shows="For every b < 1/3 a good leader is elected with constant probability, no matter "
            "which members are bad.",
            columns=["attack", *COLUMNS],
            rows=[
                [attack, *row]
                for (attack, _), each in drawn.items()
                for row in rows(each, BY_SHARE, seed)
            ],
            findings=_judge({key: each.points for key, each in drawn.items()}),
            panels=panels,
            notes=[
                "Profile lean with a random path at the root; the bad also pack bins, lie, flood "
                "and claim. Attacks bound the adversary from below: a cleverer one may do better."
            ],
        )


def _drawn(one: Curve, results: Results) -> Drawn:
    points = [point(one, cell, results[cell]) for cell in one.cells]
    lines = []
    if one.exact is not None:
        members = one.cells[0].members
        values = [expected(members, percent) for percent in LINE]
        lines.append(FormLine(list(LINE), values, printed=False))
    return Drawn(one, points, lines)


def _up_to(points: Points, attack: str, low: int, high: int) -> list[MeasuredPoint]:
    return [
        each for n in SIZES for each in points[attack, n] if low <= percent_of(each.cell) <= high
    ]


def _judge(points: Points) -> list[Finding]:
    found = [
        bounded(
            f"at random: a good leader with probability {CONSTANT:g} or more up to b = 20 per cent",
            _up_to(points, RANDOM, 0, 20),
            CONSTANT,
        ),
        bounded(
            f"at random: with probability {CONSTANT:g} or more for every b < 1/3",
            _up_to(points, RANDOM, 25, 33),
            CONSTANT,
        ),
    ]
    for attack in ATTACKS:
        if attack != RANDOM:
            found += [
                bounded(
                    f"{attack}: with probability {CONSTANT:g} or more up to b = {percent} per cent",
                    _up_to(points, attack, 0, percent),
                    CONSTANT,
                )
                for percent in (5, 10)
            ]
    found.append(
        near(
            "runs and closed form agree (at random, to 20 per cent)",
            _up_to(points, RANDOM, 0, 20),
            NEAR,
        )
    )
    found += [
        above(
            f"who knows the network breaks more ({attack}, b = 10 per cent)",
            _up_to(points, RANDOM, 10, 10),
            _up_to(points, attack, 10, 10),
            theirs=False,
        )
        for attack in ATTACKS
        if attack != RANDOM
    ]
    return found


FIGURES = (Success(),)

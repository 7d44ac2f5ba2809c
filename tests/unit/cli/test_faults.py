"""Faults as they are typed: several cuts add up, and each ends by itself or with its kind."""

from __future__ import annotations

import pytest

from hustings.sim.faults import Happening, Heal, OneWay, Partition, parse_faults
from hustings.sim.network import Partitions


def in_force(*typed: str) -> Partitions:
    """The cuts that are left when all of it has happened."""
    cuts = Partitions()
    for one in sorted(parse_faults(typed), key=lambda each: each.at):
        _happen(cuts, one)
    return cuts


def _happen(cuts: Partitions, one: Happening) -> None:
    match one:
        case Partition():
            cuts.partition(one.name, one.sides)
        case OneWay():
            cuts.one_way(one.name, one.senders, one.to)
        case Heal():
            cuts.heal(one.name)


def lost(cuts: Partitions) -> list[str]:
    """The ways among four members that are cut."""
    pairs = [(a, b) for a in range(1, 5) for b in range(1, 5) if a != b]
    return [f"{a}>{b}" for a, b in pairs if cuts.between(a, b)]


BOTH = ("one-way:1>2@1", "one-way:3>4@2")


@pytest.mark.parametrize(
    "typed, left",
    [
        (BOTH, ["1>2", "3>4"]),
        ((*BOTH, "heal:one-way@3"), []),
        ((*BOTH, "heal:one-way@1.5"), ["3>4"]),
        ((*BOTH, "heal:one-way:1>2@3"), ["3>4"]),
        ((*BOTH, "heal:one-way:3>4@3"), ["1>2"]),
        ((*BOTH, "heal:@3"), ["1>2", "3>4"]),
        (("one-way:1>2@1", "one-way:1>2@5", "heal:one-way:1>2@3"), ["1>2"]),
        (("one-way:1>2,3@1", "heal:one-way:1>3,2@3"), []),
        (("partition:1|2@1", "partition:3|4@1"), ["1>2", "2>1", "3>4", "4>3"]),
        (("partition:1|2@1", "partition:3|4@1", "heal:partition:1|2@2"), ["3>4", "4>3"]),
        (("partition:1|2@1", "partition:3|4@1", "one-way:1>4@1", "heal:@2"), ["1>4"]),
    ],
    ids=" ".join,
)
def test_cuts_add_up(typed: tuple[str, ...], left: list[str]) -> None:
    assert lost(in_force(*typed)) == left


def test_a_cut_alone_is_called_after_its_kind() -> None:
    """Traces and digests of such runs stay what they were."""
    names = [getattr(one, "name", "") for one in parse_faults(["one-way:1>2@1", "partition:1|2@1"])]
    assert names == ["one-way", "partition"]

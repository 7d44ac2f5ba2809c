"""Partitions and one-way cuts, coming and going, and what is under way meanwhile."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.errors import BadInput, UnknownName
from hustings.sim.delay import Delay, Fixed, PerLink, Uniform
from hustings.sim.faults import Happening, Heal, OneWay, Partition
from hustings.sim.network import Network, Partitions
from tests.unit.sim.worlds import Stage, cry, ping

HALVES = Partition(sides=((1, 2), (3, 4)))
DELAYS: list[Delay] = [Fixed(1.0), PerLink({}, 1.0), Uniform(1.0, 1.0)]
WAYS = ["multicast", "single"]


def pairs(
    *happenings: Happening, at: float = 0.25, way: str = "multicast", delay: Delay | None = None
) -> list[tuple[int, int]]:
    """(from, to) of what arrives when all four members send to all at an instant."""
    stage = Stage(4, network=Network(delay=delay or Fixed(1.0)))
    stage.plan(*happenings)
    for member in range(1, 5):
        others = [other for other in range(1, 5) if other != member]
        stage.let(at, member, cry(1) if way == "multicast" else ping(1, *others))
    return sorted((int(what.split()[3]), who) for _, who, what in stage.played())


ALL = [(a, b) for a in range(1, 5) for b in range(1, 5) if a != b]
WITHIN = [(a, b) for a, b in ALL if (a <= 2) == (b <= 2)]


@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize("way", WAYS)
class TestBothWaysOfSending:
    def test_nothing_crosses_a_partition(self, way: str, delay: Delay) -> None:
        assert pairs(HALVES, way=way, delay=delay) == WITHIN

    def test_what_is_under_way_when_a_cut_comes_is_lost(self, way: str, delay: Delay) -> None:
        late = Partition(sides=HALVES.sides, at=0.5)
        assert pairs(late, way=way, delay=delay) == WITHIN

    def test_what_is_sent_into_a_cut_is_lost_even_if_it_heals_soon(
        self, way: str, delay: Delay
    ) -> None:
        assert pairs(HALVES, Heal(at=0.5), way=way, delay=delay) == WITHIN

    def test_a_cut_that_comes_and_goes_in_between_is_not_noticed(
        self, way: str, delay: Delay
    ) -> None:
        late = Partition(sides=HALVES.sides, at=0.5)
        assert pairs(late, Heal(at=0.75), way=way, delay=delay) == ALL

    def test_after_healing_everything_arrives(self, way: str, delay: Delay) -> None:
        assert pairs(HALVES, Heal(at=1.0), at=1.0, way=way, delay=delay) == ALL

    def test_a_cut_counts_from_its_very_instant(self, way: str, delay: Delay) -> None:
        meets_arrival = Partition(sides=HALVES.sides, at=1.25)
        assert pairs(meets_arrival, way=way, delay=delay) == WITHIN
        misses_arrival = Partition(sides=HALVES.sides, at=1.5)
        assert pairs(misses_arrival, way=way, delay=delay) == ALL

    def test_one_way_cuts_one_way(self, way: str, delay: Delay) -> None:
        cut = OneWay(senders=(1, 2), to=(2, 3))
        lost = {(1, 2), (1, 3), (2, 3)}
        expected = [pair for pair in ALL if pair not in lost]
        assert pairs(cut, way=way, delay=delay) == expected

    def test_members_on_no_side_reach_all(self, way: str, delay: Delay) -> None:
        cut = Partition(sides=((1,), (2,)))
        expected = [pair for pair in ALL if pair not in {(1, 2), (2, 1)}]
        assert pairs(cut, way=way, delay=delay) == expected

    def test_cuts_add_up_and_heal_by_name(self, way: str, delay: Delay) -> None:
        plan = [HALVES, Partition(sides=((1,), (2,)), name="inner"), OneWay(senders=(3,), to=(4,))]
        assert pairs(*plan, way=way, delay=delay) == [(4, 3)]
        healed = [*plan, Heal(name="partition"), Heal(name="inner")]
        expected = [pair for pair in ALL if pair != (3, 4)]
        assert pairs(*healed, way=way, delay=delay) == expected


def test_a_cut_of_the_same_name_replaces_the_one_before() -> None:
    again = Partition(sides=((1,), (2, 3, 4)))
    expected = [(a, b) for a, b in ALL if (a == 1) == (b == 1)]
    assert pairs(HALVES, again) == expected


def test_healing_what_is_not_cut_is_fine() -> None:
    assert pairs(Heal(), Heal(name="never")) == ALL


def test_who_joins_during_a_partition_is_cut_off_like_the_others() -> None:
    stage = Stage(3, up=[1, 2])
    stage.plan(Partition(sides=((1,), (2, 3))))
    stage.let(0.5, 1, cry(1))
    stage.at(0.75, lambda: stage.start(3))
    stage.let(1.0, 2, cry(2))
    assert stage.played() == [(2.0, 3, "PING 2 from 2")]


def test_losses_by_a_cut_are_counted_as_such() -> None:
    stage = Stage(4)
    stage.plan(HALVES)
    stage.let(0.5, 1, cry(1))
    stage.let(0.5, 1, ping(2, 3))
    stage.run()
    assert dict(stage.lost) == {"cut": 3}


# What is refused, before anything starts


def test_a_member_on_two_sides_is_refused_at_once() -> None:
    with pytest.raises(BadInput, match="member 2 stands on two sides"):
        Stage(3).plan(Partition(sides=((1, 2), (2, 3))))


@pytest.mark.parametrize(
    "cut",
    [
        Partition(sides=((1,), (9,))),
        OneWay(senders=(9,), to=(1,)),
        OneWay(senders=(1,), to=(9,)),
    ],
)
def test_cuts_name_members(cut: Happening) -> None:
    with pytest.raises(UnknownName, match="unknown member '9'"):
        Stage(3).plan(cut)


# The table of cuts against sets


MEMBERS = st.integers(1, 5)


@given(st.lists(st.frozensets(MEMBERS), max_size=3), st.frozensets(MEMBERS), st.frozensets(MEMBERS))
def test_the_table_of_cuts_is_what_it_says(
    groups: list[frozenset[int]], senders: frozenset[int], to: frozenset[int]
) -> None:
    seen: set[int] = set()
    sides = []
    for group in groups:
        sides.append(sorted(group - seen))
        seen |= group
    cuts = Partitions()
    assert not cuts
    cuts.partition("a", sides)
    cuts.one_way("b", senders, to)
    assert cuts
    side = {member: place for place, members in enumerate(sides) for member in members}
    for a in range(1, 6):
        for b in range(1, 6):
            apart = a in side and b in side and side[a] != side[b]
            assert cuts.between(a, b) is (apart or (a in senders and b in to))
    cuts.heal("a")
    cuts.heal("b")
    assert not cuts

"""What is read from the log of a group: leaders, losses, how long it took until all followed."""

from __future__ import annotations

from math import inf

import pytest

from hustings.lab.plans.history import History, Stretch
from hustings.net.member_state import Leadership, Peer
from hustings.testing import Logged, MemberChange


def says(time: float, member: str, leader: str | None, *, waits: bool = False) -> Logged:
    """A member's view of the leader from now on; one that waits does not lead yet."""
    peer = None
    if leader is not None:
        peer = Peer(
            id=1,
            name=leader,
            address="",
            attributes={},
            incarnation=1,
            observer=False,
            me=leader == member,
            leader=True,
        )
    leaders = () if peer is None else (peer,)
    leading = leader == member and not waits
    state = Leadership(group="g", term=1, leader=peer, leaders=leaders, leading=leading)
    return Logged(time, member, state)


def up(*names: str) -> list[MemberChange]:
    return [MemberChange(0.0, name, "joined") for name in names]


def test_a_failover() -> None:
    log = [
        *(says(1.0, name, "a") for name in "abc"),
        says(12.0, "b", "b"),
        says(12.5, "c", "b"),
    ]
    found = History(log, [*up("a", "b", "c"), MemberChange(10.0, "a", "killed")], 20.0)
    assert found.stretches == [
        Stretch(0.0, 1.0, ()),
        Stretch(1.0, 10.0, ("a",)),
        Stretch(10.0, 12.0, ()),
        Stretch(12.0, 20.0, ("b",)),
    ]
    assert found.first_acting(10.0, 20.0, ("b", "c")) == 12.0
    assert found.all_follow(10.0, 20.0, ("b", "c"), "b") == 12.5
    assert found.without(10.0, 20.0, ("b", "c")) == 2.0
    assert found.losses == []  # the leader that was killed has not lost anything


def test_a_member_that_never_follows() -> None:
    log = [says(1.0, "a", "a"), says(12.0, "b", "b"), says(13.0, "c", "a")]
    changes = [*up("a", "b", "c"), MemberChange(10.0, "a", "killed")]
    assert History(log, changes, 20.0).all_follow(10.0, 20.0, ("b", "c"), "b") == inf
    paused = [*changes, MemberChange(15.0, "c", "paused")]
    assert History(log, paused, 20.0).all_follow(10.0, 20.0, ("b", "c"), "b") == 12.0
    awake = [*paused, MemberChange(16.0, "c", "resumed")]
    assert History(log, awake, 20.0).all_follow(10.0, 20.0, ("b", "c"), "b") == inf


def test_following_before_it_leads_is_not_enough() -> None:
    early = says(11.0, "b", "b", waits=True)
    log = [says(1.0, "a", "a"), early, says(11.5, "c", "b"), says(12.0, "b", "b")]
    changes = [*up("a", "b", "c"), MemberChange(10.0, "a", "killed")]
    assert History(log, changes, 20.0).all_follow(10.0, 20.0, ("b", "c"), "b") == 12.0


def test_a_leadership_that_is_lost_in_calm_time() -> None:
    log = [says(1.0, "a", "a"), says(5.0, "b", "b"), says(5.5, "a", "b")]
    found = History(log, up("a", "b"), 10.0)
    assert found.losses == [(5.5, "a")]
    assert (found.lost(0.0, 5.5), found.lost(5.5, 10.0)) == (1, 0)
    assert found.most_at_once(0.0, 10.0) == 0.5


def test_a_paused_leader_does_not_act() -> None:
    """Its lease is over when it wakes: changes of one instant count together."""
    log = [says(1.0, "a", "a"), says(5.0, "b", "b"), says(7.0, "a", "b")]
    changes = [*up("a", "b"), MemberChange(3.0, "a", "paused"), MemberChange(7.0, "a", "resumed")]
    found = History(log, changes, 10.0)
    assert found.most_at_once(0.0, 10.0) == 0.0
    assert found.without(1.0, 10.0, ("a", "b")) == 2.0
    assert found.losses == [(7.0, "a")]
    late = [*up("a", "b"), MemberChange(3.0, "a", "paused"), MemberChange(6.0, "a", "resumed")]
    assert History(log, late, 10.0).most_at_once(0.0, 10.0) == 1.0  # it led on for a second


def test_a_member_that_is_restarted_leads_only_when_it_says_so() -> None:
    changes = [*up("a"), MemberChange(3.0, "a", "killed"), MemberChange(4.0, "a", "joined")]
    found = History([says(1.0, "a", "a")], changes, 10.0)
    assert found.stretches[-1] == Stretch(3.0, 10.0, ())


@pytest.mark.parametrize("begin, end, expected", [(0.0, 10.0, 2.0), (4.5, 5.5, 1.0), (8.0, 9.0, 0)])
def test_stretches_with_two_leaders_that_touch_are_one(
    begin: float, end: float, expected: float
) -> None:
    log = [
        says(1.0, "a", "a"),
        says(4.0, "b", "b"),
        says(5.0, "c", "c"),
        says(5.0, "a", "c"),
        says(6.0, "b", "c"),
    ]
    assert History(log, up("a", "b", "c"), 10.0).most_at_once(begin, end) == expected

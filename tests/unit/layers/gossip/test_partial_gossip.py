"""Gossip where views are partial: who is spoken of, asked and missed."""

from __future__ import annotations

from hustings.core.choice import Candidate
from hustings.layers.gossip.circle import Circle
from hustings.layers.gossip.config import GossipConfig
from hustings.layers.gossip.messages import Entry

CONFIG = GossipConfig(partial=True, view_size=6, entries=4, T_gossip=1.0)


def entry(member: int, counter: int = 1) -> Entry:
    return Entry(Candidate(member), 1, counter)


def circle(*members: int) -> Circle:
    known = Circle(CONFIG, lambda _: True)
    known.begin(entry(1), salt=7)
    known.hear([entry(member) for member in members], 0.0)
    return known


def test_every_message_speaks_of_the_leader_and_the_others_take_turns() -> None:
    known = circle(2, 3, 4, 5, 6)
    known.keep = (4,)
    told = [[each.who.id for each in known.some()] for _ in range(4)]
    assert all(ids[:2] == [1, 4] and len(set(ids)) == len(ids) <= CONFIG.entries for ids in told)
    assert {member for ids in told for member in ids} == {1, 2, 3, 4, 5, 6}


def test_a_leader_that_is_suspected_is_spoken_of_no_more() -> None:
    known = circle(2, 3, 4)
    known.keep = (4,)
    known.suspect(4)
    assert 4 not in [each.who.id for each in known.some()]


def test_a_leader_finds_room_in_a_full_view_whatever_its_rank() -> None:
    full = circle(*range(2, 40))
    left_out = next(member for member in range(2, 40) if full.entry(member) is None)
    assert len(full.view) == CONFIG.view_size + 1
    full.keep = (left_out,)
    full.hear([entry(left_out, 2)], 1.0)
    assert left_out in full.view
    assert len(full.view) == CONFIG.view_size + 1


def test_a_leader_is_missed_sooner_than_others_and_each_once() -> None:
    known = circle(2, 3, 4)
    known.keep = (4,)
    assert known.missing(5.0, 6.0) == []
    assert known.missing(7.0, 6.0) == [4]
    assert known.look_round(11.0, 50.0, 100.0, 12.0) == []
    reports = known.look_round(13.0, 50.0, 100.0, 12.0)
    assert [(each.member, each.suspected) for each in reports] == [(4, True)]
    assert known.missing(14.0, 6.0) == []  # it is taken for dead, and known to be
    reports = known.look_round(51.0, 50.0, 100.0, 12.0)
    assert sorted(each.member for each in reports) == [2, 3]


def test_a_leader_that_nobody_has_told_of_is_missing() -> None:
    known = circle(2, 3)
    known.keep = (9, 1)
    assert known.missing(0.0, 6.0) == [9]


def test_how_long_a_member_may_be_silent_grows_with_the_view_and_not_with_the_group() -> None:
    small, large = (
        GossipConfig(partial=True, view_size=10),
        GossipConfig(partial=True, view_size=30),
    )
    assert small.fail_time(1_000) == small.fail_time(100_000) == small.asking_time
    assert small.asking_time < large.asking_time < GossipConfig(view_size=30).fail_time(1_000)
    assert small.leader_fail_time == large.leader_fail_time < small.asking_time
    given = GossipConfig(partial=True, T_fail=5.0)
    assert given.fail_time(1_000) == given.leader_fail_time == 5.0

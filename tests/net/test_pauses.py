"""Members that stood still: whoever wakes up distrusts itself first, and disturbs nobody.

All of it on a virtual clock, so that twenty seconds cost nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from unittest.mock import patch

import pytest

import hustings
from hustings.net.member import Member
from hustings.net.member_state import Leadership, Unable
from hustings.net.storage import NotPersisted
from hustings.testing import Group

PROTOCOLS = ("le-s", "bully", "ring")
SEEDS = (0, 1, 2)
NAMES = "abcde"
DELAY = (0.0005, 0.003)  # seconds that a datagram takes


@contextmanager
def settled(protocol: str, seed: int) -> Iterator[tuple[Group, str]]:
    """Five members, and the name of their leader."""
    with Group(seed=seed, protocol=protocol, delay=DELAY) as group:
        for name in NAMES:
            group.join(name)
        yield group, group.settle(steady=1.0)


def opinion(member: Member) -> tuple[str | None, int]:
    """Whom a member holds for the leader, and in which term."""
    return seen(member.state)


def seen(state: Leadership) -> tuple[str | None, int]:
    return None if state.leader is None else state.leader.name, state.term


def since(group: Group, began: float, *but: str) -> list[tuple[str, str | None, int]]:
    """Who changed its opinion to what, apart from some."""
    return [
        (name, *seen(state)) for at, name, state in group.log if at >= began and name not in but
    ]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("pause", [0.5, 1.2, 3.0, 20.0])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_follower_that_wakes_disturbs_nobody(protocol: str, pause: float, seed: int) -> None:
    with settled(protocol, seed) as (group, leader):
        before = opinion(group.member(leader))
        sleeper = next(name for name in NAMES if name != leader)
        group.pause(sleeper)
        group.advance(pause)
        woke = group.now
        group.resume(sleeper)
        group.advance(3.0)
        assert since(group, woke, sleeper) == []
        own = {who for name, who, _ in since(group, woke) if name == sleeper}
        assert own <= {leader, None}, "it elected somebody by itself"
        assert {opinion(group.member(name)) for name in NAMES} == {before}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("pause", [1.4, 3.0, 20.0])  # le-s needs up to 1.3 s
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_leader_that_wakes_follows_its_successor(protocol: str, pause: float, seed: int) -> None:
    with settled(protocol, seed) as (group, leader):
        others = [name for name in NAMES if name != leader]
        group.pause(leader)
        group.advance(pause)
        after = opinion(group.member(others[0]))
        assert after[0] in others
        assert {opinion(group.member(name)) for name in others} == {after}
        woke = group.now
        group.resume(leader)
        group.advance(3.0)
        assert since(group, woke, leader) == [], "the successor's term has to stay"
        own = [who for name, who, _ in since(group, woke) if name == leader]
        assert leader not in own, "it led again"
        assert opinion(group.member(leader)) == after


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_leaders_campaign_outlasts_a_followers_sleep(protocol: str) -> None:
    with settled(protocol, 0) as (group, leader):
        member = group.member(leader)

        async def work() -> None:
            async with member.campaign():
                await asyncio.Event().wait()

        task = group.spawn(leader, work())
        group.advance(1.0)
        assert member.campaigns
        sleeper = next(name for name in NAMES if name != leader)
        group.pause(sleeper)
        group.advance(3.0)
        group.resume(sleeper)
        group.advance(5.0)
        assert not task.done()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_campaign_of_a_leader_that_was_replaced_ends(protocol: str) -> None:
    with settled(protocol, 0) as (group, leader):
        member = group.member(leader)
        ended: list[float] = []

        async def work() -> None:
            try:
                async with member.campaign():
                    await asyncio.Event().wait()
            finally:
                ended.append(group.now)

        task = group.spawn(leader, work())
        group.advance(1.0)
        assert member.campaigns
        group.pause(leader)
        group.advance(3.0)
        group.settle()
        woke = group.now
        group.resume(leader)
        group.advance(member.bound)
        assert task.done()
        assert ended == [pytest.approx(woke, abs=2.5 * DELAY[1])], "when it has asked"
        with pytest.raises(hustings.LeadershipLost):
            task.result()
        group.advance(3.0)
        assert not member.is_leader
        assert not member.campaigns


# A state that cannot be written is a pause too


@contextmanager
def full_disk(member: Member) -> Iterator[None]:
    """Nothing that this member wants to keep can be written."""

    def fail(fields: Mapping[str, object]) -> None:
        raise NotPersisted("no room")

    with patch.object(member.node.runner._storage, "persist", fail):
        yield


def stalled(member: Member) -> bool:
    return member.node.runner.stalled is not None


@pytest.mark.parametrize("seed", SEEDS)
def test_a_leader_whose_state_could_not_be_written_for_long_asks_first(seed: int) -> None:
    with settled("bully", seed) as (group, leader):
        member = group.member(leader)
        others = [name for name in NAMES if name != leader]
        with full_disk(member):
            group.run(member.elect())  # a new term would have to be stored
            assert stalled(member)
            group.advance(30.0)
            after = opinion(group.member(others[0]))
            assert after[0] in others
        began = group.now
        group.advance(5.0)
        assert not stalled(member)
        assert since(group, began, leader) == [], "the successor's term has to stay"
        assert leader not in [who for _, who, _ in since(group, began)]
        assert opinion(member) == after


def test_what_cannot_be_done_during_a_stall_is_said() -> None:
    with settled("bully", 0) as (group, leader):
        member = group.member(leader)
        with full_disk(member):
            group.run(member.elect())
            for act in (member.resign, member.elect, member.stand):
                with pytest.raises(Unable, match="its state cannot be written"):
                    group.run(act())

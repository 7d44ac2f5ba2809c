"""Members on loopback with a real engine as their guard: elect, hand over, leave; and turns."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable

import pytest

import hustings
from hustings.core.outcome import Guarantee
from hustings.guard import HeldBy, Holder, make_guard
from hustings.joining import Joining
from hustings.net.member import Member
from hustings.net.member_state import LeadershipLost
from tests.guard.engines.base import Engine
from tests.net.kit.loops import run, until

TTL = 3.0
EVERY = ["etcd", "nats", "postgres", "valkey", "zookeeper"]
every_engine = pytest.mark.parametrize("engine", EVERY, indirect=True)


async def group_of(names: str, group: str, url: str) -> list[Member]:
    members: list[Member] = []
    for name in names:
        seeds = [members[0].address] if members else []
        joining = hustings.join(group, name=name, seeds=seeds, protocol="bully", guard=url, ttl=TTL)
        members.append(await joining.open())
    return members


def agreed(members: list[Member]) -> Member | None:
    open_ = [each for each in members if not each.closed]
    names = {each.leader.name if each.leader else None for each in open_}
    leaders = [each for each in open_ if each.is_leader]
    return leaders[0] if len(leaders) == 1 and names == {leaders[0].name} else None


async def seated(members: list[Member], but: str | None = None) -> Member:
    def found() -> bool:
        leader = agreed(members)
        return leader is not None and leader.name != but

    await until(found, "all agree on one that holds the lease")
    leader = agreed(members)
    assert leader is not None
    return leader


@every_engine
def test_a_token_for_each_leadership(engine: Engine) -> None:
    group = f"members-{uuid.uuid4().hex[:8]}"

    async def story() -> None:
        url = engine.url(group)
        members = await group_of("abc", group, url)
        try:
            first = await seated(members)
            assert first.guarantee is Guarantee.LEASED
            tokens = [first.state.token or 0]
            async with make_guard(url, group) as outside:
                told = await outside.acquire(Holder("somebody", 1), TTL)
                assert isinstance(told, HeldBy)
                assert (told.holder, told.token) == (first.name, tokens[0])
            heir = next(each for each in members if each is not first)
            await first.transfer(heir.name)
            second = await seated(members, but=first.name)
            assert second is heir
            tokens.append(second.state.token or 0)
            await second.leave()
            third = await seated(members, but=second.name)
            tokens.append(third.state.token or 0)
            assert tokens == sorted(set(tokens))
        finally:
            for member in members:
                await member.leave()

    run(story())


@pytest.mark.parametrize("engine", ["valkey"], indirect=True)
def test_an_engine_that_is_gone_ends_the_leadership_in_time(engine: Engine) -> None:
    group = f"members-{uuid.uuid4().hex[:8]}"

    async def story() -> None:
        (member,) = await group_of("a", group, engine.url(group))
        try:
            await seated([member])
            first = member.state.token
            ended: list[float] = []

            async def work() -> None:
                async with member.campaign() as term:
                    left = term.remaining
                    try:
                        while True:
                            left = term.remaining
                            await asyncio.sleep(0.01)
                    finally:
                        ended.append(left)

            task = asyncio.create_task(work())
            await asyncio.sleep(0.1)
            engine.pause()
            with pytest.raises(LeadershipLost):
                await task
            assert ended[0] >= 0
            assert not member.is_leader
            engine.resume()
            await until(lambda: member.is_leader, "it is confirmed again")
            assert (member.state.token or 0) > (first or 0), "one leadership, one token"
        finally:
            await member.leave()

    run(story())


def test_an_observer_needs_no_engine() -> None:
    async def story() -> None:
        url = "redis://127.0.0.1:1"
        async with hustings.join("looking", observer=True, guard=url) as member:
            assert not member.is_leader

    run(story())


def test_two_processes_with_one_name_are_two_holders(engines: Callable[[str], Engine]) -> None:
    """As where a volume with a member's state was copied to another machine."""
    url, group = engines("valkey").url("copies"), f"copies-{uuid.uuid4().hex[:8]}"

    def opened() -> Joining:
        return hustings.join(group, name="a", guard=url, ttl=TTL, protocol="bully", local=False)

    async def story() -> None:
        async with opened() as one, opened() as other:
            await until(lambda: one.is_leader or other.is_leader, "one of them leads")
            for _ in range(50):
                assert not (one.is_leader and other.is_leader)
                await asyncio.sleep(0.02)

    run(story())

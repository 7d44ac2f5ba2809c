"""Members that have nothing but the URL of an engine: no seeds, no ports, no folder in common.

`local=False` and another HUSTINGS_LOCAL_DIR make members of this machine as strange to each other
as members of two machines behind closed firewalls.
"""

from __future__ import annotations

import uuid
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

import hustings
from hustings.core.outcome import Guarantee
from hustings.guard import Grant, Holder, make_guard
from hustings.net.member import Member
from tests.guard.engines.base import Engine
from tests.guard.test_members import every_engine
from tests.net.kit.loops import run, until

TTL = 3.0


def new_group() -> str:
    return f"engine-{uuid.uuid4().hex[:8]}"


def leader_of(members: list[Member]) -> Member | None:
    """The one member that leads, if each of these members knows it."""
    leading = [each for each in members if each.is_leader]
    names = {None if each.leader is None else each.leader.name for each in members}
    return leading[0] if len(leading) == 1 and names == {leading[0].name} else None


async def one_leads(members: list[Member]) -> Member:
    await until(lambda: leader_of(members), "one leads, and each member knows it")
    leader = leader_of(members)
    assert leader is not None
    return leader


@every_engine
def test_members_with_a_url_alone_elect_and_follow_each_other(engine: Engine) -> None:
    group = new_group()

    async def story() -> None:
        url = engine.url(group)
        tokens = []
        async with AsyncExitStack() as stack:
            members = [
                await stack.enter_async_context(
                    hustings.join(group, name=name, guard=url, ttl=TTL, local=False)
                )
                for name in "abc"
            ]
            assert [len(each.members()) for each in members] == [1, 1, 1], "nobody hears another"
            while len(members) > 2:
                leader = await one_leads(members)
                assert leader.guarantee is Guarantee.LEASED
                tokens.append(leader.state.token or 0)
                await leader.leave()
                members.remove(leader)
            first = await one_leads(members)
            (second,) = [each for each in members if each is not first]
            tokens.append(first.state.token or 0)
            await first.resign()
            await until(lambda: second.is_leader, "the other one leads")
            tokens.append(second.state.token or 0)
        assert tokens == sorted(set(tokens)), "every leadership has a larger token"
        assert len(tokens) == 3

    run(story())


@every_engine
def test_a_leader_that_is_gone_without_a_word_is_followed_when_its_lease_is_over(
    engine: Engine,
) -> None:
    """Its machine is down: no engine and no member can tell that from a network that is cut."""
    group = new_group()

    async def story() -> None:
        url = engine.url(group)
        async with make_guard(url, group) as guard:
            gone = await guard.acquire(Holder("gone", 1), TTL)
            assert isinstance(gone, Grant)
            async with hustings.join(group, name="a", guard=url, ttl=TTL, local=False) as member:
                await until(lambda: member.leader is not None, "it hears of the holder")
                assert member.leader is not None
                assert member.leader.name == "gone"
                await until(lambda: member.is_leader, "it follows")
                assert guard.now() >= gone.deadline, "it leads while the other one may"
                assert (member.state.token or 0) > gone.token

    run(story())


@every_engine
def test_members_of_two_machines_know_one_leader(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of one machine find each other, and one of them asks the engine for all of them."""
    group = new_group()

    async def story() -> None:
        url = engine.url(group)
        async with AsyncExitStack() as stack:
            members = []
            for machine, names in (("one", "ab"), ("two", "cd")):
                monkeypatch.setenv("HUSTINGS_LOCAL_DIR", str(tmp_path / machine))
                members += [
                    await stack.enter_async_context(
                        hustings.join(group, name=name, guard=url, ttl=TTL)
                    )
                    for name in names
                ]
            await until(
                lambda: all(len(each.members()) == 2 for each in members),
                "members of one machine find each other",
            )
            while len(members) > 1:
                leader = await one_leads(members)
                await leader.leave()
                members.remove(leader)
            await one_leads(members)

    run(story())

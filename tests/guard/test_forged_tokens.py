"""Groups on real engines in which somebody lies about tokens: no engine is lifted, and all go on.

The liar has the key and speaks in everybody's name: to all members, before and during a failover,
about tokens that no engine has granted. What one member makes of it is in
tests/unit/layers/test_lease_lies.py.
"""

from __future__ import annotations

import time
import uuid
from pathlib import Path

import pytest

import hustings
from hustings.core.messages import TOKEN_PACE
from hustings.guard import make_guard
from hustings.guard.base import HIGHEST_LIFT, LARGEST_TOKEN
from hustings.layers.lease import STEP, LeaseHeldMsg
from hustings.net.limits import Reason
from hustings.net.member import Member
from hustings.net.validation import bounds
from tests.guard.engines.base import Engine
from tests.guard.test_members import TTL, seated
from tests.net.kit.loops import run, until
from tests.net.kit.stranger import believed
from tests.net.lies import ELSEWHERE, STRANGER, liar

NEAR = (1, 2, STEP)  # above what was granted: what a member's word is shown for
MOST = 1000  # tokens that the engine may count on by itself meanwhile


def absurd(token: int) -> list[int]:
    jump, end = bounds(time.time(), TOKEN_PACE)
    far = [token + STEP + 1, 2**32, jump, end, end + 1, HIGHEST_LIFT, LARGEST_TOKEN - 2]
    return [*far, LARGEST_TOKEN - 1, LARGEST_TOKEN, 2**60, 2**63 - 1]


def lie(members: list[Member], tokens: list[int]) -> None:
    """To everybody, in the name of everybody else and of a stranger, about both of them."""
    for victim in members:
        others = [each for each in members if each is not victim]
        for token in tokens:
            for sender, like in [*((each.id, each) for each in others), (STRANGER, victim)]:
                wire = liar(like, sender)
                for named in (sender, victim.id):
                    frame = wire.write(LeaseHeldMsg(named, token), victim.id)
                    assert not isinstance(frame, Reason)
                    with believed():
                        victim.node.datagram(frame.data, ELSEWHERE)


async def opened(names: str, group: str, url: str, where: Path) -> list[Member]:
    members: list[Member] = []
    for name in names:
        seeds = [members[0].address] if members else []
        joining = hustings.join(
            group,
            name=name,
            seeds=seeds,
            protocol="bully",
            guard=url,
            ttl=TTL,
            state=where / name,
        )
        members.append(await joining.open())
    return members


async def led_with_more_than(members: list[Member], token: int) -> int:
    """All hold one leader, and its token is larger; which it is."""

    def larger() -> bool:
        return all((each.state.token or 0) > token for each in members)

    await until(larger, lambda: f"above {token}: {[each.state for each in members]}", within=40.0)
    return (await seated(members)).state.token or 0


async def engine_says(url: str, group: str) -> int:
    async with make_guard(url, group) as guard:
        return (await guard.look()).token


@pytest.mark.parametrize("engine", ["etcd", "memory", "postgres", "valkey"], indirect=True)
def test_forged_tokens_do_not_end_a_group(engine: Engine, tmp_path: Path) -> None:
    group = f"forged-{uuid.uuid4().hex[:8]}"
    url = engine.url(group)

    async def before_a_failover(members: list[Member]) -> int:
        leader = await seated(members)
        token = leader.state.token or 0
        lie(members, absurd(token))
        await leader.resign()
        token = await led_with_more_than(members, token)
        lie(members, [token + step for step in NEAR])
        await (await seated(members)).resign()
        return await led_with_more_than(members, token)

    async def during_a_failover(members: list[Member], token: int) -> int:
        gone = await seated(members)
        gone.node.stop()  # without a word
        left = [each for each in members if each is not gone]
        lie(left, [*(token + step for step in NEAR), *absurd(token)])
        return await led_with_more_than(left, token)

    async def story() -> None:
        members = await opened("abc", group, url, tmp_path)
        try:
            first = (await seated(members)).state.token or 0
            token = await during_a_failover(members, await before_a_failover(members))
        finally:
            for member in members:
                await member.leave()
        again = await opened("abc", group, url, tmp_path)
        try:
            token = await led_with_more_than(again, token)
            assert token == await engine_says(url, group)
            assert token < first + MOST, "the engine was lifted"
        finally:
            for member in again:
                await member.leave()

    run(story(), within=150)


def test_an_observer_that_was_lied_to_follows_the_leader_again() -> None:
    """It cannot ask the engine, and keeps nothing."""

    async def story() -> None:
        url = f"memory://{uuid.uuid4().hex}"
        members = [await hustings.join("seen", name="a", guard=url, ttl=TTL).open()]
        seeds = [members[0].address]
        watcher = await hustings.join(
            "seen", name="w", guard=url, seeds=seeds, observer=True
        ).open()
        try:
            await seated([*members, watcher])
            lie([watcher, *members], absurd(1))
            await until(lambda: watcher.state.token == members[0].state.token, "one token")
            await seated([*members, watcher])
        finally:
            for member in (*members, watcher):
                await member.leave()

    run(story(), within=60)

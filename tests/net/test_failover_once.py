"""One failover, one leadership: elections whose members announce themselves, on the real stack."""

from __future__ import annotations

import asyncio

import pytest

from hustings.net.member import Member
from hustings.testing import Group
from tests.net.kit.crowd import Crowd
from tests.net.kit.loops import run

NAMES = ["ada", "ben", "cleo", "dan", "eve"]
QUICK = 0.001  # seconds
by_protocol = pytest.mark.parametrize("protocol", ["le-a", "le-s", "le-m"])


def failover(protocol: str, seed: int, delay: float | tuple[float, float]) -> tuple[str, list[str]]:
    """Who should lead after a crash, and who did, one after the other, in virtual time."""
    ranks = {name: (3 * place + seed) % 5 for place, name in enumerate(NAMES)}
    with Group(seed=seed, protocol=protocol, choice="highest:rank", delay=delay) as group:
        for name in NAMES:
            group.join(name, attributes={"rank": ranks[name]})
        leader = group.settle(steady=3.0)
        seen = len(group.log)
        # Where delays differ, some hear that a process has ended long before others miss it.
        group.kill(leader, machine=bool(seed % 2) or delay != QUICK)
        best = max(group.up, key=ranks.__getitem__)
        group.settle(steady=3.0)
        led: list[str] = []
        leading: dict[str, bool] = {}
        for each in group.log[seen:]:
            leads = each.state.leader is not None and each.state.leader.name == each.member
            if leads and not leading.get(each.member):
                led.append(each.member)
            leading[each.member] = leads
        return best, led


@by_protocol
@pytest.mark.parametrize("delay", [QUICK, (0.001, 0.03)], ids=["quick", "uneven"])
def test_one_leadership_of_the_best(protocol: str, delay: float | tuple[float, float]) -> None:
    """By the choice function; only LE-M chooses by the instant of waking up."""
    for seed in range(12):
        best, led = failover(protocol, seed, delay)
        assert len(led) == 1, (seed, led)
        assert protocol == "le-m" or led == [best], (seed, best, led)


@by_protocol
def test_one_leadership_on_sockets(protocol: str) -> None:
    async def story() -> None:
        async with Crowd(protocol=protocol, choice="highest:rank") as crowd:
            for rank, name in enumerate(NAMES[:4]):
                await crowd.add(name, attributes={"rank": float(rank)})
            leader = await crowd.seated()
            led: list[str] = []
            others = [member for member in crowd.open() if member is not leader]
            watching = [asyncio.ensure_future(note(member, led)) for member in others]
            await leader.kill()
            last = await crowd.settled(lasting=1.0)
            for task in watching:
                task.cancel()
            assert led == [last.name]
            if protocol != "le-m":
                assert last is max(others, key=lambda member: NAMES.index(member.name))

    run(story())


async def note(member: Member, led: list[str]) -> None:
    """Write a member's name down whenever it begins to lead."""
    leading = False
    async for state in member.observe():
        leads = state.leader is not None and state.leader.name == member.name
        if leads and not leading:
            led.append(member.name)
        leading = leads

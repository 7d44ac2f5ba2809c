"""Groups with a guard on the virtual clock: leases last virtual seconds, and a crash is a crash."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from hustings.core.errors import BadInput
from hustings.core.outcome import Guarantee
from hustings.guard import make_guard
from hustings.guard.base import Grant, Guard, HeldBy, Holder
from hustings.guard.memory import MemoryGuard, Registers
from hustings.testing import Group
from tests.unit.testing.groups import NAMES

TTL = 5.0
GuardLike = str | Callable[[str], Guard]


def guarded(guard: GuardLike = "memory://", seed: int = 7) -> Group:
    """Three members whose leader has a lease; what hangs is told soon."""
    group = Group(seed=seed, guard=guard, ttl=TTL, most_seconds=200.0)
    for name in NAMES:
        group.join(name)
    return group


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("machine", [False, True])
def test_killed_and_restarted_at_once(seed: int, machine: bool) -> None:
    with guarded(seed=seed) as group:
        leader = group.settle()
        token = group.member(leader).state.token
        killed_at = group.now
        group.kill(leader, machine=machine)
        restarted = group.restart(leader)
        assert group.now - killed_at < 2.0  # nobody waits for what a dead process would say
        assert restarted.guarantee is Guarantee.LEASED
        later = group.member(group.settle(steady=1.0)).state.token
        assert token is not None
        assert later is not None
        assert later > token


def test_who_is_up_is_killed_by_a_restart_and_whoever_waits_too() -> None:
    with guarded() as group:
        leader = group.settle()
        for name in NAMES:
            group.restart(name)
        group.pause(leader)
        group.kill(leader)
        group.restart(leader)
        group.settle(steady=1.0)


def test_a_killed_leader_gives_nothing_back() -> None:
    """Its lease ends by the virtual clock, and not before."""
    with guarded() as group:
        leader = group.settle()
        group.advance(10.0)
        killed_at = group.now
        group.kill(leader)
        group.settle()
        assert TTL / 2 <= group.now - killed_at <= 2 * TTL


def test_groups_do_not_share_what_is_in_memory() -> None:
    """So one story does not depend on those told before it in the same process."""
    stories = []
    for _ in range(2):
        with guarded() as group:
            group.kill(group.settle())
            group.settle()
            stories.append((group.now, group.log))
    assert stories[0] == stories[1]
    assert stories[0][0] > TTL / 2


def test_whoever_names_another_address_in_memory_is_not_of_the_group() -> None:
    with guarded() as group:
        group.settle()
        with pytest.raises(BadInput, match="guard engine is apart: here"):
            group.join("d", guard="memory://apart")


class _Endless(MemoryGuard):
    async def close(self) -> None:
        await asyncio.Event().wait()


def test_a_guard_that_does_not_close_is_not_waited_for_without_end() -> None:
    registers: list[Registers] = []

    def endless(group: str) -> Guard:
        if not registers:
            registers.append(Registers(asyncio.get_running_loop().time))
        return _Endless(registers[0].of("", group))

    with guarded(endless) as group:
        leader = group.settle()
        group.kill(leader)
        killed_at = group.now
        group.restart(leader)
        assert group.now - killed_at <= 5.0
        group.settle()


# Guards that a test makes itself


async def take(name: str, ttl: float = TTL) -> Grant | HeldBy:
    async with make_guard("memory://", "jobs") as guard:
        return await guard.acquire(Holder(name, 1), ttl)


def test_a_guard_in_memory_counts_virtual_seconds() -> None:
    with Group(seed=7) as group:
        assert isinstance(group.run(take("ada")), Grant)
        held = group.run(take("ben"))
        assert isinstance(held, HeldBy)
        assert held.remaining == pytest.approx(TTL)
        group.advance(2 * TTL)
        assert isinstance(group.run(take("ben")), Grant)


def test_a_guard_that_was_made_outside_counts_virtual_seconds_too() -> None:
    guard = make_guard("memory://", "jobs")
    with Group(seed=7) as group:
        assert isinstance(group.run(guard.acquire(Holder("ada", 1), TTL)), Grant)
        assert isinstance(group.run(take("ben")), HeldBy)
        group.advance(2 * TTL)
        assert isinstance(group.run(take("ben")), Grant)


def test_code_in_a_member_shares_the_registers_of_its_group() -> None:
    with Group(seed=7) as group:
        group.start(["a"])
        assert isinstance(group.run(group.spawn("a", take("ada"))), Grant)
        assert isinstance(group.run(take("ben")), HeldBy)


def test_nothing_of_it_is_left_for_another_group() -> None:
    for _ in range(2):
        with Group(seed=7) as group:
            answer = group.run(take("ada", ttl=3600.0))
            assert isinstance(answer, Grant)
            assert answer.token == 1

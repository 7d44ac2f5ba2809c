"""The guard in memory: what tests can do to it, and that threads may share it."""

from __future__ import annotations

import asyncio
import threading
import time

import msgspec
import pytest

from hustings.guard import Grant, HeldBy, Holder, NotGranted, Unreachable, make_guard
from hustings.guard.memory import MemoryGuard, Register, register_of, registers_in
from tests.net.kit.loops import run, until

ADA, BEN = Holder("ada", 1), Holder("ben", 1)
LONG = 60.0


def two_guards(timeout: float = 0.05) -> tuple[MemoryGuard, MemoryGuard]:
    register = Register()
    return MemoryGuard(register, timeout=timeout), MemoryGuard(register, timeout=timeout)


async def grant_of(guard: MemoryGuard, holder: Holder, ttl: float = LONG) -> Grant:
    answer = await guard.acquire(holder, ttl)
    assert isinstance(answer, Grant)
    return answer


def test_guards_of_one_address_and_group_share_a_register() -> None:
    one, two = make_guard("memory://", "shared"), make_guard("memory://", "shared")
    apart, group = make_guard("memory://apart", "shared"), make_guard("memory://", "other")
    guards = [one, two, apart, group]
    registers = [guard.register for guard in guards if isinstance(guard, MemoryGuard)]
    assert registers[0] is registers[1] is register_of("", "shared")
    assert len({id(each) for each in registers}) == 3
    assert registers_in("apart") == [registers[2]]


def test_a_question_that_is_cut_off_changes_nothing() -> None:
    async def play() -> None:
        one, two = two_guards()
        one.cut = True
        with pytest.raises(Unreachable):
            await one.acquire(ADA, LONG)
        await grant_of(two, BEN)

    run(play())


def test_an_answer_that_is_cut_off_leaves_the_lease_taken() -> None:
    async def play() -> None:
        one, two = two_guards()
        one.deaf = True
        with pytest.raises(Unreachable):
            await one.acquire(ADA, LONG)
        assert isinstance(await two.acquire(BEN, LONG), HeldBy)
        one.deaf = False
        assert (await grant_of(one, ADA)).token == 1, "who holds already keeps its token"

    run(play())


def test_an_answer_later_than_its_lease_is_worthless() -> None:
    async def play() -> None:
        one, _ = two_guards(timeout=10.0)
        one.delay = 0.1
        with pytest.raises(Unreachable, match="longer than the lease"):
            await one.acquire(ADA, 0.05)

    run(play())


def test_a_release_in_doubt_is_settled_before_its_sender_asks_again() -> None:
    async def play() -> None:
        one, two = two_guards()
        grant = await grant_of(one, ADA)
        one.cut = True
        with pytest.raises(Unreachable):
            await one.release(grant)
        with pytest.raises(Unreachable):
            await one.acquire(ADA, LONG)
        one.cut = False
        again = await grant_of(one, ADA)
        assert again.token > grant.token, "the old token may be taken from it at any time"
        with pytest.raises(NotGranted):
            await one.renew(grant, LONG)
        assert isinstance(await two.acquire(BEN, LONG), HeldBy)

    run(play())


@pytest.mark.parametrize("rate", [0.75, 1.25])
def test_windows_do_not_overlap_whatever_the_registers_clock_does_within_the_bound(
    rate: float,
) -> None:
    async def play() -> None:
        register = Register()
        register.rate = rate

        class Drifting(MemoryGuard):
            guarantees = msgspec.structs.replace(MemoryGuard.guarantees, drift=0.25)

        slow = Drifting(register, clock=lambda: 0.75 * time.monotonic())
        other = Drifting(register)
        first = await grant_of(slow, ADA, 0.3)
        while not isinstance(await other.acquire(BEN, LONG), Grant):
            await asyncio.sleep(0.001)
        assert slow.now() >= first.deadline

    run(play())


def test_threads_with_loops_of_their_own_share_it() -> None:
    register = Register()
    inside: list[int] = []
    tokens: list[int] = []
    wrong: list[str] = []

    async def visit(number: int) -> None:
        guard = MemoryGuard(register)
        async with guard.observe() as states:
            visits = 0
            async for state in states:
                if state.holder is not None:
                    continue
                answer = await guard.acquire(Holder(f"m{number}", 1), LONG)
                if isinstance(answer, Grant):
                    inside.append(number)
                    if len(inside) > 1:
                        wrong.append(f"{inside} at once")
                    tokens.append(answer.token)
                    inside.remove(number)
                    await guard.release(answer)
                    visits += 1
                if visits == 10:
                    return

    threads = [threading.Thread(target=run, args=[visit(number)]) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert tokens == list(range(1, 31))


def test_an_observer_of_a_register_that_was_stopped_goes_on() -> None:
    async def play() -> None:
        one, two = two_guards()
        seen = []

        async def watch() -> None:
            async with two.observe() as states:
                async for state in states:
                    seen.append(state)

        task = asyncio.create_task(watch())
        await until(lambda: seen, "the present state")
        one.register.stopped = True
        with pytest.raises(Unreachable):
            await one.acquire(ADA, LONG)
        one.register.stopped = False
        await grant_of(one, ADA)
        await until(lambda: seen[-1].holder == "ada", "the holder")
        task.cancel()
        await asyncio.wait([task])

    run(play())

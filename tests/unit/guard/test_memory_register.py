"""The register in memory, step by step on a clock of the test's own, and who observes it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from hustings.core.errors import UnknownName
from hustings.guard import Behind, Floor, Grant, HeldBy, Holder, Holding, Unreachable, make_guard
from hustings.guard.memory import MemoryGuard, Register, Registers
from hustings.guard.observer import SeenLease
from hustings.testing import VirtualLoop
from tests.net.kit.virtual import now, virtually

ADA, BEN, CLEO = Holder("ada", 1), Holder("ben", 1), Holder("cleo", 1)


class Clocked(Register):
    """A register, and its clock to set."""

    def __init__(self) -> None:
        self.time = 100.0
        super().__init__(lambda: self.time)


def changes(register: Register) -> list[int]:
    """One number for each time that somebody who waits is woken."""
    woken: list[int] = []
    register.attend(lambda: woken.append(1))
    return woken


# Leases


def test_a_lease_lasts_until_its_end_and_not_at_its_end() -> None:
    register = Clocked()
    assert register.acquire(ADA, 10.0) == 1
    register.time = 109.5
    assert register.acquire(BEN, 10.0) == HeldBy("ada", 1, 0.5)
    assert register.renew(ADA, 1, 10.0)
    assert register.look() == SeenLease(Holding("ada", 1), 10.0)
    register.time = 119.5
    assert not register.renew(ADA, 1, 10.0)
    assert register.look() == SeenLease(Holding(None, 1), 0.0)
    assert register.acquire(BEN, 10.0) == 2


def test_a_new_holder_gets_its_own_time_also_if_the_last_one_had_more() -> None:
    register = Clocked()
    register.acquire(ADA, 60.0)
    register.release(ADA, 1, None)
    register.acquire(BEN, 5.0)
    assert register.look() == SeenLease(Holding("ben", 2), 5.0)


def test_who_asks_again_has_its_lease_renewed_and_never_shortened() -> None:
    register = Clocked()
    register.acquire(ADA, 10.0)
    register.time = 105.0
    assert register.acquire(ADA, 10.0) == 1
    assert register.look().remaining == 10.0
    assert register.acquire(ADA, 2.0) == 1
    assert register.look().remaining == 10.0


def test_who_renews_in_vain_changes_nothing() -> None:
    register = Clocked()
    register.acquire(ADA, 10.0)
    for holder, token in ((BEN, 1), (ADA, 2)):
        assert not register.renew(holder, token, 60.0)
    assert register.look().remaining == 10.0
    register.time = 111.0
    assert not register.renew(ADA, 1, 60.0)
    assert register.look().holding.holder is None


def test_a_short_lease_is_seen() -> None:
    register = Clocked()
    register.acquire(ADA, 0.5)
    assert register.look() == SeenLease(Holding("ada", 1), 0.5)


def test_a_register_may_have_a_clock_of_another_rate() -> None:
    register = Clocked()
    assert register.now() == 100.0
    register.rate = 1.5
    assert register.now() == 150.0


@pytest.mark.parametrize("zero", [0.0, 0.5])
def test_a_clock_may_begin_at_nothing(zero: float) -> None:
    register = Clocked()
    register.time = zero
    assert register.look() == SeenLease(Holding(None, 0), 0.0)
    register.acquire(ADA, 0.25)
    assert register.look().remaining == 0.25


# Heirs


def test_an_heir_alone_is_let_in_for_as_long_as_the_last_lease() -> None:
    register = Clocked()
    register.acquire(ADA, 10.0)
    register.release(ADA, 1, "cleo")
    register.time = 104.0
    assert register.acquire(BEN, 60.0) == HeldBy("cleo", 0, 6.0)
    assert register.acquire(CLEO, 10.0) == 2
    register.release(CLEO, 2, "dan")
    register.time = 114.0
    assert register.acquire(BEN, 10.0) == 3, "an successor's time is over at its end"
    register.release(BEN, 3, None)
    assert register.acquire(ADA, 10.0) == 4


def test_an_heir_may_be_late() -> None:
    register = Clocked()
    register.acquire(ADA, 10.0)
    register.release(ADA, 1, "cleo")
    register.time = 200.0
    assert register.acquire(CLEO, 10.0) == 2


# Tokens


def test_a_register_that_is_behind_grants_nothing_unless_it_is_lifted() -> None:
    register = Clocked()
    assert register.acquire(ADA, 10.0) == 1
    assert register.acquire(ADA, 10.0, Floor(1)) == 1
    assert register.acquire(ADA, 10.0, Floor(5)) == Behind(1), "also to who holds"
    assert register.acquire(ADA, 10.0, Floor(5, lift=True)) == 6
    register.recover(9)
    register.recover(8)
    register.release(ADA, 6, None)
    assert register.acquire(BEN, 10.0, Floor(9)) == 10


# Who waits


def test_every_change_wakes_who_waits_and_a_renewal_is_none() -> None:
    register = Clocked()
    woken = changes(register)
    register.acquire(ADA, 10.0)
    assert len(woken) == 1
    register.acquire(ADA, 10.0)
    register.acquire(BEN, 10.0)
    register.renew(ADA, 1, 10.0)
    register.release(BEN, 1, None)
    assert len(woken) == 1
    register.release(ADA, 1, None)
    assert len(woken) == 2
    register.forget()
    assert len(woken) == 3


def test_each_who_waits_ends_by_itself() -> None:
    register = Clocked()
    calls: list[str] = []
    ends = {name: register.attend(partial(calls.append, name)) for name in "abc"}
    register.forget()
    assert calls == ["a", "b", "c"]
    ends["b"]()
    ends["b"]()  # twice is fine
    register.forget()
    assert calls[3:] == ["a", "c"]


def test_registers_of_one_place_have_its_clock() -> None:
    registers = Registers(lambda: 7.0)
    made = registers.of("x", "jobs")
    assert registers.of("x", "jobs") is made
    assert made.now() == 7.0
    assert registers.within("x") == [made]
    assert registers.within("y") == []


def test_registers_without_open_guards_are_dropped() -> None:
    registers = Registers()
    kept, dropped = registers.of("", "kept"), registers.of("", "dropped")

    async def close_one() -> None:
        async with MemoryGuard(dropped):
            registers.drop_unused()
            assert registers.of("", "dropped") is dropped, "a guard is open"

    guard = MemoryGuard(kept)
    assert guard.register is kept
    asyncio.run(close_one())
    registers.drop_unused()
    assert registers.of("", "kept") is kept
    assert registers.of("", "dropped") is not dropped


# A guard's way to it


def guard_on(register: Register, timeout: float = 2.0) -> MemoryGuard:
    return MemoryGuard(register, timeout=timeout)


@pytest.mark.parametrize(
    "spoil, sentence",
    [
        (lambda guard: setattr(guard, "cut", True), "the register in memory is cut off"),
        (lambda guard: setattr(guard.register, "stopped", True), "the register .* is cut off"),
        (lambda guard: setattr(guard, "deaf", True), "the answer of the register .* is cut off"),
        (lambda guard: setattr(guard, "delay", 2.0), "the answer of the register .* is cut off"),
    ],
)
def test_what_is_cut_off_costs_the_time_of_a_question(
    spoil: Callable[[MemoryGuard], None], sentence: str
) -> None:
    async def story() -> None:
        guard = guard_on(Register())
        spoil(guard)
        with pytest.raises(Unreachable, match=sentence):
            await guard.open()
        assert now() == 2.0

    virtually(story())


def test_an_answer_may_take_its_time() -> None:
    async def story() -> None:
        guard = guard_on(Register())
        guard.delay = 1.5
        await guard.open()
        assert now() == 1.5

    virtually(story())


def test_a_release_that_was_answered_is_not_repeated() -> None:
    async def story() -> None:
        register = Register(now)
        guard = guard_on(register)
        grant = await guard.acquire(ADA, 10.0)
        assert isinstance(grant, Grant)
        await guard.release(grant)
        guard.delay = 0.5
        await guard.acquire(ADA, 10.0)
        assert now() == 0.5, "one question"

    virtually(story())


def test_an_observer_hears_of_changes_at_once_and_sees_the_end_of_a_lease() -> None:
    async def story() -> None:
        register = Register(now)
        guard = guard_on(register)
        asyncio.get_running_loop().call_later(1.0, register.acquire, ADA, 10.0)
        asyncio.get_running_loop().call_later(2.0, register.release, ADA, 1, None)
        asyncio.get_running_loop().call_later(3.0, register.acquire, BEN, 12.0)
        seen = []
        async with guard.observe() as states:
            async for state in states:
                seen.append((now(), state.holder))
                if len(seen) == 5:
                    break
        assert seen == [(0.0, None), (1.0, "ada"), (2.0, None), (3.0, "ben"), (15.0, None)]
        assert not register._waiting, "nobody is called any more"

    virtually(story())


def test_an_observer_that_was_woken_looks_once() -> None:
    async def story() -> None:
        register = Register(now)
        looks: list[float] = []

        look = register.look

        def counted() -> SeenLease:
            looks.append(now())
            return look()

        watched: Any = register
        watched.look = counted
        register.acquire(ADA, 60.0)
        async with guard_on(register).observe() as states:
            await anext(states)
            asyncio.get_running_loop().call_later(1.0, register._wake)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(8.0):
                    await anext(states)
        assert looks == [0.0, 1.0, 6.0], "then again after the safety net"

    virtually(story())


def test_who_waited_on_a_loop_that_is_closed_is_not_woken() -> None:
    register = Register()
    loop = VirtualLoop()

    async def attend() -> None:
        await guard_on(register)._attend().__aenter__()

    loop.run_until_complete(attend())
    loop.close()
    register.forget()


def test_an_option_that_it_does_not_know_is_refused() -> None:
    with pytest.raises(UnknownName, match="option of memory"):
        make_guard("memory://?colour=red", "jobs")
    guard = make_guard("memory://?timeout=0.5", "jobs")
    assert isinstance(guard, MemoryGuard)
    assert guard.timeout == 0.5
    assert guard.group == "jobs"

"""What every guard does alike, at the edges of times and of numbers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hustings.core.errors import BadInput
from hustings.guard import Behind, HeldBy, Holder, Holding, MemoryLost, Unreachable
from hustings.guard.base import HIGHEST_LIFT, LARGEST_TOKEN, base_of
from hustings.guard.memory import MemoryGuard, Register
from tests.guard.answers import granted, refused
from tests.net.kit.virtual import virtually

TTL = 10.0
ADA, BEN = Holder("ada", 1), Holder("ben", 1)


class Desk:
    """A register with a guard on it, both on the test's clock."""

    def __init__(self, kind: type[MemoryGuard] = MemoryGuard) -> None:
        self.time = 100.0
        self.register = Register(lambda: self.time)
        self.guard = kind(self.register, clock=lambda: self.time)
        self.notes: list[str] = []
        self.guard.note = self.notes.append


class Unlifted(MemoryGuard):
    """An engine whose tokens only an operator lifts."""

    lifts = False


class Fixed(MemoryGuard):
    """An engine whose tokens nobody lifts."""

    lifts = recovers = False


# Times


def test_a_short_lease_is_waited_for_as_long_as_it_is() -> None:
    async def story() -> None:
        desk = Desk()
        assert await refused(desk.guard, ADA, 0.5, 9) == HeldBy("", 0, 0.5)
        desk.time += 0.5
        assert (await granted(desk.guard, ADA, 0.5, 9)).token == 10

    virtually(story())


@pytest.mark.parametrize("early, goes_on", [(0.001, True), (0.0, False)])
def test_a_leader_is_in_its_time_until_its_deadline_and_not_at_it(
    early: float, goes_on: bool
) -> None:
    async def story() -> None:
        desk = Desk()
        grant = await granted(desk.guard, ADA, TTL)
        desk.register.forget()
        desk.time = grant.deadline - early
        answer = await desk.guard.acquire(ADA, TTL, known=1)
        assert answer.token == (2 if goes_on else 0)

    virtually(story())


# Numbers


def test_an_engine_is_lifted_up_to_the_highest_lift() -> None:
    async def story() -> None:
        desk = Desk()
        await refused(desk.guard, ADA, TTL, HIGHEST_LIFT)
        desk.time += TTL
        assert (await granted(desk.guard, ADA, TTL, HIGHEST_LIFT)).token == HIGHEST_LIFT + 1
        with pytest.raises(MemoryLost, match="let the group have another name"):
            await Desk().guard.acquire(ADA, TTL, known=HIGHEST_LIFT + 1)

    virtually(story())


@pytest.mark.parametrize(
    "kind, known, remedy",
    [
        (Unlifted, HIGHEST_LIFT, f"--recover --above {HIGHEST_LIFT}`"),
        (Unlifted, HIGHEST_LIFT + 1, f"no engine is lifted above {HIGHEST_LIFT}"),
        (Fixed, 40, "decides: let the engine count on above 40"),
    ],
)
def test_what_an_operator_can_do(kind: type[MemoryGuard], known: int, remedy: str) -> None:
    async def story() -> None:
        with pytest.raises(MemoryLost) as caught:
            await Desk(kind).guard.acquire(ADA, TTL, known=known)
        assert remedy in str(caught.value)
        with pytest.raises(MemoryLost):
            await Desk(kind).guard.remind(Behind(1), known)

    virtually(story())


def test_an_operator_recovers_any_number_that_can_be_lifted_above() -> None:
    async def story() -> None:
        desk = Desk()
        await desk.guard.recover(1)
        await desk.guard.recover(HIGHEST_LIFT)
        assert desk.guard.questions == 2
        for above in (0, -1, HIGHEST_LIFT + 1):
            with pytest.raises(BadInput, match="a token is a number from 1 to"):
                await desk.guard.recover(above)
        assert desk.guard.questions == 2
        assert (await granted(desk.guard, ADA, TTL)).token == HIGHEST_LIFT + 1

    virtually(story())


def test_the_base_of_an_engine_is_a_number_that_it_can_count_to() -> None:
    assert base_of(b"0", "here") == 0
    assert base_of(b"40", "here") == 40
    assert base_of(str(LARGEST_TOKEN).encode(), "here") == LARGEST_TOKEN
    for text in (b"", b"-4", b"4.0", b"forty", b"1" + str(LARGEST_TOKEN).encode()):
        with pytest.raises(Unreachable, match="here is not a guard's: b'"):
            base_of(text, "here")


# Observers


class Plain:
    """News as some client gives them: an iterator that cannot be closed."""

    def __aiter__(self) -> Plain:
        return self

    async def __anext__(self) -> Holding:
        return Holding("ada", 7)


class Told(MemoryGuard):
    def _observe(self) -> AsyncIterator[Holding]:
        return Plain()


def test_news_that_cannot_be_closed_are_news() -> None:
    async def story() -> None:
        assert await Desk(Told).guard.look() == Holding("ada", 7)

    virtually(story())

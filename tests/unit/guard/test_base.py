"""What every guard does alike: deadlines, answers that come too late, and questions counted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from hustings.core.errors import BadInput
from hustings.core.outcome import Guarantee
from hustings.guard import (
    Floor,
    Grant,
    Guarantees,
    Guard,
    HeldBy,
    Holder,
    Holding,
    NotGranted,
    Unreachable,
)
from tests.net.kit.loops import run

ADA = Holder("ada", 1)


class Scripted(Guard):
    """An engine that takes its time, and answers what it was told to."""

    guarantees = Guarantees(monotone=True, drift=0.25)

    def __init__(self, answer: int | HeldBy = 7, takes: float = 0.0) -> None:
        self.time = 100.0
        super().__init__(clock=lambda: self.time)
        self.answer = answer
        self.takes = takes
        self.released: list[tuple[Holder, int, str | None]] = []
        self.opened = self.closed = 0
        self.ended = False

    async def open(self) -> None:
        self.opened += 1

    async def close(self) -> None:
        self.closed += 1

    async def _acquire(self, holder: Holder, ttl: float, floor: Floor) -> int | HeldBy:
        self.time += self.takes
        return self.answer

    async def _renew(self, holder: Holder, token: int, ttl: float) -> None:
        self.time += self.takes
        if token != self.answer:
            raise NotGranted("gone")

    async def _release(self, holder: Holder, token: int, to: str | None) -> None:
        self.released.append((holder, token, to))

    async def _observe(self) -> AsyncIterator[Holding]:
        try:
            for token in range(1, 1000):
                yield Holding("ada", token)
        finally:
            self.ended = True


def acquire(guard: Guard, ttl: float = 6.0) -> Grant | HeldBy:
    return run(guard.acquire(ADA, ttl))


def test_a_deadline_counts_from_before_the_question_less_what_clocks_may_differ() -> None:
    guard = Scripted(takes=1.0)
    assert guard.slack == pytest.approx(1.25 / 0.75)
    grant = acquire(guard)
    assert isinstance(grant, Grant)
    assert (grant.holder, grant.token) == (ADA, 7)
    assert grant.deadline == pytest.approx(100.0 + 6.0 * 0.75 / 1.25)
    renewed = run(guard.renew(grant, 6.0))
    assert renewed.deadline == pytest.approx(101.0 + 3.6)
    assert renewed.token == 7


@pytest.mark.parametrize("takes", [3.6, 4.0, 60.0])
def test_an_answer_that_took_longer_than_its_lease_is_worthless(takes: float) -> None:
    guard = Scripted(takes=takes)
    with pytest.raises(Unreachable, match="longer than the lease"):
        acquire(guard)
    with pytest.raises(Unreachable, match="longer than the lease"):
        run(guard.renew(Grant(ADA, 7, 1e9), 6.0))


def test_a_refusal_is_no_worse_for_being_late() -> None:
    held = HeldBy("ben", 3, 1.0)
    assert acquire(Scripted(answer=held, takes=60.0)) == held


def test_what_is_not_held_is_not_renewed() -> None:
    with pytest.raises(NotGranted):
        run(Scripted().renew(Grant(ADA, 6, 1e9), 6.0))


@pytest.mark.parametrize("ttl", [0.0, -1.0, float("inf"), float("nan")])
def test_a_time_that_is_none_is_refused_before_anybody_is_asked(ttl: float) -> None:
    guard = Scripted()
    asks: list[Callable[[], object]] = [
        lambda: acquire(guard, ttl),
        lambda: run(guard.renew(Grant(ADA, 7, 1e9), ttl)),
    ]
    for ask in asks:
        with pytest.raises(BadInput, match="ttl must be a positive time"):
            ask()
    assert guard.questions == 0


def test_questions_are_counted() -> None:
    guard = Scripted()
    grant = acquire(guard)
    assert isinstance(grant, Grant)
    run(guard.renew(grant, 6.0))
    run(guard.release(grant, to="ben"))
    assert guard.questions == 3
    assert guard.released == [(ADA, 7, "ben")]


def test_a_guard_is_closed_behind_its_block() -> None:
    async def play() -> Scripted:
        async with Scripted() as guard:
            assert (guard.opened, guard.closed) == (1, 0)
        return guard

    assert run(play()).closed == 1


def test_an_observer_that_ends_in_the_middle_is_cleaned_up() -> None:
    async def play() -> None:
        guard = Scripted()
        async with guard.observe() as states:
            async for state in states:
                if state.token == 3:
                    break
            assert not guard.ended
        assert guard.ended

    run(play())


def test_the_event_loops_clock_is_the_default() -> None:
    class Plain(Scripted):
        def __init__(self) -> None:
            super().__init__()
            self._clock = None

    async def play() -> None:
        guard = Plain()
        before = guard.now()
        grant = await guard.acquire(ADA, 6.0)
        assert isinstance(grant, Grant)
        assert before + 3.6 <= grant.deadline <= guard.now() + 3.6

    run(play())


def test_what_is_promised_unless_said_otherwise() -> None:
    guarantees = Guarantees(monotone=False)
    assert guarantees.guarantee is Guarantee.LEASED
    assert 0 < guarantees.drift < 1
    assert str(Holder("ada", 3)) == "ada#3"

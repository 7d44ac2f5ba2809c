"""The client between a member and its guard in virtual time: how long it waits, and what for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from hustings.core.guard import Freed, Granted, Held, Observed
from hustings.guard import Behind, HeldBy, Holding, MemoryLost, NotGranted, Unreachable
from tests.net.kit.virtual import now, virtually
from tests.unit.guard.test_lease_client import TTL, Desk

BEN_HOLDS = HeldBy("ben", 8, 100.0)


def play(story: Callable[[Desk], Awaitable[None]]) -> None:
    async def whole() -> None:
        desk = Desk()
        try:
            await story(desk)
        finally:
            desk.guard.filter.set()
            await desk.client.close()
        assert desk.guard.closed
        assert asyncio.all_tasks() == {asyncio.current_task()}, "nothing goes on"

    virtually(whole())


async def ask(desk: Desk, request: int) -> None:
    """Ask, and let everything happen that needs no time."""
    desk.client.acquire(TTL, request)
    await asyncio.sleep(0.01)


# Questions and answers


def test_a_lease_from_its_grant_to_its_return() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.answers = [9, 12]
        desk.known, desk.successor = 4, "ben"
        await ask(desk, 1)
        await ask(desk, 2)
        desk.guard.renewals = NotGranted("it ran out")
        await ask(desk, 3)
        desk.guard.renewals = None
        await ask(desk, 4)
        desk.client.release(5)
        await asyncio.sleep(0.01)
        assert desk.guard.asked == [
            "acquire ada#7 5 above 4",
            "renew ada#7 9 5",
            "renew ada#7 9 5",
            "acquire ada#7 5 above 4",
            "renew ada#7 12 5",
            "release ada#7 12 to ben",
        ]
        assert desk.heard == [
            Granted(1, 9, TTL),
            Granted(2, 9, TTL),
            Granted(3, 12, TTL),
            Granted(4, 12, TTL),
        ]
        assert desk.notes == []

    play(story)


def test_nothing_is_asked_that_nobody_wants() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.answers = [9]
        await asyncio.sleep(60.0)
        assert desk.guard.asked == []
        await ask(desk, 1)
        await asyncio.sleep(60.0)
        assert len(desk.guard.asked) == 1
        desk.client.release(2)
        await asyncio.sleep(60.0)
        desk.client.release(3)
        await asyncio.sleep(60.0)
        assert desk.guard.asked[1:] == ["release ada#7 9 to None"]

    play(story)


def test_what_is_returned_goes_before_what_is_wanted() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.answers = [9, 10]
        await ask(desk, 1)
        desk.client.release(2)
        desk.client.acquire(TTL, 3)
        await asyncio.sleep(0.01)
        assert desk.guard.asked[1:] == ["release ada#7 9 to None", "acquire ada#7 5 above 0"]
        desk.client.acquire(TTL, 4)
        desk.client.release(5)
        await asyncio.sleep(0.01)
        assert desk.guard.asked[3:] == ["release ada#7 10 to None"], "and takes it back"

    play(story)


# News


def test_who_was_refused_hears_when_nobody_holds() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.answers = [BEN_HOLDS]
        await ask(desk, 1)
        assert desk.heard == [Held(1, 2, 8, 100.0)]
        assert desk.guard.watching == 1
        for state in (Holding("ben", 8), Holding(None, 0), Holding(None, 9)):
            desk.guard.states.put_nowait(state)
        await asyncio.sleep(0.01)
        assert desk.heard[1:] == [Freed(8), Freed(9)]

    play(story)


def test_who_waits_no_more_watches_no_more_and_again_a_second_later() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.answers = [BEN_HOLDS, 9, BEN_HOLDS]
        await ask(desk, 1)
        await ask(desk, 2)
        assert desk.guard.watching == 1, "it has heard nothing yet"
        desk.guard.states.put_nowait(Holding(None, 9))
        await asyncio.sleep(0.01)
        assert (desk.guard.watching, len(desk.heard)) == (0, 2)
        desk.guard.renewals = NotGranted("gone")
        await ask(desk, 3)
        await asyncio.sleep(0.9)
        assert desk.guard.watching == 0
        await asyncio.sleep(0.1)
        assert desk.guard.watching == 1
        desk.client.release(4)
        desk.guard.states.put_nowait(Holding(None, 10))
        await asyncio.sleep(10.0)
        assert (desk.guard.watching, len(desk.heard)) == (0, 3)

    play(story)


def test_news_that_break_are_told_of_and_opened_again_after_a_second() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.answers = [BEN_HOLDS]
        await ask(desk, 1)
        desk.guard.states.put_nowait(Unreachable("cut"))
        desk.guard.states.put_nowait(Holding(None, 8))
        await asyncio.sleep(0.98)
        assert desk.notes == ["the guard does not confirm anybody now: cut"]
        assert len(desk.heard) == 1
        await asyncio.sleep(0.1)
        assert desk.heard[1:] == [Freed(8)]

    play(story)


# Looks


def test_looks_are_a_second_apart_and_only_asked_for() -> None:
    async def story(desk: Desk) -> None:
        for token in (1, 2, 3):
            desk.guard.states.put_nowait(Holding("ben", token))
        await asyncio.sleep(60.0)
        assert desk.heard == []
        desk.client.check()
        await asyncio.sleep(0.01)
        desk.client.check()
        await asyncio.sleep(0.98)
        assert desk.heard == [Observed(2, 1)]
        await asyncio.sleep(0.1)
        assert desk.heard == [Observed(2, 1), Observed(2, 2)]
        await asyncio.sleep(60.0)
        assert len(desk.heard) == 2
        assert desk.guard.asked == []

    play(story)


@pytest.mark.parametrize(
    "holding, reminded",
    [(Holding("ben", 3), True), (Holding("ben", 10), False), (Holding(None, 3), False)],
)
def test_an_engine_that_has_forgotten_what_it_said_is_reminded_once(
    holding: Holding, reminded: bool
) -> None:
    async def story(desk: Desk) -> None:
        told: list[tuple[Behind, int]] = []

        async def remind(answer: Behind, known: int) -> None:
            told.append((answer, known))

        desk.guard.remind = remind  # type: ignore[method-assign]  # a script of this test alone
        desk.known, desk.hearsay = 10, 12
        desk.guard.states.put_nowait(holding)
        desk.client.check()
        await asyncio.sleep(0.01)
        assert told == ([(Behind(3), 12)] if reminded else [])
        desk.client.release(1)
        await asyncio.sleep(0.01)
        assert len(told) == reminded

    play(story)


def test_a_look_that_nobody_answers_is_told_of_and_holds_up_nothing() -> None:
    async def story(desk: Desk) -> None:
        desk.client.check()
        desk.guard.answers = [9]
        await ask(desk, 1)
        assert desk.heard == [Granted(1, 9, TTL)]
        await asyncio.sleep(5.0)
        assert desk.notes == [
            "the guard does not confirm anybody now: the engine did not say who holds"
        ]

    play(story)


# Trouble


def test_trouble_is_told_once_for_each_kind_and_its_end_too() -> None:
    async def story(desk: Desk) -> None:
        away, lost = Unreachable("away"), MemoryLost("lost")
        desk.guard.answers = [away, away, lost, lost, KeyError("odd"), 9]
        for request in range(1, 7):
            await ask(desk, request)
        assert desk.notes == [
            "the guard does not confirm anybody now: away",
            "the guard does not confirm anybody now: lost",
            "the guard does not confirm anybody now: KeyError('odd')",
            "the guard answers again",
        ]
        assert desk.heard == [Granted(6, 9, TTL)]
        await ask(desk, 7)
        assert len(desk.notes) == 4

    play(story)


def test_a_lost_memory_is_over_when_a_token_says_so_and_not_before() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.answers = [MemoryLost("lost"), HeldBy("cleo", 0, 5.0), HeldBy("ben", 1, 5.0)]
        for request in (1, 2):
            await ask(desk, request)
        desk.client.release(3)
        await asyncio.sleep(0.01)
        assert len(desk.notes) == 1
        await ask(desk, 4)
        assert desk.notes[1:] == ["the guard answers again"]

    play(story)


# The engine's name


def test_whoever_is_let_in_looks_at_the_engines_name() -> None:
    async def story(desk: Desk) -> None:
        names = ["one", "two", "two", "three", "one"]
        asked: list[float] = []

        async def identity() -> str:
            asked.append(now())
            return names.pop(0)

        desk.guard.identity = identity  # type: ignore[method-assign]  # a script of this test alone
        desk.guard.known_as = "one"
        desk.guard.answers = [9]
        desk.guard.renewals = NotGranted("gone")
        for request in range(1, 6):
            await ask(desk, request)
        assert len(asked) == 5
        assert [note[:40] for note in desk.notes] == [
            "the engine is called two now, and was on",
            "the engine is called three now, and was ",
        ]

    play(story)


def test_who_renews_or_is_refused_does_not_look_at_the_name() -> None:
    async def story(desk: Desk) -> None:
        asked: list[float] = []

        async def identity() -> str:
            asked.append(now())
            raise Unreachable("not now")

        desk.guard.identity = identity  # type: ignore[method-assign]  # a script of this test alone
        desk.guard.known_as = "one"
        desk.guard.answers = [BEN_HOLDS, 9]
        for request in range(1, 5):
            await ask(desk, request)
        assert len(asked) == 1
        assert desk.notes == [], "it is asked again next time"
        desk.guard.renewals = NotGranted("gone")
        await ask(desk, 5)
        assert len(asked) == 2

    play(story)


# The end


def test_closing_gives_back_first_what_is_to_be_given_back() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.answers = [9]
        await ask(desk, 1)
        desk.client.release(2)
        await desk.client.close()
        assert desk.guard.asked[1:] == ["release ada#7 9 to None", "close"]
        assert now() == pytest.approx(0.01)

    play(story)


@pytest.mark.parametrize("opens_after, given_back", [(1.9, True), (2.1, False)])
def test_closing_waits_two_seconds_for_a_guard(opens_after: float, given_back: bool) -> None:
    async def story(desk: Desk) -> None:
        desk.guard.answers = [9]
        desk.guard.filter.clear()
        await ask(desk, 1)
        desk.client.release(2)
        asyncio.get_running_loop().call_later(opens_after, desk.guard.filter.set)
        await desk.client.close()
        assert now() == pytest.approx(0.01 + min(opens_after, 2.0))
        assert desk.guard.asked[1:] == ["release ada#7 9 to None"] * given_back + ["close"]
        assert asyncio.all_tasks() == {asyncio.current_task()}, "nothing goes on"

    play(story)


def test_a_guard_that_does_not_close_is_left_after_two_seconds() -> None:
    async def story(desk: Desk) -> None:
        close = desk.guard.close

        async def slowly() -> None:
            await asyncio.sleep(60.0)

        desk.guard.close = slowly  # type: ignore[method-assign]  # a script of this test alone
        await desk.client.close()
        assert now() == 2.0
        desk.guard.close = close  # type: ignore[method-assign]  # as it was

    play(story)


def test_who_abandons_its_guard_gives_nothing_back_and_waits_for_nothing() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.answers = [9]
        await ask(desk, 1)
        desk.client.release(2)
        await desk.client.abandon()
        await asyncio.sleep(0)
        assert desk.guard.asked[1:] == ["close"]
        assert now() == pytest.approx(0.01)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    play(story)


def test_names_of_holders_are_kept_up_to_a_thousand() -> None:
    async def story(desk: Desk) -> None:
        desk.client._id_of = int
        for number in (*range(1000), 0, 1000, 1001):
            desk.client._id(str(number))
        assert len(desk.client.names) == 1000
        assert list(desk.client.names)[:2] == [3, 4]
        assert desk.client.names[0] == "0", "it was heard of again"

    play(story)

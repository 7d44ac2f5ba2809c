"""The client between a member and its guard, driven by itself on a guard that follows a script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from hustings.core.guard import Freed, Granted, Held, Verdict
from hustings.guard import (
    Behind,
    Floor,
    Guarantees,
    Guard,
    HeldBy,
    Holder,
    Holding,
    MemoryLost,
    NotGranted,
    Unreachable,
    client,
)
from hustings.guard.client import LeaseClient
from tests.net.kit.loops import run, throughout, until

pytestmark = pytest.mark.usefixtures("asks_soon")

ME = Holder("ada", 7)
TTL = 5.0
IDS = {"ada": 1, "ben": 2, "cleo": 3}

Answer = int | HeldBy | Behind | Exception


class Scripted(Guard):
    """A guard that says what the test has written down, and keeps what it was asked."""

    guarantees = Guarantees(monotone=True)

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.answers: list[Answer] = []  # to acquire, one after another; the last one stays
        self.renewals: Exception | None = None
        self.releases: Exception | None = None
        self.states: asyncio.Queue[Holding | Exception] = asyncio.Queue()
        self.watching = 0
        self.filter = asyncio.Event()  # questions are answered while it is set
        self.filter.set()
        self.closed = False

    async def close(self) -> None:
        self.asked.append("close")
        self.closed = True

    async def _acquire(self, holder: Holder, ttl: float, floor: Floor) -> int | HeldBy | Behind:
        self.asked.append(f"acquire {holder} {ttl:g} above {floor.known}")
        await self.filter.wait()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def _renew(self, holder: Holder, token: int, ttl: float) -> None:
        self.asked.append(f"renew {holder} {token} {ttl:g}")
        await self.filter.wait()
        if self.renewals is not None:
            raise self.renewals

    async def _release(self, holder: Holder, token: int, to: str | None) -> None:
        self.asked.append(f"release {holder} {token} to {to}")
        await self.filter.wait()
        if self.releases is not None:
            raise self.releases

    async def _observe(self) -> AsyncIterator[Holding]:
        self.watching += 1
        try:
            while True:
                state = await self.states.get()
                if isinstance(state, Exception):
                    raise state
                yield state
        finally:
            self.watching -= 1


class Desk:
    """A client, its scripted guard, and what the member hears."""

    def __init__(self) -> None:
        self.guard = Scripted()
        self.heard: list[Verdict] = []
        self.notes: list[str] = []
        self.known = self.hearsay = 0
        self.successor: str | None = None
        self.client = LeaseClient(
            self.guard,
            ME,
            IDS.__getitem__,
            self.notes.append,
            lambda: self.successor,
            lambda: (self.known, max(self.known, self.hearsay)),
        )
        self.client.answer = self.heard.append

    async def answered(self, count: int) -> None:
        await until(lambda: len(self.heard) >= count, lambda: f"{count} verdicts: {self.heard}")

    async def asked(self, count: int) -> list[str]:
        await until(
            lambda: len(self.guard.asked) >= count, lambda: f"{count} questions: {self.guard.asked}"
        )
        return self.guard.asked


def play(story: Callable[[Desk], Awaitable[None]]) -> None:
    async def whole() -> None:
        desk = Desk()
        try:
            await story(desk)
        finally:
            desk.guard.filter.set()
            await desk.client.close()
        assert desk.guard.closed

    run(whole())


def test_a_grant_reaches_the_member_with_the_number_of_its_question() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.answers = [9]
        desk.known = 4
        desk.client.acquire(TTL, 31)
        await desk.answered(1)
        assert desk.heard == [Granted(31, 9, TTL)]
        assert desk.guard.asked == ["acquire ada#7 5 above 4"]

    play(story)


def test_what_is_held_is_renewed_and_not_asked_for_anew() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.answers = [9]
        for request in (1, 2, 3):
            desk.client.acquire(TTL, request)
            await desk.answered(request)
        assert desk.guard.asked[1:] == ["renew ada#7 9 5"] * 2
        assert desk.heard[1:] == [Granted(2, 9, TTL), Granted(3, 9, TTL)]

    play(story)


def test_what_is_held_no_more_is_asked_for_anew_at_once() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.answers = [9, 12]
        desk.client.acquire(TTL, 1)
        await desk.answered(1)
        desk.guard.renewals = NotGranted("it ran out")
        desk.client.acquire(TTL, 2)
        await desk.answered(2)
        assert desk.guard.asked[1:] == ["renew ada#7 9 5", "acquire ada#7 5 above 0"]
        assert desk.heard[1] == Granted(2, 12, TTL)
        desk.guard.renewals = None
        desk.client.acquire(TTL, 3)
        await desk.answered(3)
        assert desk.guard.asked[3:] == ["renew ada#7 12 5"], "the new one"

    play(story)


def test_what_was_lost_is_not_renewed_again() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.answers = [9, HeldBy("ben", 10, 1.0), 12]
        desk.client.acquire(TTL, 1)
        await desk.answered(1)
        desk.guard.renewals = NotGranted("it ran out")
        for request in (2, 3):
            desk.client.acquire(TTL, request)
            await desk.answered(request)
        assert desk.guard.asked[1:] == ["renew ada#7 9 5", *["acquire ada#7 5 above 0"] * 2]

    play(story)


def test_a_renewal_without_an_answer_is_repeated_as_a_renewal() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.answers = [9]
        desk.client.acquire(TTL, 1)
        await desk.answered(1)
        desk.guard.renewals = Unreachable("no answer")
        desk.client.acquire(TTL, 2)
        await until(lambda: desk.notes, "it is told of")
        desk.guard.renewals = None
        desk.client.acquire(TTL, 3)
        await desk.answered(2)
        assert desk.heard[1] == Granted(3, 9, TTL)
        assert desk.guard.asked[1:] == ["renew ada#7 9 5"] * 2

    play(story)


def test_a_refusal_tells_who_holds_and_the_next_question_is_asked() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.answers = [HeldBy("ben", 8, 2.5), HeldBy("ben", 8, 1.5), 9]
        for request in (1, 2, 3):
            desk.client.acquire(TTL, request)
            await desk.answered(request)
        assert desk.heard == [Held(1, 2, 8, 2.5), Held(2, 2, 8, 1.5), Granted(3, 9, TTL)]
        assert len(desk.guard.asked) == 3
        assert desk.client.names == {2: "ben"}

    play(story)


def test_giving_back_comes_before_asking() -> None:
    """Both are wanted while the guard is busy: what is held goes first, and is not renewed."""

    async def story(desk: Desk) -> None:
        desk.guard.answers = [9, 10]
        desk.client.acquire(TTL, 1)
        await desk.answered(1)
        desk.guard.filter.clear()
        desk.client.acquire(TTL, 2)
        await desk.asked(2)
        desk.successor = "cleo"
        desk.client.release(3)
        desk.client.acquire(TTL, 4)
        desk.guard.filter.set()
        await desk.answered(3)
        assert desk.guard.asked[1:] == [
            "renew ada#7 9 5",
            "release ada#7 9 to cleo",
            "acquire ada#7 5 above 0",
        ]
        assert desk.heard[-1] == Granted(4, 10, TTL)

    play(story)


def test_giving_back_takes_back_the_question_that_waits() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.answers = [9]
        desk.client.acquire(TTL, 1)
        await desk.answered(1)
        desk.guard.filter.clear()
        desk.client.acquire(TTL, 2)
        await desk.asked(2)
        desk.client.acquire(TTL, 3)
        desk.client.release(4)
        desk.guard.filter.set()
        await desk.asked(3)
        await throughout(0.05, lambda: len(desk.guard.asked) == 3, "nothing else is asked")
        assert desk.guard.asked[2] == "release ada#7 9 to None"

    play(story)


def test_of_questions_that_wait_only_the_newest_is_asked() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.answers = [9]
        desk.guard.filter.clear()
        desk.client.acquire(TTL, 1)
        await desk.asked(1)
        for request in (2, 3, 4):
            desk.client.acquire(TTL + request, request)
        desk.guard.filter.set()
        await desk.answered(2)
        assert desk.guard.asked[1:] == ["renew ada#7 9 9"]
        assert desk.heard == [Granted(1, 9, TTL), Granted(4, 9, TTL + 4)]

    play(story)


def test_what_is_not_held_is_not_given_back() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.answers = [HeldBy("ben", 8, 1.0)]
        desk.client.release(1)
        desk.client.acquire(TTL, 2)
        await desk.answered(1)
        desk.client.release(3)
        await throughout(0.05, lambda: len(desk.guard.asked) == 1, "nothing is given back")

    play(story)


def test_what_was_given_back_is_given_back_once_and_never_renewed() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.answers = [9, 10]
        desk.client.acquire(TTL, 1)
        await desk.answered(1)
        desk.guard.releases = Unreachable("no answer")  # it may have arrived all the same
        desk.client.release(2)
        await until(lambda: desk.notes, "it is told of")
        desk.guard.releases = None
        desk.client.release(3)
        desk.client.acquire(TTL, 4)
        await desk.answered(2)
        assert desk.guard.asked[1:] == ["release ada#7 9 to None", "acquire ada#7 5 above 0"]

    play(story)


def test_who_was_refused_hears_when_it_is_free() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.answers = [HeldBy("ben", 8, 100.0), 11]
        desk.client.acquire(TTL, 1)
        await desk.answered(1)
        await until(lambda: desk.guard.watching == 1, "it watches")
        desk.guard.states.put_nowait(Holding("ben", 8))
        desk.guard.states.put_nowait(Holding(None, 0))  # an engine that does not know the last
        await desk.answered(2)
        assert desk.heard[1] == Freed(8)
        desk.guard.states.put_nowait(Holding(None, 9))
        await desk.answered(3)
        assert desk.heard[2] == Freed(9)

    play(story)


def test_who_was_not_refused_watches_nothing() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.answers = [9]
        desk.guard.states.put_nowait(Holding(None, 3))
        desk.client.acquire(TTL, 1)
        await desk.answered(1)
        await throughout(0.05, lambda: not desk.guard.watching, "nobody watches")
        assert len(desk.heard) == 1

    play(story)


@pytest.mark.parametrize("ends", ["granted", "withdrawn"])
def test_who_waits_no_more_is_told_nothing(ends: str) -> None:
    async def story(desk: Desk) -> None:
        desk.guard.answers = [HeldBy("ben", 8, 100.0), 11]
        desk.client.acquire(TTL, 1)
        await desk.answered(1)
        await until(lambda: desk.guard.watching == 1, "it watches")
        if ends == "granted":
            desk.client.acquire(TTL, 2)
            await desk.answered(2)
        else:
            desk.client.release(2)
        heard = list(desk.heard)
        desk.guard.states.put_nowait(Holding(None, 11))
        await until(lambda: desk.guard.watching == 0, "it watches no more")
        assert desk.heard == heard

    play(story)


def test_a_stream_of_news_that_breaks_is_opened_again() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.answers = [HeldBy("ben", 8, 100.0)]
        desk.client.acquire(TTL, 1)
        await desk.answered(1)
        desk.guard.states.put_nowait(ValueError("odd"))
        desk.guard.states.put_nowait(Holding(None, 8))
        await desk.answered(2)
        assert desk.heard[1] == Freed(8)
        assert any("ValueError" in note for note in desk.notes)

    play(story)


def test_trouble_is_told_once_and_so_is_its_end() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.answers = [Unreachable("cannot be reached"), Unreachable("still not"), 9]
        for request in (1, 2, 3):
            desk.client.acquire(TTL, request)
            await desk.asked(request)
        await desk.answered(1)
        assert desk.heard == [Granted(3, 9, TTL)]
        await until(lambda: len(desk.notes) == 2, "both")
        assert "cannot be reached" in desk.notes[0]
        assert desk.notes[1] == "the guard answers again"

    play(story)


def test_another_kind_of_trouble_is_told_although_there_was_one() -> None:
    """An engine that was away comes back without its memory: both are said."""

    async def story(desk: Desk) -> None:
        desk.guard.answers = [Unreachable("cannot be reached"), MemoryLost("lost its memory")]
        for request in (1, 2, 3):
            desk.client.acquire(TTL, request)
            await desk.asked(request)
        await until(lambda: len(desk.notes) >= 2, "both")
        assert "lost its memory" in desk.notes[1]
        assert len(desk.notes) == 2

    play(story)


def test_an_error_of_a_client_does_not_end_the_asking() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.answers = [ZeroDivisionError("a client's bug"), 9]
        desk.client.acquire(TTL, 1)
        await until(lambda: desk.notes, "it is told of")
        assert "ZeroDivisionError" in desk.notes[0]
        desk.client.acquire(TTL, 2)
        await desk.answered(1)
        assert desk.heard == [Granted(2, 9, TTL)]

    play(story)


def test_what_the_guard_notes_reaches_the_member() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.note("a word")
        assert desk.notes == ["a word"]

    play(story)


def test_closing_gives_back_what_was_to_be_given_back() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.answers = [9]
        desk.client.acquire(TTL, 1)
        await desk.answered(1)
        desk.client.release(2)
        await desk.client.close()
        assert desk.guard.asked[1:] == ["release ada#7 9 to None", "close"]

    play(story)


def test_closing_asks_for_nothing_that_was_answered() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.answers = [9]
        desk.client.acquire(TTL, 1)
        await desk.answered(1)
        await desk.client.close()
        assert desk.guard.asked[1:] == ["close"]

    play(story)


def test_closing_waits_for_what_is_to_be_given_back_after_the_question_under_way() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.answers = [9]
        desk.guard.filter.clear()
        desk.client.acquire(TTL, 1)
        await desk.asked(1)
        desk.client.release(2)
        closing = asyncio.ensure_future(desk.client.close())
        await asyncio.sleep(0)
        desk.guard.filter.set()
        await closing
        assert desk.guard.asked[1:] == ["release ada#7 9 to None", "close"]

    play(story)


def test_what_was_given_back_once_does_not_cost_the_next_grant() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.answers = [9]
        desk.client.release(1)
        for request in (2, 3):
            desk.client.acquire(TTL, request)
            await desk.answered(request - 1)
        assert desk.guard.asked == ["acquire ada#7 5 above 0", "renew ada#7 9 5"]

    play(story)


def test_closing_does_not_wait_for_a_guard_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "_FAREWELL", 0.05)

    async def story(desk: Desk) -> None:
        desk.guard.answers = [9]
        desk.guard.filter.clear()
        desk.client.acquire(TTL, 1)
        await desk.asked(1)
        await desk.client.close()
        assert desk.guard.asked[1:] == ["close"]
        assert desk.heard == []

    play(story)


def test_names_of_holders_are_kept_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_MOST_NAMES", 2)

    async def story(desk: Desk) -> None:
        for request, name in enumerate(("ben", "cleo", "ben", "ada"), 1):
            desk.guard.answers = [HeldBy(name, 8, 1.0)]
            desk.client.acquire(TTL, request)
            await desk.answered(request)
        assert desk.client.names == {2: "ben", 1: "ada"}, "who was heard of last"

    play(story)

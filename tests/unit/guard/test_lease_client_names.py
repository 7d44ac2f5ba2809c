"""The client between a member and its guard: what it says of an engine that is not as it was."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from hustings.guard import HeldBy, MemoryLost, NotGranted, Unreachable
from tests.net.kit.loops import until
from tests.unit.guard.test_lease_client import TTL, Answer, Desk, Scripted, play

pytestmark = pytest.mark.usefixtures("asks_soon")


class Named(Scripted):
    """A guard on an engine that was called "one" when the member began."""

    def __init__(self) -> None:
        super().__init__()
        self.known_as = "one"
        self.called: list[str | Exception] = ["one"]  # now; the last one stays
        self.names: list[tuple[str, bool]] = []  # that it was given

    async def _word(self, kind: str, word: str, *, instead: bool) -> str:
        self.names.append((word, instead))
        name = self.called.pop(0) if len(self.called) > 1 else self.called[0]
        if isinstance(name, Exception):
            raise name
        return name

    def looked(self, count: int) -> Callable[[], bool]:
        return lambda: len(self.names) == count


@pytest.mark.parametrize(
    "next_, says", [(9, True), (HeldBy("ben", 8, 1.0), True), (HeldBy("ben", 0, 1.0), False)]
)
def test_a_lost_memory_is_over_when_a_token_says_so(next_: Answer, says: bool) -> None:
    """Not when the engine takes something back: nobody can lead all the same."""

    async def story(desk: Desk) -> None:
        desk.guard.answers = [MemoryLost("lost its memory"), next_]
        desk.client.acquire(TTL, 1)
        await until(lambda: desk.notes, "it is told of")
        desk.client.release(1)
        await asyncio.sleep(0)
        desk.client.acquire(TTL, 2)
        await desk.answered(1)
        assert desk.notes[1:] == ["the guard answers again"] * says

    play(story)


def test_an_engine_that_takes_something_back_is_there_again() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.answers = [9]
        desk.client.acquire(TTL, 1)
        await desk.answered(1)
        desk.guard.renewals = Unreachable("away")
        desk.client.acquire(TTL, 2)
        await until(lambda: desk.notes, "it is told of")
        desk.client.release(2)
        await until(lambda: len(desk.notes) == 2, "it is there again")
        assert desk.notes[1] == "the guard answers again"

    play(story)


def test_a_member_that_gives_back_after_a_loss_is_not_told_that_all_is_well() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.answers = [9]
        desk.client.acquire(TTL, 1)
        await desk.answered(1)
        desk.guard.renewals = MemoryLost("lost its memory")
        desk.client.acquire(TTL, 2)
        await until(lambda: desk.notes, "it is told of")
        desk.client.release(2)
        await until(lambda: "release ada#7 9 to None" in desk.guard.asked, "it is given back")
        desk.guard.answers = [MemoryLost("lost its memory")]
        desk.client.acquire(TTL, 3)
        await desk.asked(4)
        assert len(desk.notes) == 1, desk.notes

    play(story)


def test_whoever_is_let_in_looks_whether_it_is_the_engine_it_began_with() -> None:
    async def story(desk: Desk) -> None:
        guard = desk.guard = desk.client.guard = Named()
        guard.called, guard.answers = ["one"], [9]
        for request in (1, 2):
            desk.client.acquire(TTL, request)
            await desk.answered(request)
        await until(lambda: guard.names, "it is asked")
        assert guard.names == [("one", False)], "and a renewal is nobody's entry"
        guard.called = [Unreachable("away"), ZeroDivisionError("a bug"), "two", "two", "three"]
        guard.answers, guard.renewals = [HeldBy("ben", 8, 1.0), 9], NotGranted("it ran out")
        for request in range(3, 9):
            desk.client.acquire(TTL, request)
            await desk.answered(request)
            await until(guard.looked(request - 2), "a look")
        await until(lambda: len(desk.notes) == 2, "two other names")
        assert "called two now, and was one" in desk.notes[0]
        assert "called three now, and was one" in desk.notes[1]

    play(story)

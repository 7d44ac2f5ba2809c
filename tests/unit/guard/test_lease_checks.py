"""The client between a member and its guard, when the member wants to see what the engine says."""

from __future__ import annotations

import asyncio

import pytest

from hustings.core.guard import Granted, Observed
from hustings.guard import Holding, Unreachable, client
from tests.net.kit.loops import throughout
from tests.unit.guard.test_lease_client import TTL, Desk, play

pytestmark = pytest.mark.usefixtures("asks_soon")


def lifting(desk: Desk) -> list[int]:
    """Let the guard's engine be one that members lift; what it is lifted above."""
    lifted: list[int] = []

    async def recover(above: int) -> None:
        lifted.append(above)

    type(desk.guard).lifts = True
    desk.guard._recover = recover  # type: ignore[method-assign]  # a script of this test alone
    return lifted


def test_what_the_engine_says_reaches_the_member() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.states.put_nowait(Holding("ben", 9))
        desk.known = 9
        desk.client.check()
        await desk.answered(1)
        desk.guard.states.put_nowait(Holding(None, 4))
        desk.client.check()
        await desk.answered(2)
        assert desk.heard == [Observed(2, 9), Observed(None, 4)]
        assert desk.guard.asked == [], "nothing is asked for, and nothing is forgotten"
        assert desk.client.names == {2: "ben"}
        assert desk.guard.watching == 0

    play(story)


def test_nobody_looks_unasked_and_however_often_it_is_asked_for_one_look_is_one() -> None:
    async def story(desk: Desk) -> None:
        for token in range(3):
            desk.guard.states.put_nowait(Holding("ben", token + 1))
        await throughout(0.05, lambda: not desk.heard, "nobody has asked")
        for _ in range(50):
            desk.client.check()
        await desk.answered(1)
        await throughout(0.05, lambda: len(desk.heard) == 1, "one look")

    play(story)


def test_looks_are_a_second_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_AGAIN", 3600.0)

    async def story(desk: Desk) -> None:
        for token in (1, 2):
            desk.guard.states.put_nowait(Holding("ben", token))
        desk.client.check()
        await desk.answered(1)
        desk.client.check()
        await throughout(0.05, lambda: desk.heard == [Observed(2, 1)], "not again so soon")

    play(story)


def test_a_look_does_not_hold_up_a_question() -> None:
    async def story(desk: Desk) -> None:
        desk.client.check()  # and the engine shows nothing
        desk.guard.answers = [9]
        desk.client.acquire(TTL, 31)
        await desk.answered(1)
        assert desk.heard == [Granted(31, 9, TTL)]

    play(story)


def test_an_engine_that_has_forgotten_what_it_said_is_reminded() -> None:
    async def story(desk: Desk) -> None:
        lifted = lifting(desk)
        desk.hearsay = 1003
        desk.guard.states.put_nowait(Holding("ben", 3))
        desk.known = 1000
        desk.client.check()
        await desk.answered(1)
        await throughout(0.02, lambda: lifted in ([], [1003]), "once")
        assert lifted == [1003], "what was heard of may be true, and must not come again"
        (note,) = desk.notes
        assert "its last token is 3, and token 1003 is known here" in note
        assert desk.heard == [Observed(2, 3)]
        for holding in (Holding("ben", 1000), Holding(None, 3), Holding(None, 0)):
            desk.guard.states.put_nowait(holding)
            desk.known = 1000
            desk.client.check()
            await desk.answered(len(desk.heard) + 1)
        assert lifted == [1003], "what nobody holds may be forgotten: the next one says a number"

    play(story)


def test_where_somebody_has_to_decide_the_member_says_so_once() -> None:
    async def story(desk: Desk) -> None:
        type(desk.guard).lifts = False
        for count in (1, 2):
            desk.guard.states.put_nowait(Holding("ben", 3))
            desk.known = 1000
            desk.client.check()
            await desk.answered(count)
        await asyncio.sleep(0.02)
        (note,) = desk.notes
        assert "let the engine count on above 1000" in note

    play(story)


def test_a_look_that_fails_is_told_of_and_the_next_one_works() -> None:
    async def story(desk: Desk) -> None:
        desk.guard.states.put_nowait(Unreachable("it is gone"))
        desk.client.check()
        desk.guard.states.put_nowait(Holding("ben", 3))
        while not desk.notes:
            await asyncio.sleep(0.01)
        desk.client.check()
        await desk.answered(1)
        assert desk.notes == ["the guard does not confirm anybody now: it is gone"]
        assert desk.heard == [Observed(2, 3)]

    play(story)

"""The edges of the ASGI fence: what it hands on, what it tells asyncio, and when it asks again."""

from __future__ import annotations

import asyncio
import gc
import logging
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hustings.fence import AsgiFence, FenceBroken, Ledger
from hustings.fence.inflight import Presence
from tests.fence.asking import Exchange, ask_asgi, token
from tests.fence.overtaking import DONE, App, for_ever, play, refused

WEBSOCKET = {"type": "websocket", "method": "GET"}


def test_the_application_gets_the_body_as_one_message(tmp_path: Path) -> None:
    """Whatever parts it came in; a part that does not say whether more follows is the last."""
    got: list[Any] = []

    async def read(scope: Any, receive: Any, send: Any) -> None:
        got.append(await receive())
        for message in DONE:
            await send(message)

    async def story(app: App, fence: AsgiFence) -> None:
        app.acts[5] = read
        assert (await Exchange(fence, token(5), b"a", b"b", "c").answer()).status == 200
        only = {"type": "http.request", "body": b"d"}
        assert (await Exchange(fence, token(5), only).answer()).status == 200

    play(tmp_path, story)
    assert got == [
        {"type": "http.request", "body": body, "more_body": False} for body in (b"abc", b"d")
    ]


def test_a_token_that_is_known_needs_no_thread(tmp_path: Path) -> None:
    async def story(app: App, fence: AsgiFence) -> None:
        assert (await ask_asgi(fence, token(5))).status == 200
        fence.threads.shutdown()
        assert (await ask_asgi(fence, token(5))).status == 200
        with pytest.raises(RuntimeError, match="shutdown"):
            await ask_asgi(fence, token(6))

    play(tmp_path, story)


def test_fences_may_share_a_ledger(tmp_path: Path) -> None:
    """Each has its own requests under way, and both one highest token."""
    ledger = Ledger(tmp_path / "tokens")

    async def story(app: App, fence: AsgiFence) -> None:
        one, two = AsgiFence(app, ledger), AsgiFence(app, ledger)
        for each in (one, two, one):
            assert (await ask_asgi(each, token(5))).status == 200
        assert (await ask_asgi(two, token(6))).status == 200
        refused(await ask_asgi(one, token(5)), 5, 6, False)

    play(tmp_path, story)
    assert ledger.highest("http") == 6


def test_what_fails_after_it_was_left_is_nobody_s_surprise(tmp_path: Path) -> None:
    """asyncio complains of exceptions that nobody has looked at."""
    complaints: list[Any] = []
    release = asyncio.Event()

    async def deaf(*_: Any) -> None:
        while not release.is_set():
            with suppress(asyncio.CancelledError):
                await release.wait()
        raise ZeroDivisionError

    async def fails_when_cancelled(*_: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ZeroDivisionError

    async def story(app: App, fence: AsgiFence) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context))
        app.acts |= {5: deaf, 7: fails_when_cancelled, 8: fails_when_cancelled}
        old = Exchange(fence, token(5), "")
        await app.inside.wait()
        assert (await ask_asgi(fence, token(6))).status == 200
        refused(await old.answer(), 5, 6, True)
        release.set()
        while fence.left:
            await asyncio.sleep(0)
        seven = Exchange(fence, token(7), "")
        while "begin 7" not in app.log:
            await asyncio.sleep(0)
        eight = Exchange(fence, token(8), "")
        refused(await seven.answer(), 7, 8, True)
        while "begin 8" not in app.log:
            await asyncio.sleep(0)
        eight.task.cancel()  # the server ends the request
        with pytest.raises(asyncio.CancelledError):
            await eight.task
        gc.collect()

    play(tmp_path, story, grace=0.05)
    gc.collect()
    assert complaints == []


def test_a_fence_that_broke_under_a_request_stays_broken_for_it(tmp_path: Path) -> None:
    """Also if it is mended before the application has noticed."""
    file = tmp_path / "tokens"
    raised: list[BaseException] = []

    async def goes_on(scope: Any, receive: Any, send: Any) -> None:
        whole = file.read_bytes()
        file.write_bytes(b"")
        await send(DONE[0])
        with pytest.raises(FenceBroken):
            await send(DONE[1])
        file.write_bytes(whole)
        for call in (receive, lambda: send(DONE[0]), lambda: send(DONE[1])):
            try:
                await call()
            except FenceBroken as error:
                raised.append(error)

    async def story(app: App, fence: AsgiFence) -> None:
        app.acts[5] = goes_on
        answer = await Exchange(fence, token(5), "").answer()
        assert (answer.status, answer.json()["error"]) == (503, "fence-broken")
        assert answer.json()["handed_over"] is True

    play(tmp_path, story)
    assert len(raised) == 3


def test_who_has_not_entered_is_refused_at_once(tmp_path: Path) -> None:
    """Only what is in the application has half of the grace to end."""

    async def story(app: App, fence: AsgiFence) -> None:
        old = Exchange(fence, token(5), b"half")
        while not old.taken:
            await asyncio.sleep(0)
        assert (await ask_asgi(fence, token(6))).status == 200
        refused(await old.answer(), 5, 6, False)

    play(tmp_path, story, grace=600.0)


def test_an_answer_without_a_body_is_sent_when_the_application_has_ended(tmp_path: Path) -> None:
    async def only_start(scope: Any, receive: Any, send: Any) -> None:
        await send(DONE[0])

    async def story(app: App, fence: AsgiFence) -> None:
        app.acts[5] = only_start
        exchange = Exchange(fence, token(5), "")
        await exchange.task
        assert exchange.sent == DONE[:1]

    play(tmp_path, story)


def test_a_websocket_opens_only_under_the_highest_token(tmp_path: Path) -> None:
    """Also if it was another process that saw the larger one, a moment ago."""
    other = Ledger(tmp_path / "tokens")

    async def accepts(scope: Any, receive: Any, send: Any) -> None:
        other.admit("http", 6)
        await send({"type": "websocket.accept"})

    async def story(app: App, fence: AsgiFence) -> None:
        app.acts[5] = accepts
        exchange = Exchange(fence, token(5), **WEBSOCKET)
        await exchange.task
        assert [each["type"] for each in exchange.sent] == ["websocket.close"]

    play(tmp_path, story)


@pytest.mark.parametrize("more", [False, True])
def test_a_websocket_that_was_answered_is_not_closed_again(tmp_path: Path, more: bool) -> None:
    """One whose answer has only begun is."""

    async def declines(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "websocket.http.response.start", "status": 403, "headers": []})
        await send({"type": "websocket.http.response.body", "body": b"no", "more_body": more})
        await for_ever()

    async def story(app: App, fence: AsgiFence) -> None:
        app.acts[5] = declines
        exchange = Exchange(fence, token(5), **WEBSOCKET)
        while len(exchange.sent) < 2:
            await asyncio.sleep(0)
        assert (await ask_asgi(fence, token(6))).status == 200
        await exchange.task
        kinds = [each["type"].removeprefix("websocket.") for each in exchange.sent]
        assert kinds == ["http.response.start", "http.response.body", *["close"] * more]

    play(tmp_path, story, grace=0.05)


def test_one_that_stands_still_elsewhere_costs_a_grace_once(tmp_path: Path, caplog: Any) -> None:
    """A stopped process keeps its locks. Whoever watches meanwhile does not begin to wait anew."""

    async def story(app: App, fence: AsgiFence) -> None:
        Ledger(tmp_path / "tokens").admit("http", 5)
        elsewhere = Presence(tmp_path / "tokens.inflight")
        elsewhere.hold("http", 5)
        for _ in range(3):
            assert (await Exchange(fence, token(6), "").answer()).status == 200
        elsewhere.let_go("http", 5)

    with caplog.at_level(logging.WARNING, "hustings.fence"):
        play(tmp_path, story, grace=0.3)
    assert [each.message.split(",")[0] for each in caplog.records] == [
        "token 6 of 'http' enters beside requests with smaller ones"
    ]


def test_the_end_of_one_request_does_not_hide_another(tmp_path: Path) -> None:
    """Two with one token: when the first has ended, the second is still found and overtaken."""

    async def story(app: App, fence: AsgiFence) -> None:
        app.acts[5] = for_ever
        old = Exchange(fence, token(5), "")
        await app.inside.wait()
        del app.acts[5]
        assert (await ask_asgi(fence, token(5))).status == 200
        assert (await ask_asgi(fence, token(6))).status == 200
        refused(await old.answer(), 5, 6, True)

    assert "cancelled 5" in play(tmp_path, story, grace=0.1).log

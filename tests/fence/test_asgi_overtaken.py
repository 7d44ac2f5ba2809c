"""Requests to an ASGI fence that a larger token overtakes: while their body arrives, while they
wait, in the application, and while they are answered.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hustings.fence import AsgiFence, FenceBroken, Overtaken, StaleToken
from tests.fence.asking import Exchange, ask_asgi, token
from tests.fence.overtaking import DONE, App, for_ever, play, refused


def test_while_the_body_arrives(tmp_path: Path) -> None:
    """It is answered at once, and never reaches the application, whatever comes later."""

    async def story(app: App, fence: AsgiFence) -> None:
        old = Exchange(fence, token(5), b"half")
        assert (await ask_asgi(fence, token(6))).status == 200
        refused(await old.answer(), 5, 6, False)
        later = Exchange(fence, token(6), b"half")
        older = Exchange(fence, token(5))
        refused(await older.answer(), 5, 6, False)
        assert older.taken == 0
        later.give("of it")
        assert (await later.answer()).body == b"done"

    assert play(tmp_path, story).log == ["begin 6", "end 6"] * 2


def test_a_token_counts_from_its_head(tmp_path: Path) -> None:
    """What is seen is seen: a smaller one is refused while the larger one's body is on its way."""

    async def story(app: App, fence: AsgiFence) -> None:
        app.acts[5] = for_ever
        old = Exchange(fence, token(5), "")
        await app.inside.wait()
        new = Exchange(fence, token(6), b"half")
        refused(await old.answer(), 5, 6, True)
        refused(await Exchange(fence, token(5), "").answer(), 5, 6, False)
        new.give("of it")
        assert (await new.answer()).status == 200

    app = play(tmp_path, story, grace=0.1)
    assert app.log == ["begin 5", "cancelled 5", "begin 6", "end 6"]


def test_an_application_that_hangs_is_cancelled(tmp_path: Path) -> None:
    async def story(app: App, fence: AsgiFence) -> None:
        app.acts[5] = for_ever
        old = [Exchange(fence, token(5), "") for _ in range(3)]
        while app.log.count("begin 5") < 3:
            await asyncio.sleep(0)
        assert (await ask_asgi(fence, token(6))).status == 200
        for each in old:
            refused(await each.answer(), 5, 6, True)

    app = play(tmp_path, story, grace=0.1)
    assert app.log == [*["begin 5"] * 3, *["cancelled 5"] * 3, "begin 6", "end 6"]


def test_an_application_that_ends_in_time_is_not_cancelled(tmp_path: Path) -> None:
    """What it gave to others to do would go on; so the larger token waits, and then comes after."""
    release = asyncio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await release.wait()
        app_log.append("wrote 5")
        for message in DONE:
            await send(message)

    app_log: list[Any] = []

    async def story(app: App, fence: AsgiFence) -> None:
        app.log, app.acts[5] = app_log, slow
        old = Exchange(fence, token(5), "")
        await app.inside.wait()
        new = Exchange(fence, token(6), "")
        late = Exchange(fence, token(6), "")
        while fence.in_flight._turns["http"].token != 6:
            await asyncio.sleep(0)
        release.set()
        refused(await old.answer(), 5, 6, True)
        assert (await new.answer()).status == (await late.answer()).status == 200

    play(tmp_path, story, grace=60.0)
    assert [str(each).split(":")[0] for each in app_log] == [
        "begin 5",
        "wrote 5",
        "token 5 was overtaken by 6 while its request was under way",
        *["begin 6", "end 6"] * 2,
    ]


def test_an_application_that_does_not_end(tmp_path: Path, caplog: Any) -> None:
    """The larger token comes after the grace; the old one is answered, and left without a voice."""
    release = asyncio.Event()
    raised: list[BaseException] = []

    async def deaf(scope: Any, receive: Any, send: Any) -> None:
        while not release.is_set():
            with suppress(asyncio.CancelledError):
                await release.wait()
        for call in (lambda: send(DONE[0]), receive, lambda: send(DONE[1])):
            try:
                await call()
            except Overtaken as error:
                raised.append(error)

    async def story(app: App, fence: AsgiFence) -> None:
        app.acts[5] = deaf
        old = Exchange(fence, token(5), "")
        await app.inside.wait()
        assert (await ask_asgi(fence, token(6))).status == 200
        refused(await old.answer(), 5, 6, True)
        sent = len(old.sent)
        assert len(fence.left) == 1
        assert (await ask_asgi(fence, token(7))).status == 200
        release.set()
        while fence.left:
            await asyncio.sleep(0)
        assert len(old.sent) == sent

    with caplog.at_level(logging.WARNING, "hustings.fence"):
        app = play(tmp_path, story, grace=0.05)
    assert app.log == ["begin 5", "begin 6", "end 6", "begin 7", "end 7", "end 5"]
    assert len(raised) == 3
    assert "only its store can refuse" in caplog.text


def test_a_start_without_a_body_is_no_answer(tmp_path: Path) -> None:
    async def early(scope: Any, receive: Any, send: Any) -> None:
        await send({**DONE[0], "headers": [(b"content-length", b"0")]})
        await for_ever()

    async def story(app: App, fence: AsgiFence) -> None:
        app.acts[5] = early
        old = Exchange(fence, token(5), "")
        await app.inside.wait()
        await ask_asgi(fence, token(6))
        refused(await old.answer(), 5, 6, True)

    play(tmp_path, story, grace=0.05)


def test_an_answer_that_has_begun_is_cut(tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def streaming(scope: Any, receive: Any, send: Any) -> None:
        await send(DONE[0])
        await send({"type": "http.response.body", "body": b"a", "more_body": True})
        await go_on.wait()
        await send({"type": "http.response.body", "body": b"b"})

    async def story(app: App, fence: AsgiFence) -> None:
        app.acts[5] = streaming
        old = Exchange(fence, token(5), "")
        while len(old.sent) < 2:
            await asyncio.sleep(0)
        new = Exchange(fence, token(6), "")
        while fence.in_flight._turns["http"].token != 6:
            await asyncio.sleep(0)
        go_on.set()
        await old.task
        assert [each["type"] for each in old.sent] == [each["type"] for each in DONE]
        assert old.sent[-1]["more_body"]
        assert (await new.answer()).status == 200

    app = play(tmp_path, story)
    assert isinstance(app.log[1], Overtaken)


def test_an_answer_that_is_complete_stays(tmp_path: Path) -> None:
    """What the application does after its answer is cancelled all the same."""

    async def background(scope: Any, receive: Any, send: Any) -> None:
        for message in DONE:
            await send(message)
        await for_ever()

    async def story(app: App, fence: AsgiFence) -> None:
        app.acts[5] = background
        old = Exchange(fence, token(5), "")
        while len(old.sent) < 2:
            await asyncio.sleep(0)
        await ask_asgi(fence, token(6))
        assert (await old.answer()).body == b"done"

    assert play(tmp_path, story, grace=0.05).log == ["begin 5", "cancelled 5", "begin 6", "end 6"]


def test_who_waits_is_overtaken_too(tmp_path: Path) -> None:
    release = asyncio.Event()

    async def slow(*_: Any) -> None:
        await release.wait()

    async def story(app: App, fence: AsgiFence) -> None:
        app.acts[5] = slow
        old = Exchange(fence, token(5), "")
        await app.inside.wait()
        six = Exchange(fence, token(6), "")
        while fence.in_flight._turns["http"].token != 6:
            await asyncio.sleep(0)
        seven = Exchange(fence, token(7), "")
        refused(await six.answer(), 6, 7, False)
        assert not seven.sent
        release.set()
        refused(await old.answer(), 5, 6, True)
        assert (await seven.answer()).status == 200

    assert play(tmp_path, story, grace=60.0).log == ["begin 5", "end 5", "begin 7", "end 7"]


def test_streams(tmp_path: Path) -> None:
    """Nothing that arrives after a larger token is given to the application."""
    parts: list[Any] = []

    async def reading(scope: Any, receive: Any, send: Any) -> None:
        more = True
        while more:
            message = await receive()
            parts.append(message["body"])
            more = message["more_body"]
        for message in DONE:
            await send(message)

    async def story(app: App, fence: AsgiFence) -> None:
        app.acts[5] = app.acts[6] = reading
        old = Exchange(fence, token(5), b"a" * 100, b"b")
        while len(parts) < 2:
            await asyncio.sleep(0)
        new = Exchange(fence, token(6), b"c", "d")
        refused(await old.answer(), 5, 6, True)
        assert (await new.answer()).body == b"done"

    app = play(tmp_path, story, stream=True, body_limit=1, grace=60.0)  # nobody waits for the grace
    assert parts == [b"a" * 100, b"b", b"c", b"d"]
    assert isinstance(app.log[1], Overtaken)


def test_a_part_that_comes_with_a_larger_token_elsewhere(tmp_path: Path) -> None:
    """Another process raised the ledger, and this one has not looked since."""

    async def reading(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await receive()
        raise AssertionError("it got a part that was too late")

    async def story(app: App, fence: AsgiFence) -> None:
        app.acts[5] = reading
        old = Exchange(fence, token(5), b"a")
        while not old.taken:
            await asyncio.sleep(0)
        fence.in_flight._ledger.admit("http", 6)
        old.give("b")
        refused(await old.answer(), 5, 6, True)

    play(tmp_path, story, stream=True)


@pytest.mark.parametrize("status", [412, 503])
def test_an_answer_with_a_larger_token_elsewhere(tmp_path: Path, status: int) -> None:
    """The ledger is read when the answer begins; one that cannot be read lets none through."""

    async def writing(scope: Any, receive: Any, send: Any) -> None:
        scope["meanwhile"]()
        for message in DONE:
            await send(message)

    async def story(app: App, fence: AsgiFence) -> None:
        app.acts[5] = writing
        ledger = fence.in_flight._ledger
        events: dict[int, Callable[[], Any]] = {
            412: lambda: ledger.admit("http", 6),
            503: lambda: (tmp_path / "tokens").write_bytes(b""),
        }
        answer = await Exchange(fence, token(5), "", meanwhile=events[status]).answer()
        assert (answer.status, answer.json()["handed_over"]) == (status, True)

    play(tmp_path, story)


def test_websockets(tmp_path: Path) -> None:
    got: list[Any] = []

    async def talking(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        while True:
            got.append((await receive())["text"])

    async def story(app: App, fence: AsgiFence) -> None:
        app.acts[5] = app.acts[6] = talking
        say = {"type": "websocket.receive", "text": "a"}
        old = Exchange(fence, token(5), {"type": "websocket.connect"}, say, type="websocket")
        while not got:
            await asyncio.sleep(0)
        await ask_asgi(fence, token(7))
        await old.task
        assert [each["type"] for each in old.sent] == ["websocket.accept", "websocket.close"]
        assert old.sent[1]["code"] == 1008
        assert "overtaken by 7" in old.sent[1]["reason"]
        unaccepted = Exchange(fence, token(6), {"type": "websocket.connect"}, type="websocket")
        await unaccepted.task
        assert [each["type"] for each in unaccepted.sent] == ["websocket.close"]

    play(tmp_path, story, grace=60.0)
    assert got == ["a"]


def test_a_websocket_is_accepted_only_under_the_highest_token(tmp_path: Path) -> None:
    async def accepting(scope: Any, receive: Any, send: Any) -> None:
        scope["meanwhile"]()
        await send({"type": "websocket.accept"})

    async def story(app: App, fence: AsgiFence) -> None:
        app.acts[5] = accepting
        raising = {"meanwhile": lambda: fence.in_flight._ledger.admit("http", 6)}
        old = Exchange(fence, token(5), type="websocket", **raising)
        await old.task
        assert [each["type"] for each in old.sent] == ["websocket.close"]

    play(tmp_path, story, body_limit=0)


def test_bodies(tmp_path: Path) -> None:
    got: list[Any] = []

    async def reading(scope: Any, receive: Any, send: Any) -> None:
        got.append(await receive())
        got.append(await receive())
        for message in DONE:
            await send(message)

    async def story(app: App, fence: AsgiFence) -> None:
        app.acts[5] = reading
        whole = Exchange(fence, token(5), b"1234", b"", b"567", "8", {"type": "http.disconnect"})
        assert (await whole.answer()).status == 200
        assert got[0] == {"type": "http.request", "body": b"12345678", "more_body": False}
        assert got[1] == {"type": "http.disconnect"}
        got.clear()
        long = Exchange(fence, token(5), b"1234", b"56789", "0")
        assert (await long.answer()).json()["error"] == "body-too-long"
        said = Exchange(fence, [*token(5), (b"content-length", b"9")])
        answer = await said.answer()
        assert (answer.status, said.taken) == (413, 0)
        assert "at most 8 bytes" in answer.json()["message"]
        gone = Exchange(fence, token(5), b"1234", {"type": "http.disconnect"})
        await gone.task
        assert gone.sent == got == []
        exact = Exchange(fence, [*token(6), (b"content-length", b"8")], "12345678")
        assert (await exact.answer()).status == 200

    assert play(tmp_path, story, body_limit=8).log == ["begin 5", "end 5", "begin 6", "end 6"]


def test_what_the_application_raises(tmp_path: Path) -> None:
    """A store that refuses the token is heard; everything else is the application's own."""

    async def stale(scope: Any, receive: Any, send: Any) -> None:
        raise StaleToken(5, 9)

    async def broken(scope: Any, receive: Any, send: Any) -> None:
        raise FenceBroken("in the store")

    async def late(scope: Any, receive: Any, send: Any) -> None:
        for message in DONE:
            await send(message)
        raise StaleToken(5, 9)

    async def wrong(scope: Any, receive: Any, send: Any) -> None:
        raise ZeroDivisionError

    async def cancelled(scope: Any, receive: Any, send: Any) -> None:
        raise asyncio.CancelledError

    async def story(app: App, fence: AsgiFence) -> None:
        app.acts[5] = stale
        answer = await Exchange(fence, token(5), "").answer()
        assert (answer.status, answer.json()["highest"]) == (412, 9)
        assert answer.json()["handed_over"] is True
        app.acts[5] = broken
        assert (await Exchange(fence, token(5), "").answer()).status == 503
        for act, error in (
            (late, StaleToken),
            (wrong, ZeroDivisionError),
            (cancelled, asyncio.CancelledError),
        ):
            app.acts[5] = act
            exchange = Exchange(fence, token(5), "")
            with pytest.raises(error):
                await exchange.task
            assert len(exchange.sent) == (2 if act is late else 0)

    play(tmp_path, story)


def test_an_application_that_swallows_the_error(tmp_path: Path) -> None:
    async def stubborn(scope: Any, receive: Any, send: Any) -> None:
        scope["raise"]()
        for _ in range(3):
            for message in DONE:
                try:
                    await send(message)
                except StaleToken:
                    continue

    async def story(app: App, fence: AsgiFence) -> None:
        app.acts[5] = stubborn
        raising = {"raise": lambda: fence.in_flight._ledger.admit("http", 6)}
        refused(await Exchange(fence, token(5), "", **raising).answer(), 5, 6, True)

    play(tmp_path, story)


def test_the_server_ends_a_request(tmp_path: Path) -> None:
    async def story(app: App, fence: AsgiFence) -> None:
        app.acts[5] = for_ever
        old = Exchange(fence, token(5), "")
        await app.inside.wait()
        old.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await old.task
        assert old.sent == []
        assert (await ask_asgi(fence, token(6))).status == 200

    app = play(tmp_path, story, grace=0.1)
    assert app.log == ["begin 5", "cancelled 5", "begin 6", "end 6"]


def test_an_application_that_has_taken_all_threads(tmp_path: Path) -> None:
    """Those of asyncio: the fence waits for the disk in its own."""
    release = threading.Event()

    async def blocking(*_: Any) -> None:
        await asyncio.to_thread(release.wait, 30)

    async def story(app: App, fence: AsgiFence) -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        app.acts[5] = blocking
        old = [Exchange(fence, token(5), "") for _ in range(2)]
        while app.log.count("begin 5") < 2:
            await asyncio.sleep(0)
        async with asyncio.timeout(20):
            assert (await ask_asgi(fence, token(6))).status == 200
        release.set()
        for each in old:
            refused(await each.answer(), 5, 6, True)

    play(tmp_path, story, grace=0.05)


def test_equal_tokens_are_together(tmp_path: Path) -> None:
    async def meeting(scope: Any, receive: Any, send: Any) -> None:
        await barrier.wait()
        for message in DONE:
            await send(message)

    barrier = asyncio.Barrier(3)

    async def story(app: App, fence: AsgiFence) -> None:
        app.acts[5] = meeting
        answers = [Exchange(fence, token(5), "").answer() for _ in range(3)]
        assert [each.status for each in await asyncio.gather(*answers)] == [200] * 3

    play(tmp_path, story, grace=60.0)

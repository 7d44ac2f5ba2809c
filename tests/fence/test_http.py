"""The HTTP fences: what passes, what is answered instead, and who waits for whom."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hustings.core.errors import BadInput
from hustings.fence import AsgiFence, Ledger, WsgiFence
from hustings.fence.http import HEADER, header
from hustings.fence.running import Running
from tests.fence.asking import Answer, Behind, Headers, ask_asgi, ask_wsgi, token
from tests.fence.judging import Try, falls

folder_stays = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])

Asker = Callable[..., Answer]


def asker(kind: str, behind: Behind, ledger: Ledger | Path, **options: Any) -> Asker:
    """One question at a time, of either kind."""
    if kind == "wsgi":
        wsgi = WsgiFence(behind.wsgi, ledger, **options)
        return lambda *words: ask_wsgi(wsgi, *words)
    asgi = AsgiFence(behind.asgi, ledger, **options)
    return lambda *words: asyncio.run(ask_asgi(asgi, *words))


both = pytest.mark.parametrize("kind", ["asgi", "wsgi"])


@both
def test_what_passes_and_what_does_not(tmp_path: Path, kind: str) -> None:
    behind = Behind()
    ask = asker(kind, behind, tmp_path / "tokens")
    for number in (5, 5, 6):
        assert ask(token(number)).body == b"done"
    stale = ask(token(5))
    assert stale.status == 412
    assert stale.json()["error"] == "stale-token"
    assert (stale.json()["token"], stale.json()["highest"]) == (5, 6)
    assert stale.headers["content-type"] == "application/json"
    assert int(stale.headers["content-length"]) == len(stale.body)
    assert behind.log == [f"{verb} {n}" for n in (5, 5, 6) for verb in ("begin", "end")]


@both
def test_restart(tmp_path: Path, kind: str) -> None:
    asker(kind, Behind(), tmp_path / "tokens")(token(6))
    behind = Behind()
    ask = asker(kind, behind, tmp_path / "tokens")
    assert ask(token(5)).status == 412
    assert ask(token(6)).status == 200
    assert behind.log == ["begin 6", "end 6"]


@both
def test_without_a_token(tmp_path: Path, kind: str) -> None:
    ask = asker(kind, Behind(), tmp_path / "tokens")
    assert [ask([], method).status for method in ("POST", "DELETE", "BREW", "get")] == [
        428,
        428,
        428,
        200,
    ]
    assert [ask([], method).status for method in ("GET", "HEAD", "OPTIONS")] == [200] * 3
    strict = asker(kind, Behind(), tmp_path / "tokens", open_methods=())
    assert strict([], "GET").status == 428
    refused = strict([], "HEAD")
    assert (refused.status, refused.body) == (428, b"")
    lax = asker(kind, Behind(), tmp_path / "tokens", required=False)
    assert lax([]).status == 200
    lax(token(6))
    assert lax(token(5), "GET").status == 412  # who names a token is held to it


@both
@pytest.mark.parametrize(
    "text",
    [
        *("", "0", "-1", "+1", "01", "1 ", " 1", "1.0", "1e3", "0x1", "1_0", "\u0661", "5,6"),
        *("9" * 19, "9223372036854775808", "1" * 100_000),
    ],
)
def test_bad_headers(tmp_path: Path, kind: str, text: str) -> None:
    behind = Behind()
    ask = asker(kind, behind, tmp_path / "tokens")
    answer = ask(token(text))
    assert answer.status == 400
    assert answer.json()["error"] == "bad-token"
    assert len(answer.body) < 300
    assert behind.log == []


@both
def test_bounds_and_two_headers(tmp_path: Path, kind: str) -> None:
    ask = asker(kind, Behind(), tmp_path / "tokens")
    assert ask([*token(5), *token(5)]).status == 400
    assert ask(token(2**63 - 1)).status == 200
    assert ask(token(2**63 - 2)).status == 412


@both
@folder_stays
@given(st.lists(st.tuples(st.sampled_from([b"hustings-token", b"Hustings-Token", b"x"]),
                          st.binary(max_size=25) | st.from_regex(rb"[0-9]{1,20}"))))  # fmt: skip
def test_any_headers(tmp_path: Path, kind: str, headers: Headers) -> None:
    behind = Behind()
    answer = asker(kind, behind, tmp_path / "tokens")(headers)
    assert answer.status in (200, 400, 412, 428)
    assert bool(behind.log) == (answer.status == 200)
    if answer.status != 200:
        assert answer.json()["error"]


@both
def test_resources(tmp_path: Path, kind: str) -> None:
    where = {"asgi": lambda scope: scope["path"], "wsgi": lambda environ: environ["PATH_INFO"]}
    ask = asker(kind, Behind(), tmp_path / "tokens", resource=where[kind])
    assert ask(token(6), "POST", "/a").status == 200
    assert ask(token(5), "POST", "/b").status == 200
    assert ask(token(5), "POST", "/a").status == 412
    assert ask(token(5), "POST", "").json()["error"] == "bad-resource"
    assert ask(token(5), "POST", "/" + "a" * 255).json()["error"] == "bad-resource"


@both
def test_a_fence_that_cannot_tell_lets_nobody_pass(tmp_path: Path, kind: str) -> None:
    behind = Behind()
    ask = asker(kind, behind, tmp_path / "tokens")
    ask(token(5))
    behind.log.clear()
    (tmp_path / "tokens").write_bytes(b"")
    for number in (4, 5, 6):
        answer = ask(token(number))
        assert (answer.status, answer.json()["error"]) == (503, "fence-broken")
        assert answer.headers["retry-after"] == "1"
        assert str(tmp_path) not in answer.body.decode()
    assert behind.log == []


def test_sentences(tmp_path: Path) -> None:
    app = Behind().asgi
    for options in ({"serialise": 0.0}, {"serialise": float("inf")}, {"resource": ""}):
        with pytest.raises(BadInput):
            AsgiFence(app, tmp_path / "tokens", **options)
    with pytest.raises(BadInput):
        AsgiFence(app, tmp_path / "nowhere" / "tokens")
    assert header(5) == {HEADER: "5"}
    with pytest.raises(BadInput):
        header(0)


def test_other_scopes(tmp_path: Path) -> None:
    behind = Behind()
    fence = AsgiFence(behind.asgi, tmp_path / "tokens")
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("nobody reads here")

    async def ask(scope: dict[str, Any]) -> list[Any]:
        sent.clear()
        await fence(scope, receive, send)
        return [each["type"] for each in sent]

    assert asyncio.run(ask({"type": "lifespan"})) == []
    plain = {"type": "websocket", "headers": token(6)}
    assert asyncio.run(ask(plain)) == []
    assert behind.log == ["lifespan", "websocket"]
    old = {"type": "websocket", "headers": token(5)}
    assert asyncio.run(ask(old)) == ["websocket.close"]
    able = {**old, "extensions": {"websocket.http.response": {}}}
    kinds = asyncio.run(ask(able))
    assert kinds == ["websocket.http.response.start", "websocket.http.response.body"]
    assert sent[0]["status"] == 412
    assert asyncio.run(ask({"type": "websocket", "headers": []})) == ["websocket.close"]
    assert behind.log == ["lifespan", "websocket"]


def test_two_at_once(tmp_path: Path) -> None:
    """Without `serialise`: who passed may still be at work when a larger one is, and says so."""
    behind = Behind(5)
    fence = WsgiFence(behind.wsgi, tmp_path / "tokens")
    with ThreadPoolExecutor() as pool:
        old = pool.submit(ask_wsgi, fence, token(5))
        behind.await_inside(5)
        assert ask_wsgi(fence, token(6)).status == 200
        behind.release(5)
        assert old.result().status == 200
    assert behind.log == ["begin 5", "begin 6", "end 6", "end 5"]


def await_highest(ledger: Ledger, number: int) -> None:
    deadline = time.monotonic() + 20.0
    while ledger.highest("http") != number:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_serialised_threads(tmp_path: Path) -> None:
    behind, ledger = Behind(5), Ledger(tmp_path / "tokens")
    fence = WsgiFence(behind.wsgi, ledger, serialise=20.0)
    with ThreadPoolExecutor() as pool:
        old = pool.submit(ask_wsgi, fence, token(5))
        behind.await_inside(5)
        new = pool.submit(ask_wsgi, fence, token(6))
        late = ask_wsgi(fence, token(4))
        await_highest(ledger, 6)
        assert late.status == ask_wsgi(fence, token(5)).status == 412
        assert not new.done()
        behind.release(5)
        assert (old.result().status, new.result().status) == (200, 200)
    order = [each for each in behind.log if each.endswith("6")]
    assert behind.log[-2:] == order == ["begin 6", "end 6"]


def test_serialised_tasks(tmp_path: Path) -> None:
    behind, ledger = Behind(5), Ledger(tmp_path / "tokens")
    fence = AsgiFence(behind.asgi, ledger, serialise=20.0)

    async def story() -> None:
        old = asyncio.create_task(ask_asgi(fence, token(5)))
        await asyncio.to_thread(behind.await_inside, 5)
        six = asyncio.create_task(ask_asgi(fence, token(6)))
        await asyncio.to_thread(await_highest, ledger, 6)
        seven = asyncio.create_task(ask_asgi(fence, token(7)))
        await asyncio.to_thread(await_highest, ledger, 7)
        assert not six.done()
        assert not seven.done()
        behind.release(5)
        assert (await old).status == 200
        assert (await six).status == 412  # 7 came while it waited
        assert (await seven).status == 200

    asyncio.run(story())
    assert behind.log[-3:] == ["end 5", "begin 7", "end 7"]
    assert not any(each.endswith("6") for each in behind.log)


@both
def test_smaller_ones_that_do_not_end(tmp_path: Path, kind: str) -> None:
    behind = Behind(5)
    ledger = Ledger(tmp_path / "tokens")
    if kind == "wsgi":
        wsgi = WsgiFence(behind.wsgi, ledger, serialise=0.05)
    else:
        asgi = AsgiFence(behind.asgi, ledger, serialise=0.05)

    def ask(number: int) -> Answer:
        if kind == "wsgi":
            return ask_wsgi(wsgi, token(number))
        return asyncio.run(ask_asgi(asgi, token(number)))

    with ThreadPoolExecutor() as pool:
        old = pool.submit(ask, 5)
        behind.await_inside(5)
        refused = ask(6)
        assert (refused.status, refused.json()["error"]) == (503, "fence-busy")
        behind.release(5)
        assert old.result().status == 200
    assert ask(5).status == 412
    assert ask(6).status == 200


def test_who_runs_is_forgotten() -> None:
    running, woken = Running(), list[int]()
    running.enter("x", 5)
    running.enter("x", 5)
    assert running.when_alone("x", 5, lambda: woken.append(5))
    assert running.when_alone("y", 6, lambda: woken.append(0))
    six, seven = lambda: woken.append(6), lambda: woken.append(7)
    assert not running.when_alone("x", 6, six)
    assert not running.when_alone("x", 7, seven)
    running.enter("x", 6)
    running.leave("x", 5)
    assert woken == []
    running.leave("x", 5)
    assert woken == [6]
    running.forget("x", seven)
    running.leave("x", 6)
    assert woken == [6]
    assert (running._at_work, running._waiting) == ({}, {})


def test_an_application_that_fails_has_ended(tmp_path: Path) -> None:
    def failing(environ: Any, start: Any) -> Any:
        raise ZeroDivisionError

    async def failing_too(scope: Any, receive: Any, send: Any) -> None:
        raise ZeroDivisionError

    wsgi = WsgiFence(failing, tmp_path / "tokens")
    with pytest.raises(ZeroDivisionError):
        ask_wsgi(wsgi, token(5))
    asgi = AsgiFence(failing_too, tmp_path / "tokens")
    with pytest.raises(ZeroDivisionError):
        asyncio.run(ask_asgi(asgi, token(5)))
    assert wsgi._running._at_work == asgi._running._at_work == {}


def test_many_clients(tmp_path: Path) -> None:
    """With `serialise` the application sees tokens that never fall, whatever comes when."""
    inside, begun, lock = 0, list[int](), threading.Lock()
    tries = list[Try]()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal inside
        number = int(dict(scope["headers"])[b"hustings-token"])
        begun.append(number)
        assert inside in (0, number), "two tokens at work"
        inside = number
        count[number] = count.get(number, 0) + 1
        for _ in range(rng.randrange(5)):
            await asyncio.sleep(0)
        count[number] -= 1
        if not count[number]:
            inside = 0
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})

    rng, count = random.Random(1), dict[int, int]()
    fence = AsgiFence(app, tmp_path / "tokens", serialise=20.0)

    async def client(seed: int) -> None:
        mine = random.Random(seed)
        for step in range(25):
            number = max(1, step + mine.randrange(-5, 5))
            answer = await ask_asgi(fence, token(number))
            assert answer.status in (200, 412)
            with lock:
                tries.append(Try(number, 0, 0, answer.status == 200))

    async def everybody() -> None:
        await asyncio.gather(*(client(seed) for seed in range(12)))

    asyncio.run(everybody())
    assert not falls(begun)
    assert len(begun) == sum(each.accepted is True for each in tries)
    assert 0 < len(begun) < len(tries)

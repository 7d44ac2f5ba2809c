"""The HTTP fences: what passes, and what is answered instead."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hustings.core.errors import BadInput
from hustings.fence import AsgiFence, Ledger, WsgiFence
from hustings.fence.http import HEADER, header
from tests.fence.asking import Answer, Behind, Headers, ask_asgi, ask_wsgi, token
from tests.fence.judging import falls
from tests.fence.overtaking import DONE

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
    wrong: list[dict[str, Any]] = [
        *({"grace": grace} for grace in (-1.0, float("inf"), float("nan"), 3601)),
        *({"body_limit": limit} for limit in (-1, True, 1.5, None)),
        {"resource": ""},
        {"resource": "x" * 256},
    ]
    for options in wrong:
        with pytest.raises(BadInput, match="|".join(options) + "|resource"):
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
    assert wsgi.in_flight._requests == asgi.in_flight._requests == {}
    assert wsgi.in_flight._presence._held == asgi.in_flight._presence._held == {}


def test_many_clients(tmp_path: Path) -> None:
    """The application sees tokens that never fall, one at a time, whatever comes when."""
    rng, at_work, begun = random.Random(1), dict[int, int](), list[int]()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        number = scope["hustings.token"]
        begun.append(number)
        at_work[number] = at_work.get(number, 0) + 1
        assert len(at_work) == 1, "two tokens at work"
        try:
            for _ in range(rng.randrange(5)):
                await asyncio.sleep(0)
        finally:
            at_work[number] -= 1
            if not at_work[number]:
                del at_work[number]
        for message in DONE:
            await send(message)

    fence = AsgiFence(app, tmp_path / "tokens", grace=60.0)
    statuses = list[int]()

    async def client(seed: int) -> None:
        mine = random.Random(seed)
        for step in range(25):
            number = max(1, step + mine.randrange(-5, 5))
            statuses.append((await ask_asgi(fence, token(number))).status)

    async def everybody() -> None:
        await asyncio.gather(*(client(seed) for seed in range(12)))

    asyncio.run(everybody())
    assert not falls(begun)
    assert set(statuses) == {200, 412}
    assert statuses.count(200) <= len(begun) < len(statuses)

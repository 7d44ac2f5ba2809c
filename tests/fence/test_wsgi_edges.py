"""The edges of the WSGI fence, and answers that both kinds of HTTP fence share."""

from __future__ import annotations

import asyncio
import fcntl
import os
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from hustings.fence import AsgiFence, Ledger, Overtaken, WsgiFence
from tests.fence.asking import Behind, ask_asgi, ask_wsgi, token


def begun(fence: WsgiFence, starts: list[str]) -> Any:
    """The answer to a request with token 5, before anybody has asked for a part of it."""
    return fence({"REQUEST_METHOD": "POST", "HTTP_HUSTINGS_TOKEN": "5"},
                 lambda status, headers, exc_info=None: starts.append(status))  # fmt: skip


class Unread:
    def read(self, *size: int) -> bytes:
        raise AssertionError("nobody reads this")


@pytest.mark.parametrize(
    "length, status",
    [("9", 413), ("9" * 19, 413), ("1" + "0" * 18, 413), ("9" * 20, 400), ("-1", 400)],
)
def test_a_body_that_does_not_fit_is_refused_unread(
    tmp_path: Path, length: str, status: int
) -> None:
    fence = WsgiFence(Behind().wsgi, tmp_path / "tokens", body_limit=8)
    answer = ask_wsgi(fence, token(5), CONTENT_LENGTH=length, wsgi_input=Unread())
    assert answer.status == status


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_ends_a_thread_passes_through(tmp_path: Path, kind: type[BaseException]) -> None:
    def app(environ: Any, start: Any) -> Any:
        raise kind

    fence = WsgiFence(app, tmp_path / "tokens")
    with pytest.raises(kind):
        ask_wsgi(fence, token(5))
    assert not fence.in_flight._requests
    assert not fence.in_flight._presence._held


def test_an_overtaken_application_is_not_asked_for_more(tmp_path: Path) -> None:
    asked = []

    def app(environ: Any, start: Any) -> Any:
        start("200 OK", [])
        for part in (b"one", b"two"):
            asked.append(part)
            yield part

    fence = WsgiFence(app, tmp_path / "tokens")
    answer = begun(fence, [])
    parts = iter(answer)
    assert next(parts) == b"one"
    fence.in_flight.overtake("http", 6)
    with pytest.raises(Overtaken):  # it has begun: the server cuts it
        next(parts)
    answer.close()
    assert asked == [b"one"]


def test_an_answer_is_closed_once(tmp_path: Path) -> None:
    class Parts(list[bytes]):
        closed = 0

        def close(self) -> None:
            self.closed += 1

    parts = Parts()
    fence = WsgiFence(lambda environ, start: parts, tmp_path / "tokens")
    answer = begun(fence, [])
    answer.close()
    answer.close()
    assert parts.closed == 1
    assert not fence.in_flight._requests
    assert not fence.in_flight._presence._held


def test_after_a_refusal_the_application_cannot_begin_an_answer(tmp_path: Path) -> None:
    """Whatever it kept in its hands, and though the fence was mended meanwhile."""
    file, kept = tmp_path / "tokens", []

    def app(environ: Any, start: Any) -> Any:
        kept.append(start("200 OK", []))
        return [b"done"]

    fence = WsgiFence(app, file)
    starts: list[str] = []
    answer = begun(fence, starts)
    whole = file.read_bytes()
    file.write_bytes(b"")
    assert b"fence-broken" in b"".join(answer)
    file.write_bytes(whole)
    kept[0](b"late")
    answer.close()
    assert starts == ["503 Service Unavailable"]


def test_lines_of_a_streamed_body_end_at_the_hint(tmp_path: Path) -> None:
    got: dict[int, list[bytes]] = {}

    def app(environ: Any, start: Any) -> Any:
        hint = int(environ["PATH_INFO"])
        got[hint] = environ["wsgi.input"].readlines(hint)
        start("200 OK", [])
        return []

    fence = WsgiFence(app, tmp_path / "tokens", stream=True)
    for hint in (-1, 0, 1, 4, 5, 8, 99):
        body = BytesIO(b"abc\ndef\nghi")
        ask_wsgi(fence, token(5), "POST", str(hint), wsgi_input=body)
    lines = [b"abc\n", b"def\n", b"ghi"]
    assert got == {-1: lines, 0: lines, 1: lines[:1], 4: lines[:1], 5: lines[:2], 8: lines[:2],
                   99: lines}  # fmt: skip


def test_a_ledger_that_others_lock_is_busy(tmp_path: Path) -> None:
    """Whoever holds it is not waited for without end, and the client is told to come again."""
    ledger = Ledger(tmp_path / "tokens", patience=0.05)
    behind = Behind()
    wsgi, asgi = WsgiFence(behind.wsgi, ledger), AsgiFence(behind.asgi, ledger)
    lock = os.open(tmp_path / "tokens.lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    for answer in (ask_wsgi(wsgi, token(5)), asyncio.run(ask_asgi(asgi, token(5)))):
        assert (answer.status, answer.json()["error"]) == (503, "fence-busy")
        assert answer.headers["retry-after"] == "1"
    os.close(lock)
    assert behind.log == []
    assert ask_wsgi(wsgi, token(5)).status == 200
    assert asyncio.run(ask_asgi(asgi, token(5))).status == 200
    assert ledger.highest("http") == 5


def test_the_longest_name_of_a_resource(tmp_path: Path) -> None:
    fence = WsgiFence(Behind().wsgi, tmp_path / "tokens", resource=lambda at: at["PATH_INFO"])
    assert ask_wsgi(fence, token(5), "POST", "a" * 255).status == 200
    assert ask_wsgi(fence, token(5), "POST", "a" * 256).status == 400
    assert ask_wsgi(fence, token(5), "POST", "a").status == 200
    WsgiFence(Behind().wsgi, tmp_path / "tokens", resource="a" * 255)

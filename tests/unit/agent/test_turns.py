"""However much clients send, each round of the loop does a little of it, and health comes first."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import h11
import pytest

from hustings.agent.server import (
    _AT_ONCE,
    _BACKLOG,
    HEALTH_IN_A_ROW,
    MOST_LINES,
    PIECE,
    Turns,
    listen,
)
from hustings.net.addresses import Address
from tests.unit.agent.fake import TOKEN
from tests.unit.agent.test_connections import (
    Serve,
    Web,
    error_of,
    parsed,
    read_all,
    request,
    serve,
)
from tests.waiting import until

__all__ = ["serve"]

# --- who has its turn ----------------------------------------------------------------------------


class Caller:
    """As a connection that always has something to read."""

    def __init__(self, name: str, log: list[str], turns: Turns, again: int = 0) -> None:
        self.name = name
        self.loop = asyncio.get_running_loop()
        self._log = log
        self._turns: Any = turns
        self._again = again

    def asks_for_health(self) -> bool:
        return self.name.startswith("health")

    def take_turn(self) -> None:
        self._log.append(self.name)
        if self._again:
            self._again -= 1
            self._turns.ask(self)


def turns_of(*names: str, again: int = 0) -> list[str]:
    async def story() -> list[str]:
        log: list[str] = []
        turns: Any = Turns()
        for name in names:
            one = Caller(name, log, turns, again)
            turns.ask(one)
            turns.ask(one)
        for rounds in range(1, len(names) * (again + 1) + 1):
            await asyncio.sleep(0)
            assert len(log) == rounds  # one in each round
        return log

    return asyncio.run(story())


def test_health_has_its_turn_first() -> None:
    assert turns_of("a", "b", "health-1", "c", "health-2") == [
        "health-1",
        "health-2",
        "a",
        "b",
        "c",
    ]


def test_who_has_more_waits_until_the_others_had_their_turn() -> None:
    assert turns_of("a", "b", "c", again=1) == ["a", "b", "c", "a", "b", "c"]


def test_health_does_not_keep_all_others_away() -> None:
    log = turns_of("a", "b", "health-1", "health-2", again=5)
    assert log.index("a") == HEALTH_IN_A_ROW
    assert log.index("b") == 2 * HEALTH_IN_A_ROW + 1


def test_a_turn_that_fails_is_nobody_elses_loss() -> None:
    async def story() -> list[str]:
        log: list[str] = []
        turns: Any = Turns()
        asyncio.get_running_loop().set_exception_handler(lambda _, __: log.append("failed"))
        bad, good, gone = (Caller(name, log, turns) for name in ("bad", "good", "gone"))
        bad.take_turn = lambda: 1 / 0  # type: ignore[assignment, method-assign]  # fails on purpose
        for one in (bad, gone, good):
            turns.ask(one)
        turns.leave(gone)
        for _ in range(4):
            await asyncio.sleep(0)
        assert bad not in turns
        return log

    assert asyncio.run(story()) == ["failed", "good"]


# --- how much is done in one round ---------------------------------------------------------------


@contextmanager
def most_in_a_round(web: Web, count: Callable[[], int]) -> Iterator[list[int]]:
    """By how much a number has grown in one round of the agent's loop, at most."""
    most = [0]
    over = False

    def look(before: int) -> None:
        now = count()
        most[0] = max(most[0], now - before)
        if not over:
            web.agent.loop.call_soon(look, now)

    web.agent.loop.call_soon_threadsafe(lambda: look(count()))
    try:
        yield most
    finally:
        over = True


def begun_by(web: Web) -> list[str]:
    """The requests that the application has begun with, from now on."""
    begun: list[str] = []
    app: Any = web.agent.server.config.loaded_app

    async def noted(scope: Any, receive: Any, send: Any) -> None:
        begun.append(scope["path"])
        await app(scope, receive, send)

    web.agent.server.config.loaded_app = noted
    return begun


@pytest.mark.parametrize("path", ["/metrics", "/v1/groups", "/openapi.json", "/nowhere"])
def test_requests_in_a_row_are_begun_one_in_a_round(serve: Serve, path: str) -> None:
    web = serve(most=40)
    web.ask("/healthz")  # so that the application is loaded
    begun = begun_by(web)
    text = request(path) * 10 + request(path, "Connection: close")
    with most_in_a_round(web, lambda: len(begun)) as most:
        answers = [read_all(one) for one in [web.connect(text) for _ in range(30)]]
    assert {answer.count(b"HTTP/1.1 ") for answer in answers} == {11}
    assert most == [1]


@pytest.mark.parametrize(
    "head", ["GET /healthz", "POST /nowhere", "POST /v1/groups/billing/transfer"]
)
def test_a_body_is_read_a_piece_in_a_round(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, head: str
) -> None:
    """Many small chunks are much work, also where nobody wants the body."""
    web = serve(most=40)
    events = 0
    original = h11.Connection.next_event

    def counted(self: h11.Connection) -> Any:
        nonlocal events
        events += 1
        return original(self)

    monkeypatch.setattr(h11.Connection, "next_event", counted)
    chunked = "Transfer-Encoding: chunked"
    token = f"Authorization: Bearer {TOKEN}"
    text = f"{head} HTTP/1.1\r\nHost: 127.0.0.1\r\n{token}\r\n{chunked}\r\n\r\n"
    text += "1\r\nx\r\n" * 1000 + "0\r\n\r\n" + request("/healthz", "Connection: close")
    with most_in_a_round(web, lambda: events) as most:
        answers = [read_all(one) for one in [web.connect(text) for _ in range(10)]]
    assert {answer.count(b"HTTP/1.1 ") for answer in answers} == {2}
    assert events >= 10 * 1000
    assert most[0] <= PIECE // len("1\r\nx\r\n") + 20


def test_connections_are_accepted_a_few_in_a_round(serve: Serve) -> None:
    web = serve(most=100)
    opened = 0
    original = web.connections.opened

    def counted(one: Any) -> bool:
        nonlocal opened
        opened += 1
        return original(one)

    web.connections.opened = counted  # type: ignore[method-assign]  # counts
    with most_in_a_round(web, lambda: opened) as most:
        for _ in range(60):
            web.connect()
        until(lambda: opened == 60, "60 connections")
    assert most[0] <= _AT_ONCE
    assert _AT_ONCE < _BACKLOG


def test_what_is_not_read_is_not_taken(serve: Serve) -> None:
    """Neither while an answer is under way nor behind it: the sender has to wait."""
    web = serve()
    one = web.connect(request("/v1/events"))
    assert one.recv(12) == b"HTTP/1.1 200"
    one.settimeout(0.5)
    much = request("/healthz").encode() * 400_000  # more than the system keeps on its way
    with pytest.raises(TimeoutError):
        one.sendall(much)
    (kept,) = web.connections._open
    assert len(kept._unread) + len(kept.conn.trailing_data[0]) <= 64 * 1024


def test_what_the_system_keeps_of_a_connection_is_little() -> None:
    with listen(Address("127.0.0.1", 0)) as listener:
        assert listener.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) <= 64 * 1024


@pytest.mark.parametrize("lines, status", [(MOST_LINES - 3, 200), (MOST_LINES + 1, 431)])
def test_a_head_has_so_many_lines(serve: Serve, lines: int, status: int) -> None:
    web = serve()
    headers = [f"X-{number}: {'y' * 40}" for number in range(lines)]  # several pieces
    answer = web.ask("/healthz", *headers)
    assert answer[0] == status
    if status == 431:
        assert "at most 100 lines" in error_of(answer)
        assert web.connections.refused["headers-too-large"] == 1


def test_a_head_has_so_many_bytes(serve: Serve) -> None:
    web = serve()
    assert "not a request" in error_of(web.ask("/healthz", "X: " + "y" * 20_000))


# --- and yet every answer comes ------------------------------------------------------------------


def test_all_of_many_questions_in_a_row_are_answered(serve: Serve) -> None:
    """Also of who has closed its side meanwhile."""
    web = serve()
    one = web.connect(request("/healthz") * 100 + request("/nowhere") * 100)
    one.shutdown(socket.SHUT_WR)
    answer = read_all(one)
    assert (answer.count(b"HTTP/1.1 200"), answer.count(b"HTTP/1.1 404")) == (100, 100)


def test_what_comes_after_the_last_request_is_not_heard(serve: Serve) -> None:
    web = serve()
    one = web.connect(request("/healthz", "Connection: close") + request("/nowhere") * 100)
    answer = read_all(one)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert parsed(answer)[0] == 200


def test_a_stream_for_who_has_closed_its_side_ends(serve: Serve) -> None:
    web = serve()
    one = web.connect(request("/healthz") * 50 + request("/v1/events"))
    one.shutdown(socket.SHUT_WR)
    assert read_all(one).count(b"HTTP/1.1 200") in (50, 51)
    until(lambda: len(web.agent.broadcast) == 0, "the end of the stream")

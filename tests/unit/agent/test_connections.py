"""Connections of HTTP that are silent, slow, half closed or too many: health is still answered."""

from __future__ import annotations

import io
import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field

import pytest

from hustings.agent.logs import Log
from hustings.agent.server import KEPT_FOR_HEALTH, Connections, Patience
from tests.unit.agent.fake import PATIENCE_S, TOKEN, Agent, served
from tests.waiting import until

HEALTH = ("/healthz", "/readyz", "/metrics", "/v1/groups/billing/is-leader")
QUICK = Patience(request=0.3, answer=0.3, closing=0.3, look=0.05)
SLOW = Patience(request=600.0, answer=600.0, closing=600.0, look=0.05)


@dataclass
class Web:
    """An agent's HTTP with few places, and what it logs."""

    agent: Agent
    connections: Connections
    lines: io.StringIO
    stack: ExitStack = field(default_factory=ExitStack)

    def connect(self, text: str = "", by: str = "127.0.0.1") -> socket.socket:
        """A connection on which something has been said, or nothing."""
        host, _, port = self.agent.url.removeprefix("http://").partition(":")
        source = (by, 0)
        one = socket.create_connection((host, int(port)), PATIENCE_S, source_address=source)
        self.stack.enter_context(one)
        one.sendall(text.encode())
        return one

    def ask(self, path: str, *headers: str) -> tuple[int, str, str]:
        """Status, type of content, and body."""
        one = self.connect(request(path, "Connection: close", *headers))
        return parsed(read_all(one))


def request(path: str, *headers: str, method: str = "GET") -> str:
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *headers]
    return "\r\n".join(lines) + "\r\n\r\n"


def read_all(one: socket.socket) -> bytes:
    """Until the other side closes."""
    data = b""
    with one, suppress(ConnectionResetError):
        while chunk := one.recv(65536):
            data += chunk
    return data


def parsed(answer: bytes) -> tuple[int, str, str]:
    head, _, body = answer.decode().partition("\r\n\r\n")
    first, *lines = head.split("\r\n")
    fields = dict(line.lower().split(": ", 1) for line in lines)
    return int(first.split()[1]), fields.get("content-type", ""), body


def error_of(answer: tuple[int, str, str]) -> str:
    status, kind, body = answer
    assert (status >= 400, kind) == (True, "application/json"), answer
    return str(json.loads(body)["error"])


Serve = Callable[..., Web]


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:

        def started(most: int = 4, patience: Patience = SLOW, streams: int = 64) -> Web:
            lines = io.StringIO()
            log = stack.enter_context(Log(lines))
            connections = Connections(most, log, patience)
            agent = stack.enter_context(served("billing", streams=streams, connections=connections))
            web = Web(agent, connections, lines)
            stack.enter_context(web.stack)
            return web

        yield started


def open_count(web: Web, count: int) -> None:
    until(lambda: len(web.connections) == count, f"{count} connections")


# --- too many ------------------------------------------------------------------------------------


def test_silent_connections_give_way(serve: Serve) -> None:
    web = serve(most=8)
    for _ in range(40):
        web.connect()
    for path in (*HEALTH, "/v1/groups"):
        assert web.ask(path)[0] == 200, path
    assert len(web.connections) <= 8


@pytest.mark.parametrize(
    "said", ["", "GET / HTTP/1.1\r\nHost: x\r\n", request("/healthz"), request("/v1/groups")]
)
def test_also_those_that_have_said_something(serve: Serve, said: str) -> None:
    """Half a head, or a whole request before they fell silent."""
    web = serve(most=4)
    for _ in range(12):
        web.connect(said)
    assert web.ask("/healthz")[0] == 200


def test_the_longest_silent_gives_way_first(serve: Serve) -> None:
    web = serve(most=3)
    first = web.connect()
    open_count(web, 1)
    second, third = web.connect(), web.connect()
    open_count(web, 3)
    web.connect()
    assert read_all(first) == b""
    for one in (second, third):
        one.setblocking(False)
        with pytest.raises(BlockingIOError):
            one.recv(1)


def test_of_the_client_that_has_most(serve: Serve) -> None:
    """An old connection of somebody else is left alone."""
    web = serve(most=4)
    other = web.connect(by="127.0.0.2")
    open_count(web, 1)
    for _ in range(12):
        web.connect()
    other.sendall(request("/healthz", "Connection: close").encode())
    assert parsed(read_all(other))[0] == 200


def test_who_asks_without_end_keeps_nobody_out(serve: Serve) -> None:
    """All places are taken by connections that have hundreds of questions waiting."""
    web = serve(most=4)
    for _ in range(4 + KEPT_FOR_HEALTH):
        one = web.connect(1000 * request("/healthz"))
        assert one.recv(1, socket.MSG_PEEK)  # its first answer is there
    for path in HEALTH:
        assert web.ask(path)[0] == 200, path


def test_at_work_nobody_gives_way_and_health_has_room(serve: Serve) -> None:
    web = serve(most=4)
    streams = [web.connect(request("/v1/events")) for _ in range(4)]
    for stream in streams:
        assert stream.recv(12) == b"HTTP/1.1 200"
    for path in HEALTH:
        assert web.ask(path)[0] == 200
    for path in ("/v1/groups", "/v1/events", "/openapi.json", "/nowhere"):
        assert "kept for health" in error_of(web.ask(path))
    assert len(web.agent.broadcast) == 4
    for _ in range(2 * KEPT_FOR_HEALTH):  # the room that is kept can be flooded no more than others
        web.connect()
    assert web.ask("/healthz")[0] == 200
    assert len(web.connections) <= 4 + KEPT_FOR_HEALTH


def test_streams_of_events_are_bounded_by_themselves(serve: Serve) -> None:
    web = serve(most=8, streams=2)
    for _ in range(2):
        assert web.connect(request("/v1/events")).recv(12) == b"HTTP/1.1 200"
    assert "as many listen as may" in error_of(web.ask("/v1/events"))
    assert web.ask("/v1/groups")[0] == 200


def test_the_log_is_not_flooded(serve: Serve) -> None:
    web = serve(most=2)
    for _ in range(50):
        web.connect()
        web.connect("nonsense\r\n\r\n")
    assert web.ask("/healthz")[0] == 200
    lines = web.lines.getvalue().splitlines()
    assert len(lines) <= 2
    assert any("closed to make room" in line for line in lines)
    page = web.ask("/metrics")[2]
    assert web.connections.refused["evicted"] > 20
    assert "hustings_http_connections_refused" in page


# --- too slow ------------------------------------------------------------------------------------


def test_who_says_nothing_is_closed(serve: Serve) -> None:
    web = serve(patience=QUICK)
    assert read_all(web.connect()) == b""
    assert web.connections.refused["request-timeout"] == 1


def test_who_says_it_slowly_is_told_so(serve: Serve) -> None:
    """Bytes that come do not buy time."""
    web = serve(patience=QUICK)
    one = web.connect("GET /healthz HTTP/1.1\r\n")
    one.settimeout(0.02)
    answer = b""
    deadline = time.monotonic() + PATIENCE_S
    while not answer and time.monotonic() < deadline:
        one.sendall(b"X: y\r\n")
        with suppress(TimeoutError):
            answer = one.recv(65536)
    one.settimeout(PATIENCE_S)
    assert "did not arrive in time" in error_of(parsed(answer + read_all(one)))


def test_a_slow_body(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hustings.agent.http.BODY_S", 0.2)
    web = serve()
    token = f"Authorization: Bearer {TOKEN}"
    path = "/v1/groups/billing/transfer"
    one = web.connect(request(path, token, "Content-Length: 100", method="POST"))
    one.sendall(b"{")
    assert "the body did not arrive" in error_of(parsed(read_all(one)))


def test_a_body_that_nobody_asked_for(serve: Serve) -> None:
    """It is answered at once, and what goes on sending is closed."""
    web = serve(patience=QUICK)
    one = web.connect(request("/healthz", "Content-Length: 1000000"))
    assert one.recv(12) == b"HTTP/1.1 200"
    one.settimeout(0.02)
    deadline = time.monotonic() + PATIENCE_S
    with suppress(ConnectionError):
        while time.monotonic() < deadline:
            one.sendall(b"x")
            time.sleep(0.01)
    assert time.monotonic() < deadline


def test_who_takes_no_answer_is_cut_off(serve: Serve) -> None:
    web = serve(patience=QUICK)
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    web.stack.enter_context(one)
    host, _, port = web.agent.url.removeprefix("http://").partition(":")
    one.connect((host, int(port)))
    one.settimeout(0.05)
    with suppress(TimeoutError, ConnectionError):
        while True:  # until nobody takes them any more
            one.sendall(request("/openapi.json").encode() * 50)
    until(lambda: web.connections.refused["response-timeout"] == 1, "the end of its time")
    open_count(web, 0)


def test_who_is_quick_is_not_disturbed(serve: Serve) -> None:
    """One connection for many requests, for longer than any one of them may take."""
    web = serve(patience=QUICK)
    one = web.connect()
    end = time.monotonic() + 1.0
    while time.monotonic() < end:
        one.sendall(request("/healthz").encode())
        answer = b""
        while not answer.endswith(b"}\n"):
            answer += one.recv(65536)
        assert answer.startswith(b"HTTP/1.1 200")
        time.sleep(0.05)
    assert web.connections.refused == {}


# --- odd, and right -----------------------------------------------------------------------------


def test_who_has_no_more_questions_gets_its_answer(serve: Serve) -> None:
    web = serve()
    one = web.connect(request("/healthz") + request("/metrics"))
    one.shutdown(socket.SHUT_WR)
    answer = read_all(one)
    assert answer.count(b"HTTP/1.1 200") == 2
    open_count(web, 0)


def test_a_stream_ends_when_its_listener_closes_its_side(serve: Serve) -> None:
    web = serve()
    one = web.connect(request("/v1/events"))
    assert one.recv(12) == b"HTTP/1.1 200"
    one.shutdown(socket.SHUT_WR)
    until(lambda: len(web.agent.broadcast) == 0, "the end of the stream")


def test_questions_in_a_row_are_answered_in_order(serve: Serve) -> None:
    web = serve()
    paths = ["/healthz", "/v1/groups", "/nowhere", "/readyz"]
    text = "".join(map(request, paths)) + request("/healthz", "Connection: close")
    answer = read_all(web.connect(text)).decode()
    assert [int(part[:3]) for part in answer.split("HTTP/1.1 ")[1:]] == [200, 200, 404, 200, 200]


@pytest.mark.parametrize(
    "said",
    [
        "nonsense\r\n\r\n",
        "GET / HTTP/1.1\r\nHost:\r\nHost:\r\n\r\n",
        "GET /healthz HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused_in_json(serve: Serve, said: str) -> None:
    web = serve()
    assert "not a request" in error_of(parsed(read_all(web.connect(said))))


def test_an_upgrade_is_not_taken(serve: Serve) -> None:
    web = serve()
    status, *_ = web.ask("/healthz", "Connection: Upgrade", "Upgrade: websocket")
    assert status == 200
    assert web.lines.getvalue() == ""

"""Requests to a WSGI fence that a larger token overtakes, and their bodies. Threads are real."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from hustings.fence import FenceBroken, Ledger, Overtaken, StaleToken, WsgiFence
from tests.fence.asking import Answer, Behind, ask_wsgi, token
from tests.fence.judging import falls
from tests.fence.overtaking import refused

WAIT = 30.0
App = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Gate:
    """A place where a thread stays until it is released."""

    def __init__(self) -> None:
        self._inside, self._open = threading.Event(), threading.Event()

    def stay(self) -> None:
        self._inside.set()
        assert self._open.wait(WAIT)

    def await_inside(self) -> None:
        assert self._inside.wait(WAIT)

    def release(self) -> None:
        self._open.set()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as made:
        yield made


def settled(fence: WsgiFence) -> None:
    assert not fence.in_flight._requests
    assert not fence.in_flight._presence._held


def await_token(fence: WsgiFence, number: int) -> None:
    done = threading.Event()
    for _ in range(20_000):
        turn = fence.in_flight._turns.get("http")
        if turn is not None and turn.token == number:
            return
        done.wait(0.001)
    raise AssertionError(f"{number} never came")


def test_a_larger_token_waits_for_the_end(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    behind = Behind(5)
    fence = WsgiFence(behind.wsgi, tmp_path / "tokens", grace=60.0)
    old = pool.submit(ask_wsgi, fence, token(5))
    behind.await_inside(5)
    six = pool.submit(ask_wsgi, fence, token(6))
    await_token(fence, 6)
    seven = pool.submit(ask_wsgi, fence, token(7))
    await_token(fence, 7)
    refused(six.result(WAIT), 6, 7, False)
    refused(ask_wsgi(fence, token(5)), 5, 7, False)
    assert not seven.done()
    behind.release(5)
    refused(old.result(WAIT), 5, 6, True)
    assert seven.result(WAIT).status == 200
    assert behind.log == ["begin 5", "end 5", "begin 7", "end 7"]
    settled(fence)


def test_a_thread_that_hangs(tmp_path: Path, pool: ThreadPoolExecutor, caplog: Any) -> None:
    """Newer tokens wait for it once, and enter; when it ends, it is not taken for a success."""
    behind = Behind(5)
    fence = WsgiFence(behind.wsgi, tmp_path / "tokens", grace=0.1)
    old = pool.submit(ask_wsgi, fence, token(5))
    behind.await_inside(5)
    with caplog.at_level(logging.WARNING, "hustings.fence"):
        for number in (6, 6, 7):
            assert ask_wsgi(fence, token(number)).status == 200
    assert "only its store can refuse" in caplog.text or "enters beside" in caplog.text
    behind.release(5)
    refused(old.result(WAIT), 5, 6, True)
    assert behind.log[-1] == "end 5"
    settled(fence)


def overtaken_within(tmp_path: Path, app: App, gate: Gate, **options: Any) -> Future[Answer]:
    """The answer to a request that is overtaken while it stays at the gate."""
    fence = WsgiFence(app, tmp_path / "tokens", grace=0.0, **options)
    with ThreadPoolExecutor() as pool:
        old = pool.submit(ask_wsgi, fence, token(5))
        gate.await_inside()
        assert ask_wsgi(fence, token(6), "HEAD").status == 200
        gate.release()
        old.exception(WAIT)
    settled(fence)
    return old


def passing(environ: dict[str, Any], start: Callable[..., Any]) -> bool:
    """Whether this is the successor's, which is answered at once."""
    if environ["hustings.token"] == 6:
        start("200 OK", [])
        return True
    return False


def test_a_start_is_no_answer_yet(tmp_path: Path) -> None:
    gate, closed = Gate(), list[str]()

    class Parts:
        def __iter__(self) -> Iterator[bytes]:
            yield b""
            gate.stay()
            yield b"done"

        def close(self) -> None:
            closed.append("closed")

    def app(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if passing(environ, start):
            return []
        start("200 OK", [("Content-Length", "4")])
        return Parts()

    refused(overtaken_within(tmp_path, app, gate).result(), 5, 6, True)
    assert closed == ["closed"]


def test_an_error_of_who_was_overtaken(tmp_path: Path) -> None:
    gate = Gate()

    def app(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if passing(environ, start):
            return []
        gate.stay()
        raise ZeroDivisionError

    refused(overtaken_within(tmp_path, app, gate).result(), 5, 6, True)


def test_steps_after_it_was_overtaken(tmp_path: Path) -> None:
    """A generator gets no further turn: what it would do then, it does not."""
    gate, done = Gate(), list[str]()

    def app(environ: dict[str, Any], start: Callable[..., Any]) -> Iterator[bytes]:
        if passing(environ, start):
            return
        start("200 OK", [])
        gate.stay()
        yield b""
        done.append("went on")

    refused(overtaken_within(tmp_path, app, gate).result(), 5, 6, True)
    assert done == []


def test_an_answer_that_has_begun_is_cut(tmp_path: Path) -> None:
    gate = Gate()

    def app(environ: dict[str, Any], start: Callable[..., Any]) -> Iterator[bytes]:
        if passing(environ, start):
            return
        start("200 OK", [])
        yield b"a"
        gate.stay()
        yield b"b"

    assert isinstance(overtaken_within(tmp_path, app, gate).exception(), Overtaken)


def test_a_part_that_was_made_too_late_is_not_sent(tmp_path: Path) -> None:
    def app(environ: dict[str, Any], start: Callable[..., Any]) -> Iterator[bytes]:
        start("200 OK", [])
        yield b"a"
        fence.in_flight.overtake("http", 6)
        yield b"b"

    fence = WsgiFence(app, tmp_path / "tokens")
    environ = {"REQUEST_METHOD": "POST", "HTTP_HUSTINGS_TOKEN": "5"}
    answer: Any = fence(environ, lambda status, headers: None)
    parts = iter(answer)
    assert next(parts) == b"a"
    with pytest.raises(Overtaken):
        next(parts)
    answer.close()
    settled(fence)


def test_what_is_written_by_hand(tmp_path: Path) -> None:
    gate = Gate()

    def app(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        write = start("200 OK", [])
        if environ["hustings.token"] == 6:
            write(b"a")
            return [b"b"]
        gate.stay()
        write(b"a")
        return []

    refused(overtaken_within(tmp_path, app, gate).result(), 5, 6, True)
    fence = WsgiFence(app, tmp_path / "tokens")
    assert ask_wsgi(fence, token(6)).body == b"ab"


def test_answers_without_a_body_and_twice_begun(tmp_path: Path) -> None:
    def empty(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        start("500 Oh", [])
        start("204 No Content", [], (ValueError, ValueError(), None))
        return []

    assert ask_wsgi(WsgiFence(empty, tmp_path / "tokens"), token(5)).status == 204

    def twice(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        start("200 OK", [])
        start("200 OK", [])
        return []

    with pytest.raises(RuntimeError, match="twice"):
        ask_wsgi(WsgiFence(twice, tmp_path / "tokens"), token(5))

    def fails_late(environ: dict[str, Any], start: Callable[..., Any]) -> Iterator[bytes]:
        start("200 OK", [])
        yield b"a"
        start("500 Oh", [], (ZeroDivisionError, ZeroDivisionError(), None))

    passed: list[Any] = []
    fence = WsgiFence(fails_late, tmp_path / "tokens")
    environ = {"REQUEST_METHOD": "POST", "HTTP_HUSTINGS_TOKEN": "5"}
    parts: Any = fence(environ, lambda *words: passed.append(words))
    assert list(parts) == [b"a"]
    assert passed[1][2][0] is ZeroDivisionError  # the server's to judge
    parts.close()
    parts.close()
    settled(fence)


def test_what_the_application_raises(tmp_path: Path) -> None:
    """A store that refuses the token is heard; everything else is the application's own."""
    errors: list[Exception] = []

    def app(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        raise errors[0]

    def lazy(environ: dict[str, Any], start: Callable[..., Any]) -> Iterator[bytes]:
        start("200 OK", [])
        if errors:
            raise errors[0]
        yield b""

    for each in (app, lazy):
        fence = WsgiFence(each, tmp_path / "tokens")
        errors[:] = [StaleToken(5, 9)]
        answer = ask_wsgi(fence, token(5))
        assert (answer.status, answer.json()["highest"]) == (412, 9)
        assert answer.json()["handed_over"] is True
        errors[:] = [FenceBroken("in the store")]
        assert ask_wsgi(fence, token(5)).status == 503
        errors[:] = [ZeroDivisionError()]
        with pytest.raises(ZeroDivisionError):
            ask_wsgi(fence, token(5))
        settled(fence)


@pytest.mark.parametrize("status", [412, 503])
def test_an_answer_with_a_larger_token_elsewhere(tmp_path: Path, status: int) -> None:
    """The ledger is read when the answer begins; one that cannot be read lets none through."""

    def app(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if status == 412:
            Ledger(tmp_path / "tokens").admit("http", 6)
        else:
            (tmp_path / "tokens").write_bytes(b"")
        start("200 OK", [])
        return [b"done"]

    answer = ask_wsgi(WsgiFence(app, tmp_path / "tokens"), token(5))
    assert (answer.status, answer.json()["handed_over"]) == (status, True)


def echo(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
    body = environ["wsgi.input"].read()
    assert environ["CONTENT_LENGTH"] == str(len(body))
    start("200 OK", [])
    return [body, b"!"]


class Endless(BytesIO):
    """As the socket of a server that does not guard its end: who reads beyond it waits for ever."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self._left = len(data)

    def read(self, size: int | None = -1) -> bytes:
        assert size is not None
        assert 0 < size <= self._left, "it would wait for ever"
        self._left -= size
        return super().read(size)


class Reset(BytesIO):
    def read(self, size: int | None = -1) -> bytes:
        raise ConnectionResetError


def test_bodies(tmp_path: Path) -> None:
    fence = WsgiFence(echo, tmp_path / "tokens", body_limit=8)

    def ask(data: BytesIO | None = None, **more: Any) -> Answer:
        if data is not None:
            more["wsgi_input"] = data
        return ask_wsgi(fence, token(5), **more)

    whole = BytesIO(b"12345678")
    assert ask().body == b"!"
    assert ask(Endless(b"")).body == b"!"
    assert ask(Endless(b"12345678"), CONTENT_LENGTH="8").body == b"12345678!"
    assert ask(Endless(b"1"), CONTENT_LENGTH="").body == b"!"
    assert ask(whole, wsgi_input_terminated=True).body == b"12345678!"
    chunked: dict[str, Any] = {"HTTP_TRANSFER_ENCODING": "chunked"}
    assert ask(BytesIO(b"1"), wsgi_input_terminated=True, **chunked).body == b"1!"
    wrong = {
        411: ask(BytesIO(b"1"), **chunked),
        413: ask(Endless(b"123456789"), CONTENT_LENGTH="9"),
        400: ask(BytesIO(b"1234567"), CONTENT_LENGTH="8"),
    }
    assert [each.status for each in wrong.values()] == list(wrong)
    assert wrong[400].json()["error"] == "body-cut"
    assert "at most 8 bytes" in wrong[413].json()["message"]
    assert ask(BytesIO(b"123456789"), wsgi_input_terminated=True).status == 413
    assert ask(Reset(b"1"), CONTENT_LENGTH="1").json()["error"] == "body-cut"
    for length in ("-1", "+1", "1.0", "\u0661", "1" * 20, "x"):
        assert ask(BytesIO(b"1"), CONTENT_LENGTH=length).json()["error"] == "bad-length"
    settled(fence)


class Slow(BytesIO):
    """A body whose second half waits at a gate."""

    def __init__(self, data: bytes, gate: Gate) -> None:
        super().__init__(data)
        self._gate = gate

    def read(self, size: int | None = -1) -> bytes:
        if self.tell():
            self._gate.stay()
        return super().read(5)

    def readline(self, size: int | None = -1) -> bytes:
        if self.tell():
            self._gate.stay()
        return super().readline()


def test_while_the_body_arrives(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    """A client that stops in the middle holds up nobody, however long the grace."""
    reached, gate = list[int](), Gate()

    def app(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        reached.append(environ["hustings.token"])
        start("200 OK", [])
        return []

    fence = WsgiFence(app, tmp_path / "tokens", grace=60.0)
    body = Slow(b"1234567890", gate)
    old = pool.submit(ask_wsgi, fence, token(5), wsgi_input=body, CONTENT_LENGTH="10")
    gate.await_inside()
    assert ask_wsgi(fence, token(6)).status == 200
    gate.release()
    refused(old.result(WAIT), 5, 6, False)
    assert reached == [6]
    settled(fence)


@pytest.mark.parametrize("how", ["read", "readline", "readlines", "lines"])
def test_streams(tmp_path: Path, pool: ThreadPoolExecutor, how: str) -> None:
    """Nothing that arrives after a larger token is given to the application."""
    got, gate = list[Any](), Gate()
    ways: dict[str, Callable[[Any], Iterable[Any]]] = {
        "read": lambda stream: iter(lambda: stream.read(5), b""),
        "readline": lambda stream: iter(stream.readline, b""),
        "readlines": lambda stream: iter(lambda: stream.readlines(1), []),
        "lines": iter,
    }

    def app(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if not passing(environ, start):
            got.extend(ways[how](environ["wsgi.input"]))
        return []

    fence = WsgiFence(app, tmp_path / "tokens", stream=True, body_limit=1, grace=0.05)
    old = pool.submit(ask_wsgi, fence, token(5), wsgi_input=Slow(b"1234\n5678\n", gate))
    gate.await_inside()
    assert ask_wsgi(fence, token(6)).status == 200
    gate.release()
    refused(old.result(WAIT), 5, 6, True)
    assert got == ([[b"1234\n"]] if how == "readlines" else [b"1234\n"])
    whole = BytesIO(b"1234\n5678\n")
    open_fence = WsgiFence(
        lambda environ, start: [start("200 OK", []) and b"", *environ["wsgi.input"].readlines()],
        tmp_path / "tokens",
        stream=True,
    )
    assert ask_wsgi(open_fence, token(7), wsgi_input=whole).body == b"1234\n5678\n"


def test_many_threads(tmp_path: Path) -> None:
    """The application sees tokens that never fall, one at a time, whatever comes when."""
    lock, at_work, begun, wrong = threading.Lock(), dict[int, int](), list[int](), list[str]()
    rng = random.Random(1)

    def app(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        number = environ["hustings.token"]
        with lock:
            begun.append(number)
            at_work[number] = at_work.get(number, 0) + 1
            if len(at_work) > 1:
                wrong.append(f"{sorted(at_work)} at work")
        threading.Event().wait(rng.uniform(0, 0.003))
        with lock:
            at_work[number] -= 1
            if not at_work[number]:
                del at_work[number]
        start("200 OK", [])
        return [b"done"]

    fence = WsgiFence(app, tmp_path / "tokens", grace=60.0)
    statuses = list[int]()

    def client(seed: int) -> None:
        mine = random.Random(seed)
        for step in range(20):
            number = max(1, step + mine.randrange(-5, 5))
            statuses.append(ask_wsgi(fence, token(number)).status)

    with ThreadPoolExecutor() as pool:
        for each in [pool.submit(client, seed) for seed in range(6)]:
            each.result(60)
    assert wrong == []
    assert not falls(begun)
    assert set(statuses) == {200, 412}
    settled(fence)

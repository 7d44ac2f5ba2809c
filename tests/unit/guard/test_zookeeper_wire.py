"""ZooKeeper's conversations with a server that follows a script: frames, sessions, and turns."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiozk import exc, protocol

from hustings.guard import Unreachable
from hustings.guard import zookeeper_wire as module
from hustings.guard.zookeeper_wire import LARGEST, Ensemble, Lapsed, NoTls, Session, ZookeeperWire
from tests.net.kit.loops import run
from tests.net.kit.virtual import virtually

SYNC = protocol.SyncRequest(path="/x")
PASSWORD = b"p" * 16


class Writer:
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.sent = b""
        self.closed = False

    def write(self, data: bytes) -> None:
        self.sent += data

    def close(self) -> None:
        self.closed = True


class Line:
    """A wire, and the server's side of it."""

    def __init__(self) -> None:
        self.reader = asyncio.StreamReader()
        self.writer = Writer()
        writer: Any = self.writer
        self.wire = ZookeeperWire(self.reader, writer)

    def says(self, payload: bytes) -> None:
        self.reader.feed_data(struct.pack("!i", len(payload)) + payload)

    def answers(self, number: int, zxid: int = 5, error: int = 0, rest: bytes = b"") -> None:
        self.says(struct.pack("!iqi", number, zxid, error) + rest)


def play(story: Callable[[Line], Awaitable[None]]) -> None:
    async def whole() -> None:
        await story(Line())

    virtually(whole())


def welcome(session: int = 9, timeout_ms: int = 4000) -> bytes:
    return struct.pack("!iiqi", 0, timeout_ms, session, len(PASSWORD)) + PASSWORD + b"\0"


def test_a_session_is_begun_and_taken_up_again() -> None:
    async def story(line: Line) -> None:
        session = Session()
        line.says(welcome())
        await line.wire.take_up(session, 4000)
        assert (session.id, session.password, session.granted_s) == (9, PASSWORD, 4.0)
        (size,) = struct.unpack("!i", line.writer.sent[:4])
        assert size == len(line.writer.sent) - 4
        assert struct.unpack("!iqiq", line.writer.sent[4:28]) == (0, 0, 4000, 0)
        line.writer.sent = b""
        session.zxid = 77
        line.says(welcome())
        await line.wire.take_up(session, 5000)
        assert struct.unpack("!iqiq", line.writer.sent[4:28]) == (0, 77, 5000, 9)

    play(story)


@pytest.mark.parametrize("session, timeout_ms", [(0, 4000), (9, 0), (9, -1)])
def test_a_session_that_is_over_is_not_taken_up(session: int, timeout_ms: int) -> None:
    async def story(line: Line) -> None:
        line.says(welcome(session, timeout_ms))
        with pytest.raises(Lapsed):
            await line.wire.take_up(Session(), 4000)

    play(story)


def test_a_session_of_a_millisecond_is_one() -> None:
    async def story(line: Line) -> None:
        line.says(welcome(9, 1))
        session = Session()
        await line.wire.take_up(session, 1)
        assert session.granted_s == 0.001

    play(story)


def test_questions_have_numbers_and_answers_of_others_are_passed_over() -> None:
    async def story(line: Line) -> None:
        session = Session()
        for number in (1, 2):
            line.answers(number - 1)
            line.answers(number, zxid=4 + number, rest=b"\0\0\0\2/x")
            await line.wire.ask(session, SYNC)
            (sent,) = struct.unpack("!i", line.writer.sent[4:8])
            assert sent == number
            line.writer.sent = b""
        assert line.wire.zxid == 6
        line.answers(3, zxid=2, rest=b"\0\0\0\2/x")
        await line.wire.ask(session, SYNC)
        assert line.wire.zxid == 6, "the newest state stays known"
        assert session.zxid == 0, "who syncs needs no order"

    play(story)


def test_a_session_that_wants_order_remembers_the_newest_state() -> None:
    async def story(line: Line) -> None:
        session = Session(ordered=True)
        for number, zxid in ((1, 1), (2, 7), (3, 3), (4, -1)):
            line.answers(number, zxid=zxid, rest=b"\0\0\0\2/x")
            await line.wire.ask(session, SYNC)
            assert session.zxid == (1 if number == 1 else 7)

    play(story)


def test_a_server_that_has_seen_nothing_shows_nothing() -> None:
    async def story(line: Line) -> None:
        line.answers(1, zxid=0, rest=b"\0\0\0\2/x")
        await line.wire.ask(Session(), SYNC)
        assert line.wire.zxid == 0

    play(story)


class Odd(protocol.SyncRequest):  # type: ignore[misc]  # the client has no types
    """A request to which aiozk knows no answer."""

    opcode = 7777


def test_an_answer_of_an_unknown_kind_is_none() -> None:
    async def story(line: Line) -> None:
        line.answers(1, rest=b"anything")
        assert await line.wire.ask(Session(), Odd(path="/x")) is None

    play(story)


def test_what_is_special_has_a_number_of_its_own() -> None:
    async def story(line: Line) -> None:
        auth = protocol.AuthRequest(type=0, scheme="digest", auth=b"u:p")
        line.answers(auth.special_xid)
        await line.wire.ask(Session(), auth)
        line.answers(1, rest=b"\0\0\0\2/x")
        await line.wire.ask(Session(), SYNC)

    play(story)


@pytest.mark.parametrize(
    "error, raised",
    [
        (exc.SessionExpired.error_code, Lapsed),
        (exc.NoNode.error_code, exc.NoNode),
        (exc.NodeExists.error_code, exc.NodeExists),
        (-9999, exc.ResponseError),
    ],
)
def test_errors_are_raised(error: int, raised: type[Exception]) -> None:
    async def story(line: Line) -> None:
        line.answers(1, zxid=8, error=error)
        with pytest.raises(raised):
            await line.wire.ask(Session(), SYNC)
        assert line.wire.zxid == 8

    play(story)


def test_a_watch_that_fires_is_heard_once_also_between_answers() -> None:
    async def story(line: Line) -> None:
        line.answers(protocol.WATCH_XID)
        line.answers(1, rest=b"\0\0\0\2/x")
        await line.wire.ask(Session(), SYNC)
        assert await line.wire.changed(5.0)
        assert not await line.wire.changed(0.01)
        line.answers(protocol.WATCH_XID)
        assert await line.wire.changed(5.0)

    play(story)


def test_a_frame_that_is_given_up_half_way_is_read_on() -> None:
    async def story(line: Line) -> None:
        whole = struct.pack("!iqi", protocol.WATCH_XID, 5, 0)
        line.reader.feed_data(struct.pack("!i", len(whole)) + whole[:6])
        assert not await line.wire.changed(0.01)
        line.reader.feed_data(whole[6:])
        assert await line.wire.changed(5.0)

    play(story)


@pytest.mark.parametrize("size", [-1, 0, 15, LARGEST + 1])
def test_a_frame_that_no_server_sends_is_no_frame(size: int) -> None:
    async def story(line: Line) -> None:
        line.reader.feed_data(struct.pack("!i", size))
        with pytest.raises(ConnectionError, match=f"a frame of {size} bytes is not ZooKeeper's"):
            await line.wire.ask(Session(), SYNC)

    play(story)


def test_the_largest_frame_is_one() -> None:
    async def story(line: Line) -> None:
        line.answers(1, rest=b"\0\0\0\2/x" + b"\0" * (LARGEST - 16 - 6))
        await line.wire.ask(Session(), SYNC)
        line.wire.hang_up()
        assert line.writer.closed

    play(story)


# Servers in turn


class Scripted(Ensemble):
    """Servers that do what the test says, each by its port."""

    def __init__(self, *does: object, timeout: float = 5.0) -> None:
        places = [("h", number) for number in range(len(does))]
        super().__init__(places, shown="h", timeout=timeout)
        self.does = does
        self.asked: list[int] = []

    @asynccontextmanager
    async def line(self, session: Session, ttl_ms: int) -> Any:
        (_, port) = self.addresses[self._first]
        self.asked.append(port)
        did = self.does[port]
        if isinstance(did, BaseException):
            raise did
        if did is None:
            await asyncio.sleep(3600.0)
        yield did


async def talk(wire: Any) -> str:
    return f"talked with {wire}"


def test_who_answers_is_kept_to_and_who_does_not_is_passed_over() -> None:
    ensemble = Scripted(OSError("refused"), EOFError(), "third", "fourth")
    for _ in range(2):
        assert run(ensemble.converse(Session(), 1, talk)) == "talked with third"
    assert ensemble.asked == [0, 1, 2, 2]


@pytest.mark.parametrize(
    "did, says",
    [
        (OSError("refused"), "cannot be used now: refused"),
        (EOFError(), "cannot be used now: the connection was closed"),
        (exc.SessionMoved(), "cannot be used now"),
        (exc.ConnectionLoss(), "cannot be used now"),
    ],
)
def test_where_nobody_answers_that_is_said(did: Exception, says: str) -> None:
    ensemble = Scripted(OSError("other"), did)
    with pytest.raises(Unreachable, match=says):
        run(ensemble.converse(Session(), 1, talk))
    assert ensemble.asked == [0, 1], "each is asked once"


def test_a_silent_server_costs_its_share_of_the_time() -> None:
    ensemble = Scripted(None, "second", timeout=0.2)
    assert run(ensemble.converse(Session(), 1, talk)) == "talked with second"
    with pytest.raises(Unreachable, match=r"no answer within 0\.0?5"):
        run(Scripted(None, timeout=0.05).converse(Session(), 1, talk))


def test_what_is_wrong_in_the_talk_itself_is_the_askers() -> None:
    async def lapsed(wire: Any) -> str:
        raise Lapsed

    with pytest.raises(Lapsed):
        run(Scripted("one").converse(Session(), 1, lapsed))


def test_no_tls_is_a_mistake_only_if_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE", 0.01)
    lasting = Scripted(NoTls("not our papers"), timeout=0.1)
    with pytest.raises(NoTls, match="not our papers"):
        run(lasting.converse(Session(), 1, talk))
    assert len(lasting.asked) > 1
    starting = Scripted(NoTls("not yet"), timeout=5.0)

    async def story() -> str:
        asyncio.get_running_loop().call_later(0.05, setattr, starting, "does", ("up",))
        return await starting.converse(Session(), 1, talk)

    assert run(story()) == "talked with up"


@pytest.mark.parametrize("busy_s, wrong", [(0.195, NoTls), (0.05, Unreachable)])
def test_a_last_try_without_time_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, busy_s: float, wrong: type[Exception]
) -> None:
    """On a busy machine a pause is longer than it should be; a silent server is something else."""
    monkeypatch.setattr(module, "PAUSE", 0.05)
    ensemble = Scripted(NoTls("not our papers"), timeout=0.2)

    async def sleep(pause: float, sleeping: Any = asyncio.sleep) -> None:
        ensemble.does = (None,)
        await sleeping(busy_s if pause == module.PAUSE else pause)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    with pytest.raises(wrong):
        run(ensemble.converse(Session(), 1, talk))

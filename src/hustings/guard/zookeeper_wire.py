"""ZooKeeper's sessions, kept alive only while a member wants to hold something.

aiozk brings the messages. Sessions are made here. aiozk's own sessions would not do for a lease:
they stay alive without the holder's knowledge, repeat writes whose answer was lost, begin anew in
silence when they have expired, and may wait a minute before they connect again.

A conversation connects, takes up its session, and disconnects. Taking up a session renews it. It is
the only thing a client can say that the leader of the ensemble itself confirms. A ping is answered
by the server of the connection, which tells the leader later, or never if it dies.
"""

from __future__ import annotations

import asyncio
import ssl
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from aiozk import exc, protocol

from hustings.guard.base import Unreachable
from hustings.net.fork import keep_from_children, socket_of

T = TypeVar("T")

SIZE = struct.Struct("!i")
HEADER = struct.Struct("!iqi")  # number of the request, zxid, error
LONGEST_MS = 2**31 - 1
LARGEST = 1 << 22  # of an answer: with its usual settings a server sends no more
PAUSE = 0.1  # between attempts to agree on TLS
PASSWORD = b"\0" * 16

Failure = exc.ResponseError  # a server's error answer


class Lapsed(Exception):
    """The session is over, and all its nodes are gone."""


class NoTls(Exception):
    """A server speaks no TLS, or refuses our TLS."""


class Session:
    """The values with which a server takes up a session."""

    def __init__(self, *, ordered: bool = False) -> None:
        """With `ordered`, servers that have seen less than this session are refused.

        A reader that sends a `sync` first does not need this. After an election servers lag behind
        by a number until the next write, and would be refused for nothing.
        """
        self.ordered = ordered
        self.id = 0
        self.password = PASSWORD
        self.granted_s = 0.0  # how long it lasts unless it is taken up again
        self.until = 0.0  # the end of the longest promise about this session, by the guard's clock
        self.zxid = 0  # of the newest state seen


class ZookeeperWire:
    """One connection, one question at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._number = 0
        self._size: int | None = None  # of the frame whose head was already read
        self._events = 0  # watches that fired
        self.zxid = 0  # of the newest state that the server has shown

    async def take_up(self, session: Session, ttl_ms: int) -> None:
        """Begin a session, or continue one; `Lapsed` if it is over."""
        request = protocol.ConnectRequest(
            protocol_version=0,
            last_seen_zxid=session.zxid,
            timeout=ttl_ms,
            session_id=session.id,
            password=session.password,
            read_only=False,
        )
        self._send(request.serialize())
        answer = protocol.ConnectResponse.deserialize(await self._frame())
        if answer.session_id == 0 or answer.timeout <= 0:
            raise Lapsed
        session.id, session.password = answer.session_id, answer.password
        session.granted_s = answer.timeout / 1000.0

    async def ask(self, session: Session, request: Any) -> Any:
        """One question, one answer; `Failure` if it is an error."""
        special = request.special_xid
        if special is None:
            self._number += 1
        number = self._number if special is None else special
        self._send(request.serialize(number))
        while True:
            heard, zxid, error, rest = await self._heard()
            if heard == number:
                break
        self.zxid = max(self.zxid, zxid)
        if session.ordered and zxid > 0:
            session.zxid = max(session.zxid, zxid)
        if error == exc.SessionExpired.error_code:
            raise Lapsed
        if error:
            raise exc.response_error_xref.get(error, Failure)()
        kind = protocol.response_xref.get(request.opcode)
        return None if kind is None else kind.deserialize(rest)

    async def changed(self, seconds: float) -> bool:
        """Whether a watch fires within a time, or has already fired."""
        try:
            async with asyncio.timeout(seconds):
                while not self._events:
                    await self._heard()
        except TimeoutError:
            return False
        self._events = 0
        return True

    def hang_up(self) -> None:
        self._writer.close()

    def _send(self, payload: bytes) -> None:
        self._writer.write(SIZE.pack(len(payload)) + payload)

    async def _heard(self) -> tuple[int, int, int, bytes]:
        frame = await self._frame()
        number, zxid, error = HEADER.unpack_from(frame)
        if number == protocol.WATCH_XID:
            self._events += 1
        return number, zxid, error, frame[HEADER.size :]

    async def _frame(self) -> bytes:
        """A frame. If a call is given up half-way, the next call continues at the same place."""
        if self._size is None:
            (self._size,) = SIZE.unpack(await self._reader.readexactly(SIZE.size))
        if not HEADER.size <= self._size <= LARGEST:
            raise ConnectionError(f"a frame of {self._size} bytes is not ZooKeeper's")
        frame = await self._reader.readexactly(self._size)
        self._size = None
        return frame


class Ensemble:
    """All servers, tried in turn, each conversation within a time limit."""

    def __init__(
        self,
        addresses: Sequence[tuple[str, int]],
        *,
        shown: str,
        timeout: float,
        account: str | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.addresses = list(addresses)
        self.shown = shown
        self.timeout = timeout
        self._account = account
        self._tls = tls
        self._first = 0

    async def converse(
        self, session: Session, ttl_ms: int, talk: Callable[[ZookeeperWire], Awaitable[T]]
    ) -> T:
        """Talk with a server that answers, within a session. Conversations may begin twice."""
        end = time.monotonic() + self.timeout
        mistake = ""  # what an earlier round found
        while True:
            refused = False
            for left in range(len(self.addresses), 0, -1):
                share = max(end - time.monotonic(), 0.0) / left
                try:
                    async with asyncio.timeout(share), self.line(session, ttl_ms) as wire:
                        return await talk(wire)
                except TimeoutError:
                    why = f"no answer within {share:.3g} s"
                except NoTls as error:
                    refused, why = True, str(error)
                except (OSError, EOFError, exc.SessionMoved, exc.ConnectionLoss) as error:
                    why = str(error) or "the connection was closed"
                self.next()
            if not refused:
                if mistake and share < PAUSE:  # this round had no time to find it again
                    raise NoTls(mistake)
                raise Unreachable(f"ZooKeeper at {self.shown} cannot be used now: {why}")
            # A starting server breaks off too: it is a mistake only if it lasts.
            if time.monotonic() + PAUSE >= end:
                raise NoTls(why)
            mistake = why
            await asyncio.sleep(PAUSE)

    @asynccontextmanager
    async def line(self, session: Session, ttl_ms: int) -> AsyncIterator[ZookeeperWire]:
        """A connection to one server, with a session taken up; not bounded in time."""
        host, port = self.addresses[self._first]
        try:
            reader, writer = await asyncio.open_connection(host, port, ssl=self._tls)
        except (ssl.SSLError, ConnectionResetError) as error:
            raise NoTls(str(error) or "the connection was closed") from None
        keep_from_children(writer, socket_of)  # it would keep the session when this process ended
        wire = ZookeeperWire(reader, writer)
        try:
            await wire.take_up(session, ttl_ms)
            if self._account is not None:
                request = protocol.AuthRequest(type=0, scheme="digest", auth=self._account.encode())
                await wire.ask(session, request)
            yield wire
        finally:
            wire.hang_up()

    def next(self) -> None:
        """Turn to another server."""
        self._first = (self._first + 1) % len(self.addresses)

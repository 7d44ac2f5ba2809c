"""A pooler in front of PostgreSQL that hands every transaction to another session.

Real poolers do so when they are busy; this one always does, and so finds whoever relies on a
session. It lets in whom the server trusts without a password, speaks no TLS, and knows no FLUSH:
questions end with a query or with SYNC.
"""

from __future__ import annotations

import asyncio
import struct
from contextlib import suppress
from typing import Self

SESSIONS = 2  # behind one client

_TLS_REQUEST = 80877103
_ENDS_A_TURN = b"QS"  # a query, or the end of a batch: the server answers, then is ready


class Session:
    """A connection to the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.turns = 0

    async def turn(self, said: bytes) -> tuple[bytes, bytes]:
        """What it answers until it is ready again, and its state then."""
        self._writer.write(said)
        self.turns += 1
        answer = b""
        while True:
            kind, message = await read_message(self._reader)
            answer += message
            if kind == b"Z":
                return answer, message[-1:]

    def close(self) -> None:
        self._writer.transport.abort()


class Pooler:
    """Listens on a port of its own and leads to a server's, both on this machine."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.port = 0
        self.sessions: list[Session] = []
        self._server: asyncio.Server | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for session in self.sessions:
            session.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.append(task)
        try:
            with suppress(asyncio.IncompleteReadError, asyncio.CancelledError, OSError):
                await self._relay(reader, writer)
        finally:
            writer.transport.abort()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        startup = await read_startup(reader)
        while struct.unpack("!i", startup[4:8])[0] == _TLS_REQUEST:
            writer.write(b"N")
            startup = await read_startup(reader)
        sessions = []
        for _ in range(SESSIONS):
            session = Session(*await asyncio.open_connection("127.0.0.1", self.target))
            greeting, _ = await session.turn(startup)
            sessions.append(session)
        self.sessions += sessions
        writer.write(greeting)
        said = b""
        while True:
            kind, message = await read_message(reader)
            said += message
            if kind in _ENDS_A_TURN:
                answer, state = await sessions[0].turn(said)
                writer.write(answer)
                said = b""
                if state == b"I":  # no transaction is open: the next turn is another's
                    sessions.append(sessions.pop(0))


async def read_startup(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(4)
    return head + await reader.readexactly(struct.unpack("!i", head)[0] - 4)


async def read_message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readexactly(5)
    return head[:1], head + await reader.readexactly(struct.unpack("!i", head[1:])[0] - 4)

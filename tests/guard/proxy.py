"""A way to a server that can be spoilt: held in one direction, slow, or cut.

What is held is not lost, as on any TCP connection: it arrives when the way is open again, even if
its sender has given up meanwhile. That is the worst that a network does.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import Self

_CHUNK = 65536
_TURNS = 5  # of the loop at most, until a connection that was just accepted is served
_REQUEST = 8  # bytes in which a PostgreSQL client asks for TLS


class Direction:
    """Questions or answers of all connections."""

    def __init__(self) -> None:
        self.delay = 0.0
        self.filter = asyncio.Event()  # of connections that begin now
        self.filter.set()


class Proxy:
    """Listens on a port of its own and leads to another, both on this machine."""

    def __init__(
        self, target: int, *, secret: ssl.SSLContext | None = None, on_demand: bool = False
    ) -> None:
        """With `secret`, TLS up to here: from the first word, or when a PostgreSQL client asks."""
        self.target = target
        self._secret = secret
        self._on_demand = on_demand
        self.questions, self.answers = Direction(), Direction()
        self.port = 0
        self._server: asyncio.Server | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", 0, ssl=None if self._on_demand else self._secret
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for _turn in range(_TURNS):
            await asyncio.sleep(0)
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def hold(self, direction: Direction) -> asyncio.Event:
        """Let nothing more through this way; to set the answer opens it again."""
        direction.filter.clear()
        return direction.filter

    def hold_present(self, direction: Direction) -> asyncio.Event:
        """The same, for the connections there are: later ones pass."""
        held = self.hold(direction)
        direction.filter = asyncio.Event()
        direction.filter.set()
        return held

    def cut(self) -> None:
        """End all connections there are."""
        for task in self._tasks:
            task.cancel()
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.append(task)
        self._writers.append(writer)
        if self._secret is not None and self._on_demand:
            await reader.readexactly(_REQUEST)
            writer.write(b"S")
            try:
                await writer.start_tls(self._secret)
            except OSError:  # the client does not like what it was shown
                writer.transport.abort()
                return
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        self._writers.append(far_writer)
        with suppress(asyncio.CancelledError):
            await asyncio.gather(
                _pump(reader, far_writer, self.questions), _pump(far_reader, writer, self.answers)
            )


async def _pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, direction: Direction
) -> None:
    gate = direction.filter
    with suppress(OSError):
        while True:
            try:
                data = await reader.read(_CHUNK)
            except OSError:
                data = b""  # an abrupt end; what was sent before still arrives
            await gate.wait()
            if direction.delay:
                await asyncio.sleep(direction.delay)
            if not data:
                break
            writer.write(data)
            await writer.drain()
    writer.close()

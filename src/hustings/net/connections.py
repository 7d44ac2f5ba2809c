"""Streams of a port: what is too large for a datagram, and connections kept to see them end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from hustings.net.addresses import Address
from hustings.net.lifelines import RECONNECT, SHORTEST, TRANSFER, Lifeline, keep
from hustings.net.limits import Counters, Limits, Reason
from hustings.net.port import Endpoint
from hustings.net.streams import Unstreamed, on_stream
from hustings.net.wire import Direction

if TYPE_CHECKING:
    from hustings.net.udp import UdpPort

_FIRST_FRAME = 5.0  # seconds in which a frame must be complete; the first one, from the beginning
_CHUNK = 65_536
_BACKLOG = 128
_KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}  # seconds, and times
_TURNS = 3  # of the loop until a transport that was closed has let go of its socket


class Connections:
    """All streams of one port, accepted and opened."""

    def __init__(self, port: UdpPort, limits: Limits, counters: Counters) -> None:
        self._port = port
        self._limits = limits
        self._counters = counters
        self._listener: socket.socket | None = None
        # Streams that others opened, the oldest first, and whether each has shown a frame.
        self._accepted: dict[asyncio.Task[None], bool] = {}
        self._opened: dict[asyncio.Task[None], None] = {}
        self._transfers = 0

    def listen(self) -> None:
        """Accept streams at the port's own number.

        By hand: a server of asyncio's loses what it accepts at the moment when it is closed.
        """
        host, number = self._port.endpoint
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setblocking(False)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6 and Address(host, number).is_wildcard:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            listener.bind((host, number))
            listener.listen(_BACKLOG)
        except OSError:
            listener.close()
            raise
        self._listener = listener
        asyncio.get_running_loop().add_reader(listener.fileno(), self._incoming, listener)

    async def close(self) -> None:
        """Close all."""
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener.fileno())
            self._listener.close()
            self._listener = None
        tasks = [*self._accepted, *self._opened]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for _ in range(_TURNS):
            await asyncio.sleep(0)

    # Accepted

    def _incoming(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(_BACKLOG):
            try:
                stream, _ = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # too many files are open: others have to be closed first
                self._counters.count(Reason.CONNECTIONS)
                loop.remove_reader(listener.fileno())
                loop.call_later(SHORTEST, self._resume, listener)
                return
            if not self._has_room():
                stream.close()
                continue
            task = loop.create_task(self._accept(stream))
            self._accepted[task] = False
            task.add_done_callback(partial(self._ended, stream))

    def _ended(self, stream: socket.socket, task: asyncio.Task[None]) -> None:
        """Whether it was served or cancelled before it began."""
        self._accepted.pop(task, None)
        stream.close()

    def _resume(self, listener: socket.socket) -> None:
        if self._listener is listener:
            asyncio.get_running_loop().add_reader(listener.fileno(), self._incoming, listener)

    async def _accept(self, stream: socket.socket) -> None:
        task = asyncio.current_task()
        if task is None:
            raise AssertionError("nobody else calls this")
        reader, writer = await _streams(stream)
        try:
            await self._serve(task, reader, writer)
        except (OSError, TimeoutError):
            pass  # it ended; why is nobody's concern
        finally:
            writer.close()

    def _has_room(self) -> bool:
        """Whether one more is accepted; who has shown nothing yet makes room for it."""
        if len(self._accepted) < self._limits.connections:
            return True
        self._counters.count(Reason.CONNECTIONS)
        silent = next((task for task, known in self._accepted.items() if not known), None)
        if silent is not None:
            silent.cancel()
            del self._accepted[silent]
        return silent is not None

    async def _serve(
        self,
        task: asyncio.Task[None],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        peer = writer.get_extra_info("peername")
        source = (str(peer[0]), int(peer[1])) if peer else ("", 0)
        frames = Unstreamed(self._limits.transfer)
        clock = asyncio.get_running_loop().time
        deadline: float | None = clock() + _FIRST_FRAME  # of the frame that is being read
        known = False  # whether a frame was one to accept
        while True:
            async with asyncio.timeout_at(deadline):
                data = await reader.read(_CHUNK)
            if not data:
                if reason := frames.end():
                    self._counters.count(reason)
                return
            complete = frames.feed(data)
            for frame in complete:
                receiver = self._port.receivers.of(frame)
                if receiver is None or not receiver.frame(frame, source, Direction.QUESTION):
                    return
                if task in self._accepted:
                    self._accepted[task] = known = True
            if frames.broken is not None:
                self._counters.count(frames.broken)
                return
            if not frames.waiting:
                deadline = None if known else deadline
            elif complete or deadline is None:
                deadline = clock() + _FIRST_FRAME

    # Opened

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._opened[task] = None
        task.add_done_callback(lambda done: self._opened.pop(done, None))
        return task

    def stream(self, to: Endpoint, data: bytes) -> None:
        """Open, write one frame, close."""
        if self._transfers >= self._limits.connections:
            self._counters.count(Reason.TRANSFER)
            return
        self._transfers += 1
        self._spawn(self._transfer(to, data))

    async def _transfer(self, to: Endpoint, data: bytes) -> None:
        try:
            if not self._port.faults.reaches(to):
                return
            async with asyncio.timeout(TRANSFER):
                _, writer = await asyncio.open_connection(*to)
                try:
                    writer.write(on_stream(data))
                    await writer.drain()
                finally:
                    writer.close()
                await writer.wait_closed()
        except (OSError, TimeoutError, ValueError, TypeError):
            self._counters.count(Reason.UNSENT)
        finally:
            self._transfers -= 1

    def knock(self, to: Endpoint, refused: Callable[[], None]) -> None:
        """Is anybody there?"""
        if self._transfers < self._limits.connections:
            self._transfers += 1
            self._spawn(self._knock(to, refused))

    async def _knock(self, to: Endpoint, refused: Callable[[], None]) -> None:
        try:
            if self._port.faults.reaches(to):
                async with asyncio.timeout(RECONNECT):
                    _, writer = await asyncio.open_connection(*to)
                writer.close()
        except ConnectionRefusedError:
            refused()
        except (OSError, TimeoutError, ValueError, TypeError):
            pass  # nobody knows
        finally:
            self._transfers -= 1

    def watch(
        self,
        to: Endpoint,
        hello: Callable[[], bytes | None],
        gone: Callable[[bool], None],
        leisure: Callable[[], float],
    ) -> Lifeline:
        """Keep a connection, and say when it ends."""
        return Lifeline(self._spawn(keep(partial(self._hold, to, hello), gone, leisure)))

    async def _hold(self, to: Endpoint, hello: Callable[[], bytes | None], within: float) -> float:
        """Returns when a connection that came about has ended: how long it lasted."""
        if not self._port.faults.reaches(to):
            raise OSError("cut on purpose")
        async with asyncio.timeout(within):
            reader, writer = await asyncio.open_connection(*to)
        _keep_alive(writer.get_extra_info("socket"))
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            first = hello()
            if first is not None:
                writer.write(on_stream(first))
            while await reader.read(_CHUNK):
                pass
        except ConnectionError:
            pass  # reset, as when a process is killed with something unread
        finally:
            writer.close()
        return loop.time() - began


async def _streams(stream: socket.socket) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """What asyncio reads and writes an accepted connection with."""
    stream.setblocking(False)
    _keep_alive(stream)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_CHUNK, loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    transport, _ = await loop.connect_accepted_socket(lambda: protocol, stream)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


def _keep_alive(stream: socket.socket) -> None:
    """Have the kernel ask now and then: a machine that is gone closes nothing."""
    with suppress(OSError):
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEP_ALIVE.items():
            option = getattr(socket, name, None)  # not every system has them
            if option is not None:
                stream.setsockopt(socket.IPPROTO_TCP, option, value)

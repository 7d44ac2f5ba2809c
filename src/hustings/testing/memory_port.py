"""A port on the network in memory: what `net.port` asks for, without a socket.

What arrives is handed over in the context in which the port was opened. So it belongs to the
member that opened it, and waits while that member is held, up to the size of a kernel's buffer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import copy_context
from functools import partial

from hustings.core.streams import derive
from hustings.net.transport import (
    RECONNECT,
    TRANSFER,
    Endpoint,
    Faults,
    Lifeline,
    Receiver,
    Receivers,
    keep,
)
from hustings.net.wire import Direction
from hustings.testing.switchboard import Line, Switchboard

BUFFER = 212_992  # bytes of datagrams that wait to be read, as kernels have it
BACKLOG = 128  # connections that wait to be read


class MemoryPort:
    """One address on a switchboard."""

    def __init__(self, board: Switchboard, endpoint: Endpoint) -> None:
        self._board = board
        self._endpoint = endpoint
        self._faults = Faults(derive(0, "faults", *endpoint))
        self._receivers = Receivers()
        self._context = copy_context()
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._waiting = 0  # bytes of datagrams
        self._arrived = 0  # datagrams so far ...
        self._stale = 0  # ... of which so many are not to be read any more
        self._unread = 0  # frames of connections
        self._closed = False
        self.lines: dict[Line, None] = {}  # accepted
        board.listen(self)

    @property
    def endpoint(self) -> Endpoint:
        """Where it listens."""
        return self._endpoint

    @property
    def faults(self) -> Faults:
        """What goes wrong at this port, beside what its network does."""
        return self._faults

    @property
    def reaches_all(self) -> bool:
        """Whether the network multicasts."""
        return self._board.multicast

    def attach(self, tag: bytes, receiver: Receiver) -> None:
        """From now on frames with this group tag are `receiver`'s; one per tag."""
        self._receivers.attach(tag, receiver)

    def detach(self, tag: bytes) -> None:
        """No longer; a tag that is not attached is fine."""
        self._receivers.detach(tag)

    # Datagrams

    def send(self, to: Endpoint, data: bytes) -> None:
        """A datagram leaves."""
        if self._closed:
            return
        for after in self._faults.departures(to):
            if after:
                self._board.loop.call_later(after, self._send, to, data, context=self._context)
            else:
                self._send(to, data)

    def send_all(self, data: bytes) -> None:
        """A datagram to everybody else."""
        if self.reaches_all:
            for other in self._board.everybody():
                if other != self._endpoint:
                    self.send(other, data)

    def _send(self, to: Endpoint, data: bytes) -> None:
        if not self._closed:
            self._board.post(self, to, data)

    def arrive(self, data: bytes, source: Endpoint) -> bool:
        """The network brings a datagram; whether there was room for it."""
        if self._waiting + len(data) > BUFFER:
            return False
        self._waiting += len(data)
        self._arrived += 1
        self._board.loop.call_soon(self._read, data, source, self._arrived, context=self._context)
        return True

    def discard(self) -> None:
        """Whatever has come and was not read is dropped."""
        self._stale = self._arrived

    def _read(self, data: bytes, source: Endpoint, number: int) -> None:
        self._waiting -= len(data)
        if self._closed or number <= self._stale or not self._faults.hears(source):
            return
        receiver = self._receivers.of(data)
        if receiver is not None:
            receiver.datagram(data, source)

    def refuse(self, to: Endpoint) -> None:
        """The network says that nobody listens there."""
        self._board.loop.call_soon(self._refused, to, context=self._context)

    def _refused(self, to: Endpoint) -> None:
        if not self._closed and self._faults.hears(to):
            for receiver in self._receivers.all():
                receiver.refused(to)

    # Connections

    def arrive_frame(self, line: Line, data: bytes) -> None:
        """The network brings a frame over a connection."""
        if self._unread >= BACKLOG:
            self._board.hang_up(line)
            return
        self._unread += 1
        self._board.loop.call_soon(self._read_frame, line, data, context=self._context)

    def _read_frame(self, line: Line, data: bytes) -> None:
        self._unread -= 1
        if self._closed:
            return
        receiver = self._receivers.of(data)
        if receiver is None or not receiver.frame(data, line.source, Direction.QUESTION):
            self._board.hang_up(line)

    def stream(self, to: Endpoint, data: bytes, hello: bytes = b"") -> None:
        """A frame over a connection of its own, after one that shows whose it is."""
        if not self._closed:
            self._spawn(self._transfer(to, data, hello))

    async def _transfer(self, to: Endpoint, data: bytes, hello: bytes) -> None:
        if not self._faults.reaches(to):
            return
        with suppress(ConnectionRefusedError, TimeoutError):
            async with asyncio.timeout(TRANSFER):
                line = await self._board.connect(self, to)
                try:
                    await self._board.travel(self._endpoint, to)
                    for frame in filter(None, (hello, data)):
                        self._board.say(line, frame)
                finally:
                    self._board.forget(line)

    def knock(self, to: Endpoint, refused: Callable[[], None]) -> None:
        """Try to connect, and say so if nobody listens there."""
        if not self._closed:
            self._spawn(self._knock(to, refused))

    async def _knock(self, to: Endpoint, refused: Callable[[], None]) -> None:
        if not self._faults.reaches(to):
            return
        try:
            async with asyncio.timeout(RECONNECT):
                self._board.forget(await self._board.connect(self, to))
        except ConnectionRefusedError:
            refused()
        except TimeoutError:
            pass  # nobody knows

    def watch(
        self,
        to: Endpoint,
        hello: Callable[[], bytes | None],
        gone: Callable[[bool], None],
        leisure: Callable[[], float],
    ) -> Lifeline:
        """Keep a connection to an endpoint, and say when its far end is no more."""
        return Lifeline(self._spawn(keep(partial(self._hold, to, hello), gone, leisure)))

    async def _hold(self, to: Endpoint, hello: Callable[[], bytes | None], within: float) -> float:
        """Returns when a connection that came about has ended: how long it lasted."""
        if not self._faults.reaches(to):
            raise OSError("cut on purpose")
        async with asyncio.timeout(within):
            line = await self._board.connect(self, to)
        began = self._board.loop.time()
        try:
            first = hello()
            if first is not None:
                await self._board.travel(self._endpoint, to)
                self._board.say(line, first)
            await line.ended
        finally:
            self._board.forget(line)
        return self._board.loop.time() - began

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = self._board.loop.create_task(work, context=self._context.copy())
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))
        return task

    # The end

    async def close(self) -> None:
        """Stop listening and drop what is under way."""
        self.kill()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def kill(self, *, dark: bool = False) -> None:
        """The process has ended without a word or, if `dark`, its machine is gone."""
        self._closed = True
        self._board.close(self, dark=dark)

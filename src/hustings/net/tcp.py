"""Streams of a port: for frames too large for a datagram, and connections kept for their end.

Any process may open a stream, so a stream has to earn what it takes. Its first frame is no longer
than a datagram, and the first bytes are checked before the rest is read. Longer frames may follow
only if the first frame was accepted (with a key: was authentic). All incomplete frames share one
budget of bytes. When slots or bytes run out, the source that holds most of them loses its oldest
stream. So a process that opens hundreds of streams evicts its own.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from hustings.net.addresses import Address
from hustings.net.fork import keep_from_children
from hustings.net.keys import ID
from hustings.net.limits import INCOMPLETE, Counters, Limits, Reason
from hustings.net.transport import RECONNECT, SHORTEST, TRANSFER, Endpoint, KeptConnection, keep
from hustings.net.wire import (
    CLEAR,
    HEADER,
    MAGIC,
    Direction,
    Wire,
    group_tag,
    mode_of,
)

if TYPE_CHECKING:
    from hustings.net.udp import UdpTransport

_FIRST_FRAME = 5.0  # seconds to complete a frame; for the first frame, from the start of the stream
_CHUNK = 65_536
_BACKLOG = 512
# Bytes that the kernel buffers of a stream that is not read; Linux takes twice that. The default
# may be megabytes for each stream.
_UNREAD = 32_768
_KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}  # seconds, and times
_OUTGOING = 32 * 1024 * 1024  # bytes of frames that are being sent
_AT_ONE = 32  # transfers at most to one endpoint at a time: it may read slowly on purpose
_TURNS = 3  # turns of the loop until a closed stream has released its socket

# Errors of a stream; the last three: a malformed address.
_BROKEN = (OSError, TimeoutError, ValueError, TypeError, OverflowError)


class Accepted:
    """One stream that another process opened."""

    __slots__ = ("frames", "held", "host", "proven", "source")

    def __init__(self, source: Endpoint, limits: Limits) -> None:
        self.source = source
        self.host = source[0]
        self.proven = False  # whether a frame was accepted
        self.held = 0  # bytes that it has of the budget
        self.frames = StreamDecoder(min(limits.datagram, limits.transfer))


class Connections:
    """All streams of one port, accepted and opened."""

    def __init__(self, port: UdpTransport, limits: Limits, counters: Counters) -> None:
        self._port = port
        self._limits = limits
        self._counters = counters
        self._listener: socket.socket | None = None
        self._accepted: dict[asyncio.Task[None], Accepted] = {}  # oldest first
        self._opened: dict[asyncio.Task[None], None] = {}
        self._outgoing: Counter[Endpoint] = Counter()  # transfers and checks under way, and ...
        self._outgoing_bytes = 0  # ... the bytes that they hold

    def listen(self) -> None:
        """Accept streams at the port's own number.

        Without asyncio's server, which loses a stream that it accepts at the moment when it is
        closed.
        """
        host, number = self._port.endpoint
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setblocking(False)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _UNREAD)  # accepted too
            if family == socket.AF_INET6 and Address(host, number).is_wildcard:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            listener.bind((host, number))
            listener.listen(_BACKLOG)
        except OSError:
            listener.close()
            raise
        self._listener = listener
        keep_from_children(listener, socket.socket.fileno)
        asyncio.get_running_loop().add_reader(listener.fileno(), self._incoming, listener)

    async def close(self) -> None:
        """Close all streams."""
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
                stream, address = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # too many files are open: others must be closed first
                self._counters.count(Reason.CONNECTIONS)
                loop.remove_reader(listener.fileno())
                loop.call_later(SHORTEST, self._resume, listener)
                return
            accepted = Accepted((str(address[0]), int(address[1])), self._limits)
            if not self._has_room(accepted.host):
                stream.close()
                continue
            stream.setblocking(False)
            keep_from_children(stream, socket.socket.fileno)
            _keep_alive(stream)
            task = loop.create_task(self._accept(stream, accepted))
            self._accepted[task] = accepted
            task.add_done_callback(partial(self._ended, stream, accepted))

    def _ended(self, stream: socket.socket, accepted: Accepted, task: asyncio.Task[None]) -> None:
        """Give back all that a stream held, whether it was served or cancelled before that."""
        self._accepted.pop(task, None)
        _give_back(accepted)
        stream.close()

    def _resume(self, listener: socket.socket) -> None:
        if self._listener is listener:
            asyncio.get_running_loop().add_reader(listener.fileno(), self._incoming, listener)

    def _has_room(self, host: str) -> bool:
        """Whether one more stream is accepted, of which only the source is known.

        Streams that are not proven yet make room for it. If all are proven, a source with more
        streams than the newcomer's loses one. Otherwise one machine could keep all others out.
        """
        if len(self._accepted) < self._limits.connections:
            return True
        self._counters.count(Reason.CONNECTIONS)
        unproven = {task: each for task, each in self._accepted.items() if not each.proven}
        if unproven:
            self._evict(_oldest_of_most(unproven))
            return True
        streams = Counter(each.host for each in self._accepted.values())
        if streams[host] + 1 < max(streams.values(), default=0):
            self._evict(_oldest_of_most(self._accepted))
            return True
        return False

    def _evict(self, task: asyncio.Task[None]) -> None:
        task.cancel()
        del self._accepted[task]

    async def _accept(self, stream: socket.socket, accepted: Accepted) -> None:
        with suppress(OSError, TimeoutError):  # the stream ended; the cause does not matter
            if reason := await self._serve(stream, accepted):
                self._counters.count(reason)

    async def _serve(self, stream: socket.socket, accepted: Accepted) -> Reason | None:
        """Read frames until the stream ends or a frame is refused; returns what else was wrong."""
        loop = asyncio.get_running_loop()
        frames = accepted.frames
        deadline: float | None = loop.time() + _FIRST_FRAME  # for the frame that is being read
        while True:
            async with asyncio.timeout_at(deadline):
                data = await loop.sock_recv(stream, min(frames.missing, _CHUNK))
            if not data:
                return Reason.TRUNCATED if frames.waiting else None
            begins = not frames.waiting
            if not self._take(len(data), accepted):
                return Reason.TRANSFER
            complete = frames.feed(data)
            INCOMPLETE.give_back(accepted.held - frames.waiting)
            accepted.held = frames.waiting
            if complete:
                if not all(self._read(frame, accepted) for frame in complete):
                    return None
                deadline = None
            elif frames.broken is not None:
                return frames.broken
            elif frames.head is not None and not self._may_go_on(frames.head, accepted):
                return None
            elif begins and deadline is None:
                deadline = loop.time() + _FIRST_FRAME

    def _read(self, frame: bytes, accepted: Accepted) -> bool:
        receiver = self._port.receivers.of(frame)
        if receiver is None or not receiver.frame(frame, accepted.source, Direction.QUESTION):
            return False
        accepted.proven = True
        accepted.frames.most = self._limits.transfer
        return True

    def _may_go_on(self, head: bytes, accepted: Accepted) -> bool:
        receiver = self._port.receivers.of(head)
        return receiver is not None and receiver.head(head, accepted.source)

    def _take(self, size: int, accepted: Accepted) -> bool:
        """Whether `size` more bytes may be kept; other streams make room for them if needed."""
        while not INCOMPLETE.take(size, self._limits.incomplete):
            holding = {task: each for task, each in self._accepted.items() if each.held}
            if not holding:
                return False  # they belong to another port
            task = _oldest_of_most(holding, size_of=lambda each: each.held)
            if holding[task] is accepted:
                return False
            self._counters.count(Reason.TRANSFER)
            self._evict(task)
            _give_back(holding[task])
        accepted.held += size
        return True

    # Opened

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._opened[task] = None
        task.add_done_callback(lambda done: self._opened.pop(done, None))
        return task

    def _begin(
        self, to: Endpoint, size: int, work: Callable[[], Coroutine[None, None, None]]
    ) -> bool:
        """Run work that takes a slot, and give the slot back whatever the result is."""
        outgoing = self._outgoing
        if (
            outgoing.total() >= self._limits.connections
            or outgoing[to] >= _AT_ONE
            or (size and self._outgoing_bytes + size > max(_OUTGOING, self._limits.transfer))
        ):
            return False
        outgoing[to] += 1
        self._outgoing_bytes += size

        def ended(_: asyncio.Task[None]) -> None:
            outgoing[to] -= 1
            if not outgoing[to]:
                del outgoing[to]
            self._outgoing_bytes -= size

        self._spawn(work()).add_done_callback(ended)
        return True

    def stream(self, to: Endpoint, data: bytes, hello: bytes = b"") -> None:
        """Open, show the opener's name, write one frame, close."""
        if not self._begin(to, len(data), lambda: self._transfer(to, data, hello)):
            self._counters.count(Reason.TRANSFER)

    async def _transfer(self, to: Endpoint, data: bytes, hello: bytes) -> None:
        loop = asyncio.get_running_loop()
        try:
            if not self._port.faults.reaches(to):
                return
            async with asyncio.timeout(TRANSFER):
                with await _connected(to) as stream:
                    for frame in filter(None, (hello, data)):
                        await loop.sock_sendall(stream, on_stream(frame))
        except _BROKEN:
            self._counters.count(Reason.UNSENT)

    def knock(self, to: Endpoint, refused: Callable[[], None]) -> None:
        """Check whether a process listens there."""
        self._begin(to, 0, lambda: self._knock(to, refused))

    async def _knock(self, to: Endpoint, refused: Callable[[], None]) -> None:
        try:
            if self._port.faults.reaches(to):
                async with asyncio.timeout(RECONNECT):
                    (await _connected(to)).close()
        except ConnectionRefusedError:
            refused()
        except _BROKEN:
            pass  # no answer is no evidence

    def watch(
        self,
        to: Endpoint,
        hello: Callable[[], bytes | None],
        gone: Callable[[bool], None],
        leisure: Callable[[], float],
    ) -> KeptConnection:
        """Keep a connection, and report when it ends."""
        return KeptConnection(self._spawn(keep(partial(self._hold, to, hello), gone, leisure)))

    async def _hold(self, to: Endpoint, hello: Callable[[], bytes | None], within: float) -> float:
        """Returns when an open connection has ended, with its duration."""
        if not self._port.faults.reaches(to):
            raise OSError("cut on purpose")
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(within):
            stream = await _connected(to)
        with stream:
            _keep_alive(stream)
            began = loop.time()
            first = hello()
            # A reset is an end too, as when a process is killed with unread data.
            with suppress(ConnectionError):
                if first is not None:
                    await loop.sock_sendall(stream, on_stream(first))
                # No peer answers here; a peer that does has no use for this connection.
                await loop.sock_recv(stream, 1)
        return loop.time() - began


def _oldest_of_most(
    streams: dict[asyncio.Task[None], Accepted],
    size_of: Callable[[Accepted], int] = lambda _: 1,
) -> asyncio.Task[None]:
    """The oldest stream of the source that has most of them."""
    sizes = Counter[str]()
    for each in streams.values():
        sizes[each.host] += size_of(each)
    most = max(sizes, key=sizes.__getitem__)
    return next(task for task, each in streams.items() if each.host == most)


def _give_back(accepted: Accepted) -> None:
    INCOMPLETE.give_back(accepted.held)
    accepted.held = 0
    accepted.frames.drop()


async def _connected(to: Endpoint) -> socket.socket:
    stream = socket.socket(socket.AF_INET6 if ":" in to[0] else socket.AF_INET, socket.SOCK_STREAM)
    keep_from_children(stream, socket.socket.fileno)
    try:
        stream.setblocking(False)
        await asyncio.get_running_loop().sock_connect(stream, to)
    except BaseException:
        stream.close()
        raise
    return stream


def _keep_alive(stream: socket.socket) -> None:
    """Let the kernel probe the far end now and then: a machine that is down closes nothing."""
    with suppress(OSError):
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEP_ALIVE.items():
            option = getattr(socket, name, None)  # not every system has them
            if option is not None:
                stream.setsockopt(socket.IPPROTO_TCP, option, value)


PREFIX = 4
HEAD = HEADER + ID  # bytes of a frame that tell whether to wait for the rest


def on_stream(frame: bytes) -> bytes:
    """A frame as a stream carries it.

    >>> on_stream(b"frame")
    b'\\x00\\x00\\x00\\x05frame'
    """
    return len(frame).to_bytes(PREFIX, "big") + frame


class StreamDecoder:
    """Frames from a stream's bytes, wherever these are cut.

    Holds at most one incomplete frame. After a forbidden length, no later frame can be told apart:
    `broken` gives the reason, and the stream must be closed. `most` may change from one frame to
    the next. A caller that reads at most `missing` bytes at a time gets each frame by itself, and
    its first bytes as `head` before the others.

    >>> stream = StreamDecoder(most=100)
    >>> stream.feed(b"\\x00\\x00\\x00\\x02ab\\x00\\x00"), stream.feed(b"\\x00\\x01c")
    ([b'ab'], [b'c'])
    >>> stream.feed(b"\\xff\\xff\\xff\\xffabc"), stream.broken.value
    ([], 'too-large')
    """

    __slots__ = ("_rest", "broken", "most")

    def __init__(self, most: int) -> None:
        self.most = most
        self._rest = bytearray()
        self.broken: Reason | None = None

    @property
    def waiting(self) -> int:
        """Bytes of the incomplete frame."""
        return len(self._rest)

    @property
    def missing(self) -> int:
        """Bytes until the length is known, then until the head is, then until the frame is."""
        got = len(self._rest)
        if got < PREFIX:
            return PREFIX - got
        whole = PREFIX + int.from_bytes(self._rest[:PREFIX], "big")
        return min(whole, PREFIX + HEAD) - got if got < PREFIX + HEAD else whole - got

    @property
    def head(self) -> bytes | None:
        """The first bytes of a frame, at the moment when exactly these are there."""
        return bytes(self._rest[PREFIX:]) if len(self._rest) == PREFIX + HEAD else None

    def drop(self) -> None:
        """Forget the bytes of a frame that will not be complete."""
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The frames that become complete with these bytes."""
        if self.broken is not None:
            return []
        rest = self._rest
        rest += data
        frames: list[bytes] = []
        start = 0
        while len(rest) - start >= PREFIX:
            begin = start + PREFIX
            length = int.from_bytes(rest[start:begin], "big")
            if not 0 < length <= self.most:
                self.broken = Reason.TOO_LARGE if length else Reason.NOT_A_FRAME
                rest.clear()
                return frames
            if len(rest) - begin < length:
                break
            frames.append(bytes(rest[begin : begin + length]))
            start = begin + length
        del rest[:start]
        return frames

    def end(self) -> Reason | None:
        """The stream is over: the reason, if that was in the middle of a frame."""
        if self.broken is None and self._rest:
            self.broken = Reason.TRUNCATED
            self._rest.clear()
            return self.broken
        return None


def refusal_of(head: bytes, wire: Wire) -> Reason | None:
    """What is wrong with a frame of which only the first bytes are there, if they show it.

    A process without a key can write these bytes too, so they prove nothing. The check only saves a
    member from reading frames for another port.
    """
    if head[: len(MAGIC)] != MAGIC:
        return Reason.NOT_A_FRAME
    mode = mode_of(head)
    if isinstance(mode, Reason):
        return mode
    if head[3:HEADER] != group_tag(wire.group):
        return Reason.OTHER_GROUP
    if mode == CLEAR:
        return None if wire.ring is None else Reason.NOT_SEALED
    if wire.ring is None:
        return Reason.SEALED
    return None if head[HEADER:HEAD].hex() in wire.ring.ids else Reason.UNKNOWN_KEY

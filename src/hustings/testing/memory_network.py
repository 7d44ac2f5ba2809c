"""A network in memory: datagrams and connections between the members of one process.

The network does on request what networks do to datagrams: delay, loss, copies, overtaking, cuts in
one or both directions. Every draw comes from the seed and the link, so that what happens on one
link does not depend on what is sent on another. Nothing here waits in real time.

A connection behaves as over TCP: lost data is sent again, and an idle connection does not notice a
cut. The machine below a killed process still runs: it refuses datagrams and closes connections. A
machine that is gone does neither.

A transport hands over what arrives in the context in which it was opened. So what arrives belongs
to the member that opened the transport, and waits while that member is held, up to the size of a
kernel's buffer.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from hustings.core.errors import BadInput
from hustings.core.streams import Stream, derive
from hustings.net.clock import clock_of, sleep
from hustings.net.transport import (
    RECONNECT,
    TRANSFER,
    Endpoint,
    Faults,
    KeptConnection,
    Receiver,
    Receivers,
    keep,
)
from hustings.net.wire import Direction
from hustings.testing.clock import of_members

if TYPE_CHECKING:
    from hustings.testing.surroundings import LinkLaws

HELD_UP = 3.0  # a datagram that is overtaken takes up to this many times the delay in addition
RESEND = 0.2  # seconds until lost data of a connection is sent again; doubled each time
RESEND_LONGEST = 2.0
FAREWELL = 60.0  # seconds for which the end of a connection is told to an unreachable far end
FIRST_PORT = 7401  # of the members of a group, in the order of joining
HEADER = 28  # bytes of IP and UDP for each datagram
SEGMENT = 1460  # bytes that a segment of TCP carries over Ethernet
TCP_MORE = 12  # bytes that the header of TCP has more than that of UDP
HANDSHAKE = 2  # segments of the caller that open a connection: one asks, one confirms
CLOSING = 2  # segments of either side that close it
_EPHEMERAL = 49_152  # the first of the port numbers that callers call from


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a network does to what is sent.

    >>> Conditions(delay=(0.001, 0.005), loss=0.3).loss
    0.3
    >>> Conditions(loss=1.5)
    Traceback (most recent call last):
    hustings.core.errors.BadInput: loss must lie between 0 and 1, not 1.5
    """

    delay: float | tuple[float, float] = 0.001  # seconds; of a pair, anything between the two
    loss: float = 0.0  # probability, of each datagram
    duplicate: float = 0.0  # probability that a datagram arrives twice
    reorder: float = 0.0  # probability that a datagram is held up, so that later ones overtake it

    def __post_init__(self) -> None:
        for name in ("loss", "duplicate", "reorder"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise BadInput(f"{name} must lie between 0 and 1, not {value:g}")
        low, high = self.bounds
        if not 0 <= low <= high < math.inf:
            raise BadInput(f"delay must be seconds, or the least and the most, not {self.delay}")

    @property
    def bounds(self) -> tuple[float, float]:
        """The shortest and the longest delay."""
        return self.delay if isinstance(self.delay, tuple) else (self.delay, self.delay)

    def way(self, rng: Stream) -> float:
        """How long one datagram is under way."""
        low, high = self.bounds
        time = low if low == high else rng.uniform(low, high)
        if self.reorder and rng.random() < self.reorder:
            time += HELD_UP * high * rng.random()
        return time


class MemoryConnection:
    """One connection, as its caller sees it."""

    __slots__ = ("caller", "ended", "source", "to")

    def __init__(
        self, caller: Endpoint, source: Endpoint, to: Endpoint, ended: asyncio.Future[None]
    ) -> None:
        self.caller = caller  # the endpoint that called
        self.source = source  # the number it was called from
        self.to = to
        self.ended = ended  # set once the far end has closed and the caller has heard so


class MemoryNetwork:
    """Which transports listen where, which links are cut, and what is under way."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        seed: int = 0,
        conditions: Conditions | None = None,
        *,
        multicast: bool = False,
        laws: LinkLaws | None = None,
    ) -> None:
        """`multicast`: whether one datagram can be sent to all members.

        With `laws` of an environment, these decide on delay and loss, and not the conditions.
        """
        self.loop = loop
        self.clock = clock_of(loop)  # of the network: it does not drift
        self.conditions = conditions or Conditions()  # may be replaced at any time
        self.multicast = multicast
        self.laws = laws
        self.tally: Counter[str] = Counter()  # of datagrams: sent, delivered, lost, ...
        self.sent: Counter[Endpoint] = Counter()  # bytes of each endpoint, with headers ...
        self.received: Counter[Endpoint] = Counter()  # ... likewise
        # When the last datagram of one endpoint reached another; kept only if it is a dict.
        self.heard: dict[tuple[Endpoint, Endpoint], float] | None = None
        self._header = HEADER if laws is None else laws.header
        self._seed = seed
        self._ports: dict[Endpoint, MemoryTransport] = {}
        self._dark: dict[Endpoint, None] = {}  # endpoints whose machine is gone
        self._cuts: dict[tuple[Endpoint, Endpoint], None] = {}
        self._links: dict[tuple[Endpoint, Endpoint], Stream] = {}
        self._calls = 0
        self.connecting = 0  # callers that wait for something to get through
        self._context = of_members(copy_context())  # what is under way belongs to no process

    # Ports

    def listen(self, port: MemoryTransport) -> None:
        """Open a port; a machine that was gone is back."""
        if port.endpoint in self._ports:
            host, number = port.endpoint
            raise BadInput(f"{host}:{number} is in use by another member: choose another port")
        self._ports[port.endpoint] = port
        self._dark.pop(port.endpoint, None)

    def close(self, port: MemoryTransport, *, dark: bool = False) -> None:
        """Close a port: its process has ended or, if `dark`, its machine is gone."""
        if self._ports.get(port.endpoint) is not port:
            return
        del self._ports[port.endpoint]
        for other in self._ports.values():
            for line in [each for each in other.lines if each.caller == port.endpoint]:
                del other.lines[line]
        if dark:
            self._dark[port.endpoint] = None
            return
        for line in list(port.lines):
            self.hang_up(line)

    def everybody(self) -> list[Endpoint]:
        """The endpoints that listen, in the order of opening."""
        return list(self._ports)

    # Cuts

    def cut(self, sender: Endpoint, to: Endpoint) -> None:
        """Nothing gets from one to the other any more; the way back stays open."""
        self._cuts[sender, to] = None

    def partition(self, *sides: Sequence[Endpoint]) -> None:
        """Members on different sides cannot reach each other."""
        for number, side in enumerate(sides):
            for other in sides[:number] + sides[number + 1 :]:
                for sender in side:
                    for to in other:
                        self.cut(sender, to)

    def mend(self, sender: Endpoint, to: Endpoint) -> None:
        """Undo one cut."""
        self._cuts.pop((sender, to), None)

    def heal(self) -> None:
        """Undo all cuts."""
        self._cuts.clear()

    @property
    def has_cuts(self) -> bool:
        """Whether any cut is in effect."""
        return bool(self._cuts) or (self.laws is not None and bool(self.laws.dark))

    def is_cut(self, sender: Endpoint, to: Endpoint) -> bool:
        """Whether a cut stops what one sends to the other, or an outage of a site."""
        if self.laws is not None and self.laws.cut(_number(sender), _number(to)):
            return True
        return (sender, to) in self._cuts

    # Datagrams

    def _carry(self, source: Endpoint, to: Endpoint, size: int, *, arrives: bool = True) -> None:
        """Count bytes, headers included, that one end sends and the other gets."""
        self.sent[source] += size
        if arrives:
            self.received[to] += size

    def _segments(self, line: MemoryConnection, caller: int, far: int) -> None:
        """Count segments without data, of both ends of a connection."""
        size = self._header + TCP_MORE
        self._carry(line.caller, line.to, caller * size)
        self._carry(line.to, line.caller, far * size)

    def reseed(self, seed: int) -> None:
        """Go on with other random numbers; what is under way arrives as it would have."""
        self._seed = seed
        self._links.clear()

    def post(self, sender: MemoryTransport, to: Endpoint, data: bytes) -> None:
        """Send a datagram."""
        self.tally["sent"] += 1
        source = sender.endpoint
        self._carry(source, to, len(data) + self._header, arrives=False)
        rng = self._link(source, to)
        if self._is_lost(source, to, rng):
            self.tally["lost"] += 1
            return
        times = 1
        duplicate = self.conditions.duplicate if self.laws is None else self.laws.duplicate
        if duplicate and rng.random() < duplicate:
            self.tally["doubled"] += 1
            times = 2
        for _ in range(times):
            way = self._way(source, to, rng)
            self.clock.call_later(way, self._arrive, sender, to, data, context=self._context)

    def _arrive(self, sender: MemoryTransport, to: Endpoint, data: bytes) -> None:
        source = sender.endpoint
        port = self._ports.get(to)
        if self.is_cut(source, to) or to in self._dark:
            self.tally["lost"] += 1
        elif port is not None:
            self.received[to] += len(data) + self._header
            if self.heard is not None:
                self.heard[source, to] = self.clock.time()
            self.tally["delivered" if port.arrive(data, source) else "overflowed"] += 1
        else:
            self.tally["refused"] += 1
            if not self.is_cut(to, source):
                sender.refuse(to)

    def _link(self, source: Endpoint, to: Endpoint) -> Stream:
        link = self._links.get((source, to))
        if link is None:
            link = self._links[source, to] = Stream(derive(self._seed, "link", *source, *to))
        return link

    def _is_lost(self, source: Endpoint, to: Endpoint, rng: Stream) -> bool:
        if self.is_cut(source, to):
            return True
        if self.laws is not None:
            return self.laws.lost(rng, self.clock.time(), _number(source), _number(to))
        loss = self.conditions.loss
        return bool(loss) and rng.random() < loss

    def _way(self, source: Endpoint, to: Endpoint, rng: Stream) -> float:
        if self.laws is not None:
            return self.laws.way(rng, self.clock.time(), _number(source), _number(to))
        return self.conditions.way(rng)

    # Connections

    async def connect(self, caller: MemoryTransport, to: Endpoint) -> MemoryConnection:
        """Call; `ConnectionRefusedError` if none listens. Waits for ever if nothing answers."""
        self.connecting += 1
        try:
            return await self._connect(caller, to)
        finally:
            self.connecting -= 1

    async def _connect(self, caller: MemoryTransport, to: Endpoint) -> MemoryConnection:
        here = caller.endpoint
        await self.travel(here, to)
        port = self._ports.get(to)
        if port is None:
            if to in self._dark:
                await self.loop.create_future()
            await self.travel(to, here)
            raise ConnectionRefusedError(f"nobody listens at {to[0]}:{to[1]}")
        self._calls += 1
        source = (here[0], _EPHEMERAL + self._calls % (2**16 - _EPHEMERAL))
        line = MemoryConnection(here, source, to, self.loop.create_future())
        port.lines[line] = None
        self._segments(line, HANDSHAKE, 1)
        try:
            await self.travel(to, here)
        except asyncio.CancelledError:  # the caller stopped waiting
            self.forget(line)
            raise
        return line

    async def travel(self, source: Endpoint, to: Endpoint) -> None:
        """Wait until one part of a connection gets through; lost parts are sent again."""
        rng = self._link(source, to)
        again = RESEND
        while self._is_lost(source, to, rng):
            await sleep(again)
            again = min(RESEND_LONGEST, 2 * again)
        await sleep(self._way(source, to, rng))

    def say(self, line: MemoryConnection, data: bytes) -> None:
        """A frame arrives at the far end of a connection, unless the connection is closed."""
        port = self._ports.get(line.to)
        size = stream_bytes(len(data), self._header)
        if port is None or line not in port.lines:
            self._carry(line.caller, line.to, size, arrives=False)
            return
        self._carry(line.caller, line.to, size)
        self._segments(line, 0, 1)  # confirmed
        port.arrive_frame(line, data)

    def forget(self, line: MemoryConnection) -> None:
        """The caller has closed the connection."""
        self._unplug(line)
        if not line.ended.done():
            line.ended.cancel()

    def hang_up(self, line: MemoryConnection) -> None:
        """The far end closes; its machine tells the caller, repeatedly if messages are lost."""
        self._unplug(line)
        self._tell(line, RESEND, self.clock.time() + FAREWELL)

    def _unplug(self, line: MemoryConnection) -> None:
        port = self._ports.get(line.to)
        if port is not None and line in port.lines:
            del port.lines[line]
            self._segments(line, CLOSING, CLOSING)

    def _tell(self, line: MemoryConnection, again: float, until: float) -> None:
        if line.ended.done() or self.clock.time() > until:
            return
        rng = self._link(line.to, line.caller)
        if self._is_lost(line.to, line.caller, rng):
            following = min(RESEND_LONGEST, 2 * again)
            self.clock.call_later(again, self._tell, line, following, until, context=self._context)
        else:
            way = self._way(line.to, line.caller, rng)
            self.clock.call_later(way, self._told, line, context=self._context)

    def _told(self, line: MemoryConnection) -> None:
        if not line.ended.done():
            line.ended.set_result(None)


def stream_bytes(size: int, header: int) -> int:
    """The bytes of data on a connection, with the headers of its segments.

    >>> stream_bytes(100, HEADER), stream_bytes(2000, HEADER)
    (140, 2080)
    """
    return size + -(-size // SEGMENT) * (header + TCP_MORE)


def _number(endpoint: Endpoint) -> int:
    """The number of a member of a group in memory: its port says it."""
    return endpoint[1] - FIRST_PORT + 1


BUFFER = 212_992  # bytes of datagrams that wait to be read, as in kernels
BACKLOG = 128  # connections that wait to be read


class MemoryTransport:
    """One address on the network: the interface of `net.transport`, without a socket."""

    def __init__(self, network: MemoryNetwork, endpoint: Endpoint) -> None:
        self._network = network
        self._endpoint = endpoint
        self._faults = Faults(derive(0, "faults", *endpoint))
        self._receivers = Receivers()
        self._context = copy_context()
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._waiting = 0  # bytes of datagrams
        self._arrived = 0  # datagrams so far ...
        self._stale = 0  # ... of which this many will not be read any more
        self._unread = 0  # frames of connections
        self._closed = False
        self.lines: dict[MemoryConnection, None] = {}  # accepted
        network.listen(self)

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint that it listens at."""
        return self._endpoint

    @property
    def faults(self) -> Faults:
        """The faults at this port, in addition to those of its network."""
        return self._faults

    @property
    def reaches_all(self) -> bool:
        """Whether the network multicasts."""
        return self._network.multicast

    def attach(self, tag: bytes, receiver: Receiver) -> None:
        """From now on, frames with this group tag go to `receiver`; one receiver per tag."""
        self._receivers.attach(tag, receiver)

    def detach(self, tag: bytes) -> None:
        """Stop that; a tag that is not attached is allowed."""
        self._receivers.detach(tag)

    # Datagrams

    def send(self, to: Endpoint, data: bytes) -> None:
        """Send a datagram."""
        if self._closed:
            return
        for after in self._faults.departures(to):
            if after:
                self._network.clock.call_later(after, self._send, to, data, context=self._context)
            else:
                self._send(to, data)

    def send_all(self, data: bytes) -> None:
        """Send a datagram to all others."""
        if self.reaches_all:
            for other in self._network.everybody():
                if other != self._endpoint:
                    self.send(other, data)

    def _send(self, to: Endpoint, data: bytes) -> None:
        if not self._closed:
            self._network.post(self, to, data)

    def arrive(self, data: bytes, source: Endpoint) -> bool:
        """The network delivers a datagram; returns whether there was room for it."""
        if self._waiting + len(data) > BUFFER:
            return False
        self._waiting += len(data)
        self._arrived += 1
        self._network.loop.call_soon(self._read, data, source, self._arrived, context=self._context)
        return True

    def discard(self) -> None:
        """Drop what has arrived and was not read."""
        self._stale = self._arrived

    def _read(self, data: bytes, source: Endpoint, number: int) -> None:
        self._waiting -= len(data)
        if self._closed or number <= self._stale or not self._faults.hears(source):
            return
        receiver = self._receivers.of(data)
        if receiver is not None:
            receiver.datagram(data, source)

    def refuse(self, to: Endpoint) -> None:
        """The network reports that no transport listens there."""
        self._network.loop.call_soon(self._refused, to, context=self._context)

    def _refused(self, to: Endpoint) -> None:
        if not self._closed and self._faults.hears(to):
            for receiver in self._receivers.all():
                receiver.refused(to)

    # Connections

    def arrive_frame(self, line: MemoryConnection, data: bytes) -> None:
        """The network delivers a frame of a connection."""
        if self._unread >= BACKLOG:
            self._network.hang_up(line)
            return
        self._unread += 1
        self._network.loop.call_soon(self._read_frame, line, data, context=self._context)

    def _read_frame(self, line: MemoryConnection, data: bytes) -> None:
        self._unread -= 1
        if self._closed:
            return
        receiver = self._receivers.of(data)
        if receiver is None or not receiver.frame(data, line.source, Direction.QUESTION):
            self._network.hang_up(line)

    def stream(self, to: Endpoint, data: bytes, hello: bytes = b"") -> None:
        """Send a frame over a connection of its own, after a frame that identifies the sender."""
        if not self._closed:
            self._spawn(self._transfer(to, data, hello))

    async def _transfer(self, to: Endpoint, data: bytes, hello: bytes) -> None:
        if not self._faults.reaches(to):
            return
        with suppress(ConnectionRefusedError, TimeoutError):
            async with asyncio.timeout(TRANSFER):
                line = await self._network.connect(self, to)
                try:
                    await self._network.travel(self._endpoint, to)
                    for frame in filter(None, (hello, data)):
                        self._network.say(line, frame)
                finally:
                    self._network.forget(line)

    def knock(self, to: Endpoint, refused: Callable[[], None]) -> None:
        """Try to connect, and call `refused` if none listens there."""
        if not self._closed:
            self._spawn(self._knock(to, refused))

    async def _knock(self, to: Endpoint, refused: Callable[[], None]) -> None:
        if not self._faults.reaches(to):
            return
        try:
            async with asyncio.timeout(RECONNECT):
                self._network.forget(await self._network.connect(self, to))
        except ConnectionRefusedError:
            refused()
        except TimeoutError:
            pass  # no answer: not known

    def watch(
        self,
        to: Endpoint,
        hello: Callable[[], bytes | None],
        gone: Callable[[bool], None],
        leisure: Callable[[], float],
    ) -> KeptConnection:
        """Keep a connection to an endpoint, and report when its far end is gone."""
        return KeptConnection(self._spawn(keep(partial(self._hold, to, hello), gone, leisure)))

    async def _hold(self, to: Endpoint, hello: Callable[[], bytes | None], within: float) -> float:
        """Connect, wait until the connection ends, and return how long it lasted."""
        if not self._faults.reaches(to):
            raise OSError("cut on purpose")
        async with asyncio.timeout(within):
            line = await self._network.connect(self, to)
        began = self._network.clock.time()
        try:
            first = hello()
            if first is not None:
                await self._network.travel(self._endpoint, to)
                self._network.say(line, first)
            await line.ended
        finally:
            self._network.forget(line)
        return self._network.clock.time() - began

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = self._network.loop.create_task(work, context=self._context.copy())
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
        """The process has ended without a farewell or, if `dark`, its machine is gone."""
        self._closed = True
        self._network.close(self, dark=dark)

"""A network in memory: datagrams and connections between ports of one process.

Everything that networks do to datagrams happens here on request: delay, loss, copies, overtaking,
cuts in one or both directions. Every draw comes from the seed and the link, so that what happens on
one link does not depend on what is sent on another. Nothing here waits for real.

A connection behaves as over TCP: what is lost is sent again, and an idle one notices nothing of a
cut. The machine below a process that was killed still stands: it refuses datagrams and hangs up
connections. A machine that is gone does neither.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Sequence
from contextvars import copy_context
from dataclasses import dataclass
from typing import Protocol

from hustings.core.errors import BadInput
from hustings.core.streams import Stream, derive
from hustings.net.transport import Endpoint

HELD_UP = 3.0  # a datagram that is overtaken takes up to so many delays more
RESEND = 0.2  # seconds until a lost part of a connection is sent again; doubled each time
RESEND_LONGEST = 2.0
FAREWELL = 60.0  # seconds for which the end of a connection is told to a far end that does not hear
_EPHEMERAL = 49_152  # where the numbers begin that callers call from


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
        """How long one datagram takes."""
        low, high = self.bounds
        time = low if low == high else rng.uniform(low, high)
        if self.reorder and rng.random() < self.reorder:
            time += HELD_UP * high * rng.random()
        return time


class Line:
    """One connection, as its caller sees it."""

    __slots__ = ("caller", "ended", "source", "to")

    def __init__(
        self, caller: Endpoint, source: Endpoint, to: Endpoint, ended: asyncio.Future[None]
    ) -> None:
        self.caller = caller  # whose it is
        self.source = source  # the number it was called from
        self.to = to
        self.ended = ended  # once the far end has hung up and that has come through


class Plug(Protocol):
    """What a switchboard asks of a port."""

    lines: dict[Line, None]  # connections that others have to it

    @property
    def endpoint(self) -> Endpoint:
        """Where it listens."""

    def arrive(self, data: bytes, source: Endpoint) -> bool:
        """A datagram is there; whether there was room for it."""

    def arrive_frame(self, line: Line, data: bytes) -> None:
        """A frame is there, over a connection."""

    def refuse(self, to: Endpoint) -> None:
        """Nobody listens where this port sent something."""


class Switchboard:
    """Who listens where, which links are cut, and what is under way."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        seed: int = 0,
        conditions: Conditions | None = None,
        *,
        multicast: bool = False,
    ) -> None:
        """`multicast`: whether one datagram can be sent to everybody."""
        self.loop = loop
        self.conditions = conditions or Conditions()  # may be replaced at any time
        self.multicast = multicast
        self.tally: Counter[str] = Counter()  # of datagrams: sent, delivered, lost, ...
        self._seed = seed
        self._ports: dict[Endpoint, Plug] = {}
        self._dark: dict[Endpoint, None] = {}  # where not even a machine stands
        self._cuts: dict[tuple[Endpoint, Endpoint], None] = {}
        self._links: dict[tuple[Endpoint, Endpoint], Stream] = {}
        self._calls = 0
        self._context = copy_context()  # what is under way belongs to nobody

    # Ports

    def listen(self, port: Plug) -> None:
        """A port opens; a machine that was gone is back."""
        if port.endpoint in self._ports:
            host, number = port.endpoint
            raise BadInput(f"{host}:{number} is in use by another member: choose another port")
        self._ports[port.endpoint] = port
        self._dark.pop(port.endpoint, None)

    def close(self, port: Plug, *, dark: bool = False) -> None:
        """A port is no more: its process has ended or, if `dark`, its machine is gone."""
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
        """Where somebody listens, in the order of opening."""
        return list(self._ports)

    # Cuts

    def cut(self, sender: Endpoint, to: Endpoint) -> None:
        """Nothing gets from one to the other any more; the way back stays as it is."""
        self._cuts[sender, to] = None

    def partition(self, *sides: Sequence[Endpoint]) -> None:
        """Whoever stands on different sides cannot reach each other."""
        for number, side in enumerate(sides):
            for other in sides[:number] + sides[number + 1 :]:
                for sender in side:
                    for to in other:
                        self.cut(sender, to)

    def heal(self) -> None:
        """All cuts are undone."""
        self._cuts.clear()

    def is_cut(self, sender: Endpoint, to: Endpoint) -> bool:
        """Whether a cut stops what one sends to the other."""
        return (sender, to) in self._cuts

    # Datagrams

    def post(self, sender: Plug, to: Endpoint, data: bytes) -> None:
        """A datagram leaves."""
        self.tally["sent"] += 1
        source = sender.endpoint
        rng = self._link(source, to)
        if self._is_lost(source, to, rng):
            self.tally["lost"] += 1
            return
        times = 1
        if self.conditions.duplicate and rng.random() < self.conditions.duplicate:
            self.tally["doubled"] += 1
            times = 2
        for _ in range(times):
            self.loop.call_later(
                self.conditions.way(rng), self._arrive, sender, to, data, context=self._context
            )

    def _arrive(self, sender: Plug, to: Endpoint, data: bytes) -> None:
        source = sender.endpoint
        port = self._ports.get(to)
        if self.is_cut(source, to) or to in self._dark:
            self.tally["lost"] += 1
        elif port is not None:
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
        loss = self.conditions.loss
        return bool(loss) and rng.random() < loss

    # Connections

    async def connect(self, caller: Plug, to: Endpoint) -> Line:
        """Call; `ConnectionRefusedError` if nobody listens. Waits for good if nothing answers."""
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
        line = Line(here, source, to, self.loop.create_future())
        port.lines[line] = None
        try:
            await self.travel(to, here)
        except asyncio.CancelledError:  # the caller has waited long enough
            self.forget(line)
            raise
        return line

    async def travel(self, source: Endpoint, to: Endpoint) -> None:
        """One part of a connection gets through; what is lost is sent again."""
        rng = self._link(source, to)
        again = RESEND
        while self._is_lost(source, to, rng):
            await asyncio.sleep(again)
            again = min(RESEND_LONGEST, 2 * again)
        await asyncio.sleep(self.conditions.way(rng))

    def say(self, line: Line, data: bytes) -> None:
        """A frame arrives at the far end of a connection, unless that is no more."""
        port = self._ports.get(line.to)
        if port is not None and line in port.lines:
            port.arrive_frame(line, data)

    def forget(self, line: Line) -> None:
        """The caller has closed it."""
        self._unplug(line)
        if not line.ended.done():
            line.ended.cancel()

    def hang_up(self, line: Line) -> None:
        """The far end closes; its machine tells the caller, again and again if need be."""
        self._unplug(line)
        self._tell(line, RESEND, self.loop.time() + FAREWELL)

    def _unplug(self, line: Line) -> None:
        port = self._ports.get(line.to)
        if port is not None:
            port.lines.pop(line, None)

    def _tell(self, line: Line, again: float, until: float) -> None:
        if line.ended.done() or self.loop.time() > until:
            return
        rng = self._link(line.to, line.caller)
        if self._is_lost(line.to, line.caller, rng):
            following = min(RESEND_LONGEST, 2 * again)
            self.loop.call_later(again, self._tell, line, following, until, context=self._context)
        else:
            self.loop.call_later(self.conditions.way(rng), self._told, line, context=self._context)

    def _told(self, line: Line) -> None:
        if not line.ended.done():
            line.ended.set_result(None)

"""A transport: where frames go out and come in, and whether the far end is still there.

This file is the interface between members and the network below them, as `core.context` is the
interface between elections and members. `udp` implements it with real sockets. A test may implement
it in another way. A frame may be lost, late, doubled or out of order, and no part is told.

All transports share three parts. `Faults` is a switch for demonstrations and tests: cuts, loss,
copies and delays at one member's own transport, on what leaves it and on what reaches it. It needs
no privilege and is off by default. `Receivers` finds the member that a frame is for. `keep` holds a
connection in order to see it end: a process that is killed cannot say goodbye, but its kernel
closes at once what it had open. So a follower keeps a connection to its leader, and sends nothing
on it after the first frame. When the connection closes, and no process listens there any more, the
leader has ended. The follower knows that without a time-out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from hustings.core.errors import BadInput
from hustings.core.streams import Stream
from hustings.net.clock import sleep
from hustings.net.wire import Direction, tag_of

Endpoint = tuple[str, int]  # a host by number, and a port


class Receiver(Protocol):
    """The member that gets what arrives."""

    def datagram(self, data: bytes, source: Endpoint) -> None:
        """Data came, perhaps a frame; `source` may be forged."""

    def frame(self, data: bytes, source: Endpoint, direction: Direction) -> bool:
        """A frame came over a stream; returns whether it was accepted. Else the stream closes."""

    def head(self, data: bytes, source: Endpoint) -> bool:
        """A frame on a stream begins with `data`; returns whether to wait for the rest."""

    def refused(self, to: Endpoint) -> None:
        """A refusal says that no process listens there. It may be wrong, or forged."""


class Watch(Protocol):
    """A connection that is kept to see it end."""

    def cancel(self) -> None:
        """Stop watching."""


class Transport(Protocol):
    """One address, shared by members of different groups."""

    @property
    def endpoint(self) -> Endpoint:
        """The address where it listens."""

    @property
    def faults(self) -> Faults:
        """The faults that demonstrations and tests switch on here."""

    @property
    def reaches_all(self) -> bool:
        """Whether `send_all` can be used: the network itself multicasts."""

    def attach(self, tag: bytes, receiver: Receiver) -> None:
        """Give frames with this group tag to `receiver` from now on; one receiver per tag."""

    def detach(self, tag: bytes) -> None:
        """Remove the receiver of a tag; the tag may be unknown."""

    def send(self, to: Endpoint, data: bytes) -> None:
        """Send a datagram, if the network has room for it."""

    def send_all(self, data: bytes) -> None:
        """Send a datagram to the multicast address."""

    def discard(self) -> None:
        """Drop data that came and was not read: after a stall a member would take it for news."""

    def stream(self, to: Endpoint, data: bytes, hello: bytes = b"") -> None:
        """Send a frame that no datagram holds, over a connection of its own.

        `hello` is a small frame that goes first: the far end waits for a large frame only on a
        stream whose small one it has accepted.
        """

    def watch(
        self,
        to: Endpoint,
        hello: Callable[[], bytes | None],
        gone: Callable[[bool], None],
        leisure: Callable[[], float],
    ) -> Watch:
        """Keep a connection to an endpoint; `hello` makes the frame that opens it.

        When the connection has closed, `leisure` gives the seconds to wait before the end is
        checked.

        `gone(True)`: the connection was open, has closed, and no process listens there any more, so
        the process has ended. `gone(False)`: the connection broke, and the cause is not known. In
        both cases it is tried again.
        """

    def knock(self, to: Endpoint, refused: Callable[[], None]) -> None:
        """Try to connect; call `refused` if no process listens there, else do nothing."""

    async def close(self) -> None:
        """Stop listening and drop what is under way."""


class Faults:
    """Cuts, loss, copies and delays of one port.

    >>> faults = Faults(seed=1)
    >>> faults.cut([("127.0.0.1", 7400)])
    >>> faults.departures(("127.0.0.1", 7400)), faults.departures(("127.0.0.1", 7401))
    ((), (0.0,))
    >>> faults.heal(); faults.departures(("127.0.0.1", 7400))
    (0.0,)
    """

    __slots__ = ("_deaf_to", "_rng", "_silent_to", "copies", "delay", "jitter", "loss")

    def __init__(self, seed: int = 0) -> None:
        self._rng = Stream(seed)
        self._silent_to: set[tuple[str, int]] = set()  # only looked up, never iterated
        self._deaf_to: set[tuple[str, int]] = set()
        self.loss = 0.0  # probability, of each datagram that leaves
        self.copies = 0.0  # probability that it leaves twice
        self.delay = 0.0  # seconds before it leaves
        self.jitter = 0.0  # additional random seconds, so that datagrams overtake each other

    @property
    def active(self) -> bool:
        """Whether any fault is switched on."""
        return bool(
            self._silent_to or self._deaf_to or self.loss or self.copies or self.delay + self.jitter
        )

    def cut(self, others: Iterable[tuple[str, int]], *, to: bool = True, by: bool = True) -> None:
        """Cut these endpoints off: send nothing to them, hear nothing from them, or both."""
        endpoints = list(others)
        if to:
            self._silent_to.update(endpoints)
        if by:
            self._deaf_to.update(endpoints)

    def heal(self) -> None:
        """Undo all cuts; loss, copies and delays stay as they are."""
        self._silent_to.clear()
        self._deaf_to.clear()

    def departures(self, to: tuple[str, int]) -> tuple[float, ...]:
        """The delays in seconds of the copies of a datagram: none, one or two."""
        if to in self._silent_to:
            return ()
        rng = self._rng
        if self.loss and rng.random() < self.loss:
            return ()
        times = 2 if self.copies and rng.random() < self.copies else 1
        return tuple(
            self.delay + (self.jitter * rng.random() if self.jitter else 0.0) for _ in range(times)
        )

    def reaches(self, to: tuple[str, int]) -> bool:
        """Whether a stream to this endpoint works, in both directions."""
        return to not in self._silent_to and to not in self._deaf_to

    def hears(self, source: tuple[str, int]) -> bool:
        """Whether frames from this endpoint are let in."""
        return source not in self._deaf_to


CONNECT = 2.0  # seconds to open a connection
RECONNECT = 0.25  # the same, when the question is only whether a process is still there
TRANSFER = 10.0  # seconds for one frame to be sent
SHORTEST, LONGEST = 0.5, 30.0  # seconds between two attempts of a watch
_BRIEF = 1.0  # a watch that ends sooner was not wanted: the far end has too many
_CHECKS = 3  # a dying process may close its streams a moment before it stops listening


class KeptConnection:
    """A watch: the task that keeps the connection."""

    __slots__ = ("_task",)

    def __init__(self, task: asyncio.Task[None]) -> None:
        self._task = task

    def cancel(self) -> None:
        """Stop watching."""
        self._task.cancel()


async def keep(
    hold: Callable[[float], Awaitable[float]],
    gone: Callable[[bool], None],
    leisure: Callable[[], float],
) -> None:
    """Keep a connection for ever, and report when its far end has ended.

    `hold` gets the seconds that it may take to connect. It returns when the connection has ended,
    with its duration. `leisure` gives the seconds to wait before an end is checked.
    """
    pause, checks = SHORTEST, 0
    while True:
        try:
            lasted = await hold(RECONNECT if checks else CONNECT)
        except ConnectionRefusedError:
            if checks:
                gone(True)
        except (OSError, TimeoutError, ValueError, TypeError):  # the last two: a malformed address
            if checks:
                gone(False)
        else:
            if lasted >= _BRIEF:
                pause, checks = SHORTEST, 0
            checks += 1
            if checks <= _CHECKS:
                if wait := leisure():
                    await sleep(wait)
                continue  # check whether a process is still there
        checks = 0
        await sleep(pause)
        pause = min(LONGEST, 2 * pause)


class Receivers:
    """The members at one port, by the tags of their groups."""

    __slots__ = ("_by_tag",)

    def __init__(self) -> None:
        self._by_tag: dict[bytes, Receiver] = {}

    def attach(self, tag: bytes, receiver: Receiver) -> None:
        """Register a receiver; one for each tag."""
        if tag in self._by_tag:
            raise BadInput("two members of one group cannot share a port: give each its own")
        self._by_tag[tag] = receiver

    def detach(self, tag: bytes) -> None:
        """Remove a receiver; the tag may be unknown."""
        self._by_tag.pop(tag, None)

    def of(self, data: bytes) -> Receiver | None:
        """The receiver of a frame; an unknown frame goes to any receiver, which counts it."""
        tag = tag_of(data)
        found = None if tag is None else self._by_tag.get(tag)
        return next(iter(self._by_tag.values()), None) if found is None else found

    def all(self) -> list[Receiver]:
        """All receivers."""
        return list(self._by_tag.values())

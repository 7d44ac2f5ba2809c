"""A transport: where frames go out and come in, and whether the far end is still there.

This file is the seam between members and the network below them, as `core.context` is the seam
between elections and members. `udp` puts real sockets behind it; a test may put anything there that
keeps to it. A frame may be lost, late, doubled or out of order, and nobody is told.

All transports share three parts. `Faults` is a switch for demonstrations and tests: cuts, loss,
copies and delays at one member's own transport, on what leaves it and on what reaches it; it needs
no privilege and is off by default. `Receivers` finds the member that a frame is for. `keep` holds a
connection for the sake of its end: a process that is killed cannot say goodbye, but its kernel
closes at once what it had open. So a follower keeps a connection to its leader on which nothing is
sent after the first frame. When it closes, and nobody listens there any more, the leader is gone,
and no time-out had to pass.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from hustings.core.errors import BadInput
from hustings.core.streams import Stream
from hustings.net.wire import Direction, tag_of

Endpoint = tuple[str, int]  # a host by number, and a port


class Receiver(Protocol):
    """What a member does with what arrives."""

    def datagram(self, data: bytes, source: Endpoint) -> None:
        """Something came, perhaps a frame; `source` may be forged."""

    def frame(self, data: bytes, source: Endpoint, direction: Direction) -> bool:
        """A frame came over a stream; whether it was one to accept, else the stream is closed."""

    def head(self, data: bytes, source: Endpoint) -> bool:
        """A frame on a stream begins so; whether the rest of it is worth waiting for."""

    def refused(self, to: Endpoint) -> None:
        """The far kernel says that nobody listens there. It may be wrong, or not be the kernel."""


class Watch(Protocol):
    """A connection that is kept for the sake of its end."""

    def cancel(self) -> None:
        """Watch no longer."""


class Transport(Protocol):
    """One address, shared by members of different groups."""

    @property
    def endpoint(self) -> Endpoint:
        """Where it listens."""

    @property
    def faults(self) -> Faults:
        """What goes wrong here on purpose: in demonstrations and tests."""

    @property
    def reaches_all(self) -> bool:
        """Whether `send_all` can be used: the network itself multicasts."""

    def attach(self, tag: bytes, receiver: Receiver) -> None:
        """From now on frames with this group tag are `receiver`'s; one per tag."""

    def detach(self, tag: bytes) -> None:
        """No longer; a tag that is not attached is fine."""

    def send(self, to: Endpoint, data: bytes) -> None:
        """A datagram, if the network has room for it."""

    def send_all(self, data: bytes) -> None:
        """A datagram to everybody on the multicast address."""

    def discard(self) -> None:
        """Drop what has come and was not read: who slept through it would take it for news."""

    def stream(self, to: Endpoint, data: bytes, hello: bytes = b"") -> None:
        """A frame that no datagram holds, over a connection of its own.

        `hello` is a small frame that goes first: the far end waits for a large one only from whom
        it has accepted a small one.
        """

    def watch(
        self,
        to: Endpoint,
        hello: Callable[[], bytes | None],
        gone: Callable[[bool], None],
        leisure: Callable[[], float],
    ) -> Watch:
        """Keep a connection to an endpoint; `hello` makes the frame that opens it.

        When it has closed, there are so many seconds of `leisure` until that is looked into.

        `gone(True)`: it was open, has closed, and nobody listens there any more: the process has
        ended. `gone(False)`: it broke, and nobody knows why. Either way it is tried again.
        """

    def knock(self, to: Endpoint, refused: Callable[[], None]) -> None:
        """Try to connect, and say so if nobody listens there; else nothing comes of it."""

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
        self._silent_to: set[tuple[str, int]] = set()  # only asked, never walked through
        self._deaf_to: set[tuple[str, int]] = set()
        self.loss = 0.0  # probability, of each datagram that leaves
        self.copies = 0.0  # probability that it leaves twice
        self.delay = 0.0  # seconds before it leaves
        self.jitter = 0.0  # seconds more, at random: overtaking follows

    @property
    def active(self) -> bool:
        """Whether anything goes wrong now."""
        return bool(
            self._silent_to or self._deaf_to or self.loss or self.copies or self.delay + self.jitter
        )

    def cut(self, others: Iterable[tuple[str, int]], *, to: bool = True, by: bool = True) -> None:
        """Nothing goes to these endpoints any more, nothing from them is heard, or both."""
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
        """After how many seconds a datagram leaves: not at all, once, or twice."""
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
        """Whether anything from this endpoint is let in."""
        return source not in self._deaf_to


CONNECT = 2.0  # seconds for a connection to come about
RECONNECT = 0.25  # the same, when the question is only whether anybody is still there
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
        """Watch no longer."""
        self._task.cancel()


async def keep(
    hold: Callable[[float], Awaitable[float]],
    gone: Callable[[bool], None],
    leisure: Callable[[], float],
) -> None:
    """Keep a connection, and say when its far end is no more; for ever.

    `hold` has so many seconds to connect, and returns when the connection has ended: how long it
    lasted. `leisure` tells how many seconds there are before that is looked into.
    """
    pause, checks = SHORTEST, 0
    while True:
        try:
            lasted = await hold(RECONNECT if checks else CONNECT)
        except ConnectionRefusedError:
            if checks:
                gone(True)
        except (OSError, TimeoutError, ValueError, TypeError):  # the last two: no address at all
            if checks:
                gone(False)
        else:
            if lasted >= _BRIEF:
                pause, checks = SHORTEST, 0
            checks += 1
            if checks <= _CHECKS:
                if wait := leisure():
                    await asyncio.sleep(wait)
                continue  # is anybody still there?
        checks = 0
        await asyncio.sleep(pause)
        pause = min(LONGEST, 2 * pause)


class Receivers:
    """The members at one port, by the tags of their groups."""

    __slots__ = ("_by_tag",)

    def __init__(self) -> None:
        self._by_tag: dict[bytes, Receiver] = {}

    def attach(self, tag: bytes, receiver: Receiver) -> None:
        """One for each tag."""
        if tag in self._by_tag:
            raise BadInput("two members of one group cannot share a port: give each its own")
        self._by_tag[tag] = receiver

    def detach(self, tag: bytes) -> None:
        """A tag that is not attached is fine."""
        self._by_tag.pop(tag, None)

    def of(self, data: bytes) -> Receiver | None:
        """Whose frame this is, or any member's to count it if it is nobody's."""
        tag = tag_of(data)
        found = None if tag is None else self._by_tag.get(tag)
        return next(iter(self._by_tag.values()), None) if found is None else found

    def all(self) -> list[Receiver]:
        """All of them."""
        return list(self._by_tag.values())

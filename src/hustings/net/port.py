"""A port: where members' frames go out and come in, and whether the far end still stands.

This file is the seam between members and the network below them, as `core.context` is the one
between elections and members. `udp` puts real sockets behind it; a test may put anything there that
keeps to it. Whatever is sent may be lost, late, doubled or out of order: nobody is told.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from hustings.net.faults import Faults
from hustings.net.wire import Direction

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


class Port(Protocol):
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

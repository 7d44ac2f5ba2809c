"""Strangers: sockets that are no member's, and members that are made to say anything."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from hustings.core.messages import Message
from hustings.net.member import Member
from hustings.net.presence import PresenceCheck
from hustings.net.transport import Endpoint
from hustings.net.wire import Direction, Wire


@contextmanager
def datagrams() -> Iterator[socket.socket]:
    """A socket to send datagrams from."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.bind(("127.0.0.1", 0))
        yield stranger


def forged(like: Member, me: int, incarnation: int = 1) -> Wire:
    """A wire that speaks the same dialect with the same keys as a member, under another id."""
    wire = like.node.filter.wire
    return Wire(wire.group, me, incarnation, wire.codec, wire.ring, wire.limits)


def frame(wire: Wire, message: Message, to: int | None = None) -> bytes:
    """A frame as a datagram carries it."""
    made = wire.write(message, to)
    assert not isinstance(made, str)
    assert made.direction is Direction.DATAGRAM
    return made.data


@contextmanager
def believed() -> Iterator[None]:
    """Strangers that have the key answer each question, as members do: they are heard at once."""
    with patch.object(PresenceCheck, "admits", lambda presence, got, source: True):
        yield


class Tap:
    """Writes down what a member's port sends, and passes it on; for the rest of the port's life."""

    def __init__(self, member: Member) -> None:
        self.sent: list[tuple[Endpoint, bytes]] = []
        self.streamed: list[tuple[Endpoint, bytes]] = []
        port = member.node.transport
        self._send, self._stream = port.send, port.stream
        patch.object(port, "send", self.send).start()
        patch.object(port, "stream", self.stream).start()

    def send(self, to: Endpoint, data: bytes) -> None:
        self.sent.append((to, data))
        self._send(to, data)

    def stream(self, to: Endpoint, data: bytes, hello: bytes = b"") -> None:
        self.streamed.append((to, data))
        self._stream(to, data, hello)

"""A channel between the demo and a member's process; each message is a line with a JSON object.

Neither end ever waits for the other. What the system has no room for stays here and is sent with
the next message. This happens, because the demo pauses processes on purpose.
"""

from __future__ import annotations

import socket

import msgspec

_CHUNK = 65_536
_ROOM = 1_000_000  # bytes that may wait; beyond this, the other end is given up

Endpoint = tuple[str, int]


# Orders of the demo


class CutOrder(msgspec.Struct, frozen=True, tag="cut"):
    """Neither send to these endpoints nor hear them."""

    endpoints: tuple[Endpoint, ...]


class HealOrder(msgspec.Struct, frozen=True, tag="heal"):
    """Remove every cut."""


class HandOver(msgspec.Struct, frozen=True, tag="hand over"):
    """Let another member lead."""

    to: str


class LeaveOrder(msgspec.Struct, frozen=True, tag="leave"):
    """Leave the group with a farewell, and end."""


Order = CutOrder | HealOrder | HandOver | LeaveOrder


# Reports of a member; times are by the clock that all processes of a machine share


class Opened(msgspec.Struct, frozen=True, tag="opened"):
    """The member takes part."""

    at: float
    endpoint: Endpoint


class FollowingReport(msgspec.Struct, frozen=True, tag="following"):
    """The member takes another member for the leader than before, or none."""

    at: float
    leader: str  # empty: it knows none
    term: int


class FiguresReport(msgspec.Struct, frozen=True, tag="figures"):
    """Counts since the member joined."""

    at: float
    sent: int  # messages, one for each receiver
    knows: int  # members, including itself


class RefusedReport(msgspec.Struct, frozen=True, tag="refused"):
    """An order could not be carried out."""

    sentence: str


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The member cannot go on, and ends."""

    sentence: str


Report = Opened | FollowingReport | FiguresReport | RefusedReport | Failed

_ENCODER = msgspec.json.Encoder()
_ORDERS: msgspec.json.Decoder[Order] = msgspec.json.Decoder(Order)
_REPORTS: msgspec.json.Decoder[Report] = msgspec.json.Decoder(Report)


class Channel:
    """One end of a channel.

    >>> demo, member = pair()
    >>> demo.say(HandOver("m2")); member.say(RefusedReport("why should I"))
    >>> member.orders(), demo.reports()
    ([HandOver(to='m2')], [RefusedReport(sentence='why should I')])
    >>> demo.close(); member.orders(), member.ended
    ([], True)
    >>> member.close()
    """

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._socket = end
        self._out = bytearray()
        self._in = bytearray()
        self.ended = False  # the other end is closed, so this one has ended too

    def fileno(self) -> int:
        """For a caller that waits until there is something to read."""
        return self._socket.fileno()

    def say(self, what: Order | Report) -> None:
        """Send a message, or keep it until there is room."""
        self._out += _ENCODER.encode(what) + b"\n"
        self.flush()

    def flush(self) -> None:
        """Send what could not be sent before."""
        try:
            while self._out and not self.ended:
                del self._out[: self._socket.send(self._out)]
        except BlockingIOError:
            self.ended = len(self._out) > _ROOM
        except OSError:
            self.ended = True

    def orders(self) -> list[Order]:
        """The orders that have arrived."""
        return [_ORDERS.decode(line) for line in self._lines()]

    def reports(self) -> list[Report]:
        """The reports that have arrived."""
        return [_REPORTS.decode(line) for line in self._lines()]

    def close(self) -> None:
        """Close this end."""
        self.ended = True
        self._socket.close()

    def _lines(self) -> list[bytes]:
        try:
            while not self.ended:
                got = self._socket.recv(_CHUNK)
                self._in += got
                self.ended = not got
        except BlockingIOError:
            pass
        except OSError:
            self.ended = True
        *whole, rest = self._in.split(b"\n")
        self._in = rest
        return [bytes(line) for line in whole]


def pair() -> tuple[Channel, Channel]:
    """Both ends of a new channel."""
    one, other = socket.socketpair()
    return Channel(one), Channel(other)

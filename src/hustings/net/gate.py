"""The gate: all that leaves a member and all that reaches it passes here and is accounted for.

Anything that arrives yields a message or `None` and one more rejection counted; nothing else.
"""

from __future__ import annotations

from hustings.core.choice import MemberId
from hustings.core.messages import Message
from hustings.net.limits import Counters, Rates, Reason
from hustings.net.replay import Replays
from hustings.net.wire import Direction, Frame, Received, Wire


class Gate:
    """A wire with its limits, its memory of what came, and its counters."""

    __slots__ = ("_rates", "_replays", "counters", "wire")

    def __init__(self, wire: Wire, counters: Counters | None = None) -> None:
        limits = wire.limits
        known = 2 * limits.members  # those who left are remembered for a while
        self.wire = wire
        self.counters = Counters() if counters is None else counters
        self._rates = Rates(limits.rate, limits.burst, known)
        self._replays = Replays(limits.window, known)

    def outgoing(
        self,
        message: Message,
        to: MemberId | None = None,
        direction: Direction = Direction.DATAGRAM,
    ) -> Frame | None:
        """A frame to send, on the way it says; none if no frame can hold the message."""
        frame = self.wire.write(message, to, direction)
        if isinstance(frame, Reason):
            self.counters.count(frame)
            return None
        return frame

    def incoming(self, data: bytes, direction: Direction, now: float) -> Received | None:
        """A message to handle, once; `now` in seconds, on any clock that does not run back.

        The rate is a member's and is asked last. Addresses can be forged and frames played again:
        were either counted, who has no key could use up the rate of one who has.
        """
        got = self.wire.read(data, direction)
        if isinstance(got, Reason):
            self.counters.count(got)
            return None
        before = self._replays.forgotten
        if reason := self._replays.check(got.sender, got.incarnation, got.number):
            self.counters.count(reason)
            return None
        self.counters.count(Reason.SENDERS_FORGOTTEN, self._replays.forgotten - before)
        if not self._rates.allow(got.sender, now):
            self.counters.count(Reason.RATE)
            return None
        return got

    def forget(self, member: MemberId) -> None:
        """A member is gone for good: whoever comes under its id begins anew."""
        self._replays.forget(member)

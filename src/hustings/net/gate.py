"""The gate: all that leaves a member and all that reaches it passes here and is accounted for.

Anything that arrives yields a message or `None` and one more rejection counted; nothing else.
"""

from __future__ import annotations

from collections.abc import Callable

from hustings.core.choice import MemberId
from hustings.core.messages import Message
from hustings.net.limits import Counters, Rates, Reason
from hustings.net.replay import Replays
from hustings.net.wire import Direction, Frame, Received, Wire


class Gate:
    """A wire with its limits, its memory of what came, and its counters."""

    __slots__ = ("_rates", "_replays", "counters", "refused", "unheard", "wire")

    def __init__(self, wire: Wire, counters: Counters | None = None) -> None:
        limits = wire.limits
        known = 2 * limits.members  # those who left are remembered for a while
        self.wire = wire
        self.counters = Counters() if counters is None else counters
        self.refused: Reason | None = None  # why what came last was
        self.unheard: Received | None = None  # and what it was, if it could be read
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

    def incoming(
        self,
        data: bytes,
        direction: Direction,
        now: float,
        doubtful: Callable[[Received], bool] | None = None,
    ) -> Received | None:
        """A message to handle, once; `now` in seconds, on any clock that does not run back.

        What is `doubtful` is handed out and not noted: another life of its sender may have to be
        heard first. `admit` notes it later.
        """
        got = self.wire.read(data, direction)
        if isinstance(got, Reason):
            self._refuse(got)
            return None
        if doubtful is not None and doubtful(got):
            return got
        return got if self.admit(got, now) else None

    def admit(self, got: Received, now: float) -> bool:
        """Note what was read; whether it is new and within its sender's rate.

        The rate is a member's and is asked last. Addresses can be forged and frames played again:
        were either counted, who has no key could use up the rate of one who has.
        """
        before = self._replays.forgotten
        if reason := self._replays.check(got.sender, got.incarnation, got.number):
            self._refuse(reason, got)
            return False
        if self._replays.forgotten > before:
            self.counters.count(Reason.SENDERS_FORGOTTEN, self._replays.forgotten - before)
        if not self._rates.allow(got.sender, now):
            self._refuse(Reason.RATE, got)
            return False
        return True

    def life(self, member: MemberId) -> int:
        """The newest life in which a member was heard."""
        return self._replays.life(member)

    def _refuse(self, reason: Reason, got: Received | None = None) -> None:
        self.refused, self.unheard = reason, got
        self.counters.count(reason)

    def forget(self, member: MemberId) -> None:
        """A member is gone for good: whoever comes under its id begins anew."""
        self._replays.forget(member)

"""The gate: all that leaves a member and all that reaches it passes here and is accounted for.

Anything that arrives yields a message or `None` and one more rejection counted; nothing else.

A probe and its answer are heard whatever their number: by them a member that lost count of a sender
finds it again. So is what members say of their configuration, and what is in doubt. Who plays these
again gets one more answer, or none, and moves nothing. They have a rate of their own: whoever plays
what it has recorded must not use up that of the sender.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from hustings.core.choice import MemberId
from hustings.core.messages import Message
from hustings.net.courtesy import ConfigMsg, PresentMsg, ProbeMsg
from hustings.net.limits import Counters, Rates, Reason
from hustings.net.plausible import Plausible, bounds
from hustings.net.replay import Replays
from hustings.net.wire import Direction, Frame, Received, Wire

_LIVES = 1024  # that may begin in a millisecond
UNNUMBERED = (ProbeMsg, PresentMsg, ConfigMsg)  # what is heard whatever its number


class Gate:
    """A wire with its limits, its memory of what came, and its counters."""

    __slots__ = (
        "_date",
        "_rates",
        "_replays",
        "_unnumbered",
        "counters",
        "implies",
        "plausible",
        "refused",
        "unheard",
        "wire",
    )

    def __init__(
        self,
        wire: Wire,
        counters: Counters | None = None,
        date: Callable[[], float] = time.time,
    ) -> None:
        """`date` is in seconds since 1970."""
        limits = wire.limits
        known = 2 * limits.members  # those who left are remembered for a while
        self.wire = wire
        self.counters = Counters() if counters is None else counters
        self.refused: Reason | None = None  # why what came last was
        self.unheard: Received | None = None  # and what it was, if it could be read
        self._rates = Rates(limits.rate, limits.burst, known)
        self._unnumbered = Rates(limits.rate, limits.burst, known)
        self._replays = Replays(limits.replay_window, known)
        self.plausible = Plausible(wire.dialect.kinds)
        self._date = date
        # The term that an election would reckon from a message; as its host knows.
        self.implies: Callable[[Message], int] = lambda message: 0

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
        self.plausible.said(message, self.implies(message))
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
            self._refuse(got, self.wire.namesake if got is Reason.DUPLICATE_NAME else None)
            return None
        if got.incarnation > bounds(self._date(), _LIVES).end:
            self._refuse(Reason.FUTURE_INCARNATION, got)
            return None
        if isinstance(got.message, UNNUMBERED) or (doubtful is not None and doubtful(got)):
            return got if self._is_within(self._unnumbered, got, now) else None
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
        if not self._is_within(self._rates, got, now):
            return False
        if reason := self._disbelieve(got.sender, got.message, now):
            self._refuse(reason, got)
            return False
        return True

    def _disbelieve(self, sender: MemberId, message: Message, now: float) -> Reason | None:
        implied = self.implies(message)
        return self.plausible.refuses(sender, message, self._date(), now, implied)

    def _is_within(self, rates: Rates, got: Received, now: float) -> bool:
        if rates.allow(got.sender, now):
            return True
        self._refuse(Reason.RATE, got)
        return False

    def leaps(self, got: Received) -> bool:
        """Whether a frame would move all that is known of its sender's numbers."""
        return self._replays.leaps(got.sender, got.incarnation, got.number)

    def confirm(self, got: Received) -> None:
        """The sender has proven that this is its life and its number now."""
        self._replays.confirm(got.sender, got.incarnation, got.number)

    def lost_count(self, got: Received) -> bool:
        """Whether so many frames of a sender were refused in a row that it should be asked."""
        return self._replays.lost_count(got.sender)

    def credible(self, sender: MemberId, message: Message, now: float) -> bool:
        """Whether what somebody else passed on of a sender is believed; else it is counted."""
        reason = self._disbelieve(sender, message, now)
        if reason is not None:
            self._refuse(reason)
        return reason is None

    @property
    def latest(self) -> tuple[int, int]:
        """The latest incarnation and the highest counter that anybody can have by now."""
        date = self._date()
        return bounds(date, _LIVES).end, bounds(date, 1).end

    def life(self, member: MemberId) -> int:
        """The newest life in which a member was heard."""
        return self._replays.life(member)

    def _refuse(self, reason: Reason, got: Received | None = None) -> None:
        self.refused, self.unheard = reason, got
        self.counters.count(reason)

    def forget(self, member: MemberId) -> None:
        """A member is gone for good: whoever comes under its id begins anew."""
        self._replays.forget(member)

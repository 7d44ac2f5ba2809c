"""The filter: every frame that leaves or reaches a member passes here and is counted.

Each arriving frame yields a message, or `None` and one more counted rejection; nothing else
happens.

A probe and its answer are heard whatever their number is: through them a member that lost count of
a sender finds the count again. The same holds for configuration messages and for frames in doubt.
An attacker that replays such a frame gets one more answer, or none, and changes no state. Where
their numbers are not new, these frames have a rate of their own. So an attacker that replays
recorded frames cannot use up the rate of their sender. The answer to a probe has no rate: one that
was not asked for is dropped at once, and one that was asked for must always be heard.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from hustings.core.choice import MemberId
from hustings.core.messages import Message
from hustings.net.control_messages import ConfigMsg, ProbeMsg, ProbeReplyMsg
from hustings.net.limits import Counters, Rates, Reason
from hustings.net.validation import NumberBounds, bounds
from hustings.net.wire import Direction, Frame, Received, Wire

_INCARNATIONS = 1024  # incarnations that may begin in a millisecond
UNNUMBERED = (ProbeMsg, ProbeReplyMsg, ConfigMsg)  # heard whatever their number is


class FrameFilter:
    """A wire with its limits, its replay protection, and its counters."""

    __slots__ = (
        "_date",
        "_rates",
        "_replays",
        "_unnumbered",
        "counters",
        "implies",
        "number_bounds",
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
        known = 2 * limits.members  # members that left are remembered for a while
        self.wire = wire
        self.counters = Counters() if counters is None else counters
        self.refused: Reason | None = None  # why the last frame was refused
        self.unheard: Received | None = None  # the refused message, if it could be read
        self._rates = Rates(limits.rate, limits.burst, known)
        self._unnumbered = Rates(limits.rate, limits.burst, known)
        self._replays = ReplayProtection(limits.replay_window, known)
        self.number_bounds = NumberBounds(wire.codec.kinds)
        self._date = date
        # The term that an election would derive from a message; the node sets this.
        self.implies: Callable[[Message], int] = lambda message: 0

    def outgoing(
        self,
        message: Message,
        to: MemberId | None = None,
        direction: Direction = Direction.DATAGRAM,
    ) -> Frame | None:
        """A frame to send, in the direction that it says; None if no frame can hold the message."""
        frame = self.wire.write(message, to, direction)
        if isinstance(frame, Reason):
            self.counters.count(frame)
            return None
        self.number_bounds.said(message, self.implies(message))
        return frame

    def incoming(
        self,
        data: bytes,
        direction: Direction,
        now: float,
        doubtful: Callable[[Received], bool] | None = None,
    ) -> Received | None:
        """The message to handle, at most once; `now` in seconds, on a clock that does not run back.

        A `doubtful` frame is returned and not noted: another incarnation of its sender may have to
        be heard first. `admit` notes it later.
        """
        got = self.wire.read(data, direction)
        if isinstance(got, Reason):
            self._refuse(got, self.wire.duplicate if got is Reason.DUPLICATE_NAME else None)
            return None
        if got.incarnation > bounds(self._date(), _INCARNATIONS).end:
            self._refuse(Reason.FUTURE_INCARNATION, got)
            return None
        if isinstance(got.message, ProbeReplyMsg):
            return got
        if isinstance(got.message, UNNUMBERED):
            new = not self.leaps(got) and self._replays.notes(
                got.sender, got.incarnation, got.number
            )
            rates = self._rates if new else self._unnumbered
            return got if self._is_within(rates, got, now) else None
        if doubtful is not None and doubtful(got):
            return got if self._is_within(self._unnumbered, got, now) else None
        return got if self.admit(got, now) else None

    def admit(self, got: Received, now: float) -> bool:
        """Note a frame that was read; returns whether it is new and within its sender's rate.

        The rate is counted for each member, and it is checked last. Addresses can be forged, and
        frames can be replayed. If either counted, an attacker without a key could use up the rate
        of a member.
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
        return self.number_bounds.refuses(sender, message, self._date(), now, implied)

    def _is_within(self, rates: Rates, got: Received, now: float) -> bool:
        if rates.allow(got.sender, now):
            return True
        self._refuse(Reason.RATE, got)
        return False

    def leaps(self, got: Received) -> bool:
        """Whether a frame would invalidate all that is known of its sender's numbers."""
        return self._replays.leaps(got.sender, got.incarnation, got.number)

    def confirm(self, got: Received) -> None:
        """The sender has proven that this is its present incarnation and number."""
        self._replays.confirm(got.sender, got.incarnation, got.number)

    def note(self, got: Received) -> None:
        """The sender has said its number: lower ones are old from now on."""
        self._replays.notes(got.sender, got.incarnation, got.number)

    def lost_count(self, got: Received) -> bool:
        """Whether enough frames in a row were refused to ask the sender for its number."""
        return self._replays.lost_count(got.sender)

    def credible(self, sender: MemberId, message: Message, now: float) -> bool:
        """Whether to believe a sender's message that another member passed on; counts a refusal."""
        reason = self._disbelieve(sender, message, now)
        if reason is not None:
            self._refuse(reason)
        return reason is None

    @property
    def latest(self) -> tuple[int, int]:
        """The latest incarnation and the highest counter that any member can have by now."""
        date = self._date()
        return bounds(date, _INCARNATIONS).end, bounds(date, 1).end

    def incarnation(self, member: MemberId) -> int:
        """The newest incarnation in which a member was heard."""
        return self._replays.incarnation(member)

    def _refuse(self, reason: Reason, got: Received | None = None) -> None:
        self.refused, self.unheard = reason, got
        self.counters.count(reason)

    def forget(self, member: MemberId) -> None:
        """Forget a member that is gone for good: the next one under its id begins anew."""
        self._replays.forget(member)


LEAP = 1 << 16  # frames of a sender that may be lost in a row
_REFUSED = 4  # frames of a sender refused in a row, after which it is asked for its number


class ReplayProtection:
    """The frame numbers that were seen of every sender.

    >>> replays = ReplayProtection(window=64, most=100)
    >>> [replays.check(7, 1, number) for number in (1, 3, 2)]
    [None, None, None]
    >>> replays.check(7, 1, 2).value, replays.check(7, 2, 1), replays.check(7, 1, 4).value
    ('replayed', None, 'old-incarnation')
    """

    __slots__ = ("_mask", "_most", "_refused", "_seen", "_window", "forgotten")

    def __init__(self, window: int, most: int) -> None:
        self._window = window
        self._mask = (1 << window) - 1
        self._most = most
        # Incarnation, highest number, and a bit for each number below; longest silent first.
        self._seen: dict[MemberId, tuple[int, int, int]] = {}
        self._refused: dict[MemberId, int] = {}  # refused frames in a row
        self.forgotten = 0  # senders that were forgotten to make room

    def __len__(self) -> int:
        return len(self._seen)

    def check(self, sender: MemberId, incarnation: int, number: int) -> Reason | None:
        """Why this frame is refused; None: it is accepted and remembered.

        Call this last, for frames that pass all other checks: a forged frame must leave no mark.
        """
        reason = self._check(sender, incarnation, number)
        if reason is not None:
            self._refused[sender] = self._refused.get(sender, 0) + 1
        elif self._refused:
            self._refused.pop(sender, None)
        return reason

    def notes(self, sender: MemberId, incarnation: int, number: int) -> bool:
        """Remember a frame that is heard in any case; returns whether it is new."""
        return self._check(sender, incarnation, number) is None

    def leaps(self, sender: MemberId, incarnation: int, number: int) -> bool:
        """Whether a frame is of a later incarnation, or far ahead of all that came."""
        known = self._seen.get(sender)
        if known is None:
            return False
        newest, highest, _ = known
        return incarnation > newest or (incarnation == newest and number - highest > LEAP)

    def lost_count(self, sender: MemberId) -> bool:
        """Whether many frames of a sender were refused in a row."""
        return self._refused.get(sender, 0) >= _REFUSED

    def confirm(self, sender: MemberId, incarnation: int, number: int) -> None:
        """Begin anew at the number that the sender says; everything before it counts as seen.

        Nothing changes if the number is the expected one.
        """
        lost = self.lost_count(sender)
        self._refused.pop(sender, None)
        newest, highest, _ = self._seen.get(sender, (0, 0, 0))
        if (incarnation, number) > (newest, highest):
            self._check(sender, incarnation, number)
        elif lost or incarnation < newest:
            self._remember(sender, incarnation, number, self._mask)

    def _check(self, sender: MemberId, incarnation: int, number: int) -> Reason | None:
        newest, highest, bits = self._seen.get(sender, (0, 0, 0))
        if incarnation < newest:
            return Reason.OLD_INCARNATION
        if incarnation > newest:
            self._remember(sender, incarnation, number, 1)
            return None
        ahead = number - highest
        if ahead > 0:
            # Beyond the window no old bit is left, and a shift by that much could be huge.
            kept = (bits << ahead) & self._mask if ahead < self._window else 0
            self._remember(sender, incarnation, number, kept | 1)
            return None
        if -ahead >= self._window:
            return Reason.TOO_LATE
        bit = 1 << -ahead
        if bits & bit:
            return Reason.REPLAYED
        self._remember(sender, incarnation, highest, bits | bit)
        return None

    def incarnation(self, sender: MemberId) -> int:
        """The newest incarnation in which a sender was heard; 0 for an unknown sender."""
        return self._seen.get(sender, (0, 0, 0))[0]

    def forget(self, sender: MemberId) -> None:
        """Forget a sender, since its id may have another owner from now on; it may be unknown."""
        self._seen.pop(sender, None)
        self._refused.pop(sender, None)

    def _remember(self, sender: MemberId, incarnation: int, highest: int, bits: int) -> None:
        if self._seen.pop(sender, None) is None and len(self._seen) >= self._most:
            longest = next(iter(self._seen))
            del self._seen[longest]
            self._refused.pop(longest, None)
            self.forgotten += 1
        self._seen[sender] = (incarnation, highest, bits)

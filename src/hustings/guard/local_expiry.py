"""How long a record has not changed that its holder keeps rewriting, by the observer's own clock.

Some engines keep no leases. There a record names the holder and the time after each renewal, and
every renewal writes a new mark. An observer that sees the same mark for that time, by one clock,
knows that the lease is over: the mark was made before the observer first saw it. The observer never
reads a time that another process wrote. So wall clocks do not matter.

Marks are random where the engine has no version that only grows. A server that goes back to an
older state must not show a mark again that an observer has seen before.
"""

from __future__ import annotations

import secrets
from collections.abc import Hashable

ATTEMPTS = 3  # to ask, if a lease ends while the question is under way
LOOKS = 3  # looks during the time of a held lease, although no renewal was announced

_MARK_BITS = 62


def new_mark() -> str:
    """A mark that no other write has: a number other than 0."""
    return str(1 + secrets.randbits(_MARK_BITS))


class ExpiryObserver:
    """The mark that was seen last, and when it was first seen."""

    def __init__(self) -> None:
        self._mark: Hashable = None
        self._since = 0.0

    def remaining(self, mark: Hashable, ttl: float, now: float) -> float:
        """For how long its writer may still act, at the most. `now` is after the mark was read.

        >>> seen = ExpiryObserver()
        >>> seen.remaining("a", 5.0, now=100.0), seen.remaining("a", 5.0, now=103.0)
        (5.0, 2.0)
        >>> seen.remaining("b", 5.0, now=104.0)
        5.0
        """
        if mark != self._mark:
            self._mark, self._since = mark, now
        return self._since + ttl - now


class LocalExpiry:
    """What one guard knows of a lease that only observers measure.

    The engine only compares marks. A member that names the mark whose time is over takes the lease,
    if the record still has that mark.
    """

    def __init__(self) -> None:
        self._unchanged = ExpiryObserver()
        self._mark = ""  # the mark seen last, with its token and its time
        self._token = 0
        self._ttl = 0.0
        self._mine = ""  # the mark that this guard wrote last
        self._covered = 0.0  # until when the time written with it lasts, counted from the question

    def saw(self, mark: str, token: int, ttl: float, now: float) -> float:
        """Note a record that was read. Return for how long it still counts."""
        self._mark, self._token, self._ttl = mark, token, ttl
        return self._unchanged.remaining(mark, ttl, now)

    def wrote(self, mark: str, token: int, ttl: float, sent: float, now: float) -> None:
        """Note that this guard's write has arrived. Its time starts now, not when it is read."""
        self._mine, self._covered = mark, sent + ttl
        self.saw(mark, token, ttl, now)

    def ended(self, now: float) -> str:
        """The mark whose time is over, or "".

        >>> lease = LocalExpiry()
        >>> lease.saw("7", token=1, ttl=5.0, now=100.0)
        5.0
        >>> lease.ended(104.0), lease.ended(105.0)
        ('', '7')
        """
        over = self._unchanged.remaining(self._mark, self._ttl, now) <= 0
        return self._mark if over else ""

    def has_run_out(self, token: int, now: float) -> bool:
        """Whether this guard has seen the end of the lease with this token."""
        return token == self._token and self.ended(now) != ""

    def promised(self, now: float) -> tuple[str, float]:
        """This guard's last mark, and for how long an earlier promise may still last.

        A write that asks for less time must not end an earlier promise. A writer that finds another
        mark than this one must keep the time in the record.
        """
        return self._mine, max(self._covered - now, 0.0)

"""How long a record that its holder keeps rewriting has stood still, by the observer's own clock.

Where an engine keeps no leases, a record says who holds it and for how long after each renewal, and
every renewal gives it a new mark. An observer that sees the same mark for that long, by one clock,
knows that the lease is over: the mark was made before it was first seen. Times that another process
wrote down are never read, so wall clocks do not matter.

Marks are drawn at random where the engine has no version that only grows: a server that goes back
to an older state must not show a mark again that an observer has seen before.
"""

from __future__ import annotations

import secrets
from collections.abc import Hashable

ATTEMPTS = 3  # to ask, if a lease ends while the question is under way
LOOKS = 3  # at a lease that somebody holds, in its time, although no renewal was announced

_MARK_BITS = 62


def new_mark() -> str:
    """A mark that no other write has: a number that is not 0."""
    return str(1 + secrets.randbits(_MARK_BITS))


class ExpiryObserver:
    """The mark seen last, and since when."""

    def __init__(self) -> None:
        self._mark: Hashable = None
        self._since = 0.0

    def remaining(self, mark: Hashable, ttl: float, now: float) -> float:
        """For how long yet its writer may act, at the most; `now` is after the mark was read.

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

    The engine compares marks and nothing else: who says the mark whose time is over takes the
    lease, if that mark is still there.
    """

    def __init__(self) -> None:
        self._unchanged = ExpiryObserver()
        self._mark = ""  # seen last, with its token and its time
        self._token = 0
        self._ttl = 0.0
        self._mine = ""  # written last by this guard
        self._covered = 0.0  # until when the time written with it lasts, counted from the question

    def saw(self, mark: str, token: int, ttl: float, now: float) -> float:
        """A record was read; for how long it counts yet."""
        self._mark, self._token, self._ttl = mark, token, ttl
        return self._unchanged.remaining(mark, ttl, now)

    def wrote(self, mark: str, token: int, ttl: float, sent: float, now: float) -> None:
        """This guard's write has arrived; it counts from now on, whenever it is read again."""
        self._mine, self._covered = mark, sent + ttl
        self.saw(mark, token, ttl, now)

    def ended(self, now: float) -> str:
        """The mark whose time is over, or nothing.

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
        """This guard's last mark, and for how long yet a promise made before may last.

        A write that asks for less must not end what was promised before. Who finds another mark
        than this one has to leave the time that stands there.
        """
        return self._mine, max(self._covered - now, 0.0)

"""How long a record that its holder keeps rewriting has stood still, by the observer's own clock.

Where an engine keeps no leases, a record says who holds and for how long after each renewal, and
every renewal gives it a new mark. Whoever sees the same mark for that long, on one and the same
clock, knows that the holder's time is over: the mark was made before it was first seen. Times that
somebody else wrote down are never read, so wall clocks do not matter.
"""

from __future__ import annotations

from collections.abc import Hashable


class Unchanged:
    """The mark seen last, and since when."""

    def __init__(self) -> None:
        self._mark: Hashable = None
        self._since = 0.0

    def remaining(self, mark: Hashable, ttl: float, now: float) -> float:
        """For how long yet its writer may act, at the most; `now` is after the mark was read.

        >>> seen = Unchanged()
        >>> seen.remaining("a", 5.0, now=100.0), seen.remaining("a", 5.0, now=103.0)
        (5.0, 2.0)
        >>> seen.remaining("b", 5.0, now=104.0)
        5.0
        """
        if mark != self._mark:
            self._mark, self._since = mark, now
        return self._since + ttl - now

"""When a process ran, and when it stood still although a timer was due.

All members in one process share one detector. A member that waits while other members have their
turn was not stalled. When the whole process stood still, all members were stalled, and each of them
is told.
"""

from __future__ import annotations

import asyncio
from collections import deque
from math import inf
from weakref import WeakKeyDictionary

from hustings.net.clock import clock_of

_LAPSE = 0.1  # seconds without a beat that are recorded: shorter than any pause
_LAPSES = 16


class StallDetector:
    """Gets a beat whenever a member of the process runs.

    >>> detector = StallDetector(10.0)
    >>> detector.beat(10.05), detector.beat(14.0)
    (None, None)
    >>> detector.away(ran=10.02, due=11.0), detector.away(ran=14.0, due=11.0)
    (3.0, 0.0)
    """

    __slots__ = ("_at", "_lapses")

    def __init__(self, now: float) -> None:
        self._at = now
        self._lapses: deque[tuple[float, float]] = deque(maxlen=_LAPSES)

    def beat(self, now: float) -> None:
        """A member runs now."""
        if now - self._at > _LAPSE:
            self._lapses.append((self._at, now))
        self._at = now

    def lapse(self, ran: float) -> float:
        """The longest stall of the process since `ran`, whatever was due."""
        if not self._lapses or self._lapses[-1][1] <= ran:
            return 0.0
        return max(end - max(start, ran) for start, end in self._lapses)

    def away(self, ran: float, due: float) -> float:
        """The longest stall of the process since `ran`, counted from when a timer was `due`."""
        longest = 0.0
        if due < inf:
            for start, end in self._lapses:
                if end > ran:
                    longest = max(longest, end - max(start, due, ran))
        return longest


_detectors: WeakKeyDictionary[asyncio.AbstractEventLoop, StallDetector] = WeakKeyDictionary()


def stall_detector_of(loop: asyncio.AbstractEventLoop) -> StallDetector:
    """The detector that all members on one event loop share."""
    detector = _detectors.get(loop)
    if detector is None:
        detector = _detectors[loop] = StallDetector(clock_of(loop).time())
    return detector

"""When a process ran, and when it stood still although a timer was due.

All members in one process share one detector. A member that waits while other members have their
turn was not stalled. When the whole process stood still, all members were stalled, and each of them
is told.

While a survey asks, the process is watched closely: a timer fires every `TICK`, and how late it
fires says for how long the process stood still. Nobody asks otherwise, and then there is no timer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from math import inf
from weakref import WeakKeyDictionary

from hustings.net.clock import Clock, clock_of

_LAPSE = 0.1  # seconds without a beat that are recorded: shorter than any pause
_LAPSES = 16
TICK = 0.02  # seconds between two looks of a survey
LEAST_STALL = 0.05  # seconds: less may be the machine's other work
_KEPT = 16  # of the latest stalls


class StallDetector:
    """Gets a beat whenever a member of the process runs.

    >>> detector = StallDetector(10.0)
    >>> detector.beat(10.05), detector.beat(14.0)
    (None, None)
    >>> detector.away(ran=10.02, due=11.0), detector.away(ran=14.0, due=11.0)
    (3.0, 0.0)
    """

    __slots__ = ("_at", "_lapses", "watch")

    def __init__(self, now: float) -> None:
        self._at = now
        self._lapses: deque[tuple[float, float]] = deque(maxlen=_LAPSES)
        self.watch = StallWatch()

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


class StallWatch:
    """Looks for stalls of the process while a survey asks, and counts them.

    The stall began at some time between two looks. So half a tick is added to what was late.
    """

    __slots__ = ("_due", "_looked", "_timer", "_until", "count", "longest", "recent", "watched")

    def __init__(self) -> None:
        self.count = 0
        self.longest = 0.0  # of all stalls that anything in the process noticed
        self.watched = 0.0  # seconds
        self.recent: deque[tuple[float, float]] = deque(maxlen=_KEPT)  # when it ended, its length
        self._due: float | None = None
        self._looked = self._until = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def keep(self, clock: Clock, seconds: float) -> None:
        """Look for so many seconds from now on."""
        now = clock.time()
        self._until = max(self._until, now + seconds)
        if self._timer is None:
            self._looked = now
            self._arm(clock, now)

    def look(self, now: float) -> None:
        """Note a stall if the timer is late; also to be called before anything is answered."""
        if self._due is None:
            return
        late = now - self._due
        self.watched += now - self._looked
        self._looked = now
        if late > LEAST_STALL:
            stood = late + TICK / 2
            self.count += 1
            self.recent.append((now, stood))
            self.longest = max(self.longest, stood)
        self._due = now + TICK

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._due = None

    def _arm(self, clock: Clock, now: float) -> None:
        self._due = now + TICK
        self._timer = clock.call_at(self._due, self._tick, clock)

    def _tick(self, clock: Clock) -> None:
        now = clock.time()
        self.look(now)
        if now < self._until:
            self._arm(clock, now)
        else:
            self._timer = self._due = None


_detectors: WeakKeyDictionary[asyncio.AbstractEventLoop, StallDetector] = WeakKeyDictionary()


def stall_detector_of(loop: asyncio.AbstractEventLoop) -> StallDetector:
    """The detector that all members on one event loop share."""
    detector = _detectors.get(loop)
    if detector is None:
        detector = _detectors[loop] = StallDetector(clock_of(loop).time())
    return detector

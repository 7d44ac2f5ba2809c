"""Which multicasts were had already: at most once, with bounded memory.

For each origin one window: its latest incarnation, the highest number heard of, and a bit for each
of the numbers just below. What lies below the window counts as had.

A number that is far above an origin's others need not be its own. If several multicasts in a row
lie below the window, each later than the one before, it begins anew.

There is room for so many origins. One more takes the place of the one that was silent for longest,
provided that was longer than any copy of its messages can live; otherwise it is refused: the bound
may cost a message, but never doubles one.
"""

from __future__ import annotations

from hustings.core.choice import MemberId
from hustings.layers.gossip.messages import MAX_ID, MAX_NUMBER
from hustings.layers.multicast.messages import MulticastId

_BELOW = 8  # multicasts in a row below the window that begin it anew


class Window:
    """What was had of one origin."""

    __slots__ = ("at", "below", "bits", "incarnation", "last", "top")

    def __init__(self, incarnation: int) -> None:
        self.incarnation = incarnation
        self.top = 0
        self.bits = 0  # bit i: number top - i was had
        self.at = 0.0  # when the last one came
        self.last = (0, 0)  # below the window: incarnation and number
        self.below = 0  # in a row, each later than the one before


class Memory:
    """All origins' windows.

    >>> memory = Memory(origins=2, width=8, lifetime=20.0)
    >>> memory.take((7, 1, 3), now=0.0), memory.take((7, 1, 3), now=1.0)
    (True, False)
    >>> memory.take((7, 1, 1), now=2.0), memory.take((7, 1, 30), now=2.0)
    (True, True)
    >>> memory.take((7, 1, 2), now=3.0)  # never had, but out of the window
    False
    """

    __slots__ = ("_lifetime", "_mask", "_origins", "_width", "_windows")

    def __init__(self, origins: int, width: int, lifetime: float) -> None:
        self._origins = origins
        self._width = width
        self._mask = (1 << width) - 1
        self._lifetime = lifetime
        self._windows: dict[MemberId, Window] = {}  # the longest silent first

    def __len__(self) -> int:
        return len(self._windows)

    def fresh(self, mid: MulticastId) -> bool:
        """Whether a multicast was not had yet and may be had."""
        origin, incarnation, number = mid
        window = self._windows.get(origin)
        if window is None or incarnation > window.incarnation:
            return (
                -MAX_ID <= origin < MAX_ID
                and 1 <= incarnation <= MAX_NUMBER
                and 1 <= number <= MAX_NUMBER
            )
        if incarnation < window.incarnation or number < 1:
            return False
        if number > window.top:
            return number <= MAX_NUMBER
        behind = window.top - number
        return behind < self._width and not window.bits >> behind & 1

    def take(self, mid: MulticastId, now: float) -> bool:
        """Have a multicast, if it is fresh and there is room."""
        if not self.fresh(mid) and not self._begins_anew(mid):
            return False
        origin, incarnation, number = mid
        window = self._windows.pop(origin, None)
        if window is None or window.incarnation < incarnation:
            if window is None and not self._room(now):
                return False
            window = Window(incarnation)
        window.below = 0
        if number > window.top:
            ahead = number - window.top
            window.bits = (window.bits << ahead if ahead < self._width else 0) & self._mask | 1
            window.top = number
        else:
            window.bits |= 1 << (window.top - number)
        window.at = now
        self._windows[origin] = window
        return True

    def _begins_anew(self, mid: MulticastId) -> bool:
        """Whether the window cannot be its origin's: then it is forgotten."""
        origin, incarnation, number = mid
        window = self._windows.get(origin)
        if window is None or number < 1:
            return False
        if incarnation == window.incarnation and window.top - number < self._width:
            return False  # a copy
        if (incarnation, number) == window.last:
            return False
        window.below = window.below + 1 if (incarnation, number) > window.last else 1
        window.last = (incarnation, number)
        if window.below < _BELOW:
            return False
        del self._windows[origin]
        return True

    def _room(self, now: float) -> bool:
        if len(self._windows) < self._origins:
            return True
        oldest = next(iter(self._windows))
        if now - self._windows[oldest].at <= self._lifetime:
            return False
        del self._windows[oldest]
        return True

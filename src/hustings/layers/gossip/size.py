"""The group's size. Extrema propagation: minima of random variates, gossiped until all have them.

    member 1 draws   0.91 0.13 2.20 ...
    member 2 draws   0.40 1.75 0.08 ...      each Exp(1), r of them
    ...
    all end up with  0.02 0.01 0.03 ...      the minimum in each place: Exp(N)
    N is about       (r - 1) / sum of the minima

Model      Gossip reaches all members within half an epoch. Members crash, come and go.
Idea       A minimum stays the same if a value counts twice, so gossip may repeat itself. The
           minimum of N unit exponentials is exponential with rate N, and r of them give an unbiased
           estimate with relative error 1/sqrt(r - 2).
Epochs     Minima never grow, so members that left would be counted for ever. All members draw anew
           in each epoch. An epoch ends when its time is up, or when a member in a later epoch is
           heard. The result of an epoch is in force during the next one: then it is the same
           everywhere.
Cost       One vector of r small numbers in every gossip message, whatever the size of the group.
Paper      Baquero, Almeida, Menezes, "Fast Estimation of Aggregates in Unstructured Networks", ICAS
           2009; the probabilistic election asks for it in section 3.1.

A variate travels as a code, its logarithm in steps of 1/64: two bytes instead of eight, and equal
minima are equal numbers everywhere. The steps are 1.6 % wide. A code stands for the middle of its
step, and the rounding errors average out over the r places.

This file is the pure part, with time as an argument.
"""

from __future__ import annotations

import math
from array import array

from hustings.core.streams import Stream

_STEPS = 64  # codes per factor of e
_SHIFT = 4.0  # ln of the largest variate that has a code: e**4 is exceeded once in 10**23 draws
TOP = 4095  # the code of the smallest variate: enough for groups of 10**24

MAX_EPOCH = 1 << 48
MAX_SIZE = 1e15

# An array: as objects these numbers would be a hundred kilobytes of every member.
_VARIATES = array("d", [math.exp(_SHIFT - (code + 0.5) / _STEPS) for code in range(TOP + 1)])

Codes = tuple[int, ...]


def code_of(variate: float) -> int:
    """The code of an exponential variate: the smaller the variate, the larger the code.

    >>> code_of(1.0), code_of(0.5), code_of(0.0), code_of(1e9)
    (256, 300, 4095, 0)
    """
    if variate <= 0.0:
        return TOP
    return max(0, min(TOP, math.floor((_SHIFT - math.log(variate)) * _STEPS)))


def draw(rng: Stream, count: int) -> Codes:
    """One member's codes for one epoch."""
    return tuple([code_of(rng.expovariate(1.0)) for _ in range(count)])


def size_of(codes: Codes) -> float:
    """The size of the group that has these minima."""
    return (len(codes) - 1) / sum(map(_VARIATES.__getitem__, codes))


class Sizing:
    """One member's part in the estimate."""

    __slots__ = ("_began", "_length", "_running", "_sized", "codes", "count", "epoch", "found")

    def __init__(self, count: int, length: float) -> None:
        self.count = count
        self.epoch = 0  # not begun
        self.codes: Codes = ()
        self.found: float | None = None  # the estimate of the previous epoch
        self._length = length
        self._began = 0.0
        self._sized: Codes = ()  # the codes that ...
        self._running = 1.0  # ... give this estimate

    @property
    def estimate(self) -> float:
        """The last epoch's result; in the first epoch, the result of what has been heard so far."""
        if self.found is not None:
            return self.found
        if self._sized is not self.codes:
            self._sized = self.codes
            self._running = max(1.0, size_of(self.codes))
        return self._running

    def begin(self, now: float, rng: Stream, epoch: int = 1) -> None:
        """Draw for a new epoch."""
        self.epoch = epoch
        self._began = now
        self.codes = draw(rng, self.count)

    def tick(self, now: float, rng: Stream) -> None:
        """Time passes: begin a new epoch if this one's time is over."""
        if now - self._began >= self._length and self.epoch < MAX_EPOCH:
            self._conclude()
            self.begin(now, rng, self.epoch + 1)

    def hear(self, now: float, rng: Stream, epoch: int, codes: Codes, found: float | None) -> None:
        """Take in another member's minima, and the last epoch's result that it reports."""
        if epoch < self.epoch or epoch > MAX_EPOCH or not self._sound(codes):
            return
        if epoch > self.epoch:
            if epoch == self.epoch + 1 and now - self._began >= self._length / 2:
                self._conclude()
            elif found is not None and 1.0 <= found <= MAX_SIZE:
                self.found = found  # this member was not there, or not for long enough
            self.begin(now, rng, epoch)
        if codes != self.codes:
            merged = tuple(map(max, codes, self.codes))
            if merged != self.codes:
                self.codes = merged
        if self.found is None and found is not None and 1.0 <= found <= MAX_SIZE:
            self.found = found

    def _conclude(self) -> None:
        self.found = max(1.0, size_of(self.codes))

    def _sound(self, codes: Codes) -> bool:
        if codes == self.codes:
            return True
        return len(codes) == self.count and min(codes) >= 0 and max(codes) <= TOP

"""Thinning by delay: of all members that notice a failed round, one should ask for the next."""

from __future__ import annotations

from math import exp, log


def pause(u: float, size: float) -> float:
    """The part of the window that a detector waits. Few wait short, so these few are heard in time.

    A truncated exponential with as many e-foldings as it takes to leave about one of `size` members
    in the first part of the window, however many of them have noticed.

    >>> pause(0.0, 2000), round(pause(0.5, 2000), 2)
    (0.0, 0.92)
    """
    lam = log(max(size, 2.0)) + 1.0
    return max(0.0, 1.0 + log(u + (1.0 - u) * exp(-lam)) / lam)

"""Simulated time: floats on a grid, so that ties are ties.

Every instant is a multiple of 2**-28. Sums of such floats are exact up to `END_OF_TIME`, so a
timer of 3 announce periods and the third next announcement meet at the same instant, whichever way
either was added up; which of them goes first is then decided by rule and not by rounding.
"""

from __future__ import annotations

from math import inf

NEVER = inf

# Adding and subtracting 1.5 * 2**(52 - 28) leaves a double rounded to a multiple of 2**-28.
ROUND = 1.5 * 2.0**24

END_OF_TIME = 2.0**23

# What happens first at one instant. Faults and calls from outside come before everything; eager
# timers ("sends") before arrivals; all other timers after them.
CONTROL = 0
EAGER = 1
ARRIVAL = 2
TIMER = 3


def on_grid(instant: float) -> float:
    """The nearest representable instant; infinity stays infinite.

    >>> on_grid(0.1) + 3 == on_grid(3 + 0.1) == on_grid(0.1 + 1 + 1 + 1)
    True
    """
    return (instant + ROUND) - ROUND

"""Simulated time: floats on a decimal grid, so that ties are ties.

Every instant is the double nearest to a whole number of ticks of 1e-8. Numbers that people type
(0.1, 0.3, 2.5) lie on that grid, so two delays of 0.1 and a timer of 0.2 end at one instant, and so
do a timer of 3 announce periods and the third next announcement, whichever way either was added up.
Which of them goes first is then decided by rule and not by rounding.
"""

from __future__ import annotations

from math import inf

NEVER = inf

TICKS = 1e8  # per unit of time

# Adding and subtracting 1.5 * 2**52 leaves a double (below 2**51) rounded to a whole number.
ROUND = 1.5 * 2.0**52

END_OF_TIME = 20_000_000.0  # in ticks still below 2**51

# What happens first at one instant. Faults and calls from outside come before everything; eager
# timers ("sends") before arrivals; all other timers after them.
CONTROL = 0
EAGER = 1
ARRIVAL = 2
TIMER = 3


def on_grid(instant: float) -> float:
    """The nearest instant of the grid; infinity stays infinite.

    >>> on_grid(0.1 + 0.1 + 0.1) == on_grid(0.3)
    True
    >>> on_grid(on_grid(0.1) + 3) == on_grid(3.1)
    True
    """
    return ((instant * TICKS + ROUND) - ROUND) / TICKS

"""How often a departing leader says goodbye.

The thesis takes the mean number of announcements that are lost, which is 0 without loss and too
small with it. Here the number is such that, but for a stated chance, everybody hears one.
"""

from __future__ import annotations

from math import ceil, expm1, log, log1p

MAX_BYES = 10_000


def byes_for(loss: float, receivers: int, eps: float) -> int:
    """The fewest Byes of which each of `receivers` hears one, but with probability `eps`.

    Each message is lost by each receiver on its own: the worst case. All hear one of B with
    probability (1 - loss**B)**receivers.

    >>> byes_for(0.4, 49, 0.01), byes_for(0.0, 49, 0.01)
    (10, 1)
    """
    if receivers < 1:
        return 0
    if loss <= 0.0:
        return 1
    missed = -expm1(log1p(-eps) / receivers)  # the chance that one receiver may take
    return min(MAX_BYES, max(1, ceil(log(missed) / log(loss))))

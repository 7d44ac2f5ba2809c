"""Suppression laws: when a member wakes up within the suppression interval.

The inverse distribution function gives a law: it turns a number of [0, 1) into an instant of
[0, T_S]. It increases. So members that take the number from their place in a ranking (the best
nearest to 0), instead of drawing it, wake in the order of that ranking.
"""

from __future__ import annotations

from math import exp, log
from typing import Literal

from hustings.core.choice import Choice, MemberId
from hustings.core.view import View

Law = Literal["uniform", "exponential"]


def instant(law: Law, lam: float, T_S: float, u: float) -> float:
    """Return the instant that `u` stands for.

    The truncated exponential has an increasing density. So few members wake early, and those few
    suppress the rest. The formula uses exp(-lam), which does not overflow.

    >>> instant("uniform", 5.0, 2.0, 0.25)
    0.5
    >>> instant("exponential", 5.0, 1.0, 0.0)
    0.0
    >>> round(instant("exponential", 5.0, 1.0, 0.5), 3)
    0.863
    """
    if law == "uniform":
        return T_S * u
    return max(0.0, T_S * (1.0 + log(u + (1.0 - u) * exp(-lam)) / lam))


def place(view: View, choice: Choice, member: MemberId) -> float:
    """The share of a view that is better than `member`: 0 for the best.

    A member works it out alone, without messages. Where views differ, several members may wake at
    once. That costs messages and nothing else. A member that knows no other member ranks itself
    best and does not sleep.
    """
    ranking = view.ranking(choice)
    return ranking.position.get(member, 0) / max(1, len(ranking.ids))

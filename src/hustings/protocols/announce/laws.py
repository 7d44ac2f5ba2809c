"""Suppression laws: when a member wakes up within the suppression interval.

A law is given by its inverse distribution function, which turns a number of [0, 1) into an instant
of [0, T_S]. It increases, so members that do not draw the number but take their place in a ranking
(the best nearest to 0) wake in the order of that ranking.
"""

from __future__ import annotations

from math import exp, log
from typing import Literal

from hustings.core.choice import Choice, MemberId
from hustings.core.view import View

Law = Literal["uniform", "exponential"]


def instant(law: Law, lam: float, T_S: float, u: float) -> float:
    """The instant that `u` stands for.

    The truncated exponential has an increasing density: few wake early, so that those few suppress
    the rest. Written with exp(-lam), which does not overflow.

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
    """The part of a view that is better than `member`: 0 for the best.

    A member asks nobody for it. Where views differ several may wake at once, which costs messages
    and nothing else; a member that knows nobody but itself takes itself for the best and does not
    sleep.
    """
    ranking = view.ranking(choice)
    return ranking.position.get(member, 0) / max(1, len(ranking.ids))

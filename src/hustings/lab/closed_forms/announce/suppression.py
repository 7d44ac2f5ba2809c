"""SUP, the baseline without addresses: wake, and send unless a message has arrived.

Chapters 2 and 3 of the thesis, as chapter 5 uses them. Let tau be the earliest potential message
that is not lost. Under no or correlated loss every member that wakes by tau + D sends and no later
one does, which gives all forms here.
"""

from __future__ import annotations

import cmath
from itertools import pairwise
from math import fsum, log

from hustings.lab.closed_forms.announce.laws import CHAPTER, Law
from hustings.lab.closed_forms.announce.messages import first_round_first_waker
from hustings.lab.closed_forms.announce.numerics import (
    alternating_sum,
    check_group,
    check_loss,
    check_times,
    expm1_complex,
    integrate,
    panel,
)

SOURCE = f"{CHAPTER}: 5.4.1"
SMALL = 200
HALVINGS = 24  # towards the last instant, where large groups have their spike


def messages(N: int, loss: float, law: Law, D: float = 0.0) -> float:
    """All messages, no or correlated loss: N P(D) + (a / (1-l)) (1 - c^N).

    c = 1 - (1-l) P(T_S - D), a = e^(lam D / T_S). Exponential and l = 0:
    N (e^(lam d) - 1)/(e^lam - 1) + e^(lam d) [1 - ((1 - e^(-lam d))/(1 - e^-lam))^N].

    Parameters: N, members; loss (l), none or correlated; law, when members wake; D.

    Source: chapters 2 and 3. Verdict: exact.

    >>> round(messages(100, 0, Law(), D=0.1), 6), round(messages(100, 0, Law(lam=5), D=0.1), 4)
    (11.0, 2.0888)
    """
    return first_round_first_waker(N, loss, law, max(law.T_S, 1.0), D)


def messages_uncorrelated(N: int, loss: float) -> float:
    """All messages, uncorrelated loss, D = 0: of N that wake in turn, m -> m + 1 with chance l^m.

    The mean is the sum over j = 1..N of (-1)^(j-1) C(N,j) prod over i = 1..j-1 of (1 - l^i), taken
    as an integral beyond 200 members.

    Parameters: N, members; loss (l), uncorrelated. T_S above 0, any law.

    Source: chapter 3. Verdict: exact.

    >>> messages_uncorrelated(500, 0), round(messages_uncorrelated(500, 0.7), 3)
    (1.0, 14.802)
    """
    check_group(N)
    check_loss(loss)
    if loss == 0:
        return 1.0
    if N <= SMALL:
        return fsum(m * probability for m, probability in enumerate(message_law(N, loss)))
    rate = -log(loss)

    def u(x: complex) -> complex:
        return -cmath.log(-expm1_complex(-rate * (x - 1)))

    return alternating_sum(N, u)


def message_law(N: int, loss: float) -> list[float]:
    """The law of the number of messages, uncorrelated loss, D = 0: the chain, step by step.

    Parameters: N, members; loss (l), uncorrelated.

    Source: chapter 3. Verdict: exact.

    >>> [round(p, 4) for p in message_law(2, 0.4)]
    [0.0, 0.6, 0.4]
    """
    check_group(N)
    check_loss(loss)
    law = [1.0]
    for _ in range(N):
        longer = [0.0] * (len(law) + 1)
        for m, probability in enumerate(law):
            longer[m] += probability * (1 - loss**m)
            longer[m + 1] = probability * loss**m
        law = longer
    return law


def tmax(N: int, loss: float, law: Law, D: float = 0.0) -> float:
    """The last send, no or correlated loss: E[b - the gap before b], b = min(tau + D, T_S).

    tau has density N (1-l) p(tau) r^(N-1), r = 1 - (1-l) P(tau); the gap given tau is the integral
    over x from tau to b of [1 - (P(b) - P(x)) / r]^(N-1). If all are lost, with l^N, the last to
    wake counts.

    Parameters: N, members; loss (l), none or correlated; law, when members wake; D.

    Source: chapter 3, whose tmax chapter 5 plots. Verdict: exact, a double integral. It is not the
    instant at which all know, as 5.4.1 says (E28).

    >>> round(tmax(100, 0, Law(), D=0.1), 4), round(tmax(1, 0.4, Law(), D=0.1), 6)
    (0.1, 0.5)
    """
    _check(N, loss, D)
    T_S = law.T_S
    if N == 1 or T_S == 0:
        return law.mean

    def weighted(tau: float) -> float:
        open_to = 1 - (1 - loss) * law.cdf(tau)
        last = min(tau + D, T_S)
        chance = N * (1 - loss) * law.density(tau) * _power(open_to, N - 1)
        return chance * (last - _gap(N, law, open_to, tau, last)) if chance > 0 else 0.0

    kink = [T_S - D] if 0 < T_S - D < T_S else []
    return integrate(weighted, [0.0, *kink, T_S]) + _power(loss, N) * law.latest(N)


def _gap(N: int, law: Law, open_to: float, tau: float, last: float) -> float:
    """E[last - the latest wake-up in (tau, last], or tau], of N - 1 members open to wake so."""
    top = law.cdf(last)
    if law.lam == 0:
        idle = 1 - (top - law.cdf(tau)) / open_to
        return law.T_S * open_to / N * (1 - _power(idle, N))

    def idle_since(x: float) -> float:
        return _power(1 - (top - law.cdf(x)) / open_to, N - 1)

    width, cuts = last - tau, [0.0]
    cuts += [2.0 ** (grade - HALVINGS) for grade in range(HALVINGS + 1)]
    return fsum(panel(idle_since, last - width * b, last - width * a) for a, b in pairwise(cuts))


def halt(N: int, loss: float, law: Law, D: float = 0.0) -> float:
    """t_halt, when all have sent or heard: the mean of min(tau + D, the latest wake-up).

    The integral over x of (1 - (1-l) P(x-D))^N - (P(x) - (1-l) P(x-D))^N.

    Parameters: N, members; loss (l), none or correlated; law, when members wake; D.

    Source: chapter 5, 5.4.1, "all agree that they are suppressed". Verdict: exact (E28).

    >>> round(halt(100, 0, Law(), D=0.1) - 0.1, 4)
    0.0099
    """
    _check(N, loss, D)
    T_S = law.T_S
    if T_S == 0:
        return 0.0

    def running(x: float) -> float:
        heard = (1 - loss) * law.cdf(x - D)
        return _power(1 - heard, N) - _power(law.cdf(x) - heard, N)

    return integrate(running, [0.0, *([D] if 0 < D < T_S else []), T_S])


def _power(base: float, n: int) -> float:
    return max(0.0, base) ** n  # a difference of probabilities may round below 0


def _check(N: int, loss: float, D: float) -> None:
    check_group(N)
    check_loss(loss)
    check_times(D=D)

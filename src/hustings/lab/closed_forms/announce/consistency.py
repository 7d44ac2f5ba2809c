"""Disagreement in a settled group (5.3.2, false departures; 5.3.4, inconsistent state).

A false departure is a time-out although the leader lives; it lasts until the leader's next
announcement is received. Arrivals come before time-outs of the same instant, so T_L = k T_A needs k
losses in a row.
"""

from __future__ import annotations

from math import expm1, inf, isinf, log, log1p

from hustings.lab.closed_forms.announce.laws import CHAPTER, check_model
from hustings.lab.closed_forms.announce.numerics import (
    check_group,
    check_loss,
    check_times,
    whole_periods,
)
from hustings.lab.closed_forms.announce.rounds import expected_rounds
from hustings.lab.closed_forms.form import exact, require

SOURCE = f"{CHAPTER}: 5.3.2 and 5.3.4"


def duration(loss: float, T_A: float = 1.0, T_L: float = 3.0) -> float:
    """One listener's false departure, given that it happens: T_A/(1-l) + k T_A - T_L on average.

    k = floor(T_L / T_A). At T_L = k T_A it is T_A/(1-l); without loss and T_L < T_A, T_A - T_L.

    Parameters: loss (l), any model; T_A; T_L, finite.

    Source: chapter 5, 5.3.2. Verdict: exact; the chapter's is an unconditional mean that turns
    negative (E10), and depends on N if uncorrelated (E11).

    >>> round(duration(0.4), 4), round(duration(0, T_L=0.75), 2)
    (1.6667, 0.25)
    """
    k = _periods(loss, T_A, T_L)
    return T_A / (1 - loss) + float(k * exact(T_A) - exact(T_L))


def fraction(loss: float, T_A: float = 1.0, T_L: float = 3.0) -> float:
    """Share of time that one listener is wrong: l^k (T_A/(1-l) + k T_A - T_L) (1-l) / T_A.

    At T_L = k T_A it is l^k. Under correlated loss all listeners are wrong together, so this is
    the share of time that any listener is wrong.

    Parameters: loss (l), any model; T_A; T_L, finite or not.

    Source: chapter 5, 5.3.4. Verdict: exact; the chapter's form goes below 0 (E12).

    >>> round(fraction(0.4), 3), fraction(0, T_L=0.75), fraction(0.4, T_L=inf)
    (0.064, 0.25, 0.0)
    """
    if isinf(T_L):
        return 0.0
    k = _periods(loss, T_A, T_L)
    return float(loss**k) * duration(loss, T_A, T_L) * (1 - loss) / T_A


def system_fraction(N: int, loss: float, T_A: float = 1.0, T_L: float = 3.0) -> float:
    """Share of time that any is wrong, uncorrelated loss: 1 - (1 - l^k)^(N-1) at T_L = k T_A.

    With r = T_L - k T_A left over, the share r/T_A of each period needs one loss more.

    Parameters: N, members; loss (l); T_A; T_L, finite or not.

    Source: chapter 5, 5.3.4. Verdict: exact (E12).

    >>> round(system_fraction(20, 0.4), 3)
    0.715
    """
    check_group(N)
    if isinf(T_L):
        return 0.0
    k = _periods(loss, T_A, T_L)
    late = float((exact(T_L) - k * exact(T_A)) / exact(T_A))
    return late * _any(N - 1, loss ** (k + 1)) + (1 - late) * _any(N - 1, float(loss**k))


def system_duration(N: int, loss: float, T_A: float = 1.0, T_L: float = 3.0) -> float:
    """How long some member is wrong at a time, uncorrelated loss, T_L = k T_A: T_A (1-a)/(a-b).

    If T_L < T_A, all are right only for T_L after an announcement that all have heard, so it is
    T_A/(1-l)^(N-1) - T_L.

    a = (1 - l^k)^(N-1) that all are right in a period, b = (1 - 2 l^k + l^(k+1))^(N-1) that they
    are in two in a row. Infinite where a is no number any more: practically always.

    Parameters: N, members, at least 2; loss (l), above 0 if T_L >= T_A; T_A; T_L, a multiple of
    T_A, or below it.

    Source: chapter 5, 5.3.2. Verdict: exact; the chapter counts one round twice (E11).

    >>> round(system_duration(20, 0.4), 3), round(system_duration(2, 0.4), 4)
    (4.58, 1.6667)
    >>> system_duration(20, 0.0, T_L=0.75)
    0.25
    """
    check_group(N, 2)
    k = _periods(loss, T_A, T_L)
    if k == 0:
        heard = (1 - loss) ** (N - 1)
        return T_A / heard - T_L if heard else inf
    require(k * exact(T_A) == exact(T_L), f"T_L must be a multiple of T_A = {T_A}, not {T_L}")
    require(loss > 0, "l must be above 0: without loss no member is wrong")
    wrong, n = float(loss**k), N - 1
    if wrong == 0:  # below any number: at most one listener at a time
        return T_A / (1 - loss)
    right = -expm1(k * log(loss))  # 1 - l^k, also for l near 1
    all_right = right**n
    ends = -expm1(n * log1p(-wrong * (1 - loss) / right))  # 1 - b/a
    if all_right == 0:
        return inf
    return T_A * _any(n, wrong) / (all_right * ends)


def by_departures(N: int, delay: float, T_d: float) -> float:
    """Share of time lost to departures of leaders: E[delay] / (N T_d).

    Any member departs every T_d, the leader as often as another; a small share only, since
    disagreements do not overlap in the form.

    Parameters: N, members; delay, the mean delay until re-established; T_d, above 0.

    Source: chapter 5, 5.3.4, which prints E[delay] / T_d. Verdict: first order in 1/T_d; only the
    departure of the leader counts (E25).

    >>> by_departures(20, 5.2, T_d=26)
    0.01
    """
    check_group(N)
    require(T_d > 0, f"T_d must be above 0, not {T_d}")
    return delay / (N * T_d)


def by_joiners(N: int, larger: float, smaller: float, T_a: float) -> float:
    """Share of time lost to joiners: (larger + N smaller) / ((N+1) T_a).

    A joiner is the best of the N + 1 with probability 1/(N+1).

    Parameters: N, members before the join; larger, smaller, the mean delays; T_a, above 0.

    Source: chapter 5, 5.3.4. Verdict: first order in 1/T_a.

    >>> round(by_joiners(9, larger=0.6, smaller=0.5, T_a=51), 6)
    0.01
    """
    check_group(N)
    require(T_a > 0, f"T_a must be above 0, not {T_a}")
    return (larger + N * smaller) / ((N + 1) * T_a)


def literal_disagreement(T_A: float = 1.0, T_L: float = 3.0) -> float:
    """Programs 5.1 and 5.2 as printed, l = 0: share of time in disagreement.

    1 - T_L / ((floor(T_L/T_A) + 1) T_A): the listen timer is never set anew for a known leader, so
    every listener times out every T_L and waits for the next announcement.

    Parameters: T_A; T_L.

    Source: chapter 5, programs 5.1 and 5.2, line 6. Verdict: what the printed code does; it must
    set the timer anew whenever the leader is heard (E1).

    >>> [round(literal_disagreement(T_L=T_L), 3) for T_L in (1, 2, 3, 5)]
    [0.5, 0.333, 0.25, 0.167]
    """
    k = _periods(0.0, T_A, T_L)
    return float(1 - exact(T_L) / ((k + 1) * exact(T_A)))


def printed_duration(N: int, loss: float, model: str, T_A: float = 1.0, T_L: float = 3.0) -> float:
    """A false departure as printed: T_A - T_L, T_A/(1-l) - T_L or T_A (1 + E[R_N]) - T_L.

    Parameters: N, members; loss (l); model, the loss model; T_A; T_L.

    Source: chapter 5, 5.3.2. Verdict: right without loss, for T_L < T_A; with loss negative where
    it matters (E10), and one round too many if uncorrelated (E11).

    >>> round(printed_duration(20, 0.4, "correlated"), 3)
    -1.333
    """
    check_times(T_A=T_A, T_L=T_L)
    return T_A * (_printed_lost(N, loss, model) + 1) - T_L


def printed_fraction(N: int, loss: float, model: str, T_A: float = 1.0, T_L: float = 3.0) -> float:
    """Share of time in false departures as printed: 1 - T_L / (T_A (E[#] + 1)).

    E[#] is 0, l/(1-l) or E[R_N].

    Parameters: N, members; loss (l); model, the loss model; T_A; T_L.

    Source: chapter 5, 5.3.4. Verdict: right without loss, for T_L <= T_A; otherwise no fraction at
    all (E12).

    >>> round(printed_fraction(20, 0.4, "correlated"), 3)
    -0.8
    """
    check_times(T_A=T_A, T_L=T_L)
    return 1 - T_L / (T_A * (_printed_lost(N, loss, model) + 1))


def printed_by_departures(delay: float, T_d: float) -> float:
    """Share of time lost to departures as printed: E[delay] / T_d.

    Parameters: delay, the mean delay until re-established; T_d, above 0.

    Source: chapter 5, 5.3.4. Verdict: as if every departure were the leader's (E25).

    >>> printed_by_departures(5.2, T_d=26)
    0.2
    """
    require(T_d > 0, f"T_d must be above 0, not {T_d}")
    return delay / T_d


def _printed_lost(N: int, loss: float, model: str) -> float:
    check_group(N)
    check_model(loss, model)
    return expected_rounds(N, loss) if model == "uncorrelated" else loss / (1 - loss)


def _any(n: int, wrong: float) -> float:
    """1 - (1 - wrong)^n."""
    if n == 0 or wrong >= 1:
        return float(n > 0)
    return -expm1(n * log1p(-wrong))


def _periods(loss: float, T_A: float, T_L: float) -> int:
    check_loss(loss)
    check_times(T_A=T_A)
    require(0 < T_L < inf, f"T_L must be above 0 and finite, not {T_L}")
    return whole_periods(T_L, T_A)

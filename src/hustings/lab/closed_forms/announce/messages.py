"""Messages until all have heard the leader, no or correlated loss (5.3.3.1, 5.3.3.2).

The coupling. Let every member announce for ever; member k sends its m-th message iff every
potential message of a better member that would have arrived before is lost. Take the earliest
potential message that is not lost: no member can have silenced its sender, for that needs an
earlier one. So the actual senders need not be known. All that counts is Z(s), the probability that
under correlated loss one better member gets a message through within s. The coupling does not hold
if loss is uncorrelated.

Sent strictly before tmax + D counts. D = 0 means the limit of small D: the announcement that
completes the election counts.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, exp, expm1, fsum, log, log1p

from hustings.lab.closed_forms.announce.laws import CHAPTER, Law
from hustings.lab.closed_forms.announce.numerics import (
    check_group,
    check_length,
    check_loss,
    check_times,
    decaying_sum,
    harmonic,
    integrate,
    power_sum,
    started_periods,
    whole_periods,
)
from hustings.lab.closed_forms.form import exact

SOURCE = f"{CHAPTER}: 5.3.3.1 and 5.3.3.2"


# --- first announcements -------------------------------------------------------------------------


def first_round(N: int, loss: float, law: Law, T_A: float = 1.0, D: float = 0.0) -> float:
    """First announcements of LE-S: N P(D) + (a / (1-l)) sum of (1 - c^k) / k over k = 1..N.

    c = 1 - (1-l) P(T_S - D); a = e^(lam D / T_S), 1 if uniform. With d = D / T_S and a uniform law:
    N d + (1/(1-l)) sum (1 - c^k)/k, c = 1 - (1-l)(1-d). If T_A + D < T_S, repeats silence as well
    and the general integral is taken. T_S = 0: all N.

    Parameters: N, members; loss (l), none or correlated; law, when members wake; T_A; D.

    Source: chapter 5, 5.3.3.1 and 5.3.3.2. Verdict: exact; right without loss, while the printed
    correlated form divides the wrong term by 1 - l (E16).

    >>> round(first_round(500, 0.7, Law(), D=0.1), 2), round(first_round(2, 0.4, Law(), D=0.1), 3)
    (68.28, 1.757)
    """
    _check(N, loss, law, T_A, D)
    if D >= law.T_S:
        return float(N)
    if exact(T_A) + exact(D) < exact(law.T_S):
        return 1 + _round_of(
            N, law, D, T_A, lambda t: power_sum(_chances(t - D, loss, law, T_A, 0)[0], N - 1)
        )
    return N * law.cdf(D) + law.growth(D) * _shared(N, loss, law, D) / (1 - loss)


def first_round_first_waker(
    N: int, loss: float, law: Law, T_A: float = 1.0, D: float = 0.0
) -> float:
    """First announcements of LE-M, and all messages of SUP: N P(D) + (a / (1-l)) (1 - c^N).

    a and c as in `first_round`. If T_A + D < T_S, repeats silence as well and the general integral
    is taken; pass T_A >= T_S for SUP, which does not repeat.

    Parameters: N, members; loss (l), none or correlated; law, when members wake; T_A; D.

    Source: chapter 5, 5.4.3, and chapters 2 and 3 for SUP. Verdict: exact.

    >>> round(first_round_first_waker(100, 0, Law(), D=0.1), 4)
    11.0
    >>> round(first_round_first_waker(100, 0, Law(lam=5), D=0.1), 4)
    2.0888
    """
    _check(N, loss, law, T_A, D)
    if D >= law.T_S:
        return float(N)
    if exact(T_A) + exact(D) < exact(law.T_S):
        return N * _round_of(
            N, law, D, T_A, lambda t: _power(1 - _chances(t - D, loss, law, T_A, 0, t)[0], N - 1)
        )
    reach = (1 - loss) * law.cdf(law.T_S - D)
    silenced = -expm1(N * log1p(-reach)) if reach < 1 else 1.0
    return N * law.cdf(D) + law.growth(D) * silenced / (1 - loss)


def printed_first_round(N: int, loss: float, law: Law, D: float = 0.0) -> float:
    """First announcements of LE-S as printed: N P(D)/(1-l) + a sum of (1 - c^k)/k.

    The printed integral, of p(t) [1 - (1 - (1-l) P(t-D))^N] / P(t-D), evaluated.

    Parameters: N, members; loss (l), none or correlated; law, when members wake; D.

    Source: chapter 5, 5.3.3.1, and the last line of 5.3.3.2. Verdict: right without loss. With
    loss 1/(1-l) belongs to the integral, not to N P(D) (E16).

    >>> round(printed_first_round(500, 0.7, Law(), D=0.1), 1)
    172.2
    >>> round(printed_first_round(2, 0.4, Law(), D=0.1), 3)
    1.268
    """
    _check(N, loss, law, 1.0, D)
    if D >= law.T_S:
        return N / (1 - loss)
    return N * law.cdf(D) / (1 - loss) + law.growth(D) * _shared(N, loss, law, D)


def _shared(N: int, loss: float, law: Law, D: float) -> float:
    """The sum of (1 - c^k) / k over k = 1..N, c = 1 - (1-l) P(T_S - D)."""
    reach = (1 - loss) * law.cdf(law.T_S - D)
    if reach >= 1:
        return harmonic(N)
    last = min(N, int(40 / reach) + 1)  # beyond, c^k is below the rounding of 1
    rate = log1p(-reach)
    rest = harmonic(N) - harmonic(last)
    return fsum(-expm1(k * rate) / k for k in range(1, last + 1)) + rest


# --- all messages --------------------------------------------------------------------------------


def leader_messages(loss: float, T_A: float = 1.0, D: float = 0.0) -> float:
    """The leader's own until all have heard: 1/(1-l), + ceil(D/T_A) - 1 while the last travels.

    Parameters: loss (l), none or correlated; T_A; D.

    Source: chapter 5, 5.3.1.2. Verdict: exact; for D <= T_A just 1/(1-l).

    >>> leader_messages(0.5, D=0.1), leader_messages(0.5, D=2.5)
    (2.0, 4.0)
    """
    check_loss(loss)
    check_times(T_A=T_A, D=D)
    return 1 / (1 - loss) + max(0, started_periods(D, T_A) - 1)


def total(N: int, loss: float, law: Law, T_A: float = 1.0, D: float = 0.0) -> float:
    """num_msgs of LE-S: the leader's, and sum over m of E[sum over k = 1..N-1 of (1 - Z)^k].

    Z = (1-l) sum over j >= 0 of l^j P(s - j T_A), s = t + m T_A - D, t the member's wake-up time.
    With T_S = T_A and l = 0 this is N d + H_N - d; for N = 2 and d = 0.1, 2/(1-l) - 0.4.

    Parameters: N, members; loss (l), none or correlated (for N = 2 uncorrelated is the same); law,
    when members wake; T_A; D. T_S is at most 10 T_A, D 1000 T_A.

    Source: replaces 5.3.3, which counts first announcements only (E18). Verdict: exact, by
    quadrature to about 1e-10; a member alone leads as soon as it has announced.

    >>> round(total(50, 0.4, Law(), D=0.1), 2), round(total(2, 0.4, Law(), D=0.1), 6)
    (12.82, 2.933333)
    """
    _check(N, loss, law, T_A, D)
    if N == 1:
        return 1.0
    if law.T_S == 0:
        return total_at_once(N, loss, T_A, D)
    return leader_messages(loss, T_A, D) + _others(
        N, loss, law, T_A, D, lambda here, z: power_sum(z, N - 1)
    )


def sent_by_tmax(N: int, loss: float, law: Law, T_A: float = 1.0, D: float = 0.0) -> float:
    """Messages of LE-S sent up to tmax, those of its last D left out.

    As `total`, with the leader's messages silencing at once: (1 - Z_0)(1 + y + ... + y^(N-2)).

    Parameters: as `total`.

    Source: the other reading of num_msgs (E30). Verdict: exact, by quadrature.

    >>> round(sent_by_tmax(500, 0, Law(), D=0.1), 1), round(total(500, 0, Law(), D=0.1), 1)
    (53.5, 56.7)
    """
    _check(N, loss, law, T_A, D)
    if N == 1:
        return 1.0
    if law.T_S == 0:
        return 1 / (1 - loss) + _at_once_by_tmax(N, loss, whole_periods(D, T_A) + 1)
    return 1 / (1 - loss) + _others(
        N, loss, law, T_A, D, lambda here, z: (1 - here) * (1 + power_sum(z, N - 2))
    )


def total_at_once(N: int, loss: float, T_A: float = 1.0, D: float = 0.0) -> float:
    """num_msgs of LE-A: 1/(1-l) + sum over k = 1..N-1 of 1/(1 - l^k), for D < T_A.

    All announce at 0, T_A, 2 T_A, ...; j = floor(D/T_A) periods pass before any message arrives
    and add j for every member. At D = j T_A the last instant no longer counts, and the sum is of
    j + l/(1 - l^k).

    Parameters: N, members; loss (l), none or correlated; T_A; D.

    Source: chapter 5, 5.1.1, in words. Verdict: exact.

    >>> total_at_once(10, 0, D=0.1), round(total_at_once(10, 0.4, D=0.1), 4)
    (10.0, 11.6355)
    """
    check_group(N)
    check_loss(loss)
    check_times(T_A=T_A, D=D)
    if N == 1:
        return 1.0
    waits = whole_periods(D, T_A)
    tie = waits > 0 and waits * exact(T_A) == exact(D)
    repeats = fsum(1 / (1 - loss**k) for k in range(1, N)) if loss else float(N - 1)
    return leader_messages(loss, T_A, D) + (N - 1) * waits + (loss if tie else 1) * repeats


def total_first_waker(N: int, loss: float, law: Law, T_A: float = 1.0, D: float = 0.0) -> float:
    """num_msgs of LE-M: the leader's, and N sum over m of E[(1 - Z)^(N-1) - (1 - P(t))^(N-1)].

    Z = (1-l) sum over j >= 0 of l^j P(min(t, s - j T_A)): only earlier wakers are better; the
    second term is the leader itself, which no member silences.

    Parameters: N, members; loss (l), none or correlated; law, when members wake; T_A; D.
    T_S is at most 10 T_A, D 1000 T_A.

    Source: the coupling applied to 5.4.3; not in the chapter. Verdict: derived; by quadrature.

    >>> round(total_first_waker(100, 0, Law(), D=0.1), 3)
    11.0
    """
    _check(N, loss, law, T_A, D)
    if N == 1:
        return 1.0
    if law.T_S == 0:
        return total_at_once(N, loss, T_A, D)
    waits = started_periods(D, T_A)

    def rounds_at(t: float) -> float:
        woken = law.cdf(t)
        chances = _chances(t - D, loss, law, T_A, waits, t)
        early = [_power_difference(1 - woken, woken - z, N - 1) for z in chances[:-1]]
        # From now on s >= t, and the distance of Z from P(t) shrinks by l each round.
        apart = woken - chances[-1]
        return fsum(early) + _geometric(
            loss, lambda w: _power_difference(1 - woken, apart * w, N - 1)
        )

    return leader_messages(loss, T_A, D) + N * _round_of(N, law, D, T_A, rounds_at)


def total_baseline(N: int, rounds: float, T_A: float = 1.0, D: float = 0.0) -> float:
    """num_msgs of AL: N R, and N for each further period that begins while the last travels.

    Parameters: N, members; rounds, E[R]; T_A; D.

    Source: chapter 5, 5.4.2. Verdict: exact.

    >>> total_baseline(10, 1.0, D=0.1)
    10.0
    """
    check_group(N)
    check_times(T_A=T_A, D=D)
    return N * (rounds + max(0, started_periods(D, T_A) - 1)) if N > 1 else 1.0


# --- the coupling --------------------------------------------------------------------------------


def _others(
    N: int, loss: float, law: Law, T_A: float, D: float, sent: Callable[[float, float], float]
) -> float:
    """Sum over m of E[sent(Z(s + D), Z(s))], over the wake-up time t, s = t + m T_A - D.

    Once s >= T_S for all t, both 1 - Z shrink by l each round, and the rest is one smooth sum.
    """
    waits = started_periods(exact(law.T_S) + exact(D), T_A)

    def rounds_at(t: float) -> float:
        here = _chances(t, loss, law, T_A, waits)
        there = _chances(t - D, loss, law, T_A, waits)
        early = fsum(sent(near, far) for near, far in zip(here[:-1], there[:-1], strict=True))
        near, far = 1 - here[-1], 1 - there[-1]
        return early + _geometric(loss, lambda w: sent(1 - near * w, 1 - far * w))

    return _round_of(N, law, D, T_A, rounds_at)


def _geometric(loss: float, f: Callable[[float], float]) -> float:
    """f(1) + f(l) + f(l^2) + ..., f(0) = 0."""
    if loss == 0:
        return f(1.0)
    rate = -log(loss)
    return decaying_sum(lambda m: f(exp(-rate * m)), rate)


def _chances(
    start: float, loss: float, law: Law, T_A: float, rounds: int, before: float | None = None
) -> list[float]:
    """Z(start + m T_A) for m = 0..rounds: one better member gets a message through in that time.

    Z(s) = (1-l) P(s) + l Z(s - T_A), where P counts members that wake by `before`, if given.
    """
    top = 1.0 if before is None else law.cdf(before)
    chance, found = 0.0, []
    for m in range(-max(0, ceil(start / T_A)), rounds + 1):
        chance = (1 - loss) * min(top, law.cdf(start + m * T_A)) + loss * chance
        if m >= 0:
            found.append(min(top, chance))
    return found


def _round_of(N: int, law: Law, D: float, T_A: float, f: Callable[[float], float]) -> float:
    """Return E[f(t)] over the wake-up time; f has kinks where a message may just arrive.

    After a kink it falls on the scale on which one of N members wakes.
    """
    check_length(law.T_S, D, T_A)
    T_S, period = law.T_S, exact(T_A)
    kinks = []
    for base in (exact(D), exact(D) + exact(T_S), exact(0), exact(T_S)):
        first = base % period
        kinks += [float(first + i * period) for i in range(whole_periods(T_S, T_A) + 1)]
    points = [0.0, *(cut for cut in kinks if 0 < cut < T_S), T_S]
    return integrate(lambda t: law.density(t) * f(t), points, spike=1 / (N * (1 + law.lam)))


def _at_once_by_tmax(N: int, loss: float, waits: int) -> float:
    """LE-A, the others' messages up to tmax; in the first `waits` rounds nothing arrives in time.

    Round m of the others comes if m messages of the leader are lost, and of each one better than
    the sender as many as could have arrived, m - waits + 1.
    """
    first = (N - 1) * (1 - loss**waits) / (1 - loss)
    if loss == 0:
        return first
    return first + fsum(loss ** (waits + k - 1) / (1 - loss**k) for k in range(1, N))


def _power(base: float, n: int) -> float:
    return max(0.0, base) ** n  # a difference of probabilities may round below 0


def _power_difference(base: float, more: float, n: int) -> float:
    """(base + more)^n - base^n, also where the two are close."""
    growth = n * log1p(more / base) if base > 0 else 1.0
    if growth >= 1:
        return _power(base + more, n) - _power(base, n)
    return _power(base, n) * expm1(growth)


def _check(N: int, loss: float, law: Law, T_A: float, D: float) -> None:
    check_group(N)
    check_loss(loss)
    check_times(T_A=T_A, D=D)

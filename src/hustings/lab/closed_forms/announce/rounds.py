"""How many announcements of the leader until all have received one (5.3.1, appendix B).

The attempts of one receiver are geometric; under uncorrelated loss the slowest receiver counts.
"""

from __future__ import annotations

from math import ceil, comb, expm1, fsum, inf, log, log1p

from hustings.lab.closed_forms.announce.laws import CHAPTER, check_model
from hustings.lab.closed_forms.announce.numerics import EULER, check_group, check_loss, harmonic
from hustings.lab.closed_forms.form import require

SOURCE = f"{CHAPTER}: 5.3.1.3"
NEGLIGIBLE = 38.0  # exp(-38) is below the rounding of 1
STEEP = 1e-3  # below this rate the sum is its integral, to all digits
LARGEST_COMB = 1000  # binomials beyond overflow a double


def expected_rounds(n: int, loss: float) -> float:
    """E[R_n], the largest of n geometrics: sum over r >= 0 of 1 - (1 - l^r)^n.

    Each term is -expm1(n log1p(-l^r)), so nothing cancels. As l tends to 1 the sum tends to
    H_n / -ln l + 1/2, which is then used. R_0 = 0: there is no receiver.

    Parameters: n, receivers; loss (l), in [0, 1).

    Source: chapter 5, 5.3.1.3 and appendix B. Verdict: exact; replaces the alternating sum of E6
    and takes one announcement off where the chapter counts it twice (E5).

    >>> [round(expected_rounds(499, l), 4) for l in (0.1, 0.4, 0.7)]
    [3.4406, 7.9112, 19.5393]
    """
    check_group(n, 0)
    check_loss(loss)
    if n == 0 or loss == 0:
        return float(min(n, 1))
    if n == 1:
        return 1 / (1 - loss)
    rate = -log(loss)
    if rate < STEEP:
        return harmonic(n) / rate + 0.5
    last = ceil((log(n) + NEGLIGIBLE) / rate)
    return 1 + fsum(-expm1(n * log1p(-(loss**r))) for r in range(1, last + 1))


def large_group_rounds(n: int, loss: float) -> float:
    """E[R_n] for many receivers: (ln n + gamma) / -ln l + 1/2.

    Parameters: n, receivers, at least 1; loss (l), in (0, 1).

    Source: chapter 5, 5.3.1.3, where the growth is called asymptotic. Verdict: a limit, up to a
    small oscillation in log n; the growth has no bound (E7).

    >>> round(large_group_rounds(499, 0.4), 3), round(expected_rounds(499, 0.4), 3)
    (7.91, 7.911)
    """
    check_group(n)
    check_loss(loss)
    require(loss > 0, "l must be above 0: without loss one round is enough")
    return (log(n) + EULER) / -log(loss) + 0.5


def rounds(n: int, loss: float, model: str) -> float:
    """E[R]: 1 without loss, 1/(1-l) if correlated, E[R_n] if uncorrelated.

    Parameters: n, receivers; loss (l); model, the loss model. A member alone announces once.

    Source: chapter 5, 5.3.1. Verdict: exact.

    >>> [round(rounds(49, 0.4, loss), 3) for loss in ("correlated", "uncorrelated")]
    [1.667, 5.388]
    """
    check_model(loss, model)
    if n == 0:
        return 1.0
    return expected_rounds(n if model == "uncorrelated" else 1, loss)


def average_rounds(n: int, loss: float) -> float:
    """avg_rounds: the mean index of the first announcement received, 1/(1-l) in every loss model.

    Parameters: n, receivers; loss (l). A member alone announces once.

    Source: chapter 5, table 5.1. Verdict: exact, over the N - 1 members that do not lead; with the
    leader counted as 1 it is ((N-1)/(1-l) + 1)/N (E30).

    >>> round(average_rounds(49, 0.4), 4), average_rounds(0, 0.4)
    (1.6667, 1.0)
    """
    check_group(n, 0)
    check_loss(loss)
    return 1 / (1 - loss) if n else 1.0


def printed_rounds(n: int, loss: float) -> float:
    """E[R_n] as printed: the sum of (-1)^(i+1) C(n,i) / (1 - l^i) over i = 1..n, in doubles.

    Parameters: n, receivers, at most 1000, where binomials still fit; loss (l).

    Source: chapter 5, 5.3.1.3, last line. Verdict: a true identity that cancels: wrong from the
    third digit on at n = 50, l = 0.4, and senseless from n = 60 (E6).

    >>> round(printed_rounds(20, 0.4), 6) == round(expected_rounds(20, 0.4), 6)
    True
    >>> abs(printed_rounds(60, 0.4)) > 10 > expected_rounds(60, 0.4)
    True
    """
    check_group(n)
    check_loss(loss)
    require(n <= LARGEST_COMB, f"N must be at most {LARGEST_COMB} for the printed sum, not {n}")
    total = 0.0
    for i in range(1, n + 1):
        total += (-1) ** (i + 1) * float(comb(n, i)) / (1 - loss**i)
    return total


def listen_periods(N: int, loss: float, share: float) -> int:
    """Periods k so that T_L = k T_A keeps all members right for a share of the time.

    The least k with (1 - l^k)^(N-1) >= share, uncorrelated loss.

    Parameters: N, members; loss (l); share, in [0, 1).

    Source: chapter 5, 5.3.2.3, which asks for T_L > T_A E[#] only. Verdict: exact, from the
    fraction of time; E[#] periods are far too few.

    >>> [listen_periods(N, 0.4, 0.99) for N in (10, 100, 500)]
    [8, 11, 12]
    """
    check_group(N)
    require(0 <= share < 1, f"share must lie in [0, 1), not {share}")
    return least_repeats(N - 1, loss, 1 - share)


def least_repeats(n: int, loss: float, eps: float) -> int:
    """The least B >= 1 with (1 - l^B)^n >= 1 - eps: B = ceil(ln(1 - (1-eps)^(1/n)) / ln l).

    Parameters: n, receivers; loss (l); eps, in (0, 1]. The ceiling is taken on the safe side of
    rounding: B is tried, not computed.

    Source: erratum E29. Verdict: exact.

    >>> least_repeats(1, 0.1, 0.001), least_repeats(0, 0.1, 0.001), least_repeats(9, 0.0, 0.001)
    (3, 0, 1)
    """
    check_loss(loss)
    require(0 < eps <= 1, f"eps must lie in (0, 1], not {eps}")
    if n == 0:
        return 0
    if loss == 0:
        return 1
    share = -expm1(log1p(-eps) / n) if eps < 1 else 1.0
    guess = max(1, ceil(log(share) / log(loss)) - 1)
    while True:
        missing = -expm1(n * log1p(-(loss**guess))) if loss**guess < 1 else inf
        if missing <= eps * (1 + 1e-12):
            return guess
        guess += 1

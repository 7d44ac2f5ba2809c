"""First announcements of LE-S under uncorrelated loss with D = 0 (5.3.3.3).

The chapter's recurrence Q(i, n) gives every sender the unconditional law of its wake-up time, but
senders are the early ones. Its replacement follows the members as they wake: the first of n to
wake has r better members, which go on, and of the n - 1 - r others those that lose its message.

    M_n = 1 + M_(r+B),  r uniform on 0..n-1,  B binomial(n-1-r, l)

The mean of this recurrence has a closed form (`mean_exactly`), an alternating sum. It is evaluated
as an integral, so N = 10^6 takes a tenth of a second for every l.
"""

from __future__ import annotations

import cmath
from collections.abc import Callable
from fractions import Fraction
from math import comb, expm1, fsum, log

from hustings.lab.closed_forms.announce.laws import CHAPTER
from hustings.lab.closed_forms.announce.numerics import (
    alternating_sum,
    check_group,
    check_loss,
    expm1_complex,
    harmonic,
)
from hustings.lab.closed_forms.form import require

SOURCE = f"{CHAPTER}: 5.3.3.3"
SMALL = 200  # up to here the recurrence itself, beyond the integral
LARGEST_PRINTED = 10_000
LARGEST_EXACT = 400
FAINT = 1e-25  # probabilities below are dropped from the printed law


def first_round(N: int, loss: float) -> float:
    """E[M_N]: first announcements, D = 0, T_A >= T_S > 0, any law; grows as ln N.

    Up to 200 members by `means`, beyond by the integral behind `mean_exactly`, to about 1e-11.

    Parameters: N, members; loss (l), uncorrelated.

    Source: replaces Q(i, n) of chapter 5, 5.3.3.3 (E19). Verdict: exact.

    >>> [round(first_round(500, l), 3) for l in (0, 0.1, 0.4, 0.7)]
    [6.793, 8.389, 13.927, 26.819]
    """
    check_group(N)
    check_loss(loss)
    if loss == 0:
        return harmonic(N)
    return means(N, loss)[N] if N <= SMALL else alternating_sum(N, _step(loss))


def means(N: int, loss: float) -> list[float]:
    """E[M_0] .. E[M_N] by the recurrence, in N^2 steps.

    n - 1 - (r + B), the members silenced, is binomial(x, 1-l) for x uniform on 0..n-1.

    Parameters: N, members; loss (l), uncorrelated.

    Source: erratum E19. Verdict: exact; only positive terms are added.

    >>> [round(mean, 4) for mean in means(4, 0.0)]
    [0.0, 1.0, 1.5, 1.8333, 2.0833]
    """
    check_loss(loss)
    found, row, silenced = [0.0], [1.0], [0.0] * N
    for n in range(1, N + 1):
        for k, probability in enumerate(row):
            silenced[k] += probability
        found.append(1 + fsum(silenced[k] * found[n - 1 - k] for k in range(n)) / n)
        padded = [0.0, *row, 0.0]
        row = [(1 - loss) * padded[k] + loss * padded[k + 1] for k in range(n + 1)]
    return found


def mean_exactly(N: int, loss: Fraction) -> Fraction:
    """E[M_N] = sum over j = 1..N of (-1)^(j-1) C(N,j) prod over i = 2..j of (1 - [i]/i).

    [i] = 1 + l + ... + l^(i-1). With C_n the sum of E[M_j] over j < n the recurrence reads
    n(1-l)(E[M_n] - 1) = C_n - E[C_binomial(n,l)], whose Newton coefficients obey a recurrence of
    two terms. l = 0 gives H_N, l = 1 gives N.

    Parameters: N, members, at most 400; l, an exact fraction.

    Source: follows from the recurrence; not in the chapter. Verdict: exact.

    >>> mean_exactly(3, Fraction(0)), mean_exactly(2, Fraction(2, 5))
    (Fraction(11, 6), Fraction(17, 10))
    """
    check_group(N)
    require(N <= LARGEST_EXACT, f"N must be at most {LARGEST_EXACT} here, not {N}")
    total, product, geometric = Fraction(0), Fraction(1), Fraction(1)
    for j in range(1, N + 1):
        if j > 1:
            geometric = 1 + loss * geometric
            product *= 1 - geometric / j
        total += (-1) ** (j - 1) * comb(N, j) * product
    return total


def growth(loss: float) -> float:
    """How E[M_N] grows with ln N: (1-l) / (1 - l + l ln l).

    Parameters: loss (l), uncorrelated.

    Source: follows from `mean_exactly`, the residue at 0 of its product. Verdict: exact, the
    remainder tends to a constant.

    >>> round(growth(0.4), 4), round(first_round(10**6, 0.4) - first_round(10**5, 0.4), 4)
    (2.5698, 5.9171)
    >>> round(growth(0.4) * log(10), 4)
    5.9171
    """
    check_loss(loss)
    return (1 - loss) / (1 - loss + loss * log(loss)) if loss else 1.0


def printed_law(N: int, loss: float) -> list[float]:
    """Q(0, N) .. Q(i, N) as printed, the claimed law of the number of first announcements.

    Q(i, n) = Q(i-1, n-1) a_(i-1) + Q(i, n-1) (1 - a_i), a_i = (1 - l^(i+1)) / ((i+1)(1-l)), the
    integral of (1 - (1-l) P)^i. Probabilities below 1e-25 are dropped.

    Parameters: N, members, at most 10,000; loss (l), uncorrelated.

    Source: chapter 5, 5.3.3.3. Verdict: wrong for N >= 3: the senders' times are not independent of
    having sent (E19).

    >>> [round(p, 4) for p in printed_law(3, 0.0)]
    [0.0, 0.25, 0.5833, 0.1667]
    """
    check_group(N)
    check_loss(loss)
    require(N <= LARGEST_PRINTED, f"N must be at most {LARGEST_PRINTED} here, not {N}")
    sends = [
        -expm1((i + 1) * log(loss)) / ((i + 1) * (1 - loss)) if loss else 1 / (i + 1)
        for i in range(N)
    ]
    law, low = [1.0], 0
    for _ in range(N):
        longer = [0.0] * (len(law) + 1)
        for i in range(low, len(law)):
            longer[i] += law[i] * (1 - sends[i])
            longer[i + 1] = law[i] * sends[i]
        while longer[-1] < FAINT:
            longer.pop()
        while longer[low] < FAINT:
            low += 1
        law = longer
    return law


def printed_first_round(N: int, loss: float) -> float:
    """The mean of the printed law Q(i, N).

    Parameters: N, members, at most 10,000; loss (l), uncorrelated.

    Source: chapter 5, 5.3.3.3. Verdict: wrong, grows as sqrt(2N) where the truth at l = 0 is H_N,
    as 5.3.3.1 itself finds (E19).

    >>> [round(printed_first_round(500, l), 1) for l in (0, 0.4, 0.7)]
    [31.0, 40.1, 56.9]
    """
    return fsum(i * probability for i, probability in enumerate(printed_law(N, loss)))


def _step(loss: float) -> Callable[[complex], complex]:
    """u(x) = -log(1 - [x]/x), [x] = (1 - l^x) / (1 - l)."""
    rate, p = -log(loss), 1 - loss

    def u(x: complex) -> complex:
        if abs(rate * x) > 0.1:
            return -cmath.log(1 + expm1_complex(-rate * x) / (p * x))
        # 1 - [x]/x is small: its series, sum over k >= 2 of (-rate)^k / k! (x^k - x), over p x.
        term, power, total = -rate, x, 0j
        for k in range(2, 14):
            term *= -rate / k
            power *= x
            total += term * (power - x)
        return -cmath.log(total / (p * x))

    return u

"""Time from a leader's departure at a random phase until all follow its successor (5.3.2).

It counts from the departure until every survivor holds the best survivor, after the last message of
the departed has arrived. N counts the departed; at least two survive.
"""

from __future__ import annotations

from math import expm1, fsum, inf, log, log1p

from hustings.lab.closed_forms.announce.laws import CHAPTER, Law, check_model
from hustings.lab.closed_forms.announce.numerics import (
    check_length,
    check_loss,
    check_times,
    integrate,
    whole_periods,
)
from hustings.lab.closed_forms.form import exact, require

SOURCE = f"{CHAPTER}: 5.3.2, leader departure"
LARGEST_LOSS = 0.98  # the double sum over lost announcements grows as 1/(1-l)^2
NEGLIGIBLE = 34.0


def without_loss(N: int, law: Law, T_A: float = 1.0, T_L: float = 3.0, D: float = 0.0) -> float:
    """No loss, LE-S and LE-A (T_S = 0): T_L + 2D + E[t_s] - T_A / 2.

    Parameters: N, members before the departure, at least 3; law, when members wake; T_A; T_L; D.

    Source: chapter 5, 5.3.2.1. Verdict: exact; T_A / 2 is the mean phase (E24).

    >>> without_loss(20, Law(), T_L=5, D=0.1)
    5.2
    """
    _check(N, T_A, T_L, D)
    return T_L + 2 * D + law.mean - T_A / 2


def first_waker(N: int, law: Law, T_A: float = 1.0, T_L: float = 3.0, D: float = 0.0) -> float:
    """No loss, LE-M: T_L + 2D - T_A / 2 + T_S / N, the least of N - 1 draws.

    Parameters: N, members before the departure, at least 3; law, when members wake; T_A; T_L; D.

    Source: follows from 5.3.2.1 and 5.4.3; not in the chapter. Verdict: derived; to be simulated.

    >>> round(first_waker(20, Law(), T_L=5, D=0.1), 3)
    4.75
    """
    _check(N, T_A, T_L, D)
    return T_L + 2 * D - T_A / 2 + law.earliest(N - 1)


def correlated(
    N: int, loss: float, law: Law, T_A: float = 1.0, T_L: float = 3.0, D: float = 0.0
) -> float:
    """Correlated loss: E[X^+], X = T_L + 2D + t_s - t_d + (H - G) T_A.

    G announcements of the departed were lost last, H of the successor are lost first: geometric
    from 0, the same for all survivors. E[X] is the value without loss; X < 0 happens when all had
    timed out and settled on the successor before the departure, and counts as 0.

    Parameters: N, members before the departure, at least 3; loss (l); law, when members wake; T_A;
    T_L; D.

    Source: chapter 5, 5.3.2.2, which lets X be negative (E8). Verdict: approximate, exact to second
    order in l^k, k = T_L / T_A.

    >>> [round(correlated(20, 0.4, Law(), T_L=k, D=0.1), 2) for k in (2, 3, 5)]
    [2.27, 3.23, 5.2]
    """
    _check(N, T_A, T_L, D)
    check_loss(loss)
    check_length(law.T_S, D, T_A)
    return without_loss(N, law, T_A, T_L, D) + _below_zero(loss, law, T_A, T_L + 2 * D)


def _below_zero(loss: float, law: Law, T_A: float, a: float) -> float:
    """E[X^-]: P(H - G = -j) = l^j (1-l)/(1+l), times E[(j T_A - a + t_d - t_s)^+]."""
    if loss == 0:
        return 0.0
    first, settled = max(0, int(a / T_A) - 1), int((a + law.T_S) / T_A) + 1
    near = [loss**j * _excess(j * T_A - a, law, T_A) for j in range(first, settled)]
    start = settled * T_A - a + T_A / 2 - law.mean  # from here on the excess is linear in j
    far = loss**settled * (start / (1 - loss) + T_A * loss / (1 - loss) ** 2)
    return (fsum(near) + far) * (1 - loss) / (1 + loss)


def _excess(y: float, law: Law, T_A: float) -> float:
    """E[(y + t_d - t_s)^+], t_d uniform on (0, T_A)."""

    def over_phase(z: float) -> float:
        if z >= 0:
            return z + T_A / 2
        return (z + T_A) ** 2 / (2 * T_A) if z > -T_A else 0.0

    if law.T_S == 0:
        return over_phase(y)
    kinks = [cut for cut in (y, y + T_A) if 0 < cut < law.T_S]
    return integrate(lambda t: law.density(t) * over_phase(y - t), [0.0, *kinks, law.T_S])


def uncorrelated(
    N: int, loss: float, law: Law, T_A: float = 1.0, T_L: float = 3.0, D: float = 0.0
) -> float:
    """Uncorrelated loss as T_L grows: the value without loss + T_A E[max_i(W_i) - G_1].

    W_i = (G_1 - G_i - f)^+ + H_i over the N - 2 other survivors, f = floor((t_s + D) / T_A). G_1
    announcements of the departed were lost last by the successor, G_i by survivor i, which ignores
    the successor until it has timed out itself; H_i of the successor's are lost first.

    Parameters: N, members before the departure, at least 3; loss (l), at most 0.98; law, when
    members wake; T_A; T_L; D.

    Source: chapter 5, 5.3.2.3, which prints no loss term (E9). Verdict: exact as T_L tends to
    infinity, a lower value for T_L of few T_A: at N = 20, l = 0.4, T_L = 2 it is 5.35, simulated
    7.10.

    >>> [round(uncorrelated(20, l, Law(), T_L=5, D=0.1), 3) for l in (0.1, 0.4)]
    [6.221, 8.353]
    """
    _check(N, T_A, T_L, D)
    check_loss(loss)
    sentence = f"l must be at most {LARGEST_LOSS} for the uncorrelated departure, not {loss}"
    require(loss <= LARGEST_LOSS, sentence)
    check_length(law.T_S, D, T_A)
    plain = without_loss(N, law, T_A, T_L, D)
    if loss == 0:
        return plain
    last = int(NEGLIGIBLE / -log(loss)) + 1  # the successor lost more with probability 1e-15
    given = [_slowest_given(N - 2, loss, c, last) for c in range(last + 1)]
    parts = []
    for f, weight in _whole_periods_waited(law, T_A, D):
        behind = [(1 - loss) * loss ** (c + f) * given[c] for c in range(1, last + 1)]
        parts.append(weight * ((1 - loss ** (f + 1)) * given[0] + fsum(behind)))
    return plain + T_A * (fsum(parts) - loss / (1 - loss))


def _whole_periods_waited(law: Law, T_A: float, D: float) -> list[tuple[int, float]]:
    """f = floor((t_s + D) / T_A) with its probability."""
    most = whole_periods(exact(law.T_S) + exact(D), T_A)
    if law.T_S == 0:
        return [(most, 1.0)]
    weights = [law.cdf((f + 1) * T_A - D) - law.cdf(f * T_A - D) for f in range(most + 1)]
    return [(f, weight) for f, weight in enumerate(weights) if weight > 0]


def _slowest_given(n: int, loss: float, c: int, last: int) -> float:
    """E[max W_i] given G_1 - f = c: sum over x of 1 - q(x)^n, q(x) = P((c - G)^+ + H <= x)."""
    early = [((loss**y - loss ** (2 * c - y + 2)) / (1 + loss)) ** n for y in range(1, c + 1)]
    share = (1 - loss ** (2 * c)) / (1 + loss) + loss ** (2 * c)
    late_terms = last + int(log(n) / -log(loss)) + 1
    late = [-expm1(n * log1p(-share * loss ** (y + 1))) for y in range(late_terms)]
    return c - fsum(early) + fsum(late)


def printed(
    N: int, loss: float, model: str, law: Law, T_A: float = 1.0, T_L: float = 3.0, D: float = 0.0
) -> float:
    """As printed, for every loss model: T_L + 2D + E[t_s] - T_A / 2.

    Parameters: as above; model, the loss model.

    Source: chapter 5, 5.3.2. Verdict: right without loss; a limit of large T_L if correlated (E8);
    wrong if uncorrelated, where no term cancels (E9).

    >>> printed(20, 0.4, "uncorrelated", Law(), T_L=5, D=0.1)
    5.2
    """
    check_model(loss, model)
    return without_loss(N, law, T_A, T_L, D)


def _check(N: int, T_A: float, T_L: float, D: float) -> None:
    require(N >= 3, f"N must be at least 3, the departing leader and two survivors, not {N}")
    check_times(T_A=T_A, D=D)
    require(T_A <= T_L < inf, f"T_L must be finite and at least T_A = {T_A}, not {T_L}")

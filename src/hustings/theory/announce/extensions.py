"""Extensions the chapter proposes (5.7): Bye messages, several leaders. Query is with joiners."""

from __future__ import annotations

from hustings.theory.announce.laws import CHAPTER, Law, check_model
from hustings.theory.announce.numerics import check_group, check_loss, harmonic
from hustings.theory.announce.rounds import least_repeats, rounds
from hustings.theory.terms import require

SOURCE = f"{CHAPTER}: 5.7"


def bye_repeats(N: int, loss: float, model: str, eps: float = 0.01) -> int:
    """Byes that reach everybody but with probability eps: least B with (1 - l^B)^(N-1) >= 1 - eps.

    ceil(ln(1 - (1-eps)^(1/(N-1))) / ln l); if correlated all listeners are as one. Without loss 1.

    Parameters: N, members with the departing leader; loss (l); model, the loss model; eps, in
    (0, 1].

    Source: chapter 5, 5.7. Verdict: exact, from erratum E29.

    >>> bye_repeats(50, 0.4, "uncorrelated"), bye_repeats(50, 0.4, "correlated")
    (10, 6)
    """
    check_group(N)
    check_model(loss, model)
    return least_repeats(N - 1 if model == "uncorrelated" else min(N - 1, 1), loss, eps)


def bye_mean(N: int, loss: float, model: str) -> float:
    """Byes needed on average until everybody has heard one: E[R].

    Parameters: N, members with the departing leader; loss (l); model, the loss model.

    Source: chapter 5, 5.7. Verdict: exact; sending that many reaches all only about every second
    time (E29).

    >>> round(bye_mean(50, 0.4, "uncorrelated"), 3), bye_mean(50, 0, "none")
    (5.388, 1.0)
    """
    check_group(N)
    return rounds(N - 1, loss, model)


def printed_byes(loss: float) -> float:
    """Byes to send as printed: E[announcement i establishes leadership] = l / (1-l).

    Parameters: loss (l).

    Source: chapter 5, 5.7, with the value of 5.3.2.2. Verdict: 0 without loss, one too few with
    it: the index of the announcement counts from 0 (E29).

    >>> printed_byes(0.0), printed_byes(0.5)
    (0.0, 1.0)
    """
    check_loss(loss)
    return loss / (1 - loss)


def leaders_first_round(N: int, k: int) -> float:
    """First announcements with k agreed leaders, l = 0 and D = 0: k + k (H_N - H_k).

    A member defers once it has heard k different better ones; the j-th best sends with k/j.

    Parameters: N, members; k, leaders. With N <= k all lead and send.

    Source: chapter 5, 5.7, which asks the question. Verdict: exact; any law, T_S above 0.

    >>> round(leaders_first_round(10, 2), 3), leaders_first_round(3, 5)
    (4.858, 3.0)
    """
    check_group(N)
    require(k >= 1, f"k must be at least 1, not {k}")
    return k + k * (harmonic(N) - harmonic(k)) if k < N else float(N)


def leaders_tmax(N: int, k: int, law: Law) -> float:
    """When the last of k agreed leaders announces, l = 0 and D = 0: T_S k / (k+1) if uniform.

    Parameters: N, members; k, leaders; law, when members wake: the latest of k draws.

    Source: chapter 5, 5.7, which asks the question. Verdict: derived; to be simulated.

    >>> round(leaders_tmax(10, 2, Law()), 4), leaders_tmax(10, 1, Law())
    (0.6667, 0.5)
    """
    check_group(N)
    require(k >= 1, f"k must be at least 1, not {k}")
    return law.latest(min(N, k))

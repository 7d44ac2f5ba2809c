"""Extensions the chapter proposes (5.7): Bye messages, several leaders. Query is with joiners."""

from __future__ import annotations

from math import exp, floor, lgamma, log

from hustings.lab.closed_forms.announce.laws import CHAPTER, Law, check_model
from hustings.lab.closed_forms.announce.numerics import check_group, check_loss, harmonic, integrate
from hustings.lab.closed_forms.announce.rounds import least_repeats, rounds
from hustings.lab.closed_forms.form import require

SOURCE = f"{CHAPTER}: 5.7"


def bye_repeats(N: int, loss: float, model: str, eps: float = 0.01) -> int:
    """Byes that reach all but with probability eps: least B with (1 - l^B)^(N-1) >= 1 - eps.

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
    """Byes needed on average until all members have received one: E[R].

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


def best_first(N: int, link: float) -> float:
    """The chance that the best wakes first: E[prod of 1 - (u - a k)^+, 1 <= k < N].

    u is uniform, and a = link/((1-link) N). The member with k better ones wakes at link k/N +
    (1-link) u_k of the law's range, u_k uniform. A law maps all of them alike and keeps their
    order, so it does not matter which one it is.

    Parameters: N, members that all know each other; link, in [0, 1].

    Source: chapter 5, 5.7, which asks for the effect of such a link. Verdict: derived; not in the
    chapter. Without a link 1/N.

    >>> best_first(20, 0), round(best_first(20, 0.5), 4), best_first(20, 1)
    (0.05, 0.2886, 1.0)
    """
    check_group(N)
    require(0 <= link <= 1, f"link must lie in [0, 1], not {link:g}")
    if link == 1 or N == 1:
        return 1.0
    if link == 0:
        return 1 / N
    a = link / ((1 - link) * N)
    kinks = [a * k for k in range(1, min(N, 64)) if a * k < 1]
    return integrate(lambda u: _all_later(u, a, N - 1), [0.0, *kinks, 1.0])


def _all_later(u: float, a: float, others: int) -> float:
    """The product of 1 - u + a k over those k <= others for which a k < u."""
    within = min(others, floor(u / a))
    start = (1 - u) / a
    return exp(within * log(a) + lgamma(start + within + 1) - lgamma(start + 1))


def linked_tmax(link: float, tmax: float, law: Law) -> float:
    """LE-S whose uniform wake-up time is linked: the best sleeps (1-link) T_S/2, not T_S/2.

    Parameters: link, in [0, 1]; tmax, without a link; law, uniform.

    Source: chapter 5, 5.7. Verdict: derived; not in the chapter.

    >>> linked_tmax(0.5, 0.5, Law())
    0.25
    """
    require(law.lam == 0, "the mean of a linked wake-up time is known for the uniform law only")
    return tmax - link * law.mean

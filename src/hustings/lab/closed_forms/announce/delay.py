"""Leadership delay from a simultaneous start (5.3.1): tmax, and tmax + D when all have heard.

tmax is the instant at which the leader SENDS the announcement that completes "everybody has heard
one". The leader is the best member; the variants differ only in when it first wakes.
"""

from __future__ import annotations

from hustings.lab.closed_forms.announce.laws import CHAPTER, Law, check_model
from hustings.lab.closed_forms.announce.numerics import check_group, check_times
from hustings.lab.closed_forms.announce.rounds import expected_rounds, rounds
from hustings.lab.closed_forms.form import require

SOURCE = f"{CHAPTER}: 5.3.1"


def tmax(N: int, loss: float, model: str, law: Law, T_A: float = 1.0) -> float:
    """LE-S, and LE-A as T_S = 0: E[t_s] + T_A (E[R] - 1).

    Parameters: N, members; loss (l); model, the loss model; law, when members wake; T_A. A member
    alone leads when it first announces.

    Source: chapter 5, 5.3.1. Verdict: exact. Uncorrelated, the chapter multiplies T_A by R (E5).

    >>> [round(tmax(N, l, "uncorrelated", Law()), 3) for N, l in ((2, 0.4), (50, 0.4), (500, 0.7))]
    [1.167, 4.888, 19.039]
    """
    check_group(N)
    check_times(T_A=T_A)
    needed = rounds(N - 1, loss, model)
    return law.mean + T_A * (needed - 1)


def tmax_first_waker(N: int, loss: float, model: str, law: Law, T_A: float = 1.0) -> float:
    """LE-M, where the first to wake leads: E[tmin] + T_A (E[R] - 1), E[tmin] = T_S / (N+1).

    Parameters: N, members; loss (l); model, the loss model; law, when members wake; T_A.

    Source: chapter 5, 5.4.3, in words. Verdict: exact; E[tmin] for an exponential law too.

    >>> round(tmax_first_waker(100, 0, "none", Law()), 4)
    0.0099
    """
    check_group(N)
    check_times(T_A=T_A)
    needed = rounds(N - 1, loss, model)
    return law.earliest(N) + T_A * (needed - 1)


def tmax_baseline(N: int, loss: float, model: str, T_A: float = 1.0) -> float:
    """AL, every member announces from 0 on: T_A (E[R] - 1) until all hold the leader's state.

    Parameters: N, members; loss (l); model, the loss model; T_A.

    Source: chapter 5, 5.4.2. Verdict: exact; below LE-S by E[t_s] at every N. The crossing of
    figure 5.11 needs the loss to grow with traffic, as in `adjusted_loss`.

    >>> round(tmax_baseline(200, 0.4, "uncorrelated"), 3)
    5.91
    """
    return tmax(N, loss, model, Law(T_S=0), T_A)


def everybody_rounds(N: int, loss: float, model: str) -> float:
    """AL, rounds until all members hold the states of all.

    The largest of N(N-1) geometrics, or of N if loss is correlated.

    Parameters: N, members; loss (l); model, the loss model.

    Source: chapter 5, 5.4.2, the other reading of AL's convergence. Verdict: exact.

    >>> round(everybody_rounds(500, 0.4, "uncorrelated"), 3)
    14.692
    """
    check_group(N)
    check_model(loss, model)
    if N == 1:
        return 1.0  # a member alone announces once, and no other receives it
    return expected_rounds(N * (N - 1) if model == "uncorrelated" else N, loss)


def leadership_delay(tmax: float, D: float) -> float:
    """From the start until all members have heard the leader: tmax + D.

    Parameters: tmax, the send time; D, the delay.

    Source: chapter 5, 5.3.1. Verdict: exact.

    >>> leadership_delay(0.5, 0.1)
    0.6
    """
    check_times(D=D)
    return tmax + D


def printed_tmax(N: int, loss: float, model: str, law: Law, T_A: float = 1.0) -> float:
    """tmax as printed, that is the printed delay without D.

    E[t_s] without loss, + T_A l/(1-l) if correlated, + T_A E[R_N] if uncorrelated.

    Parameters: N, members, at least 2; loss (l); model, the loss model; law, when members wake;
    T_A.

    Source: chapter 5, 5.3.1.1 to 5.3.1.3. Verdict: right without loss and if correlated;
    uncorrelated it counts the first announcement as a whole period, and N receivers for N - 1 (E5).

    >>> cases = (2, 0.4), (50, 0.4), (500, 0.7)
    >>> [round(printed_tmax(N, l, "uncorrelated", Law()), 3) for N, l in cases]
    [2.643, 5.91, 20.045]
    """
    check_group(N, 2)
    check_times(T_A=T_A)
    check_model(loss, model)
    if model == "uncorrelated":
        return law.mean + T_A * expected_rounds(N, loss)
    return law.mean + T_A * loss / (1 - loss)


def adjusted_loss(loss: float, c: float, s: int) -> float:
    """Loss when every further message under way adds loss: 1 - (1-l)(1-c)^(s-1).

    Parameters: l, the loss of a message alone; c, what each other one adds; s, messages under way.

    Source: chapter 5, 5.4.2, which speaks of an adjusted loss of chapter 1. Verdict: one possible
    form; c = 2.35e-4 is a fit to one quoted point, the crossing at N = 200, not a prediction.

    >>> round(adjusted_loss(0.4, 2.35e-4, 200), 4)
    0.4274
    """
    check_model(loss, "uncorrelated")
    require(0 <= c < 1, f"c must lie in [0, 1), not {c}")
    require(s >= 1, f"s must be at least 1, not {s}")
    return 1 - (1 - loss) * (1 - c) ** (s - 1)

"""A member joins a settled group at a random phase (5.3.2, late joiners; T_L infinite)."""

from __future__ import annotations

from hustings.lab.closed_forms.announce.laws import CHAPTER, Law, check_model
from hustings.lab.closed_forms.announce.numerics import check_group, check_loss, check_times
from hustings.lab.closed_forms.announce.rounds import expected_rounds, rounds

SOURCE = f"{CHAPTER}: 5.3.2, late joiners"


def larger(N: int, loss: float, model: str, law: Law, T_A: float = 1.0, D: float = 0.0) -> float:
    """The joiner is the best: E[t_s] + D + T_A (E[R_N] - 1), all N must hear it.

    Parameters: N, members BEFORE the join; loss (l); model, the loss model; law, when it wakes
    (T_S = 0 for LE-A); T_A; D, the delay.

    Source: chapter 5, 5.3.2. Verdict: exact; the leadership delay of N + 1 members. Uncorrelated,
    the chapter multiplies T_A by R (E15).

    >>> round(larger(20, 0.4, "uncorrelated", Law(), D=0.1), 3)
    4.027
    """
    check_group(N)
    check_times(T_A=T_A, D=D)
    return law.mean + D + T_A * (rounds(N, loss, model) - 1)


def smaller(loss: float, T_A: float = 1.0) -> float:
    """The joiner is not the best and alone must hear the leader: T_A / 2 + T_A l / (1-l).

    Announcements arrive every T_A, at a phase uniform to the joiner's; each is lost with l.

    Parameters: loss (l), correlated or not; T_A. Every N and D, LE-S and LE-A.

    Source: chapter 5, 5.3.2. Verdict: exact (E13, E14).

    >>> round(smaller(0.4), 3)
    1.167
    """
    check_loss(loss)
    check_times(T_A=T_A)
    return T_A / 2 + T_A * loss / (1 - loss)


def smaller_query(T_A: float = 1.0, D: float = 0.0) -> float:
    """The joiner asks for the leader, l = 0: 2D - 2D^2/T_A for 2D <= T_A, else T_A / 2.

    The answer comes after 2D unless an announcement does before: the mean of min(2D, phase).

    Parameters: T_A; D, the delay.

    Source: chapter 5, 5.7 (Query), which gives no result. Verdict: derived; to be simulated.

    >>> round(smaller_query(1.0, 0.1), 4)
    0.18
    """
    check_times(T_A=T_A, D=D)
    soon = min(2 * D, T_A)
    return soon - soon * soon / (2 * T_A)


def printed_larger(
    N: int, loss: float, model: str, law: Law, T_A: float = 1.0, D: float = 0
) -> float:
    """The joiner is the best, as printed: E[t_s] + D + T_A times 0, l/(1-l) or E[R_N].

    Parameters: as `larger`.

    Source: chapter 5, 5.3.2. Verdict: right without loss and if correlated; uncorrelated one
    period too long (E15). N receivers are right here: N is the number before the join.

    >>> round(printed_larger(20, 0.4, "uncorrelated", Law(), D=0.1), 3)
    5.027
    """
    check_group(N)
    check_times(T_A=T_A, D=D)
    return law.mean + D + T_A * _printed_lost(N, loss, model)


def printed_smaller(
    N: int, loss: float, model: str, T_A: float = 1.0, ceiling: bool = True
) -> float:
    """The joiner is not the best, as printed: T_A / 2 + T_A times 0, l/(1-l) or E[R_N].

    T_A / 2 is E[ceil((t_a - D)/T_A)] T_A + D - E[t_a]. Without the ceiling, as all later lines
    print it, that is 0 (E13).

    Parameters: N, members before the join; loss (l); model, the loss model; T_A; ceiling, whether
    the brackets are read as a ceiling.

    Source: chapter 5, 5.3.2. Verdict: right with the ceiling, but uncorrelated it waits for N
    receivers where only the joiner listens (E14).

    >>> round(printed_smaller(50, 0.4, "uncorrelated"), 2), printed_smaller(50, 0, "none", 1, False)
    (5.91, 0.0)
    """
    check_group(N)
    check_times(T_A=T_A)
    return (T_A / 2 if ceiling else 0.0) + T_A * _printed_lost(N, loss, model)


def _printed_lost(N: int, loss: float, model: str) -> float:
    check_model(loss, model)
    return expected_rounds(N, loss) if model == "uncorrelated" else loss / (1 - loss)

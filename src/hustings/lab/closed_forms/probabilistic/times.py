"""Theorem 5: how long a round takes, and the probability that this is long enough."""

from __future__ import annotations

from math import fsum

from hustings.lab.closed_forms.form import Sheet
from hustings.lab.closed_forms.probabilistic.events import HAIR, printed_enough
from hustings.lab.closed_forms.probabilistic.messages import printed_time_out_2, time_out_1
from hustings.lab.closed_forms.probabilistic.round import PAPER, Round, entering

SOURCE = f"{PAPER}: section 4, Theorem 5"


def printed_round_time(one: Round, unicast: float, work: float = 0.0) -> float:
    """m unicast delays and the hashes of N members, at m = 3 K1/2: O(m) O(N) + O(N).

    A network of N nodes delivers within O(N), so that a unicast delay is of order N.

    Parameters: one, the round; unicast, the longest delay; work, to hash one member.

    Source: section 4, Theorem 5. Verdict: the order is right, since Time_Out_2 is 3K/2 delays; it
    leaves out the initiating message and the finals, which take 3 T_3 with the time that members
    may begin apart.

    >>> printed_round_time(Round(K=7, N=2000), unicast=1.0, work=0.001)
    12.5
    """
    return printed_time_out_2(one.k1, unicast) + one.N * work


def round_time(one: Round, unicast: float, multicast: float, work: float = 0.0) -> float:
    """(3K/2) unicast delays + 3 T_3 + N hashes: from the initiating message to the decision.

    T_3 until every member has the initiating message, then Time_Out_1.

    Parameters: one, the round; unicast and multicast, the longest delays; work, to hash one
    member.

    Source: section 4, Theorem 5. Verdict: exact, and certain: the time-outs end a round whatever
    happens in it, so it is O(NK + N) always, and not with high probability only.

    >>> round_time(Round(K=7, N=2000), unicast=1.0, multicast=1.0)
    13.5
    """
    T_2 = printed_time_out_2(one.K, unicast)
    return multicast + time_out_1(T_2, multicast, one.N * work)


def printed_in_time(one: Round) -> float:
    """(Pr_lb[E1])^2: with this probability at least the round takes O(NK + N).

    Parameters: one, the round.

    Source: section 4, Theorem 5. Verdict: no bound (E7), and not needed for the time, which the
    time-outs bound; above 1 where Pr_lb[E1] is below -1.

    >>> one = Round(K=40, view_prob=0.4, p_mcastl=0.01, p_ucastl=0.01, p_fail=0.01, N=10000)
    >>> round(printed_in_time(one), 4)
    0.9926
    """
    bound: float = printed_enough(one) ** 2
    return bound


def in_time(one: Round) -> float:
    """Pr[R <= 3K/2]: Time_Out_2 is as long as the longest path among R relay members.

    The best choice needs at most R - 1 unicasts in a row, and one more where only the far end of
    an edge knows the near one.

    Parameters: one, the round; R ~ Bin(N, (1-p_mcastl) K/N).

    Source: section 3.3 and section 4, Theorem 5. Verdict: exact; what is left to chance is whether
    the relay phase is over when its time is, not how long the round takes.

    >>> round(in_time(Round(K=7, N=2000)), 4)
    0.9019
    """
    return min(1.0, fsum(chance for r, chance in entering(one) if r <= 1.5 * one.K + HAIR))


def declare(sheet: Sheet, one: Round, delta: float, T_3: float, work: float) -> None:
    """Add the forms of this module to a sheet."""
    sheet.source = SOURCE
    sheet.add("round_time", round_time, one, delta, T_3, work)
    sheet.add("round_time", printed_round_time, one, delta, work)
    sheet.both("in_time", in_time, printed_in_time, one)

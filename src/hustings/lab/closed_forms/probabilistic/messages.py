"""Theorems 3 and 4: how many messages a round takes; and its time-outs (section 3.3)."""

from __future__ import annotations

from functools import partial

from hustings.lab.closed_forms.form import Sheet, require
from hustings.lab.closed_forms.probabilistic.round import PAPER, Round

SOURCE = f"{PAPER}: section 4, Theorems 3 and 4"
TIMES = f"{PAPER}: section 3.3"


def printed_unicasts(m: int) -> float:
    """m^3/2 unicasts at most among m relay members.

    Parameters: m, relay members.

    Source: section 4, before Theorem 3. Verdict: no upper bound: three members can send 18 (E12).

    >>> printed_unicasts(3)
    13.5
    """
    return m**3 / 2


def most_fresh_unicasts(m: int) -> float:
    """(m^3 - m)/2: at most this many if no member sends one choice to a member twice.

    Rank the first choices of the m members, equal ones alike, the best 1; a member whose first
    choice has rank i sends only choices of ranks 1..i, since its choice only gets better: at most
    i messages to each of m - 1 others. There are at most m ranks, and if members are sorted by
    them the i-th has rank at most i. So the sum is at most (m-1)(1 + 2 + ... + m), which is
    (m-1) m (m+1)/2.

    Parameters: m, relay members.

    Source: section 4, before Theorem 3. Verdict: a true bound of order m^3, of different messages;
    an answer may repeat one (E12).

    >>> most_fresh_unicasts(3)
    12.0
    """
    return (m**3 - m) / 2


def most_unicasts(m: int) -> float:
    """(m-1) m (m+1)(m+2)/6: never more unicasts among m relay members, for any delays.

    A member sends its choice to all it knows at first and after each change: for a first choice
    of rank i (see `most_fresh_unicasts`) once for each of the ranks 1..i at most, to m - 1 others
    at most. An answer goes to a message with a strictly worse choice, one to one. So each message
    sent to all starts one chain of answers, answers to answers and so on, in which ranks fall: a
    choice of rank j starts a chain of at most j messages, itself included. The sum is at most
    (m-1) times the sum over i of 1 + 2 + ... + i, which is (m-1) m (m+1)(m+2)/6. A message that
    improves its receiver ends its chain; what the receiver then sends to all is counted there.
    Loss and crashes only cut chains.

    Parameters: m, relay members, equal choices not answered.

    Source: section 4, before Theorem 3. Verdict: a true bound, of order m^4, and the order is
    right: two halves of a group, each fed by a chain of ever better choices, keep answering each
    other, and every step adds an answer to every pair. So Theorem 3's O(m^3) fails in the worst
    case; it holds for different messages, and in the mean (`mean_unicasts_at_most`).

    >>> [most_unicasts(m) for m in (3, 5, 7)]
    [20.0, 140.0, 504.0]
    """
    require(m >= 0, f"m must be at least 0, not {m}")
    return (m - 1) * m * (m + 1) * (m + 2) / 6 if m else 0.0


def first_unicasts(one: Round) -> float:
    """E[first unicasts] = N(N-1) (K/N)^2 (1 - p_mcastl) view_prob, about K^2 view_prob.

    Each relay member sends its choice to the members in its view that pass the filter, whether
    they heard the initiating message or not.

    Parameters: one, the round.

    Source: section 3.1, relay phase. Verdict: exact for a first round in which no relay member
    crashes before its first messages.

    >>> round(first_unicasts(Round(K=7, view_prob=0.5, N=2000)), 3)
    24.488
    """
    return _pairs(one) * one.view_prob


def mean_unicasts_at_most(one: Round) -> float:
    """E[unicasts] <= N(N-1) (K/N)^2 (1 - p_mcastl) / view_prob^2, about K^2 / view_prob^2.

    The count of `most_unicasts`, with P - 1 others for P members that pass the filter. The first
    choice of a member is the G-th of all candidates, G geometric with parameter view_prob, so its
    rank is at most G, and the mean of 1 + ... + G is 1/view_prob^2. The choices do not depend on
    which members pass.

    Parameters: one, the round.

    Source: section 4, Theorem 4. Verdict: a true upper bound for a first round, whatever the
    losses, crashes and delays: order K^2 where the theorem says K^3. If members that missed the
    initiating message join when they are contacted, leave the factor 1 - p_mcastl out.

    >>> round(mean_unicasts_at_most(Round(K=7, view_prob=0.5, N=2000)), 1)
    195.9
    """
    return _pairs(one) / one.view_prob**2


def relay_members(one: Round) -> float:
    """E[relay members] = (1 - p_mcastl) K, and (1 - p_mcastl) N if K > N.

    Parameters: one, the round; if members take the sizes of their views for N, put K/view_prob
    for K.

    Source: section 4. Verdict: exact, but for the initiator, which always hears itself.

    >>> relay_members(Round(K=7, p_mcastl=0.5, N=2000))
    3.5
    """
    return (1 - one.p_mcastl) * one.N * one.passing


def finals(one: Round) -> float:
    """E[final multicasts] = (1 - p_mcastl)(1 - p_fail) K.

    Parameters: one, the round; tau2 below 1 lets a part of the crashes come after the finals.

    Source: section 4, Theorem 4. Verdict: exact.

    >>> round(finals(Round(K=7, p_mcastl=0.1, p_fail=0.1, N=2000)), 4)
    5.67
    """
    return relay_members(one) * (1 - one.crash_before)


def printed_time_out_1(K: float, unicast: float, multicast: float, work: float = 0.0) -> float:
    """T_1 = work + T_2 + T_3, with T_2 = (3K/2) unicast delays.

    Parameters: K; unicast and multicast, the longest delays; work, to find the relay members.

    Source: section 3.3. Verdict: forgets that the initiating message may be T_3 late (E14).

    >>> printed_time_out_1(7, 1.0, 1.0)
    11.5
    """
    return work + printed_time_out_2(K, unicast) + multicast


def printed_time_out_2(K: float, unicast: float) -> float:
    """T_2 = (3K/2) unicast delays.

    Parameters: K; unicast, the longest delay.

    Source: section 3.3. Verdict: forgets that relay members start up to T_3 apart, and that an
    edge which only the far member knows takes a message more (E14).

    >>> printed_time_out_2(7, 1.0)
    10.5
    """
    return 1.5 * K * unicast


def time_out_2(K: float, unicast: float, multicast: float) -> float:
    """T_2 = T_3 + (3K/2) unicast delays: enough for up to 3K/2 relay members.

    All start within T_3, and one delay later all first messages have arrived: from then on every
    edge is known at both ends, and the best choice needs at most m - 1 more delays. So the first
    to start has to wait T_3 + m delays.

    Parameters: K; unicast and multicast, the longest delays.

    Source: section 3.3. Verdict: a true bound without loss, if there are at most 3K/2 relay
    members (E14).

    >>> time_out_2(7, 1.0, 1.0)
    11.5
    """
    return multicast + printed_time_out_2(K, unicast)


def time_out_1(T_2: float, multicast: float, work: float = 0.0) -> float:
    """T_1 = work + T_2 + 2 T_3.

    Parameters: T_2, as used; multicast, the longest delay (T_3); work.

    Source: section 3.3. Verdict: a relay member may start T_3 later, and its final takes T_3 (E14).

    >>> time_out_1(10.5, 1.0)
    12.5
    """
    return work + T_2 + 2 * multicast


def _pairs(one: Round) -> float:
    """Count pairs of a relay member and another member that passes the filter."""
    return one.N * (one.N - 1) * one.passing**2 * (1 - one.p_mcastl)


def declare(sheet: Sheet, one: Round, delta: float, T_3: float) -> None:
    """Add the forms of this module to a sheet."""
    sheet.source = SOURCE
    sheet.add("relay_members", relay_members, one)
    sheet.add("finals", finals, one)
    sheet.add("first_unicasts", first_unicasts, one)
    sheet.add("unicasts_at_most", mean_unicasts_at_most, one)
    m = max(1, round(relay_members(one)))
    for name, form in (
        ("worst_unicasts", most_unicasts),
        ("worst_fresh_unicasts", most_fresh_unicasts),
        ("worst_unicasts", printed_unicasts),
    ):
        sheet.known(name, form, partial(form, m), lead=f"m = {m}: ")
    sheet.source = TIMES
    T_2 = time_out_2(one.K, delta, T_3)
    sheet.add("T_2", time_out_2, one.K, delta, T_3)
    sheet.add("T_1", time_out_1, T_2, T_3)
    sheet.add("T_2", printed_time_out_2, one.K, delta)
    sheet.add("T_1", printed_time_out_1, one.K, delta, T_3)

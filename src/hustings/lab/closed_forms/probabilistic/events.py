"""The five events of Theorem 1, each with its printed and its true bound.

E1, enough relay members and not too many; E2, the survivors are connected; E3, they choose one
leader; E4, every live member receives a final; E5, the leader lives.
"""

from __future__ import annotations

from math import ceil, exp, expm1, floor, fsum, log, log1p, pi, sqrt

from hustings.lab.closed_forms.form import Sheet, require
from hustings.lab.closed_forms.probabilistic.graphs import printed_connected, unconnected
from hustings.lab.closed_forms.probabilistic.round import (
    PAPER,
    Round,
    entering,
    require_summable,
    sending,
)

SOURCE = f"{PAPER}: section 4, round success probabilities"
HAIR = 1e-9  # rounding of K1 and K2 moves no member out of its interval


def printed_enough(one: Round) -> float:
    """Pr_lb[E1] = 1 - 2 sqrt(2/(pi K1)) e^(-K1/8) - 2 sqrt(2/(pi K2)) e^(-K2/8).

    Parameters: one, the round.

    Source: section 4. Verdict: below the exact value for K <= 67 at Figure 4's parameters only,
    since both terms count one event; above it from K = 68 on, and negative for K <= 3 (E7).

    >>> one = Round(K=40, view_prob=0.4, p_mcastl=0.01, p_ucastl=0.01, p_fail=0.01, N=10000)
    >>> round(printed_enough(one), 5)
    0.99631
    """
    require(one.k2 > 0, "p_mcastl and p_fail must be below 1: else no member relays")
    return 1 - fsum(2 * sqrt(2 / (pi * k)) * exp(-k / 8) for k in (one.k1, one.k2))


def enough(one: Round) -> float:
    """Pr[E1], both intervals at once: K1/2 <= R <= 3 K1/2 and K2/2 <= M <= 3 K2/2.

    R ~ Bin(N, (1-p_mcastl) K/N) enter, and M ~ Bin(R, 1-p_fail) of them send a final.

    Parameters: one, the round; N may be any size.

    Source: section 4, event E1. Verdict: exact; replaces a normal approximation (E7).

    >>> one = Round(K=40, view_prob=0.4, p_mcastl=0.01, p_ucastl=0.01, p_fail=0.01, N=10000)
    >>> round(enough(one), 5)
    0.9978
    """
    return fsum(chance for _, _, chance in _enough(one))


def printed_joined(one: Round) -> float:
    """Pr_lb[E2|E1] = P_(K2/2), with P_m = exp(-m (1 - view_prob)^(m-1)).

    Parameters: one, the round.

    Source: section 4. Verdict: no lower bound by itself (E6); low enough where it is used, since
    edges have probability 1 - (1 - view_prob)^2.

    >>> one = Round(K=40, view_prob=0.4, p_mcastl=0.01, p_ucastl=0.01, p_fail=0.01, N=10000)
    >>> round(printed_joined(one), 4)
    0.9985
    """
    return printed_connected(one.k2 / 2, one.view_prob)


def joined(one: Round) -> float:
    """Pr[E2|E1]: the relay graph of the M survivors is connected, over the law of M given E1.

    Parameters: one, the round.

    Source: section 4, event E2. Verdict: exact; edges have probability 1 - (1 - view_prob)^2 (E6).

    >>> one = Round(K=7, view_prob=0.4, N=10000)
    >>> round(joined(one), 5)
    0.95566
    """
    pairs = [(unconnected(m, one.edge), chance) for _, m, chance in _enough(one)]
    return 1 - _mean(pairs, "E2")


def printed_same(one: Round) -> float:
    """Pr_lb[E3|E1,E2] = (1 - p_fail) (1 - p_ucastl)^(3 K2/2 - 1).

    Parameters: one, the round.

    Source: section 4. Verdict: no bound edge by edge, since an edge that only the far member has
    in its view takes two deliveries; far too low all the same, as there are many ways (E8).

    >>> one = Round(K=40, view_prob=0.4, p_mcastl=0.01, p_ucastl=0.01, p_fail=0.01, N=10000)
    >>> round(printed_same(one), 4)
    0.5538
    """
    if one.p_ucastl == 1:
        return 0.0  # for few relay members the power has a negative exponent, and no limit
    delivered: float = (1 - one.p_ucastl) ** (1.5 * one.k2 - 1)
    return (1 - one.p_fail) * delivered


def same(one: Round) -> float:
    """Pr[E3|E1,E2] from below: (C_t over C_e), if a member that prefers the best lives on.

    The best choice spreads from a member that prefers it. It crosses from a member that has it to
    one that has not with probability at least t = v(1-p_u)(1 + (1-v)(1-p_u)): see
    `Round.crossing`. Each pair is tried once, in one direction, so it reaches all M survivors
    with probability at least C_t(M), the connectivity of a graph with edges of probability t;
    and then they hang together, which is E2. Of R relay members with x = 1 - v, one that lives
    prefers the best with probability (1 - x^M)/(1 - x^R). So the bound is
    E[C_t(M) (1-x^M)/(1-x^R) | E1] / Pr[E2|E1].

    Parameters: one, the round.

    Source: section 4, event E3. Verdict: a true lower bound for a large group, up to K^2/N; a
    member that sends its final and then crashes counts, as it must (E8, E9).

    >>> round(same(Round(K=7, view_prob=0.4, p_ucastl=0.2, p_fail=0.05, N=10000)), 4)
    0.814
    """
    pairs = [
        ((1 - unconnected(m, one.crossing)) * one.sees(m) / one.sees(r), chance)
        for r, m, chance in _enough(one)
    ]
    together = joined(one)
    require(together > 0, "view_prob is so small that no relay graph hangs together")
    return min(1.0, _mean(pairs, "E3") / together)


def printed_heard(one: Round) -> float:
    """Pr_lb[E4|E1,E2,E3] = (p_fail + (1 - p_fail)(1 - p_mcastl^(K2/2)))^N.

    Parameters: one, the round.

    Source: section 4. Verdict: right as printed, if m = K2/2 is whole; without a relay member it
    says nothing (E9).

    >>> one = Round(K=40, view_prob=0.4, p_mcastl=0.5, p_ucastl=0.01, p_fail=0.01, N=10000)
    >>> round(printed_heard(one), 6)
    3.1e-05
    """
    return all_hear(one, one.k2 / 2, one.N)


def heard(one: Round) -> float:
    """Pr[E4|E1,E2,E3] from below: (1 - (1-p_fail) p_mcastl^m)^N at the least m >= K2/2.

    Parameters: one, the round; N to 10^18 and beyond, in logarithms.

    Source: section 4, event E4. Verdict: a true lower bound: E1 asks for m >= K2/2 > 0, so there
    is at least one final (E9).

    >>> one = Round(K=7, p_mcastl=0.01, N=10**18)
    >>> round(heard(one), 6), heard(Round(K=40, p_mcastl=0.01, N=10**18))
    (0.0, 1.0)
    """
    return all_hear(one, least_finals(one), one.N)


def printed_leader_lives(one: Round) -> float:
    """Pr[E5|E1..E4] = 1 - p_fail.

    Parameters: one, the round.

    Source: section 4. Verdict: the leader's survival of one round; a leader that crashed before
    it stays the preferred one unless the initiating message names it (E10).

    >>> printed_leader_lives(Round(K=7, p_fail=0.01))
    0.99
    """
    return 1 - one.p_fail


def leader_lives(one: Round) -> float:
    """Pr[E5|E1..E4] from below: (1-p_fail)(1-z) / (1 - (1-p_fail) z), z = p_mcastl^m, m >= K2/2.

    E4 says of each member that it crashes or receives a final; if it did, its survival is less
    sure.

    Parameters: one, the round.

    Source: section 4, event E5. Verdict: exact at the least m, so a lower bound; given that the
    leader lived before the round (E10).

    >>> round(leader_lives(Round(K=7, p_fail=0.01, p_mcastl=0.01)), 6)
    0.99
    """
    z = one.p_mcastl ** least_finals(one)
    require(z < 1 or one.p_fail > 0, "p_mcastl must be below 1: else no member hears a final")
    return (1 - one.p_fail) * (1 - z) / (1 - (1 - one.p_fail) * z)


def printed_room(one: Round) -> float:
    """log10 of the N that E4 allows, as printed: N << p_mcastl^(-3 K2/2).

    Parameters: one, the round; p_mcastl above 0.

    Source: section 4, below E5, which says 10^107 for K = 40. Verdict: not the exponent of the
    bound, and 107 follows from neither (E5).

    >>> one = Round(K=40, view_prob=0.4, p_mcastl=0.01, p_ucastl=0.01, p_fail=0.01, N=10000)
    >>> round(printed_room(one), 1)
    117.6
    """
    return 3 * room(one)


def room(one: Round) -> float:
    """log10 of the N that E4 allows: N << p_mcastl^(-K2/2).

    Parameters: one, the round; p_mcastl above 0.

    Source: section 4, event E4. Verdict: the exponent of its own bound (E5).

    >>> one = Round(K=40, view_prob=0.4, p_mcastl=0.01, p_ucastl=0.01, p_fail=0.01, N=10000)
    >>> round(room(one), 1)
    39.2
    """
    require(one.p_mcastl > 0, "p_mcastl must be above 0: without loss any N is allowed")
    return -one.k2 / 2 * log(one.p_mcastl) / log(10)


def least_finals(one: Round) -> int:
    """The least number of finals in E1.

    Parameters: one, the round.

    Source: section 4, event E1. Verdict: exact.

    >>> least_finals(Round(K=7)), least_finals(Round(K=1))
    (4, 1)
    """
    require(one.k2 > 0, "p_mcastl and p_fail must be below 1: else no member relays")
    return max(1, ceil(one.k2 / 2 - HAIR))


def all_hear(one: Round, finals: float, members: float, aware: float = 1.0) -> float:
    """All live (and aware) members of some number receive one of the finals.

    (1 - a (1-p_fail) p_mcastl^m)^n, in logarithms.

    Parameters: one, the round; finals (m); members (n); aware (a), the chance to be concerned.

    Source: section 4, event E4. Verdict: exact for independent losses.

    >>> round(all_hear(Round(K=7, p_mcastl=0.2, N=2000), 5, 1993), 4)
    0.5284
    """
    return 1 - somebody_misses(one, finals, members, aware)


def somebody_misses(one: Round, finals: float, members: float, aware: float = 1.0) -> float:
    """At least one of some members lives, is aware, and receives none of the finals.

    Parameters: as of `all_hear`, of which this is the rest.

    Source: section 4, event E4. Verdict: exact for independent losses; keeps its digits when small.

    >>> f"{somebody_misses(Round(K=7, p_mcastl=0.01), 10, 2000):.1e}"
    '2.0e-17'
    """
    missing = aware * (1 - one.p_fail) * one.p_mcastl**finals
    if members <= 0 or missing <= 0:
        return 0.0
    return 1.0 if missing >= 1 else -expm1(members * log1p(-missing))


def _enough(one: Round) -> list[tuple[int, int, float]]:
    """All (R, M, probability) in E1."""
    require_summable(one)
    require(one.k2 > 0, "p_mcastl and p_fail must be below 1: else no member relays")
    low, high = max(1, ceil(one.k1 / 2 - HAIR)), floor(1.5 * one.k1 + HAIR)
    least, most = least_finals(one), floor(1.5 * one.k2 + HAIR)
    return [
        (r, m, weight * chance)
        for r, weight in entering(one)
        if low <= r <= high
        for m, chance in sending(one, r)
        if least <= m <= most
    ]


def _mean(pairs: list[tuple[float, float]], event: str) -> float:
    weight = fsum(chance for _, chance in pairs)
    require(weight > 0, f"{event} is conditional on E1, and K is too small for E1 to happen")
    return fsum(value * chance for value, chance in pairs) / weight


def declare(sheet: Sheet, one: Round) -> None:
    """Add the forms of this module to a sheet."""
    sheet.source = SOURCE
    for name, true, printed in (
        ("e1", enough, printed_enough),
        ("e2_given_e1", joined, printed_joined),
        ("e3_given_e1_e2", same, printed_same),
        ("e4_given_e1_e2_e3", heard, printed_heard),
        ("e5_given_e1_to_e4", leader_lives, printed_leader_lives),
        ("room_log10", room, printed_room),
    ):
        sheet.both(name, true, printed, one)

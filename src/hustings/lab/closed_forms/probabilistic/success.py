"""The success of one round from below (Theorem 1), and the exact law of a round without loss."""

from __future__ import annotations

from functools import lru_cache
from math import ceil, fsum

from hustings.lab.closed_forms.form import Sheet
from hustings.lab.closed_forms.probabilistic import events
from hustings.lab.closed_forms.probabilistic.graphs import disagreeing, unconnected
from hustings.lab.closed_forms.probabilistic.round import (
    PAPER,
    Round,
    binomial,
    entering,
    poisson,
    require_summable,
    sending,
)

SOURCE = f"{PAPER}: section 4, Theorem 1"
DUST = 1e-34  # weights below are left out; their sum stays below SLACK
FINE = 1e-20  # a bound from below may leave out as much
SLACK = 1e-30  # added where a bound from above leaves something out
REST = 1e-15  # how little of a walk over candidates may be left out


def printed_success(one: Round) -> float:
    """The product of the five printed bounds.

    Parameters: one, the round.

    Source: section 4; "peaks at 0.6" at Figure 4's parameters. Verdict: a product of terms that
    are no bounds (E6, E7, E8), far below the truth; its peak is 0.6391, at K = 24 (E15).

    >>> one = Round(K=24, view_prob=0.4, p_mcastl=0.01, p_ucastl=0.01, p_fail=0.01, N=10000)
    >>> round(printed_success(one), 4)
    0.6391
    """
    return (
        events.printed_enough(one)
        * events.printed_joined(one)
        * events.printed_same(one)
        * events.printed_heard(one)
        * events.printed_leader_lives(one)
    )


def product_success(one: Round) -> float:
    """The product of the five corrected bounds: success with everything that E1 to E5 ask for.

    Parameters: one, the round.

    Source: section 4. Verdict: a true lower bound, up to K^2/N; loose, since a round may succeed
    without E1.

    >>> one = Round(K=24, view_prob=0.4, p_mcastl=0.01, p_ucastl=0.01, p_fail=0.01, N=10000)
    >>> round(product_success(one), 4)
    0.9755
    """
    return (
        events.enough(one)
        * events.joined(one)
        * events.same(one)
        * events.heard(one)
        * events.leader_lives(one)
    )


def success(one: Round) -> float:
    """The probability that a round succeeds, from below, over all numbers of relay members.

    R members enter and M >= 1 send finals, which agree but for `differing`. The leader lives and
    receives a final, (1-p_fail)(1 - p_mcastl^M), and so does every other live member. If the leader
    is a relay member itself, it prefers itself. Then the survivors agree with probability at least
    C(M), if it is among them, M/R.

    Parameters: one, the round; K at most 2000.

    Source: section 4, Theorem 1. Verdict: a true lower bound up to K^2/N (two relay members that
    know each other may be each other's choice); "at least one final" is asked for (E9); the
    leader lived before the round (E10). The initiator is taken for an outsider.

    >>> one = Round(K=24, view_prob=0.4, p_mcastl=0.01, p_ucastl=0.01, p_fail=0.01, N=10000)
    >>> round(success(one), 4)
    0.99
    """
    require_summable(one)
    lives = 1 - one.p_fail
    after = lives / (1 - one.crash_before) if one.crash_before < 1 else 0.0
    total: list[float] = []
    for r, weight in entering(one):
        inside = leader_relays(r, one)
        for m, chance in sending(one, r):
            share = weight * chance
            if m == 0 or share < FINE:
                continue
            outside = (1 - differing(one, r, m)) * lives * (1 - one.p_mcastl**m)
            total.append(share * (1 - inside) * outside * events.all_hear(one, m, one.N - r - 1))
            if inside * share > FINE:
                own = m / r * (1 - unconnected(m, one.crossing)) * after
                total.append(share * inside * own * events.all_hear(one, m, one.N - r))
    return fsum(total)


def unsettled(one: Round, aware: float | None = None) -> float:
    """The probability that a round is followed by another, from above.

    There is no final, or finals differ, or a live member that received the initiating message
    receives none. A leader that crashes is not counted: no member would notice.

    Parameters: one, the round; K at most 2000; aware, the chance of a member to have heard the
    initiating message, 1 - p_mcastl if not given.

    Source: section 3.1, failure detection. Verdict: a true upper bound up to K^2/N.

    >>> round(unsettled(Round(K=7, view_prob=0.5, N=2000)), 4)
    0.0146
    """
    require_summable(one)
    return _unsettled(one, 1 - one.p_mcastl if aware is None else aware)


@lru_cache(256)  # two forms of a strategy ask for the same rounds
def _unsettled(one: Round, aware: float) -> float:
    total = [SLACK]
    for r, weight in entering(one):
        for m, chance in sending(one, r):
            share = weight * chance
            if share < DUST:
                continue
            failing = 1.0
            if m:
                apart = differing(one, r, m)
                unheard = events.somebody_misses(one, m, one.N - r, aware)
                failing = apart + (1 - apart) * unheard
            total.append(share * failing)
    return min(1.0, fsum(total))


def differing(one: Round, r: int, m: int) -> float:
    """The probability that the finals of m survivors of r relay members differ, from above.

    They agree if one of the m prefers the best of all r first choices, with x = 1 - view_prob
    (1 - x^m)/(1 - x^r), and if it spreads from all of those that do: see `disagreeing`, with
    edges of probability `crossing`.

    Parameters: one, the round; r, relay members; m, of them alive until their finals.

    Source: section 4, event E3. Verdict: exact without loss and crashes, else an upper bound, up
    to K^2/N; keeps its digits when small.

    >>> round(differing(Round(K=7, view_prob=0.5), 2, 2), 4), differing(Round(K=7), 1, 1)
    (0.1667, 0.0)
    """
    lost = (1 - one.view_prob) ** m * one.sees(r - m)  # those that prefer the best have crashed
    apart = disagreeing(m, one.crossing, one.view_prob)
    return min(1.0, (lost + apart * one.sees(m)) / one.sees(r))


def torn(K: float, view_prob: float, N: int | None = None) -> float:
    """The probability that the finals of a first round without loss disagree or are absent.

    m relay members, Poisson(K) or Bin(N, K/N); no final if m = 0, else `disagreeing` with edges
    of probability 2v - v^2.

    Parameters: K; view_prob (v); N, the group, or None for a large one.

    Source: sections 3.1 and 5; the paper has no such form. Verdict: exact for a large group; with
    N only the number of relay members is exact, and choices that are relay members cost K/N.

    >>> [round(torn(7, v), 6) for v in (0.2, 0.3, 0.4, 0.5)]
    [0.359472, 0.12124, 0.041098, 0.014624]
    """
    one = Round(K=K, view_prob=view_prob, N=ceil(K) if N is None else N)
    require_summable(one)
    first, law = poisson(K) if N is None else binomial(N, one.passing)
    return fsum(
        chance * (disagreeing(m, one.edge, view_prob) if m else 1.0)
        for m, chance in enumerate(law, first)
    )


def leader_relays(r: int, one: Round) -> float:
    """The probability that the choice of r relay members is one of them.

    Go through the candidates from the best: one of the r is chosen for sure, since it prefers
    itself, another with probability 1 - x^r.

    Parameters: r, relay members; one, the round.

    Source: section 5, lower identities preferred. Verdict: exact; what is left of the walk after
    its end is added, so never too low.

    >>> round(leader_relays(7, Round(K=7, view_prob=0.5, N=2000)), 5)
    0.00353
    """
    if r == 0:
        return 0.0
    missed = (1 - one.view_prob) ** r
    found, left, candidates = 0.0, 1.0, one.N
    while left > REST and candidates > r:
        hit = r / candidates
        found += left * hit
        left *= (1 - hit) * missed
        candidates -= 1
    return min(1.0, found + left)


def declare(sheet: Sheet, one: Round) -> None:
    """Add the forms of this module to a sheet."""
    sheet.source = SOURCE
    sheet.both("success", success, printed_success, one)
    sheet.add("success_by_product", product_success, one)
    sheet.add("torn_without_loss", torn, one.K, one.view_prob)

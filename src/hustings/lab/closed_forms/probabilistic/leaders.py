"""How likely two members both take themselves for the leader, and how far a strategy goes.

All of this is under independent losses: a partition elects one leader on each side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import comb, exp, fsum, log, log1p, prod

from hustings.lab.closed_forms.form import Sheet, require
from hustings.lab.closed_forms.probabilistic.round import LARGEST_K, PAPER, Round, entering, sending
from hustings.lab.closed_forms.probabilistic.success import DUST, SLACK, differing, unsettled

SOURCE = f"{PAPER}: sections 2.2 and 3; the paper has no such form"
FAINT = -600.0  # a logarithm so low that no factor here lifts it
STRATEGIES = ("paper", "doubling")


def both_lead(m: int, loss: float, inside: float = 0.0) -> float:
    """Two members take themselves for the leader after m finals that disagree, from above.

    Let A be named in a finals, B in b, others in c. A must miss b + c finals and get one of a; B
    must miss a + c and get one of b: p^(m+c) (1-p^a)(1-p^b). If k leaders are named, each pair
    has c >= k - 2, and (1-p^a)(1-p^b) <= (1 - p^((m-c)/2))^2, so all pairs together have at most
    binom(k,2) p^(m+k-2) (1 - p^((m-k+2)/2))^2; take the worst k in 2..m. A leader that sent a
    final has its own, so with probability `inside` the square is left out.

    Parameters: m, finals; loss (p), of a multicast at one member; inside, the probability that
    some named leader is a relay member.

    Source: section 3.1, failure detection. Verdict: a true upper bound for independent losses,
    for every p: above 1/3 more than two leaders count for more.

    >>> round(both_lead(2, 0.1), 6), round(both_lead(3, 0.5, inside=1.0), 6)
    (0.0081, 0.1875)
    """
    require(0 <= loss <= 1, f"p_mcastl must lie in [0, 1], not {loss}")
    if m < 2 or loss == 0:
        return 0.0
    if m * log(loss) < FAINT:
        return 0.0
    worst, last = 0.0, 0.0
    for named in range(2, m + 1):
        hearing = 1 - loss ** ((m - named + 2) / 2)
        term = comb(named, 2) * loss ** (m + named - 2)
        worst = max(worst, term * (hearing**2 * (1 - inside) + inside))
        if term < last:
            break  # log-concave: from here on every term is smaller
        last = term
    return min(1.0, worst)


def two_leaders(one: Round) -> float:
    """Two members take themselves for the leader at the end of one round, from above.

    The mean over R and M of `both_lead(M)` times `differing`. A choice is a relay member with
    probability at most (1/v + R - 1)/N.

    Parameters: one, the round.

    Source: section 2.2, Uniqueness. Verdict: a true upper bound up to K^2/N, for independent
    losses; a partition makes it near 1.

    >>> [f"{two_leaders(Round(7, 0.5, p, p, 0.001, 2000)):.1e}" for p in (0.001, 0.1, 0.3, 0.5)]
    ['3.8e-09', '8.2e-05', '2.8e-03', '1.8e-02']
    """
    return _two(one, settling=True)


def simple_two_leaders(one: Round) -> float:
    """The same without the relay graph: as if finals never agreed.

    Parameters: one, the round.

    Source: section 2.2, Uniqueness. Verdict: a true upper bound for independent losses, whatever
    the views and choices; several times too high.

    >>> [f"{simple_two_leaders(Round(7, 0.5, p, p, 0.001, 2000)):.1e}" for p in (0.1, 0.5)]
    ['3.8e-04', '3.6e-02']
    """
    return _two(one, settling=False)


def _two(one: Round, settling: bool) -> float:
    if min(one.K, one.N) > LARGEST_K:
        return _crowded(one)
    v = one.view_prob
    total = [SLACK] if one.p_mcastl else []
    for r, weight in entering(one):
        for m, chance in sending(one, r):
            if weight * chance < DUST or m < 2:
                continue
            inside = min(1.0, m * (1 / v + r - 1) / one.N)
            bound = both_lead(m, one.p_mcastl, inside)
            if settling and weight * chance * bound > DUST:
                bound *= differing(one, r, m)
            total.append(weight * chance * bound)
    return min(1.0, fsum(total))


def _crowded(one: Round) -> float:
    """With very many relay members: the worst factor of `both_lead`, and E[p^M] in closed form."""
    if one.p_mcastl in (0, 1):
        return 0.0
    sends = (1 - one.p_mcastl) * one.passing * (1 - one.crash_before)
    most = 3 + int(min(1e4, -2 / log(one.p_mcastl)))  # the terms fall beyond
    worst = max(comb(k, 2) * one.p_mcastl ** (k - 2) for k in range(2, most + 1))
    return min(1.0, worst * exp(one.N * log1p(-sends * (1 - one.p_mcastl))))


def strategy(K: float, N: int, rounds: int = 5, name: str = "paper") -> list[float]:
    """The K of each round: the paper's 7, 14, 28, 56, N, or doubling all along.

    Parameters: K, of the first round; N, members; rounds, at most this many; name, paper (doubling,
    and N in the last of several rounds) or doubling.

    Source: sections 3.2 and 5. Verdict: as printed.

    >>> strategy(7, 2000), strategy(7, 20, 3, "doubling")
    ([7, 14, 28, 56, 2000], [7, 14, 20])
    """
    require(rounds >= 1, f"max_rounds must be at least 1, not {rounds}")
    require(name in STRATEGIES, f"strategy must be paper or doubling, not {name!r}")
    steps = [min(N, K * 2**place) for place in range(rounds)]
    return [*steps[:-1], N] if name == "paper" and rounds > 1 else steps


def reached(one: Round, steps: Sequence[float]) -> list[float]:
    """The probability that each round of a strategy takes place, from above.

    A round is followed by another with probability at most `unsettled`, whatever happened
    before: its relay members are drawn anew.

    Parameters: one, any round, for its network; steps, the K of each round.

    Source: section 3.2; E11: the last round, with K = N, costs N^2. Verdict: an upper bound up to
    K^2/N, in which rounds share relay members; for one initiating message a round, and as if all
    were aware of the rounds after the first.

    >>> chances = reached(Round(7, 0.5, 0.5, 0.5, 0.001, 2000), strategy(7, 2000))
    >>> [round(chance, 4) for chance in chances]
    [1.0, 0.9977, 0.9369, 0.3114, 0.0011]
    """
    again = [_again(replace(one, K=K), first=not place) for place, K in enumerate(steps[:-1])]
    return [prod(again[:place], start=1.0) for place in range(len(steps))]


def _again(one: Round, first: bool) -> float:
    if min(one.K, one.N) > LARGEST_K:
        return 1.0
    return unsettled(one, None if first else 1.0)


def two_leaders_ever(one: Round, steps: Sequence[float]) -> float:
    """Two members take themselves for the leader at the end of some round, from above.

    Either both were named in one round l: `reached` times `two_leaders`. Or A was named in round
    j and did not hear of rounds j+1..l, in the last of which B is named: it missed an initiating
    message and all finals of each, p E[p^M] a round and p E[p^M; M >= 1] in round l. At most one
    A is left from round j, but for the pairs counted already.

    Parameters: one, any round, for its network; steps, the K of each round.

    Source: section 2.2, Uniqueness. Verdict: an upper bound as `reached` and `two_leaders` are;
    independent losses.

    >>> rounds = [Round(7, 0.5, p, p, 0.001, 2000) for p in (0.1, 0.3, 0.5)]
    >>> [f"{two_leaders_ever(one, strategy(7, 2000)):.1e}" for one in rounds]
    ['8.2e-05', '3.1e-03', '4.0e-02']
    """
    rounds = [replace(one, K=K) for K in steps]
    chance = reached(one, steps)
    pairs = [at * two_leaders(each) for at, each in zip(chance, rounds, strict=True)]
    total = fsum(pairs)
    for j in range(len(rounds)):
        unheard = 1.0
        for place in range(j + 1, len(rounds)):
            left = min(1.0, chance[place] + pairs[j])
            silent, named = _missed_all(rounds[place])
            total += left * unheard * one.p_mcastl * named
            unheard *= one.p_mcastl * silent
    return min(1.0, total)


def _missed_all(one: Round) -> tuple[float, float]:
    """E[p^M], and E[p^M; M >= 1]."""
    sends = (1 - one.p_mcastl) * one.passing * (1 - one.crash_before)
    silent = exp(one.N * log1p(-sends * (1 - one.p_mcastl))) if one.p_mcastl else 0.0
    nobody = exp(one.N * log1p(-sends)) if sends < 1 else 0.0
    return silent, max(0.0, silent - nobody) if one.p_mcastl else 0.0


def declare(sheet: Sheet, one: Round, steps: list[float]) -> None:
    """Add the forms of this module to a sheet."""
    sheet.source = SOURCE
    sheet.add("two_leaders", two_leaders, one)
    sheet.add("two_leaders_any_views", simple_two_leaders, one)
    sheet.add("two_leaders_ever", two_leaders_ever, one, steps)
    sheet.known("last_round_reached", reached, lambda: reached(one, steps)[-1])

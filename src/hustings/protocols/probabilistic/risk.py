"""An upper bound on the probability of two leaders, if losses are independent.

Let two members A and B both declare themselves at the end of a round. Then neither has received a
final that names another: of m finals, a naming A and b naming B, A has missed m - a and B has
missed m - b. With p the loss of a multicast that has probability p**(2m - a - b), at most p**(m + D
- 2) if the finals name D members in all; D of them form D(D-1)/2 pairs. So

    Pr[two leaders at the end of a round | m finals] <= g(p) p**max(m, 2),
    g(p) = max over D >= 2 of D(D-1)/2 p**(D-2),

where m is at least binomial with N trials of K/N (1 - p)(1 - p_fail): the probability that a member
passes the filter, knows of the round and lives to send.

Besides, one of the two may be a leader of an earlier round. It has received neither the Init of the
next round nor any of its finals, with probability at most p E[p**m]. The sum over all rounds bounds
the election.

The bound covers lost messages only: in a partition each side elects for itself.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, log, log1p

from hustings.protocols.probabilistic.strategy import Strategy


@lru_cache(maxsize=256)
def two_leaders(strategy: Strategy, members: float, p_mcastl: float, p_fail: float) -> float:
    """Bound the probability that at the end of some round two live members lead.

    >>> from hustings.protocols.probabilistic.strategy import strategy
    >>> f"{two_leaders(strategy('paper', 7, 5, None), 2000, 0.001, 0.001):.1e}"
    '3.1e-08'
    >>> two_leaders(strategy('paper', 7, 5, None), 2000, 0.0, 0.001)
    0.0
    """
    if p_mcastl <= 0.0 or members <= 1:
        return 0.0
    if p_mcastl >= 1.0:
        return 1.0
    total = 0.0
    for number in range(1, strategy.rounds + 1):
        share = min(1.0, strategy.K(number, members) / members)
        total += _round(members, share * (1 - p_mcastl) * (1 - p_fail), p_mcastl, number)
    return min(1.0, total)


def _round(members: float, speaks: float, p: float, number: int) -> float:
    """One round's part: E[g p**max(m, 2)], and from the second round on an earlier leader."""
    if speaks >= 1.0:
        none, one, missed = 0.0, float(members <= 1), exp(members * log(p))
    else:
        none = exp(members * log1p(-speaks))
        one = members * speaks * exp((members - 1) * log1p(-speaks))
        missed = exp(members * log1p(-speaks * (1 - p)))  # E[p**m]
    part = _pairs(p) * (missed - none - one * p + (none + one) * p * p)
    return max(0.0, part) + (p * missed if number > 1 else 0.0)


def _pairs(p: float) -> float:
    """Return g(p); beyond D = 1 + 2/log(1/p) the terms fall."""
    last = int(2 + 2 / -log(p)) + 2
    return max(d * (d - 1) / 2 * p ** (d - 2) for d in range(2, min(last, 100_000) + 1))

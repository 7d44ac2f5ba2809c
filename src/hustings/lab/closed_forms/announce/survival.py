"""Which members still announce in round r: uncorrelated loss, D = 0, T_A >= T_S (5.3.3.3, E20-E23).

A member reaches round r + 1 if it has heard no better one up to then. The truth is enumerated over
all wake-up orders, which keep their shape from round to round; the chapter multiplies marginals.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import permutations
from math import factorial, fsum, prod

from hustings.lab.closed_forms.announce.laws import CHAPTER
from hustings.lab.closed_forms.announce.numerics import check_group, check_loss
from hustings.lab.closed_forms.announce.uncorrelated import printed_law
from hustings.lab.closed_forms.form import require

SOURCE = f"{CHAPTER}: 5.3.3.3"
LARGEST = 6  # n! orders times 2^n groups
LARGEST_PRINTED = 60
MOST_ROUNDS = 200


def round_law(n: int, r: int, loss: float) -> list[float]:
    """The probability that 0, 1, .. n messages are sent in round r by n members.

    Parameters: n, members, at most 6; r, the round, from 1; loss (l), uncorrelated.

    Source: the rules; what Q(i, n, r) of 5.3.3.3 means to be. Verdict: enumerated.

    >>> [round(p, 4) for p in round_law(3, 1, 0.0)]
    [0.0, 0.3333, 0.5, 0.1667]
    """
    return list(_enumerated(*_checked(n, r, loss))[0])


def reach(n: int, r: int, loss: float) -> float:
    """The probability that the least of n members reaches round r.

    Parameters: n, members, at most 6; r, the round, from 1; loss (l), uncorrelated.

    Source: the rules; what S(n, r) of 5.3.3.3 means to be. Verdict: enumerated. The best member
    reaches every round.

    >>> round(reach(3, 3, 0.4), 6), reach(1, 9, 0.4)
    (0.082048, 1.0)
    """
    checked = _checked(n, r, loss)
    return 1.0 if r == 1 else _enumerated(checked[0], r - 1, loss)[1]


def marginal_reach(n: int, r: int, loss: float) -> float:
    """S(n, r) as a product over rounds k < r of the sum of Q(i, n-1, k) l^i, with the true Q.

    Parameters: n, members, 2..6; r, the round, from 1; loss (l), uncorrelated.

    Source: chapter 5, 5.3.3.3. Verdict: too low: rounds depend on one another, who lost the first
    is there to be lost again (E22).

    >>> [round(marginal_reach(3, 3, l) / reach(3, 3, l), 3) for l in (0.1, 0.4, 0.7)]
    [0.96, 0.941, 0.987]
    """
    _checked(n, r, loss)
    require(n >= 2, "n must be at least 2: the best member reaches every round")
    return prod(_lost(round_law(n - 1, k, loss), loss) for k in range(1, r))


def all_send(i: int, r: int, loss: float) -> float:
    """All i members send in round r: l^((r-1) i(i-1)/2) prod over k = 1..i of (1-l^k)/(k(1-l)).

    All have lost everything in the rounds before; in this one the k-th best must lose what wakes
    earlier.

    Parameters: i, members; r, the round, from 1; loss (l), uncorrelated.

    Source: erratum E21. Verdict: exact.

    >>> [round(all_send(3, r, 0.4), 4) for r in (1, 2)]
    [0.364, 0.0233]
    """
    check_group(i)
    check_group(r)
    check_loss(loss)
    survive = loss ** ((r - 1) * i * (i - 1) // 2)
    return survive * prod((1 - loss**k) / (k * (1 - loss)) for k in range(1, i + 1))


def printed_all_send(i: int, r: int, loss: float) -> float:
    """Q(i, i, r) as printed: l^(r i(i-1)/2).

    Parameters: i, members; r, the round, from 1; loss (l), uncorrelated.

    Source: chapter 5, 5.3.3.3. Verdict: this is "all survive r rounds", not "all send in round r"
    (E21).

    >>> [round(printed_all_send(3, r, 0.4), 4) for r in (1, 2)]
    [0.064, 0.0041]
    """
    check_group(i)
    check_group(r)
    check_loss(loss)
    return float(loss ** (r * i * (i - 1) // 2))


def printed_round_law(n: int, r: int, loss: float) -> list[float]:
    """Q(0, n, r) .. Q(n, n, r) as printed, as far as it can be read.

    Q(i, n, r) = S(n, r-1) [Q(i-1, n-1, r-1) a_(i-1) + Q(i, n-1, r-1) (1-l)^i / (i+1)], with
    a_i the integral of (1 - (1-l) P)^i, Q(0, n, r) = 0, Q(i, i, r) = l^(r i(i-1)/2), and S(n, r)
    the product over k < r of the sum of Q(i, n-1, k) l^i over 1 <= i < n. The exponent "i-q" names
    no variable and is read i-1; the first term lacks p(t) and is given it; round 1 would refer to
    a round 0 and is Q(i, n). All else is as printed: the bracket 1 - (..) inside its power, round
    r-1 on the right, S before both terms, and an empty sum that is 0, so that S(1, r) = 0 for r > 1
    and the leader dies.

    Parameters: n, members, at most 60; r, the round, from 1; loss (l), uncorrelated.

    Source: chapter 5, 5.3.3.3. Verdict: no probability law: its sum is below 1 (E20, E21).

    >>> round(sum(printed_round_law(3, 2, 0.4)), 3), round(sum(round_law(3, 2, 0.4)), 3)
    (0.388, 1.0)
    """
    _checked_printed(n, r, loss)
    return list(_printed(n, r, loss))


def printed_reach(n: int, r: int, loss: float) -> float:
    """S(n, r) as printed, from the printed Q.

    Parameters: n, members, at most 60; r, the round, from 1; loss (l), uncorrelated.

    Source: chapter 5, 5.3.3.3. Verdict: a product of marginals (E22) of a Q that is wrong (E20),
    and 0 for the leader (E21).

    >>> round(printed_reach(3, 3, 0.4), 4), printed_reach(1, 2, 0.4)
    (0.0338, 0)
    """
    _checked_printed(n, r, loss)
    return _printed_reach(n, r, loss)


def printed_total(n: int, loss: float, rounds: int) -> float:
    """The printed sum of i r Q(i, n, r) over 1 <= i < n, its sum over r cut off after `rounds`.

    Parameters: n, members, 2..60; loss (l), uncorrelated; rounds, how many terms of the outer sum.

    Source: chapter 5, 5.3.3.3, last line. Verdict: cannot be evaluated as meant: the factor r
    counts a message of round r r times, i = n is left out, and with the true Q the sum diverges,
    since the leader never stops: Q(1, n, r) tends to 1 (E23). The printed Q dies out instead.

    >>> [round(printed_total(3, 0.4, rounds), 3) for rounds in (1, 2, 5, 50)]
    [1.182, 2.538, 2.95, 2.95]
    """
    _checked_printed(n, rounds, loss)
    return fsum(
        i * r * p for r in range(1, rounds + 1) for i, p in enumerate(_printed(n, r, loss)[:n])
    )


def diverging_total(n: int, loss: float, rounds: int) -> float:
    """The same sum with the true law of each round: it grows as rounds^2 / 2.

    Parameters: n, members, 2..6; loss (l), uncorrelated; rounds, how many terms of the outer sum.

    Source: erratum E23. Verdict: shows that the printed sum has no value.

    >>> [round(diverging_total(3, 0.4, rounds)) for rounds in (10, 20, 40)]
    [57, 212, 822]
    """
    return fsum(
        i * r * p for r in range(1, rounds + 1) for i, p in enumerate(round_law(n, r, loss)[:n])
    )


def _lost(law: list[float] | tuple[float, ...], loss: float) -> float:
    return fsum(p * loss**i for i, p in enumerate(law) if i >= 1)


Group = tuple[int, ...]  # members still announcing, the best first; 0 is the best


@lru_cache(maxsize=512)
def _enumerated(n: int, r: int, loss: float) -> tuple[tuple[float, ...], float]:
    """The law of messages in round r, and the probability that the least survives it."""
    counts, survives = [0.0] * (n + 1), 0.0
    for order in permutations(range(n)):
        groups: dict[Group, float] = {tuple(range(n)): 1.0}
        for _ in range(r - 1):
            after: dict[Group, float] = {}
            for (group, _sent), p in _one_round(groups, order, loss).items():
                after[group] = after.get(group, 0.0) + p
            groups = after
        for (group, sent), p in _one_round(groups, order, loss).items():
            counts[sent] += p
            survives += p if group[-1] == n - 1 else 0.0
    share = 1 / factorial(n)
    return tuple(p * share for p in counts), survives * share


def _one_round(
    groups: dict[Group, float], order: Group, loss: float
) -> dict[tuple[Group, int], float]:
    """Let members announce in order, losses as they come: the members left, the number sent."""
    states = {(group, 0): p for group, p in groups.items()}
    for sender in order:
        after: dict[tuple[Group, int], float] = {}
        for (group, sent), p in states.items():
            if sender not in group:
                after[group, sent] = after.get((group, sent), 0.0) + p
                continue
            upper = tuple(member for member in group if member <= sender)
            for lower, chance in _keeping([m for m in group if m > sender], loss):
                key = (upper + lower, sent + 1)
                after[key] = after.get(key, 0.0) + p * chance
        states = after
    return states


def _keeping(members: list[int], loss: float) -> list[tuple[Group, float]]:
    """Every set of members that may lose a message, with its probability."""
    found: list[tuple[Group, float]] = [((), 1.0)]
    for member in members:
        found = [
            pair
            for group, p in found
            for pair in (((*group, member), p * loss), (group, p * (1 - loss)))
            if pair[1] > 0
        ]
    return found


@lru_cache(maxsize=8192)  # two tables of the largest size
def _printed(n: int, r: int, loss: float) -> tuple[float, ...]:
    if r == 1:
        law = printed_law(n, loss)
        return tuple(law + [0.0] * (n + 1 - len(law)))
    if n == 1:
        return (0.0, 1.0)
    before, enters = _printed(n - 1, r - 1, loss), _printed_reach(n, r - 1, loss)
    found = [0.0] * (n + 1)
    for i in range(1, n):
        sends = (1 - loss**i) / (i * (1 - loss))
        found[i] = enters * (before[i - 1] * sends + before[i] * (1 - loss) ** i / (i + 1))
    found[n] = printed_all_send(n, r, loss)
    return tuple(found)


def _printed_reach(n: int, r: int, loss: float) -> float:
    if n == 1:
        return 0 if r > 1 else 1
    return prod(_lost(_printed(n - 1, k, loss), loss) for k in range(1, r))


def _checked(n: int, r: int, loss: float) -> tuple[int, int, float]:
    require(1 <= n <= LARGEST, f"n must be between 1 and {LARGEST} for an enumeration, not {n}")
    require(1 <= r <= MOST_ROUNDS, f"r must be between 1 and {MOST_ROUNDS}, not {r}")
    check_loss(loss)
    return n, r, loss


def _checked_printed(n: int, r: int, loss: float) -> None:
    require(1 <= n <= LARGEST_PRINTED, f"n must be between 1 and {LARGEST_PRINTED}, not {n}")
    require(1 <= r <= LARGEST_PRINTED, f"r must be between 1 and {LARGEST_PRINTED}, not {r}")
    check_loss(loss)

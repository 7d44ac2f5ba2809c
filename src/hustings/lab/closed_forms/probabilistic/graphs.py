"""Random graphs of some hundred members: whether they are connected, and whether they agree.

All recurrences add positive terms only, in logarithms, so small probabilities keep their digits.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, expm1, fsum, inf, lgamma, log, log1p

from hustings.lab.closed_forms.form import require
from hustings.lab.closed_forms.probabilistic.round import PAPER

SOURCE = f"{PAPER}: section 4"
LARGEST = 512  # members of a graph that is worked out exactly
FACTORIALS = tuple(lgamma(n + 1) for n in range(LARGEST + 1))  # their logarithms


def connected(m: int, edge: float) -> float:
    """The probability that a random graph of m members is connected.

    Take member 1 away: the component of member 2 has k members and is joined to member 1, but to no
    other member of the rest, which with member 1 is connected again. So C(m) is the sum over k of
    binom(m-2, k-1) C(k) (1 - y^k) y^(k(m-1-k)) C(m-k), where y = 1 - edge.

    Parameters: m, members, at most 512; edge, the probability of each edge.

    Source: section 4, event E2, where an asymptotic value stands. Verdict: exact; replaces E6.

    >>> [round(connected(m, 0.4), 4) for m in (1, 2, 3, 4, 5)]
    [1.0, 0.4, 0.352, 0.4004, 0.4897]
    """
    _check(m, edge)
    return exp(_connected(edge, _size(m))[m])


def unconnected(m: int, edge: float) -> float:
    """The probability that a random graph of m members falls apart; an upper bound for m > 512.

    The component of member 1 has c < m members: the sum of binom(m-1, c-1) C(c) y^(c(m-c)). Beyond
    512 members each cut is counted: the sum of binom(m, s) y^(s(m-s)) over s up to m/2.

    Parameters: m, members; edge, the probability of each edge.

    Source: section 4, event E2. Verdict: exact, and never cancels; a bound for m > 512.

    >>> round(unconnected(5, 0.4), 4), unconnected(2000, 0.4) < 1e-300
    (0.5103, True)
    """
    _check(m, edge, inf)
    if m > LARGEST:
        return _cuts(m, edge)
    return _unconnected(edge, _size(m))[m]


def disagreeing(m: int, edge: float, view_prob: float) -> float:
    """The probability that the components of a relay graph of m members choose different leaders.

    Each member prefers the first of all candidates that is in its view, a component the first of
    its members' views. Take the first candidate that any member knows; each member knows it with
    probability v. All components choose it if each has such a member. Let x = 1 - v, and Z(m) the
    probability that each component of the graph has a picked member, where members are picked with
    probability v each. Then all agree with probability Z(m) / (1 - x^m), and Z(m) is the sum over c
    of binom(m-1, c-1) C(c) y^(c(m-c)) (1 - x^c) Z(m-c).

    Parameters: m, members; edge, of the graph; view_prob (v). Beyond 512 members the probability
    that the graph is not connected stands for it.

    Source: section 3.1, where components choose one leader each. Verdict: exact for a large group;
    one component or chance agreement of several.

    >>> round(disagreeing(2, 0.75, 0.5), 4), disagreeing(1, 0.75, 0.5)
    (0.1667, 0.0)
    """
    _check(m, edge, inf)
    if m > LARGEST:
        return unconnected(m, edge)
    return _disagreeing(edge, view_prob, _size(m))[m]


def printed_connected(m: float, view_prob: float) -> float:
    """P_m = exp(-m (1 - view_prob)^(m-1)), the asymptotic value of connectivity.

    Parameters: m, members, whole or not; view_prob, taken for the edge probability.

    Source: section 4, event E2. Verdict: no lower bound: above the exact value from m = 4 on at
    0.4, and falling from m = 1 to 2 (E6).

    >>> [round(printed_connected(m, 0.4), 3) for m in (1, 2, 3, 5)]
    [0.368, 0.301, 0.34, 0.523]
    """
    require(m > 0, f"m must be above 0, not {m}")
    if view_prob == 1 and m < 1:
        return 0.0  # the power has a negative exponent, and no limit
    return exp(-m * (1 - view_prob) ** (m - 1))


def _check(m: int, edge: float, most: float = LARGEST) -> None:
    require(1 <= m <= most, f"m must be between 1 and {most:g}, not {m}")
    require(0 <= edge <= 1, f"the edge probability must lie in [0, 1], not {edge}")


def _size(m: int) -> int:
    """Tables come in few sizes, so that they can be kept."""
    return max(64, 1 << (m - 1).bit_length())


def _binom(n: int, k: int) -> float:
    if n < len(FACTORIALS):
        return FACTORIALS[n] - FACTORIALS[k] - FACTORIALS[n - k]
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def _power(edge: float, times: int) -> float:
    """The logarithm of (1 - edge)^times."""
    if times == 0:
        return 0.0
    return times * log1p(-edge) if edge < 1 else -inf


def _added(logs: list[float]) -> float:
    top = max(logs)
    return top + log(fsum(exp(each - top) for each in logs)) if top > -inf else -inf


@lru_cache(64)
def _connected(edge: float, size: int) -> tuple[float, ...]:
    """Logarithms of C(0..size)."""
    table = [-inf, 0.0]
    if edge == 0:
        return (*table, *([-inf] * (size - 1)))
    joined = [-inf, *(log(-expm1(_power(edge, k))) for k in range(1, size + 1))]
    for m in range(2, size + 1):
        logs = [
            _binom(m - 2, k - 1)
            + table[k]
            + joined[k]
            + _power(edge, k * (m - 1 - k))
            + table[m - k]
            for k in range(1, m)
        ]
        table.append(min(0.0, _added(logs)))
    return tuple(table)


def _component(m: int, c: int, edge: float, table: tuple[float, ...]) -> float:
    """The probability that the component of member 1 has c of m members."""
    return exp(_binom(m - 1, c - 1) + table[c] + _power(edge, c * (m - c)))


@lru_cache(64)
def _unconnected(edge: float, size: int) -> tuple[float, ...]:
    table = _connected(edge, size)
    return tuple(fsum(_component(m, c, edge, table) for c in range(1, m)) for m in range(size + 1))


@lru_cache(64)
def _disagreeing(edge: float, view_prob: float, size: int) -> tuple[float, ...]:
    table = _connected(edge, size)
    seen = [-expm1(_power(view_prob, c)) for c in range(size + 1)]
    picked = [1.0]  # Z
    apart = [0.0]
    for m in range(1, size + 1):
        parts = [_component(m, c, edge, table) for c in range(1, m)]
        pairs = list(enumerate(parts, 1))
        apart.append(
            fsum(part * (1 - seen[c] * picked[m - c] / seen[m]) for c, part in pairs),
        )
        whole = exp(table[m]) * seen[m]
        picked.append(whole + fsum(part * seen[c] * picked[m - c] for c, part in pairs))
    return tuple(apart)


@lru_cache(4096)
def _cuts(m: int, edge: float) -> float:
    logs = [_binom(m, s) + _power(edge, s * (m - s)) for s in range(1, m // 2 + 1)]
    return min(1.0, exp(min(0.0, _added(logs))))

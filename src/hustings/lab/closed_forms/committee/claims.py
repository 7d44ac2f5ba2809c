"""Sizes that the paper states, and what they are: per member, at a given L = ln n.

The printed ones are counts of its sections 5 and 6; all stay polylogarithmic when corrected.
"""

from __future__ import annotations

from hustings.lab.closed_forms.committee.exponents import PAPER, layers
from hustings.lab.closed_forms.form import Sheet, require

SOURCE = f"{PAPER}: sections 5 and 6"
LARGEST_LOG = 1e20


def printed_first_memberships(ln_n: float) -> float:
    """L^3 seats of a member on the first elected layer: X/L, with X = n L^4.

    Parameters: ln_n.

    Source: proof of Lemma 5.1, "precisely X/ln n". Verdict: false for the first layer.

    >>> printed_first_memberships(36.0)
    46656.0
    """
    return _checked(ln_n) ** 3


def first_memberships(ln_n: float, c1: float = 1.0) -> float:
    """c_1 L seats of a member on the first elected layer: n/L^2 nodes with c_1 L^3 seats each.

    Parameters: ln_n; c1, the constant of Lemma 2.2.

    Source: sections 3 and 5. Verdict: exact; above 8 on the average as soon as c_1 L > 8.

    >>> first_memberships(36.0)
    36.0
    """
    return c1 * _checked(ln_n)


def printed_first_nodes(ln_n: float) -> float:
    """1 node of the first elected layer for each member: X/L^4, with X = n L^4.

    Parameters: ln_n.

    Source: proof of Lemma 5.1. Verdict: false for the first layer.

    >>> printed_first_nodes(36.0)
    1.0
    """
    _checked(ln_n)
    return 1.0


def first_nodes(ln_n: float) -> float:
    """1/L^2 nodes of the first elected layer for each member.

    Parameters: ln_n.

    Source: section 3. Verdict: exact.

    >>> round(first_nodes(36.0), 6)
    0.000772
    """
    return _checked(ln_n) ** -2


def printed_first_elections(ln_n: float) -> float:
    """16 L^4 elections of a member on a layer.

    Parameters: ln_n.

    Source: proof of Lemma 5.1; O(L^4) in Lemma 6.3. Verdict: false on the first layer, where a
    member sits in L^4 leaves.

    >>> printed_first_elections(36.0)
    26873856.0
    """
    return 16 * _checked(ln_n) ** 4


def first_elections(ln_n: float) -> float:
    """2 L^8 elections of a member on the first layer: L^4 leaves, each in 2 L^4.

    Parameters: ln_n.

    Source: Lemma 3.1. Verdict: an upper bound of that order, and the order is right.

    >>> f"{first_elections(36.0):.3g}"
    '5.64e+12'
    """
    return 2 * _checked(ln_n) ** 8


def printed_monitored(ln_n: float) -> float:
    """L^5 monitoring sets of a member on a layer.

    Parameters: ln_n.

    Source: Lemma 6.3, O(L^5). Verdict: L^8.

    >>> f"{printed_monitored(36.0):.3g}"
    '6.05e+07'
    """
    return _checked(ln_n) ** 5


def monitored(ln_n: float) -> float:
    """L^8 monitoring sets of a member on a layer: L^4 leaves, each of them in L^4 sets.

    Parameters: ln_n.

    Source: Lemma 6.3, corrected. Verdict: the order.

    >>> f"{monitored(36.0):.3g}"
    '2.82e+12'
    """
    return _checked(ln_n) ** 8


def printed_last_participants(ln_n: float) -> float:
    """L^10 members in the last election.

    Parameters: ln_n.

    Source: section 2, "k = O(log^10 n)". Verdict: counts nodes, not their members.

    >>> f"{printed_last_participants(36.0):.3g}"
    '3.66e+15'
    """
    return _checked(ln_n) ** 10


def last_participants(ln_n: float, c1: float = 1.0) -> float:
    """c_1 L^13 members in the last election: up to L^10 nodes with c_1 L^3 seats.

    Parameters: ln_n; c1, the constant of Lemma 2.2.

    Source: sections 3 and 5. Verdict: an upper bound of that order.

    >>> f"{last_participants(36.0):.3g}"
    '1.71e+20'
    """
    return c1 * _checked(ln_n) ** 13


def printed_top_bad(ln_n: float, b: float) -> float:
    """b + 12/L bad members on the last layer below the root.

    Parameters: ln_n; b, the bad share.

    Source: section 6, the end of the correctness proof. Verdict: against its own definition.

    >>> round(printed_top_bad(1000.0, 0.1), 4)
    0.112
    """
    return b + 12 / _checked(ln_n)


def top_bad(ln_n: float, b: float) -> float:
    """b + 12 l*/L bad members on the last layer below the root.

    Parameters: ln_n; b, the bad share.

    Source: section 6, the definition of a good node. Verdict: what its induction gives: o(1) as
    1/ln ln n.

    >>> round(top_bad(1000.0, 0.1), 4)
    1.72
    """
    return b + 12 * layers(_checked(ln_n)) / ln_n


def _checked(ln_n: float) -> float:
    require(1 < ln_n <= LARGEST_LOG, f"ln n must lie in (1, {LARGEST_LOG:g}], not {ln_n:g}")
    return ln_n


def declare(sheet: Sheet, x: float, b: float, c1: float) -> None:
    """Add the forms of this module to a sheet."""
    sheet.source = SOURCE
    sheet.add("layers", layers, x)
    sheet.add("first_seats", first_memberships, x, c1)
    sheet.add("last_participants", last_participants, x, c1)
    sheet.add("first_seats", printed_first_memberships, x)
    sheet.both("first_nodes", first_nodes, printed_first_nodes, x)
    sheet.both("first_elections", first_elections, printed_first_elections, x)
    sheet.both("monitored", monitored, printed_monitored, x)
    sheet.add("last_participants", printed_last_participants, x)
    sheet.both("top_bad", top_bad, printed_top_bad, x, b)

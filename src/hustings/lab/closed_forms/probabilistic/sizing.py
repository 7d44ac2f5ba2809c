"""Section 3.2's calculation, solved: the smallest K, and the largest group, for a wanted success.

A bound may stay below the wanted value for every K. Then there is no answer, and a note says that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import floor, inf, log, log1p, log10

from hustings.core.errors import BadInput
from hustings.lab.closed_forms.form import Sheet, require
from hustings.lab.closed_forms.probabilistic import events
from hustings.lab.closed_forms.probabilistic.round import PAPER, Round
from hustings.lab.closed_forms.probabilistic.success import printed_success, success

SOURCE = f"{PAPER}: section 3.2"
HASHES = f"{PAPER}: section 3.3, on hash functions"
MOST = 200  # the largest K tried
LARGEST = 300.0  # decimal digits of the largest group tried
HALVINGS = 44


def printed_smallest_k(one: Round, wanted: float) -> int:
    """The least whole K up to 200 whose printed success bound is at least what is wanted.

    Parameters: one, any round, for its network; wanted, in [0, 1).

    Source: section 3.2. Verdict: as printed; the bound peaks, so larger K do not always help.

    >>> one = Round(1, view_prob=0.4, p_mcastl=0.01, p_ucastl=0.01, p_fail=0.01, N=10000)
    >>> printed_smallest_k(one, 0.6)
    19
    >>> printed_smallest_k(one, 0.7)
    Traceback (most recent call last):
    hustings.core.errors.BadInput: no K up to 200 gives 0.7: the most is 0.6391, at K = 24
    """
    return _smallest(one, wanted, printed_success)


def smallest_k(one: Round, wanted: float) -> int:
    """The least whole K up to 200 with which a round succeeds with a wanted probability.

    Parameters: one, any round, for its network; wanted, in [0, 1).

    Source: section 3.2, by the corrected bound. Verdict: enough for sure, as the bound is true;
    beyond 1 - p_fail there is no K, since the leader may crash.

    >>> one = Round(1, view_prob=0.4, p_mcastl=0.01, p_ucastl=0.01, p_fail=0.01, N=10000)
    >>> smallest_k(one, 0.6), smallest_k(one, 0.95)
    (4, 8)
    >>> smallest_k(one, 0.995)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    hustings.core.errors.BadInput: success must be at most 1 - p_fail = 0.99, not 0.995: ...
    """
    lives = 1 - one.p_fail
    require(
        wanted <= lives,
        f"success must be at most 1 - p_fail = {lives:g}, not {wanted:g}: the leader may crash",
    )
    return _smallest(one, wanted, success)


def _smallest(one: Round, wanted: float, bound: Callable[[Round], float]) -> int:
    _check(wanted)
    best, place = -inf, 0
    for K in range(1, min(MOST, one.N) + 1):
        value = bound(replace(one, K=K))
        if value >= wanted:
            return K
        if value > best:
            best, place = value, K
    most = min(MOST, one.N)
    raise BadInput(f"no K up to {most} gives {wanted:g}: the most is {best:.4g}, at K = {place}")


def printed_largest_group(one: Round, wanted: float) -> float:
    """log10 of the largest N for which the printed success bound is at least what is wanted.

    Only E4 depends on N, so N = ln(E4 wanted) / ln(1 - (1-p_fail) p_mcastl^(K2/2)).

    Parameters: one, the round, whose N is not used; wanted, in [0, 1).

    Source: section 4, below E5. Verdict: exact for the printed bound, which p_mcastl^(-3 K2/2) is
    not (E5).

    >>> one = Round(24, view_prob=0.4, p_mcastl=0.01, p_ucastl=0.01, p_fail=0.01, N=10000)
    >>> round(printed_largest_group(one, 0.6), 2)
    22.33
    """
    _check(wanted)
    rest = printed_success(replace(one, N=1)) / events.printed_heard(replace(one, N=1))
    require(
        rest >= wanted,
        f"no N gives {wanted:g}: without E4 the printed bound is {rest:.4g} at K = {one.K:g}",
    )
    missing = (1 - one.p_fail) * one.p_mcastl ** (one.k2 / 2)
    require(missing > 0 and wanted > 0, "any N is allowed: no final is ever missed by all")
    return log10(log(wanted / rest) / log1p(-missing)) if rest > wanted else 0.0


def largest_group(one: Round, wanted: float) -> float:
    """log10 of the largest N for which a round with this K succeeds with a wanted probability.

    Parameters: one, the round, whose N is not used; wanted, in [0, 1).

    Source: section 4, below E5, by the corrected bound. Verdict: to ten digits; the bound falls as
    N grows from 2K on.

    >>> one = Round(24, view_prob=0.4, p_mcastl=0.01, p_ucastl=0.01, p_fail=0.01, N=10000)
    >>> round(largest_group(one, 0.9), 2)
    34.02
    """
    _check(wanted)
    low, high = log10(max(2.0, 2 * one.K)), LARGEST

    def holds(digits: float) -> bool:
        return success(replace(one, N=floor(10**digits))) >= wanted

    if not holds(low):
        found = success(replace(one, N=floor(10**low)))
        raise BadInput(f"no N gives {wanted:g} at K = {one.K:g}: {found:.4g} at N = 2K")
    require(not holds(high), f"any N up to 10^{LARGEST:g} is allowed")
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _check(wanted: float) -> None:
    require(0 <= wanted < 1, f"success must lie in [0, 1), not {wanted:g}")


def fair_k(one: Round, skew: float) -> float:
    """N F(K/N), F(x) = x^(1/hash_skew): the K of a fair hash that lets as many members pass.

    Which members pass depends on a hash only through the chance of a value below K/N, and members
    pass independently of each other. So this is the "similar analysis" of section 3.3.

    Parameters: one, the round; skew, 1 for a fair hash.

    Source: section 3.3. Verdict: exact; all forms of a round hold for the unfair hash with this
    value for K, but for the time-outs, which go by the K that was meant.

    >>> one = Round(K=7, N=2000)
    >>> [round(fair_k(one, skew), 2) for skew in (0.8, 1, 1.2)]
    [1.7, 7.0, 17.96]
    """
    return float(one.N * one.passing ** (1 / skew))


def declare(sheet: Sheet, one: Round, wanted: float, hash_skew: float) -> None:
    """Add the forms of this module to a sheet."""
    sheet.source = SOURCE
    sheet.both("smallest_K", smallest_k, printed_smallest_k, one, wanted)
    sheet.both("largest_N_log10", largest_group, printed_largest_group, one, wanted)
    sheet.source = HASHES
    sheet.add("fair_K", fair_k, one, hash_skew)

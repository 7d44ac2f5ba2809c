"""Steps 7 and 9: members silenced for too many committees, and members that wrongly lead."""

from __future__ import annotations

from functools import partial
from math import ceil, exp, expm1, fsum, lgamma, log

from hustings.lab.closed_forms.committee.claims import first_memberships
from hustings.lab.closed_forms.committee.exponents import PAPER
from hustings.lab.closed_forms.committee.setting import CommitteeSetting
from hustings.lab.closed_forms.committee.sums import tail
from hustings.lab.closed_forms.form import Sheet, require

SOURCE = f"{PAPER}: section 5, steps 7 and 9"
PRINTED_TAU = 8
LARGEST_MEAN = 1e5


def printed_polled(ln_n: float) -> int:
    """L^2 members are polled, rounded up.

    Parameters: ln_n.

    Source: step 9. Verdict: as printed.

    >>> [printed_polled(log(n)) for n in (10**3, 10**4, 10**5, 10**6)]
    [48, 85, 133, 191]
    """
    return ceil(ln_n**2)


def printed_false_leaders(n: float, b: float, poll: int, informed: float) -> float:
    """n (1-b) P(Bin(poll, b + (1-b)(1-informed)) > poll/2): good members that wrongly lead.

    Every member polls; bad members answer all, and so do, at worst, the misinformed members.

    Parameters: n; b; poll, members asked; informed, the share of good members that know the leader.

    Source: step 9. Verdict: from above, and attained but for the misinformed: without their help
    it is n (1-b) P(Bin(poll, b) > poll/2).

    >>> [round(printed_false_leaders(10**e, 0.3, p, 0.98), 2) for e, p in ((3, 48), (5, 133))]
    [1.61, 0.29]
    """
    _check(b, poll, informed)
    return n * (1 - b) * _majority(b, poll, informed)


def false_leaders(n: float, b: float, poll: int, informed: float) -> float:
    """n (1-b)(1-informed) P(Bin(poll, b + (1-b)(1-informed)) > poll/2), with the conjunction.

    Only a member that was told that it leads polls, and the informed were not.

    Parameters: n; b; poll, members asked; informed, the share of good members that know the leader.

    Source: step 9, corrected. Verdict: from above: as if each misinformed member were told that it
    leads, and yet answered all others.

    >>> round(false_leaders(1000, 0.3, 48, 0.98), 3), false_leaders(1000, 0.3, 48, 1.0)
    (0.032, 0.0)
    """
    return (1 - informed) * printed_false_leaders(n, b, poll, informed)


def unanswered(b: float, poll: int, informed: float) -> float:
    """P(Bin(poll, (1-b) informed) <= poll/2): the leader is not confirmed, as the bad keep silent.

    Parameters: b; poll, members asked; informed, the share of good members that know the leader.

    Source: step 9. Verdict: exact for members drawn with repetition.

    >>> round(unanswered(0.3, 48, 0.98), 4)
    0.0055
    """
    _check(b, poll, informed)
    return 1 - tail(poll, (1 - b) * informed, poll // 2 + 1)


def corrected_tau(mean: float) -> int:
    """tau = max(8, 4 mean): this many committees of a layer a member may sit in.

    Parameters: mean, committees of a member on that layer.

    Source: step 7, corrected. Verdict: silences next to nobody by chance; the load stays bounded.

    >>> corrected_tau(0.5), corrected_tau(36)
    (8, 144)
    """
    return max(PRINTED_TAU, ceil(4 * mean))


def printed_silenced(mean: float) -> float:
    """P(Poisson(mean) > 8): the share of members that step 7 silences.

    Parameters: mean, committees of a member on that layer: c_1 L on the first.

    Source: step 7. Verdict: kills the election: at c_1 L = 36 all but 2e-8 are silenced.

    >>> f"{1 - printed_silenced(36):.0e}", round(printed_silenced(12), 3)
    ('2e-08', 0.845)
    """
    return poisson_beyond(mean, PRINTED_TAU)


def silenced(mean: float) -> float:
    """P(Poisson(mean) > max(8, 4 mean)).

    Parameters: mean, committees of a member on that layer.

    Source: step 7, corrected. Verdict: exact for elections that are independent of each other.

    >>> f"{silenced(36):.0e}", f"{silenced(1):.0e}"
    ('2e-42', '1e-06')
    """
    return poisson_beyond(mean, corrected_tau(mean))


def poisson_beyond(mean: float, tau: int) -> float:
    """P(Poisson(mean) > tau).

    Parameters: mean; tau.

    Source: step 7. Verdict: exact; keeps its digits when small.

    >>> round(poisson_beyond(1.0, 0), 6)
    0.632121
    """
    require(0 <= mean <= LARGEST_MEAN, f"the mean must lie in [0, {LARGEST_MEAN:g}], not {mean:g}")
    if mean == 0:
        return 0.0
    if tau < mean:
        return 1 - fsum(_poisson(mean, j) for j in range(tau + 1)) if tau else -expm1(-mean)
    total, j = 0.0, tau + 1
    while True:
        term = _poisson(mean, j)
        total += term
        if term <= total * 1e-17:
            return total
        j += 1


def _poisson(mean: float, j: int) -> float:
    return exp(j * log(mean) - mean - lgamma(j + 1))


def _majority(b: float, poll: int, informed: float) -> float:
    return tail(poll, b + (1 - b) * (1 - informed), poll // 2 + 1)


def _check(b: float, poll: int, informed: float) -> None:
    require(0 <= b <= 1, f"b must lie in [0, 1], not {b:g}")
    require(poll >= 1, f"poll must be at least 1, not {poll}")
    require(0 <= informed <= 1, f"informed must lie in [0, 1], not {informed:g}")


def declare(sheet: Sheet, asked: CommitteeSetting) -> None:
    """Add the forms of this module to a sheet."""
    sheet.source = SOURCE
    mean = first_memberships(asked.ln_n, asked.c1)
    lead = f"mean {mean:.3g}: "
    for name, form in (
        ("tau", corrected_tau),
        ("silenced", silenced),
        ("silenced", printed_silenced),
    ):
        sheet.known(name, form, partial(form, mean), lead)
    n, b, poll, informed = asked.n, asked.b, asked.poll, asked.informed
    for leaders, polled in ((false_leaders, poll), (printed_false_leaders, asked.printed_poll)):
        compute = partial(leaders, n, b, polled, informed)
        sheet.known("false_leaders", leaders, compute, f"poll = {polled}: ")
    sheet.known("unanswered", unanswered, lambda: unanswered(b, poll, informed), f"poll = {poll}: ")

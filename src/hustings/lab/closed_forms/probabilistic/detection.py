"""Theorem 2: whether some member notices that a round failed."""

from __future__ import annotations

from math import exp, expm1, log1p

from hustings.lab.closed_forms.form import Sheet
from hustings.lab.closed_forms.probabilistic.events import enough, printed_enough
from hustings.lab.closed_forms.probabilistic.round import PAPER, Round

SOURCE = f"{PAPER}: section 4, Theorem 2"
UNCOVERED = (
    "Theorem 2 speaks of two leaders alone: a leader that crashes and a member that hears neither "
    "the initiating message nor a final go unnoticed by this protocol (E3)"
)


def printed_detection(one: Round) -> float:
    """Pr_lb[E1] (1 - (1 - (1-p_fail)(1-p_mcastl))^(3 K2/2))^N, with the exponents as printed.

    Parameters: one, the round.

    Source: section 4, Theorem 2. Verdict: wrong: the power of m stands at the wrong bracket, and
    so the value tends to 0 as N grows, not to Pr_lb[E1] (E3).

    >>> one = Round(K=7, view_prob=0.5, p_mcastl=0.4, p_ucastl=0.4, p_fail=0.001, N=10**6)
    >>> printed_detection(one), round(printed_e1_detection(one), 2)
    (0.0, 0.08)
    """
    missing = (1 - (1 - one.p_fail) * (1 - one.p_mcastl)) ** (1.5 * one.k2)
    return printed_enough(one) * exp(one.N * log1p(-missing)) if missing < 1 else 0.0


def printed_e1_detection(one: Round) -> float:
    """Pr_lb[E1] (1 - (1 - (1-p_fail)(1-p_mcastl)^(3 K2/2))^N): the sentence before the theorem.

    Parameters: one, the round.

    Source: section 4, the paragraph before Theorem 2. Verdict: what was meant, with the printed
    E1, which is below 0 for few relay members (E7); a bound for two leaders, not for a failed
    round (E3).

    >>> given = {"view_prob": 0.4, "p_mcastl": 0.01, "p_ucastl": 0.01, "p_fail": 0.01}
    >>> [round(printed_e1_detection(Round(K=K, N=10000, **given)), 4) for K in (20, 40, 65)]
    [0.9387, 0.9963, 0.9999]
    """
    return printed_enough(one) * somebody(one)


def detection(one: Round) -> float:
    """Pr[E1] (1 - (1 - (1-p_fail)(1-p_mcastl)^(3 K2/2))^N), with the exact E1.

    Parameters: one, the round.

    Source: section 4, Theorem 2. Verdict: a true lower bound of the chance that two leaders named
    in one round are noticed by somebody alive, if re-initiation is not thinned by hash (E3).

    >>> one = Round(K=40, view_prob=0.4, p_mcastl=0.01, p_ucastl=0.01, p_fail=0.01, N=10000)
    >>> round(detection(one), 5)
    0.9978
    """
    return enough(one) * somebody(one)


def thinned_detection(one: Round) -> float:
    """Pr[E1] (1 - (1 - (K/N)(1-p_fail)(1-p_mcastl)^(3 K2/2))^N): each detector acts with K/N.

    Parameters: one, the round.

    Source: section 4, Theorem 2 with the hash of section 3.1. Verdict: a true lower bound; it
    tends to Pr[E1] (1 - exp(-K (1-p_fail)(1-p_mcastl)^(3 K2/2))), not to Pr[E1], as N grows (E3,
    E4).

    >>> one = Round(K=7, view_prob=0.5, p_mcastl=0.2, p_ucastl=0.2, p_fail=0.001, N=2000)
    >>> round(thinned_detection(one), 4), round(detection(one), 4)
    (0.5294, 0.8036)
    """
    return enough(one) * somebody(one, one.passing)


def somebody(one: Round, acts: float = 1.0) -> float:
    """1 - (1 - a (1-p_fail)(1-p_mcastl)^(3 K2/2))^N: one member at least gets all finals and acts.

    Parameters: one, the round; acts (a), the chance of a detector to re-initiate.

    Source: section 4, the paragraph before Theorem 2. Verdict: exact for m = 3 K2/2 finals.

    >>> round(somebody(Round(K=7, p_mcastl=0.5, p_fail=0.001, N=100)), 4)
    0.9308
    """
    all_of_them = acts * (1 - one.p_fail) * (1 - one.p_mcastl) ** (1.5 * one.k2)
    if all_of_them >= 1:
        return 1.0
    return -expm1(one.N * log1p(-all_of_them))


def declare(sheet: Sheet, one: Round) -> None:
    """Add the forms of this module to a sheet."""
    sheet.source = SOURCE
    sheet.both("detection", detection, printed_detection, one)
    sheet.add("detection_printed_e1", printed_e1_detection, one)
    sheet.add("detection_by_hash", thinned_detection, one)

"""Byzantine agreement without signatures among k participants: rounds, and bits of each.

A value of m possible ones takes v = ceil log2 m bits, and a proposal, which may be none,
v' = ceil log2 (m+1). To agree on several values at once costs the bits of all of them, but the
rounds of one.
"""

from __future__ import annotations

from functools import lru_cache, partial

from hustings.lab.closed_forms.committee.exponents import PAPER
from hustings.lab.closed_forms.form import Sheet, require

SOURCE = f"{PAPER}: section 2; the agreement is ours"
BASE = 16  # up to this many agree by phase king


def widths(values: int) -> tuple[int, int]:
    """v = ceil log2 m and v' = ceil log2 (m+1): bits of a value, and of a proposal.

    Parameters: values (m), at least 2.

    Source: the encoding. Verdict: exact.

    >>> widths(2), widths(3), widths(16)
    ((1, 2), (2, 2), (4, 5))
    """
    require(values >= 2, f"m must be at least 2, not {values}: one value needs no agreement")
    return (values - 1).bit_length(), values.bit_length()


def tolerated(k: int) -> int:
    """t = floor((k-1)/3): this many may be bad.

    Parameters: k, participants.

    Source: section 2. Verdict: exact; with more, no agreement without signatures.

    >>> [tolerated(k) for k in (1, 3, 4, 16, 31)]
    [0, 0, 1, 5, 10]
    """
    require(k >= 1, f"k must be at least 1, not {k}")
    return (k - 1) // 3


def phase_king_rounds(k: int) -> int:
    """3 (t+1) rounds: vote, propose, king, once for each of t+1 kings.

    Parameters: k, participants.

    Source: phase king. Verdict: exact.

    >>> phase_king_rounds(16), phase_king_rounds(1024)
    (18, 1026)
    """
    return 3 * (tolerated(k) + 1)


def phase_king_bits(k: int, values: int = 2) -> float:
    """(t+1)(k-1)(v + v' + v/k) bits of a participant: votes, proposals, its share as king.

    Parameters: k, participants; values (m) of one instance.

    Source: phase king. Verdict: exact in the mean over participants; a king sends (k-1) v more.

    >>> phase_king_bits(16), round(phase_king_bits(1024))
    (275.625, 1049940)
    """
    v, proposal = widths(values)
    return (tolerated(k) + 1) * (k - 1) * (v + proposal + v / k)


def agreement_rounds(k: int) -> int:
    """R(k) = 6 + R(ceil k/2) + R(floor k/2), and 3 (t+1) for k <= 16: about 1.5 k rounds.

    Parameters: k, participants.

    Source: recursive phase king. Verdict: exact; halves take their turns.

    >>> [agreement_rounds(k) for k in (16, 32, 128, 1024)]
    [18, 42, 186, 1530]
    """
    if k <= BASE:
        return phase_king_rounds(k)
    return _rounds(k)


def agreement_bits(k: int, values: int = 2) -> float:
    """C(k) = 2(k-1)(v+v') + (k-1)v + C(k/2), and phase king for k <= 16: about 14 k for one bit.

    Two graded consensus on all, one result of one's own half sent to all, and the agreement
    within it. With an odd k, halves differ by one, and C is the mean over participants.

    Parameters: k, participants; values (m) of one instance.

    Source: recursive phase king. Verdict: exact in the mean over participants.

    >>> [round(agreement_bits(k)) for k in (64, 128, 1024)]
    [934, 1823, 14346]
    """
    widths(values)
    tolerated(k)
    return _bits(k, values)


def printed_agreement_bits(k: int) -> float:
    """O(k^3) bits of all, so k^2 of a participant.

    Parameters: k, participants.

    Source: section 2, of its reference [10]. Verdict: the reference has O(k t + t^3 log t); and
    the constant is left out.

    >>> printed_agreement_bits(1024)
    1048576.0
    """
    return float(k) ** 2


def broadcast_bits(k: int, values: int = 2) -> float:
    """C(k) + (k-1) v/k: a value sent to all and agreed on, in the mean over participants.

    Parameters: k, participants; values (m).

    Source: section 2. Verdict: exact in the mean, senders taken evenly.

    >>> round(broadcast_bits(128), 3)
    1823.617
    """
    v, _ = widths(values)
    return agreement_bits(k, values) + (k - 1) * v / k


def broadcast_rounds(k: int) -> int:
    """R(k) + 1.

    Parameters: k, participants.

    Source: section 2. Verdict: exact.

    >>> broadcast_rounds(128)
    187
    """
    return agreement_rounds(k) + 1


@lru_cache(4096)
def _rounds(k: int) -> int:
    return 6 + agreement_rounds(k - k // 2) + agreement_rounds(k // 2)


@lru_cache(4096)
def _bits(k: int, values: int) -> float:
    if k <= BASE:
        return phase_king_bits(k, values)
    v, proposal = widths(values)
    more, less = k - k // 2, k // 2
    inside = (more * _bits(more, values) + less * _bits(less, values)) / k
    return (k - 1) * (2 * (v + proposal) + v) + inside


def declare(sheet: Sheet, k: int) -> None:
    """Add the forms of this module to a sheet."""
    sheet.source = SOURCE
    for name, form in (
        ("agreement_bits", agreement_bits),
        ("agreement_bits", printed_agreement_bits),
        ("agreement_rounds", agreement_rounds),
        ("phase_king_bits", phase_king_bits),
        ("phase_king_rounds", phase_king_rounds),
    ):
        sheet.known(name, form, partial(form, k), f"k = {k}: ")

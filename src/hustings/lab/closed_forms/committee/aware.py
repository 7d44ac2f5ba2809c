"""An adversary that knows the network before it chooses members to corrupt: the share it breaks.

A node is broken if a third of its participants are bad. R groups, on the average, hold a member.
"""

from __future__ import annotations

from math import comb, log

from hustings.lab.closed_forms.committee.exponents import PAPER, THIRD
from hustings.lab.closed_forms.form import Sheet, require

SOURCE = f"{PAPER}: section 3; the paper has no such form"
STEPS = 1000
HALVINGS = 50
MOST_GROUPS = 256


def broken(b: float, groups: int, threshold: float = THIRD) -> float:
    """The largest beta with sum over j of min(b, P(Bin(R, beta) >= j)) >= beta R threshold.

    If a share beta of the nodes is to fall, a member scores by how many of its R groups are among
    them, Bin(R, beta); the adversary takes the bn best and needs beta R n/3 seats.

    Parameters: b, the bad share; groups (R), of a member; threshold, that breaks a node: 1/3, or
    1/2 with signatures.

    Source: none in the paper. Verdict: mean field: R = 1 gives 3b, which is exact for large n;
    for larger R as if the nodes could be chosen last, so an estimate, above what greedy reaches.

    >>> [round(broken(b, R), 3) for b, R in ((0.05, 4), (0.1, 1), (0.1, 4), (0.2, 16))]
    [0.047, 0.3, 0.162, 0.223]
    """
    require(0 <= b <= 1, f"b must lie in [0, 1], not {b:g}")
    require(1 <= groups <= MOST_GROUPS, f"R must be between 1 and {MOST_GROUPS}, not {groups}")
    require(0 < threshold <= 1, f"the threshold must lie in (0, 1], not {threshold:g}")
    if b >= threshold:
        return 1.0
    if b == 0:
        return 0.0

    def spare(beta: float) -> float:
        return _best_scores(b, groups, beta) - beta * groups * threshold

    top = b / threshold  # with all seats of the bad in broken nodes and a third there
    low = next((i for i in range(STEPS, 0, -1) if spare(top * i / STEPS) >= -1e-12), 0)
    if low in (0, STEPS):
        return top * low / STEPS
    left, right = top * low / STEPS, top * (low + 1) / STEPS
    for _ in range(HALVINGS):
        middle = (left + right) / 2
        left, right = (middle, right) if spare(middle) >= 0 else (left, middle)
    return left


def broken_at_most(b: float, groups: int, threshold: float = THIRD) -> float:
    """beta <= H(b) / (2 (1/3 - b)^2 R), H in natural logarithms.

    e^(H n) bad sets; each breaks given nodes, with beta R n seats, by chance with probability at
    most exp(-2 (1/3 - b)^2 beta R n).

    Parameters: b, the bad share; groups (R), of a member; threshold, that breaks a node.

    Source: Lemma 3.1, with its constants. Verdict: provable for a random network and large
    committees, since the choice of the nodes is not counted; says nothing where it exceeds 1.

    >>> round(broken_at_most(0.05, 16), 4), broken_at_most(0.3, 16)
    (0.0773, 1.0)
    """
    require(0 <= b < threshold, f"b must lie in [0, {threshold:g}), not {b:g}")
    require(groups >= 1, f"R must be at least 1, not {groups}")
    sets = -sum(part * log(part) for part in (b, 1 - b) if part > 0)
    return min(1.0, sets / (2 * (threshold - b) ** 2 * groups))


def informed(beta: float, b: float, threshold: float = THIRD) -> float:
    """1 - (1 - 1/3) beta/(1-b): the good members that hear the leader, with one leaf each.

    A broken node holds a third of bad members and misleads all others below it.

    Parameters: beta, the broken share; b, the bad share; threshold, the bad share of a broken node.

    Source: section 6, the end of the proof. Verdict: exact in the mean if broken nodes hold just
    what they need; several leaves each make it better.

    >>> round(informed(0.15, 0.05), 4)
    0.8947
    """
    require(0 <= b < 1, f"b must lie in [0, 1), not {b:g}")
    return max(0.0, 1 - (1 - threshold) * beta / (1 - b))


def _best_scores(b: float, groups: int, beta: float) -> float:
    """b times the mean score of the best b: the sum over j of min(b, P(Bin(R, beta) >= j))."""
    reached, total = 0.0, 0.0
    for j in range(groups, 0, -1):
        reached += comb(groups, j) * beta**j * (1 - beta) ** (groups - j)
        if reached >= b:
            return total + j * b
        total += reached
    return total


def declare(sheet: Sheet, groups: int, b: float) -> None:
    """Add the forms of this module to a sheet."""
    sheet.source = SOURCE
    lead = f"R = {groups}: "
    beta = broken(b, groups)
    sheet.known("broken", broken, lambda: beta, lead)
    sheet.known("broken_at_most", broken_at_most, lambda: broken_at_most(b, groups), lead)
    sheet.add("informed_if_broken", informed, beta, b)

"""From r candidates, x of them bad, to one leader: games solved exactly.

The adversary has full information and moves after the good in every round.
"""

from __future__ import annotations

from functools import lru_cache
from math import log2

from hustings.lab.closed_forms.committee.exponents import PAPER
from hustings.lab.closed_forms.committee.sums import binomial, convolve
from hustings.lab.closed_forms.form import Sheet, require

SOURCE = f"{PAPER}: sections 2 and 5; endgames of its references [2], [12] and [18]"
LARGEST = 512  # candidates whose games are solved in a second or so
DEEPEST = 4096
GRID = 256  # values of a path kept apart
SETTLED = 1e-6  # a law so narrow loses no more
FAINT = 1e-6  # what is cut off the ends of a law in one step


def feige(r: int, x: int) -> float:
    """P(good leader) by two-bin elections down to one, against the best play: solved backwards.

    Bin sizes and ties as in `bins`. If all good ones sit in one bin, the bad win in the other.
    With one of each left, the bad one joins the good until the draw suits it, so that is lost.

    Parameters: r, candidates; x, bad ones among them.

    Source: section 2, HEAVYWEIGHT-LEADER-ELECTION with two bins. Verdict: exact.

    >>> [round(feige(r, x), 3) for r, x in ((16, 4), (48, 5), (64, 6))]
    [0.159, 0.139, 0.218]
    """
    _check(r, x)
    return _feige(r - x, x)


def baton(r: int, x: int) -> float:
    """P(good leader) by passing a baton to a candidate that has not had it; the last one leads.

    A good holder passes it on at random, a bad one as is best. The first holder is taken for good,
    which is the worse case for the good.

    Parameters: r, candidates; x, bad ones among them.

    Source: reference [18]. Verdict: exact.

    >>> [round(baton(r, x), 3) for r, x in ((16, 4), (64, 6), (128, 26))]
    [0.523, 0.861, 0.392]
    """
    _check(r, x)
    if x == r:
        return 0.0
    good_holds, bad_holds = [1.0], [0.0]  # by bad ones unvisited; with no good one unvisited
    for unvisited in range(x):
        good_holds.append(bad_holds[unvisited])
        bad_holds.append(bad_holds[unvisited])
    for good in range(1, r - x):
        good_now: list[float] = []
        bad_now: list[float] = []
        for bad in range(x + 1):
            to_bad = bad_now[bad - 1] if bad else 0.0
            good_now.append((good * good_holds[bad] + bad * to_bad) / (good + bad))
            bad_now.append(min(good_holds[bad], to_bad) if bad else good_holds[bad])
        good_holds, bad_holds = good_now, bad_now
    return good_holds[x]


def path(share: float, depth: int) -> float:
    """phi: P(good leader) at the end of a random path of D steps in a public binary tree.

    Each node names a holder, bad with probability `share`. The value of a node is the mean of its
    children's if its holder is good, the smaller one if it is bad; at the leaves 1 or 0. The law
    of the value is carried from the leaves to the root, on a grid that follows it.

    Parameters: share, of bad candidates; depth (D).

    Source: reference [2]. Verdict: exact to 0.0003 in the mean over trees, for bad candidates
    fixed before the tree is drawn; a member that knows the tree first can choose worse ones: see
    `path_depth`.

    >>> [round(path(share, 128), 3) for share in (0.05, 0.1, 0.2, 0.3)]
    [0.934, 0.841, 0.585, 0.264]
    """
    require(0 <= share <= 1, f"the bad share must lie in [0, 1], not {share:g}")
    require(0 <= depth <= DEEPEST, f"D must be between 0 and {DEEPEST}, not {depth}")
    return _path(share, depth)


def path_depth(r: int, share: float) -> float:
    """D = r H(share) / log2(1/(2 share)): so deep that no choice of the bad set owns the path.

    2^(r H) sets, each of which holds all of a path's choices with probability at most (2 share)^D.

    Parameters: r, candidates; share, of bad ones, in (0, 1/2).

    Source: none in the paper. Verdict: necessary for an adversary without bounds, by a union
    bound over sets; D = 128 is not enough for r = 128 beyond a share of 0.277.

    >>> round(path_depth(128, 0.2), 1), round(path_depth(20, 0.3), 1)
    (69.9, 23.9)
    """
    require(0 < share < 0.5, f"the bad share must lie in (0, 1/2), not {share:g}")
    return r * entropy(share) / -log2(2 * share)


def bounded_path_depth(share: float, trials: float = 80.0) -> float:
    """D = trials / log2(1/(2 share)): against 2^trials trees tried.

    Parameters: share, of bad candidates, in (0, 1/2); trials, the logarithm of how many.

    Source: none in the paper: the tree is a hash of the roster. Verdict: assumes that the hash is
    a random function; outside the paper's model.

    >>> round(bounded_path_depth(0.3), 1)
    108.6
    """
    require(0 < share < 0.5, f"the bad share must lie in (0, 1/2), not {share:g}")
    return trials / -log2(2 * share)


def entropy(share: float) -> float:
    """H(b) = -b log2 b - (1-b) log2 (1-b), in bits.

    Parameters: share (b).

    Source: counting of sets. Verdict: exact.

    >>> entropy(0.5), round(entropy(0.1), 4), entropy(0.0)
    (1.0, 0.469, 0.0)
    """
    return sum(-part * log2(part) for part in (share, 1 - share) if part > 0)


def _check(r: int, x: int) -> None:
    require(1 <= r <= LARGEST, f"r must be between 1 and {LARGEST}, not {r}")
    require(0 <= x <= r, f"x must be between 0 and r = {r}, not {x}")


@lru_cache(1 << 18)
def _feige(good: int, bad: int) -> float:
    if not bad:
        return 1.0
    if not good:
        return 0.0
    total = 0.0
    first, law = binomial(good, 0.5)
    for a, chance in enumerate(law, first):
        if chance > 1e-17:
            total += chance * _worst(good, bad, a)
    return total


def _worst(good: int, bad: int, a: int) -> float:
    """Return the adversary's best with `a` good candidates in the first bin, the rest in the other.

    More bad candidates in the winning bin are never worse for it.
    """
    if a in (0, good):
        return 0.0  # some bad ones win in the other bin, or, if it is one against one, all wait
    k = good + bad
    return min(
        _feige(here, min(bad, room - here))
        for here, room in ((a, k // 2), (good - a, (k - 1) // 2))
        if here <= room
    )


@lru_cache(1024)
def _path(share: float, depth: int) -> float:
    low, step, law = 0.0, 1.0, [share, 1 - share]
    for _ in range(depth):
        above, smaller = 0.0, [0.0] * len(law)
        for place in range(len(law) - 1, -1, -1):
            chance = law[place]
            smaller[place] = chance * (2 * above + chance)
            above += chance
        mixed = [(1 - share) * chance for chance in convolve(law, law)]
        for place, chance in enumerate(smaller):
            mixed[2 * place] += share * chance
        step /= 2
        cut, mixed = _trimmed(mixed)
        low += cut * step
        if len(mixed) * step < SETTLED:
            return low
        while len(mixed) > GRID:
            mixed, step = _coarser(mixed), 2 * step
        whole = sum(mixed)
        law = [chance / whole for chance in mixed]
    return sum(chance * (low + place * step) for place, chance in enumerate(law))


def _trimmed(law: list[float]) -> tuple[int, list[float]]:
    """Cut the faint ends of a law and add them to the rest; return also how many went first."""
    low, high, under, over = 0, len(law), 0.0, 0.0
    while under + law[low] < FAINT:
        under += law[low]
        low += 1
    while over + law[high - 1] < FAINT:
        over += law[high - 1]
        high -= 1
    kept = law[low:high]
    kept[0] += under
    kept[-1] += over
    return low, kept


def _coarser(law: list[float]) -> list[float]:
    """The law on every second point; the others go half and half to their neighbours."""
    found = [*law[::2], 0.0]
    for place in range(1, len(law), 2):
        found[place // 2] += law[place] / 2
        found[place // 2 + 1] += law[place] / 2
    return found if len(law) % 2 == 0 else found[:-1]


def declare(sheet: Sheet, r: int, x: int, depth: int) -> None:
    """Add the forms of this module to a sheet."""
    sheet.source = SOURCE
    share, lead = x / r, f"r = {r}, x = {x}: "
    sheet.known("feige_good", feige, lambda: feige(r, x), lead)
    sheet.known("baton_good", baton, lambda: baton(r, x), lead)
    sheet.known("path_good", path, lambda: path(share, depth), f"{lead}D = {depth}: ")
    sheet.known("path_depth", path_depth, lambda: path_depth(r, share), lead)
    sheet.known("path_depth_bounded", bounded_path_depth, lambda: bounded_path_depth(share), lead)

"""A path among all members, and an adversary that has searched its tree before.

Without a network the candidates are public, and so is the tree, whose labels are a hash of them.
This file expands its first levels. Below them the value of a place follows from the law of such
trees, for the bad; the adversary knows that, too. It takes the members whose places do most harm,
given the members that it has, repeats this, and keeps the best set. In small groups it then
exchanges members as long as that helps. The result is a lower bound of what an adversary can do
with this many levels in sight.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hustings.lab.kernels.committee.endgame import path_law
from hustings.lab.kernels.committee.network import fill_words, grown, shuffled
from hustings.lab.kernels.committee.parameters import CommitteeParameters
from hustings.lab.kernels.results import Floats, Ints

SIGHT = 16  # levels that are expanded
ATTEMPTS = 8  # starts of the search
STEPS = 12  # of each start
MOST_WORK = 1 << 23  # places examined in one round of exchanges; with more, there is no exchange


class SearchedTree(NamedTuple):
    """The labels of its first levels from the top, and what the places below the last are worth."""

    labels: list[Ints]
    worth: Floats | None  # None: the tree ends here, and the last labels lead


def searched(
    parameters: CommitteeParameters, key: np.uint64, sight: int = SIGHT
) -> tuple[Ints, float]:
    """Return the members to corrupt, and P(good leader) then.

    >>> one = CommitteeParameters(members=20, b=0.2, single=20, depth=12, corruption="tree")
    >>> bad, value = searched(one, np.uint64(7))
    >>> len(bad), value < 0.586
    (4, True)
    """
    n, budget = parameters.members, parameters.budget
    tree = _written_out(n, budget / n, parameters.depth, sight, grown(key, 0))
    best, found = np.zeros(0, np.int64), 2.0
    for attempt in range(ATTEMPTS if budget else 1):
        bad = shuffled(grown(key, 1 + attempt), n)[:budget].astype(np.int64)
        order = shuffled(grown(key, 1 + ATTEMPTS + attempt), n)
        for _ in range(STEPS):
            value, harm = _harms(tree, bad, n)
            if value < found:
                best, found = bad, value
            ranked = order[np.argsort(-harm[order], kind="stable")]
            bad = ranked[:budget].astype(np.int64)
    return _exchanged(tree, best, found, n)


def _exchanged(tree: SearchedTree, bad: Ints, value: float, n: int) -> tuple[Ints, float]:
    """Exchange the member that does most harm, as long as an exchange does harm."""
    while True:
        others = np.setdiff1d(np.arange(n), bad)
        if len(bad) * len(others) * 2 * len(tree.labels[-1]) > MOST_WORK:
            return bad, value
        best, found = bad, value
        for place in range(len(bad)):
            for other in others:
                tried = bad.copy()
                tried[place] = other
                worse = _harms(tree, tried, n)[0]
                if worse < found:
                    best, found = tried, worse
        if found >= value:
            return bad, value
        bad, value = best, found


def _written_out(n: int, share: float, depth: int, sight: int, key: np.uint64) -> SearchedTree:
    levels = min(depth, sight)
    labels = [_words(grown(key, level), 1 << level) % np.uint64(n) for level in range(levels + 1)]
    whole = [each.astype(np.int64) for each in labels]
    if levels == depth:
        return SearchedTree(whole, None)
    values, law = path_law(share, depth - levels)
    draws = _words(grown(key, sight + 1), 1 << levels) / 2.0**64
    worth = values[np.minimum(np.searchsorted(np.cumsum(law), draws), len(values) - 1)]
    return SearchedTree(whole, worth)


def _words(key: np.uint64, count: int) -> NDArray[np.uint64]:
    words = np.empty(count, np.uint64)
    fill_words(key, words)
    return words


def _harms(tree: SearchedTree, bad: Ints, n: int) -> tuple[float, Floats]:
    """P(good leader), and how far each member reduces it by being bad, the others as now."""
    state = np.zeros(n, np.bool_)
    state[bad] = True
    last = tree.labels[-1]
    values = [1.0 - state[last] if tree.worth is None else tree.worth]
    for labels in reversed(tree.labels[:-1]):
        left, right = values[-1][::2], values[-1][1::2]
        values.append(np.where(state[labels], np.minimum(left, right), (left + right) / 2.0))
    values.reverse()
    harm = np.zeros(n)
    reach = np.ones(1)
    for labels, below in zip(tree.labels[:-1], values[1:], strict=True):
        left, right = below[::2], below[1::2]
        lost = np.abs(left - right) / 2.0  # by taking the worse side instead of either
        harm += np.bincount(labels, reach * lost, n)
        goes_left = np.where(state[labels], left <= right, 0.5)
        reach = np.column_stack([reach * goes_left, reach * (1.0 - goes_left)]).ravel()
    if tree.worth is None:
        harm += np.bincount(last, reach, n)
    return float(values[0][0]), harm

"""The layered network: which members sit in which leaf, and which nodes are below which.

A permutation of all members is cut into leaves; d0 permutations give every member d0 leaves. The
children of a node follow one another, as evenly as the numbers allow, and s - q further nodes are
its neighbours without being its children. All of it is public: an adversary may look at it before
it chooses members to corrupt.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hustings.lab.kernels.committee.parameters import CommitteeParameters
from hustings.lab.kernels.compiling import compiled
from hustings.lab.kernels.counter import branch, word
from hustings.lab.kernels.results import Ints

Ids = NDArray[np.int32]


class NetworkLayer(NamedTuple):
    """One elected layer: node j has neighbours `below[start[j] : start[j + 1]]`."""

    start: Ints
    below: Ids
    parent: Ids  # of each node below: its tree parent in this layer
    halvings: int

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return len(self.start) - 1


class NetworkArrays(NamedTuple):
    """Leaf j has members `seats[cuts[j] : cuts[j + 1]]`."""

    cuts: Ints
    seats: Ids
    layers: tuple[NetworkLayer, ...]

    @property
    def leaves(self) -> int:
        """The number of leaves."""
        return len(self.cuts) - 1


def grown(key: np.uint64, index: int) -> np.uint64:
    """Return the key that branches from another one, as a word that kernels take."""
    return np.uint64(branch(key, np.uint64(index)))


def shuffled(key: np.uint64, n: int) -> Ids:
    """Return a permutation of 0 .. n - 1."""
    words = np.empty(n, np.uint64)
    fill_words(key, words)
    return np.argsort(words, kind="stable").astype(np.int32)


@compiled
def fill_words(key: np.uint64, words: NDArray[np.uint64]) -> None:
    """Fill in the words of a key."""
    for index in range(words.size):
        words[index] = word(key, np.uint64(index))


def build(parameters: CommitteeParameters, key: np.uint64) -> NetworkArrays:
    """Build the network of a key."""
    n, d0 = parameters.members, parameters.d0
    each = max(1, n // parameters.c0)
    ends = np.arange(each + 1, dtype=np.int64) * n // each
    cuts = np.concatenate([ends[:-1] + n * number for number in range(d0)] + [[n * d0]])
    if parameters.sampler == "spread":
        seats = _spread(parameters, key, each)
    else:
        seats = np.concatenate([shuffled(grown(key, i), n) for i in range(d0)])
    below = each * d0
    layers = []
    for depth, (q, s, h) in enumerate(parameters.layers):
        layers.append(_layer(grown(key, 1000 + depth), below, q, s, h))
        below = layers[-1].nodes
    return NetworkArrays(cuts.astype(np.int64), seats, tuple(layers))


def _layer(key: np.uint64, below: int, q: int, s: int, h: int) -> NetworkLayer:
    nodes = ceil(below / q)
    ends = np.arange(nodes + 1, dtype=np.int64) * below // nodes
    parent = np.repeat(np.arange(nodes, dtype=np.int32), np.diff(ends))
    degrees = np.minimum(np.diff(ends) + (s - q), below)
    start = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
    found = np.empty(start[-1], np.int32)
    _fill_neighbours(key, ends, start, found, np.zeros(below, np.int64))
    return NetworkLayer(start, found, parent, h)


@compiled
def _fill_neighbours(
    key: np.uint64, ends: Ints, start: Ints, found: NDArray[np.int32], seen: Ints
) -> None:
    """Fill in the children first, then others, drawn without repetition."""
    below = ends[-1]
    for node in range(ends.size - 1):
        place = start[node]
        for child in range(ends[node], ends[node + 1]):
            found[place] = child
            seen[child] = node + 1
            place += 1
        own = branch(key, np.uint64(node))
        index = np.uint64(0)
        while place < start[node + 1]:
            other = np.int64(word(own, index) % np.uint64(below))
            index += np.uint64(1)
            if seen[other] != node + 1:
                seen[other] = node + 1
                found[place] = other
                place += 1


def _spread(parameters: CommitteeParameters, key: np.uint64, each: int) -> Ids:
    """Make permutations, each of which deals the blocks of the last one out over all others.

    Members of one layer-1 node by the first permutation go to as many different ones as possible
    by the next, so that two members rarely share two nodes.
    """
    n = parameters.members
    block = ceil(each / ceil(each / parameters.layers[0][0])) * ceil(n / each)
    rows = ceil(n / block)
    first = shuffled(key, n)
    found = [first]
    place = np.arange(n, dtype=np.int64)
    row, column = place // block, place % block
    for number in range(1, parameters.d0):
        turned = (column + number * row) % max(rows, 1)  # another slope of the grid each time
        tie = np.empty(n, np.uint64)
        fill_words(grown(key, 500 + number), tie)
        order = np.lexsort((tie, turned))
        found.append(first[order])
    return np.concatenate(found)

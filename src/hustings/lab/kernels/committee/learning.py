"""LEARN-PROCESSORS and the way down the tree: which members learn what.

The monitoring set of a node consists of leaves. Their members took part in the node's election or
were told its result. Each of its members has each other node's list from `fan` members of that
node's monitoring set (from all members of `fan` leaves, with signatures), and takes what more than
half of them say. A member of the node then asks all members of some leaves of the monitoring set,
which a public hash of its name has drawn, so no member is flooded with questions. It takes the
answer that is given most often. So an adversary must hold about half of a whole monitoring set to
keep a node from learning.

Which member tells which is public and mixed. Therefore each good monitor errs with the chance that
its tellers are mostly wrong, independently. A member that is wrong about any node that it should
sit with is lost. The chances of that are added up, which never gives too few.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hustings.lab.kernels.committee.bins import BAD, GOOD, Committees
from hustings.lab.kernels.committee.network import NetworkArrays, NetworkLayer
from hustings.lab.kernels.compiling import compiled
from hustings.lab.kernels.counter import branch, number_of, word
from hustings.lab.kernels.results import Flags, Floats, Ints

STEPS = 512  # shares of wrong tellers are told apart to 1 part in this many, upwards


class Polling(NamedTuple):
    """The questions of the members of a group of nodes, and what leaves pay for them."""

    monitors: int
    tellers: int  # members that give each monitor a list
    reports: Floats  # by node: bits of its list
    answered: Floats  # by leaf: bits that each of its members sends
    asked: Ints  # by leaf: messages


def leaf_ranges(layers: tuple[NetworkLayer, ...], leaves: int) -> list[Ints]:
    """Return for each layer where the leaves below its nodes begin, and where the last end."""
    found = []
    ends = np.arange(leaves + 1, dtype=np.int64)
    for layer in layers:
        cut = np.searchsorted(layer.parent, np.arange(layer.nodes + 1))
        ends = ends[cut]
        found.append(ends)
    return found


def monitoring(
    network: NetworkArrays, depth: int, ranges: list[Ints]
) -> tuple[Ints, NDArray[np.int32]]:
    """The monitoring sets of the nodes of a layer: where each begins, and their leaves."""
    layer = network.layers[depth]
    if depth == 0:
        return layer.start, layer.below
    low, high = ranges[depth - 1][layer.below], ranges[depth - 1][layer.below + 1]
    sizes = high - low
    leaves = np.repeat(low - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
    leaves += np.arange(len(leaves))
    start = np.concatenate([[0], np.cumsum(sizes)])[layer.start]
    return start.astype(np.int64), leaves.astype(np.int32)


@compiled
def count_bad(cuts: Ints, seats: NDArray[np.int32], state: Flags, found: Ints) -> None:
    """Count the bad members of each leaf."""
    for leaf in range(cuts.size - 1):
        found[leaf] = 0
        for seat in range(cuts[leaf], cuts[leaf + 1]):
            if state[seats[seat]] == BAD:
                found[leaf] += 1


@compiled
def relays(committees: Committees, state: Flags, lies: bool, found: Flags) -> None:
    """Find nodes that pass on the truth: those that know it outnumber those that lie."""
    for node in range(found.size):
        known = 0
        wrong = committees.ghosts[node]
        for seat in range(committees.start[node], committees.start[node + 1]):
            member = committees.ids[seat]
            if state[member] == BAD:
                wrong += 1
            elif not committees.lost[seat]:  # a silenced member still passes word down
                known += 1
        passes = not committees.owned[node] and known > (wrong if lies else 0)
        found[node] = 1 if passes else 0


@compiled
def wrong_share(start: Ints, leaves: NDArray[np.int32], sizes: Ints, wrong: Ints) -> Floats:
    """Return what part of each monitoring set says something wrong."""
    found = np.zeros(start.size - 1)
    for node in range(start.size - 1):
        total = bad = 0
        for place in range(start[node], start[node + 1]):
            total += sizes[leaves[place]]
            bad += wrong[leaves[place]]
        found[node] = bad / max(1, total)
    return found


@compiled
def upper_tail(n: int, p: float, least: int) -> float:
    """P(a binomial of n and p is at least `least`).

    >>> round(upper_tail(3, 0.5, 2), 12)
    0.5
    """
    if least <= 0:
        return 1.0
    if least > n or p <= 0.0:
        return 0.0
    if p >= 1.0:
        return 1.0
    log_p, log_q = np.log(p), np.log1p(-p)
    term = n * log_q
    total = 0.0
    for k in range(n + 1):
        if k:
            term += np.log((n - k + 1) / k) + log_p - log_q
        if k >= least:
            total += np.exp(term)
    return min(1.0, total)


@compiled
def doubts(
    group: NDArray[np.int32], owned: Flags, wrong: Floats, tellers: int, asked: int
) -> Floats:
    """Return, by how many of the asked are bad, how many nodes a member gets wrong on average."""
    counts = np.zeros(STEPS + 1)
    for node in group:
        if not owned[node]:
            misled = upper_tail(tellers, wrong[node], (tellers + 1) // 2)
            counts[min(STEPS, int(np.ceil(misled * STEPS - 1e-9)))] += 1.0
    found = np.zeros(asked + 1)
    for bad in range(asked + 1):
        for step in range(STEPS + 1):
            if counts[step] > 0.0:
                least = (asked + 1) // 2 - bad
                found[bad] += counts[step] * upper_tail(asked - bad, step / STEPS, least)
        if found[bad] > 1.0 or 2 * bad >= asked:
            found[bad:] = 1.0
            break
    return found


@compiled
def learn(
    key: np.uint64,
    group: NDArray[np.int32],
    committees: Committees,
    state: Flags,
    start: Ints,
    leaves: NDArray[np.int32],
    sizes: Ints,
    wrong: Ints,
    doubt: Floats,
    polling: Polling,
    asking: Ints,
) -> None:
    """Let all members of the nodes of a group learn the others; mark lost seats."""
    reports = 0.0
    for node in group:
        reports += polling.reports[node]
    for node in group:
        low, high = start[node], start[node + 1]
        mine = leaves[low:high].copy()
        others = reports - polling.reports[node]
        for leaf in mine:
            told = (group.size - 1) * polling.tellers
            polling.answered[leaf] += told * polling.reports[node]
            polling.asked[leaf] += told
        own = branch(key, np.uint64(node))
        for seat in range(committees.start[node], committees.start[node + 1]):
            member = committees.ids[seat]
            draw = branch(own, np.uint64(member))
            total = bad = 0
            for turn in range(min(polling.monitors, mine.size)):
                rest = np.uint64(mine.size - turn)
                other = turn + np.int64(word(draw, np.uint64(turn)) % rest)
                mine[turn], mine[other] = mine[other], mine[turn]
                total += sizes[mine[turn]]
                bad += wrong[mine[turn]]
                polling.answered[mine[turn]] += others
                polling.asked[mine[turn]] += group.size - 1
            asking[member] += total
            scaled = int(np.ceil(bad * (doubt.size - 1) / max(1, total) - 1e-9))
            if state[member] == GOOD and number_of(draw, 1 << 20) < doubt[scaled]:
                committees.lost[seat] = 1
        # A ghost asks like any member, and its leaves are any.
        strangers = committees.ghosts[node] * polling.monitors // max(1, mine.size)
        for leaf in mine:
            polling.answered[leaf] += strangers * others
            polling.asked[leaf] += strangers * (group.size - 1)


@compiled
def informed_members(
    cuts: Ints, seats: NDArray[np.int32], right: Flags, state: Flags, votes: Ints
) -> int:
    """Count good members with more true than false leaves; `votes` begin as given."""
    for leaf in range(cuts.size - 1):
        for seat in range(cuts[leaf], cuts[leaf + 1]):
            votes[seats[seat]] += 1 if right[leaf] else -1
    found = 0
    for member in range(votes.size):
        if state[member] != BAD and votes[member] > 0:
            found += 1
    return found

"""Sub-elections by the lightest bin, all nodes of a layer.

Participants are distinct members, and what an adversary may put in their place. A *ghost* is a
participant that no good member can count on and that has no identity: a seat filled by a node that
the adversary owns, or a good member that is silent or does not know its fellow members. The
adversary owns a node if the faulty participants are no fewer than the tolerance of its agreement;
all that this node elects are ghosts. Below that bound agreement works, and only its outcome is
played.

Two bins, repeated: the bad see all good choices, then fill the bin with fewer good members as long
as it stays the lightest. The first of two equal bins is the lighter one; an empty bin does not
count. Nothing is padded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hustings.lab.kernels.committee.network import Ids
from hustings.lab.kernels.compiling import compiled
from hustings.lab.kernels.counter import S32, branch, word
from hustings.lab.kernels.results import Flags, Ints

GHOST = -1
GOOD, BAD, SILENT = 0, 1, 2  # the state of a member


class Committees(NamedTuple):
    """The members of the nodes of a layer: node j has `ids[start[j] : start[j + 1]]`."""

    start: Ints
    ids: Ids
    lost: Flags  # by seat: does not know its fellow members
    ghosts: Ints
    owned: Flags
    sizes: Ints  # participants of the election, 0 for leaves
    candidates: Ints  # of all its rounds together


class BinRules(NamedTuple):
    """The rules of a sub-election."""

    halvings: int
    oneshot: bool
    packs: bool
    coordinates: bool
    parts: int


class Room(NamedTuple):
    """Scratch for one node at a time."""

    stamp: Ints  # by member: the node that it was last met in
    where: Ints  # by member: its place among the good
    good: Ids
    able: Flags
    faulty: Ids
    side: Ids
    counts: Ints


def new_room(members: int, widest: int, bins: int) -> Room:
    """Room for nodes of this many participants."""
    return Room(
        np.full(members, -1, np.int64),
        np.zeros(members, np.int64),
        np.empty(widest, np.int32),
        np.empty(widest, np.uint8),
        np.empty(widest, np.int32),
        np.empty(widest, np.int32),
        np.zeros(max(2, bins), np.int64),
    )


@compiled
def gather(
    nodes: NDArray[np.int32], below: Committees, state: Flags, mark: int, room: Room
) -> tuple[int, int]:
    """Collect the distinct participants of some committees: the numbers of good and faulty ones.

    The good stand in `room.good`, the faulty in `room.faulty`, ghosts among them.
    """
    good = faulty = ghosts = 0
    for node in nodes:
        ghosts += below.ghosts[node]
        for seat in range(below.start[node], below.start[node + 1]):
            member = below.ids[seat]
            able = state[member] == GOOD and not below.lost[seat]
            if room.stamp[member] == mark:
                if able and state[member] == GOOD:
                    room.able[room.where[member]] = 1
                continue
            room.stamp[member] = mark
            if state[member] == BAD:
                room.faulty[faulty] = member
                faulty += 1
            else:
                room.where[member] = good
                room.good[good] = member
                room.able[good] = 1 if able else 0
                good += 1
    kept = 0
    for place in range(good):
        if room.able[place]:
            room.good[kept] = room.good[place]
            kept += 1
    ghosts += good - kept
    for _ in range(ghosts):
        room.faulty[faulty] = GHOST
        faulty += 1
    return kept, faulty


@compiled
def elect_all(
    key: np.uint64,
    start: Ints,
    neighbours: NDArray[np.int32],
    below: Committees,
    state: Flags,
    rules: BinRules,
    taken: Ints,
    room: Room,
    out: Committees,
) -> None:
    """The committees of a layer; `out` is filled node by node, in order."""
    place = 0
    for node in range(start.size - 1):
        mine = neighbours[start[node] : start[node + 1]]
        good, faulty = gather(mine, below, state, node, room)
        size = good + faulty
        out.sizes[node] = size
        out.start[node] = place
        own = branch(key, np.uint64(node))
        if rules.parts * faulty >= size:
            out.owned[node] = 1
            out.ghosts[node] = size >> rules.halvings
            for turn in range(1 if rules.oneshot else rules.halvings):
                out.candidates[node] += (size + (1 << turn) - 1) >> turn
            continue
        _order_faulty(own, faulty, rules.coordinates, taken, room)
        if rules.oneshot:
            out.candidates[node] += size
            good, faulty = _one_shot(branch(own, np.uint64(1)), good, faulty, rules, room)
        else:
            for turn in range(rules.halvings):
                out.candidates[node] += good + faulty
                turn_key = branch(own, np.uint64(1 + turn))
                good, faulty = _halve(turn_key, good, faulty, rules.packs, room)
        for each in range(good):
            out.ids[place] = room.good[each]
            place += 1
        for each in range(faulty):
            member = room.faulty[each]
            if member == GHOST:
                out.ghosts[node] += 1
            else:
                out.ids[place] = member
                taken[member] += 1
                place += 1
    out.start[start.size - 1] = place


@compiled
def _order_faulty(key: np.uint64, faulty: int, coordinates: bool, taken: Ints, room: Room) -> None:
    """Order the faulty for seats: at random, or those without a seat elsewhere first."""
    mixing = branch(key, np.uint64(0))
    for place in range(faulty - 1, 0, -1):
        other = np.int64(word(mixing, np.uint64(place)) % np.uint64(place + 1))
        room.faulty[place], room.faulty[other] = room.faulty[other], room.faulty[place]
    if not coordinates:
        return
    front = 0
    for place in range(faulty):
        member = room.faulty[place]
        if member == GHOST or taken[member] == 0:
            room.faulty[place], room.faulty[front] = room.faulty[front], room.faulty[place]
            front += 1


@compiled
def _halve(key: np.uint64, good: int, faulty: int, packs: bool, room: Room) -> tuple[int, int]:
    """Play one round of two bins; the remaining members stand first in the room."""
    ones = 0
    for place in range(good):
        room.side[place] = np.int32(word(key, np.uint64(room.good[place])) >> np.uint64(63))
        ones += room.side[place]
    zeros = good - ones
    if packs:
        bin_, filled = pack_two(zeros, ones, faulty)
    else:
        bin_, filled = _honest(key, zeros, ones, faulty, room)
    if bin_ < 0:
        return good, faulty
    kept = 0
    for place in range(good):
        if room.side[place] == bin_:
            room.good[kept] = room.good[place]
            kept += 1
    return kept, filled


@compiled
def pack_two(zeros: int, ones: int, faulty: int) -> tuple[int, int]:
    """Return which of two bins the adversary makes win, and how many of its own are in it.

    Bin -1: one bin stays empty in any case, and all members remain.
    """
    size = zeros + ones + faulty
    first = min(faulty, size // 2 - zeros)  # equal bins: bin 0 wins
    second = min(faulty, (size - 1) // 2 - ones)
    can_first = first >= 0 and zeros + first > 0
    can_second = second >= 0 and ones + second > 0
    if not can_first and not can_second:
        return -1, faulty
    if not can_second:
        return 0, first
    if not can_first:
        return 1, second
    if first * (ones + second) >= second * (zeros + first):
        return 0, first
    return 1, second


@compiled
def _honest(key: np.uint64, zeros: int, ones: int, faulty: int, room: Room) -> tuple[int, int]:
    """Play the round where the bad choose like the good."""
    coins = branch(key, np.uint64(1))
    up = 0
    for place in range(faulty):
        if word(coins, np.uint64(place)) >> np.uint64(63):
            up += 1
    down = faulty - up
    if zeros + down == 0 or ones + up == 0:
        return -1, faulty
    if zeros + down <= ones + up:
        return 0, down
    return 1, up


@compiled
def _one_shot(
    key: np.uint64, good: int, faulty: int, rules: BinRules, room: Room
) -> tuple[int, int]:
    """Play one round of 2^h bins."""
    bins = np.uint64(1) << np.uint64(rules.halvings)
    counts = room.counts
    counts[:] = 0
    for place in range(good):
        room.side[place] = np.int32((word(key, np.uint64(room.good[place])) >> S32) % bins)
        counts[room.side[place]] += 1
    if rules.packs:
        bin_, filled = pack_many(counts, faulty)
    else:
        own = branch(key, np.uint64(1))
        theirs = np.zeros(counts.size, np.int64)
        for place in range(faulty):
            theirs[(word(own, np.uint64(place)) >> S32) % bins] += 1
        bin_ = -1
        for each in range(counts.size):
            total = counts[each] + theirs[each]
            if total > 0 and (bin_ < 0 or total < counts[bin_] + theirs[bin_]):
                bin_ = each
        filled = theirs[bin_]
    kept = 0
    for place in range(good):
        if room.side[place] == bin_:
            room.good[kept] = room.good[place]
            kept += 1
    return kept, filled


@compiled
def pack_many(counts: Ints, faulty: int) -> tuple[int, int]:
    """Return which of many bins the adversary makes win, and how many of its own are in it."""
    best, most = -1, -1
    for bin_ in range(counts.size):
        filled = _room_in(counts, bin_, faulty)
        if filled < 0:
            continue
        total = counts[bin_] + filled
        if best < 0 or filled * (counts[best] + most) > most * total:
            best, most = bin_, filled
    return best, most


@compiled
def _room_in(counts: Ints, target: int, faulty: int) -> int:
    """Count the bad that fit into a bin that is to win; others raise lighter bins. -1: it cannot.

    The winner is the lightest bin that is not empty, the first of equals.
    """
    for filled in range(faulty, -1, -1):
        size = counts[target] + filled
        if size == 0:
            continue
        lacking = 0
        for other in range(counts.size):
            least = size + 1 if other < target else size
            if other != target and 0 < counts[other] < least:
                lacking += least - counts[other]
        if lacking <= faulty - filled:
            return filled
    return -1


def leaf_committees(cuts: Ints, seats: Ids) -> Committees:
    """Return the leaves as committees."""
    leaves = len(cuts) - 1
    return Committees(
        cuts,
        seats,
        np.zeros(len(seats), np.uint8),
        np.zeros(leaves, np.int64),
        np.zeros(leaves, np.uint8),
        np.zeros(leaves, np.int64),
        np.zeros(leaves, np.int64),
    )


def empty_committees(nodes: int, seats: int) -> Committees:
    """Make room for the committees of a layer."""
    return Committees(
        np.zeros(nodes + 1, np.int64),
        np.empty(seats, np.int32),
        np.zeros(seats, np.uint8),
        np.zeros(nodes, np.int64),
        np.zeros(nodes, np.uint8),
        np.zeros(nodes, np.int64),
        np.zeros(nodes, np.int64),
    )


def bad_share_after(k: int, faulty: int, halvings: int, oneshot: bool, key: np.uint64) -> float:
    """Play one election among k, this many of them bad; return the bad share of the elected."""
    members = np.arange(k, dtype=np.int32)
    below = leaf_committees(np.array([0, k]), members)
    state = np.zeros(k, np.uint8)
    state[:faulty] = BAD
    out = empty_committees(1, k)
    rules = BinRules(halvings, oneshot, True, False, 0)  # 0: no node is owned, whatever the share
    elect_all(
        key,
        np.array([0, 1]),
        np.zeros(1, np.int32),
        below,
        state,
        rules,
        np.zeros(k, np.int64),
        new_room(k, k, 1 << halvings),
        out,
    )
    elected = out.ids[: out.start[1]]
    return float(np.count_nonzero(state[elected])) / len(elected)

"""One Byzantine committee election from the leaves to the leader, by the outcomes of agreements."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hustings.lab.kernels.committee.bins import (
    BAD,
    GOOD,
    SILENT,
    BinRules,
    Committees,
    Room,
    elect_all,
    empty_committees,
    gather,
    leaf_committees,
    new_room,
)
from hustings.lab.kernels.committee.corruption import corrupt
from hustings.lab.kernels.committee.costs import (
    CostLedger,
    charge_participants,
    charge_seats,
    elections,
    encoded,
    last_rounds,
    most_rounds,
    new_ledger,
    width,
    words_down,
)
from hustings.lab.kernels.committee.learning import (
    Polling,
    count_bad,
    doubts,
    leaf_ranges,
    learn,
    monitoring,
    relays,
    wrong_share,
)
from hustings.lab.kernels.committee.network import NetworkArrays, build, grown
from hustings.lab.kernels.committee.outcome import CORRUPTION, ELECTION, LEARNING, Summit, finish
from hustings.lab.kernels.committee.parameters import CommitteeParameters
from hustings.lab.kernels.committee.tree import searched
from hustings.lab.kernels.results import Flags, Floats, Ints


class Climb(NamedTuple):
    """The state that goes from layer to layer."""

    parameters: CommitteeParameters
    network: NetworkArrays
    state: Flags
    ledger: CostLedger
    room: Room
    sizes: Ints  # of leaves
    bad: Ints  # in leaves


def play_run(
    parameters: CommitteeParameters,
    key: np.uint64,
    public: np.uint64,
    bad: NDArray[np.int64] | None,
) -> Floats:
    """Return the metrics of one run, in the order of the task's names."""
    network = None if parameters.single else build(parameters, public)
    known: float | None = None
    if bad is None and parameters.corruption == "tree" and parameters.public_tree:
        bad, known = searched(parameters, grown(key, CORRUPTION))
    if bad is None:
        state = corrupt(parameters, network, grown(key, CORRUPTION))
    else:
        state = np.zeros(parameters.members, np.uint8)
        state[bad] = BAD
    ledger = new_ledger(parameters.members)
    if network is None:
        summit = _public_committee(parameters, state)._replace(known=known)
    else:
        summit = _climb(parameters, network, state, ledger, grown(key, ELECTION))
    return finish(parameters, network, state, ledger, summit, key)


def _public_committee(parameters: CommitteeParameters, state: Flags) -> Summit:
    mine = state[: parameters.single]
    good = np.nonzero(mine == GOOD)[0].astype(np.int32)
    faulty = parameters.single - len(good)
    holds = parameters.parts * faulty < parameters.single
    rounds = last_rounds(parameters, parameters.single) + len(words_down(parameters))
    broken = 0.0 if holds else 1.0
    return Summit(len(good), faulty, good, np.array([holds], np.uint8), broken, rounds)


def _climb(
    parameters: CommitteeParameters,
    network: NetworkArrays,
    state: Flags,
    ledger: CostLedger,
    key: np.uint64,
) -> Summit:
    """Play all layers, from the leaves to the root."""
    sizes = np.diff(network.cuts)
    bad = np.zeros(network.leaves, np.int64)
    count_bad(network.cuts, network.seats, state, bad)
    widest = len(network.seats) * max(s // q + 1 for q, s, _ in parameters.layers)
    bins = 1 << max(h for _, _, h in parameters.layers)
    room = new_room(parameters.members, widest, bins)
    climb = Climb(parameters, network, state, ledger, room, sizes, bad)
    below = leaf_committees(network.cuts, network.seats)
    ranges = leaf_ranges(network.layers, network.leaves)
    right = np.ones(network.leaves, np.uint8)  # leaves that receive the truth from above so far
    rounds = 0
    broken = 0.0
    most = np.zeros(0, np.int64)  # members that the committees below can have, which is public
    for depth in range(len(network.layers)):
        layer = network.layers[depth]
        out = _elect(climb, depth, below, grown(key, depth))
        voters = out.sizes
        if depth > 0:
            seats = np.add.reduceat(most[layer.below], layer.start[:-1])
            voters = np.minimum(parameters.members, seats)
        turns = 1 if parameters.bins == "oneshot" else layer.halvings
        rounds += turns * most_rounds(int(voters.max()))
        most = np.maximum(1, voters >> layer.halvings)
        rounds += depth  # the result goes down the tree, but for layer 1
        if depth == 0:
            broken = float(out.owned.mean())
        _hush(parameters, layer.halvings, out, state)
        _meet(climb, depth, out, ranges, right, grown(key, LEARNING * 100 + depth))
        rounds += 3
        passes = np.zeros(len(out.owned), np.uint8)
        relays(out, state, parameters.lies, passes)
        _charge_way_down(climb, depth, out, below)
        right &= np.repeat(passes, np.diff(ranges[depth]))
        below = out
    room.stamp[:] = -1
    everyone = np.arange(network.layers[-1].nodes, dtype=np.int32)
    good, faulty = gather(everyone, below, state, 0, room)
    faulty = min(faulty, parameters.members - good)  # no more names than there are members
    rounds += last_rounds(parameters, min(parameters.members, int(most.sum())))
    rounds += len(words_down(parameters)) * len(network.layers)
    return Summit(good, faulty, room.good[:good].copy(), right, broken, rounds)


def _elect(climb: Climb, depth: int, below: Committees, key: np.uint64) -> Committees:
    """Play the sub-elections of a layer."""
    parameters, layer = climb.parameters, climb.network.layers[depth]
    seats = int(np.diff(below.start)[layer.below].sum())
    out = empty_committees(layer.nodes, seats)
    rules = BinRules(
        layer.halvings,
        parameters.bins == "oneshot",
        parameters.packs,
        parameters.coordinates,
        parameters.parts,
    )
    climb.room.stamp[:] = -1
    taken = np.zeros(parameters.members, np.int64)
    elect_all(key, layer.start, layer.below, below, climb.state, rules, taken, climb.room, out)
    out = out._replace(ids=out.ids[: out.start[-1]].copy(), lost=out.lost[: out.start[-1]].copy())
    bills = elections(parameters, layer.halvings, out)
    climb.room.stamp[:] = -1
    charge_participants(
        layer.start,
        layer.below,
        below,
        climb.state,
        np.array([bill[:3] for bill in bills]),
        climb.room.stamp,
        climb.ledger,
    )
    return out


def _hush(parameters: CommitteeParameters, halvings: int, out: Committees, state: Flags) -> None:
    """Silence good members that sit in too many nodes of the layer."""
    counts = np.bincount(out.ids, minlength=parameters.members)
    bound: float | None = parameters.tau
    if bound is None:
        mean = int(np.maximum(1, out.sizes >> halvings).sum()) / parameters.members
        bound = max(8.0, 4.0 * mean)
    state[(counts > bound) & (state == GOOD)] = SILENT


def _meet(
    climb: Climb, depth: int, out: Committees, ranges: list[Ints], right: Flags, key: np.uint64
) -> None:
    """Let nodes that will sit together above learn the members of the others."""
    parameters, network = climb.parameters, climb.network
    start, leaves = monitoring(network, depth, ranges)
    lying = climb.bad if parameters.lies else np.zeros_like(climb.bad)
    wrong = np.where(right > 0, lying, climb.sizes)
    share = wrong_share(start, leaves, climb.sizes, wrong)
    tellers = _tellers(parameters, climb.sizes, start, leaves)
    polling = Polling(
        parameters.monitors,
        tellers,
        _report_bits(parameters, depth, out),
        np.zeros(network.leaves),
        np.zeros(network.leaves, np.int64),
    )
    asking = np.zeros(parameters.members, np.int64)
    asked = round(parameters.monitors * float(climb.sizes.mean()))
    if depth + 1 < len(network.layers):
        above = network.layers[depth + 1]
        groups = [above.below[a:b] for a, b in zip(above.start[:-1], above.start[1:], strict=True)]
    else:
        groups = [np.arange(network.layers[depth].nodes, dtype=np.int32)]
    for number, group in enumerate(groups):
        doubt = doubts(group, out.owned, share, tellers, asked)
        learn(
            grown(key, number),
            group,
            out,
            climb.state,
            start,
            leaves,
            climb.sizes,
            wrong,
            doubt,
            polling,
            asking,
        )
    bills = np.empty((network.leaves, 3))
    bills[:, 0] = polling.answered
    bills[:, 1] = polling.answered + encoded(0) * polling.asked
    bills[:, 2] = polling.asked
    leafy = leaf_committees(network.cuts, network.seats)
    charge_seats(leafy, climb.state, bills, climb.ledger)
    climb.ledger.bits[:] += asking
    climb.ledger.wire[:] += asking * encoded(1)
    climb.ledger.messages[:] += asking


def _tellers(
    parameters: CommitteeParameters, sizes: Ints, start: Ints, leaves: NDArray[np.int32]
) -> int:
    """Count the members that tell each monitor a list: `fan`, or, signed, `fan` leaves."""
    if not parameters.signed:
        return parameters.fan
    smallest = int(np.add.reduceat(sizes[leaves], start[:-1]).min())
    return min(smallest, round(parameters.fan * float(sizes.mean())))


def _report_bits(parameters: CommitteeParameters, depth: int, out: Committees) -> Floats:
    """Return a list's bits: names, or marks on the public list of participants if shorter."""
    label = width(parameters.members)
    names = (np.diff(out.start) + out.ghosts) * float(label)
    if parameters.lists != "marks" or depth > 0:
        return np.asarray(names, np.float64)
    longest = (out.sizes >> parameters.layers[depth][2]) * label
    return np.where(out.sizes <= longest, out.sizes.astype(np.float64), names)


def _charge_way_down(climb: Climb, depth: int, out: Committees, below: Committees) -> None:
    """Charge each node for sending the result to its children, and lists of nodes above."""
    parameters, layer = climb.parameters, climb.network.layers[depth]
    seats = np.diff(below.start) + below.ghosts
    told = np.bincount(layer.parent, weights=seats, minlength=layer.nodes)
    name = width(parameters.members)
    sizes = [float(word) for word in words_down(parameters)]
    counts = [1.0] * len(sizes)
    c = float(np.mean(np.diff(out.start) + out.ghosts))
    for q, s, h in parameters.layers[depth + 1 :]:
        c = c * s / (1 << h)
        sizes.append(c * name)
        counts.append(s / q)
    bills = np.empty((layer.nodes, 3))
    bills[:, 0] = told * sum(a * b for a, b in zip(sizes, counts, strict=True))
    wire = sum(encoded(a) * b for a, b in zip(sizes, counts, strict=True))
    bills[:, 1] = told * wire
    bills[:, 2] = told * sum(counts)
    charge_seats(out, climb.state, bills, climb.ledger)

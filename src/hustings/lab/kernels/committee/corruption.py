"""Which members a static adversary corrupts: at random, or with knowledge of the network.

- cluster: all members of one layer-1 node after another
- leaf: half of one leaf after another, so that the leaf's word is the adversary's
- greedy: as many layer-1 nodes as can be owned; a member that sits in several of them counts in all
- mixed: some of that, and the rest spread thinly over the nodes that are not owned, where packing
  turns a few into many; how much of either follows from the numbers of the network, unless trying
  it out shows that as many as greedy owns do as much harm
- second: nodes of the last layer, by owning a third of those that elect each; with one elected
  layer as greedy
- tree: those who sit well in the tree of a path among all members (`committee_tree`); where that is
  not known before, as greedy

A known attack is only a lower bound of what an adversary can do.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hustings.lab.kernels.committee.bins import (
    BAD,
    BinRules,
    bad_share_after,
    elect_all,
    empty_committees,
    gather,
    leaf_committees,
    new_room,
)
from hustings.lab.kernels.committee.network import Ids, NetworkArrays, grown, shuffled
from hustings.lab.kernels.committee.parameters import CommitteeParameters
from hustings.lab.kernels.compiling import compiled
from hustings.lab.kernels.results import Flags, Floats, Ints

REFINEMENTS = 4  # rounds in which targets are chosen anew, from the members that were made bad
MAX_SPREAD = 400  # bad members spread per node, beyond which any member is taken
CHOICES = 25  # numbers of nodes to own that are compared
TRIALS = 40  # elections that measure what packing brings
TRIED = 320  # electorates in which a choice is tried, in at least two and at most 16 elections
LOSS = 2.5  # of success, about, for every bad part of the root, until the root falls


class Sitting(NamedTuple):
    """Which members sit in which layer-1 node, both ways, without repetition."""

    start: Ints  # by node
    members: Ids
    first: Ints  # by member
    nodes: Ids


def corrupt(
    parameters: CommitteeParameters, network: NetworkArrays | None, key: np.uint64
) -> Flags:
    """Return the state of every member: good or bad."""
    n, budget = parameters.members, parameters.budget
    order = shuffled(grown(key, 0), n)
    kind = parameters.corruption
    if network is None and kind in ("cluster", "leaf", "greedy", "mixed", "second", "tree"):
        order = np.arange(n, dtype=np.int32)  # the public committee comes first
    elif network is not None and kind == "cluster":
        order = _first_seen(_clustered(network), n)
    elif network is not None and kind == "leaf":
        order = _first_seen(np.concatenate([_half_leaves(network), order]), n)
    elif network is not None and kind in ("greedy", "mixed", "second", "tree"):
        return _aware(parameters, network, order, grown(key, 1))
    state = np.zeros(n, np.uint8)
    state[order[:budget]] = BAD
    return state


def _first_seen(ids: Ids, n: int) -> Ids:
    """List all members once, in the order of the first mention."""
    place = np.full(n, len(ids), np.int64)
    np.minimum.at(place, ids, np.arange(len(ids)))
    return np.argsort(place, kind="stable").astype(np.int32)


def _clustered(network: NetworkArrays) -> Ids:
    below, cuts = network.layers[0].below, network.cuts
    return np.concatenate([network.seats[cuts[leaf] : cuts[leaf + 1]] for leaf in below])


def _half_leaves(network: NetworkArrays) -> Ids:
    cuts = network.cuts
    return np.concatenate(
        [network.seats[cut : cut + (end - cut + 1) // 2] for cut, end in pairwise(cuts.tolist())]
    )


def sitting(network: NetworkArrays, n: int) -> Sitting:
    """Return the members of the nodes of layer 1, both ways."""
    layer = network.layers[0]
    sizes = np.diff(network.cuts)
    room = int(sizes[layer.below].sum())
    start = np.zeros(layer.nodes + 1, np.int64)
    members = np.empty(room, np.int32)
    _fill_sitting(
        layer.start, layer.below, network.cuts, network.seats, start, members, np.full(n, -1)
    )
    members = members[: start[-1]].copy()
    nodes = np.repeat(np.arange(layer.nodes, dtype=np.int32), np.diff(start))
    by_member = np.argsort(members, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(members, minlength=n))]).astype(np.int64)
    return Sitting(start, members, first, nodes[by_member])


@compiled
def _fill_sitting(
    node_start: Ints,
    below: NDArray[np.int32],
    cuts: Ints,
    seats: NDArray[np.int32],
    start: Ints,
    members: NDArray[np.int32],
    stamp: Ints,
) -> None:
    place = 0
    for node in range(node_start.size - 1):
        for index in range(node_start[node], node_start[node + 1]):
            for seat in range(cuts[below[index]], cuts[below[index] + 1]):
                member = seats[seat]
                if stamp[member] != node:
                    stamp[member] = node
                    members[place] = member
                    place += 1
        start[node + 1] = place


def _aware(
    parameters: CommitteeParameters, network: NetworkArrays, order: Ids, key: np.uint64
) -> Flags:
    """Own nodes; spread the remaining budget over the others, where it may pack."""
    seats = sitting(network, parameters.members)
    need = -(-np.diff(seats.start) // parameters.parts)
    if parameters.corruption == "second" and len(network.layers) > 1:
        targets = _below(network, need, parameters.parts)
        owned = _reach(seats, targets, need, order, parameters.budget)[1]
    else:
        targets, owned = _best_targets(seats, need, order, parameters.budget)
    most = _owning(parameters, seats, targets[:owned], need, order)
    if parameters.corruption != "mixed":
        return most
    number = _best_number(parameters, network, seats, need, targets[:owned], order, key)
    if number == owned:
        return most
    some = _owning(parameters, seats, targets[:number], need, order)
    trial = grown(key, 1 << 40)
    worse = _harm(parameters, network, some, trial) > _harm(parameters, network, most, trial)
    return some if worse else most


def _owning(
    parameters: CommitteeParameters, seats: Sitting, targets: Ids, need: Ints, order: Ids
) -> Flags:
    """Return the state of all members if these nodes are owned and the rest is spread."""
    room = np.empty(len(order), np.int32)
    used = _cost(seats, targets, need, order, parameters.budget, room)
    state = np.zeros(parameters.members, np.uint8)
    state[room[:used]] = BAD
    _spread_evenly(seats, parameters.parts, order, parameters.budget - used, state)
    return state


def _harm(
    parameters: CommitteeParameters, network: NetworkArrays, state: Flags, key: np.uint64
) -> float:
    """Measure what these bad members cost the good on average: 1 if the root falls."""
    times = max(2, min(16, TRIED // network.layers[0].nodes))
    total = 0.0
    for number in range(times):
        good, faulty = _root(parameters, network, state, grown(key, number))
        faulty = min(faulty, parameters.members - good)
        falls = parameters.parts * faulty >= good + faulty
        total += 1.0 if falls else LOSS * faulty / (good + faulty)
    return total / times


def _root(
    parameters: CommitteeParameters, network: NetworkArrays, state: Flags, key: np.uint64
) -> tuple[int, int]:
    """Count good and faulty members of the root after one election, if all is learnt."""
    below = leaf_committees(network.cuts, network.seats)
    widest = len(network.seats) * max(s // q + 1 for q, s, _ in parameters.layers)
    room = new_room(parameters.members, widest, 1 << max(h for _, _, h in parameters.layers))
    for depth, layer in enumerate(network.layers):
        out = empty_committees(layer.nodes, int(np.diff(below.start)[layer.below].sum()))
        rules = BinRules(
            layer.halvings, parameters.bins == "oneshot", True, False, parameters.parts
        )
        taken = np.zeros(parameters.members, np.int64)
        room.stamp[:] = -1
        turn = grown(key, depth)
        elect_all(turn, layer.start, layer.below, below, state, rules, taken, room, out)
        below = out
    room.stamp[:] = -1
    return gather(np.arange(network.layers[-1].nodes, dtype=np.int32), below, state, 0, room)


def _best_number(
    parameters: CommitteeParameters,
    network: NetworkArrays,
    seats: Sitting,
    need: Ints,
    targets: Ids,
    order: Ids,
    key: np.uint64,
) -> int:
    """Return how many targets to own: the rest of the budget goes where it packs."""
    nodes, halvings = network.layers[0].nodes, network.layers[0].halvings
    k = round(float(np.diff(seats.start).mean()))
    held = seats.start[-1] / parameters.members  # nodes of a member
    packed = _packed_shares(k, k // parameters.parts, halvings, parameters.bins == "oneshot", key)
    room = np.empty(len(order), np.int32)
    best, found = -1.0, 0
    for owned in np.unique(np.linspace(0, len(targets), CHOICES).round().astype(np.int64)):
        used = _cost(seats, targets[:owned], need, order, parameters.budget, room)
        if used < 0:  # fewer targets may cost more: the members taken first sit elsewhere
            continue
        each = (parameters.budget - used) * held / max(1, nodes - owned)
        inside = float(np.interp(each, packed[0], packed[1]))
        share = _root_share(nodes, int(owned), k, k >> halvings, each, inside, held)
        if share > best:
            best, found = share, int(owned)
    return found


def _root_share(
    nodes: int, owned: int, k: int, c: int, bad: float, inside: float, held: float
) -> float:
    """Estimate the faulty share of the root: of distinct members, and ghosts of owned nodes.

    Honest nodes have `bad` of k bad participants, and a share `inside` of the c elected.
    """
    members = nodes * k / held
    sound = held * (nodes - owned) / nodes  # honest nodes of a member
    chance_good = (1.0 - inside) * c / max(1.0, k - bad)
    chance_bad = inside * c / bad if bad > 0 else 0.0
    spread = members * bad / k
    good = (members - spread) * (1.0 - (1.0 - min(1.0, chance_good)) ** sound)
    faulty = c * owned + spread * (1.0 - (1.0 - min(1.0, chance_bad)) ** sound)
    return float(faulty / (good + faulty))


def _packed_shares(
    k: int, most: int, halvings: int, oneshot: bool, key: np.uint64
) -> tuple[Floats, Floats]:
    """Measure what share of the elected is bad, by how many bad members take part."""
    numbers = np.unique(np.geomspace(1, max(2, most), CHOICES).astype(np.int64) - 1)
    means = [
        np.mean(
            [
                bad_share_after(k, int(bad), halvings, oneshot, grown(key, TRIALS * int(bad) + i))
                for i in range(TRIALS)
            ]
        )
        for bad in numbers
    ]
    return numbers.astype(np.float64), np.array(means)


def _best_targets(seats: Sitting, need: Ints, order: Ids, budget: int) -> tuple[Ids, int]:
    """Return nodes in an order to own them in, and how many of them the budget owns."""
    ranked = np.argsort(need, kind="stable").astype(np.int32)
    best, most = ranked, _reach(seats, ranked, need, order, budget)[1]
    if seats.start[-1] <= len(order):
        return best, most  # no member sits in two nodes: the cheapest first is best
    touching = np.empty(len(need), np.int32)
    _touching(seats, int(ranked[0]), touching)
    for targets in (ranked, touching):
        current = targets
        for _ in range(REFINEMENTS):
            chosen, owned = _reach(seats, current, need, order, budget, most)
            if owned > most:
                best, most = current, owned
            bad = np.zeros(len(order), np.int64)
            bad[chosen] = 1
            held = np.add.reduceat(bad[seats.members], seats.start[:-1])
            current = np.argsort(need - held, kind="stable").astype(np.int32)
    return best, most


def _below(network: NetworkArrays, need: Ints, parts: int) -> Ids:
    """Order nodes of the first layer so that nodes of the last are owned one after another."""
    price = need
    falls: list[Ids] = [np.array([node], np.int32) for node in range(len(need))]  # below each
    for layer in network.layers[1:]:
        upper, costs = [], []
        for first, end in pairwise(layer.start.tolist()):
            group = layer.below[first:end]
            cheap = group[np.argsort(price[group], kind="stable")][: -(-len(group) // parts)]
            upper.append(np.concatenate([falls[node] for node in cheap]))
            costs.append(int(price[cheap].sum()))
        falls, price = upper, np.array(costs, np.int64)
    order = np.concatenate([falls[node] for node in np.argsort(price, kind="stable")])
    return order[np.sort(np.unique(order, return_index=True)[1])]


def _reach(
    seats: Sitting, targets: Ids, need: Ints, order: Ids, budget: int, least: int = 0
) -> tuple[Ids, int]:
    """Return the longest prefix of the targets that the budget owns, and its members.

    Only a prefix longer than `least` is looked for. If there is none, return the members that were
    taken on the way.
    """
    room = np.empty(len(order), np.int32)
    if least and _cost(seats, targets[: least + 1], need, order, budget, room) < 0:
        return room[:budget].copy(), least
    low = max(least, min(len(targets), budget // int(need.max())))  # one by one, at any rate
    widest = int(np.diff(seats.first).max())
    high = min(len(targets), max(low, budget * widest // int(need.min())))
    while low < high:
        middle = (low + high + 1) // 2
        if _cost(seats, targets[:middle], need, order, budget, room) >= 0:
            low = middle
        else:
            high = middle - 1
    used = _cost(seats, targets[:low], need, order, budget, room)
    return room[:used].copy(), low


@compiled
def _cost(
    seats: Sitting,
    targets: NDArray[np.int32],
    need: Ints,
    order: NDArray[np.int32],
    budget: int,
    chosen: NDArray[np.int32],
) -> int:
    """Own all targets, the most useful members first; return how many it takes, -1: too many."""
    lacking = np.zeros(need.size, np.int64)
    open_ = 0
    for node in targets:
        lacking[node] = need[node]
        open_ += 1
    most = 0
    for member in range(order.size):
        most = max(most, seats.first[member + 1] - seats.first[member])
    used = 0
    taken = np.zeros(order.size, np.uint8)
    for level in range(most, 0, -1):
        for member in order:
            if not open_:
                return used
            if taken[member]:
                continue
            score = 0
            for place in range(seats.first[member], seats.first[member + 1]):
                if lacking[seats.nodes[place]] > 0:
                    score += 1
            if score < level:
                continue
            if used == budget:
                return -1
            taken[member] = 1
            chosen[used] = member
            used += 1
            for place in range(seats.first[member], seats.first[member + 1]):
                node = seats.nodes[place]
                lacking[node] -= 1
                if lacking[node] == 0:
                    open_ -= 1
    return used if not open_ else -1


@compiled
def _touching(seats: Sitting, begin: int, order: NDArray[np.int32]) -> None:
    """Order nodes so that each shares many members with those before it."""
    shared = np.zeros(order.size, np.int64)
    used = np.zeros(order.size, np.uint8)
    node = begin
    for place in range(order.size):
        order[place] = node
        used[node] = 1
        for seat in range(seats.start[node], seats.start[node + 1]):
            member = seats.members[seat]
            for index in range(seats.first[member], seats.first[member + 1]):
                shared[seats.nodes[index]] += 1
        node = -1
        for other in range(order.size):
            if not used[other] and (node < 0 or shared[other] > shared[node]):
                node = other


@compiled
def _spread_evenly(
    seats: Sitting, parts: int, order: NDArray[np.int32], left: int, state: NDArray[np.uint8]
) -> None:
    """Corrupt this many more members, about equally over the nodes that are not owned."""
    nodes = seats.start.size - 1
    held = np.zeros(nodes, np.int64)
    full = np.zeros(nodes, np.uint8)
    for node in range(nodes):
        for seat in range(seats.start[node], seats.start[node + 1]):
            held[node] += state[seats.members[seat]]
        if parts * held[node] >= seats.start[node + 1] - seats.start[node]:
            full[node] = 1
    bound = 1 << 20 if full.all() else 0
    while left > 0:
        bound += 1
        for member in order:
            if left == 0 or state[member]:
                continue
            fits = False
            for place in range(seats.first[member], seats.first[member + 1]):
                node = seats.nodes[place]
                if not full[node] and held[node] < bound:
                    fits = True
            if not fits and bound < 1 << 20:
                continue
            state[member] = BAD
            left -= 1
            for place in range(seats.first[member], seats.first[member + 1]):
                held[seats.nodes[place]] += 1
        if bound > MAX_SPREAD:
            bound = 1 << 20

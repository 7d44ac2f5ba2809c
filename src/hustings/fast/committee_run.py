"""One Byzantine committee election from the leaves to the leader, by the outcomes of agreements."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hustings.fast.committee_agreement import encoded, most_rounds, width
from hustings.fast.committee_assembly import Assembly
from hustings.fast.committee_bins import (
    BAD,
    GOOD,
    SILENT,
    Committees,
    Room,
    Rules,
    elect_all,
    empty_committees,
    gather,
    leaf_committees,
    new_room,
)
from hustings.fast.committee_corruption import corrupt
from hustings.fast.committee_costs import (
    NOTHING,
    Bill,
    Ledger,
    charge_participants,
    charge_seats,
    deciding,
    elections,
    last_rounds,
    last_stage,
    new_ledger,
    words_down,
)
from hustings.fast.committee_endgame import after_halving, halved_once, last_value, path_value
from hustings.fast.committee_learning import (
    Polling,
    count_bad,
    doubts,
    informed_members,
    leaf_ranges,
    learn,
    monitoring,
    relays,
    upper_tail,
    wrong_share,
)
from hustings.fast.committee_network import Network, build, grown, shuffled
from hustings.fast.committee_tree import searched
from hustings.fast.common import Flags, Floats, Ints
from hustings.fast.counter import number_of
from hustings.fast.draws import binomial

METRICS = (
    "good_leader",
    "p_good",
    "informed",
    "false_leaders",
    "root_bad",
    "broken",
    "bits_mean",
    "bits_max",
    "wire_mean",
    "wire_max",
    "messages_mean",
    "rounds",
    "root_size",
    "confirmed",
)
DECIDED = (  # of an agreement
    "agreeing",
    "undecided",
    "valid",
    "set_size",
    "set_bad",
    "broken",
    "bits_mean",
    "bits_max",
    "wire_mean",
    "wire_max",
    "messages_mean",
    "rounds",
)
NAMES = {"leader": METRICS, "coin": (*METRICS, "seen", "coin"), "agreement": DECIDED}  # by task
BACKERS = 300  # numbers of members who may back a false leader that are looked at
NETWORK, CORRUPTION, ELECTION, LEARNING, LEADER, POLL, COIN = range(7)  # branches of a run's key


class Climb(NamedTuple):
    """What is carried from layer to layer."""

    assembly: Assembly
    network: Network
    state: Flags
    ledger: Ledger
    room: Room
    sizes: Ints  # of leaves
    bad: Ints  # in leaves


class Summit(NamedTuple):
    """What came of the layers: the root's participants, and which leaves hear the truth."""

    good: int
    faulty: int
    members: NDArray[np.int32]  # good ones
    right: Flags  # by leaf
    broken: float
    rounds: int
    known: float | None = None  # P(good leader), where the tree was written out


def play_run(
    assembly: Assembly, key: np.uint64, public: np.uint64, bad: NDArray[np.int64] | None
) -> Floats:
    """The metrics of one run, in the order of the task's names."""
    network = None if assembly.single else build(assembly, public)
    known: float | None = None
    if bad is None and assembly.corruption == "tree" and assembly.public_tree:
        bad, known = searched(assembly, grown(key, CORRUPTION))
    if bad is None:
        state = corrupt(assembly, network, grown(key, CORRUPTION))
    else:
        state = np.zeros(assembly.members, np.uint8)
        state[bad] = BAD
    ledger = new_ledger(assembly.members)
    if network is None:
        summit = _public_committee(assembly, state)._replace(known=known)
    else:
        summit = _climb(assembly, network, state, ledger, grown(key, ELECTION))
    finish = _finish_agreement if assembly.task == "agreement" else _finish
    return finish(assembly, network, state, ledger, summit, key)


def _public_committee(assembly: Assembly, state: Flags) -> Summit:
    mine = state[: assembly.single]
    good = np.nonzero(mine == GOOD)[0].astype(np.int32)
    faulty = assembly.single - len(good)
    holds = assembly.parts * faulty < assembly.single
    rounds = last_rounds(assembly, assembly.single) + len(words_down(assembly))
    broken = 0.0 if holds else 1.0
    return Summit(len(good), faulty, good, np.array([holds], np.uint8), broken, rounds)


def _climb(
    assembly: Assembly, network: Network, state: Flags, ledger: Ledger, key: np.uint64
) -> Summit:
    """All layers, from the leaves to the root."""
    sizes = np.diff(network.cuts)
    bad = np.zeros(network.leaves, np.int64)
    count_bad(network.cuts, network.seats, state, bad)
    widest = len(network.seats) * max(s // q + 1 for q, s, _ in assembly.layers)
    bins = 1 << max(h for _, _, h in assembly.layers)
    room = new_room(assembly.members, widest, bins)
    climb = Climb(assembly, network, state, ledger, room, sizes, bad)
    below = leaf_committees(network.cuts, network.seats)
    ranges = leaf_ranges(network.layers, network.leaves)
    right = np.ones(network.leaves, np.uint8)  # leaves that hear the truth from above so far
    rounds = 0
    broken = 0.0
    most = np.zeros(0, np.int64)  # members that the committees below can have, which is public
    for depth in range(len(network.layers)):
        layer = network.layers[depth]
        out = _elect(climb, depth, below, grown(key, depth))
        voters = out.sizes
        if depth > 0:
            seats = np.add.reduceat(most[layer.below], layer.start[:-1])
            voters = np.minimum(assembly.members, seats)
        turns = 1 if assembly.bins == "oneshot" else layer.halvings
        rounds += turns * most_rounds(int(voters.max()))
        most = np.maximum(1, voters >> layer.halvings)
        rounds += depth  # the result goes down the tree, but for layer 1
        if depth == 0:
            broken = float(out.owned.mean())
        _hush(assembly, layer.halvings, out, state)
        _meet(climb, depth, out, ranges, right, grown(key, LEARNING * 100 + depth))
        rounds += 3
        passes = np.zeros(len(out.owned), np.uint8)
        relays(out, state, assembly.lies, passes)
        _charge_way_down(climb, depth, out, below)
        right &= np.repeat(passes, np.diff(ranges[depth]))
        below = out
    room.stamp[:] = -1
    everyone = np.arange(network.layers[-1].nodes, dtype=np.int32)
    good, faulty = gather(everyone, below, state, 0, room)
    faulty = min(faulty, assembly.members - good)  # no more names than there are members
    rounds += last_rounds(assembly, min(assembly.members, int(most.sum())))
    rounds += len(words_down(assembly)) * len(network.layers)
    return Summit(good, faulty, room.good[:good].copy(), right, broken, rounds)


def _elect(climb: Climb, depth: int, below: Committees, key: np.uint64) -> Committees:
    """The sub-elections of a layer."""
    assembly, layer = climb.assembly, climb.network.layers[depth]
    seats = int(np.diff(below.start)[layer.below].sum())
    out = empty_committees(layer.nodes, seats)
    rules = Rules(
        layer.halvings,
        assembly.bins == "oneshot",
        assembly.packs,
        assembly.coordinates,
        assembly.parts,
    )
    climb.room.stamp[:] = -1
    taken = np.zeros(assembly.members, np.int64)
    elect_all(key, layer.start, layer.below, below, climb.state, rules, taken, climb.room, out)
    out = out._replace(ids=out.ids[: out.start[-1]].copy(), lost=out.lost[: out.start[-1]].copy())
    bills = elections(assembly, layer.halvings, out)
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


def _hush(assembly: Assembly, halvings: int, out: Committees, state: Flags) -> None:
    """Good members who sit in too many nodes of the layer fall silent."""
    counts = np.bincount(out.ids, minlength=assembly.members)
    bound: float | None = assembly.tau
    if bound is None:
        mean = int(np.maximum(1, out.sizes >> halvings).sum()) / assembly.members
        bound = max(8.0, 4.0 * mean)
    state[(counts > bound) & (state == GOOD)] = SILENT


def _meet(
    climb: Climb, depth: int, out: Committees, ranges: list[Ints], right: Flags, key: np.uint64
) -> None:
    """Nodes that are to sit together above learn who is in the others."""
    assembly, network = climb.assembly, climb.network
    start, leaves = monitoring(network, depth, ranges)
    lying = climb.bad if assembly.lies else np.zeros_like(climb.bad)
    wrong = np.where(right > 0, lying, climb.sizes)
    share = wrong_share(start, leaves, climb.sizes, wrong)
    tellers = _tellers(assembly, climb.sizes, start, leaves)
    polling = Polling(
        assembly.monitors,
        tellers,
        _report_bits(assembly, depth, out),
        np.zeros(network.leaves),
        np.zeros(network.leaves, np.int64),
    )
    asking = np.zeros(assembly.members, np.int64)
    asked = round(assembly.monitors * float(climb.sizes.mean()))
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


def _tellers(assembly: Assembly, sizes: Ints, start: Ints, leaves: NDArray[np.int32]) -> int:
    """From how many members each monitor hears a list: `fan`, or with signatures `fan` leaves."""
    if not assembly.signed:
        return assembly.fan
    smallest = int(np.add.reduceat(sizes[leaves], start[:-1]).min())
    return min(smallest, round(assembly.fan * float(sizes.mean())))


def _report_bits(assembly: Assembly, depth: int, out: Committees) -> Floats:
    """Bits of a node's list: names, or marks on the public list of its participants if shorter."""
    label = width(assembly.members)
    names = (np.diff(out.start) + out.ghosts) * float(label)
    if assembly.lists != "marks" or depth > 0:
        return np.asarray(names, np.float64)
    longest = (out.sizes >> assembly.layers[depth][2]) * label
    return np.where(out.sizes <= longest, out.sizes.astype(np.float64), names)


def _charge_way_down(climb: Climb, depth: int, out: Committees, below: Committees) -> None:
    """Each node tells its children what came of it all, and before that lists of nodes above."""
    assembly, layer = climb.assembly, climb.network.layers[depth]
    seats = np.diff(below.start) + below.ghosts
    told = np.bincount(layer.parent, weights=seats, minlength=layer.nodes)
    name = width(assembly.members)
    sizes = [float(word) for word in words_down(assembly)]
    counts = [1.0] * len(sizes)
    c = float(np.mean(np.diff(out.start) + out.ghosts))
    for q, s, h in assembly.layers[depth + 1 :]:
        c = c * s / (1 << h)
        sizes.append(c * name)
        counts.append(s / q)
    bills = np.empty((layer.nodes, 3))
    bills[:, 0] = told * sum(a * b for a, b in zip(sizes, counts, strict=True))
    wire = sum(encoded(a) * b for a, b in zip(sizes, counts, strict=True))
    bills[:, 1] = told * wire
    bills[:, 2] = told * sum(counts)
    charge_seats(out, climb.state, bills, climb.ledger)


def _finish(
    assembly: Assembly,
    network: Network | None,
    state: Flags,
    ledger: Ledger,
    summit: Summit,
    key: np.uint64,
) -> Floats:
    """The last stage, the leader, who knows it, and what it cost."""
    size = summit.good + summit.faulty
    owned = assembly.parts * summit.faulty >= size
    p_good, whole, few, left = _endgame(assembly, summit, owned, grown(key, LEADER))
    share = summit.good / max(1, size)
    _charge_root(assembly, summit, ledger, whole, few, round(left * share), key)
    leads = number_of(grown(key, LEADER), 0) < p_good
    good = int(np.count_nonzero(state != BAD))
    know = 0 if owned else _hearing(assembly, network, state, summit)
    liars = good < assembly.members and (owned or assembly.lies)
    misled = good - know if liars else 0
    confirmed, false = _final_poll(assembly, state, know, misled, bool(leads), grown(key, POLL))
    spent = _spent(state, ledger)
    found = np.array(
        [
            float(leads),
            p_good,
            know / good if good else 0.0,
            false,
            summit.faulty / size if size else 1.0,
            summit.broken,
            *spent,
            float(summit.rounds + 2),
            float(size),
            confirmed,
        ]
    )
    if assembly.task != "coin":
        return found
    fair = leads or (not assembly.steers and not owned)
    coin = float(number_of(grown(key, COIN), 0) < 0.5) if fair else 1.0
    return np.append(found, (know / good if good else 0.0, coin))


def _finish_agreement(
    assembly: Assembly,
    network: Network | None,
    state: Flags,
    ledger: Ledger,
    summit: Summit,
    key: np.uint64,
) -> Floats:
    """Some of the root decide, and word goes down; where a third of them is bad, nothing holds."""
    size = summit.good + summit.faulty
    good, bad, rounds = _deciders(assembly, summit, grown(key, LEADER))
    left = good + bad
    sound = assembly.parts * summit.faulty < size and assembly.parts * bad < left
    if size:
        whole, few = deciding(size, rounds, left)
        _charge_root(assembly, summit, ledger, whole, few, good, key)
    everybody = int(np.count_nonzero(state != BAD))
    know = _hearing(assembly, network, state, summit) if sound else 0
    agreeing = know / everybody if everybody else 0.0
    lied_to = everybody < assembly.members and (not sound or assembly.lies)
    of_one_mind = assembly.inputs == "same" or everybody <= 1
    if assembly.inputs == "random":
        of_one_mind = number_of(grown(key, COIN), 0) < 0.5 ** max(0, everybody - 1)
    return np.array(
        [
            agreeing,
            0.0 if lied_to else 1.0 - agreeing,
            float(not of_one_mind or 2 * know > everybody),
            float(left),
            bad / left if left else 1.0,
            summit.broken,
            *_spent(state, ledger),
            float(summit.rounds),
        ]
    )


def _deciders(assembly: Assembly, summit: Summit, key: np.uint64) -> tuple[int, int, list[float]]:
    """Who is left of the root to decide, good and bad; and the candidates of every halving."""
    good, bad, most = summit.good, summit.faulty, assembly.deciders
    rounds = []
    turn = 0
    while (summit.good + summit.faulty) >> turn > most:
        rounds.append(float(good + bad))
        stream = np.array([grown(key, 10 + turn), 0], np.uint64)
        good, bad = halved_once(stream, good, bad, assembly.packs)
        turn += 1
    bad = min(bad, most)
    return min(good, most - bad), bad, rounds


def _hearing(assembly: Assembly, network: Network | None, state: Flags, summit: Summit) -> int:
    """Good members that hear the truth from an honest root."""
    if network is None:
        return int(np.count_nonzero(state != BAD)) if summit.right[0] else 0
    votes = np.zeros(assembly.members, np.int64)
    votes[summit.members] = assembly.d0 + 1  # who sat in the root believes what it saw
    return int(informed_members(network.cuts, network.seats, summit.right, state, votes))


def _spent(state: Flags, ledger: Ledger) -> tuple[float, ...]:
    """What good members sent: means and most."""
    paying = state != BAD
    if not paying.any():
        return (0.0,) * 5
    return (
        float(ledger.bits[paying].mean()),
        float(ledger.bits[paying].max()),
        float(ledger.wire[paying].mean()),
        float(ledger.wire[paying].max()),
        float(ledger.messages[paying].mean()),
    )


def _endgame(
    assembly: Assembly, summit: Summit, owned: bool, key: np.uint64
) -> tuple[float, Bill, Bill, int]:
    """P(good leader), the bill of the root, that of the few who are left, and how many they are.

    The chance is that over all ends; how many are left, and what that costs, is one drawn from it.
    """
    size = summit.good + summit.faulty
    if assembly.endgame == "full" or size == 0:
        whole, few = last_stage(assembly, size, [], size) if size else (NOTHING, NOTHING)
        if summit.known is not None:
            value = summit.known
        elif assembly.steers:
            value = path_value(summit.faulty, size, assembly.depth)
        else:
            value = summit.good / max(1, size)
        return (0.0 if owned else value), whole, few, 0
    until = 128 if assembly.endgame == "feige" else assembly.r_end
    goods, bads, chances, rounds = after_halving(summit.good, summit.faulty, until, assembly.packs)
    game, depth, parts, steers = (
        assembly.endgame,
        assembly.depth,
        assembly.parts,
        assembly.steers,
    )
    value = sum(
        chance * last_value(game, good, bad, depth, parts, steers)
        for good, bad, chance in zip(goods.tolist(), bads.tolist(), chances.tolist(), strict=True)
    )
    drawn = min(int(np.searchsorted(np.cumsum(chances), number_of(key, 1))), len(chances) - 1)
    left = int(goods[drawn] + bads[drawn])
    whole, few = last_stage(assembly, size, rounds, left)
    return (0.0 if owned else value), whole, few, left


def _charge_root(
    assembly: Assembly,
    summit: Summit,
    ledger: Ledger,
    whole: Bill,
    few: Bill,
    left: int,
    key: np.uint64,
) -> None:
    """The root pays, and so many good ones of it what the few send besides."""
    members = summit.members
    ledger.bits[members] += whole.bits
    ledger.wire[members] += whole.wire
    ledger.messages[members] += whole.messages
    if left:
        order = shuffled(grown(key, LEADER), len(members))
        chosen = members[order[:left]]
        ledger.bits[chosen] += few.bits
        ledger.wire[chosen] += few.wire
        ledger.messages[chosen] += few.messages
    if assembly.single:
        others = assembly.members - assembly.single
        for word in words_down(assembly):
            ledger.bits[members] += float(word * others)
            ledger.wire[members] += encoded(word) * others
            ledger.messages[members] += others


def _final_poll(
    assembly: Assembly, state: Flags, know: int, misled: int, leads: bool, key: np.uint64
) -> tuple[float, float]:
    """Whether a good leader's poll is answered, and how many others are misled about themselves.

    Good members answer only whom they take for the leader; the bad answer all but the leader. By
    `conjunction` only those ask who were told that they lead: those that are misled, all of them.
    Misled members may also be told to take another one of them for the leader, and then answer it.
    """
    n = assembly.members
    good = int(np.count_nonzero(state != BAD))
    most = assembly.poll // 2 + 1
    answered = upper_tail(assembly.poll, know / n, most)
    confirmed = float(leads and number_of(key, 0) < answered)
    helped = (n - good) if assembly.floods else 0
    asking = misled
    if assembly.final == "printed":
        asking = good - (1 if leads else 0)
    alone = upper_tail(assembly.poll, helped / n, most)
    stream = np.array([grown(key, 1), 0], np.uint64)
    false = float(binomial(stream, max(0, asking), alone))
    backed = misled * _gain(assembly, helped, misled)
    whole = int(backed)
    return confirmed, min(asking, false + whole + (number_of(key, 2) < backed - whole))


def _gain(assembly: Assembly, helped: int, misled: int) -> float:
    """The most false leaders that one misled member adds by answering another one.

    So many back each of some; the best number of backers bounds every way to share them out.
    """
    if misled == 0:
        return 0.0
    n, poll, most = assembly.members, assembly.poll, assembly.poll // 2 + 1
    alone = upper_tail(poll, helped / n, most)
    numbers = np.unique(np.geomspace(1, misled, BACKERS).astype(np.int64)).tolist()
    chances = [upper_tail(poll, min(1.0, (helped + each) / n), most) for each in numbers]
    fewer = [each + 1 for each in [0, *numbers[:-1]]]  # the fewest that a step stands for
    found = ((chance - alone) / each for chance, each in zip(chances, fewer, strict=True))
    return float(max(found))

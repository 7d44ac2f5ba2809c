"""The end of a Byzantine committee election: what the root comes to, who hears it, what it cost.

A leader, with or without a coin, or a bit that some of the root decide for the whole group.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hustings.lab.kernels.committee_agreement import encoded
from hustings.lab.kernels.committee_assembly import Assembly
from hustings.lab.kernels.committee_bins import BAD
from hustings.lab.kernels.committee_costs import (
    NOTHING,
    Bill,
    Ledger,
    deciding,
    last_stage,
    words_down,
)
from hustings.lab.kernels.committee_endgame import (
    after_halving,
    halved_once,
    last_value,
    path_value,
)
from hustings.lab.kernels.committee_learning import informed_members, upper_tail
from hustings.lab.kernels.committee_network import Network, grown, shuffled
from hustings.lab.kernels.common import Flags, Floats
from hustings.lab.kernels.counter import number_of
from hustings.lab.kernels.draws import binomial

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


class Summit(NamedTuple):
    """What came of the layers: the root's participants, and which leaves hear the truth."""

    good: int
    faulty: int
    members: NDArray[np.int32]  # good ones
    right: Flags  # by leaf
    broken: float
    rounds: int
    known: float | None = None  # P(good leader), where the tree was written out


def finish(
    assembly: Assembly,
    network: Network | None,
    state: Flags,
    ledger: Ledger,
    summit: Summit,
    key: np.uint64,
) -> Floats:
    """The last stage and all metrics of the run, in the order of the task's names."""
    end = _decided if assembly.task == "agreement" else _elected
    return end(assembly, network, state, ledger, summit, key)


def _elected(
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


def _decided(
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

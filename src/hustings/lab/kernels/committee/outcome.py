"""The end of a Byzantine committee election: the root's result, who hears it, and the cost.

A leader, with or without a coin, or a bit that some of the root decide for the whole group.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hustings.lab.kernels.committee.bins import BAD
from hustings.lab.kernels.committee.costs import (
    NOTHING,
    Bill,
    CostLedger,
    deciding,
    encoded,
    last_stage,
    words_down,
)
from hustings.lab.kernels.committee.endgame import (
    after_halving,
    halved_once,
    last_value,
    path_value,
)
from hustings.lab.kernels.committee.learning import informed_members, upper_tail
from hustings.lab.kernels.committee.network import NetworkArrays, grown, shuffled
from hustings.lab.kernels.committee.parameters import CommitteeParameters
from hustings.lab.kernels.counter import number_of
from hustings.lab.kernels.draws import binomial
from hustings.lab.kernels.results import Flags, Floats

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
BACKERS = 300  # numbers of members backing a false leader that are examined
NETWORK, CORRUPTION, ELECTION, LEARNING, LEADER, POLL, COIN = range(7)  # branches of a run's key


class Summit(NamedTuple):
    """The result of the layers: the root's participants, and which leaves hear the truth."""

    good: int
    faulty: int
    members: NDArray[np.int32]  # good ones
    right: Flags  # by leaf
    broken: float
    rounds: int
    known: float | None = None  # P(good leader), where the tree was expanded


def finish(
    parameters: CommitteeParameters,
    network: NetworkArrays | None,
    state: Flags,
    ledger: CostLedger,
    summit: Summit,
    key: np.uint64,
) -> Floats:
    """Play the last stage; return all metrics of the run, in the order of the task's names."""
    end = _decided if parameters.task == "agreement" else _elected
    return end(parameters, network, state, ledger, summit, key)


def _elected(
    parameters: CommitteeParameters,
    network: NetworkArrays | None,
    state: Flags,
    ledger: CostLedger,
    summit: Summit,
    key: np.uint64,
) -> Floats:
    """Play the last stage for a leader: who knows the leader, and the cost."""
    size = summit.good + summit.faulty
    owned = parameters.parts * summit.faulty >= size
    p_good, whole, few, left = _endgame(parameters, summit, owned, grown(key, LEADER))
    share = summit.good / max(1, size)
    _charge_root(parameters, summit, ledger, whole, few, round(left * share), key)
    leads = number_of(grown(key, LEADER), 0) < p_good
    good = int(np.count_nonzero(state != BAD))
    know = 0 if owned else _hearing(parameters, network, state, summit)
    liars = good < parameters.members and (owned or parameters.lies)
    misled = good - know if liars else 0
    confirmed, false = _final_poll(parameters, state, know, misled, bool(leads), grown(key, POLL))
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
    if parameters.task != "coin":
        return found
    fair = leads or (not parameters.steers and not owned)
    coin = float(number_of(grown(key, COIN), 0) < 0.5) if fair else 1.0
    return np.append(found, (know / good if good else 0.0, coin))


def _decided(
    parameters: CommitteeParameters,
    network: NetworkArrays | None,
    state: Flags,
    ledger: CostLedger,
    summit: Summit,
    key: np.uint64,
) -> Floats:
    """Let some of the root decide; word goes down. If a third of them is bad, nothing holds."""
    size = summit.good + summit.faulty
    good, bad, rounds = _deciders(parameters, summit, grown(key, LEADER))
    left = good + bad
    sound = parameters.parts * summit.faulty < size and parameters.parts * bad < left
    if size:
        whole, few = deciding(size, rounds, left)
        _charge_root(parameters, summit, ledger, whole, few, good, key)
    everybody = int(np.count_nonzero(state != BAD))
    know = _hearing(parameters, network, state, summit) if sound else 0
    agreeing = know / everybody if everybody else 0.0
    lied_to = everybody < parameters.members and (not sound or parameters.lies)
    of_one_mind = parameters.inputs == "same" or everybody <= 1
    if parameters.inputs == "random":
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


def _deciders(
    parameters: CommitteeParameters, summit: Summit, key: np.uint64
) -> tuple[int, int, list[float]]:
    """Return the deciders left of the root, good and bad; and every halving's candidates."""
    good, bad, most = summit.good, summit.faulty, parameters.deciders
    rounds = []
    turn = 0
    while (summit.good + summit.faulty) >> turn > most:
        rounds.append(float(good + bad))
        stream = np.array([grown(key, 10 + turn), 0], np.uint64)
        good, bad = halved_once(stream, good, bad, parameters.packs)
        turn += 1
    bad = min(bad, most)
    return min(good, most - bad), bad, rounds


def _hearing(
    parameters: CommitteeParameters, network: NetworkArrays | None, state: Flags, summit: Summit
) -> int:
    """Count the good members that hear the truth from an honest root."""
    if network is None:
        return int(np.count_nonzero(state != BAD)) if summit.right[0] else 0
    votes = np.zeros(parameters.members, np.int64)
    votes[summit.members] = parameters.d0 + 1  # a participant at the root believes what it saw
    return int(informed_members(network.cuts, network.seats, summit.right, state, votes))


def _spent(state: Flags, ledger: CostLedger) -> tuple[float, ...]:
    """Return what good members sent: means and maxima."""
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
    parameters: CommitteeParameters, summit: Summit, owned: bool, key: np.uint64
) -> tuple[float, Bill, Bill, int]:
    """P(good leader), the bills of the root and of the few remaining, and their number.

    The chance is that over all ends; the number of the rest, and its cost, is drawn from one end.
    """
    size = summit.good + summit.faulty
    if parameters.endgame == "full" or size == 0:
        whole, few = last_stage(parameters, size, [], size) if size else (NOTHING, NOTHING)
        if summit.known is not None:
            value = summit.known
        elif parameters.steers:
            value = path_value(summit.faulty, size, parameters.depth)
        else:
            value = summit.good / max(1, size)
        return (0.0 if owned else value), whole, few, 0
    until = 128 if parameters.endgame == "feige" else parameters.r_end
    goods, bads, chances, rounds = after_halving(
        summit.good, summit.faulty, until, parameters.packs
    )
    game, depth, parts, steers = (
        parameters.endgame,
        parameters.depth,
        parameters.parts,
        parameters.steers,
    )
    value = sum(
        chance * last_value(game, good, bad, depth, parts, steers)
        for good, bad, chance in zip(goods.tolist(), bads.tolist(), chances.tolist(), strict=True)
    )
    drawn = min(int(np.searchsorted(np.cumsum(chances), number_of(key, 1))), len(chances) - 1)
    left = int(goods[drawn] + bads[drawn])
    whole, few = last_stage(parameters, size, rounds, left)
    return (0.0 if owned else value), whole, few, left


def _charge_root(
    parameters: CommitteeParameters,
    summit: Summit,
    ledger: CostLedger,
    whole: Bill,
    few: Bill,
    left: int,
    key: np.uint64,
) -> None:
    """Charge the root, and this many good members of it for what the few send besides."""
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
    if parameters.single:
        others = parameters.members - parameters.single
        for word in words_down(parameters):
            ledger.bits[members] += float(word * others)
            ledger.wire[members] += encoded(word) * others
            ledger.messages[members] += others


def _final_poll(
    parameters: CommitteeParameters,
    state: Flags,
    know: int,
    misled: int,
    leads: bool,
    key: np.uint64,
) -> tuple[float, float]:
    """Return whether a good leader's poll is answered, and how many others are misled to lead.

    Good members confirm only the member that they take for the leader; the bad confirm all but the
    leader. By `conjunction` only members ask that were told that they lead: the misled, all of
    them. Misled members may also be told that another one of them leads, and then confirm it.
    """
    n = parameters.members
    good = int(np.count_nonzero(state != BAD))
    most = parameters.poll // 2 + 1
    answered = upper_tail(parameters.poll, know / n, most)
    confirmed = float(leads and number_of(key, 0) < answered)
    helped = (n - good) if parameters.floods else 0
    asking = misled
    if parameters.final == "printed":
        asking = good - (1 if leads else 0)
    alone = upper_tail(parameters.poll, helped / n, most)
    stream = np.array([grown(key, 1), 0], np.uint64)
    false = float(binomial(stream, max(0, asking), alone))
    backed = misled * _gain(parameters, helped, misled)
    whole = int(backed)
    return confirmed, min(asking, false + whole + (number_of(key, 2) < backed - whole))


def _gain(parameters: CommitteeParameters, helped: int, misled: int) -> float:
    """Return the most false leaders that one misled member adds by confirming another one.

    This many back each of some; the best number of backers bounds every way to share them out.
    """
    if misled == 0:
        return 0.0
    n, poll, most = parameters.members, parameters.poll, parameters.poll // 2 + 1
    alone = upper_tail(poll, helped / n, most)
    numbers = np.unique(np.geomspace(1, misled, BACKERS).astype(np.int64)).tolist()
    chances = [upper_tail(poll, min(1.0, (helped + each) / n), most) for each in numbers]
    fewer = [each + 1 for each in [0, *numbers[:-1]]]  # the fewest that a step stands for
    found = ((chance - alone) / each for chance, each in zip(chances, fewer, strict=True))
    return float(max(found))

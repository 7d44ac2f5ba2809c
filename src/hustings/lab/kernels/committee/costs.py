"""What good members send: bits of values, bits on the wire, messages; and how many rounds it takes.

Costs of an agreement are shared evenly among its participants. Nodes of one layer run side by side,
and rounds are those of the schedule, which all must keep. Signatures are not counted.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hustings.lab.kernels.committee.bins import BAD, GOOD, Committees
from hustings.lab.kernels.committee.parameters import CommitteeParameters
from hustings.lab.kernels.compiling import compiled
from hustings.lab.kernels.results import Flags, Floats, Ints

BASE = 16  # this many or fewer take the plain phase king
frame = 10  # bytes of an encoded message beside its value, if that is short


class Load(NamedTuple):
    """What one participant sends on average in one agreement."""

    plain: float  # messages that carry a value
    wide: float  # messages that carry a value or none
    rounds: int

    @property
    def messages(self) -> float:
        """Of both kinds."""
        return self.plain + self.wide

    def bits(self, values: int = 2, instances: float = 1.0) -> float:
        """Bits of values, for this many agreements on one of this many values.

        >>> round(load(128).bits()), round(load(1024).bits())
        (1823, 14346)
        """
        return instances * (width(values) * self.plain + width(values + 1) * self.wide)

    def wire(self, values: int = 2, instances: int = 1) -> float:
        """Bits of the encoded messages."""
        plain = encoded(instances * width(values))
        return self.plain * plain + self.wide * encoded(instances * width(values + 1))


def width(values: int) -> int:
    """Bits that tell one of this many values."""
    return max(0, (values - 1).bit_length())


def encoded(bits: float) -> float:
    """Bits on the wire of a message with this many bits of value: a marker bit makes it whole."""
    return 8.0 * (frame + int(bits + 1 + 7) // 8)


@cache
def load(k: int) -> Load:
    """The recursive phase king among k.

    >>> load(128).rounds, load(1024).rounds
    (186, 1530)
    """
    if k <= 1:
        return Load(0.0, 0.0, 0)
    others = k - 1
    if k <= BASE:
        phases = (k - 1) // 3 + 1
        return Load(phases * others * (1.0 + 1.0 / k), float(phases * others), 3 * phases)
    first = (k + 1) // 2
    upper, lower = load(first), load(k - first)
    share = first / k
    return Load(
        3.0 * others + share * upper.plain + (1.0 - share) * lower.plain,
        2.0 * others + share * upper.wide + (1.0 - share) * lower.wide,
        6 + upper.rounds + lower.rounds,
    )


@cache
def _longest() -> list[int]:
    """The most rounds of a broadcast among 0, 1, .. participants, as far as asked for."""
    return [0]


def most_rounds(k: int) -> int:
    """The most rounds that telling all and agreeing on it takes among k or fewer.

    What is scheduled: all must stay in step, whichever members take part in the end.
    """
    known = _longest()
    while len(known) <= k:
        known.append(max(known[-1], 1 + load(len(known)).rounds))
    return known[k]


STALLS = 8  # rounds of two bins in which no candidate drops out, at most


class CostLedger(NamedTuple):
    """By member."""

    bits: Floats
    wire: Floats
    messages: Floats


class Bill(NamedTuple):
    """What one participant sends."""

    bits: float
    wire: float
    messages: float

    def plus(self, other: Bill, times: int = 1) -> Bill:
        """This and this many times another one."""
        return Bill(
            self.bits + times * other.bits,
            self.wire + times * other.wire,
            self.messages + times * other.messages,
        )


NOTHING = Bill(0.0, 0.0, 0.0)


def new_ledger(members: int) -> CostLedger:
    """Make a ledger in which nothing is sent yet."""
    return CostLedger(np.zeros(members), np.zeros(members), np.zeros(members))


def broadcasts(k: int, senders: float, values: int) -> Bill:
    """Bill a broadcast: some of k send one of this many values, and all agree on each."""
    one = load(k)
    own = senders / max(1, k) * (k - 1)  # messages in which a sender tells its value
    instances = max(1, round(senders))
    return Bill(
        one.bits(values, senders) + own * width(values),
        one.wire(values, instances) + own * encoded(width(values)),
        one.messages + own,
    )


def elections(parameters: CommitteeParameters, halvings: int, out: Committees) -> list[Bill]:
    """The bill of each node's election, by its size and how many candidates its rounds had."""
    bills = []
    known: dict[tuple[int, int], Bill] = {}
    oneshot = parameters.bins == "oneshot"
    for size, candidates in zip(out.sizes.tolist(), out.candidates.tolist(), strict=True):
        if (size, candidates) not in known:
            if oneshot:
                bill = broadcasts(size, candidates, 1 << halvings) if halvings else NOTHING
            else:
                bill = NOTHING
                rounds = [size >> turn for turn in range(halvings)]
                rest = candidates / max(1, sum(rounds))  # what integer halves leave over
                for left in rounds:
                    bill = bill.plus(broadcasts(size, left * rest, 2))
            known[size, candidates] = bill
        bills.append(known[size, candidates])
    return bills


def last_stage(
    parameters: CommitteeParameters, size: int, rounds: list[float], few: float
) -> tuple[Bill, Bill]:
    """Bill the root's last stage: what all send, and what the few remaining send besides."""
    whole, own = _leading(parameters, size, rounds, few)
    coin = broadcasts(size, 1, 2) if parameters.task == "coin" else NOTHING
    return whole.plus(coin), own


def _leading(
    parameters: CommitteeParameters, size: int, rounds: list[float], few: float
) -> tuple[Bill, Bill]:
    if parameters.endgame == "full":
        return NOTHING.plus(broadcasts(size, 1, 2), parameters.depth), NOTHING
    whole = NOTHING
    for candidates in rounds:
        whole = whole.plus(broadcasts(size, candidates, 2))
    left = max(1, round(few))
    if parameters.endgame == "feige":
        while left > 1:
            whole = whole.plus(broadcasts(size, left, 2))
            left //= 2
        return whole, NOTHING
    others = max(0, size - left)
    name = width(size)
    own = Bill(float(name * others), encoded(name) * others, float(others))  # they tell the others
    if parameters.endgame == "small":
        return whole, own.plus(broadcasts(left, 1, 2), parameters.depth)
    for waiting in range(left - 1, 1, -1):
        own = own.plus(broadcasts(left, 1, waiting))
    return whole, own


def last_rounds(parameters: CommitteeParameters, size: int) -> int:
    """Return the rounds that are scheduled for a root of this many at most."""
    if parameters.task == "agreement":
        return deciding_rounds(parameters, size)
    coin = most_rounds(size) if parameters.task == "coin" else 0
    return _leader_rounds(parameters, size) + coin


def words_down(parameters: CommitteeParameters) -> tuple[int, ...]:
    """Return the bits of each word from the root to all: a leader's name, a bit, or both."""
    name = width(parameters.members)
    return {"leader": (name,), "agreement": (1,), "coin": (name, 1)}[parameters.task]


def deciding(size: int, rounds: list[float], left: int) -> tuple[Bill, Bill]:
    """Bill the choice of the deciders: what the whole root sends, and what they send besides."""
    whole = NOTHING
    for candidates in rounds:
        whole = whole.plus(broadcasts(size, candidates, 2))
    one, others = load(left), size - 1
    own = Bill(one.bits(), one.wire(), one.messages)
    return whole, own.plus(Bill(1.0, encoded(1), 1.0), others)  # they tell the root


def deciding_rounds(parameters: CommitteeParameters, size: int) -> int:
    """Rounds scheduled to halve a root of this many, to agree among those left, and to tell it."""
    halvings = 0
    while size >> halvings > parameters.deciders:
        halvings += 1
    left = max(2, min(size, parameters.deciders))  # one alone keeps the time of two
    return halvings * most_rounds(size) + load(left).rounds + 1


def _leader_rounds(parameters: CommitteeParameters, size: int) -> int:
    once = most_rounds(size)
    if parameters.endgame == "full":
        return parameters.depth * once
    end = 1 if parameters.endgame == "feige" else parameters.r_end
    halvings = 0
    while size >> halvings > end:
        halvings += 1
    if parameters.endgame == "feige":
        return (halvings + STALLS - 1) * once if size > 1 else 0
    left = min(size, parameters.r_end)
    steps = parameters.depth if parameters.endgame == "small" else max(0, left - 2)
    return halvings * once + steps * most_rounds(left) + 1


@compiled
def charge_participants(
    start: Ints,
    neighbours: NDArray[np.int32],
    below: Committees,
    state: Flags,
    bills: Floats,
    stamp: Ints,
    ledger: CostLedger,
) -> None:
    """Charge every distinct good participant of a node; `bills` has a row for each node."""
    for node in range(start.size - 1):
        for place in range(start[node], start[node + 1]):
            child = neighbours[place]
            for seat in range(below.start[child], below.start[child + 1]):
                member = below.ids[seat]
                if state[member] == GOOD and stamp[member] != node:
                    stamp[member] = node
                    ledger.bits[member] += bills[node, 0]
                    ledger.wire[member] += bills[node, 1]
                    ledger.messages[member] += bills[node, 2]


@compiled
def charge_seats(committees: Committees, state: Flags, bills: Floats, ledger: CostLedger) -> None:
    """Charge every good member of a node, once for each of its seats."""
    for node in range(committees.start.size - 1):
        for seat in range(committees.start[node], committees.start[node + 1]):
            member = committees.ids[seat]
            if state[member] != BAD:
                ledger.bits[member] += bills[node, 0]
                ledger.wire[member] += bills[node, 1]
                ledger.messages[member] += bills[node, 2]

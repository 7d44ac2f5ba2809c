"""What good members send: bits of values, bits on the wire, messages; and how many rounds it takes.

Costs of an agreement are shared evenly among its participants. Nodes of one layer run side by side,
and rounds are those of the schedule, which all must keep. Signatures are not reckoned in.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hustings.lab.kernels.committee_agreement import encoded, load, most_rounds, width
from hustings.lab.kernels.committee_assembly import Assembly
from hustings.lab.kernels.committee_bins import BAD, GOOD, Committees
from hustings.lab.kernels.common import Flags, Floats, Ints
from hustings.lab.kernels.compiling import compiled

STALLS = 8  # rounds of two bins in which nobody drops out, at most


class Ledger(NamedTuple):
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
        """This and so many times another one."""
        return Bill(
            self.bits + times * other.bits,
            self.wire + times * other.wire,
            self.messages + times * other.messages,
        )


NOTHING = Bill(0.0, 0.0, 0.0)


def new_ledger(members: int) -> Ledger:
    """Nothing sent yet."""
    return Ledger(np.zeros(members), np.zeros(members), np.zeros(members))


def broadcasts(k: int, senders: float, values: int) -> Bill:
    """So many of k tell all one of so many values, and all agree on what each has said."""
    one = load(k)
    own = senders / max(1, k) * (k - 1)  # messages in which a sender tells its value
    instances = max(1, round(senders))
    return Bill(
        one.bits(values, senders) + own * width(values),
        one.wire(values, instances) + own * encoded(width(values)),
        one.messages + own,
    )


def elections(assembly: Assembly, halvings: int, out: Committees) -> list[Bill]:
    """The bill of each node's election, by its size and how many candidates its rounds had."""
    bills = []
    known: dict[tuple[int, int], Bill] = {}
    oneshot = assembly.bins == "oneshot"
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


def last_stage(assembly: Assembly, size: int, rounds: list[float], few: float) -> tuple[Bill, Bill]:
    """What the whole root sends, and what the few who are left send besides."""
    whole, own = _leading(assembly, size, rounds, few)
    coin = broadcasts(size, 1, 2) if assembly.task == "coin" else NOTHING
    return whole.plus(coin), own


def _leading(assembly: Assembly, size: int, rounds: list[float], few: float) -> tuple[Bill, Bill]:
    if assembly.endgame == "full":
        return NOTHING.plus(broadcasts(size, 1, 2), assembly.depth), NOTHING
    whole = NOTHING
    for candidates in rounds:
        whole = whole.plus(broadcasts(size, candidates, 2))
    left = max(1, round(few))
    if assembly.endgame == "feige":
        while left > 1:
            whole = whole.plus(broadcasts(size, left, 2))
            left //= 2
        return whole, NOTHING
    others = max(0, size - left)
    name = width(size)
    own = Bill(float(name * others), encoded(name) * others, float(others))  # they tell the rest
    if assembly.endgame == "small":
        return whole, own.plus(broadcasts(left, 1, 2), assembly.depth)
    for waiting in range(left - 1, 1, -1):
        own = own.plus(broadcasts(left, 1, waiting))
    return whole, own


def last_rounds(assembly: Assembly, size: int) -> int:
    """Rounds that are scheduled for a root of so many at most."""
    if assembly.task == "agreement":
        return deciding_rounds(assembly, size)
    coin = most_rounds(size) if assembly.task == "coin" else 0
    return _leader_rounds(assembly, size) + coin


def words_down(assembly: Assembly) -> tuple[int, ...]:
    """Bits of each word that goes from the root to everybody: a leader's name, a bit, or both."""
    name = width(assembly.members)
    return {"leader": (name,), "agreement": (1,), "coin": (name, 1)}[assembly.task]


def deciding(size: int, rounds: list[float], left: int) -> tuple[Bill, Bill]:
    """What the whole root sends to find those who decide, and what these send besides."""
    whole = NOTHING
    for candidates in rounds:
        whole = whole.plus(broadcasts(size, candidates, 2))
    one, others = load(left), size - 1
    own = Bill(one.bits(), one.wire(), one.messages)
    return whole, own.plus(Bill(1.0, encoded(1), 1.0), others)  # they tell the root


def deciding_rounds(assembly: Assembly, size: int) -> int:
    """Rounds scheduled to halve a root of so many, to agree among those left, and to tell it."""
    halvings = 0
    while size >> halvings > assembly.deciders:
        halvings += 1
    left = max(2, min(size, assembly.deciders))  # one alone keeps the time of two
    return halvings * most_rounds(size) + load(left).rounds + 1


def _leader_rounds(assembly: Assembly, size: int) -> int:
    once = most_rounds(size)
    if assembly.endgame == "full":
        return assembly.depth * once
    end = 1 if assembly.endgame == "feige" else assembly.r_end
    halvings = 0
    while size >> halvings > end:
        halvings += 1
    if assembly.endgame == "feige":
        return (halvings + STALLS - 1) * once if size > 1 else 0
    left = min(size, assembly.r_end)
    steps = assembly.depth if assembly.endgame == "small" else max(0, left - 2)
    return halvings * once + steps * most_rounds(left) + 1


@compiled
def charge_participants(
    start: Ints,
    neighbours: NDArray[np.int32],
    below: Committees,
    state: Flags,
    bills: Floats,
    stamp: Ints,
    ledger: Ledger,
) -> None:
    """Every distinct good participant of a node pays its bill; `bills` has a row for each node."""
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
def charge_seats(committees: Committees, state: Flags, bills: Floats, ledger: Ledger) -> None:
    """Every good member of a node pays its bill, as often as it sits."""
    for node in range(committees.start.size - 1):
        for seat in range(committees.start[node], committees.start[node + 1]):
            member = committees.ids[seat]
            if state[member] != BAD:
                ledger.bits[member] += bills[node, 0]
                ledger.wire[member] += bills[node, 1]
                ledger.messages[member] += bills[node, 2]

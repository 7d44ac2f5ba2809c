"""al where no state expires (T_L infinite): every member announces in every period.

The messages of a period are known beforehand, so there is no queue. For the leader's announcements
each receiver tosses coins until it receives one. For all others' announcements it tosses coins, the
best first, until it receives one that is better than itself.
"""

from __future__ import annotations

import numpy as np

from hustings.lab.kernels.announce import columns as col
from hustings.lab.kernels.announce.sleep_and_loss import (
    CORRELATED,
    EVERYBODY,
    UNCORRELATED,
    LossLaw,
    bar_at,
)
from hustings.lab.kernels.compiling import compiled
from hustings.lab.kernels.counter import below, branch, message_key
from hustings.lab.kernels.results import Floats, Ints


@compiled
def sharing(number: int, members: int, T_A: int, D: int) -> int:
    """Count the others that share the network with a message of this period."""
    if D == 0:
        return 0
    reach = (D - 1) // T_A  # periods whose messages are under way together, to either side
    return members * (1 + reach + min(reach, number - 1)) - 1


@compiled
def survivor(run: np.uint64, members: int, number: int, bar: np.uint64) -> int:
    """Return the best member whose announcement of this period is received, by all; -1: none."""
    for who in range(members - 1, -1, -1):
        if not below(message_key(run, who, number), EVERYBODY, bar):
            return who
    return -1


@compiled
def hears(run: np.uint64, members: int, number: int, bar: np.uint64, member: int) -> int:
    """Return the best announcer above a member that it hears in this period; -1: none."""
    for who in range(members - 1, member, -1):
        if not below(message_key(run, who, number), member, bar):
            return who
    return -1


@compiled
def play_run(
    run: np.uint64,
    loss: LossLaw,
    T_A: int,
    D: int,
    max_rounds: int,
    deaf: Ints,
    leading: Ints,
    row: Floats,
) -> None:
    """Play one run: `leading` lists which still hold themselves, `deaf` which miss the leader."""
    n = deaf.size
    leader = n - 1
    left, own = leader, leader
    heard, area, number = 0, np.int64(0), 0
    while left:
        number += 1
        if number > max_rounds:
            row[col.CUT] = 1.0
            return
        arrival = (number - 1) * T_A + D
        bar = bar_at(loss, sharing(number, n, T_A, D))
        best = leader
        if loss.model == CORRELATED:
            best = survivor(run, n, number, bar)
        key = message_key(run, leader, number)
        place = 0
        while place < left:
            lost = best != leader
            if loss.model == UNCORRELATED:
                lost = below(key, deaf[place], bar)
            if lost:
                place += 1
                continue
            heard += number
            left -= 1
            deaf[place] = deaf[left]
        place = 0
        while place < own:
            member = leading[place]
            above = best
            if loss.model == UNCORRELATED:
                above = hears(run, n, number, bar, member)
            if above <= member:
                place += 1
                continue
            area += arrival
            own -= 1
            leading[place] = leading[own]
    complete = (number - 1) * T_A + D
    row[col.ROUNDS] = number
    row[col.HEARD] = heard
    row[col.COMPLETE] = complete
    row[col.WATCHED] = complete
    row[col.LEADING] = area + complete


@compiled
def baseline(
    seed: np.uint64,
    first: int,
    loss: LossLaw,
    T_A: int,
    D: int,
    max_rounds: int,
    members: int,
    rows: Floats,
) -> None:
    """Play runs from number `first` on, one for each row."""
    n = members
    deaf, leading = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for number in range(rows.shape[0]):
        row = rows[number]
        run = branch(seed, np.uint64(first + number))
        for member in range(n):
            deaf[member] = leading[member] = member
        play_run(run, loss, T_A, D, max_rounds, deaf, leading, row)
        if row[col.CUT]:
            continue
        complete = np.int64(row[col.COMPLETE])
        row[col.TMAX] = complete - D
        begun = complete // T_A + 1  # periods begun by then, the last perhaps at that very tick
        row[col.MESSAGES] = n * begun
        row[col.NUM_MSGS] = n * ((complete - 1) // T_A + 1) if D else n * begun
        row[col.SENT_BY_TMAX] = n * row[col.ROUNDS]
        row[col.FIRST_ROUND] = n
        row[col.LEADING_MOST] = n
        row[col.LEADER] = n

"""le-a, le-s and le-m where no leader expires (T_L infinite).

A member that has heard a better one keeps silent for the rest of the run. So a coin matters in two
cases only: for a member still in the race, when a better member announces itself; and for a member
that has not heard the leader yet, when the leader announces. No other coin is tossed. At one tick
sends come before arrivals; the order of arrivals within a tick makes no difference here.

A message arrives after D and is repeated after T_A, so messages wait for both in the order of their
sends: one ring with two ends, with room only for the messages under way. A run needs only 52 bytes
per member where D < T_A.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hustings.lab.kernels.announce import columns as col
from hustings.lab.kernels.announce.counting import (
    ARRIVED,
    BEFORE,
    FIRSTS,
    HEARD,
    LANDED,
    LAST_FIRST,
    NOW,
    REPEAT,
    ROUND,
    SENT,
    SHARED,
    defer,
    lead,
    report,
    tick,
)
from hustings.lab.kernels.announce.sleep_and_loss import (
    CORRELATED,
    EVERYBODY,
    NEVER,
    UNCORRELATED,
    LossLaw,
    Sleep,
    bar_at,
    nap_of,
)
from hustings.lab.kernels.compiling import borrowed, compiled, inlined
from hustings.lab.kernels.counter import below, branch, message_key, number_of
from hustings.lab.kernels.results import Floats, Ints

Shorts = NDArray[np.uint32]  # without a sign: an index of this kind needs no look at it

# Counters beside those that all kernels share.
RUNNERS = SHARED  # members in the race
DEAF = SHARED + 1  # members that have not heard the leader
WOKEN = SHARED + 2  # members that have woken up, or need not
WAKE = SHARED + 3  # when the next one does
SENT_AT, ARRIVED_AT, LANDED_AT, REPEAT_AT = SHARED + 4, SHARED + 5, SHARED + 6, SHARED + 7  # places
COUNTERS = SHARED + 8

# Rows of the tables.
AT = 0  # of messages: when sent,
# The sender, the number of its announcement, how many others were under way.
WHO, NUMBER, BESIDE = 0, 1, 2
WORTH, SPOKEN, OUT, ORDER, RUNNER, UNHEARD = 0, 1, 2, 3, 4, 5  # of members; the last 3 are lists
BOXES = UNHEARD  # which is not needed yet while boxes are
MESSAGE_ROWS, SLOT_ROWS, MEMBER_ROWS = 1, 3, 6


@compiled
def sort_sleepers(run: np.uint64, at_once: bool, members: Shorts, chances: Floats) -> None:
    """Sort members by the time at which they wake up.

    The larger the chance drawn for a member, the later it wakes, and chances are spread evenly. So
    put each into one of n boxes, and then sort the few that share a box.
    """
    n = chances.size
    if at_once:
        for member in range(n):
            chances[member] = 0.0
            members[ORDER, member] = member
        return
    key = branch(run, np.uint64(0))
    for member in range(n):
        chances[member] = number_of(key, member)
        members[BOXES, member] = 0
    for member in range(n):
        members[BOXES, min(n - 1, int(chances[member] * n))] += 1
    below_it = np.uint32(0)
    for box in range(n):
        below_it += members[BOXES, box]
        members[BOXES, box] = below_it
    for member in range(n - 1, -1, -1):
        spot = min(n - 1, int(chances[member] * n))
        members[BOXES, spot] -= 1
        members[ORDER, members[BOXES, spot]] = member
    for last in range(1, n):
        member, place = members[ORDER, last], last
        while place > 0 and chances[members[ORDER, place - 1]] > chances[member]:
            members[ORDER, place] = members[ORDER, place - 1]
            place -= 1
        members[ORDER, place] = member


@compiled
def key_of(chance: float, sleep: Sleep, relative: bool) -> float:
    """Return the number by which le-m compares."""
    slept = nap_of(chance, sleep)
    return slept if relative else float(np.rint(slept))


@compiled
def rank(sleep: Sleep, by_key: bool, relative: bool, members: Shorts, chances: Floats) -> None:
    """Rank the members: the higher id, or the lower key and then the higher id, is better."""
    n = chances.size
    if not by_key:
        for member in range(n):
            members[WORTH, member] = member
            members[RUNNER, member] = member
        return
    order = members[ORDER]
    at = 0
    while at < n:
        end = at + 1
        key = key_of(chances[order[at]], sleep, relative)
        while end < n and key_of(chances[order[end]], sleep, relative) == key:
            end += 1
        if end - at > 1:  # those of one key stand by id
            order[at:end] = np.sort(order[at:end])
        for place in range(at, end):
            worth = n - end + place - at
            members[WORTH, order[place]] = worth
            members[RUNNER, worth] = order[place]
        at = end


@inlined
def wake_next(c: Ints, sleep: Sleep, members: Shorts, chances: Floats) -> None:
    """Find the member that wakes up next, skipping those out of the race."""
    n = chances.size
    while c[WOKEN] < n and members[OUT, members[ORDER, c[WOKEN]]]:
        c[WOKEN] += 1
    c[WAKE] = NEVER
    if c[WOKEN] < n:
        c[WAKE] = np.int64(np.rint(nap_of(chances[members[ORDER, c[WOKEN]]], sleep)))


@inlined
def step(c: Ints, count: int, place: int, room: int) -> None:
    """Advance by one message in the ring."""
    c[count] += 1
    c[place] += 1
    if c[place] == room:
        c[place] = 0


@inlined
def send(c: Ints, who: int, D: int, members: Shorts, messages: Ints, slots: Shorts) -> int:
    """Send a member's announcement and return its number."""
    room = messages.shape[1]
    while c[LANDED] < c[SENT] and messages[AT, c[LANDED_AT]] <= c[NOW] - D:
        step(c, LANDED, LANDED_AT, room)
    members[SPOKEN, who] += 1
    number = int(members[SPOKEN, who])
    if number == 1:
        c[FIRSTS] += 1
        c[LAST_FIRST] = c[NOW]
        lead(c)
    place = c[SENT_AT]
    messages[AT, place] = c[NOW]
    slots[WHO, place] = who
    slots[NUMBER, place] = number
    slots[BESIDE, place] = c[SENT] - c[LANDED]
    step(c, SENT, SENT_AT, room)
    return number


@inlined
def hear_leader(c: Ints, key: np.uint64, bar: np.uint64, number: int, members: Shorts) -> None:
    """Deliver the leader's announcement to members that have not heard it yet."""
    before, left = c[DEAF], 0
    for place in range(before):  # no branch, because a coin cannot be predicted
        member = members[UNHEARD, place]
        lost = below(key, member, bar)
        members[OUT, member] |= not lost
        members[UNHEARD, left] = member
        left += lost
    if left < before:
        c[DEAF] = left
        c[HEARD] += number * (before - left)
        c[ROUND] = number


@inlined
def drop(c: Ints, members: Shorts) -> None:
    """Take members that have heard the leader out of the race."""
    left, quiet = 0, 0
    for place in range(c[RUNNERS]):
        member = members[RUNNER, place]
        gone = members[OUT, member]
        quiet += gone & (members[SPOKEN, member] > 0)
        members[RUNNER, left] = member
        left += 1 - gone
    c[RUNNERS] = left
    defer(c, quiet)


@inlined
def sift(c: Ints, key: np.uint64, bar: np.uint64, worth: int, members: Shorts) -> None:
    """Take members that receive this announcement, and are worth less, out of the race."""
    end = c[RUNNERS]
    worse, high = 0, end  # they stand by worth: how many are worth less
    while worse < high:
        middle = (worse + high) >> 1
        if members[WORTH, members[RUNNER, middle]] < worth:
            worse = middle + 1
        else:
            high = middle
    left, quiet = 0, 0
    for place in range(worse):
        member = members[RUNNER, place]
        gone = 1 - below(key, member, bar)
        members[OUT, member] = gone
        quiet += gone & (members[SPOKEN, member] > 0)
        members[RUNNER, left] = member
        left += 1 - gone
    if left == worse:
        return
    for better in range(worse, end):
        members[RUNNER, left] = members[RUNNER, better]
        left += 1
    c[RUNNERS] = left
    defer(c, quiet)


@inlined
def arrive(
    c: Ints, run: np.uint64, loss: LossLaw, members: Shorts, messages: Ints, slots: Shorts
) -> None:
    """Deliver all messages of one tick, the last first: without sleep, members send by id."""
    room, n = messages.shape[1], members.shape[1]
    at, place, count = messages[AT, c[ARRIVED_AT]], c[ARRIVED_AT], 0
    bar = bar_at(loss, c[BEFORE] - c[ARRIVED] + slots[BESIDE, place] - 1)
    while c[ARRIVED] < c[SENT] and messages[AT, c[ARRIVED_AT]] == at:
        step(c, ARRIVED, ARRIVED_AT, room)
        count += 1
    while count > 0:
        count -= 1
        spot = place + count
        if spot >= room:
            spot -= room
        who, number = slots[WHO, spot], slots[NUMBER, spot]
        key = message_key(run, who, number)
        open_to = bar
        if loss.model != UNCORRELATED:
            if loss.model == CORRELATED and below(key, EVERYBODY, bar):
                continue
            open_to = np.uint64(0)
        worth = members[WORTH, who]
        if worth == n - 1:
            hear_leader(c, key, open_to, number, members)
            drop(c, members)
        else:
            sift(c, key, open_to, worth, members)


@compiled
def play_run(
    c: Ints,
    run: np.uint64,
    sleep: Sleep,
    loss: LossLaw,
    T_A: int,
    D: int,
    max_rounds: int,
    members: Shorts,
    chances: Floats,
    messages: Ints,
    slots: Shorts,
) -> None:
    """Play one run, until all have heard the leader, or it is given up with some still deaf."""
    c, members, chances = borrowed(c), borrowed(members), borrowed(chances)
    messages, slots = borrowed(messages), borrowed(slots)
    n, room = chances.size, messages.shape[1]
    wake_next(c, sleep, members, chances)
    while c[DEAF]:
        if c[WOKEN] < n and members[OUT, members[ORDER, c[WOKEN]]]:
            wake_next(c, sleep, members, chances)
        while c[REPEAT] < c[SENT] and members[OUT, slots[WHO, c[REPEAT_AT]]]:
            step(c, REPEAT, REPEAT_AT, room)
        again = messages[AT, c[REPEAT_AT]] + T_A if c[REPEAT] < c[SENT] else NEVER
        arrival = messages[AT, c[ARRIVED_AT]] + D if c[ARRIVED] < c[SENT] else NEVER
        if min(c[WAKE], again) > arrival:
            tick(c, arrival)
            arrive(c, run, loss, members, messages, slots)
            continue
        if c[WAKE] <= again:
            tick(c, c[WAKE])
            who = members[ORDER, c[WOKEN]]
            c[WOKEN] += 1
            wake_next(c, sleep, members, chances)
        else:
            tick(c, again)
            who = slots[WHO, c[REPEAT_AT]]
            step(c, REPEAT, REPEAT_AT, room)
        if send(c, who, D, members, messages, slots) > max_rounds:
            return


@compiled
def begin(c: Ints, members: Shorts) -> None:
    """Begin with all members in the race; none has heard another."""
    n = members.shape[1]
    c[:] = 0
    c[NOW] = -1
    c[RUNNERS] = n
    for member in range(n):
        members[SPOKEN, member] = members[OUT, member] = 0
    for worth in range(n - 1):
        members[UNHEARD, worth] = members[RUNNER, worth]
    c[DEAF] = n - 1


@compiled
def race(
    seed: np.uint64,
    first: int,
    sleep: Sleep,
    loss: LossLaw,
    T_A: int,
    D: int,
    by_key: bool,
    relative: bool,
    max_rounds: int,
    members: Shorts,
    chances: Floats,
    messages: Ints,
    slots: Shorts,
    rows: Floats,
) -> None:
    """Play runs from number `first` on, one for each row."""
    n = members.shape[1]
    c = np.zeros(COUNTERS, np.int64)
    for number in range(rows.shape[0]):
        run = branch(seed, np.uint64(first + number))
        sort_sleepers(run, sleep.longest == 0.0, members, chances)
        rank(sleep, by_key, relative, members, chances)
        begin(c, members)
        leader = members[RUNNER, n - 1]
        play_run(c, run, sleep, loss, T_A, D, max_rounds, members, chances, messages, slots)
        if c[DEAF]:
            rows[number, col.CUT] = 1.0
        else:
            report(c, D, leader, rows[number])

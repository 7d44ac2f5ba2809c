"""le-a, le-s and le-m where no leader expires (T_L infinite).

Who has heard somebody better keeps silent for good, so a coin matters in two cases only: for a
member still in the race, when somebody better announces itself; and for one that has not heard
the leader yet, when the leader does. No other is tossed. At one tick sends come before arrivals,
and in which order messages arrive within a tick makes no difference here. Queues are rings whose
size is a power of two.
"""

from __future__ import annotations

import numpy as np

from hustings.fast import columns as col
from hustings.fast.common import (
    CORRELATED,
    EVERYBODY,
    NEVER,
    UNCORRELATED,
    Flags,
    Floats,
    Ints,
    Loss,
    Sleep,
    Words,
    bar_at,
    first_naps,
)
from hustings.fast.compiling import compiled
from hustings.fast.counter import below, branch, message_key

# Counters of a run.
NOW = 0
SENT = 1
BEFORE = 2  # messages sent before this tick
ARRIVED = 3
LANDED = 4  # messages that have landed by the time of the last send, this tick included
FIRSTS = 5  # members that have spoken
FIRSTS_BEFORE = 6
LEADING = 7  # members that lead by their own word
MOST = 8
AREA = 9
RUNNERS = 10  # members in the race
DEAF = 11  # members that have not heard the leader
REPEAT, REPEATS = 12, 13  # the queue of repeated announcements: its head and its end
WOKEN = 14
LAST_FIRST = 15
HEARD = 16
ROUND = 17  # of the last announcement by which somebody first heard the leader
COUNTERS = 18

# Rows of the tables.
AT, WHO, NUMBER, LOW = 0, 1, 2, 3  # of messages: sent at, by, its how manieth, landed before it,
WORTH_OF = 4  # and what its sender is worth, as far as coins are still to be tossed
KEY, BAR = 0, 1  # of coins: those of a message
WORTH, SPOKEN, RUNNER, UNHEARD, ORDER = 0, 1, 2, 3, 4  # of members
MESSAGE_ROWS, COIN_ROWS, MEMBER_ROWS = 5, 2, 5


@compiled
def rank(keys: Floats, by_key: bool, members: Ints) -> None:
    """Who is better than whom: the higher id, or the lower key and then the higher id."""
    n = keys.size
    if not by_key:
        for member in range(n):
            members[WORTH, member] = member
        return
    order = np.argsort(keys)
    at = 0
    while at < n:  # those of one key stand by id
        end = at + 1
        while end < n and keys[order[end]] == keys[order[at]]:
            end += 1
        for place, member in enumerate(np.sort(order[at:end])):
            members[WORTH, member] = n - end + place
        at = end


@compiled
def tick(c: Ints, now: int) -> None:
    """Time goes on."""
    if c[NOW] != now:
        c[NOW] = now
        c[BEFORE] = c[SENT]
        c[FIRSTS_BEFORE] = c[FIRSTS]


@compiled
def lead(c: Ints) -> None:
    """One more leads by its own word."""
    c[AREA] -= c[NOW]
    c[LEADING] += 1
    c[MOST] = max(c[MOST], c[LEADING])


@compiled
def defer(c: Ints) -> None:
    """One less does."""
    c[AREA] += c[NOW]
    c[LEADING] -= 1


@compiled
def send(c: Ints, who: int, members: Ints, messages: Ints, repeats: Ints, T_A: int, D: int) -> int:
    """A member announces itself; its how manieth time it is."""
    room = messages.shape[1]
    while c[LANDED] < c[SENT] and messages[AT, c[LANDED] & (room - 1)] <= c[NOW] - D:
        c[LANDED] += 1
    members[SPOKEN, who] += 1
    number = int(members[SPOKEN, who])
    if number == 1:
        c[FIRSTS] += 1
        c[LAST_FIRST] = c[NOW]
    place = c[SENT] & (room - 1)
    messages[AT, place] = c[NOW]
    messages[WHO, place] = who
    messages[NUMBER, place] = number
    messages[LOW, place] = c[LANDED]
    c[SENT] += 1
    place = c[REPEATS] & (repeats.shape[1] - 1)
    repeats[AT, place] = c[NOW] + T_A
    repeats[WHO, place] = who
    c[REPEATS] += 1
    return number


@compiled
def next_sender(c: Ints, members: Ints, wakes: Ints, repeats: Ints, out: Flags) -> tuple[int, int]:
    """Who speaks next, and when; who is out of the race does not."""
    n, room = wakes.size, repeats.shape[1]
    while c[WOKEN] < n and out[members[ORDER, c[WOKEN]]]:
        c[WOKEN] += 1
    while c[REPEAT] < c[REPEATS] and out[repeats[WHO, c[REPEAT] & (room - 1)]]:
        c[REPEAT] += 1
    at, who = NEVER, -1
    if c[WOKEN] < n:
        who = int(members[ORDER, c[WOKEN]])
        at = int(wakes[who])
    if c[REPEAT] < c[REPEATS] and repeats[AT, c[REPEAT] & (room - 1)] < at:
        place = c[REPEAT] & (room - 1)
        return int(repeats[AT, place]), int(repeats[WHO, place])
    return at, who


@compiled
def hear_leader(
    c: Ints, key: np.uint64, bar: np.uint64, number: int, members: Ints, out: Flags
) -> None:
    """The leader's announcement reaches some of those who have not heard it yet."""
    place = 0
    while place < c[DEAF]:
        member = members[UNHEARD, place]
        if below(key, member, bar):
            place += 1
            continue
        c[DEAF] -= 1
        members[UNHEARD, place] = members[UNHEARD, c[DEAF]]
        c[HEARD] += number
        c[ROUND] = number
        out[member] = 1


@compiled
def arrive(
    c: Ints, run: np.uint64, loss: Loss, members: Ints, messages: Ints, coins: Words, out: Flags
) -> None:
    """All messages of one tick arrive."""
    room, n = messages.shape[1], members.shape[1]
    first = end = c[ARRIVED]
    at = messages[AT, first & (room - 1)]
    while end < c[SENT] and messages[AT, end & (room - 1)] == at:
        place = end & (room - 1)
        who, number = messages[WHO, place], messages[NUMBER, place]
        bar = bar_at(loss, c[BEFORE] - messages[LOW, place] - 1)
        key = message_key(run, who, number)
        worth = members[WORTH, who]
        if loss.model != UNCORRELATED:
            if loss.model == CORRELATED and below(key, EVERYBODY, bar):
                worth = -1
            bar = np.uint64(0)
        if worth == n - 1:
            hear_leader(c, key, bar, number, members, out)
            worth = -1
        coins[KEY, place] = key
        coins[BAR, place] = bar
        messages[WORTH_OF, place] = worth
        end += 1
    c[ARRIVED] = end
    sift(c, first, end, members, messages, coins, out)


@compiled
def sift(
    c: Ints, first: int, end: int, members: Ints, messages: Ints, coins: Words, out: Flags
) -> None:
    """Who hears somebody better than itself in these messages leaves the race.

    All is spelt out in one function: a call with tables costs more than a coin.
    """
    room = messages.shape[1]
    place = 0
    while place < c[RUNNERS]:
        member = members[RUNNER, place]
        own = members[WORTH, member]
        gone = out[member]
        number = end
        while number > first and not gone:
            number -= 1
            spot = number & (room - 1)
            if messages[WORTH_OF, spot] > own:
                gone = not below(coins[KEY, spot], member, coins[BAR, spot])
        if not gone:
            place += 1
            continue
        out[member] = 1
        c[RUNNERS] -= 1
        members[RUNNER, place] = members[RUNNER, c[RUNNERS]]
        if members[SPOKEN, member]:
            defer(c)


@compiled
def play_run(
    c: Ints,
    run: np.uint64,
    loss: Loss,
    T_A: int,
    D: int,
    max_rounds: int,
    wakes: Ints,
    members: Ints,
    messages: Ints,
    repeats: Ints,
    coins: Words,
    out: Flags,
) -> None:
    """One run, until all have heard the leader, or it is given up: then somebody is still deaf."""
    n = wakes.size
    while c[DEAF]:
        at, who = next_sender(c, members, wakes, repeats, out)
        arrival = NEVER
        if c[ARRIVED] < c[SENT]:
            arrival = messages[AT, c[ARRIVED] & (messages.shape[1] - 1)] + D
        if at <= arrival:
            tick(c, at)
            if c[WOKEN] < n and members[ORDER, c[WOKEN]] == who and not members[SPOKEN, who]:
                c[WOKEN] += 1
            else:
                c[REPEAT] += 1
            number = send(c, who, members, messages, repeats, T_A, D)
            if number == 1:
                lead(c)
            if number > max_rounds:
                return
        else:
            tick(c, arrival)
            arrive(c, run, loss, members, messages, coins, out)


@compiled
def begin(c: Ints, members: Ints, out: Flags) -> None:
    """Everybody is in the race, and nobody has heard anybody."""
    n = members.shape[1]
    c[:] = 0
    c[NOW] = -1
    c[RUNNERS] = n
    out[:] = 0
    for member in range(n):
        members[SPOKEN, member] = 0
        members[RUNNER, member] = member
        if members[WORTH, member] < n - 1:
            members[UNHEARD, c[DEAF]] = member
            c[DEAF] += 1


@compiled
def report(c: Ints, D: int, leader: int, row: Floats) -> None:
    """What came of a run in which everybody has heard the leader."""
    row[col.TMAX] = c[NOW] - D
    row[col.COMPLETE] = c[NOW]
    row[col.NUM_MSGS] = c[BEFORE] if D else c[SENT]
    row[col.FIRST_ROUND] = c[FIRSTS_BEFORE] if D else c[FIRSTS]
    row[col.SENT_BY_TMAX] = c[ARRIVED]
    row[col.ROUNDS] = c[ROUND]
    row[col.HEARD] = c[HEARD]
    row[col.MESSAGES] = c[SENT]
    row[col.FIRST_ROUND_TIME] = c[LAST_FIRST]
    row[col.LEADING] = c[AREA] + c[LEADING] * c[NOW]
    row[col.LEADING_MOST] = c[MOST]
    row[col.WATCHED] = c[NOW]
    row[col.LEADER] = leader + 1


@compiled
def race(
    seed: np.uint64,
    first: int,
    sleep: Sleep,
    loss: Loss,
    T_A: int,
    D: int,
    by_key: bool,
    relative: bool,
    max_rounds: int,
    members: Ints,
    messages: Ints,
    repeats: Ints,
    coins: Words,
    rows: Floats,
) -> None:
    """Runs from number `first` on, one for each row."""
    n = members.shape[1]
    c = np.zeros(COUNTERS, np.int64)
    slept, wakes = np.zeros(n), np.zeros(n, np.int64)
    out = np.zeros(n, np.uint8)
    at_once = sleep.longest == 0.0
    for number in range(rows.shape[0]):
        run = branch(seed, np.uint64(first + number))
        first_naps(run, sleep, slept, wakes)
        rank(slept if relative else wakes.astype(np.float64), by_key, members)
        members[ORDER] = np.arange(n) if at_once else np.argsort(wakes)
        begin(c, members, out)
        play_run(c, run, loss, T_A, D, max_rounds, wakes, members, messages, repeats, coins, out)
        row = rows[number]
        if c[DEAF]:
            row[col.CUT] = 1.0
            continue
        leader = 0
        while members[WORTH, leader] < n - 1:
            leader += 1
        report(c, D, leader, row)

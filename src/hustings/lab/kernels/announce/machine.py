"""le-a, le-s, le-m and al with leaders that expire: the state machine, event by event.

At one tick sends come before arrivals, and arrivals before listen timers. Sends and timers are
ordered by member, arrivals by their sends. A coin is tossed only where receiving the message makes
a difference: it comes from a member better than the one that the receiver holds, or from that
leader itself. Whole blocks of members are skipped where a bound on what they hold shows that the
message changes nothing for any of them, so most announcements of a large group cost little.

With an infinite T_L this kernel tosses the same coins as `race` and `baseline` and gets the same
results, only later: the tests check it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

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
    nap,
)
from hustings.lab.kernels.compiling import compiled
from hustings.lab.kernels.counter import below, branch, message_key, mix
from hustings.lab.kernels.results import Flags, Floats, Ints, Words

REPEATS = SHARED  # where the queue of repeated announcements ends; REPEAT is where it begins
PAIRS = SHARED + 1  # members and leaders that they have held, where each counts
COUNTERS = SHARED + 2
AT, WHO, NUMBER, LOW = 0, 1, 2, 3  # of messages: sent at, by, its number, landed before it
MESSAGE_ROWS = 4

# Rows of the members' table.
SPOKEN = 1
HELD = 0  # the member that this one holds for the leader: itself, or the one it listens to
PHASE, WAKES, REPEATS_AT, EXPIRES, NAPS, QUEUED, COUNT, SUM = 2, 3, 4, 5, 6, 7, 8, 9
FOLLOWERS = 10
STALE = 11  # whether some of them followed under another key than the present one
MEMBER_ROWS = 12
BLOCK = 64  # members to a block, and blocks to a block of blocks
FULL = -2  # no room for another pair
SUPPRESS, ANNOUNCE, LISTEN = 0, 1, 2
OWN, OTHERS = 0, 1  # rows of the keys: that of oneself, that of the leader one holds

IDS, KEYS, BASELINE = 0, 1, 2  # what members compare by; in the last no member falls silent


class MachineRules(NamedTuple):
    """What is constant from run to run; times in ticks."""

    kind: int
    T_A: int
    T_L: int
    D: int
    relative: bool
    sleep: Sleep
    loss: LossLaw
    max_rounds: int


class State(NamedTuple):
    """All that a run changes."""

    c: Ints
    m: Ints
    keys: Floats
    messages: Ints
    stood: Floats  # the key with which a message's sender stood
    repeats: Ints
    wakers: Ints
    listeners: Ints
    heard: Flags  # which members have held the best, where no other can be held by all
    pairs: Words  # which have held which, where any can be: a hash table
    weakest: Floats  # by block: no member in it holds a leader that is weaker than this
    weakest_of_all: Floats  # by block of blocks


# A heap of (tick, member) pairs, the earliest first and then the lowest member: a table of two
# rows, whose first column holds its size.


@compiled
def _earlier(heap: Ints, one: int, other: int) -> bool:
    """Whether one place comes before another."""
    if heap[0, one] != heap[0, other]:
        return bool(heap[0, one] < heap[0, other])
    return bool(heap[1, one] < heap[1, other])


@compiled
def _swap(heap: Ints, one: int, other: int) -> None:
    """Exchange two places."""
    for row in range(2):
        heap[row, one], heap[row, other] = heap[row, other], heap[row, one]


@compiled
def heap_push(heap: Ints, at: int, member: int) -> None:
    """Put a pair in."""
    heap[0, 0] += 1
    place = heap[0, 0]
    heap[0, place], heap[1, place] = at, member
    while place > 1 and _earlier(heap, place, place // 2):
        _swap(heap, place, place // 2)
        place //= 2


@compiled
def heap_first(heap: Ints) -> int:
    """Return the earliest tick."""
    return int(heap[0, 1]) if heap[0, 0] else NEVER


@compiled
def heap_pop(heap: Ints) -> int:
    """Take the earliest out and return its member."""
    member = int(heap[1, 1])
    size = heap[0, 0]
    _swap(heap, 1, size)
    size -= 1
    heap[0, 0] = size
    place = 1
    while 2 * place <= size:
        child = 2 * place
        if child < size and _earlier(heap, child + 1, child):
            child += 1
        if not _earlier(heap, child, place):
            break
        _swap(heap, child, place)
        place = child
    return member


@compiled
def weakness(kind: int, s: State, member: int) -> float:
    """Return the bar for an announcement to be better than what a member holds."""
    held = s.m[HELD, member]
    if kind == KEYS:
        return float(s.keys[OWN if held == member else OTHERS, member])
    return float(-held)


@compiled
def loosen(rules: MachineRules, s: State, member: int) -> None:
    """Make a member hold itself again."""
    block, weak = member // BLOCK, weakness(rules.kind, s, member)
    s.weakest[block] = max(s.weakest[block], weak)
    s.weakest_of_all[block // BLOCK] = max(s.weakest_of_all[block // BLOCK], weak)


@compiled
def unfollow(s: State, member: int) -> None:
    """End a member's following, if it followed another one."""
    held = s.m[HELD, member]
    if held != member:
        s.m[FOLLOWERS, held] -= 1
        if s.m[FOLLOWERS, held] == 0:
            s.m[STALE, held] = 0


@compiled
def suppress(run: np.uint64, rules: MachineRules, s: State, member: int) -> None:
    """Make a member take itself for the leader and sleep."""
    if rules.kind == KEYS:
        unfollow(s, member)
        s.m[STALE, member] = s.m[FOLLOWERS, member] > 0
    slept = nap(branch(run, np.uint64(s.m[NAPS, member])), member, rules.sleep)
    s.m[NAPS, member] += 1
    s.m[PHASE, member] = SUPPRESS
    s.m[HELD, member] = member
    s.m[WAKES, member] = s.c[NOW] + np.int64(np.rint(slept))
    s.keys[OWN, member] = slept if rules.relative else float(s.m[WAKES, member])
    loosen(rules, s, member)
    heap_push(s.wakers, s.m[WAKES, member], member)


@compiled
def send(c: Ints, who: int, members: Ints, messages: Ints, repeats: Ints, T_A: int, D: int) -> int:
    """Send a member's announcement and return its number. Rings are powers of two in size."""
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
def announce(rules: MachineRules, s: State, who: int) -> bool:
    """Send a leader's announcement; False: it has announced too often."""
    if s.m[PHASE, who] == SUPPRESS:
        s.m[PHASE, who] = ANNOUNCE
        if rules.kind != BASELINE:
            lead(s.c)
    s.stood[s.c[SENT] & (s.stood.size - 1)] = s.keys[OWN, who]
    s.m[REPEATS_AT, who] = s.c[NOW] + rules.T_A
    return send(s.c, who, s.m, s.messages, s.repeats, rules.T_A, rules.D) <= rules.max_rounds


@compiled
def listen(rules: MachineRules, s: State, member: int, who: int, key: float) -> None:
    """Make a member listen to a leader, from now on or still."""
    if s.m[HELD, member] == member:
        if s.m[PHASE, member] == ANNOUNCE:
            defer(s.c, 1)
        if rules.kind != BASELINE:
            s.m[PHASE, member] = LISTEN
    if rules.kind == KEYS and s.m[HELD, member] != who:
        unfollow(s, member)
        s.m[FOLLOWERS, who] += 1
        if key != s.keys[OWN, who]:  # it travelled for a while
            s.m[STALE, who] = 1
    s.m[HELD, member] = who
    s.keys[OTHERS, member] = key
    if rules.T_L < NEVER:
        s.m[EXPIRES, member] = s.c[NOW] + rules.T_L
        if not s.m[QUEUED, member]:
            s.m[QUEUED, member] = 1
            heap_push(s.listeners, s.m[EXPIRES, member], member)


@compiled
def matters(kind: int, held: int, bar: float, who: int, key: float) -> bool:
    """Whether an announcement changes anything for a member with `held`, which stands at `bar`."""
    if held == who:
        return True
    if kind == KEYS and key != bar:
        return key < bar
    return who > held


@compiled
def new_pair(s: State, who: int, member: int) -> bool:
    """Note that a member has held another one; False: known already, or there is no room."""
    name = np.uint64(who) * np.uint64(s.m.shape[1]) + np.uint64(member) + np.uint64(1)
    last = np.uint64(s.pairs.size - 1)
    place = mix(name) & last
    while s.pairs[place]:
        if s.pairs[place] == name:
            return False
        place = (place + np.uint64(1)) & last
    if 2 * s.c[PAIRS] < s.pairs.size:
        s.pairs[place] = name
    s.c[PAIRS] += 1
    return True


@compiled
def count(rules: MachineRules, s: State, member: int, who: int, number: int) -> bool:
    """Note that a member has held another one; return whether all others have by now."""
    n = s.m.shape[1]
    if rules.kind == KEYS:
        if not new_pair(s, who, member):
            return False
    else:
        if who != n - 1 or s.heard[member]:
            return False
        s.heard[member] = 1
    s.m[COUNT, who] += 1
    s.m[SUM, who] += number
    return bool(s.m[COUNT, who] == n - 1)


@compiled
def reach(
    run: np.uint64, rules: MachineRules, s: State, place: int, bar: np.uint64, first: int, last: int
) -> int:
    """Deliver a message to members `first` .. `last` - 1; return its sender once all held it."""
    who, number = s.messages[WHO, place], s.messages[NUMBER, place]
    message, key = message_key(run, who, number), s.stood[place]
    found, most = -1, -np.inf
    for member in range(first, last):
        held = s.m[HELD, member]
        own = s.keys[OWN if held == member else OTHERS, member]
        if member != who and matters(rules.kind, held, own, who, key):
            if rules.loss.model != UNCORRELATED or not below(message, member, bar):
                listen(rules, s, member, who, key)
                if count(rules, s, member, who, number):
                    found = who
                    s.c[HEARD] = s.m[SUM, who]
                    s.c[ROUND] = number
        most = max(most, weakness(rules.kind, s, member))
    s.weakest[first // BLOCK] = most
    return int(found)


@compiled
def arrive(run: np.uint64, rules: MachineRules, s: State, place: int) -> int:
    """Deliver one message; return the leader that all have held by now, or -1."""
    who = s.messages[WHO, place]
    bar = bar_at(rules.loss, s.c[BEFORE] - s.messages[LOW, place] - 1)
    if rules.loss.model == CORRELATED and below(
        message_key(run, who, s.messages[NUMBER, place]), EVERYBODY, bar
    ):
        return -1
    found, n = -1, s.m.shape[1]
    # A member that follows under an old key, which was better, hears it all the same.
    every = rules.kind == KEYS and s.m[STALE, who]
    strength = s.stood[place] if rules.kind == KEYS else float(-who)
    blocks = s.weakest.size
    for above in range(s.weakest_of_all.size):
        if s.weakest_of_all[above] < strength and not every:
            continue
        most = -np.inf
        for block in range(above * BLOCK, min(blocks, (above + 1) * BLOCK)):
            if every or s.weakest[block] >= strength:
                ends = block * BLOCK, min(n, (block + 1) * BLOCK)
                found = max(found, reach(run, rules, s, place, bar, *ends))
            most = max(most, s.weakest[block])
        s.weakest_of_all[above] = most
    return int(found)


@compiled
def arrive_together(run: np.uint64, rules: MachineRules, s: State) -> int:
    """Deliver all messages that were sent at one tick; return the leader that all held, or -1.

    The best comes first. Then few members are concerned by the others, and what a member holds in
    the end is the same. By keys even what it held for no time counts, so they come as sent.
    """
    room = s.messages.shape[1]
    first, at = s.c[ARRIVED], s.messages[AT, s.c[ARRIVED] & (room - 1)]
    while s.c[ARRIVED] < s.c[SENT] and s.messages[AT, s.c[ARRIVED] & (room - 1)] == at:
        s.c[ARRIVED] += 1
    found = -1
    for each in range(s.c[ARRIVED] - first):
        number = first + each if rules.kind == KEYS else s.c[ARRIVED] - 1 - each
        leader = arrive(run, rules, s, number & (room - 1))
        found = leader if found < 0 else found
    return int(found)


@compiled
def next_sender(rules: MachineRules, s: State) -> tuple[int, int, bool]:
    """Return when a member sends next, which, and whether it wakes up; drop cancelled plans."""
    room = s.repeats.shape[1]
    while s.wakers[0, 0]:
        who = s.wakers[1, 1]
        if s.m[PHASE, who] == SUPPRESS and s.m[WAKES, who] == s.wakers[0, 1]:
            break
        heap_pop(s.wakers)
    while s.c[REPEAT] < s.c[REPEATS]:
        place = s.c[REPEAT] & (room - 1)
        who = s.repeats[WHO, place]
        if s.m[PHASE, who] == ANNOUNCE and s.m[REPEATS_AT, who] == s.repeats[AT, place]:
            break
        s.c[REPEAT] += 1
    at, who = heap_first(s.wakers), s.wakers[1, 1]
    if s.c[REPEAT] < s.c[REPEATS]:
        place = s.c[REPEAT] & (room - 1)
        again, other = s.repeats[AT, place], s.repeats[WHO, place]
        if again < at or (again == at and other < who):
            return again, other, False
    return at, who, True


@compiled
def next_listener(s: State) -> int:
    """Return when a leader expires next; timers that moved on go back into the heap."""
    while s.listeners[0, 0]:
        at, member = s.listeners[0, 1], s.listeners[1, 1]
        if s.m[HELD, member] == member:
            heap_pop(s.listeners)
            s.m[QUEUED, member] = 0
        elif s.m[EXPIRES, member] > at:
            heap_pop(s.listeners)
            heap_push(s.listeners, s.m[EXPIRES, member], member)
        else:
            return int(at)
    return NEVER


@compiled
def expire(run: np.uint64, rules: MachineRules, s: State) -> None:
    """Expire a leader that was silent for T_L: its listener is in the race again."""
    member = heap_pop(s.listeners)
    s.m[QUEUED, member] = 0
    if rules.kind == BASELINE:
        s.m[HELD, member] = member
        loosen(rules, s, member)
        lead(s.c)
    else:
        suppress(run, rules, s, member)


@compiled
def begin(run: np.uint64, rules: MachineRules, s: State) -> None:
    """Start all members."""
    s.c[:] = 0
    s.m[:] = 0
    s.heard[:] = 0
    s.pairs[:] = 0
    s.weakest[:] = s.weakest_of_all[:] = -np.inf
    s.wakers[0, 0] = s.listeners[0, 0] = 0
    for member in range(s.m.shape[1]):
        s.m[HELD, member] = member
        suppress(run, rules, s, member)
        if rules.kind == BASELINE:
            lead(s.c)
    s.c[NOW] = -1


@compiled
def play_run(run: np.uint64, rules: MachineRules, s: State) -> int:
    """Play one run; the leader that all have held, -1 if given up, FULL if there is no room."""
    begin(run, rules, s)
    found = -1
    while True:
        at, who, wakes = next_sender(rules, s)
        arrival, expiry = NEVER, next_listener(s)
        if s.c[ARRIVED] < s.c[SENT]:
            arrival = s.messages[AT, s.c[ARRIVED] & (s.messages.shape[1] - 1)] + rules.D
        if found >= 0 and arrival != s.c[NOW]:
            return found  # and all that arrived with it has been delivered
        if at <= arrival and at <= expiry:
            tick(s.c, at)
            if wakes:
                heap_pop(s.wakers)
            else:
                s.c[REPEAT] += 1
            if not announce(rules, s, who):
                return -1
        elif arrival <= expiry:
            tick(s.c, arrival)
            leader = arrive_together(run, rules, s)
            found = leader if found < 0 else found
            if 2 * s.c[PAIRS] > s.pairs.size:
                return FULL
        else:
            tick(s.c, expiry)
            expire(run, rules, s)


@compiled
def agreed(m: Ints) -> int:
    """Return the member that all hold, itself included; -1: they do not agree."""
    leader = m[HELD, 0]
    for member in range(m.shape[1]):
        if m[HELD, member] != leader:
            return -1
    return leader if m[PHASE, leader] == ANNOUNCE else -1


@compiled
def machine(
    seed: np.uint64, first: int, rules: MachineRules, s: State, rows: Floats, done: int = 0
) -> int:
    """Play runs from number `first` on, one for each row after those done; return how many are."""
    for number in range(done, rows.shape[0]):
        run = branch(seed, np.uint64(first + number))
        leader = play_run(run, rules, s)
        if leader == FULL:
            return number
        if leader < 0:
            rows[number, col.CUT] = 1.0
        else:
            report(s.c, rules.D, agreed(s.m), rows[number])
    return int(rows.shape[0])

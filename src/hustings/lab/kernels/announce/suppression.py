"""sup: every member sleeps, and announces once unless it has received a message before."""

from __future__ import annotations

import numpy as np

from hustings.lab.kernels.announce import columns as col
from hustings.lab.kernels.announce.sleep_and_loss import (
    CORRELATED,
    EVERYBODY,
    NEVER,
    UNCORRELATED,
    LossLaw,
    Sleep,
    bar_at,
    first_naps,
)
from hustings.lab.kernels.compiling import compiled
from hustings.lab.kernels.counter import below, branch, message_key
from hustings.lab.kernels.results import Flags, Floats, Ints

# Counters of a run.
SENT = 0
ARRIVED = 1
LANDED = 2
HALT = 3
SLEEPERS = 4
COUNTERS = 5


@compiled
def arrive(
    c: Ints,
    run: np.uint64,
    loss: LossLaw,
    now: int,
    low: int,
    who: int,
    sleepers: Ints,
    done: Flags,
    before: int,
) -> None:
    """Deliver a message: a member that receives it asleep will not announce."""
    key = message_key(run, who, 1)
    bar = bar_at(loss, before - low - 1)
    if loss.model == CORRELATED:
        bar = np.uint64(0) if not below(key, EVERYBODY, bar) else np.uint64(1 << 53)
    elif loss.model != UNCORRELATED:
        bar = np.uint64(0)
    place = 0
    while place < c[SLEEPERS]:
        member = sleepers[place]
        if not done[member]:
            if below(key, member, bar):
                place += 1
                continue
            done[member] = 1
            c[HALT] = now
        c[SLEEPERS] -= 1
        sleepers[place] = sleepers[c[SLEEPERS]]


@compiled
def play_run(
    c: Ints,
    run: np.uint64,
    loss: LossLaw,
    D: int,
    wakes: Ints,
    order: Ints,
    sleepers: Ints,
    done: Flags,
    sent: Ints,
    low: Ints,
) -> None:
    """Play one run, until no member sleeps."""
    n = wakes.size
    woken = 0
    now, before = -1, 0
    while True:
        while woken < n and done[order[woken]]:
            woken += 1
        if woken == n:
            return
        at, arrival = wakes[order[woken]], NEVER
        if c[ARRIVED] < c[SENT]:
            arrival = wakes[sent[c[ARRIVED]]] + D
        if min(at, arrival) != now:
            now, before = int(min(at, arrival)), int(c[SENT])
        if at <= arrival:
            while c[LANDED] < c[SENT] and wakes[sent[c[LANDED]]] <= now - D:
                c[LANDED] += 1
            sent[c[SENT]] = order[woken]
            low[c[SENT]] = c[LANDED]
            c[SENT] += 1
            done[order[woken]] = 1
            c[HALT] = now
        else:
            number = c[ARRIVED]
            arrive(c, run, loss, now, low[number], sent[number], sleepers, done, before)
            c[ARRIVED] += 1


@compiled
def last_event(c: Ints, run: np.uint64, loss: LossLaw, D: int, wakes: Ints, sent: Ints) -> int:
    """Return when the last message arrived, or was sent; one that all lose does not arrive."""
    last = int(wakes[sent[c[SENT] - 1]])
    for place in range(c[SENT] - 1, -1, -1):
        lost = False
        if loss.model == CORRELATED and loss.collision == 0.0:
            lost = below(message_key(run, sent[place], 1), EVERYBODY, loss.bar)
        if not lost:
            return max(last, int(wakes[sent[place]]) + D)
    return last


@compiled
def suppression(
    seed: np.uint64, first: int, sleep: Sleep, loss: LossLaw, D: int, members: int, rows: Floats
) -> None:
    """Play runs from number `first` on, one for each row."""
    n = members
    c = np.zeros(COUNTERS, np.int64)
    slept, wakes = np.zeros(n), np.zeros(n, np.int64)
    sleepers, sent, low = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    done = np.zeros(n, np.uint8)
    for number in range(rows.shape[0]):
        run = branch(seed, np.uint64(first + number))
        first_naps(run, sleep, slept, wakes)
        order = np.argsort(wakes)
        c[:] = 0
        c[SLEEPERS] = n
        done[:] = 0
        sleepers[:] = np.arange(n)
        play_run(c, run, loss, D, wakes, order, sleepers, done, sent, low)
        row = rows[number]
        row[col.TMAX] = wakes[sent[c[SENT] - 1]]
        row[col.FIRST_ROUND_TIME] = row[col.TMAX]
        row[col.COMPLETE] = c[HALT]
        row[col.NUM_MSGS] = c[SENT]
        row[col.SENT_BY_TMAX] = c[SENT]
        row[col.FIRST_ROUND] = c[SENT]
        row[col.MESSAGES] = c[SENT]
        row[col.LEADING_MOST] = c[SENT]
        last = last_event(c, run, loss, D, wakes, sent)
        row[col.WATCHED] = last
        for place in range(c[SENT]):
            row[col.LEADING] += last - wakes[sent[place]]
        row[col.LEADER] = sent[0] + 1 if c[SENT] == 1 else 0

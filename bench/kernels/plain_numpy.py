"""le-s in plain NumPy: the same runs, each message one step in Python, its coins one array."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from bench.kernels.work import GROUP, SEED, Rows
from hustings.lab.kernels.announce import columns as col
from hustings.lab.kernels.announce.parameters import TICKS, ticks
from hustings.lab.kernels.counter import BRANCH, FIRST, MESSAGE, SECOND, STEP, limit, root

Words = NDArray[np.uint64]
UNIT = 2.0**-53
ALL = 2**64 - 1


def words(key: np.uint64, indices: Words) -> Words:
    x = key + (indices + np.uint64(1)) * STEP
    x = (x ^ (x >> np.uint64(30))) * FIRST
    x = (x ^ (x >> np.uint64(27))) * SECOND
    return x ^ (x >> np.uint64(31))


def branch(key: np.uint64, index: int) -> np.uint64:
    """Branch a key with Python's own whole numbers: an array of one would take longer."""
    inner = mix((int(key) + (index + 1) * int(STEP)) & ALL)
    return np.uint64(mix(inner ^ int(BRANCH)))


def mix(x: int) -> int:
    x = (x ^ x >> 30) * int(FIRST) & ALL
    x = (x ^ x >> 27) * int(SECOND) & ALL
    return x ^ x >> 31


def heard_by(key: np.uint64, members: Words, bar: np.uint64) -> NDArray[np.bool_]:
    """Return which of these members receive the message."""
    return (words(key, members) >> np.uint64(11)) >= bar


def play(runs: int) -> Rows:
    """This many runs; of each the columns that a message's way to all others decides."""
    rows = np.zeros((runs, col.COLUMNS))
    with np.errstate(over="ignore"):  # words wrap around
        for run in range(runs):
            play_run(branch(root(SEED), run), rows[run])
    return rows


def play_run(run: np.uint64, row: NDArray[np.float64]) -> None:
    n, T_A, D = GROUP.members, ticks(GROUP.T_A), ticks(GROUP.delay)
    bar = np.uint64(limit(GROUP.loss))
    ids = np.arange(n, dtype=np.uint64)
    chances = (words(branch(run, 0), ids) >> np.uint64(11)) * UNIT
    wakes = np.rint(GROUP.T_S * TICKS * chances).astype(np.int64)
    # By time; at one tick sends come before arrivals: (when, is it an arrival, who, its number).
    events = [(int(wakes[who]), False, int(who), 1) for who in np.argsort(wakes)]
    racing = np.ones(n, np.bool_)
    deaf = ids[:-1]
    sent = before = now = 0
    while deaf.size:
        at, arrives, who, number = heapq.heappop(events)
        if at != now:
            now, before = at, sent
        if not arrives:
            if racing[who]:
                sent += 1
                heapq.heappush(events, (at + D, True, who, number))
                heapq.heappush(events, (at + T_A, False, who, number + 1))
            continue
        key = branch(run, int(MESSAGE) | who << 32 | number)
        worse = ids[:who][racing[:who]]
        racing[worse[heard_by(key, worse, bar)]] = False
        if who == n - 1:
            hears = heard_by(key, deaf, bar)
            racing[deaf[hears]] = False
            row[col.HEARD] += number * int(hears.sum())
            row[col.ROUNDS] = number
            deaf = deaf[~hears]
    row[col.TMAX], row[col.COMPLETE] = now - D, now
    row[col.NUM_MSGS], row[col.MESSAGES] = before, sent

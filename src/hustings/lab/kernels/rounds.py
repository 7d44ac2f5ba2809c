"""The probabilistic election, collapsed: a cost that depends on N through the rounds alone.

The same questions as of the event simulator, under the same timings: unit delay for unicasts, T_3
for multicasts, a simultaneous beginning of each round, crashes at a uniform instant of the round,
which begins T_3 before all begin to relay. All times are in units of the delay.

Exact but for this, and for groups of more than 600 alone: where K is the whole group all are taken
to choose rank 0, and unicasts are counted by their mean; with N_i the size of the own view, what a
member knows is independent of how many it knows, which makes a difference of O(1/N). In a group of
any size, with N_i the size of the own view all take the N of a round without a cap for T_2, and not
each its own. Who joins on contact is late for the end of the round, but speaks with the others
here.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hustings.lab.kernels.collapsed import (
    DEAD,
    DECIDED,
    FALLEN,
    MEMBERS,
    NOW,
    TROUBLE,
    Records,
    Run,
    reset,
    track,
)
from hustings.lab.kernels.compiling import compiled
from hustings.lab.kernels.counter import branch
from hustings.lab.kernels.deciding import (
    ask_again,
    count_leaders,
    decide,
    decide_untracked,
    judge,
    weigh,
)
from hustings.lab.kernels.draws import binomial, uniform
from hustings.lab.kernels.relay_phase import filter_members, hear_and_crash, relay, speak
from hustings.lab.kernels.terms import (
    AGAIN,
    CALLS,
    DELAY,
    FINALS,
    GOSSIP,
    MCASTS,
    MESSAGES,
    METRICS,
    ROUNDS,
    TIME,
    UCASTS,
    VARIATES,
    WHOLE_GROUP,
    Beginning,
    Terms,
    relaying,
    view_size,
)
from hustings.lab.kernels.timing import end_of, over
from hustings.lab.kernels.whole_group import everybody


@compiled
def play_runs(
    terms: Terms,
    sizes: NDArray[np.float64],
    root: np.uint64,
    first: int,
    last: int,
    room: Records,
    out: NDArray[np.float64],
) -> int:
    """Runs first .. last - 1, a row each; what the last one ran into, if anything."""
    run = room[0]
    for number in range(first, last):
        key = branch(root, np.uint64(number))
        run.stream[0], run.stream[1] = key, np.uint64(0)
        run.views = branch(key, np.uint64(1))
        play(terms, sizes, run)
        if run.sizes[TROUBLE]:
            return int(run.sizes[TROUBLE])
        for metric in range(len(METRICS)):
            out[number - first, metric] = run.row[metric]
    return 0


@compiled
def play(terms: Terms, sizes: NDArray[np.float64], run: Run) -> None:
    """One election, called by the worst candidate; `sizes` are K by round, infinite for all."""
    reset(run, terms.members)
    row = run.row
    row[:] = 0.0
    caller = track(run, terms.members - 1, terms.members, view_size(terms))
    run.members[caller].forced = 1
    size = float(terms.members)
    if terms.estimate == GOSSIP:
        total = 0.0
        for _ in range(VARIATES):
            total -= math.log(uniform(run.stream))
        size *= (VARIATES - 1) / total
    row[MCASTS] = 1.0
    copies, start = 1, terms.T_3
    opened = 0.0
    for number in range(1, len(sizes) + 1):
        K = sizes[number - 1]
        if np.isinf(K):
            K = size
        row[ROUNDS] = number
        length = relaying(terms, K) + 3.0 * terms.T_3
        round_ = Beginning(number, K, size, copies, start, length)
        if terms.members > WHOLE_GROUP and terms.members <= K:
            everybody(terms, round_, run)
            row[TIME] = opened + end_of(terms, round_)
            break
        detectors, lasted = _round(terms, round_, run)
        if run.sizes[TROUBLE]:
            return
        if lasted > 0.0:
            row[TIME] = opened + lasted
        count_leaders(run)
        if not detectors or number == len(sizes):
            break
        copies, start = ask_again(terms, round_, detectors, run)
        opened += end_of(terms, round_)
        if terms.thinning == DELAY:
            opened += terms.W + terms.T_3 - start
        row[MCASTS] += copies
        row[AGAIN] += copies
        if not copies:
            break
    row[MESSAGES] = row[UCASTS] + row[MCASTS]
    row[CALLS] = row[MESSAGES] - row[FINALS]
    judge(terms.members, run)


@compiled
def _round(terms: Terms, round_: Beginning, run: Run) -> tuple[int, float]:
    """One round; how many have noticed that it failed, and how long it lasted."""
    heard = 1.0 - terms.p_mcastl**round_.copies
    filter_members(terms, round_, run)
    for place in range(run.sizes[MEMBERS]):
        hear_and_crash(terms, round_, heard, place, run)
    run.sizes[DECIDED] = run.sizes[FALLEN] = 0
    for each in range(run.sizes[NOW]):
        dead = binomial(run.stream, run.now[each].count, terms.p_fail)
        run.now[each].count -= dead
        run.sizes[DEAD] += dead
        run.sizes[FALLEN] += dead
    relay(terms, round_, run)
    finals = speak(terms, round_, heard, run)
    run.row[MCASTS] += finals
    run.row[FINALS] += finals
    none = weigh(terms, run)
    detectors = decide(run)
    detectors += decide_untracked(heard, none, run)
    return detectors, over(terms, round_, heard, none, run)

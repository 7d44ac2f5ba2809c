"""The probabilistic election, collapsed: a cost that depends on N through the rounds alone.

The same questions as of the event simulator, under the same timings: unit delay for unicasts, T_3
for multicasts, a simultaneous beginning of each round, crashes at a uniform instant of the round.
All times are in units of the delay.

Exact but for this: where K is the whole group and that is large, all are taken to choose rank 0,
and unicasts are counted by their mean. With N_i the size of the own view, what a member knows is
independent of how many it knows. Neither is seen at N = 400.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hustings.fast.collapsed import DEAD, MEMBERS, NOW, TROUBLE, Run, reset, track
from hustings.fast.compiling import compiled
from hustings.fast.counter import branch
from hustings.fast.deciding import ask_again, count_leaders, decide, decide_untracked, judge
from hustings.fast.draws import Stream, binomial, uniform
from hustings.fast.relay_phase import filter_members, hear_and_crash, relay, speak
from hustings.fast.terms import (
    AGAIN,
    DELAY,
    GOSSIP,
    MCASTS,
    MESSAGES,
    ROUNDS,
    UCASTS,
    VARIATES,
    WHOLE_GROUP,
    Beginning,
    Terms,
    relaying,
    view_size,
)
from hustings.fast.whole_group import everybody


@compiled
def play_runs(
    terms: Terms, root: np.uint64, first: int, last: int, run: Run, out: NDArray[np.float64]
) -> int:
    """Runs first .. last - 1, a row each; what the last one ran into, if anything."""
    stream = np.zeros(2, np.uint64)
    for number in range(first, last):
        key = branch(root, np.uint64(number))
        stream[0], stream[1] = key, np.uint64(0)
        play(terms, stream, branch(key, np.uint64(1)), run, out[number - first])
        if run.sizes[TROUBLE]:
            return int(run.sizes[TROUBLE])
    return 0


@compiled
def play(
    terms: Terms, stream: Stream, views: np.uint64, run: Run, row: NDArray[np.float64]
) -> None:
    """One election, called by the worst candidate."""
    reset(run, terms.members)
    row[:] = 0.0
    own = view_size(terms)
    caller = track(run, stream, views, terms.members - 1, terms.members, own)
    run.members[caller].forced = 1
    size = float(terms.members)
    if terms.estimate == GOSSIP:
        total = 0.0
        for _ in range(VARIATES):
            total -= math.log(uniform(stream))
        size *= (VARIATES - 1) / total
    row[MCASTS] = 1.0
    copies, start = 1, terms.T_3
    for number in range(1, len(terms.sizes) + 1):
        K = terms.sizes[number - 1]
        if np.isinf(K):
            K = size
        row[ROUNDS] = number
        length = relaying(terms, K) + 3.0 * terms.T_3
        if number > 1 and terms.thinning == DELAY:
            length += terms.W + terms.T_3
        round_ = Beginning(number, K, size, copies, start, length)
        if terms.members > WHOLE_GROUP and terms.members <= K:
            everybody(terms, stream, round_, views, run, row)
            break
        detectors = _round(terms, stream, views, round_, run, row)
        if run.sizes[TROUBLE]:
            return
        count_leaders(run, row)
        if not detectors or number == len(terms.sizes):
            break
        copies, start = ask_again(terms, stream, round_, detectors, run)
        row[MCASTS] += copies
        row[AGAIN] += copies
        if not copies:
            break
    row[MESSAGES] = row[UCASTS] + row[MCASTS]
    judge(run, row)


@compiled
def _round(
    terms: Terms,
    stream: Stream,
    views: np.uint64,
    round_: Beginning,
    run: Run,
    row: NDArray[np.float64],
) -> int:
    """One round; how many have noticed that it failed."""
    heard = 1.0 - terms.p_mcastl**round_.copies
    filter_members(terms, stream, views, round_, run)
    for place in range(run.sizes[MEMBERS]):
        hear_and_crash(terms, stream, round_, heard, place, run)
    for each in range(run.sizes[NOW]):
        dead = binomial(stream, run.now[each].count, terms.p_fail)
        run.now[each].count -= dead
        run.sizes[DEAD] += dead
    relay(terms, stream, round_, run, row)
    finals = speak(terms, stream, views, round_, heard, run)
    row[MCASTS] += finals
    detectors = decide(terms, stream, run)
    detectors += decide_untracked(terms, stream, heard, run)
    return detectors

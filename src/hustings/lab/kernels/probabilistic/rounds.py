"""The probabilistic election, aggregated: its cost depends on N through the rounds alone.

The same questions as of the event simulator, under the same timings: unit delay for unicasts, T_3
for multicasts, a simultaneous beginning of each round, crashes at a uniform instant of the round,
which begins T_3 before all begin to relay. All times are in units of the delay.

It is exact but for the following, and for groups of more than 600 members only. Where K is the
whole group all are taken to choose rank 0, and unicasts are counted by their mean. With N_i the
size of the own view, what a member knows is independent of how many it knows, which makes a
difference of O(1/N). In a group of any size, with N_i the size of the own view, all take the N of a
round without a cap for T_2, and not each its own. A member that joins on contact is late for the
end of the round, but sends its final with the others here.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hustings.lab.kernels.compiling import compiled
from hustings.lab.kernels.counter import branch
from hustings.lab.kernels.draws import binomial, coin, uniform
from hustings.lab.kernels.probabilistic.aggregated import (
    DEAD,
    DECIDED,
    FALLEN,
    LEADERS,
    MEMBERS,
    NAMED,
    NOBODY,
    NOW,
    TOO_MANY_LEADERS,
    TROUBLE,
    Records,
    Run,
    place_of,
    reset,
    track,
)
from hustings.lab.kernels.probabilistic.deciding import (
    ask_again,
    count_leaders,
    decide,
    decide_untracked,
    end_of,
    judge,
    over,
    weigh,
)
from hustings.lab.kernels.probabilistic.relay_phase import (
    filter_members,
    hear_and_crash,
    relay,
    speak,
)
from hustings.lab.kernels.probabilistic.rules import (
    AGAIN,
    CALLS,
    DELAY,
    FINALS,
    GOSSIP,
    MCASTS,
    MESSAGES,
    METRICS,
    RELAYED,
    ROUNDS,
    TIME,
    UCASTS,
    VARIATES,
    WHOLE_GROUP,
    ElectionRules,
    RoundBeginning,
    relaying,
    view_size,
)


@compiled
def play_runs(
    rules: ElectionRules,
    sizes: NDArray[np.float64],
    root: np.uint64,
    first: int,
    last: int,
    room: Records,
    out: NDArray[np.float64],
) -> int:
    """Play runs first .. last - 1, a row each; return the trouble of the last one, if any."""
    run = room[0]
    for number in range(first, last):
        key = branch(root, np.uint64(number))
        run.stream[0], run.stream[1] = key, np.uint64(0)
        run.views = branch(key, np.uint64(1))
        play(rules, sizes, run)
        if run.sizes[TROUBLE]:
            return int(run.sizes[TROUBLE])
        for metric in range(len(METRICS)):
            out[number - first, metric] = run.row[metric]
    return 0


@compiled
def play(rules: ElectionRules, sizes: NDArray[np.float64], run: Run) -> None:
    """One election, called by the worst candidate; `sizes` are K by round, infinite for all."""
    reset(run, rules.members)
    row = run.row
    row[:] = 0.0
    caller = track(run, rules.members - 1, rules.members, view_size(rules))
    run.members[caller].forced = 1
    size = float(rules.members)
    if rules.estimate == GOSSIP:
        total = 0.0
        for _ in range(VARIATES):
            total -= math.log(uniform(run.stream))
        size *= (VARIATES - 1) / total
    row[MCASTS] = 1.0
    copies, start = 1, rules.T_3
    opened = 0.0
    for number in range(1, len(sizes) + 1):
        K = sizes[number - 1]
        if np.isinf(K):
            K = size
        row[ROUNDS] = number
        length = relaying(rules, K) + 3.0 * rules.T_3
        round_ = RoundBeginning(number, K, size, copies, start, length)
        if rules.members > WHOLE_GROUP and rules.members <= K:
            everybody(rules, round_, run)
            row[TIME] = opened + end_of(rules, round_)
            break
        detectors, lasted = _round(rules, round_, run)
        if run.sizes[TROUBLE]:
            return
        if lasted > 0.0:
            row[TIME] = opened + lasted
        count_leaders(run)
        if not detectors or number == len(sizes):
            break
        copies, start = ask_again(rules, round_, detectors, run)
        opened += end_of(rules, round_)
        if rules.thinning == DELAY:
            opened += rules.W + rules.T_3 - start
        row[MCASTS] += copies
        row[AGAIN] += copies
        if not copies:
            break
    row[MESSAGES] = row[UCASTS] + row[MCASTS]
    row[CALLS] = row[MESSAGES] - row[FINALS]
    judge(rules.members, run)


@compiled
def _round(rules: ElectionRules, round_: RoundBeginning, run: Run) -> tuple[int, float]:
    """Play one round; return how many noticed that it failed, and how long it lasted."""
    heard = 1.0 - rules.p_mcastl**round_.copies
    filter_members(rules, round_, run)
    for place in range(run.sizes[MEMBERS]):
        hear_and_crash(rules, round_, heard, place, run)
    run.sizes[DECIDED] = run.sizes[FALLEN] = 0
    for each in range(run.sizes[NOW]):
        dead = binomial(run.stream, run.now[each].count, rules.p_fail)
        run.now[each].count -= dead
        run.sizes[DEAD] += dead
        run.sizes[FALLEN] += dead
    relay(rules, round_, run)
    finals = speak(rules, round_, heard, run)
    run.row[MCASTS] += finals
    run.row[FINALS] += finals
    none = weigh(rules, run)
    detectors = decide(run)
    detectors += decide_untracked(heard, none, run)
    return detectors, over(rules, round_, heard, none, run)


@compiled
def everybody(rules: ElectionRules, round_: RoundBeginning, run: Run) -> None:
    """Play K = the whole of a large group: all that know of it relay, and choose rank 0."""
    members = run.members
    heard = 1.0 - rules.p_mcastl**round_.copies
    speakers = 0
    best = place_of(run, 0)
    if best == NOBODY:
        best = track(run, 0, rules.members, view_size(rules))
        if best == NOBODY:
            return
    for place in range(run.sizes[MEMBERS]):
        if members[place].alive:
            aware = members[place].forced or coin(run.stream, heard)
            members[place].alive = not coin(run.stream, rules.p_fail)
            speakers += aware and members[place].alive
    if members[best].number == NOBODY:
        if run.sizes[NAMED] >= LEADERS:
            run.sizes[TROUBLE] = TOO_MANY_LEADERS
            return
        members[best].number = run.sizes[NAMED]
        run.leaders[run.sizes[NAMED]] = best
        run.sizes[NAMED] += 1
    for each in range(run.sizes[NOW]):
        count = run.now[each].count
        dead = binomial(run.stream, count, rules.p_fail)
        run.now[each].count -= dead
        run.sizes[DEAD] += dead
        live = run.now[each].count
        speakers += live if run.now[each].forced else binomial(run.stream, live, heard)
        if speakers > 0:
            run.now[each].holds = members[best].number
    if speakers > 0:
        for place in range(run.sizes[MEMBERS]):
            members[place].holds = members[best].number
    run.row[UCASTS] += _mean_unicasts(rules, speakers)
    run.row[MCASTS] += speakers
    run.row[FINALS] += speakers
    run.row[RELAYED] += speakers
    count_leaders(run)


@compiled
def _mean_unicasts(rules: ElectionRules, speakers: int) -> float:
    """First preferences, improvements, replies to worse ones, and replies to those in between."""
    v = rules.view_prob
    steps = np.zeros(256)  # from the k-th best on: expected improvements until rank 0 is reached
    below_k, weighted, improvements, mass = 0.0, 0.0, 0.0, v
    for k in range(256):
        if k > 0:
            steps[k] = 1.0 + weighted / below_k
        weighted += mass * steps[k]
        below_k += mass
        improvements += mass * steps[k]
        mass *= 1.0 - v
    share = speakers / rules.members * (1.0 - rules.p_ucastl)
    between = improvements - (1.0 - v)
    per_link = 1.0 + improvements + share * (1.0 - v) + share * between
    return speakers * rules.members * v * per_link

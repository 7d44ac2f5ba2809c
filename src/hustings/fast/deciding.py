"""What members of the collapsed election make of the finals, and who asks for another round."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hustings.fast.collapsed import (
    ALIVE_FOR_GOOD,
    LEADERS,
    MEMBERS,
    NAMED,
    NOBODY,
    NOW,
    Run,
    put,
    turn_over,
)
from hustings.fast.compiling import compiled
from hustings.fast.draws import Stream, binomial, coin, uniform
from hustings.fast.terms import (
    ALL,
    DELAY,
    LEADERLESS,
    STRONG,
    TWO,
    TWO_EVER,
    VIEW,
    WEAK,
    WEAK_LIVE,
    Beginning,
    Terms,
)


@compiled
def decide(terms: Terms, stream: Stream, run: Run) -> int:
    """What the tracked members make of the finals; how many notice that something is wrong."""
    members = run.members
    detectors = 0
    for place in range(run.sizes[MEMBERS]):
        if members[place].crash < ALIVE_FOR_GOOD:
            members[place].alive = 0
        if not members[place].alive:
            continue
        seen, kinds = NOBODY, 0
        for number in range(run.sizes[NAMED]):
            own = members[place].relays and members[place].best == _rank_of(run, number)
            lost = not own and coin(stream, terms.p_mcastl ** run.finals[number])
            if run.finals[number] and not lost:
                seen, kinds = number, kinds + 1
        if kinds == 1:
            members[place].holds = seen
            members[place].ever |= np.uint64(1) << np.uint64(seen)
        elif kinds > 1 or members[place].aware:
            members[place].holds = NOBODY
            members[place].forced = 1  # until it is known who asks again
            detectors += 1
    return detectors


@compiled
def _rank_of(run: Run, number: int) -> int:
    return int(run.members[run.leaders[number]].rank)


@compiled
def decide_untracked(terms: Terms, stream: Stream, heard: float, run: Run) -> int:
    """The same for all others, class by class."""
    now = run.now
    detectors = 0
    none = 1.0
    for number in range(run.sizes[NAMED]):
        none *= terms.p_mcastl ** run.finals[number]
    for each in range(run.sizes[NOW]):
        count = now[each].count
        aware = count if now[each].forced else binomial(stream, count, heard)
        for group in range(2):
            left = aware if group == 0 else count - aware
            silent = binomial(stream, left, none)
            left -= silent
            if group == 0:
                put(run, silent, NOBODY, now[each].ever, 1)
                detectors += silent
            else:
                put(run, silent, now[each].holds, now[each].ever, 0)
            rest = 1.0 - none
            for number in range(run.sizes[NAMED]):
                missed = terms.p_mcastl ** run.finals[number]
                if missed >= 1.0 or left <= 0:
                    continue
                alone = _alone(terms, run, number)
                found = binomial(stream, left, min(1.0, alone / rest) if rest > 0.0 else 0.0)
                left -= found
                rest -= alone
                ever = now[each].ever | (np.uint64(1) << np.uint64(number))
                put(run, found, number, ever, 0)
            put(run, left, NOBODY, now[each].ever, 1)
            detectors += left
    turn_over(run)
    return detectors


@compiled
def _alone(terms: Terms, run: Run, number: int) -> float:
    """The probability to hear finals for this leader and for no other."""
    p = 1.0
    for other in range(run.sizes[NAMED]):
        missed = terms.p_mcastl ** run.finals[other]
        p *= 1.0 - missed if other == number else missed
    return p


@compiled
def ask_again(
    terms: Terms, stream: Stream, round_: Beginning, detectors: int, run: Run
) -> tuple[int, float]:
    """How many multicast the next Init, and how long before the round the first of them does."""
    members, now = run.members, run.now
    if terms.thinning == ALL:
        return detectors, terms.T_3
    if terms.thinning == DELAY:
        return _one_after_another(terms, stream, round_.size, detectors)
    copies = 0
    for place in range(run.sizes[MEMBERS]):
        if members[place].alive and members[place].forced:
            own = members[place].size if terms.estimate == VIEW else round_.size
            members[place].forced = coin(stream, round_.K / own)
            copies += members[place].forced
    usual = terms.members * terms.view_prob if terms.estimate == VIEW else round_.size
    for each in range(run.sizes[NOW]):
        asks = 0
        if now[each].forced:
            asks = binomial(stream, now[each].count, min(1.0, round_.K / usual))
        put(run, asks, now[each].holds, now[each].ever, 1)
        put(run, now[each].count - asks, now[each].holds, now[each].ever, 0)
        copies += asks
    turn_over(run)
    return copies, terms.T_3


@compiled
def _one_after_another(
    terms: Terms, stream: Stream, size: float, detectors: int
) -> tuple[int, float]:
    """Each waits a random part of the window, and asks unless it has heard another one by then.

    Those that have heard nobody yet are counted: the next of them to ask is the first of so many
    draws from what is left of the law; each multicast, when it is there, leaves p_mcastl of them.
    """
    lam = math.log(max(size, 2.0)) + 1.0
    deaf = detectors
    copies = 0
    first = 0.0
    reached = 0.0  # where in the window: as a value of the law's distribution function
    arrivals = np.zeros(256)  # of copies under way, a ring
    head = tail = 0
    while deaf > 0:
        u = reached + (1.0 - reached) * (1.0 - uniform(stream) ** (1.0 / deaf))
        at = terms.W * max(0.0, 1.0 + math.log(u + (1.0 - u) * math.exp(-lam)) / lam)
        if head < tail and arrivals[head % 256] <= at:
            part = min(1.0, arrivals[head % 256] / terms.W)
            head += 1
            # The law's distribution function at that instant, from where the search goes on.
            inner = (math.exp(lam * (part - 1.0)) - math.exp(-lam)) / (1.0 - math.exp(-lam))
            reached = max(reached, min(1.0, inner))
            deaf = binomial(stream, deaf, terms.p_mcastl)
            continue
        reached = u
        deaf -= 1
        copies += 1
        if copies == 1:
            first = at
        if tail - head < 256:  # beyond, a copy is as good as none: it changes nobody's mind
            arrivals[tail % 256] = at + terms.T_3
            tail += 1
    return copies, terms.W + terms.T_3 - first


@compiled
def count_leaders(run: Run, row: NDArray[np.float64]) -> None:
    """At the end of a round: do two live members hold themselves for the leader?"""
    leading = _leading(run)
    row[TWO] = 1.0 if leading > 1 else 0.0
    row[TWO_EVER] = max(row[TWO_EVER], row[TWO])


@compiled
def _leading(run: Run) -> int:
    members = run.members
    leading = 0
    for number in range(run.sizes[NAMED]):
        place = run.leaders[number]
        if members[place].alive and members[place].holds == number:
            leading += 1
    return leading


@compiled
def judge(run: Run, row: NDArray[np.float64]) -> None:
    """What the group holds in the end."""
    members, now = run.members, run.now
    held = np.zeros(LEADERS + 1, np.int64)  # the last is for nobody
    for place in range(run.sizes[MEMBERS]):
        if members[place].alive:
            held[members[place].holds] += 1
    for each in range(run.sizes[NOW]):
        held[now[each].holds] += now[each].count
    live = held.sum()
    if live == 0:
        row[WEAK] = row[WEAK_LIVE] = row[LEADERLESS] = np.nan
        return
    for number in range(run.sizes[NAMED]):
        part = held[number] / live
        row[WEAK] = max(row[WEAK], part)
        if members[run.leaders[number]].alive:
            row[WEAK_LIVE] = max(row[WEAK_LIVE], part)
    row[LEADERLESS] = held[LEADERS] / live
    if row[WEAK_LIVE] == 1.0 and _leading(run) == 1:
        row[STRONG] = 1.0

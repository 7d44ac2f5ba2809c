"""What members of the aggregated election make of the finals, and which ask for another round."""

from __future__ import annotations

import math

import numpy as np

from hustings.lab.kernels.compiling import compiled
from hustings.lab.kernels.draws import binomial, coin, uniform
from hustings.lab.kernels.probabilistic.aggregated import (
    ALIVE_FOR_GOOD,
    DECIDED,
    FALLEN,
    LEADERS,
    MEMBERS,
    NAMED,
    NOBODY,
    NOW,
    RING,
    Run,
    put,
    turn_over,
)
from hustings.lab.kernels.probabilistic.rules import (
    ALL,
    DELAY,
    LEADER,
    LEADERLESS,
    STRONG,
    TWO,
    TWO_EVER,
    VIEW,
    WEAK,
    WEAK_LIVE,
    WHOLE_GROUP,
    ElectionRules,
    RoundBeginning,
    chance_below,
    relaying,
)


@compiled
def weigh(rules: ElectionRules, run: Run) -> float:
    """Compute the chances of this round's finals by leader; return the chance to hear none."""
    none = 1.0
    for number in range(run.sizes[NAMED]):
        run.missed[number] = rules.p_mcastl ** run.finals[number] if run.finals[number] else 1.0
        none *= run.missed[number]
    for number in range(run.sizes[NAMED]):
        alone = 1.0 - run.missed[number]
        for other in range(run.sizes[NAMED]):
            if other != number:
                alone *= run.missed[other]
        run.alone[number] = alone
    return none


@compiled
def decide(run: Run) -> int:
    """Let the tracked members judge the finals; return how many notice a failure."""
    members = run.members
    detectors = 0
    for place in range(run.sizes[MEMBERS]):
        member = members[place]
        if member.crash < ALIVE_FOR_GOOD:
            member.alive = 0
        if not member.alive:
            continue
        seen, kinds = NOBODY, 0
        for number in range(run.sizes[NAMED]):
            if not run.finals[number]:
                continue
            own = member.relays and member.best == members[run.leaders[number]].rank
            if own or not coin(run.stream, run.missed[number]):
                seen, kinds = number, kinds + 1
        if kinds == 1:
            run.sizes[DECIDED] += 1
            member.holds = seen
            member.ever |= np.uint64(1) << np.uint64(seen)
        elif kinds > 1 or member.aware:
            run.sizes[DECIDED] += 1
            member.holds = NOBODY
            member.forced = 1  # until the next asker is known
            detectors += 1
    return detectors


@compiled
def decide_untracked(heard: float, none: float, run: Run) -> int:
    """Let all others judge the finals, class by class."""
    now = run.now
    detectors = 0
    for each in range(run.sizes[NOW]):
        count = now[each].count
        aware = count if now[each].forced else binomial(run.stream, count, heard)
        for group in range(2):
            left = aware if group == 0 else count - aware
            silent = binomial(run.stream, left, none)
            run.sizes[DECIDED] += left if group == 0 else left - silent
            left -= silent
            if group == 0:
                put(run, silent, NOBODY, now[each].ever, 1)
                detectors += silent
            else:
                put(run, silent, now[each].holds, now[each].ever, 0)
            rest = 1.0 - none
            for number in range(run.sizes[NAMED]):
                if run.missed[number] >= 1.0 or left <= 0:
                    continue
                alone = run.alone[number]
                found = binomial(run.stream, left, min(1.0, alone / rest) if rest > 0.0 else 0.0)
                left -= found
                rest -= alone
                ever = now[each].ever | (np.uint64(1) << np.uint64(number))
                put(run, found, number, ever, 0)
            put(run, left, NOBODY, now[each].ever, 1)
            detectors += left
    turn_over(run)
    return detectors


@compiled
def ask_again(
    rules: ElectionRules, round_: RoundBeginning, detectors: int, run: Run
) -> tuple[int, float]:
    """Return how many multicast the next Init, and how long before the round the first does."""
    members, now = run.members, run.now
    if rules.thinning == ALL:
        return detectors, rules.T_3
    if rules.thinning == DELAY:
        return _one_after_another(rules, round_.size, detectors, run)
    copies = 0
    for place in range(run.sizes[MEMBERS]):
        if members[place].alive and members[place].forced:
            own = members[place].size if rules.estimate == VIEW else round_.size
            members[place].forced = coin(run.stream, chance_below(rules, round_.K / own))
            copies += members[place].forced
    chance = thinned(rules, round_)
    for each in range(run.sizes[NOW]):
        asks = 0
        if now[each].forced:
            asks = binomial(run.stream, now[each].count, chance)
        put(run, asks, now[each].holds, now[each].ever, 1)
        put(run, now[each].count - asks, now[each].holds, now[each].ever, 0)
        copies += asks
    turn_over(run)
    return copies, rules.T_3


@compiled
def thinned(rules: ElectionRules, round_: RoundBeginning) -> float:
    """The chance that hash thinning lets an unknown member ask: the mean of K / N_i."""
    K, n, v = round_.K, rules.members, rules.view_prob
    if rules.estimate != VIEW:
        return chance_below(rules, K / round_.size)
    if n > WHOLE_GROUP or K <= 1.0:
        return min(1.0, K * (1.0 - (1.0 - v) ** n) / (n * v))
    if v == 1.0:
        return min(1.0, K / n)
    mean, all_ways = 0.0, math.lgamma(float(n))
    for others in range(n):  # known, of n - 1
        ways = all_ways - math.lgamma(others + 1.0) - math.lgamma(float(n - others))
        part = math.exp(ways + others * math.log(v) + (n - 1 - others) * math.log1p(-v))
        mean += part * min(1.0, K / (1.0 + others))
    return mean


@compiled
def _one_after_another(
    rules: ElectionRules, size: float, detectors: int, run: Run
) -> tuple[int, float]:
    """Let each wait a random part of the window, and ask unless it has heard another one by then.

    Members that have heard no other yet are counted. The next of them to ask is the first of this
    many draws from the rest of the law; each multicast, when it arrives, leaves p_mcastl of them.
    """
    arrivals = run.arrivals
    lam = math.log(max(size, 2.0)) + 1.0
    deaf = detectors
    copies = 0
    first = 0.0
    reached = 0.0  # where in the window: as a value of the law's distribution function
    head = tail = 0  # of the copies under way
    least = math.exp(-lam)
    while deaf > 0:
        u = reached + (1.0 - reached) * (1.0 - uniform(run.stream) ** (1.0 / deaf))
        at = rules.W * max(0.0, 1.0 + math.log(u + (1.0 - u) * least) / lam)
        if head < tail and arrivals[head % RING] <= at:
            part = min(1.0, arrivals[head % RING] / rules.W)
            head += 1
            # The law's distribution function at that instant, from where the search goes on.
            inner = (math.exp(lam * (part - 1.0)) - least) / (1.0 - least)
            reached = max(reached, min(1.0, inner))
            deaf = binomial(run.stream, deaf, rules.p_mcastl)
            continue
        reached = u
        deaf -= 1
        copies += 1
        if copies == 1:
            first = at
        if tail - head < RING:  # beyond, a copy has no effect: it changes no member's decision
            arrivals[tail % RING] = at + rules.T_3
            tail += 1
    return copies, rules.W + rules.T_3 - first


@compiled
def count_leaders(run: Run) -> None:
    """Check at the end of a round whether two live members take themselves for the leader."""
    leading = _leading(run)
    run.row[TWO] = 1.0 if leading > 1 else 0.0
    run.row[TWO_EVER] = max(run.row[TWO_EVER], run.row[TWO])


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
def judge(group: int, run: Run) -> None:
    """Judge what the group holds in the end."""
    members, now = run.members, run.now
    held = run.held
    for number in range(LEADERS + 1):
        held[number] = 0
    for place in range(run.sizes[MEMBERS]):
        if members[place].alive:
            held[members[place].holds] += 1
    for each in range(run.sizes[NOW]):
        held[now[each].holds] += now[each].count
    live = held[LEADERS]
    for number in range(run.sizes[NAMED]):
        live += held[number]
    run.row[LEADER] = np.nan
    if live == 0:
        run.row[WEAK] = run.row[WEAK_LIVE] = run.row[LEADERLESS] = np.nan
        return
    for number in range(run.sizes[NAMED]):
        part = held[number] / live
        run.row[WEAK] = max(run.row[WEAK], part)
        if part == 1.0:
            run.row[LEADER] = group - members[run.leaders[number]].rank
        if members[run.leaders[number]].alive:
            run.row[WEAK_LIVE] = max(run.row[WEAK_LIVE], part)
    run.row[LEADERLESS] = held[LEADERS] / live
    if run.row[WEAK_LIVE] == 1.0 and _leading(run) == 1:
        run.row[STRONG] = 1.0


@compiled
def end_of(rules: ElectionRules, round_: RoundBeginning) -> float:
    """Return the time from the first Init of a round to its end."""
    return round_.start + relaying(rules, round_.K) + 2.0 * rules.T_3


@compiled
def over(
    rules: ElectionRules, round_: RoundBeginning, heard: float, none: float, run: Run
) -> float:
    """Return when it was over, after its first Init; 0 if it had no effect."""
    late = 0
    for place in range(run.sizes[MEMBERS]):
        if run.members[place].alive:
            late = max(late, run.members[place].late)
    if run.sizes[DECIDED]:
        return float(end_of(rules, round_) + late)
    last = run.last
    if round_.number > 1:
        last = max(last, _last_init(rules, round_, run))
    finals = end_of(rules, round_) - 1.0
    for place in range(run.sizes[MEMBERS]):
        member = run.members[place]
        if member.crash == ALIVE_FOR_GOOD:
            continue  # dead before, or without a message
        hears = round_.number == 1 and place > 0  # the caller does not hear itself
        if hears and member.aware and member.crash > 1.0:
            last = max(last, 1.0)
        missed = none
        if member.relays:  # of the others' finals
            missed = none / rules.p_mcastl if rules.p_mcastl > 0.0 else 1.0
        if member.crash > finals and not coin(run.stream, missed):
            last = max(last, finals)
    fallen = run.sizes[FALLEN]
    lived = _alive_at(rules, round_, 1.0)
    if round_.number == 1 and binomial(run.stream, fallen, heard * lived):
        last = max(last, 1.0)
    lived = _alive_at(rules, round_, finals)
    if binomial(run.stream, fallen, (1.0 - none) * lived):
        last = max(last, finals)
    return float(last)


@compiled
def _alive_at(rules: ElectionRules, round_: RoundBeginning, when: float) -> float:
    """The chance that a member that crashes in this round has not done so yet."""
    gone = (when - (round_.start - rules.T_3)) / round_.length
    return max(0.0, min(1.0, 1.0 - gone))


@compiled
def _last_init(rules: ElectionRules, round_: RoundBeginning, run: Run) -> float:
    """Return when one of the Inits that asked for this round last arrived.

    Whether any but its sender has received it is drawn anew, and not taken from the participants.
    """
    others = _live(run) - 1
    for copy in range(round_.copies - 1, max(0, round_.copies - RING) - 1, -1):
        there = rules.T_3
        if rules.thinning == DELAY:
            there = run.arrivals[copy % RING] - (rules.W + rules.T_3 - round_.start)
        alive = 1.0 - rules.p_fail * (1.0 - _alive_at(rules, round_, there))
        if not coin(run.stream, (1.0 - (1.0 - rules.p_mcastl) * alive) ** others):
            return float(there)
    return 0.0


@compiled
def _live(run: Run) -> int:
    """Count the members alive when this round was opened."""
    live = run.sizes[FALLEN]
    for each in range(run.sizes[NOW]):
        live += run.now[each].count
    for place in range(run.sizes[MEMBERS]):
        live += run.members[place].alive or run.members[place].crash < ALIVE_FOR_GOOD
    return int(live)

"""The filter and the relay phase of the aggregated election: participants and results."""

from __future__ import annotations

import math

import numpy as np

from hustings.lab.kernels.compiling import compiled
from hustings.lab.kernels.draws import binomial, coin, uniform
from hustings.lab.kernels.probabilistic.aggregated import (
    ALIVE_FOR_GOOD,
    LEADERS,
    MEMBERS,
    NAMED,
    NEAR,
    NOBODY,
    ONE,
    PLACE,
    QUEUE,
    SENT,
    TOO_MANY_LEADERS,
    TOO_MANY_MESSAGES,
    TROUBLE,
    WORD,
    Run,
    bit,
    knows,
    new_rank,
    parts,
    place_of,
    preference,
    track,
    untracked,
)
from hustings.lab.kernels.probabilistic.rules import (
    RELAY_MEMBERS,
    RELAYED,
    UCASTS,
    VIEW,
    ElectionRules,
    RoundBeginning,
    chance_below,
    relaying,
    view_size,
)

LAST_PLACE = (1 << PLACE) - 1


@compiled
def filter_members(rules: ElectionRules, round_: RoundBeginning, run: Run) -> None:
    """Find the members that pass, and those that another member may take for one that passes."""
    members = run.members
    top = round_.K / round_.size
    if rules.estimate == VIEW:  # the smallest view that any member will ever meet
        mean = rules.members * rules.view_prob
        least = mean - 8.0 * math.sqrt(mean * (1.0 - rules.view_prob)) - 8.0
        top = round_.K / max(1.0, least)
    top = chance_below(rules, top)
    near = 0
    for place in range(run.sizes[MEMBERS]):
        members[place].passes = members[place].relays = members[place].late = 0
        if coin(run.stream, top):
            run.near[near] = place
            near += 1
    for _ in range(binomial(run.stream, untracked(run), top)):
        rank = new_rank(run, rules.members)
        place = track(run, rank, rules.members, view_size(rules))
        if place == NOBODY:
            return
        run.near[near] = place
        near += 1
    run.sizes[NEAR] = near
    _put_in_order(round_.number == 1, run)
    for each in range(near):
        member = members[run.near[each]]
        if rules.estimate == VIEW:
            member.hash = top * (1.0 - uniform(run.stream))
            member.passes = member.hash * member.size < round_.K
        else:
            member.passes = 1


@compiled
def _put_in_order(first: bool, run: Run) -> None:
    """Sort by id, the worst first, as members act at one instant. The caller begins last."""
    near, members = run.near, run.members
    for last in range(1, run.sizes[NEAR]):
        one, place = near[last], last
        while place > 0 and members[near[place - 1]].rank < members[one].rank:
            near[place] = near[place - 1]
            place -= 1
        near[place] = one
    if first and run.sizes[NEAR] > 0 and near[0] == 0:  # the caller, which is the worst of all
        for place in range(1, run.sizes[NEAR]):
            near[place - 1] = near[place]
        near[run.sizes[NEAR] - 1] = 0


@compiled
def hear_and_crash(
    rules: ElectionRules, round_: RoundBeginning, heard: float, place: int, run: Run
) -> None:
    members = run.members
    members[place].aware = members[place].forced or coin(run.stream, heard)
    members[place].forced = 0
    members[place].crash = ALIVE_FOR_GOOD
    if members[place].alive and coin(run.stream, rules.p_fail):
        pause = round_.start - rules.T_3  # in which no member crashes
        members[place].crash = pause + round_.length * uniform(run.stream)


@compiled
def _join(rules: ElectionRules, round_: RoundBeginning, one: int, run: Run) -> None:
    """Let a member begin to relay: what it prefers, and which members it tells."""
    members = run.members
    member = members[one]
    member.relays = 1
    member.best = preference(run, one, rules.bar)
    run.row[RELAYED] += 1.0
    if round_.number == 1:
        run.row[RELAY_MEMBERS] += 1.0
    for part in range(parts(run.sizes[MEMBERS])):
        run.links[one, part] = 0
    for each in range(run.sizes[NEAR]):
        other = run.near[each]
        if other == one:
            continue
        number = members[other].number
        if not (
            knows(member.row, members[other].rank, rules.bar)
            or run.met[one, other // WORD] & bit(other)
            or (number >= 0 and (member.ever >> np.uint64(number)) & ONE)
        ):
            continue
        if rules.estimate == VIEW and members[other].hash * member.size >= round_.K:
            continue
        run.links[one, other // WORD] |= bit(other)


@compiled
def _tell(p_ucastl: float, one: int, only: int, step: int, filled: int, run: Run) -> int:
    """Send a preference to one member, or to all; return where the queue ends then."""
    queue, near = run.queue, run.near
    best = run.members[one].best
    if filled + run.sizes[MEMBERS] > QUEUE:
        run.sizes[TROUBLE] = TOO_MANY_MESSAGES
        return filled
    sent = 0
    for each in range(run.sizes[NEAR] if only == NOBODY else 1):
        other = near[each] if only == NOBODY else only
        if only == NOBODY and not run.links[one, other // WORD] & bit(other):
            continue
        sent += 1
        if coin(run.stream, p_ucastl):
            continue
        queue[filled, 0] = best
        queue[filled, 1] = (step << (2 * PLACE)) | (one << PLACE) | other
        filled += 1
    run.sizes[SENT] += sent
    return filled


@compiled
def relay(rules: ElectionRules, round_: RoundBeginning, run: Run) -> None:
    """Play the relay phase, message by message: first sent, first received."""
    members = run.members
    p = rules.p_ucastl
    filled = done = 0
    run.sizes[SENT] = 0
    run.last = 0.0
    for each in range(run.sizes[NEAR]):
        place = run.near[each]
        there = members[place].alive and members[place].crash > round_.start
        if there and members[place].passes and members[place].aware:
            _join(rules, round_, place, run)
    for each in range(run.sizes[NEAR]):
        if members[run.near[each]].relays:
            filled = _tell(p, run.near[each], NOBODY, 1, filled, run)
    end = relaying(rules, round_.K)
    while done < filled and not run.sizes[TROUBLE]:
        theirs, rest = run.queue[done, 0], run.queue[done, 1]
        step, sender = rest >> (2 * PLACE), (rest >> PLACE) & LAST_PLACE
        place = rest & LAST_PLACE
        done += 1
        if step > end:
            break
        member = members[place]
        if not member.alive or member.crash <= round_.start + step:
            continue
        run.last = round_.start + step
        if not member.relays:
            if not rules.joins or member.aware:
                continue
            member.aware = 1
            member.late = members[sender].late + 1  # it is told how long the sender still relays
            if not member.passes:  # by its own computation; the sender's was different
                continue
            _join(rules, round_, place, run)
            filled = _tell(p, place, NOBODY, step + 1, filled, run)
        run.met[place, sender // WORD] |= bit(sender)
        run.links[place, sender // WORD] |= bit(sender)
        if theirs < member.best:
            member.best = theirs
            filled = _tell(p, place, NOBODY, step + 1, filled, run)
        elif theirs > member.best:
            filled = _tell(p, place, sender, step + 1, filled, run)
    run.row[UCASTS] += run.sizes[SENT]


@compiled
def speak(rules: ElectionRules, round_: RoundBeginning, heard: float, run: Run) -> int:
    """Send the final multicasts: how many, and which leaders they name."""
    members = run.members
    run.finals[:] = 0
    finals = 0
    when = round_.start + relaying(rules, round_.K)
    for place in range(run.sizes[MEMBERS]):
        if members[place].relays and members[place].crash <= when:
            members[place].relays = 0
        if not members[place].relays:
            continue
        finals += 1
        leader = place_of(run, members[place].best)
        if leader == NOBODY:
            rank = members[place].best
            leader = track(run, rank, rules.members, view_size(rules))
            if leader == NOBODY:
                return finals
            # It has lived through this round like all that were counted and not tracked.
            members[leader].aware = members[leader].forced or coin(run.stream, heard)
            members[leader].forced = 0
        if members[leader].number == NOBODY:
            if run.sizes[NAMED] >= LEADERS:
                run.sizes[TROUBLE] = TOO_MANY_LEADERS
                return finals
            members[leader].number = run.sizes[NAMED]
            run.leaders[run.sizes[NAMED]] = leader
            run.sizes[NAMED] += 1
        run.finals[members[leader].number] += 1
    return finals

"""The filter and the relay phase of the collapsed election: who takes part, and what results."""

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
    QUEUE,
    TOO_MANY_LEADERS,
    TOO_MANY_MESSAGES,
    TROUBLE,
    Run,
    has_learnt,
    knows,
    new_rank,
    place_of,
    preference,
    track,
    untracked,
)
from hustings.fast.compiling import compiled
from hustings.fast.draws import Stream, binomial, coin, uniform
from hustings.fast.terms import (
    RELAY_MEMBERS,
    RELAYED,
    UCASTS,
    VIEW,
    Beginning,
    Terms,
    relaying,
    view_size,
)


@compiled
def filter_members(
    terms: Terms, stream: Stream, views: np.uint64, round_: Beginning, run: Run
) -> None:
    """Who passes, and whom somebody else may take for one who does."""
    members = run.members
    top = round_.K / round_.size
    if terms.estimate == VIEW:  # the smallest view that one will ever meet
        mean = terms.members * terms.view_prob
        least = mean - 8.0 * math.sqrt(mean * (1.0 - terms.view_prob)) - 8.0
        top = round_.K / max(1.0, least)
    top = min(1.0, top)
    for place in range(run.sizes[MEMBERS]):
        members[place].near = coin(stream, top)
    for _ in range(binomial(stream, untracked(run), top)):
        rank = new_rank(run, stream, terms.members)
        place = track(run, stream, views, rank, terms.members, view_size(terms))
        if place == NOBODY:
            return
        members[place].near = 1
    for place in range(run.sizes[MEMBERS]):
        members[place].hash = top * (1.0 - uniform(stream)) if members[place].near else 1.0
        own = members[place].size if terms.estimate == VIEW else round_.size
        members[place].passes = members[place].near and members[place].hash * own < round_.K
        members[place].relays = 0


@compiled
def hear_and_crash(
    terms: Terms, stream: Stream, round_: Beginning, heard: float, place: int, run: Run
) -> None:
    members = run.members
    members[place].aware = members[place].forced or coin(stream, heard)
    members[place].forced = 0
    members[place].crash = ALIVE_FOR_GOOD
    if members[place].alive and coin(stream, terms.p_fail):
        members[place].crash = round_.length * uniform(stream)


@compiled
def _contacts(terms: Terms, round_: Beginning, one: int, other: int, run: Run) -> bool:
    """Whether a relay member sends its preference to another member."""
    members = run.members
    if one == other:
        return False
    if run.met[one, other] == round_.number:
        return True
    if not members[other].near:
        return False
    if terms.estimate == VIEW and members[other].hash * members[one].size >= round_.K:
        return False
    return knows(members, one, members[other].rank, terms.bar) or has_learnt(
        members, run.met, one, other
    )


@compiled
def _tell(
    terms: Terms,
    stream: Stream,
    round_: Beginning,
    one: int,
    only: int,
    step: int,
    filled: int,
    run: Run,
    row: NDArray[np.float64],
) -> int:
    """Send one's preference to one member, or to all; where the queue ends then."""
    low, high = (0, run.sizes[MEMBERS]) if only == NOBODY else (only, only + 1)
    for other in range(low, high):
        if only == NOBODY and not _contacts(terms, round_, one, other, run):
            continue
        row[UCASTS] += 1.0
        if coin(stream, terms.p_ucastl):
            continue
        if filled >= QUEUE:
            run.sizes[TROUBLE] = TOO_MANY_MESSAGES
            return filled
        run.queue[filled, 0] = one
        run.queue[filled, 1] = other
        run.queue[filled, 2] = run.members[one].best
        run.queue[filled, 3] = step
        filled += 1
    return filled


@compiled
def relay(
    terms: Terms, stream: Stream, round_: Beginning, run: Run, row: NDArray[np.float64]
) -> None:
    """The relay phase, message by message: first sent, first there."""
    members = run.members
    filled = 0
    for place in range(run.sizes[MEMBERS]):
        there = members[place].alive and members[place].crash > round_.start
        if there and members[place].passes and members[place].aware:
            members[place].relays = 1
            members[place].best = preference(members, run.met, run.sizes[MEMBERS], place, terms.bar)
            row[RELAYED] += 1.0
            if round_.number == 1:
                row[RELAY_MEMBERS] += 1.0
    for place in range(run.sizes[MEMBERS]):
        if members[place].relays:
            filled = _tell(terms, stream, round_, place, NOBODY, 1, filled, run, row)
    end = relaying(terms, round_.K)
    done = 0
    while done < filled and not run.sizes[TROUBLE]:
        sender, place = run.queue[done, 0], run.queue[done, 1]
        theirs, step = run.queue[done, 2], run.queue[done, 3]
        done += 1
        if step > end:
            return
        if not members[place].alive or members[place].crash <= round_.start + step:
            continue
        if not members[place].relays:
            if not terms.joins or members[place].aware or not members[place].passes:
                continue
            members[place].aware = 1
            members[place].relays = 1
            members[place].best = preference(members, run.met, run.sizes[MEMBERS], place, terms.bar)
            row[RELAYED] += 1.0
            if round_.number == 1:
                row[RELAY_MEMBERS] += 1.0
            filled = _tell(terms, stream, round_, place, NOBODY, step + 1, filled, run, row)
        run.met[place, sender] = round_.number
        if theirs < members[place].best:
            members[place].best = theirs
            filled = _tell(terms, stream, round_, place, NOBODY, step + 1, filled, run, row)
        elif theirs > members[place].best:
            filled = _tell(terms, stream, round_, place, sender, step + 1, filled, run, row)


@compiled
def speak(
    terms: Terms, stream: Stream, views: np.uint64, round_: Beginning, heard: float, run: Run
) -> int:
    """The final multicasts: how many, and which leaders they name."""
    members = run.members
    run.finals[:] = 0
    finals = 0
    when = round_.start + relaying(terms, round_.K)
    for place in range(run.sizes[MEMBERS]):
        if members[place].relays and members[place].crash <= when:
            members[place].relays = 0
        if not members[place].relays:
            continue
        finals += 1
        leader = place_of(members, run.sizes[MEMBERS], members[place].best)
        if leader == NOBODY:
            rank = members[place].best
            leader = track(run, stream, views, rank, terms.members, view_size(terms))
            if leader == NOBODY:
                return finals
            # It has lived through this round like all that were counted and not tracked.
            members[leader].aware = members[leader].forced or coin(stream, heard)
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

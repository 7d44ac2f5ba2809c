"""The collapsed election where K is the whole of a large group: counted, not played."""

from __future__ import annotations

import numpy as np

from hustings.lab.kernels.collapsed import (
    DEAD,
    LEADERS,
    MEMBERS,
    NAMED,
    NOBODY,
    NOW,
    TOO_MANY_LEADERS,
    TROUBLE,
    Run,
    place_of,
    track,
)
from hustings.lab.kernels.compiling import compiled
from hustings.lab.kernels.deciding import count_leaders
from hustings.lab.kernels.draws import binomial, coin
from hustings.lab.kernels.terms import FINALS, MCASTS, RELAYED, UCASTS, Beginning, Terms, view_size


@compiled
def everybody(terms: Terms, round_: Beginning, run: Run) -> None:
    """K is the whole of a large group: all that have heard of it relay, and settle on rank 0."""
    members = run.members
    heard = 1.0 - terms.p_mcastl**round_.copies
    speakers = 0
    best = place_of(run, 0)
    if best == NOBODY:
        best = track(run, 0, terms.members, view_size(terms))
        if best == NOBODY:
            return
    for place in range(run.sizes[MEMBERS]):
        if members[place].alive:
            aware = members[place].forced or coin(run.stream, heard)
            members[place].alive = not coin(run.stream, terms.p_fail)
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
        dead = binomial(run.stream, count, terms.p_fail)
        run.now[each].count -= dead
        run.sizes[DEAD] += dead
        live = run.now[each].count
        speakers += live if run.now[each].forced else binomial(run.stream, live, heard)
        if speakers > 0:
            run.now[each].holds = members[best].number
    if speakers > 0:
        for place in range(run.sizes[MEMBERS]):
            members[place].holds = members[best].number
    run.row[UCASTS] += _mean_unicasts(terms, speakers)
    run.row[MCASTS] += speakers
    run.row[FINALS] += speakers
    run.row[RELAYED] += speakers
    count_leaders(run)


@compiled
def _mean_unicasts(terms: Terms, speakers: int) -> float:
    """First preferences, improvements, replies to worse ones, and replies to those in between."""
    v = terms.view_prob
    steps = np.zeros(256)  # from the k-th best on: expected improvements until rank 0 is reached
    below_k, weighted, improvements, mass = 0.0, 0.0, 0.0, v
    for k in range(256):
        if k > 0:
            steps[k] = 1.0 + weighted / below_k
        weighted += mass * steps[k]
        below_k += mass
        improvements += mass * steps[k]
        mass *= 1.0 - v
    share = speakers / terms.members * (1.0 - terms.p_ucastl)
    between = improvements - (1.0 - v)
    per_link = 1.0 + improvements + share * (1.0 - v) + share * between
    return speakers * terms.members * v * per_link

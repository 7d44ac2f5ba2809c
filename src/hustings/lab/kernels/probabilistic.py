"""Probabilistic elections by the million, in groups to a billion: `play`.

Run number k of a ballot and a seed is the same run whoever plays it, alone or among others.
Metrics bear the names and meanings that the event simulator gives them.
"""

from __future__ import annotations

import numpy as np

from hustings.core.errors import BadInput
from hustings.lab.kernels.ballot import Ballot
from hustings.lab.kernels.collapsed import (
    TOO_MANY_CLASSES,
    TOO_MANY_LEADERS,
    TOO_MANY_MESSAGES,
    TOO_MANY_TRACKED,
    new_run,
)
from hustings.lab.kernels.counter import limit, root
from hustings.lab.kernels.results import Played
from hustings.lab.kernels.rounds import play_runs
from hustings.lab.kernels.terms import ALL, DELAY, EXACT, GOSSIP, HASH, METRICS, VIEW, Terms

LAST_RUN = 1 << 48
MOST_AT_ONCE = 10_000_000
_ESTIMATES = {"exact": EXACT, "gossip": GOSSIP, "view": VIEW}
_THINNINGS = {"delay": DELAY, "hash": HASH, "all": ALL}
_TROUBLES = {
    TOO_MANY_TRACKED: "members would have to be tracked one by one",
    TOO_MANY_LEADERS: "leaders were named",
    TOO_MANY_CLASSES: "kinds of members would have to be told apart",
    TOO_MANY_MESSAGES: "messages were sent in one relay phase",
}


def play(ballot: Ballot, seed: int, first: int, last: int) -> Played:
    """Runs number `first` to `last` - 1.

    >>> alone = play(Ballot(members=1), 1, 0, 2).metrics
    >>> alone["strong"].tolist(), alone["messages"].tolist()
    ([1.0, 1.0], [2.0, 2.0])
    """
    if not 0 <= first < last <= LAST_RUN:
        raise BadInput(f"runs must be numbered from 0 to {LAST_RUN:,}, the first before the last")
    if last - first > MOST_AT_ONCE:
        raise BadInput(f"at most {MOST_AT_ONCE:,} runs are played at once, not {last - first:,}")
    rows = np.zeros((last - first, len(METRICS)))
    sizes = np.array(ballot.sizes)
    trouble = play_runs(_terms(ballot), sizes, root(seed), first, last, new_run(), rows)
    if trouble:
        raise BadInput(
            f"engine 'fast' gave up: too many {_TROUBLES[trouble]}; take --engine events"
        )
    columns = {name: rows[:, place] for place, name in enumerate(METRICS)}
    columns["time"] = columns["time"] * ballot.delay
    return Played(columns, rows[:, 0] < 0)  # none is given up: trouble ends them all


def _terms(ballot: Ballot) -> Terms:
    return Terms(
        members=ballot.members,
        bar=limit(ballot.view_prob),
        view_prob=ballot.view_prob,
        p_ucastl=ballot.p_ucastl,
        p_mcastl=ballot.p_mcastl,
        p_fail=ballot.p_fail,
        estimate=_ESTIMATES[ballot.estimate],
        thinning=_THINNINGS[ballot.thinning],
        joins=ballot.join_on_contact,
        T_2=ballot.T_2 or 0.0,
        pace=ballot.pace,
        T_3=ballot.T_3,
        W=ballot.W,
        skew=ballot.hash_skew,
    )

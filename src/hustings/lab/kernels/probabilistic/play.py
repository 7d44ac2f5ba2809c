"""Probabilistic elections by the million, in groups to a billion: `play`.

Run number k of some parameters and a seed is the same run in any process, alone or among others.
Metrics have the names and meanings of the event simulator.
"""

from __future__ import annotations

import numpy as np

from hustings.core.errors import BadInput
from hustings.lab.kernels.counter import limit, root
from hustings.lab.kernels.probabilistic.aggregated import (
    TOO_MANY_CLASSES,
    TOO_MANY_LEADERS,
    TOO_MANY_MESSAGES,
    TOO_MANY_TRACKED,
    new_run,
)
from hustings.lab.kernels.probabilistic.parameters import ProbabilisticParameters
from hustings.lab.kernels.probabilistic.rounds import play_runs
from hustings.lab.kernels.probabilistic.rules import (
    ALL,
    DELAY,
    EXACT,
    GOSSIP,
    HASH,
    METRICS,
    VIEW,
    ElectionRules,
)
from hustings.lab.kernels.results import Columns

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


def play(parameters: ProbabilisticParameters, seed: int, first: int, last: int) -> Columns:
    """Play runs number `first` to `last` - 1.

    >>> alone = play(ProbabilisticParameters(members=1), 1, 0, 2).metrics
    >>> alone["strong"].tolist(), alone["messages"].tolist()
    ([1.0, 1.0], [2.0, 2.0])
    """
    if not 0 <= first < last <= LAST_RUN:
        raise BadInput(f"runs must be numbered from 0 to {LAST_RUN:,}, the first before the last")
    if last - first > MOST_AT_ONCE:
        raise BadInput(f"at most {MOST_AT_ONCE:,} runs are played at once, not {last - first:,}")
    rows = np.zeros((last - first, len(METRICS)))
    sizes = np.array(parameters.sizes)
    trouble = play_runs(_terms(parameters), sizes, root(seed), first, last, new_run(), rows)
    if trouble:
        raise BadInput(
            f"engine 'fast' gave up: too many {_TROUBLES[trouble]}; take --engine events"
        )
    columns = {name: rows[:, place] for place, name in enumerate(METRICS)}
    columns["time"] = columns["time"] * parameters.delay
    return Columns(columns, rows[:, 0] < 0)  # none is given up: trouble ends them all


def _terms(parameters: ProbabilisticParameters) -> ElectionRules:
    return ElectionRules(
        members=parameters.members,
        bar=limit(parameters.view_prob),
        view_prob=parameters.view_prob,
        p_ucastl=parameters.p_ucastl,
        p_mcastl=parameters.p_mcastl,
        p_fail=parameters.p_fail,
        estimate=_ESTIMATES[parameters.estimate],
        thinning=_THINNINGS[parameters.thinning],
        joins=parameters.join_on_contact,
        T_2=parameters.T_2 or 0.0,
        pace=parameters.pace,
        T_3=parameters.T_3,
        W=parameters.W,
        skew=parameters.hash_skew,
    )

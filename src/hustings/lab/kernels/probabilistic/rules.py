"""The rules of an aggregated probabilistic election, and what it returns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hustings.lab.kernels.compiling import compiled

METRICS = (  # in the order of the event simulator
    "strong",
    "weak",
    "weak_live",
    "leaderless",
    "rounds",
    "two_leaders",
    "two_leaders_ever",
    "ucasts",
    "mcasts",
    "reinitiations",
    "relay_members",
    "relayed",
    "election_messages",
    "answer_messages",
    "coordinator_messages",
    "other_messages",
    "messages",
    "time",
    "leader",
)
(
    STRONG,
    WEAK,
    WEAK_LIVE,
    LEADERLESS,
    ROUNDS,
    TWO,
    TWO_EVER,
    UCASTS,
    MCASTS,
    AGAIN,
    RELAY_MEMBERS,
    RELAYED,
    CALLS,  # and preferences
    ANSWERS,  # of which there are none
    FINALS,
    OTHERS,  # likewise
    MESSAGES,
    TIME,
    LEADER,
) = range(len(METRICS))

EXACT, GOSSIP, VIEW = 0, 1, 2  # where N_i comes from
DELAY, HASH, ALL = 0, 1, 2  # which member asks again
WHOLE_GROUP = 600  # up to this size also K = N is played, and views counted, member by member
VARIATES = 64  # of a gossiped estimate of the size, as in the substrate


class ElectionRules(NamedTuple):
    """The rules of an election; times in delays."""

    members: int
    bar: np.uint64  # of the view probability
    view_prob: float
    p_ucastl: float
    p_mcastl: float
    p_fail: float
    estimate: int
    thinning: int
    joins: bool
    T_2: float  # 0: pace K
    pace: float
    T_3: float
    W: float
    skew: float  # of the hash: 1 if it is fair


class RoundBeginning(NamedTuple):
    """How a round begins."""

    number: int
    K: float
    size: float  # N_i, where all have the same
    copies: int  # of the Init
    start: float  # when, after the first of them was sent
    length: float  # of the time in which members crash, which begins T_3 before `start`


@compiled
def view_size(rules: ElectionRules) -> float:
    """The view probability where the size of views matters, else 0."""
    return rules.view_prob if rules.estimate == VIEW else 0.0


@compiled
def relaying(rules: ElectionRules, K: float) -> float:
    return rules.T_2 if rules.T_2 > 0.0 else rules.pace * K


@compiled
def chance_below(rules: ElectionRules, bar: float) -> float:
    """The chance of a hash below a bar."""
    if rules.skew == 1.0:
        return min(1.0, bar)
    return float(min(1.0, bar) ** (1.0 / rules.skew))

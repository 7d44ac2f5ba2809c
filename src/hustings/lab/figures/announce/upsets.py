"""Claims about groups that lose a leader, gain a member or miss announcements, and about timers."""

from __future__ import annotations

import math

from hustings.lab.figures.announce import forms
from hustings.lab.figures.announce.claims import MODELS, Claim, Look, loss_of
from hustings.lab.figures.announce.measurements import (
    CORRELATED,
    LOSS,
    MESSAGES,
    NONE,
    UNCORRELATED,
    disturbed,
    start,
    watched,
)
from hustings.lab.figures.figure import ClaimVerdict, Finding
from hustings.lab.figures.judging import above, limit, same, shown, together, too_few
from hustings.lab.figures.measurement import Measurement

# The leader departs

DEPARTING = 20


# Loss model, loss, and T_L in periods: a long T_L; one short for its loss; one uncorrelated.
DEPARTURES = ((CORRELATED, 0.4, 5), (CORRELATED, 0.7, 3), (UNCORRELATED, 0.4, 5))


def _departure(loss_model: str, loss: float, periods: int) -> Measurement:
    return disturbed("leader-crash", "le-s", DEPARTING, loss_model, loss, T_L=str(periods))


def _same_departure(says: str, look: Look) -> Finding:
    legs = []
    for model, loss, periods in DEPARTURES:
        cells = [_departure(model, loss, periods), _departure(NONE, loss, periods)]
        lossy, plain = look(cells, "reestablishment_delay", forms.departure)
        told = f"{model}, l = {loss:g}, T_L = {periods} T_A, and without loss"
        legs.append(same(told, lossy, plain))
    return together(says, legs)


# A member joins

JOINED = 10


def _joiner_larger(says: str, look: Look) -> Finding:
    legs = []
    for model in MODELS:
        cell = _joining("join-larger", "le-s", model)
        (joined,) = look([cell], "reestablishment_delay", forms.larger)
        (began,) = look([start("le-s", JOINED + 1, model)], "leadership_delay", forms.leadership)
        legs.append(same(loss_of(model), joined, began))
    return together(says, legs)


def _joiner_smaller(says: str, look: Look) -> Finding:
    legs = []
    for model in MODELS:
        le_s, le_a = (
            look([_joining("join-smaller", name, model)], "reestablishment_delay", forms.smaller)[0]
            for name in ("le-s", "le-a")
        )
        legs.append(same(loss_of(model), le_s, le_a))
    return together(says, legs)


def _joining(scenario: str, protocol: str, loss_model: str) -> Measurement:
    return disturbed(scenario, protocol, JOINED, loss_model, T_L="inf")


# No departure

LISTENERS = 20
HORIZON = 300.0
PERIODS = 3  # well above the 1/(1-l) = 1.67 announcements that one receipt takes on average
SELDOM = 0.01  # share of the time


def _vigil(loss_model: str) -> Measurement:
    return watched(LISTENERS, loss_model, LOSS, PERIODS, HORIZON)


def _seldom(says: str, look: Look) -> Finding:
    legs = []
    for model in (CORRELATED, UNCORRELATED):
        (wrong,) = look([_vigil(model)], "inconsistent_fraction", forms.inconsistent)
        off = (wrong.mean - SELDOM) / wrong.stderr if wrong.stderr else math.inf
        verdict = ClaimVerdict.UNDECIDED
        if not too_few([wrong]) and abs(off) > limit(2):
            verdict = ClaimVerdict.FAILS if off > 0 else ClaimVerdict.HOLDS
        evidence = (
            f"T_L = {PERIODS} T_A, l = {LOSS:g}, N = {LISTENERS}: somebody is wrong for "
            f"{100 * wrong.mean:.1f} % of the time."
        )
        legs.append(Finding(f"at most {SELDOM:.0%} of the time, {model}", verdict, evidence))
    return together(says, legs)


# Timers

LAMBDAS = (5, 10)
TIMED = (10, 100, 500)


def _exponential(members: int, steepness: int) -> Measurement:
    return start("le-s", members, aims=MESSAGES, law="exponential", lam=str(steepness))


def _fewer_messages(says: str, look: Look) -> Finding:
    legs = []
    for members in TIMED:
        uniform = look([start("le-s", members)], "num_msgs", forms.le_messages)
        for steepness in LAMBDAS:
            steep = look([_exponential(members, steepness)], "num_msgs", forms.le_messages)
            told = f"N = {members}, lambda = {steepness}"
            found = above(told, uniform, steep)
            numbers = f"{shown(steep[0])}, uniform {shown(uniform[0])}."
            legs.append(Finding(told, found.verdict, numbers))
    return together(says, legs)


UPSETS = (
    Claim(
        "a leader's departure takes as long to mend under every loss model",
        "5.3.2, 5.4.4",
        tuple(
            _departure(each, loss, periods)
            for model, loss, periods in DEPARTURES
            for each in (NONE, model)
        ),
        _same_departure,
    ),
    Claim(
        "after a better member joins it takes as long as after a start",
        "5.4.4",
        tuple(
            cell
            for model in MODELS
            for cell in (_joining("join-larger", "le-s", model), start("le-s", JOINED + 1, model))
        ),
        _joiner_larger,
    ),
    Claim(
        "after a worse member joins LE-S and LE-A take as long",
        "5.4.4",
        tuple(
            _joining("join-smaller", name, model) for model in MODELS for name in ("le-s", "le-a")
        ),
        _joiner_smaller,
    ),
    Claim(
        "T_L > T_A E[# consecutive lost] avoids false departures",
        "5.3.4, 5.4.4",
        (_vigil(CORRELATED), _vigil(UNCORRELATED)),
        _seldom,
    ),
    Claim(
        "exponential timers give fewer messages",
        "5.4.3",
        tuple(
            cell
            for members in TIMED
            for cell in (
                start("le-s", members),
                *(_exponential(members, steepness) for steepness in LAMBDAS),
            )
        ),
        _fewer_messages,
    ),
)

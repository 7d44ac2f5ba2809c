"""`announce-scale`: time and messages until convergence in groups of ten to a million."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from hustings.lab.figures.announce import forms
from hustings.lab.figures.announce.against_sup import AGREE, FAMILY
from hustings.lab.figures.announce.measurements import CORRELATED, LOSS, UNCORRELATED, start
from hustings.lab.figures.figure import (
    Axis,
    ClaimVerdict,
    Curve,
    CurveFigure,
    Finding,
    MeasuredPoint,
    Panel,
)
from hustings.lab.figures.judging import above, agrees, limit, shown, too_few
from hustings.lab.figures.measurement import Measurement

# Sizes, and the runs for each: a million members take a fifth of a second and more.
RUNS = {
    10: 100_000,
    100: 100_000,
    1_000: 40_000,
    10_000: 4_000,
    100_000: 500,
    1_000_000: 100,
}
STEEP = "10"  # for exponential timers
LARGE = 100  # members from which steep timers are said to save messages
BY_SIZE = Axis("members N", lambda cell: cell.members, logarithmic=True)

Points = Mapping[str, Sequence[MeasuredPoint]]


def _groups(protocol: str, loss_model: str) -> tuple[Measurement, ...]:
    return tuple(
        msgspec.structs.replace(start(protocol, members, loss_model), runs=runs)
        for members, runs in RUNS.items()
    )


def _steep(loss_model: str) -> tuple[Measurement, ...]:
    timers = (("law", "exponential"), ("lam", STEEP))
    return tuple(
        msgspec.structs.replace(cell, settings=(*cell.settings, *timers))
        for cell in _groups("le-s", loss_model)
    )


EXPONENTIAL = "LE-S, exponential timers"
MESSAGES, IF_CORRELATED = ": messages", ": messages, correlated"


def _levels_off(points: Sequence[MeasuredPoint]) -> Finding:
    """Groups grow tenfold: does the last step add clearly less than the first?"""
    claim = "under uncorrelated loss the delay of LE-S levels off as N grows"
    if doubt := too_few(points):
        return Finding(claim, ClaimVerdict.UNDECIDED, doubt)
    one, two, *_, late, last = points
    first, final = two.mean - one.mean, last.mean - late.mean
    error = math.hypot(last.stderr, late.stderr, 0.5 * two.stderr, 0.5 * one.stderr)
    beyond = (final - first / 2) / error  # half as much would count as levelling off
    verdict = ClaimVerdict.UNDECIDED
    if abs(beyond) > limit(1):
        verdict = ClaimVerdict.FAILS if beyond > 0 else ClaimVerdict.HOLDS
    evidence = (
        f"From N = {one.members:,} to {two.members:,} it grows by {first:.2f}, from "
        f"{late.members:,} to {last.members:,} by {final:.2f}: {shown(last)} in the end."
    )
    return Finding(claim, verdict, evidence)


def _from(points: Sequence[MeasuredPoint], least: int) -> list[MeasuredPoint]:
    return [each for each in points if each.members >= least]


def _judge(points: Points) -> list[Finding]:
    uniform = points[f"LE-S{MESSAGES}"]
    return [
        _levels_off(points["LE-S"]),
        above("LE-M converges sooner than LE-S", points["LE-S"], points["LE-M"]),
        above("LE-S sends more messages than SUP", uniform, points[f"SUP{MESSAGES}"]),
        above(
            f"exponential timers give fewer messages, in groups of {LARGE} and more",
            _from(uniform, LARGE),
            _from(points[f"{EXPONENTIAL}{MESSAGES}"], LARGE),
        ),
        above(
            "AL, where nobody is suppressed, sends more than LE-S",
            points[f"AL{MESSAGES}"],
            uniform,
            theirs=False,
        ),
        agrees(AGREE, [point for each in points.values() for point in each]),
    ]


TIMES = Panel(
    f"time, uncorrelated loss, l = {LOSS}",
    "E[tmax]",
    (
        Curve("LE-S", "tmax", _groups("le-s", UNCORRELATED), forms.le_tmax),
        Curve(EXPONENTIAL, "tmax", _steep(UNCORRELATED), forms.le_tmax, look="C2", mark="^"),
        Curve("LE-M", "tmax", _groups("le-m", UNCORRELATED), forms.le_m_tmax, look="C4", mark="D"),
        Curve("AL", "tmax", _groups("al", UNCORRELATED), forms.al_tmax, look="C3", mark="v"),
        Curve("SUP", "tmax", _groups("sup", UNCORRELATED), look="C1", mark="s"),
    ),
    axis=BY_SIZE,
)

COSTS = Panel(
    f"messages, uncorrelated loss, l = {LOSS}",
    "E[num_msgs]",
    (
        Curve(f"LE-S{MESSAGES}", "num_msgs", _groups("le-s", UNCORRELATED)),
        Curve(f"{EXPONENTIAL}{MESSAGES}", "num_msgs", _steep(UNCORRELATED), look="C2", mark="^"),
        Curve(f"LE-M{MESSAGES}", "num_msgs", _groups("le-m", UNCORRELATED), look="C4", mark="D"),
        Curve(
            f"AL{MESSAGES}",
            "num_msgs",
            _groups("al", UNCORRELATED),
            forms.al_messages,
            look="C3",
            mark="v",
        ),
        Curve(f"SUP{MESSAGES}", "num_msgs", _groups("sup", UNCORRELATED), look="C1", mark="s"),
    ),
    logarithmic=True,
    axis=BY_SIZE,
)

CORRELATED_COSTS = Panel(
    f"messages, correlated loss, l = {LOSS}",
    "E[num_msgs]",
    (
        Curve(f"LE-S{IF_CORRELATED}", "num_msgs", _groups("le-s", CORRELATED), forms.le_messages),
        Curve(
            f"{EXPONENTIAL}{IF_CORRELATED}",
            "num_msgs",
            _steep(CORRELATED),
            forms.le_messages,
            look="C2",
            mark="^",
        ),
        Curve(
            f"SUP{IF_CORRELATED}",
            "num_msgs",
            _groups("sup", CORRELATED),
            forms.sup_messages,
            look="C1",
            mark="s",
        ),
    ),
    logarithmic=True,
    axis=BY_SIZE,
)

SCALE = CurveFigure(
    name="announce-scale",
    family=FAMILY,
    title="Announce-listen elections in groups of 10 to 10^6",
    source="Announce-listen thesis, chapter 5, in larger groups than its 500",
    shows="Time and messages until convergence in growing groups; the chapter says what becomes "
    "of them as N grows.",
    panels=(TIMES, COSTS, CORRELATED_COSTS),
    judge=_judge,
    notes=(
        f"T_S = T_A = 1, Delta = 0.1, T_L infinite; exponential timers with lambda = {STEEP}. With "
        "uniform timers the share Delta/T_S of the group wakes before the first message is there: "
        "messages grow as N, whatever is suppressed. No closed form is known for messages under "
        "uncorrelated loss, but for AL. Larger groups are given fewer runs.",
    ),
)

FIGURES = (SCALE,)

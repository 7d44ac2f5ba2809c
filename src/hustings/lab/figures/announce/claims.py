"""The claims of the thesis's comparison of delays and messages, each judged by measured cells.

A claim names the cells that it needs and computes its verdict from them; nothing here fixes the
verdict beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hustings.lab.figures.announce import forms
from hustings.lab.figures.announce.against_al import crossing, pair, small
from hustings.lab.figures.announce.by_loss import LOSSES
from hustings.lab.figures.announce.first_waker import first_rounds
from hustings.lab.figures.announce.measurements import (
    COLLISION,
    CORRELATED,
    DELAY,
    LOSS,
    NONE,
    SLEEP,
    UNCORRELATED,
    starts,
)
from hustings.lab.figures.figure import ClaimVerdict, Curve, Finding, Form, MeasuredPoint, point
from hustings.lab.figures.judging import (
    above,
    constant,
    equal,
    gap,
    limit,
    shown,
    together,
    too_few,
)
from hustings.lab.figures.measurement import Measurement
from hustings.lab.figures.measuring import Results

MODELS = (NONE, CORRELATED, UNCORRELATED)
LOSSY = (CORRELATED, UNCORRELATED)
SOME = (10, 100)  # sizes for claims that need no curve


class Look:
    """Points from measured cells; it remembers every point that has a closed form."""

    def __init__(self, results: Results) -> None:
        self._results = results
        self.compared: list[MeasuredPoint] = []

    def __call__(
        self,
        cells: Sequence[Measurement],
        metric: str,
        exact: Form | None = None,
        less: float = 0.0,
    ) -> list[MeasuredPoint]:
        curve = Curve("", metric, tuple(cells), exact, less=less)
        points = [point(curve, cell, self._results[cell]) for cell in cells]
        self.compared += [each for each in points if each.exact is not None]
        return points


@dataclass(frozen=True, slots=True)
class Claim:
    """What the thesis says, where it says so, and how to judge it."""

    says: str
    section: str
    needs: tuple[Measurement, ...]
    judge: Callable[[str, Look], Finding]


def _independent(says: str, look: Look) -> Finding:
    return constant(says, look(starts("le-s"), "tmax", forms.le_tmax))


def _independent_correlated(says: str, look: Look) -> Finding:
    legs = [
        constant(
            f"l = {loss:g}",
            look(starts("le-s", CORRELATED, loss), "tmax", forms.le_tmax),
        )
        for loss in LOSSES
        if loss
    ]
    return together(says, legs)


FEW, MORE, MOST = 5, 50, 500  # each ten times the one before


def _levels_off(says: str, look: Look) -> Finding:
    """Groups grow tenfold: does the second step add clearly less than the first?"""
    cells = starts("le-s", UNCORRELATED, sizes=(FEW, MORE, MOST))
    few, more, most = points = look(cells, "tmax", forms.le_tmax)
    first, second = more.mean - few.mean, most.mean - more.mean
    error = math.hypot(most.stderr, 1.5 * more.stderr, 0.5 * few.stderr)
    beyond = (second - first / 2) / error  # half as much would count as levelling off
    verdict = ClaimVerdict.UNDECIDED
    if not too_few(points) and abs(beyond) > limit(1):
        verdict = ClaimVerdict.FAILS if beyond > 0 else ClaimVerdict.HOLDS
    evidence = (
        f"l = {LOSS:g}: from N = {FEW} to {MORE} the delay grows by {first:.2f}, from {MORE} to "
        f"{MOST} by {second:.2f} (closed form {forms.growth(MORE, MOST, LOSS):.2f}): as log N."
        if verdict is ClaimVerdict.FAILS
        else f"N = {FEW}, {MORE}, {MOST}: {', '.join(shown(each) for each in points)}."
    )
    return Finding(says, verdict, evidence)


def _beside_al(look: Look, collision: float) -> tuple[list[MeasuredPoint], list[MeasuredPoint]]:
    le, al = pair(collision)
    return look(le, "tmax", forms.le_tmax), look(al, "tmax", forms.al_tmax)


def _al_gap(says: str, look: Look) -> Finding:
    le, al = _beside_al(look, 0.0)
    return together(
        says,
        [
            gap("N < 70", small(le), small(al), lambda _: SLEEP),
            gap("all N", le, al, lambda _: SLEEP),
        ],
    )


def _overtakes(says: str, look: Look) -> Finding:
    legs = []
    for told, collision in (("without adjusted loss", 0.0), ("with adjusted loss", COLLISION)):
        le, al = _beside_al(look, collision)
        legs.append(crossing(told, le, al, theirs=True))
    return together(says, legs)


def some(protocol: str, loss_model: str, sizes: tuple[int, ...] = SOME) -> tuple[Measurement, ...]:
    """Simultaneous starts of a few sizes."""
    return starts(protocol, loss_model, sizes=sizes)


def _first_round(says: str, look: Look) -> Finding:
    spoken = first_rounds(starts("le-m", UNCORRELATED))
    sup = starts("sup", UNCORRELATED)
    legs = [
        equal("times, uncorrelated", look(spoken, "first_round_time"), look(sup, "tmax")),
        equal("messages, uncorrelated", look(spoken, "first_round"), look(sup, "num_msgs")),
    ]
    for model in (NONE, CORRELATED):
        le_m, sup = (some(name, model) for name in ("le-m", "sup"))
        one = look(le_m, "first_round", forms.sup_messages)
        other = look(sup, "num_msgs", forms.sup_messages)
        legs.append(equal(f"messages, {loss_of(model)}", one, other))
    return together(says, legs)


def _le_m_wins(says: str, look: Look) -> Finding:
    le, le_m = (starts(name, UNCORRELATED) for name in ("le-s", "le-m"))
    return together(
        says,
        [
            above(
                "time",
                look(le, "tmax", forms.le_tmax),
                look(le_m, "tmax", forms.le_m_tmax),
            ),
            above("messages", look(le, "num_msgs"), look(le_m, "num_msgs")),
        ],
    )


def _sup_bounds(says: str, look: Look) -> Finding:
    legs = []
    for model in MODELS:
        le_m, sup = (some(name, model) for name in ("le-m", "sup"))
        one = look(le_m, "tmax")
        legs.append(
            above(f"{loss_of(model)}, SUP's last message", one, look(sup, "tmax", forms.sup_tmax))
        )
        if model == NONE:
            halt = look(sup, "t_halt", forms.sup_halt, DELAY)
            legs.append(equal("no loss, all of SUP know, less Delta: the same", one, halt))
    return together(says, legs)


def _le_above_sup(says: str, look: Look) -> Finding:
    legs = []
    for model in MODELS:
        le, sup = (starts(name, model) for name in ("le-s", "sup"))
        for told, metric, le_form, sup_form in (
            ("time", "tmax", forms.le_tmax, forms.sup_tmax),
            ("messages", "num_msgs", forms.le_messages, forms.sup_messages),
        ):
            one, other = look(le, metric, le_form), look(sup, metric, sup_form)
            legs.append(above(f"{told}, {loss_of(model)}", one, other))
    return together(says, legs)


def loss_of(model: str) -> str:
    """A loss model in words."""
    return "no loss" if model == NONE else model


# The protocols, and the closed forms that are known for each if losses are correlated.
WORST: tuple[tuple[str, tuple[int, ...], str, Form | None], ...] = (
    ("le-s", SOME, "tmax", forms.le_tmax),
    ("le-s", SOME, "num_msgs", forms.le_messages),
    ("le-m", SOME, "tmax", None),
    ("le-m", SOME, "num_msgs", forms.le_m_messages),
    ("le-a", SOME, "tmax", None),
    ("le-a", SOME, "num_msgs", forms.le_a_messages),
    ("sup", (5, 10, 20, 100), "num_msgs", forms.sup_messages),
)


def _worst_case(says: str, look: Look) -> Finding:
    legs = []
    for protocol, sizes, metric, form in WORST:
        corr, uncorr = (look(some(protocol, model, sizes), metric, form) for model in LOSSY)
        legs.append(above(f"{protocol} {metric}", uncorr, corr))
    return together(says, legs)


COMPARISONS = (
    Claim(
        "without loss the delay of LE-S does not depend on N",
        "5.4.1",
        starts("le-s"),
        _independent,
    ),
    Claim(
        "nor does it under correlated loss",
        "5.4.1",
        tuple(cell for loss in LOSSES if loss for cell in starts("le-s", CORRELATED, loss)),
        _independent_correlated,
    ),
    Claim(
        "under uncorrelated loss it levels off as N grows",
        "5.4.1",
        starts("le-s", UNCORRELATED, sizes=(FEW, MORE, MOST)),
        _levels_off,
    ),
    Claim(
        "for small N, LE-S is behind AL by E[t_s]",
        "5.4.2",
        tuple(cell for cells in pair(0.0) for cell in cells),
        _al_gap,
    ),
    Claim(
        "LE-S overtakes AL at N = 200 (l = 0.4)",
        "5.4.2",
        tuple(
            cell for collision in (0.0, COLLISION) for cells in pair(collision) for cell in cells
        ),
        _overtakes,
    ),
    Claim(
        "in the first round LE-M is SUP",
        "5.4.3",
        (
            *first_rounds(starts("le-m", UNCORRELATED)),
            *starts("sup", UNCORRELATED),
            *(
                cell
                for model in (NONE, CORRELATED)
                for name in ("le-m", "sup")
                for cell in some(name, model)
            ),
        ),
        _first_round,
    ),
    Claim(
        "LE-M needs less time and fewer messages than LE-S",
        "5.4.3",
        (*starts("le-s", UNCORRELATED), *starts("le-m", UNCORRELATED)),
        _le_m_wins,
    ),
    Claim(
        "SUP is a lower bound for LE-M",
        "5.4.3",
        tuple(cell for model in MODELS for name in ("le-m", "sup") for cell in some(name, model)),
        _sup_bounds,
    ),
    Claim(
        "LE-S needs more time and messages than SUP",
        "5.4.1",
        tuple(cell for model in MODELS for name in ("le-s", "sup") for cell in starts(name, model)),
        _le_above_sup,
    ),
    Claim(
        "uncorrelated loss is the worst case",
        "5.4.1",
        tuple(
            cell
            for protocol, sizes, _, _ in WORST
            for model in LOSSY
            for cell in some(protocol, model, sizes)
        ),
        _worst_case,
    ),
)

"""Supposed results: what cells would give if the closed forms, and guesses elsewhere, were right.

Judges see only moments, so a world can be supposed for them, true or false, without playing it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

from hustings.lab.closed_forms.announce import departure, rounds
from hustings.lab.figures.announce import forms
from hustings.lab.figures.announce.measurements import DELAY, NONE, UNCORRELATED
from hustings.lab.figures.measurement import Measurement
from hustings.lab.figures.measuring import Results
from hustings.lab.runs.block import Block, Column, Moments

Means = dict[str, float]
Change = Callable[[Measurement, Means], Means]
RUNS = 10_000
PRECISION = 0.004


def block(means: Means, precision: float = PRECISION, runs: int = RUNS) -> Block:
    """Runs with these means, each known to that part of itself."""
    metrics = {}
    for name, mean in means.items():
        error = precision * abs(mean)
        metrics[name] = Column(Moments(runs, mean, error**2 * runs * (runs - 1)), mean, mean)
    return Block(0, runs, metrics, {"stopped": runs}, 0)


def suppose(cells: list[Measurement], change: Change | None = None) -> Results:
    """Every cell as the closed forms have it, unless changed."""
    return {cell: block((change or _as_is)(cell, means(cell))) for cell in cells}


def _as_is(cell: Measurement, supposed: Means) -> Means:
    return supposed


def _known(value: float | None) -> float:
    assert value is not None
    return value


def means(cell: Measurement) -> Means:
    """What the cell's metrics should be."""
    if cell.scenario == "false-departure":
        return {"inconsistent_fraction": _known(forms.inconsistent(cell))}
    if cell.scenario == "leader-crash":
        return {"reestablishment_delay": _departure(cell)}
    if cell.scenario == "join-larger":
        return {"reestablishment_delay": _known(forms.larger(cell))}
    if cell.scenario == "join-smaller":
        return {"reestablishment_delay": _known(forms.smaller(cell))}
    found = {"tmax": _tmax(cell), "num_msgs": _messages(cell)}
    found["leadership_delay"] = found["tmax"] + cell.delay
    found["first_round"] = _first_round(cell)
    found["first_round_time"] = _last_words(cell)
    if cell.protocol == "sup":
        found["t_halt"] = (forms.sup_halt(cell) or 0.5 * found["tmax"]) + cell.delay
    return found


def _departure(cell: Measurement) -> float:
    T_L = float(dict(cell.settings)["T_L"])
    if cell.loss_model == UNCORRELATED:
        form = departure.uncorrelated
    else:
        form = departure.correlated
    return form(cell.members, cell.loss, forms.law(cell), T_L=T_L, D=cell.delay)


def _tmax(cell: Measurement) -> float:
    match cell.protocol:
        case "al":
            return _known(forms.al_tmax(cell))
        case "le-m":
            return _known(forms.le_m_tmax(cell))
        case "sup":
            return _sup_tmax(cell)
    plain = rounds.rounds(cell.members - 1, cell.loss, cell.loss_model) - 1
    return forms.law(cell).mean + plain  # hardly touched by collisions


def _sup_tmax(cell: Measurement) -> float:
    """Later the more is lost, in a way of our own where no form is known."""
    return forms.sup_tmax(cell) or DELAY + 1.0 / cell.members


def _messages(cell: Measurement) -> float:
    """More of them if uncorrelated, in a way of our own."""
    guess = cell.members * DELAY + math.log(cell.members) + 1
    match cell.protocol:
        case "al":
            return cell.members * (_tmax(cell) + 1)
        case "le-m":
            return forms.le_m_messages(cell) or 1.5 * guess
        case "le-a":
            return forms.le_a_messages(cell) or 1.5 * cell.members
        case "sup":
            return forms.sup_messages(cell) or 1.2 * guess
    if ("law", "exponential") in cell.settings:
        guess = 3.0 * math.log(cell.members)
    return forms.le_messages(cell) or 2.0 * guess


def _first_round(cell: Measurement) -> float:
    if cell.protocol in ("sup", "le-m"):
        return _messages(msgspec.structs.replace(cell, protocol="sup"))
    if cell.protocol == "le-s" and (cell.loss_model != UNCORRELATED or cell.delay < DELAY):
        return _known(forms.le_first_round(cell))
    return _messages(cell)


def _last_words(cell: Measurement) -> float:
    if cell.protocol == "le-m":
        return _sup_tmax(cell)
    return 0.5 if cell.loss_model == NONE else 0.7

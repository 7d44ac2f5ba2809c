"""Departures, joins and false departures in the simulator against their closed forms.

T_A = T_S = 1 and a delay of 0.1. Forms that are exact only for a long T_L are compared where T_L is
long enough. All comparisons of this file are one family.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hustings.lab.closed_forms.announce import consistency, departure, joiner
from hustings.lab.closed_forms.announce.laws import Law
from tests.agreement.announce.cells import DELTA, GRID, UNIFORM, Cell, experiment, samples, vigil
from tests.agreement.announce.judging import judge, score

FAMILY = 200
AT_ONCE = Law(T_S=0)
DELAY = "reestablishment_delay"

Scores = dict[object, float]


def departures(times: int) -> Scores:
    """By model: without loss always exact, with correlated loss nearly, else for long T_L."""
    D = DELTA
    cases: list[tuple[Cell, float, float]] = []
    for n, T_L in ((3, 3.0), (10, 1.0), (30, 3.5)):
        cell = Cell("le-s", n)
        cases.append((cell, T_L, departure.without_loss(n, UNIFORM, 1.0, T_L, D)))
        value = departure.without_loss(n, AT_ONCE, 1.0, T_L, D)
        cases.append((replace(cell, algorithm="le-a"), T_L, value))
        value = departure.first_waker(n, UNIFORM, 1.0, T_L, D)
        cases.append((replace(cell, algorithm="le-m"), T_L, value))
    for n, loss, T_L in ((5, 0.1, 3.0), (5, 0.4, 4.0), (20, 0.4, 6.0)):
        cell = Cell("le-s", n, "correlated", loss)
        cases.append((cell, T_L, departure.correlated(n, loss, UNIFORM, 1.0, T_L, D)))
    for n, loss, T_L in ((3, 0.1, 6.0), (10, 0.4, 14.0), (20, 0.1, 6.0), (20, 0.4, 14.0)):
        cell = Cell("le-s", n, "uncorrelated", loss)
        cases.append((cell, T_L, departure.uncorrelated(n, loss, UNIFORM, 1.0, T_L, D)))
    scores: Scores = {}
    for cell, T_L, value in cases:
        found = samples(experiment(cell, {"T_L": T_L}, scenario="leader-crash"), 90 * times)
        scores[cell, T_L] = score(found[DELAY], value)
    return scores


def joins(times: int) -> Scores:
    scores: Scores = {}
    for model, loss in GRID:
        for algorithm, law in (("le-s", UNIFORM), ("le-a", AT_ONCE)):
            for n in (1, 20):
                cell = Cell(algorithm, n, model, loss)
                larger = joiner.larger(n, loss, model, law, 1.0, DELTA)
                found = samples(experiment(cell, scenario="join-larger"), 60 * times)
                scores[cell, "larger"] = score(found[DELAY], larger)
                found = samples(experiment(cell, scenario="join-smaller"), 60 * times)
                scores[cell, "smaller"] = score(found[DELAY], joiner.smaller(loss))
    return scores


def false_departures(times: int) -> Scores:
    """One listener, and the group: how often and how long the living leader is not held."""
    scores: Scores = {}
    for n, model, loss, T_L in (
        (2, "uncorrelated", 0.4, 3.0),
        (20, "correlated", 0.4, 2.0),
        (20, "uncorrelated", 0.4, 3.0),
        (10, "uncorrelated", 0.1, 1.0),
        (10, "uncorrelated", 0.7, 2.25),
    ):
        cell = Cell("le-s", n, model, loss)
        found = samples(vigil(cell, T_L, 150.0), 10 * times)
        alone = consistency.fraction(loss, 1.0, T_L)
        apart = alone if cell.as_one else consistency.system_fraction(n, loss, 1.0, T_L)
        expected = {"false_departure_fraction": alone, "inconsistent_fraction": apart}
        for name, value in expected.items():
            scores[cell, name] = score(found[name], value)
    return scores


@pytest.mark.parametrize("family", [departures, joins, false_departures])
def test_simulation_and_closed_forms(family: Callable[[int], Scores]) -> None:
    judge(family(1), FAMILY)


@pytest.mark.soak
@pytest.mark.parametrize("family", [departures, joins, false_departures])
def test_simulation_and_closed_forms_with_many_more_runs(family: Callable[[int], Scores]) -> None:
    judge(family(20), FAMILY)


def test_mean_durations_of_false_departures() -> None:
    """Over long runs: a mean over episodes, of which the last one is cut off."""
    cell = Cell("le-s", 20, "uncorrelated", 0.4)
    found = samples(vigil(cell, 3.0, 1000.0), 8)
    one = score(found["false_departure_duration"], consistency.duration(0.4), slack=0.01)
    group = consistency.system_duration(20, 0.4)
    judge({"one": one, "group": score(found["inconsistency_duration"], group, slack=0.1)}, FAMILY)


@pytest.mark.parametrize("T_L", [1.0, 2.0, 3.0, 5.0])
def test_the_printed_program_disagrees_without_any_loss(T_L: float) -> None:
    """E1: up to the ends of the run, which are not whole cycles."""
    cell = Cell("le-s-printed", 10)
    wrong = samples(vigil(cell, T_L, 600.0), 2)
    expected = consistency.literal_disagreement(1.0, T_L)
    assert wrong["inconsistent_fraction"].mean == pytest.approx(expected, abs=0.01)
    right = samples(vigil(replace(cell, algorithm="le-s"), T_L, 600.0), 2)
    assert right["inconsistent_fraction"].mean == 0

"""Event simulation against closed forms over the whole grid, and against enumeration below.

Every metric that has a closed form is compared in every cell: groups of 2 to 500, losses 0, 0.1,
0.4 and 0.7, no, correlated and uncorrelated loss. All comparisons of this file are one family, so
with all of them right one of them fails by chance with probability `LEVEL` (judging.py).
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from tests.agreement.announce import enumeration
from tests.agreement.announce.cells import GRID, Cell, experiment, forms, samples, waits
from tests.agreement.announce.judging import judge, score, score_waits

ENOUGH = 250  # runs after which a spread is known well
FAMILY = 2500  # more than there are comparisons here
SMALL, LARGE = (2, 3, 5, 10, 20), (50, 100, 200, 500)
ALGORITHMS = ("le-s", "le-m", "le-a", "sup", "al")
EVERYBODY_SENDS = ("le-a", "al")  # a run of n costs n^2, not n log n

Scores = dict[object, float]


def compare(cell: Cell, runs: int) -> Scores:
    """Every closed form of a cell against its sample."""
    expected = forms(cell)
    if not expected:
        return {}
    found = samples(experiment(cell), runs)
    assert set(expected) <= set(found), (cell, sorted(set(expected) - set(found)))
    scores: Scores = {}
    for name, value in expected.items():
        heard = waits(cell, name, found[name].mean) if runs < ENOUGH else None
        if heard is None:
            scores[cell, name] = score(found[name], value)
        else:
            assert waits(cell, name, value) == pytest.approx(1 / (1 - cell.loss))
            scores[cell, name] = score_waits(heard, runs, cell.loss)
    return scores


def runs_for(cell: Cell) -> int:
    """As many as the time of a change allows; where nothing is left to chance two are enough."""
    least = 12
    if cell.algorithm in EVERYBODY_SENDS:
        if cell.model == "none":
            return 2
        if cell.model == "correlated":  # if the leader is heard at once, all runs are the same
            least = round(20 / cell.loss)
    for n, runs in ((5, 90), (10, 60), (20, 40), (50, 25), (100, 18), (200, 12)):
        if cell.members <= n:
            return max(least, runs)
    return least


def of_grid(algorithm: str, sizes: tuple[int, ...], times: int) -> Scores:
    scores: Scores = {}
    for n in sizes:
        for model, loss in GRID:
            cell = Cell(algorithm, n, model, loss)
            scores |= compare(cell, runs_for(cell) * times)
    return scores


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_small_groups(algorithm: str) -> None:
    judge(of_grid(algorithm, SMALL, 1), FAMILY)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_large_groups(algorithm: str) -> None:
    """The largest are left to the kernels (test_fast.py), and to the soak below."""
    sizes = LARGE[:1] if algorithm in EVERYBODY_SENDS else LARGE[:3:2]
    judge(of_grid(algorithm, sizes, 1), FAMILY)


@pytest.mark.soak
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_all_groups_with_many_more_runs(algorithm: str) -> None:
    judge(of_grid(algorithm, SMALL, 20), FAMILY)
    judge(of_grid(algorithm, LARGE, 2 if algorithm in EVERYBODY_SENDS else 20), FAMILY)


# Without delay: the recurrence for uncorrelated loss, and every fate of small groups


@pytest.mark.parametrize("algorithm", ["le-s", "le-m"])
def test_first_announcements_without_delay(algorithm: str) -> None:
    scores: Scores = {}
    for n, runs in ((5, 120), (20, 60), (100, 25)):
        for loss in (0.1, 0.4, 0.7):
            scores |= compare(Cell(algorithm, n, "uncorrelated", loss, delta=0.0), runs)
    judge(scores, FAMILY)


@pytest.mark.parametrize("algorithm", ["le-a", "le-s", "le-m"])
def test_small_groups_against_every_fate(algorithm: str) -> None:
    scores: Scores = {}
    for n in (2, 3, 4):
        for model, loss in GRID:
            # The enumeration allows any delay below T_A where all announce at once.
            delta = 0.3 if algorithm == "le-a" else 0.0
            cell = Cell(algorithm, n, model, loss, delta)
            exact = enumeration.expected(algorithm, n, Fraction(str(loss)), model)
            found = samples(experiment(cell), 120)
            for name, value in (
                ("num_msgs", exact.messages),
                ("rounds", exact.rounds),
                ("first_round", exact.first_round),
            ):
                scores[cell, name] = score(found[name], float(value))
    judge(scores, FAMILY)


@pytest.mark.parametrize("delta", [0.3, 1.0, 1.5, 2.0])
def test_all_at_once_with_delays_of_periods(delta: float) -> None:
    """Where the delay is a whole number of periods, sends of the last instant do not count."""
    scores: Scores = {}
    for n in (2, 6):
        for model, loss in GRID:
            cell = Cell("le-a", n, model, loss, delta)
            scores |= compare(cell, 2 if model == "none" else 90)
    judge(scores, FAMILY)

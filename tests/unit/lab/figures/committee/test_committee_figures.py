"""The figures of the election by committees: verdicts follow the numbers, in supposed worlds."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from hustings.lab.closed_forms.committee import exponents
from hustings.lab.figures.committee import bits, everywhere, informed, success, thresholds
from hustings.lab.figures.committee import measurements as cells
from hustings.lab.figures.figure import ClaimVerdict, Figure, Rendered
from hustings.lab.figures.measurement import Measurement
from hustings.lab.figures.measuring import Results
from hustings.lab.runs.block import Block, Column, Moments
from hustings.lab.runs.engines import FAST
from tests.unit.lab.figures.samples import finding

HOLDS, FAILS, UNDECIDED = ClaimVerdict.HOLDS, ClaimVerdict.FAILS, ClaimVerdict.UNDECIDED
MEASURED: tuple[Figure, ...] = (*success.FIGURES, *informed.FIGURES, *bits.FIGURES)
FIGURES = {figure.name: figure for figure in (*thresholds.FIGURES, *MEASURED)}
Change = Callable[[Measurement, dict[str, float]], dict[str, float]]


def supposed(cell: Measurement) -> dict[str, float]:
    """What a cell gives if closed forms are right, and an aware adversary does what it can."""
    given = dict(cell.settings)
    percent = cells.percent_of(cell)
    good, heard = 1.0, 1.0
    if given["adversary"] == "random":
        if given["profile"] == "lean" and cell.members in cells.SIZES:
            good = success.expected(cell.members, percent)
    elif percent:
        good = max(0.0, 0.9 - percent / 10)
        heard = informed.expected(percent) if given["profile"] == "lean" else 0.97
        if percent > 10:
            heard = 0.0
    mean = bits.expected(given["profile"], cell.members)
    return {"p_good": good, "informed": heard, "bits_mean": mean, "bits_max": 1.5 * mean}


def block(means: dict[str, float], runs: int) -> Block:
    metrics = {}
    for name, mean in means.items():
        error = 0.004 * abs(mean)
        metrics[name] = Column(Moments(runs, mean, error**2 * runs * (runs - 1)), mean, mean)
    return Block(0, runs, metrics, {"quiescent": runs}, 0)


def made(name: str, change: Change | None = None, runs: int | None = None) -> Rendered:
    figure = FIGURES[name]
    results: Results = {
        cell: block(
            (change or (lambda _, means: means))(cell, supposed(cell)), runs or cell.runs or 1
        )
        for cell in figure.cells()
    }
    return figure.make(results, 1)


@pytest.mark.parametrize("figure", MEASURED, ids=lambda each: each.name)
def test_cells_ask_for_what_is_drawn(figure: Figure) -> None:
    asked = figure.cells()
    assert asked
    assert len(set(asked)) == len(asked)
    for cell in asked:
        assert (cell.protocol, cell.engine) == ("committee", FAST)
        assert cell.runs is not None
        assert 0 <= cells.percent_of(cell) < 34
        assert "hustings sim committee" in cell.command(1, 2)


@pytest.mark.parametrize("name", FIGURES)
def test_every_number_that_is_drawn_is_written(name: str) -> None:
    shown = made(name)
    assert shown.sound
    assert all(len(row) == len(shown.columns) for row in shown.rows)
    lines = [
        line
        for panel in shown.panels
        for drawn in panel.curves
        for line in drawn.lines
        if "fewer bits from" not in drawn.curve.label  # a mark, not a form
    ]
    points = [each for panel in shown.panels for drawn in panel.curves for each in drawn.points]
    written = {value for row in shown.rows for value in row if isinstance(value, float)}
    assert all(value in written for line in lines for value in line.values)
    assert all(point.mean in written for point in points)
    for panel in shown.panels:
        labels = [drawn.curve.label for drawn in panel.curves]
        assert len(labels) == len(set(labels))


def asked(ways: dict[everywhere.AskingWay, float]) -> Rendered:
    """As if all learnt the bit in these parts of the runs."""
    return everywhere.drawn(
        {
            (way, n): everywhere.Came(part, (1 - part) * 100, 100.0, n / 10)
            for way, part in ways.items()
            for n in everywhere.SIZES
        },
        1,
    )


def test_everywhere_judges_the_ways_of_asking() -> None:
    usual = dict.fromkeys(everywhere.WAYS, 1.0) | {everywhere.FLOODED: 0.0, everywhere.RUSHING: 0.0}
    shown = asked(usual)
    assert [each.verdict for each in shown.findings] == [HOLDS] * 4
    assert "proves nothing" in finding(shown, "Conjecture 1").evidence
    assert all(len(row) == len(shown.columns) for row in shown.rows)
    found = finding(asked(usual | {everywhere.RUSHING: 1.0}), "Conjecture 1")
    assert found.verdict is FAILS
    found = finding(asked(usual | {everywhere.RUSHING: 0.3}), "Conjecture 1")
    assert found.verdict is UNDECIDED
    assert finding(asked(usual | {everywhere.QUIET: 0.0}), "no member floods").verdict is FAILS


def test_everywhere_plays_what_its_command_says() -> None:
    one = everywhere.measured(everywhere.RUSHING, 10_000, 1)
    assert (one.all_know, one.left) == (0.0, 1.0)
    line = everywhere.command(everywhere.RUSHING, 10_000, 1)
    assert line.endswith("10000 --attack rushing --labels root --runs 10 --seed 1")


def test_thresholds() -> None:
    shown = made("committee-thresholds")
    assert finding(shown, "hundreds of thousands").verdict is FAILS
    assert "3.4e15" in finding(shown, "hundreds of thousands").evidence
    assert finding(shown, "fewer bits").verdict is FAILS
    assert finding(shown, "b + 12/L").verdict is FAILS
    assert finding(shown, "every b < 1/3").verdict is HOLDS
    assert shown.verdict == "reproduced in part"
    told = {row[-1] for row in shown.rows}
    assert {"10^70119", "10^1.46e6", "5.2e17"} <= told
    own = [each.ln_n for each in thresholds.thresholds() if not each.printed]
    assert all(one < other for one, other in pairwise(own))


def test_a_wrong_threshold_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    true = exponents.power_fits

    def wrong(power: float, share: int = 1, factor: float = 1.0) -> float:
        return true(power, share, factor) + (6.0 if power == 8 else 0.0)

    monkeypatch.setattr(exponents, "power_fits", wrong)
    shown = made("committee-thresholds")
    assert not shown.sound
    assert "L^8" in finding(shown, "curves and thresholds").evidence


def test_success_if_the_closed_form_is_true() -> None:
    shown = made("committee-success")
    assert finding(shown, "up to b = 20 per cent").verdict is HOLDS
    assert finding(shown, "at random: with probability 0.1 or more for every").verdict is FAILS
    assert finding(shown, "greedy: with probability 0.1 or more up to b = 5").verdict is HOLDS
    assert finding(shown, "greedy: with probability 0.1 or more up to b = 10").verdict is FAILS
    assert finding(shown, "runs and closed form").verdict is HOLDS
    assert shown.checked == "yes"


def test_success_off_the_closed_form_is_found() -> None:
    def off(cell: Measurement, means: dict[str, float]) -> dict[str, float]:
        wrong = cell.members == 10_000 and cells.percent_of(cell) == 10
        return means | {"p_good": means["p_good"] - (0.05 if wrong else 0.0)}

    shown = made("committee-success", off)
    assert not shown.sound
    assert "10,000, b = 10 per cent" in finding(shown, "runs and closed form").evidence


@pytest.mark.parametrize("mean, verdict", [(0.12, HOLDS), (0.101, UNDECIDED), (0.05, FAILS)])
def test_what_lies_near_a_bound_is_undecided(mean: float, verdict: ClaimVerdict) -> None:
    def close(cell: Measurement, means: dict[str, float]) -> dict[str, float]:
        near = (cell.members, cells.percent_of(cell)) == (100_000, 10)
        return means | {"p_good": mean if near else 0.5}

    found = finding(
        made("committee-success", close), "mixed: with probability 0.1 or more up to b = 10"
    )
    assert found.verdict is verdict


def test_an_adversary_that_gains_nothing_is_found() -> None:
    def harmless(cell: Measurement, means: dict[str, float]) -> dict[str, float]:
        return means | {"p_good": 1.0 if dict(cell.settings)["adversary"] == "mixed" else 0.5}

    shown = made("committee-success", harmless)
    assert finding(shown, "breaks more (mixed").verdict is FAILS
    assert finding(shown, "mixed: with probability 0.1 or more up to b = 10").verdict is HOLDS


@pytest.mark.parametrize("name", ["committee-success", "committee-informed"])
def test_few_runs_decide_nothing(name: str) -> None:
    assert {each.verdict for each in made(name, runs=10).findings} == {UNDECIDED}


def test_informed() -> None:
    shown = made("committee-informed")
    assert finding(shown, "up to b = 5 per cent, whoever is bad (lean)").verdict is FAILS
    assert finding(shown, "up to b = 10 per cent, whoever is bad (robust)").verdict is HOLDS
    assert finding(shown, "eight leaves inform more").verdict is HOLDS

    def deaf(cell: Measurement, means: dict[str, float]) -> dict[str, float]:
        return means | {"informed": 0.9}

    assert finding(made("committee-informed", deaf), "without bad members").verdict is FAILS


def test_bits() -> None:
    shown = made("committee-bits")
    assert finding(shown, "polylogarithmically").verdict is FAILS
    assert finding(shown, "many leaves").verdict is HOLDS
    assert finding(shown, "runs and closed form").verdict is HOLDS
    marked = [
        drawn.lines[0] for drawn in shown.panels[0].curves if "fewer bits from" in drawn.curve.label
    ]
    assert len(marked) == 2
    assert all(line.places[0] == line.places[1] for line in marked)


def test_bits_that_grow_as_all_to_all_are_found() -> None:
    def dear(cell: Measurement, means: dict[str, float]) -> dict[str, float]:
        return means | {"bits_mean": 15.0 * cell.members**2}

    shown = made("committee-bits", dear)
    assert finding(shown, "fewer bits").verdict is FAILS
    assert "at no size" in finding(shown, "fewer bits").evidence
    assert not shown.sound

    def flat(cell: Measurement, means: dict[str, float]) -> dict[str, float]:
        return means | {"bits_mean": 1000.0}

    assert finding(made("committee-bits", flat), "polylogarithmically").verdict is HOLDS

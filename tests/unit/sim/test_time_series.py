"""The number of leaders over time: on a grid, in one run and over many."""

from __future__ import annotations

from array import array

import pytest

from hustings.core.errors import BadInput
from hustings.lab.simulation import run_all
from hustings.protocols.registry import find
from hustings.sim.consistency import Leaders
from hustings.sim.delay import Fixed
from hustings.sim.experiment import Experiment
from hustings.sim.faults import Crash
from hustings.sim.loss import Uncorrelated
from hustings.sim.network import Network
from hustings.sim.play import play
from hustings.sim.scenarios import Scenario
from hustings.sim.time_series import MAX_STEPS, SampledSeries, check_step, summarise_series
from tests.unit.sim.test_consistency import Say, stage_of
from tests.unit.sim.worlds import Stage, arm


def series_of(stage: Stage, step: float, until: float) -> SampledSeries | None:
    leaders = Leaders()
    leaders.begin(stage)
    leaders.step = step
    stage.let(until, 1, arm("end", 0.0))
    stage.run(until)
    return leaders.time_series(stage)


def test_an_instant_counts_as_it_is_when_it_is_over() -> None:
    says: list[Say] = [(1.0, 1, 1), (1.0, 2, 2), (2.5, 1, 3), (3.0, 2, None), (3.0, 2, 2)]
    found = series_of(stage_of(says), 1.0, 4.0)
    assert found is not None
    assert list(found.counts) == [1, 3, 3, 2, 2]
    assert (found.last, found.cut) == (2, False)


def test_the_end_of_a_run_need_not_lie_on_the_grid() -> None:
    found = series_of(stage_of([(1.9, 1, 1)], Crash(member=3, at=0.5)), 0.75, 2.0)
    assert found is not None
    assert list(found.counts) == [1, 0, 0]
    assert found.last == 1


def test_steps_do_not_drift_off_the_grid() -> None:
    """Ten steps of 0.1 are 1, however they add up in doubles."""
    found = series_of(stage_of([(1.0, 1, 1)]), 0.1, 1.0)
    assert found is not None
    assert list(found.counts) == [1] * 10 + [2]


def test_a_course_has_an_end_and_says_so() -> None:
    whole = series_of(stage_of([]), 0.001, 0.001 * MAX_STEPS)
    longer = series_of(stage_of([]), 0.001, 0.001 * (MAX_STEPS + 1))
    assert whole is not None
    assert longer is not None
    assert len(whole.counts) == len(longer.counts) == MAX_STEPS + 1
    assert (whole.cut, longer.cut) == (False, True)


def test_what_is_not_asked_for_or_never_began_is_not_kept() -> None:
    leaders = Leaders()
    assert leaders.time_series(Stage(2)) is None
    stage = stage_of([])
    leaders.begin(stage)
    assert leaders.time_series(stage) is None


def test_runs_of_different_lengths_stay_as_they_ended() -> None:
    runs = [SampledSeries(array("I", [3, 2, 2]), 1), SampledSeries(array("I", [1]), 4)]
    found = summarise_series(runs, 0.5)
    assert found is not None
    assert found.time == [0.0, 0.5, 1.0]
    assert found.mean == [2.0, 3.0, 3.0]
    assert found.stderr == pytest.approx([1.0, 1.0, 1.0])
    assert found.max == [3, 4, 4]
    assert found.under_way == [2, 1, 1]
    assert summarise_series([], 0.5) is None
    alone = summarise_series(runs[1:], 0.5)
    assert alone is not None
    assert alone.stderr == [None]


@pytest.mark.parametrize("step", [0.0, -1.0, float("nan"), float("inf"), 1e-9])
def test_a_step_that_is_none_is_refused(step: float) -> None:
    with pytest.raises(BadInput, match="time series must be a time step"):
        check_step(step, None)


def test_a_grid_that_cannot_reach_the_end_is_refused() -> None:
    check_step(0.5, 0.5 * MAX_STEPS)
    with pytest.raises(BadInput, match="more than 2,000 of them"):
        check_step(0.4, 0.5 * MAX_STEPS)


# Of real elections


def experiment(
    protocol: str, scenario: str = "start", time_series: float | None = 0.25
) -> Experiment:
    kind = find(protocol)
    settings = {"delta": 0.1, **kind.Settings.for_scenario(scenario)}
    return Experiment(
        kind,
        10,
        kind.Settings.parse(settings),
        network=Network(Fixed(0.1), Uncorrelated(0.4)),
        scenario=Scenario(name=scenario),
        until=60.0,
        seed=3,
        time_series=time_series,
    )


@pytest.mark.parametrize("scenario", ["start", "leader-crash", "false-departure"])
def test_keeping_a_course_changes_nothing_else(scenario: str) -> None:
    with_it, without = (play(experiment("le-s", scenario, step), 0) for step in (0.25, None))
    assert with_it.time_series is not None
    assert without.time_series is None
    assert (with_it.metrics, with_it.verdicts) == (without.metrics, without.verdicts)
    most = with_it.metrics["simultaneous_leaders_max"]
    assert most is not None
    assert max(with_it.time_series.counts) <= most


def test_a_fine_grid_has_the_mean_of_the_metric() -> None:
    result = play(experiment("le-s", "false-departure", 0.05), 0)
    assert result.time_series is not None
    counts = result.time_series.counts
    assert sum(counts) / len(counts) == pytest.approx(
        result.metrics["simultaneous_leaders"], rel=0.02
    )


def test_all_lead_at_first_where_nobody_sleeps() -> None:
    found = run_all(experiment("le-a"), 20).time_series
    assert found is not None
    assert (found.mean[0], found.stderr[0], found.under_way[0]) == (10.0, 0.0, 20)
    assert found.mean[-1] < 1.5


def test_a_crashed_leader_leads_no_more() -> None:
    found = run_all(experiment("le-s", "leader-crash"), 20).time_series
    assert found is not None
    assert found.mean[0] < 1.0 < max(found.mean)
    assert min(found.max) < max(found.max)


def test_the_same_course_on_two_processes() -> None:
    assert run_all(experiment("le-s"), 8, jobs=2) == run_all(experiment("le-s"), 8)


def test_elections_that_wait_to_be_told_have_no_course() -> None:
    with pytest.raises(BadInput, match="leaders that come and go by themselves"):
        experiment("bully")

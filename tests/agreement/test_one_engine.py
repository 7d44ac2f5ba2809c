"""The same words give the same numbers, whichever door and place they are played at.

A simulation keeps every run, a sweep and a figure keep sums of blocks, a comparison keeps counts of
one run. All of them stand on one engine, so they are held to each other here, to the last bit
wherever no sum was made in another order.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hustings import lab
from hustings.core.errors import BadInput
from hustings.lab.figures.measurement import Measurement
from hustings.lab.runs.block import Block
from hustings.lab.runs.engines import EVENTS, FAST
from hustings.lab.runs.playing import Precision, Runs
from hustings.lab.simulation import Goals, Study, prepare
from hustings.lab.sweeps import SweepPoint, play_points

LOSSY = {"loss": 0.3, "delay": 0.1}
WORDS: list[tuple[str, dict[str, Any], int]] = [
    ("bully", {"members": 7, "scenario": "leader-crash", "delay": "uniform:0.1,0.9"}, 60),
    ("le-s", {"members": 6, "settings": {"T_A": 1.2}, "engine": EVENTS, **LOSSY}, 230),
    ("sup", {"members": 40, "engine": FAST, **LOSSY}, 900),
    ("probabilistic", {"members": 5_000, "loss": 0.01, "engine": FAST}, 700),
    ("agreement", {"members": 7, "settings": {"t": 2}}, 3),
    ("committee", {"members": 60, "settings": {"b": 0.1}, "engine": FAST}, 7),
]


def held_to(study: Study, block: Block) -> None:
    """A block tells what the study tells."""
    assert block.runs == study.runs
    assert block.endings == dict(study.endings)
    for name, column in block.metrics.items():
        summary = study.metrics[name]
        if summary is None:
            assert column.count == 0
            continue
        assert column.count == len(study.values[name])
        assert (column.least, column.most) == (summary.min, summary.max)
        assert column.mean == pytest.approx(summary.mean, rel=1e-12, abs=1e-12)
        if summary.stderr is not None:
            assert column.stderr == pytest.approx(summary.stderr, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("protocol, words, runs", WORDS, ids=lambda each: str(each)[:20])
def test_a_sweep_s_point_is_a_simulation(protocol: str, words: dict[str, Any], runs: int) -> None:
    study = lab.simulate(protocol, runs=runs, seed=5, **words)
    point = SweepPoint({}, study.experiment, Runs(runs), study.engine)
    (result,) = play_points([point])
    held_to(study, result.block)


@pytest.mark.parametrize("protocol, words, runs", WORDS, ids=lambda each: str(each)[:20])
def test_places_cannot_be_seen(protocol: str, words: dict[str, Any], runs: int) -> None:
    alone = lab.simulate(protocol, runs=runs, **words)
    with ThreadPoolExecutor(2) as executor:
        assert lab.simulate(protocol, runs=runs, on=executor, **words) == alone
    assert lab.simulate(protocol, runs=runs, on="threads", jobs=3, **words) == alone


def test_a_sweep_in_python_is_its_simulations() -> None:
    found = lab.sweep({"members": [5, 8]}, protocol="le-a", runs=210, loss=0.3, delay=0.1)
    for each in found.results:
        seed = each.point.experiment.seed
        members = each.point.parameters["members"]
        assert isinstance(members, int)
        study = lab.simulate("le-a", members=members, runs=210, seed=seed, loss=0.3, delay=0.1)
        held_to(study, each.block)


CELLS = [
    Measurement(
        protocol="bully", members=5, scenario="leader-crash", delay=1.0, aims=("messages",)
    ),
    Measurement(
        protocol="le-s",
        members=20,
        loss_model="uncorrelated",
        loss=0.4,
        settings=(("T_A", "1.2"),),
        engine=FAST,
        aims=("tmax",),
    ),
    Measurement(
        protocol="committee",
        members=60,
        delay=1.0,
        settings=(("b", "0.1"),),
        engine=FAST,
        aims=("p_good",),
    ),
]


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.protocol)
def test_a_figure_s_measurement_is_a_simulation(cell: Measurement) -> None:
    settings: Mapping[str, object] = dict(cell.settings)
    study = lab.simulate(
        cell.protocol,
        members=cell.members,
        scenario=cell.scenario,
        loss=cell.loss,
        delay=cell.delay,
        settings=settings,
        engine=cell.engine,
        seed=cell.seed(3),
        runs=40,
    )
    held_to(study, cell.play(3, 0, 40))


@pytest.mark.parametrize("protocol", ["bully", "ring", "stable", "bully-map"])
def test_a_comparison_s_row_is_a_simulation(protocol: str) -> None:
    (row,) = lab.compare([protocol], members=8, scenario="leader-crash", seed=4).compared
    study = lab.simulate(protocol, members=8, scenario="leader-crash", seed=4)
    told = {name: None if each is None else each.mean for name, each in study.metrics.items()}
    assert {name: told[name] for name in row.counted} == row.counted
    assert row.verdicts == {
        name: next(verdict for verdict, number in counts.items() if number)
        for name, counts in study.verdicts.items()
    }


def test_a_precision_takes_the_same_runs_at_every_door() -> None:
    goals = Goals(runs=4_000, stderr=0.05, metric="tmax")
    words: dict[str, Any] = {"members": 9, "loss": 0.4, "delay": 0.1}
    study = lab.simulate("le-s", runs=4_000, stderr=0.05, metric="tmax", **words)
    goal = prepare("le-s", lab.Options.of(**words), goals).goal
    assert isinstance(goal, Precision)
    (result,) = play_points([SweepPoint({}, study.experiment, goal)])
    held_to(study, result.block)
    assert result.shortfall is study.short is None


def test_a_swarm_is_the_same_on_an_executor() -> None:
    alone = lab.swarm(seeds=12, first=3)
    with ThreadPoolExecutor(2) as executor:
        assert lab.swarm(seeds=12, first=3, on=executor) == alone


def test_a_place_that_is_none_is_refused_everywhere_before_anything_is_played() -> None:
    told = "unknown place 'clouds'"
    with pytest.raises(BadInput, match=told):
        lab.simulate("bully", on="clouds")
    with pytest.raises(BadInput, match=told):
        lab.swarm(seeds=2, on="clouds")
    with pytest.raises(BadInput, match=told):
        lab.figure("overhead-table-1", on="clouds")

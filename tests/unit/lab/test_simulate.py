"""`lab.simulate`: the numbers of the command line, bit for bit; results that show themselves."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from hustings import lab
from hustings.core.errors import BadInput, UnknownName
from hustings.protocols.bully import Bully
from hustings.sim.trace_read import read_trace
from tests.unit.cli.commands import Hustings, in_process

SAMPLES: list[tuple[str, dict[str, Any]]] = [
    ("bully", {"members": 8, "scenario": "leader-crash", "detectors": [1, 3], "digest": True}),
    ("ring", {"members": 6, "initiators": [1, 2], "order": [3, 6, 1, 5, 2, 4], "runs": 3}),
    ("le-s", {"members": 20, "loss": 0.4, "delay": 0.1, "runs": 200, "engine": "fast", "seed": 7}),
    ("le-a", {"settings": {"T_A": 2, "T_L": "inf"}, "runs": 5, "digest": True, "time_series": 0.5}),
    ("probabilistic", {"members": 60, "loss": 0.1, "stderr": 0.5, "metric": "time"}),
    ("stable", {"guard": "quorum", "guard_settings": {"voters": 3}, "runs": 2, "digest": True}),
    ("bully", {"composed": True, "delay": 0.05, "faults": ["crash:8@20"], "digest": True}),
    ("committee", {"members": 100, "settings": {"b": 0.1}, "runs": 3, "engine": "fast"}),
    ("bully", {"choice": "highest:cpu", "attributes": {"cpu": "random"}, "runs": 4, "first": 3}),
]


@pytest.fixture
def hustings(capsys: pytest.CaptureFixture[str]) -> Hustings:
    return in_process(capsys)


@pytest.mark.parametrize("protocol, options", SAMPLES, ids=lambda each: str(each)[:40])
def test_the_command_that_a_study_names_gives_the_same(
    hustings: Hustings, protocol: str, options: dict[str, Any]
) -> None:
    study = lab.simulate(protocol, **options)
    program, *words = shlex.split(study.command)
    assert program == "hustings"
    printed = json.loads(hustings(*words, "--json").out)
    assert printed == study.to_json()


def test_a_class_of_ones_own() -> None:
    class Mine(Bully):
        about = replace(Bully.about, name="mine")

    study = lab.simulate(Mine, members=5, scenario="leader-crash")
    assert (study.protocol, study["leader"].mean) == ("mine", 4)
    assert study.command == ""  # nobody else has it
    assert lab.simulate(Bully, members=5).command == "hustings sim bully --members=5"


def test_jobs_change_nothing() -> None:
    one, two = (
        lab.simulate("ring", members=8, delay="uniform:0.1,0.9", runs=40, digest=True, jobs=jobs)
        for jobs in (1, 2)
    )
    assert one == two
    assert one.digest is not None


def test_what_a_study_tells() -> None:
    study = lab.simulate("bully", members=4, delay="uniform:0.1,0.9", initiators=[1], runs=20)
    assert study.runs == 20
    assert list(study) == list(study.metrics)
    assert study["messages"].mean == pytest.approx(sum(study.values["messages"]) / 20)
    assert study.verdicts["agreement"]["holds"] == 20
    assert study.endings == {"quiescent": 20}
    assert not study.violated
    assert str(study).startswith("bully, 4 members, scenario start, 20 runs, seed 1: ")
    with pytest.raises(UnknownName, match="unknown metric 'tme': did you mean 'time'"):
        study["tme"]


def test_a_metric_without_a_value_is_told() -> None:
    study = lab.simulate("bully", members=4, initiators=[1], until=0.5)
    with pytest.raises(BadInput, match="leader has no value in any of 1 runs"):
        study["leader"]


def test_a_precision_that_is_not_reached_is_told() -> None:
    study = lab.simulate("le-s", members=9, loss=0.5, runs=20, stderr=1e-6, metric="messages")
    assert study.short is not None
    assert "1e-06" in study.short


def test_tables() -> None:
    study = lab.simulate("bully", members=4, initiators=[1], runs=3)
    table = study.to_arrow()
    assert table.column("metric").to_pylist() == list(study.metrics)
    frame = study.to_pandas()
    (row,) = frame[frame["metric"] == "messages"].to_dict("records")
    assert (row["mean"], row["count"]) == (study["messages"].mean, 3)


def test_a_notebook_shows_it() -> None:
    study = lab.simulate("bully", members=4, initiators=[1], settings={"delta": 1})
    shown = study._repr_html_()
    assert "<td>4</td>" in shown
    assert "hustings sim bully --members=4 --initiator=1 --set=delta=1" in shown
    assert shown.count("<table>") == shown.count("</table>") == 2


def test_plots() -> None:
    drawn = Figure().subplots()
    study = lab.simulate("le-s", members=5, loss=0.2, runs=50, time_series=1.0)
    study.draw(drawn, "messages")
    assert drawn.get_xlabel() == "messages"
    other = Figure().subplots()
    study.draw(other)
    assert other.get_ylabel() == "simultaneous leaders, mean"
    assert study.plot()["svg"].lstrip().startswith(b"<?xml")
    assert study.plot("messages")["png"].startswith(b"\x89PNG")
    assert study.plot() == study.plot(), "the same numbers give the same bytes"
    with pytest.raises(UnknownName, match="unknown metric 'mesages'"):
        study.plot("mesages")


def test_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    study = lab.simulate("bully", members=4, initiators=[1], runs=3, trace=path)
    assert read_trace(path).header.protocol == "bully"
    assert study.runs == 3


@pytest.mark.parametrize(
    "options, told",
    [
        ({"metric": "time"}, "--metric goes with --stderr"),
        ({"runs": 0}, "runs must lie between 1"),
        ({"runs": "many"}, "runs is to be a whole number, not 'many'"),
        ({"jobs": 0}, "jobs must lie between 1 and 256, not 0"),
        ({"first": -1}, "first must lie between 0"),
        ({"stderr": "small"}, "stderr is to be a number, not 'small'"),
        ({"engine": 3}, "unknown engine '3'"),
        ({"engine": "slow"}, "unknown engine 'slow'"),
        ({"scenario": "leader-crsh"}, "did you mean 'leader-crash'"),
        ({"settings": {"T_Q": 1}}, "unknown setting 'T_Q'"),
        ({"loss": 2}, "loss"),
    ],
)
def test_what_is_wrong_is_one_sentence(options: dict[str, Any], told: str) -> None:
    with pytest.raises(BadInput, match=told):
        lab.simulate("bully", **options)

"""`hustings sim --mobility`: numbers by component, help, and refusals in a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hustings.protocols.registry import find
from hustings.sim.delay import Fixed
from hustings.sim.experiment import Description, build
from hustings.sim.mobility import MODELS, RandomWaypoint
from hustings.sim.network import Network
from hustings.sim.play import play
from hustings.sim.scenarios import Scenario
from scripts import measure_mobile
from tests.unit.cli.commands import Hustings

MOVING = ("--mobility", "random-waypoint", "--delay", "0.05", "--until", "60")
LE_A = ("sim", "le-a", "-n", "6", *MOVING)


def test_what_scripts_rely_on(hustings: Hustings) -> None:
    settings = ("--mobility-set", "range=300", "--mobility-set", "settle=9")
    result = hustings(*LE_A, *settings, "--runs", "2", "--json")
    assert result.code == 0, result.err
    value = json.loads(result.out)
    assert value["scenario"]["mobility"] == {
        "model": "random-waypoint",
        "side": 1000.0,
        "range": 300.0,
        "links": "routed",
        "settle": 9.0,
        "speed_min": 1.0,
        "speed_max": 10.0,
        "pause": 0.0,
    }
    assert value["scenario"]["until"] == 60.0
    assert list(value["verdicts"]) == ["components"]
    assert list(value["metrics"])[:16] == [
        *("components", "splits", "merges", "one_leader", "one_leader_everywhere", "best_leader"),
        *("no_leader", "several_leaders", "leaders_per_component", "split_delay"),
        *("split_unsettled", "merge_delay", "merge_unsettled", "relapses", "leader_changes"),
        "message_rate",
    ]
    assert value["warnings"] == []


def test_it_is_the_run_that_python_plays(hustings: Hustings) -> None:
    described = Description(
        kind=find("le-a"),
        members=6,
        network=Network(delay=Fixed(0.05)),
        scenario=Scenario(mobility=RandomWaypoint()),
        until=60.0,
        digest=True,
    )
    shown = json.loads(hustings(*LE_A, "--digest", "--json").out)
    assert shown["digest"] == play(build(described), 0).digest


def test_check_exits_1_where_a_component_has_no_leader(hustings: Hustings) -> None:
    assert hustings(*LE_A, "--check").code == 0
    failed = hustings("sim", "sup", "-n", "6", *MOVING, "--check")
    assert failed.code == 1
    assert "components   1 violated" in failed.out


def test_a_trace_tells_of_the_links(hustings: Hustings, tmp_path: Path) -> None:
    file = tmp_path / "moving.jsonl"
    assert hustings(*LE_A, "--trace", str(file)).code == 0
    shown = hustings("trace", str(file))
    assert shown.code == 0
    assert "links cut: out of range" in shown.out


def test_help_names_models_and_settings(hustings: Hustings) -> None:
    words = " ".join(hustings("sim", "--help").out.split())
    for name in (*MODELS, "speed_max", "settle", "routed", "direct"):
        assert name in words


BAD = [
    ("sim bully --mobility random-waypoint", "needs a --detection"),
    ("sim bully --mobility random-waypoint --detection perfect", "take --detection heartbeat"),
    ("sim le-a --mobility waypoint", "unknown mobility 'waypoint': did you mean"),
    ("sim le-a --mobility-set range=1", "--mobility-set goes with --mobility"),
    ("sim le-a --mobility still --mobility-set pause=1", "unknown mobility setting 'pause'"),
    ("sim le-a --mobility still --mobility-set range=x", "range must be a number, not 'x'"),
    ("sim le-a --mobility still --mobility-set range=-1", "range must be a length >= 0"),
    ("sim le-a --mobility still --scenario leader-crash", "take --scenario start"),
    ("sim le-a --mobility still --scenario churn --arrivals 5", "take --scenario start"),
    ("sim le-a --mobility still --fault partition:1|2@1", "drop the faults partition"),
    ("sim le-a --mobility still --fault heal:@1", "drop the faults partition"),
    ("sim le-a --mobility still -n 201", "at most 200 members move about"),
    ("sim le-a --mobility still --engine fast", "plays simultaneous starts without faults only"),
    ("sim bully --mobility still --membership gossip", "are --composed"),
    ("sim committee -n 24 --mobility still --detection heartbeat", "has no meaning there"),
]


@pytest.mark.parametrize("typed, words", BAD, ids=[typed for typed, _ in BAD])
def test_a_mistake_gets_one_sentence(typed: str, words: str, hustings: Hustings) -> None:
    assert words in hustings(*typed.split()).complaint


def test_the_table_of_protocols_is_one_command(capsys: pytest.CaptureFixture[str]) -> None:
    few = ("--runs", "2", "--until", "30", "--members", "5", "--ways", "alone", "composed")
    measure_mobile.main(["le-a", "bully", *few])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 4
    assert lines[2].startswith("| le-a | alone | 250 | 1-10 |")
    assert all(line.count("|") == len(measure_mobile.COLUMNS) + 1 for line in lines)


@pytest.mark.parametrize(
    "typed", ["buly", "bully --ranges wide", "bully --speeds 0", "bully --runs 0"]
)
def test_the_table_refuses_in_a_sentence(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        measure_mobile.main(typed.split())
    assert ended.value.code == 2
    assert "measure_mobile: error: " in capsys.readouterr().err

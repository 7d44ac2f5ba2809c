"""--json: one object on stdout and nothing else, with the keys that scripts rely on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hustings.protocols.registry import CATALOGUE, COMPARED, classes
from tests.unit.cli.commands import Hustings, in_own_process

LEADER_CRASH = ("--scenario", "leader-crash")
SUMMARY = ["mean", "stderr", "min", "p50", "p99", "max"]


def read(hustings: Hustings, *arguments: str) -> dict[str, Any]:
    result = hustings(*arguments, "--json")
    assert result.code == 0, result.err
    value = json.loads(result.out, parse_constant=_not_json)  # refuses anything after the object
    assert isinstance(value, dict)
    return value


def _not_json(word: str) -> None:
    raise AssertionError(f"{word} is not JSON")


@pytest.mark.parametrize(
    "arguments",
    [
        "protocols",
        "protocols bully",
        "sim bully",
        "sim bully --runs 3 --jobs 2",
        "sim ring --loss 0.5 --set T=inf",
        "sim bully --detection heartbeat",
        "compare",
        "compare -n 7 --scenario leader-crash",
        "theory",
        "theory bully",
        "theory heartbeat",
        "demo --simulated",
    ],
)
def test_one_object_and_nothing_else(arguments: str, hustings: Hustings) -> None:
    assert read(hustings, *arguments.split())


@pytest.mark.parametrize("protocol", [kind.about.name for kind in classes(CATALOGUE)])
def test_sim_reports_what_scripts_rely_on(protocol: str, hustings: Hustings) -> None:
    shown = read(hustings, "sim", protocol, "-n", "9", "--runs", "3", "--seed", "5", *LEADER_CRASH)
    assert [shown[key] for key in ("protocol", "members", "runs", "seed", "engine")] == [
        protocol,
        9,
        3,
        5,
        "events",
    ]
    assert shown["params"]["choice"] == "highest-id"
    assert shown["params"]["delta"] == 1.0
    for metric in ("election", "answer", "coordinator", "other"):
        assert list(shown["metrics"][f"{metric}_messages"]) == SUMMARY
    for metric in ("messages", "time"):
        assert list(shown["metrics"][metric]) == SUMMARY
    assert "leader" in shown["metrics"]


def test_the_lowest_of_64_detects(hustings: Hustings) -> None:
    """The lecture's worst case, and its closed form beside it."""
    shown = read(hustings, "sim", "bully", "-n", "64", "--detector", "1", *LEADER_CRASH)
    counted = {name: summary["mean"] for name, summary in shown["metrics"].items()}
    assert counted["messages"] == 64**2 - 64 - 1
    assert counted["leader"] == 63
    assert counted["time"] == 4
    forms = read(hustings, "theory", "bully", "--set", "n=64", "--set", "d=1")["forms"]
    values = {form["name"]: form["value"] for form in forms}
    assert values["messages"] == counted["messages"]


def test_settings_are_reported_as_they_were_used(hustings: Hustings) -> None:
    shown = read(hustings, "sim", "ring", "--set", "T=inf", "--delay", "0.5")
    assert shown["params"]["T"] == "inf"
    assert shown["params"]["delta"] == 0.5


def test_without_a_leader_the_metric_is_all_null(hustings: Hustings) -> None:
    shown = read(hustings, "sim", "bully", "--until", "1")
    assert list(shown["metrics"]["leader"].values()) == [None] * 6
    assert shown["endings"] == {"until": 1}


def test_warnings_go_to_stderr_and_into_the_object(hustings: Hustings) -> None:
    result = hustings("sim", "bully", "--loss", "0.1", "--json")
    (warning,) = json.loads(result.out)["warnings"]
    assert result.err == f"hustings: note: {warning}\n"


def test_compare_has_a_row_for_each(hustings: Hustings) -> None:
    shown = read(hustings, "compare", "-n", "16", *LEADER_CRASH)
    assert [row["protocol"] for row in shown["rows"]] == [
        kind.about.name for kind in classes(COMPARED)
    ]
    assert len(shown["formulas"]) == 7
    assert shown["table_1"]


def test_a_check_that_fails_exits_1(hustings: Hustings) -> None:
    """The election as printed elects everybody."""
    wrong = ("sim", "bully-map-printed", *LEADER_CRASH)
    assert hustings(*wrong, "--json").code == 0
    failed = hustings(*wrong, "--json", "--check")
    assert failed.code == 1
    assert json.loads(failed.out)["verdicts"]["uniqueness"]["violated"] == 1
    assert hustings("sim", "bully-map", *LEADER_CRASH, "--check").code == 0
    assert hustings("compare", "-n", "8", *LEADER_CRASH, "--check").code == 0


DIGESTED = ("sim", "ring", "-n", "9", "--runs", "6", "--loss", "0.2", "--view", "0.8", "--digest")


def test_one_seed_gives_one_digest(hustings: Hustings) -> None:
    plain = read(hustings, *DIGESTED)
    assert read(hustings, *DIGESTED, "--jobs", "2") == plain
    for hash_seed in ("0", "1"):
        alone = in_own_process(*DIGESTED, "--json", environment={"PYTHONHASHSEED": hash_seed})
        assert json.loads(alone.out) == plain
    assert read(hustings, *DIGESTED, "--seed", "2")["digest"] != plain["digest"]

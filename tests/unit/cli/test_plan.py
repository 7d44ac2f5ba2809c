"""`hustings plan`: one object for scripts, a line to copy for people, refusals in a sentence."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from hustings.extras import install_command
from tests.unit.cli.commands import Hustings

QUICK = ("plan", "committee", "-n", "200", "--set", "c0=16", "--effort", "quick")
TRIAL = {
    *("settings", "success", "worst_attack", "by_attack", "informed", "bits_mean", "bits_max"),
    *("rounds", "runs"),
}


def told(hustings: Hustings, *words: str) -> dict[str, Any]:
    shown = hustings(*words, "--json")
    assert shown.code == 0, shown.err
    found: dict[str, Any] = json.loads(shown.out)
    return found


def test_what_scripts_rely_on(hustings: Hustings) -> None:
    shown = told(hustings, *QUICK, "--set", "b=0.1", "--set", "adversary=aware")
    assert (shown["election"], shown["members"], shown["b"]) == ("committee", 200, 0.1)
    assert "greedy" in shown["attacks"]
    assert shown["tried"] >= len(shown["front"]) > 0
    for trial in (shown["proposed"], *shown["front"]):
        assert set(trial) == TRIAL
        assert set(trial["by_attack"]) <= set(shown["attacks"])  # those that concern it
        assert {"random", "greedy"} <= set(trial["by_attack"])
        assert trial["by_attack"][trial["worst_attack"]]["mean"] == trial["success"]
    assert shown["proposed"] in shown["front"]


def test_the_line_that_is_proposed_can_be_played(hustings: Hustings) -> None:
    shown = hustings(*QUICK, "--set", "b=0.05")
    assert shown.code == 0, shown.err
    line = shown.out.strip().splitlines()[-1]
    assert line.startswith("hustings sim committee -n 200 --set b=0.05 ")
    played = hustings(*line.split()[1:])
    assert played.code == 0, played.err


def test_a_plan_is_the_same_again_and_another_by_another_seed(hustings: Hustings) -> None:
    words = (*QUICK, "--set", "b=0.1", "--set", "layers=4:4:1")
    assert told(hustings, *words) == told(hustings, *words)
    assert told(hustings, *words) != told(hustings, *words, "--seed", "1")


def test_nothing_to_propose_is_told_by_the_exit(hustings: Hustings) -> None:
    words = (*QUICK, "--set", "b=0.66", "--set", "experiment=true", "--set", "layers=4:4:1")
    shown = hustings(*words)
    assert shown.code == 1
    assert "nothing that was tried elects a good leader" in shown.err
    assert json.loads(hustings(*words, "--json").out)["proposed"] is None


@pytest.mark.parametrize(
    "line, words",
    [
        ("comittee -n 200", "did you mean 'committee'?"),
        ("committee -n 1", "-n"),
        ("committee", "-n"),
        ("committee -n 200 --effort quik", "did you mean 'quick'?"),
        ("committee -n 200 --set profile=lean", "fix single knobs instead"),
        ("committee -n 200 --set b=0.4", "must be below 1/3"),
        ("committee -n 200 --set adversary=gredy", "did you mean 'greedy'?"),
        ("committee -n 200 --set adversary=awar", "did you mean 'aware'?"),
        ("committee -n 200 --set nope=1", "unknown setting 'nope'"),
        ("committee -n 200 --set c0=300", "no network of the search fits a group of 200"),
        ("committee -n 200 --bits 0", "--bits"),
        (
            "committee -n 200 --set c0=16 --set layers=4:4:1 --effort quick --bits 1",
            "no candidate sends 1 bits or less",
        ),
    ],
)
def test_bad_input(line: str, words: str, hustings: Hustings) -> None:
    assert words in hustings("plan", *line.split()).complaint


@pytest.mark.parametrize("line", ["plan committee -n 100", "sim committee -n 10000"])
def test_without_the_extra_it_says_which_one(
    line: str, hustings: Hustings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [each for each in sys.modules if each.startswith("hustings.lab.kernels")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("numba", "numpy"):
        monkeypatch.setitem(sys.modules, name, None)
    result = hustings(*line.split())
    assert result.code == 2
    assert install_command("fast") in result.err

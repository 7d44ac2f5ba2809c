"""`hustings sim --engine fast`: the shape of its report, its cuts, and that it is the kernels'."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hustings.lab.kernels.announce.parameters import AnnounceParameters
from hustings.lab.kernels.announce.play import play
from tests.unit.cli.commands import Hustings

LOSSY = ("--loss", "0.4", "--loss-model", "uncorrelated", "--delay", "0.1")


def told(hustings: Hustings, *words: str) -> dict[str, Any]:
    shown = hustings("sim", *words, "--json")
    assert shown.code == 0
    found: dict[str, Any] = json.loads(shown.out)
    return found


@pytest.mark.parametrize("protocol", ["sup", "al", "le-a", "le-s", "le-m"])
def test_both_engines_report_in_one_shape(protocol: str, hustings: Hustings) -> None:
    words = (protocol, "-n", "5", *LOSSY, "--runs", "20")
    fast, events = (told(hustings, *words, "--engine", name) for name in ("fast", "events"))
    assert (fast["engine"], events["engine"]) == ("fast", "events")
    assert set(fast) == set(events)
    assert set(fast["metrics"]) == {*events["metrics"], "first_round_time"}
    assert fast["params"] == events["params"]
    assert fast["scenario"] == events["scenario"]
    assert fast["endings"] == events["endings"]
    assert fast["verdicts"] == {}, "no property is judged"


def test_the_numbers_are_those_of_the_kernels(hustings: Hustings) -> None:
    shown = told(
        *(hustings, "le-s", "-n", "9", *LOSSY, "--set", "T_L=2", "--set", "T_S=0.5"),
        *("--runs", "50", "--run", "7", "--seed", "3", "--engine", "fast"),
    )
    setting = AnnounceParameters(
        protocol="le-s",
        members=9,
        T_S=0.5,
        T_L=2.0,
        delay=0.1,
        loss_model="uncorrelated",
        loss=0.4,
    )
    found = play(setting, 3, 7, 57)
    for name in ("tmax", "num_msgs", "avg_rounds"):
        assert shown["metrics"][name]["mean"] == pytest.approx(found.metrics[name].mean())


def test_threads_change_nothing(hustings: Hustings, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("le-m", "-n", "8", *LOSSY, "--runs", "100", "--engine", "fast")
    whole = told(hustings, *words)
    monkeypatch.setattr("hustings.lab.runs.engines.PIECE", 8 * 7)  # pieces of seven runs
    assert told(hustings, *words) == told(hustings, *words, "--jobs", "3") == whole


def test_runs_that_are_given_up_are_told(hustings: Hustings) -> None:
    words = ("sim", "le-a", "-n", "2", "--delay", "0.1", "--loss", "0.9999", "--runs", "40")
    shown = hustings(*words, "--engine", "fast", "--json")
    assert shown.code == 0
    found = json.loads(shown.out)
    cut = found["endings"]["max-rounds"]
    assert 0 < cut < 40
    assert f"{cut} of 40 runs were given up" in shown.err
    assert found["warnings"][-1] in shown.err


def test_people_are_shown_the_same(hustings: Hustings) -> None:
    shown = hustings("sim", "al", "-n", "5", "--delay", "0.1", "--engine", "fast")
    assert shown.code == 0
    assert "leadership_delay" in shown.out
    assert "1 stopped" in shown.out

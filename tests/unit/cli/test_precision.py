"""`hustings sim --engine auto` and `--stderr`: what is left to the command, and what it says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hustings.lab.runs import engines
from tests.unit.cli.commands import Hustings

LE_S = ("sim", "le-s", "--delay", "0.1", "--loss", "0.2", "--set", "T_L=inf", "--set", "T_A=1.2")


def told(hustings: Hustings, *words: str, code: int = 0) -> tuple[dict[str, Any], str]:
    shown = hustings(*words, "--json")
    assert shown.code == code, shown.err
    found: dict[str, Any] = json.loads(shown.out)
    return found, shown.err


@pytest.mark.parametrize(
    "words, engine, reason",
    [
        (("-n", "100", "--runs", "1000"), "fast", "its kernels know this election"),
        (("-n", "8"), "events", "so little is soon played"),
        (("-n", "5", "--runs", "20", "--max-events", "9000"), "events", "--max-events limits"),
        (("-n", "5", "--drift", "0.1", "--runs", "30"), "events", "engine 'fast' knows no clocks"),
        (("-n", "8", "--digest"), "events", "--digest needs every message"),
    ],
)
def test_auto_picks_and_says_why(
    words: tuple[str, ...], engine: str, reason: str, hustings: Hustings
) -> None:
    found, err = told(hustings, *LE_S, *words, "--engine", "auto")
    assert found["engine"] == engine
    assert reason in found["engine_reason"]
    assert f"note: engine {engine}, for {found['engine_reason']}\n" in err
    assert found["warnings"][-1].startswith(f"engine {engine}, for ")
    named, _ = told(hustings, *LE_S, *words, "--engine", engine)
    assert named["metrics"] == found["metrics"]
    assert "engine_reason" not in named


def test_auto_refuses_what_nobody_can_play(hustings: Hustings) -> None:
    shown = hustings("sim", "le-s", "-n", "0", "--engine", "auto")
    assert shown.complaint == "members must be at least 1, not 0"
    shown = hustings("sim", "bully", "-n", "2000000", "--engine", "auto")
    assert "between 1 and 1,000,000" in shown.complaint


@pytest.mark.parametrize("engine", ["events", "fast"])
def test_runs_until_the_error_is_small(engine: str, hustings: Hustings) -> None:
    words = (*LE_S, "-n", "5", "--engine", engine, "--run", "7")
    found, _ = told(hustings, *words, "--stderr", "0.04")
    assert found["precision"] == {
        "metric": "tmax",
        "target": 0.04,
        "stderr": found["metrics"]["tmax"]["stderr"],
        "most_runs": 100_000 if engine == "events" else 1_000_000,
        "reached": True,
    }
    assert found["metrics"]["tmax"]["stderr"] <= 0.04
    assert 200 < found["runs"] < 2_000
    same, _ = told(hustings, *words, "--runs", str(found["runs"]))
    assert same["metrics"] == found["metrics"]
    assert same["endings"] == found["endings"]


@pytest.mark.parametrize("engine", ["events", "fast"])
def test_jobs_change_nothing(engine: str, hustings: Hustings) -> None:
    words = (*LE_S, "-n", "5", "--engine", engine, "--stderr", "0.05")
    assert told(hustings, *words) == told(hustings, *words, "--jobs", "2")


def test_what_cannot_be_reached_is_told_beside_the_numbers(hustings: Hustings) -> None:
    words = (*LE_S, "-n", "5", "--stderr", "0.001", "--metric", "messages", "--runs", "300")
    found, err = told(hustings, *words, code=2)
    assert (found["runs"], found["precision"]["reached"]) == (300, False)
    assert err.count("\n") == 1
    assert "messages has a standard error of" in err
    assert "after 300 runs, the most allowed: 0.001 would take about" in err
    shown = hustings(*words)
    assert shown.code == 2
    assert "coordinator_messages" in shown.out


@pytest.mark.parametrize(
    "words, complaint",
    [
        (("--stderr", "0"), "stderr must be a number > 0, not 0"),
        (("--stderr", "nan"), "'nan' is not a valid float"),
        (("--stderr", "x"), "'x' is not a valid float"),
        (("--stderr", "0.1", "--runs", "1"), "a standard error takes between 2 and"),
        (("--metric", "tmax"), "--metric goes with --stderr"),
        (("--stderr", "0.1", "--metric", "tmx"), "unknown metric 'tmx': did you mean 'tmax'?"),
    ],
)
def test_bad_wishes(words: tuple[str, ...], complaint: str, hustings: Hustings) -> None:
    assert complaint in hustings(*LE_S, "-n", "3", *words).complaint


def test_what_does_not_fit_is_refused_with_the_estimate(
    hustings: Hustings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "memory_here", lambda: 1 << 30)
    runs = ("--runs", "10000000")
    shown = hustings("sim", "bully", "-n", "5", *runs)
    assert shown.complaint == (
        "10,000,000 runs of 5 members would take about 12.1 GiB of memory, and this machine has "
        "1 GiB"
    )
    assert "about 1.49 GiB" in hustings(*LE_S, "-n", "5", *runs, "--engine", "fast").complaint

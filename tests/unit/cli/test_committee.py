"""`hustings sim` for elections among liars: what is reported, who plays, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.commands import Hustings

KNOBS = ("--set", "c0=4", "--set", "layers=2:2:1", "--set", "path=4", "--set", "r_end=4")
SMALL = ("committee", "-n", "24", *KNOBS)
REPORTED = (
    "good_leader",
    "informed",
    "false_leaders",
    "root_bad",
    "bits_mean",
    "bits_max",
    "rounds",
)


def told(hustings: Hustings, *words: str) -> dict[str, Any]:
    shown = hustings("sim", *words, "--json")
    assert shown.code == 0, shown.err
    found: dict[str, Any] = json.loads(shown.out)
    return found


@pytest.mark.parametrize("engine", ["events", "fast"])
def test_what_scripts_rely_on(engine: str, hustings: Hustings) -> None:
    shown = told(
        *(hustings, *SMALL, "--set", "b=0.1", "--set", "adversary=greedy+pack"),
        *("--runs", "3", "--seed", "5", "--engine", engine),
    )
    assert shown["engine"] == engine
    assert (shown["protocol"], shown["members"], shown["runs"], shown["seed"]) == (
        *("committee", 24, 3, 5),
    )
    for name in REPORTED:
        assert 0 <= shown["metrics"][name]["mean"] < 1e9, name
    assert shown["metrics"]["bits_mean"]["mean"] > 0
    assert shown["params"]["adversary"] == "greedy+pack"
    assert shown["endings"] == {"quiescent": 3}


def test_both_engines_report_the_same_metrics(hustings: Hustings) -> None:
    fast, events = (
        told(hustings, *SMALL, "--runs", "2", "--engine", name) for name in ("fast", "events")
    )
    only_chances = {"p_good"}  # what might have been, only the large-scale engine knows
    assert set(fast["metrics"]) - only_chances == set(events["metrics"]) - only_chances
    assert fast["params"] == events["params"]
    assert events["verdicts"]["uniqueness"]["holds"] == 2
    assert fast["verdicts"] == {}


def test_lean_in_a_large_group(hustings: Hustings) -> None:
    shown = told(
        *(hustings, "committee", "-n", "10000", "--set", "b=0.1", "--set", "profile=lean"),
        *("--set", "adversary=greedy+pack", "--runs", "4", "--seed", "5"),
    )
    assert shown["engine"] == "fast"
    assert "10000 members are too many" in shown["engine_reason"]
    assert shown["metrics"]["root_bad"]["mean"] > 0.1


# Who plays


@pytest.mark.parametrize(
    "words, engine, reason",
    [
        ((), "events", "message by message, and judged, too"),
        (("--runs", "21"), "fast", "21 runs would take long message by message"),
        (("--set", "model=signed"), "fast", "model=signed is for the large-scale engine"),
        (("--digest",), "events", "--digest needs every message"),
        (("--check",), "events", "--check needs every message"),
    ],
)
def test_auto_says_why(
    words: tuple[str, ...], engine: str, reason: str, hustings: Hustings
) -> None:
    for more in ((), ("--engine", "auto")):
        shown = told(hustings, *SMALL, *words, *more)
        assert shown["engine"] == engine
        assert reason in shown["engine_reason"]
        assert any(reason in warning for warning in shown["warnings"])


def test_printed_layers_go_message_by_message_however_many_runs(hustings: Hustings) -> None:
    shown = told(
        *(hustings, "committee", "-n", "16", "--set", "profile=printed", "--set", "c0=4"),
        *("--set", "layers=2:2:1", "--set", "path=2", "--runs", "21"),
    )
    assert shown["engine"] == "events"
    assert "fills its committees up arbitrarily" in shown["engine_reason"]


def test_nobody_asks_why_if_the_engine_was_named(hustings: Hustings) -> None:
    assert "engine_reason" not in told(hustings, *SMALL, "--engine", "events")


# One committee of all


def test_agreement(hustings: Hustings) -> None:
    words = ("agreement", "-n", "13", "--set", "adversary=split", "--runs", "4")
    shown = told(hustings, *words, "--set", "t=4")
    assert shown["engine"] == "events"
    assert shown["metrics"]["violated"]["mean"] == 0.0
    assert shown["metrics"]["bad"]["mean"] == 4.0
    assert shown["verdicts"]["agreement"]["holds"] == 4


def test_agreement_beyond_t_is_violated_and_checked(hustings: Hustings) -> None:
    words = ("sim", "agreement", "-n", "10", "--set", "instances=8", "--runs", "6")
    beyond = (*words, "--set", "bad=5", "--set", "adversary=first+split")
    assert hustings(*beyond, "--check").code == 1
    assert hustings(*words, "--set", "adversary=first+split", "--check").code == 0


def test_lightest_bin(hustings: Hustings) -> None:
    shown = told(
        *(hustings, "lightest-bin", "-n", "16", "--set", "halvings=2", "--set", "style=baton"),
        *("--set", "adversary=pack", "--runs", "2"),
    )
    assert shown["metrics"]["violated"]["mean"] == 0.0
    assert shown["metrics"]["elected"]["max"] <= 4
    for name in ("elected_bad", "good_leader", "bits_mean", "rounds"):
        assert name in shown["metrics"]


# What is refused


@pytest.mark.parametrize(
    "line, words",
    [
        ("committee -n 24 --set b=0.34", "must be below 1/3"),
        ("committee -n 24 --set b=0.34", "--set experiment=true"),
        ("committee -n 15", "profile lean is for 16 members or more, not 15"),
        ("committee -n 15 --set profile=robust", "profile robust is for 16 members or more"),
        ("committee -n 3 --set profile=printed", "profile printed is for 4 members or more"),
        ("committee -n 24 --set adversary=gredy", "did you mean 'greedy'?"),
        ("committee -n 24 --set adversary=greedy+pak", "did you mean 'pack'?"),
        ("committee -n 24 --set profile=leen", "did you mean 'lean'?"),
        ("committee -n 24 --set layers=2:2", "children:neighbours:halvings"),
        ("committee -n 24 --set c0=25", "c0 = 25 is more than the group of 24"),
        ("committee -n 2000 --engine events", "too many to be played message by message"),
        ("committee -n 2000 --digest", "too many to be played message by message"),
        ("committee -n 24 --engine fast --until 5", "--until"),
        ("committee -n 24 --engine fast --digest", "--digest needs every message"),
        ("committee -n 24 --engine fast --check", "--check needs every message"),
        ("committee -n 24 --engine quick", "unknown engine 'quick'"),
        ("agreement -n 9 --set t=3", "t = 3 needs more than 9 members, and there are 9"),
        ("agreement -n 9 --set bad=10", "bad = 10 is more than the group of 9 has"),
        ("agreement -n 9 --set adversary=splt", "did you mean 'split'?"),
        ("agreement -n 9 --engine fast", "engine 'fast' does not know agreement"),
        ("agreement -n 300", "at most 256"),
        ("lightest-bin -n 9 --set style=batton", "style must be one of"),
        ("lightest-bin -n 9 --set t=4", "t = 4 needs more than 12 members"),
    ],
)
def test_bad_input(line: str, words: str, hustings: Hustings) -> None:
    assert words in hustings("sim", *line.split()).complaint


def test_a_third_runs_as_an_experiment_and_says_so(hustings: Hustings) -> None:
    shown = told(hustings, *SMALL, "--set", "b=0.4", "--set", "experiment=true")
    assert any("nothing is promised" in warning for warning in shown["warnings"])
    assert shown["metrics"]["root_bad"]["mean"] > 0


@pytest.mark.parametrize("engine", ["fast", "auto"])
def test_memory_is_reckoned_before_a_run(
    engine: str, hustings: Hustings, monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[object] = []
    monkeypatch.setattr("hustings.lab.byzantine.large.memory", lambda assembly: 9 * 1024**3)
    monkeypatch.setattr("hustings.lab.byzantine.large.play", lambda *words: played.append(words))
    shown = hustings("sim", "committee", "-n", "5000", "--engine", engine)
    assert "this needs about 9.7 GB of memory, and the limit is 8.6" in shown.complaint
    assert played == []


# Traces and digests


@pytest.mark.parametrize(
    "words",
    [
        SMALL,
        ("agreement", "-n", "7", "--set", "adversary=split"),
        ("lightest-bin", "-n", "8", "--set", "adversary=pack"),
    ],
    ids=lambda words: str(words[0]),
)
def test_a_trace_can_be_written_and_read(
    words: tuple[str, ...], hustings: Hustings, tmp_path: Path
) -> None:
    path = tmp_path / "run.jsonl"
    shown = told(hustings, *words, "--trace", str(path))
    assert shown["engine"] == "events"
    lines = path.read_text().splitlines()
    assert len(lines) > 30
    assert json.loads(lines[0])
    read = hustings("trace", str(path))
    assert read.code == 0, read.err


def test_no_trace_is_left_by_what_is_refused(hustings: Hustings, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    assert hustings("sim", "committee", "-n", "2000", "--trace", str(path)).code == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize(
    "words",
    [
        (*SMALL, "--set", "b=0.1"),
        ("agreement", "-n", "7", "--set", "adversary=noise"),
        ("lightest-bin", "-n", "8", "--set", "adversary=pack"),
    ],
    ids=lambda words: str(words[0]),
)
def test_digests_are_equal_for_any_jobs(
    words: tuple[str, ...], jobs: str, hustings: Hustings
) -> None:
    again = (*words, "--runs", "3", "--digest")
    first = told(hustings, *again)
    second = told(hustings, *again, "--jobs", jobs)
    assert first == second
    assert len(first["digest"]) > 8
    assert told(hustings, *again, "--seed", "2")["digest"] != first["digest"]


def test_threads_change_nothing(hustings: Hustings, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("committee", "-n", "300", "--set", "b=0.1", "--runs", "12", "--engine", "fast")
    whole = told(hustings, *words)
    monkeypatch.setattr("hustings.lab.runs.engines.LARGE_PIECE", 300 * 5)  # pieces of five runs
    assert told(hustings, *words) == told(hustings, *words, "--jobs", "2") == whole

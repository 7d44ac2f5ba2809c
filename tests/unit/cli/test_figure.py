"""`hustings figure`: what there is, what it writes, what it refuses, and what Ctrl-C leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hustings.cli.output import Lines
from hustings.cli.output import told as told_words
from hustings.extras import install_command
from hustings.lab.figures import catalogue, measuring
from hustings.lab.figures.figure import ClaimVerdict, Finding
from hustings.lab.runs.playing import Progress
from tests.unit.cli.commands import COMMAND, PATIENCE, Hustings, in_own_process
from tests.unit.cli.test_process import interruptible, wait_until_gone, workers_of
from tests.unit.lab.figures.samples import FIGURE

__all__ = ["interruptible"]

ENDINGS = ("csv", "md", "png", "svg")


@pytest.fixture
def sample(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A catalogue of one small figure, and an empty folder to work in."""
    monkeypatch.setattr(catalogue, "FIGURES", (FIGURE,))
    monkeypatch.setattr(Lines, "EVERY", float(PATIENCE))  # on a slow machine, no line of progress
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make(hustings: Hustings, *more: str) -> dict[str, Any]:
    shown = hustings("figure", "sample-1", "--jobs", "1", "--json", *more)
    assert (shown.code, shown.err) == (0, "")
    told: dict[str, Any] = json.loads(shown.out)
    return told


# What there is


def test_the_list_names_every_figure(hustings: Hustings) -> None:
    shown = hustings("figure", "--list")
    assert shown.code == 0
    for name in catalogue.names():
        assert name in shown.out
    listed = json.loads(hustings("figure", "--list", "--json").out)["figures"]
    assert [each["name"] for each in listed] == catalogue.names()
    assert {each["kind"] for each in listed} == {"picture", "table"}


def test_every_figure_of_the_chapter_is_there() -> None:
    wanted = [f"announce-5.{number}" for number in range(6, 14)]
    wanted += ["announce-claims", "announce-scale"]
    assert wanted == [each.name for each in catalogue.of_family("announce")]


def test_the_list_of_a_family(hustings: Hustings) -> None:
    listed = json.loads(hustings("figure", "--list", "--family", "classic", "--json").out)
    assert [each["family"] for each in listed["figures"]] == ["classic", "classic"]


# What it writes


def test_a_figure_is_written(sample: Path, hustings: Hustings) -> None:
    shown = make(hustings, "--runs", "100", "--out", "here/deep")
    (told,) = shown["figures"]
    assert (shown["seed"], shown["runs"]) == (1, 100)
    assert told["files"] == [f"here/deep/sample-1.{end}" for end in ENDINGS]
    assert all((sample / path).stat().st_size for path in told["files"])
    assert told["verdict"] == "reproduced"
    assert [finding["by"] for finding in told["findings"]] == ["paper", "hustings"]
    assert {finding["verdict"] for finding in told["findings"]} == {"holds"}
    points = [row for row in told["rows"] if row["runs"]]
    assert len(points) == 6
    assert len(list((sample / "here/deep/cells").iterdir())) == 6


def test_people_are_told_where_the_files_are(sample: Path, hustings: Hustings) -> None:
    shown = hustings("figure", "sample-1", "--runs", "100", "--jobs", "1")
    assert (shown.code, shown.err) == (0, "")
    assert "figures/sample-1.{csv,md,png,svg}" in shown.out
    assert "sample-1: larger groups cost more: holds" in shown.out
    assert "sample-1: (our check) runs and closed form agree: holds" in shown.out


def test_the_same_seed_writes_the_same_bytes(sample: Path, hustings: Hustings) -> None:
    for out, seed in (("one", "5"), ("two", "5"), ("other", "6")):
        make(hustings, "--runs", "20", "--out", out, "--seed", seed)
    for end in ENDINGS:
        one, two, other = (
            (sample / out / f"sample-1.{end}").read_bytes() for out in ("one", "two", "other")
        )
        assert one == two
        assert one != other or end == "md"


def test_what_is_known_is_not_played_again(
    sample: Path, hustings: Hustings, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = make(hustings, "--runs", "20")
    monkeypatch.setattr(measuring, "play_block", None)
    assert make(hustings, "--runs", "20") == first


def test_a_damaged_cell_is_mentioned_and_measured_again(sample: Path, hustings: Hustings) -> None:
    first = make(hustings, "--runs", "20")
    victim = next((sample / "figures/cells").iterdir())
    victim.write_bytes(victim.read_bytes().replace(b"1", b"2"))
    shown = hustings("figure", "sample-1", "--jobs", "1", "--runs", "20", "--json")
    assert shown.code == 0
    assert json.loads(shown.out) == first
    (line,) = shown.err.splitlines()
    assert line.startswith("hustings: note: ")
    assert "is not to be trusted" in line


def test_all_of_a_family(hustings: Hustings, tmp_path: Path) -> None:
    shown = hustings("figure", "all", "--family", "classic", "--out", str(tmp_path), "--json")
    told = json.loads(shown.out)["figures"]
    assert [each["name"] for each in told] == ["classic-comparison", "overhead-table-1"]
    for each in told:
        assert [Path(path).suffix for path in each["files"]] == [".csv", ".md"]
    assert "printed" in (tmp_path / "overhead-table-1.md").read_text(encoding="utf-8")


def test_check_fails_where_runs_and_closed_forms_differ(
    sample: Path, hustings: Hustings, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("figure", "sample-1", "--runs", "100", "--jobs", "1", "--check")
    assert hustings(*arguments).code == 0
    (panel,) = FIGURE.panels
    curves = (replace(panel.curves[0], exact=lambda cell: 1.0), panel.curves[1])
    wrong = replace(FIGURE, panels=(replace(panel, curves=curves),))
    monkeypatch.setattr(catalogue, "FIGURES", (wrong,))
    shown = hustings(*arguments)
    assert shown.code == 1
    assert "(our check) runs and closed form agree: fails" in shown.out


@pytest.mark.parametrize("undecided, code", [(0, 0), (1, 0), (2, 1)])
def test_check_tells_what_is_undecided_and_fails_where_all_is(
    undecided: int, code: int, sample: Path, hustings: Hustings, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdicts = [ClaimVerdict.UNDECIDED] * undecided + [ClaimVerdict.HOLDS] * (2 - undecided)
    found = [
        Finding("one", verdicts[0], "so it is"),
        Finding("other", verdicts[1], "so it is", theirs=False),
    ]
    open_figure = replace(FIGURE, judge=lambda points: found)
    monkeypatch.setattr(catalogue, "FIGURES", (open_figure,))
    typed = ("figure", "sample-1", "--runs", "2", "--jobs", "1")
    shown = hustings(*typed, "--check")
    assert shown.code == code
    sentence = f"{undecided} of 2 claims are undecided"
    assert (sentence in shown.err) is (undecided > 0)
    assert ("more --runs" in shown.err) is (undecided > 0)
    assert hustings(*typed).code == 0


# What it refuses

BAD = [
    ("figure", "name a figure, or all"),
    ("figure announce-5.66", "did you mean 'announce-5.6'?"),
    ("figure sample-1 announce-5.6", "unknown figure 'sample-1'"),
    ("figure all --family anounce", "did you mean 'announce'?"),
    ("figure --list --family nope", "unknown family 'nope'"),
    ("figure announce-5.6 --family announce", "--family goes with all"),
    ("figure announce-5.6 --list", "--list takes no names"),
    ("figure announce-5.6 --runs 0", "--runs"),
    ("figure announce-5.6 --runs x", "--runs"),
    ("figure announce-5.6 --jobs 0", "--jobs"),
    ("figure announce-5.6 --jobs 1000", "--jobs"),
    ("figure announce-5.6 --seed x", "--seed"),
]


@pytest.mark.parametrize("typed, words", BAD, ids=[typed for typed, _ in BAD])
def test_a_mistake_gets_one_sentence(
    typed: str, words: str, hustings: Hustings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert words in hustings(*typed.split()).complaint
    assert list(tmp_path.iterdir()) == []


def test_an_output_folder_that_cannot_be_made(hustings: Hustings, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file", encoding="utf-8")
    assert "cannot make the folder" in hustings("figure", "all", "--out", str(taken)).complaint


HIDE = """
import sys
sys.modules["matplotlib"] = None
from hustings.cli import main
main()
"""


def without_matplotlib(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", HIDE, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_without_matplotlib_a_picture_gets_a_sentence(tmp_path: Path) -> None:
    done = without_matplotlib("figure", "announce-5.6", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"hustings: figures need matplotlib: {install_command('figures')}\n"
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_tables_and_the_list_are_there(tmp_path: Path) -> None:
    assert without_matplotlib("figure", "--list", cwd=tmp_path).returncode == 0
    done = without_matplotlib("figure", "overhead-table-1", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


# Interruptions


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_keeps_what_is_done(tmp_path: Path) -> None:
    """The next call plays only what is missing."""
    arguments = ["figure", "announce-5.10", "--runs", "8", "--json"]
    cells = tmp_path / "figures" / "cells"
    with subprocess.Popen(
        [*COMMAND, *arguments, "--jobs", "2"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as command:
        started = workers_of(command.pid)
        while not list(cells.glob("*.json")):  # the first of many cells
            assert command.poll() is None
            time.sleep(0.01)
        os.killpg(command.pid, signal.SIGINT)
        out, err = command.communicate(timeout=PATIENCE)
        assert wait_until_gone(started) == []
    assert (command.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "hustings: interrupted"
    kept = {path: path.stat().st_mtime_ns for path in cells.iterdir()}
    assert all(path.suffix == ".json" for path in kept)
    assert not (tmp_path / "figures" / "announce-5.10.csv").exists()
    again = in_own_process(*arguments, "--jobs", "1", cwd=tmp_path)
    assert again.code == 0
    assert len(list(cells.iterdir())) > len(kept)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


# Progress


def test_a_log_gets_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    instants = [0.0, 0.5, 1.0, 2.0, 10.5, 11.0, 12.0, 20.5, 40.0]
    monkeypatch.setattr(time, "monotonic", lambda: instants.pop(0))
    lines: Lines[Progress] = Lines(lambda reached: told_words(reached, "cells"))
    said = []
    told = "hustings: note: 25 % played, 2 of 5 cells, 1,234 of 5,000 runs\n"
    while instants:
        now = instants[0]
        lines(Progress(done=2, series=5, runs=1234, wanted=5000, played=7, share=0.25))
        if shown := capsys.readouterr().err:
            said.append(now)
            assert shown == told
    assert said == [10.5, 20.5, 40.0]


def test_a_terminal_gets_a_bar(
    sample: Path, hustings: Hustings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    shown = hustings("figure", "sample-1", "--runs", "100", "--jobs", "1", "--json")
    assert shown.code == 0
    assert "6 of 6 cells, 600 of 600 runs" in shown.err
    assert json.loads(shown.out)["runs"] == 100

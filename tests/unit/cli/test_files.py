"""Files that commands read and write: whole and right, or refused and left alone."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.cli.commands import Hustings

LEADER_CRASH = ("sim", "bully", "-n", "4", "--scenario", "leader-crash")


@pytest.fixture
def trace(tmp_path: Path, hustings: Hustings) -> Path:
    path = tmp_path / "run.jsonl"
    assert hustings(*LEADER_CRASH, "--trace", str(path)).code == 0
    return path


@pytest.fixture
def locked(tmp_path: Path) -> Path:
    """A file that may not be written; the superuser may all the same, and is not stopped by it."""
    path = tmp_path / "locked"
    path.write_text("mine")
    path.chmod(0o444)
    if os.access(path, os.W_OK):
        path.unlink()
        path.symlink_to(tmp_path / "missing" / "file")
    return path


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_trace_is_written_read_and_drawn(trace: Path, hustings: Hustings) -> None:
    svg, log = trace.with_suffix(".svg"), trace.with_suffix(".log")
    shown = hustings("trace", str(trace))
    assert shown.code == 0
    assert "leads" in shown.out
    assert hustings("trace", str(trace), "--svg", str(svg), "--shiviz", str(log)).code == 0
    assert svg.read_text().startswith("<svg")
    assert log.read_text()
    assert left_in(trace.parent) == ["run.jsonl", "run.log", "run.svg"]


def test_a_trace_drawn_in_ascii_is_ascii(trace: Path, hustings: Hustings) -> None:
    assert hustings("trace", str(trace), "--ascii").out.isascii()
    assert not hustings("trace", str(trace)).out.isascii()


def test_a_diagram_keeps_to_its_width(trace: Path, hustings: Hustings) -> None:
    for width in (40, 60, 100):
        shown = hustings("trace", str(trace), "--width", str(width)).out
        assert max(len(line) for line in shown.splitlines()) <= width


@pytest.mark.parametrize("width", ["0", "-5", "wide"])
def test_a_width_that_makes_no_sense_is_refused(
    width: str, trace: Path, hustings: Hustings
) -> None:
    assert "--width" in hustings("trace", str(trace), "--width", width).complaint


@pytest.mark.parametrize("place", ["", "missing/run.jsonl"])
def test_a_trace_that_cannot_be_written_is_refused(
    place: str, tmp_path: Path, hustings: Hustings
) -> None:
    target = tmp_path / place
    assert "cannot write" in hustings(*LEADER_CRASH, "--trace", str(target)).complaint
    assert left_in(tmp_path) == []


def test_a_locked_file_is_refused_and_kept(locked: Path, hustings: Hustings) -> None:
    before = left_in(locked.parent)
    assert "cannot write" in hustings(*LEADER_CRASH, "--trace", str(locked)).complaint
    assert left_in(locked.parent) == before


@pytest.mark.parametrize(
    "mistake", [["--runs", "0"], ["--jobs", "0"], ["--fault", "crash:9@1"], ["--view", "2"]]
)
def test_a_mistake_elsewhere_leaves_no_trace(
    mistake: list[str], tmp_path: Path, hustings: Hustings
) -> None:
    assert hustings(*LEADER_CRASH, "--trace", str(tmp_path / "a.jsonl"), *mistake).complaint
    assert left_in(tmp_path) == []


def test_a_mistake_leaves_an_older_trace_as_it_was(trace: Path, hustings: Hustings) -> None:
    before = trace.read_bytes()
    assert hustings(*LEADER_CRASH, "--trace", str(trace), "--runs", "0").complaint
    assert trace.read_bytes() == before


@pytest.mark.parametrize("option", ["--svg", "--shiviz"])
def test_a_drawing_that_cannot_be_written_is_refused(
    option: str, trace: Path, hustings: Hustings
) -> None:
    for target in (trace.parent, trace.parent / "missing" / "file"):
        assert "cannot write" in hustings("trace", str(trace), option, str(target)).complaint
    assert left_in(trace.parent) == ["run.jsonl"]


def test_of_two_drawings_both_are_written_or_none(trace: Path, hustings: Hustings) -> None:
    svg, nowhere = trace.parent / "a.svg", trace.parent / "missing" / "a.log"
    drawn = hustings("trace", str(trace), "--svg", str(svg), "--shiviz", str(nowhere))
    assert "cannot write" in drawn.complaint
    assert left_in(trace.parent) == ["run.jsonl"]


def test_a_drawing_does_not_replace_its_trace(trace: Path, hustings: Hustings) -> None:
    before = trace.read_bytes()
    drawn = hustings("trace", str(trace), "--svg", str(trace))
    assert "is the trace itself" in drawn.complaint
    assert trace.read_bytes() == before


def test_two_drawings_need_two_files(trace: Path, hustings: Hustings) -> None:
    one = str(trace.parent / "one")
    assert "twice" in hustings("trace", str(trace), "--svg", one, "--shiviz", one).complaint
    assert left_in(trace.parent) == ["run.jsonl"]


SPOILT: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda whole: b"",
    "without its end": lambda whole: whole[: whole.rindex(b"\n", 0, -1) + 1],
    "cut in a line": lambda whole: whole[: len(whole) // 2],
    "without its last character": lambda whole: whole[:-2],
    "with a record left out": lambda whole: b"\n".join(
        line for place, line in enumerate(whole.split(b"\n")) if place != 3
    ),
    "with a number changed": lambda whole: whole.replace(b'"recv",1.0', b'"recv",1.5', 1),
    "with something added": lambda whole: whole + b"more\n",
    "a text": lambda whole: b"It was a dark and stormy night.\n",
    "other JSON": lambda whole: b'{"e": "something else"}\n',
    "binary": lambda whole: bytes(range(256)) * 8,
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT.keys())
def test_a_trace_that_was_tampered_with_is_refused(
    spoil: Callable[[bytes], bytes], trace: Path, hustings: Hustings
) -> None:
    whole = trace.read_bytes()
    assert spoil(whole) != whole
    trace.write_bytes(spoil(whole))
    svg = trace.with_suffix(".svg")
    assert str(trace) in hustings("trace", str(trace), "--svg", str(svg)).complaint
    assert left_in(trace.parent) == ["run.jsonl"]


@pytest.mark.parametrize("place", ["", "nothing.jsonl"])
def test_what_is_no_file_is_no_trace(place: str, tmp_path: Path, hustings: Hustings) -> None:
    assert str(tmp_path) in hustings("trace", str(tmp_path / place)).complaint


def test_a_path_on_several_lines_gets_one_sentence(tmp_path: Path, hustings: Hustings) -> None:
    assert hustings("trace", str(tmp_path / "two\nlines")).complaint
    assert hustings(*LEADER_CRASH, "--trace", str(tmp_path / "no" / "two\nlines")).complaint


def test_the_summary_of_a_trace(trace: Path, hustings: Hustings) -> None:
    summary = json.loads(hustings("trace", str(trace), "--json").out)
    assert summary["protocol"] == "bully"
    assert summary["members"] == [1, 2, 3, 4]
    assert summary["ended"] == "quiescent"
    assert summary["written"] == []

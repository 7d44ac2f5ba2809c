"""`hustings sweep`: its files, its refusals, and that nothing is lost whatever ends it."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from hustings.cli.output import Lines
from hustings.extras import install_command
from hustings.lab.runs import engines
from tests.unit.cli.commands import COMMAND, PATIENCE, Hustings, in_own_process

GRID = """
protocol = ["le-s", "bully"]
members = [3, 5]
loss = 0.1
delay = 0.1
runs = 60
"""
QUIET = 'protocol = "le-s"\nmembers = [3, 4]\ndelay = 0.1\nset = {T_A = 1.2, T_L = "inf"}\n'


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(text: str) -> None:
    Path("grid.toml").write_text(text, encoding="utf-8")


def told(hustings: Hustings, *words: str) -> dict[str, Any]:
    shown = hustings("sweep", "grid.toml", "--json", *words)
    assert shown.code == 0, shown.err
    found: dict[str, Any] = json.loads(shown.out)
    return found


def files(folder: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def test_a_point_is_what_its_command_gives(hustings: Hustings) -> None:
    write(
        GRID + 'engine = "auto"\n[[grid]]\n[[grid]]\nmembers = 9\nprotocol = "sup"\nfifo = true\n'
    )
    found = told(hustings, "--jobs", "1")
    assert [point["parameters"] for point in found["points"][:2]] == [
        {"protocol": "le-s", "members": 3, "loss": 0.1, "delay": 0.1},
        {"protocol": "le-s", "members": 5, "loss": 0.1, "delay": 0.1},
    ]
    assert len({point["seed"] for point in found["points"]}) == 5
    for point in found["points"]:
        words = shlex.split(point["command"])
        same = json.loads(hustings(*words[1:]).out)
        assert (same["runs"], same["seed"]) == (point["runs"], point["seed"])
        assert same["engine"] == point["engine"]
        assert same["endings"] == point["endings"]
        for name, summary in same["metrics"].items():
            for key in ("mean", "stderr", "min", "max"):
                assert point["metrics"][name][key] == pytest.approx(summary[key], rel=1e-9)


def test_its_files(hustings: Hustings) -> None:
    write(GRID)
    shown = hustings("sweep", "grid.toml", "--jobs", "1")
    assert shown.code == 0
    assert "grid, 4 points" in shown.out
    assert list(files("grid")) == [
        *("checkpoint", "grid.csv", "grid.parquet", "grid.png", "grid.svg")
    ]
    assert shown.out.endswith("grid/grid.csv\ngrid/grid.parquet\ngrid/grid.png\ngrid/grid.svg\n")
    header = files("grid")["grid.csv"].decode().splitlines()[0]
    assert header == (
        "point,protocol,members,loss,delay,engine,seed,metric,runs,count,mean,stderr,min,max,"
        "target,reached"
    )


def test_wherever_it_is_played_all_bytes_are_the_same(hustings: Hustings) -> None:
    write(GRID)
    for out, *words in (
        ("one", "--jobs", "1"),
        ("two", "--jobs", "2", "--on", "threads"),
        ("three", "--jobs", "2"),
    ):
        told(hustings, "--out", out, *words)
    one, two, three = files("one"), files("two"), files("three")
    for found in (one, two, three):
        found.pop("checkpoint")  # blocks lie in it as they came
    assert one == two == three


def test_a_new_run_changes_no_other(hustings: Hustings) -> None:
    """More of everything: points keep their seeds, and runs their numbers."""
    write(GRID)
    few = told(hustings, "--jobs", "1")["points"]
    write(GRID.replace("[3, 5]", "[2, 3, 5, 6]").replace("runs = 60", "runs = 61"))
    many = told(hustings, "--jobs", "1", "--out", "more")["points"]
    assert [point["seed"] for point in few] == [many[at]["seed"] for at in (1, 2, 5, 6)]


def test_several_seeds_and_engines_are_told_apart(hustings: Hustings) -> None:
    write(QUIET.replace("set", 'seed = [1, 2]\nengine = ["events", "fast"]\nruns = 5\nset'))
    found = told(hustings, "--jobs", "1")["points"]
    assert len(found) == 8
    assert found[0]["parameters"]["sweep_seed"] == 1
    assert [point["engine"] for point in found] == ["events", "fast"] * 4


def test_kill_9_loses_nothing_that_was_finished(hustings: Hustings) -> None:
    """A real process dies in the middle; the same command then gives the same bytes."""
    write('protocol = "bully"\nmembers = [10, 11, 12]\nruns = 400\ndelay = "uniform:0,1"\n')
    words = ["sweep", "grid.toml", "--jobs", "1", "--out", "killed"]
    checkpoint = Path("killed/checkpoint")
    with subprocess.Popen([*COMMAND, *words], stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if checkpoint.exists() and checkpoint.read_bytes().count(b"\n") > 3:
                break
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert list(files("killed")) == ["checkpoint"]
    kept = checkpoint.read_bytes()
    with checkpoint.open("ab") as torn:
        torn.write(b"0123 {")
    assert (
        told(hustings, "--jobs", "1", "--out", "killed")["points"]
        == (told(hustings, "--jobs", "1", "--out", "whole")["points"])
    )
    assert files("killed")["checkpoint"].startswith(kept[: kept.rindex(b"\n") + 1])
    assert files("killed") == files("whole")


def test_ctrl_c_says_where_it_is_kept(hustings: Hustings, monkeypatch: pytest.MonkeyPatch) -> None:
    write(GRID)
    monkeypatch.setattr(Lines, "__call__", _interrupt)
    shown = hustings("sweep", "grid.toml", "--jobs", "1")
    assert shown.code == 130
    assert "what is finished is kept in grid/checkpoint: the same command goes on" in shown.err
    assert list(files("grid")) == ["checkpoint"]


def _interrupt(_: object, reached: Any) -> None:
    if reached.played >= 2:
        raise KeyboardInterrupt


def test_a_precision_that_is_not_reached(hustings: Hustings) -> None:
    write(
        "stderr = 0.05\nruns = 400\nmetric = 'tmax'\nengine = 'fast'\nloss = [0.0, 0.5]\n" + QUIET
    )
    shown = hustings("sweep", "grid.toml", "--jobs", "1")
    assert shown.code == 2
    assert "1 of 4 points fall short" in shown.err or "2 of 4 points fall short" in shown.err
    assert "where tmax has a standard error of" in shown.err
    assert "grid/grid.csv" in shown.out
    rows = files("grid")["grid.csv"].decode()
    assert ",0.05,true\n" in rows
    assert ",0.05,false\n" in rows


BAD = [
    ("protocol = 'bully'\nmembrs = 3", "grid.toml line 2: unknown key 'membrs': did you mean 'mem"),
    (
        "protocol = 'bully'\nmembers = ['x']",
        "grid.toml line 2: members must be a whole number, not 'x'",
    ),
    (
        "protocol = 'bully'\nruns = 0",
        "line 2: point 1 (protocol=bully): runs must lie between 1 and 10,000,000, not 0",
    ),
    (
        "protocol = 'bully'\nruns = 'few'",
        "line 2: runs must be a whole number, not 'few'",
    ),
    ("protocol = 'bully'\nstderr = 'low'", "line 2: stderr must be a number, not 'low'"),
    ("protocol = 'bully'\nloss-set = 'a=1'", "line 2: loss-set must be a table of settings"),
    ("protocol = 'bully'\nloss = 1.5", "point 1 (protocol=bully, loss=1.5): loss must lie in [0, "),
    (
        "protocol = 'buly'",
        "point 1 (protocol=buly): unknown protocol 'buly': did you mean 'bully'?",
    ),
    ("protocol = '--help'", "unknown protocol '--help'"),
    ("members = 3", "grid.toml names no protocol"),
    ("protocol = 'bully'\nengine = 'fast'", "engine 'fast' plays sup"),
    ("protocol = 'bully'\nengine = 'quick'", "unknown engine 'quick'"),
    ("protocol = 'bully'\ntime-series = 1", "line 2: unknown key 'time-series'"),
    ("protocol = 'bully'\nmetric = 'time'", "--metric goes with --stderr"),
    ("protocol = 'bully'\nmembers = [3, 4]\nstderr = 0.1\nmetric = 'tim'", "unknown metric 'tim'"),
    (
        "protocol = 'bully'\n[set]\nT9 = 1",
        "grid.toml line 3: point 1 (protocol=bully, set.T9=1): unknown setting 'T9'",
    ),
    (
        "protocol = 'le-s'\n[[grid]]\nmembers = 3\nset.law = ['uniform', 'odd']",
        "grid.toml line 4: point 2 (protocol=le-s, members=3, set.law=odd): law must be one of",
    ),
    ("protocol = 'bully'\nmembers = [3, 3]", "points 1 and 2 are the same"),
    ("protocol = 'bully'\n[plot]\ny = 1", "line 2: plot: unknown key 'y'"),
    ("protocol = 'bully'\nmembers = 100000000", "members must lie between 1 and 1,000,000"),
]


@pytest.mark.parametrize("text, complaint", BAD, ids=range(len(BAD)))
def test_bad_files(text: str, complaint: str, hustings: Hustings) -> None:
    write(text)
    assert complaint in hustings("sweep", "grid.toml", "--jobs", "1").complaint


def test_lines_instead_of_a_file(hustings: Hustings) -> None:
    write(GRID)
    named = told(hustings, "--jobs", "1")
    lines = [f"--grid={line}" for line in GRID.strip().splitlines()]
    shown = hustings("sweep", *lines, "--jobs", "1", "--json")
    found = json.loads(shown.out)
    assert found["points"] == named["points"]
    assert found["file"] is None
    assert shlex.split(found["command"]) == ["hustings", "sweep", *lines]
    assert shlex.split(named["command"]) == ["hustings", "sweep", "grid.toml"]
    assert files("sweep")["sweep.csv"] == files("grid")["grid.csv"]


@pytest.mark.parametrize(
    "words, complaint",
    [
        ((), "a sweep is a FILE, or lines of one"),
        (("grid.toml", "--grid", "members = 3"), "a sweep is a FILE, or lines of one"),
        (("--grid", "members = 3", "--example"), "--example writes a FILE: name it"),
        (("--grid", "members = 3"), "--grid names no protocol"),
        (("--grid", "protocol = 'bully'", "--grid", "member = 3"), "--grid line 2: unknown key"),
        (("--grid", "protocol"), "--grid is no TOML"),
        (
            ("--grid", "protocol = 'bully'", "--grid", "loss = 2"),
            "--grid line 2: point 1 (protocol=bully, loss=2): loss must lie in [0, 1], not 2",
        ),
    ],
)
def test_wrong_lines_are_refused(
    words: tuple[str, ...], complaint: str, hustings: Hustings
) -> None:
    assert complaint in hustings("sweep", *words).complaint
    assert list(Path().iterdir()) == []


def test_other_refusals(hustings: Hustings, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "cannot read none.toml" in hustings("sweep", "none.toml").complaint
    write(QUIET)
    refused = hustings("sweep", "grid.toml", "--on", "clouds").complaint
    assert "unknown place 'clouds'" in refused
    assert hustings("sweep", "grid.toml", "--jobs", "1").code == 0
    write(QUIET.replace("[3, 4]", "[3, 5]"))
    refused = hustings("sweep", "grid.toml", "--jobs", "1").complaint
    assert "grid/checkpoint belongs to another grid" in refused
    monkeypatch.setattr(engines, "memory_here", lambda: 1000)
    assert "played 1 at a time, would take about" in (
        hustings("sweep", "grid.toml", "--jobs", "1").complaint
    )
    assert "grid.toml is there already" in hustings("sweep", "grid.toml", "--example").complaint


def test_a_picture_of_what_is_not_there_costs_no_table(hustings: Hustings) -> None:
    write(QUIET + '[plot]\nmetric = "tmx"\n')
    shown = hustings("sweep", "grid.toml", "--jobs", "1")
    assert shown.code == 2
    assert "plot: unknown metric 'tmx'" in shown.err
    assert list(files("grid")) == ["checkpoint", "grid.csv", "grid.parquet"]


def test_without_the_extras_there_is_a_table_in_text() -> None:
    write(QUIET)
    hide = "import sys\nfor name in ('pyarrow', 'matplotlib', 'distributed'):\n"
    hide += "    sys.modules[name] = None\n"
    Path("sitecustomize.py").write_text(hide, encoding="utf-8")
    path = os.pathsep.join([".", os.environ.get("PYTHONPATH", "")])
    shown = in_own_process("sweep", "grid.toml", "--jobs", "1", environment={"PYTHONPATH": path})
    assert shown.code == 0, shown.err
    assert list(files("grid")) == ["checkpoint", "grid.csv"]
    assert shown.err.count(install_command("sweep")) == 2
    words = ("sweep", "grid.toml", "--on", "local-cluster")
    shown = in_own_process(*words, environment={"PYTHONPATH": path})
    assert shown.code == 2
    assert shown.err.endswith(f"a Dask cluster needs distributed: {install_command('dask')}\n")

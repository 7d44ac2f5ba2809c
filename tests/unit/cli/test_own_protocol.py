"""A protocol in a file of one's own, wherever the command line takes a protocol."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.commands import Hustings, in_own_process

ROOT = Path(__file__).parents[3]
FILE = ROOT / "examples" / "hirschberg_sinclair.py"
OWN = f"{FILE}:HirschbergSinclair"
NAME = "hirschberg-sinclair"


def test_sim(hustings: Hustings) -> None:
    done = hustings("sim", OWN, "-n", "16", "--initiator", "1-16", "--json", "--check")
    assert done.code == 0
    shown = json.loads(done.out)
    assert shown["protocol"] == NAME
    assert shown["metrics"]["leader"]["mean"] == 16


def test_sim_on_several_processes_plays_the_same(hustings: Hustings) -> None:
    words = ["sim", OWN, "-n", "8", "--scenario", "leader-crash", "--runs", "40", "--digest"]
    words += ("--delay", "uniform:0.1,0.9", "--json")
    one, two = (json.loads(hustings(*words, "--jobs", jobs).out) for jobs in ("1", "2"))
    assert one["digest"] == two["digest"]
    assert one["verdicts"]["agreement"]["holds"] == 40


def test_members_as_on_a_network(hustings: Hustings) -> None:
    words = ("--composed", "--delay", "0.05", "--fault", "crash:4@20")
    done = hustings("sim", OWN, "-n", "4", *words, "--json")
    assert done.code == 0
    assert json.loads(done.out)["verdicts"]["agreement"]["holds"] == 1


def test_behind_a_guard(hustings: Hustings) -> None:
    done = hustings("sim", OWN, "-n", "5", "--guard", "quorum", "--json")
    assert json.loads(done.out)["verdicts"]["uniqueness"]["holds"] == 1


def test_check(hustings: Hustings) -> None:
    done = hustings("check", OWN, "-n", "3", "--json")
    assert done.code == 0
    assert json.loads(done.out)["protocol"] == OWN


def test_compare(hustings: Hustings) -> None:
    done = hustings("compare", OWN, "ring", "-n", "8", "--scenario", "leader-crash", "--json")
    rows = json.loads(done.out)["rows"]
    assert [row["protocol"] for row in rows] == [NAME, "ring"]


def test_swarm(hustings: Hustings) -> None:
    done = hustings("swarm", "--protocol", OWN, "--seeds", "20", "--json")
    assert done.code == 0


def test_protocols(hustings: Hustings) -> None:
    done = hustings("protocols", OWN, "--json")
    (shown,) = json.loads(done.out)["protocols"]
    assert shown["name"] == NAME


@pytest.mark.parametrize("where", [("--jobs", "2"), ("--on", "local-cluster", "--jobs", "2")])
def test_sweep(hustings: Hustings, tmp_path: Path, where: tuple[str, ...]) -> None:
    grid = tmp_path / "grid.toml"
    grid.write_text(f'protocol = ["{OWN}", "ring"]\nruns = 20\ndelay = "uniform:0.1,0.9"\n')
    done = hustings("sweep", str(grid), "--out", str(tmp_path / "out"), *where, "--json")
    assert done.code == 0, done.err
    assert OWN in done.out


def test_a_sweep_is_not_taken_up_with_another_source(hustings: Hustings, tmp_path: Path) -> None:
    own, grid = tmp_path / "changing_election.py", tmp_path / "grid.toml"
    own.write_text(FILE.read_text())
    grid.write_text(f'protocol = "{own}:HirschbergSinclair"\nruns = 4\n')
    words = ("sweep", str(grid), "--out", str(tmp_path / "out"))
    assert in_own_process(*words).code == 0
    assert in_own_process(*words).code == 0
    own.write_text(FILE.read_text() + "\n# changed\n")
    done = in_own_process(*words)
    assert done.code == 2, done
    assert "another" in done.err


def test_trace(hustings: Hustings, tmp_path: Path) -> None:
    """A recording names a protocol, and code is loaded only if the reader names it, too."""
    recorded = tmp_path / "run.jsonl"
    hustings("sim", OWN, "-n", "4", "--initiator", "1", "--trace", str(recorded))
    assert "HS-PROBE" in hustings("trace", str(recorded), "--width", "200").out
    assert "HS-PROBE" in hustings("trace", str(recorded), "--protocol", OWN, "--width", "200").out
    told = hustings("trace", str(recorded), "--protocol", "bully").complaint
    assert told == f"the trace is of {NAME}, and --protocol names bully"


def test_a_recording_cannot_have_code_loaded(hustings: Hustings, tmp_path: Path) -> None:
    trap, recorded = tmp_path / "trap.py", tmp_path / "run.jsonl"
    trap.write_text(f"open({str(tmp_path / 'sprung')!r}, 'w').close()")
    own = tmp_path / "trapped_election.py"
    own.write_text(FILE.read_text().replace(f'name="{NAME}"', f'name="{trap}:Trap"'))
    done = hustings("sim", f"{own}:HirschbergSinclair", "-n", "3", "--trace", str(recorded))
    assert done.code == 0, done.err
    assert str(trap) in recorded.read_text()
    assert hustings("trace", str(recorded)).code == 0
    assert not (tmp_path / "sprung").exists()


def test_demo_with_processes() -> None:
    done = in_own_process("demo", "--protocol", OWN, "--members", "3", "--seconds", "6", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["fine"]


def test_run(tmp_path: Path) -> None:
    words = ("run", "group", "--protocol", f"{FILE.name}:HirschbergSinclair", "--", "echo", "led")
    done = in_own_process(*words, cwd=FILE.parent)
    assert (done.code, done.out) == (0, "led\n"), done.err


@pytest.mark.parametrize(
    "command",
    [
        ("sim", "nowhere.py:Mine"),
        ("check", "nowhere.py:Mine"),
        ("compare", "nowhere.py:Mine"),
        ("swarm", "--protocol", "nowhere.py:Mine"),
        ("demo", "--protocol", "nowhere.py:Mine"),
        ("run", "group", "--protocol", "nowhere.py:Mine", "--", "true"),
        ("protocols", "nowhere.py:Mine"),
    ],
    ids=lambda words: words[0],
)
def test_a_file_that_is_not_there(hustings: Hustings, command: tuple[str, ...]) -> None:
    assert hustings(*command).complaint == ("there is no file 'nowhere.py' to read a protocol from")

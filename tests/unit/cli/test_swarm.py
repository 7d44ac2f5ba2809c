"""`hustings swarm` from the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.unit.cli.commands import COMMAND, Hustings, in_own_process


@pytest.mark.parametrize(
    "typed, complaint",
    [
        ("--seeds 0", "0 is not in the range"),
        ("--guard etcd", "unknown guard 'etcd'"),
        ("--protocol buly", "did you mean 'bully'?"),
        ("--trace", "--trace draws one world"),
        ("--trace --seeds 1 --json", "--trace draws one world"),
        ("--jobs 0", "0 is not in the range"),
    ],
)
def test_a_mistake_gets_a_sentence(hustings: Hustings, typed: str, complaint: str) -> None:
    assert complaint in hustings("swarm", *typed.split()).complaint


def test_a_table_and_what_happened(hustings: Hustings) -> None:
    result = hustings("swarm", "--seeds", "12", "--guard", "memory")
    assert (result.code, result.err) == (0, "")
    assert "12 worlds, seeds 0 to 11" in result.out
    assert "never two leaders at one time" in result.out
    assert "guard memory" in result.out


def test_json_is_one_object(hustings: Hustings) -> None:
    result = hustings("swarm", "--seeds", "10", "--first", "3", "--json")
    told = json.loads(result.out)
    assert (told["first"], told["seeds"], told["failed"], told["failures"]) == (3, 10, 0, [])
    assert told["verdicts"]["windows"]["violated"] == 0
    assert 0 < told["share_of_limit"] < 1


def test_one_seed_is_drawn(hustings: Hustings) -> None:
    result = hustings("swarm", "--first", "5", "--seeds", "1", "--trace")
    assert result.code == 0
    assert "seed 5: " in result.out
    assert "windows   holds" in result.out


def test_beyond_the_bound_overlaps_are_told_and_fine(hustings: Hustings) -> None:
    result = hustings("swarm", "--seeds", "150", "--beyond", "--guard", "memory", "--json")
    told = json.loads(result.out)
    assert (result.code, told["failed"]) == (0, 0)
    assert told["overlaps"] == told["verdicts"]["windows"]["violated"] > 0


def test_the_hash_seed_and_the_number_of_processes_change_nothing() -> None:
    typed = ("swarm", "--seeds", "24", "--json")
    one = in_own_process(*typed, environment={"PYTHONHASHSEED": "1"})
    two = in_own_process(*typed, "--jobs", "2", environment={"PYTHONHASHSEED": "2"})
    assert one.code == two.code == 0
    assert one.out == two.out


def test_ctrl_c_ends_it_at_once() -> None:
    typed = [*COMMAND, "swarm", "--seeds", "1000000"]
    with subprocess.Popen(
        typed, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
    ) as process:
        time.sleep(3.0)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", "hustings: interrupted\n"), sys.executable

"""`--on`: the same numbers wherever runs are played, and one sentence about a wrong place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.commands import Hustings

COMMANDS = {
    "sim": ("sim", "bully", "-n", "5", "--runs", "40", "--delay", "uniform:0,1", "--digest"),
    "sim-fast": ("sim", "le-s", "-n", "9", "--delay", "0.1", "--runs", "900", "--engine", "fast"),
    "swarm": ("swarm", "--protocol", "bully", "--guard", "memory", "--seeds", "9"),
    "figure": ("figure", "announce-5.9", "--runs", "2"),
    "plan": ("plan", "committee", "-n", "60", "--set", "b=0.05", "--effort", "quick"),
}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def told(hustings: Hustings, *words: str) -> Any:
    shown = hustings(*words, "--json")
    assert shown.code == 0, shown.err
    return json.loads(shown.out)


@pytest.mark.parametrize("place", ["threads", "processes"])
@pytest.mark.parametrize("name", COMMANDS)
def test_the_numbers_are_the_same(name: str, place: str, hustings: Hustings) -> None:
    where = ("--on", place, "--jobs", "2")
    out, other = (("--out", each) if name == "figure" else () for each in ("one", "two"))
    here = told(hustings, *COMMANDS[name], *out, "--jobs", "1")
    there = told(hustings, *COMMANDS[name], *other, *where)
    for found in (here, there):
        for figure in found.get("figures", []):
            del figure["files"]  # they lie in two folders
    assert here == there


def test_on_a_cluster_of_this_machine(hustings: Hustings) -> None:
    here = told(hustings, *COMMANDS["sim"])
    assert told(hustings, *COMMANDS["sim"], "--on", "local-cluster", "--jobs", "2") == here


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(
    "place, says",
    [
        ("thread", "unknown place 'thread': did you mean 'threads'?"),
        ("dask://nowhere", "'dask://nowhere' is no address of a Dask scheduler"),
        ("dask://h:99999", "write dask://host:8786"),
    ],
)
def test_a_wrong_place_is_one_sentence(
    name: str, place: str, says: str, hustings: Hustings
) -> None:
    assert says in hustings(*COMMANDS[name], "--on", place).complaint
    assert list(Path().iterdir()) == [], "nothing has started"


def test_a_trace_is_not_begun_for_a_wrong_place(hustings: Hustings) -> None:
    words = ("sim", "bully", "--trace", "run.jsonl", "--on", "clouds")
    assert "unknown place 'clouds'" in hustings(*words).complaint
    assert not Path("run.jsonl").exists()

"""The other doors of the lab: each gives what its command gives, and names that command."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from html import escape
from pathlib import Path
from typing import Any

import pytest

from hustings import lab
from hustings.core.errors import BadInput, UnknownName
from hustings.protocols.bully import Bully
from tests.unit.cli.commands import Hustings, in_process


@pytest.fixture
def hustings(capsys: pytest.CaptureFixture[str]) -> Hustings:
    return in_process(capsys)


def printed(hustings: Hustings, command: str) -> Any:
    program, *words = shlex.split(command)
    assert program == "hustings"
    return json.loads(hustings(*words, "--json").out)


@pytest.mark.parametrize(
    "protocol, options",
    [
        ("bully", {"members": 2}),
        ("ring", {"members": 3, "crashes": 1, "ticks": 6}),
        ("quorum", {"candidates": 1, "ticks": 1}),
        ("bully", {"members": 3, "losses": 1, "max_states": 200}),
    ],
)
def test_check(hustings: Hustings, protocol: str, options: dict[str, Any]) -> None:
    found = lab.check(protocol, **options)
    assert printed(hustings, found.command) == found.to_json()
    assert found.holds is (found.found.ending.value == "exhausted")
    assert (found.shortfall is not None) is (found.found.ending.value == "max-states")
    assert found.command in found._repr_html_()


def test_a_check_s_steps_are_a_table() -> None:
    held = lab.check("bully", members=2)
    assert held.rows() == []
    assert held.to_arrow().num_rows == 0


def test_check_takes_a_class_and_bounds_the_group() -> None:
    assert lab.check(Bully, members=2).holds
    with pytest.raises(BadInput, match="members must lie between 1 and 9, not 10"):
        lab.check("bully", members=10)
    with pytest.raises(UnknownName, match="did you mean 'bully'"):
        lab.check("buly")


def test_compare(hustings: Hustings) -> None:
    found = lab.compare(["bully", "ring"], members=8, scenario="leader-crash")
    assert printed(hustings, found.command) == found.to_json()
    assert [row["protocol"] for row in found.rows()] == ["bully", "ring"]
    assert found.agrees
    assert found.paper
    assert set(found.plot()) == {"png", "svg"}
    assert found.command in found._repr_html_()
    assert len(lab.compare(members=4).compared) == 8
    with pytest.raises(BadInput, match="--set goes with one protocol"):
        lab.compare(["bully", "ring"], settings={"T1": 3})


def test_theory(hustings: Hustings) -> None:
    found = lab.theory("bully", n=64, d=1)
    assert printed(hustings, found.command) == found.to_json()
    assert found["messages"] == found.result.corrected["messages"]
    assert found.to_arrow().num_rows == len(found.rows()) > 0
    assert b"election_messages" in found.plot()["svg"]
    assert b"2016" in found.plot()["svg"]
    with pytest.raises(BadInput, match="n is to be a text or a number, not list"):
        lab.theory("bully", n=[64])


def test_a_picture_of_a_formula_without_bounds_stays_readable() -> None:
    printed = lab.theory("le-s", N=500, l=0.7, loss_model="uncorrelated")
    assert max(form.value for form in printed.result.forms) > 1e100
    exponents = [int(each) for each in re.findall(rb"10\^\{(-?\d+)\}", printed.plot()["svg"])]
    assert 0 < max(exponents) < 15


def test_plan(hustings: Hustings) -> None:
    found = lab.plan("committee", members=60, settings={"b": 0.05, "c0": 16}, effort="quick")
    assert printed(hustings, found.command) == json.loads(json.dumps(found.to_json()))
    assert found.to_pandas().shape[0] == len(found.front)
    assert found.plot()["png"].startswith(b"\x89PNG")
    assert found.command in found._repr_html_()
    with pytest.raises(UnknownName, match="unknown election to plan 'bully'"):
        lab.plan("bully", members=5)
    with pytest.raises(UnknownName, match="unknown effort 'much'"):
        lab.plan("committee", members=60, effort="much")


def test_swarm(hustings: Hustings) -> None:
    found = lab.swarm(seeds=5, protocols=["bully"], guards=["memory"])
    assert printed(hustings, found.command) == found.to_json()
    assert found.command == "hustings swarm --seeds=5 --first=0 --guard=memory --protocol=bully"
    assert found.command in found._repr_html_()
    assert found.failed == 0
    assert {row["property"] for row in found.rows()} >= {"windows", "holders"}
    assert b"5 worlds from seed 0" in found.plot()["svg"]
    assert lab.swarm(seeds=2, protocols=[Bully], guards=["memory"]).tally.seeds == 2


def test_figure(hustings: Hustings, tmp_path: Path) -> None:
    found = lab.figure("overhead-table-1")
    shown = printed(hustings, f"{found.command} --out {tmp_path / 'out'}")
    (figure,) = shown["figures"]
    assert figure["rows"] == json.loads(json.dumps(found.rows()))
    assert figure["verdict"] == found.verdict
    assert found.plot() == {}
    assert "<table>" in found._repr_html_()
    with pytest.raises(UnknownName, match="unknown figure"):
        lab.figure("overhead-table-9")


def test_a_figure_with_a_picture(tmp_path: Path) -> None:
    found = lab.figure("announce-5.9", runs=2, out=tmp_path)
    assert "svg" in found.plot()
    assert "<svg" in found._repr_html_()


GRID = {"protocol": ["le-a", "le-s"], "members": [5, 9], "settings": {"T_A": [1, 1.5]}}
FILE = """
protocol = ["le-a", "le-s"]
members = [5, 9]
loss = 0.2
runs = 30
[set]
T_A = [1, 1.5]
"""


def words_of(command: str) -> frozenset[str]:
    """What is typed, in any order."""
    return frozenset(shlex.split(command))


@pytest.mark.parametrize("on", ["threads", "processes"])
def test_a_sweep_gives_the_numbers_of_a_file_with_the_same_words(
    hustings: Hustings, tmp_path: Path, on: str
) -> None:
    found = lab.sweep(GRID, loss=0.2, runs=30, on=on, jobs=2)
    path = tmp_path / "grid.toml"
    path.write_text(FILE)
    done = hustings("sweep", str(path), "--out", str(tmp_path / "out"), "--json")
    points = json.loads(done.out)["points"]
    shown = {words_of(each["command"]): each["metrics"] for each in points}
    assert len(found.results) == 8
    for each in found.results:
        block, metrics = each.block, shown[words_of(each.point.command)]
        for name, column in block.metrics.items():
            assert metrics[name]["mean"] == column.moments.mean
    assert len(found.rows()) == 8 * len(found.results[0].block.metrics)


SWEEPS: list[dict[str, Any]] = [
    {"protocol": "bully", "members": [3, 4], "scenario": "leader-crash"},
    {"protocol": ["le-s"], "members": 4, "settings": {"T_A": [1, 1.5], "T_L": "inf"}, "loss": [0]},
    {"protocol": "bully", "members": 5, "faults": ["crash:5@1", ("crash:5@1", "crash:4@2")]},
    {
        "protocol": "bully",
        "members": 5,
        "scenario": "leader-crash",
        "crashed": (4,),
        "detectors": [(1, 2), 1],
        "seed": [1, 2],
    },
    {"protocol": "bully", "members": 3, "attributes": {"cpu": "3,1,2", "mem": ["1,2,3", "random"]}},
    {"protocol": "bully", "sites": {"a": [1, 2], "b": 2}, "between": {("a", "b"): 3}},
    {"protocol": Bully, "members": 3, "fifo": [True, False], "delay": ["uniform:0,1", 0.5]},
    {"protocol": "bully", "members": 4, "links": {(1, 2): [2, 3], (2, 1): 5}, "until": None},
    {"protocol": "le-a", "members": 3, "engine": ["fast", "events"], "delay": 0.1, "loss": 0.1},
    {
        "protocol": "le-a",
        "members": 3,
        "delay": 0.1,
        "loss": 0.1,
        "loss_model": "burst",
        "loss_settings": {"length": [3, 5]},
    },
    {"protocol": "bully", "members": 3, "settings": "T1=3"},
    {"protocol": "bully", "members": 3, "settings": ["T1=3", "T1=4"], "order": None},
]


@pytest.mark.parametrize("words", SWEEPS, ids=range(len(SWEEPS)))
def test_a_sweep_names_one_command_line_for_all_its_points(
    hustings: Hustings, words: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = lab.sweep(words, runs=3)
    again = printed(hustings, found.command)["points"]
    mine = [each.to_json() for each in found.results]
    assert [each["seed"] for each in again] == [each["seed"] for each in mine]
    assert [each["metrics"] for each in again] == [each["metrics"] for each in mine]
    assert escape(found.command) in found._repr_html_()


def test_a_sweep_of_a_class_without_a_name_has_no_command() -> None:
    class Mine(Bully):
        pass

    found = lab.sweep({"protocol": Mine, "members": [3]})
    assert found.command == ""
    with pytest.raises(BadInput, match="settings of a sweep is a table"):
        lab.sweep({"protocol": "bully", "settings": [("T1=3", "T2=4"), "T1=5"]})


def test_a_file_is_played_from_python(tmp_path: Path, hustings: Hustings) -> None:
    path = tmp_path / "grid.toml"
    path.write_text(FILE)
    found = lab.sweep_file(path, jobs=1, checkpoint=tmp_path / "kept")
    assert shlex.split(found.command) == ["hustings", "sweep", str(path)]
    done = json.loads(hustings("sweep", str(path), "--out", str(tmp_path / "out"), "--json").out)
    assert done["points"] == json.loads(json.dumps(found.to_json()["points"]))
    written, late = found.write(tmp_path / "own", "grid")
    assert late is None
    for each in written:
        assert each.read_bytes() == (tmp_path / "out" / each.name).read_bytes()


def test_a_sweep_on_any_executor_and_with_a_checkpoint(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    with ThreadPoolExecutor(2) as pool:
        one = lab.sweep(GRID, loss=0.2, runs=10, on=pool, checkpoint=kept)
    assert kept.stat().st_size > 0
    two = lab.sweep(GRID, loss=0.2, runs=10, on="threads", checkpoint=kept)
    assert [each.block for each in one.results] == [each.block for each in two.results]
    assert one.to_pandas().shape[0] == len(one.rows())
    assert set(one.plot(metric="messages")) == {"png", "svg"}


def test_what_is_wrong_with_a_sweep_is_one_sentence() -> None:
    with pytest.raises(BadInput, match="a sweep names no protocol"):
        lab.sweep({"members": [3, 4]})
    with pytest.raises(BadInput, match="members lists no value"):
        lab.sweep({"members": []}, protocol="bully")
    with pytest.raises(UnknownName, match="unknown place 'here'"):
        lab.sweep({"members": [3]}, protocol="bully", on="here")
    with pytest.raises(UnknownName, match="unknown option 'member'"):
        lab.sweep({"member": [3]}, protocol="bully")


def test_every_door_is_there_and_only_what_is_used_is_loaded() -> None:
    assert {getattr(lab, name) is not None for name in lab.__all__} == {True}
    assert set(lab.__all__) <= set(dir(lab))
    with pytest.raises(AttributeError, match="has no attribute 'simulat'"):
        getattr(lab, "simulat")  # noqa: B009 (mypy knows that there is none)
    told = (
        "import sys; from hustings.lab import simulate; "
        "print([each for each in sys.modules if each.startswith('hustings.lab.pictures')])"
    )
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

"""`hustings measure` against real processes and sockets, on the loopback interface.

Here the members' own ports do what a network would: delay, jitter, loss. `test_namespaces.py` has
the same with networks that the kernel sees.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hustings import blocking
from hustings.lab.measuring import measure
from hustings.lab.surveys.asking import SurveyProgress
from hustings.sim.delay import Lognormal
from hustings.sim.environment import read_environment

GROUP = "measured"


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Members of this test find each other, and no others."""
    monkeypatch.setenv("HUSTINGS_LOCAL_DIR", str(tmp_path / "members"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def members(request: pytest.FixtureRequest) -> Iterator[list[blocking.Member]]:
    """Three members, whose ports delay by 10 to 30 ms and lose 5 %."""
    options: dict[str, Any] = getattr(request, "param", {})
    opened: list[blocking.Member] = []
    try:
        for name in ("m1", "m2", "m3"):
            opened.append(blocking.join(GROUP, name=name, **options).open())
        for each in opened:
            faults = each._member.node.transport.faults
            faults.loss, faults.delay, faults.jitter = 0.05, 0.01, 0.02
        yield opened
    finally:
        for each in opened:
            each.leave()


def hustings(*words: str, within: float = 60.0) -> subprocess.CompletedProcess[str]:
    typed = [sys.executable, "-m", "hustings", "measure", *words]
    return subprocess.run(typed, capture_output=True, text=True, check=False, timeout=within)


def answering(member: blocking.Member, probes: int, within: float = 30.0) -> None:
    """Wait until a member has sent so many probes."""
    end, again = time.monotonic() + within, threading.Event()
    while member.metrics().messages_sent.get("SURVEY-PROBE", 0) < probes:
        assert time.monotonic() < end, "no survey has asked"
        again.wait(0.05)


def value(rows: list[dict[str, Any]], what: str) -> float:
    return float(next(row["value"] for row in rows if row["what"] == what))


def test_a_group_on_this_machine(members: list[blocking.Member], tmp_path: Path) -> None:
    output = tmp_path / "environment.toml"
    done = hustings(GROUP, "--for", "12s", "--rate", "5", "--json", "--output", str(output))
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    # Delays are uniform from 10 to 30 ms; a busy machine adds to them.
    assert 0.017 <= value(said["measured"], "one way, median") <= 0.035
    assert value(said["measured"], "lost") == pytest.approx(0.05, rel=0.4)
    assert read_environment(output).members == 3
    assert isinstance(read_environment(output).network.delay, Lognormal)
    assert said["environment"] == output.read_text()
    assert all(f"not measured: {each}" in done.stderr for each in said["missing"])


@pytest.mark.parametrize("members", [{"guard": "quorum://m1,m2,m3?durable=no"}], indirect=True)
def test_a_group_with_a_guard_by_its_seeds(members: list[blocking.Member]) -> None:
    """The observer learns what the group is from a member, and asks no guard."""
    seeds = [each.address for each in members]
    done = hustings(*seeds, "--group", GROUP, "--for", "6s")
    assert done.returncode == 0, done.stderr
    assert "within = " in done.stdout
    assert "members = 3" in done.stdout


@pytest.mark.parametrize("members", [{"protocol": "bully"}], indirect=True)
def test_from_python_with_another_election(members: list[blocking.Member]) -> None:
    told: list[SurveyProgress] = []
    found = measure(GROUP, seconds=6.0, rate=4.0, tell=told.append)
    assert found.environment.network.loss.p > 0.0
    assert told[-1].answering == 3
    assert told[-1].probes > 50
    assert found.command == f"hustings measure {GROUP} --for 6s --rate 4"
    assert "<th>lost</th>" in found._repr_html_()


def test_ctrl_c_writes_what_there_is(members: list[blocking.Member], tmp_path: Path) -> None:
    output = tmp_path / "environment.toml"
    words = [GROUP, "--for", "1h", "--output", str(output)]
    typed = [sys.executable, "-m", "hustings", "measure", *words]
    with subprocess.Popen(typed, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        try:
            answering(members[0], probes=100)
            run.send_signal(signal.SIGINT)
            _, err = run.communicate(timeout=30)
        finally:
            run.kill()
    assert run.returncode == 130, err
    assert "stopped before its time" in output.read_text()
    assert read_environment(output).members == 3


def test_nobody_there_and_nobody_who_answers(tmp_path: Path) -> None:
    done = hustings("nobody", "--for", "5s")
    assert done.returncode == 1
    assert "no member of group 'nobody' was found" in done.stderr
    assert done.stdout == ""
    done = hustings("127.0.0.1:9", "--group", "nobody", "--for", "5s")
    assert done.returncode == 1
    assert "no member of group 'nobody' answers" in done.stderr
    assert os.listdir(tmp_path) in ([], ["members"], ["state"], ["members", "state"])


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["127.0.0.1:7400"], "127.0.0.1:7400 is an address: give the group's name, too"),
        (["a", "b"], "several addresses need the name of their group"),
        (["g", "--for", "2s"], "the time to measure must be from 5 s to 30 days"),
        (["g", "--for", "soon"], "the time to measure"),
        (["g", "--site", "a"], "--site 'a' is not understood"),
        (["g", "--site", "a=10.0.0.0/99"], "site a=10.0.0.0/99 is not understood"),
        (["g", "--rate", "50"], "50.0 is not in the range"),
        (["g", "--output", "/"], "is a folder: name a file"),
        (["g", "--output", "/nowhere/x.toml"], "its folder is missing"),
        (["g", "--key", "/nowhere/key"], "cannot read key file"),
        (["g", "--protocol", "le-x"], "le-x"),
        (["10.0.0.9:1", "--group", "g", "--bind", "0.0.0.0:0"], "without a key"),
        (["x" * 65], "1 to 64 bytes"),
    ],
)
def test_bad_input_is_one_sentence(words: list[str], sentence: str) -> None:
    done = hustings(*words)
    assert done.returncode == 2, done.stderr
    assert sentence in done.stderr
    assert len([line for line in done.stderr.splitlines() if line.startswith("hustings:")]) <= 1
    assert done.stdout == ""


def test_a_file_that_exists_is_kept(tmp_path: Path) -> None:
    output = tmp_path / "environment.toml"
    output.write_text("mine")
    done = hustings("g", "--output", str(output))
    assert done.returncode == 2
    assert "exists: choose another name" in done.stderr
    assert output.read_text() == "mine"


def test_a_site_that_leaves_a_member_out_is_told_at_once(members: list[blocking.Member]) -> None:
    done = hustings(GROUP, "--for", "1h", "--site", "a=10.0.0.0/8", "--site", "b=10.1.0.0/16")
    assert done.returncode == 2
    assert "is at none of the sites: give a network for it, too" in done.stderr

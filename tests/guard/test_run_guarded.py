"""`hustings run --guard`: commands of two members never run at one time, whatever is done to them.

Each command writes its token and the time, by the clock that all processes of a machine share, into
one file; what ran when is read there.
"""

from __future__ import annotations

import itertools
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.guard.engines.base import Engine
from tests.net.running import RUN, Running, Runs
from tests.waiting import until

WRITER = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)  # only the end of the grace ends it
while True:
    with open(sys.argv[1], "a") as stream:
        stream.write(f"{os.environ['HUSTINGS_TOKEN']} {time.monotonic():.6f}\\n")
    time.sleep(0.01)
"""


class Journal:
    """What the commands wrote."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "journal"
        self.path.touch()
        script = folder / "writer.py"
        script.write_text(WRITER)
        self.command = f"exec {sys.executable} {script} {self.path}"

    def lines(self) -> list[tuple[int, float]]:
        words = [line.split() for line in self.path.read_text().splitlines()]
        return [(int(token), float(at)) for token, at in words]

    @property
    def token(self) -> int:
        lines = self.lines()
        return lines[-1][0] if lines else 0

    def wait_for_more_than(self, token: int) -> None:
        until(lambda: self.token > token, f"another one leads after token {token}")

    def overlaps(self) -> list[tuple[int, int]]:
        """Tokens whose commands ran at one time, or out of order."""
        spans: dict[int, tuple[float, float]] = {}
        for token, at in self.lines():
            first, last = spans.get(token, (at, at))
            spans[token] = (min(first, at), max(last, at))
        ordered = sorted(spans.items(), key=lambda each: each[1][0])
        return [
            (one, other)
            for (one, (_, last)), (other, (first, _)) in itertools.pairwise(ordered)
            if first <= last or other <= one
        ]


def started(runs: Runs, journal: Journal, guard: str, *more: str) -> list[Running]:
    for number in range(3):
        state = runs.folder / f"state-{number}"
        state.mkdir()
        options = ("--guard", guard, "--state", str(state), "--protocol", "bully", *more)
        runs.start(journal.command, *options, grace="200ms")
    until(lambda: journal.token, "somebody leads")
    return runs.all


def leader(members: list[Running]) -> Running:
    until(lambda: any(each.leads for each in members), "somebody leads")
    return next(each for each in members if each.leads)


def quorum(runs: Runs) -> str:
    return "quorum://" + ",".join(f"{runs.group}-{number}" for number in range(3))


def test_kills_and_stops_under_an_embedded_quorum(runs: Runs, tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    members = started(runs, journal, quorum(runs))
    for number in (signal.SIGSTOP, signal.SIGKILL):
        stricken, token = leader(members), journal.token
        stricken.signal(number)
        journal.wait_for_more_than(token)
        if number == signal.SIGSTOP:
            stricken.signal(signal.SIGCONT)
            time.sleep(0.5)  # it looks at the clock, and does nothing
        else:
            members = [each for each in members if each is not stricken]
    assert journal.overlaps() == []
    assert len({token for token, _ in journal.lines()}) >= 3


@pytest.mark.parametrize("more", [(), ("--on-lead", "true")])
def test_after_a_kill_the_next_command_waits_for_the_last_one_and_not_for_the_lease(
    runs: Runs, tmp_path: Path, engines: Callable[[str], Engine], more: tuple[str, ...]
) -> None:
    """The command has the witness of the lease, so others see when nothing of it is left."""
    journal = Journal(tmp_path)
    members = started(runs, journal, engines("valkey").url(), "--ttl", "10m", *more)
    for _ in range(2):
        stricken, token = leader(members), journal.token
        stricken.signal(signal.SIGKILL)
        members = [each for each in members if each is not stricken]
        journal.wait_for_more_than(token)
    assert journal.overlaps() == []


def test_all_voters_lose_their_state_and_tokens_go_on(runs: Runs, tmp_path: Path) -> None:
    """They wait for one lease, which ends whoever may lead, and begin above the date."""
    journal = Journal(tmp_path)
    guard = quorum(runs)
    members = started(runs, journal, guard)
    token, first = journal.token, runs.all[:]
    for each in members:
        each.signal(signal.SIGKILL)
        each.process.wait(30)
    until(lambda: not runs.leading(), "the command has ended")
    for number in range(3):
        shutil.rmtree(runs.folder / f"state-{number}")
    runs.all.clear()
    members = started(runs, journal, guard)
    journal.wait_for_more_than(token)
    assert journal.overlaps() == []
    assert [each.name for each in members] == [each.name for each in first]
    begun = "no voter remembered an earlier vote"
    until(lambda: any(begun in each.said for each in members), "they say so")


def test_who_names_other_voters_is_refused(runs: Runs, tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    started(runs, journal, quorum(runs))
    other = runs.start("true", "--guard", "quorum://x,y,z", "--protocol", "bully", grace="200ms")
    assert other.process.wait(30) == 2
    assert "does not fit group" in other.said
    assert "voters is x,y,z here and" in other.said


def test_without_voters_nobody_leads_and_nothing_runs(runs: Runs, tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    members = started(runs, journal, quorum(runs))
    last = leader(members)
    for each in members:
        if each is not last:
            each.signal(signal.SIGKILL)
    until(lambda: not last.leads, "its lease is over")
    token, count = journal.token, len(journal.lines())
    time.sleep(1.0)
    assert (journal.token, len(journal.lines())) == (token, count)


@pytest.mark.parametrize(
    "options, sentence",
    [
        (("--guard", "quorum://a,b"), "needs 3, 5 or 7 voters"),
        (("--guard", "quorum://a,b,a"), "must be named once"),
        (("--guard", "quorum://x,b,c", "--name", "x"), "give it a state directory"),
        (("--guard", "quorum://a,b,c:1"), "takes names of members"),
        (("--guard", "etdc://127.0.0.1"), "did you mean 'etcd'?"),
        (("--guard", "nothing"), "a guard is given by its address"),
        (("--guard", "quorum://a,b,c", "--ttl", "1s"), "leaves no time to lead"),
        (("--ttl", "1s"), "--ttl goes with --guard"),
        (("--guard", "redis://127.0.0.1?colour=red"), "colour"),
        (("--guard", "memory://"), "within one process"),
    ],
)
def test_what_cannot_work_is_told_at_once(
    tmp_path: Path, options: tuple[str, ...], sentence: str
) -> None:
    done = subprocess.run(
        [*RUN, "jobs", *options, "--", "true"],
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
        check=False,
    )
    said = done.stderr.decode()
    assert (done.returncode, len(said.splitlines())) == (2, 1), said
    assert sentence in said

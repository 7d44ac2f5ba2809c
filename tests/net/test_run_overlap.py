"""Commands of two members of `hustings run` without a guard never run at one time on one machine.

Members with a key of their own stand for members on several machines: they share no lock, and wait
for the bound of a leader that fell silent.
"""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from hustings.agent.supervisor import SETTLE_S
from hustings.core.durations import parse_duration
from hustings.net.keys import new_key
from tests.net.journal import Journal
from tests.net.running import Runs
from tests.waiting import until

GRACE_S = 0.3  # as in running.py


def started(runs: Runs, journal: Journal, *options: str) -> None:
    for _ in range(3):
        runs.start(journal.command, *options)
    journal.wait_for(1)


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
@pytest.mark.parametrize("deaf_to", [(), ("SIGTERM",)])
def test_one_machine(
    runs: Runs, tmp_path: Path, number: signal.Signals, deaf_to: tuple[str, ...]
) -> None:
    journal = Journal(tmp_path, *deaf_to)
    started(runs, journal, "--protocol", "bully")
    first = runs.leader()
    first.signal(number)
    journal.wait_for(2)
    assert journal.overlaps() == []
    assert journal.spans()[-1].member != first.name
    if number is signal.SIGSTOP:
        first.signal(signal.SIGCONT)
        until(lambda: "no longer" in first.said, "it steps down")
        second = runs.leader()
        second.signal(signal.SIGTERM)
        second.wait()
        journal.wait_for(3)
        assert journal.overlaps() == []


def test_several_machines(runs: Runs, tmp_path: Path) -> None:
    key = tmp_path / "group.key"
    key.write_text(new_key().text())
    key.chmod(0o600)
    journal = Journal(tmp_path, "SIGTERM")
    started(runs, journal, "--key", str(key), "--protocol", "bully")
    first = runs.leader()
    first.signal(signal.SIGSTOP)
    journal.wait_for(2)
    assert journal.overlaps() == []
    one, other = journal.spans()
    assert other.first - one.last >= SETTLE_S  # it waits for the bound, not for what it can see
    waits = rf"waits, for at most (\S+): the command of {first.name} may still run"
    (told,) = re.findall(waits, "".join(each.said for each in runs.others(first)))
    assert 0 < parse_duration(told, "the wait") <= 1.6  # less, if it began late on a busy machine


def test_a_leader_that_hands_over_is_not_waited_for(runs: Runs, tmp_path: Path) -> None:
    key = tmp_path / "group.key"
    key.write_text(new_key().text())
    key.chmod(0o600)
    journal = Journal(tmp_path)
    for _ in range(2):
        runs.start(journal.command, "--key", str(key), grace="60s")
    journal.wait_for(1)
    first = runs.leader()
    until(lambda: all(each.address for each in runs.all), "both are members")
    first.signal(signal.SIGTERM)
    journal.wait_for(2)  # with the bound of a minute this would take too long
    assert journal.overlaps() == []


def test_a_member_that_was_killed_and_comes_back_waits_for_its_last_command(
    runs: Runs, tmp_path: Path
) -> None:
    key = tmp_path / "group.key"
    key.write_text(new_key().text())
    key.chmod(0o600)
    journal = Journal(tmp_path, "SIGTERM")
    first = runs.start(journal.command, "--key", str(key), grace="8s")
    journal.wait_for(1)
    first.signal(signal.SIGKILL)
    first.process.wait()
    runs.all.clear()
    second = runs.start(journal.command, "--key", str(key), grace="8s")
    assert second.name == first.name
    journal.wait_for(2)
    assert journal.overlaps() == []
    assert "another command of the group still runs on this machine" in second.said

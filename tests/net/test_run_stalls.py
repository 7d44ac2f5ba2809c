"""`hustings run` whose process stands still for a moment: the bound decides on its command."""

from __future__ import annotations

import signal
import time

from tests.net.running import WAITING, Runs, command_of
from tests.waiting import until

PAUSE_S = 0.8


def paused(runs: Runs, *options: str) -> tuple[str, list[int]]:
    """A leader, alone, after a pause: what it has said, and its command's processes before."""
    runs.start(WAITING, "-v", *options)
    first = runs.leader()
    before = command_of(first.name)
    first.signal(signal.SIGSTOP)
    time.sleep(PAUSE_S)  # nothing to wait for: how long it lasts is what is tried
    first.signal(signal.SIGCONT)
    return first.name, before


def test_a_pause_longer_than_the_bound_restarts_the_command(runs: Runs) -> None:
    """Its supervisor ends it, because the leader may have been replaced."""
    name, before = paused(runs, "--stall-bound", "250ms")
    (first,) = runs.all
    until(lambda: "had been stopped or starved" in first.said, "the command is ended")
    until(lambda: set(command_of(name)) - set(before), "a new command")
    assert not set(before) & set(command_of(name))


def test_a_shorter_one_does_not(runs: Runs) -> None:
    _, before = paused(runs, "--stall-bound", "30s")
    (first,) = runs.all
    first.signal(signal.SIGTERM)  # the next thing that it hears of when it goes on
    first.wait()
    told, signalled, _ = first.said.partition("SIGTERM")
    assert signalled
    assert "no longer" not in told
    assert before

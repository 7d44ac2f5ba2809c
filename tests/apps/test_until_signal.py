"""Jobs that end when their process is told to stop: workers of a server, told at one time."""

from __future__ import annotations

import signal
import time
import uuid

import pytest

import hustings
import hustings.blocking
from hustings.scheduled import ScheduledJob
from tests.net.kit.loops import run, until

HOLD_S = 0.1


@pytest.fixture
def job() -> ScheduledJob[[hustings.blocking.Term], None]:
    """A job that goes on until it is asked to end."""

    @hustings.once(uuid.uuid4().hex[:12])
    def job(term: hustings.blocking.Term) -> None:
        term.lost.wait()

    return job


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_that_waits_leaves_at_once(
    job: ScheduledJob[[hustings.blocking.Term], None], number: signal.Signals, heard: list[int]
) -> None:
    async def story() -> None:
        async with hustings.join(job.group) as leader, leader.campaign():
            running = job.start(until_signal=True)
            await until(lambda: len(leader.members()) == 2, "both are members")
            signal.raise_signal(number)
            await until(lambda: len(leader.members()) == 1, "the one that waits has left")
            await until(lambda: not running.running, "its thread is over")

    run(story())
    assert heard == [number]


@pytest.mark.parametrize("exits", [False, True])
def test_one_that_leads_goes_on_until_the_others_have_heard_it(
    job: ScheduledJob[[hustings.blocking.Term], None], exits: bool, heard: list[int]
) -> None:
    """By itself, and when the process exits meanwhile."""

    async def story() -> float:
        running = job.start(until_signal=True)
        await until(lambda: job.state is not None and job.state.leading, "it leads")
        told = time.monotonic()
        signal.raise_signal(signal.SIGTERM)
        if exits:
            running.stop()
        await until(lambda: not running.running, "it has ended")
        return time.monotonic() - told

    assert run(story()) >= HOLD_S
    assert heard == [signal.SIGTERM]


def test_without_a_signal_nothing_is_held(
    job: ScheduledJob[[hustings.blocking.Term], None], heard: list[int]
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    running = job.start()
    assert signal.getsignal(signal.SIGTERM) is before
    running.stop()
    held = job.start(until_signal=True)
    assert signal.getsignal(signal.SIGTERM) is not before
    held.stop()
    assert not held.running
    assert signal.getsignal(signal.SIGTERM) is before
    assert heard == []


def test_a_signal_that_nobody_handles_ends_the_process(
    job: ScheduledJob[[hustings.blocking.Term], None],
) -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with job.start(until_signal=True):
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)

"""Engines keep a word about work that was done once, and `hustings run --once` goes by it."""

from __future__ import annotations

import signal
import uuid

import pytest

from hustings.guard import Grant, Holder, make_guard
from tests.guard.engines.base import Engine
from tests.guard.fakes.consul import Consul
from tests.guard.fakes.kubernetes import Kubernetes
from tests.guard.fakes.serving import served
from tests.guard.test_members import every_engine
from tests.net.kit.loops import run
from tests.net.running import Runs
from tests.waiting import until

DONE = "2026-11-19T02:00:04Z by web-1 ('quoted', \"twice\")"
RAN = 'echo "$HUSTINGS_MEMBER" >> ran'
WAITS = f"{RAN}; while [ ! -e go ]; do sleep 0.01; done"


def new_group() -> str:
    return f"once-{uuid.uuid4().hex[:8]}"


async def recorded(url: str, group: str, other: str) -> None:
    """A record is kept, and changes nothing else."""
    async with make_guard(url, group) as one, make_guard(url, group) as two:
        assert one.keeps_words
        assert await one.success() == ""
        identity = await one.identity()
        held = await one.acquire(Holder("ada", 1), 20.0)
        assert isinstance(held, Grant)
        before = await two.look()
        await two.record(DONE)
        assert await two.look() == before
        assert (await one.renew(held, 20.0)).token == held.token
        await one.release(held)
        assert [await each.success() for each in (one, two)] == [DONE, DONE]
        assert await one.identity() == identity
    async with make_guard(url, group) as third:
        assert await third.success() == DONE
    async with make_guard(url, other) as another:
        assert await another.success() == ""


@every_engine
def test_a_record_stays(engine: Engine) -> None:
    run(recorded(engine.url(), new_group(), new_group()), within=60)


def test_a_record_stays_in_consul() -> None:
    async def play() -> None:
        async with served(Consul()) as port:
            await recorded(f"consul://127.0.0.1:{port}/service", new_group(), new_group())

    run(play())


def test_a_record_stays_in_kubernetes() -> None:
    async def play() -> None:
        async with served(Kubernetes()) as port:
            url = f"kubernetes://127.0.0.1:{port}?tls=no"
            await recorded(url, new_group(), new_group())

    run(play(), within=60)


def ran(runs: Runs) -> list[str]:
    try:
        return (runs.folder / "ran").read_text().splitlines()
    except FileNotFoundError:
        return []


@every_engine
def test_everybody_leaves_with_0(engine: Engine, runs: Runs) -> None:
    """Also one that comes when all have gone."""
    options = ("--once", "--guard", engine.url(runs.group))
    leader = runs.start(WAITS, *options)
    until(lambda: ran(runs) == [leader.name], f"the command runs: {leader.said}")
    other = runs.start(WAITS, *options)
    assert other.address
    (runs.folder / "go").touch()
    assert (leader.wait(), other.wait()) == (0, 0)
    late = runs.start(WAITS, *options)
    assert late.wait() == 0
    assert f" by {leader.name}" in late.said
    assert ran(runs) == [leader.name]


@pytest.mark.parametrize("engine", ["etcd", "postgres"], indirect=True)
def test_an_engine_that_is_away_when_the_command_succeeds(engine: Engine, runs: Runs) -> None:
    options = ("--once", "--guard", engine.url(runs.group), "--ttl", "40s")
    leader = runs.start(WAITS, *options)
    until(lambda: ran(runs) == [leader.name], f"the command runs: {leader.said}")
    engine.stop()
    (runs.folder / "go").touch()
    until(lambda: "its success is not recorded yet" in leader.said, "it says so")
    assert leader.process.poll() is None
    engine.start()
    assert leader.wait() == 0
    late = runs.start(WAITS, *options)
    assert late.wait() == 0
    assert ran(runs) == [leader.name]


@pytest.mark.parametrize("engine", ["postgres"], indirect=True)
def test_a_signal_ends_the_wait_for_the_engine(engine: Engine, runs: Runs) -> None:
    leader = runs.start(WAITS, "--once", "--guard", engine.url(runs.group), "--ttl", "40s")
    until(lambda: ran(runs) == [leader.name], f"the command runs: {leader.said}")
    engine.stop()
    (runs.folder / "go").touch()
    until(lambda: "its success is not recorded yet" in leader.said, "it says so")
    leader.signal(signal.SIGTERM)
    assert leader.wait() == 75

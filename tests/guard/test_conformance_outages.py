"""What engines, networks and machines do to guards, for every engine: still never two at once.

Engines are stopped, killed and held; holders are killed and held; ways are cut in one direction and
slow. Times in which a thing must happen are wide, and orders are exact: the next holder never
enters before the time of the last one is over, by the last one's clock.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from pathlib import Path

import pytest

from hustings.guard import Grant, Guard, Holder, NotGranted, Unreachable
from tests.guard.answers import refused
from tests.guard.conformance import (
    client_on,
    does_not_answer,
    every,
    granted,
    lapsed,
    reached,
    remote,
    rig_on,
)
from tests.guard.engines.base import Engine, Server
from tests.guard.proxy import Proxy
from tests.net.kit.loops import run

ADA, BEN = Holder("ada", 1), Holder("ben", 1)
A_WHILE = [0.2, pytest.param(20.0, marks=pytest.mark.soak)]
HASTE_S = 0.7  # a timeout for questions that will not be answered


@every
@pytest.mark.parametrize("away_s", A_WHILE)
@pytest.mark.parametrize("kill", [False, True], ids=["ended", "killed"])
def test_an_engine_that_stops_and_comes_back(engine: Engine, kill: bool, away_s: float) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            one, two = await rig.guard(timeout=HASTE_S), await rig.guard(timeout=HASTE_S)
            seen = await rig.observed(two)
            first = await granted(one, ADA, engine.ttl)
            await reached(lambda: seen[-1].token == first.token, "the holder is seen")
            await asyncio.to_thread(engine.stop, kill=kill)
            await does_not_answer(one.renew(first, engine.ttl))
            await does_not_answer(two.acquire(BEN, engine.ttl))
            await lapsed(one, first)
            await asyncio.sleep(away_s)
            await asyncio.to_thread(engine.start)
            second = await granted(two, BEN, engine.long_ttl)
            if engine.token_after_restart:
                assert second.token > first.token
            with pytest.raises(NotGranted):
                await answered(one, first, engine.ttl)
            await reached(lambda: seen[-1].token == second.token, "the new holder is seen")
            assert seen[-1].holder == "ben"

    run(play(), within=110)


async def answered(guard: Guard, grant: Grant, ttl: float) -> Grant:
    """Renew, as soon as the engine answers this guard again."""
    deadline = time.monotonic() + 30.0
    while True:
        try:
            return await guard.renew(grant, ttl)
        except Unreachable:
            assert time.monotonic() < deadline, "the guard does not find its engine again"
            await asyncio.sleep(0.05)


@every
def test_a_lease_outlives_its_engines_restart(engine: Engine) -> None:
    """Who held when the engine was killed and comes back in time still holds."""

    async def play() -> None:
        async with rig_on(engine) as rig:
            one, two = await rig.guard(), await rig.guard()
            first = await granted(one, ADA, engine.long_ttl)
            await asyncio.to_thread(engine.stop, kill=True)
            await asyncio.to_thread(engine.start)
            renewed = await answered(one, first, engine.long_ttl)
            assert renewed.token == first.token
            assert (await refused(two, BEN, engine.long_ttl)).token == first.token

    run(play(), within=110)


@every
def test_an_engine_that_hangs_is_not_waited_for(engine: Engine) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            one, two = await rig.guard(timeout=HASTE_S), await rig.guard(timeout=HASTE_S)
            first = await granted(one, ADA, engine.ttl)
            engine.pause()
            await does_not_answer(one.renew(first, engine.ttl))
            await does_not_answer(two.acquire(BEN, engine.ttl))
            await does_not_answer(one.release(first))
            await lapsed(one, first)
            engine.resume()
            second = await granted(two, BEN, engine.ttl)
            assert one.now() >= first.deadline
            assert second.token > first.token

    run(play(), within=110)


@remote
def test_a_holder_that_is_killed_keeps_others_out_until_its_time_is_over(
    engine: Engine, tmp_path: Path
) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            with client_on(rig, "ada", engine.ttl, tmp_path) as client:
                guard = await rig.guard()
                await reached(lambda: client.told("renewed"), "a holder that renews")
                client.kill()
                (began,) = client.told("granted")
                last = client.told("granted", "renewed")[-1]
                following = await granted(guard, BEN, engine.ttl)
                assert following.token > began["token"]
                assert time.monotonic() >= last["deadline"]

    run(play(), within=110)


@remote
def test_a_holder_that_was_paused_sees_that_it_is_over(engine: Engine, tmp_path: Path) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            with client_on(rig, "ada", engine.ttl, tmp_path) as client:
                guard = await rig.guard()
                await reached(lambda: client.told("renewed"), "a holder that renews")
                client.pause()
                following = await granted(guard, BEN, engine.long_ttl)
                entered = time.monotonic()
                last = client.told("granted", "renewed")[-1]
                assert following.token > last["token"]
                assert entered >= last["deadline"]
                client.resume()
                await reached(lambda: client.told("refused"), "it hears that it holds no more")
                for each in client.told("granted", "renewed"):
                    assert each["deadline"] <= entered, "it took an old answer for a new one"
                assert client.told("over"), "it looked at its clock first"

    run(play(), within=110)


@remote
@pytest.mark.parametrize("way", ["questions", "answers"])
def test_a_connection_cut_one_way(engine: Engine, way: str) -> None:
    async def play() -> None:
        assert isinstance(engine, Server)
        async with Proxy(engine.port) as proxy, rig_on(engine) as rig:
            far = await rig.guard(at=proxy.port, timeout=HASTE_S)
            near = await rig.guard()
            first = await granted(far, ADA, engine.ttl)
            held = proxy.hold(getattr(proxy, way))
            await does_not_answer(far.renew(first, engine.ttl))
            await does_not_answer(far.acquire(ADA, engine.ttl))
            following = await granted(near, BEN, engine.long_ttl)
            assert far.now() >= first.deadline, "the next came in while the first could act"
            assert following.token > first.token
            held.set()
            with pytest.raises(NotGranted):
                await answered(far, first, engine.ttl)
            assert (await refused(far, ADA, engine.ttl)).token == following.token

    run(play(), within=110)


@remote
def test_an_answer_later_than_its_own_lease_is_worthless(engine: Engine) -> None:
    async def play() -> None:
        assert isinstance(engine, Server)
        async with Proxy(engine.port) as proxy, rig_on(engine) as rig:
            far = await rig.guard(at=proxy.port, timeout=3 * engine.ttl)
            near = await rig.guard()
            first = await granted(far, ADA, engine.ttl)
            proxy.answers.delay = 1.5 * engine.ttl
            with pytest.raises(Unreachable):
                await far.renew(first, engine.ttl)
            with pytest.raises(Unreachable):
                await far.acquire(ADA, engine.ttl)
            proxy.answers.delay = 0.0
            following = await granted(near, BEN, engine.ttl)
            assert following.token > first.token

    run(play(), within=110)


@remote
def test_a_connection_that_ends_is_made_again(engine: Engine) -> None:
    async def play() -> None:
        assert isinstance(engine, Server)
        async with Proxy(engine.port) as proxy, rig_on(engine) as rig:
            far = await rig.guard(at=proxy.port)
            seen = await rig.observed(far)
            first = await granted(far, ADA, engine.long_ttl)
            await reached(lambda: seen[-1].token == first.token, "the holder is seen")
            proxy.cut()
            renewed = await answered(far, first, engine.long_ttl)
            assert renewed.token == first.token
            await far.release(renewed)
            await reached(lambda: seen[-1].holder is None, "the observer is back")

    run(play(), within=110)


@remote
def test_an_observer_whose_connection_falls_silent_connects_anew(engine: Engine) -> None:
    async def play() -> None:
        assert isinstance(engine, Server)
        async with Proxy(engine.port) as proxy, rig_on(engine) as rig:
            far = await rig.guard(at=proxy.port, timeout=HASTE_S)
            near = await rig.guard()
            seen = await rig.observed(far)
            proxy.hold_present(proxy.answers)
            grant = await granted(near, ADA, engine.long_ttl)
            await reached(lambda: seen[-1].token == grant.token, "the holder is seen")

    run(play(), within=110)


@remote
def test_an_observer_that_is_never_greeted_connects_anew(engine: Engine) -> None:
    """A server that is just starting may take a connection and forget it."""

    async def play() -> None:
        assert isinstance(engine, Server)
        async with Proxy(engine.port) as proxy, rig_on(engine) as rig:
            far = await rig.guard(at=proxy.port, timeout=HASTE_S)
            near = await rig.guard()
            seen = await rig.observed(far)
            proxy.hold(proxy.answers)
            proxy.cut()
            await asyncio.sleep(HASTE_S / 2)  # it has connected again by now
            proxy.hold_present(proxy.answers)
            grant = await granted(near, ADA, engine.long_ttl)
            await reached(lambda: seen[-1].token == grant.token, "the holder is seen")

    run(play(), within=110)


@remote
def test_the_answer_to_a_cancelled_question_is_not_taken_for_the_next_ones(engine: Engine) -> None:
    async def play() -> None:
        assert isinstance(engine, Server)
        async with Proxy(engine.port) as proxy, rig_on(engine) as rig:
            near, far = await rig.guard(), await rig.guard(at=proxy.port)
            await granted(near, ADA, engine.long_ttl)
            for waits in (0.0, 0.02, 0.1):
                proxy.answers.delay = 0.2
                asking = asyncio.create_task(far.acquire(ADA, engine.long_ttl))
                await asyncio.sleep(waits)
                asking.cancel()
                proxy.answers.delay = 0.0
                await asyncio.wait([asking])
                assert asking.cancelled()
                await refused(far, BEN, engine.long_ttl)

    run(play(), within=110)


@remote
def test_a_release_that_arrives_late_takes_nothing_from_its_sender(engine: Engine) -> None:
    """It gave up waiting, asked again and leads: its old release must not let anybody else in."""

    async def play() -> None:
        assert isinstance(engine, Server)
        async with Proxy(engine.port) as proxy, rig_on(engine) as rig:
            far = await rig.guard(at=proxy.port, timeout=HASTE_S)
            near = await rig.guard()
            first = await granted(far, ADA, engine.long_ttl)
            held = proxy.hold_present(proxy.questions)
            with suppress(Unreachable):  # some clients try again on another connection
                await far.release(first)
            try:
                again = await far.acquire(ADA, engine.long_ttl)
            except Unreachable:  # a client that does not connect anew as long as one is connected
                held.set()
                again = await granted(far, ADA, engine.long_ttl)
            assert isinstance(again, Grant)
            held.set()
            for _ in range(10):
                await refused(near, BEN, engine.long_ttl)
                await asyncio.sleep(0.05)
            assert (await far.renew(again, engine.long_ttl)).token == again.token

    run(play(), within=110)

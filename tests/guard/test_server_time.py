"""An engine's time of day is stepped while it runs: no lease ends by that, and none lasts longer.

The engines are real ones; libfaketime tells them another time and leaves the monotonic clock alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

import pytest

import hustings
from hustings.guard import Grant, Guard, HeldBy, Holder, NotGranted
from hustings.net.member import Member
from tests.guard.answers import refused
from tests.guard.conformance import LOOK_S, Rig, granted, reached, rig_on
from tests.guard.engines.stepped import Stepped, SteppedCache, SteppedPostgres, SteppedValkey
from tests.net.kit.loops import background, run, until

ADA, BEN, CLEO = Holder("ada", 1), Holder("ben", 1), Holder("cleo", 1)
TTL = 0.8
GROUP_TTL = 1.5
STEPS = [3600.0, 1.0, -600.0, -1e7]
BOTH_WAYS = [3600.0, -600.0]
KINDS: dict[str, Callable[[], Stepped]] = {
    "postgres": SteppedPostgres,
    "valkey": SteppedValkey,
    "cache": SteppedCache,
}


@pytest.fixture(scope="module", params=KINDS)
def running(request: pytest.FixtureRequest) -> Iterator[Stepped]:
    engine = KINDS[request.param]()
    try:
        engine.start()
        yield engine
    finally:
        engine.close()


@pytest.fixture
def engine(running: Stepped) -> Iterator[Stepped]:
    """An engine at the right time of day, before and after."""
    running.step(0.0)
    yield running
    running.step(0.0)


async def ask_until_granted(guard: Guard, holder: Holder, ttl: float) -> tuple[Grant, float]:
    """Ask all the time; the grant, and when it came."""
    grant = await granted(guard, holder, ttl)
    return grant, time.monotonic()


@pytest.mark.parametrize("by_s", STEPS)
def test_a_step_neither_ends_a_lease_nor_makes_it_longer(engine: Stepped, by_s: float) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            one, two = await rig.guard(), await rig.guard()
            first = await granted(one, ADA, TTL)
            await refused(two, BEN, TTL)
            renewed = await one.renew(first, TTL)
            asked = time.monotonic()
            engine.step(by_s)
            second, entered = await ask_until_granted(two, BEN, TTL)
            assert one.now() >= renewed.deadline, "the next came in while the first could act"
            assert second.token > first.token
            assert entered - asked < TTL + 1.0, "who watched all along takes over"
            with pytest.raises(NotGranted):
                await one.renew(renewed, TTL)
            assert (await two.renew(second, TTL)).token == second.token

    run(play())


@pytest.mark.parametrize("by_s", BOTH_WAYS)
def test_a_holder_that_renews_holds_on_whatever_the_time_of_day(
    engine: Stepped, by_s: float
) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            one, two = await rig.guard(), await rig.guard()
            grant = await granted(one, ADA, TTL)
            seen = await rig.observed(two)
            for step in (0.0, by_s, -by_s, 0.0):
                engine.step(step)
                await refused(two, BEN, TTL)
                grant = await one.renew(grant, TTL)
                await refused(two, BEN, TTL)
            assert {(each.holder, each.token) for each in seen} == {("ada", grant.token)}

    run(play())


@pytest.mark.parametrize("by_s", BOTH_WAYS)
def test_an_observer_sees_the_end_of_a_lease_in_time(engine: Stepped, by_s: float) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            one, two = await rig.guard(), await rig.guard()
            grant = await granted(one, ADA, TTL)
            seen = await rig.observed(two)
            engine.step(by_s)
            asked = one.now()
            grant = await one.renew(grant, TTL)
            await reached(lambda: seen[-1].holder is None, "the end of the lease")
            assert one.now() >= grant.deadline
            assert one.now() - asked < TTL + 1.0

    run(play())


@pytest.mark.parametrize("by_s", BOTH_WAYS)
def test_what_is_kept_for_an_heir_is_kept_for_one_lease(engine: Stepped, by_s: float) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            one, two, heir = await rig.guard(), await rig.guard(), await rig.guard()
            await one.release(await granted(one, ADA, TTL), to="cleo")
            engine.step(by_s)
            for _ in range(5):
                assert (await refused(two, BEN, TTL)).holder == "cleo"
                await asyncio.sleep(LOOK_S)
            await heir.release(await granted(heir, CLEO, TTL), to="dan")
            engine.step(-by_s)
            asked = time.monotonic()
            _, entered = await ask_until_granted(two, BEN, TTL)
            assert entered - asked < TTL + 1.0

    run(play())


@pytest.mark.parametrize("running", ["postgres", "valkey"], indirect=True)
def test_a_restart_at_another_time_of_day_ends_no_lease(engine: Stepped) -> None:
    """Nor does it make one longer than the time in which it is renewed no more."""

    async def play() -> None:
        async with rig_on(engine) as rig:
            one, two = await rig.guard(), await rig.guard()
            grant = await granted(one, ADA, 20.0)
            for by_s in BOTH_WAYS:
                await asyncio.to_thread(engine.stop, kill=True)
                engine.step(by_s)
                await asyncio.to_thread(engine.start)
                await reached_again(one)
                grant = await one.renew(grant, 20.0)
                await refused(two, BEN, 20.0)
            await one.release(grant)
            assert (await granted(two, BEN, TTL)).token > grant.token

    run(play())


async def reached_again(guard: Guard) -> None:
    async with guard.observe() as states:
        await anext(states)


# A group


async def group_of(names: str, rig: Rig) -> list[Member]:
    members: list[Member] = []
    for name in names:
        seeds = [members[0].address] if members else []
        joining = hustings.join(
            rig.group, name=name, seeds=seeds, protocol="bully", guard=rig.url(), ttl=GROUP_TTL
        )
        members.append(await joining.open())
    return members


@pytest.mark.parametrize("by_s", BOTH_WAYS)
def test_a_group_has_one_leader_and_then_the_next(engine: Stepped, by_s: float) -> None:
    """The guard is asked from outside all the time, which an old leader would not survive."""

    async def play() -> None:
        async with rig_on(engine) as rig:
            members = await group_of("ab", rig)
            outside = await rig.guard()
            stolen: list[Grant | HeldBy] = []

            async def steal() -> None:
                while True:
                    answer = await outside.acquire(CLEO, GROUP_TTL)
                    if isinstance(answer, Grant):
                        stolen.append(answer)
                        await outside.release(answer)
                    await asyncio.sleep(LOOK_S)

            try:
                await until(lambda: any(each.is_leader for each in members), "a leader")
                first = next(each for each in members if each.is_leader)
                other = next(each for each in members if each is not first)
                token = first.state.token
                async with background(steal()):
                    engine.step(by_s)
                    end = time.monotonic() + GROUP_TTL
                    while time.monotonic() < end:
                        assert first.is_leader
                        assert not other.is_leader
                        await asyncio.sleep(LOOK_S)
                assert not stolen
                assert first.state.token == token
                await first.leave()
                await until(lambda: other.is_leader, "the other leads")
            finally:
                for member in members:
                    await member.leave()

    run(play(), within=100)

"""Leases of different and of fractional times, where whoever waits measures them."""

from __future__ import annotations

import asyncio

import pytest

from hustings.guard import Grant, Guard, Holder
from tests.guard.answers import refused
from tests.guard.conformance import LOOK_S, granted, lapsed, rig_on
from tests.guard.engines.base import Engine
from tests.net.kit.loops import run

ADA, BEN = Holder("ada", 1), Holder("ben", 1)
both = pytest.mark.parametrize("engine", ["postgres", "valkey"], indirect=True)


async def keeps_others_out(one: Guard, grant: Grant, other: Guard, ttl: float) -> None:
    """The other asks all the time, and is let in only when the time promised to one is over."""
    answer = await granted(other, BEN, ttl)
    assert one.now() >= grant.deadline, "the next came in while the first could act"
    assert answer.token > grant.token


@both
@pytest.mark.parametrize("how", ["acquire", "renew"])
@pytest.mark.parametrize("where", ["same guard", "another guard"])
def test_a_shorter_time_does_not_shorten_a_promise(engine: Engine, how: str, where: str) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            one, two = await rig.guard(), await rig.guard()
            again = one if where == "same guard" else await rig.guard()
            first = await granted(one, ADA, 1.0)
            if how == "acquire":
                shorter = await granted(again, ADA, 0.1)
            else:
                shorter = await again.renew(first, 0.1)
            assert shorter.token == first.token
            assert shorter.deadline < first.deadline
            await keeps_others_out(one, first, two, 0.1)

    run(play())


@both
def test_a_shorter_time_counts_when_the_promise_before_is_nearly_over(engine: Engine) -> None:
    """Else one long lease would make all that follow it as long."""

    async def play() -> None:
        async with rig_on(engine) as rig:
            one, two = await rig.guard(), await rig.guard()
            grant = await granted(one, ADA, 0.8)
            while one.now() < grant.deadline - 0.3:
                await asyncio.sleep(LOOK_S)
            shorter = await one.renew(grant, 0.1)
            held = await refused(two, BEN, 5.0)
            assert 0.1 <= held.remaining < 0.5
            await lapsed(one, shorter)
            await keeps_others_out(one, grant, two, 5.0)

    run(play())


@both
@pytest.mark.parametrize(
    "held_s, wanted_s", [(0.7, 0.05), (0.15, 7.0), (0.1125, 0.1137), (1.00049, 0.9999)]
)
def test_who_waits_waits_for_the_time_of_the_holder(
    engine: Engine, held_s: float, wanted_s: float
) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            one, two = await rig.guard(), await rig.guard()
            first = await granted(one, ADA, held_s)
            assert (await refused(two, BEN, wanted_s)).remaining < held_s + 0.01
            await keeps_others_out(one, first, two, wanted_s)

    run(play())


@both
def test_a_renewal_that_a_waiter_has_not_heard_of_counts(engine: Engine) -> None:
    """It has seen one mark for the whole time, and the lease has another one by now."""

    async def play() -> None:
        async with rig_on(engine) as rig:
            one, two = await rig.guard(), await rig.guard()
            grant = await granted(one, ADA, 0.4)
            await refused(two, BEN, 0.4)
            end = two.now() + 0.5
            while two.now() < end:
                grant = await one.renew(grant, 0.4)
                await asyncio.sleep(LOOK_S)
            held = await refused(two, BEN, 0.4)
            assert (held.holder, held.token) == ("ada", grant.token)
            await keeps_others_out(one, grant, two, 0.4)

    run(play())


@both
def test_a_longer_time_counts_from_the_renewal_on(engine: Engine) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            one, two = await rig.guard(), await rig.guard()
            grant = await granted(one, ADA, 0.2)
            await refused(two, BEN, 0.2)
            longer = await one.renew(grant, 1.0)
            assert (await refused(two, BEN, 0.2)).remaining > 0.5
            await keeps_others_out(one, longer, two, 0.2)

    run(play())


@both
def test_what_was_kept_for_an_heir_is_kept_for_the_time_of_who_gave_it(engine: Engine) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            one, two = await rig.guard(), await rig.guard()
            grant = await granted(one, ADA, 0.4)
            await one.release(grant, to="cleo")
            held = await refused(two, BEN, 20.0)
            assert (held.holder, held.token) == ("cleo", 0)
            assert held.remaining < 0.41
            assert (await granted(two, BEN, 20.0)).token > grant.token

    run(play())

"""For how long leases last, for every engine: fractions of seconds, and times that change.

What was promised once is kept, whatever is asked for afterwards, and a token is part of the
question: with another one nothing is renewed and nothing given back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from hustings.guard import Grant, Guard, Holder, NotGranted
from tests.guard.answers import refused
from tests.guard.conformance import LOOK_S, every, granted, lapsed, rig_on
from tests.guard.engines.base import Engine
from tests.net.kit.loops import run

ADA, BEN = Holder("ada", 1), Holder("ben", 1)


async def reacquired(guard: Guard, grant: Grant, ttl: float) -> Grant:
    answer = await guard.acquire(grant.holder, ttl)
    assert isinstance(answer, Grant), answer
    return answer


async def renewed(guard: Guard, grant: Grant, ttl: float) -> Grant:
    return await guard.renew(grant, ttl)


Ask = Callable[[Guard, Grant, float], Awaitable[Grant]]
again = pytest.mark.parametrize("ask", [reacquired, renewed])


@every
def test_a_lease_of_a_fraction_lasts_for_all_of_it(engine: Engine) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            one, two = await rig.guard(), await rig.guard()
            first = await granted(one, ADA, 1.3 * engine.ttl)
            following = await granted(two, BEN, 1.3 * engine.ttl)
            assert one.now() >= first.deadline, "the next came in while the first could act"
            assert following.token > first.token

    run(play())


@every
@again
def test_asking_for_less_takes_nothing_from_what_was_promised(engine: Engine, ask: Ask) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            one, two = await rig.guard(), await rig.guard()
            first = await granted(one, ADA, 1.7 * engine.ttl)
            await refused(two, BEN, engine.ttl)
            for _ in range(2):
                later = await ask(one, first, engine.ttl)
                assert later.token == first.token
            await granted(two, BEN, engine.ttl)
            assert one.now() >= first.deadline, "the next came in while the first could act"

    run(play())


@every
@again
def test_asking_for_more_gives_more(engine: Engine, ask: Ask) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            one, two = await rig.guard(), await rig.guard()
            first = await granted(one, ADA, engine.ttl)
            await refused(two, BEN, engine.ttl)
            later = await ask(one, first, 1.6 * engine.ttl)
            assert later.token == first.token
            assert later.deadline > first.deadline
            await granted(two, BEN, engine.ttl)
            assert one.now() >= later.deadline, "the next came in while the first could act"

    run(play())


@every
@pytest.mark.parametrize("off", [-1, 1])
def test_with_another_token_nothing_is_renewed_and_nothing_given_back(
    engine: Engine, off: int
) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            guard, other = await rig.guard(), await rig.guard()
            first = await granted(guard, ADA, engine.long_ttl)
            wrong = Grant(ADA, first.token + off, first.deadline)
            with pytest.raises(NotGranted):
                await guard.renew(wrong, engine.long_ttl)
            await guard.release(wrong)
            assert (await refused(other, BEN, engine.long_ttl)).token == first.token
            assert (await guard.renew(first, engine.long_ttl)).token == first.token

    run(play())


@every
def test_a_renewal_with_another_token_does_not_lengthen_a_lease(engine: Engine) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            guard, other = await rig.guard(), await rig.guard()
            first = await granted(guard, ADA, engine.ttl)
            wrong = Grant(ADA, first.token + 1, first.deadline)
            while guard.now() < first.deadline:
                with pytest.raises(NotGranted):
                    await guard.renew(wrong, engine.long_ttl)
                await asyncio.sleep(LOOK_S)
            await lapsed(guard, first)
            assert (await granted(other, BEN, engine.ttl)).token > first.token

    run(play())


@every
def test_another_holder_renews_and_gives_back_nothing(engine: Engine) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            guard, other = await rig.guard(), await rig.guard()
            first = await granted(guard, ADA, engine.long_ttl)
            for holder in (BEN, Holder("ada", 2)):
                theirs = Grant(holder, first.token, first.deadline)
                for each in (guard, other):
                    with pytest.raises(NotGranted):
                        await each.renew(theirs, engine.long_ttl)
                    await each.release(theirs)
            assert (await refused(other, BEN, engine.long_ttl)).token == first.token

    run(play())

"""The law of guards, for every engine: one holder at a time, tokens that grow, and who is next.

What engines and networks do to guards is in test_conformance_outages.py.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from itertools import pairwise

import pytest

from hustings.core.errors import BadInput
from hustings.guard import (
    Grant,
    Guard,
    HeldBy,
    Holder,
    Holding,
    NotGranted,
    Unreachable,
    make_guard,
)
from tests.guard.answers import refused
from tests.guard.conformance import (
    LOOK_S,
    every,
    granted,
    lapsed,
    reached,
    rig_on,
    strict,
    with_clock,
)
from tests.guard.engines.base import Engine, free_port
from tests.net.kit.loops import run

ADA, BEN, CLEO = Holder("ada", 1), Holder("ben", 1), Holder("cleo", 1)
DRIFT = 0.25


@every
def test_one_of_many_who_ask_at_once_is_granted(engine: Engine) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            guards = [await rig.guard() for _ in range(6)]
            tokens = []
            for incarnation in range(4):
                holders = [Holder(f"m{number}", incarnation) for number in range(6)]
                answers = await asyncio.gather(
                    *(g.acquire(h, engine.long_ttl) for g, h in zip(guards, holders, strict=True))
                )
                (won,) = [each for each in answers if isinstance(each, Grant)]
                for each in answers:
                    if isinstance(each, HeldBy):
                        assert each.token in (won.token, 0), "held by nobody but the winner"
                held = await refused(guards[0], Holder("late", incarnation), engine.long_ttl)
                assert held.holder == won.holder.name
                assert held.token == won.token
                assert held.remaining > 0
                tokens.append(won.token)
                await guards[holders.index(won.holder)].release(won)
            assert tokens == sorted(set(tokens)), "tokens grow"

    run(play())


@every
def test_nobody_is_inside_with_another(engine: Engine) -> None:
    async def play() -> None:
        inside: list[Holder] = []
        tokens: list[int] = []

        async def visit(guard: Guard, holder: Holder) -> None:
            for _ in range(3):
                grant = await granted(guard, holder, engine.long_ttl)
                assert not inside, f"{holder} enters while {inside} is inside"
                inside.append(holder)
                tokens.append(grant.token)
                await asyncio.sleep(0.01)
                inside.remove(holder)
                await guard.release(grant)

        async with rig_on(engine) as rig:
            guards = [await rig.guard() for _ in range(4)]
            await asyncio.gather(
                *(visit(guard, Holder(f"m{n}", 1)) for n, guard in enumerate(guards))
            )
        assert len(tokens) == 12
        assert tokens == sorted(set(tokens)), "tokens grow from one period of holding to the next"

    run(play(), within=110)


@every
def test_a_lease_ends_by_itself_and_a_loser_cannot_renew(engine: Engine) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            one, two = await rig.guard(), await rig.guard()
            first = await granted(one, ADA, engine.ttl)
            second = await granted(two, BEN, engine.long_ttl)
            assert one.now() >= first.deadline, "the next came in while the first could act"
            assert second.token > first.token
            with pytest.raises(NotGranted):
                await one.renew(first, engine.ttl)
            await one.release(first)  # of what it does not hold: nothing happens
            renewed = await two.renew(second, engine.long_ttl)
            assert (renewed.token, renewed.holder) == (second.token, BEN)

    run(play())


@every
def test_what_was_given_back_cannot_be_renewed(engine: Engine) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            guard = await rig.guard()
            grant = await granted(guard, ADA, engine.long_ttl)
            await guard.release(grant)
            with pytest.raises(NotGranted):
                await guard.renew(grant, engine.long_ttl)
            again = await granted(guard, ADA, engine.long_ttl)
            assert again.token > grant.token, "a new period of holding has a new token"

    run(play())


@every
def test_what_has_lapsed_cannot_be_renewed(engine: Engine) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            guard, other = await rig.guard(), await rig.guard()
            grant = await granted(guard, ADA, engine.ttl)
            later = await granted(other, BEN, engine.long_ttl)
            await other.release(later)
            with pytest.raises(NotGranted):
                await guard.renew(grant, engine.ttl)
            assert (await granted(guard, ADA, engine.ttl)).token > later.token

    run(play())


@every
def test_what_has_lapsed_cannot_be_renewed_although_nobody_came(engine: Engine) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            guard = await rig.guard()
            grant = await granted(guard, ADA, engine.ttl)
            seen = await rig.observed(guard)
            await reached(lambda: seen[-1].holder is None, "the end of the lease")
            with pytest.raises(NotGranted):
                await guard.renew(grant, engine.ttl)
            assert (await granted(guard, ADA, engine.ttl)).token > grant.token

    run(play())


@every
def test_the_holder_keeps_its_token_and_its_time_grows(engine: Engine) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            guard, other = await rig.guard(), await rig.guard()
            ttl = max(engine.ttl, 1.5)
            first = await granted(guard, ADA, ttl)
            await asyncio.sleep(0.6 * ttl)
            again = await guard.acquire(ADA, ttl)
            assert isinstance(again, Grant)
            assert again.token == first.token
            assert again.deadline > first.deadline
            third = await guard.renew(again, ttl)
            assert third.token == first.token
            assert third.deadline > again.deadline
            await lapsed(guard, first)
            await refused(other, BEN, ttl)

    run(play())


@every
def test_another_incarnation_of_the_same_member_is_another_holder(engine: Engine) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            before, after = await rig.guard(), await rig.guard()
            old = await granted(before, Holder("ada", 1), engine.long_ttl)
            held = await refused(after, Holder("ada", 2), engine.long_ttl)
            assert held.token == old.token
            await before.release(old)
            new = await granted(after, Holder("ada", 2), engine.long_ttl)
            assert new.token > old.token
            await before.release(old)
            with pytest.raises(NotGranted):
                await before.renew(old, engine.long_ttl)
            await after.renew(new, engine.long_ttl)

    run(play())


@every
def test_groups_do_not_know_each_other(engine: Engine) -> None:
    async def play() -> None:
        async with rig_on(engine) as here, rig_on(engine) as there:
            there.group = here.group + "s"
            one, two = await here.guard(), await there.guard()
            assert isinstance(await one.acquire(ADA, engine.long_ttl), Grant)
            assert isinstance(await two.acquire(BEN, engine.long_ttl), Grant)

    run(play())


@every
def test_a_release_wakes_who_waits(engine: Engine) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            guard, waiting = await rig.guard(), await rig.guard()
            grant = await granted(guard, ADA, engine.long_ttl)
            await refused(waiting, BEN, engine.long_ttl)
            seen = await rig.observed(waiting)
            await reached(lambda: seen[-1].token == grant.token, "the holder is seen")
            began = time.monotonic()
            await guard.release(grant)
            await reached(lambda: seen[-1].holder is None, "the release is seen")
            await granted(waiting, BEN, engine.long_ttl)
            assert time.monotonic() - began < engine.wakes_s

    run(play())


@every
def test_a_lease_handed_over_goes_to_whom_it_was_meant_for(engine: Engine) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            guard, other, heir = await rig.guard(), await rig.guard(), await rig.guard()
            grant = await granted(guard, ADA, engine.long_ttl)
            await guard.release(grant, to="cleo")
            if engine.favours:
                for _ in range(3):
                    await refused(other, BEN, engine.long_ttl)
            following = await granted(heir, CLEO, engine.long_ttl)
            assert following.token > grant.token
            await heir.release(following)
            assert isinstance(await other.acquire(BEN, engine.long_ttl), Grant), "favoured once"

    run(play())


@every
def test_an_heir_that_does_not_come_keeps_nobody_out_for_long(engine: Engine) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            guard, other = await rig.guard(), await rig.guard()
            grant = await granted(guard, ADA, engine.ttl)
            await guard.release(grant, to="cleo")
            assert (await granted(other, BEN, engine.ttl)).token > grant.token

    run(play())


@every
def test_an_observer_sees_every_holder_in_order(engine: Engine) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            guard, watching = await rig.guard(), await rig.guard()
            seen = await rig.observed(watching)
            assert seen[0].holder is None
            names: dict[int, str] = {}
            for number in range(3):
                grant = await granted(guard, Holder(f"m{number}", 1), engine.long_ttl)
                names[grant.token] = f"m{number}"
                await reached(lambda: seen[-1].token in names and seen[-1].holder, "a holder")
                late = await rig.observed(watching)
                assert late[0] == seen[-1], "who comes later sees the present state first"
                await guard.release(grant)
                await reached(lambda: seen[-1].holder is None, "nobody")
        held = [each for each in seen if each.holder is not None]
        assert [each.token for each in held] == sorted(names), "each token once, in order"
        for each in held:
            assert each.holder == names[each.token]
        assert all(a != b for a, b in pairwise(seen)), "changes only"

    run(play())


@every
def test_an_observer_sees_a_lease_end_by_itself(engine: Engine) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            guard, watching = await rig.guard(), await rig.guard()
            grant = await granted(guard, ADA, engine.ttl)
            seen = await rig.observed(watching)
            await lapsed(guard, grant)
            await reached(lambda: seen[-1].holder is None, "the end of the lease")

    run(play())


@every
def test_observing_ends_when_it_is_told_to(engine: Engine) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            guard = await rig.guard()
            async with guard.observe() as states:
                assert (await anext(states)).holder is None
                waiting = asyncio.ensure_future(anext(states))
                await asyncio.sleep(LOOK_S)
                waiting.cancel()
                await asyncio.wait([waiting])
            with pytest.raises(StopAsyncIteration):
                await anext(states)
            async with guard.observe() as states:
                assert isinstance(await anext(states), Holding)

    run(play())


@every
def test_windows_do_not_overlap_while_clocks_drift_by_the_bound(engine: Engine) -> None:
    """The holder's clock is as slow, the next one's as fast as the promise allows."""

    async def play() -> None:
        async with rig_on(engine) as rig:
            slow, fast = await rig.guard(), await rig.guard()
            with_clock(slow, 1 - DRIFT, DRIFT)
            with_clock(fast, 1 + DRIFT, DRIFT)
            first = await granted(slow, ADA, engine.ttl)
            second = await granted(fast, BEN, engine.ttl)
            assert slow.now() >= first.deadline, "the next came in while the first could act"
            third = await granted(slow, ADA, engine.ttl)
            assert fast.now() >= second.deadline
            assert first.token < second.token < third.token

    run(play())


@every
def test_a_ttl_that_the_engine_cannot_do_is_refused_before_it_is_asked(engine: Engine) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            guard = await rig.guard()
            for ttl in engine.bad_ttls:
                with pytest.raises(BadInput, match="ttl"):
                    guard.check_ttl(ttl)
                with pytest.raises(BadInput, match="ttl"):
                    await guard.acquire(ADA, ttl)
            assert guard.questions == 0
            guard.check_ttl(engine.ttl)

    run(play())


@every
def test_unknown_and_bad_options_are_refused(engine: Engine) -> None:
    url = engine.url()
    more = "&" if "?" in url else "?"
    for option in ("colour=red", "timeout=soon", "timeout=0", "timeout=-1", "timeout=nan"):
        with pytest.raises(BadInput, match=option.partition("=")[0]):
            make_guard(f"{url}{more}{option}", "group")


@strict
def test_what_waiting_does_not_cure_is_said_at_once_without_secrets(engine: Engine) -> None:
    async def play() -> None:
        for what, url in engine.wrong_urls().items():
            guard = make_guard(url, "group")
            began = time.monotonic()
            try:
                with pytest.raises(BadInput) as caught:
                    await guard.open()
            finally:
                await guard.close()
            assert time.monotonic() - began < 10.0, what
            told = "".join(traceback.format_exception(caught.value)) + repr(guard)
            assert not [each for each in engine.secrets() if each in told], what

    run(play())


@strict
def test_an_engine_that_is_not_there_is_said_without_secrets(engine: Engine) -> None:
    async def play() -> None:
        guard = make_guard(engine.url("group", free_port()), "group")
        try:
            with pytest.raises(Unreachable) as caught:
                await guard.open()
            told = "".join(traceback.format_exception(caught.value))
            assert not [each for each in engine.secrets() if each in told]
        finally:
            await guard.close()

    run(play())

"""Real engines that are killed, lose what they kept, and come back: tokens still grow.

What every guard makes of it is in tests/unit/guard/test_memory_loss.py.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import uuid

import pytest

from hustings.guard import HeldBy, Holder, MemoryLost, NotGranted, make_guard
from hustings.guard.memory import registers_in
from hustings.net.member import Member
from tests.guard.answers import refused
from tests.guard.conformance import granted, rig_on
from tests.guard.engines.base import Engine
from tests.guard.test_conformance_outages import answered
from tests.guard.test_members import group_of, seated
from tests.net.kit.loops import run, until

ADA, BEN = Holder("ada", 1), Holder("ben", 1)
KNOWN = 1_000_000  # what the group got to before the loss

LIFTED = ["memory", "nats", "postgres", "valkey"]  # by the members themselves
lifted = pytest.mark.parametrize("engine", LIFTED, indirect=True)
DECIDED = ["etcd", "zookeeper"]  # by an operator
decided = pytest.mark.parametrize("engine", DECIDED, indirect=True)


@lifted
def test_tokens_go_on_above_what_is_known(engine: Engine) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            one, two = await rig.guard(), await rig.guard()
            notes: list[str] = []
            two.note = notes.append
            await one.recover(KNOWN)
            first = await granted(one, ADA, engine.ttl)
            assert first.token > KNOWN
            await asyncio.to_thread(engine.forget)
            second = await granted(two, BEN, engine.ttl, first.token)
            assert two.now() >= first.deadline, "the next came in while the first could act"
            assert second.token > first.token
            assert any("lost its memory" in note and str(first.token) in note for note in notes)
            with pytest.raises(NotGranted):
                await answered(one, first, engine.ttl)
            await two.release(second)
            third = await granted(one, ADA, engine.ttl)  # who knows of nothing
            assert third.token > second.token
            await one.release(third)

    run(play(), within=110)


@lifted
def test_a_leader_in_its_time_is_not_kept_waiting(engine: Engine) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            guard, other = await rig.guard(), await rig.guard()
            await guard.recover(KNOWN)
            first = await granted(guard, ADA, engine.long_ttl)
            await asyncio.to_thread(engine.forget)
            again = await granted(guard, ADA, engine.long_ttl, first.token)
            assert again.token > first.token
            assert guard.now() < first.deadline
            held = await other.acquire(BEN, engine.long_ttl, first.token)
            assert isinstance(held, HeldBy)
            assert (held.holder, held.token) == ("ada", again.token)

    run(play(), within=110)


@lifted
def test_who_holds_while_an_operator_lifts_keeps_its_token(engine: Engine) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            guard, other = await rig.guard(), await rig.guard()
            first = await granted(guard, ADA, engine.long_ttl)
            await other.recover(KNOWN)
            await other.recover(5)
            renewed = await guard.renew(first, engine.long_ttl)
            assert renewed.token == first.token
            await guard.release(renewed)
            assert (await granted(other, BEN, engine.long_ttl)).token > KNOWN

    run(play())


@pytest.mark.parametrize("engine", [each for each in LIFTED if each != "memory"], indirect=True)
def test_members_go_on_by_themselves_and_say_why(engine: Engine) -> None:
    group = f"members-{uuid.uuid4().hex[:8]}"

    async def story() -> None:
        url = engine.url(group)
        async with make_guard(url, group) as guard:
            await guard.recover(KNOWN)
        members = await group_of("abc", group, url)
        try:
            before = (await seated(members)).state.token or 0
            assert before > KNOWN
            await until(lambda: all(each.state.token == before for each in members), "all know it")
            await asyncio.to_thread(engine.forget)
            await until(lambda: min(tokens(members)) > before, "a larger token", within=30.0)
            await seated(members)
            notes = [note for each in members for note in each.notes]
            assert any("lost its memory" in note for note in notes), notes
        finally:
            for member in members:
                await member.leave()

    run(story(), within=110)


def tokens(members: list[Member]) -> set[int]:
    return {each.state.token or 0 for each in members}


async def operated(*words: str) -> str:
    """What an operator does at a shell; what it was told."""
    command = [sys.executable, "-m", "hustings", "guards", *words]
    done = await asyncio.to_thread(
        subprocess.run, command, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@decided
def test_nobody_is_let_in_below_what_is_known_until_an_operator_decides(engine: Engine) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            one, two = await rig.guard(), await rig.guard()
            await one.recover(KNOWN)
            first = await granted(one, ADA, engine.ttl)
            assert first.token > KNOWN
            await asyncio.to_thread(engine.forget)
            for _ in range(3):
                with pytest.raises(MemoryLost) as caught:
                    await granted(two, BEN, engine.ttl, first.token)
            (line,) = re.findall("`hustings (guards .*?)`", str(caught.value))
            assert str(first.token) in line
            url = engine.url(rig.group)
            told = await operated(*line.replace("URL", url).split()[1:], "--yes", "--json")
            assert json.loads(told)["above"] == first.token
            second = await granted(two, BEN, engine.long_ttl, first.token)
            assert second.token > first.token
            seen = await rig.observed(one)
            assert (seen[-1].holder, seen[-1].token) == ("ben", second.token)
            await two.release(second)
            third = await granted(one, ADA, engine.ttl)  # who knows of nothing
            assert third.token > second.token

    run(play(), within=110)


@decided
def test_who_led_unaware_gets_a_token_that_is_believed(engine: Engine) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            guard, other = await rig.guard(), await rig.guard()
            small = await granted(guard, ADA, engine.long_ttl)
            notes: list[str] = []
            other.note = notes.append
            held = await other.acquire(BEN, engine.long_ttl, KNOWN)
            assert isinstance(held, HeldBy)
            assert held.token == small.token
            assert "ada holds that token" in notes[0]
            with pytest.raises(MemoryLost):  # it has heard of it, and gives way
                await guard.acquire(ADA, engine.long_ttl, KNOWN)
            with pytest.raises(NotGranted):
                await guard.renew(small, engine.long_ttl)
            await other.recover(KNOWN)
            assert (await granted(guard, ADA, engine.long_ttl, KNOWN)).token > KNOWN

    run(play(), within=110)


@decided
def test_who_holds_while_an_operator_lifts_goes_on_with_a_larger_token(engine: Engine) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            guard, other = await rig.guard(), await rig.guard()
            first = await granted(guard, ADA, engine.long_ttl)
            await other.recover(first.token)
            first = await guard.renew(first, engine.long_ttl)  # it was above that already
            await other.recover(KNOWN)
            await other.recover(KNOWN - 5)
            with pytest.raises(NotGranted):
                await guard.renew(first, engine.long_ttl)
            assert isinstance(await other.acquire(BEN, engine.long_ttl), HeldBy)
            again = await granted(guard, ADA, engine.long_ttl)
            assert KNOWN < again.token <= 2 * KNOWN
            await guard.renew(again, engine.long_ttl)
            await guard.release(again)
            assert (await granted(other, BEN, engine.long_ttl)).token > again.token

    run(play(), within=110)


@decided
def test_a_token_of_ones_own_below_what_the_engine_grants_anyway_is_exchanged(
    engine: Engine,
) -> None:
    async def play() -> None:
        async with rig_on(engine) as rig:
            guard, other = await rig.guard(), await rig.guard()
            first = await granted(guard, ADA, engine.long_ttl)
            for _ in range(5):  # others' work: the engine's count goes on
                await guard.renew(first, engine.long_ttl)
                rig.group += "x"
                await granted(await rig.guard(), BEN, engine.long_ttl)
            again = await granted(guard, ADA, engine.long_ttl, first.token + 1)
            assert again.token > first.token + 1
            assert (await refused(other, BEN, engine.long_ttl)).token == again.token

    run(play(), within=110)


@decided
def test_members_say_what_to_do_and_lead_again_when_it_is_done(engine: Engine) -> None:
    group = f"members-{uuid.uuid4().hex[:8]}"

    async def story() -> None:
        url = engine.url(group)
        async with make_guard(url, group) as guard:
            await guard.recover(KNOWN)
        members = await group_of("abc", group, url)
        try:
            before = (await seated(members)).state.token or 0
            await until(lambda: tokens(members) == {before}, "all know it")
            await asyncio.to_thread(engine.forget)
            command = f"hustings guards URL --group {group} --recover --above {before}"
            await until(
                lambda: any(command in note for each in members for note in each.notes),
                lambda: f"a note says what to do: {[each.notes for each in members]}",
                within=30.0,
            )
            await until(lambda: not any(each.is_leader for each in members), "its time is over")
            await operated(url, "--group", group, "--recover", "--above", f"{before}", "--yes")
            await until(lambda: min(tokens(members)) > before, "a larger token", within=30.0)
            await seated(members)
        finally:
            for member in members:
                await member.leave()

    run(story(), within=110)


def test_a_leader_that_knows_nothing_hears_from_the_others() -> None:
    """It came back without a state while the engine did, and was let in with the first token."""

    async def story() -> None:
        space, group = f"memory://{uuid.uuid4().hex}", "unaware"
        async with make_guard(space, group) as guard:
            await guard.recover(KNOWN)
        members = await group_of("abc", group, space)
        try:
            leader = await seated(members)
            before = leader.state.token or 0
            await until(lambda: tokens(members) == {before}, "all know it")
            (register,) = registers_in(space.removeprefix("memory://"))
            unaware = leader.node.lease_layer
            assert unaware is not None
            register.forget()
            unaware.term = unaware.token = 0
            await until(lambda: min(tokens(members)) > before, "a larger token", within=30.0)
            await seated(members)
        finally:
            for member in members:
                await member.leave()

    run(story(), within=60)

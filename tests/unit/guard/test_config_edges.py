"""The guard that somebody has chosen: engines that are away, parts of engines, odd voters."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from hustings.core.errors import BadInput, Unavailable
from hustings.guard import Guard, Unreachable
from hustings.guard import config as module
from hustings.guard.config import GroupGuard, guard_for
from hustings.guard.memory import MemoryGuard, Register
from hustings.guard.quorum import GroupVoters, VoterOptions
from hustings.guard.urls import parse_url
from hustings.layers.lease import LeaseConfig
from tests.net.kit.virtual import now, virtually

IDS = {name: number for number, name in enumerate("abcdefg", 1)}


class Engine(MemoryGuard):
    """An engine that is away until some moment, and keeps when it was opened."""

    def __init__(self, there_at: float = 0.0) -> None:
        super().__init__(Register(now))
        self._there_at = there_at
        self.opened: list[float] = []
        self.closed = 0

    async def open(self) -> None:
        self.opened.append(now())
        if now() < self._there_at:
            raise Unreachable("nobody there")

    async def close(self) -> None:
        self.closed += 1

    async def _word(self, kind: str, word: str, *, instead: bool) -> str:
        assert self.opened, "asked before it was opened"
        return "engine-1"


def chosen(guard: Guard, **more: Any) -> GroupGuard:
    return guard_for(lambda group: guard, "jobs", IDS.__getitem__, **more)


# Engines that are away


def test_an_engine_is_tried_less_and_less_often_and_then_given_up() -> None:
    async def story() -> None:
        engine = Engine(there_at=60.0)
        notes: list[str] = []
        with pytest.raises(Unavailable, match=r"Engine did not answer for 20s \(nobody there\)"):
            await chosen(engine, wait=20.0).agreed(5.0, notes.append)
        assert engine.opened == [0.0, 0.5, 1.5, 3.5, 7.5, 12.5, 17.5, 20.0]
        assert notes == ["guard Engine does not answer: trying for 20s (nobody there)"]
        assert engine.closed == 1

    virtually(story())


def test_an_engine_that_comes_in_time_is_opened() -> None:
    async def story() -> None:
        engine = Engine(there_at=3.0)
        notes: list[str] = []
        made = chosen(engine)
        await made.agreed(5.0, notes.append)
        assert now() == 3.5
        assert notes[1:] == ["guard Engine answers after 3.5s"]
        assert engine.closed == 0
        await made.close()

    virtually(story())


def test_an_engine_is_closed_if_nobody_waits_for_it_any_more() -> None:
    async def story() -> None:
        engine = Engine(there_at=60.0)
        asking = asyncio.create_task(chosen(engine).agreed(5.0, lambda _: None))
        await asyncio.sleep(3.0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert engine.closed == 1

    virtually(story())


def test_an_engine_is_opened_before_it_is_asked_for_its_name_and_closed_behind() -> None:
    async def story() -> None:
        engine = Engine()
        made = chosen(engine)
        kind, name = await made.agreed(5.0, lambda _: None)
        assert (kind.value, name.value) == ("engine", "engine-1")
        assert (engine.opened, engine.closed) == ([0.0], 0)
        await made.close()
        assert (engine.opened, engine.closed) == ([0.0], 1)

    virtually(story())


def test_an_engine_is_opened_before_anybody_asks_it() -> None:
    async def story() -> None:
        engine = Engine(there_at=2.0)
        made = chosen(engine)
        made.known_as = "engine-1"
        asks = await made.client("a", IDS.__getitem__, lambda _: None, lambda: None, lambda: (0, 0))
        assert asks is not None
        assert engine.opened[-1] == 3.5
        assert asks.guard.known_as == "engine-1"
        await asks.close()
        await asyncio.sleep(0)

    virtually(story())


# Parts of engines


@pytest.mark.parametrize(
    "url, scope",
    [
        ("redis://h", ""),
        ("redis://h/0", ""),
        ("rediss://h/00", ""),
        ("valkey://h/07", "7"),
        ("redis://h/seven", "seven"),
        ("nats://h/hustings", ""),
        ("nats://h/07", "07"),
        ("zookeeper://h?recipe=kazoo", ""),
        ("zookeeper://h?recipe=curator", "recipe=curator"),
        ("zookeeper://h/app?recipe=curator", "app recipe=curator"),
        ("own://h/hustings?recipe=kazoo", "hustings recipe=kazoo"),
    ],
)
def test_what_is_asked_of_an_engine_anyway_is_no_part_of_it(url: str, scope: str) -> None:
    assert module._scope(parse_url(url)) == scope


# Voters


@pytest.mark.parametrize("count", [4, 6])
def test_an_even_number_of_voters_is_refused(count: int) -> None:
    names = ",".join("abcdefg"[:count])
    with pytest.raises(BadInput, match=f"needs 3, 5 or 7 voters, not {count}"):
        VoterOptions(parse_url(f"quorum://{names}"), IDS.__getitem__)


@pytest.mark.parametrize("durable", ["yes", "no"])
def test_members_must_agree_on_whether_voters_keep_anything(durable: str) -> None:
    quorum = VoterOptions(
        parse_url(f"quorum://a,b,c?durable={durable}&max_ttl=30s"), IDS.__getitem__
    )
    told = {field.name: field.value for field in quorum.agreed(5.0)}
    assert told == {"voters": "a,b,c", "durable": durable, "longest lease": "30s"}


def test_voters_grant_up_to_the_longest_lease() -> None:
    quorum = VoterOptions(parse_url("quorum://a,b,c?max_ttl=30s"), IDS.__getitem__)
    for asked in (0.5, 30.0):
        quorum.check(asked)
    for asked in (0.0, 30.1):
        with pytest.raises(BadInput, match="must not exceed max_ttl=30s"):
            quorum.check(asked)


def test_voters_are_those_of_the_members_own_election() -> None:
    inner = SimpleNamespace()
    host: Any = SimpleNamespace(stack=SimpleNamespace(inner=inner))
    made = guard_for("quorum://a,b,c", "jobs", IDS.__getitem__).voters(host, IDS.__getitem__)
    assert isinstance(made, GroupVoters)
    assert made._host is host


def test_one_guard_says_which_engine_it_is_and_serves_the_client() -> None:
    async def story() -> None:
        engine = Engine()
        calls: list[str] = []

        def make(group: str) -> Guard:
            calls.append(group)
            return engine

        made = guard_for(make, "jobs", IDS.__getitem__)
        made.check(LeaseConfig(), "a", kept=True)
        await made.agreed(5.0, lambda _: None)
        client = await made.client(
            "a", IDS.__getitem__, lambda _: None, lambda: None, lambda: (0, 0)
        )
        await made.close()
        assert client is not None
        assert client.guard is engine
        assert (calls, engine.opened, engine.closed) == (["jobs"], [0.0], 0)
        await client.close()

    virtually(story())

"""The PostgreSQL guard on a model of its functions: connections, observers, installing."""

from __future__ import annotations

import asyncio

import pytest
from asyncpg import exceptions as refused

from hustings.core.errors import BadInput
from hustings.guard import Guard, Holder, Holding, Unreachable
from hustings.guard import postgres as guards
from hustings.guard.inspection import install
from hustings.guard.postgres import MIGRATION, PostgresGuard
from hustings.guard.postgres_schema import VERSION, channel_of
from hustings.guard.urls import make_guard, parse_url
from tests.guard.answers import granted
from tests.net.kit.virtual import now, virtually
from tests.unit.guard.postgres_model import SHOWN, URL, Database

TTL = 10.0
ADA, BEN, CLEO = Holder("ada", 1), Holder("ben", 1), Holder("cleo", 1)


# Opening, and one connection for all questions


def test_a_schema_of_another_version_is_refused(database: Database) -> None:
    async def story() -> None:
        async with database.guard():
            assert database.asked == ["version"]
        database.version = 99
        with pytest.raises(BadInput, match=f"{SHOWN} is of version 99, and this is {VERSION}: run"):
            await database.guard().open()

    virtually(story())


def test_all_questions_share_a_connection_and_closing_ends_it(database: Database) -> None:
    async def story() -> None:
        guard = database.guard()
        await guard.close()  # nothing was opened: fine
        async with guard:
            grant = await granted(guard, ADA, TTL)
            await guard.renew(grant, TTL)
            assert len(database.connections) == 1
        assert database.open == 0
        assert (await granted(guard, ADA, TTL)).token == 1
        assert (len(database.connections), database.open) == (2, 1)

    virtually(story())


def test_a_connection_that_has_ended_is_replaced(database: Database) -> None:
    async def story() -> None:
        guard = database.guard()
        await guard.open()
        database.connections[0].lose()
        await granted(guard, ADA, TTL)
        assert (len(database.connections), database.open) == (2, 1)

    virtually(story())


def test_a_conversation_that_broke_off_is_not_gone_on_with(database: Database) -> None:
    """What is left of it would be taken for the next one's answer."""

    async def never(what: str) -> None:
        if what == "acquire":
            await asyncio.sleep(3600.0)

    async def fine(what: str) -> None:
        pass

    async def story() -> None:
        guard = database.guard(timeout=0.5)
        await guard.open()
        database.after = never
        with pytest.raises(Unreachable, match=f"{SHOWN} did not answer within 0.5 s"):
            await guard.acquire(ADA, TTL)
        assert (now(), database.open) == (0.5, 0)
        task = asyncio.create_task(guard.acquire(ADA, TTL))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert database.open == 0
        database.after = fine
        await granted(guard, ADA, TTL)
        assert (len(database.connections), database.open) == (3, 1)

    virtually(story())


def test_questions_take_turns(database: Database) -> None:
    under_way = 0

    async def slowly(what: str) -> None:
        nonlocal under_way
        under_way += 1
        assert under_way == 1, "one conversation at a time"
        await asyncio.sleep(0.1)
        under_way -= 1

    async def story() -> None:
        guard = database.guard()
        database.before = slowly
        await asyncio.gather(*(guard.recover(number) for number in (1, 2, 3)))
        assert len(database.connections) == 1

    virtually(story())


def test_what_is_a_mistake_at_the_start_may_pass_later(database: Database) -> None:
    async def story() -> None:
        guard = database.guard()
        database.fails = refused.InvalidPasswordError("wrong")
        with pytest.raises(BadInput, match=f"{SHOWN} refuses access: wrong"):
            await guard.open()
        with pytest.raises(Unreachable, match=f"{SHOWN} refuses access: wrong"):
            await guard.acquire(ADA, TTL)

    virtually(story())


@pytest.mark.parametrize("ttl", [0.009, 86401.0])
def test_times_that_no_row_can_keep_are_refused(database: Database, ttl: float) -> None:
    guard = database.guard()
    with pytest.raises(BadInput, match="a lease in PostgreSQL must lie between"):
        guard.check_ttl(ttl)
    with pytest.raises(BadInput, match="positive time"):
        guard.check_ttl(float("nan"))


# Observers


def test_an_observer_sees_who_holds_and_the_end_that_nobody_announces(database: Database) -> None:
    async def story() -> None:
        await granted(database.guard(), ADA, TTL)
        seen = []
        async with database.guard().observe() as states:
            async for state in states:
                seen.append((now(), state.holder, state.token))
                if len(seen) == 2:
                    break
        assert seen == [(0.0, "ada", 1), (TTL, None, 1)]
        assert database.open == 1, "the observer's connection has ended"

    virtually(story())


def test_an_observer_sees_a_short_lease(database: Database) -> None:
    async def story() -> None:
        await granted(database.guard(), ADA, 0.5)
        guard = database.guard()
        assert await guard.look() == Holding("ada", 1)
        await asyncio.sleep(0.5)
        assert await guard.look() == Holding(None, 1)

    virtually(story())


def test_an_observer_hears_of_a_change_at_once(database: Database) -> None:
    async def change() -> None:
        ada = database.guard()
        await asyncio.sleep(2.0)
        grant = await granted(ada, ADA, TTL)
        await asyncio.sleep(1.0)
        await ada.release(grant)

    async def story() -> None:
        seen = []
        async with database.guard().observe() as states, asyncio.TaskGroup() as group:
            group.create_task(change())
            async for state in states:
                seen.append((now(), state.holder, state.token))
                if len(seen) == 3:
                    break
        assert seen == [(0.0, None, 0), (2.0, "ada", 1), (3.0, None, 1)]
        observer = database.connections[0]
        assert [channel for channel, _ in observer.listeners] == [channel_of("jobs")]

    virtually(story())


async def times(database: Database, guard: Guard, within: float) -> list[float]:
    """When an observer looks that finds no change."""
    at: list[float] = []

    async def note(what: str) -> None:
        if what == "look":
            at.append(now())

    database.before = note
    async with guard.observe() as states:
        await anext(states)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(within):
                await anext(states)
    return at


@pytest.mark.parametrize("ttl, looks", [(60.0, 5.0), (9.0, 3.0)])
def test_an_observer_looks_again_unasked(database: Database, ttl: float, looks: float) -> None:
    async def story() -> None:
        await granted(database.guard(), ADA, ttl)
        assert await times(database, database.guard(), looks + 0.5) == [0.0, looks]

    virtually(story())


def test_where_nobody_holds_an_observer_looks_after_its_poll(database: Database) -> None:
    async def story() -> None:
        assert await times(database, database.guard(poll=7.0), 7.5) == [0.0, 7.0]

    virtually(story())


def test_an_observer_that_does_not_listen_only_looks(database: Database) -> None:
    async def story() -> None:
        guard = database.guard(listens=False, poll=1.0)
        assert await times(database, guard, 2.5) == [0.0, 1.0, 2.0]
        assert not database.connections[0].listeners

    virtually(story())


def test_an_observer_whose_connection_ends_looks_at_once_on_another(database: Database) -> None:
    async def story() -> None:
        async with database.guard().observe() as states:
            await anext(states)
            (first,) = database.connections
            database.row |= {"holder": "ada", "token": 3, "mark": 5, "ttl": 60.0}
            database.fails = ConnectionResetError("gone")
            first.ends[0](first)
            asyncio.get_running_loop().call_later(0.05, setattr, database, "fails", None)
            assert await anext(states) == Holding("ada", 3)
            assert now() == pytest.approx(0.1)
            assert (len(database.connections), database.open) == (2, 1)
        assert database.open == 0

    virtually(story())


def test_an_observer_that_cannot_connect_tries_again(database: Database) -> None:
    tries: list[float] = []

    async def refuse(what: str) -> None:
        if what == "connect":
            tries.append(now())
            if len(tries) < 3:
                raise ConnectionRefusedError("down")

    async def story() -> None:
        database.before = refuse
        async with database.guard().observe() as states:
            assert await anext(states) == Holding(None, 0)
        assert tries == pytest.approx([0.0, 0.1, 0.3])

    virtually(story())


@pytest.mark.parametrize("stalls", ["connect", "look"])
def test_an_observer_that_is_not_answered_connects_again(database: Database, stalls: str) -> None:
    first = True

    async def stall(what: str) -> None:
        nonlocal first
        if first and what == stalls:
            first = False
            await asyncio.sleep(3600.0)

    async def story() -> None:
        database.before = stall
        async with database.guard(timeout=0.5).observe() as states:
            assert await anext(states) == Holding(None, 0)
            assert now() == pytest.approx(0.6)
            assert database.open == 1
        assert database.open == 0

    virtually(story())


def test_an_observer_that_is_turned_away_ends(database: Database) -> None:
    async def story() -> None:
        database.fails = refused.InsufficientPrivilegeError("not yours")
        with pytest.raises(BadInput, match="refuses access: not yours"):
            await database.guard().look()

    virtually(story())


# Installing, and addresses


def test_the_schema_is_installed_on_a_connection_that_ends(database: Database) -> None:
    async def story() -> None:
        await install(URL)
        assert database.executed == [MIGRATION]
        assert (len(database.connections), database.open) == (1, 0)

    virtually(story())


def test_installing_may_wait_for_a_lock_and_not_for_ever(database: Database) -> None:
    takes = 29.0

    async def wait(what: str) -> None:
        if what == "execute":
            await asyncio.sleep(takes)

    async def story() -> None:
        nonlocal takes
        database.before = wait
        await install(URL)
        assert now() == 29.0
        takes = 31.0
        with pytest.raises(Unreachable, match="did not answer within 30 s"):
            await make_guard(URL, "jobs").install()
        assert database.open == 0
        with pytest.raises(BadInput, match="does not answer"):
            await install(URL)
        with pytest.raises(BadInput, match="option of postgres"):
            await install(f"{URL}?colour=red")

    virtually(story())


def postgres_guard(url: str, group: str = "jobs") -> PostgresGuard:
    guard = guards.make(parse_url(url), group)
    assert isinstance(guard, PostgresGuard)
    return guard


def test_options_reach_the_guard() -> None:
    plain = postgres_guard(URL)
    assert (plain._timeout, plain._listens, plain._poll) == (2.0, True, 5.0)
    other = postgres_guard(f"{URL}?timeout=0.5&listen=no")
    assert (other._timeout, other._listens, other._poll) == (0.5, False, 1.0)
    assert postgres_guard(f"{URL}?listen=no&poll=9")._poll == 9.0


@pytest.mark.parametrize(
    "url, group, sentence",
    [
        (URL, "a\0b", "has no NUL character"),
        (f"{URL}?listen=maybe", "jobs", "listen of postgres must be one of yes, no"),
        (f"{URL}?colour=red", "jobs", "option of postgres"),
        (f"{URL}?timeout=0", "jobs", "timeout of postgres must be a positive time"),
    ],
)
def test_wrong_addresses_get_a_sentence(url: str, group: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        make_guard(url, group)

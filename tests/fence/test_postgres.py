"""The fence in PostgreSQL: one statement or a transaction, many clients, crashes of the server."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from hustings.core.errors import BadInput
from hustings.fence import FenceBroken, FenceBusy, PostgresFence, SnapshotTooOld, StaleToken
from hustings.fence.fence import LARGEST_TOKEN
from hustings.fence.postgres import STALE, install, install_async, migration, stale_token
from tests.fence.dbapi import Connection
from tests.fence.judging import Try, complaints, falls
from tests.guard.engines.postgres import Engine

WRITE = "INSERT INTO journal (resource, token) SELECT $2, fence.token FROM fence"
NOTE = "INSERT INTO journal (resource, token, note) VALUES ($1, $2, $3)"

# What the driver says when the connection is lost, which depends on the moment.
LOST = (asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)


@asynccontextmanager
async def connected(engine: Engine, count: int = 1) -> AsyncIterator[list[Any]]:
    made: list[Any] = [await asyncpg.connect(engine.url()) for _ in range(count)]
    try:
        yield made
    finally:
        for each in made:
            each.terminate()


def run(engine: Engine, count: int, story: Callable[..., Awaitable[None]]) -> None:
    async def tell() -> None:
        async with connected(engine, count) as connections:
            await story(*connections)

    asyncio.run(tell())


async def journal(connection: Any, resource: str) -> list[int]:
    rows = await connection.fetch(
        "SELECT token FROM journal WHERE resource = $1 ORDER BY id", resource
    )
    return [row["token"] for row in rows]


async def note(connection: Any, fence: PostgresFence, token: int, text: str = "") -> None:
    async with fence.transaction(connection, token):
        await connection.execute(NOTE, fence.resource, token, text)


def test_equal_and_larger_pass_and_smaller_do_not(postgres: Engine, resource: str) -> None:
    fence = PostgresFence(resource)

    async def story(one: Any) -> None:
        for token in (5, 5, 7, LARGEST_TOKEN):
            await note(one, fence, token)
        with pytest.raises(StaleToken) as caught:
            await note(one, fence, LARGEST_TOKEN - 1)
        assert (caught.value.token, caught.value.highest) == (LARGEST_TOKEN - 1, LARGEST_TOKEN)
        await note(one, PostgresFence(resource + " other"), 1)
        assert await journal(one, resource) == [5, 5, 7, LARGEST_TOKEN]

    run(postgres, 1, story)


def test_plain_sql(postgres: Engine, resource: str) -> None:
    async def story(one: Any) -> None:
        assert await one.fetchval("SELECT hustings_fence($1, 6)", resource) == 6
        async with one.transaction():
            with pytest.raises(asyncpg.PostgresError) as caught:
                await one.execute("SELECT hustings_fence($1, 5)", resource)
            stale = stale_token(caught.value)
            assert caught.value.sqlstate == STALE
            assert stale is not None
            assert (stale.token, stale.highest) == (5, 6)
            with pytest.raises(asyncpg.InFailedSQLTransactionError):
                await one.execute(NOTE, resource, 5, "")
        for token in ("0", "-1", "NULL"):
            with pytest.raises(asyncpg.InvalidParameterValueError):
                await one.execute(f"SELECT hustings_fence('{resource}', {token})")
        with pytest.raises(asyncpg.InvalidParameterValueError):
            await one.execute("SELECT hustings_fence(NULL, 1)")
        assert stale_token(ValueError()) is None

    run(postgres, 1, story)


def test_one_statement(postgres: Engine, resource: str) -> None:
    fence = PostgresFence(resource)
    insert = fence.one_statement("INSERT INTO account SELECT $2, fence.token FROM fence")
    update = fence.one_statement(
        "UPDATE account SET amount = amount + 1 FROM fence WHERE name = $2 AND fence.token = $1"
    )
    delete = fence.one_statement("DELETE FROM account USING fence WHERE name = $2 AND token > 0")
    amount = "SELECT amount FROM account WHERE name = $1"

    async def story(one: Any) -> None:
        assert await one.execute(insert, 5, resource) == "INSERT 0 1"
        assert await one.execute(update, 6, resource) == "UPDATE 1"
        for sql in (update, delete, insert):
            with pytest.raises(asyncpg.PostgresError) as caught:
                await one.execute(sql, 5, resource)
            assert stale_token(caught.value) is not None
        assert await one.fetchval(amount, resource) == 6
        assert await one.execute(delete, 6, resource) == "DELETE 1"

    run(postgres, 1, story)
    with pytest.raises(BadInput, match="FROM fence"):
        fence.one_statement("UPDATE account SET amount = 0")


async def attempt(
    connection: Any, fence: PostgresFence, token: int, rng: random.Random
) -> Try | None:
    """One write in one of several ways; None if it was not to be."""
    level = rng.choice(["read_committed", "repeatable_read", "serializable", "statement"])
    began = time.monotonic()
    try:
        if level == "statement":
            await connection.execute(fence.one_statement(WRITE), token, fence.resource)
        else:
            async with connection.transaction(isolation=level):
                if level == "repeatable_read":
                    await connection.fetchval("SELECT count(*) FROM journal")  # an old snapshot
                await fence.check(connection, token)
                await connection.execute(NOTE, fence.resource, token, level)
    except StaleToken as stale:
        return Try(token, began, time.monotonic(), False, stale.highest)
    except (SnapshotTooOld, asyncpg.SerializationError):
        return None
    except asyncpg.PostgresError as error:
        found = stale_token(error)
        if found is None:
            raise
        return Try(token, began, time.monotonic(), False, found.highest)
    return Try(token, began, time.monotonic(), True)


def test_many_clients(postgres: Engine, resource: str) -> None:
    fence, tries = PostgresFence(resource, wait=60.0, idle=60.0), list[Try]()

    async def client(connection: Any, seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(60):
            token = max(1, len(tries) // 12 + rng.randrange(-2, 2))
            tried = await attempt(connection, fence, token, rng)
            if tried is not None:
                tries.append(tried)

    async def story(*connections: Any) -> None:
        await asyncio.gather(*(client(each, seed) for seed, each in enumerate(connections)))
        written = await journal(connections[0], resource)
        assert not falls(written)
        assert len(written) == sum(each.accepted is True for each in tries)
        assert 30 < len(written) < len(tries)

    run(postgres, 6, story)
    assert not complaints(tries)


def test_a_larger_one_waits_for_the_end(postgres: Engine, resource: str) -> None:
    fence = PostgresFence(resource, wait=30.0)

    async def story(old: Any, twin: Any, new: Any) -> None:
        await note(old, fence, 5)
        async with fence.transaction(old, 5):
            await note(twin, fence, 5, "shared")  # the same token does not wait
            waiting = asyncio.create_task(note(new, fence, 6))
            await waits(twin, new)
            late = asyncio.create_task(note(twin, fence, 5))  # behind 6, not past it
            await old.execute(NOTE, resource, 5, "last")
        await waiting
        with pytest.raises(StaleToken):
            await late
        assert await journal(old, resource) == [5, 5, 5, 6]

    run(postgres, 3, story)


def test_two_larger_ones_at_once(postgres: Engine, resource: str) -> None:
    fence = PostgresFence(resource, wait=30.0)

    async def story(larger: Any, smaller: Any, watcher: Any) -> None:
        await note(watcher, fence, 5)
        async with fence.transaction(larger, 7):
            waiting = asyncio.create_task(note(smaller, fence, 6))
            await waits(watcher, smaller)
        with pytest.raises(StaleToken) as caught:
            await waiting
        assert caught.value.highest == 7
        assert await journal(watcher, resource) == [5]

    run(postgres, 3, story)


async def waits(watcher: Any, other: Any) -> None:
    """Until the other connection waits for a lock."""
    for _ in range(2000):
        if await watcher.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock'",
            other.get_server_pid(),
        ):
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it does not wait")


def test_a_crowd_does_not_keep_a_larger_one_out(postgres: Engine, resource: str) -> None:
    fence, over = PostgresFence(resource, wait=60.0), asyncio.Event()

    async def crowd(connection: Any) -> int:
        for count in range(100_000):
            try:
                async with fence.transaction(connection, 5):
                    await asyncio.sleep(0.01)
            except StaleToken:
                return count
        raise AssertionError("6 never came")

    async def story(new: Any, *others: Any) -> None:
        members = [asyncio.create_task(crowd(each)) for each in others]
        while not await new.fetchval(
            "SELECT true FROM hustings_fences WHERE resource = $1", resource
        ):
            await asyncio.sleep(0.01)
        await asyncio.wait_for(note(new, fence, 6), 10.0)
        await asyncio.gather(*members)
        over.set()

    run(postgres, 5, story)
    assert over.is_set()


def test_bounded_waiting(postgres: Engine, resource: str) -> None:
    async def story(old: Any, new: Any) -> None:
        async with PostgresFence(resource).transaction(old, 5):
            with pytest.raises(FenceBusy, match=r"did not end within 0\.05 s"):
                await note(new, PostgresFence(resource, wait=0.05), 6)
        await note(old, PostgresFence(resource), 5)
        async with PostgresFence(resource, wait=0.05).transaction(new, 6):
            assert await new.fetchval("SHOW lock_timeout") == "0"  # not for the caller's own

    run(postgres, 2, story)


def test_a_writer_that_stops_in_the_middle(postgres: Engine, resource: str) -> None:
    async def story(old: Any, new: Any) -> None:
        async with asyncio.timeout(30):
            transaction = PostgresFence(resource, idle=0.2).transaction(old, 5)
            await transaction.__aenter__()
            await old.execute(NOTE, resource, 5, "never committed")
            await note(new, PostgresFence(resource, wait=30.0), 6)
        with pytest.raises((*LOST, asyncpg.PostgresError)):
            await old.execute("SELECT 1")
        assert await journal(new, resource) == [6]

    run(postgres, 2, story)


def test_what_is_rolled_back_was_not(postgres: Engine, resource: str) -> None:
    fence = PostgresFence(resource)

    async def fail(connection: Any) -> None:
        async with fence.transaction(connection, 6):
            await connection.execute(NOTE, resource, 6, "")
            raise ZeroDivisionError

    async def story(one: Any) -> None:
        await note(one, fence, 5)
        with pytest.raises(ZeroDivisionError):
            await fail(one)
        await note(one, fence, 5)
        assert await journal(one, resource) == [5, 5]

    run(postgres, 1, story)


def test_server_killed_again_and_again(postgres: Engine, resource: str) -> None:
    fence, accepted = PostgresFence(resource), list[int]()

    async def client(connection: Any, first: int) -> None:
        token = first
        while True:
            try:
                await note(connection, fence, token)
            except StaleToken as stale:
                token = stale.highest
            except (*LOST, asyncpg.PostgresError):
                return
            else:
                accepted.append(token)
                token += len(accepted) % 3 == 0

    async def story(start: int) -> None:
        async with connected(postgres, 3) as connections:
            tasks = [asyncio.create_task(client(each, start)) for each in connections]
            while len(accepted) < start * 20:
                await asyncio.sleep(0.001)
            await asyncio.to_thread(postgres.stop, kill=True)
            await asyncio.gather(*tasks)

    for start in (1, 2, 3):
        asyncio.run(story(start))
        postgres.start()

    async def look(one: Any) -> None:
        written = await journal(one, resource)
        assert not falls(written)
        assert set(accepted) <= set(written)
        assert len(accepted) <= len(written) <= len(accepted) + 9  # committed and not heard of
        with pytest.raises(StaleToken) as caught:
            await note(one, fence, 1)
        assert caught.value.highest == max(written)

    run(postgres, 1, look)


def test_sentences(postgres: Engine, resource: str) -> None:
    fence = PostgresFence(resource)

    async def story(one: Any) -> None:
        with pytest.raises(BadInput, match="needs a transaction"):
            await fence.check(one, 1)
        with pytest.raises(BadInput, match="token"):
            await note(one, fence, 0)
        with pytest.raises(FenceBroken, match="run the migration"):
            await note(one, PostgresFence(resource, schema="nowhere"), 1)
        await one.execute("CREATE SCHEMA IF NOT EXISTS empty_one")
        with pytest.raises(FenceBroken, match="run the migration"):
            await note(one, PostgresFence(resource, schema="empty_one"), 1)
        await one.execute("CREATE SCHEMA IF NOT EXISTS elsewhere")
        await install_async(one, "elsewhere")
        await note(one, PostgresFence(resource, schema="elsewhere"), 1)

    run(postgres, 1, story)
    for bad in ("", "x" * 256, "nul\0"):
        with pytest.raises(BadInput):
            PostgresFence(bad)
    for bad in ("", "Public", "x; DROP TABLE y", 'a"b'):
        with pytest.raises(BadInput, match="schema"):
            migration(bad)
    for seconds in (0.0, -1.0, float("nan"), 1e9):
        with pytest.raises(BadInput, match="wait"):
            PostgresFence(resource, wait=seconds)


def test_two_install_at_once(postgres: Engine) -> None:
    async def story(*connections: Any) -> None:
        await connections[0].execute("DROP SCHEMA IF EXISTS racing CASCADE; CREATE SCHEMA racing")
        await asyncio.gather(*(install_async(each, "racing") for each in connections))

    run(postgres, 4, story)


def test_connections_of_the_standard(postgres: Engine, resource: str) -> None:
    fence = PostgresFence(resource)
    connection = Connection(postgres.url())
    try:
        install(connection)
        cursor = connection.cursor()
        write = "INSERT INTO journal (resource, token) VALUES (%s, %s)"
        with fence.transaction_sync(connection, 6):
            cursor.execute(write, (resource, 6))
        with pytest.raises(StaleToken) as caught, fence.transaction_sync(connection, 5):
            raise AssertionError("a stale writer got in")
        assert caught.value.highest == 6

        def fail() -> None:
            with fence.transaction_sync(connection, 7):
                cursor.execute(write, (resource, 7))
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        with fence.transaction_sync(connection, 6):
            cursor.execute("SELECT token FROM journal WHERE resource = %s", (resource,))
            assert cursor.fetchall() == [(6,)]
        connection.autocommit = True
        with pytest.raises(BadInput, match="commits by itself"):
            fence.check_sync(connection, 6)
    finally:
        connection.close()

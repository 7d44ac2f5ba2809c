"""The fence in PostgreSQL at all isolation levels: a leader sees what the one before it committed.

Above READ COMMITTED a transaction's snapshot is older than its wait for the fence's lock. Whatever
the order of statements, a transaction that passes the check reads the predecessor's last write, or
it was refused with a sentence and does so when it begins again.
"""

from __future__ import annotations

import asyncio
import copy
import random
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import asyncpg
import pytest

from hustings.core.errors import BadInput, HustingsError
from hustings.fence import PostgresFence, SnapshotTooOld, StaleToken
from hustings.fence.postgres import stale_token
from tests.fence.dbapi import Connection
from tests.fence.test_postgres import run, waits
from tests.guard.engines.postgres import Engine

LEVELS = ("read_uncommitted", "read_committed", "repeatable_read", "serializable")
OLD = ("repeatable_read", "serializable")  # the snapshot lasts for the whole transaction
AMOUNT = "SELECT amount FROM account WHERE name = $1"
SET = "UPDATE account SET amount = $2 WHERE name = $1"
every_level = pytest.mark.parametrize("level", LEVELS)
old_snapshots = pytest.mark.parametrize("level", OLD)


async def default_to(connection: Any, level: str) -> None:
    await connection.execute(f"SET default_transaction_isolation = '{level.replace('_', ' ')}'")


@asynccontextmanager
async def by_fence(one: Any, fence: PostgresFence, token: int, level: str) -> AsyncIterator[None]:
    await default_to(one, level)
    async with fence.transaction(one, token):
        yield


@asynccontextmanager
async def by_hand(one: Any, fence: PostgresFence, token: int, level: str) -> AsyncIterator[None]:
    async with one.transaction(isolation=level):
        await fence.check(one, token)
        yield


@asynccontextmanager
async def late(one: Any, fence: PostgresFence, token: int, level: str) -> AsyncIterator[None]:
    """The check comes after a statement of the caller's, whose snapshot it has."""
    async with one.transaction(isolation=level):
        await one.fetchval("SELECT count(*) FROM account")
        await fence.check(one, token)
        yield


@asynccontextmanager
async def plain(one: Any, fence: PostgresFence, token: int, level: str) -> AsyncIterator[None]:
    async with one.transaction(isolation=level):
        await one.fetchval("SELECT hustings_fence($1, $2)", fence.resource, token)
        yield


WAYS = [by_fence, by_hand, late, plain]


async def read(way: Any, one: Any, fence: PostgresFence, token: int, level: str) -> int | None:
    """What a transaction finds behind the fence; None if it was refused."""
    try:
        async with way(one, fence, token, level):
            return int(await one.fetchval(AMOUNT, fence.resource))
    except StaleToken:
        raise
    except (HustingsError, asyncpg.PostgresError) as error:
        stale = stale_token(error)
        if stale is not None:
            raise stale from None
        return None


async def opened(connection: Any, resource: str) -> None:
    await connection.execute("INSERT INTO account VALUES ($1, 0)", resource)
    async with PostgresFence(resource).transaction(connection, 5):
        pass


@every_level
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_the_successor_sees_the_last_write(
    postgres: Engine, resource: str, level: str, way: Any
) -> None:
    fence = PostgresFence(resource, wait=30.0)

    async def story(old: Any, new: Any, watcher: Any) -> None:
        await opened(old, resource)
        async with fence.transaction(old, 5):
            waiting = asyncio.create_task(read(way, new, fence, 6, level))
            await waits_or_ends(watcher, new, waiting)
            await old.execute(SET, resource, 100)
        found = await waiting
        assert found in (100, None)
        if level not in OLD or way is by_fence:
            assert found == 100  # nobody is refused who need not be
        await fence.raise_token(new, 6)
        assert await read(way, new, fence, 6, level) == 100
        with pytest.raises(StaleToken):
            await read(way, old, fence, 5, level)

    run(postgres, 3, story)


async def waits_or_ends(watcher: Any, other: Any, task: asyncio.Task[Any]) -> None:
    """Until the other connection waits for a lock, or was refused without a wait."""
    waiting = asyncio.create_task(waits(watcher, other))
    await asyncio.wait({waiting, task}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    await asyncio.wait({waiting})


@old_snapshots
def test_a_commit_between_the_snapshot_and_the_check(
    postgres: Engine, resource: str, level: str
) -> None:
    """Nobody waits for anybody here: the old leader ends before the new one asks for the lock."""
    fence = PostgresFence(resource)

    async def story(old: Any, new: Any) -> None:
        await opened(old, resource)
        async with fence.transaction(old, 5):
            transaction = new.transaction(isolation=level)
            await transaction.start()
            assert await new.fetchval(AMOUNT, resource) == 0
            await old.execute(SET, resource, 100)
        with pytest.raises(SnapshotTooOld, match="roll back, call raise_token"):
            await fence.check(new, 6)
        await transaction.rollback()
        with pytest.raises(asyncpg.PostgresError) as caught:
            async with plain(new, fence, 6, level):
                raise AssertionError("a new token passed with an old snapshot")
        assert caught.value.sqlstate == "LE002"
        assert level.replace("_", " ") in str(caught.value)

    run(postgres, 2, story)


@old_snapshots
def test_one_statement(postgres: Engine, resource: str, level: str) -> None:
    fence = PostgresFence(resource)
    add = fence.one_statement(
        "UPDATE account SET amount = amount + 1 FROM fence WHERE name = $2 AND fence.token = $1"
    )

    async def story(one: Any) -> None:
        await opened(one, resource)
        await default_to(one, level)
        with pytest.raises(asyncpg.PostgresError) as caught:
            await one.execute(add, 6, resource)
        assert caught.value.sqlstate == "LE002"
        await fence.raise_token(one, 6)
        assert await one.execute(add, 6, resource) == "UPDATE 1"
        assert await one.fetchval(AMOUNT, resource) == 1

    run(postgres, 1, story)


@old_snapshots
def test_a_token_that_is_overtaken_after_the_snapshot(
    postgres: Engine, resource: str, level: str
) -> None:
    fence = PostgresFence(resource)

    async def story(old: Any, new: Any) -> None:
        await opened(old, resource)
        async with old.transaction(isolation=level):
            assert await old.fetchval(AMOUNT, resource) == 0
            await fence.raise_token(new, 6)
            with pytest.raises(asyncpg.SerializationError):
                await fence.check(old, 5)
        with pytest.raises(StaleToken):
            await read(by_hand, old, fence, 5, level)

    run(postgres, 2, story)


@old_snapshots
def test_a_transaction_within_a_transaction(postgres: Engine, resource: str, level: str) -> None:
    """It is not ours to begin anew: what it did so far would be lost without a word."""
    fence = PostgresFence(resource)

    async def story(one: Any) -> None:
        await opened(one, resource)
        async with one.transaction(isolation=level):
            await one.execute(SET, resource, 7)
            with pytest.raises(SnapshotTooOld):
                async with fence.transaction(one, 6):
                    raise AssertionError("a new token passed with an old snapshot")
            with pytest.raises(BadInput, match="transaction of its own"):
                await fence.raise_token(one, 6)
        assert await one.fetchval(AMOUNT, resource) == 7
        assert (
            await one.fetchval("SELECT token FROM hustings_fences WHERE resource = $1", resource)
            == 5
        )

    run(postgres, 1, story)


@old_snapshots
def test_equal_tokens_stay_concurrent(postgres: Engine, resource: str, level: str) -> None:
    fence = PostgresFence(resource, wait=30.0)

    async def story(one: Any, two: Any) -> None:
        await opened(one, resource)
        async with by_fence(one, fence, 6, level):
            async with asyncio.timeout(20), by_fence(two, fence, 6, level):
                pass
            async with asyncio.timeout(20):
                await fence.raise_token(two, 6)

    run(postgres, 2, story)


@contextmanager
def standard(engine: Engine, level: str, **options: Any) -> Any:
    connection = Connection(engine.url(), **options)
    connection.isolation = level
    try:
        yield connection
    finally:
        connection.close()


def amount(connection: Connection, resource: str) -> int:
    cursor = connection.cursor()
    cursor.execute("SELECT amount FROM account WHERE name = %s", (resource,))
    [(found,)] = cursor.fetchall()
    return int(found)


@every_level
def test_connections_of_the_standard(postgres: Engine, resource: str, level: str) -> None:
    fence = PostgresFence(resource, wait=30.0)
    found: list[int] = []

    def successor(connection: Connection) -> None:
        with fence.transaction_sync(connection, 6):
            found.append(amount(connection, resource))

    async def story(old: Any, watcher: Any) -> None:
        await opened(old, resource)
        with standard(postgres, level) as new:
            async with fence.transaction(old, 5):
                thread = threading.Thread(target=successor, args=(new,))
                thread.start()
                await waits(watcher, new._real)
                await old.execute(SET, resource, 100)
            await asyncio.to_thread(thread.join)
        assert found == [100]

    run(postgres, 2, story)


@old_snapshots
@pytest.mark.parametrize("tells", [True, False])
def test_a_standard_connection_with_a_transaction_open(
    postgres: Engine, resource: str, level: str, tells: bool
) -> None:
    fence = PostgresFence(resource)
    run(postgres, 1, lambda one: opened(one, resource))
    with standard(postgres, level, tells=tells) as connection:
        assert amount(connection, resource) == 0
        with pytest.raises(BadInput, match="transaction of its own"):
            fence.raise_token_sync(connection, 6)
        connection.rollback()
        assert amount(connection, resource) == 0
        with pytest.raises(SnapshotTooOld), fence.transaction_sync(connection, 6):
            raise AssertionError("a new token passed with an old snapshot")
        if not tells:  # it cannot know that nothing would be lost
            with pytest.raises(SnapshotTooOld), fence.transaction_sync(connection, 6):
                raise AssertionError("a new token passed with an old snapshot")
            fence.raise_token_sync(connection, 6)
        with fence.transaction_sync(connection, 6):
            assert amount(connection, resource) == 0
        connection.autocommit = True
        with pytest.raises(BadInput, match="commits by itself"):
            fence.raise_token_sync(connection, 7)


def test_the_sentence_travels() -> None:
    error = SnapshotTooOld("jobs")
    again = copy.copy(error)
    assert (str(again), again.resource) == (str(error), "jobs")


def test_counters_at_mixed_levels(postgres: Engine, resource: str) -> None:
    """Each leader adds one to what it reads: with the fence no addition is lost, at any level."""
    fence, added, highest = PostgresFence(resource, wait=60.0, idle=60.0), [0], [5]

    async def add(one: Any, token: int, level: str, way: Any) -> None:
        async with way(one, fence, token, level):
            before = await one.fetchval(AMOUNT, resource)
            await asyncio.sleep(0)
            await one.execute(SET, resource, before + 1)

    async def leader(one: Any, seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(12):
            highest[0] += 1
            token, level = highest[0], rng.choice(LEVELS)
            try:
                await add(one, token, level, rng.choice(WAYS))
            except (StaleToken, SnapshotTooOld, asyncpg.SerializationError):
                continue
            except asyncpg.PostgresError as error:
                if error.sqlstate not in ("LE001", "LE002"):
                    raise
            else:
                added[0] += 1

    async def story(*connections: Any) -> None:
        await opened(connections[0], resource)
        await asyncio.gather(*(leader(each, seed) for seed, each in enumerate(connections)))
        assert await connections[0].fetchval(AMOUNT, resource) == added[0]
        assert added[0] > 5

    run(postgres, 4, story)

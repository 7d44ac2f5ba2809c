"""The bank in PostgreSQL and in Valkey: what a worker writes, and what an auditor finds.

Every write is also an entry of a journal, in the order in which the store made it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

import asyncpg
import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from hustings.fence import FenceBusy, PostgresFence, RedisFence
from hustings.fence.postgres import install_async
from hustings.guard import parse_url

ACCOUNTS = 6
EACH = 1000  # in every account, to begin with
NAME = "bank"

Balances = Mapping[int, int]


class Lost(Exception):
    """No answer: the write may have happened, now or later, or not at all."""


class Entry(NamedTuple):
    """A transfer that the store has accepted."""

    token: int
    key: str


class Audit(NamedTuple):
    """What the store holds in the end."""

    journal: list[Entry]
    total: int


class Bank(ABC):
    """One worker's access to the bank."""

    def __init__(self, url: str, *, fenced: bool, patience: float) -> None:
        """`patience` bounds, in seconds, each step, and a pause in the middle of one."""
        self._url = url
        self._fenced = fenced
        self._patience = patience

    @abstractmethod
    async def found(self) -> None:
        """Make the bank, with money in it."""

    @abstractmethod
    async def enter(self, token: int) -> None:
        """Raise the fence before anything is read, so that what is read stays true."""

    @abstractmethod
    async def read(self, *accounts: int) -> list[int]:
        """Balances."""

    @abstractmethod
    async def write(self, token: int, key: str, balances: Balances) -> None:
        """Set balances, whatever they were, and note it in the journal."""

    @abstractmethod
    async def audit(self) -> Audit:
        """All there is."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of the connection."""


class PostgresBank(Bank):
    """Tables, and transactions under the fence."""

    def __init__(self, url: str, *, fenced: bool, patience: float) -> None:
        super().__init__(url, fenced=fenced, patience=patience)
        self._fence = PostgresFence(NAME, wait=patience, idle=patience)
        self._kept: Any = None

    async def found(self) -> None:
        async with self._connected() as connection:
            await install_async(connection)
            await connection.execute(
                "DROP TABLE IF EXISTS bank_account, bank_journal, bank_book, hustings_fences;"
                "CREATE TABLE bank_account (id int PRIMARY KEY, balance bigint NOT NULL);"
                "CREATE TABLE bank_journal (number bigint PRIMARY KEY, token bigint, key text);"
                "CREATE TABLE bank_book (entries bigint NOT NULL); INSERT INTO bank_book VALUES (0)"
            )
            await install_async(connection)
            rows = [(each, EACH) for each in range(ACCOUNTS)]
            await connection.executemany("INSERT INTO bank_account VALUES ($1, $2)", rows)

    async def enter(self, token: int) -> None:
        async with self._connected() as connection, self._transaction(connection, token):
            pass

    async def read(self, *accounts: int) -> list[int]:
        async with self._connected() as connection:
            rows = await connection.fetch("SELECT id, balance FROM bank_account")
        found = {row["id"]: row["balance"] for row in rows}
        return [found[each] for each in accounts]

    async def write(self, token: int, key: str, balances: Balances) -> None:
        async with self._connected() as connection, self._transaction(connection, token):
            # One row that all writers change, so that numbers are in the order of commits.
            number = await connection.fetchval(
                "UPDATE bank_book SET entries = entries + 1 RETURNING entries"
            )
            await connection.executemany(
                "UPDATE bank_account SET balance = $2 WHERE id = $1", list(balances.items())
            )
            await connection.execute(
                "INSERT INTO bank_journal VALUES ($1, $2, $3)", number, token, key
            )

    async def audit(self) -> Audit:
        async with self._connected() as connection:
            rows = await connection.fetch("SELECT token, key FROM bank_journal ORDER BY number")
            total = await connection.fetchval("SELECT sum(balance)::bigint FROM bank_account")
        return Audit([Entry(row["token"], row["key"]) for row in rows], total)

    async def close(self) -> None:
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.terminate()

    def _transaction(self, connection: Any, token: int) -> Any:
        if self._fenced:
            return self._fence.transaction(connection, token)
        return connection.transaction()

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Any]:
        """The connection kept, or a new one; none that failed is kept."""
        try:
            if self._kept is None:
                milliseconds = str(int(self._patience * 1000))
                self._kept = await asyncpg.connect(
                    self._url,
                    ssl=False,
                    timeout=self._patience,
                    command_timeout=self._patience,
                    server_settings={
                        "idle_in_transaction_session_timeout": milliseconds,
                        "lock_timeout": milliseconds,
                    },
                )
            yield self._kept
        except FenceBusy as error:
            raise Lost(str(error)) from None
        except (
            asyncpg.PostgresError,
            asyncpg.InterfaceError,
            asyncpg.InternalClientError,
        ) as error:
            await self.close()
            raise Lost(str(error)) from None
        except (OSError, TimeoutError) as error:
            await self.close()
            raise Lost(type(error).__name__) from None


_WRITE = """
for place = 3, #ARGV, 2 do redis.call('HSET', KEYS[2], ARGV[place], ARGV[place + 1]) end
redis.call('RPUSH', KEYS[3], ARGV[1] .. ' ' .. ARGV[2])
"""


class ValkeyBank(Bank):
    """A hash and a list, and a script under the fence."""

    def __init__(self, url: str, *, fenced: bool, patience: float) -> None:
        super().__init__(url, fenced=fenced, patience=patience)
        place = parse_url(url)
        [(host, port)] = place.addresses(6379)
        self._fence = RedisFence(NAME)
        self._script = self._fence.script(_WRITE)
        self._keys = [self._fence.key("accounts"), self._fence.key("journal")]
        self._client: Any = redis.asyncio.Redis(
            host=host,
            port=port,
            password=place.password,
            socket_timeout=patience,
            socket_connect_timeout=patience,
            retry=Retry(NoBackoff(), 0),
            decode_responses=True,
        )

    async def found(self) -> None:
        await self._client.delete(*self._keys, self._fence.token_key)
        await self._client.hset(self._keys[0], mapping=dict.fromkeys(range(ACCOUNTS), EACH))

    async def enter(self, token: int) -> None:
        if self._fenced:
            async with self._telling():
                await self._fence.call_async(self._client, token, "PING")

    async def read(self, *accounts: int) -> list[int]:
        async with self._telling():
            found = await self._client.hmget(self._keys[0], [str(each) for each in accounts])
        return [int(each) for each in found]

    async def write(self, token: int, key: str, balances: Balances) -> None:
        words: list[str | int] = [key, *(number for pair in balances.items() for number in pair)]
        async with self._telling():
            if self._fenced:
                await self._script.call_async(self._client, token, self._keys, words)
            else:
                await self._client.eval(
                    _WRITE, 3, self._fence.token_key, *self._keys, token, *words
                )

    async def audit(self) -> Audit:
        lines = await self._client.lrange(self._keys[1], 0, -1)
        pairs = [line.split(" ") for line in lines]
        total = sum(map(int, (await self._client.hgetall(self._keys[0])).values()))
        return Audit([Entry(int(token), key) for token, key in pairs], total)

    async def close(self) -> None:
        with suppress(RedisError, OSError):
            await self._client.aclose()

    @asynccontextmanager
    async def _telling(self) -> AsyncIterator[None]:
        try:
            yield
        except (RedisError, OSError, TimeoutError) as error:
            raise Lost(str(error)) from None


BANKS: Mapping[str, type[Bank]] = {"postgres": PostgresBank, "valkey": ValkeyBank}

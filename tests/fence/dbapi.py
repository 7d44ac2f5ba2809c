"""A DB-API connection, as far as a fence needs one, on the driver that the tests have anyway."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Coroutine, Sequence
from typing import Any

import asyncpg


class Info:
    """What psycopg tells about a connection: 0 when it is idle, 2 inside of a transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def transaction_status(self) -> int:
        return 0 if self._connection._transaction is None else 2


class Connection:
    """Opens a transaction with the first statement, as the standard says."""

    def __init__(self, url: str, *, autocommit: bool = False, tells: bool = True) -> None:
        """With `tells`, it has psycopg's `info`, which the standard does not know."""
        self.autocommit = autocommit
        if tells:
            self.info = Info(self)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._real = self.run(asyncpg.connect(url))
        self._transaction: Any = None
        self.isolation: str | None = None  # as psycopg's isolation_level

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def cursor(self) -> Cursor:
        return Cursor(self)

    async def execute(self, sql: str, values: Sequence[object]) -> list[Any]:
        if self._transaction is None and not self.autocommit:
            self._transaction = self._real.transaction(isolation=self.isolation)
            await self._transaction.start()
        if not values:
            await self._real.execute(sql)
            return []
        numbers = iter(range(1, len(values) + 1))
        rows = await self._real.fetch(re.sub("%s", lambda _: f"${next(numbers)}", sql), *values)
        return list(rows)

    def commit(self) -> None:
        self._end("commit")

    def rollback(self) -> None:
        self._end("rollback")

    def _end(self, how: str) -> None:
        transaction, self._transaction = self._transaction, None
        if transaction is not None:
            self.run(getattr(transaction, how)())

    def close(self) -> None:
        self.run(self._real.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Cursor:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._rows: list[Any] = []

    def execute(self, sql: str, values: Sequence[object] = ()) -> None:
        self._rows = self._connection.run(self._connection.execute(sql, values))

    def fetchall(self) -> list[Any]:
        return [tuple(row) for row in self._rows]

    def close(self) -> None:
        self._rows = []

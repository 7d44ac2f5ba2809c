"""What a middleware cannot hold back, and the store that does: the token handed on to a fence.

The application here goes on after it was overtaken and cancelled, and writes. The HTTP fence lets
its successor pass meanwhile; the store refuses the late write in its own transaction or script.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import asyncpg
import redis.asyncio

from hustings.fence import AsgiFence, PostgresFence, RedisFence, StaleToken
from tests.fence.asking import Exchange, token
from tests.fence.test_postgres import NOTE, journal
from tests.guard.engines.postgres import Engine as Postgres
from tests.guard.engines.valkey import PASSWORD
from tests.guard.engines.valkey import Engine as Valkey


class Deaf:
    """Hands the token to a store; token 5 does so only when it is told, whatever cancels it."""

    def __init__(self, write: Any) -> None:
        self._write = write
        self.inside, self.go_on = asyncio.Event(), asyncio.Event()
        self.refused: list[StaleToken] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        number = scope["hustings.token"]
        while number == 5 and not self.go_on.is_set():
            self.inside.set()
            with suppress(asyncio.CancelledError):
                await self.go_on.wait()
        try:
            await self._write(number)
        except StaleToken as stale:
            self.refused.append(stale)
            raise
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})


async def tell(folder: Path, write: Any) -> None:
    app = Deaf(write)
    fence = AsgiFence(app, folder / "tokens", grace=0.05)
    async with asyncio.timeout(30):
        old = Exchange(fence, token(5), "")
        await app.inside.wait()
        assert (await Exchange(fence, token(6), "").answer()).status == 200
        assert (await old.answer()).status == 412
        app.go_on.set()
        while not app.refused:
            await asyncio.sleep(0.001)
    [stale] = app.refused
    assert (stale.token, stale.highest) == (5, 6)


def test_postgres(tmp_path: Path, postgres: Postgres, resource: str) -> None:
    async def story() -> None:
        connection: Any = await asyncpg.connect(postgres.url())

        async def write(number: int) -> None:
            async with PostgresFence(resource).transaction(connection, number):
                await connection.execute(NOTE, resource, number, "")

        await tell(tmp_path, write)
        assert await journal(connection, resource) == [6]
        await connection.close()

    asyncio.run(story())


def test_redis(tmp_path: Path, valkey: Valkey, resource: str) -> None:
    async def story() -> None:
        fence = RedisFence(resource)
        client: Any = redis.asyncio.Redis(port=valkey.port, password=PASSWORD)

        async def write(number: int) -> None:
            await fence.call_async(client, number, "RPUSH", fence.key("written"), number)

        await tell(tmp_path, write)
        assert await client.lrange(fence.key("written"), 0, -1) == [b"6"]
        await client.aclose()

    asyncio.run(story())

"""Engines for the tests of fences, started when first wanted and shared."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import asyncpg
import pytest

from hustings.fence.postgres import install_async
from tests.guard.engines import started
from tests.guard.engines.postgres import Engine as Postgres
from tests.guard.engines.valkey import Engine as Valkey

TABLES = """
CREATE TABLE IF NOT EXISTS journal (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, resource text, token bigint, note text
);
CREATE TABLE IF NOT EXISTS account (name text PRIMARY KEY, amount bigint NOT NULL);
"""


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    with started("postgres") as engine:
        assert isinstance(engine, Postgres)

        async def prepare() -> None:
            connection = await asyncpg.connect(engine.url())
            await install_async(connection)
            await connection.execute(TABLES)
            await connection.close()

        asyncio.run(prepare())
        yield engine


@pytest.fixture
def postgres(postgres_server: Postgres) -> Iterator[Postgres]:
    """PostgreSQL with the fence, a journal and accounts; it runs again after each test."""
    yield postgres_server
    postgres_server.resume()
    postgres_server.start()


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[Valkey]:
    with started("valkey") as engine:
        assert isinstance(engine, Valkey)
        yield engine


@pytest.fixture
def valkey(valkey_server: Valkey) -> Iterator[Valkey]:
    """Valkey with every write on disk before it is answered; it runs again after each test."""
    yield valkey_server
    valkey_server.resume()
    valkey_server.start()


@pytest.fixture
def resource(request: pytest.FixtureRequest) -> str:
    """A resource that no other test has."""
    return f"of-{request.node.name}"[:200].replace("{", "").replace("}", "")

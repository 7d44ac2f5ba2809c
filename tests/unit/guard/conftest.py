"""Engines in memory for the tests of guards, each in the place of its client."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from hustings.guard import client, postgres_wire, redis
from tests.net.kit.virtual import now
from tests.unit.guard import fakes_etcd, fakes_http
from tests.unit.guard.fakes_etcd import Etcd
from tests.unit.guard.fakes_http import Network
from tests.unit.guard.postgres_model import Database


@pytest.fixture
def etcd(monkeypatch: pytest.MonkeyPatch) -> Etcd:
    """A cluster that every guard's client reaches."""
    return fakes_etcd.patched(monkeypatch)


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Network:
    """A network of HTTP servers, none of them there yet."""
    return fakes_http.patched(monkeypatch)


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Database:
    """A database to which every client is connected."""
    made = Database()
    monkeypatch.setattr(postgres_wire, "asyncpg", SimpleNamespace(connect=made.connect))
    monkeypatch.delenv("PGPASSFILE", raising=False)
    return made


@pytest.fixture
def own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Redis is known since a moment of virtual time, and no test knows another one's servers."""
    monkeypatch.setattr(redis, "time", SimpleNamespace(monotonic=now))
    monkeypatch.setattr(redis, "_RUNS", {})


@pytest.fixture
def asks_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lease client whose guard failed asks again after 10 ms."""
    monkeypatch.setattr(client, "_AGAIN", 0.01)

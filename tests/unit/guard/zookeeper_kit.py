"""Stories of guards on a ZooKeeper in memory, in virtual time."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TypeVar

import pytest

from hustings.guard import Holder, make_guard, zookeeper_wire
from hustings.guard.zookeeper import ZooKeeperGuard
from tests.unit.guard.fakes_zookeeper import Server

T = TypeVar("T")

ADA, BEN = Holder("ada", 1), Holder("ben", 1)
TTL = 5.0
PATH = "/hustings/jobs"
NEXT, BASE, WORD = f"{PATH}.next", f"{PATH}.base", f"{PATH}.identity"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    """A server that answers wherever one connects to, on a clock that does not wait."""
    made = Server()
    monkeypatch.setattr(asyncio, "open_connection", made.connect)
    clock = SimpleNamespace(monotonic=lambda: asyncio.get_running_loop().time())
    monkeypatch.setattr(zookeeper_wire, "time", clock)
    return made


def guard(url: str = "zookeeper://h") -> ZooKeeperGuard:
    made = make_guard(url, "jobs")
    assert isinstance(made, ZooKeeperGuard)
    return made


def only(server: Server) -> str:
    """The path of the one candidate."""
    (name,) = server.children(PATH)
    return f"{PATH}/{name}"

"""Stories of guards on a ZooKeeper in memory, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import TypeVar

import pytest

from hustings.guard import Grant, Holder, make_guard, zookeeper_wire
from hustings.guard.zookeeper import ZooKeeperGuard
from hustings.testing.clock import VirtualLoop
from tests.unit.guard.fakes_zookeeper import Server

T = TypeVar("T")

ADA, BEN = Holder("ada", 1), Holder("ben", 1)
TTL = 5.0
PATH = "/hustings/jobs"
NEXT, BASE, WORD = f"{PATH}.next", f"{PATH}.base", f"{PATH}.identity"

MOST_CALLBACKS = 200_000


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    """A server that answers wherever one connects to, on a clock that does not wait."""
    made = Server()
    monkeypatch.setattr(asyncio, "open_connection", made.connect)
    clock = SimpleNamespace(monotonic=lambda: asyncio.get_running_loop().time())
    monkeypatch.setattr(zookeeper_wire, "time", clock)
    return made


def play(story: Callable[[], Awaitable[T]]) -> T:
    """Run a story in virtual time."""

    async def whole() -> T:
        return await story()

    def loop() -> VirtualLoop:
        return VirtualLoop(most_seconds=3600.0, most_callbacks=MOST_CALLBACKS)

    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(whole())


def guard(url: str = "zookeeper://h") -> ZooKeeperGuard:
    made = make_guard(url, "jobs")
    assert isinstance(made, ZooKeeperGuard)
    return made


async def granted(asked: ZooKeeperGuard, holder: Holder, ttl: float = TTL) -> Grant:
    answer = await asked.acquire(holder, ttl)
    assert isinstance(answer, Grant), answer
    return answer


def only(server: Server) -> str:
    """The path of the one candidate."""
    (name,) = server.children(PATH)
    return f"{PATH}/{name}"

"""How soon an observer looks again, and that it ends where it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hustings.guard import Holding, Unreachable
from hustings.guard.base import Cancellations
from hustings.guard.observer import SHORTEST_S, SeenLease, follow
from tests.net.kit.virtual import now, virtually

NET = 5.0


class Waits:
    """A feed that shows one thing, and keeps how long it was to wait."""

    def __init__(self, seen: SeenLease) -> None:
        self.seen = seen
        self.waited: list[float] = []

    @asynccontextmanager
    async def dial(self) -> AsyncIterator[Waits]:
        yield self

    async def look(self) -> SeenLease:
        return self.seen

    async def wait(self, seconds: float) -> None:
        self.waited.append(seconds)
        await asyncio.Event().wait()


@pytest.mark.parametrize(
    "seen, expected",
    [
        (SeenLease(Holding(None, 0), 0.0), NET),
        (SeenLease(Holding("ada", 1), 3.0), 3.0),
        (SeenLease(Holding("ada", 1), 60.0), NET),
        (SeenLease(Holding("ada", 1), 0.001), SHORTEST_S),
    ],
)
def test_an_observer_looks_at_the_end_of_a_lease_or_after_its_net(
    seen: SeenLease, expected: float
) -> None:
    async def story() -> None:
        feed = Waits(seen)
        states = follow(feed.dial, NET)
        await anext(states)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await anext(states)
        assert feed.waited == [expected]

    virtually(story())


class Swallows:
    """A feed that answers when it is cancelled, as if nothing had been said, or breaks then."""

    def __init__(self, where: str, breaks: bool) -> None:
        self._where = where
        self._breaks = breaks
        self.asked = asyncio.Event()
        self.calls: list[str] = []

    @asynccontextmanager
    async def dial(self) -> AsyncIterator[Swallows]:
        self.calls.append("dial")
        yield self

    async def look(self) -> SeenLease:
        await self._call("look")
        return SeenLease(Holding("ada", 1), 60.0)

    async def wait(self, seconds: float) -> None:
        await self._call("wait")

    async def _call(self, what: str) -> None:
        self.calls.append(what)
        if what != self._where:
            return
        self.asked.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            if self._breaks:
                raise Unreachable("gone") from None


@pytest.mark.parametrize("breaks", [False, True])
@pytest.mark.parametrize("where", ["look", "wait"])
def test_after_a_cancellation_an_observer_does_nothing_more(where: str, breaks: bool) -> None:
    async def story() -> None:
        feed = Swallows(where, breaks)

        async def observe() -> None:
            async for _ in follow(feed.dial, NET):
                pass

        task = asyncio.create_task(observe())
        await feed.asked.wait()
        before = list(feed.calls)
        assert before[-1] == where
        task.cancel()
        await asyncio.wait([task], timeout=60.0)
        assert task.cancelled()
        assert feed.calls == before
        assert now() == 0.0, "at once"

    virtually(story())


def test_where_no_task_runs_there_is_nothing_to_heed() -> None:
    async def story() -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def outside() -> None:
            Cancellations().heed()
            done.set_result(None)

        asyncio.get_running_loop().call_soon(outside)
        await done

    virtually(story())

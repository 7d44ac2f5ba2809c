"""Whoever cancels a question or an observer is obeyed, also where a client swallows the word."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from hustings.guard import Floor, Grant, Guarantees, Guard, HeldBy, Holder, Holding
from hustings.guard.etcd_nodes import EtcdLine, Nodes
from hustings.guard.observer import Feed, SeenLease, follow
from tests.net.kit.loops import run

ADA = Holder("ada", 1)
GRANT = Grant(ADA, 7, 0.0)


class Deaf(Guard):
    """An engine whose client answers when it is cancelled, as if nothing had been said."""

    guarantees = Guarantees(monotone=True)

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        self.closed = 0

    async def _swallow(self) -> None:
        self.asked.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            return

    async def open(self) -> None:
        await self._swallow()

    async def close(self) -> None:
        self.closed += 1

    async def _acquire(self, holder: Holder, ttl: float, floor: Floor) -> int | HeldBy:
        await self._swallow()
        return 7

    async def _renew(self, holder: Holder, token: int, ttl: float) -> None:
        await self._swallow()

    async def _release(self, holder: Holder, token: int, to: str | None) -> None:
        await self._swallow()

    def _observe(self) -> AsyncIterator[Holding]:
        return follow(self._watch, 60.0)

    @asynccontextmanager
    async def _watch(self) -> AsyncIterator[Feed]:
        yield DeafFeed(self)


class DeafFeed:
    def __init__(self, guard: Deaf) -> None:
        self._guard = guard
        self._looks = 0

    async def look(self) -> SeenLease:
        self._looks += 1
        if self._looks == 2:
            await self._guard._swallow()
        return SeenLease(Holding("ada", 7), 60.0)

    async def wait(self, seconds: float) -> None:
        """At once: something changed."""


async def enter(manager: AbstractAsyncContextManager[object]) -> None:
    async with manager:
        raise AssertionError("opened although it was cancelled")


async def collect(guard: Guard) -> None:
    async with guard.observe() as states:
        async for _ in states:
            pass


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda guard: guard.acquire(ADA, 60.0), id="acquire"),
        pytest.param(lambda guard: guard.renew(GRANT, 60.0), id="renew"),
        pytest.param(lambda guard: guard.release(GRANT), id="release"),
        pytest.param(enter, id="open"),
        pytest.param(collect, id="observe"),
    ],
)
def test_a_swallowed_cancellation_is_raised_after_all(
    ask: Callable[[Guard], Awaitable[object]],
) -> None:
    async def play() -> None:
        guard = Deaf()

        async def asking() -> None:
            await ask(guard)

        task = asyncio.create_task(asking())
        await guard.asked.wait()
        task.cancel()
        await asyncio.wait([task], timeout=5.0)
        assert task.cancelled(), task
        assert guard.closed == (ask is enter), "what was opened meanwhile is closed again"

    run(play())


def test_a_question_in_the_wake_of_a_cancellation_is_answered() -> None:
    """Who is cancelled and cleans up may still ask: only later cancellations count."""

    async def play() -> Holding:
        async def cleaning() -> Holding:
            try:
                await asyncio.sleep(60.0)
            except asyncio.CancelledError:
                async with Deaf().observe() as states:
                    return await anext(states)
            raise AssertionError("nobody cancelled")

        task = asyncio.create_task(cleaning())
        await asyncio.sleep(0)
        task.cancel()
        return await task

    assert run(play()) == Holding("ada", 7)


def test_a_conversation_with_etcd_is_cancelled_in_the_moment_of_its_answer() -> None:
    async def play() -> None:
        answer = asyncio.get_running_loop().create_future()
        asked = asyncio.Event()

        async def talk(line: EtcdLine) -> object:
            asked.set()
            return await answer

        nodes = Nodes([("127.0.0.1", 1)], shown="nowhere", timeout=60.0)
        for turns in range(3):  # of the loop between answer and cancellation
            answer = asyncio.get_running_loop().create_future()
            asked.clear()
            task = asyncio.create_task(nodes.converse(talk))
            await asked.wait()
            answer.set_result(None)
            for _ in range(turns):
                await asyncio.sleep(0)
            if task.done():
                break
            task.cancel()
            await asyncio.wait([task], timeout=5.0)
            assert task.cancelled(), f"swallowed {turns} turns after the answer"
        await nodes.close()

    run(play())

"""Tests that wait for conditions, each with a deadline: a coroutine to run, a state to reach."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")

_LOOK = 0.005  # seconds between two looks at a condition


def run(work: Coroutine[Any, Any, T], within: float = 60.0) -> T:
    """Run a test's coroutine on a loop of its own, and no longer than so many seconds."""

    async def bounded() -> T:
        async with asyncio.timeout(within):
            return await work

    return asyncio.run(bounded())


async def until(
    condition: Callable[[], T], what: str | Callable[[], str], within: float = 30.0
) -> T:
    """Wait for a condition to hold; what it returned. `what` is said when it never does."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    while not (found := condition()):
        if loop.time() > deadline:
            said = what if isinstance(what, str) else what()
            raise AssertionError(f"not within {within} s: {said}")
        await asyncio.sleep(_LOOK)
    return found


async def throughout(seconds: float, condition: Callable[[], object], what: str) -> None:
    """A condition holds at every look for so long: for what must not happen."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while loop.time() < deadline:
        assert condition(), what
        await asyncio.sleep(_LOOK)


@asynccontextmanager
async def background(*works: Coroutine[Any, Any, None]) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Coroutines that run beside a block and are cancelled behind it; their errors are raised."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    for error in ended:
        if isinstance(error, Exception):
            raise error

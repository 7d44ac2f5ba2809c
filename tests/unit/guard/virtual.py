"""What tests of guards in virtual time share: a loop to run on, and the two answers."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from hustings.guard import Grant, Guard, HeldBy, Holder
from hustings.testing import VirtualLoop

T = TypeVar("T")

TTL = 10.0


def play(story: Coroutine[Any, Any, T]) -> T:
    """Run a test's story in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(story)


def now() -> float:
    return asyncio.get_running_loop().time()


async def granted(guard: Guard, holder: Holder, known: int = 0, ttl: float = TTL) -> Grant:
    answer = await guard.acquire(holder, ttl, known)
    assert isinstance(answer, Grant), answer
    return answer


async def refusal(guard: Guard, holder: Holder, known: int = 0, ttl: float = TTL) -> HeldBy:
    answer = await guard.acquire(holder, ttl, known)
    assert isinstance(answer, HeldBy), answer
    return answer


async def nothing(what: str) -> None:
    """No hook."""

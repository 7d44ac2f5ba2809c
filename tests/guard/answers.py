"""The two answers of a guard that is asked once; each function fails on the other."""

from __future__ import annotations

from hustings.guard import Grant, Guard, HeldBy, Holder


async def granted(guard: Guard, holder: Holder, ttl: float, known: int = 0) -> Grant:
    answer = await guard.acquire(holder, ttl, known)
    assert isinstance(answer, Grant), answer
    return answer


async def refused(guard: Guard, holder: Holder, ttl: float, known: int = 0) -> HeldBy:
    answer = await guard.acquire(holder, ttl, known)
    assert isinstance(answer, HeldBy), f"granted, and it should not be: {answer}"
    return answer

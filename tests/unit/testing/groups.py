"""Groups to begin tests with."""

from __future__ import annotations

import asyncio

from hustings.testing import Group

NAMES = ("a", "b", "c")


def three() -> Group:
    """Three members that have joined."""
    group = Group(seed=7)
    for name in NAMES:
        group.join(name)
    return group


def lone() -> Group:
    """One member that has joined."""
    group = Group()
    group.join("a")
    return group


async def fail(what: str) -> None:
    """Code with a mistake."""
    await asyncio.sleep(0.1)
    raise KeyError(what)

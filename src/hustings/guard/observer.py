"""How an observer of a register keeps up: it looks, waits until there is reason to, looks again.

Reasons are a word from the engine that something changed, the end of the lease seen last (which no
engine here announces), and a safety net, after which it looks in any case: a connection may be dead
without a sign, or a pooler may swallow what the engine says. If the engine is away the observer
connects again, ever less often, and says what has changed meanwhile. What waiting does not cure,
such as a password that is right no longer, ends it with `BadInput`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

from hustings.guard.base import Cancellations, Holding, Unreachable

FIRST_PAUSE_S = 0.1  # before connecting again; doubles up to
LONGEST_PAUSE_S = 2.0
SHORTEST_S = 0.01  # between two looks: a lease about to end is not looked at in a frenzy


class SeenLease(NamedTuple):
    """What a look has shown."""

    holding: Holding
    remaining: float  # of the lease, by the engine's clock; 0 if nobody holds


class Feed(Protocol):
    """A connection of an observer; both methods may raise `Unreachable`."""

    async def look(self) -> SeenLease:
        """The present state."""

    async def wait(self, seconds: float) -> None:
        """Until the engine says that something changed, or so long."""


async def follow(
    dial: Callable[[], AbstractAsyncContextManager[Feed]], net_s: float
) -> AsyncIterator[Holding]:
    """The present state, then changes, for ever; `net_s` is the safety net.

    A feed listens from its first moment, before the first look: nothing falls in between.
    """
    last: Holding | None = None
    pause = FIRST_PAUSE_S
    cancellations = Cancellations()
    while True:
        try:
            async with dial() as feed:
                while True:
                    seen = await feed.look()
                    cancellations.heed()
                    pause = FIRST_PAUSE_S
                    if seen.holding != last:
                        last = seen.holding
                        yield last
                        cancellations = Cancellations()  # who goes on may be another task
                    await feed.wait(_until_next(seen, net_s))
                    cancellations.heed()
        except Unreachable:
            cancellations.heed()
            await asyncio.sleep(pause)
            pause = min(2.0 * pause, LONGEST_PAUSE_S)


def _until_next(seen: SeenLease, net_s: float) -> float:
    if seen.holding.holder is None:
        return net_s
    return max(min(seen.remaining, net_s), SHORTEST_S)

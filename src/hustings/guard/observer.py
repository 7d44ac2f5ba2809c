"""How an observer of a register keeps up: it looks, waits for a reason, and looks again.

There are three reasons to look. The engine says that something changed. The lease seen last ends,
which no engine here announces. Or the longest wait is over: a connection may be dead without a
sign, or a pooler may drop the engine's messages. If the engine is unreachable, the observer
connects again with growing pauses, and then yields what has changed meanwhile. A failure that
waiting does not cure, such as a wrong password, ends the observer with `BadInput`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

from hustings.guard.base import Cancellations, Holding, Unreachable

FIRST_PAUSE_S = 0.1  # before connecting again; doubles up to
LONGEST_PAUSE_S = 2.0
SHORTEST_S = 0.01  # between two looks: a lease about to end does not cause a rush of looks


class SeenLease(NamedTuple):
    """What a look has shown."""

    holding: Holding
    remaining: float  # of the lease, by the engine's clock; 0 if the lease is free


class Feed(Protocol):
    """A connection of an observer; both methods may raise `Unreachable`."""

    async def look(self) -> SeenLease:
        """The present state."""

    async def wait(self, seconds: float) -> None:
        """Wait until the engine says that something changed, for at most this time."""


async def follow(
    dial: Callable[[], AbstractAsyncContextManager[Feed]], net_s: float
) -> AsyncIterator[Holding]:
    """The present state, then changes, for ever. `net_s` is the longest wait between two looks.

    A feed listens from its first moment, before the first look. So it misses no change in between.
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
                        cancellations = Cancellations()  # another task may continue this iterator
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

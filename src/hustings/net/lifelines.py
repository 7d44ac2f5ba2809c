"""What ports of any kind have in common: whose frames arrive, and how a connection is kept.

A process that is killed cannot say goodbye, but its kernel closes what it had open, at once. So a
follower keeps a connection to its leader on which nothing is ever sent after the first frame. When
it closes, and nobody listens there any more, the leader is gone, and no time-out had to pass.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from hustings.core.errors import BadInput
from hustings.net.port import Receiver
from hustings.net.wire import tag_of

CONNECT = 2.0  # seconds for a connection to come about
RECONNECT = 0.25  # the same, when the question is only whether anybody is still there
TRANSFER = 10.0  # seconds for one frame to be sent
SHORTEST, LONGEST = 0.5, 30.0  # seconds between two attempts of a watch
_BRIEF = 1.0  # a watch that ends sooner was not wanted: the far end has too many
_CHECKS = 3  # a dying process may close its streams a moment before it stops listening


class Lifeline:
    """A watch: the task that keeps the connection."""

    __slots__ = ("_task",)

    def __init__(self, task: asyncio.Task[None]) -> None:
        self._task = task

    def cancel(self) -> None:
        """Watch no longer."""
        self._task.cancel()


async def keep(
    hold: Callable[[float], Awaitable[float]],
    gone: Callable[[bool], None],
    leisure: Callable[[], float],
) -> None:
    """Keep a connection, and say when its far end is no more; for ever.

    `hold` has so many seconds to connect, and returns when the connection has ended: how long it
    lasted. `leisure` tells how many seconds there are before that is looked into.
    """
    pause, checks = SHORTEST, 0
    while True:
        try:
            lasted = await hold(RECONNECT if checks else CONNECT)
        except ConnectionRefusedError:
            if checks:
                gone(True)
        except (OSError, TimeoutError, ValueError, TypeError):  # the last two: no address at all
            if checks:
                gone(False)
        else:
            if lasted >= _BRIEF:
                pause, checks = SHORTEST, 0
            checks += 1
            if checks <= _CHECKS:
                if wait := leisure():
                    await asyncio.sleep(wait)
                continue  # is anybody still there?
        checks = 0
        await asyncio.sleep(pause)
        pause = min(LONGEST, 2 * pause)


class Receivers:
    """The members at one port, by the tags of their groups."""

    __slots__ = ("_by_tag",)

    def __init__(self) -> None:
        self._by_tag: dict[bytes, Receiver] = {}

    def attach(self, tag: bytes, receiver: Receiver) -> None:
        """One for each tag."""
        if tag in self._by_tag:
            raise BadInput("two members of one group cannot share a port: give each its own")
        self._by_tag[tag] = receiver

    def detach(self, tag: bytes) -> None:
        """A tag that is not attached is fine."""
        self._by_tag.pop(tag, None)

    def of(self, data: bytes) -> Receiver | None:
        """Whose frame this is, or any member's to count it if it is nobody's."""
        tag = tag_of(data)
        found = None if tag is None else self._by_tag.get(tag)
        return next(iter(self._by_tag.values()), None) if found is None else found

    def all(self) -> list[Receiver]:
        """All of them."""
        return list(self._by_tag.values())

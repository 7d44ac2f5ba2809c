"""Changes of leadership, for a thread that asks for them one after another."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from queue import Empty, SimpleQueue

from hustings.core.errors import HustingsError
from hustings.net.member import Member
from hustings.net.member_state import Leadership


class Newest:
    """The newest state, between the loop that stores it and a thread that takes it."""

    def __init__(self) -> None:
        self._state: deque[Leadership] = deque(maxlen=1)
        self._news: SimpleQueue[None] = SimpleQueue()  # at most two: each one wakes a reader
        self._ended = False
        self._error: HustingsError | None = None

    async def follow(self, member: Member) -> None:
        """Store each new state. Called on the loop."""
        try:
            async for state in member.observe():
                self._state.append(state)
                self._tell()
        except HustingsError as error:
            self._error = error
        finally:
            self._ended = True
            self._tell()

    def _tell(self) -> None:
        if self._news.empty():
            self._news.put(None)

    def take(self, timeout: float | None) -> Leadership:
        """Take the newest state, in another thread; `StopIteration` at the end."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if until is None else max(0.0, until - time.monotonic())
            try:
                self._news.get(timeout=left)
            except Empty:
                raise TimeoutError("leadership did not change in that time") from None
            if self._ended:
                self._tell()  # for the next reader
            try:
                return self._state.popleft()
            except IndexError:
                if self._ended:
                    raise (self._error or StopIteration) from None


class Observation(Iterator[Leadership]):
    """The present state, then each change; a slow reader sees only the newest state.

    The iteration ends when the member has left. A `TimeoutError` does not end it: ask again.
    """

    def __init__(self, newest: Newest, timeout: float | None) -> None:
        self._newest = newest
        self._timeout = timeout

    def __next__(self) -> Leadership:
        return self._newest.take(self._timeout)

"""Sends changes of leadership to all listeners of `/v1/events`.

A slow listener does not delay the others or the agent: its queue is bounded. When the queue is
full, the oldest change is dropped, and the listener is told how many it missed.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from hustings.agent.agent_member import Json

ROOM = 256  # changes that wait for one listener
KEEP_ALIVE_S = 15.0
STALL_S = 30.0  # a listener that reads nothing for this time is gone

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


class Listener:
    """One listener, to all groups or to one."""

    def __init__(self, group: str | None) -> None:
        self.group = group
        self.missed = 0
        self._waiting: deque[Json] = deque()
        self._news = asyncio.Event()
        self._over = False

    def put(self, change: Json) -> None:
        """Add a change to the queue."""
        if self.group is not None and change["group"] != self.group:
            return
        if len(self._waiting) >= ROOM:
            self._waiting.popleft()
            self.missed += 1
        self._waiting.append(change)
        self._news.set()

    def end(self) -> None:
        """No more changes will come."""
        self._over = True
        self._news.set()

    async def next(self, patience: float) -> Json | None:
        """The next change, or None when none came in that time; `EOFError` at the end."""
        if not self._waiting and not self._over:
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self._news.wait()
        if self._waiting:
            return self._waiting.popleft()
        if self._over:
            raise EOFError
        return None


class Broadcast:
    """All listeners."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._listeners: list[Listener] = []
        self._last: dict[str, Json] = {}
        self._over = False

    def __len__(self) -> int:
        return len(self._listeners)

    @property
    def full(self) -> bool:
        """Whether the number of listeners has reached its limit."""
        return self._over or len(self._listeners) >= self._most

    def publish(self, change: Json) -> None:
        """Send a change to all listeners, and keep the state for later ones."""
        self._last[change["group"]] = change
        for listener in self._listeners:
            listener.put(change)

    def join(self, listener: Listener) -> None:
        """Give a listener the present state, and each change from now on."""
        for group in sorted(self._last):
            listener.put(self._last[group])
        self._listeners.append(listener)

    def leave(self, listener: Listener) -> None:
        """Remove a listener."""
        self._listeners.remove(listener)

    def end(self) -> None:
        """End all streams, since the agent stops."""
        self._over = True
        for listener in self._listeners:
            listener.end()


class EventStream:
    """The endless answer: an ASGI application for one listener."""

    def __init__(
        self, broadcast: Broadcast, group: str | None, busy: App, keep_alive_s: float = KEEP_ALIVE_S
    ) -> None:
        self._broadcast = broadcast
        self._listener = Listener(group)
        self._busy = busy  # the answer when too many listen
        self._keep_alive_s = keep_alive_s

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Send the present state, then each change, until one of the two ends closes."""
        if self._broadcast.full:
            await self._busy(scope, receive, send)
            return
        self._broadcast.join(self._listener)
        talk = asyncio.ensure_future(self._talk(send))
        gone = asyncio.ensure_future(_gone(receive))
        try:
            await asyncio.wait((talk, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._broadcast.leave(self._listener)
            for task in (talk, gone):
                task.cancel()
            for outcome in await asyncio.gather(talk, gone, return_exceptions=True):
                if isinstance(outcome, Exception) and not isinstance(
                    outcome, TimeoutError | OSError
                ):
                    raise outcome

    async def _talk(self, send: Send) -> None:
        headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-store"),
            (b"x-accel-buffering", b"no"),  # a buffering proxy would delay changes
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        while True:
            try:
                change = await self._listener.next(self._keep_alive_s)
            except EOFError:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                return
            if self._listener.missed:
                missed, self._listener.missed = self._listener.missed, 0
                await _write(send, _event("missed", {"missed": missed}))
            if change is None:
                await _write(send, b": still here\n\n")
            else:
                await _write(send, _event("leadership", change))


def _event(name: str, data: Json) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


async def _write(send: Send, data: bytes) -> None:
    async with asyncio.timeout(STALL_S):
        await send({"type": "http.response.body", "body": data, "more_body": True})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass

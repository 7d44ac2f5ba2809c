"""The fence around an ASGI application; what it promises is told in `http`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from typing import Any

from hustings.fence.fence import FenceBroken, FenceBusy, StaleToken
from hustings.fence.http import (
    HEADER,
    TOKEN_KEY,
    Entry,
    HttpFence,
    Refusal,
    refusal,
)

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]

RAISING = 4  # threads that raise tokens
LONGEST_PAUSE = 0.02  # seconds between two looks at who is still at work
POLICY = 1008  # how a websocket is closed

_STARTS = ("http.response.start", "websocket.http.response.start")
_BODIES = ("http.response.body", "websocket.http.response.body")
_PARTS = ("http.request", "websocket.receive")


class AsgiFence(HttpFence[AsgiApp, Scope]):
    """The fence around an ASGI application; answers HTTP requests and websockets.

    A request reaches the application, and its answer the client, only if its token is not below
    the highest at that moment. One that is overtaken in the application has half the grace to
    end and is then cancelled; a larger token enters when it has ended by itself, and else after the
    grace, because one that was cancelled may have left its work to a thread. Not held back is what
    an application writes that goes on after that: hand the token, which is in
    `scope["hustings.token"]`, on to the store.
    """

    @cached_property
    def left(self) -> set[asyncio.Task[None]]:
        """What was overtaken and cancelled, and still runs."""
        return set()

    @cached_property
    def threads(self) -> ThreadPoolExecutor:
        """To wait for the disk: an application that hangs may have taken all of asyncio's."""
        return ThreadPoolExecutor(RAISING, thread_name_prefix="hustings-fence")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        name = HEADER.lower().encode()
        values = [value for key, value in scope["headers"] if bytes(key).lower() == name]
        try:
            entry = self.entry(scope, scope.get("method", "websocket"), values)
        except Refusal as refused:
            await _answer(scope, send, refused)
            return
        if entry is None:
            await self._app(scope, receive, send)
        else:
            await _Exchange(self, self._app, entry, scope, receive, send).run()


class _Exchange:
    """One request with a token, its body, and its answer."""

    def __init__(
        self,
        fence: AsgiFence,
        app: AsgiApp,
        entry: Entry,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        self._fence, self._app, self._scope = fence, app, scope
        self._receive_from, self._send_to = receive, send
        self._loop = asyncio.get_running_loop()
        self._overtaken: asyncio.Future[None] = self._loop.create_future()  # done when it is
        self._refused: Refusal | None = None  # what is answered instead
        self._held: Message | None = None  # the start of an answer, until the rest of it begins
        self._started = self._complete = self._cancelled = False
        self._request = fence.in_flight.begin(*entry, self._wake)

    async def run(self) -> None:
        """From the head to the end of the answer."""
        work = asyncio.create_task(self._work())
        try:
            await self._until_done(work)
            if not work.done():
                self._leave_behind(work)
        finally:
            leave = self._fence.in_flight.linger if self._cancelled else self._fence.in_flight.end
            leave(self._request)
        if self._request.overtaken_by:
            self._refuse(self._request.stale())
        if work.done() and self._refused is None:
            work.result()
        elif work.done() and not work.cancelled():
            work.exception()  # so that asyncio does not complain of it
        if self._refused is not None:
            await self._conclude(self._refused)

    async def _until_done(self, work: asyncio.Task[None]) -> None:
        """Until the application has ended; once it is overtaken, no longer than the grace.

        An overtaken one may end by itself for half of it. To cancel it at once would be quicker,
        and worse: what it has given to a thread or a socket would go on, and nobody would wait.
        """
        half = self._fence.grace / 2
        try:
            await asyncio.wait({work, self._overtaken}, return_when=asyncio.FIRST_COMPLETED)
            if self._request.entered:
                await asyncio.wait({work}, timeout=half)
            if not work.done():
                self._cancelled = work.cancel()
                await asyncio.wait({work}, timeout=half)
        except asyncio.CancelledError:  # the server ends the request: so does the application
            self._cancelled = work.cancel() or self._cancelled
            await asyncio.wait({work})
            if not work.cancelled():
                work.exception()
            raise

    async def _work(self) -> None:
        try:
            receive = await self._ready()
        except (Refusal, StaleToken, FenceBusy, FenceBroken) as error:
            self._refuse(error)
            return
        if receive is None:
            return
        scope = {**self._scope, TOKEN_KEY: self._request.token}
        try:
            await self._app(scope, receive, self._send)
            await self._release()
        except (StaleToken, FenceBroken) as error:  # also of a store that it writes to
            if self._started:
                raise
            self._refuse(error)

    async def _ready(self) -> Receive | None:
        """Where the body comes from, when the request may be handed over; None if it is gone."""
        in_flight, request = self._fence.in_flight, self._request
        if not in_flight.is_admitted(request):
            await self._loop.run_in_executor(self._fence.threads, in_flight.admit, request)
        receive: Receive | None = self._receive
        if self._scope["type"] == "http" and not self._fence.stream:
            receive = await self._buffered()
            if receive is None:
                return None
        pause = 0.001
        while not in_flight.is_clear(request):
            await asyncio.sleep(pause)
            pause = min(LONGEST_PAUSE, 2 * pause)
        in_flight.enter(request)  # nothing is awaited between this and the application
        return receive

    async def _buffered(self) -> Receive | None:
        """The whole body, to be given to the application at once."""
        limit = self._fence.body_limit
        lengths = [value for key, value in self._scope["headers"] if key == b"content-length"]
        if any(each.isdigit() and len(each) < 20 and int(each) > limit for each in lengths):
            raise self._fence.too_long()
        body = bytearray()
        while True:
            message = await self._receive_from()
            if message["type"] != "http.request":
                return None  # the client has gone: nobody gets half a body
            body += message.get("body", b"")
            if len(body) > limit:
                raise self._fence.too_long()
            if not message.get("more_body", False):
                break
        whole: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def receive() -> Message:
            self._stop_if_refused()
            return whole.pop() if whole else await self._receive()

        return receive

    async def _receive(self) -> Message:
        """What the client sends, as long as the token is the highest."""
        self._stop_if_refused()
        arrival: asyncio.Future[Message] = asyncio.ensure_future(self._receive_from())
        try:
            either: set[asyncio.Future[Any]] = {arrival, self._overtaken}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            self._stop_if_refused()
            message = arrival.result()
        finally:
            arrival.cancel()
        if message["type"] in _PARTS:
            self._compare()
        return message

    async def _send(self, message: Message) -> None:
        """What the application answers, as long as the token is the highest."""
        self._stop_if_refused()
        kind = message["type"]
        if kind in _STARTS:
            self._held = message  # without a body it could be taken for the whole answer
            return
        await self._release()
        if kind == "websocket.accept":
            self._compare()
            self._started = True
        if kind == "websocket.close" or (kind in _BODIES and not message.get("more_body", False)):
            self._complete = True
        await self._send_to(message)

    async def _release(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            self._compare()
            self._started = True
            await self._send_to(held)

    def _compare(self) -> None:
        try:
            self._fence.in_flight.compare(self._request)
        except (StaleToken, FenceBroken) as error:
            self._refuse(error)
            raise

    def _stop_if_refused(self) -> None:
        if self._request.overtaken_by:
            raise self._request.stale()
        if self._refused is not None:
            raise FenceBroken(str(self._refused))

    def _refuse(self, error: Exception) -> None:
        if self._refused is None:
            self._refused = refusal(error, self._request.entered)

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the loop is closed, and the application with it
            self._loop.call_soon_threadsafe(self._overtaken.set_result, None)

    def _leave_behind(self, work: asyncio.Task[None]) -> None:
        self._fence.in_flight.abandon(self._request)
        self._fence.left.add(work)
        work.add_done_callback(self._forget)

    def _forget(self, work: asyncio.Task[None]) -> None:
        self._fence.left.discard(work)
        if not work.cancelled():
            work.exception()

    async def _conclude(self, refused: Refusal) -> None:
        """Answer, if nothing was; an answer that had begun is cut by ending without its rest."""
        if self._complete:
            return
        if not self._started:
            await _answer(self._scope, self._send_to, refused)
        elif self._scope["type"] == "websocket":
            with suppress(Exception):  # servers differ in what they raise if the client has gone
                await _close(self._send_to, refused)


async def _answer(scope: Scope, send: Send, refused: Refusal) -> None:
    kind = "http"
    if scope["type"] == "websocket":
        if "websocket.http.response" not in scope.get("extensions", {}):
            await _close(send, refused)
            return
        kind = "websocket.http"
    headers = [(key.lower().encode(), value.encode()) for key, value in refused.headers()]
    body = b"" if scope.get("method") == "HEAD" else refused.body
    start = {"type": f"{kind}.response.start", "status": refused.status, "headers": headers}
    await send(start)
    await send({"type": f"{kind}.response.body", "body": body})


async def _close(send: Send, refused: Refusal) -> None:
    await send({"type": "websocket.close", "code": POLICY, "reason": str(refused)[:100]})

"""The fence around an ASGI application. `http` describes its promises."""

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
LONGEST_PAUSE = 0.02  # seconds between two checks of the requests that are still at work
POLICY = 1008  # the code that closes a websocket

_STARTS = ("http.response.start", "websocket.http.response.start")
_BODIES = ("http.response.body", "websocket.http.response.body")
_PARTS = ("http.request", "websocket.receive")


class AsgiFence(HttpFence[AsgiApp, Scope]):
    """The fence around an ASGI application; answers HTTP requests and websockets.

    A request reaches the application only if its token is not below the highest token at that
    moment. The same holds for an answer and the client. An overtaken request in the application has
    half the grace to end. Then it is cancelled. The larger token enters when the overtaken request
    has ended by itself, or else after the grace, because a cancelled request may have left its work
    to a thread. The fence does not hold back what such a thread writes later: pass the token in
    `scope["hustings.token"]` on to the store.
    """

    @cached_property
    def left(self) -> set[asyncio.Task[None]]:
        """Tasks that were overtaken and cancelled, and still run."""
        return set()

    @cached_property
    def threads(self) -> ThreadPoolExecutor:
        """Threads that wait for the disk: a hanging application may have taken all of asyncio's."""
        return ThreadPoolExecutor(RAISING, thread_name_prefix="hustings-fence")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
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
        # done when the request is overtaken
        self._overtaken: asyncio.Future[None] = self._loop.create_future()
        self._refused: Refusal | None = None  # the answer instead of the application's
        self._held: Message | None = None  # the start of an answer, until the rest of it begins
        self._started = self._complete = self._cancelled = False
        self._request = fence.in_flight.begin(*entry, self._wake)

    async def run(self) -> None:
        """Handle the request, from the head to the end of the answer."""
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
            work.exception()  # so that asyncio does not log it
        if self._refused is not None:
            await self._conclude(self._refused)

    async def _until_done(self, work: asyncio.Task[None]) -> None:
        """Wait until the application has ended; once it is overtaken, no longer than the grace.

        An overtaken application may end by itself during half of the grace. An immediate
        cancellation would be quicker, and worse: work that it has given to a thread or a socket
        would go on, and no request would wait for that work.
        """
        half = self._fence.grace / 2
        try:
            await asyncio.wait({work, self._overtaken}, return_when=asyncio.FIRST_COMPLETED)
            if self._request.entered:
                await asyncio.wait({work}, timeout=half)
            if not work.done():
                self._cancelled = work.cancel()
                await asyncio.wait({work}, timeout=half)
        except asyncio.CancelledError:  # the server ends the request, and so the application, too
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
        except (StaleToken, FenceBroken) as error:  # also the application's store
            if self._started:
                raise
            self._refuse(error)

    async def _ready(self) -> Receive | None:
        """Wait until the request may be handed over.

        Return the source of its body; None if it is gone.
        """
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
                return None  # the client has gone: the application never gets half a body
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
        """The next part of the client's request, as long as the token is the highest."""
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
        """Send a part of the application's answer, as long as the token is the highest."""
        self._stop_if_refused()
        kind = message["type"]
        if kind in _STARTS:
            self._held = message  # without a body the client could take it for the whole answer
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
        """Answer, if no answer has begun. An answer that has begun is cut off."""
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

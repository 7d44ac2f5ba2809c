"""HTTP services that refuse the requests of a leader that was replaced: for ASGI and for WSGI.

    app = AsgiFence(app, "tokens", resource="billing")

A client sends the token of its term in the header `Hustings-Token`. The highest one is on disk
before the first request that carries it reaches the application; a request with a smaller one never
does. What is answered then, with a JSON body that says why:

    400  the header is not one token
    412  the token is stale; the body names the highest
    428  there is no token, and the method is one that changes things
    503  the fence cannot tell (its file is damaged or locked), or smaller ones did not end

What this cannot promise: a request that passed may still be running when a larger token comes, and
what it writes afterwards, it writes. Where that matters, give the token on to a store that has a
fence of its own; or set `serialise`, and a request waits up to that many seconds until all with
smaller tokens have left the application: those in the same process, for it cannot see others'.

A token is no secret and no proof of who sends it. Whoever may send a token may send a large one and
lock out everybody else: authenticate clients in front of this.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from pathlib import Path
from typing import Any, NamedTuple

from hustings.core.errors import BadInput
from hustings.fence.fence import LARGEST_TOKEN, FenceBroken, FenceBusy, StaleToken, checked
from hustings.fence.ledger import LONGEST_NAME, Ledger
from hustings.fence.running import Running

HEADER = "Hustings-Token"
OPEN_METHODS = ("GET", "HEAD", "OPTIONS", "TRACE")  # these change nothing
REASONS = {
    400: "Bad Request",
    412: "Precondition Failed",
    428: "Precondition Required",
    503: "Service Unavailable",
}

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]
WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

_TOKEN = re.compile(rb"[1-9][0-9]{0,18}")


def header(token: int) -> dict[str, str]:
    """What a client sends with its requests.

    >>> header(7)
    {'Hustings-Token': '7'}
    """
    return {HEADER: str(checked(token))}


class _Refusal(Exception):
    """An answer instead of the application's."""

    def __init__(self, status: int, error: str, message: str, **more: int) -> None:
        super().__init__(message)
        self.status = status
        self.body = json.dumps({"error": error, "message": message, **more}).encode() + b"\n"

    def headers(self) -> list[tuple[str, str]]:
        plain = [
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(self.body))),
            ("Cache-Control", "no-store"),
        ]
        return [*plain, ("Retry-After", "1")] if self.status == 503 else plain


class _Entry(NamedTuple):
    name: str
    token: int


class _HttpFence:
    """What both kinds share: from headers to a token, and from errors to answers."""

    def __init__(
        self,
        ledger: Ledger | str | Path,
        resource: str | Callable[[Any], str],
        required: bool,
        open_methods: Iterable[str],
        serialise: float | None,
    ) -> None:
        if serialise is not None and not 0 < serialise < float("inf"):
            raise BadInput("serialise is a positive number of seconds, or None")
        if isinstance(resource, str) and not 0 < len(resource) <= LONGEST_NAME:
            raise BadInput(f"a resource's name has between 1 and {LONGEST_NAME} characters")
        self._ledger = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        self._resource = resource
        self._required = required
        self._open = frozenset(each.upper() for each in open_methods)
        self._serialise = serialise
        self._running = Running()

    def _entry(self, request: Any, method: str, values: list[bytes]) -> _Entry | None:
        """What a request asks to enter with; None if it may pass without."""
        if not values:
            if self._required and method.upper() not in self._open:
                raise _Refusal(428, "token-required", f"this needs a token in {HEADER}")
            return None
        if len(values) > 1 or not _TOKEN.fullmatch(values[0]) or int(values[0]) > LARGEST_TOKEN:
            rule = f"{HEADER} is one decimal number between 1 and 2**63 - 1, without signs or zeros"
            raise _Refusal(400, "bad-token", f"{rule} in front")
        name = self._resource if isinstance(self._resource, str) else self._resource(request)
        if not 0 < len(name) <= LONGEST_NAME:
            raise _Refusal(400, "bad-resource", "this resource's name cannot be kept")
        return _Entry(name, int(values[0]))

    def _refusal(self, error: StaleToken | FenceBusy | FenceBroken) -> _Refusal:
        if isinstance(error, StaleToken):
            return _Refusal(
                412, "stale-token", str(error), token=error.token, highest=error.highest
            )
        if isinstance(error, FenceBusy):
            return _Refusal(503, "fence-busy", "others are in the way: try again")
        # The sentence names a file of the server, which is no business of a client's.
        return _Refusal(503, "fence-broken", "the fence cannot tell which token is the highest")

    def _still_running(self) -> _Refusal:
        message = f"requests with smaller tokens did not end within {self._serialise:g} s"
        return _Refusal(503, "fence-busy", message)


class AsgiFence(_HttpFence):
    """The fence around an ASGI application; answers HTTP requests and websockets."""

    def __init__(
        self,
        app: AsgiApp,
        ledger: Ledger | str | Path,
        *,
        resource: str | Callable[[Scope], str] = "http",
        required: bool = True,
        open_methods: Iterable[str] = OPEN_METHODS,
        serialise: float | None = None,
    ) -> None:
        """`resource` is what a token is for; a function of the scope, if there are several.

        With `required`, a request without a token passes only with one of the `open_methods`.
        """
        super().__init__(ledger, resource, required, open_methods, serialise)
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        name = HEADER.lower().encode()
        values = [value for key, value in scope["headers"] if bytes(key).lower() == name]
        method = scope.get("method", "websocket")
        entry: _Entry | None = None
        try:
            entry = self._entry(scope, method, values)
        except _Refusal as refusal:
            await _answer(scope, send, refusal)
            return
        if entry is None:
            await self._app(scope, receive, send)
            return
        self._running.enter(*entry)
        try:
            refused = await self._ask(entry)
            if refused is None:
                await self._app(scope, receive, send)
            else:
                await _answer(scope, send, refused)
        finally:
            self._running.leave(*entry)

    async def _ask(self, entry: _Entry) -> _Refusal | None:
        try:
            if not self._ledger.passes(*entry):
                await asyncio.to_thread(self._ledger.admit, *entry)
            if self._serialise is not None:
                await self._alone(entry, self._serialise)
        except (StaleToken, FenceBusy, FenceBroken) as error:
            return self._refusal(error)
        except _Refusal as refusal:
            return refusal
        return None

    async def _alone(self, entry: _Entry, patience: float) -> None:
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()

        def wake() -> None:
            loop.call_soon_threadsafe(ended.set)

        if self._running.when_alone(*entry, wake):
            return
        try:
            async with asyncio.timeout(patience):
                await ended.wait()
        except TimeoutError:
            raise self._still_running() from None
        finally:
            self._running.forget(entry.name, wake)
        self._ledger.passes(*entry)  # a larger one may have come while this one waited


async def _answer(scope: Scope, send: Send, refusal: _Refusal) -> None:
    kind = "http"
    if scope["type"] == "websocket":
        if "websocket.http.response" not in scope.get("extensions", {}):
            await send({"type": "websocket.close", "code": 1008, "reason": str(refusal)[:100]})
            return
        kind = "websocket.http"
    headers = [(key.lower().encode(), value.encode()) for key, value in refusal.headers()]
    body = b"" if scope.get("method") == "HEAD" else refusal.body
    start = {"type": f"{kind}.response.start", "status": refusal.status, "headers": headers}
    await send(start)
    await send({"type": f"{kind}.response.body", "body": body})


class WsgiFence(_HttpFence):
    """The fence around a WSGI application."""

    def __init__(
        self,
        app: WsgiApp,
        ledger: Ledger | str | Path,
        *,
        resource: str | Callable[[dict[str, Any]], str] = "http",
        required: bool = True,
        open_methods: Iterable[str] = OPEN_METHODS,
        serialise: float | None = None,
    ) -> None:
        """`resource` is what a token is for; a function of the environment, if there are several.

        With `required`, a request without a token passes only with one of the `open_methods`.
        """
        super().__init__(ledger, resource, required, open_methods, serialise)
        self._app = app

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        """One request."""
        method = str(environ["REQUEST_METHOD"])
        text = environ.get("HTTP_HUSTINGS_TOKEN")
        values = [] if text is None else [str(text).encode("utf-8", "replace")]
        try:
            entry = self._entry(environ, method, values)
            if entry is None:
                return self._app(environ, start)
            self._running.enter(*entry)
            try:
                self._ask(entry)
            except BaseException:
                self._running.leave(*entry)
                raise
        except _Refusal as refusal:
            start(f"{refusal.status} {REASONS[refusal.status]}", refusal.headers())
            return [] if method == "HEAD" else [refusal.body]
        try:
            return _Leaving(self._app(environ, start), lambda: self._running.leave(*entry))
        except BaseException:
            self._running.leave(*entry)
            raise

    def _ask(self, entry: _Entry) -> None:
        try:
            self._ledger.admit(*entry)
            if self._serialise is not None:
                self._alone(entry, self._serialise)
        except (StaleToken, FenceBusy, FenceBroken) as error:
            raise self._refusal(error) from None

    def _alone(self, entry: _Entry, patience: float) -> None:
        ended = threading.Event()
        wake = ended.set
        if self._running.when_alone(*entry, wake):
            return
        try:
            if not ended.wait(patience):
                raise self._still_running()
        finally:
            self._running.forget(entry.name, wake)
        self._ledger.passes(*entry)  # a larger one may have come while this one waited


class _Leaving:
    """An application's answer; the request has ended when the server closes it."""

    def __init__(self, parts: Iterable[bytes], leave: Callable[[], None]) -> None:
        self._parts = parts
        self._leave: Callable[[], None] | None = leave

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._parts)

    def close(self) -> None:
        try:
            close = getattr(self._parts, "close", None)
            if close is not None:
                close()
        finally:
            leave, self._leave = self._leave, None
            if leave is not None:
                leave()

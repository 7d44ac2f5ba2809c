"""Requests to both kinds of HTTP fence, without a server; and applications behind them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from hustings.fence import AsgiFence, WsgiFence
from hustings.fence.asgi import Receive, Scope, Send


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Behind:
    """What is protected: it says which tokens reached it, in which order they began and ended.

    Whoever carries a token of `held` stays inside until it is released.
    """

    def __init__(self, *held: int) -> None:
        self.log: list[str] = []
        self._gates = {token: threading.Event() for token in held}
        self._inside = {token: threading.Event() for token in held}

    def await_inside(self, token: int) -> None:
        assert self._inside[token].wait(20.0)

    def release(self, token: int) -> None:
        self._gates[token].set()

    async def asgi(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            self.log.append(scope["type"])
            return
        headers = dict(scope["headers"])
        token = headers.get(b"hustings-token", b"none").decode()
        self.log.append(f"begin {token}")
        if token.isdigit() and int(token) in self._gates:
            self._inside[int(token)].set()
            while not self._gates[int(token)].is_set():
                await asyncio.sleep(0.001)
        self.log.append(f"end {token}")
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})

    def wsgi(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        token = environ.get("HTTP_HUSTINGS_TOKEN", "none")
        self.log.append(f"begin {token}")
        start("200 OK", [])
        return self._body(token)

    def _body(self, token: str) -> Iterable[bytes]:
        if token.isdigit() and int(token) in self._gates:
            self._inside[int(token)].set()
            assert self._gates[int(token)].wait(20.0)
        self.log.append(f"end {token}")
        yield b"done"


Headers = list[tuple[bytes, bytes]]


def token(text: str | int) -> Headers:
    return [(b"hustings-token", str(text).encode())]


async def ask_asgi(
    fence: AsgiFence, headers: Headers, method: str = "POST", path: str = "/"
) -> Answer:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "headers": headers}
    await fence(scope, receive, send)
    start, *parts = sent
    assert start["type"] == "http.response.start"
    found = {key.decode(): value.decode() for key, value in start["headers"]}
    return Answer(start["status"], found, b"".join(part.get("body", b"") for part in parts))


class Exchange:
    """A request to an ASGI fence whose parts are sent one by one, and what was answered so far."""

    def __init__(self, fence: AsgiFence, headers: Headers, *parts: Any, **scope: Any) -> None:
        self.sent: list[Any] = []
        self.taken = 0  # parts that were received
        self._parts = asyncio.Queue[Any]()
        for part in parts:
            self.give(part)
        default = {"type": "http", "method": "POST", "path": "/", "headers": headers}
        self.task = asyncio.create_task(fence({**default, **scope}, self._receive, self._send))

    def give(self, part: Any) -> None:
        """A whole message, or part of a body: text ends it, bytes do not."""
        if isinstance(part, str | bytes):
            more = isinstance(part, bytes)
            body = part if isinstance(part, bytes) else part.encode()
            part = {"type": "http.request", "body": body, "more_body": more}
        self._parts.put_nowait(part)

    async def _receive(self) -> Any:
        part = await self._parts.get()
        self.taken += 1
        return part

    async def _send(self, message: Any) -> None:
        self.sent.append(message)

    async def answer(self) -> Answer:
        """The whole of it."""
        async with asyncio.timeout(20):
            await self.task
        start, *rest = self.sent
        assert not rest[-1].get("more_body")
        found = {key.decode(): value.decode() for key, value in start["headers"]}
        return Answer(start["status"], found, b"".join(part.get("body", b"") for part in rest))


def ask_wsgi(
    fence: WsgiFence, headers: Headers, method: str = "POST", path: str = "/", **more: Any
) -> Answer:
    """As a server does: of several headers of one name it makes one, and it closes what it got."""
    environ: dict[str, Any] = {"REQUEST_METHOD": method, "PATH_INFO": path}
    environ.update({key.replace("wsgi_", "wsgi."): value for key, value in more.items()})
    for key, value in headers:
        name = "HTTP_" + key.decode("latin-1").upper().replace("-", "_")
        text = value.decode("latin-1")
        environ[name] = f"{environ[name]},{text}" if name in environ else text
    said: list[Any] = []
    written: list[bytes] = []

    def start(status: str, found: Any, exc_info: Any = None) -> Callable[[bytes], None]:
        said.append((status, found))
        return written.append

    parts = fence(environ, start)
    try:
        body = b"".join(parts)
    finally:
        close = getattr(parts, "close", None)
        if close is not None:
            close()
    [(status, found)] = said
    plain = {key.lower(): value for key, value in found}
    return Answer(int(status[:3]), plain, b"".join(written) + body)

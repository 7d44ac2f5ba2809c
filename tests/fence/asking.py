"""Requests to both kinds of HTTP fence, without a server; and applications behind them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from hustings.fence import AsgiFence, WsgiFence
from hustings.fence.http import Receive, Scope, Send


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


def ask_wsgi(fence: WsgiFence, headers: Headers, method: str = "POST", path: str = "/") -> Answer:
    """As a server does: of several headers of one name it makes one, and it closes what it got."""
    environ: dict[str, Any] = {"REQUEST_METHOD": method, "PATH_INFO": path}
    for key, value in headers:
        name = "HTTP_" + key.decode("latin-1").upper().replace("-", "_")
        text = value.decode("latin-1")
        environ[name] = f"{environ[name]},{text}" if name in environ else text
    said: list[Any] = []
    parts = fence(environ, lambda status, found: said.append((status, found)))
    try:
        body = b"".join(parts)
    finally:
        close = getattr(parts, "close", None)
        if close is not None:
            close()
    [(status, found)] = said
    return Answer(int(status[:3]), {key.lower(): value for key, value in found}, body)

"""A server on 127.0.0.1 within the test's own event loop, and conversations that were written down.

`Replay` knows a conversation by heart: it wants to be asked exactly what is written there, in that
order, and answers what is written there. A conversation is a file of JSON lines, each with `ask`
(method and address), perhaps `send` (what the question must carry, as JSON or text), `status`,
`headers` and `answer` (as JSON or text).
"""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def served(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """The port at which everything is answered by one handler."""
    any_awaitable: Any = handler  # which it takes, whatever its types say
    server: Any = web.Server(any_awaitable)
    runner = web.ServerRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    address: Any = runner.addresses[0]
    try:
        yield int(address[1])
    finally:
        await runner.cleanup()


class Replay:
    """One conversation, in its order."""

    def __init__(self, path: Path) -> None:
        lines = path.read_text().splitlines()
        self._lines: list[dict[str, Any]] = [json.loads(each) for each in lines if each.strip()]
        self._heard = 0
        self.wrong: list[str] = []  # what was asked and should not have been

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        asked = f"{request.method} {request.rel_url}"
        sent = await request.text()
        if self._heard >= len(self._lines):
            self.wrong.append(f"{asked} after the end")
            return web.Response(status=500, text="the conversation is over")
        line = self._lines[self._heard]
        self._heard += 1
        if asked != line["ask"]:
            self.wrong.append(f"{asked} instead of {line['ask']}")
        if "send" in line and not _carries(sent, line["send"]):
            self.wrong.append(f"{asked} carries {sent!r} instead of {line['send']!r}")
        answer = line.get("answer", "")
        text = answer if isinstance(answer, str) else json.dumps(answer)
        return web.Response(
            status=line.get("status", 200),
            text=text,
            headers=line.get("headers", {}),
            content_type="application/json",
        )

    def check(self) -> None:
        """It was the whole conversation, and no other."""
        assert not self.wrong, self.wrong
        assert self._heard == len(self._lines), f"only {self._heard} of {len(self._lines)} asked"


def _carries(sent: str, wanted: Any) -> bool:
    if isinstance(wanted, str):
        return sent == wanted
    return _within(wanted, json.loads(sent))


def _within(wanted: Any, found: Any) -> bool:
    """Whether all that is wanted is there; `"*"` stands for anything."""
    if wanted == "*":
        return True
    if isinstance(wanted, dict) and isinstance(found, dict):
        return all(key in found and _within(value, found[key]) for key, value in wanted.items())
    return bool(wanted == found)

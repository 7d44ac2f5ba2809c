"""An application for the tests of overtaken requests, and what its clients are told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from hustings.fence import AsgiFence, StaleToken
from tests.fence.asking import Answer

DONE: list[dict[str, Any]] = [
    {"type": "http.response.start", "status": 200, "headers": []},
    {"type": "http.response.body", "body": b"done"},
]


class App:
    """What is protected. Each token does what was arranged for it, or answers at once."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.acts: dict[int, Callable[..., Awaitable[None]]] = {}
        self.inside = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        number = scope["hustings.token"]
        self.log.append(f"begin {number}")
        self.inside.set()
        try:
            if number in self.acts:
                await self.acts[number](scope, receive, send)
            else:
                for message in DONE:
                    await send(message)
        except asyncio.CancelledError:
            self.log.append(f"cancelled {number}")
            raise
        except StaleToken as error:
            self.log.append(error)
            raise
        else:
            self.log.append(f"end {number}")


Story = Callable[[App, AsgiFence], Awaitable[None]]


def play(folder: Path, story: Story, **options: Any) -> App:
    async def whole() -> App:
        app = App()
        fence = AsgiFence(app, folder / "tokens", **options)
        async with asyncio.timeout(60):
            await story(app, fence)
            while fence.in_flight._requests:  # who was cancelled counts for a grace
                await asyncio.sleep(0)
        assert not fence.in_flight._presence._held
        return app

    return asyncio.run(whole())


async def for_ever(*_: Any) -> None:
    await asyncio.Event().wait()


def refused(answer: Answer, number: int, highest: int, handed_over: bool) -> None:
    body = answer.json()
    assert (answer.status, body["error"]) == (412, "stale-token")
    assert (body["token"], body["highest"]) == (number, highest)
    assert body["handed_over"] is handed_over
    assert ("nothing was written" in body["message"]) is not handed_over

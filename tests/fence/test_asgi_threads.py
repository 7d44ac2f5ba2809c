"""Requests to an ASGI fence that are cancelled, and whose threads go on."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hustings.fence import AsgiFence
from tests.fence.asking import Exchange, ask_asgi, token
from tests.fence.overtaking import DONE, App, play, refused


async def in_executor(work: Callable[[], None]) -> None:
    await asyncio.get_running_loop().run_in_executor(None, work)


@pytest.mark.parametrize("hand_over", [asyncio.to_thread, in_executor])
@pytest.mark.parametrize("part", [0.6, 0.75])
@pytest.mark.parametrize("by_server", [False, True])
def test_what_a_cancelled_request_gave_to_a_thread_is_waited_for(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    hand_over: Callable[[Callable[[], None]], Any],
    part: float,
    by_server: bool,
) -> None:
    """Its task ends at once when it is cancelled, and the thread goes on and writes."""
    grace = 0.8
    overtaken = threading.Event()

    async def threaded(scope: Any, receive: Any, send: Any) -> None:
        def write() -> None:
            overtaken.wait(10.0)
            threading.Event().wait(part * grace)
            written.append(5)

        await hand_over(write)

    async def writing(scope: Any, receive: Any, send: Any) -> None:
        written.append(6)
        for message in DONE:
            await send(message)

    async def story(app: App, fence: AsgiFence) -> None:
        app.acts.update({5: threaded, 6: writing})
        old = Exchange(fence, token(5), "")
        await app.inside.wait()
        if by_server:
            old.task.cancel()
            await asyncio.wait({old.task})
        overtaken.set()
        assert (await ask_asgi(fence, token(6))).status == 200
        if not by_server:
            refused(await old.answer(), 5, 6, True)

    written: list[int] = []
    with caplog.at_level(logging.WARNING, "hustings.fence"):
        play(tmp_path, story, grace=grace)
    assert written == [5, 6]
    assert by_server or "it may be at work in a thread" in caplog.text

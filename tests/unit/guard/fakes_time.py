"""Stories of guards in virtual time: minutes take no time, and come out the same every time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from hustings.testing import VirtualLoop


def virtually(story: Coroutine[Any, Any, None]) -> None:
    """Play a story on a virtual loop."""
    loop = VirtualLoop()
    try:
        loop.run_until_complete(story)
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


def now() -> float:
    """Since the story began."""
    return asyncio.get_running_loop().time()

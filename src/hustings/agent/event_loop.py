"""The event loop of our programs: uvloop's where it is installed, else the standard one."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.run`.

    >>> async def seven(): return 7
    >>> run(seven())
    7
    """
    if find_spec("uvloop") is None:
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=import_module("uvloop").new_event_loop) as runner:
        return runner.run(main)

"""Stories on a virtual clock: nothing waits for real, and nothing depends on the machine."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from hustings.testing.clock import VirtualLoop

T = TypeVar("T")


def virtually(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a loop of its own whose time jumps."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)


def now() -> float:
    """Since the loop began."""
    return asyncio.get_running_loop().time()

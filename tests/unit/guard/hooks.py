"""Where a test acts between two steps of an engine in memory."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

Hook = Callable[[str], Coroutine[Any, Any, None]]


async def nothing(what: str) -> None:
    """No hook."""

"""A cancellation is heeded even where an engine's client swallows it.

`asyncio.wait_for` of Python 3.11 forgets that its task was cancelled if the answer comes in that
moment, and clients use it. Whoever cancelled would then wait for a task that works on for ever.
"""

from __future__ import annotations

import asyncio


class Cancellations:
    """Those that the running task has been asked for since this was made."""

    def __init__(self) -> None:
        self._task = asyncio.current_task()
        self._before = 0 if self._task is None else self._task.cancelling()

    def heed(self) -> None:
        """End here if one came and was swallowed."""
        if self._task is not None and self._task.cancelling() > self._before:
            raise asyncio.CancelledError

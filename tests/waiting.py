"""Waiting for another thread or process, with a deadline: `tests.net.kit.loops` awaits instead."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_S = 60.0  # the machine may be busy

_LOOK_S = 0.01  # between two looks at a condition


def until(
    condition: Callable[[], object], what: str | Callable[[], str], within_s: float = PATIENCE_S
) -> None:
    """Wait for a condition; one that does not come true in time is a failure."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            said = what if isinstance(what, str) else what()
            raise AssertionError(f"waited {within_s:g} s in vain: {said}")
        time.sleep(_LOOK_S)

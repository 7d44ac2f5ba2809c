"""The event loop of our programs: uvloop's where it is installed, else the standard one."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine, Iterable
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


def ignore_from_now_on(numbers: Iterable[signal.Signals]) -> None:
    """Take handlers of signals from the running loop, as the last act of a process.

    Its exit code is settled. A signal that comes later, until the process is gone, would end it
    with another code.
    """
    loop, given = asyncio.get_running_loop(), tuple(numbers)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, given)  # without its handler, one would kill
    for number in given:
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)

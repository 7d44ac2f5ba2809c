"""The clock of members: what they measure their own waits, time-outs and leases with.

Usually this is the event loop's own clock. A loop for tests may have another one for its members:
then the clock of members can stand still while programs go on, as if all machines had been
suspended, with their monotonic clocks. Members notice nothing of that.

Law: all parts of a member take the time from here and arm their timers here, since a time of one
clock means nothing on another. Code of the program, such as the period of a job, is on the loop's
clock.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextvars import Context
from typing import Protocol, TypeVarTuple

_Ts = TypeVarTuple("_Ts")


class Clock(Protocol):
    """A monotonic clock with timers; every event loop is one."""

    def time(self) -> float:
        """Seconds."""

    def call_at(
        self,
        when: float,
        callback: Callable[[*_Ts], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call at the time `when` of this clock."""

    def call_later(
        self,
        delay: float,
        callback: Callable[[*_Ts], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call when `delay` seconds of this clock have passed."""


def clock_of(loop: asyncio.AbstractEventLoop) -> Clock:
    """The clock of members on an event loop: the loop itself, unless it has one for them."""
    own: Clock = getattr(loop, "clock_of_members", loop)
    return own


def member_clock() -> Clock:
    """The clock of members on the running event loop."""
    return clock_of(asyncio.get_running_loop())


def fine_time(clock: Clock) -> Callable[[], float]:
    """The time of members for measuring short times: uvloop only counts milliseconds.

    Its differences are those of the clock; its zero may be another.
    """
    coarse = type(clock).__module__.startswith("uvloop")
    return time.monotonic if coarse else clock.time


async def sleep(seconds: float) -> None:
    """Wait on the clock of members."""
    loop = asyncio.get_running_loop()
    clock = clock_of(loop)
    if clock is loop or seconds <= 0:
        await asyncio.sleep(seconds)
        return
    over = loop.create_future()
    timer = clock.call_later(seconds, _set_unless_done, over)
    try:
        await over
    finally:
        timer.cancel()


def _set_unless_done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)

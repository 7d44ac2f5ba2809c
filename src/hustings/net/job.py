"""A job: code that runs while its member leads, and again whenever the member leads again.

    result = await member.run(job)             # async def job(term): ...

One job of a member is one task at most. So a job never runs twice at one time in one process, and
the group's leadership keeps other processes from running it.

- The job begins when the member leads, and is cancelled when it leads no longer.
- A job that returns has finished, and `run` returns its result. But a job that returns after
  `term.lost` or `term.draining` was set has given way: it begins anew when the member leads again.
- A job that raises is started again, after a delay that doubles. The member leads on meanwhile.
- With a period (`every`) the job runs at once, and then once in each period, counted from the
  beginning of the leadership on the monotonic clock.

Law: bounded. Delays, restarts in a row and the wait for a cancelled job have limits. A job that
does not end when it is cancelled is never started a second time beside itself.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from hustings.core.durations import parse_duration, show_duration
from hustings.core.errors import BadInput, UnknownName, printable
from hustings.net.logs import WARNING, MemberLog
from hustings.net.member_state import LeadershipLost
from hustings.net.restarts import Restart, RestartPolicy, Restarts

if TYPE_CHECKING:
    from hustings.net.campaign import Term
    from hustings.net.member import Member

T = TypeVar("T")

GRACE = "10s"
DELAY = "1s"
SHORTEST_PERIOD_S = 0.001

Duration = str | float


@dataclass(frozen=True, slots=True)
class JobOptions:
    """How a job runs, read and checked."""

    restarts: RestartPolicy
    every_s: float | None
    drain_s: float
    grace_s: float


def job_options(
    every: Duration | None,
    restart: str,
    restart_delay: Duration | None,
    max_restarts: int | None,
    drain: Duration,
    grace: Duration,
) -> JobOptions:
    """Read the options of `run`; `BadInput` says what is wrong."""
    known = [each.value for each in Restart]
    if restart not in known:
        raise UnknownName("restart", str(restart), known)
    count = isinstance(max_restarts, int) and not isinstance(max_restarts, bool)
    if max_restarts is not None and (not count or max_restarts < 0):
        raise BadInput(f"max_restarts {max_restarts!r} is not a number: write 0 or more")
    period = None if every is None else parse_duration(every, "every")
    if period is not None and period < SHORTEST_PERIOD_S:
        raise BadInput(f"every {every!r} is too short: a period has at least 1ms")
    if period is not None and restart_delay is not None:
        raise BadInput("a periodic job that raised runs again in its next period: no restart_delay")
    delay = parse_duration(DELAY if restart_delay is None else restart_delay, "restart_delay")
    return JobOptions(
        restarts=RestartPolicy(Restart(restart), delay, max_restarts),
        every_s=period,
        drain_s=parse_duration(drain, "drain"),
        grace_s=parse_duration(grace, "grace"),
    )


def next_turn(last: int, every: float, passed: float) -> int:
    """The number of the next run, when `passed` seconds have gone by since that of number 0.

    Runs that were missed, because one took longer than its period, are left out. A clock that is
    read a moment too early repeats no run.

    >>> next_turn(0, 5.0, passed=2.0), next_turn(1, 5.0, passed=5.0), next_turn(3, 5.0, passed=31.0)
    (1, 2, 7)
    >>> next_turn(3, 0.1, passed=0.3 - 1e-12)
    4
    """
    return max(last, int(passed // every)) + 1


class Tries:
    """Decides, after each run of a job, whether and when the next one begins."""

    def __init__(self, options: JobOptions) -> None:
        self._restarts = Restarts(options.restarts)
        self._every = options.every_s
        self._turn = (0.0, 0)  # the first run of a leadership, and the number of the last one

    def after(
        self, error: BaseException | None, first: float, began: float, now: float
    ) -> float | None:
        """When the next run begins; None: the job is over, with its result or its error."""
        if self._every is None:
            delay = self._restarts.after(0 if error is None else 1, now - began)
            return None if delay is None else now + delay
        if error is None:
            self._restarts.succeeded()
        elif self._restarts.after(1, 0.0) is None:
            return None
        last = self._turn[1] if self._turn[0] == first else 0
        self._turn = (first, next_turn(last, self._every, now - first))
        return first + self._turn[1] * self._every


class JobCancelled(RuntimeError):
    """The job was cancelled by other code than its member."""


@dataclass(frozen=True, slots=True)
class JobFailed:
    """A job that raised and does not run again. Its error may be of any class."""

    error: BaseException


class JobRun(Generic[T]):
    """One call of `member.run`."""

    def __init__(
        self, member: Member, job: Callable[[Term], Awaitable[T]], options: JobOptions
    ) -> None:
        check_coroutine_function(job)
        self._member = member
        self._job = job
        self._options = options
        self._tries = Tries(options)
        self._term: Term | None = None
        self._stopping = False  # the caller was cancelled
        self._clock = member.clock

    async def run(self) -> T:
        """Run the job until it has finished; return its result, or raise its error."""
        while True:
            body = asyncio.get_running_loop().create_task(self._lead())
            try:
                await asyncio.wait({body})
            except asyncio.CancelledError:
                await self._stop(body)
                raise
            finished = body.result()
            if isinstance(finished, JobFailed):
                raise finished.error
            if finished is not None:
                return finished[0]

    async def _lead(self) -> tuple[T] | JobFailed | None:
        """Run the job for one leadership; its result, if it has finished."""
        try:
            async with self._member.campaign(self._options.drain_s) as term:
                self._term = term
                watch = asyncio.get_running_loop().create_task(self._watch(term))
                try:
                    return await self._runs(term)
                finally:
                    watch.cancel()
        except LeadershipLost:
            return None

    async def _runs(self, term: Term) -> tuple[T] | JobFailed | None:
        first = self._clock()
        while True:
            began = self._clock()
            error: BaseException | None = None
            try:
                result = await self._job(term)
            except asyncio.CancelledError:
                if term.lost.is_set() or self._stopping:
                    raise
                error = JobCancelled("the job was cancelled by other code than its member")
            except LeadershipLost as lost:
                if term.remaining <= 0:
                    return None
                error = lost
            except Exception as caught:
                error = caught
            if term.lost.is_set() or term.draining.is_set() or self._stopping:
                tell_late(self._member.log, term, error)
                return None
            start = self._tries.after(error, first, began, self._clock())
            if start is None and error is not None:
                return JobFailed(error)
            if start is None:
                return (result,)
            tell_restart(self._member.log, term, error, start - self._clock())
            if await self._is_asked_to_end(term, start):
                return None

    async def _is_asked_to_end(self, term: Term, until: float) -> bool:
        """Wait until the next run; True if a transfer is wanted before."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, until - self._clock())):
                await term.draining.wait()
        return term.draining.is_set()

    async def _watch(self, term: Term) -> None:
        """Say so when a job goes on although its leadership is over."""
        await term.lost.wait()
        grace = self._options.grace_s
        await asyncio.sleep(grace)
        why = f"its leadership was lost ({term.reason})"
        self._say_late(f"{show_duration(grace)} after {why}: it must end when it is cancelled")

    def _say_late(self, said: str) -> None:
        term = self._term
        number, token = (None, None) if term is None else (term.number, term.token)
        said = f"the job goes on {said}"
        self._member.log.say(WARNING, "job-late", said, term=number, token=token)

    async def _stop(self, body: asyncio.Task[tuple[T] | JobFailed | None]) -> None:
        """End the job because the caller was cancelled; wait for its clean-up."""
        self._stopping = True
        body.add_done_callback(self._over)
        body.cancel()
        grace = self._options.grace_s
        await asyncio.wait({body}, timeout=grace)  # cancelled a second time, the caller hurries
        if not body.done():
            # Its campaign goes on, too, so that a lease is not given back under a running job.
            grace_text = show_duration(grace)
            self._say_late(f"{grace_text} after it was cancelled: it is no longer waited for")

    def _over(self, body: asyncio.Task[tuple[T] | JobFailed | None]) -> None:
        if not body.cancelled() and body.exception() is not None:
            tell_late(self._member.log, self._term, body.exception())


class AnyTerm(Protocol):
    """A term of leadership, of a coroutine or of a thread."""

    number: int
    token: int | None


def tell_restart(log: MemberLog, term: AnyTerm, error: BaseException | None, delay: float) -> None:
    """Write that a job raised and runs again."""
    if error is not None:
        again = show_duration(float(f"{max(0.0, delay):.3g}"))
        _raised(log, term, error, f"the job raised {error_words(error)}; it runs again in {again}")


def tell_late(log: MemberLog, term: AnyTerm | None, error: BaseException | None) -> None:
    """Write that a job raised when it had to end."""
    if error is not None:
        _raised(log, term, error, f"the job raised {error_words(error)} while it was ended")


def _raised(log: MemberLog, term: AnyTerm | None, error: BaseException, said: str) -> None:
    number, token = (None, None) if term is None else (term.number, term.token)
    log.say(WARNING, "job-raised", said, term=number, token=token, error=error)


def check_coroutine_function(job: object) -> None:
    """Refuse what cannot be awaited, before it is called."""
    if not is_coroutine_function(job):
        raise BadInput(
            f"the job {_name(job)} is no coroutine function: write `async def`, or run a plain "
            "function with hustings.blocking"
        )


def check_plain_function(job: object) -> None:
    """Refuse what a thread cannot call."""
    if not callable(job):
        raise BadInput(f"the job {_name(job)} cannot be called: give a function of one argument")
    if is_coroutine_function(job):
        raise BadInput(
            f"the job {_name(job)} is a coroutine function: run it with hustings.join, or write a "
            "plain function"
        )


def is_coroutine_function(job: object) -> bool:
    """Whether a call gives something to await, also where an object is called."""
    if inspect.iscoroutinefunction(job):
        return True
    called = getattr(job, "__call__", None)  # noqa: B004 (not whether it can be called: its kind)
    return inspect.iscoroutinefunction(called)


def _name(job: object) -> str:
    return getattr(job, "__qualname__", None) or repr(job)


def error_words(error: BaseException) -> str:
    """An error in a sentence, with its class."""
    said = printable(str(error))
    return f"{type(error).__name__}: {said}" if said else type(error).__name__

"""`hustings.once`: a job that runs in one process of a group, with nothing else to write.

    @hustings.once("billing", every="5m")
    async def send_invoices(term):
        ...

    send_invoices.run()

The decorated function has four uses: `run` in a program that does nothing else, `start` for a
thread beside a program, `serve` inside an event loop, and a call, which is the plain function, for
tests.

`Member.run` says what a job is. A period is not recorded anywhere: after a failover the next leader
runs the job at once.

Law: decorating does nothing. No key is read, no thread and no socket is there before the job is run
or started, so a module with jobs can be imported anywhere, also before a fork.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import inspect
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import Any, Generic, ParamSpec, Self, TypeVar

from hustings import blocking
from hustings.core.errors import BadInput, UnknownName
from hustings.joining import join
from hustings.net.job import GRACE, check_plain_function, is_coroutine_function, job_options
from hustings.net.member_state import NotLeader

P = ParamSpec("P")
R = TypeVar("R")

_EXIT_S = 2.0  # seconds that a job in a thread has when the interpreter exits
_JOIN_OPTIONS = tuple(inspect.signature(join).parameters)[1:]


def once(
    group: str,
    *,
    every: str | float | None = None,
    restart: str = "on-failure",
    restart_delay: str | float | None = None,
    max_restarts: int | None = None,
    drain: str | float = 0.0,
    grace: str | float = GRACE,
    **options: Any,
) -> Callable[[Callable[P, R]], ScheduledJob[P, R]]:
    """Run a job in one process of a group: `@hustings.once("billing", every="5m")`.

    The function gets the term, and may be `async def` or not. With `every` it runs once in each
    period; without, it is one long job. The other options are those of `Member.run` and of
    `hustings.join`, for example `seeds`, `key` and `guard`.
    """
    if not isinstance(group, str):
        raise BadInput('once needs the name of a group first: write @hustings.once("billing")')
    running: dict[str, Any] = {
        "every": every,
        "restart": restart,
        "restart_delay": restart_delay,
        "max_restarts": max_restarts,
        "drain": drain,
        "grace": grace,
    }
    job_options(**running)
    for name in options:
        if name not in _JOIN_OPTIONS:
            raise UnknownName("option", name, [*running, *_JOIN_OPTIONS])

    def decorate(job: Callable[P, R]) -> ScheduledJob[P, R]:
        return ScheduledJob(group, job, running, options)

    return decorate


class ScheduledJob(Generic[P, R]):
    """A job with its group. `hustings.once` makes it; a call is the plain function."""

    def __init__(
        self,
        group: str,
        job: Callable[P, R],
        running: Mapping[str, Any],
        options: Mapping[str, Any],
    ) -> None:
        self.group = group
        self._job = job
        self._running = dict(running)
        self._options = dict(options)
        self.asynchronous = is_coroutine_function(job)
        if not self.asynchronous:
            check_plain_function(job)
            del self._running["grace"]
        functools.update_wrapper(self, job)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._job(*args, **kwargs)

    def run(self) -> Any:
        """Join the group, run the job until it has finished, and leave; its result.

        For a program that does nothing else. Ctrl-C and SIGTERM end the job, and the member leaves
        in good order.
        """
        if not self.asynchronous:
            with _ended_by_sigterm(_exit):
                return self.in_this_thread()
        with asyncio.Runner() as runner:
            serving = runner.get_loop().create_task(self.serve())
            told: list[int] = []

            def end(number: int, frame: FrameType | None) -> None:
                told.append(number)
                runner.get_loop().call_soon_threadsafe(serving.cancel)

            async def served() -> Any:
                return await serving

            with _ended_by_sigterm(end):
                try:
                    return runner.run(served())
                except asyncio.CancelledError:
                    if told:
                        raise SystemExit(128 + told[0]) from None
                    raise

    def start(self) -> RunningJob:
        """Join the group and run the job in a thread of its own; this returns at once.

        Call it in the process that is to run the job: after a fork, not before.
        """
        return RunningJob(self)

    async def serve(self) -> Any:
        """Join the group, run the job until it has finished, and leave; its result.

        Inside an event loop. A plain function runs in a thread. Cancel this call to end the job.
        """
        if self.asynchronous:
            async with join(self.group, **self._options) as member:
                job: Any = self._job
                return await member.run(job, **self._running)
        running = self.start()
        try:
            return await running.ended()
        finally:
            await asyncio.get_running_loop().run_in_executor(None, running.stop)

    def in_this_thread(self, opened: Callable[[blocking.Member], None] | None = None) -> Any:
        """Run a plain function here; `opened` gets the member."""
        with blocking.join(self.group, **self._options) as member:
            if opened is not None:
                opened(member)
            job: Any = self._job
            return member.run(job, **self._running)


class RunningJob:
    """A job that runs in a thread. Use it with `with`, or call `stop`."""

    def __init__(self, scheduled: ScheduledJob[Any, Any]) -> None:
        self._scheduled = scheduled
        self._stopping = False
        self._lock = threading.Lock()
        self._end: Callable[[float | None], None] | None = None
        self._over: list[Callable[[], object]] = []
        self.result: Any = None  # of a job that has finished
        self.error: BaseException | None = None  # what ended the job
        name = f"hustings once {scheduled.group}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        atexit.register(self.stop, _EXIT_S)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether the job, or its wait to lead, goes on."""
        return self._thread.is_alive()

    def stop(self, timeout: float | None = None) -> None:
        """End the job, and leave the group; wait at most `timeout` seconds for it."""
        with self._lock:
            self._stopping, end = True, self._end
        if end is not None:
            end(timeout)
        if self._thread is not threading.current_thread():
            self._thread.join(timeout)
        atexit.unregister(self.stop)

    def wait(self, timeout: float | None = None) -> Any:
        """The job's result; raises what the job raised, and `TimeoutError` if it goes on."""
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError("the job goes on")
        if self.error is not None:
            raise self.error
        return self.result

    async def ended(self) -> Any:
        """The same, in an event loop."""
        loop, over = asyncio.get_running_loop(), asyncio.Event()

        def tell() -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(over.set)

        with self._lock:
            self._over.append(tell)
        if not self._thread.is_alive():
            over.set()
        await over.wait()
        return self.wait(_EXIT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    # In the thread

    def _run(self) -> None:
        try:
            self.result = self._work()
        except (NotLeader, asyncio.CancelledError) as error:
            if not self._stopping:
                self.error = error
        except BaseException as error:
            self.error = error
        finally:
            with self._lock:
                self._end = None
                over = list(self._over)
            for tell in over:
                tell()

    def _work(self) -> Any:
        scheduled = self._scheduled
        if not scheduled.asynchronous:
            return scheduled.in_this_thread(self._opened)
        return asyncio.run(self._serve(scheduled.serve()))

    def _opened(self, member: blocking.Member) -> None:
        self._ends_by(member.close)

    async def _serve(self, serving: Coroutine[Any, Any, Any]) -> Any:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def end(timeout: float | None) -> None:
            with suppress(RuntimeError):  # the loop is closed: it has ended by itself
                loop.call_soon_threadsafe(task.cancel)

        try:
            self._ends_by(end)
        except BaseException:
            serving.close()
            raise
        return await serving

    def _ends_by(self, end: Callable[[float | None], None]) -> None:
        with self._lock:
            if self._stopping:
                raise NotLeader("it was stopped before it began")
            self._end = end


def _exit(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


@contextmanager
def _ended_by_sigterm(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """While this lasts, SIGTERM calls the handler, unless the program has one of its own."""
    own = signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    if own or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGTERM, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

"""`hustings.once`: a job that runs in one process of a group, with nothing else to write.

    @hustings.once("billing", every="5m")
    async def send_invoices(term):
        ...

    send_invoices.run()

The decorated function has four uses: `run` in a program that does nothing else, `start` for a
thread beside a program, `serve` inside an event loop, and a call, which is the plain function, for
tests. `run_jobs` runs several of them.

`Member.run` says what a job is. A period is not recorded anywhere: after a failover the next leader
runs the job at once.

A job that nobody waits for (`start`, and the web server's `hustings.asgi`) is not given up when the
group cannot be joined at once: the log says why, and it is tried again.

Law: decorating does nothing. No key is read, no thread and no socket is there before the job is run
or started, so a module with jobs can be imported anywhere, also before a fork.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import inspect
import os
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from types import FrameType, TracebackType
from typing import Any, Generic, ParamSpec, Self, TypeVar

from hustings import blocking
from hustings.blocking.loop import Flag
from hustings.core.durations import show_duration
from hustings.core.errors import BadInput, HustingsError, UnknownName, printable
from hustings.joining import join
from hustings.net.job import (
    GRACE,
    check_plain_function,
    error_words,
    is_coroutine_function,
    job_options,
)
from hustings.net.logs import ERROR, WARNING, MemberLog
from hustings.net.member import Member
from hustings.net.member_state import Leadership, NotLeader
from hustings.net.restarts import Restart, RestartPolicy, Restarts

P = ParamSpec("P")
R = TypeVar("R")

_EXIT_S = 2.0  # seconds that a job in a thread has when the interpreter exits
_STOPS = (signal.SIGINT, signal.SIGTERM)
_HOLD_S = 0.1  # for which a leader goes on after such a signal
_AGAIN_S = 1.0  # seconds until a group that could not be joined is tried again; this doubles
JOIN_OPTIONS = tuple(inspect.signature(join).parameters)[1:]


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
    grace_s = job_options(**running).grace_s
    for name in options:
        if name not in JOIN_OPTIONS:
            raise UnknownName("option", name, [*running, *JOIN_OPTIONS])

    def decorate(job: Callable[P, R]) -> ScheduledJob[P, R]:
        return ScheduledJob(group, job, running, options, grace_s)

    return decorate


class ScheduledJob(Generic[P, R]):
    """A job with its group. `hustings.once` makes it; a call is the plain function."""

    def __init__(
        self,
        group: str,
        job: Callable[P, R],
        running: Mapping[str, Any],
        options: Mapping[str, Any],
        grace_s: float,
    ) -> None:
        self.group = group
        self.function = job
        self._grace_s = grace_s
        self._running = dict(running)
        self._options = dict(options)
        self.asynchronous = is_coroutine_function(job)
        if not self.asynchronous:
            check_plain_function(job)
            del self._running["grace"]
        functools.update_wrapper(self, job)
        self._runs: Any = job  # in the function's place
        self._member: Member | blocking.Member | None = None  # of this process

    @property
    def state(self) -> Leadership | None:
        """Who leads the group, as this process knows; None unless the job is kept here."""
        member = self._member
        return None if member is None or member.closed else member.state

    @property
    def log(self) -> MemberLog:
        """Writes records about this job, also when there is no member."""
        return MemberLog(self.group, self.log_name)

    def tell_failed(self, error: BaseException) -> None:
        """Write that the job is over because of an error."""
        said = f"the job is over, and does not run again: {error_words(error)}"
        self.log.say(ERROR, "job-failed", said, error=error)

    def wrap(self, wrapper: Callable[[Callable[P, R]], Callable[P, R]]) -> None:
        """Run `wrapper(function)` in the function's place; a call is still the function itself."""
        self._runs = wrapper(self.function)

    def check(self, *, make_key: bool = True) -> None:
        """Read all options, and start nothing; `BadInput` says what is wrong.

        The local key is made where there is none yet. Without `make_key` nothing at all is made.
        """
        if make_key:
            join(self.group, **self._options)
            return
        from hustings.net.local_key import no_local_key_made  # noqa: PLC0415 (memory: few need it)

        with no_local_key_made():
            join(self.group, **self._options)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

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

    def start(self, *, until_signal: bool = False) -> RunningJob:
        """Join the group and run the job in a thread of its own; this returns at once.

        Call it in the process that is to run the job: after a fork, not before. A group that cannot
        be joined now is tried again.

        With `until_signal` the job also ends when the process is told to stop (SIGTERM, SIGINT) and
        the program has a handler for it: at once if this member waits to lead, after 0.1 s if it
        leads. For the workers of a server, which are told at one time: none of them then hands over
        to another one that is stopping.
        """
        self.check()
        running = RunningJob(self, retry=True)
        if until_signal:
            running.end_upon_signal()
        return running

    async def serve(self, *, retry: bool = False) -> Any:
        """Join the group, run the job until it has finished, and leave; its result.

        Inside an event loop. A plain function runs in a thread. Cancel this call to end the job:
        then it waits `grace` for a thread to end, too, and no longer. With `retry` a group that
        cannot be joined now is tried again.
        """
        self.check()
        if self.asynchronous:
            return await self._serve_here(retry)
        running = RunningJob(self, retry)
        try:
            await running.over()
        except asyncio.CancelledError:
            running.stop_soon()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._grace_s):
                    await running.over()
            if running.running:
                waited = show_duration(self._grace_s)
                said = f"the job goes on {waited} after it was asked to end; nothing waits for it"
                self.log.say(WARNING, "job-late", said)
            raise
        return running.wait(_EXIT_S)

    async def _serve_here(self, retry: bool) -> Any:
        with self._only_job_of_its_group():
            member = await self._joined_here(retry)
            try:
                with self._kept_by(member):
                    return await member.run(self._runs, **self._running)
            finally:
                await member.leave()

    async def _joined_here(self, retry: bool) -> Member:
        tries = _tries()
        while True:
            joining = join(self.group, **self._options)
            try:
                return await joining.open()
            except (HustingsError, OSError) as error:
                if not retry:
                    raise
                await asyncio.sleep(self._say_again(tries, error))

    def in_this_thread(self, running: RunningJob | None = None) -> Any:
        """Run a plain function here, until `running` is stopped."""
        with (
            self._only_job_of_its_group(),
            self._joined_in_thread(running) as member,
            self._kept_by(member),
        ):
            if running is not None:
                running.ends_by(member.close)
            return member.run(self._runs, **self._running)

    def _joined_in_thread(self, running: RunningJob | None) -> blocking.Member:
        tries = _tries()
        while True:
            joining = blocking.join(self.group, **self._options)
            try:
                return joining.open()
            except (HustingsError, OSError) as error:
                if running is None or not running.retry:
                    raise
                running.pause(self._say_again(tries, error))

    def _say_again(self, tries: Restarts, error: Exception) -> float:
        delay = tries.after(1, 0.0) or _AGAIN_S
        said = f"the group cannot be joined now: {printable(str(error))}; it is tried again in "
        self.log.say(WARNING, "not-joined", said + show_duration(delay))
        return delay

    @contextmanager
    def _kept_by(self, member: Member | blocking.Member) -> Iterator[None]:
        self._member = member
        try:
            yield
        finally:
            if self._member is member:
                self._member = None

    @contextmanager
    def _only_job_of_its_group(self) -> Iterator[None]:
        """Refuse a second job in a group: one member leads it, and the other job would never run.

        A forked child begins anew.
        """
        place = (os.getpid(), self.group)
        with _GROUPS_LOCK:
            users = _GROUPS.setdefault(place, [])
            check_groups([*users, self])
            users.append(self)
        try:
            yield
        finally:
            with _GROUPS_LOCK:
                users.remove(self)
                if not users:
                    _GROUPS.pop(place, None)

    @property
    def log_name(self) -> str:
        """The job's name in a sentence."""
        return str(getattr(self, "__name__", "job"))


class RunningJob:
    """A job that runs in a thread. Use it with `with`, or call `stop`."""

    def __init__(self, scheduled: ScheduledJob[Any, Any], retry: bool) -> None:
        self._scheduled = scheduled
        self.retry = retry  # whether a group that cannot be joined is tried again
        self._process = os.getpid()
        self._stopping = False
        self._signalled_at: float | None = None
        self._signals: SimpleQueue[None] = SimpleQueue()
        self._undo: Callable[[], None] | None = None  # gives signals back to the program
        self._stopped = Flag()
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
        if os.getpid() != self._process:
            return  # a forked child has no job
        self._hold()
        with self._lock:
            self._stopping, end = True, self._end
        self._stopped.set()
        if end is not None:
            end(timeout)
        if self._thread is not threading.current_thread():
            self._thread.join(timeout)
        atexit.unregister(self.stop)
        if self._undo is not None and threading.current_thread() is threading.main_thread():
            self._undo()

    def wait(self, timeout: float | None = None) -> Any:
        """The job's result; raises what the job raised, and `TimeoutError` if it goes on."""
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError("the job goes on")
        if self.error is not None:
            raise self.error
        return self.result

    def end_upon_signal(self) -> None:
        """Stop when the process is told to stop."""

        def tell() -> None:
            if self._signalled_at is None:
                self._signalled_at = time.monotonic()
                atexit.register(self.stop, _EXIT_S)  # before what was registered until now
            self._signals.put(None)

        def wait() -> None:
            self._signals.get()
            self.stop()

        self._undo = call_when_told_to_stop(tell)
        threading.Thread(target=wait, name=f"{self._thread.name} hears", daemon=True).start()
        self.when_over(functools.partial(self._signals.put, None))

    def _hold(self) -> None:
        """Lead on until the others have heard a signal that this process has heard."""
        state = self._scheduled.state
        if self._signalled_at is not None and state is not None and state.leading:
            self._thread.join(max(0.0, self._signalled_at + _HOLD_S - time.monotonic()))

    def stop_soon(self) -> None:
        """The same as `stop`, but return at once.

        Not on an executor of an event loop: the loop waits for such threads when it ends.
        """
        threading.Thread(target=self.stop, name=f"{self._thread.name} stops", daemon=True).start()

    async def over(self) -> None:
        """Wait, in an event loop, until the job is over."""
        loop, over = asyncio.get_running_loop(), asyncio.Event()

        def tell() -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(over.set)

        self.when_over(tell)
        await over.wait()

    def when_over(self, tell: Callable[[], object]) -> None:
        """Call `tell`, in some thread, when the job is over; maybe twice."""
        with self._lock:
            self._over.append(tell)
        if not self._thread.is_alive():
            tell()

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
            if self.retry:  # nobody waits for it
                self._scheduled.tell_failed(error)
        finally:
            with self._lock:
                self._end = None
                over = list(self._over)
            for tell in over:
                tell()

    def _work(self) -> Any:
        scheduled = self._scheduled
        if not scheduled.asynchronous:
            return scheduled.in_this_thread(self)
        return asyncio.run(self._serve(scheduled.serve(retry=self.retry)))

    def pause(self, seconds: float) -> None:
        """Wait, but not longer than until `stop` is called."""
        if self._stopped.wait(seconds):
            raise NotLeader("it was stopped before it began")

    async def _serve(self, serving: Coroutine[Any, Any, Any]) -> Any:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def end(timeout: float | None) -> None:
            with suppress(RuntimeError):  # the loop is closed: it has ended by itself
                loop.call_soon_threadsafe(task.cancel)

        try:
            self.ends_by(end)
        except BaseException:
            serving.close()
            raise
        return await serving

    def ends_by(self, end: Callable[[float | None], None]) -> None:
        """`stop` calls `end`; raises `NotLeader` if it was called already."""
        with self._lock:
            if self._stopping:
                raise NotLeader("it was stopped before it began")
            self._end = end


def run_jobs(jobs: Sequence[ScheduledJob[Any, Any]]) -> None:
    """Run several jobs, each in a thread of its own, until all of them are over.

    For a program that does nothing else. Ctrl-C and SIGTERM end the jobs, and their members leave
    in good order; a run of a plain function is waited for. If jobs have failed, one of their errors
    is raised when all are over.
    """
    check_groups(jobs)
    for job in jobs:
        job.check()
    running: list[RunningJob] = []
    over: SimpleQueue[RunningJob] = SimpleQueue()
    with _ended_by_sigterm(_exit):
        try:
            for job in jobs:
                running.append(RunningJob(job, retry=True))
                running[-1].when_over(functools.partial(over.put, running[-1]))
            waiting = list(running)
            while waiting:
                ended = over.get()
                waiting = [each for each in waiting if each is not ended]
        finally:
            for each in running:
                each.stop_soon()
            for each in running:
                each.stop()
    for each in running:
        each.wait()


_GROUPS: dict[tuple[int, str], list[ScheduledJob[Any, Any]]] = {}  # what runs, by process, group
_GROUPS_LOCK = threading.Lock()


def check_groups(jobs: Sequence[ScheduledJob[Any, Any]]) -> None:
    """Refuse two jobs of one group."""
    first: dict[str, ScheduledJob[Any, Any]] = {}
    for job in jobs:
        other = first.setdefault(job.group, job)
        if other.function is not job.function:
            raise BadInput(
                f"{other.log_name} and {job.log_name} are two jobs of group {job.group!r}: one "
                "member leads a group and runs its own job only, so give each job its own group"
            )


def call_when_told_to_stop(tell: Callable[[], object]) -> Callable[[], None]:
    """Call `tell` when this process gets a signal to stop; returns what undoes that.

    The program's own handler is called, too. Where there is none, the signal does what it did.
    `tell` runs as a handler: it must not wait for a lock.
    """
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    before = {number: signal.getsignal(number) for number in _STOPS}

    def heard(number: int, frame: FrameType | None) -> None:
        tell()
        handler = before[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    ours = [number for number, handler in before.items() if callable(handler)]
    for number in ours:
        signal.signal(number, heard)

    def undo() -> None:
        for number in ours:
            if signal.getsignal(number) is heard:
                signal.signal(number, before[number])

    return undo


def _tries() -> Restarts:
    return Restarts(RestartPolicy(Restart.ALWAYS, _AGAIN_S))


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

"""A virtual clock for asyncio: an event loop whose time jumps to the next timer.

Nothing sleeps. When no callback is ready, the clock is set to the deadline of the next timer, so an
hour of heartbeats takes as long as its callbacks do. Two timers of one deadline fire in the order
in which they were armed. Nothing here depends on the machine, its speed or a hash seed.

A run always ends. An error says so when nothing is left that could ever happen, when the run has
taken more virtual time or more callbacks than allowed, or when a callback fails. What needs the
real world (sockets, threads, processes) is refused. A guard in memory (`memory://`) that is used
here has the lease times of this clock, and shares nothing with other loops.

Members have a clock of their own (`MemberClock`), which usually shows the same time. Inside a
`skipping` block, while every group on the loop says that it is quiet, time jumps to the next timer
of a program. Meanwhile the clock of members stands still, so no member has anything to do.

>>> with asyncio.Runner(loop_factory=VirtualLoop) as runner:
...     runner.run(asyncio.sleep(3600))
...     runner.get_loop().time()
3600.0
"""

from __future__ import annotations

import asyncio
import heapq
import math
import socket
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import Context, ContextVar, copy_context
from typing import Any, NoReturn, TypeVar, TypeVarTuple

from hustings.core.errors import HustingsError
from hustings.guard.memory import Registers

MOST_SECONDS = 86_400.0  # of virtual time in one run
MOST_CALLBACKS = 20_000_000  # in one run: minutes of real time
LEAST_JUMP = 0.1  # seconds: less is played, since a jump costs about as much

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")


class Stuck(HustingsError):
    """Nothing is under way that could end the run."""


class RanTooLong(HustingsError):
    """The run took more virtual time, or more callbacks, than it may."""


class NotVirtual(HustingsError):
    """Something that only exists in the real world was asked of a virtual clock."""


class MemberProcess:
    """Callbacks that belong together, as those of one process do.

    A callback belongs to the process in whose context it was scheduled, and so does everything that
    it schedules. A method of an adopted object belongs to the process that adopted the object,
    whatever scheduled it. So a test may call a member from outside, and the member's timers still
    belong to the member.

    While a process is held, its callbacks wait, and so do its timers once they are due.
    """

    __slots__ = ("clock", "held", "name", "tasks")

    def __init__(self, name: str) -> None:
        self.name = name
        self.clock: DriftingClock | None = None  # its own, if clocks drift
        self.held: list[asyncio.Handle] | None = None  # what waits, if it is held
        self.tasks: dict[asyncio.Task[Any], None] = {}  # its coroutines that have not ended

    def context(self) -> Context:
        """A context whose callbacks are this process's."""
        context = copy_context()
        context.run(_process.set, self)
        context.run(_of_members.set, False)
        return context


_process: ContextVar[MemberProcess | None] = ContextVar("process", default=None)
_of_members: ContextVar[bool] = ContextVar("of_members", default=False)


def of_members(context: Context) -> Context:
    """The same context, marked as one of members: what happens in it is not a program's work."""
    context.run(_of_members.set, True)
    return context


def _owner(context: Context | None) -> MemberProcess | None:
    return _process.get() if context is None else context.get(_process)


class _Call(asyncio.Handle):
    """A callback that is ready."""

    __slots__ = ("loop", "process")

    def __init__(
        self,
        callback: Callable[..., object],
        args: Sequence[Any],
        loop: VirtualLoop,
        context: Context | None,
    ) -> None:
        super().__init__(callback, args, loop, context)
        self.process = loop.owner(callback, context)
        self.loop = loop

    def _run(self) -> None:
        if self.loop.admits(self, self.process):
            super()._run()


class _Timer(asyncio.TimerHandle):
    """A callback for later; of two with the same deadline, the one armed first is less."""

    __slots__ = ("loop", "process", "rank")
    _scheduled: bool  # the base class needs it: whether it lies in the loop's heap

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: Sequence[Any],
        loop: VirtualLoop,
        context: Context | None,
        place: int,
    ) -> None:
        super().__init__(when, callback, args, loop, context)
        self.process = loop.owner(callback, context)
        self.loop = loop
        self.rank = (when, place)

    def __lt__(self, other: asyncio.TimerHandle) -> bool:
        if isinstance(other, _Timer):
            return self.rank < other.rank
        return super().__lt__(other)

    def _run(self) -> None:
        if self.loop.admits(self, self.process):
            super()._run()


class _MemberTimer(_Timer):
    """A timer on the clock of members: it moves when time is skipped."""

    __slots__ = ("due",)
    _when: float

    def __init__(
        self,
        due: float,
        when: float,
        callback: Callable[..., object],
        args: Sequence[Any],
        loop: VirtualLoop,
        context: Context | None,
        place: int,
    ) -> None:
        super().__init__(when, callback, args, loop, context, place)
        self.due = due  # on the clock of members

    # The time is a part of the base class's hash, and changes here.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def move(self, when: float) -> None:
        """It fires at another time of the loop."""
        self._when = when
        self.rank = (when, self.rank[1])

    def _run(self) -> None:
        self.loop.member_clock.reached(self.due)
        super()._run()


class MemberClock:
    """The clock of all members on one loop: it stands still while the loop skips quiet time."""

    __slots__ = ("_latest", "_loop", "skipped", "used")

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._latest = 0.0  # so that it never runs back, whatever rounding does
        self.skipped = 0.0  # seconds so far
        self.used = 0.0  # when a program last made members do something

    def time(self) -> float:
        """Seconds that members have lived through."""
        now = self._loop.time()
        return max(now - self.skipped, self._latest) if self.skipped else now

    def call_later(
        self,
        delay: float,
        callback: Callable[[*_Ts], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call when `delay` seconds of this clock have passed."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*_Ts], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call at the time `when` of this clock."""
        if not _of_members.get():  # a program has called a member
            self.used = self.time()
            if context is None:
                context = of_members(copy_context())
        return self._loop.arm_for_members(when, when + self.skipped, callback, args, context)

    def reached(self, due: float) -> None:
        """A timer is due."""
        self._latest = max(self._latest, due)

    def skip(self, until: float) -> float:
        """Stand still until this time of the loop; the seconds that are skipped."""
        now, before = self.time(), self.skipped
        self._latest = now
        self.skipped = until - now
        return self.skipped - before


class DriftingClock:
    """The clock of one member, which is too fast or too slow by a constant rate.

    >>> from types import SimpleNamespace
    >>> DriftingClock(SimpleNamespace(time=lambda: 100.0), 1.01).time()
    101.0
    """

    __slots__ = ("_true", "rate")

    def __init__(self, true: MemberClock, rate: float) -> None:
        self._true = true
        self.rate = rate

    def time(self) -> float:
        """Seconds, as this clock counts them."""
        return self._true.time() * self.rate

    def call_later(
        self,
        delay: float,
        callback: Callable[[*_Ts], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call when `delay` seconds of this clock have passed."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*_Ts], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call at the time `when` of this clock, and not a rounding error before."""
        due = when / self.rate
        while due * self.rate < when:
            due = math.nextafter(due, math.inf)
        return self._true.call_at(due, callback, *args, context=context)


class _Jump:
    """Takes the place of a loop's selector: instead of waiting for sockets, it moves time."""

    __slots__ = ("_loop",)

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[object]:
        """Called before each round of callbacks; `timeout` is how long a real loop might wait."""
        self._loop.move(timeout)
        return []


def _refused(what: str) -> Callable[..., NoReturn]:
    """A method that a virtual loop cannot have."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise NotVirtual(f"{what} cannot be used on a virtual clock: {_ALONE}")

    return refuse


_ALONE = "nothing outside the test takes part in it"


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop in virtual time, which begins at 0.

    The limits hold for each run by itself, that is for each `run_until_complete`.
    """

    # Attributes of the base class; its round of callbacks reads these and the selector.
    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]
    _thread_id: int | None

    def __init__(
        self, *, most_seconds: float = MOST_SECONDS, most_callbacks: int = MOST_CALLBACKS
    ) -> None:
        super().__init__()
        self._selector = _Jump(self)
        self._now = 0.0
        self.registers = Registers(self.time)  # of guards in memory
        self.member_clock = MemberClock(self)
        self.quiet_checks: list[Callable[[], bool]] = []  # one of each group on this loop
        self._skipping = 0  # blocks that have not ended
        self._clock_resolution = math.ulp(0.0)  # a timer is due at its deadline, not before
        self._armed = 0
        self._most_seconds = most_seconds
        self._most_callbacks = most_callbacks
        self._began = 0.0
        self._callbacks = 0
        self._failure: BaseException | None = None
        self._held: dict[MemberProcess, None] = {}  # those held
        self._adopted: dict[int, tuple[object, MemberProcess]] = {}  # by identity

    def time(self) -> float:
        """Virtual seconds."""
        return self._now

    @property
    def clock_of_members(self) -> MemberClock | DriftingClock:
        """The clock of members; inside the process of a member whose clock drifts, that clock."""
        process = _process.get()
        own = None if process is None else process.clock
        return self.member_clock if own is None else own

    # Callbacks

    def call_soon(
        self, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """Call in the next round, at the same instant."""
        self._check_open()
        call = _Call(callback, args, self, context)
        self._ready.append(call)
        return call

    def call_at(
        self,
        when: float,
        callback: Callable[[*_Ts], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call at the time `when`."""
        self._check_open()
        if math.isnan(when):
            raise ValueError("a timer needs a time, and not-a-number is none")
        self._armed += 1
        timer = _Timer(when, callback, args, self, context, self._armed)
        heapq.heappush(self._scheduled, timer)
        timer._scheduled = True
        return timer

    def call_soon_threadsafe(
        self, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """The same as `call_soon`; another thread has no place in virtual time."""
        thread = self._thread_id
        if thread is not None and thread != threading.get_ident():
            raise NotVirtual(f"another thread cannot take part in virtual time: {_ALONE}")
        return self.call_soon(callback, *args, context=context)

    def create_task(
        self,
        coro: Generator[Any, None, _T] | Coroutine[Any, Any, _T],
        *,
        name: object = None,
        context: Context | None = None,
    ) -> asyncio.Task[_T]:
        """Run a coroutine beside the others."""
        task = super().create_task(coro, name=name, context=context)
        process = _owner(context)
        if process is not None:
            process.tasks[task] = None
            task.add_done_callback(lambda done: process.tasks.pop(done, None), context=context)
        return task

    def _check_open(self) -> None:
        if self.is_closed():
            raise RuntimeError("the virtual loop is closed")

    def arm_for_members(
        self,
        due: float,
        when: float,
        callback: Callable[[*_Ts], object],
        args: tuple[*_Ts],
        context: Context | None,
    ) -> asyncio.TimerHandle:
        """Call when the clock of members shows `due`: at `when`, unless time is skipped."""
        self._check_open()
        if math.isnan(when):
            raise ValueError("a timer needs a time, and not-a-number is none")
        self._armed += 1
        timer = _MemberTimer(due, when, callback, args, self, context, self._armed)
        heapq.heappush(self._scheduled, timer)
        timer._scheduled = True
        return timer

    # Quiet time

    @contextmanager
    def skipping(self) -> Iterator[None]:
        """A block in which quiet time is skipped."""
        self._skipping += 1
        try:
            yield
        finally:
            self._skipping -= 1

    def _skip(self) -> None:
        """If it is quiet, let members stand still until the next timer of a program."""
        if not isinstance(self._scheduled[0], _MemberTimer):
            return
        if not all(quiet() for quiet in self.quiet_checks):
            return
        programs = [
            timer.when()
            for timer in self._scheduled
            if not (isinstance(timer, _MemberTimer) or timer.cancelled())
        ]
        until = min(programs, default=self._now)
        if until - self._now < LEAST_JUMP:
            return
        self.registers.prolong(self.member_clock.skip(until))
        for timer in self._scheduled:
            if isinstance(timer, _MemberTimer):
                timer.move(timer.due + self.member_clock.skipped)
        heapq.heapify(self._scheduled)

    # Processes

    def adopt(self, thing: object, process: MemberProcess) -> None:
        """From now on, calls of this object's methods belong to the process."""
        self._adopted[id(thing)] = (thing, process)

    def owner(self, callback: object, context: Context | None) -> MemberProcess | None:
        """The process that a callback belongs to, if any."""
        _, process = self._adopted.get(id(getattr(callback, "__self__", None)), (None, None))
        return _owner(context) if process is None else process

    def hold(self, process: MemberProcess) -> None:
        """From now on, the callbacks of this process wait; holding twice is allowed."""
        if process.held is None:
            process.held = []
            self._held[process] = None

    def release(self, process: MemberProcess) -> None:
        """Run what has waited, in the order in which it was due."""
        if process.held is not None:
            self._ready.extend(process.held)
            process.held = None
            del self._held[process]

    def bury(self, process: MemberProcess) -> None:
        """Forget a held process: its code never runs again, but its coroutines are closed."""
        tasks = list(process.tasks)
        process.tasks.clear()
        self._held.pop(process, None)
        self._adopted = {key: each for key, each in self._adopted.items() if each[1] is not process}
        for task in tasks:
            quiet: Any = task
            quiet._log_destroy_pending = False  # it is meant never to end
            coroutine = task.get_coro()
            if isinstance(coroutine, Coroutine):
                with suppress(Exception):  # a coroutine may want to wait here: too late
                    coroutine.close()

    def admits(self, handle: asyncio.Handle, process: MemberProcess | None) -> bool:
        """Count a callback that is about to run; a callback of a held process waits instead."""
        if process is not None and process.held is not None:
            process.held.append(handle)
            return False
        self._callbacks += 1
        return True

    # Runs

    def run_forever(self) -> None:
        """Run until stopped, or until an error says why it cannot go on."""
        self._began = self._now
        self._callbacks = 0
        super().run_forever()
        self._raise_failure()

    def move(self, timeout: float | None) -> None:
        """Advance time if nothing is ready."""
        self._raise_failure()
        if self._callbacks > self._most_callbacks:
            raise RanTooLong(
                f"{self._most_callbacks:,} callbacks have run and the end is not reached: "
                f"virtual time stands at {self._now:g} s"
            )
        if timeout is None:
            raise Stuck(self._standstill())
        if timeout > 0:
            if self._skipping:
                self._skip()
            following = self._scheduled[0].when()
            if following - self._began > self._most_seconds:
                raise RanTooLong(
                    f"{self._most_seconds:g} s of virtual time have passed and the end is not "
                    "reached"
                )
            self._now = following
            self._clock_resolution = math.ulp(following)

    def _standstill(self) -> str:
        sentence = f"stuck at {self._now:g} s of virtual time: no callback and no timer is left"
        waiting = [process for process in self._held if process.held]
        if waiting:
            names = ", ".join(process.name for process in waiting)
            sentence += f", but what {names} would do, which is held back"
        return sentence

    # Failures

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """A callback that failed ends the run; the rest is logged, as in any loop."""
        error = context.get("exception")
        if "handle" in context and isinstance(error, BaseException):
            self._failure = self._failure or error
        else:
            super().default_exception_handler(context)

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    # Methods that a loop of the real world has, and this one refuses

    async def getaddrinfo(
        self,
        host: bytes | str | None,
        port: bytes | str | int | None,
        *,
        family: int = 0,
        type: int = 0,
        proto: int = 0,
        flags: int = 0,
    ) -> Any:
        """Accept only numbers: there is no name service to ask."""
        try:
            return socket.getaddrinfo(
                host, port, family, type, proto, flags | socket.AI_NUMERICHOST
            )
        except socket.gaierror:
            raise NotVirtual(
                f"{host!r} cannot be looked up on a virtual clock: give hosts by number"
            ) from None

    def run_in_executor(
        self, executor: Any, func: Callable[[*_Ts], object], *args: *_Ts
    ) -> NoReturn:
        """Refused, as are all methods below."""
        _refused("a thread")()

    def add_signal_handler(
        self, sig: int, callback: Callable[[*_Ts], Any], *args: *_Ts
    ) -> NoReturn:
        _refused("a signal")()

    def add_reader(self, fd: Any, callback: Callable[[*_Ts], Any], *args: *_Ts) -> NoReturn:
        _refused("a file descriptor")()

    def add_writer(self, fd: Any, callback: Callable[[*_Ts], Any], *args: *_Ts) -> NoReturn:
        _refused("a file descriptor")()

    set_default_executor = _refused("a thread")
    subprocess_exec = _refused("a process")
    subprocess_shell = _refused("a process")
    remove_signal_handler = _refused("a signal")
    getnameinfo = _refused("a name server")
    connect_read_pipe = _refused("a pipe")
    connect_write_pipe = _refused("a pipe")
    remove_reader = _refused("a file descriptor")
    remove_writer = _refused("a file descriptor")
    create_connection = _refused("a socket")
    create_server = _refused("a socket")
    create_unix_connection = _refused("a socket")
    create_unix_server = _refused("a socket")
    create_datagram_endpoint = _refused("a socket")
    connect_accepted_socket = _refused("a socket")
    start_tls = _refused("a socket")
    sendfile = _refused("a socket")
    sock_accept = _refused("a socket")
    sock_connect = _refused("a socket")
    sock_recv = _refused("a socket")
    sock_recv_into = _refused("a socket")
    sock_recvfrom = _refused("a socket")
    sock_recvfrom_into = _refused("a socket")
    sock_sendall = _refused("a socket")
    sock_sendfile = _refused("a socket")
    sock_sendto = _refused("a socket")

    def _process_events(self, _: list[object]) -> None:
        """There are no events."""

    def _write_to_self(self) -> None:
        """No thread waits that would have to be woken."""

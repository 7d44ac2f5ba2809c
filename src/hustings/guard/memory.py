"""A guard within this process: for tests, and for members that all live here.

    guard = make_guard("memory://", "billing")

All guards of one process with the same address and group share one register, in every thread and
event loop. `memory://other` is another set of registers. A virtual event loop is a world of its
own: it has its own registers, and its clock measures their leases. Tests control a guard: it can be
cut off, one way or both, and its answers can be delayed. The register's clock has a rate.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Protocol, TypeVar, runtime_checkable
from weakref import WeakSet

from hustings.guard.base import (
    Behind,
    Floor,
    Guarantees,
    Guard,
    HeldBy,
    Holder,
    Holding,
    NotGranted,
    Unreachable,
)
from hustings.guard.observer import SeenLease, follow
from hustings.guard.pending_releases import PendingReleases
from hustings.guard.urls import NET_S, TIMEOUT_S, GuardUrl, seconds

T = TypeVar("T")

NO_FLOOR = Floor()


class Register:
    """The holder, its token and the end of its lease: the whole law of a guard.

    Every method is one step, also between threads. Every change calls those that wait.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.rate = 1.0  # of its clock; a test may set it before the first question
        self.stopped = False  # then no guard reaches it
        self._lock = threading.Lock()
        self._holder: Holder | None = None
        self._token = 0
        self._base = 0  # all later tokens are larger
        self._ttl = 0.0  # the time that the holder asked for last
        self._until = 0.0  # by the register's own clock
        # the holder for which it is reserved, and until when
        self._successor: tuple[str, float] | None = None
        self._waiting: dict[int, Callable[[], None]] = {}
        self._numbers = 0
        self._guards: WeakSet[MemoryGuard] = WeakSet()  # those that may still ask

    @property
    def in_use(self) -> bool:
        """Whether a guard that is not closed belongs to this register."""
        with self._lock:
            return bool(self._guards)

    def connect(self, guard: MemoryGuard) -> None:
        with self._lock:
            self._guards.add(guard)

    def disconnect(self, guard: MemoryGuard) -> None:
        with self._lock:
            self._guards.discard(guard)

    def now(self) -> float:
        return self.rate * self._clock()

    def acquire(self, holder: Holder, ttl: float, floor: Floor = NO_FLOOR) -> int | HeldBy | Behind:
        with self._lock:
            now = self.now()
            if self._holder is not None and now < self._until:
                if self._holder != holder:
                    return HeldBy(self._holder.name, self._token, self._until - now)
                if self._token >= floor.known:
                    self._extend(now, ttl)
                    return self._token
            if self._successor is not None:
                name, until = self._successor
                if name != holder.name and now < until:
                    return HeldBy(name, 0, until - now)
            last = max(self._token, self._base)
            if last < floor.known:
                if not floor.lift:
                    return Behind(last)
                last = self._base = floor.known
            self._holder, self._token, self._successor = holder, last + 1, None
            self._until = now
            self._extend(now, ttl)
            self._wake()
            return self._token

    def renew(self, holder: Holder, token: int, ttl: float) -> bool:
        with self._lock:
            now = self.now()
            held = (self._holder, self._token) == (holder, token) and now < self._until
            if held:
                self._extend(now, ttl)
            return held

    def release(self, holder: Holder, token: int, to: str | None) -> None:
        with self._lock:
            if (self._holder, self._token) == (holder, token):
                self._holder = None
                self._successor = None if to is None else (to, self.now() + self._ttl)
                self._wake()

    def prolong(self, seconds: float) -> None:
        """Go on as if the holder had renewed its lease all this time; for tests."""
        with self._lock:
            self._until += self.rate * seconds

    def recover(self, above: int) -> None:
        with self._lock:
            self._base = max(self._base, above)

    def forget(self) -> None:
        """Lose all data, like an engine that keeps nothing on disk; for tests."""
        with self._lock:
            self._holder, self._token, self._base, self._successor = None, 0, 0, None
            self._wake()

    def look(self) -> SeenLease:
        with self._lock:
            remaining = self._until - self.now()
            if self._holder is None or remaining <= 0:
                return SeenLease(Holding(None, self._token), 0.0)
            return SeenLease(Holding(self._holder.name, self._token), remaining)

    def attend(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` at every change, in the thread that makes it.

        The returned function ends this.
        """
        with self._lock:
            self._numbers += 1
            number = self._numbers
            self._waiting[number] = wake
        return lambda: self._unattend(number)

    def _unattend(self, number: int) -> None:
        with self._lock:
            self._waiting.pop(number, None)

    def _extend(self, now: float, ttl: float) -> None:
        self._ttl = ttl
        self._until = max(self._until, now + ttl)

    def _wake(self) -> None:
        for wake in list(self._waiting.values()):
            wake()


class Registers:
    """All registers that can be reached from one place, by address and group."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._made: dict[tuple[str, str], Register] = {}
        self._making = threading.Lock()

    def of(self, space: str, group: str) -> Register:
        """The register that all guards with this address share."""
        with self._making:
            return self._made.setdefault((space, group), Register(self._clock))

    def within(self, space: str) -> list[Register]:
        """All registers of one address, for tests to stop."""
        with self._making:
            return [each for (where, _), each in self._made.items() if where == space]

    def all(self) -> list[Register]:
        """All registers."""
        with self._making:
            return list(self._made.values())

    def prolong(self, seconds: float) -> None:
        """Go on as if all holders had renewed their leases all this time; for tests."""
        for register in self.all():
            register.prolong(seconds)

    def drop_unused(self) -> None:
        """Forget the registers whose guards are all closed, with their leases and tokens."""
        with self._making:
            self._made = {place: each for place, each in self._made.items() if each.in_use}


@runtime_checkable
class OwnRegisters(Protocol):
    """An event loop whose registers nothing outside it shares."""

    registers: Registers


_OF_THIS_PROCESS = Registers()


def _registers_here() -> Registers:
    """Those of the running event loop if it has its own, otherwise those of this process."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return _OF_THIS_PROCESS
    return loop.registers if isinstance(loop, OwnRegisters) else _OF_THIS_PROCESS


def register_of(space: str, group: str) -> Register:
    """The register that all guards here with this address share."""
    return _registers_here().of(space, group)


def registers_in(space: str) -> list[Register]:
    """All registers of one address, for tests to stop."""
    return _registers_here().within(space)


def drop_unused_registers() -> None:
    """Forget what no open guard of this process needs, so that one test leaves nothing to the next.

    Tokens begin again there, so only call it where nothing remembers them.
    """
    _OF_THIS_PROCESS.drop_unused()


class MemoryGuard(Guard):
    """One member's connection to a register. Tests set its attributes."""

    guarantees = Guarantees(
        monotone=True,
        proviso="tokens begin again with the process, and so does every member that could hold one",
        clock="this process",
    )
    lifts = recovers = True
    outlives = False

    def __init__(
        self,
        register: Register | Callable[[], Register],
        *,
        timeout: float = TIMEOUT_S,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """A function that finds the register is called at the first question."""
        super().__init__(clock=clock)
        self._find = register
        self._found: Register | None = None
        self.timeout = timeout
        self.cut = False  # questions do not arrive
        self.deaf = False  # questions arrive, answers do not
        self.delay = 0.0  # of answers, in seconds
        self._returns = PendingReleases()

    @property
    def register(self) -> Register:
        """Where the lease is kept."""
        if self._found is None:
            self._found = self._find if isinstance(self._find, Register) else self._find()
            self._found.connect(self)
        return self._found

    async def open(self) -> None:
        self.register.connect(self)  # again, if it was closed before
        await self._ask(self.register.look)

    async def close(self) -> None:
        if self._found is not None:
            self._found.disconnect(self)

    async def _acquire(self, holder: Holder, ttl: float, floor: Floor) -> int | HeldBy | Behind:
        await self._returns.settle(holder, self._release)
        return await self._ask(partial(self.register.acquire, holder, ttl, floor))

    async def _renew(self, holder: Holder, token: int, ttl: float) -> None:
        if not await self._ask(partial(self.register.renew, holder, token, ttl)):
            raise NotGranted(f"{holder} does not hold token {token} any more")

    async def _release(self, holder: Holder, token: int, to: str | None) -> None:
        self._returns.sent(holder, token)
        await self._ask(partial(self.register.release, holder, token, to))
        self._returns.confirmed(holder, token)

    async def _recover(self, above: int) -> None:
        await self._ask(partial(self.register.recover, above))

    def _observe(self) -> AsyncIterator[Holding]:
        return follow(self._attend, NET_S)

    @asynccontextmanager
    async def _attend(self) -> AsyncIterator[_Attention]:
        loop, changed = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(changed.set)

        end = self.register.attend(wake)
        try:
            yield _Attention(self, changed)
        finally:
            end()

    async def _ask(self, question: Callable[[], T]) -> T:
        """Ask a question, over a connection that tests can disturb."""
        if self.cut or self.register.stopped:
            await asyncio.sleep(self.timeout)
            raise Unreachable("the register in memory is cut off")
        answer = question()
        if self.deaf or self.delay >= self.timeout:
            await asyncio.sleep(self.timeout)
            raise Unreachable("the answer of the register in memory is cut off")
        await asyncio.sleep(self.delay)
        return answer


class _Attention:
    """An observer's connection."""

    def __init__(self, guard: MemoryGuard, changed: asyncio.Event) -> None:
        self._guard = guard
        self._changed = changed

    async def look(self) -> SeenLease:
        self._changed.clear()
        return await self._guard._ask(self._guard.register.look)

    async def wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            pass


def make(url: GuardUrl, group: str) -> Guard:
    """`memory://`, or `memory://name` for registers apart; option `timeout` (seconds)."""
    url.only("timeout")
    space = ",".join(host for host, _ in url.hosts)
    return MemoryGuard(
        partial(register_of, space, group), timeout=seconds(url, "timeout", TIMEOUT_S)
    )

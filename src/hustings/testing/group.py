"""A group for your own tests: real members, a virtual clock, a network in memory, one seed.

    def test_failover() -> None:
        with Group(seed=7) as group:
            for name in ("a", "b", "c"):
                group.join(name)
            leader = group.settle()
            group.kill(leader)
            assert group.settle() != leader

Only virtual time passes, and only inside these calls. The same seed gives the same run, to the last
datagram.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from hustings.core.errors import BadInput
from hustings.joining import PROTOCOL
from hustings.net.member import Member
from hustings.protocols.registry import Protocol
from hustings.testing.async_group import WITHIN, AsyncGroup, Logged, MemberChange, Program
from hustings.testing.clock import MOST_CALLBACKS, MOST_SECONDS, VirtualLoop
from hustings.testing.faults import Fault
from hustings.testing.memory_network import Conditions, MemoryNetwork

if TYPE_CHECKING:
    from hustings.sim.environment import Environment

_T = TypeVar("_T")


def _environment(given: Environment | str | Path | None) -> Environment | None:
    if given is None:
        return None
    from hustings.sim.environment import environment_of  # noqa: PLC0415 (few need it)

    return environment_of(given)


class Group:
    """Members that share a process, a virtual clock and a network in memory.

    Plain code calls the methods that wait: `join`, `restart`, `leave`, `settle`, `advance`, `run`.
    Inside a coroutine on the group's clock, `inside` has the same methods, to be awaited.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        protocol: Protocol = PROTOCOL,
        group: str = "test",
        delay: float | tuple[float, float] = 0.001,
        loss: float = 0.0,
        duplicate: float = 0.0,
        reorder: float = 0.0,
        environment: Environment | str | Path | None = None,
        most_seconds: float = MOST_SECONDS,
        most_callbacks: int = MOST_CALLBACKS,
        **options: Any,
    ) -> None:
        """Delays are in seconds, the rest are probabilities; options go to `hustings.join`.

        An `environment` (a value, a file, or the text of one) says all of this instead, for each
        link, and lets members pause, crash and come back, sites fail, and clocks drift. Members are
        at its sites in the order of joining.
        """
        conditions = Conditions(delay, loss, duplicate, reorder)
        if environment is not None and conditions != Conditions():
            raise BadInput(
                "the environment decides on delay, loss, copies and reordering: leave them out"
            )
        around = _environment(environment)
        self._loop = VirtualLoop(most_seconds=most_seconds, most_callbacks=most_callbacks)
        try:
            self.inside = AsyncGroup(
                self._loop, seed, group, conditions, {"protocol": protocol, **options}, around
            )
        except BadInput:
            self._loop.close()
            raise

    # Questions

    @property
    def now(self) -> float:
        """Virtual seconds since the group began."""
        return self.inside.now

    @property
    def log(self) -> list[Logged]:
        """Each change of a member's view of the leader, with its time."""
        return self.inside.log

    @property
    def leaders(self) -> list[str]:
        """The members that are up and take themselves for the leader, in the order of joining."""
        return self.inside.leaders

    @property
    def up(self) -> list[str]:
        """The members that are up, paused or not, in the order of joining."""
        return self.inside.up

    @property
    def network(self) -> MemoryNetwork:
        """The network, with its counts of datagrams."""
        return self.inside.network

    @property
    def changes(self) -> list[MemberChange]:
        """What has been done to members: who joined, left, was killed, paused or resumed, when."""
        return self.inside.changes

    def wire(self, name: str) -> tuple[int, int]:
        """Bytes that a member has sent and received, with headers of IP and UDP."""
        return self.inside.wire(name)

    def member(self, name: str) -> Member:
        """A member by name, in its latest incarnation."""
        return self.inside.member(name)

    # Methods that take virtual time

    def join(self, name: str, **options: Any) -> Member:
        """A new member; options are those of `hustings.join`, and go before the group's own."""
        return self._wait("join", lambda: self.inside.join(name, **options))

    def start(
        self, names: Iterable[str], program: Program | None = None, **options: Any
    ) -> list[Member]:
        """New members, each of which runs a program: now, and again whenever it restarts."""
        return self._wait("start", lambda: self.inside.start(names, program, **options))

    def restart(self, name: str, **options: Any) -> Member:
        """A new incarnation at the same place; a member that is up is killed first."""
        return self._wait("restart", lambda: self.inside.restart(name, **options))

    def leave(self, name: str) -> None:
        """A member departs in good order."""
        self._wait("leave", lambda: self.inside.leave(name))

    def settle(
        self, among: Iterable[str] | None = None, *, within: float = WITHIN, steady: float = 0.0
    ) -> str:
        """Wait until all members agree on a leader that agrees too; return its name.

        The members asked are those given, or all that are up and not paused. The agreement must
        last for `steady` seconds, and must begin `within` this many; otherwise `NotSettled` says
        what each member believes.
        """
        return self._wait("settle", lambda: self.inside.settle(among, within=within, steady=steady))

    def inject(self, faults: Sequence[Fault]) -> None:
        """Let faults happen; at the end all of them are put right."""
        self._wait("inject", lambda: self.inside.inject(faults))

    def advance(self, seconds: float, *, skip_quiet: bool = False) -> None:
        """Let virtual time pass; with `skip_quiet`, skip the time in which nothing happens.

        Members stand still then, as if all machines were suspended, until a program or a fault does
        something. `NotQuiet` says why time cannot be skipped now.
        """
        self._wait("advance", lambda: self.inside.advance(seconds, skip_quiet=skip_quiet))

    def run(self, work: Awaitable[_T]) -> _T:
        """Run a coroutine, or await a task, on the group's clock."""
        if self._loop.is_running():
            raise BadInput("the group's clock is running already: await it")
        return self._loop.run_until_complete(work)

    # Methods that take no time

    def kill(self, name: str, *, machine: bool = False) -> None:
        """End a member's process without a farewell; with `machine`, its whole machine."""
        self.inside.kill(name, machine=machine)

    def pause(self, name: str) -> None:
        """A member's process stands still: its messages and its timers wait."""
        self.inside.pause(name)

    def resume(self, name: str) -> None:
        """It continues, and gets everything that has waited."""
        self.inside.resume(name)

    def partition(self, *sides: Iterable[str]) -> None:
        """Members of different sides cannot reach each other; members on no side reach all."""
        self.inside.partition(*sides)

    def cut(self, sender: str, to: str) -> None:
        """What one sends no longer reaches the other; the way back stays open."""
        self.inside.cut(sender, to)

    def isolate(self, name: str) -> None:
        """A member can reach no other one, and no other one can reach it."""
        self.inside.isolate(name)

    def reconnect(self, name: str) -> None:
        """Undo all cuts to and from a member."""
        self.inside.reconnect(name)

    def heal(self) -> None:
        """Undo all partitions and cuts."""
        self.inside.heal()

    def weather(self, **conditions: Any) -> None:
        """From now on the network has other delays, loss, duplicates or reordering."""
        self.inside.weather(**conditions)

    def spawn(self, name: str, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        """Run code in a member's process: the code stands still and ends with the member."""
        return self.inside.spawn(name, work)

    # The end

    def close(self) -> None:
        """Let all members leave; raise an error of spawned code that the test has not looked at."""
        if self._loop.is_closed():
            return
        try:
            self._loop.run_until_complete(self.inside.close())
        finally:
            self._loop.close()
        neglected = self.inside.neglected()
        if neglected is not None:
            raise neglected

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except Exception:
            if error is None:
                raise  # otherwise the first error matters

    def _wait(self, what: str, make: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        if self._loop.is_running():
            raise BadInput(f"inside a coroutine, await group.inside.{what}(...) instead")
        if self._loop.is_closed():
            raise BadInput("the group is closed: use it inside its with block")
        return self._loop.run_until_complete(make())

"""A group for tests of one's own: real members, a virtual clock, a network in memory, one seed.

    def test_failover() -> None:
        with Group(seed=7) as group:
            for name in ("a", "b", "c"):
                group.join(name)
            leader = group.settle()
            group.kill(leader)
            assert group.settle() != leader

No time passes but virtual time, and that only inside these calls. The same seed gives the same
story to the last datagram.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from types import TracebackType
from typing import Any, Self, TypeVar

from hustings.core.errors import BadInput
from hustings.joining import PROTOCOL
from hustings.net.member import Member
from hustings.protocols.registry import Protocol
from hustings.testing.async_group import WITHIN, AsyncGroup, Logged
from hustings.testing.clock import MOST_CALLBACKS, MOST_SECONDS, VirtualLoop
from hustings.testing.memory_network import Conditions, MemoryNetwork

_T = TypeVar("_T")


class Group:
    """Members that share a process, a virtual clock and a network in memory.

    What waits is called from plain code: `join`, `restart`, `leave`, `settle`, `advance`, `run`.
    Inside a coroutine on the group's clock, `inside` has the same to be awaited.
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
        most_seconds: float = MOST_SECONDS,
        most_callbacks: int = MOST_CALLBACKS,
        **options: Any,
    ) -> None:
        """Delays are in seconds, the rest are probabilities; options go to `hustings.join`."""
        conditions = Conditions(delay, loss, duplicate, reorder)
        self._loop = VirtualLoop(most_seconds=most_seconds, most_callbacks=most_callbacks)
        self.inside = AsyncGroup(
            self._loop, seed, group, conditions, {"protocol": protocol, **options}
        )

    # What one may ask

    @property
    def now(self) -> float:
        """Virtual seconds since the group began."""
        return self.inside.now

    @property
    def log(self) -> list[Logged]:
        """Who came to which opinion, and when."""
        return self.inside.log

    @property
    def leaders(self) -> list[str]:
        """Who takes part and believes to lead, in the order of joining."""
        return self.inside.leaders

    @property
    def up(self) -> list[str]:
        """Who takes part, paused or not, in the order of joining."""
        return self.inside.up

    @property
    def network(self) -> MemoryNetwork:
        """The network, with its tally of datagrams."""
        return self.inside.network

    def member(self, name: str) -> Member:
        """A member by name, in its latest incarnation."""
        return self.inside.member(name)

    # What takes time

    def join(self, name: str, **options: Any) -> Member:
        """A new member; options are those of `hustings.join`, and go before the group's own."""
        return self._wait("join", lambda: self.inside.join(name, **options))

    def restart(self, name: str, **options: Any) -> Member:
        """A new incarnation at the same place; a member that is up is killed first."""
        return self._wait("restart", lambda: self.inside.restart(name, **options))

    def leave(self, name: str) -> None:
        """A member departs in good order."""
        self._wait("leave", lambda: self.inside.leave(name))

    def settle(
        self, among: Iterable[str] | None = None, *, within: float = WITHIN, steady: float = 0.0
    ) -> str:
        """Until all members agree who leads, and that one does too; its name.

        Asked are all that are up and not paused, or those given. The agreement must last for
        `steady` seconds, and be there `within` this many, else `NotSettled` says who believes what.
        """
        return self._wait("settle", lambda: self.inside.settle(among, within=within, steady=steady))

    def advance(self, seconds: float) -> None:
        """Let virtual time pass."""
        self._wait("advance", lambda: self.inside.advance(seconds))

    def run(self, work: Awaitable[_T]) -> _T:
        """Run a coroutine, or await a task, on the group's clock."""
        if self._loop.is_running():
            raise BadInput("the group's clock is running already: await it")
        return self._loop.run_until_complete(work)

    # What takes none

    def kill(self, name: str, *, machine: bool = False) -> None:
        """A member's process ends without a word; or, beyond that, its whole machine."""
        self.inside.kill(name, machine=machine)

    def pause(self, name: str) -> None:
        """A member's process stands still: what comes for it waits, and so do its timers."""
        self.inside.pause(name)

    def resume(self, name: str) -> None:
        """It goes on, and finds everything that has waited."""
        self.inside.resume(name)

    def partition(self, *sides: Iterable[str]) -> None:
        """Members of different sides cannot reach each other; others reach all."""
        self.inside.partition(*sides)

    def cut(self, sender: str, to: str) -> None:
        """What one sends does not reach the other any more; the way back stays open."""
        self.inside.cut(sender, to)

    def heal(self) -> None:
        """All partitions and cuts are undone."""
        self.inside.heal()

    def weather(self, **conditions: Any) -> None:
        """From now on the network has other delays, loss, duplicates or reordering."""
        self.inside.weather(**conditions)

    def spawn(self, name: str, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        """Run code in a member's process: it stands still and ends with the member."""
        return self.inside.spawn(name, work)

    # The end

    def close(self) -> None:
        """Everybody leaves; an error of spawned code that nobody has looked at is raised."""
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
                raise  # else what went wrong first is what matters

    def _wait(self, what: str, make: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        if self._loop.is_running():
            raise BadInput(f"inside a coroutine, await group.inside.{what}(...) instead")
        if self._loop.is_closed():
            raise BadInput("the group is closed: use it inside its with block")
        return self._loop.run_until_complete(make())

"""The members of a group in virtual time, for code that runs on the group's own clock.

`Group` is the same for plain tests. Each member is a real one, as `hustings.join` makes it; only
the network below it is in memory. Everything that belongs to a member (its timers, what arrives for
it, code that was spawned in it) belongs to one process. A test can hold this process, or end it
without a farewell.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from hustings.core.errors import BadInput, HustingsError, UnknownName
from hustings.core.streams import Stream, derive
from hustings.joining import join
from hustings.net.member import Member
from hustings.net.member_state import Leadership
from hustings.net.transport import Endpoint
from hustings.testing.clock import DriftingClock, MemberProcess, VirtualLoop, of_members
from hustings.testing.faults import LEADER, Fault
from hustings.testing.memory_network import (
    FIRST_PORT,
    Conditions,
    MemoryNetwork,
    MemoryTransport,
)
from hustings.testing.quiet import NotQuiet, QuietTime

if TYPE_CHECKING:
    from hustings.sim.environment import Environment
    from hustings.testing.surroundings import LinkLaws, MemberChance

SEEDS = 5  # members whose addresses a new member gets
WITHIN = 60.0  # seconds in which a group should agree
_HOST = "127.0.0.1"  # where members are; nothing is opened there

_T = TypeVar("_T")
Program = Callable[[Member], Coroutine[Any, Any, object]]


class NotSettled(HustingsError):
    """The members did not agree in time."""


class Logged(NamedTuple):
    """A member's view of the leader, and the time of the change."""

    time: float
    member: str
    state: Leadership


class MemberChange(NamedTuple):
    """What has been done to a member, and when."""

    time: float
    member: str
    what: str  # joined, left, killed, paused or resumed


class _Seat:
    """A name in the group, with its place on the network and its present process."""

    def __init__(self, name: str, endpoint: Endpoint, options: Mapping[str, Any]) -> None:
        self.name = name
        self.endpoint = endpoint
        self.options = dict(options)
        self.incarnations = 0
        self.member: Member | None = None  # the latest
        self.holder: _Holder | None = None  # None while the member is down
        self.ending: asyncio.Task[None] | None = None
        self.returning: asyncio.Task[None] | None = None  # it restarts by itself
        self.program: Program | None = None  # what every process of it runs

    @property
    def address(self) -> str:
        return f"{self.endpoint[0]}:{self.endpoint[1]}"


class _Holder:
    """One process of a member."""

    def __init__(self, process: MemberProcess, transport: MemoryTransport, member: Member) -> None:
        self.process = process
        self.transport = transport
        self.member = member
        self.recording: asyncio.Task[None] | None = None


class AsyncGroup:
    """A group whose members share a process, a virtual clock and a network in memory."""

    def __init__(
        self,
        loop: VirtualLoop,
        seed: int,
        label: str,
        conditions: Conditions,
        options: Mapping[str, Any],
        environment: Environment | None = None,
    ) -> None:
        self.loop = loop
        self.seed = seed
        self.label = label
        self.environment = environment
        laws = None
        if environment is not None:
            from hustings.testing.surroundings import LinkLaws  # noqa: PLC0415 (few need it)

            laws = LinkLaws(environment)
        self.network = MemoryNetwork(loop, derive(seed, "network"), conditions, laws=laws)
        self.log: list[Logged] = []
        self.changes: list[MemberChange] = []
        self.joining = 0  # members that are about to join
        self._options = dict(options)
        self._seats: dict[str, _Seat] = {}
        self._context = copy_context()  # for work that belongs to no member
        self._stirred = asyncio.Event()
        self._buried: list[MemberProcess] = []
        self._spawned: list[asyncio.Task[Any]] = []
        self._chance = self._by_chance(laws)
        self._quiet = QuietTime(self)
        loop.quiet_checks.append(self._quiet.lasts)

    # Questions

    @property
    def now(self) -> float:
        """Virtual seconds since the group began."""
        return self.loop.time()

    @property
    def up(self) -> list[str]:
        """The members that are up, paused or not, in the order of joining."""
        return [name for name, seat in self._seats.items() if seat.holder is not None]

    @property
    def paused(self) -> list[str]:
        """The members that are paused."""
        return [name for name in self.up if self._holder(name).process.held is not None]

    @property
    def running(self) -> dict[str, Member]:
        """The members that are up by name, paused or not, in the order of joining."""
        return {name: self._holder(name).member for name in self.up}

    @property
    def leaders(self) -> list[str]:
        """The members that are up and take themselves for the leader, in the order of joining."""
        return [name for name in self.up if self._holder(name).member.is_leader]

    def member(self, name: str) -> Member:
        """A member by name, in its latest process."""
        member = self._seat(name).member
        if member is None:
            raise BadInput(f"{name!r} never came to join")
        return member

    # Joining, leaving, crashing

    async def join(self, name: str, **options: Any) -> Member:
        """A new member; options are those of `hustings.join`, and go before the group's own."""
        if name in self._seats:
            raise BadInput(f"{name!r} has joined before: restart it, or choose another name")
        seat = _Seat(name, (_HOST, FIRST_PORT + len(self._seats)), options)
        try:
            self._seats[name] = seat
            return await self._open(seat)
        except BaseException:
            del self._seats[name]  # it never joined
            raise

    async def start(
        self, names: Iterable[str], program: Program | None = None, **options: Any
    ) -> list[Member]:
        """New members, each of which runs a program: now, and again whenever it restarts."""
        members = []
        for name in names:
            members.append(await self.join(name, **options))
            self._seat(name).program = program
            self._run_program(name)
        return members

    async def restart(self, name: str, **options: Any) -> Member:
        """A new process at the same place; a member that is up is killed first."""
        seat = self._seat(name)
        if seat.returning is not None:
            await seat.returning
        if seat.holder is not None:
            self.kill(name)
        seat.options.update(options)
        return await self._restart(seat)

    async def _restart(self, seat: _Seat) -> Member:
        if seat.ending is not None:
            await seat.ending
        member = await self._open(seat)
        self._run_program(seat.name)
        return member

    async def leave(self, name: str) -> None:
        """A member departs in good order."""
        seat, holder = self._seat(name), self._holder(name)
        if holder.process.held is not None:
            raise BadInput(f"{name!r} is paused: resume it, or kill it")
        await self.loop.create_task(holder.member.leave(), context=holder.process.context())
        await holder.transport.close()
        seat.holder = None
        self._changed(name, "left")

    def _by_chance(self, laws: LinkLaws | None) -> MemberChance | None:
        """The pauses, crashes and outages of the environment."""
        if self.environment is None or laws is None:
            return None
        from hustings.testing.surroundings import MemberChance  # noqa: PLC0415 (few need it)

        context = self._context.copy()
        return MemberChance(self, self.environment, laws, self.seed, self.loop, context)

    def reseed(self, seed: int) -> None:
        """From now on the environment has other random numbers; the past stays as it was."""
        self.network.reseed(derive(seed, "network"))
        if self._chance is not None:
            self._chance.reseed(derive(seed, "pauses"))

    def kill(self, name: str, *, machine: bool = False) -> None:
        """A member's process ends at once, without a farewell.

        Its machine still refuses what is sent there, which others notice at once, unless the
        `machine` is gone too.
        """
        seat, holder = self._seat(name), self._holder(name)
        seat.holder = None
        self.loop.hold(holder.process)
        holder.transport.kill(dark=machine)
        self._buried.append(holder.process)
        if holder.recording is not None:
            holder.recording.cancel()
        seat.ending = self._apart(holder.member.kill())
        self._changed(name, "killed")

    def hold_pauses(self, held: bool) -> None:
        """Whether nobody begins to pause by chance from now on."""
        if self._chance is not None:
            self._chance.hold_pauses(held)

    def begin_pause(self, name: str) -> None:
        """Let a member that runs pause now, for as long as the environment's law draws."""
        if self._chance is not None:
            self._chance.begin_pause(_number(self._seat(name)))

    def incarnation(self, name: str) -> int:
        """How many processes a member has had."""
        return self._seat(name).incarnations

    def bring_back(self, name: str, incarnation: int) -> None:
        """A member that was killed in this incarnation restarts, unless it has since."""
        seat = self._seat(name)
        if seat.holder is None and seat.incarnations == incarnation and seat.returning is None:
            seat.returning = self._apart(self._return(seat))

    async def _return(self, seat: _Seat) -> None:
        try:
            await self._restart(seat)
        finally:
            seat.returning = None

    def pause(self, name: str) -> None:
        """A member's process stands still: its messages and its timers wait."""
        self.loop.hold(self._holder(name).process)
        self._changed(name, "paused")

    def resume(self, name: str) -> None:
        """It continues, and gets everything that has waited."""
        self.loop.release(self._holder(name).process)
        self._changed(name, "resumed")

    # The network

    def endpoint(self, name: str) -> Endpoint:
        """Where a member is on the network in memory."""
        return self._seat(name).endpoint

    def wire(self, name: str) -> tuple[int, int]:
        """Bytes that a member has sent and received, with headers of IP and UDP."""
        endpoint = self._seat(name).endpoint
        return self.network.sent[endpoint], self.network.received[endpoint]

    def partition(self, *sides: Iterable[str]) -> None:
        """Members of different sides cannot reach each other; members on no side reach all."""
        named = [list(side) for side in sides]
        places: dict[str, int] = {}
        for number, side in enumerate(named):
            for name in side:
                if places.setdefault(name, number) != number:
                    raise BadInput(f"{name!r} stands on two sides of the partition")
        self.network.partition(*[[self._seat(name).endpoint for name in side] for side in named])

    def cut(self, sender: str, to: str) -> None:
        """What one sends no longer reaches the other; the way back stays open."""
        self.network.cut(self._seat(sender).endpoint, self._seat(to).endpoint)

    def heal(self) -> None:
        """Undo all partitions and cuts."""
        self.network.heal()
        self._quiet.disturb()

    def weather(self, **conditions: Any) -> None:
        """From now on the network has other delays, loss, duplicates or reordering."""
        if self.environment is not None:
            raise BadInput("the environment decides on delay and loss: make a group without one")
        self.network.conditions = replace(self.network.conditions, **conditions)
        self._quiet.disturb()

    def isolate(self, name: str) -> None:
        """A member can reach no other one, and no other one can reach it."""
        here = self._seat(name).endpoint
        for there in self._endpoints_beside(name):
            self.network.cut(here, there)
            self.network.cut(there, here)

    def reconnect(self, name: str) -> None:
        """Undo all cuts to and from a member."""
        here = self._seat(name).endpoint
        for there in self._endpoints_beside(name):
            self.network.mend(here, there)
            self.network.mend(there, here)
        self._quiet.disturb()

    def _endpoints_beside(self, name: str) -> list[Endpoint]:
        return [seat.endpoint for other, seat in self._seats.items() if other != name]

    async def inject(self, faults: Sequence[Fault]) -> None:
        """Let faults happen; at the end all of them are put right.

        A fault whose member is not there at that time (down, or no leader) does not happen.
        """
        due = [(fault.at, number, fault) for number, fault in enumerate(faults)]
        heapq.heapify(due)
        hit: dict[int, str] = {}  # the member that a fault has hit, by the fault's number
        began = self.loop.time()
        while due:
            at, number, fault = heapq.heappop(due)
            await asyncio.sleep(began + at - self.loop.time())
            if number in hit:
                await self._put_right(fault, hit[number])
            elif (name := self._inflict(fault)) is not None:
                hit[number] = name
                heapq.heappush(due, (fault.at + fault.lasts, number, fault))

    def _inflict(self, fault: Fault) -> str | None:
        """The member that the fault hits, if there is one."""
        leading = self.leaders
        name = leading[0] if fault.member == LEADER and leading else fault.member
        if name not in self.up or (fault.kind == "pause" and name in self.paused):
            return None
        match fault.kind:
            case "kill":
                self.kill(name)
            case "pause":
                self.pause(name)
            case _:
                self.isolate(name)
        return name

    async def _put_right(self, fault: Fault, name: str) -> None:
        match fault.kind:
            case "kill" if name not in self.up:
                await self.restart(name)
            case "pause" if name in self.paused:
                self.resume(name)
            case "isolate":
                self.reconnect(name)

    # Time

    async def advance(self, seconds: float, *, skip_quiet: bool = False) -> None:
        """Let virtual time pass.

        With `skip_quiet`, time in which nothing happens in the group is skipped: members stand
        still, as if all machines were suspended, until the next timer of a program. Whenever
        something happens (a program calls a member, a fault), the group is played until it has been
        quiet for some seconds. `NotQuiet` says why that cannot be, if time cannot be skipped now.
        """
        if not skip_quiet:
            await asyncio.sleep(seconds)
            return
        refusal = self._quiet.refusal()
        if refusal is not None:
            raise NotQuiet(f"quiet time cannot be skipped: {refusal}")
        with self.loop.skipping():
            await asyncio.sleep(seconds)

    async def settle(
        self, among: Iterable[str] | None = None, *, within: float = WITHIN, steady: float = 0.0
    ) -> str:
        """Wait until all members agree on a leader that agrees too; return its name.

        The members asked are those given, or all that are up and not paused. The agreement must
        last for `steady` seconds, and must begin `within` this many seconds.
        """
        asked = None if among is None else [self._seat(name).name for name in among]
        try:
            async with asyncio.timeout(within):
                while True:
                    leader = await self._agreement(asked)
                    if not steady or await self._lasts(asked, leader, steady):
                        return leader
        except TimeoutError:
            raise NotSettled(
                f"after {within:g} s of virtual time the members do not agree: "
                + "; ".join(self._opinions(asked))
            ) from None

    async def _agreement(self, asked: list[str] | None) -> str:
        while (leader := self._agreed(asked)) is None:
            self._stirred.clear()
            await self._stirred.wait()
        return leader

    async def _lasts(self, asked: list[str] | None, leader: str, seconds: float) -> bool:
        until = self.loop.time() + seconds
        while self._agreed(asked) == leader:
            self._stirred.clear()
            try:
                async with asyncio.timeout_at(until):
                    await self._stirred.wait()
            except TimeoutError:
                return True
        return False

    def _asked(self, asked: list[str] | None) -> list[str]:
        paused = self.paused
        chosen = [
            name for name in self.up if name not in paused and (asked is None or name in asked)
        ]
        if not chosen and self._chance is None:  # else chance may bring one back
            raise BadInput("no member is up that could agree")
        return chosen

    def _agreed(self, asked: list[str] | None) -> str | None:
        names = self._asked(asked)
        first = self.member(names[0]).leader if names else None
        if first is None or first.name not in names:
            return None
        for name in names:
            leader = self.member(name).leader
            if leader is None or leader.name != first.name:
                return None
        return first.name

    def _opinions(self, asked: list[str] | None) -> list[str]:
        said = []
        for name in self._asked(asked):
            state = self.member(name).state
            if state.leader is None:
                said.append(f"{name} knows no leader ({state.reason or 'no reason given'})")
            else:
                said.append(f"{name} says {state.leader.name} in term {state.term}")
        return said

    # Code

    def spawn(self, name: str, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        """Run code in a member's process: the code stands still and ends with the member."""
        try:
            process = self._holder(name).process
        except BadInput:
            work.close()
            raise
        task = self.loop.create_task(work, context=process.context())
        self._spawned.append(task)
        return task

    def _run_program(self, name: str) -> None:
        seat = self._seat(name)
        if seat.program is not None and seat.member is not None:
            self.spawn(name, seat.program(seat.member))

    # The end

    async def close(self) -> None:
        """Cancel spawned code, let all members leave, and end what still runs then."""
        if self._chance is not None:
            self._chance.stop()
        for name in self.paused:
            self.resume(name)
        dead = {task for process in self._buried for task in process.tasks}  # only for `in`
        await _end(task for task in self._spawned if task not in dead)
        for name in self.up:
            await self.leave(name)
        for seat in self._seats.values():
            if seat.ending is not None:
                await seat.ending
        here = asyncio.current_task()
        await _end(
            task for task in asyncio.all_tasks(self.loop) if task is not here and task not in dead
        )
        for process in self._buried:
            self.loop.bury(process)

    def neglected(self) -> BaseException | None:
        """The first error of spawned code that the test has not looked at."""
        found = [
            task.exception()
            for task in self._spawned
            if task.done() and not task.cancelled() and getattr(task, "_log_traceback", False)
        ]
        return found[0] if found else None

    # Inside

    def _seat(self, name: str) -> _Seat:
        if name not in self._seats:
            raise UnknownName("member", name, self._seats)
        return self._seats[name]

    def _holder(self, name: str) -> _Holder:
        holder = self._seat(name).holder
        if holder is None:
            raise BadInput(f"{name!r} is not up: restart it first")
        return holder

    async def _open(self, seat: _Seat) -> Member:
        self.joining += 1
        try:
            return await self._join(seat)
        finally:
            self.joining -= 1

    async def _join(self, seat: _Seat) -> Member:
        seat.incarnations += 1
        process = MemberProcess(seat.name)
        process.clock = self._clock_of(seat)
        context = of_members(process.context())
        transport = context.run(MemoryTransport, self.network, seat.endpoint)
        try:
            joining = context.run(
                join,
                self.label,
                **{
                    "name": seat.name,
                    "seeds": self._seeds(seat),
                    "transport": transport,
                    "seed": derive(self.seed, "member", seat.name),
                    "incarnation": seat.incarnations,
                    "insecure": True,  # a network in memory needs no key
                    "local": False,  # nor does this machine have any part in it
                    **self._options,
                    **seat.options,
                },
            )
            member = await self.loop.create_task(joining.open(), context=context)
        except BaseException:
            transport.kill()
            raise
        for part in (member.node, member.node.runner):
            self.loop.adopt(part, process)
        seat.member = member
        seat.holder = _Holder(process, transport, member)
        seat.holder.recording = self._apart(self._record(seat.name, member))
        self.changes.append(MemberChange(self.loop.time(), seat.name, "joined"))
        if self._chance is not None and seat.incarnations == 1:
            self._chance.watch(seat.name, _number(seat))
        return member

    def _clock_of(self, seat: _Seat) -> DriftingClock | None:
        """A clock of its own, if clocks drift: the same in all processes of a member."""
        drift = 0.0 if self.environment is None else self.environment.drift
        if not drift:
            return None
        stream = Stream(derive(self.seed, "clock", seat.name))
        return DriftingClock(self.loop.member_clock, 1.0 + stream.uniform(-drift, drift))

    def _seeds(self, seat: _Seat) -> list[str]:
        others = [other for other in self._seats.values() if other is not seat]
        others.sort(key=lambda other: other.holder is None)
        return [other.address for other in others[:SEEDS]]

    async def _record(self, name: str, member: Member) -> None:
        async for state in member.observe():
            self.log.append(Logged(self.loop.time(), name, state))
            self._stir()

    def _apart(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run work that belongs to no member; if it fails, so does the test."""
        task = self.loop.create_task(work, context=self._context.copy())
        task.add_done_callback(_look, context=self._context)
        return task

    def _changed(self, name: str, what: str) -> None:
        self.changes.append(MemberChange(self.loop.time(), name, what))
        self._stir()

    def _stir(self) -> None:
        self._stirred.set()
        self._quiet.disturb()


def _number(seat: _Seat) -> int:
    """The number of a member in the order of joining, from 1."""
    return seat.endpoint[1] - FIRST_PORT + 1


async def _end(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel unfinished tasks, and wait for their end; another function looks at how they ended."""
    running = [task for task in tasks if not task.done()]
    for task in running:
        task.cancel()
    if running:
        await asyncio.wait(running)


def _look(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        task.result()

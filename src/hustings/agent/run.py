"""`hustings run` as a process: signals, HTTP, one member, and its command (`command.py`)."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

from hustings.agent.clearance import Clearance, locked_by
from hustings.agent.command import (
    ENDING,
    FORWARDED,
    CommandSpec,
    Supervised,
    check_command,
    silence_of,
)
from hustings.agent.event_loop import ignore_from_now_on
from hustings.agent.logs import EventLog
from hustings.agent.once import once_for
from hustings.agent.supervisor import SETTLE_S, adopt_orphans
from hustings.core.errors import HustingsError
from hustings.core.outcome import Guarantee

if TYPE_CHECKING:
    from hustings.agent.agent_member import AgentMember
    from hustings.joining import Joining
    from hustings.net.member import Member
    from hustings.net.member_state import Leadership


async def supervise(
    joining: Joining, spec: CommandSpec, events: EventLog, service: Service | None = None
) -> int:
    """Join a group and run the command while leading it; returns the exit code.

    It takes over this process's signals, except those that were ignored before. When it returns,
    they are all ignored: the process is to exit with that code.
    """
    check_command(spec.command, spec.environment.get("PATH"))
    # If supervisor and guardian are killed at once, this process must end and reap their processes.
    sole = adopt_orphans()
    if not sole:
        events.warning(
            "notice",
            "this system has no sub-reaper: what the command puts into sessions of its own may "
            "outlive it",
        )
    try:
        async with _serving(service, events):
            return await _supervise(joining, spec, events, sole, service)
    finally:
        adopt_orphans(False)


async def _supervise(
    joining: Joining,
    spec: CommandSpec,
    events: EventLog,
    sole: bool,
    service: Service | None = None,
) -> int:
    loop = asyncio.get_running_loop()
    heard = [each for each in (*ENDING, *FORWARDED) if signal.getsignal(each) != signal.SIG_IGN]
    signals = _Signals(spec)
    for each in heard:
        loop.add_signal_handler(each, signals.hear, each)
    try:
        lock = locked_by(joining, lambda sentence: events.warning("notice", sentence))
        once = once_for(joining, events) if spec.once else None
        if once is not None and once.look():
            told = f"the work of {joining.group} is done: {once.known}; {once.remedy}"
            events.info("work-done", told)
            return 0
        member = await signals.unless_told_to_leave(joining.open())
        if member is None:
            return signals.exit_code()
        try:
            if once is not None:
                once.attend(member)
            clearance = None
            if member.guarantee is Guarantee.ADVISORY and member.seats == 1:
                bound = silence_of(spec, member) + spec.grace_s + SETTLE_S
                clearance = Clearance(member, bound, lock, drained=not joining.preempts)
            supervised = Supervised(member, spec, events, sole=sole, clearance=clearance, once=once)
            signals.pass_to(supervised.signal)
            told = f"{member.name} at {member.address} is a member of group {member.group}"
            events.info("joined", told, address=member.address)
            events.info("guarantee", supervised.promise(), guarantee=member.guarantee.value)
            async with _answering_for(member, service):
                return await supervised.run()
        finally:
            await member.leave()
    finally:
        ignore_from_now_on(heard)


# --- HTTP ----------------------------------------------------------------------------------------


@asynccontextmanager
async def _serving(service: Service | None, events: EventLog) -> AsyncIterator[None]:
    """Answer over HTTP. Its end or an error in it does not end the command."""
    if service is None:
        yield
        return
    serving = asyncio.create_task(service.serve(), name="http")

    def ended(task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            events.error("http-ended", f"HTTP has ended: {error!r}")

    serving.add_done_callback(ended)
    if service.warning is not None:
        events.warning("notice", service.warning)
    events.info("listening", f"HTTP on {service.url}", http=service.url)
    try:
        yield
    finally:
        await service.finish(serving)
        service.close()


@asynccontextmanager
async def _answering_for(member: Member, service: Service | None) -> AsyncIterator[None]:
    """Answer for this member, and tell listeners each change of leadership."""
    if service is None:
        yield
        return
    service.members[member.group] = member
    telling = asyncio.create_task(_tell_listeners(member, service.tell))
    try:
        yield
    finally:
        telling.cancel()
        await asyncio.wait({telling})


async def _tell_listeners(member: Member, tell: Callable[[Leadership], None]) -> None:
    try:
        async for state in member.observe():
            tell(state)
    except HustingsError:
        return  # it is raised where the member campaigns, too


class Service(Protocol):
    """HTTP, as `service.py` has it. Without the option nothing of it is loaded."""

    members: dict[str, AgentMember]
    warning: str | None

    @property
    def url(self) -> str: ...
    def tell(self, state: Leadership) -> None: ...
    async def serve(self) -> None: ...
    async def finish(self, serving: asyncio.Task[None]) -> None: ...
    def close(self) -> None: ...


# --- signals -------------------------------------------------------------------------------------


class _Signals:
    """Signals to this process, from before it is a member."""

    def __init__(self, spec: CommandSpec) -> None:
        self._ending = (*ENDING, signal.SIGHUP) if spec.hangup_ends else ENDING
        self._to: Callable[[int], None] | None = None
        self._leaving: int | None = None
        self._opening: asyncio.Future[Member] | None = None

    def hear(self, number: int) -> None:
        if self._to is not None:
            self._to(number)
        elif number in self._ending and self._leaving is None:
            self._leaving = number
            if self._opening is not None:
                self._opening.cancel()

    def pass_to(self, to: Callable[[int], None]) -> None:
        self._to = to
        if self._leaving is not None:
            to(self._leaving)

    async def unless_told_to_leave(self, opening: Awaitable[Member]) -> Member | None:
        """The member; None if a signal came before it had joined."""
        self._opening = asyncio.ensure_future(opening)
        try:
            return await self._opening
        except asyncio.CancelledError:
            me = asyncio.current_task()
            if self._leaving is None or (me is not None and me.cancelling()):
                raise
            return None

    def exit_code(self) -> int:
        """As that of a member which was told to leave and did not lead."""
        return 0 if self._leaving in (None, signal.SIGTERM) else 128 + (self._leaving or 0)

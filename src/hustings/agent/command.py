"""A command that runs only while this member leads.

    stand -> lead: start the command -> lost: SIGTERM, grace, SIGKILL -> gone -> stand

Law: the command starts only while this member leads, and never before all processes of its last run
are gone. It ends when this member knows that leadership is lost, when a transfer asks for it, and
when this process is stopped, starved or killed (the supervisor sees to that).

With a guard the command is gone before another member can lead: leadership ends early enough for
the grace, and the supervisor knows the time. Three processes guard the command: this one, and the
supervisor with its guardian (`supervisor.py`). Each of them can end all of it. Without a guard a
new leader waits until the last leader's command is gone, as far as that can be known
(`clearance.py`).
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Container, Iterator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    contextmanager,
    suppress,
)
from dataclasses import dataclass, field
from functools import partial
from math import ceil, inf
from typing import TYPE_CHECKING, Any, Protocol

from hustings.agent.child import BEATS, ChildCommand, CommandEnd
from hustings.agent.clearance import LOOK_S, Clearance, ClearedState, Obstacle
from hustings.agent.hooks import GRACE_S, LEAD, LOSE, HookRun, Hooks, hook_words, run_hook
from hustings.agent.logs import EventLog, SilentLog
from hustings.agent.supervisor import SETTLE_S
from hustings.core.durations import show_duration
from hustings.core.errors import BadInput, HustingsError, Unavailable
from hustings.core.outcome import Guarantee
from hustings.guard.urls import parse_url
from hustings.net.composition import LEASE
from hustings.net.member_state import LeadershipLost
from hustings.net.restarts import RestartPolicy, Restarts

if TYPE_CHECKING:
    from hustings.agent.once import Once
    from hustings.net.loss_reason import LossReason

ENDING = (signal.SIGINT, signal.SIGTERM)  # forwarded to the whole process group; then we leave
FORWARDED = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)  # for the command alone
MARGIN_S = 0.5  # with a guard: allowance for a slow machine
ASK_S = 1.0  # at most, for a member that stood still to hear who leads
HAND_OVER_S = 5.0  # seconds for a transfer to happen after its command has ended
# Our variables that a command may need to ask an agent. All others may hold a secret: the token of
# an agent's HTTP, or a guard's address with its password.
PASSED_ON = tuple(
    f"HUSTINGS_{name}"
    for name in ("AGENT", "CONFIG", "KEY_FILE", "LOCAL_DIR", "TIMEOUT", "TOKEN_FILE")
)


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """What to run while leading, and how."""

    command: tuple[str, ...]
    grace_s: float = 5.0  # between SIGTERM and SIGKILL
    # Silence of this process after which the command is ended; None: the bound of the member.
    silence_s: float | None = None
    restart: RestartPolicy = field(default_factory=RestartPolicy)
    hangup_ends: bool = False  # SIGHUP means that the terminal is gone
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    secrets: frozenset[str] = frozenset()  # variables that the command may not see
    hooks: Hooks = field(default_factory=Hooks)
    once: bool = False  # the command has to succeed once in the group


def check_guard(guard: str | None) -> None:
    """Refuse a guard that other processes do not have."""
    if guard is not None and guard.lower().startswith("memory:"):
        raise BadInput(
            "memory:// is for members within one process: other processes would each have their "
            "own; name an engine, or quorum://a,b,c"
        )


def lease_for(spec: CommandSpec, guard: str, ttl: float | None) -> dict[str, object]:
    """The lease to ask for, so that the command is gone before another member can lead."""
    check_guard(guard)
    margin = spec.grace_s + SETTLE_S + MARGIN_S + spec.hooks.lose_s
    shortest = 2 * margin
    if ttl is None:
        ttl = max(LEASE, shortest)
    elif ttl < shortest:
        raise BadInput(
            f"a ttl of {show_duration(ttl)} leaves no time to lead: ending the command may take "
            f"{show_duration(margin)} of it; raise --ttl to {show_duration(shortest)}, or lower "
            + ("--grace" if spec.hooks.on_lose is None else "--grace and --hook-timeout")
        )
    return {"ttl": ttl, "margin": margin}


def secrets_of(guard: str | None) -> frozenset[str]:
    """Variables that hold a password of the guard, as named in its address.

    >>> sorted(secrets_of("postgres://app@db/app?password_env=DB_PASSWORD"))
    ['DB_PASSWORD']
    """
    if guard is None:
        return frozenset()
    named = parse_url(guard).options.get("password_env")
    return frozenset() if named is None else frozenset([named])


def environment_for(
    given: Mapping[str, str], told: Mapping[str, str], secrets: Container[str] = ()
) -> dict[str, str]:
    """The environment of a command: none of our secrets, and what the command is told.

    >>> environment_for({"HUSTINGS_HTTP_TOKEN": "x", "PATH": "/bin"}, {"HUSTINGS_TERM": "3"})
    {'PATH': '/bin', 'HUSTINGS_TERM': '3'}
    """
    kept = {
        name: value
        for name, value in given.items()
        if name in PASSED_ON or not name.upper().startswith("HUSTINGS_")
    }
    return {name: value for name, value in kept.items() if name not in secrets} | dict(told)


def check_command(command: Sequence[str], path: str | None = None) -> None:
    """Refuse a command that cannot be run, before anything has started."""
    if not sys.platform.startswith("linux"):
        raise BadInput(
            "running a command needs Linux: elsewhere nothing ends what it leaves behind"
        )
    if not command or not command[0]:
        raise BadInput("there is no command to run: write it after --")
    name = command[0]
    if shutil.which(name, path=path) is not None:
        return
    if os.sep not in name:
        raise BadInput(f"command {name!r} is not found on the PATH")
    if not os.path.exists(name):
        raise BadInput(f"command {name!r} is not found")
    raise BadInput(f"command {name!r} is not an executable file")


async def _first(*futures: asyncio.Future[Any]) -> None:
    """Wait until one future is done; a cancellation meanwhile cancels none of them."""
    await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)


class Supervised:
    """A member's command: `run` it until it ends for good, and pass `signal`s to it meanwhile."""

    def __init__(
        self,
        member: SupervisedMember,
        spec: CommandSpec,
        log: EventLog | None = None,
        *,
        sole: bool = False,
        clearance: Clearance | None = None,
        once: Once | None = None,
    ) -> None:
        """`sole`: this process adopts orphans and runs nothing else that has children.

        `clearance` says when the command may start, where no guard does. `once` says whether the
        group's work is done already.
        """
        check_command(spec.command, spec.environment.get("PATH"))
        self._member = member
        self._spec = spec
        self._log = log or SilentLog()
        self._sole = sole
        self._clearance = clearance
        self._once = once
        self._work: asyncio.Task[int] | None = None
        self._child: ChildCommand | None = None
        self._leaving: int | None = None  # the signal that asked to leave
        self._code: int | None = None  # of the command's last run in this term
        self._has_begun = False  # on-lead or the command was started in this term
        self._losing: asyncio.Future[None] | None = None  # ends on-lose, while it runs
        self._asked_twice = False

    @property
    def bound(self) -> float:
        """Seconds from the known loss of leadership to the command's end."""
        return self._member.bound + self._spec.grace_s + SETTLE_S

    @property
    def silence(self) -> float:
        """Seconds of silence of this process after which its supervisor ends the command."""
        return silence_of(self._spec, self._member)

    @property
    def bound_if_stopped(self) -> float:
        """The same, from the moment at which this process is stopped, starved or killed."""
        return self.silence + self._spec.grace_s + SETTLE_S

    def promise(self) -> str:
        """The promise and its limits, in one sentence."""
        unkept = "unless all three processes that guard it are killed or stopped at once"
        if self._member.guarantee is Guarantee.ADVISORY:
            stopped = show_duration(self.bound_if_stopped)
            return (
                f"the command and all that it started end within {show_duration(self.bound)} after "
                f"leadership is lost, and within {stopped} after this process is stopped or "
                f"killed, {unkept}; the guarantee is advisory: a member that takes over waits "
                "until the command is gone, on another machine for that time; a member that is cut "
                "off may run the command, too"
            )
        return (
            "the guarantee is leased: the command and all that it started end before another "
            "member can lead, also if this process is stopped, cut off or killed, as long as "
            f"clocks keep to their bound, and {unkept}"
        )

    async def run(self) -> int:
        """Run the command whenever this member leads; returns the exit code at the end."""
        changes = asyncio.create_task(self._tell_changes())
        working = self._stand() if self._once is None else self._work_once(self._once)
        self._work = asyncio.create_task(working)
        if self._leaving is not None:
            self._work.cancel()
        try:
            return await self._work
        except asyncio.CancelledError:
            me = asyncio.current_task()
            if self._leaving is None or (me is not None and me.cancelling()):
                raise
            return self._exit_code()
        finally:
            changes.cancel()
            await _first(changes)

    def signal(self, number: int) -> None:
        """Handle a signal to this process: see `hustings run --help`."""
        ends = number in ENDING or (number == signal.SIGHUP and self._spec.hangup_ends)
        if not ends:
            if self._child is not None:
                self._child.signal(number)
        elif self._leaving is None:
            self._leaving = number
            if self._child is not None:
                self._child.pass_on(number)
                self._child.passed.add_done_callback(partial(self._tell_passed, number))
            elif self._once is not None and self._once.known:
                self._once.hurry()  # the others have to hear of it, which takes a bounded time
            elif self._work is not None:
                self._work.cancel()
        elif self._losing is not None:
            self._hurry_on_lose(self._losing)
        elif self._child is None and self._once is not None and self._once.known:
            if self._work is not None:
                self._work.cancel()
        elif self._child is not None:
            if self._child.left.done():
                self._log.warning("command-left", "gave up on ending the command")
                self._child.abandon()
            else:
                self._child.kill()

    def _tell_passed(self, number: int, passed: asyncio.Future[bool]) -> None:
        name = signal.Signals(number).name
        if passed.result():
            self._log.info(
                "signal",
                f"{name} is passed on to the command, which is killed in "
                f"{show_duration(self._spec.grace_s)}; a second signal kills it now",
                signal=name,
            )
        else:
            self._log.warning(
                "signal",
                "what guards the command is held stopped and could not be told: it was given "
                f"{name} from here, and is killed within {show_duration(self._spec.grace_s)}",
                signal=name,
            )

    # --- work that is done once ------------------------------------------------------------------

    async def _work_once(self, once: Once) -> int:
        """Stand until this member, or another one, has done the work; the exit code."""
        standing = asyncio.create_task(self._stand())
        hearing = asyncio.create_task(once.heard())
        try:
            await _first(standing, hearing)
            # A command that runs beside the work of others ends by itself: it may be half done.
            if not standing.done() and not self._has_begun:
                standing.cancel()
            await _first(standing)
            code = 0 if standing.cancelled() else standing.result()
            if hearing.done():
                hearing.result()
        finally:
            for task in (standing, hearing):
                task.cancel()
            await asyncio.wait({standing, hearing})
        if not once.known:
            return code
        await once.finish()
        told = f"the work of {self._member.group} is done: {once.known}"
        self._log.info("work-done", told)
        return self._exit_code()

    # --- standing and leading --------------------------------------------------------------------

    async def _stand(self) -> int:
        drain_s = self._spec.grace_s + 2 * SETTLE_S + self._spec.hooks.lose_s
        while True:
            code = None
            drained: int | None = None
            try:
                async with self._member.campaign(drain_s) as term:
                    try:
                        code = await self._lead(term)
                        drained = term.number if term.draining.is_set() else None
                    except asyncio.CancelledError:
                        if term.lost.is_set():
                            self._tell_lost(term)
                        raise
                    finally:  # inside: the block's end gives back what is held
                        try:
                            await self._clear()
                        finally:
                            await self._on_lose(term)
            except LeadershipLost:
                pass  # the member reported it when it happened
            if code is not None:
                return code
            if self._once is not None and self._once.known:
                return 0
            if self._leaving is not None:
                return self._exit_code()
            self._code = None
            if drained is not None:
                await self._hand_over(drained)

    async def _lead(self, term: CommandTerm) -> int | None:
        """The exit code; None to stand again."""
        restarts = Restarts(self._spec.restart)
        prepared = self._spec.hooks.on_lead is None
        while True:
            if not await self._may_start(term):
                return None
            if self._once is not None and await self._once.ask():
                return 0
            self._has_begun = True
            over = await (self._one_run(term) if prepared else self._on_lead(term))
            if not prepared and not over.code and not over.starved:
                prepared = True
                continue
            if over.refused is not None and prepared:
                why = os.strerror(over.refused)
                raise BadInput(f"command {self._spec.command[0]!r} cannot be run: {why}")
            what = "the command" if prepared else LEAD
            self._code = over.code
            if self._once is not None and over.succeeded and prepared:
                self._once.succeeded(self._member.name)
                await self._once.finish()  # before another member can lead
                return 0
            if over.broken:
                told = f"a process that guards {what} was killed or stopped: it was ended"
                self._log.warning("command-ended", told, code=over.code)
            if over.starved:
                told = f"{what} was ended: this process had been stopped or starved"
                self._log.warning("command-ended", told, code=over.code)
                if self._leaving is not None or await self._drained_while_asking(term):
                    return None
                continue
            if self._leaving is not None:
                return over.code
            if term.draining.is_set():
                return None
            delay_s = restarts.after(over.code, over.ran_s)
            if delay_s is None:
                self._log.info("command-ended", f"{what} ended with {over.code}", code=over.code)
                return over.code
            again = f"{what} ended with {over.code}: again in {show_duration(delay_s)}"
            self._log.info("command-ended", again, code=over.code, delay=delay_s)
            with suppress(TimeoutError):
                async with asyncio.timeout(delay_s):
                    await term.draining.wait()
                return None

    async def _drained_while_asking(self, term: CommandTerm) -> bool:
        """Let a member that stood still ask who leads, before its command may start again.

        If another member leads by now, the end of the campaign ends this wait.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(min(self._member.bound, ASK_S)):
                return await term.draining.wait()
        return False

    async def _may_start(self, term: CommandTerm) -> bool:
        """Wait until no other command of the group can run; False if a transfer comes first."""
        told: str | None = None
        while self._clearance is not None and (found := self._clearance.obstacle()) is not None:
            if found.sentence != told:
                told = found.sentence
                self._log.info("waiting", _waiting(self._member, found), term=term.number)
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await term.draining.wait()
                return False
        return True

    async def _one_run(self, term: CommandTerm) -> CommandEnd:
        child = self._start(term)
        draining = asyncio.create_task(term.draining.wait())
        try:
            await _first(child.over, draining)
            if not child.over.done():
                told = "transferring leadership: ending the command first"
                self._log.info("transfer", told, term=term.number)
                child.end()
                await _first(child.over)
        except asyncio.CancelledError:
            child.end()  # at once; `_clear` waits for the end, where no caller waits for us
            raise
        finally:
            draining.cancel()
        self._child = None
        return child.over.result()

    def _start(self, term: CommandTerm) -> ChildCommand:
        spec, member = self._spec, self._member
        told = {
            "HUSTINGS_GROUP": member.group,
            "HUSTINGS_TERM": str(term.number),
            "HUSTINGS_TOKEN": "" if term.token is None else str(term.token),
            "HUSTINGS_MEMBER": member.name,
        }
        environment = environment_for(spec.environment, told, spec.secrets)
        record = None if self._once is None else self._once.open_file()
        self._log.info(
            "command-start",
            f"{member.name} leads {member.group} in term {term.number}: starting the command",
            term=term.number,
            token=term.token,
        )
        try:
            with self._held() as lock:
                self._child = ChildCommand(
                    spec.command,
                    environment,
                    spec.grace_s,
                    self.silence,
                    lambda: member.until,
                    self._sole,
                    lock,
                    record=record,
                )
        except OSError as error:
            why = error.strerror or str(error)
            raise BadInput(f"command {spec.command[0]!r} cannot be run: {why}") from None
        return self._child

    # --- hooks -----------------------------------------------------------------------------------

    async def _on_lead(self, term: CommandTerm) -> CommandEnd:
        """Prepare the start of the command; a failure counts as one of the command."""
        hooks, member = self._spec.hooks, self._member
        assert hooks.on_lead is not None
        words = self._told(LEAD, term, member.name)
        it = self._hook(LEAD, hooks.on_lead, words, term, "; the command is not started")
        with self._held() as lock:
            return await run_hook(
                it,
                grace_s=min(GRACE_S, self._spec.grace_s),  # its end is part of the command's bound
                silence_s=self.silence,
                until=lambda: member.until,
                sole=self._sole,
                lock=lock,
            )

    async def _on_lose(self, term: CommandTerm) -> None:
        """Give back what goes with leadership, when nothing of the command is left."""
        hooks, has_begun = self._spec.hooks, self._has_begun
        self._has_begun = False
        if hooks.on_lose is None or not has_begun:
            return
        state, reason = self._member.state, term.reason
        leader = None if state.leader is None or state.leading else state.leader.name
        words = self._told(LOSE, term, leader, "" if reason is None else str(reason))
        self._losing = asyncio.get_running_loop().create_future()
        try:
            it = self._hook(LOSE, hooks.on_lose, words, term)
            await run_hook(it, sole=self._sole, to_its_end=True, unless=self._losing)
        finally:
            self._losing = None

    def _hook(
        self,
        name: str,
        line: str,
        environment: Mapping[str, str],
        term: CommandTerm,
        consequence: str = "",
    ) -> HookRun:
        timeout_s, fields = self._spec.hooks.timeout_s, {"term": term.number}
        return HookRun(name, line, environment, timeout_s, self._log, fields, consequence)

    def _hurry_on_lose(self, losing: asyncio.Future[None]) -> None:
        """Handle a signal to a process that leaves already: the first says what the next does."""
        if self._asked_twice:
            if not losing.done():
                losing.set_result(None)
            return
        self._asked_twice = True
        within = show_duration(self._spec.hooks.timeout_s)
        told = f"{LOSE} runs for at most {within}; a further signal ends it"
        self._log.info("signal", told)

    def _told(
        self, event: str, term: CommandTerm, leader: str | None, reason: str = ""
    ) -> dict[str, str]:
        spec, member = self._spec, self._member
        words = hook_words(
            event, member.group, member.name, term.number, term.token, leader, reason
        )
        return environment_for(spec.environment, words, spec.secrets)

    @contextmanager
    def _held(self) -> Iterator[int | None]:
        """What stays open until nothing is left of a command: a lock, or the lease's witness."""
        with self._member.witness() as witness:
            lock = None if self._clearance is None else self._clearance.hand_out()
            yield lock if lock is not None else next((os.dup(each) for each in witness), None)

    # --- afterwards ------------------------------------------------------------------------------

    async def _clear(self) -> None:
        """Wait until no process of the command is left; a cancellation makes it kill at once."""
        if self._clearance is not None:
            self._clearance.drop()
        child = self._child
        if child is None:
            return
        child.end()
        cancelled = stood_back = False
        while not child.over.done():
            try:
                if not child.left.done():
                    await _first(child.over, child.left)
                elif cancelled or self._leaving is not None:
                    self._log.warning("command-left", "gave up on ending the command")
                    child.abandon()
                elif not stood_back:
                    left = child.left.result()
                    told = f"{left} processes of the command do not end"
                    self._log.warning("command-left", told, processes=left)
                    stood_back = True
                    await self._member.resign()
                else:
                    await _first(child.over)
            except asyncio.CancelledError:
                child.kill()
                cancelled = True
        self._child = None
        over = child.over.result()
        self._code = over.code
        if self._once is not None and over.succeeded:
            self._once.succeeded(self._member.name)
        if cancelled:
            raise asyncio.CancelledError
        self._log.debug("command-gone", "nothing of the command is left")
        if stood_back:
            await self._member.stand()

    async def _hand_over(self, term: int) -> None:
        """Wait for the transfer, as the command is gone: before, this member would lead again."""
        with suppress(TimeoutError):
            async with asyncio.timeout(HAND_OVER_S):
                async for state in self._member.observe():
                    if not state.leading or state.term != term:
                        return

    async def _tell_changes(self) -> None:
        with suppress(HustingsError):  # it is raised where the member campaigns, too
            async for state in self._member.observe():
                if self._clearance is not None:
                    self._clearance.saw(state)
                group = self._member.group
                if state.leader is None:
                    self._log.debug("no-leader", f"{group} has no leader: {state.reason}")
                elif not state.leading:
                    who = state.leader.name
                    told = f"{who} leads {group} in term {state.term}"
                    self._log.debug("follows", told, term=state.term, leader=who)

    def _tell_lost(self, term: CommandTerm) -> None:
        member, reason = self._member, term.reason
        why = "" if reason is None else f": {reason}"
        told = f"{member.name} leads {member.group} no longer{why}"
        say = self._log.warning if reason is not None and reason.alarming else self._log.info
        say("lost", told, term=term.number, reason=None if reason is None else reason.kind)

    def _exit_code(self) -> int:
        """The command's code if it ran in this term; 0 after SIGTERM; else that of an interrupt."""
        if self._once is not None and self._once.known:
            return 0 if self._once.is_recorded else Unavailable.exit_code
        if self._code is not None:
            return self._code
        interrupted = self._leaving is not None and self._leaving != signal.SIGTERM
        return 128 + (self._leaving or 0) if interrupted else 0


def silence_of(spec: CommandSpec, member: SupervisedMember) -> float:
    """Seconds of silence of the member's process after which its command is ended.

    Without a guard it is the time after which a member that stood still leads no longer, and the
    time between two signs of life. With a guard the lease alone decides.
    """
    if spec.silence_s is not None:
        return spec.silence_s
    if member.guarantee is not Guarantee.ADVISORY:
        return inf
    return ceil(100 * member.bound * BEATS / (BEATS - 1)) / 100


def _waiting(member: SupervisedMember, obstacle: Obstacle) -> str:
    within = obstacle.within_s
    length = "" if within is None else f", for at most {show_duration(max(round(within, 1), 0.1))}"
    return f"{member.name} leads {member.group} and waits{length}: {obstacle.sentence}"


class CommandState(ClearedState, Protocol):
    """Who leads, as one member knows it."""

    @property
    def term(self) -> int: ...
    @property
    def reason(self) -> str: ...


class CommandTerm(Protocol):
    """One term of leadership."""

    @property
    def number(self) -> int: ...
    @property
    def token(self) -> int | None: ...
    @property
    def draining(self) -> asyncio.Event: ...
    @property
    def lost(self) -> asyncio.Event: ...
    @property
    def reason(self) -> LossReason | None: ...


class SupervisedMember(Protocol):
    """The part of a member that is used here."""

    @property
    def group(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def bound(self) -> float: ...
    @property
    def guarantee(self) -> Guarantee: ...
    @property
    def until(self) -> float | None: ...
    @property
    def state(self) -> CommandState: ...
    def witness(self) -> AbstractContextManager[tuple[int, ...]]: ...
    def campaign(self, drain: float = 0.0) -> AbstractAsyncContextManager[CommandTerm]: ...
    def observe(self) -> AsyncIterator[CommandState]: ...
    async def resign(self) -> None: ...
    async def stand(self) -> None: ...

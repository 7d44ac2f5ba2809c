"""Commands of the operator that run when a member begins to lead, and when it leads no longer.

    on-lead     takes what goes with leadership: an address, a record of a name server, a mount
    on-lose     gives it back

A hook is a line for the shell. It runs as `hustings run` runs a command (`child.py`): in a session
of its own, and nothing that it started is left when it is over. It has a time limit. What it
writes goes to the log.

Law: on-lose runs only after on-lead of the same leadership, and the two of one member never run at
one time. A hook that fails is told in the log. What else follows from a failure, its caller
decides: `hustings run` does not start the command, and an agent goes on.
"""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from hustings.agent.child import NO_STATUS, ChildCommand, CommandEnd
from hustings.agent.logs import EventLog
from hustings.agent.supervisor import SETTLE_S
from hustings.core.durations import show_duration
from hustings.core.errors import BadInput

if TYPE_CHECKING:
    from hustings.net.member_state import Leadership

SHELL = "/bin/sh"
TIMEOUT_S, SHORTEST_S, LONGEST_S = 5.0, 0.1, 600.0
GRACE_S = 1.0  # from SIGTERM to SIGKILL, for a hook that exceeds its time
PIECE, LONGEST_LINE, MOST_LINES = 65536, 1000, 200  # of output: bytes, bytes, lines
SLOW_S = 0.01  # seconds between two pieces when the limit of lines is reached
LATE = 124  # the exit code of a hook that exceeded its time, as that of timeout(1)
LEAD, LOSE = "on-lead", "on-lose"


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hooks of one member; None where there is none."""

    on_lead: str | None = None
    on_lose: str | None = None
    timeout_s: float = TIMEOUT_S

    def __post_init__(self) -> None:
        for name, line in ((LEAD, self.on_lead), (LOSE, self.on_lose)):
            if line is not None and (not line.strip() or "\0" in line):
                raise BadInput(f"{name} must be a command line for the shell, not {line!r}")
        if not SHORTEST_S <= self.timeout_s <= LONGEST_S:
            least, most = show_duration(SHORTEST_S), show_duration(LONGEST_S)
            raise BadInput(
                f"the time limit of hooks must be from {least} to {most}, not "
                f"{show_duration(self.timeout_s)}"
            )

    def __bool__(self) -> bool:
        return self.on_lead is not None or self.on_lose is not None

    @property
    def lose_s(self) -> float:
        """The longest time that on-lose takes."""
        return 0.0 if self.on_lose is None else self.timeout_s + GRACE_S + SETTLE_S


def hook_words(
    event: str,
    group: str,
    member: str,
    term: int,
    token: int | None,
    leader: str | None,
    reason: str = "",
) -> dict[str, str]:
    """What a hook finds in its environment."""
    return {
        "HUSTINGS_EVENT": event,
        "HUSTINGS_GROUP": group,
        "HUSTINGS_MEMBER": member,
        "HUSTINGS_TERM": str(term),
        "HUSTINGS_TOKEN": "" if token is None else str(token),
        "HUSTINGS_LEADER": leader or "",
        "HUSTINGS_REASON": reason,
    }


class HookOutput:
    """What a hook writes, as lines of the log.

    The pipe is read all the time, so that a hook is never held up by it. Lines above a limit are
    counted and dropped, and then the pipe is read slowly: output cannot use up the event loop.
    Empty lines are not logged, and count for the limit, too.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._part = b""  # a line that has no end yet
        self._left = MOST_LINES
        self._dropped = 0
        self._later: asyncio.TimerHandle | None = None
        self._read, self.write = os.pipe()
        os.set_blocking(self._read, False)
        self._loop.add_reader(self._read, self._listen)

    def _listen(self) -> None:
        heard = self._take()
        if heard and not self._left:
            self._loop.remove_reader(self._read)
            self._later = self._loop.call_later(
                SLOW_S, self._loop.add_reader, self._read, self._listen
            )
        elif heard == b"":
            self._loop.remove_reader(self._read)

    def _take(self) -> bytes | None:
        """One piece of the output; None: there is none now; nothing: all is read."""
        try:
            heard = os.read(self._read, PIECE)
        except BlockingIOError:
            return None
        *lines, self._part = (self._part + heard).split(b"\n")
        if len(self._part) > LONGEST_LINE:
            lines.append(self._part[:LONGEST_LINE])
            self._part = b""
        for line in lines:
            self._line(line)
        return heard

    def _line(self, line: bytes) -> None:
        if not self._left:
            self._dropped += bool(line.strip())
            return
        self._left -= 1
        if text := line[:LONGEST_LINE].decode(errors="replace").rstrip():
            self._tell(text)

    def close(self) -> None:
        """Read what is there, and stop."""
        for _ in range(MOST_LINES):
            if not self._take():
                break
        self._line(self._part)
        if self._dropped:
            self._tell(f"(and {self._dropped} more lines, which are dropped)")
        if self._later is not None:
            self._later.cancel()
        self._loop.remove_reader(self._read)
        os.close(self._read)


@dataclass(frozen=True, slots=True)
class HookRun:
    """One run of a hook: what to run, and where its output and its end are told."""

    name: str
    line: str
    environment: Mapping[str, str]
    timeout_s: float
    log: EventLog
    fields: Mapping[str, object]  # of each line of the log
    consequence: str = ""  # of a failure, in words

    def said(self, text: str) -> None:
        """Log a line that the hook wrote."""
        self.log.info("hook-output", f"{self.name}: {text}", hook=self.name, **self.fields)

    def begins(self) -> None:
        """Log that it begins."""
        self.log.info("hook", f"running {self.name}", hook=self.name, **self.fields)

    def ended(self, over: CommandEnd) -> None:
        """Log how it ended."""
        fields = {"hook": self.name, "code": over.code, **self.fields}
        wrong = failure(self.name, over, self.timeout_s)
        if wrong is None:
            after = show_duration(round(over.ran_s, 3))
            self.log.info("hook-ended", f"{self.name} ended with 0 after {after}", **fields)
        else:
            self.log.warning("hook-failed", wrong + self.consequence, **fields)


async def run_hook(
    it: HookRun,
    *,
    grace_s: float = GRACE_S,
    silence_s: float | None = None,
    until: Callable[[], float | None] = lambda: None,
    sole: bool = False,
    lock: int | None = None,
    to_its_end: bool = False,
    unless: asyncio.Future[None] | None = None,
) -> CommandEnd:
    """Run a hook until nothing of it is left; the other arguments are those of `ChildCommand`.

    A cancellation ends it, and so does `unless` when it is done. With `to_its_end` a cancellation
    waits until the hook is over.
    """
    began = time.monotonic()
    it.begins()
    silence_s = it.timeout_s + grace_s if silence_s is None else silence_s
    try:
        output = HookOutput(it.said)
    except OSError as error:
        if lock is not None:
            os.close(lock)
        return _refused(it, error)
    try:
        child = ChildCommand(
            (SHELL, "-c", it.line),
            it.environment,
            grace_s,
            silence_s,
            until,
            sole,
            lock,
            output.write,
        )
    except OSError as error:
        output.close()
        return _refused(it, error)
    finally:
        os.close(output.write)
    waited = await _until_over(child, began + it.timeout_s, to_its_end, unless)
    ended_here = not child.over.done()
    cancelled = await _ended(child, grace_s) or waited.cancelled
    output.close()
    over = child.over.result()
    if waited.late:
        over = replace(over, code=LATE)
    if ended_here and not waited.late:
        told = f"{it.name} was ended before its time"
        it.log.warning("hook-ended", told, hook=it.name, code=over.code, **it.fields)
    elif not over.starved:
        it.ended(over)
    if cancelled:
        raise asyncio.CancelledError
    return over


class _Waited(NamedTuple):
    """How the wait for a hook ended."""

    late: bool
    cancelled: bool


async def _until_over(
    child: ChildCommand, ends_at: float, to_its_end: bool, unless: asyncio.Future[None] | None
) -> _Waited:
    """Wait until a hook is over, or is not wanted any more, or its time is over."""
    cancelled = False
    awaited: set[asyncio.Future[Any]] = {child.over, *([] if unless is None else [unless])}
    while not child.over.done():
        left = max(0.0, ends_at - time.monotonic())
        try:
            done, _ = await asyncio.wait(awaited, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            cancelled = True
            if not to_its_end:
                break
        else:
            if not done:
                return _Waited(True, cancelled)
            if child.over not in done:
                break
    return _Waited(False, cancelled)


async def _ended(child: ChildCommand, grace_s: float) -> bool:
    """End a hook, or leave it to its supervisor; returns whether the caller was cancelled."""
    cancelled = False
    if child.over.done():
        return cancelled
    child.end()
    gone_by = time.monotonic() + grace_s + 2 * SETTLE_S
    while not child.over.done() and time.monotonic() < gone_by:
        try:
            await asyncio.wait({child.over}, timeout=max(0.0, gone_by - time.monotonic()))
        except asyncio.CancelledError:
            cancelled = True
    if not child.over.done():
        child.abandon()
    return cancelled


def _refused(it: HookRun, error: OSError) -> CommandEnd:
    over = CommandEnd(NO_STATUS, 0.0, refused=error.errno or errno.EIO)
    it.ended(over)
    return over


def failure(name: str, over: CommandEnd, timeout_s: float) -> str | None:
    """What went wrong with a hook, in words; None: nothing."""
    if over.refused is not None:
        return f"{name} cannot be run: {os.strerror(over.refused)}"
    if over.code == LATE and over.ran_s >= timeout_s:
        return f"{name} did not end within {show_duration(timeout_s)}: it was ended"
    return f"{name} failed with {over.code}" if over.code else None


class AgentHooks:
    """The hooks of an agent's member. They follow what the member knows, one after the other."""

    def __init__(
        self, hooks: Hooks, group: str, member: str, environment: Mapping[str, str], log: EventLog
    ) -> None:
        self._hooks = hooks
        self._group = group
        self._member = member
        self._environment = dict(environment)
        self._log = log
        self._state: Leadership | None = None
        self._wanted: tuple[int, int | None] | None = None  # term and token, while it leads
        self._led: tuple[int, int | None] | None = None  # as on-lead was last told
        self._news = asyncio.Event()
        self._ending = False
        self._task = asyncio.create_task(self._run(), name=f"hooks {group}")

    def saw(self, state: Leadership) -> None:
        """Note a state of the group."""
        if not self._ending:
            self._state = state
            self._wanted = (state.term, state.token) if state.leading else None
            self._news.set()

    async def end(self) -> None:
        """The member has left: run on-lose if on-lead had run, and wait for the end."""
        self._ending, self._wanted = True, None
        self._news.set()
        await asyncio.wait({self._task})  # if the caller is cancelled, the hook goes on

    def cancel(self) -> asyncio.Task[None]:
        """Wait no longer: a hook that runs is ended."""
        self._ending = True
        self._task.cancel()
        return self._task

    async def _run(self) -> None:
        while True:
            if self._led is not None and self._led != self._wanted:
                led, self._led = self._led, None
                await self._do(LOSE, self._hooks.on_lose, led)
            elif self._wanted is not None and self._led is None:
                self._led = self._wanted
                await self._while_it_leads(self._led)
            elif self._ending:
                return
            else:
                self._news.clear()
                await self._news.wait()

    async def _while_it_leads(self, led: tuple[int, int | None]) -> None:
        """Run on-lead, and end it when leadership is lost."""
        doing = asyncio.create_task(self._do(LEAD, self._hooks.on_lead, led))
        try:
            while not doing.done() and self._wanted == led:
                self._news.clear()
                news = asyncio.create_task(self._news.wait())
                await asyncio.wait({doing, news}, return_when=asyncio.FIRST_COMPLETED)
                news.cancel()
        finally:
            if not doing.done():
                doing.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait({doing})
        if not doing.cancelled():
            doing.result()

    async def _do(self, name: str, line: str | None, led: tuple[int, int | None]) -> None:
        if line is None:
            return
        state = self._state
        leader = None if state is None or state.leader is None else state.leader.name
        reason = "" if state is None or name == LEAD else state.reason
        if name == LEAD:
            leader = self._member
        words = hook_words(name, self._group, self._member, *led, leader, reason)
        environment = {**self._environment, **words}
        fields = {"group": self._group, "term": led[0]}
        await run_hook(HookRun(name, line, environment, self._hooks.timeout_s, self._log, fields))

"""A member that leads when the test says so, and a look at the processes that came of a command."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from hustings.agent.command import CommandSpec, Supervised
from hustings.core.outcome import Guarantee
from hustings.net.loss_reason import LossReason
from hustings.net.member_state import LeadershipLost
from hustings.net.restarts import RestartPolicy
from tests.net.kit import loops

# For a busy machine; where many planted bugs make tests wait in vain, less will do.
PATIENCE_S = float(os.environ.get("HUSTINGS_TESTS_PATIENCE", "30"))


@dataclass(frozen=True)
class PlayedPeer:
    name: str
    id: int = 0


@dataclass(frozen=True)
class PlayedState:
    term: int
    leader: PlayedPeer | None
    leading: bool
    reason: str = "electing"


@dataclass
class PlayedTerm:
    number: int
    token: int | None = None
    draining: asyncio.Event = field(default_factory=asyncio.Event)
    lost: asyncio.Event = field(default_factory=asyncio.Event)
    reason: LossReason | None = None


class PlayedMember:
    """As the real one as far as a supervised command can tell."""

    group = "billing"
    bound = 0.25
    seats = 1
    handed = False
    guarantee = Guarantee.ADVISORY
    until: float | None = None

    def __init__(self, name: str = "web-1") -> None:
        self.name = name
        self.token: int | None = None
        self.terms = 0
        self.marks: dict[str, float] = {}
        self.calls: list[str] = []
        self.bodies = 0
        self.drains: list[float] = []
        self._leading = asyncio.Event()
        self._changed = asyncio.Condition()
        self._bodies: dict[asyncio.Task[object], PlayedTerm] = {}
        self._lost: dict[asyncio.Task[object], bool] = {}

    # --- the test's side -------------------------------------------------------------------------

    async def lead(self) -> None:
        self.terms += 1
        self._leading.set()
        await self._change()

    async def lose(self) -> None:
        self._leading.clear()
        for task, term in self._bodies.items():
            self._lost[task] = True
            term.lost.set()
            task.cancel()
        await self._change()

    async def hand_over(self) -> None:
        """As `transfer`: ask the bodies to finish, and lead no more when they have."""
        for term in self._bodies.values():
            term.draining.set()
        while self._bodies:
            await asyncio.sleep(0.005)
        await self.lose()

    @property
    def campaigns(self) -> list[PlayedTerm]:
        """The terms of campaigns that have not ended."""
        return list(self._bodies.values())

    async def _change(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    # --- the member's side -----------------------------------------------------------------------

    def witness(self) -> AbstractContextManager[tuple[int, ...]]:
        return nullcontext(())

    @property
    def state(self) -> PlayedState:
        leading = self._leading.is_set()
        return PlayedState(self.terms, PlayedPeer(self.name) if leading else None, leading)

    @asynccontextmanager
    async def campaign(self, drain: float = 0.0) -> AsyncIterator[PlayedTerm]:
        await self._leading.wait()
        task = asyncio.current_task()
        assert task is not None
        term = self._bodies[task] = PlayedTerm(self.terms, self.token)
        self.bodies += 1
        self.drains.append(drain)
        try:
            yield term
        except asyncio.CancelledError:
            if not self._lost.pop(task, False) or task.uncancel() > 0:
                raise  # somebody else has cancelled it, too
            raise LeadershipLost("lost") from None
        finally:
            del self._bodies[task]

    async def observe(self) -> AsyncIterator[PlayedState]:
        last: PlayedState | None = None
        while True:
            async with self._changed:
                while self.state == last:
                    await self._changed.wait()
                last = self.state
            yield last

    def mark(self, name: str, value: float) -> None:
        self.marks[name] = value

    def marks_of(self, member: int) -> dict[str, float]:
        return self.marks if member == 0 else {}

    async def resign(self) -> None:
        self.calls.append("resign")

    async def stand(self) -> None:
        self.calls.append("stand")


class PlayedJoining:
    """As the real one as far as `supervise` can tell."""

    group = "billing"
    is_local = True
    is_guarded = False
    preempts = False

    def __init__(self, opened: Callable[[], Awaitable[PlayedMember]], name: str = "web-1") -> None:
        self.name = name
        self.open = opened
        self.marks: dict[str, float] = {}

    def mark(self, name: str, value: float) -> None:
        self.marks[name] = value


class Heard:
    """A log that keeps its events."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []
        self.said: list[str] = []

    def info(self, event: str, message: str, **fields: object) -> None:
        self.events.append((event, message))
        self.said.append(message)

    debug = warning = error = info


class Played:
    """A supervised command and everything that one can see of it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.member = PlayedMember(name)
        self.log = Heard()
        self.said = self.log.said
        self.supervised: Supervised

    def supervise(
        self,
        script: str,
        # Shorter than anybody waits: a shell may lose a SIGTERM between fork and exec of a child.
        grace_s: float = PATIENCE_S / 2,
        silence_s: float = PATIENCE_S,
        restart: RestartPolicy | None = None,
        hangup_ends: bool = False,
        sole: bool = False,
    ) -> asyncio.Task[int]:
        """Run a shell script, in the folder, whenever the member leads."""
        spec = CommandSpec(
            ("sh", "-c", f"cd '{self.folder}'\n{script}"),
            grace_s=grace_s,
            silence_s=silence_s,
            restart=restart or RestartPolicy(),
            hangup_ends=hangup_ends,
        )
        self.supervised = Supervised(self.member, spec, self.log, sole=sole)
        return asyncio.create_task(self.supervised.run())

    def wrote(self, name: str) -> str:
        """What the script has written to a file, or nothing."""
        try:
            return (self.folder / name).read_text()
        except FileNotFoundError:
            return ""

    def processes(self) -> list[int]:
        return processes_of(self.member.name)


Story = Callable[[Played], Coroutine[Any, Any, None]]
Play = Callable[[Story], None]

# Scripts
WAITS = "echo $$ > pid; exec sleep 600"
DEAF = "trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done"


def gone(process: int) -> bool:
    """Whether there is no such process."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def processes_of(member: str) -> list[int]:
    """Every process, the unburied dead apart, that came of this member's command."""
    mark = b"HUSTINGS_MEMBER=" + member.encode() + b"\0"
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if mark in Path("/proc", name, "environ").read_bytes():
                    found.append(int(name))
            except OSError:
                continue
    return found


class Guards(NamedTuple):
    """The processes that stand between a member and its command."""

    guardian: int
    supervisor: int


def guards_of(member: str) -> Guards:
    """Both, once both are there."""
    found = [each for each in processes_of(member) if b"supervisor.py" in _command_line(each)]
    (supervisor,) = [each for each in found if parent_of(each) in found]
    (guardian,) = [each for each in found if each != supervisor]
    return Guards(guardian, supervisor)


def parent_of(process: int) -> int:
    return int(Path("/proc", str(process), "stat").read_text().rpartition(")")[2].split()[1])


def children_of(process: int) -> list[int]:
    """Children as the system lists them, the unburied dead too."""
    return [
        int(each) for each in Path(f"/proc/{process}/task/{process}/children").read_text().split()
    ]


def new_children() -> Callable[[], list[int]]:
    """A question that answers with the children this process got since; engines may be older."""
    before = set(children_of(os.getpid()))
    return lambda: [each for each in children_of(os.getpid()) if each not in before]


def _command_line(process: int) -> bytes:
    try:
        return Path("/proc", str(process), "cmdline").read_bytes()
    except OSError:
        return b""


async def until(condition: Callable[[], object], what: str = "") -> None:
    """Wait for a condition; one that does not come true is a failure."""
    await loops.until(condition, what or str(condition), PATIENCE_S)

"""Play rounds: kill each way's leader, end the next one, pause the one after it, and wake it.

All ways run beside each other all the time, and what happens to one of them happens to the others
within the same seconds.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.alternatives.contenders import QUORUM, Contender
from bench.alternatives.journal import Overlap, Reader, gap, overlap
from bench.alternatives.recipes import LEASE_S
from tests.guard.engines import started
from tests.guard.engines.base import Engine, free_port, signal_to

WORKERS = 3
SETTLING_S = 120.0  # engines and interpreters start, and each way has a leader
STEADY_S = 1.5  # how long a leader has worked alone before something happens to it
RESTED_S = LEASE_S + 1.0  # how long each worker has been a candidate: some wait for a lease first
APART_S = 0.5  # between what happens to one way and to the next
PATIENCE_S = 10.0  # for a successor, and the length of a pause: twice the lease
WATCH_S = 3.0  # how long a worker that was woken is watched
ROOT = Path(__file__).resolve().parents[2]


class NoRound(Exception):
    """A round that could not be played, and why."""


@dataclass(frozen=True, slots=True)
class Round:
    """What came out of one way. A gap is None if nobody led within `PATIENCE_S`."""

    killed_s: float | None
    ended_s: float | None
    paused_s: float | None
    ended: Overlap
    woken: Overlap


class Group:
    """The processes of one way that want to lead, and their journal."""

    def __init__(self, way: Contender, url: str, folder: Path) -> None:
        self.way, self.url, self.folder = way, url, folder
        self.name = f"alternatives-{way.code}-{os.urandom(4).hex()}"
        self.path = folder / "journal"
        self.path.touch()
        self.journal = Reader(self.path)
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.began: dict[str, float] = {}

    def start(self) -> None:
        """Have all workers run."""
        for name in (f"w{number}" for number in range(WORKERS)):
            if name not in self.running:
                self.began[name] = time.monotonic()
                self.running[name] = self._process(name)

    def _process(self, name: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "bench.alternatives.process", self.way.recipe]
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [*command, self.name, self.url, name, str(self.path)],
                cwd=ROOT,
                env={**os.environ, "HUSTINGS_LOCAL_DIR": str(self.folder)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def kill(self, name: str) -> None:
        """SIGKILL; back when it is gone."""
        process = self.running.pop(name)
        process.kill()
        process.wait()

    def end(self, name: str) -> None:
        """SIGTERM."""
        self.running[name].terminate()

    def pause(self, name: str) -> None:
        """SIGSTOP."""
        os.kill(self.running[name].pid, signal.SIGSTOP)

    def wake(self, name: str) -> None:
        """SIGCONT."""
        signal_to(self.running[name].pid, signal.SIGCONT)

    def leader(self) -> str:
        """The worker that alone has worked for a moment."""
        self.journal.look()
        names = {beat.name for beat in self.journal.since(time.monotonic() - STEADY_S / 2)}
        if len(names) != 1:
            raise NoRound(f"{self.way.label}: {len(names)} workers led at one time; {self.said()}")
        return names.pop()

    def settled(self) -> bool:
        """Whether all have been candidates for a lease, and one has led alone for a while."""
        for name, process in self.running.items():
            if process.poll() is not None:
                raise NoRound(f"{self.way.label}: {name} has ended; {self.said()}")
        self.journal.look()
        now = time.monotonic()
        since = [max(at, self.journal.waiting.get(name, now)) for name, at in self.began.items()]
        late = self.journal.since(now - STEADY_S)
        if not late or now - max(since) < RESTED_S:
            return False
        alone = len({beat.name for beat in late}) == 1
        return alone and late[0].at < now - STEADY_S + 0.5 and late[-1].at > now - 0.5

    def said(self) -> str:
        """The last line that any worker wrote."""
        for log in sorted(self.folder.glob("*.log")):
            lines = log.read_text(errors="replace").strip().splitlines()
            if lines:
                return f"{log.stem} said: {lines[-1]}"
        return "the workers said nothing"

    def close(self) -> None:
        for name in list(self.running):
            self.wake(name)
            self.kill(name)


@contextmanager
def groups(ways: Sequence[Contender]) -> Iterator[list[Group]]:
    """Each way's workers and engine, and nothing of them left afterwards."""
    with ExitStack() as stack:
        needed = dict.fromkeys(way.engine for way in ways if way.engine is not None)
        engines = {name: stack.enter_context(started(name)) for name in needed}
        parent = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hustings-ways-")))
        found = []
        for way in ways:
            folder = parent / way.code
            folder.mkdir()
            group = Group(way, _url(way, engines), folder)
            stack.callback(group.close)
            group.start()
            found.append(group)
        yield found


def _url(way: Contender, engines: Mapping[str, Engine]) -> str:
    if way.engine is not None:
        return engines[way.engine].url()
    if way.code == f"hustings-{QUORUM}":
        return "quorum://" + ",".join(f"w{number}" for number in range(WORKERS))
    if way.recipe == "pysyncobj":
        return ",".join(f"127.0.0.1:{free_port()}" for _ in range(WORKERS))
    return ""


@dataclass(frozen=True, slots=True)
class Fault:
    """What happened to a leader, and when."""

    group: Group
    name: str
    at: float

    def gap(self) -> float | None:
        self.group.journal.look()
        return gap(self.group.journal.since(self.at), self.name, self.at)

    def overlap(self) -> Overlap:
        self.group.journal.look()
        return overlap(self.group.journal.since(self.at), self.name, self.at)


def play(found: Sequence[Group]) -> dict[str, Round]:
    """Kill every leader, end the next ones, pause the next ones past their leases and wake them."""
    settle(found)
    faults = strike(found, Group.kill)
    killed = successors(faults)
    settle(found)
    faults = strike(found, Group.end)
    ended = successors(faults)
    for fault in faults:
        _buried(fault)
    stayed = [fault.overlap() for fault in faults]
    settle(found)
    faults = strike(found, Group.pause)
    paused, woken = _wake(faults)
    for fault in faults:
        fault.group.kill(fault.name)  # a way may never notice that it leads no more
    return {
        group.way.code: Round(*parts)
        for group, *parts in zip(found, killed, ended, paused, stayed, woken, strict=True)
    }


def settle(found: Sequence[Group]) -> None:
    """Have all workers run, and wait until each way has had one leader for a while."""
    for group in found:
        group.start()
    end = time.monotonic() + SETTLING_S
    while waiting := [group for group in found if not group.settled()]:
        if time.monotonic() > end:
            raise NoRound(
                f"{waiting[0].way.label}: no worker led alone within {SETTLING_S:g} s; "
                f"{waiting[0].said()}"
            )
        time.sleep(0.1)


def strike(found: Sequence[Group], what: Callable[[Group, str], None]) -> list[Fault]:
    """Do it to each way's leader, to one after the other."""
    faults = []
    for group in found:
        name = group.leader()
        faults.append(Fault(group, name, time.monotonic()))
        what(group, name)
        time.sleep(APART_S)
    return faults


def successors(faults: Sequence[Fault]) -> list[float | None]:
    """The gaps, once each way has had its time."""
    for fault in faults:
        while fault.gap() is None and time.monotonic() < fault.at + PATIENCE_S:
            time.sleep(0.05)
    return [fault.gap() for fault in faults]


def _buried(fault: Fault) -> None:
    """Wait for the end of a worker that was told to end, and kill it if it does not come."""
    process = fault.group.running.pop(fault.name)
    try:
        process.wait(max(0.1, fault.at + PATIENCE_S - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wake(faults: Sequence[Fault]) -> tuple[list[float | None], list[Overlap]]:
    """End each pause after its length, and watch; the gaps and what was written beside others."""
    paused = []
    for fault in faults:
        time.sleep(max(0.0, fault.at + PATIENCE_S - time.monotonic()))
        paused.append(fault.gap())
        fault.group.wake(fault.name)
    time.sleep(WATCH_S)
    return paused, [fault.overlap() for fault in faults]

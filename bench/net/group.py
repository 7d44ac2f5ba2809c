"""The driver's end of one group: start, kill, pause, tell, and wait until all agree."""

from __future__ import annotations

import fcntl
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from bench.measure import say
from bench.net.contenders import Contender
from bench.net.records import NOBODY, unpack
from bench.net.timeline import Agreement, Timeline

ROOT = Path(__file__).resolve().parent.parent.parent
PIPE_SIZE = 1 << 20
LOG_TAIL = 4096
STEP_S = 0.02


class GroupFailed(Exception):
    """The group did not get where a measurement needs it; the sentence gives group and reason."""


def free_port(count: int) -> int:
    """Return the first of `count` free ports in a row; only needed in a shared network."""
    for _ in range(100):
        first = random.randrange(20_000, 31_000)
        try:
            for port in range(first, first + count):
                for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                    with socket.socket(socket.AF_INET, kind) as probe:
                        probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first
    raise GroupFailed(f"no {count} free ports in a row were found")


def last_words(log: IO[bytes]) -> list[str]:
    """Return the size of the standard error output, and its end."""
    size = log.seek(0, os.SEEK_END)
    if not size:
        return []
    log.seek(max(0, size - LOG_TAIL))
    lines = log.read().decode(errors="replace").split("\n")
    last = next((line for line in reversed(lines) if line.strip()), "")
    return [f"{size:,} bytes on standard error, the last line: {last.strip()[:200]}"]


class Group:
    """N members of one contender; used in `with`, so that no process outlives the measurement."""

    def __init__(
        self, contender: Contender, n: int, *, per_process: int = 1, separate: bool = False
    ) -> None:
        self.contender = contender
        self.n = n
        self.per_process = per_process
        self.separate = separate
        self.processes = -(-n // per_process)
        self.pids: dict[int, int] = {}
        self.paused: list[int] = []
        self.timeline = Timeline()
        self.rest = b""
        self.errors: list[str] = []  # standard error of its processes; known at the end

    def __enter__(self) -> Group:
        self.reading, reports = os.pipe()
        fcntl.fcntl(self.reading, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
        os.set_blocking(self.reading, False)
        plan = {
            "module": self.contender.module,
            "settings": self.contender.settings_for(self.n),
            "n": self.n,
            "per_process": self.per_process,
            "exec": self.separate,
            "reports": reports,
            "port": free_port(self.n),
            "driver": os.getpid(),
        }
        self.log = tempfile.TemporaryFile()
        self.nursery = subprocess.Popen(
            [sys.executable, "-m", "bench.net.nursery", json.dumps(plan)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            cwd=ROOT,
            pass_fds=[reports],
            env={**os.environ, "PYTHONHASHSEED": "0"},
        )
        os.close(reports)
        self.own_network = bool(self.answer()["own"])
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self.nursery.communicate(timeout=20)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            self.nursery.kill()  # the members die with it
            self.nursery.communicate()
        os.close(self.reading)
        with self.log:
            self.errors = last_words(self.log)
        for line in self.errors:
            say(f"{self}: {line}")

    def answer(self) -> Any:
        assert self.nursery.stdout is not None
        line = self.nursery.stdout.readline()
        if not line:
            raise GroupFailed(f"{self}: the parent of its processes died")
        return json.loads(line)

    def ask(self, do: str, **fields: object) -> Any:
        assert self.nursery.stdin is not None
        self.nursery.stdin.write(json.dumps({"do": do, **fields}) + "\n")
        self.nursery.stdin.flush()
        return self.answer()

    def __str__(self) -> str:
        return f"{self.contender.label}, N = {self.n}"

    # --- doing ---------------------------------------------------------------------------------

    def start(self, processes: Sequence[int] | None = None) -> int:
        """Start all processes, or those given; returns the time just before the first."""
        wanted = list(range(self.processes)) if processes is None else list(processes)
        begin = time.monotonic_ns()
        pids = self.ask("start", processes=wanted)
        self.pids.update({int(process): pid for process, pid in pids.items()})
        return begin

    def kill(self, process: int) -> int:
        """SIGKILL to a process; returns the time just before."""
        pid = self.pids.pop(process)
        begin = time.monotonic_ns()
        os.kill(pid, signal.SIGKILL)
        self.ask("reap", process=process)
        self.pump(0)
        for member in self.members_of(process):
            self.timeline.forget(member)
        return begin

    def pause(self, process: int) -> int:
        begin = time.monotonic_ns()
        os.kill(self.pids[process], signal.SIGSTOP)
        self.paused.append(process)
        return begin

    def resume(self, process: int) -> int:
        begin = time.monotonic_ns()
        os.kill(self.pids[process], signal.SIGCONT)
        self.paused.remove(process)
        return begin

    def tell(self, member: int, do: str, to: int | None = None) -> None:
        what = {"do": do, "member": member, "to": to}
        self.ask("tell", process=member // self.per_process, what=what)

    # --- seeing --------------------------------------------------------------------------------

    def members_of(self, process: int) -> range:
        first = process * self.per_process
        return range(first, min(first + self.per_process, self.n))

    def live(self) -> list[int]:
        """Return the members of the processes that run and are not paused."""
        return [
            member
            for process in sorted(self.pids)
            if process not in self.paused
            for member in self.members_of(process)
        ]

    def pump(self, seconds: float) -> bool:
        """Read members' reports, for this long at most; True if any came."""
        ready, _, _ = select.select([self.reading], [], [], seconds)
        if not ready:
            return False
        data = os.read(self.reading, PIPE_SIZE)
        records, self.rest = unpack(self.rest + data)
        self.timeline.add(records)
        return bool(records)

    def watch(self, seconds: float) -> None:
        """Let time pass and read reports."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.pump(left)

    def agreed(self, patience_s: float, steady_s: float) -> Agreement:
        """Wait until all live members follow one of them, and have done so for `steady_s`."""
        live = self.live()
        end = time.monotonic() + patience_s
        while time.monotonic() < end:
            self.pump(STEP_S)
            found = self.timeline.agreement(live)
            if found and time.monotonic_ns() - found.at_ns >= steady_s * 1e9:
                return found
        said = [self.timeline.leaders.get(member, NOBODY) for member in live]
        lost = said.count(NOBODY)
        most = Counter(said).most_common(3)
        parts = [f"{count} follow {leader}" for leader, count in most if leader != NOBODY]
        split = ", ".join([f"{lost} of {len(live)} follow nobody", *parts])
        raise GroupFailed(f"{self}: no agreement within {patience_s:g} s: {split}")

    def packets(self) -> int:
        return int(self.ask("packets"))

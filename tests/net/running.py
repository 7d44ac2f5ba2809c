"""`hustings run` as processes on this machine, and a look at the processes that come of them."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_S, until

RUN = [sys.executable, "-m", "hustings", "run"]

# Deaf to SIGTERM: the command, a child, an orphan, and one that has fled into another session. The
# command begets processes while it is ended; the others only wait.
DEAF = """
deaf() { trap '' TERM; exec sleep 600; }
(deaf) &
((deaf) & )
setsid sh -c 'trap "" TERM; exec sleep 600' &
trap '' TERM
while :; do sleep 0.05; done
"""
WAITING = "exec sleep 600"

_MARK = re.compile(rb"\0HUSTINGS_MEMBER=([^\0]*)\0")


def processes_by_member() -> dict[str, list[int]]:
    """Every process, the unburied dead apart, that came of a member's command."""
    found: dict[str, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError):
                mark = _MARK.search(b"\0" + Path("/proc", name, "environ").read_bytes())
                if mark is not None:
                    found.setdefault(os.fsdecode(mark[1]), []).append(int(name))
    return found


def processes_of(member: str) -> list[int]:
    """The processes that came of this member's command."""
    return processes_by_member().get(member, [])


def commands_in(processes: Iterable[int]) -> list[int]:
    """Those that are neither keeper nor guardian."""
    return [each for each in processes if b"supervisor.py" not in command_line(each)]


def command_of(member: str) -> list[int]:
    return commands_in(processes_of(member))


def guards_of(member: str) -> tuple[int, int]:
    """The guardian and its child, the keeper."""
    found = [each for each in processes_of(member) if b"supervisor.py" in command_line(each)]
    (guardian,) = [each for each in found if children_of(each) in map(str, found)]
    (keeper,) = [each for each in found if each != guardian]
    return guardian, keeper


def keeper_of(member: str) -> int:
    return guards_of(member)[1]


def guardian_of(member: str) -> int:
    return guards_of(member)[0]


def command_line(process: int) -> bytes:
    try:
        return Path("/proc", str(process), "cmdline").read_bytes()
    except OSError:
        return b""


def children_of(process: int) -> str:
    """Children as the system lists them, the unburied dead too."""
    return Path(f"/proc/{process}/task/{process}/children").read_text().strip()


class Running:
    """One `hustings run`."""

    def __init__(self, process: subprocess.Popen[bytes], name: str, errors: Path) -> None:
        self.process = process
        self.name = name
        self.errors = errors

    @property
    def said(self) -> str:
        return self.errors.read_text()

    @property
    def address(self) -> str:
        until(lambda: " is a member of group " in self.said, f"{self.name} joins: {self.said}")
        found = re.search(rf"info    hustings: {self.name} at (\S+) is a member", self.said)
        assert found is not None, self.said
        return found[1]

    @property
    def leads(self) -> bool:
        return bool(command_of(self.name))

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        """Its exit code, after which nothing of its command may be left."""
        code = self.process.wait(PATIENCE_S)
        assert processes_of(self.name) == []
        return code


class Runs:
    """The members of one group, each a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.group = f"group-{uuid.uuid4().hex[:12]}"
        self.all: list[Running] = []

    def start(
        self,
        script: str,
        *options: str,
        grace: str = "300ms",
        stdin: int | None = subprocess.DEVNULL,
        stdout: int | None = subprocess.DEVNULL,
        own_session: bool = True,
        variables: Mapping[str, str] | None = None,
        joins: bool = True,
    ) -> Running:
        """A further member, which runs a shell script while it leads.

        Its seeds are all that are up, after they have said where they are, unless `joins` is False.
        """
        name = f"{self.group}-{len(self.all)}"
        up = [one for one in self.all if joins and one.process.poll() is None]
        seeds = [text for one in up for text in ("--join", one.address)]
        errors = self.folder / f"{name}.err"
        settings = ["--name", name, "--grace", grace, *seeds, *options]
        with errors.open("wb") as stream:
            process = subprocess.Popen(
                [*RUN, self.group, *settings, "--", "sh", "-c", script],
                cwd=self.folder,
                stdin=stdin,
                stdout=stdout,
                stderr=stream,
                start_new_session=own_session,
                env={**os.environ, **(variables or {})},
            )
        self.all.append(Running(process, name, errors))
        return self.all[-1]

    def leading(self) -> list[Running]:
        found = processes_by_member()  # one look at all processes, and tests look often
        return [one for one in self.all if commands_in(found.get(one.name, ()))]

    def leader(self) -> Running:
        """The one that runs the command, once there is exactly one."""
        found: list[Running] = []

        def one_leads() -> bool:
            found[:] = self.leading()
            return len(found) == 1

        until(one_leads, "one member runs the command")
        return found[0]

    def others(self, one: Running) -> list[Running]:
        return [each for each in self.all if each is not one]

    def close(self) -> None:
        """End what is left, and print what all said: pytest shows it when the test has failed."""
        for one in self.all:
            print(f"-- {one.name}, exit code {one.process.poll()}:", one.said, sep="\n")
            if one.process.poll() is None:
                one.process.kill()
            one.process.wait()
            for process in processes_of(one.name):
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)


@contextmanager
def group_of_runs(folder: Path) -> Iterator[Runs]:
    """Members of which nothing is left afterwards."""
    runs = Runs(folder)
    try:
        yield runs
    finally:
        runs.close()


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    """Members of one group, which the test starts."""
    with group_of_runs(tmp_path) as started:
        yield started


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as port:
        port.bind(("127.0.0.1", 0))
        number: int = port.getsockname()[1]
        return number

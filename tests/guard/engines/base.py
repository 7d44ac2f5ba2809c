"""What the tests do with an engine: start it, stop it, hold it, and say how a guard reaches it.

A subclass that says `command`, `ready` and `url` is a server in a process of its own on 127.0.0.1.
It keeps its port and its folder from one start to the next, and nothing of it is left after
`close`. Only processes that were started here are ever signalled.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

PATIENCE_S = 60.0  # to start or to end: the machine may be busy


class Engine(ABC):
    """An engine, and what a guard on it can do. The attributes are for the conformance suite."""

    name: ClassVar[str]
    ttl: ClassVar[float] = 1.0  # a short one that it can do, in seconds
    long_ttl: ClassVar[float] = 20.0  # one that does not end during a test
    bad_ttls: ClassVar[tuple[float, ...]] = (0.0, -1.0, float("inf"), float("nan"))
    remote: ClassVar[bool] = True  # whether other processes reach it, by a TCP connection
    token_after_restart: ClassVar[bool] = True  # whether tokens grow although it was killed
    favours: ClassVar[bool] = True  # whether `release(to=...)` keeps others out
    wakes_s: ClassVar[float] = 2.0  # within which time a release wakes who waits

    @abstractmethod
    def start(self) -> None:
        """Run; back after `stop` it knows what it knew."""

    @abstractmethod
    def stop(self, *, kill: bool = False) -> None:
        """Run no more, by SIGKILL or by an order to end."""

    @abstractmethod
    def pause(self) -> None:
        """Hold it: connections stay, nothing is answered."""

    @abstractmethod
    def resume(self) -> None:
        """Let it go on."""

    @abstractmethod
    def url(self, group: str | None = None, at: int | None = None) -> str:
        """A guard's address, for engines that want the group in it; `at` is another port.

        At that other port listens a proxy on 127.0.0.1 that leads to `port`.
        """

    @abstractmethod
    def close(self) -> None:
        """End, and leave nothing behind."""

    def forget(self) -> None:
        """Be killed, lose everything that was kept, and run again."""
        raise NotImplementedError

    def wrong_urls(self) -> Mapping[str, str]:
        """Addresses that waiting does not cure, such as wrong credentials, and what is wrong."""
        return {}

    def secrets(self) -> tuple[str, ...]:
        """What must not appear in any message."""
        return ()


class Server(Engine):
    """An engine that is a process."""

    def __init__(self) -> None:
        self.port = free_port()
        # Not a folder of pytest's: an engine that runs as somebody else must be able to enter.
        self.folder = Path(tempfile.mkdtemp(prefix=f"hustings-{self.name}-"))
        self.log = self.folder / "log"
        self.process: subprocess.Popen[bytes] | None = None
        self._prepared = False

    @abstractmethod
    def command(self) -> list[str]:
        """What runs the server, in the foreground."""

    @abstractmethod
    def ready(self) -> bool:
        """Whether it answers; may raise OSError when it does not."""

    def prepare(self) -> None:
        """What has to be done once before the first start."""

    def configure(self) -> None:
        """What has to be done once after the first start."""

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    end_signal: ClassVar[signal.Signals] = signal.SIGTERM
    user: ClassVar[str | None] = None  # who runs it where the tests run as root

    # Verbs

    def start(self) -> None:
        if self.process is not None:
            return
        if self.acts_as is not None:
            account = pwd.getpwnam(self.acts_as)
            os.chown(self.folder, account.pw_uid, account.pw_gid)
        if not self._prepared:
            self.prepare()
        with self.log.open("ab") as log:
            self.process = self.popen(self.command(), log.fileno())
        self._await_ready()
        if not self._prepared:
            self.configure()
            self._prepared = True

    def stop(self, *, kill: bool = False) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        if kill:  # who is held has no more children
            signal_to(process.pid, signal.SIGSTOP)
            wait_until(lambda: state_of(process.pid) in "TtZX", f"{self.name} to be held")
        everybody = [process.pid, *descendants(process.pid)]
        for pid in everybody if kill else []:
            signal_to(pid, signal.SIGKILL)
        signal_to(process.pid, signal.SIGCONT)
        signal_to(process.pid, self.end_signal)
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        wait_until(lambda: not any(map(is_running, everybody)), f"the end of all of {self.name}")

    def pause(self) -> None:
        """Back when all of it is held: a signal reaches many threads one by one."""
        self._signal_all(signal.SIGSTOP)
        wait_until(self._stands_still, f"all threads of {self.name} to stop")

    def resume(self) -> None:
        self._signal_all(signal.SIGCONT)

    def forget(self) -> None:
        self.stop(kill=True)
        for each in self.kept():
            if each.is_dir():
                shutil.rmtree(each)
            else:
                each.unlink(missing_ok=True)
        self._prepared = False
        self.start()

    def kept(self) -> list[Path]:
        """Where it keeps what it must remember."""
        return [each for each in self.folder.iterdir() if each != self.log]

    def close(self) -> None:
        try:
            self.resume()
            self.stop(kill=True)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    # Parts

    @property
    def acts_as(self) -> str | None:
        """Somebody else, if the tests run as root and the server refuses to."""
        return self.user if os.geteuid() == 0 else None

    def popen(self, command: list[str], log: int) -> subprocess.Popen[bytes]:
        environment = self.environment()
        if self.acts_as is None:
            return subprocess.Popen(
                command,
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        account = pwd.getpwnam(self.acts_as)
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            user=account.pw_uid,
            group=account.pw_gid,
            extra_groups=[],
        )

    def run(self, command: list[str]) -> None:
        """Run something to its end, as the server's user; what it says is in the log."""
        with self.log.open("ab") as log:
            code = self.popen(command, log.fileno()).wait(PATIENCE_S)
        assert code == 0, f"{command[0]} ended with {code}: {self.said()}"

    def said(self) -> str:
        return self.log.read_text(errors="replace")[-2000:]

    def _signal_all(self, number: signal.Signals) -> None:
        for pid in self._processes():
            signal_to(pid, number)

    def _processes(self) -> list[int]:
        if self.process is None:
            return []
        return [self.process.pid, *descendants(self.process.pid)]

    def _stands_still(self) -> bool:
        return all(stands_still(pid) for pid in self._processes())

    def _await_ready(self) -> None:
        def is_ready() -> bool:
            assert self.process is not None
            assert self.process.poll() is None, f"{self.name} has ended: {self.said()}"
            try:
                return self.ready()
            except OSError:
                return False

        wait_until(is_ready, f"{self.name} to answer")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until(condition: Callable[[], object], what: str, within_s: float = PATIENCE_S) -> None:
    """Wait for something that other processes do; in vain is a failure."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"waited {within_s:g} s in vain for {what}"
        time.sleep(0.02)


def signal_to(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def state_of(pid: int) -> str:
    """One letter, as the system gives it: T is held, Z unburied, X gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def stands_still(pid: int) -> bool:
    """Whether each of its threads is held or gone."""
    tasks = Path(f"/proc/{pid}/task").glob("*")
    return all(state_of(int(each.name)) in "TtZX" for each in tasks)


def is_running(pid: int) -> bool:
    """Whether a process is there and not merely unburied."""
    return state_of(pid) not in "ZX"


def descendants(pid: int) -> list[int]:
    """All processes that come of this one: some servers put theirs into groups of their own."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [each for child in map(int, text.split()) for each in (child, *descendants(child))]

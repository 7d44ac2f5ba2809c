"""The process that stands between a member and the command it runs: a script of its own.

It starts the command in a session of its own and ends it, with everything that came of it, as soon
as it is told to, or the member's process says nothing for too long (it was stopped, or starved), or
that process is gone. No way of ending the member's process leaves the command running. It adopts
what the command leaves behind, so that nothing escapes by being orphaned or by a session of its
own. That needs Linux.

Law: standard library only, and nothing of ours. It runs by path, isolated, and must start quickly.

What it is told is two bytes, a letter and a number: `.` the member's process lives, `e` end it,
`k` kill it, `s` give the command the signal of that number, `g` give it to its whole process group.
One order is longer: `u` and a time, eight bytes, by the monotonic clock that all processes of a
machine share: until then the member leads, and when nothing later is said the command is ended.
What it tells is lines: `started PID`, `refused ERRNO`, `starved`, `expired`, `ended STATUS`,
`left COUNT`, `gone`.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import struct
import sys
import time
from contextlib import suppress

TYPE_CHECKING = False  # as a type checker knows it; the module it is in takes too long to import
if TYPE_CHECKING:
    from typing import NoReturn

SETTLE_S = 1.0  # within which what was killed should be gone
LOOK_S = 0.01  # between two looks at what was killed
SLOW_LOOK_S = 0.5  # the same, for what should long be gone
NEVER = float("inf")

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
DEAF_TO = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGTSTP)
DEAF_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def process_control(option: int, value: int) -> bool:
    """Linux's `prctl`; False where there is none."""
    try:
        prctl = ctypes.CDLL(None).prctl
    except (OSError, AttributeError, TypeError):
        return False
    return bool(prctl(option, ctypes.c_ulong(value), 0, 0, 0) == 0)


def adopt_orphans(adopt: bool = True) -> bool:
    """Make this process the parent of whatever its descendants leave behind, or no longer."""
    return process_control(PR_SET_CHILD_SUBREAPER, int(adopt))


def descendants(of: int) -> list[tuple[int, int, bool]]:
    """Process, parent, and whether it is dead and only unburied."""
    children: dict[int, list[tuple[int, int, bool]]] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    for name in names:
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as stream:
                # The name of the program comes second, in brackets, and may hold anything.
                state, parent = stream.read().rpartition(b")")[2].split()[:2]
        except (OSError, ValueError):
            continue  # it is gone
        found = int(name), int(parent), state in (b"Z", b"X")
        children.setdefault(int(parent), []).append(found)
    family = list(children.get(of, ()))
    for process, _, _ in family:
        family += children.get(process, ())
    return family


class Keeper:
    """One command, from its start until nothing of it is left."""

    def __init__(
        self, control: int, grace_s: float, silence_s: float, until: float, command: list[str]
    ) -> None:
        self.control = control
        self.grace_s = grace_s
        self.silence_s = silence_s
        self.command = command
        self.listening = True
        self.orders = b""
        self.main = 0  # the command's process and process group; 0 once it is buried
        self.ended = False  # the command itself; what it started may live on
        self.ending = False
        self.stirred = False  # a child may have ended since we last looked
        self.heard_at = time.monotonic()
        self.until = until  # when leading ends, unless a later time is told
        self.kill_at = self.left_at = NEVER
        self.wake, wake = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    # --- the command -----------------------------------------------------------------------------

    def start(self) -> bool:
        """Whether the command runs now."""
        told, tell = os.pipe()  # closed by a successful exec
        keeper = os.getpid()
        hearing = [each for each in DEAF_TO if signal.getsignal(each) is not signal.SIG_IGN]
        for each in DEAF_TO:
            signal.signal(each, signal.SIG_IGN)
        self.main = os.fork()
        if self.main == 0:
            self._become(tell, keeper, hearing)
        os.close(tell)
        with os.fdopen(told, "rb") as stream:
            refused = stream.read()
        if refused:
            os.waitpid(self.main, 0)
            self.tell("refused", int(refused))
            return False
        self.tell("started", self.main)
        return True

    def _become(self, tell: int, keeper: int, hearing: list[signal.Signals]) -> NoReturn:
        """In the child: become the command, or say why not."""
        try:
            process_control(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != keeper:
                os._exit(127)  # it was gone before we could ask to go with it
            os.setsid()
            signal.set_wakeup_fd(-1)
            for each in (*hearing, *DEAF_BY_PYTHON, signal.SIGCHLD):
                signal.signal(each, signal.SIG_DFL)
            os.execvp(self.command[0], self.command)
        except OSError as error:
            os.write(tell, str(error.errno or 0).encode())
        finally:
            os._exit(127)

    def signal(self, number: int, whole_group: bool) -> None:
        """The command is buried last of all: until then its number is nobody else's."""
        if self.main:
            with suppress(ProcessLookupError, PermissionError):
                (os.killpg if whole_group else os.kill)(self.main, number)

    def signal_all(self, *numbers: int) -> None:
        """Everything that came of the command, wherever it has gone."""
        family = descendants(os.getpid())
        strays = [each for each, _, dead in family if not dead and _group(each) != self.main]
        for number in numbers:
            self.signal(number, whole_group=True)
            for process in strays:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(process, number)

    def end(self) -> None:
        """Ask it to end; after the grace it is not asked."""
        if self.ending:
            return
        self.ending = True
        # A machine that stood still may notice late: the grace is part of the lease.
        self.kill_at = min(time.monotonic(), self.until) + self.grace_s
        if self.kill_at > time.monotonic():
            self.signal_all(signal.SIGTERM, signal.SIGCONT)  # what is stopped could not heed it

    def kill(self) -> None:
        """End it without asking."""
        self.ending = True
        self.kill_at = min(self.kill_at, time.monotonic())

    # --- until it is gone ------------------------------------------------------------------------

    def is_gone(self) -> bool:
        """Whether nothing of the command is left, not even unburied."""
        self._bury_the_adopted()
        if not self.ended:
            done = os.waitid(os.P_PID, self.main, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if done is None:
                return False
            self.ended = True
            killed = done.si_code != os.CLD_EXITED
            self.tell("ended", 128 + done.si_status if killed else done.si_status)
            self.end()  # for what it leaves behind
        if self.main and all(process == self.main for process, _, _ in descendants(os.getpid())):
            os.waitpid(self.main, 0)
            self.main = 0
        if self.main:
            return False
        try:
            os.waitpid(-1, os.WNOHANG)  # who has no child, has no descendant either
        except ChildProcessError:
            return True
        return False

    def _bury_the_adopted(self) -> None:
        me = os.getpid()
        for process, parent, dead in descendants(me):
            if dead and parent == me and process != self.main:
                with suppress(ChildProcessError):
                    os.waitpid(process, os.WNOHANG)

    # --- the loop --------------------------------------------------------------------------------

    def run(self) -> None:
        """Start the command, and return when it is gone."""
        if time.monotonic() >= self.until:
            self.tell("expired")
            self.tell("ended", 128 + signal.SIGKILL)
            self.tell("gone")
            return
        if not self.start():
            return
        while True:
            if (self.stirred or self.kill_at <= time.monotonic()) and self.is_gone():
                break
            self.stirred = False
            now = time.monotonic()
            if not self.ending and now >= self.heard_at + self.silence_s:
                self.tell("starved")
                self.end()
            if not self.ending and now >= self.until:
                self.tell("expired")
                self.end()
            if now >= self.kill_at:
                self._kill_now(now)
            self._wait(now)
        self.tell("gone")

    def _kill_now(self, now: float) -> None:
        self.signal_all(signal.SIGKILL)
        if self.left_at == NEVER:
            self.left_at = now + SETTLE_S
        elif 0 < self.left_at <= now:
            self.left_at = 0
            self.tell("left", sum(not dead for _, _, dead in descendants(os.getpid())))

    def _wait(self, now: float) -> None:
        if not self.ending:
            pause = min(self.heard_at + self.silence_s, self.until) - now
        elif now < self.kill_at:
            pause = self.kill_at - now
        else:
            pause = LOOK_S if self.left_at else SLOW_LOOK_S
        watched = [self.wake, self.control] if self.listening else [self.wake]
        ready, _, _ = select.select(watched, [], [], max(pause, 0.0))
        if self.wake in ready:
            self.stirred = True
            with suppress(BlockingIOError):
                os.read(self.wake, 4096)
        if self.control in ready:
            self._hear()

    def _hear(self) -> None:
        try:
            heard = os.read(self.control, 4096)
        except ConnectionError:
            heard = b""
        self.heard_at = time.monotonic()
        if not heard:
            self.listening = False
            self.end()
        self.orders += heard
        while len(self.orders) >= (9 if self.orders[:1] == b"u" else 2):
            if self.orders[:1] == b"u":
                (self.until,) = struct.unpack(">d", self.orders[1:9])
                self.orders = self.orders[9:]
                continue
            order, number, self.orders = self.orders[:1], self.orders[1], self.orders[2:]
            if order == b"e":
                self.end()
            elif order == b"k":
                self.kill()
            elif order in (b"s", b"g"):
                self.signal(number, whole_group=order == b"g")

    def tell(self, word: str, number: int | None = None) -> None:
        """One line to the member's process, if there still is one."""
        line = word if number is None else f"{word} {number}"
        with suppress(ConnectionError):
            os.write(self.control, line.encode() + b"\n")


def _group(process: int) -> int:
    try:
        return os.getpgid(process)
    except ProcessLookupError:
        return 0


def main(arguments: list[str]) -> None:
    """CONTROL GRACE SILENCE UNTIL COMMAND...: a socket, times in seconds, what to run."""
    control = int(arguments[0])
    os.set_inheritable(control, False)
    adopt_orphans()
    grace_s, silence_s, until = map(float, arguments[1:4])
    Keeper(control, grace_s, silence_s, until, arguments[4:]).run()


if __name__ == "__main__":
    main(sys.argv[1:])

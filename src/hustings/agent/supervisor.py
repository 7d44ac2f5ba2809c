"""The processes between a member and the command that it runs: a script of its own.

    member -> guardian -> supervisor -> command -> whatever the command starts

The supervisor starts the command in a session of its own. It ends the command, with all its
descendants, in four cases: it is told to; the member's process says nothing for too long (it was
stopped or starved); that process is gone; or the lease is over.

Supervisor and guardian are sub-reapers. A process that loses its parent is adopted by the
supervisor. If the supervisor is killed, the guardian adopts all processes and kills them. If the
guardian is killed, the supervisor ends the command. So each of the two can do without the other. No
process escapes as an orphan or by a session of its own. When both are stopped, the member does
their work (`child.py`). All this needs Linux.

Law: standard library only, and no module of ours. The script is run by path, isolated, and must
start quickly.

An order to the supervisor is two bytes, a letter and a number. `.`: the member's process lives.
`e`: end the command. `k`: kill it. `s`: send it the signal of that number. `g`: send the signal,
which asks the command to end, to its whole process group. One order is longer: `u` and a time,
eight bytes, by the monotonic clock that all processes of a machine share. The member leads until
then; if no later time is told, the command is ended.

The reports are lines. The supervisor sends `supervisor PID`, `started PID`, `refused ERRNO`,
`passed NUMBER` (that signal has reached the process group), `starved`, `expired`, `unguarded` (the
guardian is gone), `done` (the command has ended with 0, and nothing had asked it to end), `ended
STATUS`, and `empty` when nothing is left of the command. The guardian
sends `killed` (the supervisor was killed), and `gone` when nothing is left of the supervisor
either. Both send `left COUNT`: so many processes do not end.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import select
import signal
import struct
import sys
import time
from contextlib import suppress

TYPE_CHECKING = False  # type checkers know this name; its module takes too long to import
if TYPE_CHECKING:
    from collections.abc import Callable, Container
    from typing import NoReturn

SETTLE_S = 1.0  # seconds for killed processes to be gone
LOOK_S = 0.01  # between two checks of killed processes
LOOKS = 20  # checks in a row without a pause: a process that forks on is faster than a pause
SLOW_LOOK_S = 0.5  # the same, for processes that should long be gone
LATE_S = 0.5  # a supervisor that is so late with its work counts as stopped
NEVER = float("inf")
LONGEST_PAUSE_S = 3600.0  # `select` refuses an endless one

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
DEAF_TO = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGTSTP)
DEAF_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def process_control(option: int, value: int) -> bool:
    """Linux's `prctl`; False if there is none."""
    try:
        prctl = ctypes.CDLL(None).prctl
    except (OSError, AttributeError, TypeError):
        return False
    return bool(prctl(option, ctypes.c_ulong(value), 0, 0, 0) == 0)


def adopt_orphans(adopt: bool = True) -> bool:
    """Make this process the parent of all orphans among its descendants, or stop that."""
    return process_control(PR_SET_CHILD_SUBREAPER, int(adopt))


def descendants(of: int, but: Container[int] = ()) -> list[tuple[int, int, bool]]:
    """(process, parent, whether it is a zombie), except for `but` and all below these."""
    return [(process, parent, _is_dead(process)) for process, parent in below(of, but)]


def below(of: int, but: Container[int] = ()) -> list[tuple[int, int]]:
    """The same without the state: as fast as possible, since a process found may fork meanwhile."""
    children = _children if os.path.exists("/proc/thread-self/children") else _children_by_scan()
    family = [(child, of) for child in children(of) if child not in but]
    for process, _ in family:
        family += [(child, process) for child in children(process) if child not in but]
    return family


def _children(of: int) -> list[int]:
    """The system's list; a process that ends meanwhile may hide another, so look again."""
    found: list[int] = []
    with suppress(OSError):  # the process is gone
        for thread in os.listdir(f"/proc/{of}/task"):
            with open(f"/proc/{of}/task/{thread}/children", "rb") as stream:
                found += map(int, stream.read().split())
    return found


def _children_by_scan() -> Callable[[int], list[int]]:
    """From a scan of all processes, where the system does not list children."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError, ValueError):
                children.setdefault(int(_stat(int(name))[1]), []).append(int(name))
    return lambda of: children.get(of, [])


def _stat(process: int) -> list[bytes]:
    with open(f"/proc/{process}/stat", "rb") as stream:
        # The program's name comes second, in brackets, and may hold any character.
        return stream.read().rpartition(b")")[2].split()


def state_of(process: int) -> bytes:
    """The state's letter: `Z` is a zombie, `T` and `t` are stopped; empty for no process."""
    try:
        return _stat(process)[0]
    except (OSError, IndexError):
        return b""


def _is_dead(process: int) -> bool:
    return state_of(process) in (b"Z", b"X", b"")


def kill_family(of: int, but: Container[int] = ()) -> int:
    """SIGKILL to all processes below a process; returns how many seemed alive at the last check.

    Whole process groups are killed: the system does that in one step, so that no process escapes by
    a fork. A process that forks into a new session each time is searched for again at once.
    """
    spared = (0, os.getpgid(0), _group(of))
    for _ in range(LOOKS):
        family = [process for process, _ in below(of, but)]
        for process in family:
            group = _group(process)
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
            with suppress(ProcessLookupError, PermissionError):
                if group not in spared:
                    os.killpg(group, signal.SIGKILL)
        alive = [process for process in family if not _is_dead(process)]
        if not alive:
            return 0
    return len(alive)


def wake_on_child() -> int:
    """A descriptor that is readable when a child may have ended."""
    wake, woken = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return wake


def drain(descriptor: int) -> None:
    """Read what the descriptor has."""
    with suppress(BlockingIOError):
        os.read(descriptor, 4096)


def tell(control: int, word: str, number: int | None = None) -> None:
    """Send one line to the member's process, if there still is one."""
    line = word if number is None else f"{word} {number}"
    with suppress(ConnectionError):
        os.write(control, line.encode() + b"\n")


class Deadline:
    """The time when the command will have been killed, if nothing new happens.

    Supervisor and guardian share it. A stopped supervisor cannot report that it is stopped. But its
    last deadline passes, and the guardian sees that.
    """

    def __init__(self, at: float) -> None:
        self._page = mmap.mmap(-1, 8)
        self.at = at

    @property
    def at(self) -> float:
        """A time of the monotonic clock."""
        (at,) = struct.unpack_from("d", self._page)
        return float(at)

    @at.setter
    def at(self, at: float) -> None:
        struct.pack_into("d", self._page, 0, at)


class Guardian:
    """The supervisor's parent: it waits, and ends what a killed or stopped supervisor left."""

    def __init__(self, control: int, supervisor: int, deadline: Deadline) -> None:
        self.control = control
        self.supervisor = supervisor
        self.deadline = deadline
        self.wake = wake_on_child()

    def run(self) -> None:
        """Return when no process of the supervisor or its command is left."""
        tell(self.control, "supervisor", self.supervisor)
        self._wait_for_supervisor()
        self._sweep()
        tell(self.control, "gone")

    def _wait_for_supervisor(self) -> None:
        """Wait until the supervisor has ended; kill it if it lets its deadline pass.

        If the whole machine stood still, the supervisor is not at fault: it gets time to act.
        """
        missed = NEVER
        while (ended := os.waitpid(self.supervisor, os.WNOHANG)) == (0, 0):
            deadline = self.deadline.at
            pause = deadline + LATE_S - time.monotonic()
            if pause <= 0:
                if missed == deadline:
                    os.kill(self.supervisor, signal.SIGKILL)
                missed, pause = deadline, LATE_S / 2
            select.select([self.wake], [], [], None if pause == NEVER else pause)
            drain(self.wake)
        if ended[1]:
            tell(self.control, "killed")

    def _sweep(self) -> None:
        left_at, told = time.monotonic() + SETTLE_S, False
        while True:
            alive = kill_family(os.getpid())
            try:
                while os.waitpid(-1, os.WNOHANG) != (0, 0):
                    pass
            except ChildProcessError:
                return  # a process without a child has no descendant either
            if alive and not told and time.monotonic() >= left_at:
                told = True
                tell(self.control, "left", alive)
            time.sleep(SLOW_LOOK_S if told else LOOK_S)


class Supervisor:
    """One command, from its start until no process of it is left."""

    def __init__(
        self,
        control: int,
        guardian: int,
        deadline: Deadline,
        grace_s: float,
        silence_s: float,
        until: float,
        record: int,
        command: list[str],
    ) -> None:
        """`guardian` is a descriptor that is readable once the guardian is gone.

        `record` is a file for a line that says that the command has succeeded; -1: there is none.
        """
        self.control = control
        self.record = record
        self.guardian = guardian
        self.deadline = deadline
        self.grace_s = grace_s
        self.silence_s = silence_s
        self.command = command
        self.listening = True
        self.orders = b""
        self.main = 0  # the command's process and process group; 0 once it is reaped
        self.ended = False  # the command itself has; its descendants may live on
        self.ending = False  # it is to end, by our SIGTERM or by a signal that was passed on
        self.asked = False  # all descendants got SIGTERM
        self.last_signal = 0  # the last one for the whole process group
        self.stirred = False  # a child may have ended since the last check
        self.heard_at = time.monotonic()
        self.until = until  # when leading ends, unless a later time is told
        self.ask_at = self.kill_at = self.left_at = NEVER
        self.guarded = True
        self.wake = wake_on_child()

    # --- the command -----------------------------------------------------------------------------

    def start(self) -> bool:
        """Start the command; returns whether it runs now."""
        told, tell = os.pipe()  # closed by a successful exec
        supervisor = os.getpid()
        hearing = [each for each in DEAF_TO if signal.getsignal(each) is not signal.SIG_IGN]
        for each in DEAF_TO:
            signal.signal(each, signal.SIG_IGN)
        self.main = os.fork()
        if self.main == 0:
            self._become(tell, supervisor, hearing)
        os.close(tell)
        with os.fdopen(told, "rb") as stream:
            refused = stream.read()
        if refused:
            os.waitpid(self.main, 0)
            self.tell("refused", int(refused))
            return False
        self.tell("started", self.main)
        return True

    def _become(self, tell: int, supervisor: int, hearing: list[signal.Signals]) -> NoReturn:
        """In the child process: become the command, or report the error."""
        try:
            process_control(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != supervisor:
                os._exit(127)  # the supervisor was gone before PDEATHSIG was set
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
        """Send a signal to the command, which is reaped last, so that its number stays its own."""
        if self.main:
            with suppress(ProcessLookupError, PermissionError):
                (os.killpg if whole_group else os.kill)(self.main, number)

    def signal_all(self, *numbers: int) -> None:
        """Send signals to all descendants of the command, in any session."""
        family = descendants(os.getpid())
        strays = [each for each, _, dead in family if not dead and _group(each) != self.main]
        for number in numbers:
            self.signal(number, whole_group=True)
            for process in strays:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(process, number)

    def end(self) -> None:
        """Ask the command to end; it is killed after the grace."""
        if self.asked:
            return
        self._note_end()
        self.asked = True
        self.ask_at = NEVER
        self._begin_grace()
        if self.kill_at > time.monotonic():
            self.signal_all(signal.SIGTERM, signal.SIGCONT)  # SIGCONT for stopped processes

    def pass_on(self, number: int) -> None:
        """Send the process group a signal that asks it to end; it is killed after the grace.

        A command that ignores SIGINT gets SIGTERM in the middle of the grace.
        """
        self._note_end()
        self.last_signal = number
        self.signal(number, whole_group=True)
        if not self.ending:
            self._begin_grace()
            if number == signal.SIGTERM:
                self.signal(signal.SIGCONT, whole_group=True)
            else:
                self.ask_at = (time.monotonic() + self.kill_at) / 2
        self.tell("passed", number)

    def _begin_grace(self) -> None:
        self.ending = True
        # After a standstill of the machine this may be late: the grace is part of the lease.
        grace_ends = min(time.monotonic(), self.until) + self.grace_s
        self.kill_at = min(self.kill_at, grace_ends)

    def kill(self) -> None:
        """Kill the command without asking first."""
        self._note_end()
        self.ending = True
        self.kill_at = min(self.kill_at, time.monotonic())

    # --- until it is gone ------------------------------------------------------------------------

    def is_gone(self) -> bool:
        """Whether no process of the command is left, not even a zombie."""
        self._bury_the_adopted()
        self._note_end()
        if not self.ended:
            return False
        self.end()  # also ends what the command left
        if self.main and all(process == self.main for process, _, _ in descendants(os.getpid())):
            os.waitpid(self.main, 0)
            self.main = 0
        if self.main:
            return False
        try:
            os.waitpid(-1, os.WNOHANG)  # a process without a child has no descendant either
        except ChildProcessError:
            return True
        return False

    def _note_end(self) -> None:
        """Note whether the command itself has ended. If it was asked to, that is no success.

        So this comes before each request to end.
        """
        if self.ended or not self.main:
            return
        done = os.waitid(os.P_PID, self.main, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if done is None:
            return
        self.ended = True
        killed = done.si_code != os.CLD_EXITED
        code = 128 + done.si_status if killed else done.si_status
        if code == 0 and not self.ending:
            self._record()
            self.tell("done")
        self.tell("ended", code)

    def _record(self) -> None:
        """Write that the command has succeeded, also if the member's process is gone by now."""
        if self.record < 0:
            return
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        with suppress(OSError):  # then the member's process writes it
            os.write(self.record, f"{now} by {os.environ['HUSTINGS_MEMBER']}\n".encode())
            os.fsync(self.record)

    def _bury_the_adopted(self) -> None:
        me = os.getpid()
        for process, parent, dead in descendants(me):
            if dead and parent == me and process != self.main:
                with suppress(ChildProcessError):
                    os.waitpid(process, os.WNOHANG)

    # --- the loop --------------------------------------------------------------------------------

    def run(self) -> None:
        """Start the command, and return when it is gone."""
        if self._is_too_late():
            self.tell("ended", 128 + (self.last_signal or signal.SIGKILL))
            self.tell("empty")
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
            if now >= self.ask_at:
                self.end()
            if now >= self.kill_at:
                self._kill_now(now)
            self.deadline.at = self._killed_by(now)
            self._wait(now)
        self.tell("empty")

    def _is_too_late(self) -> bool:
        """Whether the command may not start any more: the interpreter takes time to start."""
        self._look(0.0)
        if time.monotonic() >= self.until:
            self.tell("expired")
            return True
        return self.ending or self.last_signal > 0

    def _killed_by(self, now: float) -> float:
        """When the last process will have been killed if no order comes from now on."""
        if not self.ending:
            return min(self.heard_at + self.silence_s, self.until) + self.grace_s
        return max(self.kill_at, now)  # past it, the supervisor kills again and again

    def _kill_now(self, now: float) -> None:
        kill_family(os.getpid())
        if self.left_at == NEVER:
            self.left_at = now + SETTLE_S
        elif 0 < self.left_at <= now:
            self.left_at = 0
            self.tell("left", sum(not dead for _, _, dead in descendants(os.getpid())))

    def _wait(self, now: float) -> None:
        if not self.ending:
            pause = min(self.heard_at + self.silence_s, self.until) - now
        elif now < self.kill_at:
            pause = min(self.ask_at, self.kill_at) - now
        else:
            pause = LOOK_S if self.left_at else SLOW_LOOK_S
        self._look(min(max(pause, 0.0), LONGEST_PAUSE_S))

    def _look(self, pause: float) -> None:
        watched = [self.wake, *([self.control] if self.listening else [])]
        watched += [self.guardian] if self.guarded else []
        ready, _, _ = select.select(watched, [], [], pause)
        if self.wake in ready:
            self.stirred = True
            drain(self.wake)
        if self.guardian in ready:
            self.guarded = False  # no other process could end what the command started
            self.tell("unguarded")
            self.end()
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
            elif order == b"s":
                self.signal(number, whole_group=False)
            elif order == b"g":
                self.pass_on(number)

    def tell(self, word: str, number: int | None = None) -> None:
        """Send one line to the member's process."""
        tell(self.control, word, number)


def _group(process: int) -> int:
    try:
        return os.getpgid(process)
    except ProcessLookupError:
        return 0


def main(arguments: list[str]) -> None:
    """CONTROL LOCK RECORD GRACE SILENCE UNTIL COMMAND...: a socket, two files, seconds, the rest.

    A file of -1 is none. The lock is freed when supervisor and guardian have ended. With a lease it
    is the lease's witness: the lease must not be given back while anything of the command lives. So
    the command inherits it.
    """
    control, lock, record = map(int, arguments[:3])
    grace_s, silence_s, until = map(float, arguments[3:6])
    for each in (control, lock, record):
        if each >= 0 and (each != lock or until == NEVER):
            os.set_inheritable(each, False)
    adopt_orphans()
    guardian, ours = os.pipe()  # the guardian alone keeps `ours`, until its end
    deadline = Deadline(min(time.monotonic() + silence_s, until) + grace_s)
    supervisor = os.fork()
    if supervisor == 0:
        os.close(ours)
        adopt_orphans()  # a child does not inherit that
        command = arguments[6:]
        Supervisor(control, guardian, deadline, grace_s, silence_s, until, record, command).run()
    else:
        os.close(guardian)
        for each in DEAF_TO:
            signal.signal(each, signal.SIG_IGN)
        Guardian(control, supervisor, deadline).run()


if __name__ == "__main__":
    main(sys.argv[1:])

"""One run of a command, as the member's process sees it: it talks to the command's supervisor.

Start and end use no await, so that no other task runs between a decision and its effect. Supervisor
and guardian (`supervisor.py`) end the command when it is time. If they do not, because another
process stopped or killed them, this process kills all their descendants itself, in time for the
lease.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf

from hustings.agent import supervisor

BEATS = 4  # signs of life within the silence that a supervisor allows
LEASED_BEAT_S = 0.1  # with a lease: the supervisor must hear of a renewal before the old end
TAKE_OVER_S = 0.5  # a supervisor and its guardian count as stopped if killing takes so much longer
STOPPED_LOOKS = 3  # checks that find a woken supervisor stopped again: another process holds it
PASS_ON_S = 5.0  # seconds for a supervisor to pass a signal on; then this process does it
NO_STATUS = 128 + signal.SIGKILL  # for a command that ended because its supervisor was killed


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """How a run of the command ended, when no process of it is left."""

    code: int
    ran_s: float
    starved: bool = False  # its supervisor ended it: this process was stopped or starved
    refused: int | None = None  # it never ran: the system's error number
    broken: bool = False  # one of the processes that guard it was killed or stopped
    succeeded: bool = False  # it ended with 0 before anything asked it to end


class ChildCommand:
    """A command that a supervisor runs."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        grace_s: float,
        silence_s: float,
        until: Callable[[], float | None] = lambda: None,
        sole: bool = False,
        lock: int | None = None,
        output: int | None = None,
        record: int | None = None,
    ) -> None:
        """`until`: the time up to which this member leads, if a guard says so, by `time.monotonic`.

        `lock` is a descriptor that supervisor and guardian keep open until the command is gone.
        With `until` the command inherits it, too. It is closed here.

        `sole`: this process adopts orphans and starts nothing else, so each adopted process is
        ours.

        `output` is a descriptor for both outputs of the command, which then reads no input. Without
        it the command has the streams of this process.

        `record` is a descriptor of a file in which the supervisor notes a success. It is closed
        here.
        """
        self._loop = asyncio.get_running_loop()
        self.over: asyncio.Future[CommandEnd] = self._loop.create_future()
        self.left: asyncio.Future[int] = self._loop.create_future()  # processes that stay alive
        # False: passed on by this process
        self.passed: asyncio.Future[bool] = self._loop.create_future()
        self.process: int | None = None
        self.starved = False
        self._grace_s = grace_s
        self._until = until
        self._not_ours = children_of(os.getpid()) if sole else None
        self._beat_s = silence_s / BEATS
        if until() is not None:
            self._beat_s = min(self._beat_s, LEASED_BEAT_S)
        self._since = time.monotonic()
        self._code: int | None = None
        self._refused: int | None = None
        self._gone = self._broken = self._swept = self._succeeded = False
        self._supervisor: tuple[int, int] | None = None  # its process, and a descriptor of that
        self._heard = b""
        self._control, other = socket.socketpair()
        self._control.setblocking(False)
        self._told = until()
        last = inf if self._told is None else self._told
        files = [each for each in (lock, record) if each is not None]
        numbers = ["-1" if each is None else str(each) for each in (lock, record)]
        times = [repr(each) for each in (grace_s, silence_s, last)]
        arguments = [str(other.fileno()), *numbers, *times, *command]
        try:
            self._guardian = subprocess.Popen(
                [sys.executable, "-I", "-S", supervisor.__file__, *arguments],
                env=dict(environment),
                pass_fds=[other.fileno(), *files],
                stdin=None if output is None else subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        except BaseException:
            self._control.close()
            raise
        finally:
            other.close()
            for each in files:
                os.close(each)
        self._loop.add_reader(self._control, self._listen)
        self._next_beat = self._loop.call_later(self._beat_s, self._beat)
        self._overdue: asyncio.TimerHandle | None = None
        self._looking: asyncio.TimerHandle | None = None

    # --- orders to the supervisor ----------------------------------------------------------------

    def end(self) -> None:
        """SIGTERM to all processes of the command and, after the grace, SIGKILL."""
        self._order(b"e")
        now = time.monotonic()
        # The supervisor counts in the same way: a late notice does not prolong the grace.
        lost_at = now if self._told is None else min(now, self._told)
        self._expect_it_gone(lost_at + self._grace_s - now)

    def kill(self) -> None:
        """SIGKILL to all processes of the command now."""
        self._order(b"k")
        self._expect_it_gone(0.0)

    def signal(self, number: int) -> None:
        """Send a signal to the command itself."""
        self._order(b"s", number)

    def pass_on(self, number: int) -> None:
        """Send a signal that asks the command to end to its whole process group.

        It is killed after the grace. `passed` tells when the signal was sent. A stopped supervisor
        is woken. If another process holds it stopped, this process sends the signal and, after the
        grace, kills.
        """
        self._wake_them()
        self._order(b"g", number)
        late_at = self._loop.time() + PASS_ON_S
        self._looking = self._loop.call_later(
            TAKE_OVER_S, self._look_at_supervisor, number, 0, late_at
        )

    def _look_at_supervisor(self, number: int, stopped: int, late_at: float) -> None:
        if self._overdue is not None:
            return  # this is checked already
        is_stopped = self._supervisor is not None and supervisor.state_of(self._supervisor[0]) in (
            b"T",
            b"t",
        )
        stopped = stopped + 1 if is_stopped else 0
        late = not self.passed.done() and self._loop.time() >= late_at
        if stopped >= STOPPED_LOOKS or late:
            self._do_it_ourselves(number)
            return
        if is_stopped:
            self._wake_them()
        self._looking = self._loop.call_later(
            TAKE_OVER_S, self._look_at_supervisor, number, stopped, late_at
        )

    def _do_it_ourselves(self, number: int) -> None:
        self._broken = True
        if not self.passed.done():
            below = {each for each, _ in supervisor.below(self._guardian.pid)}
            if self.process in below:  # else the number may belong to another process by now
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.process, number)
            self.passed.set_result(False)
        self._expect_it_gone(self._grace_s)

    def abandon(self) -> None:
        """Leave the command to its supervisor, which goes on after this process has ended."""
        self._gone = True
        self._close()
        self._conclude(CommandEnd(NO_STATUS, time.monotonic() - self._since))

    def _order(self, letter: bytes, number: int = 0) -> None:
        self._send(letter + bytes([number]))

    def _send(self, order: bytes) -> None:
        # A supervisor that does not read is stopped, and what it missed is overdue anyway.
        with suppress(BlockingIOError, ConnectionError):
            if not self._closed:
                self._control.send(order)

    def _say_until(self) -> None:
        """Tell the supervisor the end of the lease, which holds also if this process is stopped."""
        until = self._until()
        if until is not None and until != self._told:
            self._told = until
            self._send(b"u" + struct.pack(">d", until))

    def _beat(self) -> None:
        self._order(b".")
        self._say_until()
        self._next_beat = self._loop.call_later(self._beat_s, self._beat)

    def _expect_it_gone(self, within_s: float) -> None:
        """Wake stopped processes; if the command is not gone in time, do the supervisor's work."""
        if self._closed:
            return
        self._wake_them()
        due = self._loop.time() + max(within_s, 0.0) + TAKE_OVER_S
        if self._overdue is not None:
            due = min(due, self._overdue.when())
            self._overdue.cancel()
        self._overdue = self._loop.call_at(due, self._take_over, due + supervisor.SETTLE_S)

    def _wake_them(self) -> None:
        with suppress(ProcessLookupError):
            self._guardian.send_signal(signal.SIGCONT)
        self._signal_supervisor(signal.SIGCONT)

    def _signal_supervisor(self, number: int) -> bool:
        """Whether the supervisor is there; by its descriptor, since its number may be reused."""
        if self._supervisor is None:
            return False
        try:
            signal.pidfd_send_signal(self._supervisor[1], number)
        except OSError:
            return False
        return True

    def _take_over(self, until: float) -> None:
        """Kill all processes below supervisor and guardian, then both; repeat until they are gone.

        A stopped process adopts too: new orphans are found below it the next time.
        """
        self._broken = self._broken or not self._gone
        alive = 0
        if self._guardian.poll() is None:
            alive = supervisor.kill_family(self._guardian.pid)
        elif self._supervisor is not None and self._signal_supervisor(0):
            alive = supervisor.kill_family(self._supervisor[0])
        if not alive:
            self._signal_supervisor(signal.SIGKILL)
            self._guardian.kill()
        elif self._loop.time() >= until and not self.left.done():
            self.left.set_result(alive)
        pause = supervisor.SLOW_LOOK_S if self.left.done() else supervisor.LOOK_S
        self._overdue = self._loop.call_later(pause, self._take_over, until)

    # --- reports of the supervisor ---------------------------------------------------------------

    def _listen(self) -> None:
        """Read all that is there, to the end: uvloop does not call again after an error.

        The end of a supervisor that leaves orders unread is such an error.
        """
        while True:
            try:
                heard = self._control.recv(4096)
            except BlockingIOError:
                return
            except ConnectionError:
                heard = b""
            if not heard:
                self._finish()
                return
            *lines, self._heard = (self._heard + heard).split(b"\n")
            for line in lines:
                word, _, number = line.decode().partition(" ")
                self._note(word, int(number or 0))

    def _note(self, word: str, number: int) -> None:
        if word == "supervisor":
            with suppress(OSError):  # it has ended already, or the system is too old for this
                self._supervisor = number, os.pidfd_open(number)
        elif word == "started":
            self.process = number
        elif word == "refused":
            self._refused = number
        elif word in ("starved", "expired"):
            self.starved = True
        elif word in ("unguarded", "killed"):
            self._broken = True
        elif word == "passed" and not self.passed.done():
            self.passed.set_result(True)
            self._expect_it_gone(self._grace_s)
        elif word == "done":
            self._succeeded = True
        elif word == "ended":
            self._code = number
        elif word == "left" and not self.left.done():
            self.left.set_result(number)
        elif word == "empty":
            self._gone = True
            self._expect_it_gone(0.0)  # only these two are left, and one may be stopped
        elif word == "gone":
            self._gone = True

    def _finish(self) -> None:
        """Supervisor and guardian are gone, and all they kept, unless both were killed."""
        if self._supervisor is not None:
            with suppress(ChildProcessError):  # without its guardian, it is our child to reap
                os.waitid(os.P_PIDFD, self._supervisor[1], os.WEXITED)
        self._close()
        self._guardian.wait()
        whole = self._gone or self._refused is not None
        over = CommandEnd(
            NO_STATUS if self._code is None else self._code,
            time.monotonic() - self._since,
            starved=self.starved,
            refused=self._refused,
            broken=self._broken or not whole,
            succeeded=self._succeeded,
        )
        if whole:
            self._conclude(over)
        else:
            self._sweep(over, self._loop.time() + supervisor.SETTLE_S)

    @property
    def _closed(self) -> bool:
        """Whether supervisor and guardian are gone; this process may still kill the rest."""
        return self._control.fileno() < 0

    def _close(self) -> None:
        if self._closed:
            return
        self._loop.remove_reader(self._control)
        self._control.close()
        self._next_beat.cancel()
        for timer in (self._overdue, self._looking):
            if timer is not None:
                timer.cancel()
        if self._supervisor is not None:
            os.close(self._supervisor[1])
            self._supervisor = None

    def _sweep(self, over: CommandEnd, until: float) -> None:
        """Both were killed: kill what they left behind, and reap what is our child now."""
        alive = self._sweep_group() + self._sweep_adopted()
        if not alive and self._swept:
            self._conclude(over)
            return
        self._swept = not alive  # twice: a process that forks on may be missed by one check
        if self._loop.time() >= until and not self.left.done():
            self.left.set_result(alive)
        self._loop.call_later(supervisor.LOOK_S, self._sweep, over, until)

    def _sweep_group(self) -> int:
        """Kill the command's process group, if there is one; returns whether any of it lives."""
        group = self.process
        if group is None:
            return 0
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-group, os.WNOHANG) != (0, 0):
                pass
        try:
            os.killpg(group, 0)
        except (ProcessLookupError, PermissionError):
            return 0
        return 1

    def _sweep_adopted(self) -> int:
        """Kill children that this process adopted; returns how many there were."""
        if self._not_ours is None:
            return 0
        me = os.getpid()
        supervisor.kill_family(me, self._not_ours)
        adopted = children_of(me) - self._not_ours
        for process in sorted(adopted):
            with suppress(ChildProcessError):
                os.waitpid(process, os.WNOHANG)
        return len(adopted)

    def _conclude(self, over: CommandEnd) -> None:
        if not self.over.done():
            self.over.set_result(over)


def children_of(process: int) -> set[int]:
    """The children of a process, zombies too."""
    return {each for each, parent, _ in supervisor.descendants(process) if parent == process}

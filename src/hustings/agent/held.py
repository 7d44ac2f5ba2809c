"""One run of a command, seen from the member's process: its keeper is told and listened to.

Starting and ending take no await, so that nothing can come between deciding and doing.
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

from hustings.agent import keeper

PULSES = 4  # signs of life within the silence that a keeper allows
LEASED_PULSE_S = 0.1  # with a lease: that it was renewed must be known before its old end
KEEPER_S = 2.0  # how much longer a keeper may take for all it does than its orders say
NO_STATUS = 128 + signal.SIGKILL  # for a command whose keeper was killed: it went with it


@dataclass(frozen=True, slots=True)
class Over:
    """How a run of the command came to its end, when nothing of it is left."""

    code: int
    ran_s: float
    starved: bool = False  # its keeper ended it: this process was stopped, or starved
    refused: int | None = None  # it never ran: the system's error number


class Held:
    """A command in its keeper's hands."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        grace_s: float,
        silence_s: float,
        until: Callable[[], float | None] = lambda: None,
    ) -> None:
        """`until` tells up to when this member leads, if a guard says so, by `time.monotonic`."""
        self._loop = asyncio.get_running_loop()
        self.over: asyncio.Future[Over] = self._loop.create_future()
        self.left: asyncio.Future[int] = self._loop.create_future()  # what cannot be killed
        self.process: int | None = None
        self.starved = False
        self._grace_s = grace_s
        self._until = until
        self._told: float | None
        self._pulse_s = silence_s / PULSES
        if until() is not None:
            self._pulse_s = min(self._pulse_s, LEASED_PULSE_S)
        self._since = time.monotonic()
        self._code: int | None = None
        self._refused: int | None = None
        self._gone = False
        self._heard = b""
        self._control, other = socket.socketpair()
        self._control.setblocking(False)
        self._told = until()
        last = inf if self._told is None else self._told
        arguments = [str(other.fileno()), repr(grace_s), repr(silence_s), repr(last), *command]
        try:
            self._keeper = subprocess.Popen(
                [sys.executable, "-I", "-S", keeper.__file__, *arguments],
                env=dict(environment),
                pass_fds=[other.fileno()],
                start_new_session=True,
            )
        except BaseException:
            self._control.close()
            raise
        finally:
            other.close()
        self._loop.add_reader(self._control, self._listen)
        self._pulse = self._loop.call_later(self._pulse_s, self._beat)
        self._overdue: asyncio.TimerHandle | None = None

    # --- what it is told -------------------------------------------------------------------------

    def end(self) -> None:
        """SIGTERM to the whole process group and, after the grace, SIGKILL."""
        self._order(b"e")
        self._expect_it_gone(self._grace_s)

    def kill(self) -> None:
        """SIGKILL to the whole process group now."""
        self._order(b"k")
        self._expect_it_gone(0.0)

    def signal(self, number: int, whole_group: bool) -> None:
        """A signal for the command, or for its whole process group."""
        self._order(b"g" if whole_group else b"s", number)

    def abandon(self) -> None:
        """Leave it to its keeper, which goes on trying after this process has ended."""
        self._gone = True
        self._close()
        self._conclude(Over(NO_STATUS, time.monotonic() - self._since))

    def _order(self, letter: bytes, number: int = 0) -> None:
        self._send(letter + bytes([number]))

    def _send(self, order: bytes) -> None:
        # A keeper that does not read is stopped: what it missed, it is overdue for.
        with suppress(BlockingIOError, ConnectionError):
            if not self.over.done():
                self._control.send(order)

    def _say_until(self) -> None:
        """It must end the command in time also when this process is stopped, or starved."""
        until = self._until()
        if until is not None and until != self._told:
            self._told = until
            self._send(b"u" + struct.pack(">d", until))

    def _beat(self) -> None:
        self._order(b".")
        self._say_until()
        self._pulse = self._loop.call_later(self._pulse_s, self._beat)

    def _expect_it_gone(self, within_s: float) -> None:
        """A keeper that somebody stopped is let go on, and one that does nothing is killed."""
        if self.over.done():
            return
        with suppress(ProcessLookupError):
            self._keeper.send_signal(signal.SIGCONT)
        due = self._loop.time() + within_s + keeper.SETTLE_S + KEEPER_S
        if self._overdue is not None:
            due = min(due, self._overdue.when())
            self._overdue.cancel()
        self._overdue = self._loop.call_at(due, self._give_up_on_keeper)

    def _give_up_on_keeper(self) -> None:
        if not self.left.done():
            self._keeper.kill()

    # --- what it tells ---------------------------------------------------------------------------

    def _listen(self) -> None:
        try:
            heard = self._control.recv(4096)
        except BlockingIOError:
            return
        except ConnectionError:
            heard = b""
        *lines, self._heard = (self._heard + heard).split(b"\n")
        for line in lines:
            word, _, number = line.decode().partition(" ")
            self._note(word, int(number or 0))
        if not heard:
            self._finish()

    def _note(self, word: str, number: int) -> None:
        if word == "started":
            self.process = number
        elif word == "refused":
            self._refused = number
        elif word in ("starved", "expired"):
            self.starved = True
        elif word == "ended":
            self._code = number
        elif word == "left" and not self.left.done():
            self.left.set_result(number)
        elif word == "gone":
            self._gone = True

    def _finish(self) -> None:
        """The keeper is gone: with everything it kept, unless somebody killed it."""
        self._close()
        self._keeper.wait()
        ran_s = time.monotonic() - self._since
        code = NO_STATUS if self._code is None else self._code
        over = Over(code, ran_s, starved=self.starved, refused=self._refused)
        if self._gone or self._refused is not None or self.process is None:
            self._conclude(over)
        else:
            self._sweep(self.process, over, self._loop.time() + keeper.SETTLE_S)

    def _close(self) -> None:
        if self._control.fileno() < 0:
            return
        self._loop.remove_reader(self._control)
        self._control.close()
        self._pulse.cancel()
        if self._overdue is not None:
            self._overdue.cancel()

    def _sweep(self, group: int, over: Over, until: float) -> None:
        """Kill what a killed keeper left of the group; where it is ours now, bury it too."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-group, os.WNOHANG) != (0, 0):
                pass
        try:
            os.killpg(group, 0)
        except (ProcessLookupError, PermissionError):
            self._conclude(over)
            return
        if self._loop.time() >= until and not self.left.done():
            self.left.set_result(1)
        self._loop.call_later(keeper.LOOK_S, self._sweep, group, over, until)

    def _conclude(self, over: Over) -> None:
        if not self.over.done():
            self.over.set_result(over)

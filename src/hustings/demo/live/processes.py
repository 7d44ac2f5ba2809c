"""The demo's processes: forked, each with a channel; killed, stopped and continued by signals.

Law: nothing outlives the demo. A child is ended by its own pid, which belongs to it until the demo
has waited for it. A child asks the kernel to be killed with its parent, and it ends by itself when
its channel closes. It has a session of its own, so that Ctrl-C reaches the demo alone.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import selectors
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import NoReturn

from hustings.core.errors import BadInput, HustingsError
from hustings.demo.live.channel import Channel, Failed, LeaveOrder, Order, Report, pair
from hustings.demo.live.member_process import MemberPlan, serve

_PR_SET_PDEATHSIG = 1
_HELD = (signal.SIGINT, signal.SIGTERM)  # while a process is being forked
_GOODBYE = 1.0  # seconds in which all may leave in good order


class MemberEnded(HustingsError):
    """A member's process ended, and the demo had not ended it."""


class CannotStart(HustingsError):
    """The system has no room for one more process."""


@dataclass(slots=True)
class _Child:
    pid: int
    channel: Channel
    doomed: bool = False  # the demo has told it to end
    complaint: str = ""  # its last report of an error


class Processes:
    """All members' processes, by their names."""

    def __init__(self) -> None:
        if not hasattr(os, "fork"):
            raise BadInput(
                "this system has no fork, which the demo's processes need: use --simulated"
            )
        self._children: dict[str, _Child] = {}
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> Processes:
        gc.collect()
        gc.freeze()  # parent and children share the memory that the collector does not touch
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
        gc.unfreeze()

    # Actions

    def start(self, part: MemberPlan) -> int:
        """Start a process for a member; return its pid."""
        if part.name in self._children:
            raise ValueError(f"{part.name} has a process already")
        try:
            pid, channel = self._fork(part)
        except OSError as error:
            reason = error.strerror or "no reason given"
            raise CannotStart(f"the system starts no process for {part.name}: {reason}") from error
        self._selector.register(channel, selectors.EVENT_READ, part.name)
        return pid

    def order(self, name: str, order: Order) -> None:
        """Tell a member to do something."""
        self._children[name].channel.say(order)

    def kill(self, name: str) -> None:
        """SIGKILL: no farewell."""
        child = self._children[name]
        child.doomed = True
        os.kill(child.pid, signal.SIGKILL)

    def pause(self, name: str) -> None:
        """SIGSTOP: the process stands still."""
        os.kill(self._children[name].pid, signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """SIGCONT: the process goes on."""
        os.kill(self._children[name].pid, signal.SIGCONT)

    def hear(self, patience: float) -> list[tuple[str, Report]]:
        """What members report, as soon as there is something; nothing after `patience` seconds.

        Raises `MemberEnded` if a process is gone that the demo did not end.
        """
        heard: list[tuple[str, Report]] = []
        for key, _ in self._selector.select(max(0.0, patience)):
            name: str = key.data
            child = self._children[name]
            for report in child.channel.reports():
                heard.append((name, report))
                if isinstance(report, Failed):
                    child.complaint = report.sentence
            if child.channel.ended:
                self._bury(name)
        return heard

    def dismiss(self) -> None:
        """Let all members leave in good order, if they do so in time."""
        deadline = time.monotonic() + _GOODBYE
        for child in self._children.values():
            child.doomed = True
            child.channel.say(LeaveOrder())
        while self._children and time.monotonic() < deadline:
            self.hear(deadline - time.monotonic())

    def close(self) -> None:
        """End all that are left, at once, and wait until they have ended."""
        with _held():
            for child in self._children.values():
                os.kill(child.pid, signal.SIGKILL)
            for child in self._children.values():
                os.waitpid(child.pid, 0)
                child.channel.close()
            self._children.clear()
            self._selector.close()

    # Inside

    def _fork(self, part: MemberPlan) -> tuple[int, Channel]:
        ours, theirs = pair()
        parent = os.getpid()
        with _held():
            try:
                pid = os.fork()
            except OSError:
                ours.close()
                theirs.close()
                raise
            if pid == 0:
                self._be(parent, ours, theirs, part)
            self._children[part.name] = _Child(pid, ours)
            theirs.close()
        return pid, ours

    def _bury(self, name: str) -> None:
        child = self._children.pop(name)
        self._selector.unregister(child.channel)
        child.channel.close()
        if not child.doomed:
            # Its channel is closed; if the process still runs, it is of no use.
            os.kill(child.pid, signal.SIGKILL)
        _, status = os.waitpid(child.pid, 0)
        if not child.doomed:
            raise MemberEnded(f"member {name} ended: {child.complaint or ending(status)}")

    def _be(self, parent: int, ours: Channel, theirs: Channel, part: MemberPlan) -> NoReturn:
        """All that a new process does; it cleans up nothing of its parent's."""
        code = 1
        try:
            _die_with(parent)
            os.setsid()
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD)
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(nowhere, stream)
            self._selector.close()
            for other in self._children.values():
                other.channel.close()
            ours.close()
            asyncio.run(serve(theirs, part))
            code = 0
        except Exception as error:
            theirs.say(Failed(sentence_of(error)))
        finally:
            os._exit(code)


@contextmanager
def _held() -> Iterator[None]:
    """Hold signals back meanwhile; they arrive afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _HELD)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _die_with(parent: int) -> None:
    """Ask the kernel, where it can, to end this process with its parent."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)  # the parent was gone before


def sentence_of(error: Exception) -> str:
    """An error on one line; an error that was not raised on purpose has its kind in front.

    >>> sentence_of(BadInput("no such thing")), sentence_of(ValueError("a\\nb"))
    ('no such thing', 'ValueError: a b')
    """
    text = " ".join(str(error).split())
    if isinstance(error, HustingsError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def ending(status: int) -> str:
    """How a process ended, by its wait status.

    >>> ending(9), ending(256), ending(0)
    ('by SIGKILL', 'with exit code 1', 'with exit code 0')
    """
    code = os.waitstatus_to_exitcode(status)
    names = {each.value: each.name for each in signal.Signals}
    return f"with exit code {code}" if code >= 0 else f"by {names.get(-code, f'signal {-code}')}"

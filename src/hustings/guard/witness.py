"""The kernel as a witness: a lease whose holder was killed need not run out.

    FOLDER/leases/LABEL/NAME~INCARNATION~PROCESS~START~MACHINE.lease      one pipe for each holder

A member that asks for leases makes a named pipe in a folder that only this user can use, and keeps
it open. The kernel closes the pipe when the process ends, however it ends, and tells every process
that waits for that. So the members of the same user on the same machine learn within milliseconds
that a holder was killed. They give its lease back in the engine: for exactly this holder, this
incarnation and this token, so that no other lease can be hit. Then the next member is granted a
lease with a larger token, as after any release.

Law: a lease is given back early only if no process can still act under it. So four things are
needed, and without one of them the lease runs out as ever:

- Every copy of the pipe's descriptor is closed. A process that acts under the lease for its holder
  inherits one, as the command of `hustings run` does. So the lease lasts as long as it lives.
- The holder has started no other process. Such a process may close the descriptors that it does
  not know: `subprocess` and every daemon do. So the holder removes its pipe just before a process
  is started, unless that process gets the descriptor (`Witness.inherited`). While such a process
  lives, no new pipe is made.
- The process that made the pipe has ended, by its number and its time of start. A process that
  closes all its descriptors, or runs another program in its place, is not taken for dead.
- All this was seen on the machine, in this start of it, and in the process namespace in which the
  pipe was made. A pipe in a folder that machines or containers share says nothing elsewhere.

A process that is stopped has not ended: its lease runs out. The end of a session or of a connection
to the engine says nothing here: it may have ended without its holder.
"""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
import re
import select
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from hustings.core.digests import blake2b
from hustings.core.errors import BadInput
from hustings.guard.base import Holder
from hustings.net.files import OWNER_ONLY, shown, why
from hustings.net.local_key import Kept, check_way, make_folders
from hustings.net.local_members import VARIABLE, local_base

MOST_FOUND = 64  # pipes of one holder's name that one look reads
_MOST_NAMES = 4096  # names in the folder that one look reads
_TRIES = 8  # attempts to make a pipe in a folder that others may remove when it is empty
_FRESH_S = 60.0  # a younger pipe is kept: its process may have a place in the engine's queue
_FOREIGN_KEPT_S = 30 * 86_400.0  # the same for another machine, or for before the last start
_LISTED = re.compile(
    r"(?P<name>[A-Za-z0-9._-]{1,64})~(?P<incarnation>[0-9a-f]{1,16})~(?P<process>[0-9]{1,10})"
    r"~(?P<start>[0-9]{1,20})~(?P<machine>[0-9a-f]{16})\.lease"
)
_STATE_FIELD, _START_FIELD = 0, 19  # of /proc/PID/stat, counted after the name of the program
# What the interpreter says before a process is started, or this one runs another program.
_STARTS = frozenset(
    (
        *("os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system"),
        *("pty.spawn", "subprocess.Popen"),
    )
)
_starter: Any = None  # the module whose `fork_exec` starts processes
with suppress(ImportError):  # another interpreter
    _starter = import_module("_posixsubprocess")
_HINT = f"name a folder that only this user can write to with {VARIABLE}"
_KEPT = Kept("end the leases that are kept track of there", "end leases by it", _HINT)


class Pipe(NamedTuple):
    """One holder of a lease on this machine, by the name of its pipe."""

    path: str
    holder: Holder
    process: int
    start: int  # in ticks of the kernel, since the machine's start
    machine: str

    @classmethod
    def of(cls, path: str) -> Pipe | None:
        """What a path says; None if it says nothing."""
        match = _LISTED.fullmatch(os.path.basename(path))
        if match is None:
            return None
        holder = Holder(match["name"], int(match["incarnation"], 16))
        return cls(path, holder, int(match["process"]), int(match["start"]), match["machine"])


def is_supported() -> bool:
    """Whether this system can tell that a process has ended, and on which machine it ran.

    It cannot where `/proc` belongs to another process namespace, or is only imitated, or where the
    interpreter does not tell that it starts a process.
    """
    try:
        if _starter is None:
            return False
        this_machine()
        os.close(os.pidfd_open(os.getpid()))
        return os.readlink("/proc/self") == str(os.getpid()) and start_of(os.getpid()) is not None
    except (AttributeError, OSError):
        return False


def start_of(process: int) -> int | None:
    """When a process began, in ticks since the machine's start; None if there is no such process.

    `OSError` if the system does not tell.
    """
    found = _status(process, _START_FIELD)
    if found is None:
        return None
    try:
        return int(found)
    except ValueError:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS)) from None


def _status(process: int, field: int) -> bytes | None:
    try:
        with open(f"/proc/{process}/stat", "rb") as stream:
            return stream.read().rpartition(b")")[2].split()[field]
    except (FileNotFoundError, ProcessLookupError):
        return None
    except IndexError:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS)) from None


def has_children() -> bool:
    """Whether a child of this process lives. `OSError` if the system does not tell."""
    for thread in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{thread}/children", "rb") as stream:
                children = [int(each) for each in stream.read().split()]
        except (FileNotFoundError, ProcessLookupError):
            if os.path.exists(f"/proc/self/task/{thread}"):
                raise  # this kernel has no such list
            continue  # the thread has ended
        if any(_status(each, _STATE_FIELD) not in (None, b"Z", b"X") for each in children):
            return True
    return False


def this_machine() -> str:
    """What tells processes with comparable numbers and times from all others.

    `OSError` if the system does not tell. A name of the machine will not do: two may have one name.
    """
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
        parts = [stream.read().strip()]
    parts.append(_namespace("pid"))
    with suppress(FileNotFoundError):  # an old kernel has no time namespaces
        parts.append(_namespace("time"))
    return blake2b(" ".join(parts).encode(), digest_size=8, person=b"hustings machine").hexdigest()


def _namespace(kind: str) -> str:
    status = os.stat(f"/proc/self/ns/{kind}")
    return f"{kind}:{status.st_dev}:{status.st_ino}"


def witness_folder(lease: str) -> str:
    """The folder of the holders of one lease, which need not exist yet."""
    label = blake2b(lease.encode(), digest_size=8, person=b"hustings leases").hexdigest()
    return os.path.join(local_base(), "leases", label)


class Witness:
    """The processes of this user on this machine that hold or want one lease.

    `lease` is what tells the lease from all others: the engine, the place in it, and the group.
    """

    def __init__(self, lease: str) -> None:
        self._folder = os.path.abspath(witness_folder(lease))
        self._machine = this_machine() if is_supported() else ""  # "" is no process's machine
        self._descriptor = -1
        self._pipe = (0, 0)  # device and number of the pipe
        self._path = ""

    # This process

    @property
    def is_shown(self) -> bool:
        """Whether others can see the end of this process, and of all that act under its lease."""
        return self in _shown

    @contextmanager
    def inherited(self) -> Iterator[tuple[int, ...]]:
        """The descriptor that a process which is started meanwhile must inherit; or none."""
        given = _Given()
        before = _given.set(given)
        try:
            # A program that closes all descriptors may have got the same number for another file.
            if self.is_shown and not self._is_ours():
                self.withdraw()
            yield (self._descriptor,) if self.is_shown else ()
        finally:
            given.over = True
            _given.reset(before)

    def attest(self, holder: Holder) -> str:
        """Let others see when this process ends. Return why that is impossible for now, or "".

        `BadInput` if it stays impossible.
        """
        if not self._machine:
            raise BadInput("this system does not tell when a process has ended")
        self._drop()
        words = (holder.name, f"{holder.incarnation:x}", os.getpid(), start_of(os.getpid()))
        name = "~".join([*map(str, words), self._machine]) + ".lease"
        try:
            if has_children():
                return "this process has started others, which may not end with it"
            for last in range(_TRIES - 1, -1, -1):
                try:
                    self._make(name)
                    return ""
                except FileNotFoundError:  # the last holder has removed the folder
                    if not last:
                        raise
        except (OSError, ValueError) as error:
            raise BadInput(
                f"cannot show the end of this process in {shown(self._folder)}: {why(error)}; "
                f"{_HINT}"
            ) from None
        raise AssertionError("the last try returns or raises")

    def _make(self, name: str) -> None:
        self._folder = folder = check_way(self._folder, _KEPT)
        path = os.path.join(folder, name)
        make_folders(path, _KEPT)
        _check_folder(folder)
        os.mkfifo(path, OWNER_ONLY)
        try:
            flags = os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
            self._descriptor = os.open(path, flags)
        except OSError:
            with suppress(OSError):
                os.unlink(path)
            raise
        os.set_inheritable(self._descriptor, True)  # also for programs that C code starts
        self._path, self._pipe = path, _identity(self._descriptor)
        _notice_starts()
        _shown.add(self)

    def withdraw(self) -> None:
        """From now on the end of this process says nothing to others: its lease runs out."""
        if self in _shown:
            with suppress(FileNotFoundError):
                os.unlink(self._path)
            _shown.discard(self)

    def close(self, *, keep: bool = False) -> None:
        """Show nothing from now on. With `keep` others may still see that the process has ended."""
        self._drop()
        is_shown = self.is_shown
        _shown.discard(self)
        if keep or not is_shown:
            return
        with suppress(OSError):
            os.unlink(self._path)
            os.rmdir(self._folder)

    def _drop(self) -> None:
        with suppress(OSError):
            if self._is_ours():
                os.close(self._descriptor)
        self._descriptor = -1

    def _is_ours(self) -> bool:
        """Whether the descriptor is still that of the pipe: a program may have closed it."""
        try:
            return self._descriptor >= 0 and _identity(self._descriptor) == self._pipe
        except OSError:
            return False

    # The others

    def forget(self, pipe: Pipe) -> None:
        """Remove the pipe of a process that has ended and holds no lease."""
        with suppress(OSError):
            os.unlink(pipe.path)

    def holders(self, name: str) -> list[Pipe]:
        """The pipes of this machine's holders with this name."""
        return [each for each in self._pipes() if each.holder.name == name][:MOST_FOUND]

    def sweep(self) -> None:
        """Remove old pipes of processes that have ended. Only who holds the lease may do this.

        Otherwise it could remove the pipe of the holder that ended last, which others look for.
        """
        for pipe in self._listed():
            with suppress(OSError):
                age = time.time() - os.stat(pipe.path, follow_symlinks=False).st_mtime
                if pipe.machine != self._machine:
                    is_old = age > _FOREIGN_KEPT_S
                else:
                    is_old = age > _FRESH_S and has_ended(pipe)
                if is_old:
                    os.unlink(pipe.path)

    def _pipes(self) -> list[Pipe]:
        return [each for each in self._listed() if each.machine == self._machine]

    def _listed(self) -> list[Pipe]:
        try:
            with os.scandir(self._folder) as names:
                found = [Pipe.of(each.path) for each in itertools.islice(names, _MOST_NAMES)]
        except OSError:  # the folder is gone, and so are all holders
            return []
        return [each for each in found if each is not None and each.path != self._path]


def has_ended(pipe: Pipe) -> bool:
    """Whether a process has ended, and all that inherited its pipe; False if that is not known."""
    try:
        with _reading(pipe) as descriptor:
            if not _is_abandoned(descriptor):
                return False
            with _process(pipe) as process:
                if process is not None and not _is_readable(process):
                    return False
            # Last: a holder removes its pipe before it starts what does not inherit it.
            status = os.stat(pipe.path, follow_symlinks=False)
            return (status.st_dev, status.st_ino) == _identity(descriptor)
    except OSError:
        return False


async def end_of(pipe: Pipe) -> bool:
    """Wait until a process has ended, and all that inherited its pipe. False: that is not known."""
    try:
        with _reading(pipe) as descriptor:
            if not _is_abandoned(descriptor):
                await _readable(descriptor)
            if not _is_abandoned(descriptor):
                return False  # some process has written to it: this is no member's pipe
        with _process(pipe) as process:
            if process is not None:
                await _readable(process)
    except OSError:
        return False
    return has_ended(pipe)


@contextmanager
def _reading(pipe: Pipe) -> Iterator[int]:
    """A descriptor that reads from a pipe of this user; `OSError` if there is none."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(pipe.path, flags)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISFIFO(status.st_mode) or status.st_uid != os.geteuid():
            raise OSError(errno.EINVAL, "no pipe of this user")
        yield descriptor
    finally:
        os.close(descriptor)


def _is_abandoned(descriptor: int) -> bool:
    """Whether no process has a pipe open to write to it."""
    try:
        return os.read(descriptor, 1) == b""
    except BlockingIOError:
        return False


@contextmanager
def _process(pipe: Pipe) -> Iterator[int | None]:
    """A descriptor of the process that made a pipe; None if that process has ended and is reaped.

    A number may be in use again. The time of the start tells one process from the other. `OSError`
    if the system does not tell: whatever cannot be asked has not ended.
    """
    try:
        descriptor = os.pidfd_open(pipe.process)
    except ProcessLookupError:
        yield None
        return
    try:
        started = start_of(pipe.process)  # None also where /proc hides other users' processes
        yield descriptor if started in (None, pipe.start) else None
    finally:
        os.close(descriptor)


def _identity(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def _is_readable(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


async def _readable(descriptor: int) -> None:
    """Wait until a descriptor is readable, or its far end is gone."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(descriptor, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)


def _check_folder(folder: str) -> None:
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise BadInput(f"{shown(folder)} is no folder of this user: {_HINT}")
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise BadInput(
            f"{shown(folder)} can be used by others than this user: run chmod 700 {shown(folder)}, "
            f"or {_HINT}"
        )


# Processes that this process starts


class _Given:
    """While a process is started that gets the descriptor of the pipe."""

    over = False


_shown: set[Witness] = set()  # those whose pipes others may watch
_given: ContextVar[_Given | None] = ContextVar("hustings_witness", default=None)


@cache
def _notice_starts() -> None:
    """Call `_starting` before a process is started.

    Such a hook stays for as long as the process lives. It costs each audited event (a file that is
    opened, a module that is imported, `id`) about a quarter of a microsecond.
    """
    sys.addaudithook(_audited)
    os.register_at_fork(before=_starting)  # uvloop starts programs in this way, unaudited
    # So does multiprocessing (spawn, forkserver, its resource tracker), by this function of the
    # interpreter's, and what is made after it: billiard, loky.
    start = _starter.fork_exec

    def noticed(*arguments: object) -> object:
        _starting()
        return start(*arguments)

    _starter.fork_exec = noticed


def _audited(event: str, arguments: tuple[object, ...]) -> None:
    if event in _STARTS:
        _starting()


def _starting() -> None:
    given = _given.get()
    if given is None or given.over:
        for each in tuple(_shown):
            each.withdraw()

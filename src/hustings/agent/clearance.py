"""Whether a command may start where no guard decides: the last leader's command must be gone.

Law: a command starts only while no other command of its group can run, as far as that can be known.

- **On one machine** a file is locked. The processes that end a command hold the lock until nothing
  of the command is left, also if their member is killed or stopped. The system frees the lock when
  they end.
- **On another machine** only time tells. A leader that falls silent may be stopped, and its command
  ends within a bound that all members know. So the next leader waits for that bound. A leader that
  hands over has ended its command before.

The members say which file they lock, by a number. So a member knows whether the last leader locked
the same file; then the lock alone decides, and nothing is waited for.

Neither helps in a partition: each side has a leader, and both run the command. That takes a guard.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from hustings.core.choice import MemberId
from hustings.core.digests import blake2b
from hustings.core.errors import BadInput
from hustings.net.files import OWNER_ONLY, shown, why
from hustings.net.local_key import check_way, local_key_file, make_folders
from hustings.net.local_members import this_start

LOCK_MARK = "~lock"  # a member's attribute: the number of the file that it locks
LOOK_S = 0.02  # seconds between two attempts to take the lock
_BITS = 52  # of a number that attributes hold exactly


class CommandLock:
    """A file that one command's processes hold locked at a time."""

    def __init__(self, path: str) -> None:
        self._path = path
        descriptor = self._open()
        try:
            status = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        self.number = _number_of(f"{this_start()} {status.st_dev} {status.st_ino}")

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(self._path, flags, OWNER_ONLY)

    def take(self) -> int | None:
        """A descriptor that holds the lock until all its copies are closed; None: it is taken."""
        descriptor = self._open()
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor


def _number_of(text: str) -> float:
    digest = blake2b(text.encode(), digest_size=8, person=b"hustings lock").digest()
    return float(1 + (int.from_bytes(digest, "big") >> (64 - _BITS)))


def lock_for(group: str, member: str, *, shared: bool) -> CommandLock:
    """The lock beside this user's local key; `shared`: all members of the group lock one file.

    Members with a key of their own may belong to several groups of one name. Each of them locks a
    file of its own: a member that was killed and comes back waits for its last command.
    """
    label = group if shared else f"{group}\n{member}"
    digest = blake2b(label.encode(), digest_size=8, person=b"hustings command").hexdigest()
    path = file_beside_key(f"command-{digest}.lock", "lock")
    try:
        return CommandLock(path)
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot lock {shown(path)}: {why(error)}") from None


def file_beside_key(name: str, wanted: str) -> str:
    """The path of a file of this user's members on this machine; its folder is there.

    `wanted` is the verb of what is done with the file, for the sentence that says why it cannot be.
    """
    path = os.path.join(os.path.dirname(os.path.abspath(local_key_file())), name)
    try:
        real = check_way(path)
        make_folders(real)
        return check_way(real)
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot {wanted} {shown(path)}: {why(error)}") from None


@dataclass(frozen=True, slots=True)
class FormerLeader:
    """A leader whose command may still run."""

    name: str
    until: float  # then the command is gone
    lock: float | None  # the number of the file that its command's processes lock


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why the command may not start yet."""

    sentence: str
    within_s: float | None = None  # seconds until it is over; None: unknown


class Clearance:
    """What one member knows of the commands of leaders before it."""

    def __init__(
        self,
        member: ClearedMember,
        bound_s: float,
        lock: CommandLock | None,
        *,
        drained: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`bound_s`: the time after which a leader that is not heard has no command left.

        `drained`: a leader that hands over has ended its command.
        """
        self._member = member
        self._bound_s = bound_s
        self._lock = lock
        self._drained = drained
        self._clock = clock
        self._leader: tuple[MemberId, str, float | None] | None = None  # with its lock's number
        self._former: dict[MemberId, FormerLeader] = {}
        self._held: int | None = None

    def saw(self, state: ClearedState) -> None:
        """Note a state of the group."""
        peer = None if state.leading else state.leader
        before = self._leader
        if before is not None and (peer is None or peer.id != before[0]):
            member, name, lock = before
            lock = self._member.marks_of(member).get(LOCK_MARK, lock)
            self._former[member] = FormerLeader(name, self._clock() + self._bound_s, lock)
            if state.leading and self._drained and self._member.handed:
                del self._former[member]
        if peer is None:
            self._leader = None
        else:
            lock = self._member.marks_of(peer.id).get(LOCK_MARK)
            if lock is None and before is not None and before[0] == peer.id:
                lock = before[2]
            self._leader = peer.id, peer.name, lock

    def obstacle(self) -> Obstacle | None:
        """Why the command may not start now. None: it may, and the lock is held for it."""
        self.saw(self._member.state)
        now, mine = self._clock(), None if self._lock is None else self._lock.number
        self._former = {
            member: former
            for member, former in self._former.items()
            if now < former.until and (mine is None or former.lock != mine)
        }
        if self._former:
            last = max(self._former.values(), key=lambda former: former.until)
            return Obstacle(f"the command of {last.name} may still run", last.until - now)
        if self._lock is not None and self._held is None:
            self._held = self._lock.take()
            if self._held is None:
                return Obstacle("another command of the group still runs on this machine")
        return None

    def hand_out(self) -> int | None:
        """The lock's descriptor, which the caller closes; None if there is no lock."""
        held, self._held = self._held, None
        return held

    def drop(self) -> None:
        """Free a lock that no command was started with."""
        held = self.hand_out()
        if held is not None:
            with suppress(OSError):
                os.close(held)


def locked_by(joining: LockingJoining, note: Callable[[str], None]) -> CommandLock | None:
    """The lock of a member that is about to join, which tells the others what it locks."""
    if joining.is_guarded:
        return None
    try:
        lock = lock_for(joining.group, joining.name, shared=joining.is_local)
    except BadInput as error:
        note(f"{error}: a command of this member's last run is not waited for")
        return None
    joining.mark(LOCK_MARK, lock.number)
    return lock


class ClearedPeer(Protocol):
    """A leader."""

    @property
    def id(self) -> MemberId: ...
    @property
    def name(self) -> str: ...


class ClearedState(Protocol):
    """Who leads, as one member knows it."""

    @property
    def leader(self) -> ClearedPeer | None: ...
    @property
    def leading(self) -> bool: ...


class ClearedMember(Protocol):
    """The part of a member that is used here."""

    @property
    def state(self) -> ClearedState: ...
    @property
    def handed(self) -> bool: ...
    def marks_of(self, member: MemberId) -> Mapping[str, float]: ...


class LockingJoining(Protocol):
    """A member that is about to join and tells the others what it locks."""

    @property
    def group(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def is_local(self) -> bool: ...
    @property
    def is_guarded(self) -> bool: ...
    def mark(self, name: str, value: float) -> None: ...

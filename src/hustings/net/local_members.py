"""How the members of one group find each other on one machine, without seeds.

    FOLDER/GROUP/0f3a....member      one file for each member: where it listens

Each member writes one file into a folder that only this user can use, and keeps the file locked.
The kernel frees the lock when the process ends, however it ends. So a file without a lock belongs
to a member that is gone, and the next member that looks removes it. Names of files are random and
never used twice, so nobody removes the file of a living member.

    FOLDER is $HUSTINGS_LOCAL_DIR, else `members` beside this user's local key

Law: a member writes its own file first, and reads the others' afterwards. So of two members that
start at one moment at least one sees the other.

What the folder says is no proof. A member that is found here is asked as any seed is, and all
frames are signed. What is read is bounded, and a file that cannot be understood does no harm.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import msgspec

from hustings.core.digests import blake2b
from hustings.core.errors import BadInput
from hustings.core.names import is_member_name
from hustings.net.addresses import MOST_PORT, number_of
from hustings.net.files import OWNER_ONLY, shown, why
from hustings.net.fork import keep_from_children, tell_of_forks
from hustings.net.local_key import Kept, check_way, local_key_file, make_folders
from hustings.net.transport import Endpoint

VARIABLE = "HUSTINGS_LOCAL_DIR"
FORMAT = 1
MOST_FOUND = 64  # living members that one look finds; a newcomer needs a few of them
_MOST_NAMES = 4096  # names in the folder that one look reads
_LONGEST = 2048  # bytes of a file
_TRIES = 8  # attempts to write a file into a folder that others may remove when it is empty
_FOREIGN_KEPT = 86_400.0  # seconds: another machine's file stays, in case locks do not reach there
_FILE = re.compile(r"[0-9a-f]{16}\.(member|new)")
_HINT = (
    f"name a folder that only this user can write to with {VARIABLE}, or let members on this "
    "machine not look for each other (--no-local, local=False)"
)
_KEPT = Kept("decide which members find each other", "decide which members find each other", _HINT)


class LocalMember(msgspec.Struct, frozen=True, kw_only=True):
    """What the file of one member says."""

    format: int = FORMAT
    name: str
    host: str  # where it is bound
    port: int
    keys: tuple[str, ...]  # the ids of its keys; none for a member without a key
    observer: bool
    machine: str  # the start of the machine
    network: str  # the network namespace
    process: int
    since: int  # nanoseconds: when it began; of two members with one name, the earlier one stays


def this_start() -> str:
    """What tells this start of this machine from all others."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
            return stream.read().strip()
    except OSError:
        return os.uname().nodename


def this_network() -> str:
    """What tells the network of this process from those of containers on the same machine."""
    try:
        status = os.stat("/proc/self/ns/net")
    except OSError:
        return ""
    return f"{status.st_dev}:{status.st_ino}"


def local_base() -> str:
    """The folder of what this user's members on this machine tell each other."""
    return os.environ.get(VARIABLE) or os.path.join(os.path.dirname(local_key_file()), "members")


def local_folder(group: str) -> str:
    """The folder of one group's members, which need not exist yet."""
    label = blake2b(group.encode(), digest_size=8, person=b"hustings members").hexdigest()
    return os.path.join(local_base(), label)


class LocalMembers:
    """The members of one group on this machine, as one of them sees them."""

    def __init__(
        self,
        group: str,
        name: str,
        keys: Callable[[], tuple[str, ...]],
        *,
        observer: bool = False,
    ) -> None:
        """`keys` tells the ids of this member's keys. They may change."""
        self._group = group
        self._folder = os.path.abspath(local_folder(group))
        self._name = name
        self._keys = keys
        self._observer = observer
        self._since = time.time_ns()
        self._machine, self._network = this_start(), this_network()
        self._me: LocalMember | None = None
        self._file = ""  # the path of this member's file; empty: there is none
        self._lock = -1
        self._closed = False
        self.found: tuple[LocalMember | None, ...] = ()  # None: its file cannot be understood
        tell_of_forks(self)
        keep_from_children(self, LocalMembers._descriptor)

    def _descriptor(self) -> int:
        return self._lock

    # This member's own file

    def register(self, endpoint: Endpoint) -> None:
        """Tell the others where this member listens; `BadInput` if that is impossible."""
        self._me = LocalMember(
            name=self._name,
            host=endpoint[0],
            port=endpoint[1],
            keys=self._keys(),
            observer=self._observer,
            machine=self._machine,
            network=self._network,
            process=os.getpid(),
            since=self._since,
        )
        try:
            self._write(msgspec.json.encode(self._me))
        except (OSError, ValueError) as error:
            raise BadInput(
                f"cannot tell this machine's members in {shown(self._folder)} of this one: "
                f"{why(error)}; {_HINT}"
            ) from None

    def _write(self, data: bytes) -> None:
        for last in range(_TRIES - 1, -1, -1):
            self._folder = folder = check_way(self._folder, _KEPT)
            make_folders(os.path.join(folder, "member"), _KEPT)
            _check_folder(folder)
            try:
                self._put(folder, data)
                return
            except FileNotFoundError:  # the last member of the group has removed the folder
                if not last:
                    raise

    def _put(self, folder: str, data: bytes) -> None:
        """Write a locked file, and give it its name when it is whole."""
        token = os.urandom(8).hex()
        part, path = os.path.join(folder, f"{token}.new"), os.path.join(folder, f"{token}.member")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(part, flags, OWNER_ONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(descriptor, data)
            os.rename(part, path)
        except BaseException:
            os.close(descriptor)
            with suppress(OSError):
                os.unlink(part)
            raise
        self._drop()
        self._lock, self._file = descriptor, path

    def keep(self) -> None:
        """Write this member's file again if it is gone or out of date. Errors are raised."""
        me = self._me
        if self._closed or me is None:
            return
        try:
            there = os.stat(self._file, follow_symlinks=False).st_ino == os.fstat(self._lock).st_ino
        except OSError:
            there = False
        if not there or me.keys != self._keys():
            self.register((me.host, me.port))

    def _drop(self) -> None:
        if self._lock >= 0:
            with suppress(OSError):
                os.unlink(self._file)
            os.close(self._lock)
            self._lock, self._file = -1, ""

    def close(self) -> None:
        """Remove this member's file, and the folder if it was the last one."""
        if self._closed:
            return
        self._closed = True
        folder = os.path.dirname(self._file)
        self._drop()
        if folder:
            with suppress(OSError):
                os.rmdir(folder)

    def forked(self) -> None:
        """This process is a forked child: the file is its parent's."""
        self._closed = True

    # The others

    def look(self) -> tuple[LocalMember | None, ...]:
        """Read the others' files, and remove those of members that are gone."""
        if not self._closed:
            self.found = tuple(self._living())
        return self.found

    def _living(self) -> Iterator[LocalMember | None]:
        count, own = 0, os.path.basename(self._file)
        try:
            with os.scandir(self._folder) as names:
                for number, each in enumerate(names):
                    if number >= _MOST_NAMES or count >= MOST_FOUND:
                        return
                    if each.name == own or _FILE.fullmatch(each.name) is None:
                        continue
                    lives, said = self._read(each.path)
                    if lives:
                        count += 1
                        yield said
        except OSError:
            return  # the folder is gone: `keep` makes it again

    def _read(self, path: str) -> tuple[bool, LocalMember | None]:
        """Whether a file belongs to a living member, and what it says."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return False, None
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
                return False, None
            said = _parsed(os.read(descriptor, _LONGEST + 1))
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return path.endswith(".member"), said
            self._clear(path, status, said)
            return False, None
        except OSError:  # a file system without locks: nothing is known
            return False, None
        finally:
            os.close(descriptor)

    def _clear(self, path: str, status: os.stat_result, said: LocalMember | None) -> None:
        """Remove the file of a member that is gone."""
        foreign = said is not None and said.machine != self._machine
        if foreign and time.time() - status.st_mtime < _FOREIGN_KEPT:
            return
        with suppress(OSError):
            os.unlink(path)

    def endpoint(self, other: LocalMember) -> Endpoint | None:
        """Where this member reaches another one; None if it cannot."""
        if self._me is None or not self.on_this_network(other):
            return None
        host = reachable(self._me.host, other.host)
        return None if host is None else (host, other.port)

    def on_this_network(self, other: LocalMember) -> bool:
        """Whether two members have the same loopback interface."""
        return (other.machine, other.network) == (self._machine, self._network)

    def shares_key(self, other: LocalMember) -> bool:
        """Whether two members understand each other's frames."""
        mine = self._keys()
        return any(key in mine for key in other.keys) if mine else not other.keys

    @property
    def endpoints(self) -> list[Endpoint]:
        """Where the others were found that this member can talk to."""
        found = (each for each in self.found if each is not None and self.shares_key(each))
        return [there for each in found if (there := self.endpoint(each)) is not None]

    def earlier(self) -> LocalMember | None:
        """A member with this member's name that was there before it."""
        for each in self.found:
            if each is not None and each.name == self._name and self.shares_key(each):
                if self.endpoint(each) is not None and each.since < self._since:
                    return each
        return None


def _check_folder(folder: str) -> None:
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise BadInput(
            f"{shown(folder)} can be used by others than this user, and tells where this user's "
            f"members are: run chmod 700 {shown(folder)}, or {_HINT}"
        )


def _parsed(data: bytes) -> LocalMember | None:
    if len(data) > _LONGEST:
        return None
    try:
        said = msgspec.json.decode(data, type=LocalMember)
    except (msgspec.DecodeError, ValueError):
        return None
    sound = (
        said.format == FORMAT
        and is_member_name(said.name)
        and number_of(said.host) is not None
        and 0 < said.port <= MOST_PORT
    )
    return said if sound else None


def reachable(mine: str, theirs: str) -> str | None:
    """The host under which a socket bound to `mine` reaches one bound to `theirs`, on one machine.

    >>> reachable("127.0.0.1", "0.0.0.0"), reachable("127.0.0.1", "::1"), reachable("::", "::")
    ('127.0.0.1', None, '::1')
    """
    speaks_6, hears_4 = ":" in mine, ":" not in theirs or theirs == "::"
    speaks_4 = not speaks_6 or mine == "::"
    if theirs in ("0.0.0.0", "::"):
        if ":" in theirs and speaks_6:
            return "::1"
        return "127.0.0.1" if speaks_4 and hears_4 else None
    return theirs if (speaks_6 if ":" in theirs else speaks_4) else None

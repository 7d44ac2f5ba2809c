"""The key of this user on this machine: made on first use, and readable by this user only.

A member that listens on this machine only and was given no key takes this one. So members that one
user starts understand each other without any key option, and processes of other users are refused.

    $HUSTINGS_KEY_FILE, else $XDG_STATE_HOME/hustings/local.key, else ~/.local/state/hustings/...

A process that can replace the file, or a folder or link on the way to it, knows the key. So the
path is checked from the root down, and nothing is made or written before that.

Frames are signed and not encrypted: only the superuser can read the traffic on loopback.

    signed = key id (4) | tag (16) | content        tag = keyed blake2b of content and bounds
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import NamedTuple

from hustings.core.digests import blake2b, compare_digest
from hustings.core.errors import BadInput
from hustings.net.files import create, shown, why
from hustings.net.keys import ID, Key, new_key, read_key
from hustings.net.limits import Reason
from hustings.net.seal import KeyRing
from hustings.net.wire import SIGNED

VARIABLE = "HUSTINGS_KEY_FILE"
_TAG = 16
_MOST_LINKS = 40  # links on the way to the file, the same limit as the system's
_HINT = (
    f"name a file in a folder that only this user can write to with {VARIABLE}, give the members "
    "a key of hustings keygen, or let them do without one (insecure)"
)


class Kept(NamedTuple):
    """What is kept in a folder, for the sentences that refuse the folder."""

    reading: str  # what another user could do that owns something on the way
    writing: str  # what another user could do that can write to something on the way
    hint: str


_MAKES: ContextVar[bool] = ContextVar("hustings_makes_local_key", default=True)
_KEY = Kept("know the key that is kept there", "exchange the key that is kept there", _HINT)


class LocalRing(KeyRing):
    """The keys of members on one machine: they sign, and do not encrypt."""

    __slots__ = ()
    mode = SIGNED

    def seal(self, plain: bytes, bound: bytes) -> bytes:
        """Sign a text and also `bound`, which both sides know and the frame does not repeat."""
        key = self._sealing
        return b"".join((key.mark, _tag(key, plain, bound), plain))

    def open(self, sealed: bytes, bound: bytes) -> bytes | Reason:
        """The signed text, or the reason why it cannot be trusted."""
        if len(sealed) < ID + _TAG:
            return Reason.BAD_SEAL
        key = self._keys.get(sealed[:ID])
        if key is None:
            return Reason.UNKNOWN_KEY
        plain = sealed[ID + _TAG :]
        if not compare_digest(sealed[ID : ID + _TAG], _tag(key, plain, bound)):
            return Reason.BAD_SEAL
        return plain


def _tag(key: Key, plain: bytes, bound: bytes) -> bytes:
    size = len(bound).to_bytes(4, "big")
    content = b"".join((size, bound, plain))
    return blake2b(content, key=key.secret, digest_size=_TAG, person=b"hustings signed").digest()


def local_key_file() -> str:
    """The path of this user's key file, which need not exist yet."""
    if given := os.environ.get(VARIABLE):
        return given
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):
        state = os.path.join(_home(), ".local", "state")
    return os.path.join(state, "hustings", "local.key")


def _home() -> str:
    home = os.environ.get("HOME", "")
    if not os.path.isabs(home):
        import pwd  # noqa: PLC0415 (memory: HOME is nearly always set)

        with suppress(KeyError):
            home = pwd.getpwuid(os.geteuid()).pw_dir
    if not os.path.isabs(home):
        raise BadInput(f"this user has no home to keep a key in: {_HINT}")
    return home


@contextmanager
def no_local_key_made() -> Iterator[None]:
    """While this lasts, a key that is not there yet is not made: another one stands for it.

    For checks of options, which leave nothing behind. The path is checked as always.
    """
    before = _MAKES.set(False)
    try:
        yield
    finally:
        _MAKES.reset(before)


def local_key() -> Key:
    """This user's key on this machine. The first process that needs it makes it; all share it."""
    path = local_key_file()
    try:
        real = check_way(path)
        if not os.path.lexists(real):
            if not _MAKES.get():
                return new_key()
            _make(real)
            real = check_way(path)  # another process may have been quicker: its key counts
    except (OSError, ValueError) as error:
        raise BadInput(
            f"cannot keep a key for this machine's members in {shown(path)}: {why(error)}; {_HINT}"
        ) from None
    try:
        return read_key(real)
    except BadInput as error:
        raise BadInput(
            f"{error}; or move it away and start this user's members again; or {_HINT}"
        ) from None


def make_folders(path: str, kept: Kept = _KEY) -> None:
    """Make the folders of a file one by one, for this user only even if the umask is 0."""
    folder = os.path.dirname(path)
    missing = []
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for each in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(each, 0o700)
    check_way(path, kept)  # another process may have made some of them meanwhile


def _make(path: str) -> None:
    make_folders(path)
    with suppress(FileExistsError):
        create(path, new_key().text().encode())


def check_way(path: str, kept: Kept = _KEY) -> str:
    """The same path without links; refused if another user could replace anything on the way."""
    rest = _parts(os.path.join(os.getcwd(), path))
    here, links = os.sep, 0
    _check(here, os.lstat(here), kept)
    while rest:
        part = rest.pop()
        if part == os.pardir:
            here = os.path.dirname(here)
            continue
        following = os.path.join(here, part)
        try:
            status = os.lstat(following)
        except FileNotFoundError:
            if os.pardir in rest:
                raise
            return os.path.join(following, *reversed(rest))
        _check(following, status, kept)
        if not stat.S_ISLNK(status.st_mode):
            here = following
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        target = os.readlink(following)
        rest += _parts(target)
        here = os.sep if os.path.isabs(target) else here
    return here


def _parts(path: str) -> list[str]:
    """The parts of a path, the last one first."""
    return [part for part in reversed(path.split(os.sep)) if part not in ("", os.curdir)]


def _check(what: str, status: os.stat_result, kept: Kept) -> None:
    # The owner of the root folder can do everything; in a container that need not be number 0.
    if status.st_uid not in (os.geteuid(), 0, os.lstat(os.sep).st_uid):
        raise BadInput(
            f"{shown(what)} belongs to another user, who could {kept.reading}: {kept.hint}"
        )
    mode = status.st_mode
    # In a sticky folder only the owner of a file can replace it.
    if stat.S_ISDIR(mode) and not mode & stat.S_ISVTX:
        if mode & stat.S_IWOTH or (mode & stat.S_IWGRP and not _is_mine_alone(status.st_gid)):
            raise BadInput(
                f"other users can write to {shown(what)} and so {kept.writing}: run chmod go-w "
                f"{shown(what)}, or {kept.hint}"
            )


def _is_mine_alone(group: int) -> bool:
    """Whether this is a private group of this user, as many systems make one for each user."""
    import grp  # noqa: PLC0415 (memory: few folders can be written to by a group)
    import pwd  # noqa: PLC0415 (memory: likewise)

    try:
        me, members = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    own = me.pw_gid == group and members.gr_name == me.pw_name
    return own and set(members.gr_mem) <= {me.pw_name}

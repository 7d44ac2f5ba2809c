"""Files that survive a crash: written whole, synced, renamed, and the rename synced too.

    write beside -> fsync -> rename (or link) -> fsync the folder

After a crash at any point, the name stands for the whole old content or the whole new one.

Paths may be texts: a member without a state file need not load `pathlib`.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from hustings.core.errors import BadInput

if TYPE_CHECKING:
    from pathlib import Path

OWNER_ONLY = 0o600


def shown(path: str | Path) -> str:
    """A path as an error sentence quotes it: on one line, without control characters."""
    text = os.fspath(path)
    return text if text.isprintable() and text else repr(text)


def why(error: OSError | ValueError) -> str:
    """The system's reason for an error."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def check_state_folder(folder: str | Path) -> None:
    """Refuse a folder that does not exist and cannot be made."""
    path = os.fspath(folder)
    if os.path.isdir(path):
        return
    if os.path.lexists(path):
        raise BadInput(f"state directory {shown(path)} is no directory: give another path")
    above = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(above):
        raise BadInput(
            f"state directory {shown(path)} cannot be made, since {shown(above)} is not there: "
            f"run mkdir -p {shown(path)}"
        )


def state_folder(typed: str | os.PathLike[str]) -> str:
    """The directory that a user named. An empty name would mean the current directory."""
    if not (folder := os.fspath(typed)):
        raise BadInput("state names no directory: give one, or leave it out")
    return folder


def make_state_folder(folder: str | Path) -> bool:
    """Make sure that the folder exists, for its owner only; returns whether it had to be made."""
    check_state_folder(folder)
    if os.path.isdir(folder):
        return False
    try:
        os.mkdir(folder, 0o700)
        sync_folder(os.path.dirname(os.path.abspath(folder)))
    except FileExistsError:  # another process was quicker
        return False
    except OSError as error:
        raise BadInput(f"cannot make state directory {shown(folder)}: {why(error)}") from None
    return True


def read_whole(path: str | Path, most: int) -> tuple[bytes, int]:
    """The first `most` + 1 bytes of a regular file, and its permissions when it was read.

    The file is opened without waiting: a pipe under this name must not hold up a start.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        mode = os.fstat(descriptor).st_mode
        if mode & 0o170000 != 0o100000:
            raise ValueError("it is not a regular file")
        return stream.read(most + 1), mode & 0o7777


def replace(path: str | Path, data: bytes) -> None:
    """Give `path` this content. The caller holds a lock, so that no other process does the same.

    If it fails before the rename, the old content stands. If it fails after the rename, either
    content may stand.
    """
    part = os.fspath(path) + ".new"
    try:
        _write(part, data, os.O_TRUNC)
        os.replace(part, path)
    except OSError:
        with suppress(OSError):
            os.unlink(part)  # the leftover takes room on a full disk
        raise
    sync_folder(os.path.dirname(path) or os.curdir)


def create(path: str | Path, data: bytes) -> None:
    """Write a new file, readable by its owner only; `FileExistsError` if the name is taken."""
    folder, name = os.path.split(os.fspath(path))
    # Threads share a process, and containers with a shared folder may have equal process numbers.
    part = os.path.join(folder, f".{name}.{os.urandom(8).hex()}.new")
    try:
        _write(part, data, os.O_EXCL)
        os.link(part, path)  # unlike a rename, it never replaces
    finally:
        with suppress(OSError):
            os.unlink(part)
    sync_folder(folder or os.curdir)


def _write(path: str, data: bytes, flag: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | flag
    descriptor = os.open(path, flags, OWNER_ONLY)
    try:
        os.fchmod(descriptor, OWNER_ONLY)  # also if the file was there with other permissions
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: str) -> None:
    """Make the names in a folder survive a crash."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

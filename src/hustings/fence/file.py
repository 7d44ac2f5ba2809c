"""A file that only the newest leader may replace.

    fence = FileFence("report.csv")
    with fence.writing(term.token) as stream:
        stream.write(b"...")

A reader of the file finds the whole of one write, whatever crashed. The highest token lies beside
the file in `report.csv.token`. It is raised there before the writer begins. From then on smaller
tokens are refused, also those of writers that had begun. Each writer writes into a file of its own.
At the end that file takes the name, if no larger token came meanwhile. The fence holds no lock
while the caller writes: a writer that is stopped half-way blocks no other writer.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from hustings.core.errors import BadInput
from hustings.fence.fence import FenceBroken
from hustings.fence.ledger import PATIENCE, Ledger, sync_folder

_NAME = "content"
_MOST_LEFT = 100  # files of dead writers that one writer removes


class FileFence:
    """The fence around one file."""

    def __init__(self, path: str | Path, *, patience: float = PATIENCE) -> None:
        """`patience` is the longest wait for other writers, in seconds. They need milliseconds."""
        try:
            self._path = Path(os.path.realpath(path))  # a link keeps pointing to the same place
        except (OSError, ValueError) as error:
            raise BadInput(f"cannot fence this file: {error}") from None
        if self._path.is_dir():
            raise BadInput(f"cannot fence {os.fspath(path)!r}: it is a folder")
        self._ledger = Ledger(self._path.with_name(self._path.name + ".token"), patience=patience)

    @property
    def highest(self) -> int:
        """The highest token so far; 0 before the first."""
        return self._ledger.highest(_NAME)

    def write(self, token: int, data: bytes) -> None:
        """Replace the content."""
        with self.writing(token) as stream:
            stream.write(data)

    @contextmanager
    def writing(self, token: int) -> Iterator[BinaryIO]:
        """Replace the content with what the block writes, if the block ends without an error."""
        self._ledger.admit(_NAME, token)
        self._tidy()
        descriptor, part = self._fresh()
        try:
            # A duplicate, so that a caller that closes the stream does not release the lock.
            with os.fdopen(os.dup(descriptor), "wb") as stream:
                yield stream
            self._take_name(token, descriptor, part)
        finally:
            with suppress(OSError):
                part.unlink()
            os.close(descriptor)

    def _take_name(self, token: int, descriptor: int, part: Path) -> None:
        try:
            with suppress(FileNotFoundError):
                os.fchmod(descriptor, self._path.stat().st_mode & 0o7777)
            os.fsync(descriptor)
            with self._ledger.closed():
                self._ledger.raised(_NAME, token)
                os.replace(part, self._path)
                sync_folder(self._path.parent)
        except OSError as error:
            raise FenceBroken(f"cannot write {self._path.name!r}: {error.strerror}") from None

    def _fresh(self) -> tuple[int, Path]:
        """A new file, locked for as long as its writer lives, so that other writers see this."""
        while True:
            part = self._path.with_name(f".{self._path.name}.{secrets.token_hex(8)}.part")
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            try:
                descriptor = os.open(part, flags, 0o666)
            except OSError as error:
                raise FenceBroken(f"cannot write {self._path.name!r}: {error.strerror}") from None
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.fstat(descriptor).st_nlink:
                return descriptor, part
            # another writer removed it as a dead writer's before it was locked
            os.close(descriptor)

    def _tidy(self) -> None:
        """Remove the files that killed writers left."""
        ours = re.compile(re.escape(f".{self._path.name}.") + r"[0-9a-f]{16}\.part")
        with os.scandir(self._path.parent) as entries:
            left = [each.name for each in entries if ours.fullmatch(each.name)]
        flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        for name in left[:_MOST_LEFT]:
            part = self._path.with_name(name)
            with suppress(OSError):
                descriptor = os.open(part, flags)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    part.unlink()
                finally:
                    os.close(descriptor)

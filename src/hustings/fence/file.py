"""A file that only the newest leader may replace.

    fence = FileFence("report.csv")
    with fence.writing(term.token) as stream:
        stream.write(b"...")

Whoever reads the file finds the whole of one write, whatever crashed. The highest token lies
beside it in `report.csv.token`, and is raised there before the writer begins: from then on smaller
ones are refused, also those that had begun. What is written goes into a file of its own, which
takes the name at the end, if no larger token came meanwhile. No lock is held while the caller
writes: a writer that is stopped half-way holds up nobody.
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
        """`patience` is how long, in seconds, to wait for others, who need milliseconds."""
        try:
            self._path = Path(os.path.realpath(path))  # a link keeps pointing where it did
        except (OSError, ValueError) as error:
            raise BadInput(f"cannot fence this file: {error}") from None
        if self._path.is_dir():
            raise BadInput(f"cannot fence {os.fspath(path)!r}: it is a folder")
        self._ledger = Ledger(self._path.with_name(self._path.name + ".token"), patience=patience)

    @property
    def highest(self) -> int:
        """The highest token that came; 0 before the first."""
        return self._ledger.highest(_NAME)

    def write(self, token: int, data: bytes) -> None:
        """Replace the content."""
        with self.writing(token) as stream:
            stream.write(data)

    @contextmanager
    def writing(self, token: int) -> Iterator[BinaryIO]:
        """Replace the content by what is written, when the block ends well; else it stays."""
        self._ledger.admit(_NAME, token)
        self._tidy()
        descriptor, part = self._fresh()
        try:
            # A duplicate, so that a caller who closes the stream does not let go of the lock.
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
        """A new file, locked for as long as its writer lives, so that others see that it does."""
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
            os.close(descriptor)  # taken for a dead writer's before it was locked

    def _tidy(self) -> None:
        """Remove what killed writers left."""
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

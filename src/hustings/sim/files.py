"""Output files that are there whole or not at all.

Bytes go to a hidden file beside the target, which takes the target's name only when everything has
been written and synced. An error before that leaves the target as it was, and nothing beside it. A
target that exists and is no ordinary file (a pipe, a terminal, a null device) is written directly:
renaming over it would replace it.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from errno import EACCES, EEXIST, EISDIR
from pathlib import Path
from types import TracebackType
from typing import IO

from hustings.core.errors import BadInput

_TRIES = 100


def write_atomically(path: str | Path, data: str | bytes) -> None:
    """Write a whole file, or leave everything as it was and say why not."""
    with AtomicFile(path) as out:
        out.write(data.encode() if isinstance(data, str) else data)


def shown(path: str | Path) -> str:
    """A path as an error sentence quotes it: on one line, without control characters."""
    text = os.fspath(path)
    return text if text.isprintable() and text else repr(text)


def reason(error: OSError | ValueError) -> str:
    """Why a file could not be used, in the system's own words."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


class AtomicFile:
    """A binary output that appears under its name when the `with` block ends well.

    What cannot be written, from the first open to the final rename, is the user's `BadInput`.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._target = self._path
        self._stream: IO[bytes] | None = None
        self._part: Path | None = None  # none when the target is written directly

    def __enter__(self) -> AtomicFile:
        try:
            self._open()
        except (OSError, ValueError) as error:
            self._drop()
            raise self._refusal(error) from None
        except BaseException:  # Ctrl-C may come at any moment
            self._drop()
            raise
        return self

    def write(self, data: bytes) -> int:
        """Add bytes."""
        if self._stream is None:
            raise ValueError("write to a file that is not open")
        try:
            return self._stream.write(data)
        except OSError as error:
            raise self._refusal(error) from None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                self._finish()
        except OSError as failure:
            raise self._refusal(failure) from None
        finally:
            self._drop()

    def _open(self) -> None:
        try:
            found: int | None = self._path.stat().st_mode
        except FileNotFoundError:
            found = None
        if found is not None and stat.S_ISDIR(found):
            raise IsADirectoryError(EISDIR, "it is a directory")
        if found is not None and not stat.S_ISREG(found):
            self._stream = os.fdopen(os.open(self._path, os.O_WRONLY), "wb")
            return
        self._target = Path(os.path.realpath(self._path))  # a link keeps pointing where it did
        if found is not None and not os.access(self._target, os.W_OK):
            raise PermissionError(EACCES, "the file is write-protected")
        part, descriptor = self._make_part()
        self._stream = os.fdopen(descriptor, "wb")
        if found is not None:
            os.chmod(part, stat.S_IMODE(found))

    def _make_part(self) -> tuple[Path, int]:
        """A new file beside the target, with the permissions that the target would get."""
        for number in range(_TRIES):
            part = self._target.with_name(f".hustings-{os.getpid()}-{number}.part")
            self._part = part  # before it exists, so that it is removed in every case
            try:
                return part, os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            except FileExistsError:
                self._part = None
        raise FileExistsError(EEXIST, f"{_TRIES} unfinished files lie beside it")

    def _finish(self) -> None:
        assert self._stream is not None
        self._stream.flush()
        if self._part is not None:
            os.fsync(self._stream.fileno())
        self._stream.close()
        if self._part is not None:
            os.replace(self._part, self._target)
            self._part = None

    def _drop(self) -> None:
        """Remove the unfinished file, if it is left."""
        if self._stream is not None:
            with suppress(OSError):
                self._stream.close()
            self._stream = None
        if self._part is not None:
            with suppress(OSError):
                self._part.unlink()
            self._part = None

    def _refusal(self, error: OSError | ValueError) -> BadInput:
        return BadInput(f"cannot write {shown(self._path)}: {reason(error)}")


TraceFile = AtomicFile  # `with TraceFile(path) as out: Tracer(header, out)`

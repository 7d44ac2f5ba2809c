"""Results on disk, stored as soon as they are known.

The first line says which format, code and grid a file belongs to; every other line holds one block.
A line is appended and synced before its block counts as finished. Its seal covers all lines before
it, so that a changed, missing or moved line is noticed. A crash may leave a last line without an
end: this line is dropped, and its block played again. A file with any other defect is refused and
left as it is.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import msgspec

from hustings._version import __version__
from hustings.core.errors import BadInput
from hustings.lab.runs.block import Block
from hustings.sim.files import reason, shown

FORMAT = 1
LONGEST_LINE = 1 << 20
_BEGINS = "hustings-sweep-"
_FIRST = re.compile(rb"hustings-sweep-([0-9]{1,9}) ([0-9a-f]{32}) (\{.*\})\n")
_OTHER = re.compile(rb"([0-9a-f]{32}) (\{.*\})\n")

# What a run's numbers depend on: whole packages, and from figures only the measurements.
_SOURCES = (
    *("core", "layers", "protocols", "quorum", "sim"),
    *("lab/byzantine", "lab/kernels", "lab/runs", "lab/figures/measurement.py"),
)


class _Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: str
    code: str
    grid: str
    points: int


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    point: int
    block: Block


class Checkpoint:
    """The blocks of one sweep; only one process at a time may hold it."""

    def __init__(self, path: Path, *, code: str, grid: str, points: int) -> None:
        self._path = path
        self._head = _Head(__version__, code, grid, points)
        self._seal = ""
        self._fd = -1
        self._known: dict[int, dict[tuple[int, int], Block]] = {}  # by point and by runs

    def __enter__(self) -> Checkpoint:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except (OSError, ValueError) as error:
            raise self._refusal("cannot be opened", reason(error)) from None
        try:
            if not stat.S_ISREG(os.fstat(self._fd).st_mode):
                raise self._refusal("is no ordinary file", "a checkpoint is read and appended to")
            self._lock()
            self._load()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close()

    def known(self, point: int) -> Mapping[tuple[int, int], Block]:
        """The stored blocks of a point, by their first run and the first run after them."""
        return self._known.get(point, {})

    def add(self, point: int, block: Block) -> None:
        """Store a block: it is on disk when this returns."""
        self._append(_OTHER, msgspec.json.encode(_Line(point, block)))
        self._note(point, block)

    def finish(self, point: int) -> None:
        """All runs of a point are played, and on disk already."""

    def _note(self, point: int, block: Block) -> None:
        self._known.setdefault(point, {})[block.first, block.last] = block

    def _lock(self) -> None:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise self._refusal("is in use", "another sweep writes it") from None
        except OSError as error:
            raise self._refusal("cannot be locked", reason(error)) from None

    def _load(self) -> None:
        """Read what is stored, and drop an incomplete line that a crash left."""
        end = 0
        try:
            with open(self._fd, "rb", closefd=False) as stream:
                for number, line in enumerate(_lines(stream), 1):
                    if not line.endswith(b"\n") and self._torn(number, line):
                        break
                    self._take(number, line)
                    end += len(line)
            os.ftruncate(self._fd, end)
            os.lseek(self._fd, end, os.SEEK_SET)
        except OSError as error:
            raise self._refusal("cannot be read", reason(error)) from None
        if end == 0:
            self._append(_FIRST, msgspec.json.encode(self._head))
            self._sync_folder()

    def _torn(self, number: int, line: bytes) -> bool:
        """Whether a line without an end is the beginning of a valid line."""
        start = line[: len(_BEGINS)].decode("latin-1")
        return len(line) <= LONGEST_LINE and (number > 1 or _BEGINS.startswith(start))

    def _take(self, number: int, line: bytes) -> None:
        match = (_FIRST if number == 1 else _OTHER).fullmatch(line)
        if number == 1:
            if match is None:
                raise self._refusal("is no checkpoint of a sweep", "it begins otherwise")
            if int(match[1]) != FORMAT:
                told = f"its format is {int(match[1])}, and this version writes {FORMAT}"
                raise self._refusal("belongs to another version of hustings", told)
        if match is None:
            raise self._damaged(number, "it is no line of a checkpoint")
        seal, body = match[match.re.groups - 1].decode(), match[match.re.groups]
        if seal != _seal(self._seal, body):
            raise self._damaged(number, "its seal is broken")
        self._seal = seal
        try:
            if number == 1:
                self._compare(msgspec.json.decode(body, type=_Head))
            else:
                self._keep(number, msgspec.json.decode(body, type=_Line))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._damaged(number, f"it does not parse: {error}") from None

    def _compare(self, head: _Head) -> None:
        if (head.version, head.code) != (self._head.version, self._head.code):
            told = f"it was written by {head.version}"
            if head.version == self._head.version:
                told += " with other code or another Python"
            raise self._refusal("belongs to another version of hustings", told)
        if (head.grid, head.points) != (self._head.grid, self._head.points):
            told = f"one of {head.points:,} points with digest {head.grid}"
            raise self._refusal("belongs to another grid", told)

    def _keep(self, number: int, line: _Line) -> None:
        if not 0 <= line.point < self._head.points or not line.block.plausible:
            raise self._damaged(number, "its numbers are impossible")
        self._note(line.point, line.block)

    def _append(self, form: re.Pattern[bytes], body: bytes) -> None:
        seal = _seal(self._seal, body)
        line = f"{seal} ".encode() + body + b"\n"
        if form is _FIRST:
            line = f"{_BEGINS}{FORMAT} ".encode() + line
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(self._fd, rest) :]
            os.fsync(self._fd)
        except OSError as error:
            raise BadInput(f"cannot write {shown(self._path)}: {reason(error)}") from None
        self._seal = seal

    def _sync_folder(self) -> None:
        """Sync the folder: only then does a new file survive a crash."""
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)  # this also releases the lock
            self._fd = -1

    def _damaged(self, number: int, why: str) -> BadInput:
        return self._refusal(f"is damaged in line {number}", why)

    def _refusal(self, what: str, why: str) -> BadInput:
        return BadInput(
            f"{shown(self._path)} {what} ({why}): move it away, or name another folder with --out"
        )


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """The lines of a file; of a line that is too long, only the beginning."""
    while line := stream.readline(LONGEST_LINE + 1):
        yield line


def _seal(before: str, body: bytes) -> str:
    return blake2b(before.encode() + body, digest_size=16).hexdigest()


@cache
def code_digest() -> str:
    """A digest of all code that the numbers of runs come from, and of the Python that runs it.

    Results stored under another digest are stale, even if the version number is the same.
    """
    digest = blake2b(digest_size=16)
    digest.update(f"{__version__} {sys.implementation.cache_tag}".encode())
    home = files("hustings")
    for source in _SOURCES:
        for name, text in _sources(home.joinpath(*source.split("/")), source):
            digest.update(f"\n{name} {len(text)}\n".encode())
            digest.update(text)
    return digest.hexdigest()


def _sources(where: Traversable, name: str) -> list[tuple[str, bytes]]:
    if where.is_file():
        return [(name, where.read_bytes())] if name.endswith(".py") else []
    parts = sorted(where.iterdir(), key=lambda part: part.name)
    return [pair for part in parts for pair in _sources(part, f"{name}/{part.name}")]

"""Results on disk, one file per cell, so that nothing is measured twice.

A file names its cell, seed and code, and carries a seal over all of it. A file is not trusted until
it has been parsed. A file that is damaged, does not parse, or belongs to another cell is reported
and measured again. A file that other code wrote is measured again without a report. Files appear
whole or not at all.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path

import msgspec

from hustings.core.errors import BadInput
from hustings.lab.figures.measurement import Measurement
from hustings.lab.runs.block import Block
from hustings.lab.runs.checkpoint import code_digest
from hustings.sim.files import reason, shown, write_atomically

FORMAT = 2
LARGEST_FILE = 64 << 20
Warn = Callable[[str], None]


class _Body(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: int
    code: str
    seed: int
    cell: Measurement
    blocks: list[Block]


class _Origin(msgspec.Struct, frozen=True):
    """The common part of all files, including those of other code and format."""

    code: str = ""


class _Sealed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    seal: str
    body: msgspec.Raw


class Damaged(Exception):
    """A file that cannot be trusted, and why."""


class Store:
    """A folder of measured cells."""

    def __init__(self, folder: Path, seed: int, warning: Warn) -> None:
        self._folder = folder
        self._seed = seed
        self._warn = warning
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"cannot make the folder {shown(folder)}: {reason(error)}") from None

    def path(self, cell: Measurement) -> Path:
        """The file of a cell's results."""
        return self._folder / f"{cell.digest(self._seed)}.json"

    def load(self, cell: Measurement) -> list[Block]:
        """The stored blocks of a cell; none if there is no file to be trusted."""
        path = self.path(cell)
        try:
            data = _read(path)
            body = _open(data)
            if body is None:
                return []
            _check(body, cell, self._seed)
        except FileNotFoundError:
            return []
        except (Damaged, OSError) as error:
            why = reason(error) if isinstance(error, OSError) else str(error)
            self._warn(f"{shown(path)} is not to be trusted ({why}): measured again")
            return []
        return body.blocks

    def save(self, cell: Measurement, blocks: Sequence[Block]) -> None:
        """Store a cell's blocks."""
        body = msgspec.json.encode(
            _Body(FORMAT, code_digest(), self._seed, cell, list(blocks)), order="deterministic"
        )
        sealed = _Sealed(_seal(body), msgspec.Raw(body))
        write_atomically(self.path(cell), msgspec.json.encode(sealed) + b"\n")


def _read(path: Path) -> bytes:
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise Damaged("it is no ordinary file")
    if found.st_size > LARGEST_FILE:
        raise Damaged(f"it is larger than {LARGEST_FILE >> 20} MB")
    return path.read_bytes()


def _open(data: bytes) -> _Body | None:
    """What a file holds; None if other code wrote it."""
    try:
        sealed = msgspec.json.decode(data, type=_Sealed)
        raw = bytes(sealed.body)
        if sealed.seal != _seal(raw):
            raise Damaged("its seal is broken")
        if msgspec.json.decode(raw, type=_Origin).code != code_digest():
            return None
        return msgspec.json.decode(raw, type=_Body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Damaged(f"it does not parse: {error}") from None


def _check(body: _Body, cell: Measurement, seed: int) -> None:
    if body.format != FORMAT:
        raise Damaged(f"its format is {body.format}, not {FORMAT}")
    if (body.cell, body.seed) != (cell, seed):
        raise Damaged("it tells of another cell")
    end = 0
    for block in body.blocks:
        if block.first != end or not 0 < block.runs <= cell.block:
            raise Damaged("its blocks do not follow each other")
        end = block.last
        if block.first % cell.block:
            raise Damaged("its blocks are cut in the wrong places")
        if sum(block.endings.values()) != block.runs or min(block.endings.values()) < 1:
            raise Damaged("its endings do not add up")
        if not 0 <= block.violated <= block.runs:
            raise Damaged("its verdicts do not add up")
        if not block.plausible:
            raise Damaged("its numbers are impossible")


def _seal(body: bytes) -> str:
    return blake2b(body, digest_size=16).hexdigest()

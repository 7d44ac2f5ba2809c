"""A sweep's file: TOML whose lists are axes, read into points as a user would type them.

The reader's caller says which keys exist: they are the options of a command. A complaint names the
file, the line and the key. TOML's own reader does not report lines, so this module finds a line by
reading longer and longer parts of the file until the key is there.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import product
from pathlib import Path
from typing import Any

from hustings.core.errors import BadInput, UnknownName
from hustings.lab.sweeps.points import MAX_POINTS, Value
from hustings.sim.files import reason, shown

LARGEST_FILE = 1 << 16  # bytes
MOST_READINGS = 500  # of parts of a file, to find one line
GRID, PLOT = "grid", "plot"
Where = tuple[str | int, ...]  # the path to a key from the top


class Kind(Enum):
    """The kind of a key's value."""

    ONE = "a value, or a list of values to try"
    SEVERAL = "a value, or a list of values to try; an inner list gives several at once"
    LINES = "a value, or a list of values to try, each of one or several lines"
    FLAG = "true or false, or a list of them to try"
    TABLE = "a table of settings"
    FIXED = "one value"


@dataclass(frozen=True, slots=True)
class Typed:
    """A point as a user would type it: options with their words, and labels that identify it."""

    words: tuple[tuple[str, str | None], ...]  # None for a flag
    labels: Mapping[str, Value]
    keys: Mapping[str, Where]  # the path of each option
    entries: Mapping[str, Where]  # the path of each entry of a table of options

    def of(self, option: str) -> str | None:
        """The last word of an option, if it has one."""
        return next((word for name, word in reversed(self.words) if name == option), None)


@dataclass(frozen=True, slots=True)
class GridFile:
    """A file that has been read."""

    path: Path
    text: str
    content: Mapping[str, Any]
    points: tuple[Typed, ...] = field(default=())

    @property
    def plot(self) -> Mapping[str, Any]:
        """What the file says about the picture."""
        table = self.content.get(PLOT, {})
        if not isinstance(table, dict):
            raise self.complaint((PLOT,), "plot must be a table")
        return table

    def complaint(self, where: Where, sentence: str) -> BadInput:
        """An error that names the file, the line and the key."""
        line = line_of(self.text, where)
        place = "" if line is None else f" line {line}"
        return BadInput(f"{shown(self.path)}{place}: {sentence}")


def read(path: Path, kinds: Mapping[str, Kind]) -> GridFile:
    """Read a file, and list all its points."""
    return parse(_text(path), path, kinds)


def parse(text: str, path: Path, kinds: Mapping[str, Kind]) -> GridFile:
    """Read the text of a file, and list all its points; `path` is its name in complaints."""
    try:
        content = tomllib.loads(text)
    except RecursionError:
        raise BadInput(f"{shown(path)} is nested too deeply") from None
    except ValueError as error:
        raise BadInput(f"{shown(path)} is no TOML: {error}") from None
    found = GridFile(path, text, content)
    common = {key: value for key, value in content.items() if key not in (GRID, PLOT)}
    grids = content.get(GRID, [{}])
    if not isinstance(grids, list) or not grids or not all(isinstance(g, dict) for g in grids):
        raise found.complaint((GRID,), "grid must be tables of its own: write [[grid]]")
    tables = []
    for number, grid in enumerate(grids):
        own = _axes(found, grid, (GRID, number) if GRID in content else (), kinds)
        tables.append({**_axes(found, common, (), kinds), **own})
    total = sum(_size(axes) for axes in tables)
    if total > MAX_POINTS:
        raise BadInput(
            f"{shown(path)} spans {total:,} points, more than the {MAX_POINTS:,} of one sweep"
        )
    points = tuple(point for axes in tables for point in _points(axes))
    return GridFile(path, text, content, points)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            data = stream.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot read {shown(path)}: {reason(error)}") from None
    if len(data) > LARGEST_FILE:
        raise BadInput(f"{shown(path)} is larger than {LARGEST_FILE >> 10} kB")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"{shown(path)} is no text in UTF-8: {error.reason}") from None


@dataclass(frozen=True, slots=True)
class _Axis:
    """One key and its values; each value has the words of an option, and a label."""

    option: str
    label: str | None
    where: Where
    values: Sequence[tuple[tuple[str | None, ...], Value]]


_Axes = dict[str, _Axis]


def _axes(
    found: GridFile, table: Mapping[str, Any], above: Where, kinds: Mapping[str, Kind]
) -> _Axes:
    """The axes of one table, by label."""
    axes: _Axes = {}
    for key, value in table.items():
        where = (*above, key)
        if key not in kinds:
            raise found.complaint(where, str(UnknownName("key", key, [*kinds, GRID, PLOT])))
        if kinds[key] is not Kind.TABLE:
            axes[key] = _axis(found, key, key, where, value, kinds[key])
            continue
        if not isinstance(value, dict):
            raise found.complaint(where, f"{key} must be {Kind.TABLE.value}")
        for name, each in value.items():
            label = f"{key}.{name}"
            axes[label] = _axis(found, key, label, (*where, name), each, Kind.TABLE)
    return axes


def _axis(
    found: GridFile, option: str, label: str, where: Where, value: object, kind: Kind
) -> _Axis:
    listed = isinstance(value, list) and kind is not Kind.FIXED
    each_of = value if isinstance(value, list) and listed else [value]
    if not each_of:
        raise found.complaint(where, f"{label} lists no value")
    before = f"{where[-1]}=" if kind is Kind.TABLE else ""
    try:
        values = [_value(each, kind, before) for each in each_of]
    except TypeError:
        wanted = Kind.ONE if kind is Kind.TABLE else kind
        raise found.complaint(where, f"{label} must be {wanted.value}") from None
    return _Axis(option, None if kind is Kind.FIXED else label, where, values)


def _value(value: object, kind: Kind, before: str) -> tuple[tuple[str | None, ...], Value]:
    """The words of one value and its label; a TypeError if the value has a wrong type."""
    if kind is Kind.FLAG:
        if not isinstance(value, bool):
            raise TypeError
        return ((None,) if value else ()), value
    if isinstance(value, bool) and kind is Kind.TABLE:
        return (before + str(value).lower(),), value
    if kind is Kind.SEVERAL and isinstance(value, list):
        words = [_word(each) for each in value]
        return tuple(words), " ".join(words)
    word = value if kind is Kind.LINES and isinstance(value, str) else _word(value)
    told = value if isinstance(value, str | int | float) else word
    return (before + word,), told


def _word(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError
    if isinstance(value, str) and not value.isprintable():
        raise TypeError
    try:
        return value if isinstance(value, str) else repr(value)
    except ValueError:  # more digits than Python prints
        raise TypeError from None


def _size(axes: _Axes) -> int:
    size = 1
    for axis in axes.values():
        size *= len(axis.values)
    return size


def _points(axes: _Axes) -> Iterator[Typed]:
    where = {axis.option: axis.where for axis in axes.values()}
    entries = {
        str(axis.where[-1]): axis.where for axis in axes.values() if axis.where[-1] != axis.option
    }
    for combination in product(*(axis.values for axis in axes.values())):
        words: list[tuple[str, str | None]] = []
        labels: dict[str, Value] = {}
        for axis, (given, told) in zip(axes.values(), combination, strict=True):
            words += [(axis.option, word) for word in given]
            if axis.label is not None:
                labels[axis.label] = told
        yield Typed(tuple(words), labels, where, entries)


def line_of(text: str, where: Where) -> int | None:
    """The line of a key, counted from 1; None if the search takes too long.

    A file that ends after a whole statement is also a valid file. So the key's statement ends with
    the shortest beginning of the file that can be read and contains the key. The statement starts
    after the longest beginning that can be read and does not contain the key.

    >>> line_of('a = 1\\nb = [\\n  2,\\n]\\nc = 3', ("b",))
    2
    """
    parts = _Parts(text)
    low, high = 0, parts.lines  # this many lines contain the key, and this many do not
    try:
        while high - low > 1:
            middle = (low + high) // 2
            readable = parts.readable(middle, low)
            if readable is not None and _contains(readable[1], where):
                high = readable[0]
            else:
                low = middle
        before = parts.readable(low, 0)
    except TimeoutError:
        return None
    return 1 if before is None else before[0] + 1


class _Parts:
    """The beginnings of a file, some of which are valid TOML."""

    def __init__(self, text: str) -> None:
        self._lines = [f"{line}\n" for line in text.split("\n")]
        self._left = MOST_READINGS
        self.lines = len(self._lines)

    def readable(self, most: int, least: int) -> tuple[int, dict[str, Any]] | None:
        """The longest valid beginning of at most `most` lines, and more than `least`."""
        for count in range(most, least, -1):
            if not self._left:
                raise TimeoutError
            self._left -= 1
            try:
                return count, tomllib.loads("".join(self._lines[:count]))
            except (ValueError, RecursionError):
                continue
        return None


def _contains(content: Any, where: Where) -> bool:
    for step in where:
        if isinstance(step, int):
            if not isinstance(content, list) or step >= len(content):
                return False
        elif not isinstance(content, dict) or step not in content:
            return False
        content = content[step]
    return True

"""TOML files that people write: typed reading, and for each error the line and the key.

All errors of a file are collected, each with its place, so that one sentence tells all of them.

The standard parser gives line numbers only for syntax errors. If a value is wrong, the line is
found with the same parser: a key stands on the first line that no shorter part of the file needs.
That takes a while in a long file, so a line is looked for only when an error is told.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, NamedTuple, TypeVar

from hustings.core.config import parse_number, parse_whole
from hustings.core.durations import parse_duration, show_duration, yes_or_duration
from hustings.core.errors import BadInput

LARGEST = 256 * 1024  # bytes
MOST_TOLD = 5  # errors in one sentence
_YES, _NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
_AT_LINE = re.compile(r"\s*\(at (?:line ([0-9]+), column [0-9]+|end of document)\)$")
_KEY = re.compile(r"""\s*([A-Za-z0-9_."'-]+)\s*=""")

KeyPath = tuple[str, ...]
Plain = str | int | float | bool
T = TypeVar("T")


class Document:
    """The tables of a file.

    >>> document = Document("a.toml", "# first\\n[http]\\nbind = 'x'\\n")
    >>> document.data, document.line_of(("http", "bind")), document.place(("http",))
    ({'http': {'bind': 'x'}}, 3, 'a.toml, line 2: http')
    """

    def __init__(self, where: str, text: str) -> None:
        self.where = where
        self._lines = text.replace("\r\n", "\n").split("\n")  # as the parser counts them
        try:
            self.data: dict[str, Any] = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise BadInput(self._syntax(str(error))) from None
        except RecursionError:
            raise BadInput(f"{where}: values are nested too deeply") from None

    def place(self, path: KeyPath) -> str:
        """The place of a key, for a sentence about it."""
        line = self.line_of(path)
        where = self.where if line is None else f"{self.where}, line {line}"
        return f"{where}: {'.'.join(path)}"

    def line_of(self, path: KeyPath) -> int | None:
        """The line on which a key begins, or else the table that should contain it."""
        while path:
            for number, line in enumerate(self._lines):
                if path[-1] in line and self._begins(path, number):
                    return number + 1
            path = path[:-1]
        return None

    def _begins(self, path: KeyPath, number: int) -> bool:
        before = self._part(number)
        if before is None or _holds(before, path):
            return False  # in the middle of a value, or before the key
        for last in range(number + 1, len(self._lines) + 1):
            part = self._part(last)
            if part is not None:
                return _holds(part, path)
        return False

    def _part(self, lines: int) -> Mapping[str, Any] | None:
        try:
            return tomllib.loads("\n".join(self._lines[:lines]))
        except tomllib.TOMLDecodeError:
            return None

    def _syntax(self, message: str) -> str:
        place = _AT_LINE.search(message)
        said = message[: place.start()] if place else message
        line = int(place[1]) if place and place[1] else len(self._lines)
        key = _KEY.match(self._lines[line - 1]) if 0 < line <= len(self._lines) else None
        about = f"{key[1]}: " if key else ""
        return f"{self.where}, line {line}: {about}this is not TOML: {said[:1].lower()}{said[1:]}"


def decoded(where: str, data: bytes) -> Document:
    """The tables of a file's content; `where` is its name in sentences.

    A reader of files hands over at most `LARGEST` + 1 bytes of them.
    """
    if len(data) > LARGEST:
        raise BadInput(f"{where} has more than {LARGEST} bytes: that is no configuration")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise BadInput(f"{where}, line {line}: this is not UTF-8, as TOML is") from None
    return Document(where, text)


def _holds(data: Mapping[str, Any], path: KeyPath) -> bool:
    here: Any = data
    for name in path:
        if not isinstance(here, Mapping) or name not in here:
            return False
        here = here[name]
    return True


class Found(NamedTuple):
    """A setting as it was given."""

    place: str | KeyPath  # for a sentence about the setting; a path is a key of the file
    value: object
    typed: bool  # above the file, where everything is text


class DocumentReader:
    """One file that is being read, and the errors in it."""

    def __init__(self, document: Document | None) -> None:
        self.document = document
        self.wrong: list[str] = []

    def table(self, path: KeyPath) -> Mapping[str, Any]:
        """A table of the file; one that is not there is empty."""
        here: Any = self.document.data if self.document is not None else {}
        for step, name in enumerate(path, 1):
            here = here.get(name, {})
            if not isinstance(here, dict):
                self.complain(path[:step], f"must be a table, not {_kind(here)}")
                here = {}
        found: Mapping[str, Any] = here
        return found

    def section(self, path: KeyPath) -> Section:
        """A table of the file, for typed reading."""
        return Section(self, path, self.table(path))

    def place(self, path: KeyPath) -> str:
        """The place of a key in the file."""
        return self.document.place(path) if self.document is not None else ".".join(path)

    def complain(self, place: str | KeyPath, what: str, then: str = " ") -> None:
        """Record an error. Places of errors that will not be told are not looked for."""
        if not isinstance(place, str):
            place = self.place(place) if len(self.wrong) < MOST_TOLD else ".".join(place)
        self.wrong.append(f"{place}{then}{what}")

    def judge(self) -> None:
        """Raise one sentence about all recorded errors, if there are any."""
        if not self.wrong:
            return
        more = len(self.wrong) - MOST_TOLD
        told = self.wrong[:MOST_TOLD] + ([f"and {more} more"] if more > 0 else [])
        raise BadInput("; ".join(told))


class Section:
    """One table: typed reading of its keys, then `end`, which refuses unknown keys."""

    def __init__(self, reading: DocumentReader, path: KeyPath, values: Mapping[str, Any]) -> None:
        self._reading = reading
        self._path = path
        self._values = values
        self._known: list[str] = []

    @property
    def names(self) -> tuple[str, ...]:
        """The keys of the table in the file."""
        return tuple(self._values)

    def knows(self, key: str) -> None:
        """Accept a key that is read elsewhere."""
        self._known.append(key)

    def text(self, key: str, default: str | None = None) -> str | None:
        """A text that is not empty."""
        found = self.find(key)
        if found is None:
            return default
        place, value, _ = found
        if not isinstance(value, str):
            return self._refuse(place, "a text", value, default)
        if not value.strip():
            return self._refuse(place, "a text that is not empty", value, default)
        return value.strip()

    def one_of(self, key: str, words: Sequence[str], default: str) -> str:
        """One of some words."""
        found = self.find(key)
        if found is None:
            return default
        place, value, _ = found
        if value not in words:
            return self._refuse(place, f"one of {', '.join(words)}", value, default)
        return str(value)

    def texts(self, key: str) -> tuple[str, ...] | None:
        """A text or a list of texts; in the environment, separated by commas."""
        found = self.find(key)
        if found is None:
            return None
        place, value, typed = found
        if isinstance(value, str):
            value = value.split(",") if typed else [value]
        if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
            return self._refuse(place, "a text or a list of texts", value, None)
        if not all(one.strip() for one in value):
            return self._refuse(place, "texts that are not empty", value, None)
        return tuple(one.strip() for one in value)

    def flag(self, key: str, default: bool = False) -> bool:
        """True or false."""
        found = self.find(key)
        if found is None:
            return default
        place, value, typed = found
        if isinstance(value, str) and typed and value.lower() in _YES + _NO:
            return value.lower() in _YES
        if not isinstance(value, bool):
            return self._refuse(place, "true or false", value, default)
        return value

    def count(self, key: str, default: int, least: int, most: int) -> int:
        """A whole number within bounds."""
        found = self.find(key)
        if found is None:
            return default
        place, value, typed = found
        if isinstance(value, str) and typed:
            with suppress(ValueError):
                value = parse_whole(value)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            return self._refuse(place, f"a whole number from {least} to {most}", value, default)
        return value

    def duration(
        self, key: str, default: float | None, least: float = 0.0, most: float = math.inf
    ) -> float | None:
        """Seconds, from a text with a unit or a number."""
        found = self.find(key)
        if found is None:
            return default
        place, value, _ = found
        try:
            seconds = parse_duration(value, key)
        except BadInput:
            return self._refuse(place, "a duration, as 250ms, 2s or 1.5m", value, default)
        if not least <= seconds <= most:
            rule = f"from {show_duration(least)} to {show_duration(most)}"
            return self._refuse(place, rule, value, default)
        return seconds

    def yes_or_duration(self, key: str) -> bool | float | None:
        """True, false, or seconds from a text with a unit or a number."""
        found = self.find(key)
        if found is None:
            return None
        try:
            return yes_or_duration(found.value, key)
        except BadInput:
            rule = "true, false or a duration, as 30s"
            return self._refuse(found.place, rule, found.value, None)

    def numbers(self, key: str) -> dict[str, float]:
        """A table of finite numbers; above the file, NAME=NUMBER."""
        numbers: dict[str, float] = {}
        for name, (place, value, typed) in self.entries(key).items():
            number = _number(value) if isinstance(value, str) and typed else value
            if isinstance(number, bool) or not isinstance(number, int | float):
                self._refuse(place, "a number", value, None)
            elif not math.isfinite(number):
                self._refuse(place, "a finite number", value, None)
            else:
                numbers[name] = float(number)
        return numbers

    def plain(self, key: str) -> dict[str, Plain]:
        """A table of texts, numbers, and true or false; above the file, KEY=VALUE."""
        table: dict[str, Plain] = {}
        for name, (place, value, _) in self.entries(key).items():
            if isinstance(value, str | int | float):
                table[name] = value
            else:
                self._refuse(place, "a text, a number, true or false", value, None)
        return table

    def parsed(self, key: str, parse: Callable[[object], T], default: T) -> T:
        """What `parse` makes of the value. It refuses with a sentence that follows the place."""
        found = self.find(key)
        if found is None:
            return default
        try:
            return parse(found.value)
        except BadInput as error:
            self._reading.complain(found.place, str(error), ": ")
            return default

    def end(self) -> None:
        """Refuse keys of the table that were not read: they are mistakes."""
        for name in self._values:
            if name not in self._known:
                near = get_close_matches(name, self._known, n=1, cutoff=0.5)
                hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(self._known)}"
                place = (*self._path, name)
                self._reading.complain(place, f"is no key that is known here ({hint})")

    def find(self, key: str) -> Found | None:
        """The value of a setting and its place, or None."""
        if key not in self._known:
            self._known.append(key)
        if key in self._values:
            return Found((*self._path, key), self._values[key], False)
        return None

    def entries(self, key: str) -> dict[str, Found]:
        """The entries of a table in this one, with their places."""
        self._known.append(key)
        inside = self._values.get(key, {})
        place = (*self._path, key)
        if isinstance(inside, dict):
            return {name: Found((*place, name), value, False) for name, value in inside.items()}
        return self._refuse(place, "a table", inside, {})

    def _refuse(self, place: str | KeyPath, rule: str, value: object, default: T) -> T:
        self._reading.complain(place, f"must be {rule}, not {quoted(value)}")
        return default


def _number(text: str) -> object:
    try:
        return parse_number(text)
    except ValueError:
        return text


def _kind(value: object) -> str:
    kinds = {str: "a text", bool: "true or false", int: "a number", float: "a number"}
    return kinds.get(type(value), "a list" if isinstance(value, list) else "a value")


def quoted(value: object) -> str:
    """A value as a sentence quotes it."""
    text = repr(value) if not isinstance(value, bool) else str(value).lower()
    return text if len(text) <= 60 else text[:57] + "..."

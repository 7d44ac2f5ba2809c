"""A TOML file under flags and environment: where each setting comes from, and its type.

A setting that stands in several places is taken from the highest: flags override environment
variables, and these override the file. All errors are collected, each with its place, so that one
sentence tells all of them.

The standard parser gives line numbers only for syntax errors. If a value is wrong, the line is
found with the same parser: a key stands on the first line that no shorter part of the file needs.
Only a member can check some rules: whether a protocol of that name exists, or whether one setting
goes with another. The member's sentence names the key, and `ErrorLocator` finds where that key
stands.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from hustings.core.config import parse_number, parse_whole
from hustings.core.durations import parse_duration, show_duration, yes_or_duration
from hustings.core.errors import BadInput
from hustings.net.addresses import Address, parse_address
from hustings.net.files import read_whole, shown, why

PREFIX = "HUSTINGS_"
MOST_TOLD = 5  # errors in one sentence
_YES, _NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")

Plain = str | int | float | bool
T = TypeVar("T")


class Found(NamedTuple):
    """A setting as it was given."""

    place: str  # for a sentence about the setting
    value: object
    typed: bool  # above the file, where everything is text


def variable(setting: str) -> str:
    """The environment variable of a setting.

    >>> variable("token-file")
    'HUSTINGS_TOKEN_FILE'
    """
    return PREFIX + setting.upper().replace("-", "_")


@dataclass(frozen=True)
class ConfigSources:
    """All settings that were given, and the errors in them."""

    document: Document | None
    folder: Path  # the folder of relative paths in the file
    flags: Mapping[str, object]
    environment: Mapping[str, str]
    wrong: list[str] = field(default_factory=list)

    def origin(self, setting: str) -> str | None:
        """The flag or variable that gives a setting, if one does."""
        if self.flags.get(setting) not in (None, (), False):
            return f"--{setting}"
        name = variable(setting)
        return name if self.environment.get(name, "").strip() else None

    def above(self, setting: str) -> object:
        """The value above the file; ask `origin` first."""
        if self.flags.get(setting) not in (None, (), False):
            return self.flags[setting]
        return self.environment[variable(setting)].strip()

    def section(self, path: tuple[str, ...], names: Mapping[str, str]) -> Section:
        """A table of the file; `names` maps its keys to their names above the file."""
        here: Any = self.document.data if self.document is not None else {}
        for step, name in enumerate(path, 1):
            here = here.get(name, {})
            if not isinstance(here, dict):
                self.complain(self.place(path[:step]), f"must be a table, not {_kind(here)}")
                here = {}
        return Section(self, path, here, names)

    def place(self, path: tuple[str, ...]) -> str:
        """The place of a key in the file."""
        return self.document.place(path) if self.document is not None else ".".join(path)

    def complain(self, place: str, what: str) -> None:
        """Record an error."""
        self.wrong.append(f"{place} {what}")

    def judge(self) -> None:
        """Raise one sentence about all recorded errors, if there are any."""
        if not self.wrong:
            return
        more = len(self.wrong) - MOST_TOLD
        told = self.wrong[:MOST_TOLD] + ([f"and {more} more"] if more > 0 else [])
        raise BadInput("; ".join(told))


class Section:
    """One table: typed reading of its keys, then `end`, which refuses unknown keys."""

    def __init__(
        self,
        sources: ConfigSources,
        path: tuple[str, ...],
        values: Mapping[str, Any],
        names: Mapping[str, str],
    ) -> None:
        self._sources = sources
        self._path = path
        self._values = values
        self._names = names
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
        found = self._find(key)
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
        found = self._find(key)
        if found is None:
            return default
        place, value, _ = found
        if value not in words:
            return self._refuse(place, f"one of {', '.join(words)}", value, default)
        return str(value)

    def texts(self, key: str) -> tuple[str, ...] | None:
        """A text or a list of texts; in the environment, separated by commas."""
        found = self._find(key)
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

    def paths(self, key: str) -> tuple[Path, ...] | None:
        """Files; relative names in the file are relative to its folder."""
        found = self._find(key)
        texts = self.texts(key)
        if found is None or texts is None:
            return None
        base = Path() if found.typed else self._sources.folder
        return tuple(base / Path(text).expanduser() for text in texts)

    def path(self, key: str) -> Path | None:
        """One file or folder."""
        found = self._find(key)
        if found is not None and not isinstance(found.value, str):
            return self._refuse(found.place, "a text", found.value, None)
        paths = self.paths(key)
        return paths[0] if paths else None

    def flag(self, key: str, default: bool = False) -> bool:
        """True or false."""
        found = self._find(key)
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
        found = self._find(key)
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
        found = self._find(key)
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
        found = self._find(key)
        if found is None:
            return None
        try:
            return yes_or_duration(found.value, key)
        except BadInput:
            rule = "true, false or a duration, as 30s"
            return self._refuse(found.place, rule, found.value, None)

    def address(self, key: str, default: Address | None, port: int) -> Address | None:
        """HOST:PORT, or HOST alone for the usual port."""
        found = self._find(key)
        if found is None:
            return default
        place, value, _ = found
        if not isinstance(value, str):
            return self._refuse(place, "a text HOST:PORT", value, default)
        try:
            return parse_address(value, place, default_port=port)
        except BadInput as error:
            self._sources.wrong.append(str(error))
            return default

    def numbers(self, key: str) -> dict[str, float]:
        """A table of finite numbers; above the file, NAME=NUMBER."""
        numbers: dict[str, float] = {}
        for name, (place, value, typed) in self._table(key).items():
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
        for name, (place, value, _) in self._table(key).items():
            if isinstance(value, str | int | float):
                table[name] = value
            else:
                self._refuse(place, "a text, a number, true or false", value, None)
        return table

    def end(self) -> None:
        """Refuse keys of the table that were not read: they are mistakes."""
        for name in self._values:
            if name not in self._known:
                near = get_close_matches(name, self._known, n=1, cutoff=0.5)
                hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(self._known)}"
                place = self._sources.place((*self._path, name))
                self._sources.complain(place, f"is no key that is known here ({hint})")

    def _find(self, key: str) -> Found | None:
        """The value of a setting and its place, or None."""
        if key not in self._known:
            self._known.append(key)
        setting = self._names.get(key)
        origin = None if setting is None else self._sources.origin(setting)
        if setting is not None and origin is not None:
            return Found(origin, self._sources.above(setting), True)
        if key in self._values:
            return Found(self._sources.place((*self._path, key)), self._values[key], False)
        return None

    def _table(self, key: str) -> dict[str, Found]:
        """Entries with their places; entries above the file are added one by one."""
        self._known.append(key)
        entries: dict[str, Found] = {}
        inside = self._values.get(key, {})
        place = (*self._path, key)
        if isinstance(inside, dict):
            entries = {
                name: Found(self._sources.place((*place, name)), value, False)
                for name, value in inside.items()
            }
        else:
            self._refuse(self._sources.place(place), "a table", inside, None)
        setting = self._names.get(key)
        origin = None if setting is None else self._sources.origin(setting)
        if setting is not None and origin is not None:
            entries.update(self._pairs(origin, self._sources.above(setting)))
        return entries

    def _pairs(self, origin: str, value: object) -> Iterable[tuple[str, Found]]:
        texts = value.split(",") if isinstance(value, str) else value
        assert isinstance(texts, Iterable)
        for text in texts:
            name, equals, rest = str(text).partition("=")
            if not equals or not name.strip() or not rest.strip():
                self._refuse(origin, "written NAME=VALUE", text, None)
            else:
                yield name.strip(), Found(f"{origin} {name.strip()}", rest.strip(), True)

    def _refuse(self, place: str, rule: str, value: object, default: T) -> T:
        self._sources.complain(place, f"must be {rule}, not {_shown(value)}")
        return default


def _number(text: str) -> object:
    try:
        return parse_number(text)
    except ValueError:
        return text


def _kind(value: object) -> str:
    kinds = {str: "a text", bool: "true or false", int: "a number", float: "a number"}
    return kinds.get(type(value), "a list" if isinstance(value, list) else "a value")


def _shown(value: object) -> str:
    text = repr(value) if not isinstance(value, bool) else str(value).lower()
    return text if len(text) <= 60 else text[:57] + "..."


LARGEST = 256 * 1024  # bytes
_AT_LINE = re.compile(r"\s*\(at (?:line ([0-9]+), column [0-9]+|end of document)\)$")
_KEY = re.compile(r"""\s*([A-Za-z0-9_."'-]+)\s*=""")

KeyPath = tuple[str, ...]


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


def read_document(path: Path) -> Document:
    """A file's tables; a file that cannot be read or is not TOML is bad input."""
    try:
        data, _ = read_whole(path, LARGEST)
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot read {shown(path)}: {why(error)}") from None
    if len(data) > LARGEST:
        raise BadInput(f"{shown(path)} has more than {LARGEST} bytes: that is no configuration")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise BadInput(f"{shown(path)}, line {line}: this is not UTF-8, as TOML is") from None
    return Document(shown(path), text)


def _holds(data: Mapping[str, Any], path: KeyPath) -> bool:
    here: Any = data
    for name in path:
        if not isinstance(here, Mapping) or name not in here:
            return False
        here = here[name]
    return True


def _names_key(sentence: str, path: KeyPath) -> int:
    """Where a sentence names a key, counted from 1; `seed 'x'` is about seeds. 0: nowhere."""
    key, entry = path[-1], len(path) > len(("groups", "NAME", "key"))
    word = re.escape(key) if entry else rf"{re.escape(key.removesuffix('s'))}s?"
    found = re.search(rf"(?<![\w.-]){word}(?![\w.-])", sentence)
    return 0 if found is None else found.start() + 1


class ErrorLocator:
    """A group's table in the file, without flags and environment."""

    def __init__(self, sources: ConfigSources, path: KeyPath, names: Mapping[str, str]) -> None:
        """`names` maps the table's keys to their names above the file."""
        self._sources = sources
        self._path = path
        self._names_key = names

    def __call__(self, place: str, sentence: str) -> str:
        """The sentence with the place of the first key that it names, else with `place`.

        Entries of tables precede keys: `unknown setting 'T_X'` is about T_X.
        """
        named = [
            (-len(path), at, path) for path in self._keys() if (at := _names_key(sentence, path))
        ]
        where = self._sources.place(min(named)[2]) if named else place
        return f"{where}: {sentence}"

    def _keys(self) -> Iterator[KeyPath]:
        """The keys that only the file sets, with the entries of tables."""
        document = self._sources.document
        table: object = {} if document is None else document.data
        for name in self._path:
            table = table.get(name) if isinstance(table, Mapping) else None
        for key, value in table.items() if isinstance(table, Mapping) else ():
            above = self._names_key.get(key)
            if above is not None and self._sources.origin(above) is not None:
                continue
            yield (*self._path, key)
            if isinstance(value, Mapping):
                yield from ((*self._path, key, entry) for entry in value)

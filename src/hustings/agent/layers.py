"""Flags over environment over file: where each setting comes from, and what it may be.

A setting that stands in several places is taken from the highest. Whatever is wrong is collected,
each with its place, so that one sentence tells all of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from hustings.agent.document import Document
from hustings.core.durations import parse_duration, show_duration
from hustings.core.errors import BadInput
from hustings.core.numbers import parse_number, parse_whole
from hustings.net.addresses import Address, parse_address

PREFIX = "HUSTINGS_"
MOST_TOLD = 5  # complaints in one sentence
_YES, _NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")

Plain = str | int | float | bool
T = TypeVar("T")


class Found(NamedTuple):
    """A setting as it was given."""

    place: str  # for a sentence about it
    value: object
    typed: bool  # above the file, where everything is text


def variable(setting: str) -> str:
    """The environment variable of a setting.

    >>> variable("token-file")
    'HUSTINGS_TOKEN_FILE'
    """
    return PREFIX + setting.upper().replace("-", "_")


@dataclass(frozen=True)
class Layers:
    """Everything that was said, and what was wrong with it."""

    document: Document | None
    folder: Path  # what paths in the file are relative to
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
        """What stands above the file; ask `origin` first."""
        if self.flags.get(setting) not in (None, (), False):
            return self.flags[setting]
        return self.environment[variable(setting)].strip()

    def section(self, path: tuple[str, ...], names: Mapping[str, str]) -> Section:
        """A table of the file, of which `names` says what its keys are called above it."""
        here: Any = self.document.data if self.document is not None else {}
        for step, name in enumerate(path, 1):
            here = here.get(name, {})
            if not isinstance(here, dict):
                self.complain(self.place(path[:step]), f"must be a table, not {_kind(here)}")
                here = {}
        return Section(self, path, here, names)

    def place(self, path: tuple[str, ...]) -> str:
        """Where a key of the file stands."""
        return self.document.place(path) if self.document is not None else ".".join(path)

    def complain(self, place: str, what: str) -> None:
        """Something is wrong."""
        self.wrong.append(f"{place} {what}")

    def judge(self) -> None:
        """Refuse all that is wrong, in one sentence."""
        if not self.wrong:
            return
        more = len(self.wrong) - MOST_TOLD
        told = self.wrong[:MOST_TOLD] + ([f"and {more} more"] if more > 0 else [])
        raise BadInput("; ".join(told))


class Section:
    """One table: typed reading of its keys, then `end`, which refuses those nobody asked for."""

    def __init__(
        self,
        layers: Layers,
        path: tuple[str, ...],
        values: Mapping[str, Any],
        names: Mapping[str, str],
    ) -> None:
        self._layers = layers
        self._path = path
        self._values = values
        self._names = names
        self._known: list[str] = []

    @property
    def names(self) -> tuple[str, ...]:
        """The keys of the table in the file."""
        return tuple(self._values)

    def knows(self, key: str) -> None:
        """This key is read elsewhere."""
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
        """Files; those that the file names are relative to its folder."""
        found = self._find(key)
        texts = self.texts(key)
        if found is None or texts is None:
            return None
        base = Path() if found.typed else self._layers.folder
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
            self._layers.wrong.append(str(error))
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
        """Everything was asked for: what else stands in the table is a mistake."""
        for name in self._values:
            if name not in self._known:
                near = get_close_matches(name, self._known, n=1, cutoff=0.5)
                hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(self._known)}"
                place = self._layers.place((*self._path, name))
                self._layers.complain(place, f"is no key that is known here ({hint})")

    def _find(self, key: str) -> Found | None:
        """Where the setting was given, and what."""
        if key not in self._known:
            self._known.append(key)
        setting = self._names.get(key)
        origin = None if setting is None else self._layers.origin(setting)
        if setting is not None and origin is not None:
            return Found(origin, self._layers.above(setting), True)
        if key in self._values:
            return Found(self._layers.place((*self._path, key)), self._values[key], False)
        return None

    def _table(self, key: str) -> dict[str, Found]:
        """Entries with their places: those above the file are added to it, entry by entry."""
        self._known.append(key)
        entries: dict[str, Found] = {}
        inside = self._values.get(key, {})
        place = (*self._path, key)
        if isinstance(inside, dict):
            entries = {
                name: Found(self._layers.place((*place, name)), value, False)
                for name, value in inside.items()
            }
        else:
            self._refuse(self._layers.place(place), "a table", inside, None)
        setting = self._names.get(key)
        origin = None if setting is None else self._layers.origin(setting)
        if setting is not None and origin is not None:
            entries.update(self._pairs(origin, self._layers.above(setting)))
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
        self._layers.complain(place, f"must be {rule}, not {_shown(value)}")
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

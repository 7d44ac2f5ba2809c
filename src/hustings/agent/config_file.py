"""A TOML file under flags and environment: where each setting comes from.

A setting that stands in several places is taken from the highest: flags override environment
variables, and these override the file.

Only a member can check some rules: whether a protocol of that name exists, or whether one setting
goes with another. The member's sentence names the key, and `ErrorLocator` finds where that key
stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hustings.core.documents import (
    LARGEST,
    Document,
    DocumentReader,
    Found,
    KeyPath,
    Section,
    decoded,
)
from hustings.core.errors import BadInput
from hustings.net.addresses import Address, parse_address
from hustings.net.files import read_whole, shown, why

PREFIX = "HUSTINGS_"


def variable(setting: str) -> str:
    """The environment variable of a setting.

    >>> variable("token-file")
    'HUSTINGS_TOKEN_FILE'
    """
    return PREFIX + setting.upper().replace("-", "_")


class ConfigSources(DocumentReader):
    """All settings that were given, and the errors in them."""

    def __init__(
        self,
        document: Document | None,
        folder: Path,
        flags: Mapping[str, object],
        environment: Mapping[str, str],
    ) -> None:
        """`folder` is that of relative paths in the file."""
        super().__init__(document)
        self.folder = folder
        self._flags = flags
        self._environment = environment

    def origin(self, setting: str) -> str | None:
        """The flag or variable that gives a setting, if one does."""
        if self._flags.get(setting) not in (None, (), False):
            return f"--{setting}"
        name = variable(setting)
        return name if self._environment.get(name, "").strip() else None

    def above(self, setting: str) -> object:
        """The value above the file; ask `origin` first."""
        if self._flags.get(setting) not in (None, (), False):
            return self._flags[setting]
        return self._environment[variable(setting)].strip()

    def config_section(self, path: KeyPath, names: Mapping[str, str]) -> ConfigSection:
        """A table of the file; `names` maps its keys to their names above the file."""
        return ConfigSection(self, path, self.table(path), names)


class ConfigSection(Section):
    """One table of the file, under flags and environment."""

    def __init__(
        self,
        sources: ConfigSources,
        path: KeyPath,
        values: Mapping[str, Any],
        names: Mapping[str, str],
    ) -> None:
        super().__init__(sources, path, values)
        self._sources = sources
        self._names = names

    def paths(self, key: str) -> tuple[Path, ...] | None:
        """Files; relative names in the file are relative to its folder."""
        found = self.find(key)
        texts = self.texts(key)
        if found is None or texts is None:
            return None
        base = Path() if found.typed else self._sources.folder
        return tuple(base / Path(text).expanduser() for text in texts)

    def path(self, key: str) -> Path | None:
        """One file or folder."""
        found = self.find(key)
        if found is not None and not isinstance(found.value, str):
            return self._refuse(found.place, "a text", found.value, None)
        paths = self.paths(key)
        return paths[0] if paths else None

    def address(self, key: str, default: Address | None, port: int) -> Address | None:
        """HOST:PORT, or HOST alone for the usual port."""
        found = self.find(key)
        if found is None:
            return default
        place, value, _ = found
        if not isinstance(value, str):
            return self._refuse(place, "a text HOST:PORT", value, default)
        if not isinstance(place, str):
            place = self._sources.place(place)
        try:
            return parse_address(value, place, default_port=port)
        except BadInput as error:
            self._sources.wrong.append(str(error))
            return default

    def find(self, key: str) -> Found | None:
        """The value of a setting and its place, or None."""
        setting = self._names.get(key)
        origin = None if setting is None else self._sources.origin(setting)
        if setting is not None and origin is not None:
            self.knows(key)
            return Found(origin, self._sources.above(setting), True)
        return super().find(key)

    def entries(self, key: str) -> dict[str, Found]:
        """Entries with their places; entries above the file are added one by one."""
        entries = super().entries(key)
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


def read_document(path: Path) -> Document:
    """A file's tables; a file that cannot be read or is not TOML is bad input."""
    try:
        data, _ = read_whole(path, LARGEST)
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot read {shown(path)}: {why(error)}") from None
    return decoded(shown(path), data)


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

"""A TOML file, and on which line of it each key stands.

The standard parser tells lines only where the syntax is wrong. Where a value is wrong, the line is
found with the same parser: a key stands on the first line that no shorter part of the file needs.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hustings.core.errors import BadInput
from hustings.net.files import read_whole, shown, why

LARGEST = 256 * 1024  # bytes
_PLACE = re.compile(r"\s*\(at (?:line ([0-9]+), column [0-9]+|end of document)\)$")
_KEY = re.compile(r"""\s*([A-Za-z0-9_."'-]+)\s*=""")

Place = tuple[str, ...]


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

    def place(self, path: Place) -> str:
        """Where a key stands, for a sentence about it."""
        line = self.line_of(path)
        where = self.where if line is None else f"{self.where}, line {line}"
        return f"{where}: {'.'.join(path)}"

    def line_of(self, path: Place) -> int | None:
        """The line on which a key, or failing that the table it is in, begins."""
        while path:
            for number, line in enumerate(self._lines):
                if path[-1] in line and self._begins(path, number):
                    return number + 1
            path = path[:-1]
        return None

    def _begins(self, path: Place, number: int) -> bool:
        before = self._part(number)
        if before is None or _holds(before, path):
            return False  # in the middle of a value, or further up already
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
        place = _PLACE.search(message)
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


def _holds(data: Mapping[str, Any], path: Place) -> bool:
    here: Any = data
    for name in path:
        if not isinstance(here, Mapping) or name not in here:
            return False
        here = here[name]
    return True

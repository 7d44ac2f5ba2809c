"""Which key of the file a sentence is about.

Some things only a member can judge: whether there is a protocol of that name, whether one setting
goes with another. Its sentence names the key, and here is found where that stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hustings.agent.layers import Layers

Path = tuple[str, ...]


def _names(sentence: str, path: Path) -> int:
    """Where a sentence names a key, counted from 1; `seed 'x'` is about seeds. 0: nowhere."""
    key, entry = path[-1], len(path) > len(("groups", "NAME", "key"))
    word = re.escape(key) if entry else rf"{re.escape(key.removesuffix('s'))}s?"
    found = re.search(rf"(?<![\w.-]){word}(?![\w.-])", sentence)
    return 0 if found is None else found.start() + 1


class Blame:
    """A group's table in the file, without what stands above it."""

    def __init__(self, layers: Layers, path: Path, names: Mapping[str, str]) -> None:
        """`names` says what the table's keys are called above the file."""
        self._layers = layers
        self._path = path
        self._names = names

    def __call__(self, place: str, sentence: str) -> str:
        """The sentence with the place of the first key that it names, else with `place`.

        Entries of tables go before keys: `unknown setting 'T_X'` is about T_X.
        """
        named = [(-len(path), at, path) for path in self._keys() if (at := _names(sentence, path))]
        where = self._layers.place(min(named)[2]) if named else place
        return f"{where}: {sentence}"

    def _keys(self) -> Iterator[Path]:
        """What the file alone decides, entries of tables included."""
        document = self._layers.document
        table: object = {} if document is None else document.data
        for name in self._path:
            table = table.get(name) if isinstance(table, Mapping) else None
        for key, value in table.items() if isinstance(table, Mapping) else ():
            above = self._names.get(key)
            if above is not None and self._layers.origin(above) is not None:
                continue
            yield (*self._path, key)
            if isinstance(value, Mapping):
                yield from ((*self._path, key, entry) for entry in value)

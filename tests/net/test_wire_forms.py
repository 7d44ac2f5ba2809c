"""The forms of all messages, as the wire version that is written now has them.

`wire_forms.txt` holds them. A message whose form differs from it cannot be read by members of
releases that have the same wire version. So a change of the file is a new wire version, unless
only names of fields have changed: docs/decisions/0056-wire-versions.md says how one is made.
`pytest --rewrite tests/net/test_wire_forms.py` writes the file.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_type_hints

import msgspec

from hustings.core.messages import Message, kind_of
from hustings.net.versions import VersionNotice
from hustings.net.wire import VERSION, Envelope

FILE = Path(__file__).with_name("wire_forms.txt")
PLACES = ("hustings.core", "hustings.layers", "hustings.net", "hustings.protocols")
QUORUM = "hustings.quorum"


def kinds() -> list[type[Message]]:
    """All messages that members can send, by the file that they are in and by their tags."""
    for place in (*PLACES, QUORUM):
        package = importlib.import_module(place)
        for each in pkgutil.walk_packages(package.__path__, f"{place}."):
            importlib.import_module(each.name)
    found = [each for each in heirs(Message) if each.__module__.startswith((*PLACES, QUORUM))]
    return sorted(found, key=lambda each: (each.__module__, kind_of(each)))


def heirs(kind: type[Message]) -> Iterator[type[Message]]:
    for each in kind.__subclasses__():
        yield each
        yield from heirs(each)


def form(kind: type[msgspec.Struct]) -> str:
    """The fields in their order, with types and defaults; structs within are written out."""
    hints = get_type_hints(kind)  # without bounds: those are the reader's
    parts = []
    for each in msgspec.structs.fields(kind):
        default = "" if each.default is msgspec.NODEFAULT else f" = {each.default!r}"
        parts.append(f"{each.name}: {plain(hints[each.name])}{default}")
    return f"({', '.join(parts)})"


def plain(kind: object) -> str:
    """A type as text, without the modules that it comes from."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind.__name__ + form(kind)
    text = kind.__name__ if isinstance(kind, type) and not hasattr(kind, "__args__") else str(kind)
    for part in getattr(kind, "__args__", ()):
        if isinstance(part, type) and issubclass(part, msgspec.Struct):
            text = text.replace(f"{part.__module__}.{part.__qualname__}", plain(part))
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", text)


def forms() -> str:
    lines = [f"wire version {VERSION}", f"frame {form(Envelope)}", f"notice {form(VersionNotice)}"]
    for each in kinds():
        place = each.__module__.removeprefix("hustings.")
        lines.append(f"{place} {kind_of(each)}{form(each)}")
    return "\n".join(lines) + "\n"


def test_the_forms_of_a_wire_version_do_not_change(rewrite: bool) -> None:
    if rewrite:
        FILE.write_text(forms(), encoding="utf-8")
    assert forms() == FILE.read_text(encoding="utf-8"), (
        "a message has another form: make a new wire version, as decision 0056 says"
    )

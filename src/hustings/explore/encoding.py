"""A state as bytes: equal bytes if and only if the states are equal, in every process.

The encoder walks plain values, structs, dataclasses, enums, and objects of the project's own
classes, whether an object keeps its fields in slots or in a dict. The order of a dict's entries
counts, because code that walks the dict can see the order; without `ordered` it does not count. The
order of a set's elements never counts. A mutable object that occurs twice in one state is written
as a reference the second time, so shared objects and cycles are allowed. The encoder refuses what
its contents do not identify, such as a function inside a function or a file; it does not guess.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from types import FunctionType, MethodType

import msgspec

from hustings.core.errors import ProtocolBug

# An election's table of handlers belongs to its class and never changes.
_CONSTANT = ("handlers",)


class NotEncodable(ProtocolBug):
    """A state holds something that its contents do not identify."""


class Met(dict[int, tuple[int, object]]):
    """Objects met so far, by id, with places; it holds them, so that no id is used again."""

    def __init__(self, ordered: bool) -> None:
        super().__init__()
        self.ordered = ordered


def encode(value: object, *, ordered: bool = True) -> bytes:
    """The canonical form of a value; without `ordered`, the order of dict entries does not count.

    >>> encode({"a": 1}) == encode({"a": 1.0})
    False
    >>> encode([1, (2, "x")]) == encode([1, (2, "x")])
    True
    >>> encode({1: 2, 3: 4}, ordered=False) == encode({3: 4, 1: 2}, ordered=False)
    True
    """
    out: list[bytes] = []
    _write(value, out, Met(ordered))
    return b"".join(out)


def _write(value: object, out: list[bytes], met: Met) -> None:
    if value is None or isinstance(value, bool | int | float | str | bytes):
        # A float's repr is exact, a string's is unambiguous, and the length says where the repr
        # ends.
        text = repr(value).encode()
        out.append(b"%s%d:%s" % (type(value).__name__[:1].encode(), len(text), text))
    elif isinstance(value, Enum):
        out.append(f"e{_name(type(value))}.{value.name};".encode())
    elif isinstance(value, tuple):
        _write_items(b"t", value, out, met)
    elif isinstance(value, frozenset | set):
        parts = sorted(encode(each, ordered=met.ordered) for each in value)
        out.append(b"S%d[" % len(parts) + b"".join(parts) + b"]")
    elif isinstance(value, FunctionType | type):
        out.append(b"c" + _defined(value).encode() + b";")
    elif isinstance(value, MethodType):
        _write_items(b"M", (value.__func__, value.__self__), out, met)
    elif isinstance(value, msgspec.Struct) and value.__struct_config__.frozen:
        out.append(b"m" + _name(type(value)).encode())
        _write_items(b"(", [getattr(value, name) for name in value.__struct_fields__], out, met)
    elif id(value) in met:
        out.append(b"r%d;" % met[id(value)][0])
    else:
        met[id(value)] = len(met), value
        _write_changing(value, out, met)


def _write_changing(value: object, out: list[bytes], met: Met) -> None:
    """Write a mutable object when the encoder meets it for the first time."""
    if isinstance(value, list):
        _write_items(b"l", value, out, met)
    elif isinstance(value, Mapping):
        pairs = list(value.items())
        if not met.ordered:
            pairs.sort(key=lambda pair: encode(pair[0]))
        _write_items(b"d", [part for pair in pairs for part in pair], out, met)
    else:
        out.append(b"o" + _name(type(value)).encode())
        _write_items(b"{", _fields(value), out, met)


def _write_items(sign: bytes, items: Iterable[object], out: list[bytes], met: Met) -> None:
    out.append(sign)
    for item in items:
        _write(item, out, met)
    out.append(b"]")


def _fields(value: object) -> list[object]:
    """Names and values, in an order that does not depend on how the object was built."""
    found: dict[str, object] = dict(getattr(value, "__dict__", {}))
    for name in _slots(type(value)):
        if hasattr(value, name):
            found[name] = getattr(value, name)
    if not found and type(value).__module__.split(".")[0] != "hustings":
        raise NotEncodable(
            f"a state holds a {_name(type(value))}, which cannot be told by its fields"
        )
    return [part for name in sorted(found) if name not in _CONSTANT for part in (name, found[name])]


def _slots(kind: type[object]) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for base in kind.__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in [slots] if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__"):
                names[name] = None
    return tuple(names)


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _defined(value: FunctionType | type) -> str:
    if "<locals>" in value.__qualname__:
        raise NotEncodable(f"a state holds {value.__qualname__}, a function made on the way")
    return f"{value.__module__}.{value.__qualname__}"

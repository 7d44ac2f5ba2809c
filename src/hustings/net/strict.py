"""Types that accept less: what a message may hold, seen from outside.

A protocol's messages say `int` and mean a number that one can count on with; they say `tuple` and
mean no more than a member can bear, and `str` and mean a name or a line. `strict` makes of a type
its double, with bounds on numbers and lengths and with no field too many or too few, so that one
more decoding in C finds what a walk through the message would find in many times the time. `flaw`
is that walk: it names what is wrong, and it is what the doubles are tested against.
"""

from __future__ import annotations

import math
import sys
import types
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from hustings.net.limits import Reason

MAX_INTEGER = 1 << 63  # not included: one more can still be written
MAX_TEXT = 4096  # characters

_LARGEST = sys.float_info.max
_INTEGER = Annotated[int, Meta(ge=-MAX_INTEGER, le=MAX_INTEGER - 1)]
_FLOAT = Annotated[float, Meta(ge=-_LARGEST, le=_LARGEST)]  # which no NaN is either
_TEXT = Annotated[str, Meta(max_length=MAX_TEXT)]


def strict(kind: Any, most: int) -> Any:
    """The double of a type, with at most so many entries in anything that has entries."""
    return _double(kind, most, {})


def flaw(value: object, most: int) -> Reason | None:
    """What no member would say: numbers that one cannot reckon with, endless lists and texts."""
    if isinstance(value, int):
        return None if -MAX_INTEGER <= value < MAX_INTEGER else Reason.IMPLAUSIBLE_NUMBER
    if isinstance(value, float):
        return None if math.isfinite(value) else Reason.IMPLAUSIBLE_NUMBER
    if isinstance(value, str):
        return None if len(value) <= MAX_TEXT else Reason.BAD_FIELDS
    if isinstance(value, msgspec.Struct):
        parts: Sequence[object] = [getattr(value, name) for name in value.__struct_fields__]
    elif isinstance(value, tuple | list | set | frozenset | Mapping):
        if len(value) > most:
            return Reason.TOO_MANY
        parts = [*value, *value.values()] if isinstance(value, Mapping) else list(value)
    else:
        return None
    for part in parts:
        if found := flaw(part, most):
            return found
    return None


def _double(kind: Any, most: int, made: dict[Any, Any]) -> Any:
    if kind is int:
        return _INTEGER
    if kind is float:
        return _FLOAT
    if kind is str:
        return _TEXT
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return made[kind] if kind in made else _double_struct(kind, most, made)
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _double(parts[0], most, made)  # its own bounds are checked with the real type
    doubles = tuple(part if part is ... else _double(part, most, made) for part in parts)
    if origin in (Union, types.UnionType):
        return reduce(or_, doubles)
    if origin is tuple and ... not in parts:
        return types.GenericAlias(tuple, doubles)
    if origin in (tuple, list, set, frozenset, dict):
        return Annotated[origin[doubles], Meta(max_length=most)]
    return kind


def _double_struct(kind: type[msgspec.Struct], most: int, made: dict[Any, Any]) -> Any:
    config = kind.__struct_config__
    made[kind] = kind  # a type within itself is left as it is there
    hints = get_type_hints(kind, include_extras=True)
    made[kind] = msgspec.defstruct(
        kind.__name__,
        [(name, _double(hints[name], most, made)) for name in kind.__struct_fields__],
        rename=dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)),
        tag=config.tag,
        tag_field=None if config.array_like else config.tag_field,
        array_like=config.array_like,
        forbid_unknown_fields=True,
        frozen=True,
        gc=False,
    )
    return made[kind]

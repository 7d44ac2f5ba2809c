"""A sweep in words: the keys of its file, their values as options, and a grid of Python's as lines.

The keys are the long options of `hustings sim`. A grid that Python gives can be written as lines of
such a file, so that a command line names the whole sweep: `hustings sweep --grid LINE ...`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from itertools import product
from typing import Any

from hustings.core.config import parse_number, parse_settings, parse_whole
from hustings.core.errors import BadInput
from hustings.lab.options import FLAGS, TABLES, Options, named
from hustings.lab.simulation import Goals
from hustings.lab.sweeps.gridfile import Kind, Typed
from hustings.protocols.registry import find

PROTOCOL, ENGINE, SEED = "protocol", "engine", "seed"
APART = (PROTOCOL, ENGINE, SEED)
GOALS = ("runs", "stderr", "metric")  # how often a point is played, not what is played
LEFT_OUT = ("time_series", "debug")  # they change nothing in the table
_BARE = re.compile(r"[A-Za-z0-9_-]+")

_TYPES = {each.name: str(each.type).removesuffix(" | None") for each in fields(Options)}
_TYPES |= {"runs": "int", "stderr": "float"}
_PARSED: Mapping[str, tuple[Callable[[str], object], str]] = {
    "int": (parse_whole, "a whole number"),
    "float": (parse_number, "a number"),
}


def key_of(name: str) -> str:
    """The key of a file that an option of Python's has."""
    return FLAGS.get(name, name.replace("_", "-"))


NAMES = {key_of(each.name): each.name for each in fields(Options) if each.name not in LEFT_OUT}


def kinds() -> dict[str, Kind]:
    """The keys that a file may have."""
    found = {PROTOCOL: Kind.ONE, ENGINE: Kind.ONE, **dict.fromkeys(GOALS, Kind.FIXED)}
    for key, name in NAMES.items():
        if name in TABLES:
            found[key] = Kind.TABLE
        elif _TYPES[name].startswith("tuple"):
            found[key] = Kind.SEVERAL
        else:
            found[key] = Kind.FLAG if _TYPES[name] == "bool" else Kind.ONE
    found["environment"] = Kind.LINES  # the text of a file, instead of its name
    return found


class WrongValue(BadInput):
    """A key's value is none of its type."""

    def __init__(self, key: str, sentence: str) -> None:
        super().__init__(sentence)
        self.key = key


def options_of(typed: Typed) -> Options:
    """The options of a point, from its words."""
    given: dict[str, Any] = {}
    for key, word in typed.words:
        if key not in NAMES:
            continue
        name = NAMES[key]
        if _TYPES[name].startswith("tuple"):
            given[name] = (*given.get(name, ()), word)
        else:
            given[name] = True if word is None else _value(key, _TYPES[name], word)
    return Options(**given)


def goals_of(typed: Typed) -> Goals:
    """How often a point is played, from its words."""
    given: dict[str, Any] = {}
    for key in GOALS:
        word = typed.of(key)
        if word is not None:
            given[key] = _value(key, _TYPES.get(key, "str"), word)
    return Goals(**given)


def _value(key: str, kind: str, word: str) -> object:
    if kind not in _PARSED:
        return word
    parse, told = _PARSED[kind]
    try:
        return parse(word)
    except ValueError:
        raise WrongValue(key, f"{key} must be {told}, not {word!r}") from None


def world_of(typed: Typed) -> list[str]:
    """What is played at a point, as a user would type it."""
    return [
        f"--{key}" + ("" if word is None else f"={word}")
        for key, word in typed.words
        if key not in (*APART, *GOALS)
    ]


# A grid of Python's as lines of a file


def lines_of(words: Mapping[str, Any], goals: Goals) -> list[str]:
    """The lines of a file with the same points; none if a class has no name that a file can give.

    >>> lines_of({"protocol": "bully", "members": [4, 8], "settings": {"T1": 3}}, Goals(runs=9))
    ['protocol = "bully"', 'members = [4, 8]', 'set.T1 = 3', 'runs = 9']
    """
    lines: list[str] = []
    for name, value in words.items():
        if name == PROTOCOL:
            named = [_named(each) for each in _values(value)]
            if None in named:
                return []
            lines.append(_line(PROTOCOL, named, single=not isinstance(value, list)))
        elif name in TABLES:
            lines += _table(name, value)
        elif name == ENGINE:
            lines.append(_line(ENGINE, _values(value), single=not isinstance(value, list)))
        else:
            lines.append(_option(name, value))
    given = [(name, getattr(goals, name)) for name in GOALS]
    return lines + [f"{name} = {_toml(value)}" for name, value in given if value is not None]


def _named(protocol: Any) -> str | None:
    """The word for a protocol; None for a class that only this process knows."""
    if isinstance(protocol, str):
        return protocol
    return named(protocol, find(protocol))


def _values(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _table(name: str, value: Any) -> list[str]:
    """Each entry of a table is an axis."""
    if not isinstance(value, Mapping):
        texts = [Options.of(**{name: each}) for each in _values(value)]
        tables = [parse_settings(getattr(each, name)) for each in texts]
        keys = dict.fromkeys(key for table in tables for key in table)
        if len(tables) > 1 and len(keys) > 1:
            raise BadInput(f"{name} of a sweep is a table: give a dict, whose lists are axes")
        value = {key: [table[key] for table in tables if key in table] for key in keys}
        value = {key: each if len(tables) > 1 else each[0] for key, each in value.items()}
    start = key_of(name)
    return [
        _line(
            f"{start}.{key if _BARE.fullmatch(key) else _toml(key)}",
            [_scalar(name, one) for one in _values(each)],
            single=not isinstance(each, list),
        )
        for key, each in value.items()
    ]


def _option(name: str, value: Any) -> str:
    """One option. A dict with lists stands for all its combinations."""
    if isinstance(value, Mapping):
        every = [_values(each) for each in value.values()]
        combined = [dict(zip(value, each, strict=True)) for each in product(*every)]
        return _line(key_of(name), [_words(name, each) for each in combined])
    single = not isinstance(value, list)
    return _line(key_of(name), [_scalar(name, each) for each in _values(value)], single=single)


def _scalar(name: str, value: Any) -> Any:
    """A value as the file has it; what Python writes in another way stands in its words."""
    return value if isinstance(value, bool | int | float | str) else _words(name, value)


def _words(name: str, value: Any) -> Any:
    typed = getattr(Options.of(**{name: value}), name)
    return list(typed) if isinstance(typed, tuple) else typed


def _line(key: str, values: Sequence[Any], *, single: bool = False) -> str:
    """One line; a value that is a list in itself stands in a list, as one of several."""
    alone = single and not isinstance(values[0], list)
    return f"{key} = {_toml(values[0] if alone else list(values))}"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return repr(value) if isinstance(value, int | float) else json.dumps(value, ensure_ascii=False)

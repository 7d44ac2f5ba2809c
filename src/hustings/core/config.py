"""Configuration: frozen structs that refuse bad values at once, and report all broken rules.

Numbers are read as people type them: ASCII digits, a point, an exponent. Python accepts more:
`1_000`, digits of other scripts, `nan`. No user means these, so this module refuses them. And
Python does not read `1e9` as a whole number, although it is one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, Self, get_args, get_origin

import msgspec

from hustings.core.errors import BadInput, UnknownName

Positive = Annotated[float, msgspec.Meta(gt=0)]

# The default of delta is an object of its own. A delta from the user is another object, even if it
# is 1. So a world can put its own bound in place of the default, and never in place of the user's
# value.
_ASSUMED = float("1")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a configuration assumes about the world. None where it assumes nothing."""

    p_ucastl: float | None = None  # loss of a message to one member
    p_mcastl: float | None = None  # loss of a multicast, at each receiver
    p_fail: float | None = None  # a member's crash during one round
    view_prob: float | None = None  # probability that a member knows another member


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of protocol configurations.

    A subclass is a struct of plain fields with defaults. `Annotated[..., Meta(gt=0,
    description="...")]` bounds and explains one field. `broken_rules` checks several fields
    together.
    """

    delta: Annotated[
        float,
        msgspec.Meta(
            gt=0, description="the longest one-way delay; the default timers are multiples of it"
        ),
    ] = _ASSUMED

    @property
    def assumes_delta(self) -> bool:
        """Whether delta is the default.

        >>> Config().assumes_delta, Config(delta=1.0).assumes_delta, Config.parse({}).assumes_delta
        (True, False, True)
        """
        return self.delta is _ASSUMED

    @property
    def unanimous(self) -> bool:
        """Whether a leader is replaced only if each member's own detector has suspected it."""
        return False

    @property
    def attributes_needed(self) -> tuple[str, ...]:
        """Attributes that each member must have, besides the attributes that the choice ranks."""
        return ()

    def broken_rules(self) -> list[str]:
        """Sentences about fields that contradict each other; empty when all is well."""
        return []

    def warnings(self) -> list[str]:
        """Sentences about settings that work but have a consequence worth knowing."""
        return []

    def unused(self, given: Collection[str], *, leaving: bool) -> list[str]:
        """Sentences about the `given` settings that change nothing.

        They are not refused: a sweep over one setting may well keep another. `leaving` says that a
        member may leave in good order.
        """
        return []

    @classmethod
    def for_scenario(cls, scenario: str) -> dict[str, object]:
        """Settings that a scenario of the simulator takes unless the user gives others."""
        return {}

    @classmethod
    def for_group(cls, members: int, around: Surroundings) -> dict[str, object]:
        """Settings that a simulator knows for a group that it makes, unless the user gives them.

        >>> Config.for_group(8, Surroundings())
        {}
        """
        return {}

    @classmethod
    def for_network(cls, delta: float, given: Collection[str] = ()) -> dict[str, object]:
        """Settings for a real network, in seconds. A message takes at most about `delta` there.

        `given` names what the user sets: what would contradict it is left out.

        >>> Config.for_network(0.05)
        {'delta': 0.05}
        """
        return {"delta": delta}

    def surroundings(self) -> Surroundings:
        """The world for which these settings are meant. A simulator arranges that world."""
        return Surroundings()

    @classmethod
    def parse(cls, settings: Mapping[str, object]) -> Self:
        """A validated configuration from names and values (texts as typed, or numbers).

        Raises `BadInput` with every broken rule in one sentence.
        """
        fields = _fields(cls)
        values: dict[str, Any] = {}
        wrong: list[str] = []
        for name, value in settings.items():
            if name not in fields:
                raise UnknownName("setting", name, fields)
            try:
                values[name] = _read(value, fields[name].type)
            except (msgspec.ValidationError, ValueError, OverflowError):
                wrong.append(f"{name} must be {_rule(fields[name].type)}, not {value!r}")
        if wrong:
            raise BadInput("; ".join(wrong))
        config = cls(**values)
        broken = config.broken_rules()
        if config.delta == math.inf:
            broken = ["delta must be finite: timers are multiples of it", *broken]
        if broken:
            raise BadInput("; ".join(broken))
        return config


@lru_cache(maxsize=64)
def _fields(config: type[Config]) -> Mapping[str, msgspec.structs.FieldInfo]:
    """A configuration's fields by name. Finding them takes milliseconds, so the result is kept."""
    return {field.name: field for field in msgspec.structs.fields(config)}


def describe(config: type[Config]) -> list[tuple[str, str, object, str]]:
    """One row per field: name, rule, default, explanation."""
    rows = []
    for field in msgspec.structs.fields(config):
        meta = _meta(field.type)
        text = meta.description if meta is not None and meta.description else ""
        rows.append((field.name, _rule(field.type), field.default, text))
    return rows


def _read(value: object, kind: object) -> object:
    if isinstance(value, str) and value != "nan":
        with suppress(ValueError):  # if the value is a word, the field may accept it
            if float in _bases(kind):
                value = parse_number(value)
            elif int in _bases(kind):
                value = parse_whole(value)
    read: object = msgspec.convert(value, kind, strict=not isinstance(value, str))
    if isinstance(read, float) and math.isnan(read):
        raise ValueError("not a number")
    return read


def _bases(kind: object) -> list[object]:
    """The plain types that a field may hold."""
    if get_origin(kind) is Annotated:
        return _bases(get_args(kind)[0])
    parts = get_args(kind)
    return [base for part in parts for base in _bases(part)] if parts else [kind]


def _meta(kind: object) -> msgspec.Meta | None:
    """The bounds and the description of a field, also of a field that may be None."""
    if get_origin(kind) is Annotated:
        return next((part for part in get_args(kind) if isinstance(part, msgspec.Meta)), None)
    metas = (_meta(part) for part in get_args(kind))
    return next((meta for meta in metas if meta is not None), None)


def _rule(kind: object) -> str:
    """What a field accepts, in words."""
    meta = _meta(kind) if get_origin(kind) is Annotated else None
    base = get_args(kind)[0] if meta is not None else kind
    options = [part for part in get_args(base) if part is not type(None)]
    if options and all(isinstance(part, str) for part in options):
        return "one of " + ", ".join(str(part) for part in options)
    if options and any(get_origin(part) is Annotated or isinstance(part, type) for part in options):
        return " or ".join(_rule(part) for part in options)
    words = {float: "a number", int: "a whole number", bool: "true or false", str: "a text"}
    text = words.get(base, str(base)) if isinstance(base, type) else str(base)
    if meta is None:
        return text
    bounds = [("gt", ">"), ("ge", ">="), ("lt", "<"), ("le", "<=")]
    limits = [
        f"{sign} {getattr(meta, key)}" for key, sign in bounds if getattr(meta, key) is not None
    ]
    return " ".join([text, *limits])


# Numbers as people type them

_FORM = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_MANY_DIGITS = 400  # longer texts are refused unread: no float and no sensible count is longer
_LARGEST = 10**30  # largest whole number


class TooLarge(ValueError):
    """A number that no float holds."""


def parse_number(text: str) -> float:
    """A number, perhaps infinite (`inf`); `ValueError` for anything else.

    >>> parse_number("1e-3"), parse_number(" .5 "), parse_number("+7."), parse_number("-inf")
    (0.001, 0.5, 7.0, -inf)
    >>> parse_number("1_000")
    Traceback (most recent call last):
    ValueError: '1_000' is not a number
    """
    typed = text.strip()
    if typed in ("inf", "+inf", "-inf"):
        return float(typed)
    if len(typed) > _MANY_DIGITS or _FORM.fullmatch(typed) is None:
        raise ValueError(f"{text!r} is not a number")
    value = float(typed)
    if math.isinf(value):  # for example 1e999: no user means infinity
        raise TooLarge(f"{text!r} is too large")
    return value


def parse_whole(text: str) -> int:
    """A whole number, also with an exponent; `ValueError` for anything else.

    >>> parse_whole("64"), parse_whole("1e9"), parse_whole("2.5e3"), parse_whole("-1")
    (64, 1000000000, 2500, -1)
    >>> parse_whole("2.5")
    Traceback (most recent call last):
    ValueError: '2.5' is not a whole number
    """
    typed = text.strip()
    if len(typed) <= _MANY_DIGITS and re.fullmatch(r"[+-]?[0-9]+", typed):
        return int(typed)
    try:
        exact = Fraction(typed) if math.isfinite(parse_number(typed)) else None
    except ValueError:
        exact = None
    if exact is None or exact.denominator != 1 or abs(exact) > _LARGEST:
        raise ValueError(f"{text!r} is not a whole number")
    return int(exact)


def plain(value: object) -> object:
    """The same value for JSON, which lacks infinities: they become the text "inf".

    >>> plain({"T_L": math.inf, "runs": (1, 2.5)})
    {'T_L': 'inf', 'runs': [1, 2.5]}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


def finite_number(text: str, what: str) -> float:
    """A finite number as a person types it; else a sentence that begins with `what`."""
    try:
        value = parse_number(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise BadInput(f"{what} must be a number, not {text.strip()!r}")
    return value


def parse_settings(pairs: Iterable[str]) -> dict[str, str]:
    """`KEY=VALUE` texts as a table; a key given twice is an error."""
    table: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise BadInput(f"--set {pair!r} is not understood: write KEY=VALUE")
        if key.strip() in table:
            raise BadInput(f"--set {key.strip()} is given twice")
        table[key.strip()] = value.strip()
    return table

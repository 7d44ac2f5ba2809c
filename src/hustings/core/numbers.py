"""Numbers as people type them: ASCII digits, a point, an exponent.

Python reads more than that: `1_000`, digits of other scripts, `nan`. None of these is what somebody
means, so none is read. And Python reads `1e9` as no whole number, which it is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction

from hustings.core.errors import BadInput

_FORM = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_MANY_DIGITS = 400  # longer texts are refused unread: no float and no sensible count has more
_LARGEST = 10**30  # of whole numbers


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
    if math.isinf(value):  # as 1e999: nobody meant that
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
    """The same for JSON, which lacks infinities: they become the text "inf".

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

"""Readers behind `--set`: from typed texts, `n=64` or `T1=2.5`, to checked values.

Every mistake raises one sentence that names the field and the rule.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction

from hustings.core.config import parse_number, parse_whole
from hustings.core.errors import BadInput, UnknownName
from hustings.lab.closed_forms.form import require

LARGEST_GROUP = 1_000_000  # sums over members stay well under a second
LARGEST_TIMER = 1_000_000


def refuse_unknown(texts: Mapping[str, str], known: Iterable[str]) -> None:
    """Refuse a key that is not one of the known ones.

    >>> refuse_unknown({"k": "1"}, ["n", "K"])
    Traceback (most recent call last):
    hustings.core.errors.UnknownName: unknown setting 'k' (known: n, K)
    """
    names = list(known)
    for key in texts:
        if key not in names:
            raise UnknownName("setting", key, names)


def read_int(key: str, text: str, least: int, most: int) -> int:
    """Read a whole number within bounds.

    >>> read_int("n", "64", 1, 100)
    64
    """
    try:
        value = parse_whole(text)
    except ValueError:
        raise BadInput(f"{key} must be a whole number, not {_shown(text.strip())}") from None
    require(least <= value <= most, f"{key} must be between {least} and {most}, not {value}")
    return value


def read_number(key: str, text: str) -> Fraction:
    """Read a decimal number, kept exact.

    >>> read_number("T1", "2.5")
    Fraction(5, 2)
    """
    text = text.strip()
    try:
        finite = math.isfinite(parse_number(text))
    except ValueError:
        finite = False
    if not finite:
        raise BadInput(f"{key} must be a number, not {_shown(text)}")
    value = Fraction(text)
    require(0 <= value <= LARGEST_TIMER, f"{key} must be between 0 and {LARGEST_TIMER}, not {text}")
    return value


def read_flag(key: str, text: str) -> bool:
    """Read true or false.

    >>> read_flag("combined", "true")
    True
    """
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise BadInput(f"{key} must be true or false, not {_shown(text)}")
    return word == "true"


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:37]}...")

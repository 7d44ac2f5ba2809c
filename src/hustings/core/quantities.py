"""Rates, shares and durations as people write them in a file, and written so that they are exact.

    6/h   2/day   1/month          rates, in events per second
    1%    50ppm   0.01             shares: losses, relative errors of clocks
    40ms  10m                      durations, in seconds

What `write_...` returns is read back as the same number, bit for bit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal

from hustings.core.config import parse_number
from hustings.core.durations import parse_duration
from hustings.core.errors import BadInput

DAY = 86_400.0
# Seconds in each unit of a rate. A month has 30 days and a year has 365.
PERIODS: Mapping[str, float] = {
    "s": 1.0,
    "second": 1.0,
    "m": 60.0,
    "min": 60.0,
    "minute": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
    "d": DAY,
    "day": DAY,
    "week": 7 * DAY,
    "month": 30 * DAY,
    "year": 365 * DAY,
}
_WRITTEN = ("year", "month", "week", "day", "h", "m", "s")
_RATE = re.compile(r"\s*([0-9.]{1,400}(?:[eE][+-]?[0-9]{1,4})?)\s*/\s*([a-z]{1,6})\s*")
_PARTS = {"%": 100.0, "ppm": 1e6}
_SHARE = re.compile(r"\s*([0-9.]{1,400}(?:[eE][+-]?[0-9]{1,4})?)\s*(%|ppm)?\s*")
_DURATIONS = ("h", "m", "s", "ms", "us")


def parse_rate(value: object, what: str = "") -> float:
    """Events per second, from a text such as `6/h`. A refusal begins with `what` it is for.

    >>> parse_rate("6/h") * 3600, parse_rate("1/month") * 30 * 86400
    (6.0, 1.0)
    """
    form = _RATE.fullmatch(value) if isinstance(value, str) else None
    number = _number(form[1]) if form is not None and form[2] in PERIODS else None
    if form is None or number is None:
        raise BadInput(_about(what, value, "a rate: write one as 6/h, 2/day or 1/month"))
    return number / PERIODS[form[2]]


def write_rate(rate: float) -> str:
    """A rate as people write it.

    >>> write_rate(6 / 3600), write_rate(1 / (30 * 86400)), write_rate(0.5)
    ('6/h', '1/month', '30/m')
    """
    texts = []
    for unit in _WRITTEN:
        number = _plain(Decimal(repr(rate)) * Decimal(PERIODS[unit]))
        for text in (_rounded(rate * PERIODS[unit]), number):
            if parse_rate(f"{text}/{unit}") == rate:
                texts.append(f"{text}/{unit}")
    return min(texts, key=_length)


def parse_share(value: object, what: str = "") -> float:
    """A share from 0 to 1, from `1%`, `50ppm` or a number. A refusal begins with `what`.

    >>> parse_share("1%"), parse_share("50ppm"), parse_share(0.25)
    (0.01, 5e-05, 0.25)
    """
    share: float | None = None
    if isinstance(value, int | float) and not isinstance(value, bool):
        share = float(value)
    elif isinstance(value, str) and (form := _SHARE.fullmatch(value)) is not None:
        number = _number(form[1])
        share = None if number is None else number / _PARTS.get(form[2] or "", 1.0)
    if share is None or not 0.0 <= share <= 1.0:
        raise BadInput(_about(what, value, "a share: write one as 1%, 50ppm or 0.01"))
    return share


def write_share(share: float, unit: str = "%") -> str:
    """A share as people write it, in parts of `unit`.

    >>> write_share(0.01), write_share(5e-05, "ppm")
    ('1%', '50ppm')
    """
    text = f"{_plain(Decimal(repr(share)) * Decimal(_PARTS[unit]))}{unit}"
    return text if parse_share(text) == share else _plain(Decimal(repr(share)))


def write_duration(seconds: float) -> str:
    """A duration with the unit in which people would say it.

    >>> write_duration(0.04), write_duration(600.0), write_duration(0.0), write_duration(5.1)
    ('40ms', '10m', '0s', '5.1s')
    >>> write_duration(239 * 1e-6), write_duration(16.1 * 1e-3)  # neither is a round number
    ('239us', '16.1ms')
    """
    if seconds == 0.0:
        return "0s"
    texts: list[tuple[bool, int, str]] = []  # the number lies outside 1 to 1000, and is how long
    for unit in _DURATIONS:
        size = Decimal(repr(parse_duration(f"1{unit}", "")))
        exact = Decimal(repr(seconds)) / size
        for number in (_rounded(float(exact)), _plain(exact)):
            if parse_duration(f"{number}{unit}", "") == seconds:
                texts.append((not 1 <= exact < 1000, len(number), f"{number}{unit}"))
    return min(texts)[2]  # seconds are always exact


def _number(text: str) -> float | None:
    try:
        return parse_number(text)
    except ValueError:
        return None


def _length(text: str) -> tuple[bool, int]:
    """The order of texts for one number: whole numbers first, then short ones."""
    return "." in text, len(text)


def _plain(number: Decimal) -> str:
    """A decimal number without an exponent."""
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") or "0" if "." in text else text


def _rounded(number: float) -> str:
    """A number without the last digits, in which a product may be off."""
    return _plain(Decimal(f"{number:.12g}")) if math.isfinite(number) else "0"


def _about(what: str, value: object, rule: str) -> str:
    text = repr(value)
    return f"{what} {text if len(text) <= 60 else text[:57] + '...'} is not {rule}".lstrip()

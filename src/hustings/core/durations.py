"""Durations of the real world as people write them: `250ms`, `2s`, `1.5m`, or a number of seconds.

Simulated time has no unit, and is not written this way.
"""

from __future__ import annotations

import math
import re

from hustings.core.errors import BadInput

_FORM = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(us|ms|s|m|h)")
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def parse_duration(value: object, what: str) -> float:
    """Seconds, at least 0. If the value is refused, the sentence names `what` it is for.

    >>> parse_duration("250ms", "grace"), parse_duration("2 s", "grace"), parse_duration(3, "grace")
    (0.25, 2.0, 3.0)
    """
    seconds = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    elif isinstance(value, str):
        form = _FORM.fullmatch(value.strip())
        if form is not None:
            seconds = float(form[1]) * _UNITS[form[2]]
    if not 0.0 <= seconds < math.inf:
        raise BadInput(f"{what} {value!r} is not a duration: write one as 250ms, 2s or 1.5m")
    return seconds


def yes_or_duration(value: object, what: str) -> bool | float:
    """Yes, no, or a duration in seconds. If the value is refused, the sentence names `what`.

    >>> yes_or_duration("no", "alone"), yes_or_duration(True, "alone"), yes_or_duration("1m", "x")
    (False, True, 60.0)
    """
    word = value.strip().lower() if isinstance(value, str) else value
    if isinstance(word, bool):
        return word
    if word in ("yes", "true"):
        return True
    if word in ("no", "false"):
        return False
    try:
        return parse_duration(value, what)
    except BadInput:
        raise BadInput(f"{what} must be yes, no or a duration such as 30s, not {value!r}") from None


def is_duration(value: object) -> bool:
    """Whether a text is written as a duration, with its unit.

    >>> is_duration("250ms"), is_duration("250"), is_duration("highest")
    (True, False, False)
    """
    return isinstance(value, str) and _FORM.fullmatch(value.strip()) is not None


def show_duration(seconds: float) -> str:
    """A duration as people write it.

    >>> show_duration(0.25), show_duration(2.0), show_duration(0.0004)
    ('250ms', '2s', '400us')
    """
    if 0 < seconds < 1e-3:
        return f"{seconds * 1e6:.3g}us"
    if 0 < seconds < 1.0:
        return f"{seconds * 1e3:.3g}ms"
    return f"{seconds:.6g}s"

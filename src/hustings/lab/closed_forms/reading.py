"""From texts as typed, `n=64` or `crashed=60,61`, to a checked setting.

Every mistake is told in one sentence that names the field and the rule.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from hustings.core.errors import BadInput, UnknownName
from hustings.core.numbers import parse_number, parse_whole
from hustings.lab.closed_forms.terms import Setting, require

LARGEST_GROUP = 1_000_000  # sums over members stay well under a second
LARGEST_TIMER = 1_000_000

SCENARIOS = ("leader-crash", "start")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One key that an election's forms accept."""

    key: str
    default: str
    meaning: str


GROUP = (
    Parameter("n", "8", "members, ids 1..n; after a crash n counts the dead leader"),
    Parameter("d", "the lowest live id", "who detects or initiates: an id, several, or all"),
    Parameter("m", "the highest id", "the highest live id; everybody above is dead"),
    Parameter("crashed", "nobody", "further dead members, as 60,61,62"),
    Parameter("scenario", "leader-crash", "leader-crash, or start: all alive and nobody leads"),
)


def read_setting(
    texts: Mapping[str, str],
    timers: Mapping[str, Fraction | None],
    numbers: Mapping[str, int],
    flags: Mapping[str, bool],
) -> tuple[Setting, dict[str, object]]:
    """A setting and the parameters as used; the mappings give this election's own defaults.

    A timer whose default is None is T1 + 2: told, made sure, announced.

    >>> setting, used = read_setting({"n": "8", "m": "5"}, {}, {}, {})
    >>> setting.live, used["d"]
    ((1, 2, 3, 4, 5), 1)
    """
    known = [*(p.key for p in GROUP), *timers, *numbers, *flags]
    refuse_unknown(texts, known)
    n = read_int("n", texts.get("n", "8"), 1, LARGEST_GROUP)
    scenario = texts.get("scenario", SCENARIOS[0]).strip().replace("_", "-")
    if scenario not in SCENARIOS:
        raise UnknownName("scenario", scenario, SCENARIOS)
    start = scenario == "start"
    require(start or n >= 2, f"n must be at least 2, the crashed leader and one more, not {n}")
    live = _live(texts, n, n if start else n - 1)
    detectors = _detectors(texts.get("d", str(live[0])), n, live)
    setting = Setting(
        n,
        live,
        detectors,
        start,
        _timers(texts, timers),
        _numbers(texts, numbers),
        {key: read_flag(key, texts.get(key, str(flags[key]))) for key in flags},
    )
    alive = set(live)
    used: dict[str, object] = {
        "n": n,
        "d": list(detectors) if len(detectors) > 1 else detectors[0],
        "m": setting.m,
        "crashed": [j for j in range(1, setting.top + 1) if j not in alive],
        "scenario": scenario,
    }
    return setting, used


def refuse_unknown(texts: Mapping[str, str], known: Iterable[str]) -> None:
    """Every key must be one of the known ones.

    >>> refuse_unknown({"k": "1"}, ["n", "K"])
    Traceback (most recent call last):
    hustings.core.errors.UnknownName: unknown setting 'k' (known: n, K)
    """
    names = list(known)
    for key in texts:
        if key not in names:
            raise UnknownName("setting", key, names)


def read_int(key: str, text: str, least: int, most: int) -> int:
    """A whole number within bounds.

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
    """A decimal number, kept exact.

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
    """true or false.

    >>> read_flag("combined", "true")
    True
    """
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise BadInput(f"{key} must be true or false, not {_shown(text)}")
    return word == "true"


def _timers(
    texts: Mapping[str, str], defaults: Mapping[str, Fraction | None]
) -> dict[str, Fraction]:
    found: dict[str, Fraction] = {}
    for key, default in defaults.items():
        if key in texts:
            found[key] = read_number(key, texts[key])
        else:
            found[key] = found["T1"] + 2 if default is None else default
    return found


def _numbers(texts: Mapping[str, str], defaults: Mapping[str, int]) -> dict[str, int]:
    return {
        key: read_int(key, texts.get(key, str(default)), 1, LARGEST_GROUP)
        for key, default in defaults.items()
    }


def _live(texts: Mapping[str, str], n: int, top: int) -> tuple[int, ...]:
    m = read_int("m", texts["m"], 1, top) if "m" in texts else top
    listed = [part for part in texts.get("crashed", "").split(",") if part.strip()]
    crashed = {read_int("crashed", part, 1, n) for part in listed}
    if "m" in texts and m in crashed:
        raise BadInput(f"m = {m} is the highest live member, so crashed must not name it")
    live = tuple(j for j in range(1, m + 1) if j not in crashed)
    if not live:
        raise BadInput("crashed must leave at least one member alive")
    return live


def _detectors(text: str, n: int, live: tuple[int, ...]) -> tuple[int, ...]:
    if text.strip() == "all":
        return live
    found = {read_int("d", part, 1, n) for part in text.split(",")}
    alive = set(live)
    for detector in sorted(found):
        if detector not in alive:
            raise BadInput(f"d must be a live member, and {detector} is dead")
    return tuple(sorted(found))


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:37]}...")

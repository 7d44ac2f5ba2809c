"""What a group has to do: the goals of a plan, with their units, read strictly.

A goal that is not given is no demand. A number without a unit is refused where people write it:
`5` could be seconds or minutes, and a plan for the wrong one is worse than none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hustings.core.config import parse_number
from hustings.core.durations import parse_duration
from hustings.core.errors import BadInput, UnknownName
from hustings.core.quantities import PERIODS, parse_rate, write_duration, write_rate
from hustings.guard.registry import ENGINES

_SHOWN = ("s", "m", "h", "day", "month", "year")  # periods of rates that people are shown
_SIZES = {"": 1.0, "B": 1.0, "kB": 1e3, "KB": 1e3, "MB": 1e6, "KiB": 1024.0, "MiB": 1024.0**2}
_BYTES = re.compile(r"\s*([0-9.]{1,30}(?:[eE][+-]?[0-9]{1,3})?)\s*([A-Za-z]*)\s*/\s*(s|m|h)\s*")
_MEMBERS = re.compile(r"([1-9][0-9]{0,5})?\s*members?")

SITE, ENGINE = "site", "engine"
PREFERENCES = ("calm", "speed", "bytes")
# Engines that several processes can share. `memory` lives in one process.
SHARED_ENGINES = tuple(each.name for each in ENGINES if each.name != "memory")
_LEAST_SHOWN = 1e-6  # of a rate, per year
NAMES = ("failover-p99", "wrong", "two-leaders", "survive", "bytes", "engines", "prefer")


def show_rate(rate: float) -> str:
    """A rate as people write it, down to the least that a model of a group can promise.

    >>> show_rate(1 / (30 * 86400)), show_rate(0.0), show_rate(2.5), show_rate(1e-9)
    ('1/month', '0/year', '2.5/s', '0.0315/year')
    >>> show_rate(1e-60)
    '<1e-06/year'
    """
    if 0.0 < rate * PERIODS[_SHOWN[-1]] < _LEAST_SHOWN:
        return f"<{_LEAST_SHOWN:g}/{_SHOWN[-1]}"
    for period in _SHOWN:
        times = rate * PERIODS[period]
        if times >= 0.5 or period == _SHOWN[-1]:
            return f"{times:.3g}/{period}"
    raise AssertionError("a year is the last period")


def parse_bytes(value: object, what: str) -> float:
    """Bytes in a second.

    >>> parse_bytes("100/s", "bytes"), parse_bytes("1.5 kB/s", "bytes")
    (100.0, 1500.0)
    """
    form = _BYTES.fullmatch(value) if isinstance(value, str) else None
    size = math.nan
    if form is not None and form[2] in _SIZES:
        size = _number(form[1]) * _SIZES[form[2]] / PERIODS[form[3]]
    if not 0.0 < size < math.inf:
        raise BadInput(f"{what} {value!r} is no number of bytes: write one as 100/s or 2kB/s")
    return size


def show_bytes(size: float) -> str:
    """Bytes in a second as people write them.

    >>> show_bytes(99.4), show_bytes(1500.0), show_bytes(2.5e6)
    ('99 B/s', '1.5 kB/s', '2.5 MB/s')
    """
    for unit, least in (("MB", 1e6), ("kB", 1e3)):
        if size >= least:
            return f"{size / least:.3g} {unit}/s"
    return f"{size:.0f} B/s"


def parse_tolerance(value: object, what: str) -> float:
    """For how long two leaders are tolerable: seconds, and 0 for never.

    >>> parse_tolerance("never", "two-leaders"), parse_tolerance("10s", "two-leaders")
    (0.0, 10.0)
    """
    if isinstance(value, str) and value.strip().lower() == "never":
        return 0.0
    try:
        return parse_duration(value, what)
    except BadInput:
        raise BadInput(
            f"{what} {value!r} is not understood: write never, or a time as 10s"
        ) from None


def parse_survival(value: str) -> str:
    """What the group is to survive, in one form.

    >>> parse_survival("member"), parse_survival("2 members"), parse_survival(" site ")
    ('1 members', '2 members', 'site')
    """
    word = value.strip().lower()
    if word in (SITE, ENGINE):
        return word
    form = _MEMBERS.fullmatch(word)
    if form is None:
        raise BadInput(
            f"survive {value!r} is not understood: write site, engine, or a number of members as "
            "'2 members'"
        )
    return f"{form[1] or 1} members"


def _number(text: str) -> float:
    try:
        return parse_number(text)
    except ValueError:
        return math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupGoals:
    """What is demanded. None, and an empty tuple: no demand.

    >>> GroupGoals.parse({"failover-p99": "5s", "two-leaders": "never"}).two_leaders
    0.0
    """

    # Seconds from the leader's end until all live members follow a new leader that leads.
    failover_p99: float | None = None
    # Most wrong failovers in a second of the group's time: a live leader loses its leadership
    # although nobody asked for that.
    wrong: float | None = None
    # 0: never two members that lead at one time; else for how long it is tolerable, in 99 of 100
    # failovers.
    two_leaders: float | None = None
    survive: tuple[str, ...] = ()  # "site", "engine", "2 members"
    # Most bytes in a second that any one member sends and receives, headers included.
    bytes: float | None = None
    engines: tuple[str, ...] = ()  # engines that may be the guard
    prefer: str = ""

    def __post_init__(self) -> None:
        """Refuse what nothing can mean."""
        if self.failover_p99 is not None and not 0 < self.failover_p99 < math.inf:
            raise BadInput("failover-p99 must be more than 0: no failover takes no time")
        if self.wrong is not None and not 0 < self.wrong < math.inf:
            raise BadInput(
                "wrong must be more than 0: no estimate shows that something never happens; give "
                "a rate, as 1/year"
            )
        if self.two_leaders is not None and not 0 <= self.two_leaders < math.inf:
            raise BadInput("two-leaders must be never, or a time as 10s")
        if self.bytes is not None and not 0 < self.bytes < math.inf:
            raise BadInput("bytes must be more than 0, as 100/s")
        for engine in self.engines:
            if engine not in SHARED_ENGINES:
                raise UnknownName("engine", engine, SHARED_ENGINES)
        for each in self.survive:
            parse_survival(each)
        if self.prefer and self.prefer not in PREFERENCES:
            raise UnknownName("preference", self.prefer, PREFERENCES)

    @classmethod
    def parse(cls, given: Mapping[str, object]) -> GroupGoals:
        """Goals from the words of a command line or of a file; an underscore stands for a dash."""
        words = {name.replace("_", "-"): value for name, value in given.items()}
        for name in words:
            if name not in NAMES:
                raise UnknownName("goal", name, NAMES)
        has = {name: value for name, value in words.items() if value not in (None, (), [], "")}
        return cls(
            failover_p99=_read(has, "failover-p99", parse_duration),
            wrong=_read(has, "wrong", parse_rate),
            two_leaders=_read(has, "two-leaders", parse_tolerance),
            survive=tuple(dict.fromkeys(map(parse_survival, _texts(has, "survive")))),
            bytes=_read(has, "bytes", parse_bytes),
            engines=tuple(dict.fromkeys(_texts(has, "engines"))),
            prefer=next(iter(_texts(has, "prefer")), ""),
        )

    @property
    def demanded(self) -> tuple[str, ...]:
        """The names of the goals that are set, as people write them."""
        values = {
            "failover-p99": self.failover_p99,
            "wrong": self.wrong,
            "two-leaders": self.two_leaders,
            "bytes": self.bytes,
        }
        return (
            *(name for name, value in values.items() if value is not None),
            *(["survive"] if self.survive else []),
        )

    @property
    def members_lost(self) -> int:
        """How many members may be gone at one time, and the group still has to have a leader."""
        counts = [int(each.split()[0]) for each in self.survive if each.endswith("members")]
        return max(counts, default=0)

    def words(self) -> dict[str, str | list[str]]:
        """The goals as `parse` reads them, without those that are not set."""
        told: dict[str, str | list[str]] = {}
        if self.failover_p99 is not None:
            told["failover-p99"] = write_duration(self.failover_p99)
        if self.wrong is not None:
            told["wrong"] = write_rate(self.wrong)
        if self.two_leaders is not None:
            told["two-leaders"] = write_duration(self.two_leaders) if self.two_leaders else "never"
        if self.survive:
            told["survive"] = list(self.survive)
        if self.bytes is not None:
            told["bytes"] = f"{self.bytes!r}/s"
        if self.engines:
            told["engines"] = list(self.engines)
        if self.prefer:
            told["prefer"] = self.prefer
        return told


def _read(has: Mapping[str, object], name: str, read: object) -> float | None:
    assert callable(read)
    return read(has[name], name) if name in has else None


def _texts(has: Mapping[str, object], name: str) -> list[str]:
    """The texts of a list, or of one text with commas."""
    value = has.get(name, ())
    every: Iterable[object] = value.split(",") if isinstance(value, str) else ()
    if isinstance(value, list | tuple):
        every = [part for each in value for part in str(each).split(",")]
    elif not isinstance(value, str):
        raise BadInput(f"{name} must be a text or a list of texts, not {value!r}")
    return [str(each).strip() for each in every if str(each).strip()]

"""Elections with counted messages: live members, detectors and timers, and the resulting cost.

Broadcast, ring, the bully and its variants, and the stable election take these parameters, and some
of them take more. Each declares its forms with `counted`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Never

from hustings.core.errors import BadInput, UnknownName
from hustings.lab.closed_forms import reading
from hustings.lab.closed_forms.form import (
    COUNTED,
    ClosedForms,
    Form,
    Number,
    Parameter,
    TheoryResult,
    plain,
    require,
)

SCENARIOS = ("leader-crash", "start")

GROUP = (
    Parameter("n", "8", "members, ids 1..n; after a crash n counts the dead leader"),
    Parameter("d", "the lowest live id", "who detects or initiates: an id, several, or all"),
    Parameter("m", "the highest id", "the highest live id; all above are dead"),
    Parameter("crashed", "nobody", "further dead members, as 60,61,62"),
    Parameter("scenario", "leader-crash", "leader-crash, or start: all alive and nobody leads"),
)

MEANINGS = {
    "T": "wait for each answer, at least 2",
    "T1": "wait for answers, at least 2",
    "T2": "wait for the promised leader, alternate or assistant to act",
    "W": "how long a receiver gathers questions before it answers",
    "K": "alternates of the leader",
    "combined": "START carries the initiator's id",
    "unanimous": "all notice the crash and the best proposes; else d alone",
}

EXAMPLE: Mapping[str, Mapping[str, str]] = {"example": {"n": "64", "d": "1"}}
NONE: Mapping[str, Never] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Counts:
    """The cost of one election; None where no closed form is known.

    >>> Counts(election=3, answer=2, coordinator=1, other=0).messages
    6
    """

    election: int | None = None
    answer: int | None = None
    coordinator: int | None = None
    other: int | None = None
    time: Number | None = None
    leader: int | None = None
    why: str = ""  # why something is None

    @property
    def messages(self) -> int | None:
        """All messages, or None when one of the kinds has no closed form."""
        total = 0
        for part in (self.election, self.answer, self.coordinator, self.other):
            if part is None:
                return None
            total += part
        return total

    def metrics(self) -> dict[str, Number | None]:
        """The counts under the names that the simulator reports."""
        return {
            "election_messages": self.election,
            "answer_messages": self.answer,
            "coordinator_messages": self.coordinator,
            "other_messages": self.other,
            "messages": self.messages,
            "time": self.time,
            "leader": self.leader,
        }


@dataclass(frozen=True, slots=True)
class GroupSetting:
    """The live members, the detectors and the timers: the left-hand side of a closed form.

    `top` is the highest id not known to be dead: n - 1 once the leader's crash is detected, n
    when a group starts and has no leader.
    """

    n: int
    live: tuple[int, ...]  # in increasing order
    detectors: tuple[int, ...]  # in increasing order, all alive
    start: bool = False
    timers: Mapping[str, Number] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)
    flags: Mapping[str, bool] = field(default_factory=dict)

    @property
    def m(self) -> int:
        """The highest live member."""
        return self.live[-1]

    @property
    def d(self) -> int:
        """The lowest detector."""
        return self.detectors[0]

    @property
    def single(self) -> bool:
        """Whether there is exactly one detector."""
        return len(self.detectors) == 1

    @property
    def top(self) -> int:
        """The highest id not known to be dead."""
        return self.n if self.start else self.n - 1

    def live_above(self, member: int) -> int:
        """How many live members have a higher id."""
        return len(self.live) - bisect_right(self.live, member)

    def live_from(self, member: int) -> tuple[int, ...]:
        """The live members from `member` upwards."""
        return self.live[bisect_left(self.live, member) :]


def counted(
    name: str,
    counts: Callable[[GroupSetting], Counts],
    formulas: Mapping[str, str],
    forms: Callable[[GroupSetting], list[Form]],
    source: str,
    verdict: str = COUNTED,
    *,
    timers: Mapping[str, Fraction | None] = NONE,
    numbers: Mapping[str, int] = NONE,
    flags: Mapping[str, bool] = NONE,
) -> ClosedForms:
    """Declare an election's forms: its counts, each with its formula, and its named results.

    `timers`, `numbers` and `flags` are the election's own keys with their defaults. A timer whose
    default is None is T1 + 2: the report travels, the check takes T1, the announcement travels.
    """

    def evaluate(texts: Mapping[str, str]) -> TheoryResult:
        setting, used = read_setting(texts, timers, numbers, flags)
        known = counts(setting)
        for own in (setting.timers, setting.numbers, setting.flags):
            used.update({key: plain(value) for key, value in own.items()})
        corrected: dict[str, int | float] = {}
        found: list[Form] = []
        missing: list[str] = []
        for metric, value in known.metrics().items():
            if value is None:
                missing.append(metric)
                continue
            corrected[metric] = plain(value)
            found.append(Form(metric, value, formulas[metric], source, verdict))
        notes = [f"no closed form here for {', '.join(missing)}: {known.why}"] if missing else []
        found += forms(setting)
        printed = {form.name: plain(form.value) for form in found if form.printed}
        return TheoryResult(name, used, corrected, printed, found, notes)

    own = {key: "T1 + 2" if value is None else str(plain(value)) for key, value in timers.items()}
    own |= {key: str(value) for key, value in numbers.items()}
    own |= {key: str(value).lower() for key, value in flags.items()}
    keys = (Parameter(key, default, MEANINGS[key]) for key, default in own.items())
    return ClosedForms(name, (*GROUP, *keys), evaluate, EXAMPLE)


def members(n: int, d: int, m: int | None = None, dead: Collection[int] = ()) -> tuple[int, ...]:
    """The live members 1..m without `dead`; n is the crashed leader and m is n - 1 by default.

    >>> members(8, d=2, m=6, dead=[3, 4])
    (1, 2, 5, 6)
    """
    require(n >= 2, f"n must be at least 2, the crashed leader and one more, not {n}")
    highest = n - 1 if m is None else m
    require(1 <= highest < n, f"m must be between 1 and n - 1 = {n - 1}, not {highest}")
    require(highest not in dead, f"m = {highest} is the highest live member, so it is not dead")
    live = tuple(j for j in range(1, highest + 1) if j not in dead)
    require(d in live, f"d must be a live member, not {d}")
    return live


def read_setting(
    texts: Mapping[str, str],
    timers: Mapping[str, Fraction | None],
    numbers: Mapping[str, int],
    flags: Mapping[str, bool],
) -> tuple[GroupSetting, dict[str, object]]:
    """Read a setting and the used parameters; the mappings give this election's defaults.

    A timer whose default is None is T1 + 2, as in `counted`.

    >>> setting, used = read_setting({"n": "8", "m": "5"}, {}, {}, {})
    >>> setting.live, used["d"]
    ((1, 2, 3, 4, 5), 1)
    """
    known = [*(p.key for p in GROUP), *timers, *numbers, *flags]
    reading.refuse_unknown(texts, known)
    n = reading.read_int("n", texts.get("n", "8"), 1, reading.LARGEST_GROUP)
    scenario = texts.get("scenario", SCENARIOS[0]).strip().replace("_", "-")
    if scenario not in SCENARIOS:
        raise UnknownName("scenario", scenario, SCENARIOS)
    start = scenario == "start"
    require(start or n >= 2, f"n must be at least 2, the crashed leader and one more, not {n}")
    live = _live(texts, n, n if start else n - 1)
    detectors = _detectors(texts.get("d", str(live[0])), n, live)
    setting = GroupSetting(
        n,
        live,
        detectors,
        start,
        _timers(texts, timers),
        _numbers(texts, numbers),
        {key: reading.read_flag(key, texts.get(key, str(flags[key]))) for key in flags},
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


def _timers(
    texts: Mapping[str, str], defaults: Mapping[str, Fraction | None]
) -> dict[str, Fraction]:
    found: dict[str, Fraction] = {}
    for key, default in defaults.items():
        if key in texts:
            found[key] = reading.read_number(key, texts[key])
        else:
            found[key] = found["T1"] + 2 if default is None else default
    return found


def _numbers(texts: Mapping[str, str], defaults: Mapping[str, int]) -> dict[str, int]:
    return {
        key: reading.read_int(key, texts.get(key, str(default)), 1, reading.LARGEST_GROUP)
        for key, default in defaults.items()
    }


def _live(texts: Mapping[str, str], n: int, top: int) -> tuple[int, ...]:
    m = reading.read_int("m", texts["m"], 1, top) if "m" in texts else top
    listed = [part for part in texts.get("crashed", "").split(",") if part.strip()]
    crashed = {reading.read_int("crashed", part, 1, n) for part in listed}
    if "m" in texts and m in crashed:
        raise BadInput(f"m = {m} is the highest live member, so crashed must not name it")
    live = tuple(j for j in range(1, m + 1) if j not in crashed)
    if not live:
        raise BadInput("crashed must leave at least one member alive")
    return live


def _detectors(text: str, n: int, live: tuple[int, ...]) -> tuple[int, ...]:
    if text.strip() == "all":
        return live
    found = {reading.read_int("d", part, 1, n) for part in text.split(",")}
    alive = set(live)
    for detector in sorted(found):
        if detector not in alive:
            raise BadInput(f"d must be a live member, and {detector} is dead")
    return tuple(sorted(found))

"""The door for names and texts: `evaluate("bully", {"n": "64", "d": "1"})`.

One entry per election: which parameters its forms take, what they count, how each formula reads.
Announce-listen elections, the probabilistic one and the one by committees have parameters of their
own, and a catalogue each behind this one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from hustings.core.errors import UnknownName
from hustings.lab.closed_forms import (
    broadcast,
    bully,
    bully_assistant,
    bully_grant,
    bully_group,
    bully_map,
    heartbeat,
    quorum,
    reading,
    ring,
    stable,
)
from hustings.lab.closed_forms.announce import catalogue as announce
from hustings.lab.closed_forms.committee import catalogue as committee
from hustings.lab.closed_forms.probabilistic import catalogue as probabilistic
from hustings.lab.closed_forms.tables import (
    FormulaRow,
    Table1Row,
    formulas,
    overhead_forms,
    table_1,
)
from hustings.lab.closed_forms.terms import COUNTED, DECIDED, Counts, Form, Setting, plain

__all__ = [
    "FormulaRow",
    "Result",
    "Table1Row",
    "evaluate",
    "formulas",
    "markdown",
    "names",
    "parameters",
    "table_1",
]


@dataclass(frozen=True, slots=True)
class Result:
    """All forms of one election at one setting."""

    protocol: str
    params: dict[str, object]
    corrected: dict[str, int | float]
    printed: dict[str, int | float]
    forms: list[Form]
    notes: list[str]

    def to_json(self) -> dict[str, object]:
        """Plain values only."""
        return {
            "protocol": self.protocol,
            "params": self.params,
            "corrected": self.corrected,
            "printed": self.printed,
            "forms": [form.to_json() for form in self.forms],
            "notes": self.notes,
        }


@dataclass(frozen=True, slots=True)
class _Entry:
    counts: Callable[[Setting], Counts]
    formulas: Mapping[str, str]
    forms: Callable[[Setting], list[Form]]
    source: str
    verdict: str = COUNTED
    timers: Mapping[str, Fraction | None] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)
    flags: Mapping[str, bool] = field(default_factory=dict)


MEANINGS = {
    "T": "wait for each answer, at least 2",
    "T1": "wait for answers, at least 2",
    "T2": "wait for the promised leader, alternate or assistant to act",
    "W": "how long a receiver gathers questions before it answers",
    "K": "alternates of the leader",
    "combined": "START carries the initiator's id",
    "unanimous": "all notice the crash and the best proposes; else d alone",
}

TWO = Fraction(2)

ENTRIES = {
    "broadcast": _Entry(
        broadcast.counts,
        broadcast.FORMULAS,
        broadcast.forms,
        broadcast.SOURCE,
        flags={"combined": False},
    ),
    "ring": _Entry(ring.counts, ring.FORMULAS, ring.forms, ring.SOURCE),
    "bully": _Entry(
        bully.counts,
        bully.FORMULAS,
        lambda s: bully.forms(s) + overhead_forms(s.n, "bully"),
        bully.SOURCE,
        timers={"T1": TWO, "T2": Fraction(10)},
    ),
    "bully-map": _Entry(
        bully_map.counts,
        bully_map.FORMULAS,
        lambda s: bully_map.forms(s) + overhead_forms(s.n),
        bully_map.SOURCE,
        timers={"T": TWO},
    ),
    "bully-map-printed": _Entry(
        bully_map.printed_counts,
        bully_map.PRINTED_FORMULAS,
        lambda s: [],
        bully_map.FIGURE_2,
        "what the printed pseudo-code does; it is wrong",
    ),
    "bully-grant": _Entry(
        bully_grant.counts,
        bully_grant.FORMULAS,
        bully_grant.forms,
        bully_grant.SOURCE,
        DECIDED,
        timers={"T1": TWO, "W": Fraction(1)},
    ),
    "bully-group": _Entry(
        bully_group.counts,
        bully_group.FORMULAS,
        bully_group.forms,
        bully_group.SOURCE,
        DECIDED,
        timers={"T1": TWO, "T2": None},
        numbers={"K": 2},
    ),
    "stable": _Entry(
        stable.counts,
        stable.FORMULAS,
        stable.forms,
        stable.SOURCE,
        DECIDED,
        timers={"T1": TWO},
        flags={"unanimous": True},
    ),
    "bully-assistant": _Entry(
        bully_assistant.counts,
        bully_assistant.FORMULAS,
        bully_assistant.forms,
        bully_assistant.SOURCE,
        DECIDED,
        timers={"T1": TWO, "T2": None},
    ),
}

HEARTBEAT = "heartbeat"
HEARTBEAT_KEYS = (
    reading.Parameter("n", "8", "members"),
    reading.Parameter("T", "1", "period of the heartbeat"),
    reading.Parameter("D", "0.25", "bound on the one-way delay"),
)

EXAMPLES: Mapping[str, Mapping[str, str]] = {HEARTBEAT: {"n": "64"}, quorum.NAME: {}}


def names() -> list[str]:
    """What has closed forms, as typed.

    >>> names()[:3], names()[-4:]
    (['broadcast', 'ring', 'bully'], ['sup', 'al', 'probabilistic', 'committee'])
    """
    return [*ENTRIES, HEARTBEAT, quorum.NAME, *announce.NAMES, probabilistic.NAME, committee.NAME]


def parameters(protocol: str) -> list[reading.Parameter]:
    """The keys that an election's forms take, with defaults and meaning.

    >>> [parameter.key for parameter in parameters("bully-group")]
    ['n', 'd', 'm', 'crashed', 'scenario', 'T1', 'T2', 'K']
    """
    name = _name(protocol)
    if name == HEARTBEAT:
        return list(HEARTBEAT_KEYS)
    if name == quorum.NAME:
        return list(quorum.KEYS)
    if name in announce.NAMES:
        return announce.parameters(name)
    if name == probabilistic.NAME:
        return probabilistic.parameters()
    if name == committee.NAME:
        return committee.parameters()
    entry = ENTRIES[name]
    own: dict[str, str] = {
        key: "T1 + 2" if value is None else str(plain(value)) for key, value in entry.timers.items()
    }
    own |= {key: str(value) for key, value in entry.numbers.items()}
    own |= {key: str(value).lower() for key, value in entry.flags.items()}
    return [
        *reading.GROUP,
        *(reading.Parameter(key, default, MEANINGS[key]) for key, default in own.items()),
    ]


def evaluate(protocol: str, params: Mapping[str, str]) -> Result:
    """All forms of an election at the given parameters, texts as typed.

    Raises `BadInput` with one sentence: unknown protocol or key, value out of range, a detector
    that is dead.

    >>> result = evaluate("bully", {"n": "64", "d": "1"})
    >>> result.corrected["messages"], result.printed["worst_time"]
    (4031, 5)
    """
    name = _name(protocol)
    if name == HEARTBEAT:
        return _heartbeat(params)
    if name == quorum.NAME:
        return _quorum(params)
    if name in announce.NAMES:
        return _family(name, announce.evaluate(name, params))
    if name == probabilistic.NAME:
        return _family(name, probabilistic.evaluate(params))
    if name == committee.NAME:
        return _family(name, committee.evaluate(params))
    entry = ENTRIES[name]
    setting, used = reading.read_setting(params, entry.timers, entry.numbers, entry.flags)
    counts = entry.counts(setting)
    for own in (setting.timers, setting.numbers, setting.flags):
        used |= {key: plain(value) for key, value in own.items()}
    corrected: dict[str, int | float] = {}
    found: list[Form] = []
    missing: list[str] = []
    for metric, value in counts.metrics().items():
        if value is None:
            missing.append(metric)
            continue
        corrected[metric] = plain(value)
        found.append(Form(metric, value, entry.formulas[metric], entry.source, entry.verdict))
    notes = [f"no closed form here for {', '.join(missing)}: {counts.why}"] if missing else []
    return _result(name, used, corrected, found + entry.forms(setting), notes)


def markdown() -> str:
    """A reference page of all forms with example values: n = 64, d = 1, and a second family.

    >>> markdown().splitlines()[0]
    '# Closed forms'
    """
    lines = [
        "# Closed forms",
        "",
        "Written from the catalogue of closed forms; do not edit. The example is the value for",
        "`n=64`, `d=1` and the default timers. One message transmission is one unit of time; a",
        "message counts when it is sent, also to a dead member.",
        "",
        "Every election takes these parameters, and some take more:",
        "",
        *_parameter_table(list(reading.GROUP)),
    ]
    for name in (*ENTRIES, HEARTBEAT, quorum.NAME):
        result = evaluate(name, EXAMPLES.get(name, {"n": "64", "d": "1"}))
        own = [parameter for parameter in parameters(name) if parameter not in reading.GROUP]
        lines += ["", f"## {name}", ""]
        if own:
            lines += [*_parameter_table(own), ""]
        lines += [
            "| form | kind | formula | example | source | verdict |",
            "|---|---|---|---|---|---|",
        ]
        for form in result.forms:
            kind = "printed" if form.printed else "corrected"
            value = f"{plain(form.value):.12g}"
            lines.append(
                _row(f"`{form.name}`", kind, form.formula, value, form.source, form.verdict)
            )
    pages = (announce.page(), probabilistic.page(), committee.page())
    return "\n".join([*lines, *(line for page in pages for line in ("", *page))]) + "\n"


def _parameter_table(shown: list[reading.Parameter]) -> list[str]:
    head = ["| parameter | default | meaning |", "|---|---|---|"]
    return head + [_row(f"`{p.key}`", p.default, p.meaning) for p in shown]


def _heartbeat(params: Mapping[str, str]) -> Result:
    reading.refuse_unknown(params, [key.key for key in HEARTBEAT_KEYS])
    texts = {key.key: params.get(key.key, key.default) for key in HEARTBEAT_KEYS}
    n = reading.read_int("n", texts["n"], 1, reading.LARGEST_GROUP)
    T, D = (reading.read_number(key, texts[key]) for key in ("T", "D"))
    found = heartbeat.forms(n, T, D)
    corrected = {form.name: plain(form.value) for form in found if not form.printed}
    return _result(HEARTBEAT, {"n": n, "T": plain(T), "D": plain(D)}, corrected, found, [])


def _quorum(params: Mapping[str, str]) -> Result:
    reading.refuse_unknown(params, [key.key for key in quorum.KEYS])
    texts = {key.key: params.get(key.key, key.default) for key in quorum.KEYS}
    lease = quorum.Lease(
        v=reading.read_int("v", texts["v"], 1, quorum.MOST_VOTERS),
        down=reading.read_int("down", texts["down"], 0, quorum.MOST_VOTERS),
        voter=reading.read_flag("voter", texts["voter"]),
        retry=reading.read_number("retry", texts["retry"]),
        ttl=reading.read_number("ttl", texts["ttl"]),
        drift=reading.read_number("drift", texts["drift"]),
        backoff=reading.read_number("backoff", texts["backoff"]),
        k=reading.read_int("k", texts["k"], 1, reading.LARGEST_GROUP),
    )
    used: dict[str, object] = {key.key: getattr(lease, key.key) for key in quorum.KEYS}
    for key, value in used.items():
        if isinstance(value, Fraction):
            used[key] = plain(value)
    found = quorum.forms(lease)
    corrected = {form.name: plain(form.value) for form in found}
    return _result(quorum.NAME, used, corrected, found, [])


def _family(
    name: str, found: announce.Evaluated | probabilistic.Evaluated | committee.Evaluated
) -> Result:
    corrected = {form.name: plain(form.value) for form in found.forms if not form.printed}
    return _result(name, found.params, corrected, found.forms, found.notes)


def _result(
    name: str,
    used: dict[str, object],
    corrected: dict[str, int | float],
    found: list[Form],
    notes: list[str],
) -> Result:
    printed = {form.name: plain(form.value) for form in found if form.printed}
    return Result(name, used, corrected, printed, found, notes)


def _name(protocol: str) -> str:
    name = protocol.strip().replace("_", "-")
    if name not in names():
        raise UnknownName("protocol", protocol, names())
    return name


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

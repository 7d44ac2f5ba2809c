"""The announce-listen family by name: which forms exist at a setting, and a page of them all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hustings.lab.closed_forms.announce import settled, starting
from hustings.lab.closed_forms.announce.setting import ALL, KEYS, Parameter, Setting, read
from hustings.lab.closed_forms.announce.sheet import Sheet
from hustings.lab.closed_forms.terms import Form, plain

NAMES = tuple(KEYS)

EXAMPLES = (
    {"N": "500", "l": "0"},
    {"N": "500", "l": "0.4", "loss_model": "correlated"},
    {"N": "500", "l": "0.4", "loss_model": "uncorrelated"},
    {"N": "500", "l": "0.4", "loss_model": "uncorrelated", "Delta": "0"},
)
EXAMPLE_HEADS = ("no loss", "correlated", "uncorrelated", "uncorrelated, Delta = 0")


@dataclass(frozen=True, slots=True)
class Evaluated:
    """All forms of one election of the family at one setting."""

    params: dict[str, object]
    forms: list[Form]
    notes: list[str]


def parameters(name: str) -> list[Parameter]:
    """The keys that an election's forms take.

    >>> [parameter.key for parameter in parameters("al")]
    ['N', 'l', 'loss_model', 'T_A', 'Delta']
    """
    return [parameter for key, parameter in ALL.items() if key in KEYS[name]]


def evaluate(name: str, texts: Mapping[str, str]) -> Evaluated:
    """All forms at the given parameters, texts as typed; `BadInput` tells a mistake.

    >>> found = evaluate("le-s", {"N": "500", "l": "0.7", "loss_model": "uncorrelated"})
    >>> [(form.name, round(float(form.value), 3)) for form in found.forms[:2]]
    [('tmax', 19.039), ('leadership_delay', 19.139)]
    """
    setting, used, remarks = read(name, texts)
    sheet = Sheet()
    _fill(name, setting, sheet)
    return Evaluated(used, sheet.forms, remarks + sheet.notes)


def _fill(name: str, s: Setting, sheet: Sheet) -> None:
    if name == "sup":
        starting.baseline_suppression(s, sheet)
    elif name == "al":
        starting.baseline_announcing(s, sheet)
    elif s.link:
        starting.linked(s, sheet)
    elif s.k > 1:
        starting.several_leaders(s, sheet)
    else:
        starting.delay(name, s, sheet)
        starting.messages(name, s, sheet)
        settled.departure(name, s, sheet)
        settled.false_departure(s, sheet)
        settled.joiner(name, s, sheet)
        settled.share_of_time(s, sheet)
        settled.bye(s, sheet)


def page() -> list[str]:
    """The section of the reference page: every form of the family, with examples.

    >>> page()[0]
    '## Announce-listen elections'
    """
    lines = [
        "## Announce-listen elections",
        "",
        "The examples are values for `N=500`, `l=0.4` and the other parameters at their defaults;",
        "a dash means that no closed form is known there.",
        "",
        "| parameter | default | meaning |",
        "|---|---|---|",
        *(_row(f"`{p.key}`", p.default, p.meaning) for p in ALL.values()),
    ]
    for name in NAMES:
        lines += [
            "",
            f"### {name}",
            "",
            f"Parameters: {', '.join(f'`{k}`' for k in KEYS[name])}.",
            "",
        ]
        lines += [
            _row("form", "kind", "formula", *EXAMPLE_HEADS, "source", "verdict"),
            "|---|---|---|---|---|---|---|---|---|",
            *_rows(name),
        ]
    return lines


def _rows(name: str) -> list[str]:
    columns = [evaluate(name, example).forms for example in EXAMPLES]
    rows: dict[tuple[bool, str, str, str, str], list[str]] = {}
    for column, forms in enumerate(columns):
        for form in forms:
            key = (form.printed, form.name, form.formula, form.source, form.verdict)
            values = rows.setdefault(key, ["-"] * len(columns))
            values[column] = f"{plain(form.value):.6g}"
    order = list(dict.fromkeys((printed, form) for printed, form, *_ in rows))
    order.sort(key=lambda pair: pair[0])  # corrected forms first, each name in one place
    return [
        _row(f"`{form}`", "printed" if printed else "corrected", formula, *values, source, verdict)
        for pair in order
        for (printed, form, formula, source, verdict), values in rows.items()
        if (printed, form) == pair
    ]


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

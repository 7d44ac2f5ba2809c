"""The reference page of all closed forms, with their values at example settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hustings.lab.closed_forms.announce.elections import DECLARED as ANNOUNCE
from hustings.lab.closed_forms.announce.setting import ALL as ANNOUNCE_KEYS
from hustings.lab.closed_forms.announce.setting import KEYS as ANNOUNCE_ORDER
from hustings.lab.closed_forms.counted import GROUP
from hustings.lab.closed_forms.form import ClosedForms, Form, Parameter, plain
from hustings.lab.closed_forms.registry import ELECTIONS

PARAMETERS = ["| parameter | default | meaning |", "|---|---|---|"]


def markdown() -> str:
    """Return a reference page of all forms with example values: n = 64, d = 1, or an own example.

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
        *_parameters(GROUP),
    ]
    for declared in ELECTIONS.values():
        if declared not in ANNOUNCE:
            lines += _with_one_example(declared) if not declared.about else _with_examples(declared)
        elif declared is ANNOUNCE[0]:
            lines += _announce()
    return "\n".join(lines) + "\n"


def _with_one_example(declared: ClosedForms) -> list[str]:
    (example,) = declared.examples.values()
    lines = ["", f"## {declared.name}", ""]
    own = [parameter for parameter in declared.parameters if parameter not in GROUP]
    if own:
        lines += [*_parameters(own), ""]
    lines += _heads(*declared.examples)
    for form in declared.evaluate(example).forms:
        lines.append(_shown(form, [f"{plain(form.value):.12g}"]))
    return lines


def _with_examples(declared: ClosedForms) -> list[str]:
    columns = [declared.evaluate(example).forms for example in declared.examples.values()]
    rows: dict[tuple[bool, str], tuple[Form, list[str]]] = {}
    for column, forms in enumerate(columns):
        for form in forms:
            _, values = rows.setdefault((form.printed, form.name), (form, ["-"] * len(columns)))
            values[column] = f"{plain(form.value):.6g}"
    order = sorted(rows, key=lambda key: key[0])  # corrected forms first
    return [
        "",
        f"## {declared.name}",
        "",
        *declared.about.splitlines(),
        "",
        *_parameters(declared.parameters),
        "",
        *_heads(*declared.examples),
        *(_shown(*rows[key]) for key in order),
    ]


def _announce() -> list[str]:
    """Return the family's section: shared parameters, but a row per setting for its formulas."""
    lines = [
        "",
        "## Announce-listen elections",
        "",
        "The examples are values for `N=500`, `l=0.4` and the other parameters at their defaults;",
        "a dash means that no closed form is known there.",
        "",
        *_parameters(ANNOUNCE_KEYS.values()),
    ]
    for declared in ANNOUNCE:
        keys = ", ".join(f"`{key}`" for key in ANNOUNCE_ORDER[declared.name])
        lines += ["", f"### {declared.name}", "", f"Parameters: {keys}.", ""]
        lines += [*_heads(*declared.examples), *_rows_by_formula(declared)]
    return lines


def _rows_by_formula(declared: ClosedForms) -> list[str]:
    columns = [declared.evaluate(example).forms for example in declared.examples.values()]
    rows: dict[tuple[bool, str, str, str, str], tuple[Form, list[str]]] = {}
    for column, forms in enumerate(columns):
        for form in forms:
            key = (form.printed, form.name, form.formula, form.source, form.verdict)
            _, values = rows.setdefault(key, (form, ["-"] * len(columns)))
            values[column] = f"{plain(form.value):.6g}"
    order = list(dict.fromkeys((printed, form) for printed, form, *_ in rows))
    order.sort(key=lambda pair: pair[0])  # corrected forms first, each name in one place
    return [_shown(*row) for pair in order for key, row in rows.items() if key[:2] == pair]


def _parameters(shown: Iterable[Parameter]) -> list[str]:
    return PARAMETERS + [_row(f"`{p.key}`", p.default, p.meaning) for p in shown]


def _heads(*examples: str) -> list[str]:
    heads = ("form", "kind", "formula", *examples, "source", "verdict")
    return [_row(*heads), "|" + "---|" * len(heads)]


def _shown(form: Form, values: Sequence[str]) -> str:
    kind = "printed" if form.printed else "corrected"
    return _row(f"`{form.name}`", kind, form.formula, *values, form.source, form.verdict)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

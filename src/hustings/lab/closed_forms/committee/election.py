"""The election by committees declared: all its forms at a setting."""

from __future__ import annotations

from collections.abc import Mapping

from hustings.lab.closed_forms.committee import (
    agreement,
    aware,
    bins,
    claims,
    costs,
    endgame,
    exponents,
    network,
    polling,
)
from hustings.lab.closed_forms.committee.setting import PARAMETERS, read
from hustings.lab.closed_forms.form import ClosedForms, Sheet, TheoryResult, result

EXAMPLES = {
    "n=10000, b=0.1": {"n": "10000", "b": "0.1"},
    "n=1e20, b=0.3": {"n": "1e20", "b": "0.3"},
}


def evaluate(texts: Mapping[str, str]) -> TheoryResult:
    """Return all forms at the given parameters, as typed; `BadInput` explains a mistake.

    >>> found = evaluate({"n": "1e20", "b": "0.3"})
    >>> [round(form.value, 1) for form in found.forms if form.name == "ln_n_layers"]
    [35.8]
    """
    asked, used = read(texts)
    sheet = Sheet()
    exponents.declare(sheet, asked.b)
    claims.declare(sheet, asked.ln_n, asked.b, asked.c1)
    polling.declare(sheet, asked)
    endgame.declare(sheet, asked.r, asked.x, asked.knobs.depth if asked.knobs else 128)
    if asked.knobs is None:
        sheet.notes.append(asked.why)
    else:
        _network(asked.knobs, asked.b, sheet)
    return result("committee", used, sheet.forms, sheet.notes)


def _network(knobs: network.NetworkNumbers, b: float, sheet: Sheet) -> None:
    k, h = round(network.participants(knobs)), knobs.layers[0][2]
    agreement.declare(sheet, k)
    bins.declare(sheet, k, h, b)
    costs.declare_one_election(sheet, k, h)
    network.declare(sheet, knobs, b)
    aware.declare(sheet, max(1, round(knobs.groups)), b)
    costs.declare(sheet, knobs, b)


DECLARED = ClosedForms(
    "committee",
    PARAMETERS,
    evaluate,
    EXAMPLES,
    "L is ln n. The examples are a group of ten thousand, and one so large that the paper's\n"
    "network has layers; a dash means that there is no value.",
)

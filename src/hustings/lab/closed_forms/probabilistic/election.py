"""The probabilistic election declared: all its forms at a setting."""

from __future__ import annotations

from collections.abc import Mapping

from hustings.lab.closed_forms.form import ClosedForms, Sheet, TheoryResult, result
from hustings.lab.closed_forms.probabilistic import (
    detection,
    events,
    leaders,
    messages,
    sizing,
    success,
    times,
)
from hustings.lab.closed_forms.probabilistic.setting import PARAMETERS, read

FIGURE_4 = {
    "K": "40",
    "view_prob": "0.4",
    "p_mcastl": "0.01",
    "p_ucastl": "0.01",
    "p_fail": "0.01",
    "N": "10000",
}
SECTION_5 = {
    "K": "7",
    "view_prob": "0.5",
    "p_mcastl": "0.3",
    "p_ucastl": "0.3",
    "p_fail": "0.001",
    "N": "2000",
}


def evaluate(texts: Mapping[str, str]) -> TheoryResult:
    """Return all forms at the given parameters, as typed; `BadInput` explains a mistake.

    >>> found = evaluate(FIGURE_4 | {"K": "24"})
    >>> [round(form.value, 4) for form in found.forms if form.name == "success"]
    [0.99, 0.6391]
    """
    setting, used = read(texts)
    one = setting.first
    sheet = Sheet()
    events.declare(sheet, one)
    success.declare(sheet, one)
    detection.declare(sheet, one)
    messages.declare(sheet, one, setting.delta, setting.T_3)
    times.declare(sheet, one, setting.delta, setting.T_3, setting.work)
    sizing.declare(sheet, one, setting.wanted, setting.hash_skew)
    leaders.declare(sheet, one, setting.steps)
    return result("probabilistic", used, sheet.forms, [detection.UNCOVERED, *sheet.notes])


DECLARED = ClosedForms(
    "probabilistic",
    PARAMETERS,
    evaluate,
    {", ".join(f"{key}={value}" for key, value in e.items()): e for e in (FIGURE_4, SECTION_5)},
    "The examples are Figure 4 at K = 40, and a first round of section 5; a dash means that\n"
    "there is no value.",
)

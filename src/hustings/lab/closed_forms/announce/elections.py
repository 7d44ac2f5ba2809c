"""The announce-listen elections declared: which forms exist at a setting."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from hustings.lab.closed_forms.announce import settled, starting
from hustings.lab.closed_forms.announce.setting import ALL, KEYS, AnnounceSetting, read
from hustings.lab.closed_forms.form import ClosedForms, Sheet, TheoryResult, result

EXAMPLES = {
    "no loss": {"N": "500", "l": "0"},
    "correlated": {"N": "500", "l": "0.4", "loss_model": "correlated"},
    "uncorrelated": {"N": "500", "l": "0.4", "loss_model": "uncorrelated"},
    "uncorrelated, Delta = 0": {"N": "500", "l": "0.4", "loss_model": "uncorrelated", "Delta": "0"},
}


def evaluate(name: str, texts: Mapping[str, str]) -> TheoryResult:
    """Return all forms at the given parameters, as typed; `BadInput` explains a mistake.

    >>> found = evaluate("le-s", {"N": "500", "l": "0.7", "loss_model": "uncorrelated"})
    >>> [(form.name, round(float(form.value), 3)) for form in found.forms[:2]]
    [('tmax', 19.039), ('leadership_delay', 19.139)]
    """
    setting, used, remarks = read(name, texts)
    sheet = Sheet()
    _fill(name, setting, sheet)
    return result(name, used, sheet.forms, remarks + sheet.notes)


def _fill(name: str, s: AnnounceSetting, sheet: Sheet) -> None:
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


def _declared(name: str) -> ClosedForms:
    keys = tuple(parameter for key, parameter in ALL.items() if key in KEYS[name])
    return ClosedForms(name, keys, partial(evaluate, name), EXAMPLES)


DECLARED = tuple(_declared(name) for name in KEYS)

"""Collects forms with their formulas and verdicts as their own docstrings tell them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from math import isfinite

from hustings.core.errors import BadInput
from hustings.lab.closed_forms.probabilistic.round import Round
from hustings.lab.closed_forms.terms import Form


@dataclass(slots=True)
class Sheet:
    """Forms and notes; a form outside its domain leaves its sentence as a note.

    What a form says in print is what the first line and the verdict of its function say, so that
    code and page cannot part.
    """

    source: str = ""
    forms: list[Form] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(
        self,
        name: str,
        compute: Callable[[], float],
        told: Callable[..., object],
        lead: str = "",
    ) -> None:
        """One form; printed if its function is."""
        printed = told.__name__.startswith("printed_")
        whose = f"the printed {name}" if printed else name
        try:
            value = compute()
        except BadInput as refusal:
            self.notes.append(f"no value for {whose}: {refusal}")
            return
        if not isfinite(value):
            self.notes.append(f"no value for {whose}: it is larger than any number here")
            return
        formula, verdict = about(told)
        self.forms.append(Form(name, value, lead + formula, self.source, verdict, printed))

    def of(self, name: str, one: Round, form: Callable[[Round], float]) -> None:
        """A form of a round."""
        self.add(name, lambda: form(one), form)

    def both(
        self,
        name: str,
        one: Round,
        true: Callable[[Round], float],
        printed: Callable[[Round], float],
    ) -> None:
        """What is true, and what is printed."""
        self.of(name, one, true)
        self.of(name, one, printed)


def about(function: Callable[..., object]) -> tuple[str, str]:
    """The first line and the verdict of a function's docstring.

    >>> from hustings.lab.closed_forms.probabilistic.messages import printed_unicasts
    >>> about(printed_unicasts)[0]
    'm^3/2 unicasts at most among m relay members'
    """
    text = inspect.getdoc(function) or ""
    head, _, rest = text.partition("\n\n")
    _, _, verdict = rest.partition("Verdict: ")
    verdict, _, _ = verdict.partition("\n\n")
    return _line(head), _line(verdict)


def _line(text: str) -> str:
    return " ".join(text.split()).removesuffix(".")

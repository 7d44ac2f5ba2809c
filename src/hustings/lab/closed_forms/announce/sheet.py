"""Collects the forms of one setting; what has no value there is said, not guessed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import isfinite

from hustings.core.errors import BadInput
from hustings.lab.closed_forms.terms import Form

EXACT = "exact"
LIMIT = "a limit"
APPROXIMATE = "approximate"
DERIVED = "derived; not in the chapter"
AS_PRINTED = "right as printed"


@dataclass(slots=True)
class Sheet:
    """Forms and notes; a form outside its domain leaves its sentence as a note."""

    source: str = ""
    forms: list[Form] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(
        self,
        name: str,
        compute: Callable[[], float],
        formula: str,
        verdict: str = EXACT,
        printed: bool = False,
    ) -> None:
        """One form, or a note if its arguments are outside its domain or its value overflows."""
        try:
            value = compute()
        except BadInput as refusal:
            self.lack(f"the printed {name}" if printed else name, str(refusal))
            return
        except OverflowError:
            value = float("inf")
        if not isfinite(value):
            self.lack(name, "it is larger than any number here")
            return
        self.forms.append(Form(name, value, formula, self.source, verdict, printed))

    def quote(self, name: str, compute: Callable[[], float], formula: str, verdict: str) -> None:
        """A form as the chapter prints it."""
        self.add(name, compute, formula, verdict, printed=True)

    def lack(self, names: str, why: str) -> None:
        """Say what has no closed form here, and why."""
        self.notes.append(f"no closed form here for {names}: {why}")

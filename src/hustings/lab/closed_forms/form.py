"""The parts of closed forms: a form, a sheet of forms, and what one election declares.

Units: one message transmission is one unit of time, and a message counts when it is sent, also
to a dead member. Detection is at 0; timers fire after the arrivals of the same instant.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import isfinite
from typing import ParamSpec

from hustings.core.errors import BadInput

Number = int | Fraction
P = ParamSpec("P")

LECTURE = "elections lecture, chapter 15"
OVERHEAD = "overhead-aware election"

COUNTED = "counted"  # holds in an event run of the protocol
DECIDED = "counted; the source leaves it open"
EXACT = "exact"
LIMIT = "a limit"
APPROXIMATE = "approximate"
DERIVED = "derived; not in the chapter"
AS_PRINTED = "right as printed"


@dataclass(frozen=True, slots=True)
class Form:
    """One result: its name, value, formula and source, and whether it is true."""

    name: str
    value: Number | float
    formula: str
    source: str
    verdict: str
    printed: bool = False

    def to_json(self) -> dict[str, object]:
        """Return plain values only."""
        return {
            "name": self.name,
            "value": plain(self.value),
            "formula": self.formula,
            "source": self.source,
            "verdict": self.verdict,
            "printed": self.printed,
        }


@dataclass(slots=True)
class Sheet:
    """Collects forms. A form without a value at a setting becomes a note.

    The text of a form comes from its function's docstring where the formula is the same at every
    setting (`add`, `both`), so code and page always agree. Where the formula depends on the
    setting, the caller gives it (`state`, `quote`).
    """

    source: str = ""
    forms: list[Form] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(
        self, name: str, form: Callable[P, float], /, *args: P.args, **kwargs: P.kwargs
    ) -> None:
        """Add the value of a function with its docstring; printed if the name says `printed_`."""
        self.known(name, form, lambda: form(*args, **kwargs))

    def both(
        self,
        name: str,
        true: Callable[P, float],
        printed: Callable[P, float],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> None:
        """Add the true and the printed value for the same arguments."""
        self.add(name, true, *args, **kwargs)
        self.add(name, printed, *args, **kwargs)

    def known(
        self, name: str, told: Callable[..., object], compute: Callable[[], float], lead: str = ""
    ) -> None:
        """Add a value as `add` does, computed by the caller; `lead` goes before the formula."""
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

    def state(
        self,
        name: str,
        compute: Callable[[], float],
        formula: str,
        verdict: str = EXACT,
        printed: bool = False,
    ) -> None:
        """Add one form with a formula for this setting."""
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
        """Add a form as `state` does, as its paper prints it."""
        self.state(name, compute, formula, verdict, printed=True)

    def lack(self, names: str, why: str) -> None:
        """Note which forms are missing here, and why."""
        self.notes.append(f"no closed form here for {names}: {why}")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One key that an election's forms accept."""

    key: str
    default: str
    meaning: str


@dataclass(frozen=True, slots=True)
class TheoryResult:
    """All forms of one election at one setting."""

    protocol: str
    params: dict[str, object]
    corrected: dict[str, int | float]
    printed: dict[str, int | float]
    forms: list[Form]
    notes: list[str]

    def to_json(self) -> dict[str, object]:
        """Return plain values only."""
        return {
            "protocol": self.protocol,
            "params": self.params,
            "corrected": self.corrected,
            "printed": self.printed,
            "forms": [form.to_json() for form in self.forms],
            "notes": self.notes,
        }


def result(
    protocol: str, params: dict[str, object], forms: list[Form], notes: list[str]
) -> TheoryResult:
    """Make a result of forms that have one value of each kind and name."""
    corrected = {form.name: plain(form.value) for form in forms if not form.printed}
    printed = {form.name: plain(form.value) for form in forms if form.printed}
    return TheoryResult(protocol, params, corrected, printed, forms, notes)


@dataclass(frozen=True, slots=True)
class ClosedForms:
    """What one election declares: its keys for `--set`, and its forms at a setting.

    `evaluate` takes texts as the user types them and raises `BadInput` with one sentence. The
    reference page shows the values at each of `examples`, under its title.
    """

    name: str
    parameters: tuple[Parameter, ...]
    evaluate: Callable[[Mapping[str, str]], TheoryResult]
    examples: Mapping[str, Mapping[str, str]]  # by their titles
    about: str = ""  # a paragraph for the reference page


def plain(value: Number | float) -> int | float:
    """An exact number as JSON can carry it: an int where it is whole.

    >>> plain(Fraction(4, 2)), plain(Fraction(1, 4))
    (2, 0.25)
    """
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else float(value)
    return value


def exact(value: Number | float) -> Number:
    """Return a timer as an exact number, so that sums of timers do not round.

    >>> exact(2), exact(0.1) + exact(0.2) == exact(0.3)
    (2, True)
    """
    if isinstance(value, float):
        value = Fraction(str(value))
    return value.numerator if value.denominator == 1 else value


def require(holds: bool, sentence: str) -> None:
    """Refuse an argument outside a form's domain."""
    if not holds:
        raise BadInput(sentence)


def about(function: Callable[..., object]) -> tuple[str, str]:
    """Return the first line and the verdict of a function's docstring.

    >>> about(plain)
    ('An exact number as JSON can carry it: an int where it is whole', '')
    """
    text = inspect.getdoc(function) or ""
    head, _, rest = text.partition("\n\n")
    _, _, verdict = rest.partition("Verdict: ")
    verdict, _, _ = verdict.partition("\n\n")
    return _line(head), _line(verdict)


def _line(text: str) -> str:
    return " ".join(text.split()).removesuffix(".")

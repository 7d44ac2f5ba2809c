"""`theory`: the closed forms of an election."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from math import inf
from typing import Any

from hustings.core.errors import BadInput
from hustings.lab.closed_forms.form import TheoryResult
from hustings.lab.closed_forms.registry import evaluate
from hustings.lab.tables import Table, as_notes, plotted

MOST = 1e9  # a bar is no longer; its label has the number


@dataclass(frozen=True, slots=True)
class Theory(Table):
    """The forms of one election at one setting. `forms["messages"]` is a number."""

    result: TheoryResult
    command: str  # the same as a command line

    def __getitem__(self, name: str) -> int | float:
        return self.result.corrected[name]

    @property
    def notes(self) -> list[str]:
        """Notes on the forms."""
        return self.result.notes

    def rows(self) -> list[dict[str, object]]:
        """One row for each form, as corrected and as printed."""
        return [form.to_json() for form in self.result.forms]

    def to_json(self) -> dict[str, object]:
        """As `hustings theory --json` prints it."""
        return self.result.to_json()

    def notes_html(self) -> str:
        return as_notes(self.notes)

    def plot(self) -> dict[str, bytes]:
        """The forms as bars, those that a paper prints differently beside them, as PNG and SVG."""
        return plotted("theory", self._draw)

    def _draw(self, axes: Any) -> None:
        shown = [form for form in self.result.forms if 0 < form.value < inf]
        places = {name: place for place, name in enumerate(dict.fromkeys(f.name for f in shown))}
        for printed, label in ((False, "true"), (True, "as printed")):
            bars = [form for form in shown if form.printed is printed]
            where = [places[form.name] + 0.4 * printed for form in bars]
            drawn = axes.barh(where, [min(form.value, MOST) for form in bars], 0.4, label=label)
            axes.bar_label(drawn, [f"{float(form.value):.4g}" for form in bars], fontsize=7)
        axes.set_yticks(list(places.values()), labels=list(places))
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.margins(x=0.15)
        axes.set_title(self.command.removeprefix("hustings theory "), fontsize=9)
        if shown:
            axes.legend()


def theory(protocol: str, **parameters: object) -> Theory:
    """Closed forms of an election's cost and outcome: as `hustings theory`.

    >>> theory("bully", n=64, d=1)["messages"]
    4031
    """
    words = {}
    for name, value in parameters.items():
        if not isinstance(value, str | int | float):
            raise BadInput(f"{name} is to be a text or a number, not {type(value).__name__}")
        words[name] = str(value).lower() if isinstance(value, bool) else str(value)
    command = ["hustings", "theory", protocol, *(f"--set={k}={v}" for k, v in words.items())]
    return Theory(evaluate(protocol, words), shlex.join(command))

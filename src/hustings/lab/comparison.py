"""`compare`: protocols side by side on equal terms, with formulas beside the counts."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from hustings.core.errors import BadInput
from hustings.lab.closed_forms.overhead_table import formulas
from hustings.lab.figures.comparison import MESSAGES, ComparisonRow
from hustings.lab.figures.comparison import compare as run_comparison
from hustings.lab.figures.overhead_table import counted_table
from hustings.lab.options import Options, World, build, named
from hustings.lab.tables import Table, as_notes, plotted
from hustings.lab.warnings import idle
from hustings.protocols.registry import COMPARED, Protocol, classes


@dataclass(frozen=True, slots=True)
class Comparison(Table):
    """One row for each protocol."""

    compared: tuple[ComparisonRow, ...]
    options: Options
    warnings: tuple[str, ...]
    command: str  # the same as a command line; "" for a class that it cannot name

    @property
    def members(self) -> int:
        """How many there are, before any joins."""
        return self.options.size

    @property
    def paper(self) -> bool:
        """Whether the overhead-aware paper has formulas and a table for a group of this size."""
        plain = self.options.scenario == "leader-crash" and self.options.environment is None
        return plain and self.members % 4 == 0

    @property
    def agrees(self) -> bool:
        """Whether every count agrees with its formula."""
        return not any(row.agrees is False for row in self.compared)

    def rows(self) -> list[dict[str, object]]:
        """The counts, whether they agree with their formulas, and whether all properties held."""
        return [
            {"protocol": row.protocol, **row.counted, "agrees": row.agrees, "sound": row.sound}
            for row in self.compared
        ]

    def to_json(self) -> dict[str, object]:
        """As `hustings compare --json` prints it."""
        shown: dict[str, object] = {
            "members": self.members,
            "scenario": self.options.scenario,
            "rows": [row.to_json() for row in self.compared],
        }
        if self.paper:
            shown["formulas"] = [row.to_json() for row in formulas(self.members)]
            shown["table_1"] = [cell.to_json() for cell in counted_table(self.members)]
        return shown

    def notes_html(self) -> str:
        return as_notes(self.warnings)

    def plot(self) -> dict[str, bytes]:
        """The messages of each protocol by role, as PNG and SVG."""
        return plotted("comparison", self._draw)

    def _draw(self, axes: Any) -> None:
        names = [row.protocol for row in self.compared]
        below = [0.0] * len(names)
        for place, role in enumerate(MESSAGES):
            counts = [float(row.counted[role] or 0) for row in self.compared]
            label = role.removesuffix("_messages")
            axes.barh(names, counts, left=below, label=label, color=f"C{place}")
            below = [low + count for low, count in zip(below, counts, strict=True)]
        axes.invert_yaxis()
        axes.set_xlabel("messages")
        axes.set_title(f"{self.members} members, scenario {self.options.scenario}", fontsize=9)
        axes.legend()


def compare(protocols: Sequence[Protocol] = (), **options: Unpack[World]) -> Comparison:
    """Run protocols, by default all classic ones, on equal terms: as `hustings compare`.

    >>> compare(["bully", "ring"], members=8, scenario="leader-crash").agrees
    True
    """
    return compared(protocols, Options.of(**options))


def compared(protocols: Sequence[Protocol], options: Options) -> Comparison:
    """The same, from options in plain words."""
    if options.settings and len(protocols) != 1:
        raise BadInput("--set goes with one protocol: settings differ between protocols")
    if options.scenario == "churn":
        raise BadInput("scenario 'churn' has no end to compare: use hustings sim")
    kinds = classes(protocols or COMPARED)
    experiments = [build(kind, options) for kind in kinds]
    warnings = dict.fromkeys(each for one in experiments for each in idle(one, options))
    names = [named(given, kind) for given, kind in zip(protocols, kinds, strict=bool(protocols))]
    words = [name for name in names if name is not None]
    command = shlex.join(["hustings", "compare", *words, *options.words()])
    return Comparison(
        compared=tuple(run_comparison(experiments)),
        options=options,
        warnings=tuple(warnings),
        command=command if len(words) == len(names) else "",
    )

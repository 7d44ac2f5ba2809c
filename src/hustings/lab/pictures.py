"""`figure`: a figure or table of the papers, measured again."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import dataclass
from html import escape
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from hustings.lab.figures.catalogue import choose
from hustings.lab.figures.figure import Figure, Rendered
from hustings.lab.figures.measuring import measure
from hustings.lab.figures.store import Store
from hustings.lab.runs.engines import FAST
from hustings.lab.runs.executors import PROCESSES
from hustings.lab.runs.playing import Tell
from hustings.lab.simulation import check_jobs
from hustings.lab.tables import Table, as_html, needed


@dataclass(frozen=True, slots=True)
class Picture(Table):
    """A figure with all its numbers, the paper's claims, and whether the numbers agree."""

    made: Rendered
    command: str  # the same as a command line

    @property
    def verdict(self) -> str:
        """Whether the paper's claims are reproduced."""
        return self.made.verdict

    def rows(self) -> list[dict[str, object]]:
        """The numbers of the figure."""
        return [dict(zip(self.made.columns, row, strict=True)) for row in self.made.rows]

    def plot(self) -> dict[str, bytes]:
        """The picture as PNG and SVG; nothing for a table."""
        if not self.made.panels:
            return {}
        drawing = needed("hustings.lab.figures.drawing", "figures")
        return cast(dict[str, bytes], drawing.draw(self.made))

    def _repr_html_(self) -> str:
        findings = "".join(
            f"<li>{escape(each.claim)}: <b>{escape(each.verdict.value)}</b>. "
            f"{escape(each.evidence)}</li>"
            for each in self.made.findings
        )
        picture = self.plot().get("svg", b"").decode() or as_html(self.rows())
        return (
            f"<p><b>{escape(self.made.title)}</b>: {escape(self.verdict)}</p>{picture}"
            f"<ul>{findings}</ul><pre>{escape(self.command)}</pre>"
        )


def figure(
    name: str,
    *,
    runs: int | None = None,
    seed: int = 1,
    jobs: int = 1,
    on: str | Executor | None = None,
    out: str | Path | None = None,
    tell: Tell | None = None,
) -> Picture:
    """Make one figure or table of the papers: as `hustings figure NAME`.

    With `out`, a folder, measurements are stored in its subfolder cells, and read from there. So an
    interrupted figure continues where it stopped. `on` is a place or an executor, as in `simulate`.

    >>> figure("overhead-table-1").made.as_table
    True
    """
    check_jobs(jobs, on)
    (figure,) = choose((name,), None)
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory()) if out is None else out
        (made,) = measured(
            [figure], Path(folder), runs=runs, seed=seed, jobs=jobs, on=on, tell=tell
        )
    words = ["hustings", "figure", name, *([] if runs is None else [f"--runs={runs}"])]
    return Picture(made, shlex.join([*words, *([] if seed == 1 else [f"--seed={seed}"])]))


def measured(
    figures: Sequence[Figure],
    out: Path,
    *,
    runs: int | None,
    seed: int,
    jobs: int,
    on: str | Executor | None = None,
    warn: Callable[[str], None] = lambda _: None,
    tell: Tell | None = None,
) -> list[Rendered]:
    """Figures with their numbers; only what a folder does not hold is measured."""
    check_jobs(jobs, on)
    cells = [cell for figure in figures for cell in figure.cells()]
    if any(cell.engine == FAST for cell in cells):
        import_module("hustings.lab.kernels.compiling")  # for its sentence
    store = Store(out / "cells", seed, warn)
    place = PROCESSES if on is None else on
    results = measure(
        cells, seed, lambda cell: cell.goal(runs), store, jobs=jobs, on=place, tell=tell
    )
    return [figure.make(results, seed) for figure in figures]

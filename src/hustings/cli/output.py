"""How results reach a person or a script: JSON on stdout, tables, progress on stderr."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

from hustings.core.config import plain
from hustings.core.errors import printable

if TYPE_CHECKING:
    from hustings.lab.runs.playing import Progress, Tell

PIPE_WIDTH = 160
NARROWEST = 12  # characters of a column of text
MOST_COLUMNS = 10_000


def show_json(value: Mapping[str, object]) -> None:
    """One JSON object on stdout; infinities, which JSON lacks, become the text "inf"."""
    click.echo(json.dumps(plain(value), indent=2, allow_nan=False))


def show_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], note: str = ""
) -> None:
    """A table on stdout; numbers are aligned to the right."""
    table = Table(box=SIMPLE_HEAD)
    for place, column in enumerate(columns):
        numeric = all(_is_number(row[place]) for row in rows)
        longest = max(len(text) for text in [column, *(show(row[place]) for row in rows)])
        whole = numeric or place == 0  # names and numbers are not broken, sentences are
        table.add_column(
            column,
            justify="right" if numeric else "left",
            no_wrap=whole,
            min_width=longest if whole else min(longest, NARROWEST),
        )
    for row in rows:
        table.add_row(*(Text(show(cell)) for cell in row))  # as text: brackets are no markup here
    # Without a terminal, as in a pipe, lines are as long as they need to be.
    console = Console(width=None if sys.stdout.isatty() else PIPE_WIDTH)
    # A terminal too narrow for the table breaks its lines; no column is left out.
    needed = Measurement.get(console, console.options.update(width=MOST_COLUMNS), table).minimum
    if console.width < needed:
        console = Console(width=needed, soft_wrap=True)
    # Title and note are not part of the table: a narrow table would fold them.
    console.print(Text(title, style="bold"))
    console.print(table)
    if note:
        console.print(Text(note, style="italic"))


def _is_number(cell: object) -> bool:
    return cell is None or cell == "" or isinstance(cell, int | float)


def show(cell: object) -> str:
    """A cell as text: no needless decimals, a dash for nothing.

    >>> show(3.0), show(2.5), show(None)
    ('3', '2.5', '-')
    """
    if cell is None:
        return "-"
    if isinstance(cell, float):
        return f"{cell:.6g}"
    return str(cell)


def warn(sentence: str) -> None:
    """A warning on stderr."""
    click.echo(f"hustings: note: {printable(sentence)}", err=True)


class HasShare(Protocol):
    """How far some work has come."""

    @property
    def share(self) -> float:
        """The part that is done."""


R = TypeVar("R", bound=HasShare)


class Lines(Generic[R]):
    """Progress as plain lines for a log, without a bar: few enough to read."""

    EVERY = 10.0  # seconds

    def __init__(self, words: Callable[[R], str], done: str = "played") -> None:
        self._words, self._done = words, done
        self._next = time.monotonic() + self.EVERY

    def __call__(self, reached: R) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + self.EVERY
            warn(f"{100 * reached.share:.0f} % {self._done}, {self._words(reached)}")


def told(reached: Progress, what: str) -> str:
    """Progress in words; `what` names the things that are counted, if there are several."""
    if not what:
        return f"{reached.runs:,} of {reached.wanted:,} runs"
    return f"{reached.done} of {reached.series} {what}, {reached.runs:,} of {reached.wanted:,} runs"


@contextmanager
def progress(what: str = "") -> Iterator[Tell]:
    """A bar on stderr while runs are played; without a terminal, a line now and then."""

    def words(reached: Progress) -> str:
        return told(reached, what)

    with advancing(words, "played") as tell:
        yield tell


@contextmanager
def advancing(words: Callable[[R], str], done: str) -> Iterator[Callable[[R], None]]:
    """A bar on stderr with words beside it; without a terminal, a line now and then."""
    if not sys.stderr.isatty():
        yield Lines(words, done)
        return
    with _bar() as bar:
        task = bar.add_task("", total=1.0)
        yield lambda reached: bar.update(task, completed=reached.share, description=words(reached))


def _bar() -> Bar:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    return Bar(*columns, console=Console(stderr=True), transient=True)

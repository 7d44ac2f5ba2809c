"""The page docs/coverage.md: every section of the papers, and what shows that it is implemented.

The rows are in docs/coverage.toml. The commands themselves say in which worlds a protocol runs, so
the page cannot promise a world that refuses it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from contextlib import chdir
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from click.testing import CliRunner, Result

from hustings.cli.app import hustings
from hustings.lab.closed_forms.registry import names as closed_forms
from hustings.protocols.registry import Use, use_of

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "docs" / "coverage.toml"

WORLDS = {
    "events": "the simulator, message by message",
    "kernel": "compiled, for large groups and many runs",
    "closed form": "`hustings theory`",
    "schedules": "`hustings check`: all schedules of tiny groups",
    "sockets": "real members, by `hustings.join`, `run` and `agent`",
}

HEAD = ("section", "implemented by", "command", "worlds", "verdict", "tests")

OPENING = """\
# What is covered

Written by `make docs` from `docs/coverage.toml`; do not edit. Every section of the five papers:
what implements it, the command that shows it, the worlds in which it runs, and the verdict.
`make test` runs every command here and looks for what it must print. It runs every test that is
named here, too.

The worlds:
"""


class Row(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One section of a paper."""

    section: str
    reason: str = ""  # why nothing implements it
    protocols: tuple[str, ...] = ()  # the code names their worlds
    by: tuple[str, ...] = ()  # modules, where there is no protocol for them
    worlds: tuple[str, ...] = ()
    command: str = ""
    shows: str = ""  # what the command must print
    verdict: str = ""
    tests: tuple[str, ...] = ()


class Paper(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A paper and its sections."""

    title: str
    key: str
    row: tuple[Row, ...]


class Table(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The whole file."""

    paper: tuple[Paper, ...]


def table(source: Path = SOURCE) -> Table:
    """All rows, as they are written."""
    return msgspec.toml.decode(source.read_bytes(), type=Table)


def run(command: str) -> Result:
    """Return what a command of the page prints; files that it writes are deleted."""
    name, *arguments = shlex.split(command)
    assert name == "hustings", command
    with TemporaryDirectory() as place, chdir(place):
        return CliRunner().invoke(hustings, arguments, terminal_width=100)


@cache
def worlds_of(protocol: str) -> tuple[str, ...]:
    """Return where a protocol runs: found by trying."""
    tiny = "quorum --voters 3 --candidates 1 --ticks 1" if protocol == "quorum" else protocol
    answers = {
        "events": True,
        "kernel": run(f"hustings sim {protocol} -n 24 --engine fast").exit_code == 0,
        "closed form": protocol in closed_forms(),
        "schedules": run(f"hustings check {tiny} -n 2").exit_code == 0,
        "sockets": use_of(protocol) in (Use.JOIN, Use.GUARD),
    }
    return tuple(world for world, there in answers.items() if there)


def faults(paper: Paper, row: Row) -> list[str]:
    """Return what is wrong with a row, without running its command."""
    where = f"{paper.key}, {row.section}"
    if row.reason:
        return [f"{where}: a reason, and yet something is there"] if row.command or row.by else []
    found = [
        f"{where}: no {name}" for name in ("command", "shows", "verdict") if not _of(row, name)
    ]
    if not (row.protocols or (row.by and row.worlds)):
        found.append(f"{where}: neither protocols nor modules with their worlds")
    found += [f"{where}: no module {name}" for name in row.by if find_spec(name) is None]
    found += [f"{where}: unknown world {world}" for world in row.worlds if world not in WORLDS]
    found += [f"{where}: no test {test}" for test in row.tests if not _is_test(test)]
    return found if row.tests else [*found, f"{where}: no test"]


def markdown() -> str:
    """The page."""
    lines = [OPENING]
    lines += [f"- **{name}**: {meaning}" for name, meaning in WORLDS.items()]
    for paper in table().paper:
        lines += ["", f"## {paper.title}", ""]
        lines += [_line(HEAD), _line(["---"] * len(HEAD))]
        lines += [_line(_cells(row)) for row in paper.row]
    return "\n".join(lines) + "\n"


def _cells(row: Row) -> Sequence[str]:
    if row.reason:
        return (row.section, "-", "-", "-", row.reason, "-")
    return (
        row.section,
        _code([*row.protocols, *row.by]),
        _code([row.command]),
        ", ".join(row.worlds or _common(row.protocols)),
        row.verdict,
        _code(row.tests),
    )


def _common(protocols: Sequence[str]) -> list[str]:
    """The worlds in which all of them run."""
    every = [set(worlds_of(each)) for each in protocols]
    return [world for world in WORLDS if all(world in each for each in every)]


def _code(texts: Iterable[str]) -> str:
    return ", ".join(f"`{text}`" for text in texts)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _of(row: Row, name: str) -> str:
    return str(getattr(row, name))


def _is_test(test: str) -> bool:
    path, _, name = test.partition("::")
    there = ROOT / path
    return there.exists() and (not name or f"def {name}(" in there.read_text(encoding="utf-8"))

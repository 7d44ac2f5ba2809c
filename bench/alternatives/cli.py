"""`python -m bench alternatives`: measure the ways to have one leader, and report."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import textwrap
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from bench.alternatives.contenders import BY_CODE, CONTENDERS, Contender
from bench.alternatives.journal import Overlap
from bench.alternatives.recipes import LEASE_S, WORK_S
from bench.alternatives.rounds import (
    PATIENCE_S,
    WATCH_S,
    WORKERS,
    NoRound,
    Round,
    groups,
    play,
    settle,
)
from bench.measure import say
from bench.report import table, write_part

MEASURED = Path(__file__).resolve().parent / "measured.json"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "19-other-ways.md"
BEGIN, END = "<!-- python -m bench alternatives -->\n", "<!-- end -->\n"
ROUNDS = 5
ENDLESS = "does not stop"
HEADING = "# Other ways to have one leader"
PREAMBLE = (
    "Written by `python -m bench alternatives`; do not edit.",
    "{machine}; {versions}. {rounds} rounds. All ways run beside each other, {workers} workers of "
    "each, on one machine with the engines. A piece of the leader's work takes {work:.0f} ms, and "
    "its result is a line in a journal. In a round the leader of each way is killed, the next one "
    "is told to end, and the one after it is paused; each of these happens to one way half a "
    "second after it has happened to the way before it, and after all workers have been there for "
    "longer than a lease.",
    "**Killed**: SIGKILL, until another worker's first line. **Ended**: the same for SIGTERM. "
    "**Paused**: the same for SIGSTOP; none: not within {pause:g} s. After {pause:g} s the paused "
    "leader goes on (SIGCONT) and is watched for at least {watch:g} s. **Two at once**: lines of "
    "the former leader after its successor's first one, the worst round, ended or woken. "
    "**Token**: a number by which a resource refuses the lines of a former leader. Gaps are "
    "medians, with the extremes in brackets.",
    "Every lock and lease that takes a time has one of {lease} s. A gap grows with it.",
)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench alternatives",
        description="Kill, end and pause the leader of three workers, with hustings and with other "
        "ways to have one leader. A full run takes less than ten minutes and writes its part of "
        "bench/RESULTS.md and the table of docs/guide/19-other-ways.md; with --only the table goes "
        "to standard output.",
        epilog=f"Ways: {', '.join(BY_CODE)}.",
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"default {ROUNDS}")
    parser.add_argument(
        "--only", action="append", metavar="WAY", help="this way alone; may be repeated"
    )
    parser.add_argument("--json", action="store_true", help="with --only: print JSON")
    options = parser.parse_args(arguments)
    if not 1 <= options.rounds <= 100:
        parser.error(f"--rounds must be 1 to 100, not {options.rounds}")
    unknown = [each for each in options.only or [] if each not in BY_CODE]
    if unknown:
        parser.error(f"unknown way {unknown[0]!r}; there are {', '.join(BY_CODE)}")
    if options.json and not options.only:
        parser.error("--json goes with --only: a full run writes bench/alternatives/measured.json")
    return options


def missing(ways: Sequence[Contender]) -> list[str]:
    """Packages that are not installed here."""
    found = set()
    for package in {name for way in ways for name in way.packages}:
        try:
            importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found.add(package)
    return sorted(found)


def measure(ways: Sequence[Contender], rounds: int) -> dict[str, list[Round]]:
    """Every way in each round, in an order that rotates."""
    results: dict[str, list[Round]] = {way.code: [] for way in ways}
    with groups(ways) as found:
        settle(found)
        say(f"{len(found)} ways have a leader each")
        for number in range(1, rounds + 1):
            first = number % len(found)
            for code, result in play([*found[first:], *found[:first]]).items():
                results[code].append(result)
            say(f"round {number} of {rounds}")
            for way in ways:
                say(f"  {way.label}: {_brief(results[way.code][-1])}")
    return results


def _brief(result: Round) -> str:
    return (
        f"killed {seconds(result.killed_s)}, ended {seconds(result.ended_s)}, "
        f"paused {seconds(result.paused_s)}, two at once {beside([result])}"
    )


def seconds(value: float | None) -> str:
    if value is None:
        return "none"
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"


def beside(results: Sequence[Round]) -> str:
    """The worst that a former leader wrote beside its successor."""
    worst = max((each for result in results for each in (result.ended, result.woken)), key=_badness)
    if worst.beats == 0:
        return "0"
    lines = "1 line" if worst.beats == 1 else f"{worst.beats} lines"
    if worst.refused == worst.beats:
        return f"{lines}, refused"
    if worst.refused:
        return f"{lines}, {worst.refused} refused"
    if worst.seconds > WATCH_S - 0.5:
        return ENDLESS
    return lines


def _badness(overlap: Overlap) -> tuple[int, int]:
    return overlap.beats - overlap.refused, overlap.beats


def gaps(values: Sequence[float | None]) -> str:
    """The median and the extremes; a leader that nobody succeeded has no number."""
    known = sorted(value for value in values if value is not None)
    if len(known) < len(values):
        return "none" if not known else f"none in {len(values) - len(known)} of {len(values)}"
    middle = seconds(median(known))
    return middle if len(known) == 1 else f"{middle} ({seconds(known[0])} to {seconds(known[-1])})"


def row(way: Contender, results: Sequence[Round]) -> list[str]:
    return [
        way.label,
        way.needs,
        way.lease,
        gaps([each.killed_s for each in results]),
        gaps([each.ended_s for each in results]),
        gaps([each.paused_s for each in results]),
        beside(results),
        way.token,
    ]


def results_table(measured: Mapping[str, Sequence[Round]]) -> str:
    head = ["way", "needs", "lease", "killed", "ended", "paused", "two at once", "token"]
    return table(head, [row(BY_CODE[code], found) for code, found in measured.items()])


def versions(ways: Sequence[Contender]) -> str:
    names = dict.fromkeys(name for way in ways for name in way.packages)
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)


def markdown(measured: Mapping[str, Sequence[Round]], about: Mapping[str, str], rounds: int) -> str:
    words = {
        **about,
        "rounds": rounds,
        "workers": WORKERS,
        "work": WORK_S * 1000,
        "pause": PATIENCE_S,
        "watch": WATCH_S,
        "lease": LEASE_S,
    }
    filled = [textwrap.fill(text.format(**words), 100) for text in PREAMBLE]
    return "\n\n".join([HEADING, *filled, results_table(measured)]) + "\n"


def with_table(page: str, measured: Mapping[str, Sequence[Round]]) -> str:
    """The guide's page with this table between its marks."""
    before, found, rest = page.partition(BEGIN)
    _old, closed, after = rest.partition(END)
    if not (found and closed):
        raise ValueError(
            f"{PAGE.name} has no place for the table: {BEGIN.strip()} and {END.strip()}"
        )
    return f"{before}{BEGIN}\n{results_table(measured)}\n\n{END}{after}"


def as_json(measured: Mapping[str, Sequence[Round]], about: Mapping[str, str], rounds: int) -> str:
    rows = {code: [asdict(each) for each in found] for code, found in measured.items()}
    return json.dumps({"about": dict(about), "rounds": rounds, "ways": rows}, indent=1) + "\n"


def from_json(text: str) -> tuple[dict[str, list[Round]], dict[str, str], int]:
    """What a full run stored: rounds by way, what it ran on, and how many rounds."""
    stored = json.loads(text)
    measured = {code: [_round(each) for each in found] for code, found in stored["ways"].items()}
    return measured, stored["about"], stored["rounds"]


def _round(stored: Mapping[str, Any]) -> Round:
    overlaps = {name: Overlap(**stored[name]) for name in ("ended", "woken")}
    return Round(**{**stored, **overlaps})


def write(measured: Mapping[str, Sequence[Round]], about: Mapping[str, str], rounds: int) -> None:
    """Put the results into bench/RESULTS.md, and the table into the guide."""
    write_part(markdown(measured, about, rounds))
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), measured), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    ways = [way for way in CONTENDERS if way.code in (options.only or BY_CODE)]
    absent = missing(ways)
    if absent:
        say(f"These ways need {', '.join(absent)}, not installed here: make .venv-bench/ready")
        return 2
    if not options.only:
        try:
            with_table(PAGE.read_text(encoding="utf-8"), {})
        except ValueError as error:
            say(str(error))
            return 2
    began = time.monotonic()
    about = {
        "machine": f"CPython {platform.python_version()}, {platform.machine()}, "
        f"{os.cpu_count()} cores",
        "versions": versions(ways),
    }
    try:
        measured = measure(ways, options.rounds)
    except NoRound as error:
        say(f"{error}. Nothing is reported.")
        return 1
    except KeyboardInterrupt:
        say("Interrupted; nothing is reported.")
        return 130
    if options.only:
        whole = as_json if options.json else markdown
        print(whole(measured, about, options.rounds), end="")
    else:
        MEASURED.write_text(as_json(measured, about, options.rounds), encoding="utf-8")
        write(measured, about, options.rounds)
    say(f"took {time.monotonic() - began:.0f} s")
    return 0

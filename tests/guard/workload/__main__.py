"""`python -m tests.guard.workload --minutes 10`: the bank for some minutes, and its report.

The time is shared among engines. At most an eighth of it goes to runs without the fence, in which
workers are stopped and their questions held until a violation shows. Exit code 1 says that
something was wrong with the fence, or that nothing was wrong without it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys

import msgspec

from tests.guard.workload.banks import BANKS
from tests.guard.workload.judging import Report
from tests.guard.workload.playing import play, unfenced

LONGEST_MINUTES = 120.0
COLUMNS = tuple(each for each in Report.__struct_fields__ if each != "faults")


async def run(engines: list[str], minutes: float, seed: int) -> list[Report]:
    """Each engine with the fence, then without."""
    share = minutes * 60.0 / len(engines)
    reports = []
    for engine in engines:
        reports.append(await play(engine, fenced=True, seconds=share * 7 / 8, seed=seed))
        reports.append(await unfenced(engine, seconds=share / 8, seed=seed))
    return reports


def complaints(reports: list[Report]) -> list[str]:
    """What must not be: anything wrong with the fence, or nothing without it."""
    found = [f"{each.engine}: {text}" for each in reports if each.fenced for text in each.wrong]
    for each in reports:
        if not each.fenced and not each.stale:
            found.append(f"{each.engine}: nothing went wrong without the fence")
    return found


def table(reports: list[Report]) -> str:
    """The numbers under each other."""
    rows = [COLUMNS, *([str(getattr(each, name)) for name in COLUMNS] for each in reports)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    return "\n".join(
        "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True))
        for row in rows
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.guard.workload", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--engine", action="append", choices=sorted(BANKS))
    parser.add_argument("--seed", type=int, default=0, help="of what is done to whom")
    parser.add_argument("--json", action="store_true", help="the whole report instead of a table")
    options = parser.parse_args()
    if not 0 < options.minutes <= LONGEST_MINUTES:
        parser.error(f"--minutes lies between 0 and {LONGEST_MINUTES:g}")
    reports = asyncio.run(run(options.engine or sorted(BANKS), options.minutes, options.seed))
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(reports)).decode())
    else:
        print(table(reports))
    wrong = complaints(reports)
    for text in wrong:
        print(text, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

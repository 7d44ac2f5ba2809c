"""`python -m bench kernels`: measure the compiled kernels, and report."""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import time
from collections.abc import Sequence

from bench.measure import say
from bench.report import write_part


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench kernels",
        description="Measure the compiled kernels beside a C twin, NumPy and the event simulator. "
        "Writes its part of bench/RESULTS.md; with --brief tables go to standard output.",
    )
    parser.add_argument("--brief", action="store_true", help="a rough look in about a minute")
    parser.add_argument("--rounds", type=int, help="rounds (default 21, or 5 with --brief)")
    options = parser.parse_args(arguments)
    if options.rounds is not None and options.rounds < 1:
        parser.error(f"--rounds must be at least 1, not {options.rounds}")
    if importlib.util.find_spec("numba") is None:
        parser.error("kernels need numba, not installed here")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    # Only now: they need numba.
    from bench.kernels import measure, report  # noqa: PLC0415  # an extra that may be missing

    began = time.monotonic()
    effort = measure.BRIEF if options.brief else measure.FULL
    if options.rounds is not None:
        effort = dataclasses.replace(effort, rounds=options.rounds)
    results = measure.Results(effort)
    try:
        measure.speed(results)
        measure.memory(results)
        measure.first_calls(results)
    except measure.WrongWork as error:
        say(f"{error}; nothing is reported.")
        return 1
    text = report.markdown(results)
    if options.brief:
        print(text, end="")
    else:
        write_part(text)
    say(f"took {time.monotonic() - began:.0f} s")
    return 0

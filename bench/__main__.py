"""`python -m bench`: measure, check, report; parts of their own: net, kernels, alternatives."""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Sequence

from bench import plan
from bench.alternatives import cli as alternatives
from bench.check import complaints
from bench.kernels import cli as kernels
from bench.measure import Worker, WorkerDied, measure, say
from bench.memory import WrongWork, big_rings, footprints
from bench.net import cli as net
from bench.plan import HUSTINGS, PLAIN, TRACED, Implementation, Workload
from bench.report import Results, markdown, write_part

ROUNDS, QUICK_ROUNDS = 31, 3
MEMORY = "memory"


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure the simulator beside its peers. A full run writes bench/RESULTS.md, "
        "real groups too; with --quick or --only the simulator's tables go to standard output.",
        epilog="Real groups alone: python -m bench net [--help]; "
        "compiled kernels: python -m bench kernels [--help]; "
        "other ways to have one leader: python -m bench alternatives [--help].",
    )
    parser.add_argument("--rounds", type=int, help=f"rounds per workload (default {ROUNDS})")
    parser.add_argument("--quick", action="store_true", help="a rough look in under a minute")
    codes = list(dict.fromkeys(workload.code for workload in plan.WORKLOADS))
    parser.add_argument("--only", choices=[*codes, MEMORY], help="one part alone")
    options = parser.parse_args(arguments)
    if options.rounds is None:
        options.rounds = QUICK_ROUNDS if options.quick else ROUNDS
    if options.rounds < 1:
        parser.error(f"--rounds must be at least 1, not {options.rounds}")
    missing = plan.missing_packages()
    if missing:
        parser.error(f"the peers need {' and '.join(missing)}, not installed here")
    return options


def available() -> list[Implementation]:
    """The implementations that exist; tracing counts only where the module offers it."""
    found = []
    for item in plan.IMPLEMENTATIONS:
        if importlib.util.find_spec(item.module) is None:
            say(f"{item.label}: {item.module} does not exist and is not measured")
            continue
        with Worker(item) as worker:
            if all(worker.ask("has", name=worker.function(load)) for load in plan.WORKLOADS):
                found.append(item)
            else:
                say(f"{item.label}: {item.module} offers no such runs; not measured")
    return found


def participants(
    workload: Workload, implementations: Sequence[Implementation], quick: bool
) -> list[Implementation]:
    """Return the implementations that take part; a quick run has no time for the slowest."""
    skipped = quick and workload.slow_rounds == 1
    return [item for item in implementations if not (item.slow and skipped)]


def speed(
    results: Results, implementations: Sequence[Implementation], options: argparse.Namespace
) -> list[str]:
    """Fill in the speed of every requested workload; return what was wrong with the work."""
    wrong = []
    for workload in plan.WORKLOADS:
        if options.only in (None, workload.code):
            taking_part = participants(workload, implementations, options.quick)
            samples = measure(workload, taking_part, options.rounds)
            wrong += complaints(workload, samples)
            results.speed[workload] = samples
    return wrong


def memory(results: Results, implementations: Sequence[Implementation], quick: bool) -> None:
    """Fill in the memory tables; a quick run measures hustings and the plain loop only."""
    kept = [
        item
        for item in implementations
        if item.label != TRACED and (not quick or item.label in (HUSTINGS, PLAIN))
    ]
    results.footprints = footprints(kept, [1_000] if quick else [1_000, 5_000])
    results.big_rings = big_rings(kept)


def main(arguments: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words[:1] == ["net"]:
        return net.main(words[1:])
    if words[:1] == ["kernels"]:
        return kernels.main(words[1:])
    if words[:1] == ["alternatives"]:
        return alternatives.main(words[1:])
    options = parse(words)
    began = time.monotonic()
    results = Results(rounds=options.rounds)
    try:
        implementations = available()
        wrong = speed(results, implementations, options) if options.only != MEMORY else []
        if options.only in (None, MEMORY):
            memory(results, implementations, options.quick)
    except WorkerDied as error:
        say(f"{error}; nothing is reported.")
        return 1
    except WrongWork as error:
        wrong = [str(error)]
    if wrong:
        say("The implementations did not do the same work; nothing is reported.")
        for sentence in wrong:
            say(f"  {sentence}")
        return 1
    text = markdown(results)
    whole = not options.quick and options.only is None
    if not whole:
        print(text, end="")
    else:
        write_part(text)
    say(f"took {time.monotonic() - began:.0f} s")
    return (kernels.main([]) or net.main([]) or alternatives.main([])) if whole else 0


if __name__ == "__main__":
    sys.exit(main())

"""`python -m bench net`: measure real groups, and report."""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.measure import say
from bench.net import campaign, contenders
from bench.net.campaign import FULL, QUICK, Effort, Results
from bench.net.contenders import Contender
from bench.net.group import GroupFailed
from bench.net.kept import keep, kept, plain
from bench.net.report import markdown
from bench.net.search import search
from bench.report import write_part

PHASES = ("failover", "flat", "calm", "resources", "thousand")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench net",
        description="Measure real groups on this machine beside PySyncObj. Each part is kept in "
        "bench/net/measured.json when it is over, and bench/RESULTS.md written anew; with --quick, "
        "--sizes or --json tables go to standard output, and nothing is kept.",
    )
    parser.add_argument("--quick", action="store_true", help="a rough look in under 3 minutes")
    parser.add_argument("--rounds", type=int, help=f"rounds of failovers (default {FULL.rounds})")
    parser.add_argument(
        "--minutes",
        type=float,
        help=f"without disturbance at rest, half of it with busy cores (default {FULL.minutes:g})",
    )
    parser.add_argument(
        "--brief", action="store_true", help="leave out PySyncObj at its slow settings"
    )
    parser.add_argument("--only", choices=PHASES, help="one part alone")
    parser.add_argument("--sizes", help="members, comma-separated (default 3,9,25)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples there")
    parser.add_argument(
        "--search", action="store_true", help="look for PySyncObj's best settings instead"
    )
    options = parser.parse_args(arguments)
    try:
        words = options.sizes.split(",") if options.sizes else ["3"] if options.quick else []
        options.members = tuple(int(word) for word in words) or contenders.SIZES
    except ValueError:
        parser.error(f"--sizes takes numbers with commas between, not {options.sizes}")
    if min(options.members) < 3:
        parser.error("--sizes must be at least 3: two members have no majority to elect by")
    if options.rounds is not None and options.rounds < 1:
        parser.error(f"--rounds must be at least 1, not {options.rounds}")
    if options.minutes is not None and options.minutes <= 0:
        parser.error(f"--minutes must be above 0, not {options.minutes:g}")
    if importlib.util.find_spec("pysyncobj") is None:
        parser.error("the peer needs pysyncobj, not installed here")
    return options


def peers() -> list[Contender]:
    """PySyncObj's best settings, if the search has run."""
    return [found for budget in contenders.BUDGETS if (found := contenders.tight(budget))]


def measure(phase: str, options: argparse.Namespace, results: Results) -> None:
    ours, theirs = list(contenders.AT.values()), peers()
    if phase == "failover":
        slow = not (options.quick or options.brief)
        references = [contenders.RAISED, contenders.DEFAULT] if slow else []
        turns = [who for pair in zip(ours, theirs, strict=True) for who in pair]
        campaign.failover(results, [*turns, *references])
    elif phase == "flat":
        sizes = (3, 25) if options.quick else contenders.FLAT_SIZES
        campaign.flat(results, contenders.FLAT, sizes)
    elif phase == "calm":
        campaign.undisturbed(results, [*ours, *theirs])
    elif phase == "resources":
        campaign.resources(results, [*contenders.AS_THEY_COME, *ours, *theirs])
    else:
        campaign.thousand(results, contenders.MANY)


def wanted(options: argparse.Namespace) -> Sequence[str]:
    if options.only is not None:
        return (options.only,)
    return PHASES[:-1] if options.quick else PHASES


def look(options: argparse.Namespace, effort: Effort) -> None:
    """Print tables on standard output, and keep nothing."""
    results = Results(effort, options.members)
    for phase in wanted(options):
        measure(phase, options, results)
    if options.json is not None:
        options.json.write_text(json.dumps(plain(results), indent=1) + "\n", encoding="utf-8")
    print(markdown(results), end="")


def record(options: argparse.Namespace, effort: Effort) -> None:
    """Keep each phase when it is over, and write the report from all kept phases."""
    for phase in wanted(options):
        results = Results(effort, options.members)
        measure(phase, options, results)
        keep(phase, time.strftime("%Y-%m-%d"), results)
        whole, days = kept()
        if whole is not None:
            write_part(markdown(whole, days))


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    began = time.monotonic()
    if options.search:
        search(options.members)
        return 0
    effort = QUICK if options.quick else FULL
    if options.rounds is not None:
        effort = dataclasses.replace(effort, rounds=options.rounds)
    if options.minutes is not None:
        effort = dataclasses.replace(effort, minutes=options.minutes)
    rough = options.quick or options.sizes is not None or options.json is not None
    try:
        (look if rough else record)(options, effort)
    except GroupFailed as error:
        say(f"{error}; this part is not reported.")
        return 1
    except KeyboardInterrupt:
        say("interrupted; this part is not reported.")
        return 130
    say(f"took {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The results of the kernels as Markdown; numbers come in, text goes out."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import textwrap
from collections.abc import Sequence
from statistics import median, quantiles

from bench.kernels import twin
from bench.kernels.measure import EVENTS, NUMPY, ONE, OURS, TWIN, TWO, Results, Sample
from bench.kernels.work import GROUP, RUNS
from bench.report import Spread, table, verdict

AT_MOST_C = 1.10
TWO_CORES = 1.7
RATE = 100_000
TARGET_PLACE = (10**9, 0.001)
BYTES = 64
MIB = 1 << 20
FIRST_CALL_S = 0.3

PREAMBLE = (
    "Written by `python -m bench kernels`; do not edit.",
    "{machine}; {compiler}, {flags}. {rounds} rounds. In each round every contender plays once and "
    "the order rotates, all in one process; what is compiled at the first call is compiled before. "
    "A ratio is taken round by round and given as its median with the quartiles in brackets (below "
    "four rounds the extremes). Times are processor times unless wall is said. The machine is "
    "shared: ratios mean more than times.",
    "le-s: N = {members}, {loss:.0%} of all deliveries lost independently, until all have heard "
    "the leader; times are for {runs:,} runs, and slower contenders play fewer and are scaled by "
    "their number. Before anything is timed, the C twin's rows must be ours bit for bit, the NumPy "
    "version's likewise in the columns that it has, and the event simulator's mean number of "
    "rounds must agree within chance. Probabilistic elections: view 0.5, loss of unicasts and "
    "multicasts alike, one crash in a thousand per round, K = 7, 14, 28, 56, N.",
)


def spread(found: Sequence[float]) -> Spread:
    low, high = min(found), max(found)
    if len(found) >= 4:
        low, _, high = quantiles(found, n=4, method="inclusive")
    return Spread(median(found), low, high, len(found))


def ratio(upper: Sequence[Sample], lower: Sequence[Sample], which: str) -> Spread:
    pairs = zip(upper, lower, strict=True)
    return spread([getattr(above, which) / getattr(below, which) for above, below in pairs])


def le_s_table(results: Results) -> str:
    effort = results.effort
    played = {NUMPY: effort.runs_numpy, EVENTS: effort.runs_events}
    rows = []
    for label, taken in results.speed.items():
        seconds = spread([sample.cpu * RUNS for sample in taken])
        over = ratio(taken, results.speed[OURS], "cpu")
        judged = ""
        if label == TWIN:
            ours = ratio(results.speed[OURS], taken, "cpu")
            judged = f"{verdict(ours.middle <= AT_MOST_C)}: ours takes {ours} times as long"
        runs = played.get(label, effort.runs)
        rows.append([label, f"{runs:,}", seconds, over, judged])
    if TWIN not in results.speed:
        rows.append([TWIN, "-", "-", "-", "not measured: no C compiler here"])
    head = ["contender", "runs a round", f"s for {RUNS:,} runs", "times ours"]
    return table([*head, f"target: ours at most {AT_MOST_C:.2f} of C"], rows)


def elections_table(results: Results) -> str:
    rows = []
    for (members, loss), taken in results.elections.items():
        rate = median(1 / sample.cpu for sample in taken)
        low = min(1 / sample.cpu for sample in taken)
        aimed = (members, loss) == TARGET_PLACE
        judged = verdict(rate >= RATE) if aimed else ""
        rows.append([f"{members:,}", loss, f"{rate:,.0f}", f"{low:,.0f}", judged])
    head = ["N", "loss", "elections/s, median", "worst round"]
    return table([*head, f"target: {RATE:,} at N = 10^9, loss 0.001"], rows)


def threads_table(results: Results) -> str:
    one, two = results.threads[ONE], results.threads[TWO]
    wall, work = ratio(one, two, "wall"), ratio(two, one, "cpu")
    best = min(sample.wall for sample in one) / min(sample.wall for sample in two)
    row = [wall, f"{best:.2f}", work, verdict(wall.middle >= TWO_CORES)]
    head = ["times as fast on two threads, wall", "best round of each, wall"]
    return table([*head, "processor time of both over one's", f"target: {TWO_CORES}"], [row])


def memory_table(results: Results) -> str:
    """Return the memory table; probabilistic elections need the same memory for any N."""
    rows = [
        [
            name,
            f"{members:,}",
            f"{results.bytes_in_all[name, members] / MIB:.1f}",
            f"{found:.3g}",
            verdict(found <= BYTES),
        ]
        for (name, members), found in results.bytes_per_member.items()
    ]
    head = ["kernel", "N", "MiB per thread", "bytes per member and thread"]
    return table([*head, f"target: at most {BYTES}"], rows)


def first_table(results: Results) -> str:
    rows = []
    for name, taken in results.first.items():
        cells = []
        for place in range(3):
            wall = spread([each["wall"][place] for each in taken])
            cells.append(f"{wall.middle:.2f} ({wall.low:.2f}-{wall.high:.2f})")
        cpu = median(each["cpu"][2] for each in taken)
        middle = median(each["wall"][2] for each in taken)
        judged = verdict(middle < FIRST_CALL_S) if name != "nothing" else ""
        label = "a kernel that does nothing" if name == "nothing" else name
        rows.append([label, *cells, f"{cpu:.2f}", judged])
    head = ["kernel", "import numba, s", "import ours, s", "first call, s"]
    return table([*head, "of it processor time", f"target: under {FIRST_CALL_S} s"], rows)


def preamble(results: Results) -> str:
    python = f"{platform.python_implementation()} {platform.python_version()}"
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("numba", "numpy")]
    facts = {
        "machine": f"{python}, {platform.machine()}, {os.cpu_count()} cores; {', '.join(versions)}",
        "compiler": results.compiler,
        "flags": " ".join(twin.FLAGS[:3]),
        "rounds": results.effort.rounds,
        "members": GROUP.members,
        "loss": GROUP.loss,
        "runs": RUNS,
    }
    return "\n\n".join(textwrap.fill(part.format(**facts), 100) for part in PREAMBLE)


def markdown(results: Results) -> str:
    """All tables."""
    parts = ["# Kernels", preamble(results)]
    parts += ["## Targets: le-s to convergence, one thread", le_s_table(results)]
    parts += ["## Targets: probabilistic elections, one thread", elections_table(results)]
    parts += ["## Targets: two cores", threads_table(results)]
    parts += ["## Targets: memory", memory_table(results)]
    parts += ["## Targets: the first call, compiled code being on disk", first_table(results)]
    return "\n\n".join(part.strip() for part in parts) + "\n"

"""The results as Markdown; numbers come in, text goes out."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles

from bench import plan
from bench.measure import Sample, Samples, say
from bench.memory import BigRing, Footprint
from bench.plan import HUSTINGS, PLAIN, PROCESSES, TRACED, Workload

RESULTS = Path(__file__).resolve().parent / "RESULTS.md"

Cost = Callable[[Sample], float]

PREAMBLE = (
    "Written by `python -m bench` (`make bench`); do not edit.",
    "{machine}. {rounds} rounds. In each round every implementation runs once and the order "
    "rotates; each has a process of its own, only one of which runs at a time. SimPy processes, "
    "being slow, take part in fewer rounds, counted in the tables{left_out}. The garbage collector "
    "is on, and is emptied before each run.",
    "A ratio is taken round by round, time per event of one over time per event of the other, and "
    "given as its median with the quartiles in brackets (below four rounds the extremes). Times "
    'are processor times unless "wall" is said. "Loop" is the run from the first event to the '
    'last; "whole" adds the building of the group. An event is one delivery to one live receiver, '
    "or one timer firing. The targets speak of events, so the loop decides; building a member "
    "costs hustings more than the peers, whose members have neither views nor contexts.",
    "W1: a ring, ids growing clockwise, the leader's successor calls: 3N-1 messages. W2: the bully "
    "with N counting the dead leader, lowest id notices: N^2-N-1 messages. W3: a group of "
    "announcers with suppression timers, a tenth of all deliveries lost, up to time 20. Before "
    "anything is reported, the counts are checked: W1 and W2 exactly, W3 among the peers exactly "
    "and for hustings within chance.",
)


@dataclass(slots=True)
class Results:
    rounds: int
    speed: dict[Workload, Samples] = field(default_factory=dict)
    footprints: list[Footprint] = field(default_factory=list)
    big_rings: list[BigRing] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Spread:
    middle: float
    low: float
    high: float
    count: int

    def __str__(self) -> str:
        if self.count == 1:
            return digits(self.middle)
        return f"{digits(self.middle)} ({digits(self.low)}-{digits(self.high)})"


def digits(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def play_cpu(sample: Sample) -> float:
    return sample.play_cpu


def whole_cpu(sample: Sample) -> float:
    return sample.whole_cpu


def whole_wall(sample: Sample) -> float:
    return sample.whole_wall


def ratio(samples: Samples, upper: str, lower: str, cost: Cost) -> Spread | None:
    """How many times as long `upper` takes as `lower`, over the rounds in which both ran."""
    above, below = samples.get(upper, {}), samples.get(lower, {})
    found = [cost(above[round_]) / cost(below[round_]) for round_ in above if round_ in below]
    if not found:
        return None
    low, high = min(found), max(found)
    if len(found) >= 4:
        low, _, high = quantiles(found, n=4, method="inclusive")
    return Spread(median(found), low, high, len(found))


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def verdict(met: bool) -> str:
    return "met" if met else "**missed**"


def speed_targets(results: Results) -> str:
    rows = []
    for workload, samples in results.speed.items():
        for peer in samples:
            target = plan.speed_target(peer, workload)
            loop = ratio(samples, peer, HUSTINGS, play_cpu)
            whole = ratio(samples, peer, HUSTINGS, whole_cpu)
            wall = ratio(samples, peer, HUSTINGS, whole_wall)
            if target is None or loop is None or whole is None:
                continue
            result = verdict(loop.middle >= target)
            rows.append([workload.title, peer, target, loop, whole, wall, loop.count, result])
    head = ["workload", "peer", "target", "loop", "whole", "whole, wall", "rounds", "verdict"]
    return table(head, rows)


def against_plain(results: Results) -> str:
    rows = []
    for workload, samples in results.speed.items():
        for label, taken in samples.items():
            if not taken:
                continue
            loop = ratio(samples, label, PLAIN, play_cpu)
            whole = ratio(samples, label, PLAIN, whole_cpu)
            rate = median(1 / sample.play_cpu for sample in taken.values())
            rate_whole = median(1 / sample.whole_cpu for sample in taken.values())
            rates = [f"{rate / 1e6:.2f}", f"{rate_whole / 1e6:.2f}"]
            rows.append([workload.title, label, *rates, loop, whole, len(taken)])
    head = ["workload", "implementation", "M events/s, loop", "M events/s, whole"]
    return table([*head, "loop / plain", "whole / plain", "rounds"], rows)


def tracing(results: Results) -> str:
    rows = []
    for workload, samples in results.speed.items():
        loop = ratio(samples, TRACED, HUSTINGS, play_cpu)
        whole = ratio(samples, TRACED, HUSTINGS, whole_cpu)
        if loop is not None and whole is not None:
            met = verdict(loop.middle <= plan.TRACING_TARGET)
            rows.append([workload.title, plan.TRACING_TARGET, loop, whole, met])
    return table(["workload", "at most", "loop", "whole", "verdict"], rows)


def footprint_verdict(item: Footprint) -> str:
    if item.label != HUSTINGS:
        return ""
    if item.idle is None:
        return "not measured"
    return verdict(item.idle <= plan.STARTED_BYTES_TARGET and item.peak <= plan.PEAK_BYTES_TARGET)


def members_table(results: Results) -> str:
    rows = []
    for item in results.footprints:
        held = ["-" if part is None else f"{part:,.0f}" for part in (item.idle, item.started)]
        row = [item.label, f"{item.n:,}", *held, f"{item.peak:,.0f}", footprint_verdict(item)]
        rows.append(row)
    head = [
        "implementation",
        "N",
        f"bytes, started W1 member (at most {plan.STARTED_BYTES_TARGET})",
        "bytes, started W3 member with its timer",
        f"bytes, W3 peak (at most {plan.PEAK_BYTES_TARGET:,})",
        "verdict",
    ]
    return table(head, rows)


def big_ring_table(results: Results) -> str:
    rows = []
    for item in results.big_rings:
        met = verdict(item.megabytes < plan.BIG_RING_TARGET_MB) if item.label == HUSTINGS else ""
        rows.append([item.label, f"{item.megabytes:,.0f}", f"{item.seconds:.2f}", met])
    head = ["implementation", f"MB, resident peak (under {plan.BIG_RING_TARGET_MB:,})"]
    return table([*head, "seconds, whole, wall", "verdict"], rows)


def machine() -> str:
    peers = dict.fromkeys(item.needs for item in plan.IMPLEMENTATIONS if item.needs is not None)
    versions = [f"{name} {importlib.metadata.version(name)}" for name in peers]
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{python}, {platform.machine()}, {os.cpu_count()} cores; " + ", ".join(versions)


def preamble(results: Results) -> str:
    without = [load.title for load, samples in results.speed.items() if PROCESSES not in samples]
    left_out = f", and are left out of {'; '.join(without)}" if without else ""
    facts = {"machine": machine(), "rounds": results.rounds, "left_out": left_out}
    return "\n\n".join(textwrap.fill(part.format(**facts), 100) for part in PREAMBLE)


def markdown(results: Results) -> str:
    """All tables that have something to show."""
    measured = any(samples.get(HUSTINGS) for samples in results.speed.values())
    traced = any(samples.get(TRACED) for samples in results.speed.values())
    parts = ["# Benchmark", preamble(results)]
    if measured:
        parts += ["## Targets: times as fast as the peer", speed_targets(results)]
    if traced:
        parts += ["## Targets: what tracing costs", tracing(results)]
    if results.footprints:
        parts += ["## Targets: bytes per member of W3", members_table(results)]
    if results.big_rings:
        parts += [f"## Targets: one ring of {plan.BIG_RING:,}", big_ring_table(results)]
    if results.speed:
        parts += ["## Rates, and times as long as the plain loop", against_plain(results)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def with_part(text: str, part: str) -> str:
    """`text` with the part under the heading of `part` replaced by it, or with it added."""
    heading = part.partition("\n")[0]
    parts = re.split(r"(?m)^(?=# )", text)
    kept = [old for old in parts if old.strip()]
    for place, old in enumerate(kept):
        if old.partition("\n")[0] == heading:
            kept[place] = part
            break
    else:
        kept.append(part)
    return "\n".join(old.strip() + "\n" for old in kept)


def write_part(part: str) -> None:
    """Put a part into bench/RESULTS.md, and leave the others as they are."""
    old = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else ""
    RESULTS.write_text(with_part(old, part), encoding="utf-8")
    say(f"wrote bench/{RESULTS.name}")

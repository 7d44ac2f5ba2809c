"""The results of real groups as Markdown; numbers come in, text goes out."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import textwrap
from collections.abc import Mapping, Sequence
from statistics import median, quantiles

from bench.net import contenders
from bench.net.campaign import PROCESSES, SLOW_ROUNDS, THOUSAND, Results
from bench.net.measures import PACE_S, STEADY_S, Samples
from bench.report import table, verdict

THIRD = 1 / 3
TRIPS, SCHEDULING_MS = 3, 2.0
FLATNESS = 1.25  # the most packets at any size over the fewest
MEGABYTES, CPU_S = 25.0, 0.3
THOUSAND_MS = 5_000.0
OVER = 1.05  # up to this factor over its budget still counts as "about" 20 or 60

PREAMBLE = (
    "Written by `python -m bench net` (part of `make bench`); do not edit.",
    "{machine}. Rounds: {rounds}. In each, every contender's group is started at every size and "
    "the order rotates, only one group being there at a time; PySyncObj's default settings, "
    "which need long rests, take part in {slow} of them. A group is N processes on "
    "loopback{network}. Members report each change of their leader through a pipe, with the time "
    "of the machine's one monotonic clock.",
    "Kill and pause: from SIGKILL or SIGSTOP of the leader until the last of all other members "
    "follows the final new one, counted once none changed its mind for {steady:g} s. Transfer and "
    "resign: from the leader's call until all members follow the next. Packets: what loopback of "
    "the group's network received, each packet once, acknowledgements too, over {rest:g} s at "
    "rest, per second and member. Milliseconds are medians, quartiles in brackets (below four "
    "samples the extremes).",
    "PySyncObj at 20 and 60 pps are the quickest settings a search found that keep the budget and "
    "stay steady: `python -m bench net --search` writes them, with all it tried, to "
    "`bench/net/tight.json`. Why some targets are missed, and what was tried: `bench/NOTES.md`.",
)


def span(values: Sequence[float]) -> str:
    """Median and quartiles, or a dash."""
    if not values:
        return "-"
    if len(values) == 1:
        return short(values[0])
    low, high = min(values), max(values)
    if len(values) >= 4:
        low, _, high = quantiles(values, n=4, method="inclusive")
    return f"{short(median(values))} ({short(low)}-{short(high)})"


def short(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def failover_table(results: Results) -> str:
    rows = []
    for n in results.sizes:
        for (label, size), taken in results.failover.items():
            if size == n:
                parts = (taken.packets, taken.kill, taken.pause, taken.step_down)
                more = (taken.transfer, taken.resign)
                cells = [span(part) for part in (*parts, *more)]
                rows.append([n, label, *cells, len(taken.kill), len(taken.failures)])
    head = ["N", "contender", "pps", "kill, ms", "pause, ms", "old leader follows, ms"]
    return table([*head, "transfer, ms", "resign, ms", "kills", "failures"], rows)


def pair(results: Results, budget: int, n: int) -> tuple[Samples, Samples] | None:
    """What hustings and PySyncObj did within a budget; none if one of them was not measured."""
    peer = contenders.tight(budget)
    ours = results.failover.get((contenders.AT[budget].label, n))
    theirs = None if peer is None else results.failover.get((peer.label, n))
    return None if ours is None or theirs is None else (ours, theirs)


def ratio_row(
    name: str,
    n: int,
    budget: int,
    pair: tuple[Samples, Samples],
    ours: list[float],
    theirs: list[float],
) -> list[object]:
    rates = [median(samples.packets) if samples.packets else float("nan") for samples in pair]
    row: list[object] = [name, n, budget, *(short(rate) for rate in rates), span(ours)]
    if not ours or not theirs:
        return [*row, span(theirs), "-", "**missed**"]
    ratio = median(ours) / median(theirs)
    met = ratio <= THIRD and rates[0] <= budget * OVER and not pair[0].failures
    return [*row, span(theirs), f"{ratio:.2f}", verdict(met)]


def ratio_table(results: Results) -> str:
    rows = []
    for name in ("kill", "pause"):
        for budget in contenders.BUDGETS:
            for n in results.sizes:
                both = pair(results, budget, n)
                if both is not None:
                    ours, theirs = (getattr(samples, name) for samples in both)
                    rows.append(ratio_row(name, n, budget, both, ours, theirs))
    head = ["", "N", "budget, pps", "pps", "pps, PySyncObj", "ms", "ms, PySyncObj"]
    return table([*head, "ratio (at most 0.33)", "verdict"], rows)


def hand_over_table(results: Results) -> str:
    trip = median(results.round_trips_ms)
    limit = TRIPS * trip + SCHEDULING_MS
    rows = []
    for (label, n), samples in results.failover.items():
        both = (
            ("transfer", samples.transfer_led, samples.transfer),
            ("resign", samples.resign_led, samples.resign),
        )
        for name, led, taken in both:
            if taken:
                ours = label.startswith("hustings")
                judged = [verdict(median(each) <= limit) if ours else "" for each in (led, taken)]
                row = [name, label, n, span(led), judged[0], span(taken), judged[1], len(taken)]
                rows.append(row)
    head = ["", "contender", "N", f"ms until the next one leads (at most {limit:.2f})", "verdict"]
    head += ["ms until all follow (the same)", "verdict", "samples"]
    said = (
        f"The UDP round trip between two processes in this run: {span(results.round_trips_ms)} ms; "
        f"{TRIPS} of them and {SCHEDULING_MS:g} ms make the limit. At least {PACE_S:g} s between "
        "two transfers."
    )
    return textwrap.fill(said, 100) + "\n\n" + table(head, rows)


def flat_table(results: Results) -> str:
    rows = []
    sizes = sorted({n for _, n in results.flat})
    for label in dict.fromkeys(label for label, _ in results.flat):
        found = {n: median(results.flat[label, n]) for n in sizes if (label, n) in results.flat}
        spread = max(found.values()) / min(found.values())
        cells = [short(found[n]) if n in found else "-" for n in sizes]
        met = spread <= FLATNESS and len(found) == len(sizes)
        rows.append([label, *cells, f"{spread:.2f}", verdict(met)])
    head = ["contender", *(f"pps, N = {n}" for n in sizes)]
    return table([*head, f"most over fewest (at most {FLATNESS})", "verdict"], rows)


def calm_table(results: Results) -> str:
    rows = []
    for item in results.calm:
        judged = verdict(item.leaders == 0) if item.label.startswith("hustings") else ""
        state = "cores busy" if item.busy else "at rest"
        stalls = f"{item.stalls} ({item.longest_ms:.0f})" if item.stalls else "0"
        row = [item.label, item.n, state, item.minutes, item.leaders, item.words, judged, stalls]
        rows.append(row)
    head = ["contender", "N", "", "minutes", "new leaders", "members' changes of mind", "verdict"]
    return table([*head, "the machine's stalls (longest, ms)"], rows)


def resources_table(results: Results) -> str:
    rows = []
    for (label, n), found in results.resources.items():
        met = found.megabytes <= MEGABYTES and found.cpu_s_per_minute <= CPU_S
        judged = verdict(met) if label.startswith("hustings") else ""
        memory = [f"{found.megabytes:.1f}", f"{found.private_megabytes:.1f}"]
        cells = [*memory, f"{found.cpu_s_per_minute:.2f}"]
        rows.append([label, n, *cells, judged])
    head = ["contender", "N", f"MB resident (at most {MEGABYTES:g})", "MB of it unshared"]
    return table([*head, f"CPU s per minute (at most {CPU_S})", "verdict"], rows)


def thousand_table(results: Results) -> str:
    taken = results.thousand
    met = bool(taken.elect) and median(taken.elect) < THOUSAND_MS and not taken.failures
    label = contenders.MANY.label
    row = [label, span(taken.elect), span(taken.kill), len(taken.elect), len(taken.failures)]
    head = ["contender", "elect from nothing, ms (under 5,000)", "after the loss of a process, ms"]
    return table([*head, "runs", "failures", "verdict"], [[*row, verdict(met)]])


def failures(results: Results) -> list[str]:
    found = list(results.failures) + results.thousand.failures
    for samples in results.failover.values():
        found += samples.failures
    return [f"- {sentence}" for sentence in found]


def dates(days: Mapping[str, str]) -> list[str]:
    each = ", ".join(f"{phase} on {day}" for phase, day in days.items())
    return [f"Measured by parts (`--only`): {each}."] if days else []


def preamble(results: Results, days: Mapping[str, str]) -> str:
    python = f"{platform.python_implementation()} {platform.python_version()}"
    peer = f"pysyncobj {importlib.metadata.version('pysyncobj')}"
    network = (
        ", in a network namespace of its own"
        if results.own_network
        else ("; no namespace could be made, so packets are those of the whole machine")
    )
    facts = {
        "machine": f"{python}, {platform.machine()}, {os.cpu_count()} cores; {peer}",
        "rounds": results.effort.rounds,
        "slow": min(SLOW_ROUNDS, results.effort.rounds),
        "network": network,
        "steady": STEADY_S,
        "rest": results.effort.rest_s,
    }
    parts = [part.format(**facts) for part in PREAMBLE]
    parts += dates(days)
    return "\n\n".join(textwrap.fill(part, 100) for part in parts)


def markdown(results: Results, days: Mapping[str, str] | None = None) -> str:
    """All tables that have something to show; `days` says when each phase was measured."""
    parts = ["# Real groups", preamble(results, days or {})]
    if results.failover:
        parts += ["## Targets: at most a third of PySyncObj's time", ratio_table(results)]
        parts += ["## Targets: transfer", hand_over_table(results)]
    if results.flat:
        parts += ["## Targets: packets at rest, whatever N", flat_table(results)]
    if results.calm:
        parts += ["## Targets: no change of leader without a cause", calm_table(results)]
    if results.resources:
        parts += ["## Targets: memory and processor per member", resources_table(results)]
    if results.thousand.elect or results.thousand.failures:
        title = f"## Targets: {THOUSAND:,} members in {PROCESSES} processes"
        parts += [title, thousand_table(results)]
    if results.failover:
        parts += ["## All contenders", failover_table(results)]
    if said := failures(results):
        parts += ["## What did not succeed", "\n".join(said)]
    return "\n\n".join(part.strip() for part in parts) + "\n"

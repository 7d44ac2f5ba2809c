"""`hustings sim`: run one protocol in the deterministic world."""

from __future__ import annotations

from pathlib import Path
from textwrap import wrap
from typing import Any

import click

from hustings.cli.experiment_options import group_options, world_options
from hustings.cli.options import REAL, WholeRange, on_option
from hustings.cli.output import progress, show_json, show_table, warn
from hustings.core.errors import BadInput
from hustings.lab.options import Options
from hustings.lab.runs.executors import MAX_JOBS
from hustings.lab.runs.playing import MAX_RUNS
from hustings.lab.simulation import Goals, Study, prepare
from hustings.sim.scenarios import SCENARIOS
from hustings.sim.time_series import TimeSeries

MOST_ROWS = 20  # of a time series
WIDEST = 30  # characters of the longest bar


def _told() -> str:
    """The scenarios as a help page shows them."""
    lines = ["\b", "Scenarios:"]
    for name, text in SCENARIOS.items():
        lines += [f"  {name}", *wrap(text, 76, initial_indent="    ", subsequent_indent="    ")]
    return "\n".join(lines)


def _list_scenarios(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        show_table("Scenarios", ["scenario", "what happens"], [*SCENARIOS.items()])
        context.exit()


@click.command(epilog=_told())
@click.argument("protocol")
@click.option(
    "--scenarios",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_scenarios,
    help="List the scenarios and what happens in each.",
)
@group_options
@world_options
@click.option(
    "--runs",
    type=WholeRange(1, MAX_RUNS),
    default=None,
    help="The number of runs; with --stderr, the largest number.  [default: 1; with --stderr "
    "100,000, or 1,000,000 with engine fast]",
)
@click.option(
    "--stderr",
    type=REAL,
    default=None,
    metavar="ERROR",
    help="Play until the standard error of a metric's mean is at most this. If --runs is not "
    "enough, report what was reached and exit 2.",
)
@click.option(
    "--metric",
    default=None,
    metavar="NAME",
    help="With --stderr: which metric.  [default: the first of strong, tmax and time that the run "
    "has]",
)
@click.option(
    "--jobs",
    type=WholeRange(1, MAX_JOBS),
    default=1,
    show_default=True,
    help="The number of workers; on dask:// all workers play.",
)
@on_option("processes; threads for engine fast")
@click.option(
    "--engine",
    default=None,
    help="events: message by message. fast: compiled kernels, for starts of al, le-a, le-m, le-s, "
    "sup and probabilistic, and for committee, committee-agreement and committee-coin; other "
    "random numbers, the same laws. auto: chooses the better one, and says why.  "
    "[default: events; auto for the three committee protocols]",
)
@click.option(
    "--trace",
    "trace_to",
    type=click.Path(path_type=Path),
    help="Write a trace of the first run: see hustings trace.",
)
@click.option(
    "--run",
    "number",
    type=WholeRange(0, MAX_RUNS),
    default=0,
    show_default=True,
    help="The number of the first run: replays a run that a verdict names.",
)
@click.option("--digest", is_flag=True, help="Report a digest of everything that happened.")
@click.option("--check", is_flag=True, help="Exit 1 if a property is violated in any run.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def sim(
    protocol: str,
    jobs: int,
    where: str | None,
    engine: str | None,
    number: int,
    trace_to: Path | None,
    check: bool,
    as_json: bool,
    **typed: Any,
) -> int:
    """Simulate PROTOCOL, and report its cost and the verdicts of the checkers.

    \b
    hustings sim bully -n 64 --scenario leader-crash --detector 1
    hustings sim ring -n 8 --initiator 3 --trace ring.jsonl
    hustings sim ring -n 8 --initiator 1-8 --order random --runs 1000
    hustings sim bully -n 8 --scenario leader-crash --fault crash:7@2.5 --check
    hustings sim le-a -n 10 --delay 0.05 --mobility random-waypoint --until 60
    hustings sim sup -n 500 --delay 0.1 --loss 0.4 --runs 10000 --engine fast
    hustings sim probabilistic -n 1000000 --loss 0.001 --engine fast --stderr 0.001
    hustings sim committee -n 10000 --set b=0.1 --runs 10 --engine fast
    hustings sim --scenarios
    """
    goals = Goals(typed.pop("runs"), typed.pop("stderr"), typed.pop("metric"))
    digest = typed.pop("digest")
    simulation = prepare(
        protocol, Options(**typed), goals, engine=engine, digest=digest, trace=trace_to, check=check
    )
    simulation.check_memory(jobs)
    for sentence in simulation.warnings:
        warn(sentence)
    with progress() as tell:
        study = simulation.play(first=number, jobs=jobs, on=where, trace=trace_to, tell=tell)
    for sentence in study.warnings[len(simulation.warnings) :]:
        warn(sentence)
    if as_json:
        show_json(study.to_json())
    else:
        show_report(study)
        if trace_to is not None:
            click.echo(f"trace of run {number}: {trace_to}")
    if study.short is not None:
        raise BadInput(study.short)
    return 1 if check and study.violated else 0


def show_report(study: Study) -> None:
    """The report as people read it."""
    result = study.report
    if result.runs == 1:
        columns = ["metric", "value"]
        rows: list[list[object]] = [
            [name, None if summary is None else summary.mean]
            for name, summary in result.metrics.items()
        ]
    else:
        columns = ["metric", "mean", "stderr", "min", "p50", "p99", "max"]
        rows = [
            [name, *(summary.to_json().values() if summary is not None else [None] * 6)]
            for name, summary in result.metrics.items()
        ]
    show_table(study.title, columns, rows)
    if result.time_series is not None:
        show_time_series(result.time_series)
        click.echo()
    for name, counts in result.verdicts.items():
        told = ", ".join(f"{number} {verdict}" for verdict, number in counts.items() if number)
        reason = f" ({result.reasons[name]})" if name in result.reasons else ""
        click.echo(f"{name:12} {told}{reason}")
    endings = ", ".join(f"{number} {ending}" for ending, number in result.endings.items())
    click.echo(f"{'ended':12} {endings}")
    if result.digest is not None:
        click.echo(f"{'digest':12} {result.digest}")
    if result.failure is not None and result.runs > 1:
        click.echo(f"{'replay':12} the same with --runs 1 --run {result.failure} --trace FILE")


def show_time_series(time_series: TimeSeries) -> None:
    """A table with bars: every instant, or evenly spaced ones if there are many."""
    points = len(time_series.time)
    stride = -(-points // MOST_ROWS)
    highest = max(time_series.mean)
    rows: list[list[object]] = [
        [
            time_series.time[place],
            time_series.mean[place],
            time_series.stderr[place],
            time_series.max[place],
            time_series.under_way[place],
            "█" * round(WIDEST * time_series.mean[place] / highest) if highest else "",
        ]
        for place in range(0, points, stride)
    ]
    note = "A run that has ended counts as it ended."
    if stride > 1:
        note = f"One in {stride} of {points:,} instants; --json has all. {note}"
    columns = ["time", "mean", "stderr", "max", "under way", ""]
    show_table("Simultaneous leaders over time", columns, rows, note)

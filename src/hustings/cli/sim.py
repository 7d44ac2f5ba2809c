"""`hustings sim`: run one protocol in the deterministic world."""

from __future__ import annotations

from pathlib import Path
from textwrap import wrap
from typing import Any

import click
import msgspec

from hustings.cli.course import remark_on, show_course
from hustings.cli.engines import EVENTS, FAST, admit, check_engine, given_up, run_fast
from hustings.cli.experiment import Options, build, group_options, world_options
from hustings.cli.output import progress, show_json, show_table, warn
from hustings.cli.remarks import remarks_on
from hustings.protocols.catalogue import find
from hustings.sim.experiment import Experiment, play, prepare
from hustings.sim.files import TraceFile
from hustings.sim.runs import MAX_JOBS, MAX_RUNS, Report, report, run_all
from hustings.sim.scenarios import SCENARIOS
from hustings.sim.steady import warm_up
from hustings.sim.trace import Tracer

# A metric that no run has, as when members do not agree on a leader.
NO_VALUE = dict.fromkeys(("mean", "stderr", "min", "p50", "p99", "max"))


def _told() -> str:
    """The scenarios as a page of help tells them."""
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
    "--runs", type=click.IntRange(1, MAX_RUNS), default=1, show_default=True, help="How many runs."
)
@click.option(
    "--jobs",
    type=click.IntRange(1, MAX_JOBS),
    default=1,
    show_default=True,
    help="On how many processes.",
)
@click.option(
    "--engine",
    default=EVENTS,
    show_default=True,
    help="events: message by message. fast: compiled kernels, for starts of al, le-a, le-m, le-s, "
    "sup and probabilistic; other random numbers, the same laws.",
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
    type=click.IntRange(0, MAX_RUNS),
    default=0,
    show_default=True,
    help="The number of the first run: replays what a verdict names.",
)
@click.option("--digest", is_flag=True, help="Report a digest of everything that happened.")
@click.option("--check", is_flag=True, help="Exit 1 if a property is violated in any run.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def sim(
    protocol: str,
    runs: int,
    jobs: int,
    engine: str,
    number: int,
    trace_to: Path | None,
    digest: bool,
    check: bool,
    as_json: bool,
    **typed: Any,
) -> int:
    """Run PROTOCOL in the deterministic world and report what it cost.

    \b
    hustings sim bully -n 64 --scenario leader-crash --detector 1
    hustings sim ring -n 8 --initiator 3 --trace ring.jsonl
    hustings sim bully -n 8 --scenario leader-crash --fault crash:7@2.5 --check
    hustings sim sup -n 500 --delay 0.1 --loss 0.4 --runs 10000 --engine fast
    hustings sim --scenarios
    """
    check_engine(engine, typed["max_events"], trace=trace_to, digest=digest, check=check)
    options = Options(**typed)
    experiment = build(find(protocol), options, digest=digest, counted=engine == FAST)
    if engine == FAST:
        admit(experiment)
    remarks = remarks_on(experiment, options)
    for sentence in remarks:
        warn(sentence)
    if engine == FAST:
        result = run_fast(experiment, number, runs, jobs)
    else:
        result = _run(experiment, number, runs, jobs, trace_to)
    for sentence in [*_shortfall(result), *given_up(result), *remark_on(result.course)]:
        warn(sentence)
        remarks.append(sentence)
    if as_json:
        show_json({**to_json(experiment, result, remarks), "engine": engine})
    else:
        show_report(experiment, result)
        if trace_to is not None:
            click.echo(f"trace of run {number}: {trace_to}")
    return 1 if check and result.violated else 0


def _run(
    experiment: Experiment, number: int, runs: int, jobs: int, trace_to: Path | None
) -> Report:
    """The trace appears under its name when all runs have gone well, or not at all."""
    if trace_to is None:
        return _run_all(experiment, number, runs, jobs)
    with TraceFile(trace_to) as out:
        first = play(experiment, number, Tracer(experiment.header(number), out))
        if runs == 1:
            return report([first], number, experiment.course)
        return _run_all(experiment, number, runs, jobs)


def _run_all(experiment: Experiment, number: int, runs: int, jobs: int) -> Report:
    if jobs > 1:
        prepare(experiment, number)  # what is wrong with it is told before processes are started
    with progress(experiment.kind.about.name, runs) as tell:
        return run_all(experiment, runs, jobs, tell, first=number)


def _shortfall(result: Report) -> list[str]:
    """Why metrics have no value, where a limit is the reason."""
    lacking = [name for name, summary in result.metrics.items() if summary is None]
    limits = [name for name in ("until", "max-events") if name in result.endings]
    if not limits or all(name == "leader" for name in lacking):
        return []
    raised = " or ".join(f"--{name}" for name in limits)
    return [
        f"{lacking[0]} has no value: every run ended before what it measures came about; "
        f"raise {raised}"
    ]


def to_json(experiment: Experiment, result: Report, remarks: list[str]) -> dict[str, object]:
    """The report as scripts read it."""
    scenario = experiment.scenario
    shown: dict[str, object] = {
        "protocol": experiment.kind.about.name,
        "members": experiment.members,
        "runs": result.runs,
        "seed": experiment.seed,
        "engine": "events",
        "scenario": {
            "name": scenario.name,
            "crashed": scenario.crashed,
            "detectors": scenario.detectors,
            "initiators": scenario.initiators,
            "faults": len(scenario.extra),
            **_particulars(experiment),
        },
        "params": {"choice": experiment.choice.name, **msgspec.to_builtins(experiment.config)},
        "metrics": {
            name: NO_VALUE if summary is None else summary.to_json()
            for name, summary in result.metrics.items()
        },
        "verdicts": result.verdicts,
        "reasons": result.reasons,
        "endings": result.endings,
        "failure": result.failure,
        "remarks": remarks,
    }
    if experiment.guard is not None:
        shown["guard"] = msgspec.to_builtins(experiment.guard)
    if result.course is not None:
        shown["courses"] = {"simultaneous_leaders": result.course.to_json()}
    if result.digest is not None:
        shown["digest"] = result.digest
    return shown


def _particulars(experiment: Experiment) -> dict[str, object]:
    """What only some scenarios have."""
    scenario, rates = experiment.scenario, experiment.scenario.rates
    found: dict[str, object] = {}
    if experiment.announces and scenario.name != "start":
        found["warm_up_periods"] = warm_up(experiment.network.multicasts, experiment.members)
    if scenario.name == "churn":
        found |= {
            "arrivals": rates.arrivals,
            "departures": rates.departures,
            "orderly": rates.orderly,
        }
    if scenario.linger:
        found["linger"] = scenario.linger
    if experiment.endless:
        found["until"] = experiment.horizon
    if experiment.stack is not None:
        found |= {"substrate": "full", "settled_at": experiment.origin}
    return found


def show_report(experiment: Experiment, result: Report) -> None:
    """The report as people read it."""
    about = experiment.kind.about
    title = (
        f"{about.name}, {experiment.members} members, scenario {experiment.scenario.name}, "
        f"{result.runs} run{'s' if result.runs > 1 else ''}, seed {experiment.seed}"
    )
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
    show_table(title, columns, rows)
    if result.course is not None:
        show_course(result.course)
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

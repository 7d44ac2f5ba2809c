"""`hustings sim`: run one protocol in the deterministic world."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

import click
import msgspec

from hustings.byzantine import messages
from hustings.byzantine.adversaries import load
from hustings.byzantine.experiment import ByRounds
from hustings.cli.course import remark_on, show_course
from hustings.cli.engines import gather, given_up, pick
from hustings.cli.experiment import Options, group_options, world_options
from hustings.cli.guarding import remarks_on_outcome
from hustings.cli.numbers import REAL, WholeRange
from hustings.cli.output import show_json, show_table, warn
from hustings.cli.remarks import remarks_on, remarks_on_faults
from hustings.core.errors import BadInput
from hustings.protocols.registry import Use, find, use_of
from hustings.sim.experiment import Experiment, play
from hustings.sim.files import TraceFile
from hustings.sim.runs import MAX_JOBS, MAX_RUNS, Report, report
from hustings.sim.scenarios import SCENARIOS
from hustings.sim.steady import warm_up
from hustings.sim.trace import Tracer
from hustings.sweep.engines import Chosen
from hustings.sweep.goal import Goal, Precision, Runs
from hustings.sweep.limits import check_runs

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
    "--runs",
    type=WholeRange(1, MAX_RUNS),
    default=None,
    help="How many runs; with --stderr, at most how many.  [default: 1; with --stderr 100,000, or "
    "1,000,000 by engine fast]",
)
@click.option(
    "--stderr",
    type=REAL,
    default=None,
    metavar="ERROR",
    help="Play until the standard error of a metric's mean is at most this; if --runs do not "
    "suffice, report what was reached and exit 2.",
)
@click.option(
    "--metric",
    default=None,
    metavar="NAME",
    help="With --stderr: which metric.  [default: strong, tmax or time, the first that there is]",
)
@click.option(
    "--jobs",
    type=WholeRange(1, MAX_JOBS),
    default=1,
    show_default=True,
    help="On how many processes.",
)
@click.option(
    "--engine",
    default=None,
    help="events: message by message. fast: compiled kernels, for starts of al, le-a, le-m, le-s, "
    "sup and probabilistic, and for committee, committee-agreement and committee-coin; other "
    "random numbers, the same laws. auto: the better one for what is asked, and says why.  "
    "[default: events; auto for these three]",
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
    help="The number of the first run: replays what a verdict names.",
)
@click.option("--digest", is_flag=True, help="Report a digest of everything that happened.")
@click.option("--check", is_flag=True, help="Exit 1 if a property is violated in any run.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def sim(
    protocol: str,
    jobs: int,
    engine: str | None,
    number: int,
    trace_to: Path | None,
    check: bool,
    as_json: bool,
    **typed: Any,
) -> int:
    """Run PROTOCOL in the deterministic world and report what it cost.

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
    prepared = prepare(protocol, engine, typed, trace=trace_to, check=check)
    chosen, goal, remarks = prepared.chosen, prepared.goal, list(prepared.remarks)
    experiment = chosen.experiment
    check_runs(chosen.engine.name, experiment.members, prepared.most, jobs)
    for sentence in remarks:
        warn(sentence)
    result, short = _run(chosen, goal, number, jobs, trace_to)
    for sentence in [
        *(_shortfall(result) if experiment.scenario.mobility is None else []),
        *given_up(result),
        *remark_on(result.course),
        *remarks_on_outcome(experiment, result),
        *remarks_on_faults(experiment, result),
    ]:
        warn(sentence)
        remarks.append(sentence)
    if as_json:
        shown = to_json(experiment, result, remarks)
        show_json({**shown, "engine": chosen.engine.name, **_choices(prepared, result, short)})
    else:
        show_report(experiment, result)
        if trace_to is not None:
            click.echo(f"trace of run {number}: {trace_to}")
    if short is not None:
        raise BadInput(short)
    return 1 if check and result.violated else 0


@dataclass(frozen=True, slots=True)
class Prepared:
    """One command line: what is played, by whom, and how often."""

    chosen: Chosen
    goal: Goal
    most: int  # runs
    remarks: list[str]
    order: str | None = None  # of ids round a ring, as it was typed


def prepare(
    protocol: str, engine: str | None, typed: dict[str, Any], **judging: object
) -> Prepared:
    """Everything about a command line before it is played, from what was typed."""
    given = dict(typed)
    runs, stderr = given.pop("runs"), given.pop("stderr")
    metric, digest = given.pop("metric"), given.pop("digest")
    if metric is not None and stderr is None:
        raise BadInput("--metric goes with --stderr, the standard error that it shall have")
    options = Options(**given)
    kind = find(protocol)
    if use_of(kind) is Use.ROUNDS:
        load()
    # Before the engine is known, so is not its bound: an error asked for means many runs.
    expected = runs or (1 if stderr is None else MAX_RUNS)
    chosen = pick(kind, options, engine, expected, digest=digest, **judging)
    most = runs or (1 if stderr is None else chosen.engine.most)
    goal: Goal = Runs(most) if stderr is None else Precision(stderr, most, metric)
    remarks = remarks_on(chosen.experiment, options)
    if chosen.reason is not None:
        remarks.append(f"engine {chosen.engine.name}, for {chosen.reason}")
    return Prepared(chosen, goal, most, remarks, options.order)


def _choices(prepared: Prepared, result: Report, short: str | None) -> dict[str, object]:
    """What was left to us, as scripts read it."""
    shown: dict[str, object] = {}
    if prepared.order is not None:
        shown["order"] = prepared.order
    if prepared.chosen.reason is not None:
        shown["engine_reason"] = prepared.chosen.reason
    if isinstance(prepared.goal, Precision):
        metric = prepared.goal.aim(result.metrics)
        summary = result.metrics[metric]
        shown["precision"] = {
            "metric": metric,
            "target": prepared.goal.stderr,
            "stderr": None if summary is None else summary.stderr,
            "most_runs": prepared.most,
            "reached": short is None,
        }
    return shown


def _run(
    chosen: Chosen, goal: Goal, number: int, jobs: int, trace_to: Path | None
) -> tuple[Report, str | None]:
    """The trace appears under its name when all runs have gone well, or not at all."""
    if trace_to is None:
        return gather(chosen, goal, number, jobs)
    experiment = chosen.experiment
    with TraceFile(trace_to) as out:
        player = messages.play if isinstance(experiment, ByRounds) else play
        first = player(experiment, number, Tracer(experiment.header(number), out))
        if goal == Runs(1):
            return report([first], number, experiment.course), None
        return gather(chosen, goal, number, jobs)


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
    if scenario.mobility is not None:
        found["mobility"] = scenario.mobility.to_json()
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

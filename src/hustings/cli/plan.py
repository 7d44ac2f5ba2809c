"""`hustings plan`: from what a group needs to what it runs, with the evidence."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hustings.cli.options import WHOLE, RealRange, WholeRange, on_option
from hustings.cli.output import progress, show_json, show_table, warn
from hustings.core.config import parse_settings, plain
from hustings.core.errors import BadInput, UnknownName
from hustings.lab.runs.executors import MAX_JOBS

if TYPE_CHECKING:
    from hustings.lab.plans.committee import CommitteePlan, Trial
    from hustings.lab.plans.explain import Explained
    from hustings.lab.plans.planned import GroupPlan, PlannedOption
    from hustings.sim.environment import Environment

MOST_MEMBERS = 10_000_000
COMMITTEE = "committee"
FEASIBLE, INFEASIBLE, UNDECIDED = 0, 1, 2
GOALS = ("failover_p99", "wrong", "two_leaders", "survive", "bytes_", "engines", "prefer")
WORDS = (
    *("sites", "within", "between", "loss", "between_loss", "burst"),
    *("pause_max", "pause", "pause_rate", "drift"),
)


@click.command()
@click.argument("what", required=False, metavar="[FILE|committee]")
@click.option(
    "-n",
    "--members",
    type=WholeRange(2, MOST_MEMBERS),
    help="The number of members.",
)
@click.option("--sites", metavar="A=N,B=N", help="How many members stand at each site.")
@click.option("--within", metavar="LAW", help="Delay within a site, one way. [default: 500us]")
@click.option(
    "--between",
    multiple=True,
    metavar="A,B=LAW",
    help="Delay between two sites, one way, as a,b=40ms.",
)
@click.option("--loss", metavar="SHARE", help="The share of messages that is lost. [default: 0%]")
@click.option("--between-loss", multiple=True, metavar="A,B=SHARE", help="The same between sites.")
@click.option("--burst", type=RealRange(1), metavar="N", help="Mean length of bursts of losses.")
@click.option("--pause-max", metavar="TIME", help="The longest time that a process stands still.")
@click.option(
    "--pause", metavar="LAW", help="The lengths of pauses. [default: exponential, pause-max/8]"
)
@click.option("--pause-rate", metavar="RATE", help="Pauses of one member. [default: 6/h]")
@click.option("--drift", metavar="SHARE", help="The error of clocks, as 50ppm. [default: 0]")
@click.option(
    "--environment",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="An environment file instead of the options above.",
)
@click.option(
    "--failover-p99",
    metavar="TIME",
    help="Goal: 99 of 100 failovers are over within this time.",
)
@click.option("--wrong", metavar="RATE", help="Goal: most wrong failovers, as 1/month.")
@click.option("--two-leaders", metavar="TIME", help="Goal: never, or for at most this time.")
@click.option(
    "--survive", multiple=True, metavar="WHAT", help="Goal: site, engine, or '2 members'."
)
@click.option("--bytes", "bytes_", metavar="RATE", help="Goal: most bytes of a member, as 100/s.")
@click.option("--engines", metavar="NAMES", help="Engines that may be the guard, as etcd,postgres.")
@click.option("--prefer", metavar="WHAT", help="calm, speed or bytes, where goals leave a choice.")
@click.option(
    "--explain",
    "judged",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Judge the configuration in a hustings.toml instead.",
)
@click.option(
    "--verify",
    metavar="TIME",
    help="Try the first configuration on real processes of this machine for so long, as 5m.",
)
@click.option("--group", metavar="NAME", help="With --explain: the group, if there are several.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="committee: b, adversary (aware: the worst of all corruptions), and fixed settings.",
)
@click.option(
    "--bits",
    type=RealRange(0, min_open=True),
    help="committee: the most bits that a member may send.",
)
@click.option(
    "--effort",
    default="usual",
    show_default=True,
    help="quick, usual or thorough: how much is played.",
)
@click.option("--seed", type=WHOLE, default=0, show_default=True, help="Decides everything random.")
@click.option(
    "--jobs",
    type=WholeRange(1, MAX_JOBS),
    help="The number of workers; on dask:// all workers play. [default: 1, at most 2 for a group]",
)
@on_option("threads")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write the plan, its files and its picture into this folder.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def plan(what: str | None, as_json: bool, output: Path | None, **options: Any) -> int:
    """Find what a group should run, from what it needs and where it lives.

    The goals are met by configurations that are played as they would be deployed, on a virtual
    clock, with the delays, losses and pauses of the environment. The answer is up to four
    configurations that no other beats in everything, each with predicted values, their intervals
    and their methods, the goal that forces each setting, a hustings.toml, and alarms. FILE holds
    goals, in a table [goals], and an environment. With --explain a configuration is judged.

    Exit code 0: a configuration meets all goals. 1: none does, and the nearest goals are shown. 2:
    this effort leaves it undecided, or bad input.

    For example --members 40 --sites a=20,b=20 --between a,b=40ms --loss 1% --burst 5 --pause-max
    800ms --failover-p99 5s --wrong 1/month --two-leaders never; or --explain hustings.toml with
    members, losses and goals.

    `hustings plan committee` proposes settings for an election among Byzantine members, and shows
    how they did against attacks. It exits with 1 if no settings elect a good leader.

    \b
    hustings plan committee -n 500 --set b=0.1 --effort quick
    hustings plan committee -n 500 --set b=0.1 --set adversary=greedy --bits 2e6 --effort quick
    """
    if what == COMMITTEE:
        return _committee(as_json, output, options)
    if what is not None and "." not in what and not Path(what).exists():
        raise UnknownName("election to plan, or file of goals", what, [COMMITTEE])
    for name in ("settings", "bits", "where"):
        if options[name]:
            flag = {"settings": "set", "where": "on"}.get(name, name)
            raise BadInput(f"--{flag} goes with hustings plan committee")
    goals, environment = _asked(what, options)
    jobs = options["jobs"] or min(2, os.cpu_count() or 1)
    more = {"effort": options["effort"], "seed": options["seed"], "jobs": jobs}
    if options["judged"] is not None:
        if options["verify"]:
            raise BadInput("--verify goes with a plan: lab.verify tries one configuration")
        return _explain(options, goals, environment, more, as_json, output)
    if options["group"]:
        raise BadInput("--group goes with --explain")
    if output is not None:
        _check_folder(output)
    from hustings.lab.planning import plan as lab_plan

    with progress("rounds") as tell:
        found = lab_plan(
            goals=goals, environment=environment, verify=options["verify"], tell=tell, **more
        )
    if output is not None:
        _write(output, found)
    if as_json:
        show_json(found.to_json())
    else:
        show_plan(found)
    return {"feasible": FEASIBLE, "infeasible": INFEASIBLE}.get(found.verdict, UNDECIDED)


def _asked(what: str | None, options: dict[str, Any]) -> tuple[Any, Any]:
    """The goals and the environment, from a file or from options."""
    goals = {name.rstrip("_"): options[name] for name in GOALS if options[name]}
    words = {name: options[name] for name in ("members", *WORDS) if options[name]}
    if what is not None:
        if words or options["environment"] is not None:
            given = next(iter(words), "environment").replace("_", "-")
            raise BadInput(f"{what} says the environment: leave --{given} out")
        if goals:
            given = next(iter(goals)).replace("_", "-")
            raise BadInput(f"{what} says the goals: leave --{given} out")
        from hustings.lab.plans.asked import asked_in_file

        asked = asked_in_file(Path(what))
        return asked.goals, asked.environment
    if options["environment"] is not None:
        return goals, _environment(options["environment"], words)
    return goals, words


def _environment(path: Path, words: dict[str, Any]) -> Environment:
    from hustings.sim.environment import read_environment

    others = [name for name in words if name != "members"]
    if others:
        raise BadInput(f"--environment says that, too: leave --{others[0].replace('_', '-')} out")
    found = read_environment(path)
    if "members" not in words:
        return found
    if found.members is not None:
        raise BadInput(f"{path} says how large the group is: leave --members out")
    from dataclasses import replace

    return replace(found, members=words["members"])


def _explain(
    options: dict[str, Any],
    goals: Any,
    environment: Any,
    more: dict[str, Any],
    as_json: bool,
    output: Path | None,
) -> int:
    from hustings.lab.planning import explain

    if output is not None:
        raise BadInput("--output goes with a plan: --explain writes no files")
    with progress("rounds") as tell:
        found = explain(
            options["judged"], goals, environment, group=options["group"], tell=tell, **more
        )
    if as_json:
        show_json(found.to_json())
    else:
        show_explained(found)
    return {"met": FEASIBLE, "missed": INFEASIBLE}.get(found.verdict, UNDECIDED)


# What people read


def show_plan(found: GroupPlan) -> None:
    """A plan for a group as people read it."""
    for each in found.impossible:
        click.echo(f"impossible: {each.because}\n   nearest: {each.nearest}")
    tried = found.found
    if found.options:
        show_table(
            f"{found.verdict}: {tried.tried} configurations tried, "
            f"{sum(tried.pruned.values())} ruled out by closed forms, {tried.played} played",
            ["", "goal", "wanted", "predicted", "from", "to", "margin", ""],
            [row for option in found.options for row in _predicted(option)],
            "the interval has a confidence of 95 %; margin: the part of the goal that is left",
        )
        _show_best(found.options[0])
    elif not found.impossible:
        warn("no configuration that was tried can meet the goals")
    _show_verified(found)
    for sentence in found.assumptions:
        click.echo(sentence)
    click.echo(f"replay: {found.command}")


def _show_verified(found: GroupPlan) -> None:
    """What real processes did, if they were asked."""
    if found.unverified:
        warn(f"not verified: {found.unverified}")
    trial = found.verification
    if trial is None:
        return
    show_table(
        f"A: {trial.members} real processes for {trial.seconds:g} s, {trial.failovers} failovers",
        ["what", "predicted", "measured", "samples", ""],
        [each.cells() for each in trial.rows],
        "; ".join(trial.notes),
    )


def _predicted(option: PlannedOption) -> list[list[object]]:
    from hustings.lab.plans.planned import wanted_words

    rows: list[list[object]] = []
    for place, each in enumerate(option.played.predictions):
        margin = each.margin
        rows.append(
            [
                option.name if place == 0 else "",
                each.goal,
                wanted_words(each) or "-",
                each.show(each.value),
                each.show(each.low),
                each.show(each.high),
                "" if margin is None else f"{100 * margin:.0f} %",
                each.verdict,
            ]
        )
    if option.played.broken:
        rows.append(["", "survive", "", "; ".join(option.played.broken), "", "", "", "missed"])
    return rows


def _show_best(option: PlannedOption) -> None:
    """The first configuration: why its settings, what they bear, how to run it."""
    show_table(
        f"{option.name}: settings that a goal forces; all others have their defaults",
        ["setting", "value", "forced by", "because"],
        [[each.setting, each.value, each.goal, each.because] for each in option.changed],
    )
    show_table(
        f"{option.name}: methods",
        ["goal", "method"],
        [[each.goal, each.method] for each in option.played.predictions],
    )
    show_table(
        f"{option.name}: by how much an assumption may worsen",
        ["assumption", "assumed", "breaks at", "goal"],
        [
            [each.assumption, each.assumed, each.breaks_at or "not below 64 times", each.goal]
            for each in option.sensitivity()
        ],
    )
    show_table(
        f"{option.name}: alarms",
        ["metric", "alarm if it", "because"],
        [[each.metric, each.condition, each.because] for each in option.alarms()],
    )
    click.echo(f"# hustings.toml of the first member ({option.name})")
    click.echo(option.to_toml())
    lines = option.run_lines()
    for line in lines:
        click.echo(f"{line} -- COMMAND")
    if not lines:
        click.echo(
            "hustings run cannot keep these goals: ending a command takes a part of the lease. Do "
            "the work in the member's process, with hustings.join"
        )


def show_explained(found: Explained) -> None:
    """What a configuration does, as people read it."""
    option = found.option()
    show_table(
        f"{found.verdict}: {found.configuration.protocol}"
        + (f" with {found.configuration.guard}" if found.configuration.guard else ""),
        ["", "goal", "wanted", "predicted", "from", "to", "margin", ""],
        _predicted(option),
        "the interval has a confidence of 95 %; margin: the part of the goal that is left",
    )
    for sentence in found.contradictions:
        click.echo(f"contradiction: {sentence}")
    show_table(
        "by how much an assumption may worsen",
        ["assumption", "assumed", "breaks at", "goal"],
        [
            [each.assumption, each.assumed, each.breaks_at or "not below 64 times", each.goal]
            for each in option.sensitivity()
        ],
    )
    for sentence in found.assumptions:
        click.echo(sentence)
    click.echo(f"replay: {found.command}")


def _check_folder(folder: Path) -> None:
    """Refuse before anything is played a folder whose files would be lost, or that is closed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise BadInput(f"--output {folder} has files: name a new folder")
    except OSError as error:
        raise BadInput(f"--output {folder} cannot be a folder: {error.strerror}") from None
    if not os.access(folder, os.W_OK):
        raise BadInput(f"--output {folder} cannot be written")


def _write(folder: Path, found: GroupPlan) -> None:
    """The plan's files: for each configuration its hustings.toml and its lines."""
    files: dict[str, bytes] = {
        "plan.json": (json.dumps(plain(found.to_json()), indent=2) + "\n").encode(),
        "environment.toml": found.environment.to_toml().encode(),
        "replay.sh": f"{found.command}\n".encode(),
    }
    for option in found.options:
        files[f"{option.name}/hustings.toml"] = option.to_toml().encode()
        lines = "".join(f"{line} -- COMMAND\n" for line in option.run_lines())
        files[f"{option.name}/run.txt"] = lines.encode()
    if found.options:
        try:
            files |= {f"plan.{kind}": data for kind, data in found.plot().items()}
        except BadInput as missing:  # all else is written
            warn(f"no picture: {missing}")
    try:
        for name, data in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    except OSError as error:
        raise BadInput(f"cannot write into {folder}: {error.strerror}") from None


# The committee


def _committee(as_json: bool, output: Path | None, options: dict[str, Any]) -> int:
    for name in (*GOALS, *WORDS, "environment", "judged", "group", "verify"):
        if options[name]:
            flag = {"judged": "explain"}.get(name, name.rstrip("_").replace("_", "-"))
            raise BadInput(f"--{flag} is about a group, and not about a committee")
    if output is not None:
        raise BadInput("--output is about a group, and not about a committee")
    if options["members"] is None:
        raise click.UsageError("Missing option '-n' / '--members'.")
    from hustings.lab.planning import plan as lab_plan

    settings: Sequence[str] = options["settings"]
    with progress("trials") as tell:
        found = lab_plan(
            COMMITTEE,
            members=options["members"],
            settings=settings,
            bits=options["bits"],
            effort=options["effort"],
            seed=options["seed"],
            jobs=options["jobs"] or 1,
            on=options["where"],
            tell=tell,
        )
    if as_json:
        show_json(found.to_json())
    else:
        show(found, str(parse_settings(settings).get("adversary", "random")))
    return 0 if found.proposed is not None else 1


def show(found: CommitteePlan, adversary: str) -> None:
    """The plan as people read it."""
    show_table(
        f"{found.members:,} members, b = {found.b:g}, adversary {adversary}: "
        f"{found.tried} networks tried",
        ["", "settings", "P(good leader)", "+-", "worst attack", "informed", "bits", "most bits"],
        [
            [
                "->" if trial is found.proposed else "",
                " ".join(f"{name}={value}" for name, value in trial.settings),
                round(trial.score, 3),
                _error(trial),
                trial.worst,
                round(trial.informed, 3),
                f"{trial.bits_mean:.2g}",
                f"{trial.bits_max:.2g}",
            ]
            for trial in found.front
        ],
        "none of these is beaten in both success and cost; bits are what a good member sends",
    )
    if found.proposed is None:
        warn("nothing that was tried elects a good leader against this adversary")
        return
    words = "".join(f" --set {name}={value}" for name, value in found.proposed.settings)
    click.echo(
        f"hustings sim committee -n {found.members} --set b={found.b:g} "
        f"--set adversary={found.proposed.worst}{words} --engine fast"
    )


def _error(trial: Trial) -> float | None:
    error = trial.success[trial.worst].stderr
    return None if error is None else round(error, 3)

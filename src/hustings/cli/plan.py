"""`hustings plan`: which settings to choose, with the evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hustings.cli.options import WHOLE, RealRange, WholeRange, on_option
from hustings.cli.output import progress, show_json, show_table, warn
from hustings.core.config import parse_settings
from hustings.lab.runs.executors import MAX_JOBS

if TYPE_CHECKING:
    from hustings.lab.plans.committee import CommitteePlan, Trial

MOST_MEMBERS = 10_000_000


@click.command()
@click.argument("election")
@click.option(
    "-n", "members", type=WholeRange(2, MOST_MEMBERS), required=True, help="The number of members."
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="b, adversary (aware: the worst of all corruptions), and settings that are fixed.",
)
@click.option(
    "--bits", type=RealRange(0, min_open=True), help="The most bits that a member may send."
)
@click.option(
    "--effort",
    default="usual",
    show_default=True,
    help="quick, usual or thorough: the number of runs of each candidate.",
)
@click.option("--seed", type=WHOLE, default=0, show_default=True, help="Decides everything random.")
@click.option(
    "--jobs",
    type=WholeRange(1, MAX_JOBS),
    default=1,
    show_default=True,
    help="The number of workers; on dask:// all workers play.",
)
@on_option("threads")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def plan(
    election: str,
    members: int,
    settings: tuple[str, ...],
    bits: float | None,
    effort: str,
    seed: int,
    jobs: int,
    where: str | None,
    as_json: bool,
) -> int:
    """Propose settings for ELECTION in a group of n, and show how they did against attacks.

    Exits with 1 if no settings that were tried elect a good leader.

    \b
    hustings plan committee -n 500 --set b=0.1 --effort quick
    hustings plan committee -n 500 --set b=0.1 --set adversary=greedy --bits 2e6 --effort quick
    """
    from hustings.lab.planning import plan as lab_plan

    with progress("trials") as tell:
        found = lab_plan(
            election,
            members=members,
            settings=settings,
            bits=bits,
            effort=effort,
            seed=seed,
            jobs=jobs,
            on=where,
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

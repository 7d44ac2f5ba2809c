"""`hustings plan`: which settings to take, with the evidence."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import click

from hustings.cli.options import WHOLE, RealRange, WholeRange
from hustings.cli.output import show_json, show_table, steps, warn
from hustings.core.errors import UnknownName
from hustings.lab import parsing
from hustings.protocols.committee.adversary import known

if TYPE_CHECKING:
    from hustings.lab.byzantine.planning import CommitteePlan, Trial

PLANNED = ("committee",)
AWARE = "aware"
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
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def plan(
    election: str,
    members: int,
    settings: tuple[str, ...],
    bits: float | None,
    effort: str,
    seed: int,
    as_json: bool,
) -> int:
    """Propose settings for ELECTION in a group of n, and show how they did against attacks.

    Exits with 1 if no settings that were tried elect a good leader.

    \b
    hustings plan committee -n 500 --set b=0.1 --effort quick
    hustings plan committee -n 500 --set b=0.1 --set adversary=greedy --bits 2e6 --effort quick
    """
    if election not in PLANNED:
        raise UnknownName("election to plan", election, PLANNED)
    import_module("hustings.lab.kernels.compiling")  # for what it says when it cannot be imported
    from hustings.lab.byzantine.adversaries import load
    from hustings.lab.byzantine.planning import EFFORTS, attacks_of, make_plan

    load()
    if effort not in EFFORTS:
        raise UnknownName("effort", effort, EFFORTS)
    given: dict[str, object] = {**parsing.settings(settings)}
    adversary = str(given.pop("adversary", "random"))
    _check_words(adversary)
    with steps() as tell:
        found = make_plan(
            given,
            members,
            attacks_of(adversary),
            seed=seed,
            effort=effort,
            most_bits=bits,
            tell=tell,
        )
    if as_json:
        show_json(to_json(found))
    else:
        show(found, adversary)
    return 0 if found.proposed is not None else 1


def _check_words(adversary: str) -> None:
    """`aware` is a word for plans alone: whoever mistypes it shall hear of it."""
    words = [*known(), AWARE]
    for word in adversary.split("+"):
        if word.strip() not in words:
            raise UnknownName("adversary", word.strip(), words)


def to_json(found: CommitteePlan) -> dict[str, object]:
    """The plan as scripts read it."""
    return {
        "election": "committee",
        "members": found.members,
        "b": found.b,
        "attacks": list(found.attacks),
        "tried": found.tried,
        "proposed": None if found.proposed is None else _trial_json(found.proposed),
        "front": [_trial_json(trial) for trial in found.front],
    }


def _trial_json(trial: Trial) -> dict[str, object]:
    return {
        "settings": dict(trial.settings),
        "success": trial.score,
        "worst_attack": trial.worst,
        "by_attack": {name: each.to_json() for name, each in trial.success.items()},
        "informed": trial.informed,
        "bits_mean": trial.bits_mean,
        "bits_max": trial.bits_max,
        "rounds": trial.rounds,
        "runs": trial.runs,
    }


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

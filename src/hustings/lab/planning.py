"""`plan`: from what is needed to what is run, with the evidence.

`plan(goals=..., environment=...)` is about a group, and `plan("committee", ...)` about an election
among Byzantine members. `explain` judges a configuration that exists.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from hustings.core.config import parse_settings
from hustings.core.durations import parse_duration
from hustings.core.errors import BadInput, UnknownName
from hustings.lab.byzantine.adversaries import load
from hustings.lab.options import Options
from hustings.lab.options import Settings as Given
from hustings.lab.plans.asked import asked_in_words, assumptions
from hustings.lab.plans.candidates import Space, impossible
from hustings.lab.plans.explain import Explained
from hustings.lab.plans.explain import explain as explain_file
from hustings.lab.plans.goals import GroupGoals
from hustings.lab.plans.intervals import Interval
from hustings.lab.plans.planned import GroupPlan
from hustings.lab.plans.real_group import NotVerified
from hustings.lab.plans.search import EFFORTS as WORK
from hustings.lab.plans.search import (
    MISSED,
    SearchedPlan,
    check_goals,
    nearest,
    nearest_played,
    search,
)
from hustings.lab.plans.verify import LEAST
from hustings.lab.plans.verify import verify as verify_configuration
from hustings.lab.runs.playing import Progress, Tell
from hustings.lab.simulation import check_jobs, check_whole
from hustings.protocols.committee.adversary import known
from hustings.sim.environment import Environment

if TYPE_CHECKING:
    from hustings.lab.plans.committee import CommitteePlan


@overload
def plan(
    election: None = None,
    *,
    goals: GroupGoals | Mapping[str, object],
    environment: Environment | Mapping[str, object],
    effort: str = ...,
    seed: int = ...,
    jobs: int = ...,
    verify: str | float | None = ...,
    tell: Tell | None = ...,
) -> GroupPlan: ...
@overload
def plan(
    election: str,
    *,
    members: int,
    settings: Given = ...,
    bits: float | None = ...,
    effort: str = ...,
    seed: int = ...,
    jobs: int = ...,
    on: str | Executor | None = ...,
    tell: Tell | None = ...,
) -> CommitteePlan: ...
def plan(election: str | None = None, **options: Any) -> GroupPlan | CommitteePlan:
    """A plan for a group, or for an election among Byzantine members: as `hustings plan`.

    For a group give `goals` and `environment`, see `plan_group`; for `election="committee"` see
    `plan_committee`.

    >>> plan("committee", members=60, settings={"b": 0.05, "c0": 16}, effort="quick").members
    60
    """
    if election is not None:
        return plan_committee(election, **options)
    return plan_group(**options)


def plan_committee(
    election: str,
    *,
    members: int,
    settings: Given = (),
    bits: float | None = None,
    effort: str = "usual",
    seed: int = 0,
    jobs: int = 1,
    on: str | Executor | None = None,
    tell: Tell | None = None,
) -> CommitteePlan:
    """Propose settings for an election in a group, with the evidence: as `hustings plan`.

    `settings` are fixed settings; the adversary `aware` stands for the worst of all corruptions.

    >>> plan_committee("committee", members=60, settings={"b": 0.05}, effort="quick").members
    60
    """
    import_module("hustings.lab.kernels.compiling")  # its sentence says which extra is missing
    from hustings.lab.plans.committee import (  # noqa: PLC0415 (an extra: groups need none)
        EFFORTS,
        MOST_MEMBERS,
        PLANNED,
        attacks_of,
        make_plan,
    )

    if election not in PLANNED:
        raise UnknownName("election to plan", election, PLANNED)
    if effort not in EFFORTS:
        raise UnknownName("effort", effort, EFFORTS)
    check_whole("members", members, 2, MOST_MEMBERS)
    check_jobs(jobs, on)
    load()
    words = Options.of(settings=settings).settings
    given: dict[str, object] = {**parse_settings(words)}
    adversary = str(given.pop("adversary", "random"))
    for word in adversary.split("+"):
        if word.strip() not in (*known(), "aware"):
            raise UnknownName("adversary", word.strip(), [*known(), "aware"])
    found = make_plan(
        given,
        members,
        attacks_of(adversary),
        seed=seed,
        effort=effort,
        most_bits=bits,
        jobs=jobs,
        on=on,
        tell=tell,
    )
    options = ["-n", str(members), *(f"--set={word}" for word in words)]
    options += [] if bits is None else [f"--bits={bits}"]
    options += [f"--effort={effort}", f"--seed={seed}"]
    return replace(found, command=shlex.join(["hustings", "plan", election, *options]))


def plan_group(
    goals: GroupGoals | Mapping[str, object],
    environment: Environment | Mapping[str, object],
    *,
    effort: str = "usual",
    seed: int = 0,
    jobs: int = 1,
    verify: str | float | None = None,
    tell: Tell | None = None,
) -> GroupPlan:
    """Configurations that meet goals in an environment, with the evidence: as `hustings plan`.

    Goals and environment are values, or the words of the command line: {"failover-p99": "5s"},
    {"members": 5, "within": "1ms", "loss": "1%"}. With `verify`, a time, the first configuration is
    tried on real processes for so long.
    """
    seconds = None if verify is None else _trial_time(verify)
    asked, place, words = _asked(goals, environment)
    _check(effort, jobs)
    check_goals(asked)
    space = impossible(asked, place)
    if space:
        found = SearchedPlan((), 0, {}, 0, Space(impossible=space), 0, 0)
    else:
        found = search(asked, place, effort=effort, seed=seed, jobs=jobs, tell=tell)
    if not any(each.verdict != MISSED for each in found.front):
        nearby = nearest_played(found.front) or nearest(asked, place)
        space = [*space, *([] if space else nearby)]
    given = assumptions(asked, place, words)
    line = shlex.join(_line(asked, words, [f"--effort={effort}", f"--seed={seed}"]))
    made = GroupPlan(asked, place, found, tuple(space), given, line)
    return made if seconds is None else _verified(made, seconds, seed, tell)


def _trial_time(verify: str | float) -> float:
    seconds = parse_duration(verify, "verify")
    if seconds < LEAST:
        raise BadInput(f"a verification takes {LEAST:g} s or more, not {seconds:g}")
    return seconds


def _verified(made: GroupPlan, seconds: float, seed: int, tell: Tell | None) -> GroupPlan:
    """The plan, with its first configuration tried on real processes."""
    if not made.options:
        return made

    def step(share: float, what: str) -> None:
        if tell is not None:
            tell(Progress(0, 1, round(share * seconds), round(seconds), 0, min(1.0, share)))

    best = made.options[0]
    wrong = best.played.of("wrong")
    rate = Interval(wrong.value, wrong.low, wrong.high, wrong.method)
    try:
        trial = verify_configuration(
            best.configuration,
            made.environment,
            best.played.observed,
            seconds=seconds,
            seed=seed,
            wrong=rate,
            tell=step,
        )
    except NotVerified as error:
        return replace(made, unverified=str(error))
    return replace(made, verification=trial)


def explain(
    path: str | Path,
    goals: GroupGoals | Mapping[str, object],
    environment: Environment | Mapping[str, object],
    *,
    group: str | None = None,
    effort: str = "quick",
    seed: int = 0,
    jobs: int = 1,
    tell: Tell | None = None,
) -> Explained:
    """What the configuration in a `hustings.toml` does: as `hustings plan --explain`."""
    asked, place, words = _asked(goals, environment)
    _check(effort, jobs)
    options: dict[str, Any] = {"group": group, "effort": effort, "seed": seed, "jobs": jobs}
    configuration, flaws, assumed, played = explain_file(
        Path(path), asked, place, tell=tell, **options
    )
    more = [f"--explain={path}", f"--effort={effort}", f"--seed={seed}"]
    more += [] if group is None else [f"--group={group}"]
    line = shlex.join(_line(asked, words, more))
    given = (*assumptions(asked, place, words), *assumed)
    return Explained(configuration, asked, place, flaws, given, played, line)


def _check(effort: str, jobs: int) -> None:
    if effort not in WORK:
        raise UnknownName("effort", effort, WORK)
    check_jobs(jobs, None)


def _asked(
    goals: GroupGoals | Mapping[str, object], environment: Environment | Mapping[str, object]
) -> tuple[GroupGoals, Environment, Mapping[str, object] | None]:
    """Goals and an environment, and the words that said it."""
    asked = goals if isinstance(goals, GroupGoals) else GroupGoals.parse(goals)
    if isinstance(environment, Environment):
        if environment.members is None:
            raise BadInput("the environment does not say how large the group is: add members")
        return asked, environment, None
    words = {name.replace("_", "-"): value for name, value in environment.items() if value}
    return asked, asked_in_words(words), words


def _line(goals: GroupGoals, words: Mapping[str, object] | None, more: Sequence[str]) -> list[str]:
    """The same as a command line."""
    line = ["hustings", "plan"]
    said: Mapping[str, object] = {"environment": "environment.toml"} if words is None else words
    for name, value in (*said.items(), *goals.words().items()):
        values = value if isinstance(value, list | tuple) else [value]
        line += [f"--{name}={each}" for each in values]
    return [*line, *more]

"""A configuration that exists, judged: what it does, which goals it misses, what contradicts."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

from hustings.core.errors import BadInput
from hustings.lab.plans.bounds import contradictions, members_of
from hustings.lab.plans.candidates import Proposal
from hustings.lab.plans.configuration import (
    Configuration,
    member_name,
    member_number,
    read_configuration,
)
from hustings.lab.plans.goals import GroupGoals
from hustings.lab.plans.planned import PlannedOption, told, wanted_words
from hustings.lab.plans.search import EFFORTS, MET, OPEN, PlayedProposal, judge, moved, play, scaled
from hustings.lab.runs.playing import Progress, Tell
from hustings.lab.tables import Table, as_notes
from hustings.sim.environment import Environment


@dataclass(frozen=True, slots=True)
class Explained(Table):
    """What a configuration does in an environment."""

    configuration: Configuration
    goals: GroupGoals
    environment: Environment
    contradictions: tuple[str, ...]
    assumptions: tuple[str, ...]
    played: PlayedProposal
    command: str = ""

    @property
    def verdict(self) -> str:
        """met, missed or undecided."""
        return self.played.verdict

    @property
    def missed(self) -> tuple[str, ...]:
        """The goals that it misses."""
        goals = [each.goal for each in self.played.predictions if each.verdict not in ("", MET)]
        certain = [each for each in goals if self.played.of(each).verdict != OPEN]
        return (*certain, *(["survive"] if self.played.broken else []))

    def option(self) -> PlannedOption:
        """The same as an option of a plan, for its sensitivity and its alarms."""
        return PlannedOption("this", self.played, self.environment)

    def rows(self) -> list[dict[str, object]]:
        """One row for each goal."""
        return [
            {**told(each), "wanted": wanted_words(each), "predicted": each.show(each.value)}
            for each in self.played.predictions
        ]

    def notes_html(self) -> str:
        """What contradicts, and what was assumed."""
        text = as_notes([*self.contradictions, *self.played.broken, *self.assumptions])
        return text + f"<pre>{escape(self.configuration.to_toml())}</pre>"

    def to_json(self) -> dict[str, object]:
        """As `hustings plan --explain --json` prints it."""
        return {
            "verdict": self.verdict,
            "missed": list(self.missed),
            "contradictions": list(self.contradictions),
            "assumptions": list(self.assumptions),
            "environment": self.environment.to_toml(),
            **{k: v for k, v in self.option().to_json().items() if k != "name"},
            "replay": self.command,
        }


def explain(
    path: Path,
    goals: GroupGoals,
    environment: Environment,
    *,
    group: str | None = None,
    effort: str = "quick",
    seed: int = 0,
    jobs: int = 1,
    tell: Tell | None = None,
) -> tuple[Configuration, tuple[str, ...], tuple[str, ...], PlayedProposal]:
    """The configuration of a file, what contradicts in it, what is assumed, and what was seen."""
    configuration, names = read_configuration(path, group)
    configuration, assumed = placed(configuration, names, environment)
    if configuration.voters and max(configuration.voters) > members_of(environment):
        raise BadInput(
            f"{member_name(max(configuration.voters))} is to vote, and the environment has "
            f"{members_of(environment)} members"
        )
    flaws = contradictions(configuration, environment)
    plan = EFFORTS[effort]
    smaller = environment
    if members_of(environment) > plan.members:
        smaller = scaled(environment, plan.members)
    last = plan.rounds[-1]
    seeds = [seed * 1_000_003 + 1 + each for each in range(min(8, last.seeds))]

    def step(done: int, count: int) -> None:
        if tell is not None:
            tell(Progress(0, 1, done, count, done, done / count))

    observed = play(
        moved(configuration, environment, smaller), goals, smaller, seeds, last, jobs, step
    )
    proposal = Proposal(configuration)
    played = judge(proposal, goals, environment, observed, smaller)
    return configuration, tuple(flaws), assumed, played


def placed(
    configuration: Configuration, names: list[str], environment: Environment
) -> tuple[Configuration, tuple[str, ...]]:
    """Put voters of other names where their names say, and say what is assumed.

    `m7` is member 7. A name that begins with a site's name stands at that site.
    """
    if not names or all(member_number(name) is not None for name in names):
        return configuration, ()
    sites = environment.sites
    if sites is None:
        return configuration, ()
    taken, numbers, unknown = dict[int, None](), [], []
    begins = [1 + sum(sites.sizes[:place]) for place in range(len(sites.sizes))]
    for turn, name in enumerate(names):
        fits = [p for p, site in enumerate(sites.names) if name.lower().startswith(site.lower())]
        place = max(fits, key=lambda p: len(sites.names[p])) if fits else turn % len(begins)
        if not fits:
            unknown.append(f"{name} at {sites.names[place]}")
        number = begins[place]
        while number in taken:
            number += 1
        taken[number] = None
        numbers.append(number)
    told: tuple[str, ...] = ()
    if unknown:
        told = (
            f"assumed: {', '.join(unknown)}, because the names do not say the site; where voters "
            "stand decides what the group survives",
        )
    return configuration.but(voters=tuple(numbers)), told

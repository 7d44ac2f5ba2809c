"""The options of a guard that confirms leaders, and how they become a configuration."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import click
import msgspec

from hustings.cli import reading
from hustings.core.choice import MemberId
from hustings.core.election import Election
from hustings.core.errors import BadInput, UnknownName
from hustings.core.numbers import parse_whole
from hustings.sim.build import ToVoting
from hustings.sim.experiment import Experiment
from hustings.sim.runs import Report
from hustings.sim.world import Ended
from hustings.substrate.confirmed import Confirmed

if TYPE_CHECKING:
    from hustings.protocols.quorum import QuorumConfig

GUARDS = ("none", "memory", "quorum")
VOTERS = 3

GUARD_OPTIONS = (
    click.option(
        "--guard",
        default="none",
        show_default=True,
        help="Who confirms leaders: none, memory (a register, number 0 in partitions), or quorum "
        "(the first members vote).",
    ),
    click.option(
        "--guard-set",
        "guard_settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="ttl (how long a leader is confirmed), drift (what clocks may differ), retry; for a "
        "quorum voters (3, 5 or 7).",
    ),
)


def lease(guard: str, typed: tuple[str, ...]) -> dict[str, str] | None:
    """What members ask the guard for, if there is one."""
    if guard not in GUARDS:
        raise UnknownName("guard", guard, GUARDS)
    given = reading.settings(typed)
    if guard == "none":
        if given:
            raise BadInput("--guard-set goes with --guard memory or --guard quorum")
        return None
    if guard == "quorum":
        given.pop("voters", None)
    return given


def voting(guard: str, typed: tuple[str, ...], members: int) -> ToVoting | None:
    """The first members as voters, if they are the guard."""
    if guard != "quorum":
        return None
    text = str(reading.settings(typed).get("voters", VOTERS))
    try:
        count = parse_whole(text)
    except ValueError:
        raise BadInput(f"voters must be a whole number, not {text!r}") from None
    if count > members:
        raise BadInput(f"{count} voters need as many members, and there are {members}")
    return partial(electorate, count)


@dataclass(frozen=True, slots=True)
class Voters:
    """Puts a part in the quorum round a member's election."""

    config: QuorumConfig

    def __call__(self, confirmed: Confirmed, present: tuple[MemberId, ...] = ()) -> Election:
        from hustings.protocols.quorum import Quorate

        return Quorate(confirmed, msgspec.structs.replace(self.config, voters=self.among(present)))

    def among(self, present: tuple[MemberId, ...]) -> tuple[MemberId, ...]:
        """The first members of those who are there from the beginning, if they are enough."""
        voters = self.config.voters
        return present[: len(voters)] if len(present) >= len(voters) else voters


def electorate(voters: int, delta: float) -> Voters:
    """Members 1 to `voters` as the guard, where messages take `delta` at most."""
    from hustings.protocols.quorum import QuorumConfig

    return Voters(QuorumConfig.parse({"delta": delta, "voters": tuple(range(1, voters + 1))}))


def remarks_on_guard(experiment: Experiment) -> list[str]:
    """What a guard cannot promise in this world."""
    guard, drift = experiment.guard, experiment.clocks.drift
    if guard is None or drift <= guard.drift:
        return []
    return [
        f"clocks drift by up to {drift:g}, and members count on {guard.drift:g}: two may lead at "
        "one time, with different tokens; --guard-set drift=... tells them"
    ]


def remarks_on_outcome(experiment: Experiment, result: Report) -> list[str]:
    """That nobody was confirmed, where a guard should have."""
    if lost := result.endings.get(Ended.UNCONFIRMABLE.value, 0):
        return [
            f"{lost} of {result.runs} runs were given up: nobody could be confirmed, and no fault "
            "was to come that could change it"
        ]
    if experiment.guard is None or result.metrics.get("leader") is not None:
        return []
    told = "no run ended with a confirmed leader that all live members hold"
    if isinstance(experiment.voting, Voters):
        voters = experiment.voting.config.voters
        needed = len(voters) // 2 + 1
        told += (
            f": its voters, {_named(experiment, experiment.voting)}, have to be up when they first "
            f"vote, and {needed} of them from then on"
        )
    return [told]


def _named(experiment: Experiment, voting: Voters) -> str:
    """Who votes, in words; where attributes are drawn, that may differ from run to run."""
    if any(values is None for _, values in experiment.attributes):
        return f"the first {len(voting.config.voters)} members that are there from the beginning"
    plan = experiment.plan(0)
    parts = experiment.cast(experiment.candidates(0, plan), plan)
    voters = voting.among(experiment.present(parts))
    return f"members {', '.join(map(str, voters))}"

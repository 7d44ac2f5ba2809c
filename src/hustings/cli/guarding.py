"""The options of a guard that confirms leaders, and how they become a configuration."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import click

from hustings.cli import reading
from hustings.core.election import Election
from hustings.core.errors import BadInput, UnknownName
from hustings.sim.experiment import Experiment
from hustings.substrate.confirmed import Confirmed, GuardConfig

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


def lease(guard: str, typed: tuple[str, ...], delta: float) -> GuardConfig | None:
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
    return GuardConfig.parse({"delta": delta, **given})


def voting(
    guard: str, typed: tuple[str, ...], delta: float, members: int
) -> Callable[[Confirmed], Election] | None:
    """The first members as voters, if they are the guard."""
    if guard != "quorum":
        return None
    from hustings.protocols.quorum import QuorumConfig

    text = str(reading.settings(typed).get("voters", VOTERS))
    count = int(text) if text.isdigit() else 0
    if count > members:
        raise BadInput(f"{count} voters need as many members, and there are {members}")
    config = QuorumConfig.parse({"delta": delta, "voters": tuple(range(1, count + 1))})
    return partial(_around, config)


def _around(config: QuorumConfig, confirmed: Confirmed) -> Election:
    from hustings.protocols.quorum import Quorate

    return Quorate(confirmed, config)


def remarks_on_guard(experiment: Experiment) -> list[str]:
    """What a guard cannot promise in this world."""
    guard, drift = experiment.guard, experiment.clocks.drift
    if guard is None or drift <= guard.drift:
        return []
    return [
        f"clocks drift by up to {drift:g}, and members count on {guard.drift:g}: two may lead at "
        "one time, with different tokens; --guard-set drift=... tells them"
    ]

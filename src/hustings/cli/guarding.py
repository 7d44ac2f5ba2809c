"""The options of a guard that confirms leaders, and how they become a configuration."""

from __future__ import annotations

import click

from hustings.cli import reading
from hustings.core.errors import BadInput, UnknownName
from hustings.sim.experiment import Experiment
from hustings.substrate.confirmed import GuardConfig

GUARDS = ("none", "memory")

GUARD_OPTIONS = (
    click.option(
        "--guard",
        default="none",
        show_default=True,
        help="Who confirms leaders: none, or memory (in the simulator; number 0 in partitions).",
    ),
    click.option(
        "--guard-set",
        "guard_settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="memory: ttl (how long a leader is confirmed), drift (what clocks may differ), retry.",
    ),
)


def lease(guard: str, typed: tuple[str, ...], delta: float) -> GuardConfig | None:
    """What members ask the guard for, if there is one."""
    if guard not in GUARDS:
        raise UnknownName("guard", guard, GUARDS)
    given = reading.settings(typed)
    if guard == "none":
        if given:
            raise BadInput("--guard-set goes with --guard memory")
        return None
    return GuardConfig.parse({"delta": delta, **given})


def remarks_on_guard(experiment: Experiment) -> list[str]:
    """What a guard cannot promise in this world."""
    guard, drift = experiment.guard, experiment.clocks.drift
    if guard is None or drift <= guard.drift:
        return []
    return [
        f"clocks drift by up to {drift:g}, and members count on {guard.drift:g}: two may lead at "
        "one time, with different tokens; --guard-set drift=... tells them"
    ]

"""The options of what lies under an election: ideal primitives, or gossip and bimodal multicast."""

from __future__ import annotations

import click
import msgspec

from hustings.cli import reading
from hustings.core.config import Config
from hustings.core.errors import BadInput, UnknownName
from hustings.substrate.stack import StackConfig

SUBSTRATES = ("ideal", "full")

SUBSTRATE_OPTIONS = (
    click.option(
        "--substrate",
        default="ideal",
        show_default=True,
        help="ideal (views and multicasts are given, with --view and --loss), or full (members "
        "gossip to find each other, and multicasts are repaired by anti-entropy).",
    ),
    click.option(
        "--substrate-set",
        "substrate_settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="full: T_gossip, fanout, view_size, T_fail, rounds, digests, and more.",
    ),
)


def stack_of(
    substrate: str, typed: tuple[str, ...], config: Config, members: int
) -> StackConfig | None:
    """What lies under an election with these settings, if that is more than the ideal."""
    if substrate not in SUBSTRATES:
        raise UnknownName("substrate", substrate, SUBSTRATES)
    given = reading.settings(typed)
    if substrate == "ideal":
        if given:
            raise BadInput("--substrate-set goes with --substrate full")
        return None
    around = config.surroundings()
    known: dict[str, object] = {"delta": config.delta}
    known |= StackConfig.for_group(members, around)
    if around.view_prob is not None and around.view_prob < 1.0:
        known["view_size"] = max(1, round(around.view_prob * (members - 1)))
    return StackConfig.parse({**known, **given})


def settings_upon(stack: StackConfig, config: Config) -> dict[str, object]:
    """Settings that an election upon a stack takes unless others are typed.

    A multicast is there when it is buffered no more, and the size of the group is what gossip says.
    """
    fields = [field.name for field in msgspec.structs.fields(config)]
    wanted: dict[str, object] = {"T_3": stack.buffering_time, "estimate": "gossip"}
    return {name: value for name, value in wanted.items() if name in fields}

"""The options of what lies under an election: ideal primitives, or gossip and bimodal multicast."""

from __future__ import annotations

import click

SUBSTRATE_OPTIONS = (
    click.option(
        "--membership",
        default="ideal",
        show_default=True,
        help="ideal (views and multicasts are given, with --view and --loss), or gossip (members "
        "gossip to find each other, and multicasts are repaired by anti-entropy).",
    ),
    click.option(
        "--gossip-set",
        "gossip_settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="gossip: T_gossip, fanout, view_size, T_fail, rounds, digests, and more.",
    ),
)

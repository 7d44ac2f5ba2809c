"""`hustings demo`: watch a group elect, lose and regain its leader."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hustings.cli.options import REAL, WHOLE
from hustings.core.errors import BadInput
from hustings.demo.simulated.story import FEWEST, MOST

if TYPE_CHECKING:
    from hustings.demo.live.scene import LivePlan

INTERRUPTED = 130
LONGEST = 3600.0
PROTOCOL, MEMBERS, SECONDS = "le-s", 15, 18.0
SIMULATED = "bully", 9, 36.0  # the same


@click.command()
@click.option("--protocol", help=f"A name, or file.py:Class.  [default: {PROTOCOL}]")
@click.option(
    "--members", "-n", type=WHOLE, help=f"Processes, from 3 to 100.  [default: {MEMBERS}]"
)
@click.option("--seconds", type=REAL, help=f"How long it takes, about.  [default: {SECONDS:g}]")
@click.option(
    "--seed", type=WHOLE, default=1, show_default=True, help="Decides random choices; time is real."
)
@click.option(
    "--preempt",
    is_flag=True,
    help="A better member that joins or returns displaces the leader, as in the protocol's paper.  "
    "[default: the leader stays]",
)
@click.option("--no-tty", is_flag=True, help="Plain lines instead of a picture.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.option(
    "--simulated",
    is_flag=True,
    help=(
        f"A simulated group of {FEWEST} to {MOST} instead (by default {SIMULATED[1]}, "
        f"{SIMULATED[0]}): same seed, same story, message by message."
    ),
)
def demo(
    protocol: str | None,
    members: int | None,
    seconds: float | None,
    seed: int,
    preempt: bool,
    no_tty: bool,
    as_json: bool,
    simulated: bool,
) -> int:
    """Watch real processes elect a leader, lose it in several ways, and agree again.

    The command starts a group of processes on this machine; each is a member, by hustings.join. The
    leader is killed and starts again, is stopped and continues; the group is partitioned and heals;
    the leader transfers leadership. A former leader that starts again follows the present one. With
    --preempt it leads again. The command ends with the measured times until all agreed; it exits
    with 1 if they did not agree in time. It needs no root, and leaves nothing running.

    \b
    hustings demo
    hustings demo --protocol bully --members 25
    hustings demo --protocol bully --preempt
    hustings demo --simulated --protocol ring --members 12 --seed 7
    """
    defaults = SIMULATED if simulated else (PROTOCOL, MEMBERS, SECONDS)
    protocol = defaults[0] if protocol is None else protocol
    members = defaults[1] if members is None else members
    seconds = defaults[2] if seconds is None else seconds
    if not 0.0 < seconds <= LONGEST:
        raise BadInput(f"seconds must lie above 0 and be at most {LONGEST:g}, not {seconds:g}")
    try:
        if simulated:
            if preempt:
                raise BadInput(
                    "--preempt goes without --simulated: there the protocol's own rule holds anyway"
                )
            return _simulated(protocol, members, seed, seconds, no_tty, as_json)
        from hustings.demo.live.scene import LivePlan  # no other command waits for the network

        return _live(LivePlan(members, protocol, seconds, seed, preempt), no_tty, as_json)
    except KeyboardInterrupt:
        click.echo("hustings: interrupted", err=True)
        return INTERRUPTED


def _simulated(
    protocol: str, members: int, seed: int, seconds: float, no_tty: bool, as_json: bool
) -> int:
    from hustings.cli.demo_film import film_demo, film_json

    if as_json:
        film_json(protocol, members, seed)
    else:
        film_demo(protocol, members, seed, seconds, no_tty)
    return 0


def _live(plan: LivePlan, no_tty: bool, as_json: bool) -> int:
    from hustings.cli.demo_live import live_demo, live_json

    return live_json(plan) if as_json else live_demo(plan, no_tty)

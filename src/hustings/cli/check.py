"""`hustings check`: every schedule of a small group, or a shortest counterexample."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from hustings.cli.options import WHOLE, WholeRange
from hustings.cli.output import show_json, show_table, warn
from hustings.explore.values import Ending, Progress
from hustings.lab.checking import MOST_MEMBERS, QUORUM, Checked
from hustings.lab.checking import check as lab_check

EXIT_CODES = {Ending.EXHAUSTED: 0, Ending.BROKEN: 1, Ending.MAX_STATES: 2, Ending.UNJUDGED: 2}


@click.command()
@click.argument("protocol")
@click.option(
    "-n",
    "--members",
    type=WholeRange(1, MOST_MEMBERS),
    default=3,
    show_default=True,
    help="Members; with quorum, see --voters.",
)
@click.option(
    "--voters", type=WHOLE, default=3, show_default=True, help="quorum: members that vote."
)
@click.option(
    "--candidates",
    type=WHOLE,
    default=2,
    show_default=True,
    help="quorum: members that ask for the lease.",
)
@click.option("--crashes", type=WHOLE, default=0, show_default=True, help="The number of crashes.")
@click.option(
    "--losses",
    type=WHOLE,
    default=0,
    show_default=True,
    help="The number of messages that are lost, or arrive at any later time.",
)
@click.option(
    "--wipes",
    type=WHOLE,
    default=0,
    show_default=True,
    help="The number of crashes that lose the disk, too.",
)
@click.option(
    "--eager", is_flag=True, help="quorum: a candidate that is beaten asks again at the next tick."
)
@click.option("--at-once", is_flag=True, help="A member that dies may be back in the same tick.")
@click.option(
    "--ticks",
    type=WHOLE,
    default=None,
    help="The length of a schedule.  [default: quorum 2, others 20]",
)
@click.option(
    "--delay",
    type=WHOLE,
    default=0,
    show_default=True,
    help="Ticks that a message may take; 0: it arrives in the tick it was sent in, in any order.",
)
@click.option(
    "--max-states",
    type=WHOLE,
    default=2_000_000,
    show_default=True,
    help="The largest number of states; then give up.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def check(
    protocol: str,
    members: int,
    voters: int,
    candidates: int,
    crashes: int,
    losses: int,
    wipes: int,
    eager: bool,
    at_once: bool,
    ticks: int | None,
    delay: int,
    max_states: int,
    as_json: bool,
) -> int:
    """Try every schedule of a tiny group on the real election PROTOCOL.

    It tries all orders in which messages arrive and timers fire, crashes at every point (also
    between storing and sending), lost and late messages. For quorum it checks that there are never
    two leaders at one time, and that tokens grow. For other elections it checks this, if every
    crash is noticed: when nothing is left to happen, all members that are up have one leader that
    is up.

    \b
    hustings check quorum --voters 3 --candidates 2 --ticks 1 --losses 1
    hustings check bully -n 3

    One crash and one lost message at any point are 234,080 states with --ticks 1, and more than
    twenty million with --ticks 2.

    Random draws are not tried: each member draws what its seed gives it. Elections that never come
    to rest (such as le-s) or that succeed with a probability are refused.

    Exit code 0: no schedule breaks anything. 1: one does, and a shortest one is shown. 2: bad
    input, an election that cannot be explored, or a limit (--max-states, --ticks) was reached
    before all schedules were tried, or before any could be judged.
    """
    with _progress() as tell:
        checked = lab_check(
            protocol,
            members=members,
            voters=voters,
            candidates=candidates,
            crashes=crashes,
            losses=losses,
            wipes=wipes,
            eager=eager,
            at_once=at_once,
            ticks=ticks,
            delay=delay,
            max_states=max_states,
            progress=tell,
        )
    if as_json:
        show_json(checked.to_json())
    else:
        show(checked)
    if checked.shortfall is not None:
        click.echo(f"hustings: {checked.shortfall}", err=True)
    elif protocol != QUORUM and checked.found.cut:
        warn(
            f"{checked.found.cut:,} states were cut off after {checked.limits.ticks:,} ticks, and "
            "what follows them was not tried: raise --ticks"
        )
    return EXIT_CODES[checked.found.ending]


@contextmanager
def _progress() -> Iterator[Progress | None]:
    """A line on stderr that counts; none if stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return

    def tell(states: int, waiting: int) -> None:
        click.echo(f"\r{states:,} states, {waiting:,} to continue from ", nl=False, err=True)

    try:
        yield tell
    finally:
        click.echo("\r\x1b[K", nl=False, err=True)


def show(checked: Checked) -> None:
    """The result as people read it."""
    limits, found = checked.limits, checked.found
    show_table(
        f"{checked.protocol}: {limits.ticks} ticks, {limits.crashes} crashes, "
        f"{limits.losses} losses, {limits.wipes} disks lost",
        ["what", "number"],
        [
            ["states", found.states],
            ["transitions", found.transitions],
            ["calls of handlers", found.handlers],
            ["steps to the farthest state", found.depth],
            ["leaders with their tokens", found.grants],
        ],
    )
    words = {
        Ending.EXHAUSTED: "exhausted: no schedule within these limits breaks anything",
        Ending.BROKEN: f"broken: {found.why}; a shortest way there:",
        Ending.MAX_STATES: "max-states: not all schedules were tried; nothing is broken so far",
        Ending.UNJUDGED: "unjudged: no schedule comes to rest within these ticks",
    }
    click.echo(words[found.ending])
    for number, step in enumerate(found.steps, 1):
        click.echo(f"{number:3}  t={step.time:g}  {step.what}")
        for line in step.said:
            click.echo(f"          {line}")

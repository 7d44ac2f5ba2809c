"""`hustings swarm`: worlds drawn by seeds, with many kinds of faults, and a verdict."""

from __future__ import annotations

import io

import click

from hustings.cli.options import WholeRange, on_option
from hustings.cli.output import progress, show_json, show_table
from hustings.core.errors import BadInput
from hustings.lab.runs.executors import MAX_JOBS
from hustings.lab.swarming import ENTRIES, MAX_FIRST, MAX_SEEDS, SwarmTotal, drawn
from hustings.lab.swarming import swarm as lab_swarm
from hustings.sim.selection import Options
from hustings.sim.swarm import GUARDS, Played, Swarm, play
from hustings.sim.terminal import draw_text
from hustings.sim.trace_read import read_stream

TOLD = {
    "windows": "never two leaders at one time",
    "holders": "a token has one holder, and later holders have larger tokens",
    "tokens": "members know one leader for each token, and never go back",
    "grants": "no member leads without a grant",
    "register": "a register that compares tokens accepts no stale write",
    "settles": "after the faults a member gets the lease in time",
    "ended": "no error, no endless run",
}


@click.command()
@click.option(
    "--seeds",
    type=WholeRange(1, MAX_SEEDS),
    default=1_000,
    show_default=True,
    help="The number of worlds.",
)
@click.option(
    "--first",
    type=WholeRange(0, MAX_FIRST),
    default=0,
    show_default=True,
    help="The first world's seed.",
)
@click.option(
    "--guard",
    "guards",
    multiple=True,
    help=f"What grants leases: {', '.join(GUARDS)}; each world draws one of several.  "
    "[default: memory and quorum]",
)
@click.option(
    "--protocol",
    "protocols",
    multiple=True,
    help="The election, with or without a guard; each world draws one of several.  "
    f"[default: {', '.join(ENTRIES)}]",
)
@click.option(
    "--jobs",
    type=WholeRange(1, MAX_JOBS),
    default=1,
    show_default=True,
    help="The number of workers; on dask:// all workers play.",
)
@on_option("processes")
@click.option(
    "--beyond",
    is_flag=True,
    help="Clocks break the bound that members are told: overlapping leaders are counted, and "
    "tokens and the register must still hold.",
)
@click.option(
    "--environment",
    default=None,
    metavar="FILE",
    help="The network, pauses, drift and outages of an environment file, and not drawn ones. Time "
    "counts in its longest delay.",
)
@click.option("--trace", is_flag=True, help="Draw the world; needs --seeds 1.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def swarm(
    seeds: int,
    first: int,
    guards: tuple[str, ...],
    protocols: tuple[str, ...],
    jobs: int,
    where: str | None,
    beyond: bool,
    environment: str | None,
    trace: bool,
    as_json: bool,
) -> int:
    """Draw random worlds with many faults from seeds, and judge what happened.

    A seed draws the group, the election, the guard, the network, every clock's rate, crashes (also
    between storing and sending), lost disks, pauses, partitions and one-way cuts.

    \b
    hustings swarm --seeds 40 --jobs 2
    hustings swarm --guard memory --protocol bully --seeds 40
    hustings swarm --first 17 --seeds 1 --trace
    hustings swarm --beyond --seeds 40
    """
    if trace and (seeds > 1 or as_json):
        raise BadInput("--trace draws one world: it goes with --seeds 1 and without --json")
    if trace:
        worlds = drawn(guards, protocols, beyond=beyond, environment=environment)
        return _draw(worlds, first)
    with progress() as tell:
        found = lab_swarm(
            seeds=seeds,
            first=first,
            guards=guards,
            protocols=protocols,
            beyond=beyond,
            environment=environment,
            jobs=jobs,
            on=where,
            tell=tell,
        )
    if as_json:
        show_json(found.to_json())
    else:
        show(found.tally, first, beyond, found.replays)
    return 1 if found.failed else 0


def _draw(worlds: Swarm, seed: int) -> int:
    out = io.BytesIO()
    played = play(worlds, seed, out)
    shown = draw_text(read_stream(io.BytesIO(out.getvalue())), Options(max_events=10_000))
    click.echo(shown.text, nl=False)
    click.echo(_title(played))
    for name, (verdict, why) in played.verdicts.items():
        excused = " (not promised here)" if name in played.excused else ""
        click.echo(f"{name:9} {verdict.value}: {why}{excused}")
    return 1 if played.wrong else 0


def _title(played: Played) -> str:
    return f"seed {played.seed}: {played.protocol}, {played.members} members, guard {played.guard}"


def show(tally: SwarmTotal, first: int, beyond: bool, replays: list[str]) -> None:
    """The counts as people read them."""
    excused = ("windows", "settles") if beyond else ()
    rows: list[list[object]] = []
    for name, what in TOLD.items():
        if name in tally.verdicts:
            counts = tally.verdicts[name]
            told = f"{what} (not promised beyond the bound)" if name in excused else what
            rows.append([name, counts["holds"], counts["violated"], told])
    last = first + tally.seeds - 1
    show_table(
        f"{tally.seeds:,} worlds, seeds {first} to {last}",
        ["property", "held", "violated", "what it says"],
        rows,
    )
    for guard, protocols in tally.worlds.items():
        told = ", ".join(f"{number:,} {name}" for name, number in sorted(protocols.items()))
        click.echo(f"{'guard ' + guard:16} {told}")
    counts = tally.counts
    click.echo(
        f"{'happened':16} {counts['events']:,} events, {counts['starts']:,} starts "
        f"({counts['disks']:,} with a lost disk), {counts['grants']:,} grants, "
        f"{counts['writes']:,} writes, {counts['stale']:,} stale ones refused"
    )
    if not beyond:
        click.echo(
            f"{'settled':16} within {tally.slowest:.3g} after the faults, at most "
            f"{tally.used:.0%} of the limit"
        )
    elif tally.first_overlap is not None:
        click.echo(
            f"{'overlaps':16} in {tally.overlaps:,} worlds, the first with seed "
            f"{tally.first_overlap}"
        )
    for (seed, wrong), again in zip(tally.failures, replays, strict=True):
        for name, why in wrong.items():
            click.echo(f"seed {seed}: {name}: {why}")
        click.echo(f"  {again}")
    if tally.failed > len(tally.failures):
        click.echo(f"and {tally.failed - len(tally.failures):,} more seeds")

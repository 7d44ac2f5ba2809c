"""`hustings swarm`: worlds drawn by seeds, everything that can go wrong in them, and a verdict."""

from __future__ import annotations

import io
from collections.abc import Mapping

import click

from hustings.cli.numbers import WholeRange
from hustings.cli.output import progress, show_json, show_table
from hustings.core.choice import MemberId
from hustings.core.errors import BadInput, UnknownName
from hustings.protocols.registry import CATALOGUE, Use, find, use_of
from hustings.sim.runs import MAX_JOBS
from hustings.sim.selection import Options
from hustings.sim.swarm import GUARDS, Asking, Elect, Entry, Played, Swarm, play
from hustings.sim.swarm_fickle import Fickle
from hustings.sim.swarm_runs import MAX_SEEDS, Tally, play_all
from hustings.sim.terminal import draw_text
from hustings.sim.trace_read import read_stream
from hustings.substrate.confirmed import GuardConfig

MAX_SEED = 2**63 - 1

# Fickle is no protocol: it nominates at random, and a guard must hold all the same.
ENTRIES: dict[str, Entry] = {
    "fickle": Entry(Fickle, weight=3),
    "bully": Entry(find("bully")),
    "le-s": Entry(find("le-s")),
    "le-a": Entry(find("le-a"), (("query", "query"), ("bye", 2))),
    "probabilistic": Entry(find("probabilistic"), (("K", 3),)),
}

TOLD = {
    "windows": "never two leaders at one time",
    "holders": "a token has one holder, later holders larger tokens",
    "tokens": "everybody knows one leader per token and never goes back",
    "grants": "nobody leads without a grant",
    "register": "a register that compares tokens accepts no stale write",
    "settles": "after the calm somebody is confirmed in time",
    "ended": "no error, no endless run",
}


@click.command()
@click.option(
    "--seeds",
    type=WholeRange(1, MAX_SEEDS),
    default=1_000,
    show_default=True,
    help="How many worlds.",
)
@click.option(
    "--first",
    type=WholeRange(0, MAX_SEED),
    default=0,
    show_default=True,
    help="The first world's seed.",
)
@click.option(
    "--guard",
    "guards",
    multiple=True,
    help=f"Who confirms leaders: {', '.join(GUARDS)}; several are drawn from.  "
    "[default: memory and quorum]",
)
@click.option(
    "--protocol",
    "protocols",
    multiple=True,
    help="Who nominates, or an election that needs no guard; several are drawn from.  "
    f"[default: {', '.join(ENTRIES)}]",
)
@click.option(
    "--jobs",
    type=WholeRange(1, MAX_JOBS),
    default=1,
    show_default=True,
    help="On how many processes.",
)
@click.option(
    "--beyond",
    is_flag=True,
    help="Clocks break the bound that members are told: leaders may overlap, and are counted; "
    "tokens and the register must still hold.",
)
@click.option("--trace", is_flag=True, help="Draw the world; with --seeds 1.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def swarm(
    seeds: int,
    first: int,
    guards: tuple[str, ...],
    protocols: tuple[str, ...],
    jobs: int,
    beyond: bool,
    trace: bool,
    as_json: bool,
) -> int:
    """Draw whole worlds from seeds, let everything go wrong in them, and judge what happened.

    A seed draws the group, who nominates, who confirms, the network, every clock's rate, crashes
    (also between storing and sending), lost disks, pauses, partitions and one-way cuts.

    \b
    hustings swarm --seeds 200 --jobs 2
    hustings swarm --guard memory --protocol bully --seeds 200
    hustings swarm --first 17 --seeds 1 --trace
    hustings swarm --beyond
    """
    if trace and (seeds > 1 or as_json):
        raise BadInput("--trace draws one world: it goes with --seeds 1 and without --json")
    drawn = Swarm(
        entries=tuple(entry(name) for name in protocols or ENTRIES),
        guards=_guards(guards),
        quorate=quorate,
        votes=votes,
        beyond=beyond,
    )
    if trace:
        return _draw(drawn, first)
    with progress("swarm", seeds) as tell:
        tally = play_all(drawn, first, seeds, jobs, tell)
    replays = [replay(seed, guards, protocols, beyond) for seed, _ in tally.failures]
    if as_json:
        show_json(to_json(tally, first, beyond, replays))
    else:
        show(tally, first, beyond, replays)
    return 1 if tally.failed else 0


def quorate(elect: Asking, voters: tuple[MemberId, ...], lease: GuardConfig) -> Elect:
    """A quorum of these voters round elections; the longest lease is the one asked for."""
    from hustings.protocols.quorum import QuorumConfig
    from hustings.protocols.quorum import quorate as go_round

    config = QuorumConfig(delta=lease.delta, voters=voters, longest=lease.asked)
    return go_round(elect, config)


def votes(stored: Mapping[str, object]) -> bool:
    """Whether a voter that stored this has begun to vote."""
    return stored.get("quorum-votes") is True


def entry(name: str) -> Entry:
    """An election of the swarm by its name: those that it draws by default, or any other."""
    known = ENTRIES.get(name.replace("_", "-"))
    if known is not None:
        return known
    try:
        kind = find(name)
        if use_of(kind) is Use.GUARD:
            raise BadInput(
                f"{name} needs nobody to confirm it: try the same voters with --guard quorum"
            )
        if use_of(kind) is Use.ROUNDS:
            raise BadInput(f"{name} has an adversary of its own: hustings sim {name}")
        return Entry(kind)
    except UnknownName:
        every = tuple(dict.fromkeys((*ENTRIES, *CATALOGUE)))
        raise UnknownName("protocol", name, every) from None


def _guards(typed: tuple[str, ...]) -> tuple[str, ...]:
    for name in typed:
        if name not in GUARDS:
            raise UnknownName("guard", name, GUARDS)
    return typed or ("memory", "quorum")


def replay(seed: int, guards: tuple[str, ...], protocols: tuple[str, ...], beyond: bool) -> str:
    """The command line that plays one seed again and draws it."""
    chosen = [f"--guard {name}" for name in guards] + [f"--protocol {name}" for name in protocols]
    words = ["hustings swarm", *chosen, *(["--beyond"] if beyond else [])]
    return " ".join([*words, f"--first {seed} --seeds 1 --trace"])


def _draw(drawn: Swarm, seed: int) -> int:
    out = io.BytesIO()
    played = play(drawn, seed, out)
    shown = draw_text(read_stream(io.BytesIO(out.getvalue())), Options(max_events=10_000))
    click.echo(shown.text, nl=False)
    click.echo(_title(played))
    for name, (verdict, why) in played.verdicts.items():
        excused = " (not promised here)" if name in played.excused else ""
        click.echo(f"{name:9} {verdict.value}: {why}{excused}")
    return 1 if played.wrong else 0


def _title(played: Played) -> str:
    return f"seed {played.seed}: {played.protocol}, {played.members} members, guard {played.guard}"


def show(tally: Tally, first: int, beyond: bool, replays: list[str]) -> None:
    """The tally as people read it."""
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
            f"{'settled':16} within {tally.slowest:.3g} after the calm, at most "
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


def to_json(tally: Tally, first: int, beyond: bool, replays: list[str]) -> dict[str, object]:
    """The tally as scripts read it."""
    return {
        "first": first,
        "seeds": tally.seeds,
        "beyond": beyond,
        "verdicts": tally.verdicts,
        "worlds": {guard: dict(sorted(found.items())) for guard, found in tally.worlds.items()},
        "counts": dict(tally.counts),
        "overlaps": tally.overlaps,
        "first_overlap": tally.first_overlap,
        "slowest_settling": tally.slowest,
        "share_of_limit": tally.used,
        "failed": tally.failed,
        "failures": [
            {"seed": seed, "wrong": wrong, "replay": again}
            for (seed, wrong), again in zip(tally.failures, replays, strict=True)
        ],
    }

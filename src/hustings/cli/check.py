"""`hustings check`: every schedule of a tiny group, or a shortest one that breaks something."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import click

from hustings.cli.numbers import WHOLE, WholeRange
from hustings.cli.output import show_json, show_table, warn
from hustings.core.choice import Candidate, HighestId, MemberId
from hustings.core.config import Config, Surroundings
from hustings.core.election import Election
from hustings.core.errors import BadInput
from hustings.explore.encoding import NotEncodable
from hustings.explore.locals import Group, OrderMatters, settled
from hustings.explore.preflight import NotExplorable, check_explorable
from hustings.explore.search import Search
from hustings.explore.standing import Bystander, Standing
from hustings.explore.values import Ending, Found, Laws, Limits, Progress
from hustings.protocols.registry import Use, find, use_of
from hustings.substrate.confirmed import Confirmed, GuardConfig

QUORUM = "quorum"
MOST_MEMBERS = 9

# A lease of two ticks, which its holder renews at every tick. Whoever was refused for it asks again
# when it runs out; whoever was outdone or got no answer asks no more within the few ticks that can
# be explored, or, eager, at the next tick: that is far more to explore.
LEASE = GuardConfig(delta=10.0, ttl=2.0, drift=0.0, retry=10.0)
EAGER = GuardConfig(delta=0.4, ttl=2.0, drift=0.0, retry=10.0)

EXIT_CODES = {Ending.EXHAUSTED: 0, Ending.BROKEN: 1, Ending.MAX_STATES: 2, Ending.UNJUDGED: 2}

Quorum = Callable[[Confirmed, tuple[MemberId, ...]], Election]


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
    "--candidates", type=WHOLE, default=2, show_default=True, help="quorum: members that stand."
)
@click.option(
    "--crashes", type=WHOLE, default=0, show_default=True, help="How often a member dies."
)
@click.option(
    "--losses",
    type=WHOLE,
    default=0,
    show_default=True,
    help="How many messages are lost, or come at any later time.",
)
@click.option(
    "--wipes", type=WHOLE, default=0, show_default=True, help="How many crashes cost the disk, too."
)
@click.option("--eager", is_flag=True, help="quorum: who is outdone asks again at the next tick.")
@click.option("--at-once", is_flag=True, help="Who dies may be back in the same tick, too.")
@click.option(
    "--ticks", type=WHOLE, default=None, help="For how long.  [default: quorum 2, others 20]"
)
@click.option(
    "--delay",
    type=WHOLE,
    default=0,
    show_default=True,
    help="Ticks that a message may take; 0: it arrives in the tick it was sent in, in any order.",
)
@click.option(
    "--max-states", type=WHOLE, default=2_000_000, show_default=True, help="When to give up."
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

    All orders in which messages arrive and timers fire, crashes at every point (also between
    storing and sending), lost and late messages. For quorum: never two leaders at one time, and
    tokens grow. For other elections: when nothing is left to happen, all that are up hold one
    leader that is up, if every crash is noticed.

    \b
    hustings check quorum --voters 3 --candidates 2 --ticks 1 --losses 1
    hustings check bully -n 3

    One crash and one lost message at any point are 232,656 states with --ticks 1, and more than
    twenty million with --ticks 2.

    Random draws are not among what is tried: each member draws what its seed gives it. Elections
    that never come to rest (le-s and its like) or that succeed with a probability are refused.

    Exit code 0: no schedule breaks anything. 1: one does, and a shortest one is shown. 2: bad
    input, an election that cannot be explored, or a limit (--max-states, --ticks) was reached
    before all schedules had been tried, or before any could be judged.
    """
    is_quorum = protocol == QUORUM
    kind = None if is_quorum else find(protocol)
    limits = Limits(
        ticks=(2 if is_quorum else 20) if ticks is None else ticks,
        delay=delay,
        crashes=crashes,
        losses=losses,
        wipes=wipes,
        at_once=at_once,
        max_states=max_states,
    )
    with _progress() as tell:
        if kind is None:
            lease = EAGER if eager else LEASE
            found = explore_quorum(voters, candidates, limits, tell, lease=lease)
        else:
            found = explore_election(kind, members, limits, tell)
    if as_json:
        show_json(to_json(protocol, limits, found))
    else:
        show(protocol, limits, found)
    if found.ending is Ending.MAX_STATES:
        _complain(f"{max_states:,} states were not enough: raise --max-states, or explore less")
    elif found.ending is Ending.UNJUDGED:
        _complain(f"{limits.ticks:,} ticks were not enough: raise --ticks")
    elif kind is not None and found.cut:
        warn(
            f"{found.cut:,} states were cut off after {limits.ticks:,} ticks, and what follows "
            "them was not tried: raise --ticks"
        )
    return EXIT_CODES[found.ending]


def _complain(sentence: str) -> None:
    click.echo(f"hustings: {sentence}", err=True)


def explore_quorum(
    voters: int,
    candidates: int,
    limits: Limits,
    progress: Progress | None = None,
    quorum: Quorum | None = None,
    lease: GuardConfig = LEASE,
) -> Found:
    """A quorum whose voters know each other already; `quorum` may put a broken one in its place."""
    if voters not in (3, 5, 7):
        raise BadInput(f"there must be 3, 5 or 7 voters, not {voters}")
    if not 1 <= candidates <= MOST_MEMBERS:
        raise BadInput(f"candidates must lie between 1 and {MOST_MEMBERS}, not {candidates}")
    ids = range(1, max(voters, candidates) + 1)
    electorate = tuple(range(1, voters + 1))
    around = _quorate if quorum is None else quorum

    def maker(kind: type[Election]) -> Callable[[], Election]:
        return lambda: around(Confirmed(kind(Config(), HighestId()), lease), electorate)

    everybody = {member: Candidate(member) for member in ids}
    stored = settled(Group({member: maker(Bystander) for member in ids}, everybody))
    makers = {member: maker(Standing if member <= candidates else Bystander) for member in ids}

    def search(ordered: bool) -> Search:
        # What a leader tells the group makes others believe, and changes nothing at the voters.
        group = Group(makers, everybody, stored=stored, multicasts=False, ordered=ordered)
        return Search(group, limits, Laws(leased=True))

    return _run(search, progress)


def explore_election(
    kind: type[Election], members: int, limits: Limits, progress: Progress | None = None
) -> Found:
    """Any other election: all call it, and in the end they agree."""
    if use_of(kind) is Use.ROUNDS:
        raise NotExplorable(
            f"{kind.about.name} cannot be explored: its members go in rounds that the world keeps, "
            f"so there are no schedules to choose from; hustings sim {kind.about.name} plays it"
        )
    ids = range(1, members + 1)
    known = kind.Settings.for_group(members, Surroundings())
    config = kind.Settings.parse({**known, "delta": float(max(limits.delay, 1))})
    everybody = {member: Candidate(member) for member in ids}
    make = partial(kind, config, HighestId())
    check_explorable(kind, make)
    makers = dict.fromkeys(ids, make)

    def search(ordered: bool) -> Search:
        group = Group(makers, everybody, ordered=ordered)
        return Search(group, limits, Laws(agreed=True), calls=ids)

    try:
        return _run(search, progress)
    except NotEncodable as error:
        raise NotExplorable(f"{kind.about.name} cannot be explored: {error}") from error


def _run(search: Callable[[bool], Search], progress: Progress | None) -> Found:
    """States in different orders are one where that makes no difference."""
    try:
        return search(False).run(progress)
    except OrderMatters:
        return search(True).run(progress)


def _quorate(inner: Confirmed, voters: tuple[MemberId, ...]) -> Election:
    from hustings.protocols.quorum import Quorate, QuorumConfig

    return Quorate(inner, QuorumConfig(delta=LEASE.delta, voters=voters, longest=LEASE.asked))


@contextmanager
def _progress() -> Iterator[Progress | None]:
    """A line on stderr that counts; none where nobody looks."""
    if not sys.stderr.isatty():
        yield None
        return

    def tell(states: int, waiting: int) -> None:
        click.echo(f"\r{states:,} states, {waiting:,} to go on from ", nl=False, err=True)

    try:
        yield tell
    finally:
        click.echo("\r\x1b[K", nl=False, err=True)


def show(protocol: str, limits: Limits, found: Found) -> None:
    """What was found, as people read it."""
    show_table(
        f"{protocol}: {limits.ticks} ticks, {limits.crashes} crashes, {limits.losses} losses, "
        f"{limits.wipes} disks lost",
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


def to_json(protocol: str, limits: Limits, found: Found) -> dict[str, object]:
    """What was found, as scripts read it."""
    return {
        "protocol": protocol,
        "limits": {
            "ticks": limits.ticks,
            "delay": limits.delay,
            "crashes": limits.crashes,
            "losses": limits.losses,
            "wipes": limits.wipes,
            "at_once": limits.at_once,
            "max_states": limits.max_states,
        },
        "ending": found.ending.value,
        "states": found.states,
        "transitions": found.transitions,
        "handlers": found.handlers,
        "depth": found.depth,
        "grants": found.grants,
        "rests": found.rests,
        "cut": found.cut,
        "why": found.why,
        "steps": [
            {"time": step.time, "what": step.what, "said": list(step.said)} for step in found.steps
        ],
    }

"""`check`: every schedule of a small group, or a shortest counterexample."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from html import escape

from hustings.core.choice import Candidate, HighestId, MemberId
from hustings.core.config import Config, Surroundings
from hustings.core.election import Election
from hustings.core.errors import BadInput
from hustings.explore.encoding import NotEncodable
from hustings.explore.locals import ExploredGroup, OrderMatters, settled
from hustings.explore.search import NotExplorable, Search, check_explorable
from hustings.explore.standing import Bystander, Standing
from hustings.explore.values import Ending, Laws, Progress, SearchLimits, SearchResult
from hustings.lab.options import named
from hustings.lab.tables import Table
from hustings.layers.lease import LeaseConfig, LeaseLayer
from hustings.protocols.registry import Protocol, Use, find, use_of

QUORUM = "quorum"
MOST_MEMBERS = 9

# A lease of two ticks, which its holder renews at every tick. A member that was refused asks again
# when the lease runs out. A member that was outbid or got no answer does not ask again within the
# few ticks that can be explored; with `eager` it asks at the next tick, which is far more to
# explore.
LEASE = LeaseConfig(delta=10.0, ttl=2.0, drift=0.0, retry=10.0)
EAGER = LeaseConfig(delta=0.4, ttl=2.0, drift=0.0, retry=10.0)

Quorum = Callable[[LeaseLayer, tuple[MemberId, ...]], Election]


@dataclass(frozen=True, slots=True)
class Checked(Table):
    """The result of a search through all schedules."""

    protocol: str
    limits: SearchLimits
    found: SearchResult
    command: str  # the same as a command line; "" for a class that it cannot name

    @property
    def holds(self) -> bool:
        """Whether every schedule was tried and none violates a law."""
        return self.found.ending is Ending.EXHAUSTED

    @property
    def shortfall(self) -> str | None:
        """A sentence if not all schedules were tried, or none could be judged."""
        if self.found.ending is Ending.MAX_STATES:
            most = self.limits.max_states
            return f"{most:,} states were not enough: raise --max-states, or explore less"
        if self.found.ending is Ending.UNJUDGED:
            return f"{self.limits.ticks:,} ticks were not enough: raise --ticks"
        return None

    def rows(self) -> list[dict[str, object]]:
        """One row for each step of a shortest counterexample; none if there is none."""
        return [
            {"step": number, "time": step.time, "what": step.what, "said": "; ".join(step.said)}
            for number, step in enumerate(self.found.steps, 1)
        ]

    def __str__(self) -> str:
        found = self.found
        why = f" ({found.why})" if found.why else ""
        return f"{self.protocol}: {found.ending.value}{why}, {found.states:,} states"

    def _repr_html_(self) -> str:
        steps = "".join(
            f"<li>t={each.time:g} {escape(each.what)}</li>" for each in self.found.steps
        )
        return f"<p><b>{escape(str(self))}</b></p><ol>{steps}</ol><pre>{escape(self.command)}</pre>"

    def to_json(self) -> dict[str, object]:
        """As `hustings check --json` prints it."""
        limits, found = self.limits, self.found
        return {
            "protocol": self.protocol,
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
                {"time": step.time, "what": step.what, "said": list(step.said)}
                for step in found.steps
            ],
        }


def check(
    protocol: Protocol,
    *,
    members: int = 3,
    voters: int = 3,
    candidates: int = 2,
    crashes: int = 0,
    losses: int = 0,
    wipes: int = 0,
    eager: bool = False,
    at_once: bool = False,
    ticks: int | None = None,
    delay: int = 0,
    max_states: int = 2_000_000,
    progress: Progress | None = None,
) -> Checked:
    """Try every schedule of a small group on a real election: as `hustings check`.

    >>> check("bully", members=2).holds
    True
    """
    is_quorum = protocol == QUORUM
    limits = SearchLimits(
        ticks=(2 if is_quorum else 20) if ticks is None else ticks,
        delay=delay,
        crashes=crashes,
        losses=losses,
        wipes=wipes,
        at_once=at_once,
        max_states=max_states,
    )
    if is_quorum:
        lease = EAGER if eager else LEASE
        found = explore_quorum(voters, candidates, limits, progress, lease=lease)
        words = [QUORUM, f"--voters={voters}", f"--candidates={candidates}"]
        words += ["--eager"] if eager else []
        return Checked(QUORUM, limits, found, _command(words, limits))
    kind = find(protocol)
    if not 1 <= members <= MOST_MEMBERS:
        raise BadInput(f"members must lie between 1 and {MOST_MEMBERS}, not {members}")
    found = explore_election(kind, members, limits, progress)
    name = named(protocol, kind)
    command = "" if name is None else _command([name, f"--members={members}"], limits)
    return Checked(
        protocol if isinstance(protocol, str) else kind.about.name, limits, found, command
    )


def _command(words: list[str], limits: SearchLimits) -> str:
    usual = SearchLimits(max_states=2_000_000)
    for each in fields(SearchLimits):
        value = getattr(limits, each.name)
        if each.name == "ticks" or value != getattr(usual, each.name):
            option = f"--{each.name.replace('_', '-')}"
            words.append(option if value is True else f"{option}={value}")
    return shlex.join(["hustings", "check", *words])


def explore_quorum(
    voters: int,
    candidates: int,
    limits: SearchLimits,
    progress: Progress | None = None,
    quorum: Quorum | None = None,
    lease: LeaseConfig = LEASE,
) -> SearchResult:
    """Explore a quorum whose voters know each other already; a test may give a broken `quorum`."""
    if voters not in (3, 5, 7):
        raise BadInput(f"there must be 3, 5 or 7 voters, not {voters}")
    if not 1 <= candidates <= MOST_MEMBERS:
        raise BadInput(f"candidates must lie between 1 and {MOST_MEMBERS}, not {candidates}")
    ids = range(1, max(voters, candidates) + 1)
    electorate = tuple(range(1, voters + 1))
    around = _with_quorum if quorum is None else quorum

    def maker(kind: type[Election]) -> Callable[[], Election]:
        return lambda: around(LeaseLayer(kind(Config(), HighestId()), lease), electorate)

    everybody = {member: Candidate(member) for member in ids}
    stored = settled(ExploredGroup({member: maker(Bystander) for member in ids}, everybody))
    makers = {member: maker(Standing if member <= candidates else Bystander) for member in ids}

    def search(ordered: bool) -> Search:
        # A leader's announcement changes the opinion of members, but nothing at the voters.
        group = ExploredGroup(makers, everybody, stored=stored, multicasts=False, ordered=ordered)
        return Search(group, limits, Laws(leased=True))

    return _run(search, progress)


def explore_election(
    kind: type[Election], members: int, limits: SearchLimits, progress: Progress | None = None
) -> SearchResult:
    """Explore any other election: all call it, and in the end they agree."""
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
        group = ExploredGroup(makers, everybody, ordered=ordered)
        return Search(group, limits, Laws(agreed=True), calls=ids)

    try:
        return _run(search, progress)
    except NotEncodable as error:
        raise NotExplorable(f"{kind.about.name} cannot be explored: {error}") from error


def _run(search: Callable[[bool], Search], progress: Progress | None) -> SearchResult:
    """Treat states in different orders as one where that makes no difference."""
    try:
        return search(False).run(progress)
    except OrderMatters:
        return search(True).run(progress)


def _with_quorum(inner: LeaseLayer, voters: tuple[MemberId, ...]) -> Election:
    from hustings.quorum import QuorumConfig, QuorumLeaseLayer  # noqa: PLC0415 (few need it)

    return QuorumLeaseLayer(
        inner, QuorumConfig(delta=LEASE.delta, voters=voters, max_ttl=LEASE.asked)
    )

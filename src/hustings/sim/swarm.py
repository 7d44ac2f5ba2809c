"""The swarm: one seed draws a whole world and what happens to it, plays it, and judges it.

A world of the swarm has a group, an election, something that confirms leaders (a guard in one
place, a quorum of members, or nothing), a network, clocks, a register that leaders write to, and a
time of faults, after which all is calm.

Three properties always hold. No two members lead at one time while every clock's rate keeps its
bound. A token has one holder, and later holders have larger tokens. The register, which compares
tokens, accepts no stale write, with any clocks. After the calm, a member is confirmed within
`patience`. A member that leads writes to the register from time to time, and its writes arrive
late. A fenced register refuses a token below the highest that it has seen. The register knows
nothing else.

The swarm knows no elections. Its caller names them, and says how a quorum goes round them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import ceil

from hustings.core.choice import Candidate, Choice, MemberId, candidate, parse_choice
from hustings.core.config import Surroundings
from hustings.core.election import Election
from hustings.core.errors import BadInput
from hustings.core.outcome import Elected, Guarantee
from hustings.core.streams import Stream, derive
from hustings.layers.lease import LeaseConfig, LeaseLayer
from hustings.sim.checkers import Checker, Verdict, attach
from hustings.sim.environment import Environment
from hustings.sim.faults import Happening, schedule
from hustings.sim.guarding import Grant, Holder, MemoryGuard
from hustings.sim.safety import Grants, Holders, Settles, Tokens, Windows
from hustings.sim.swarm_drawing import (
    QUIET,
    Disks,
    ScaledEnvironment,
    Scene,
    Votes,
    draw_happenings,
    draw_rate,
)
from hustings.sim.trace import Header, Sink, Tracer
from hustings.sim.world import Ended, World


@dataclass(frozen=True, slots=True)
class Write:
    """A leader's request to the register."""

    holder: Holder
    token: int


@dataclass(slots=True)
class Register:
    """Executes what leaders send; if `fenced`, it refuses a token below the highest seen."""

    fenced: bool = True
    highest: int = 0
    accepted: list[Write] = field(default_factory=list)
    refused: int = 0

    def arrive(self, write: Write) -> None:
        """A write arrives."""
        if self.fenced and write.token < self.highest:
            self.refused += 1
            return
        self.highest = max(self.highest, write.token)
        self.accepted.append(write)

    def complaint(self, grants: list[Grant], *, ordered: bool) -> str | None:
        """A write that was accepted and should not have been, if there is one.

        With `ordered`, the list is in the order of granting, so a write of an older holder after a
        write of a newer one is stale. Otherwise the order is that of the tokens. In both cases two
        holders that write with the same token are a violation.
        """
        place = {(grant.token, grant.holder): number for number, grant in enumerate(grants)}
        first: dict[int, Holder] = {}
        newest = -1
        for write in self.accepted:
            holder = first.setdefault(write.token, write.holder)
            if holder != write.holder:
                return f"{_told(write)} and member {holder.member} wrote with one token"
            age = place.get((write.token, write.holder), -1) if ordered else write.token
            if age < newest:
                return f"{_told(write)} wrote after a newer holder"
            newest = age
        return None


def _told(write: Write) -> str:
    return f"member {write.holder.member} with token {write.token}"


def write_now_and_then(world: World, register: Register, stream: Stream, end: float) -> None:
    """Until `end`, members that lead send writes, and many of them arrive late or very late."""
    at = 0.0
    while at < end:
        at += stream.uniform(0.5, 4.0)
        delay = stream.choice((0.0, 0.5, stream.uniform(0.0, 20.0)))
        world.at(at, partial(_write, world, register, delay))


def _write(world: World, register: Register, delay: float) -> None:
    for member in world.live():
        outcome = member.outcome
        if isinstance(outcome, Elected) and outcome.leader == member.id:
            write = Write(Holder(member.id, member.incarnation), outcome.term)
            world.at(world.now + delay, partial(register.arrive, write))


NONE, MEMORY, QUORUM = "none", "memory", "quorum"
GUARDS = (MEMORY, QUORUM, NONE)

MAX_EVENTS = 100_000  # of one world; none comes near it
BEYOND = 4.0  # times the bound, in worlds whose clocks break it
LATE = 20.0  # for how long leaders write after the calm

_CHOICES = ("highest-id", "lowest-id", "highest:cpu")
_TTLS = (8.0, 12.0)
_DRIFTS = (0.0, 0.01, 0.1, 0.2)  # bounds that members know
_HORIZONS = (15.0, 30.0, 45.0)

Elect = Callable[[], Election]
Asking = Callable[[], LeaseLayer]
WithQuorum = Callable[[Asking, tuple[MemberId, ...], LeaseConfig], Elect]
Wrap = Callable[[Election, LeaseConfig], LeaseLayer]
Guarding = Callable[[World, float], MemoryGuard]


def _never(stored: Mapping[str, object]) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Entry:
    """An election that may be drawn."""

    kind: type[Election]
    settings: tuple[tuple[str, object], ...] = ()
    settles: float = 40.0  # how long, in delta, it takes to hold one leader when all call it
    weight: int = 1

    def maker(self, members: int, choice: Choice) -> Elect:
        """What makes the elections of a group of this size."""
        known = self.kind.Settings.for_group(members, Surroundings())
        config = self.kind.Settings.parse({**known, **dict(self.settings)})
        return lambda: self.kind(config, choice)

    @property
    def leased(self) -> bool:
        """Whether it promises more than an advisory leader, and so needs no guard."""
        return self.kind.about.guarantee is not Guarantee.ADVISORY


@dataclass(frozen=True, slots=True)
class Swarm:
    """What seeds are drawn from; a test may replace parts by broken ones, to see them caught."""

    entries: tuple[Entry, ...]
    guards: tuple[str, ...] = (MEMORY,)
    with_quorum: WithQuorum | None = None
    votes: Votes = _never  # whether a voter with this storage has begun to vote
    beyond: bool = False  # whether clocks break the bound that members know
    wrap: Wrap = LeaseLayer
    guarding: Guarding = MemoryGuard
    fenced: bool = True
    environment: Environment | None = None  # says the network, pauses and outages

    def __post_init__(self) -> None:
        if self.environment is not None and self.beyond and not self.environment.drift:
            raise BadInput("clocks cannot break a bound of 0: the environment needs a drift")
        if not self.entries or not self.guards:
            raise BadInput("a swarm needs at least one election and one guard")
        if QUORUM in self.guards and self.with_quorum is None:
            raise BadInput("a swarm of quorums needs to know how a quorum goes round an election")


@dataclass(frozen=True, slots=True)
class Played:
    """The result of one seed."""

    seed: int
    protocol: str
    guard: str
    members: int
    verdicts: dict[str, tuple[Verdict, str]]
    excused: tuple[str, ...]  # properties not promised here, but still checked
    counts: dict[str, int]
    settled: float | None  # how long after the calm a member was confirmed
    patience: float  # the most time that this may take

    @property
    def wrong(self) -> dict[str, str]:
        """The properties that were promised and violated, and how."""
        return {
            name: why
            for name, (what, why) in self.verdicts.items()
            if what is Verdict.VIOLATED and name not in self.excused
        }


def patience(settles: float, lease: LeaseConfig) -> float:
    """The longest time after the calm until a member is confirmed.

    By the slowest clock, it is the sum of: the election's own time; a lease that was granted just
    before the calm, for which a voter waits twice if it has restarted or lost its disk; the longest
    pause between two requests; and twenty delays for messages to and fro.

    >>> patience(40.0, LeaseConfig(ttl=8.0, drift=0.2))
    115.0
    """
    return (settles + 4.0 * lease.asked + 20.0 * lease.delta) / (1.0 - lease.drift)


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The parts of a seed's world."""

    entry: Entry
    guard: str
    lease: LeaseConfig
    choice: Choice
    candidates: list[Candidate]
    scene: Scene


def _draw(swarm: Swarm, stream: Stream) -> _Drawn:
    entry = stream.choice([each for each in swarm.entries for _ in range(each.weight)])
    guard = NONE if entry.leased else stream.choice(swarm.guards)
    # A bound of zero cannot be broken by a factor.
    drift = stream.choice(_DRIFTS[1:] if swarm.beyond else _DRIFTS)
    environment = swarm.environment
    if environment is not None:
        drift = environment.drift
    lease = LeaseConfig(ttl=stream.choice(_TTLS), drift=drift)
    votes = guard == QUORUM or entry.leased
    number = stream.choice((3, 3, 3, 5)) if votes else 0
    size = number + stream.below(3) if votes else 2 + stream.below(4)
    ids = tuple(sorted(stream.sample(range(1, 30), size)))
    voters = tuple(sorted(stream.sample(ids, number)))
    # Voters that have never voted wait for one lease; most worlds have no faults before that.
    begin = float(ceil(lease.asked / (1.0 - drift))) if votes and stream.below(8) else 0.0
    horizon = begin + stream.choice(_HORIZONS)
    scene = Scene(
        ids=ids,
        voters=voters,
        disks=Disks(voters, swarm.votes),
        central=guard == MEMORY,
        ttl=lease.asked,
        begin=begin,
        horizon=horizon,
        calm=horizon + 10.0,
        surroundings=None if environment is None else ScaledEnvironment.of(environment, ids),
    )
    choice = parse_choice(stream.choice(_CHOICES))
    candidates = [candidate(member, cpu=1 + stream.below(3)) for member in ids]
    return _Drawn(entry, guard, lease, choice, candidates, scene)


def _maker(swarm: Swarm, drawn: _Drawn) -> Elect:
    elect = drawn.entry.maker(len(drawn.candidates), drawn.choice)
    if drawn.guard == NONE:
        return elect
    wrap, lease = swarm.wrap, drawn.lease
    if drawn.guard == MEMORY:
        return lambda: wrap(elect(), lease)
    assert swarm.with_quorum is not None
    return swarm.with_quorum(lambda: wrap(elect(), lease), drawn.scene.voters, lease)


def play(swarm: Swarm, seed: int, out: Sink | None = None) -> Played:
    """Draw, play and judge one seed; with `out`, write its trace there."""
    stream = Stream(derive(seed, "swarm"))
    drawn = _draw(swarm, stream)
    tracer = None if out is None else Tracer(_header(drawn, seed), out)
    world = _world(swarm, drawn, stream, seed, tracer)
    safe = drawn.guard != NONE or drawn.entry.leased
    calm, wait = drawn.scene.calm, patience(drawn.entry.settles, drawn.lease)
    holders = Holders(ordered=not swarm.beyond)
    settles = Settles(calm, drawn.lease.asked, confirmed=safe)
    checkers: list[Checker] = [Windows(), holders, Tokens()] if safe else []
    if drawn.guard == MEMORY:
        checkers.append(Grants())
    attach([*checkers, settles], world)
    register = Register(fenced=swarm.fenced)
    write_now_and_then(world, register, stream, calm + LATE)
    happenings = draw_happenings(stream, drawn.scene)
    ended, wrong = _run(world, happenings, calm + wait)
    if tracer is not None:
        tracer.close(world.now, ended.value)
    verdicts = {checker.name: checker.judge(world, ended) for checker in checkers}
    grants = holders.grants(world)
    if safe:
        complaint = register.complaint(grants, ordered=not swarm.beyond or world.guard is not None)
        verdicts["register"] = _verdict(complaint, "no stale write was accepted")
    verdicts["settles"] = settles.judge(world, ended)
    verdicts["ended"] = _verdict(wrong, "by the time limit, and no member raised an error")
    return Played(
        seed=seed,
        protocol=drawn.entry.kind.about.name,
        guard=drawn.guard,
        members=len(drawn.candidates),
        verdicts=verdicts,
        excused=("windows", "settles") if swarm.beyond else (),
        counts={
            "events": world.events,
            "grants": len(grants),
            "writes": len(register.accepted),
            "stale": register.refused,
            "disks": drawn.scene.disks.lost,
            "starts": _starts(world, drawn.scene.disks),
        },
        settled=settles.after,
        patience=wait,
    )


def _starts(world: World, disks: Disks) -> int:
    return sum(member.incarnation for member in world.members.values()) - disks.skipped


def _world(swarm: Swarm, drawn: _Drawn, stream: Stream, seed: int, tracer: Tracer | None) -> World:
    """The group with its clocks and its guard or quorum, not yet started."""
    world = World(_maker(swarm, drawn), drawn.candidates, seed=seed, network=QUIET, tracer=tracer)
    drift = drawn.lease.drift * (BEYOND if swarm.beyond else 1.0)
    if drawn.guard == MEMORY:
        swarm.guarding(world, draw_rate(stream, drift))
    for member in world.members.values():
        member.keep_time(draw_rate(stream, drift), stream.uniform(0.0, 50.0))
    return world


def _run(world: World, happenings: list[Happening], until: float) -> tuple[Ended, str | None]:
    """Run to the end; return how the run ended, and what went wrong, if anything."""
    world.be_careful()
    try:
        world.start()
        schedule(world, happenings)
        ended = world.run(until=until, max_events=MAX_EVENTS)
    except Exception as error:  # any exception of a handler is a finding of the swarm
        return Ended.STOPPED, f"{type(error).__name__}: {error}"
    return ended, f"{MAX_EVENTS:,} events were too few" if ended is Ended.MAX_EVENTS else None


def _verdict(complaint: str | None, holds: str) -> tuple[Verdict, str]:
    return (Verdict.HOLDS, holds) if complaint is None else (Verdict.VIOLATED, complaint)


def _header(drawn: _Drawn, seed: int) -> Header:
    return Header(
        protocol=drawn.entry.kind.about.name,
        members=list(drawn.scene.ids),
        seed=seed,
        settings={
            "guard": drawn.guard,
            "ttl": drawn.lease.asked,
            "drift": drawn.lease.drift,
            "choice": drawn.choice.name,
            "voters": list(drawn.scene.voters),
        },
    )

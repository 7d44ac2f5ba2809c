"""Worlds with a guard in turmoil: one seed draws group, clocks, lease, network and misfortunes.

A resource takes part, too: whoever leads by its own word sends it operations, which arrive late,
and it refuses tokens below the highest it has seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from hustings.core.choice import MemberId, parse_choice
from hustings.core.config import Surroundings
from hustings.core.context import Context, TimerKey
from hustings.core.election import About, Election
from hustings.core.outcome import ELECTING, Elected, Guarantee, NoLeader, Outcome
from hustings.core.streams import Stream, derive
from hustings.layers.lease import LAPSED, LeaseConfig, LeaseLayer
from hustings.sim.checkers import Verdict, attach
from hustings.sim.delay import Lognormal, Uniform
from hustings.sim.faults import (
    Call,
    Crash,
    Happening,
    Heal,
    OneWay,
    Partition,
    Pause,
    Restart,
    Resume,
    schedule,
)
from hustings.sim.guarding import GUARD, Holder, MemoryGuard
from hustings.sim.loss import NoLoss, Uncorrelated
from hustings.sim.member import SimContext
from hustings.sim.network import Network
from hustings.sim.safety import safety_checkers
from hustings.sim.world import Ended, World
from tests.swarm.draws import (
    CHOICES,
    Attendance,
    Group,
    draw_candidate,
    draw_trouble,
    unreliable,
    weighted,
)

MAX_EVENTS = 100_000
LASTS = 20.0  # most troubles, at most
DRIFTS = (0.0, 0.01, 0.1, 0.2)  # bounds that members are told

Wrap = Callable[[Election, LeaseConfig], LeaseLayer]
Guarding = Callable[[World, float], MemoryGuard]


def hostile(stream: Stream) -> Network:
    """Also delays of the order of a lease, so that much of what arrives is out of date."""
    if stream.below(2):
        return unreliable(stream)
    p = stream.choice((0.0, 0.1, 0.3))
    return Network(
        delay=stream.choice((Uniform(0.0, 4.0), Uniform(0.0, 15.0), Lognormal(1.0, 1.5))),
        loss=Uncorrelated(p) if p else NoLoss(),
        duplicate=0.3,
        reorder=0.2,
        hold_back=stream.choice((5.0, 25.0)),
    )


class RandomElection(Election):
    """As wrong as an election can be: changes its mind at random, and asks nobody."""

    about = About(
        name="random-election",
        family="none",
        paper="none",
        idea="anybody may lead at any time",
        model="any",
        guarantee=Guarantee.ADVISORY,
        cost="0",
        promises="nothing",
    )

    def start(self, ctx: Context) -> None:
        self._muse(ctx)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        self._muse(ctx)
        match ctx.rng.below(8):
            case 0:
                self.disown(ctx, ELECTING)
            case 1:
                self.give_up(ctx, "tired")
            case 2 | 3:
                self.elect(ctx, ctx.rng.choice(ctx.view.ids), 1)
            case _:
                self.elect(ctx, ctx.me.id, 1)

    def _muse(self, ctx: Context) -> None:
        ctx.set_timer("muse", ctx.rng.choice((0.5, 2.0, ctx.rng.uniform(0.0, 30.0))))


@dataclass(frozen=True, slots=True)
class Operation:
    """What a leader asks of the resource."""

    holder: Holder
    token: int


@dataclass(slots=True)
class Resource:
    """Executes what its leader sends; `fenced`, it refuses a token below the highest seen."""

    fenced: bool = True
    highest: int = 0
    executed: list[Operation] = field(default_factory=list)
    refused: int = 0

    def arrive(self, operation: Operation) -> None:
        if self.fenced and operation.token < self.highest:
            self.refused += 1
            return
        self.highest = max(self.highest, operation.token)
        self.executed.append(operation)

    def complaint(self, guard: MemoryGuard) -> str | None:
        """An operation of an older holder after one of a newer, by the order of the grants."""
        place = {(grant.holder, grant.token): age for age, grant in enumerate(guard.grants)}
        newest = -1
        for operation in self.executed:
            age = place.get((operation.holder, operation.token), -1)
            if age < newest:
                return f"{operation} after one of {guard.grants[newest]}"
            newest = age
        return None


class Lapses:
    """An observer: how often somebody stepped down by itself."""

    def __init__(self) -> None:
        self.count = 0

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        self.count += outcome == NoLeader(LAPSED)

    def changed(self, world: World, member: SimContext) -> None:
        """Who comes and goes is no matter."""


@dataclass(frozen=True, slots=True)
class Played:
    """A run that is over."""

    group: Group
    guard: MemoryGuard
    resource: Resource
    lapses: int
    wrong: dict[str, str]  # by the checker that says so


def turmoil(
    kind: type[Election],
    settings: dict[str, object],
    seed: int,
    *,
    wrap: Wrap = LeaseLayer,
    guarding: Guarding = MemoryGuard,
    network: Callable[[Stream], Network] = hostile,
    beyond: float = 1.0,
    fenced: bool = True,
    calm: float = 0.0,
) -> Played:
    """`beyond`: by how much clocks are worse than members are told."""
    stream = Stream(derive(seed, "guarded"))
    lease = LeaseConfig(ttl=stream.choice((8.0, 12.0, 30.0)), drift=stream.choice(DRIFTS))
    assert not lease.broken_rules()
    choice = parse_choice(stream.choice(CHOICES))
    ids = stream.sample(range(1, 30), 2 + stream.below(5))
    config = kind.Settings.parse({**kind.Settings.for_group(len(ids), Surroundings()), **settings})
    world = World(
        lambda: wrap(kind(config, choice), lease),
        [draw_candidate(stream, member) for member in ids],
        seed=seed,
        network=network(stream),
        debug=True,
    )
    guard = guarding(world, _rate(stream, lease.drift * beyond))
    for member in world.members.values():
        member.keep_time(_rate(stream, lease.drift * beyond), stream.uniform(0.0, 50.0))
    checkers = safety_checkers()
    attach(checkers, world)
    lapses = Lapses()
    world.watch(lapses)
    resource = Resource(fenced=fenced)
    group = Group(world, choice, stream, Attendance())
    horizon = stream.choice((40.0, 120.0))
    _send_operations(group, resource, horizon + LASTS, 2.0 * lease.asked)
    world.start()
    schedule(world, _troubles(group, horizon, lease.asked))
    ended = world.run(until=horizon + LASTS + 3.0 * lease.asked + calm, max_events=MAX_EVENTS)
    verdicts = {checker.name: checker.judge(world, ended) for checker in checkers}
    wrong = {name: why for name, (what, why) in verdicts.items() if what is not Verdict.HOLDS}
    if (why_not := resource.complaint(guard)) is not None:
        wrong["resource"] = why_not
    if ended not in (Ended.UNTIL, Ended.QUIESCENT):
        wrong["ended"] = ended.value
    return Played(group, guard, resource, lapses.count, wrong)


def _rate(stream: Stream, drift: float) -> float:
    """Mostly as bad as allowed: what is in between tells nothing new."""
    return 1.0 + stream.choice((-drift, drift, -drift, drift, stream.uniform(-drift, drift)))


def _troubles(group: Group, horizon: float, ttl: float) -> list[Happening]:
    stream, ids = group.stream, group.ids
    happenings: list[Happening] = [Call(member=member) for member in ids if stream.below(2)]
    for _ in range(4 + stream.below(16)):
        happenings += weighted(
            stream,
            [
                (2, draw_trouble(group, horizon)),
                (2, _guard_trouble(group, horizon)),
                (1, _long_pause(group, horizon, ttl)),
                (1, _bounce(group, horizon)),
            ],
        )
    # Elections that wait for somebody to ask are asked, or there is nothing to confirm.
    for _ in range(6):
        happenings.append(Call(member=stream.choice(ids), at=stream.uniform(0.0, horizon)))
    return happenings


def _guard_trouble(group: Group, horizon: float) -> list[Happening]:
    """The guard is cut off: from all, from some, or in one direction."""
    stream, ids = group.stream, group.ids
    at = stream.uniform(0.0, horizon)
    end = at + stream.uniform(0.0, LASTS)
    one = tuple(each for each in ids if stream.below(2))
    rest = tuple(each for each in ids if each not in one)
    return weighted(
        stream,
        [
            (2, [Partition(sides=((GUARD, *one), rest), name="g", at=at), Heal(name="g", at=end)]),
            (1, [Partition(sides=((GUARD,), tuple(ids)), name="g", at=at), Heal(name="g", at=end)]),
            (1, [OneWay(senders=(GUARD,), to=one, name="h", at=at), Heal(name="h", at=end)]),
            (1, [OneWay(senders=one, to=(GUARD,), name="h", at=at), Heal(name="h", at=end)]),
        ],
    )


def _long_pause(group: Group, horizon: float, ttl: float) -> list[Happening]:
    """Longer than a lease, or as good as."""
    stream = group.stream
    member, at = stream.choice(group.ids), stream.uniform(0.0, horizon)
    end = at + stream.uniform(0.5, 1.5) * ttl
    return [Pause(member=member, at=at), Resume(member=member, at=end)]


def _bounce(group: Group, horizon: float) -> list[Happening]:
    """A crash, and the next incarnation soon after."""
    stream = group.stream
    member, at = stream.choice(group.ids), stream.uniform(0.0, horizon)
    back = Restart(member=member, at=at + stream.uniform(0.0, 4.0))
    return [Crash(member=member, at=at), back]


def _send_operations(group: Group, resource: Resource, until: float, late: float) -> None:
    """Now and then everybody who leads by its own word sends an operation."""
    stream, world = group.stream, group.world
    at = 0.0
    while at < until:
        at += stream.uniform(0.1, 3.0)
        delay = stream.choice((0.0, stream.uniform(0.0, late)))
        world.at(at, partial(_operate, world, resource, delay))


def _operate(world: World, resource: Resource, delay: float) -> None:
    for member in world.live():
        outcome = member.outcome
        if isinstance(outcome, Elected) and outcome.leader == member.id:
            operation = Operation(Holder(member.id, member.incarnation), outcome.term)
            world.at(world.now + delay, partial(resource.arrive, operation))


def held(group: Group) -> dict[MemberId, Outcome | None]:
    """What each live member says."""
    return {member.id: member.outcome for member in group.world.live()}

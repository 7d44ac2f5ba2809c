"""What one seed draws: the network, the clocks, and what happens to the group.

Each seed first draws which kinds of faults its world has. A world of pauses alone reaches states
that a world with one fault of every kind never reaches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random

from hustings.core.choice import MemberId
from hustings.core.errors import BadInput
from hustings.core.outcome import Elected
from hustings.core.streams import Stream
from hustings.sim.delay import Delay, Fixed, Lognormal, Uniform
from hustings.sim.environment import CUT, Environment
from hustings.sim.faults import (
    EMPTY_DISK,
    Alive,
    Call,
    Crash,
    CrashInside,
    Happening,
    Heal,
    Leave,
    OneWay,
    Partition,
    Pause,
    Restart,
    Resume,
    Suspect,
    Weather,
)
from hustings.sim.guarding import GUARD
from hustings.sim.loss import Fate, Loss, NoLoss, Uncorrelated
from hustings.sim.member import Status
from hustings.sim.network import Network
from hustings.sim.sites import SiteLoss
from hustings.sim.world import World

DATE = 1000.0  # how much the date grows in a unit of time: more than tokens ever do
QUIET = Network(delay=Uniform(0.2, 1.0))  # at first and after the calm: delays within delta

Votes = Callable[[Mapping[str, object]], bool]  # whether a voter with this storage votes already

_DELAYS: tuple[Delay, ...] = (
    Fixed(1.0),
    Fixed(0.25),
    Uniform(0.0, 1.0),
    Uniform(0.0, 3.0),
    Uniform(0.0, 12.0),
    Lognormal(0.5, 1.0),
)


class Disks:
    """Which disks may be lost: as many as a quorum says that it can bear.

    Once all its voters have begun to vote, a quorum can bear the loss of a disk as long as the
    other voters that still have theirs are a majority of all. It can bear the loss of all disks at
    once, if incarnations grow with the date. What members without a vote store matters little.
    """

    def __init__(self, voters: tuple[MemberId, ...], votes: Votes) -> None:
        self._voters = voters
        self._votes = votes
        self._begun = False
        self.lost = 0
        self.skipped = 0  # numbers of incarnations, for the date

    def lose(self, world: World, member: MemberId) -> bool:
        """Whether this member may lose its disk now; if so, the disk counts as lost."""
        voters = [world.members[voter] for voter in self._voters]
        remembering = [voter.id for voter in voters if self._votes(voter.stored)]
        self._begun = self._begun or len(remembering) == len(voters)
        left = [voter for voter in remembering if voter != member]
        if member in self._voters and not (self._begun and len(left) > len(voters) // 2):
            return False
        self.lost += 1
        return True

    def lose_all(self, world: World) -> None:
        """All voters are down, and their disks are lost; later incarnations follow the date."""
        for voter in self._voters:
            member = world.members[voter]
            member.stored = EMPTY_DISK
            date = max(member.incarnation, int(DATE * (1.0 + world.now)))
            self.skipped += date - member.incarnation
            member.incarnation = date
            self.lost += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Return(Happening):
    """A member that is down comes back; it may lose its disk, if the quorum can bear that."""

    member: MemberId
    disks: Disks

    def happen(self, world: World) -> None:
        down = world.member(self.member).status in (Status.CRASHED, Status.LEFT)
        wiped = down and self.disks.lose(world, self.member)
        Restart(member=self.member, wiped=wiped).happen(world)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoseAll(Happening):
    """All voters go down at one instant, and each of them loses its disk."""

    voters: tuple[MemberId, ...]
    disks: Disks

    def happen(self, world: World) -> None:
        for voter in self.voters:
            Crash(member=voter).happen(world)
        down = (Status.CRASHED, Status.LEFT)
        if all(world.member(voter).status in down for voter in self.voters):
            self.disks.lose_all(world)


@dataclass(frozen=True, slots=True, kw_only=True)
class Depose(Happening):
    """Cut off the member that leads at that moment, for some time; it stays up.

    `speaks`: other members hear it; `hears`: it hears other members. With `bounced` all other
    members crash at once and come back within this time. Afterwards they suspect it, so that
    another member takes its place.
    """

    name: str
    end: float
    speaks: bool
    hears: bool
    bounced: float | None
    central: bool

    def prepare(self, world: World) -> None:
        world.be_careful()

    def happen(self, world: World) -> None:
        for member in world.live():
            outcome = member.outcome
            if isinstance(outcome, Elected) and outcome.leader == member.id:
                self._cut_off(world, member.id)
                return

    def _cut_off(self, world: World, leader: MemberId) -> None:
        everybody = [GUARD, *world.members] if self.central else [*world.members]
        others = tuple(each for each in everybody if each != leader)
        cuts: list[Happening] = []
        if not self.speaks:
            cuts.append(OneWay(senders=(leader,), to=others, name=f"{self.name} mute"))
        if not self.hears:
            cuts.append(OneWay(senders=others, to=(leader,), name=f"{self.name} deaf"))
        members = [each for each in others if each != GUARD]
        back = world.now + (self.bounced or 0.0)
        for number, member in enumerate(members, 1):
            if self.bounced is not None:
                cuts.append(Crash(member=member, at=world.now))
                share = self.bounced * number / len(members)
                cuts.append(Restart(member=member, at=world.now + share))
            cuts.append(Suspect(member=member, about=leader, at=back))
        for cut in cuts:
            world.at(max(cut.at, world.now), partial(cut.happen, world))
        for kind in ("mute", "deaf"):
            end = max(self.end, world.now)
            world.at(end, partial(Heal(name=f"{self.name} {kind}").happen, world))


@dataclass(frozen=True, slots=True)
class Scene:
    """Which members things may happen to, and for how long."""

    ids: tuple[MemberId, ...]
    voters: tuple[MemberId, ...]  # the members of the quorum, if there is one
    disks: Disks
    central: bool  # whether the guard is one place, number 0
    ttl: float
    begin: float  # no fault before: voters that never voted wait for one lease
    horizon: float  # no fault begins later,
    calm: float  # and everything is over by then
    surroundings: ScaledEnvironment | None = None  # where the network is not drawn


@dataclass(frozen=True, slots=True)
class ScaledDelay(Delay):
    """Another law, in a longer unit of time, for members that stand for members of its group."""

    name = "scaled"

    law: Delay
    unit: float
    stands_for: Mapping[MemberId, MemberId]

    def draw(self, rng: Random, sender: MemberId, receiver: MemberId) -> float:
        here, there = self.stands_for[sender], self.stands_for[receiver]
        return self.law.draw(rng, here, there) / self.unit

    @property
    def bound(self) -> float:
        return self.law.bound / self.unit


@dataclass(frozen=True, slots=True)
class PlacedLoss(Loss):
    """Another loss, for members that stand for members of its group."""

    name = "placed"

    loss: Loss = NoLoss()  # noqa: RUF009 (frozen)
    stands_for: Mapping[MemberId, MemberId] = field(default_factory=dict)

    def fate(self, chance: Random) -> Fate:
        fate, stands_for = self.loss.fate(chance), self.stands_for
        return lambda now, sender, receiver: fate(now, stands_for[sender], stands_for[receiver])


@dataclass(frozen=True, slots=True)
class ScaledEnvironment:
    """An environment for a small group of the swarm, in units of the longest delay.

    The few members that a seed draws stand for members of the whole group: they are spread over its
    sites in their order. A guard in one place is at the first site.
    """

    environment: Environment
    unit: float  # seconds: the bound on delays
    stands_for: Mapping[MemberId, MemberId]

    @classmethod
    def of(cls, environment: Environment, ids: Sequence[MemberId]) -> ScaledEnvironment:
        """The environment for the members with these ids."""
        unit = environment.network.delay.bound
        if unit <= 0.0:
            raise BadInput("a swarm counts time in delays: the environment needs a delay > 0")
        whole = environment.members or len(ids)
        spread = {
            one: 1 + (2 * place + 1) * whole // (2 * len(ids)) for place, one in enumerate(ids)
        }
        return cls(environment, unit, {GUARD: 1, **spread})

    @property
    def network(self) -> Network:
        """The network during the time of faults."""
        network = self.environment.network
        loss = network.loss
        if isinstance(loss, SiteLoss):
            loss = PlacedLoss(loss.p, loss=loss, stands_for=self.stands_for)
        return replace(
            network,
            delay=ScaledDelay(network.delay, self.unit, self.stands_for),
            loss=loss,
            hold_back=network.hold_back / self.unit,
        )

    def site(self, member: MemberId) -> int:
        """The number of the site where a member stands."""
        sites = self.environment.sites
        return 0 if sites is None else sites.of(self.stands_for[member])

    def pause(self, stream: Stream, member: MemberId) -> float | None:
        """How long a pause of a member takes, if the environment says so."""
        pauses = self.environment.pauses
        if pauses is None:
            return None
        return pauses.draw(Random(stream.bits()), self.stands_for[member]) / self.unit

    def outage(self, stream: Stream) -> float:
        """How long an outage takes."""
        outages = self.environment.outages
        assert outages is not None
        return outages.lasts.draw(Random(stream.bits()), 1, 1) / self.unit


def draw_network(stream: Stream) -> Network:
    """Draw anything from a good network to one where most arrivals are out of date."""
    p = stream.choice((0.0, 0.0, 0.05, 0.2, 0.5))
    reorder = stream.choice((0.0, 0.0, 0.2))
    return Network(
        delay=stream.choice(_DELAYS),
        loss=Uncorrelated(p) if p else NoLoss(),
        duplicate=stream.choice((0.0, 0.0, 0.2)),
        reorder=reorder,
        hold_back=stream.choice((4.0, 20.0)) if reorder else 0.0,
    )


def draw_rate(stream: Stream, drift: float) -> float:
    """Mostly the worst rate allowed: rates in between show nothing new."""
    return 1.0 + stream.choice((-drift, drift, -drift, drift, stream.uniform(-drift, drift)))


def draw_happenings(stream: Stream, scene: Scene) -> list[Happening]:
    """All that happens, and the calm after it."""
    around = scene.surroundings
    failing = around is not None and around.environment.outages is not None
    kinds = (*_KINDS, _outage, _outage) if failing else _KINDS
    known = [kind for kind in kinds if stream.below(3)] or [_crash]
    begin = scene.begin
    happenings: list[Happening] = [
        Call(member=one, at=begin) for one in scene.ids if stream.below(2)
    ]
    worse = begin + stream.choice((0.0, 5.0, 10.0))
    network = draw_network(stream) if around is None else around.network
    happenings.append(Weather(network=network, at=worse))
    for number in range(2 + stream.below(10)):
        happenings += stream.choice(known)(stream, scene, str(number))
    for _ in range(3):  # some elections wait for a call
        at = stream.uniform(scene.begin, scene.horizon)
        happenings.append(Call(member=stream.choice(scene.ids), at=at))
    return [*happenings, *_calm(scene)]


def _calm(scene: Scene) -> list[Happening]:
    """All members are back, every link is open, and all call an election."""
    back: list[Happening] = [Weather(network=QUIET, at=scene.calm)]
    for member in scene.ids:
        back += [Resume(member=member, at=scene.calm), Restart(member=member, at=scene.calm)]
    for member in scene.ids:
        others = [one for one in scene.ids if one != member]
        back += [Alive(member=one, about=member, at=scene.calm) for one in others]
    return back + [Call(member=member, at=scene.calm + 2.0) for member in scene.ids]


# Each kind of fault, with its end


def _when(stream: Stream, scene: Scene, lasts: float) -> tuple[float, float]:
    at = stream.uniform(scene.begin, scene.horizon)
    return at, min(at + stream.uniform(0.0, lasts), scene.calm)


def _back(stream: Stream, scene: Scene, member: MemberId, at: float) -> Happening:
    if stream.below(2):
        return Restart(member=member, at=at)
    return Return(member=member, at=at, disks=scene.disks)


def _crash(stream: Stream, scene: Scene, name: str) -> list[Happening]:
    member = stream.choice(scene.ids)
    at, end = _when(stream, scene, stream.choice((2.0, 2.0, 15.0)))
    return [Crash(member=member, at=at), _back(stream, scene, member, end)]


def _crash_inside(stream: Stream, scene: Scene, name: str) -> list[Happening]:
    """Crash in the middle of a handler: its storage may be kept, its messages are mostly lost."""
    member = stream.choice(scene.voters or scene.ids)
    at, end = _when(stream, scene, 10.0)
    kept = bool(stream.below(4))
    crash = CrashInside(
        member=member,
        at=at,
        kept=kept,
        sends=stream.choice((0, 0, 1, 2)) if kept else 0,
        storing=bool(stream.below(4)),
        until=scene.calm,
    )
    return [crash, _back(stream, scene, member, end)]


def _bounce_all(stream: Stream, scene: Scene, name: str) -> list[Happening]:
    """The power fails: all go down at one instant and come back one after the other."""
    at, _ = _when(stream, scene, 0.0)
    down: list[Happening] = [Crash(member=member, at=at) for member in scene.ids]
    ends = [min(at + stream.uniform(0.0, 3.0), scene.calm) for _ in scene.ids]
    return down + [
        Restart(member=member, at=end) for member, end in zip(scene.ids, ends, strict=True)
    ]


def _lose_all(stream: Stream, scene: Scene, name: str) -> list[Happening]:
    """All voters lose their disks. During that the leader may be cut off, if it is no voter."""
    if not scene.voters:
        return _bounce_all(stream, scene, name)
    at, _ = _when(stream, scene, 0.0)
    first: list[Happening] = []
    if stream.below(3):
        end = min(at + stream.uniform(0.5, 3.0) * scene.ttl, scene.calm)
        cut = Depose(
            at=at, name=name, end=end, speaks=False, hears=False, bounced=None, central=False
        )
        first.append(cut)
    ends = [min(at + stream.uniform(0.0, 3.0), scene.calm) for _ in scene.voters]
    return [
        *first,
        LoseAll(voters=scene.voters, disks=scene.disks, at=at),
        *(Restart(member=one, at=end) for one, end in zip(scene.voters, ends, strict=True)),
        *(Call(member=one, at=max(ends)) for one in scene.ids),
    ]


def _pause(stream: Stream, scene: Scene, name: str) -> list[Happening]:
    """Pause for a short time, or for about as long as a lease; or as the environment says."""
    member = stream.choice(scene.ids)
    at, end = _when(stream, scene, stream.choice((3.0, 1.5 * scene.ttl)))
    around = scene.surroundings
    if around is not None and (length := around.pause(stream, member)) is not None:
        end = min(at + length, scene.calm)
    return [Pause(member=member, at=at), Resume(member=member, at=end)]


def _partition(stream: Stream, scene: Scene, name: str) -> list[Happening]:
    everybody = (GUARD, *scene.ids) if scene.central else scene.ids
    one = tuple(each for each in everybody if stream.below(2))
    rest = tuple(each for each in everybody if each not in one)
    at, end = _when(stream, scene, 15.0)
    return [Partition(sides=(one, rest), name=name, at=at), Heal(name=name, at=end)]


def _one_way(stream: Stream, scene: Scene, name: str) -> list[Happening]:
    """Some or all other members do not hear one member, or it does not hear them."""
    everybody = (GUARD, *scene.ids) if scene.central else scene.ids
    one = stream.choice(everybody)
    rest = tuple(each for each in everybody if each != one and stream.below(3))
    at, end = _when(stream, scene, 15.0)
    if not rest:
        return []
    senders, to = ((one,), rest) if stream.below(2) else (rest, (one,))
    return [OneWay(senders=senders, to=to, name=name, at=at), Heal(name=name, at=end)]


def _suspect(stream: Stream, scene: Scene, name: str) -> list[Happening]:
    member, about = stream.choice(scene.ids), stream.choice(scene.ids)
    at, end = _when(stream, scene, 5.0)
    if about == member:
        return []
    return [Suspect(member=member, about=about, at=at), Alive(member=member, about=about, at=end)]


def _leave(stream: Stream, scene: Scene, name: str) -> list[Happening]:
    member = stream.choice(scene.ids)
    at, end = _when(stream, scene, 10.0)
    return [Leave(member=member, at=at), _back(stream, scene, member, end)]


def _depose(stream: Stream, scene: Scene, name: str) -> list[Happening]:
    """Depose the leader for about as long as its lease, or longer."""
    at = stream.uniform(scene.begin, scene.horizon)
    cut = stream.below(3)
    return [
        Depose(
            at=at,
            name=name,
            end=min(at + stream.uniform(0.5, 3.0) * scene.ttl, scene.calm),
            speaks=cut == 1,
            hears=cut == 2,
            bounced=None if stream.below(2) else stream.uniform(0.0, 2.0),
            central=scene.central,
        )
    ]


def _outage(stream: Stream, scene: Scene, name: str) -> list[Happening]:
    """A whole site is cut off, or all its members crash at once."""
    around = scene.surroundings
    assert around is not None
    site = around.site(stream.choice(scene.ids))
    inside = tuple(one for one in scene.ids if around.site(one) == site)
    rest = tuple(one for one in scene.ids if around.site(one) != site)
    at = stream.uniform(scene.begin, scene.horizon)
    end = min(at + around.outage(stream), scene.calm)
    outages = around.environment.outages
    if outages is not None and outages.kind != CUT:
        down: list[Happening] = [Crash(member=one, at=at) for one in inside]
        return [*down, *(Restart(member=one, at=end) for one in inside)]
    if scene.central:
        inside, rest = ((*inside, GUARD), rest) if site == 0 else (inside, (*rest, GUARD))
    return [Partition(sides=(inside, rest), name=name, at=at), Heal(name=name, at=end)]


_KINDS: tuple[Callable[[Stream, Scene, str], list[Happening]], ...] = (
    _crash,
    _crash_inside,
    _crash_inside,
    _bounce_all,
    _lose_all,
    _pause,
    _partition,
    _one_way,
    _suspect,
    _leave,
    _depose,
    _depose,
)

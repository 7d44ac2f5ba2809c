"""Groups with a leadership layer in turmoil, then calm: one seed draws all that happens."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from hustings.core.choice import Candidate, HighestId, MemberId
from hustings.core.context import Context
from hustings.core.election import Election
from hustings.core.outcome import Elected, Outcome
from hustings.core.streams import Stream, derive
from hustings.layers.detector.detector import Detector
from hustings.layers.detector.heartbeat import HeartbeatConfig
from hustings.layers.detector.layer import DetectorLayer
from hustings.layers.gossip.layer import GossipConfig, GossipContext, GossipLayer
from hustings.layers.gossip.membership import Membership
from hustings.layers.leadership.layer import LeadershipConfig, LeadershipLayer
from hustings.layers.leadership.standing import (
    OBSERVER,
    ByStanding,
    accepts,
    with_standing,
)
from hustings.protocols.announce.le_s import LeS
from hustings.sim.carrier import Carrier
from hustings.sim.delay import Uniform
from hustings.sim.faults import Crash, Heal, Pause, Restart, Resume
from hustings.sim.loss import Uncorrelated
from hustings.sim.member import SimContext, Status
from hustings.sim.network import Network
from hustings.sim.world import Ended, World

STACK = GossipConfig(T_fail=12.0, epoch=10, minima=8, whole=True)
BEATS = HeartbeatConfig(T=2.0, D=7.0, pattern="leader-to-all")
DELAY = Uniform(0.1, 1.0)
ROUGH = Network(
    delay=DELAY,
    loss=Uncorrelated(0.1),
    duplicate=0.05,
    reorder=0.05,
    hold_back=5.0,
)
SMOOTH = Network(delay=DELAY)

START = 30.0  # by when all have started
TURMOIL = 160.0
CALM = 240.0  # some epochs of the gossip: sides of a partition must find each other first
MOST = 200_000  # events, about ten times what a run takes
PUMP = 0.25  # how often the world looks at how a member is to be shown


def settings(kind: type[Election]) -> dict[str, object]:
    if issubclass(kind, LeS):
        return {"T_A": 2.0, "T_L": 9.0, "T_S": 2.0}
    return {"T_A": 2.0, "T_L": 9.0} if kind.assumptions.announces else {}


def stacked(
    kind: type[Election],
    leadership: LeadershipConfig,
    roof: type[LeadershipLayer] = LeadershipLayer,
    beats: HeartbeatConfig = BEATS,
) -> GossipLayer:
    order = ByStanding(HighestId())
    inner: Election = kind(kind.Settings.parse(settings(kind)), order)
    if not kind.assumptions.announces:
        inner = DetectorLayer(inner, Detector(beats))
    return GossipLayer(roof(inner, leadership), Membership(STACK, accepts(order)), None)


def leadership_of(ctx: SimContext) -> LeadershipLayer:
    stack = ctx.election
    assert isinstance(stack, GossipLayer)
    assert isinstance(stack.inner, LeadershipLayer)
    return stack.inner


class Watch:
    """Notes terms that fall."""

    def __init__(self) -> None:
        self.terms: dict[MemberId, int] = {}
        self.fallen: list[str] = []
        self.log: list[tuple[float, MemberId, Outcome]] = []

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        self.log.append((world.now, member.id, outcome))
        if isinstance(outcome, Elected):
            before = self.terms.get(member.id, 0)
            if outcome.term < before:
                self.fallen.append(
                    f"at {world.now:g} member {member.id}'s term fell: {before} to {outcome.term}"
                )
            self.terms[member.id] = outcome.term

    def changed(self, world: World, member: SimContext) -> None:
        """Whoever comes back has stored its term."""


class Turmoil:
    """One group and what happens to it."""

    def __init__(
        self,
        kind: type[Election],
        seed: int,
        leadership: LeadershipConfig,
        roof: type[LeadershipLayer] = LeadershipLayer,
    ) -> None:
        self.rng = Stream(derive(seed, "helm", kind.about.name))
        rng = self.rng
        self.electors = list(range(1, 4 + rng.below(4)))
        count = len(self.electors)
        self.observers = list(range(count + 1, count + 1 + rng.below(3)))
        people = [Candidate(i) for i in self.electors]
        people += [with_standing(Candidate(i), OBSERVER) for i in self.observers]
        self.world = World(
            lambda: stacked(kind, leadership, roof),
            people,
            seed=seed,
            network=ROUGH,
        )
        self.world.be_careful()
        self.watch = Watch()
        self.world.watch(self.watch)
        self.ended = Ended.QUIESCENT
        self.paused: dict[MemberId, float] = {}

    # What may happen

    def do(self, member: MemberId, what: Callable[[LeadershipLayer, Context], object]) -> None:
        ctx = self.world.members[member]
        if ctx.up:
            stack = ctx.election
            assert isinstance(stack, GossipLayer)
            what(leadership_of(ctx), GossipContext(ctx, stack))
            self.show(ctx)

    def show(self, ctx: SimContext) -> None:
        ctx.me = leadership_of(ctx).shown(ctx.me)

    def pump(self) -> None:
        for ctx in self.world.live():
            self.show(ctx)
        self.world.at(self.world.now + PUMP, self.pump)

    def pause(self, member: MemberId) -> None:
        if self.world.members[member].up:
            self.paused[member] = self.world.now
            Pause(member=member).happen(self.world)

    def resume(self, member: MemberId) -> None:
        ctx = self.world.members[member]
        if ctx.status is Status.PAUSED:
            gap = self.world.now - self.paused.pop(member)
            backlog, ctx.backlog = ctx.backlog, []
            Resume(member=member).happen(self.world)
            self.do(member, lambda leadership, below: leadership.woke(below, gap))
            ctx.backlog = backlog
            Resume(member=member).happen(self.world)

    def hand_over(self, member: MemberId, to: MemberId) -> None:
        self.do(member, lambda leadership, ctx: leadership.hand_over(ctx, to))

    def hand_over_by_leader(self, to: MemberId) -> None:
        for member in self.electors:
            self.hand_over(member, to)

    def resign_leader(self) -> None:
        for member in [ctx.id for ctx in self.world.live() if ctx.id in self.electors]:
            if leadership_of(self.world.members[member]).leads(member):
                self.do(member, lambda leadership, ctx: leadership.stand_back(ctx))

    def cut(self) -> None:
        members = [*self.electors, *self.observers]
        self.rng.shuffle(members)
        half = 1 + self.rng.below(len(members) - 1)
        self.world.partitions.partition("cut", (tuple(members[:half]), tuple(members[half:])))

    def misfortune(self) -> None:
        rng, world = self.rng, self.world
        everybody = [*self.electors, *self.observers]
        member, other = rng.choice(everybody), rng.choice(self.electors)
        draw = rng.below(9)
        if draw == 0:
            Crash(member=member).happen(world)
        elif draw == 1:
            Restart(member=member).happen(world)
        elif draw == 2:
            self.pause(member)
            world.at(world.now + rng.uniform(1.0, 40.0), partial(self.resume, member))
        elif draw == 3:
            self.cut()
            world.at(world.now + rng.uniform(5.0, 50.0), partial(Heal(name="cut").happen, world))
        elif draw == 4:
            self.hand_over_by_leader(other)
        elif draw == 5:
            self.resign_leader()
        elif draw == 6:
            self.do(member, lambda leadership, ctx: leadership.stand(ctx))
        elif draw == 7:
            world.tell(world.members[other], "call")
        else:
            leader = next((c for c in world.live() if leadership_of(c).leads(c.id)), None)
            if leader is not None:
                Crash(member=leader.id).happen(world)

    def calm(self) -> None:
        world = self.world
        world.partitions.heal("cut")
        world.carrier = Carrier(world, SMOOTH)
        for ctx in list(world.members.values()):
            self.resume(ctx.id)
            if ctx.status is Status.CRASHED and self.rng.below(2):
                Restart(member=ctx.id).happen(world)
        if not any(world.members[i].up for i in self.electors):
            Restart(member=self.electors[0]).happen(world)
        up = [i for i in self.electors if world.members[i].up]
        if len(up) == 1:  # else nobody leads: it may have resigned
            self.do(up[0], lambda leadership, ctx: leadership.stand(ctx))

    def run(self) -> None:
        world, rng = self.world, self.rng
        world.at(0.0, self.pump)
        for ctx in list(world.members.values()):
            world.at(rng.uniform(0.0, START), partial(world.start, ctx.id))
        for _ in range(10):
            world.at(rng.uniform(5.0, TURMOIL), self.misfortune)
        world.at(TURMOIL, self.calm)
        self.ended = world.run(until=TURMOIL + CALM, max_events=MOST)

    def complaint(self) -> str | None:
        """What is wrong in the end."""
        if self.ended is not Ended.UNTIL:
            return f"more than {MOST} events by {self.world.now:g}"
        if self.watch.fallen:
            return self.watch.fallen[0]
        live = self.world.live()
        said = {ctx.id: ctx.outcome for ctx in live}
        held = list(dict.fromkeys(ctx.outcome for ctx in live))
        if len(held) != 1 or not isinstance(held[0], Elected):
            return f"they do not agree: {said}"
        leader = self.world.members[held[0].leader]
        if not leader.up or leader.id in self.observers:
            return f"member {leader.id} cannot lead: {leader.status.value}"
        return None


def judge(
    kind: type[Election],
    seed: int,
    leadership: LeadershipConfig,
    roof: type[LeadershipLayer] = LeadershipLayer,
) -> str | None:
    """What is wrong after one seed's turmoil, if anything."""
    group = Turmoil(kind, seed, leadership, roof)
    group.run()
    return group.complaint()

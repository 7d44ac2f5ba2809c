"""Our side of the benchmark: the same three members, as elections in the deterministic world."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from bench.members import (
    ANNOUNCE_PERIOD,
    HORIZON,
    LOSS,
    MULTICAST_DELAY,
    SUPPRESS_SPAN,
)
from bench.run import Run, Tally, timed
from hustings.core.choice import Candidate, Choice, HighestId, MemberId
from hustings.core.config import Config
from hustings.core.context import Context, TimerKey
from hustings.core.election import Election, upon
from hustings.core.messages import Message, Role
from hustings.core.outcome import Elected
from hustings.protocols.bully import Bully
from hustings.sim.checkers import all_checkers, attach
from hustings.sim.delay import Fixed
from hustings.sim.loss import Uncorrelated
from hustings.sim.member import Status
from hustings.sim.network import Network
from hustings.sim.trace import Header, Tracer
from hustings.sim.world import Ended, World

CHOICE = HighestId()


class RingElection(Message, frozen=True, tag="ELECTION"):
    """The best id so far."""

    role: ClassVar[Role] = Role.ELECTION
    best: MemberId


class RingElected(Message, frozen=True, tag="ELECTED"):
    """The result."""

    role: ClassVar[Role] = Role.COORDINATOR
    leader: MemberId


class LeanRing(Election):
    """The peers' ring member, line by line."""

    __slots__ = ("forwarded", "me", "successor")
    messages = (RingElection, RingElected)

    def __init__(self, config: Config, choice: Choice) -> None:
        super().__init__(config, choice)
        self.forwarded = False
        self.me = 0
        self.successor = 0

    def start(self, ctx: Context) -> None:
        self.me = ctx.me.id
        self.successor = ctx.view.successor(self.me) or 0

    def call(self, ctx: Context) -> None:
        self.forwarded = True
        ctx.send(self.successor, RingElection(self.me))

    @upon(RingElection)
    def on_election(self, ctx: Context, sender: MemberId, message: RingElection) -> None:
        best = message.best
        if best > self.me:
            self.forwarded = True
            ctx.send(self.successor, message)
        elif best == self.me:
            self.elect(ctx, best, 1)
            ctx.send(self.successor, RingElected(best))
        elif not self.forwarded:
            self.forwarded = True
            ctx.send(self.successor, RingElection(self.me))

    @upon(RingElected)
    def on_elected(self, ctx: Context, sender: MemberId, message: RingElected) -> None:
        if message.leader != self.me:
            self.elect(ctx, message.leader, 1)
            ctx.send(self.successor, message)


class Announcement(Message, frozen=True, tag="ANNOUNCE"):
    """I lead."""


class LeanSuppression(Election):
    """The peers' suppression-timer member, with one timer as theirs has."""

    __slots__ = ("following",)
    messages = (Announcement,)

    def start(self, ctx: Context) -> None:
        self.following = ctx.me.id
        ctx.set_timer("timer", ctx.rng.random() * SUPPRESS_SPAN)

    @upon(Announcement)
    def on_announcement(self, ctx: Context, sender: MemberId, message: Announcement) -> None:
        following = self.following
        if sender >= following:
            if sender > following:
                self.following = sender
                self.elect(ctx, sender, 1)
            ctx.set_timer("timer", 3.0)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        if self.following == ctx.me.id:
            ctx.multicast(Announcement())
            ctx.set_timer("timer", ANNOUNCE_PERIOD)
        else:
            self.following = ctx.me.id
            ctx.set_timer("timer", ctx.rng.random() * SUPPRESS_SPAN)


def _group(
    kind: type[Election],
    n: int,
    seed: int,
    network: Network | None = None,
    traced: bool = False,
) -> World:
    """A group of n with the checkers on."""
    config = kind.Settings()
    tracer = None
    if traced:
        tracer = Tracer(Header(protocol="bench", members=list(range(1, n + 1)), seed=seed))
    world = World(
        partial(kind, config, CHOICE),
        [Candidate(member) for member in range(1, n + 1)],
        seed=seed,
        network=network,
        tracer=tracer,
    )
    attach(all_checkers(CHOICE), world)
    return world


def _close(world: World, ended: Ended) -> None:
    if world.tracer is not None:
        world.tracer.close(world.now, ended.value)


def _tally(world: World) -> Tally:
    outcome = world.members[1].outcome
    leader = outcome.leader if isinstance(outcome, Elected) else 0
    return Tally(sends=sum(world.sent.values()), events=world.events, leader=leader)


def _build_ring(n: int, seed: int, traced: bool = False) -> World:
    world = _group(LeanRing, n, seed, traced=traced)
    world.start()
    return world


def _play_ring(world: World) -> None:
    world.tell(world.members[1], "call")
    _close(world, world.run())


def ring(n: int, seed: int) -> Run:
    """W1."""
    return timed(lambda: _build_ring(n, seed), _play_ring, _tally)


def _build_bully(n: int, seed: int, traced: bool = False) -> World:
    world = _group(Bully, n, seed, traced=traced)
    world.start()
    for member in world.members.values():
        member.election.assume_leader(member, n, 1)
    world.change(world.members[n], Status.CRASHED)
    return world


def _play_bully(world: World) -> None:
    world.tell(world.members[1], "suspect", len(world.members))
    _close(world, world.run())


def bully(n: int, seed: int) -> Run:
    """W2: the real bully."""
    return timed(lambda: _build_bully(n, seed), _play_bully, _tally)


def _build_suppression(n: int, seed: int, traced: bool = False) -> World:
    network = Network(Fixed(MULTICAST_DELAY), Uncorrelated(LOSS))
    world = _group(LeanSuppression, n, seed, network, traced)
    world.start()
    return world


def _play_suppression(world: World) -> None:
    _close(world, world.run(until=HORIZON))


def suppression(n: int, seed: int) -> Run:
    """W3."""
    return timed(lambda: _build_suppression(n, seed), _play_suppression, _tally)


def idle(n: int, seed: int) -> object:
    """The ring with every member started, for the memory table."""
    return _build_ring(n, seed)


def started(n: int, seed: int) -> object:
    """The suppression group with every timer armed, for the memory table."""
    return _build_suppression(n, seed)


def ring_traced(n: int, seed: int) -> Run:
    """W1 with a trace of everything."""
    return timed(lambda: _build_ring(n, seed, traced=True), _play_ring, _tally)


def bully_traced(n: int, seed: int) -> Run:
    """W2 with a trace of everything."""
    return timed(lambda: _build_bully(n, seed, traced=True), _play_bully, _tally)


def suppression_traced(n: int, seed: int) -> Run:
    """W3 with a trace of everything."""
    return timed(lambda: _build_suppression(n, seed, traced=True), _play_suppression, _tally)

"""A guard in memory, reached over the same network as the members.

It is one register: the holder, its token, and the end of the lease by the guard's own clock.
Questions and answers have the network's delays, losses, copies and reordering, and cuts stop them.
In partitions the guard is number 0; every side reaches a guard that is not named. The guard never
crashes, but a partition can isolate it. It forgets only what a test makes it forget.

`obstacle` says why no member can be confirmed now. Only certain reasons count: a lost message may
be repeated, and a member that has not joined yet may still join.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Protocol

from hustings.core.choice import MemberId
from hustings.core.election import Election
from hustings.core.guard import Granted, Held, Verdict
from hustings.core.streams import derive
from hustings.layers.layer import find
from hustings.layers.lease import LeaseLayer
from hustings.sim.member import Status
from hustings.sim.queue import END_OF_TIME, on_grid

if TYPE_CHECKING:
    from hustings.core.outcome import Outcome
    from hustings.quorum.layer import VotesNeeded
    from hustings.sim.member import SimContext
    from hustings.sim.world import World


GUARD: MemberId = 0  # no member has this id

MAX_WAITING = 1_000  # answers kept for one paused member; more are lost, as from a buffer


@dataclass(frozen=True, slots=True)
class Holder:
    """One incarnation of one member: another incarnation is another holder."""

    member: MemberId
    incarnation: int


@dataclass(frozen=True, slots=True)
class Grant:
    """A token went to a holder."""

    at: float  # by the world's clock
    token: int
    holder: Holder


class MemoryGuard:
    """Confirms one leader at a time in one world."""

    def __init__(self, world: World, rate: float = 1.0) -> None:
        """Becomes the world's guard; `rate` is that of the guard's clock."""
        self.world = world
        self.rate = rate
        self.holder: Holder | None = None
        self.token = 0
        self.expiry = 0.0  # by the guard's clock
        self.latest: dict[MemberId, tuple[int, int]] = {}  # incarnation and request of each
        self.grants: list[Grant] = []  # each token once, unless there is an error
        self.asked = 0  # questions that reached it
        self._chance = Random(derive(world.seed, "guard"))
        self._network = world.network
        self._fate = world.network.loss.fate(self._chance)
        self._last: dict[tuple[MemberId, MemberId], float] = {}  # latest arrival per link, fifo
        self._waiting: dict[MemberId, list[Callable[[], None]]] = {}  # answers to the paused
        world.guard = self
        world.watch(self)

    # What members do

    def acquire(self, ctx: SimContext, ttl: float, request: int) -> None:
        """A member asks for the lease, or renews it."""
        self._travel(ctx.id, GUARD, partial(self._decide, ctx, ctx.incarnation, ttl, request))

    def release(self, ctx: SimContext, request: int) -> None:
        """A member gives the lease back."""
        self._travel(ctx.id, GUARD, partial(self._release, ctx.id, ctx.incarnation, request))

    # What the guard does

    def now(self) -> float:
        """Its own clock."""
        return self.rate * self.world.now

    def is_free(self) -> bool:
        """Whether no member holds the token now."""
        return self.holder is None or self.now() >= self.expiry

    def _decide(self, ctx: SimContext, incarnation: int, ttl: float, request: int) -> None:
        self.asked += 1
        if self._is_outdated(ctx.id, incarnation, request):
            return
        verdict = self.decide(Holder(ctx.id, incarnation), ttl, request)
        if isinstance(verdict, Granted):
            grant = Grant(self.world.now, verdict.token, Holder(ctx.id, incarnation))
            last = self.grants[-1] if self.grants else None
            if last is None or (last.token, last.holder) != (grant.token, grant.holder):
                self.grants.append(grant)
        self._travel(GUARD, ctx.id, partial(self._answer, ctx, incarnation, verdict))

    def decide(self, who: Holder, ttl: float, request: int) -> Verdict:
        """The whole rule of the guard."""
        if self.is_free():
            self.holder, self.token = who, self.token + 1
            self.expiry = self.now() + ttl
        elif self.holder == who:
            self.expiry = max(self.expiry, self.now() + ttl)
        else:
            assert self.holder is not None
            remaining = self.expiry - self.now()
            return Held(request, self.holder.member, self.token, remaining)
        return Granted(request, self.token, ttl)

    def _release(self, member: MemberId, incarnation: int, request: int) -> None:
        self.asked += 1
        if self._is_outdated(member, incarnation, request):
            return
        if self.holder == Holder(member, incarnation):
            self.holder = None  # the token stays: the next one is larger

    def _is_outdated(self, member: MemberId, incarnation: int, request: int) -> bool:
        """Whether a later request of this member arrived before this one."""
        this = incarnation, request
        if this < self.latest.get(member, this):
            return True
        self.latest[member] = this
        return False

    def _answer(self, ctx: SimContext, incarnation: int, verdict: Verdict) -> None:
        """An answer arrives; one that a paused member gets waits, one to the dead is lost."""
        if ctx.incarnation != incarnation:
            return
        if ctx.up:
            self.world.invoke(ctx, ctx.election.on_verdict, verdict)
        elif ctx.backlog is not None:
            waiting = self._waiting.setdefault(ctx.id, [])
            if len(waiting) < MAX_WAITING:
                waiting.append(partial(self._answer, ctx, incarnation, verdict))

    # The network

    def _travel(self, sender: MemberId, receiver: MemberId, arrive: Callable[[], None]) -> None:
        world, network, chance = self.world, self.world.network, self._chance
        if self._network is not network:
            self._network, self._fate = network, network.loss.fate(chance)
        if self._fate(world.now, sender, receiver) or world.partitions.between(sender, receiver):
            return
        copies = 2 if network.duplicate and chance.random() < network.duplicate else 1
        for _ in range(copies):
            delay = network.delay.draw(chance, sender, receiver)
            if network.reorder and chance.random() < network.reorder:
                delay += chance.uniform(0.0, network.hold_back)
            at = on_grid(world.now + on_grid(delay))
            if network.fifo:
                at = max(at, self._last.get((sender, receiver), at))
                self._last[sender, receiver] = at
            if at <= END_OF_TIME:
                world.at(at, partial(self._land, sender, receiver, arrive))

    def _land(self, sender: MemberId, receiver: MemberId, arrive: Callable[[], None]) -> None:
        self.world.events += 1
        if not self.world.partitions.between(sender, receiver):
            arrive()

    # What the world tells

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        """Ignore what members say about each other."""

    def changed(self, world: World, member: SimContext) -> None:
        """A member that continues after a pause gets the answers that arrived during the pause."""
        waiting = self._waiting.pop(member.id, [])
        if member.up:
            for answer in waiting:
                world.at(world.now, answer)


def obstacle(world: World) -> str | None:
    """Why no member can be confirmed; None if one can be, or if none needs to be."""
    if any(member.status is Status.OUT for member in world.members.values()):
        return None
    if world.guard is None:
        return _no_majority(world)
    if any(_meet(world, member.id, GUARD) for member in world.live()):
        return None
    return "no live member reaches the guard"


def _meet(world: World, one: MemberId, other: MemberId) -> bool:
    """Whether questions and answers can arrive."""
    if one == other:
        return True
    cut = world.partitions.between(one, other) or world.partitions.between(other, one)
    return not cut and world.network.loss.p < 1.0


def _votes_needed(election: Election) -> VotesNeeded | None:
    """The votes that this member needs; None if the group has no voters."""
    # Few worlds have voters, and the others do not load them.
    from hustings.quorum.layer import QuorumLeaseLayer  # noqa: PLC0415 (few have voters)

    layer = find(QuorumLeaseLayer, election)
    return None if layer is None else layer.votes_needed()


def _no_majority(world: World) -> str | None:
    first: VotesNeeded | None = None
    for member in world.live():
        needed = _votes_needed(member.election)
        if needed is None:
            return None
        first = first or needed
        able = [each for each in needed.voters if _may_vote(world, needed, each)]
        if sum(_meet(world, member.id, each) for each in able) >= needed.enough:
            return None
    return None if first is None else _reason(world, first)


def _may_vote(world: World, needed: VotesNeeded, voter: MemberId) -> bool:
    """Whether a voter votes, or may vote later.

    Voters that remember no vote begin when all of them have met. Later, a voter that votes admits
    others.
    """
    own = _voting(world, voter)
    if own is None:
        return False
    others = [each for each in needed.voters if each != voter]
    met = [each for each in others if _voting(world, each) is not None]
    met = [each for each in met if _meet(world, voter, each)]
    return own or len(met) == len(others) or any(_voting(world, each) for each in met)


def _voting(world: World, voter: MemberId) -> bool | None:
    """Whether a voter votes now; None if it is not up."""
    member = world.members.get(voter)
    if member is None or not member.up:
        return None
    own = _votes_needed(member.election)
    return own is not None and own.votes


def _reason(world: World, needed: VotesNeeded) -> str:
    voters = needed.voters
    up = [each for each in voters if _voting(world, each) is not None]
    said = f"{needed.enough} of the voters {_listed(voters)} have to be up and to reach each other"
    if len(up) >= needed.enough and not any(_voting(world, each) for each in up):
        said = f"the voters {_listed(voters)} have never voted, and to begin all have to meet"
    down = [each for each in voters if each not in up]
    return said + (f": {_listed(down)} {'is' if len(down) == 1 else 'are'} down" if down else "")


def _listed(members: Iterable[MemberId]) -> str:
    return ", ".join(str(each) for each in members)


Present = tuple[MemberId, ...]  # the members that are there from the beginning


class Voting(Protocol):
    """Puts the layer that uses the guard round a member's election."""

    def __call__(self, confirmed: LeaseLayer, present: Present = ()) -> Election:
        """If members are named, the voters are among them."""
        ...

"""One member of the simulated world: its context, its clock, and the members that it knows.

A clock is off by a rate and an offset of its own. At the start a member knows the whole group, a
random part of it, or the members that are listed. The candidates of a world are looked up in the
members themselves: there is no second table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from hustings.core.choice import Candidate, MemberId
from hustings.core.errors import BadInput, ProtocolBug
from hustings.core.messages import Message
from hustings.core.outcome import Elected, Outcome
from hustings.core.streams import Stream, derive
from hustings.core.view import View
from hustings.sim.derived_view import Acquaintance, DerivedView
from hustings.sim.loss import check_probability
from hustings.sim.queue import EAGER, END_OF_TIME, NEVER, ROUND, TICKS, TIMER, Timer, on_grid

if TYPE_CHECKING:
    from hustings.core.context import TimerKey
    from hustings.core.election import Election, Handler
    from hustings.sim.guarding import MemoryGuard
    from hustings.sim.world import World


_NOTHING: Mapping[str, object] = {}
_NO_TIMERS: dict[TimerKey, Timer] = {}  # of all members that have armed none; stays empty

MAX_TIMERS = 1 << 20  # different timers of one member; a rank is built from it


class Status(Enum):
    """Whether a member takes part."""

    OUT = "out"  # not yet joined
    UP = "up"
    PAUSED = "paused"
    CRASHED = "crashed"
    LEFT = "left"


class Kept:
    """A message that reached a paused member."""

    __slots__ = ("message", "number", "sender")

    def __init__(self, sender: MemberId, message: Message, number: int) -> None:
        self.sender = sender
        self.message = message
        self.number = number  # in the trace


class SimContext:
    """The context that schedules at once.

    One object per member serves all its handler calls; debug mode wraps it so that keeping it is
    noticed. Slots and laziness are for groups of 100,000. An object orders its slots by name; the
    names put the slots that every message uses next to each other.
    """

    __slots__ = (
        "_world",
        "awake",
        "backlog",
        "election",
        "fuse",
        "handlers",
        "id",
        "incarnation",
        "lag",
        "me",
        "outcome",
        "pace",
        "status",
        "stored",
        "stream",
        "timers",
        "view",
    )

    def __init__(self, world: World, me: Candidate, view: View) -> None:
        self._world = world
        self.me = me
        self.id = me.id
        self.view = view
        self.incarnation = 0
        self.stored: Mapping[str, object] = _NOTHING
        self.status = Status.OUT
        self.awake = False
        self.pace = 1.0
        self.lag = 0.0
        self.outcome: Outcome | None = None
        self.fuse: int | None = None  # transmissions left before it crashes in mid-handler
        self.backlog: list[Kept | Timer] | None = None  # while paused
        self.timers = _NO_TIMERS
        self.stream: Stream | None = None
        self.election: Election
        self.handlers: Mapping[type[Message], Handler]

    # The context

    @property
    def rng(self) -> Stream:
        if self.stream is None:
            seed = derive(self._world.seed, "member", self.id, self.incarnation)
            self.stream = Stream(seed)
        return self.stream

    def now(self) -> float:
        return self.lag + self.pace * self._world.now

    def send(self, to: MemberId, message: Message) -> None:
        world = self._world
        delay = world.plain_delay
        if delay is None:
            world.carrier.send(self, to, message)
            return
        if message.__class__ is world.kind:
            world.run_of_kind += 1
        else:
            world.count(message.__class__)
        item: Message | tuple[int, Message] = message
        if world.heeded:
            tracer = world.tracer
            if tracer is None or world.ears:
                item = world.note(self, to, message)
            else:  # World.note, without its call
                tracer.number = number = tracer.number + 1
                tracer.add(("send", world.now, self.id, number, to, message))
                item = number, message
            if world.plain_loss and world.coin() < world.plain_loss:
                world.lose(item, to, "loss")
                return
        at = (((world.now + delay) * TICKS + ROUND) - ROUND) / TICKS  # on_grid, without a call
        queue = world.queue
        # The two quick ways of EventQueue.arrive, because a call is a tenth of a send.
        if queue.tail_at == NEVER:
            queue.tail = [(world.members[to], self.id, item)]
            queue.tail_at = at
        elif at == queue.tail_at:
            queue.tail.append((world.members[to], self.id, item))
        else:
            queue.arrive(at, (world.members[to], self.id, item))

    def multicast(self, message: Message) -> None:
        world = self._world
        delay = world.plain_delay
        if delay is None:
            world.carrier.multicast(self, message)
            return
        if message.__class__ is world.kind:
            world.run_of_kind += 1
        else:
            world.count(message.__class__)
        item: Message | tuple[int, Message] = message
        if world.heeded:
            item = world.note(self, None, message)
            if world.loss_is_correlated and world.coin() < world.multicast_loss:
                world.lose(item, None, "loss")
                return
        world.queue.arrive(on_grid(world.now + delay), (None, self.id, item))

    def set_timer(self, key: TimerKey, delay: float, eager: bool = False) -> None:
        # `eager` is a keyword in the seam; to enforce that here would slow every call down.
        world = self._world
        # All receivers of one message arm the same timer at one instant: one sum serves them.
        if delay == world.lapse and world.now is world.lapse_from:
            at = world.lapse_to
        else:
            at = self._later(delay)
        timer = None
        try:
            timer = self.timers[key]
            if at >= timer.entry:
                timer.deadline = at  # its entry in the queue comes up before that and moves on
                return
        except KeyError:
            pass  # armed for the first time
        if not at >= world.now:
            raise ProtocolBug(f"member {self.id} armed timer {key!r} with delay {delay}")
        if timer is None:
            if at == NEVER:
                return
            if self.timers is _NO_TIMERS:
                self.timers = {}
            rank = self.id * MAX_TIMERS + len(self.timers)
            timer = self.timers[key] = Timer(self, key, EAGER if eager else TIMER, rank)
        world.queue.arm(timer, at)

    def _later(self, delay: float) -> float:
        """The instant on the world's clock at which `delay` has passed on this member's clock."""
        world = self._world
        if world.drifting:
            return on_grid(world.now + delay / self.pace)
        world.lapse, world.lapse_from = delay, world.now
        world.lapse_to = at = on_grid(world.now + delay)
        return at

    def cancel_timer(self, key: TimerKey) -> None:
        timer = self.timers.get(key)
        if timer is not None:
            timer.deadline = NEVER

    def persist(self, **fields: object) -> None:
        if self.awake:
            self.stored = {**self.stored, **fields}

    def declare(self, outcome: Outcome) -> None:
        if self.awake:
            world = self._world
            # Members of one group say the same one after the other, and an outcome is a value: so
            # they share it, which saves memory in large groups.
            if outcome == world.said:
                outcome = world.said
            else:
                world.said = outcome
            self.outcome = outcome
            world.last_declared = world.now
            if world.watched:
                world.declared(self, outcome)
            if world.claims and outcome.__class__ is Elected:
                for observer in world.claims:
                    observer.declared(world, self, outcome)

    def acquire(self, ttl: float, request: int) -> None:
        if self.awake:
            self._guard.acquire(self, ttl, request)

    def release(self, request: int) -> None:
        if self.awake:
            self._guard.release(self, request)

    @property
    def _guard(self) -> MemoryGuard:
        guard = self._world.guard
        if guard is None:
            raise ProtocolBug(f"member {self.id} turns to a guard, and this world has none")
        return guard

    # The world's side

    @property
    def up(self) -> bool:
        """Whether the member takes part: neither down nor paused."""
        return self.awake

    @property
    def clock(self) -> tuple[float, float]:
        """The rate of this member's clock, and by how much it was off at 0."""
        return self.pace, self.lag

    def keep_time(self, rate: float, offset: float) -> None:
        """Let this member's clock run at another rate, or be off."""
        self.pace = rate
        self.lag = offset
        self._world.drifting = True

    def begin(self, election: Election) -> None:
        """A new incarnation comes up with a fresh election."""
        self.incarnation += 1
        self.election = election
        self.handlers = election.handlers
        self.status = Status.UP
        self.awake = True
        self.outcome = None
        self.fuse = None
        self.backlog = None
        self.stream = None
        if self.timers is not _NO_TIMERS:  # a handler that a crash cut short may have armed some
            self._forget_timers()

    def end(self, status: Status) -> None:
        """The member is gone: no timer of this incarnation fires any more."""
        self.status = status
        self.awake = False
        self.outcome = None
        self.fuse = None
        self.backlog = None
        self._forget_timers()

    def _forget_timers(self) -> None:
        for timer in self.timers.values():
            timer.deadline = NEVER
        self.timers = _NO_TIMERS


class Directory(Mapping[MemberId, Candidate]):
    """The candidate of every member by id."""

    __slots__ = ("_members",)

    def __init__(self, members: dict[MemberId, SimContext]) -> None:
        self._members = members

    def __getitem__(self, member: MemberId) -> Candidate:
        return self._members[member].me

    def __iter__(self) -> Iterator[MemberId]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)


Views = Mapping[MemberId, list[MemberId]] | Acquaintance  # as listed, or derived from a seed

VARIATES = 64  # of extrema propagation: its estimate is off by 1 / sqrt(VARIATES - 2)


def partial_views(ids: list[MemberId], probability: float, seed: int) -> Acquaintance | None:
    """Each member knows each other one with the given probability, independently.

    None stands for full views, which all members share.
    """
    check_probability("view probability", probability)
    if probability == 1.0:
        return None
    return Acquaintance(sorted(ids), probability, seed)


def gossiped_size(members: int, seed: int) -> float:
    """The size that a group estimates by gossip.

    Each member draws `VARIATES` exponential numbers, and the group finds the smallest of each. The
    sum of these has a gamma distribution with the size as rate, and this is the unbiased estimate
    from it. All members end with the same numbers, and so with the same estimate: one draw replaces
    them all.
    """
    stream = Stream(derive(seed, "size"))
    total = sum(stream.expovariate(1.0) for _ in range(VARIATES))
    return members * (VARIATES - 1) / total


class Knowledge:
    """All views of one world, and how they change."""

    __slots__ = ("_common", "_everybody", "_listed")

    def __init__(self, world: World) -> None:
        self._everybody = View(Directory(world.members), [])  # of all members that have no other
        self._listed: list[View] = [self._everybody]
        self._common: Acquaintance | None = None

    @property
    def full(self) -> View:
        """The view of the members that know the whole group, which they share."""
        return self._everybody

    def give(self, world: World, views: Views | None) -> None:
        """Let each member of a world have its view."""
        self._everybody.ids.extend(world.members)
        if isinstance(views, Acquaintance):
            views.directory = Directory(world.members)
            self._common = views
            for ctx in world.members.values():
                ctx.view = DerivedView(views, ctx.id)
            return
        for member, known in (views or {}).items():
            for other in known:
                world.member(other)
            view = View(Directory(world.members), sorted({*known, member}))
            world.member(member).view = view
            self._listed.append(view)

    def learn(self, ctx: SimContext) -> None:
        """All full views learn of a member. Members that know it see its new state."""
        self._everybody.add(ctx.id)
        if ctx.view is not self._everybody:
            ctx.view.add(ctx.id)
        if self._common is not None:
            self._common.refresh()
        for view in self._listed:
            if view is not self._everybody and ctx.id in view:
                view.add(ctx.id)

    def forget(self, ctx: SimContext) -> None:
        """All views forget a member."""
        if self._common is not None:
            self._common.forget(ctx.id)
        for view in self._listed:
            view.remove(ctx.id)

    def estimate(self, size: float) -> None:
        """Give all members this estimate of the group's size."""
        if self._common is not None:
            self._common.estimate = size
        for view in self._listed:
            view.estimate = size


@dataclass(frozen=True, slots=True)
class Clocks:
    """How far members' clocks are off: each draws its own rate and offset within these bounds."""

    drift: float = 0.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.drift < 1.0:
            raise BadInput(f"clock drift must lie in [0, 1), not {self.drift:g}")
        if not 0.0 <= self.offset <= END_OF_TIME:
            raise BadInput(f"clock offset must lie in [0, {END_OF_TIME:g}], not {self.offset:g}")

    def set_in(self, world: World, seed: int) -> None:
        """Let every member of a world keep time by a clock of its own."""
        if not self.drift and not self.offset:
            return
        stream = Stream(derive(seed, "clocks"))
        for member in world.members.values():
            rate = 1.0 + stream.uniform(-self.drift, self.drift)
            member.keep_time(rate, stream.uniform(0.0, self.offset))

"""The world: members, a network, a clock and one seed.

At one instant events happen in this order: faults and calls from outside, eager timers ("sends"),
arrivals in the order of their sends, other timers in the order of their members. A run ends in one
of six ways, each with its name: nothing is left to happen, an observer stopped it, the time limit,
the event limit, or the world gave the run up, for one of two reasons.

A paused member may notice that it stood still, as on a real network (`net/runner.py`). If something
of its own was due for too long, it does not read the old messages that wait, its timers continue as
if the time had not passed, and its election hears of the pause first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from enum import Enum
from heapq import heappop
from random import Random
from typing import TYPE_CHECKING, Protocol

from hustings.core.choice import Candidate, MemberId
from hustings.core.context import CheckedContext, TimerKey
from hustings.core.election import Election, explain
from hustings.core.errors import BadInput, UnknownName
from hustings.core.guard import Verdict
from hustings.core.messages import Message
from hustings.core.outcome import Outcome
from hustings.core.streams import derive
from hustings.sim.carrier import Carrier
from hustings.sim.fast_path import Reach, arrive_traced, relay, spread
from hustings.sim.guarding import MemoryGuard
from hustings.sim.member import Kept, Knowledge, SimContext, Status, Views
from hustings.sim.network import Network, Partitions
from hustings.sim.queue import (
    ARRIVAL,
    CONTROL,
    EAGER,
    END_OF_TIME,
    NEVER,
    TIMER,
    Delivery,
    EventQueue,
    Timer,
    on_grid,
)
from hustings.sim.trace import Changed, Told, Tracer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hustings.core.choice import MemberId
    from hustings.core.messages import Message
    from hustings.core.outcome import Outcome
    from hustings.sim.member import SimContext
    from hustings.sim.queue import Timer


class Observer(Protocol):
    """Sees everything: checkers, metrics, a perfect detector, the demo."""

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        """A member declared an outcome."""

    def changed(self, world: World, member: SimContext) -> None:
        """A member came up, crashed, paused, resumed, left."""


class Eavesdropper(Protocol):
    """Hears every send: metrics that count messages up to an instant."""

    def sent(self, world: World, member: SimContext, to: MemberId | None, message: Message) -> None:
        """A member sends; whether it will be lost is not decided yet."""


BACKLOG = 10_000  # messages kept for a paused member; more are lost, as from a socket's buffer
MAX_EVENTS = 50_000_000


class Ended(Enum):
    """Why a run ended."""

    QUIESCENT = "quiescent"  # nothing was left to happen
    STOPPED = "stopped"  # an observer had seen enough
    UNTIL = "until"  # the time limit
    MAX_EVENTS = "max-events"  # the event limit
    MAX_ROUNDS = "max-rounds"  # it was given up: a member had announced itself too often
    UNCONFIRMABLE = "unconfirmable"  # it was given up: the guard is out of reach for good


class World:
    """One deterministic run of one group."""

    __slots__ = (
        "_elect",
        "_ending",
        "_paused_at",
        "_quick",
        "_reach",
        "_sent",
        "_stopped",
        "carrier",
        "chance",
        "claims",
        "coin",
        "debug",
        "drifting",
        "ears",
        "events",
        "guard",
        "heeded",
        "interrupted",
        "kind",
        "knowledge",
        "lapse",
        "lapse_from",
        "lapse_to",
        "last_arrival",
        "last_declared",
        "loss_is_correlated",
        "lost",
        "may_stop",
        "members",
        "multicast_loss",
        "network",
        "now",
        "observers",
        "partitions",
        "plain_delay",
        "plain_loss",
        "queue",
        "run_of_kind",
        "said",
        "seed",
        "stall_bound",
        "tracer",
        "watched",
    )

    def __init__(
        self,
        elect: Callable[[], Election],
        candidates: list[Candidate],
        *,
        seed: int = 0,
        network: Network | None = None,
        views: Views | None = None,
        tracer: Tracer | None = None,
        debug: bool = False,
    ) -> None:
        """`elect` makes one member's election.

        `views` lists the members that each knows (default all).

        Members are created but not started.
        """
        self._elect = elect
        self.seed = seed
        self.network = network = network or Network()
        self.chance = Random(derive(seed, "network"))
        self.coin = self.chance.random
        self.now = 0.0
        self.drifting = False  # whether some member's clock is not the world's
        self.lapse = -1.0  # the last delay of a timer, ...
        self.lapse_from = self.lapse_to = -1.0  # ... when it began, and when it ends
        self.queue = EventQueue()
        self.members: dict[MemberId, SimContext] = {}
        self.partitions = Partitions()
        self._sent: dict[type[Message], int] = defaultdict(int)
        self.kind: type[Message] = Message  # the kind sent last, ...
        self.run_of_kind = 0  # ... and how often in a row: cheaper than a table per message
        self.lost: dict[str, int] = defaultdict(int)
        self.events = 0
        self.last_arrival = 0.0
        self.last_declared = 0.0
        self.said: Outcome | None = None  # what was declared last
        self.guard: MemoryGuard | None = None  # what confirms leaders, if anything does
        self.observers: list[Observer] = []
        self.watched = tracer is not None  # whether an observer hears of declarations
        self.claims: list[Observer] = []  # observers that hear only of leaders
        self.ears: list[Eavesdropper] = []
        # Whether a send is more than an entry in the queue: it is traced, heard, or may be lost.
        multicasts = network.multicasts
        correlated = multicasts.shared and multicasts.p > 0
        self.heeded = tracer is not None or network.loss.p > 0 or correlated
        self.tracer = tracer
        self.debug = debug
        self.stall_bound = NEVER  # members notice that they stood still for longer
        self._paused_at: dict[MemberId, float] = {}
        self._stopped = False
        self._ending = Ended.STOPPED
        self.may_stop: Callable[[World], bool] | None = None  # asked before a run is stopped
        self.interrupted = False  # stopped, or has left the fast path
        self._reach: Reach | None = None  # until a caller asks
        self.carrier: Carrier  # once it leaves the fast path, or where it never was on it
        self.loss_is_correlated = correlated
        self.plain_loss = network.loss.p  # of a message to one member
        self.multicast_loss = multicasts.p
        delay = on_grid(network.delay.bound)
        self._quick = network.plain and delay > 0 and not debug
        self.plain_delay: float | None = delay if self._quick else None
        if not self._quick:
            self.carrier = Carrier(self, network)
        self.knowledge = Knowledge(self)
        self._populate(candidates, views)

    def _populate(self, candidates: list[Candidate], views: Views | None) -> None:
        full = self.knowledge.full
        for me in sorted(candidates, key=lambda candidate: candidate.id):
            if me.id in self.members:
                raise BadInput(f"member id {me.id} is given twice")
            self.members[me.id] = SimContext(self, me, full)
        self.knowledge.give(self, views)

    # What one may ask

    @property
    def sent(self) -> Mapping[type[Message], int]:
        """How many messages of each kind were sent; a multicast counts once."""
        self.count(self.kind, 0)
        return self._sent

    def count(self, kind: type[Message], number: int = 1) -> None:
        """Count messages of another kind than those before."""
        if self.run_of_kind:
            self._sent[self.kind] += self.run_of_kind
        self.kind = kind
        self.run_of_kind = number

    def member(self, member: MemberId) -> SimContext:
        """A member by id; one that never existed is the user's mistake."""
        try:
            return self.members[member]
        except KeyError:
            known = [str(other) for other in self.members]
            raise UnknownName("member", str(member), known) from None

    def reach(self) -> Reach:
        """The members that messages can reach now."""
        reach = self._reach
        if reach is None:
            self._reach = reach = Reach(self.members.values())
        return reach

    def live(self) -> list[SimContext]:
        """Members that are up, by id."""
        return [member for member in self.members.values() if member.awake]

    # What one may cause, now

    def start(self, member: MemberId | None = None) -> None:
        """Bring up one member, or all that are not yet in the group."""
        chosen = list(self.members.values()) if member is None else [self.member(member)]
        fresh = [ctx for ctx in chosen if ctx.status is Status.OUT]
        for ctx in fresh:
            self.revive(ctx)
        for ctx in fresh:
            self.invoke(ctx, ctx.election.start)

    def revive(self, ctx: SimContext) -> None:
        """A member comes up as a new incarnation; its election is new, its storage is not."""
        ctx.begin(self._elect())
        self._status_changed(ctx)

    def change(self, ctx: SimContext, status: Status) -> None:
        """A member goes down for good: crashed or left."""
        ctx.end(status)
        self._status_changed(ctx)

    def tell(self, ctx: SimContext, what: str, about: MemberId | None = None) -> None:
        """Call a handler from outside: `call`, `leave`, `suspect` or `alive`."""
        if not ctx.up:
            return
        if self.tracer is not None:
            self.tracer.add(Told(self.now, ctx.id, what, about))
        election = ctx.election
        if about is None:
            self.invoke(ctx, election.call if what == "call" else election.leave)
        else:
            self.invoke(ctx, election.on_suspect if what == "suspect" else election.on_alive, about)

    def everybody_knows(self, ctx: SimContext) -> None:
        """All full views learn of a member, and all that know it of its new attributes."""
        self.knowledge.learn(ctx)

    def everybody_forgets(self, ctx: SimContext) -> None:
        """All views forget a member that left."""
        self.knowledge.forget(ctx)

    def at(self, instant: float, action: Callable[[], None]) -> None:
        """Let something happen at an instant, before everything else at that instant."""
        self.queue.control(self.check_instant(instant), action)

    def check_instant(self, instant: float) -> float:
        """The instant on the grid, if it is still to come."""
        at = on_grid(instant)
        if not self.now <= at <= END_OF_TIME:
            raise BadInput(f"instant {instant:g} must lie between now and {END_OF_TIME:g}")
        return at

    def watch(self, observer: Observer) -> None:
        """Let an observer see all that follows."""
        self.observers.append(observer)
        self.watched = True

    def listen_in(self, observer: Eavesdropper) -> None:
        """Let an observer hear of every send that follows."""
        self.ears.append(observer)
        self.heeded = True

    def note(
        self, member: SimContext, to: MemberId | None, message: Message
    ) -> Message | tuple[int, Message]:
        """A message leaves: observers hear of it, and a trace gives it a number."""
        for observer in self.ears:
            observer.sent(self, member, to, message)
        tracer = self.tracer
        if tracer is None:
            return message
        tracer.number = number = tracer.number + 1
        tracer.add(("send", self.now, member.id, number, to, message))
        return number, message

    def be_careful(self) -> None:
        """Leave the fast path for good: cuts or mid-send crashes are coming."""
        if self._quick:
            self.carrier = Carrier(self, self.network)
        self.plain_delay = None
        self._quick = False
        self.interrupted = True

    def stop(self, ending: Ended = Ended.STOPPED) -> None:
        """End the run after this, unless something must happen first; or give it up (`ending`)."""
        if ending is Ended.STOPPED and self.may_stop is not None and not self.may_stop(self):
            return
        self._ending = ending
        self._stopped = True
        self.interrupted = True

    # Running

    def run(self, until: float = END_OF_TIME, max_events: int = MAX_EVENTS) -> Ended:
        """Let things happen until nothing is left, a stop, or a limit; may be called again."""
        until = on_grid(until)
        if not self.now <= until <= END_OF_TIME:
            raise BadInput(f"until must lie between {self.now:g} and {END_OF_TIME:g}")
        try:
            return self._loop(until, max_events)
        except KeyError as error:
            explain(error)
            raise
        finally:
            self._stopped = False  # not before: an observer may stop the run at the start

    def _loop(self, until: float, max_events: int) -> Ended:
        queue = self.queue
        heap = queue.heap
        while not self._stopped:
            at = queue.tail_at
            if heap and (heap[0][0] < at or (heap[0][0] == at and heap[0][1] != TIMER)):
                at, order, _, item = heap[0]
                if at > until or self.events >= max_events:
                    if order in (EAGER, TIMER) and not queue.live(at, order):
                        continue  # only timers that were cancelled or moved on
                    return self._limit(at, until)
                if order == ARRIVAL:
                    self.now = at
                    heappop(heap)
                    self._arrive(item, max_events)
                elif order == CONTROL:
                    self.now = at
                    heappop(heap)
                    item() if callable(item) else self._arrive(item, max_events)
                elif item.__class__ is Timer and item.deadline != at:
                    queue.move_on()
                else:
                    self._expire(at, order, max_events)
            elif at < NEVER:  # what was sent last comes next: see queue.py
                if at > until or self.events >= max_events:
                    return self._limit(at, until)
                if len(queue.tail) == 1 and self._quick and relay(self, at, until, max_events):
                    continue
                queue.tail_at = NEVER
                self.now = at
                self._arrive(queue.tail, max_events)
            else:
                return Ended.QUIESCENT
        return self._ending

    def _limit(self, at: float, until: float) -> Ended:
        if at > until:
            self.now = until
            return Ended.UNTIL
        return Ended.MAX_EVENTS

    def _arrive(self, batch: list[Delivery], max_events: int) -> None:
        received = len(batch)
        if self.events + received > max_events:
            received = max_events - self.events
            self.queue.put_back(self.now, batch[received:])
            del batch[received:]
        if self.plain_delay is None:
            received = self.carrier.deliver(batch)
        elif self.tracer is not None:
            received = arrive_traced(self, batch, self.tracer)
        else:
            for target, sender, message in batch:
                if target is None:
                    received += spread(self, sender, message) - 1
                elif target.awake:
                    target.handlers[message.__class__](target.election, target, sender, message)
                else:
                    received -= 1
                    if not self.keep(target, sender, message):
                        self.lost[target.status.value] += 1
        if received:
            self.events += received
            self.last_arrival = self.now
        if self.tracer is not None:
            self.tracer.breathe()

    def lose(self, item: Message | tuple[int, Message], to: MemberId | None, why: str) -> None:
        """A message on the fast path does not get there."""
        self.lost[why] += 1
        if self.tracer is not None and isinstance(item, tuple):
            self.tracer.lost(self.now, item[0], to, why)

    def _expire(self, at: float, order: int, max_events: int) -> None:
        """Fire the timers of one instant, unless something that comes first appears."""
        queue, heap = self.queue, self.queue.heap
        if self.tracer is not None:
            self.tracer.breathe()
        due = queue.due(at, order)
        if due:  # otherwise all were cancelled or moved, and nothing happens now
            self.now = at
        for place, timer in enumerate(due):
            if timer.deadline != at:
                continue  # an earlier one of its member's handlers has moved or cancelled it
            timer.deadline = NEVER
            self._fire(timer)
            first = queue.tail_at == at or (heap and heap[0][0] == at and heap[0][1] <= order)
            if first or self._stopped or self.events >= max_events:
                queue.put_back_timers(at, due[place + 1 :])
                return

    def _fire(self, timer: Timer) -> None:
        member = timer.member
        if member.up:
            self.events += 1
            if self.tracer is not None:
                key = timer.key
                name = key if isinstance(key, str) else f"{key[0]} {key[1]}"
                self.tracer.fired(self.now, member.id, name)
            if self.debug:
                self.invoke(member, member.election.on_timer, timer.key)
            else:
                member.election.on_timer(member, timer.key)
        elif member.backlog is not None:
            timer.deadline = self.now  # overdue, unless it is cancelled or moved before it can fire
            member.backlog.append(timer)

    def receive(self, ctx: SimContext, sender: MemberId, message: Message) -> None:
        """Hand one message to one member that is up."""
        handler = ctx.handlers[message.__class__]
        if not self.debug:
            handler(ctx.election, ctx, sender, message)
            return
        guard = CheckedContext(ctx)
        handler(ctx.election, guard, sender, message)
        guard.close()

    def invoke(
        self,
        ctx: SimContext,
        handler: Callable[..., None],
        *about: MemberId | TimerKey | Verdict | float,
    ) -> None:
        """Run a handler of a member; in debug mode with a context that dies with the call."""
        if not self.debug:
            handler(ctx, *about)
            return
        guard = CheckedContext(ctx)
        handler(guard, *about)
        guard.close()

    def keep(self, ctx: SimContext, sender: MemberId, message: Message, number: int = 0) -> bool:
        """Keep a message for a paused member, as its socket would; False if it cannot be kept."""
        if ctx.backlog is None or len(ctx.backlog) >= BACKLOG:
            return False
        ctx.backlog.append(Kept(sender, message, number))
        return True

    def pause(self, ctx: SimContext) -> None:
        """The member stands still: what arrives waits, timers wait."""
        if ctx.up:
            ctx.awake = False
            ctx.status = Status.PAUSED
            ctx.backlog = []
            self._paused_at[ctx.id] = self.now
            self._status_changed(ctx)

    def resume(self, ctx: SimContext) -> None:
        """The member continues: first what had arrived, then the timers that are overdue."""
        if ctx.backlog is None:
            return
        waiting, ctx.backlog = ctx.backlog, None
        ctx.awake = True
        ctx.status = Status.UP
        self._status_changed(ctx)
        gap = stood_still(ctx, self._paused_at.pop(ctx.id, self.now), self.now)
        if gap > self.stall_bound:
            wake_up(self, ctx, gap, waiting)
            return
        for item in waiting:
            if isinstance(item, Kept) and ctx.up:
                self.events += 1
                if self.tracer is not None:
                    self.tracer.received(self.now, ctx.id, item.number)
                self.receive(ctx, item.sender, item.message)
        for item in waiting:
            if isinstance(item, Timer) and ctx.up and item.deadline <= self.now:
                item.deadline = NEVER
                self._fire(item)

    # What members tell

    def declared(self, ctx: SimContext, outcome: Outcome) -> None:
        """A member declared an outcome: the observers hear of it."""
        if self.tracer is not None:
            self.tracer.add(("declare", self.now, ctx.id, outcome))
        for observer in self.observers:
            observer.declared(self, ctx, outcome)

    def _status_changed(self, ctx: SimContext) -> None:
        self._reach = None
        if self.tracer is not None:
            self.tracer.add(Changed(self.now, ctx.id, ctx.status.value, ctx.incarnation))
        for observer in self.observers:
            observer.changed(self, ctx)


def stood_still(ctx: SimContext, since: float, now: float) -> float:
    """For how long the timers of a paused member have been overdue."""
    due = min((timer.deadline for timer in ctx.timers.values()), default=NEVER)
    return max(0.0, now - max(since, due))


def wake_up(world: World, ctx: SimContext, gap: float, waiting: Sequence[Kept | Timer]) -> None:
    """The member continues after `gap`: it learns of that first."""
    for item in waiting:
        if isinstance(item, Kept):
            world.lose((item.number, item.message), ctx.id, "overslept")
    for timer in ctx.timers.values():
        if timer.deadline < NEVER:
            world.queue.arm(timer, max(world.now, on_grid(timer.deadline + gap)))
    world.invoke(ctx, ctx.election.woke, gap * ctx.pace)

"""Runs one election on a real clock: a handler, then persist, send, tell the owner, ask the guard.

A message that promises something must not leave before the promise is on disk: a member that
crashed in between would forget a promise that others rely on. So the context of a handler only
records `send`, `multicast` and `declare`. When the handler has returned, the runner stores what the
handler persisted. Only then do messages leave, is the owner told, and is the guard asked. Timers
concern only the member itself and are armed at once.

The runner knows nothing of addresses or sockets. The owner's `transmit` sends messages, and the
storage's `persist` keeps fields.

If the handler of a message raises, the rest of the handler is lost. What it did until then takes
effect, as if it had returned. So the election and its owner know the same. The owner counts the
error, and the member goes on: another member's message must not be able to end this one. A timer
that raises ends the member, since no other event would arm it again. `ProtocolBug` ends the member
too, since it says that the state is not what it should be.

When fields cannot be stored, what depends on them must not be sent. The member falls silent,
handles no input, and tries again every second. Meanwhile its owner is told that it knows no leader.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf
from typing import NamedTuple, Protocol

from hustings.core.choice import Candidate, MemberId
from hustings.core.context import Context, TimerKey
from hustings.core.election import Election
from hustings.core.errors import ProtocolBug
from hustings.core.messages import Message
from hustings.core.outcome import Elected, NoLeader, Outcome
from hustings.core.streams import Stream
from hustings.core.view import View
from hustings.net.clock import member_clock
from hustings.net.stall_detector import StallDetector
from hustings.net.storage import NotPersisted, Storage

UNWRITABLE = "its state cannot be written"
_SOON = 0.05  # seconds until a timer that came meanwhile is tried again
_LAXITY = 0.8  # of its delay: how long a lax timer waits for another event; by default a whole T_A
_AGAIN = 1.0  # seconds until a failed write is tried again


class RunnerListener(Protocol):
    """What a runner reports to."""

    def transmit(self, to: MemberId | None, message: Message) -> None:
        """Send to one member, or to all."""

    def told(self, outcome: Outcome) -> None:
        """The election has an outcome."""

    def acquire(self, ttl: float, request: int) -> None:
        """Ask the guard for a lease of `ttl`, or renew it."""

    def release(self, request: int) -> None:
        """Give the lease back."""

    def overslept(self) -> None:
        """No code ran for long, so what waits to be read is old."""

    def ran(self) -> None:
        """A handler has run, and all of its effects are done."""

    def note(self, sentence: str) -> None:
        """Something worth a log line."""

    def baffled(self, sender: MemberId, message: Message, error: Exception) -> None:
        """The handler of a message raised; the member goes on without that message."""

    def failed(self, error: Exception) -> None:
        """A handler raised: the member cannot go on."""


class Armed(NamedTuple):
    """A running timer. It keeps its own due time, since not every loop's handle can tell it."""

    due: float
    handle: asyncio.TimerHandle
    ripe: float  # from this time a lax timer fires with any other event


class Runner:
    """Runs one member's election; everything happens on one event loop."""

    def __init__(
        self,
        election: Election,
        me: Candidate,
        view: View,
        rng: Stream,
        incarnation: int,
        storage: Storage,
        owner: RunnerListener,
        pause: float = inf,
        lax: Sequence[TimerKey] = (),
        stall_detector: StallDetector | None = None,
    ) -> None:
        """`pause`: after a longer stall the election is told before anything else happens.

        `lax` timers need not be punctual: once due, they fire together with the next event, since a
        wake-up is most of what a timer costs at rest. They become late but not rare: a timer that
        is armed again as it fires counts from the time when it was due. `stall_detector` is the
        process's own, if other members share the process.
        """
        self.election = election
        self.me = me
        self.view = view
        self.rng = rng
        self.incarnation = incarnation
        self.stalled: NetContext | None = None
        self._stalled_since = 0.0
        self.dropped = 0  # inputs that came while none could be handled
        self.last_stall: tuple[float, float] | None = None  # when it ended, and its length
        self._storage = storage
        self._owner = owner
        self._pause = pause
        self.lax = lax
        self._went: tuple[TimerKey, float] | None = None  # the lax timer that fires, when ripe
        self._clock = member_clock()
        self.now = self._clock.time
        self._timers: dict[TimerKey, Armed] = {}
        self._ran = self._clock.time()
        self.stall_detector = stall_detector or StallDetector(self._ran)
        self._retry: asyncio.TimerHandle | None = None
        self._stopped = False
        self._said: Outcome | None = None  # what the owner was told last, except for stalls

    # What a context reads

    @property
    def stored(self) -> Mapping[str, object]:
        return self._storage.stored

    def arm(self, key: TimerKey, delay: float) -> None:
        self.disarm(key)
        if delay != inf and not self._stopped:
            self._arm(key, delay)

    def _arm(self, key: TimerKey, delay: float) -> None:
        now, ripe = self._clock.time(), inf
        due = now + delay
        if key in self.lax:
            ripe = due
            if self._went is not None and self._went[0] == key and self._went[1] + delay > now:
                ripe = self._went[1] + delay
            due = ripe + _LAXITY * delay
        self._timers[key] = Armed(due, self._clock.call_at(due, self._fire, key), ripe)

    def disarm(self, key: TimerKey) -> None:
        armed = self._timers.pop(key, None)
        if armed is not None:
            armed.handle.cancel()

    # What the layers below call

    def run(self, handler: Callable[[Context], None]) -> bool:
        """Run one handler and carry out its effects; returns whether it could run."""
        if self._stopped:
            return False
        if self.stalled is not None:
            self.dropped += 1
            return False
        self._wake()
        return self._one(handler)

    def deliver(self, sender: MemberId, message: Message) -> bool:
        """Handle a message for the election; returns whether it was handled.

        A message from before a stall is not handled: the group has moved on since it was sent.
        """
        handler = self.election.handlers.get(type(message))
        if handler is None or self._stopped:
            return False
        if self.stalled is None and self._wake():
            return False
        election, said = self.election, self._said

        def handle(ctx: Context) -> None:
            try:
                handler(election, ctx, sender, message)
            except ProtocolBug:
                raise
            except Exception as error:
                self._owner.baffled(sender, message, error)

        handled = self._one(handle)
        if self._said is said:  # else it is news of a leader, which other members here wait for
            self._accompany()
        return handled

    def stop(self) -> None:
        """Stop: no timer fires and no handler runs any more."""
        self._stopped = True
        for armed in self._timers.values():
            armed.handle.cancel()
        self._timers.clear()
        if self._retry is not None:
            self._retry.cancel()

    # Inside

    def _wake(self) -> bool:
        """Whether a timer was due and nothing ran for too long; then the election is told first."""
        now = self._clock.time()
        ran, self._ran = self._ran, now
        self.stall_detector.beat(now)
        # Usually one of these holds, and the due time need not be known.
        if now - ran <= self._pause or self.stall_detector.lapse(ran) <= self._pause:
            return False
        due = min((armed.due for armed in self._timers.values()), default=inf)
        gap = self.stall_detector.away(ran, due)
        if gap <= self._pause:
            return False
        self.last_stall = (now, gap)
        watch = self.stall_detector.watch
        watch.longest = max(watch.longest, gap)
        self._owner.overslept()
        self._postpone(gap)
        self._one(lambda ctx: self.election.woke(ctx, gap))
        return True

    def _postpone(self, gap: float) -> None:
        """Delay all timers by the length of a stall: what they wait for may have come meanwhile."""
        for key, armed in list(self._timers.items()):
            armed.handle.cancel()
            self._arm(key, max(0.0, armed.due + gap - self._clock.time()))

    def _fire(self, key: TimerKey) -> None:
        armed = self._timers[key]
        if self.stalled is not None:
            self._arm(key, _SOON)  # the end of a lease must not be late by much
            return
        self._wake()
        if self._timers.get(key) is armed:  # else the wake-up has replaced the timer
            self._go(key, armed)
            self._accompany()

    def _accompany(self) -> None:
        """Fire lax timers that have waited for another event."""
        now = self._clock.time()
        for key in self.lax:
            armed = self._timers.get(key)
            if armed is not None and armed.ripe <= now and self.stalled is None:
                armed.handle.cancel()
                self._go(key, armed)

    def _go(self, key: TimerKey, armed: Armed) -> None:
        del self._timers[key]
        self._went = (key, armed.ripe) if armed.ripe < inf else None
        self._one(partial(self.election.on_timer, key=key))
        self._went = None

    def _one(self, handler: Callable[[Context], None]) -> bool:
        if self._stopped:
            return False
        if self.stalled is not None:
            self.dropped += 1
            return False
        ctx = NetContext(self)
        try:
            handler(ctx)
        except Exception as error:
            self._owner.failed(error)
            return False
        self._settle(ctx)
        return True

    def _settle(self, ctx: NetContext) -> None:
        if ctx.fields:
            try:
                self._storage.persist(ctx.fields)
            except NotPersisted as error:
                self._stall(ctx, error)
                return
        for to, message in ctx.sent:
            self._owner.transmit(to, message)
        for outcome in ctx.declared:
            self._said = outcome
            self._owner.told(outcome)
        # After the owner was told: once the lease is released, another member may lead at once.
        for ttl, request in ctx.lease_calls:
            if ttl is None:
                self._owner.release(request)
            else:
                self._owner.acquire(ttl, request)
        self._owner.ran()

    def _stall(self, ctx: NetContext, error: NotPersisted) -> None:
        if self.stalled is None:
            self.stalled = ctx
            self._stalled_since = self._clock.time()
            self._owner.note(f"{error}; this member is silent until it can be")
            self._owner.told(NoLeader(UNWRITABLE))
        self._retry = self._clock.call_later(_AGAIN, self._try_again, ctx)

    def _try_again(self, ctx: NetContext) -> None:
        """Go on, if the fields can be stored now.

        After a short stall the held effects are carried out. After a long one they are out of date:
        the member has been away, and learns the present state from the others.
        """
        try:
            self._storage.persist(ctx.fields)
        except NotPersisted:
            self._retry = self._clock.call_later(_AGAIN, self._try_again, ctx)
            return
        now = self._clock.time()
        gap, self.stalled, self._ran = now - self._stalled_since, None, now
        self._owner.note("the state can be written again")
        if gap > self._pause:
            self._owner.overslept()
            last = ctx.declared[-1] if ctx.declared else self._said
            leads = isinstance(last, Elected) and last.leader == self.me.id
            if last is not None and not leads:
                self._owner.told(last)
            self._said = None if leads else last
            able = self._one(lambda ctx: self.election.woke(ctx, gap))
            if leads and self._said is None:  # the election lets it lead on
                self._said = last
                if able and last is not None and self.stalled is None:
                    self._owner.told(last)
            return
        if self._said is not None and not ctx.declared:
            self._owner.told(self._said)
        self._settle(ctx)


class HandlerContext(Protocol):
    """The data that a context reads, and its timers."""

    me: Candidate
    view: View
    rng: Stream
    incarnation: int

    @property
    def stored(self) -> Mapping[str, object]:
        """The fields that were persisted."""

    def now(self) -> float:
        """The time on the monotonic clock."""

    def arm(self, key: TimerKey, delay: float) -> None:
        """Arm a timer; an armed one starts anew."""

    def disarm(self, key: TimerKey) -> None:
        """Cancel a timer."""


class NetContext:
    """The context of one handler call."""

    __slots__ = (
        "_desk",
        "declared",
        "fields",
        "incarnation",
        "lease_calls",
        "me",
        "now",
        "rng",
        "sent",
        "view",
    )

    def __init__(self, desk: HandlerContext) -> None:
        self._desk = desk
        # Copied, since none of these changes during a handler, and each is read several times.
        self.me = desk.me
        self.view = desk.view
        self.rng = desk.rng
        self.incarnation = desk.incarnation
        self.now = desk.now
        self.sent: list[tuple[MemberId | None, Message]] = []  # None: to all
        self.fields: dict[str, object] = {}
        self.declared: list[Outcome] = []
        self.lease_calls: list[tuple[float | None, int]] = []  # (ttl, request); None: release

    @property
    def stored(self) -> Mapping[str, object]:
        stored = self._desk.stored
        return {**stored, **self.fields} if self.fields else stored

    def send(self, to: MemberId, message: Message) -> None:
        self.sent.append((to, message))

    def multicast(self, message: Message) -> None:
        self.sent.append((None, message))

    def set_timer(self, key: TimerKey, delay: float, *, eager: bool = False) -> None:
        """`eager` makes no difference: on a real clock no two events happen at one instant."""
        if not delay >= 0:
            raise ProtocolBug(f"member {self.me.id} armed timer {key!r} with delay {delay}")
        self._desk.arm(key, delay)

    def cancel_timer(self, key: TimerKey) -> None:
        self._desk.disarm(key)

    def persist(self, **fields: object) -> None:
        self.fields.update(fields)

    def declare(self, outcome: Outcome) -> None:
        self.declared.append(outcome)

    def acquire(self, ttl: float, request: int) -> None:
        self.lease_calls.append((ttl, request))

    def release(self, request: int) -> None:
        self.lease_calls.append((None, request))

"""The context that returns effects as values, and a member that uses it.

Unit tests compare the effects, golden scripts print them. Nothing happens by itself: no message
arrives and no timer fires unless the test makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from hustings.core.choice import Candidate, MemberId
from hustings.core.context import Context, TimerKey
from hustings.core.election import Election
from hustings.core.errors import BadInput, ProtocolBug, StaleContext, UnknownName
from hustings.core.guard import Verdict
from hustings.core.messages import Message, kind_of
from hustings.core.outcome import Outcome
from hustings.core.streams import Stream, derive
from hustings.core.view import View
from hustings.testing.effects import (
    Acquire,
    CancelTimer,
    Declare,
    Effect,
    Multicast,
    Persist,
    Release,
    Send,
    SetTimer,
    persist,
)

_NOTHING: Mapping[str, object] = {}


def view_of(candidates: Iterable[Candidate]) -> View:
    """A view of exactly these members.

    >>> view_of([Candidate(3), Candidate(1)]).ids
    [1, 3]
    """
    directory = {candidate.id: candidate for candidate in candidates}
    return View(directory, sorted(directory))


class RecordingContext:
    """The context of one handler call: it records what the handler does.

    `effects` stays readable after `close`; everything else then raises `StaleContext`.
    """

    __slots__ = ("_incarnation", "_me", "_now", "_open", "_rng", "_stored", "_view", "effects")

    def __init__(
        self,
        me: Candidate,
        view: View,
        *,
        rng: Stream | None = None,
        incarnation: int = 1,
        stored: Mapping[str, object] = _NOTHING,
        now: float = 0.0,
    ) -> None:
        self.effects: list[Effect] = []
        self._me = me
        self._view = view
        self._rng = Stream(0) if rng is None else rng
        self._incarnation = incarnation
        self._stored = dict(stored)
        self._now = now
        self._open = True

    def close(self) -> None:
        """The handler has returned."""
        self._open = False

    def _check(self) -> None:
        if not self._open:
            raise StaleContext("a context was used after its handler returned: do not keep it")

    # The context

    @property
    def me(self) -> Candidate:
        self._check()
        return self._me

    @property
    def view(self) -> View:
        self._check()
        return self._view

    @property
    def rng(self) -> Stream:
        self._check()
        return self._rng

    @property
    def incarnation(self) -> int:
        self._check()
        return self._incarnation

    @property
    def stored(self) -> Mapping[str, object]:
        self._check()
        return self._stored

    def now(self) -> float:
        self._check()
        return self._now

    def send(self, to: MemberId, message: Message) -> None:
        self._record(Send(to, message))

    def multicast(self, message: Message) -> None:
        self._record(Multicast(message))

    def set_timer(self, key: TimerKey, delay: float, *, eager: bool = False) -> None:
        self._check()
        if not delay >= 0:
            raise ProtocolBug(f"member {self._me.id} armed timer {key!r} with delay {delay}")
        self._record(SetTimer(key, delay, eager))

    def cancel_timer(self, key: TimerKey) -> None:
        self._record(CancelTimer(key))

    def persist(self, **fields: object) -> None:
        self._record(persist(**fields))
        self._stored.update(fields)

    def declare(self, outcome: Outcome) -> None:
        self._record(Declare(outcome))

    def acquire(self, ttl: float, request: int) -> None:
        self._record(Acquire(ttl, request))

    def release(self, request: int) -> None:
        self._record(Release(request))

    def _record(self, effect: Effect) -> None:
        self._check()
        self.effects.append(effect)


@contextmanager
def recording(
    me: Candidate,
    view: View | None = None,
    *,
    rng: Stream | None = None,
    incarnation: int = 1,
    stored: Mapping[str, object] = _NOTHING,
    now: float = 0.0,
) -> Iterator[RecordingContext]:
    """A context that lasts for one `with` block; without a view the member is alone.

    >>> from hustings.core.outcome import NoLeader
    >>> with recording(Candidate(1)) as ctx:
    ...     ctx.declare(NoLeader())
    >>> ctx.effects
    [Declare(outcome=NoLeader(reason=''))]
    """
    known = view_of([me]) if view is None else view
    ctx = RecordingContext(me, known, rng=rng, incarnation=incarnation, stored=stored, now=now)
    try:
        yield ctx
    finally:
        ctx.close()


@dataclass(frozen=True, slots=True)
class ArmedTimer:
    """A timer that waits: its deadline, when it was armed, and whether it fires before arrivals."""

    deadline: float
    since: float
    eager: bool


class RecordedMember:
    """One member driven by hand: every input returns its effects, in order.

    It holds what a world would hold for a member: the election, the view, the storage, the local
    clock (`clock`, which a test may set), the random stream, the incarnation, the armed timers, the
    outcome declared last, and the last request to a guard.
    """

    def __init__(
        self, elect: Callable[[], Election], me: Candidate, view: View, *, seed: int = 0
    ) -> None:
        """`elect` makes a new election for each incarnation; the member is not started."""
        self._elect = elect
        self._seed = seed
        self.me = me
        self.view = view
        self.clock = 0.0
        self.incarnation = 0
        self.stored: Mapping[str, object] = {}
        self.timers: dict[TimerKey, ArmedTimer] = {}
        self.outcome: Outcome | None = None
        self.asked: Acquire | None = None
        self.election = elect()
        self.rng = Stream(0)

    # Inputs

    def start(self) -> list[Effect]:
        """Come up as the next incarnation: a fresh election, no timers, the storage kept."""
        self.incarnation += 1
        self.election = self._elect()
        self.rng = Stream(derive(self._seed, "member", self.me.id, self.incarnation))
        self.timers = {}
        self.outcome = None
        self.asked = None
        return self._run(self.election.start)

    def restart(self) -> list[Effect]:
        """Crash and come back."""
        self._started()
        return self.start()

    def assume_leader(self, leader: MemberId, term: int = 1) -> list[Effect]:
        """Begin with a leader: `leader` was elected before."""
        self._started()
        return self._run(lambda ctx: self.election.assume_leader(ctx, leader, term))

    def call(self) -> list[Effect]:
        """The owner calls an election."""
        self._started()
        return self._run(self.election.call)

    def deliver(self, sender: MemberId, message: Message) -> list[Effect]:
        """A message arrives."""
        self._started()
        handler = self.election.handlers.get(type(message))
        if handler is None:
            name = type(self.election).__name__
            raise ProtocolBug(f"{name} received {kind_of(message)}, which it does not handle")
        return self._run(lambda ctx: handler(self.election, ctx, sender, message))

    def fire(self, key: TimerKey) -> list[Effect]:
        """An armed timer expires; the clock moves to its deadline unless it is already later."""
        self._started()
        if key not in self.timers:
            raise UnknownName("armed timer", str(key), [str(other) for other in self.timers])
        self.clock = max(self.clock, self.timers.pop(key).deadline)
        return self._run(lambda ctx: self.election.on_timer(ctx, key))

    def suspect(self, member: MemberId) -> list[Effect]:
        """The failure detector suspects a member, rightly or not."""
        self._started()
        return self._run(lambda ctx: self.election.on_suspect(ctx, member))

    def alive(self, member: MemberId) -> list[Effect]:
        """The failure detector takes a suspicion back."""
        self._started()
        return self._run(lambda ctx: self.election.on_alive(ctx, member))

    def answer(self, verdict: Verdict) -> list[Effect]:
        """The guard answers a request."""
        self._started()
        return self._run(lambda ctx: self.election.on_verdict(ctx, verdict))

    def leave(self) -> list[Effect]:
        """The member departs in good order; its timers do not fire any more."""
        self._started()
        effects = self._run(self.election.leave)
        self.timers = {}
        return effects

    # Inside

    def _started(self) -> None:
        if not self.incarnation:
            raise BadInput(f"member {self.me.id} has not been started")

    def _run(self, handler: Callable[[Context], None]) -> list[Effect]:
        with recording(
            self.me,
            self.view,
            rng=self.rng,
            incarnation=self.incarnation,
            stored=self.stored,
            now=self.clock,
        ) as ctx:
            handler(ctx)
        for effect in ctx.effects:
            self._apply(effect)
        return ctx.effects

    def _apply(self, effect: Effect) -> None:
        match effect:
            case SetTimer(key, delay, eager):
                self.timers.pop(key, None)  # armed again: behind all with the same deadline
                if delay != float("inf"):
                    self.timers[key] = ArmedTimer(self.clock + delay, self.clock, eager)
            case CancelTimer(key):
                self.timers.pop(key, None)
            case Persist(fields):
                self.stored = {**self.stored, **dict(fields)}
            case Declare(outcome):
                self.outcome = outcome
            case Acquire():
                self.asked = effect
            case Release():
                self.asked = None
            case Send() | Multicast():
                pass  # the test decides where messages go

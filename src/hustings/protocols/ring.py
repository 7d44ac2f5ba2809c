"""Ring: the best candidate so far travels clockwise until it returns to its own member.

Model      A ring of live members, repaired around the dead; a message to a live member arrives.
Idea       Forward a better candidate. Replace a worse one by oneself; drop a worse one the second
           time. A member that receives itself has beaten all others and sends its name round.
Invariant  Within one run a member puts its own name forward at most once.
Cost       2N + hops from initiator to leader: 2N at best, 3N - 1 at worst, with one initiator;
           N counts the live ring.
Guarantee  Advisory. A detector that misses a crash breaks safety; wrong suspicions hinder progress.
Paper      Elections lecture, "Ring Election Protocol" and "Multiple Initiators?";
           Chang and Roberts 1979, doi:10.1145/359104.359108.

A run is (epoch, initiator). The slides leave some points open. The decisions here:
- "Has forwarded before" is remembered per run, or two initiators can deadlock.
- Lower runs are suppressed only within and below an epoch, or a later election by a lower id would
  be suppressed for ever.
- An initiator counts its own run as seen when it sends.
- A member whose successor dies sends its last message again, to the next member.
- A member that waits too long for a result starts another run (T). With T = inf the ring relies on
  its detector alone, and a candidate whose death is not noticed goes round for ever, as in the
  lecture.
- Clockwise is by increasing id, unless an attribute gives each member's place (`place`).
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from math import inf
from typing import Annotated, ClassVar

from msgspec import Meta

from hustings.core.choice import Candidate, Choice, MemberId
from hustings.core.config import Config
from hustings.core.context import Context, TimerKey
from hustings.core.election import About, Assumptions, Claim, Election, upon
from hustings.core.messages import Message, Role, Term
from hustings.core.outcome import ELECTING, Guarantee

Run = tuple[Term, MemberId]  # epoch, initiator

RESULT = "T"

_LAST = 1 << 63  # above all ids
_NOBODY: Mapping[MemberId, int] = {}


class ElectionMsg(Message, frozen=True, tag="ELECTION"):
    """The best candidate that this run has met so far."""

    role: ClassVar[Role] = Role.ELECTION
    run: Run
    best: Candidate
    returned: bool = False  # started by a member that was away and may not know the present epoch


class ElectedMsg(Message, frozen=True, tag="ELECTED"):
    """The result, on its way round the ring."""

    role: ClassVar[Role] = Role.COORDINATOR
    run: Run
    leader: Candidate


class PlacedConfig(Config, frozen=True, kw_only=True):
    """The places of members on the ring."""

    place: Annotated[
        str | None,
        Meta(
            description="the attribute that says a member's place on the ring, "
            "clockwise; default its id"
        ),
    ] = None

    @property
    def attributes_needed(self) -> tuple[str, ...]:
        return () if self.place is None else (self.place,)

    def successor(self, ctx: Context, dead: Container[MemberId]) -> MemberId | None:
        """Return the next live member clockwise; None when no other is left."""
        if self.place is None:
            return ctx.view.successor(ctx.me.id, dead)
        return ctx.view.successor_by(self.place, ctx.me, dead)


class RingConfig(PlacedConfig, frozen=True, kw_only=True):
    """The ring relies on its detector; its one timer is for a detector that misses a crash."""

    T: (
        Annotated[
            float,
            Meta(
                gt=0,
                description="the wait for the result; default 4 N delta; inf: only the detector "
                "ends the wait",
            ),
        ]
        | None
    ) = None
    max_runs: Annotated[
        int,
        Meta(
            ge=1, description="the number of runs that a member starts in a row before it gives up"
        ),
    ] = 16

    @property
    def trusting(self) -> bool:
        """Whether the ring relies on its detector alone."""
        return inf == self.T


class Ring(Election):
    """Chang and Roberts with run tags, suppression and repair."""

    __slots__ = (
        "_successor",
        "_version",
        "cache",
        "config",
        "dead",
        "elected_run",
        "pending",
        "relayed",
        "runs",
        "winner",
    )

    about = About(
        name="ring",
        family="ring",
        paper="Elections lecture, chapter 15; Chang and Roberts 1979",
        idea="the best candidate travels round the ring until it comes home",
        model="asynchronous ring, reliable links, crash, failure detector repairs the ring",
        guarantee=Guarantee.ADVISORY,
        cost="2N to 3N-1 messages and delays with one initiator",
        promises="one leader, the best alive, while the detector is right; else no exclusivity",
    )
    assumptions = Assumptions(live_view=True)
    Settings = RingConfig
    messages = (ElectionMsg, ElectedMsg)
    config: RingConfig

    def __init__(self, config: RingConfig, choice: Choice) -> None:
        super().__init__(config, choice)
        self.cache: Run = (0, 0)  # the highest run seen; lower ones are suppressed
        self.pending: MemberId | None = None  # the best candidate of that run, as far as I know
        self.elected_run: Run = (0, 0)  # the latest run with a result, ...
        self.winner = Candidate(0)  # ... and its winner
        self.relayed: Message | None = None  # last message: a successor may have died with it
        self.dead = _NOBODY  # suspected members, each with the highest epoch known at that time
        self.runs = 0
        self._successor: MemberId | None = None
        self._version = -1

    # Calling an election

    def start(self, ctx: Context) -> None:
        self.recall(ctx)
        if ctx.incarnation > 1:  # back from a crash that perhaps no member noticed
            self.initiate(ctx, self.term + 1)

    def call(self, ctx: Context) -> None:
        self.runs = 0  # the limit counts from the last call
        self.initiate(ctx, self.term + 1)

    def assume_leader(self, ctx: Context, leader: MemberId, term: int) -> None:
        super().assume_leader(ctx, leader, term)
        self.dead = {other: epoch for other, epoch in self.dead.items() if other != leader}
        self._version = -1
        if self.cache > (0, 0) and self.cache[0] <= term:  # no result of such a run counts now
            self.enter((term, _LAST))
            self.elected_run = self.cache
            self.winner = ctx.view.candidate(leader) if leader in ctx.view else Candidate(leader)
            self.runs = 0
            ctx.cancel_timer(RESULT)

    def initiate(self, ctx: Context, epoch: int) -> None:
        """Start run (epoch, me), unless a higher run is already under way."""
        run = (epoch, ctx.me.id)
        if self.cache >= run:
            return
        if self.runs >= self.config.max_runs:
            self.give_up(ctx, f"no lasting result after {self.runs} runs")
            return
        self.runs += 1
        self.enter(run)
        self.disown(ctx, ELECTING)
        # Back, and without a result since: others may be epochs ahead.
        self.stand(ctx, returned=ctx.incarnation > 1 and self.elected_run == (0, 0))

    def begin_again(self, ctx: Context) -> None:
        """Start a run above all runs that I know of."""
        self.initiate(ctx, max(self.cache[0], self.term) + 1)

    def enter(self, run: Run) -> None:
        """Enter a higher run, which replaces the earlier one."""
        self.cache = run
        self.pending = None
        self.relayed = None

    def stand(self, ctx: Context, returned: bool) -> None:
        """Put myself forward as a candidate."""
        self.pending = ctx.me.id
        self.pass_on(ctx, ElectionMsg(self.cache, ctx.me, returned))

    def pass_on(self, ctx: Context, message: Message) -> None:
        """Send to the next live member clockwise; where no other is left, I have won."""
        if self.relayed is None and self.elected_run != self.cache:  # I await this run's result
            wait = self.config.T
            ctx.set_timer(RESULT, 4 * len(ctx.view) * self.config.delta if wait is None else wait)
        if self._version != ctx.view.version:
            self._version = ctx.view.version
            self._successor = self.config.successor(ctx, self.dead)
        self.relayed = message
        if self._successor is not None:
            ctx.send(self._successor, message)
        elif self.leader != ctx.me.id:
            self.come_home(ctx)

    # Messages going round

    @upon(ElectionMsg)
    def on_election(self, ctx: Context, sender: MemberId, message: ElectionMsg) -> None:
        if sender in self.dead:
            self.on_alive(ctx, sender)
        if message.returned and (message.run < self.cache or message.run[0] <= self.term):
            self.begin_again(ctx)  # no other member would tell it: it has missed what went round
            return
        if message.run != self.cache:
            if message.run < self.cache:
                return
            self.enter(message.run)
        elif self.elected_run == self.cache:
            return  # a copy, or the result has overtaken it
        best = message.best
        if best.id == ctx.me.id:
            self.come_home(ctx)
        elif self.is_dead(best.id, message.run):
            self.begin_again(ctx)
        elif self.choice.better(best, ctx.me):
            if self.pending == best.id and not self.config.trusting:
                return  # a copy, or its candidate is gone and it went round in vain: see T
            self.pending = best.id
            self.pass_on(ctx, message)
        elif self.pending is None:
            self.stand(ctx, message.returned)

    def come_home(self, ctx: Context) -> None:
        """Win: my own name came back, so I have beaten all others."""
        if self.elected_run != self.cache:
            self.decide(ctx, ctx.me)
            self.pass_on(ctx, ElectedMsg(self.cache, ctx.me))

    @upon(ElectedMsg)
    def on_elected(self, ctx: Context, sender: MemberId, message: ElectedMsg) -> None:
        if sender in self.dead:
            self.on_alive(ctx, sender)
        if message.run < self.cache or message.run[0] < self.term:
            return
        if message.run == self.elected_run and not self.choice.better(message.leader, self.winner):
            return  # a copy; or two returned in a repaired ring, and mine is the better
        if message.run != self.cache:
            self.enter(message.run)
        dead = self.is_dead(message.leader.id, message.run)
        leader = message.leader
        if leader.id in ctx.view:  # what it was when elected may be long ago
            leader = ctx.view.candidate(leader.id)
        if dead or self.choice.better(ctx.me, leader):
            self.begin_again(ctx)  # the ring elected a dead member, or decided while I was away
            return
        self.decide(ctx, message.leader)
        self.pass_on(ctx, message)

    def decide(self, ctx: Context, leader: Candidate) -> None:
        """Take the result of the present run."""
        self.elected_run = self.cache
        self.winner = leader
        self.pending = None
        self.runs = 0
        ctx.cancel_timer(RESULT)
        self.elect(ctx, leader.id, self.cache[0])
        self.remember(ctx)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        self.begin_again(ctx)  # lost on its way, with a member whose crash was not noticed

    # Failures

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        self.dead = {**self.dead, member: max(self.cache[0], self.term)}
        self._version = -1
        if member in (self.pending, self.leader):
            self.begin_again(ctx)
        elif member == self._successor and self.relayed is not None:
            self.pass_on(ctx, self.relayed)  # it may have died before it sent my message on

    def is_dead(self, member: MemberId, run: Run) -> bool:
        """Whether `member` stood in `run` and is gone since; a later run shows that it is back."""
        return member in self.dead and run[0] <= self.dead[member]

    def on_alive(self, ctx: Context, member: MemberId) -> None:
        self.dead = {other: epoch for other, epoch in self.dead.items() if other != member}
        self._version = -1
        if self.relayed is not None and self.config.successor(ctx, self.dead) == member:
            self.pass_on(ctx, self.relayed)  # it has missed what went round

    def claim_of(self, message: Message) -> Claim | None:
        if not isinstance(message, ElectedMsg):
            return None
        return Claim(message.run[0], repeated=True, leader=message.leader.id)

    def state(self) -> str:
        return f"leader={self.leader} term={self.term} run={self.cache} pending={self.pending}"

"""Quorum: election by consensus. A majority of the voters leases the leadership to one member.

Model      Asynchronous except for clocks, whose rates lie within 1 +- drift. Messages may be late,
           lost, doubled and out of order. Members crash and come back. To make progress, a majority
           of the voters must be up and messages must arrive for a while.
Idea       A member that hears of no leader for one lease asks the voters, after a random time. The
           member that gets the lease from a majority leads, tells all, and renews the lease. A
           refused member is told which member leads.
Invariant  Those of `acceptor` and `proposer`: no two members hold the lease at one time, and every
           holder's term (its token) is larger than those before.
Cost       v voters: 4v messages and one multicast for a new leader, 2v and one for each renewal; 4
           delays and a random wait. With a `retry` below 4 delta, as the default is, a new leader's
           question is asked twice: 6v and two.
Guarantee  Leased: never two leaders at one time while clocks keep to their bound, whatever else
           happens. With a fence, a stale leader's writes are refused even beyond that bound. There
           is no leader while no majority of the voters can be reached. Nothing is promised about
           which member leads.
Paper      Elections lecture, last slide (consensus); Lamport 1998, doi:10.1145/279227.279229;
           leases by majority without a log as in Trencseni, Gazso, Reinhardt 2012 (PaxosLease).

Decided here: members 1 to `voters` vote. The choice function is not used: a leader stays as long as
it renews. Members of a group on a network have other ids. There the same voters, named, are a guard
behind any other election.
"""

from __future__ import annotations

from math import isfinite
from typing import Annotated, ClassVar

from msgspec import Meta

from hustings.core.choice import Choice, MemberId
from hustings.core.config import Surroundings
from hustings.core.context import Context, TimerKey
from hustings.core.election import About, Assumptions, Election, upon
from hustings.core.messages import LayerMessage, Message
from hustings.core.outcome import Guarantee
from hustings.layers.lease import LeaseConfig, LeaseHeldMsg, LeaseLayer
from hustings.quorum.config import QuorumConfig, broken_voters
from hustings.quorum.layer import QuorumLeaseLayer
from hustings.quorum.messages import KINDS, MOST_VOTERS, AvailableMsg, Round

STAND = "stand"


class ResignMsg(LayerMessage, frozen=True, tag="Q-RESIGN"):
    """I no longer lead, and have given `token` back."""

    token: Round


class QuorumElectionConfig(LeaseConfig, frozen=True, kw_only=True):
    """The lease, and its voters."""

    voters: Annotated[
        int,
        Meta(
            ge=1,
            le=MOST_VOTERS,
            description="the number of voters, which are members 1 to this; odd",
        ),
    ] = 3
    backoff: (
        Annotated[
            float,
            Meta(gt=0, description="the longest random wait before a question; default 8 delta"),
        ]
        | None
    ) = None
    max_ttl: (
        Annotated[float, Meta(gt=0, description="the longest lease that voters grant; default ttl")]
        | None
    ) = None
    durable: Annotated[
        bool, Meta(description="whether voters keep their promises across restarts")
    ] = True

    @property
    def spread(self) -> float:
        """The longest random wait."""
        return 8.0 * self.delta if self.backoff is None else self.backoff

    @property
    def quorum(self) -> QuorumConfig:
        """The voters' settings."""
        return QuorumConfig(
            delta=self.delta,
            voters=tuple(range(1, self.voters + 1)),
            max_ttl=self.max_ttl,
            durable=self.durable,
        )

    @classmethod
    def for_group(cls, members: int, around: Surroundings) -> dict[str, object]:
        return {} if members >= 3 else {"voters": 1}

    def broken_rules(self) -> list[str]:
        broken = super().broken_rules() + broken_voters(self.quorum.voters, 1)
        if not isfinite(self.spread):
            broken.append("backoff must be finite: no member would ever ask")
        if self.max_ttl is not None and self.asked > self.max_ttl:
            broken.append(f"ttl={self.asked:g} must not exceed max_ttl={self.max_ttl:g}")
        return broken


class Willing(Election):
    """The election inside the lease layer: a member that hears of no leader nominates itself."""

    config: QuorumElectionConfig

    def __init__(self, config: QuorumElectionConfig, choice: Choice) -> None:
        super().__init__(config, choice)
        self.config = config

    def start(self, ctx: Context) -> None:
        self._stand_soon(ctx)

    def call(self, ctx: Context) -> None:
        self._stand(ctx)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        self._stand(ctx)

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        """The leader may be gone: ask, but not at the same time as all other members."""
        self._stand_soon(ctx)

    def on_alive(self, ctx: Context, member: MemberId) -> None:
        """A majority has said that this member leads: look again when its lease may be over."""
        over = self.config.asked * self.config.slack
        ctx.set_timer(STAND, over + ctx.rng.uniform(0.0, self.config.spread))
        if self.leader != member:
            self.elect(ctx, member, 0)

    def _stand_soon(self, ctx: Context) -> None:
        ctx.set_timer(STAND, ctx.rng.uniform(0.0, self.config.spread))

    def _stand(self, ctx: Context) -> None:
        ctx.cancel_timer(STAND)
        if self.leader != ctx.me.id:
            self.elect(ctx, ctx.me.id, 0)


class Quorum(QuorumLeaseLayer):
    """Election by consensus: every member may ask, the voters decide."""

    about = About(
        name="quorum",
        family="consensus",
        paper="Elections lecture, last slide; Lamport 1998; PaxosLease 2012",
        idea="a majority of a few voters leases the lead to one member at a time",
        model="asynchronous with bounded clock drift, crash and recovery with a disk",
        guarantee=Guarantee.LEASED,
        cost="6v + 2 messages for a new leader (4v + 1 with retry=4 delta), 2v + 1 per renewal",
        promises="never two leaders while clocks keep to drift; none without a majority of voters",
    )
    assumptions = Assumptions(reliable=False, displaces=False, announces=True)
    Settings = QuorumElectionConfig
    messages: ClassVar[tuple[type[Message], ...]] = (*KINDS, LeaseHeldMsg, ResignMsg)
    intercepts = (LeaseHeldMsg,)

    def __init__(self, config: QuorumElectionConfig, choice: Choice) -> None:
        super().__init__(LeaseLayer(Willing(config, choice), config), config.quorum)

    def reachable(self, ctx: Context) -> tuple[MemberId, ...]:
        """All members in the view. The view is complete here, so every voter is in it."""
        return tuple(voter for voter in self.electorate.voters if voter in ctx.view)

    def assume_leader(self, ctx: Context, leader: MemberId, term: int) -> None:
        """The voters have just granted `leader` the lease, in its first incarnation."""
        if ctx.me.id in self.electorate.voters:
            self.recovery.assume(ctx, leader, term, self.inner.lease.asked)
        self.proposer.highest = term
        self.inner.term = term
        if leader == ctx.me.id:
            self.proposer.token = self.inner.token = term
            self.run_inner(ctx, self.inner.call)
        else:
            self.inner.leader = leader
            self.run_inner(ctx, self.inner.on_alive, leader)

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        if member == self.leader:
            self.run_inner(ctx, self.inner.on_suspect, member)

    def on_alive(self, ctx: Context, member: MemberId) -> None:
        """A member hears the leader when the leader renews."""

    def leave(self, ctx: Context) -> None:
        led = self.inner.until is not None
        super().leave(ctx)
        if led:
            ctx.multicast(ResignMsg(self.term))

    @upon(LeaseHeldMsg)
    def _on_confirmed(self, ctx: Context, sender: MemberId, message: LeaseHeldMsg) -> None:
        self.on_inner(ctx, sender, message)
        if self.leader == message.leader != ctx.me.id and message.token == self.term:
            self.run_inner(ctx, self.inner.on_alive, message.leader)

    @upon(ResignMsg)
    def _on_resign(self, ctx: Context, sender: MemberId, message: ResignMsg) -> None:
        if sender == self.leader != ctx.me.id and message.token == self.term:
            self.run_inner(ctx, self.inner.on_suspect, sender)

    @upon(AvailableMsg)
    def _on_freed(self, ctx: Context, sender: MemberId, message: AvailableMsg) -> None:
        super()._on_freed(ctx, sender, message)
        if sender in self.electorate.voters and message.token == self.term and not self._leads():
            self.run_inner(ctx, self.inner.on_suspect, sender)

    def _leads(self) -> bool:
        return self.inner.until is not None

    def _settle(self, ctx: Context) -> None:
        """If a member learns from the voters which other member leads, it follows that member."""
        super()._settle(ctx)
        leader = self.leader
        if leader is not None and leader != ctx.me.id and self.inner.nominated:
            self.run_inner(ctx, self.inner.on_alive, leader)

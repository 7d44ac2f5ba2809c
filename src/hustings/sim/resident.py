"""A whole member in the simulated world: what a node does for it on a real network.

The election of a whole member runs on gossip membership, with a detector, a leadership layer and
perhaps a lease. This module does what these need of their process: the member is shown to others as
its leadership layer has it, and the layer hears when the membership has admitted the member. The
caller says how members are built. So the simulated members are those that run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hustings.core.choice import MemberId
from hustings.core.context import Context
from hustings.core.election import Election
from hustings.core.errors import ProtocolBug
from hustings.core.outcome import Elected, Outcome
from hustings.layers.gossip.layer import GossipLayer
from hustings.layers.layer import Layer
from hustings.layers.leadership.layer import LeadershipLayer
from hustings.layers.measurement import Measuring
from hustings.sim.consistency import Metrics
from hustings.sim.member import SimContext
from hustings.sim.world import World


@dataclass(frozen=True, slots=True)
class Composition:
    """How a member is built, and what it relies on."""

    make: Callable[[], Election]  # one member's, a `Resident`
    stall_bound: float  # it is told if it did not run for longer
    displaces: bool = False  # a better member that appears takes over from a live leader


class Resident(Layer):
    """`stack`, with the duties of a node after each handler."""

    inner: GossipLayer

    def __init__(
        self, stack: GossipLayer, leadership: LeadershipLayer, measuring: Measuring | None = None
    ) -> None:
        super().__init__(stack)
        self.inner = stack
        self.leadership = leadership
        self._measuring = measuring
        self.entered = False

    def run_inner(self, ctx: Context, act: Callable[..., None], *about: object) -> None:
        act(ctx, *about)
        self._settle(ctx)

    def _settle(self, ctx: Context) -> None:
        """What the node of a real member does when a handler has run."""
        if not isinstance(ctx, SimContext):
            raise ProtocolBug("a whole member lives in the simulated world only")
        if not self.entered and self.inner.membership.joined:
            self.entered = True
            self.inner.run_at(ctx, self.leadership, self.leadership.joined)
        before = ctx.me
        ctx.me = self.leadership.shown(ctx.me)
        if self._measuring is not None and (fresh := self._measuring.stand(ctx.me)) != ctx.me:
            ctx.me = fresh
        if ctx.me is not before:
            self.inner.membership.circle.renew_own(ctx.me)


class Leaderships:
    """Counts how often a member began to lead, and how often a member that is up ceased to lead."""

    def __init__(self) -> None:
        self._leading: dict[MemberId, int] = {}
        self._begun = 0
        self._ceased = 0

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        """A member says that it leads, or something else."""
        leads = isinstance(outcome, Elected) and outcome.leader == member.id
        if leads and member.id not in self._leading:
            self._begun += 1
            self._leading[member.id] = member.incarnation
        elif not leads and self._leading.pop(member.id, None) is not None:
            self._ceased += 1

    def changed(self, world: World, member: SimContext) -> None:
        """A member that is down no longer leads, and has not stepped down."""
        if self._leading.get(member.id, member.incarnation) != member.incarnation:
            del self._leading[member.id]
        elif not member.up and member.backlog is None:
            self._leading.pop(member.id, None)

    def metrics(self) -> Metrics:
        """At the end of a run."""
        return {"leaderships": float(self._begun), "step_downs": float(self._ceased)}

"""A whole member in the simulated world: what a host does for it on a real network.

An election that runs as a member's stands upon gossip membership, with a detector, a leadership
layer and perhaps a lease. What all these need of the process they live in is done here: the
leadership layer's priority goes among the member's attributes, and it is told when the membership
has let the member in. How members are put together is not decided here but handed in, so that what
is simulated is what runs.
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
from hustings.layers.leadership.priority import priority_of, with_priority
from hustings.layers.measurement import Measuring
from hustings.sim.consistency import Metrics
from hustings.sim.member import SimContext
from hustings.sim.world import World


@dataclass(frozen=True, slots=True)
class Composition:
    """How a member is put together, and what it counts on."""

    make: Callable[[], Election]  # one member's, a `Resident`
    stall_bound: float  # it steps down if it did not run for longer
    displaces: bool = False  # a better member that turns up takes over from a living leader


class Resident(Layer):
    """`stack` with its host's duties done after each handler."""

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
        """What the host of a real member does when a handler has run."""
        if not isinstance(ctx, SimContext):
            raise ProtocolBug("a whole member lives in the simulated world only")
        if not self.entered and self.inner.membership.joined:
            self.entered = True
            self.inner.run_at(ctx, self.leadership, self.leadership.joined)
        before = ctx.me
        if priority_of(ctx.me) != self.leadership.priority:
            ctx.me = with_priority(ctx.me, self.leadership.priority)
        if self._measuring is not None and (fresh := self._measuring.stand(ctx.me)) != ctx.me:
            ctx.me = fresh
        if ctx.me is not before:
            self.inner.membership.circle.renew_own(ctx.me)


class Leaderships:
    """Counts how often somebody began to lead, and how often one that is up ceased to."""

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
        """Who is down leads no more, and has not stepped down."""
        if self._leading.get(member.id, member.incarnation) != member.incarnation:
            del self._leading[member.id]
        elif not member.up and member.backlog is None:
            self._leading.pop(member.id, None)

    def metrics(self) -> Metrics:
        """At the end of a run."""
        return {"leaderships": float(self._begun), "step_downs": float(self._ceased)}

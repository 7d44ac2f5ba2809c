"""An election with its own failure detector, as one election: worlds need not know.

Messages and timers go to the part to which they belong. The detector's findings reach the election
as `on_suspect` and `on_alive`. The election's leader reaches the detector, whose pattern may depend
on the leader. A detector's timer keys are ("beat", ...) and ("detector", ...), and a delayed
suspicion has ("defer", ...): no election may use these.

When a leader ends, all members notice at about the same time. If each of them begins an election,
that costs far more than an election of the best member, which needs no other member's answer. With
`successor_head_start` the others hold the suspicion back for a while. If a member leads by then,
they do not disturb it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hustings.core.choice import MemberId
from hustings.core.context import Context, TimerKey
from hustings.core.election import Election, upon
from hustings.core.messages import Message
from hustings.layers.detector.detector import Detector, Report
from hustings.layers.detector.heartbeat import (
    HeartbeatConfig,
    HeartbeatMsg,
    PingMsg,
    PongMsg,
    WatchMsg,
)
from hustings.layers.layer import Layer

DEFER = "defer"


class DetectorLayer(Layer):
    """`inner` and `detector` in one layer."""

    adds = "a detector"
    messages = (HeartbeatMsg, WatchMsg, PingMsg, PongMsg)

    def __init__(self, inner: Election, detector: Detector) -> None:
        super().__init__(inner)
        self.detector = detector
        self.deferred: dict[MemberId, None] = {}  # suspicions held back

    # What a world calls

    def start(self, ctx: Context) -> None:
        self._settle(ctx)
        self.inner.start(ctx)
        self._settle(ctx)

    def call(self, ctx: Context) -> None:
        self.inner.call(ctx)
        self._settle(ctx)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        if Detector.owns(key):
            self._settle(ctx, self.detector.on_timer(ctx, key))
            return
        if isinstance(key, tuple) and key[0] == DEFER:
            if key[1] in self.deferred:
                del self.deferred[key[1]]
                self.inner.on_suspect(ctx, key[1])
        else:
            self.inner.on_timer(ctx, key)
        self._settle(ctx)

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        self.detector.believe(ctx, member)
        self._suspect(ctx, member)
        self._settle(ctx)

    def on_alive(self, ctx: Context, member: MemberId) -> None:
        self.detector.sign_of_life(ctx, member)
        self._trust(ctx, member)
        self._settle(ctx)

    def woke(self, ctx: Context, gap: float) -> None:
        """The world noticed that this member did not run for `gap` until now.

        The world calls this before overdue timers fire.
        """
        self.detector.woke(ctx, gap)

    def leave(self, ctx: Context) -> None:
        for member in self.deferred:
            ctx.cancel_timer((DEFER, member))
        self.deferred.clear()
        self.inner.leave(ctx)
        self.detector.stop(ctx)

    def assume_leader(self, ctx: Context, leader: MemberId, term: int) -> None:
        self.inner.assume_leader(ctx, leader, term)
        self._settle(ctx)

    def state(self) -> str:
        return f"{self.inner.state()} suspects={sorted(self.detector.suspects)}"

    # Routing

    def on_inner(self, ctx: Context, sender: MemberId, message: Message) -> None:
        if reports := self.detector.sign_of_life(ctx, sender):
            self._settle(ctx, reports)
        self.inner.handlers[type(message)](self.inner, ctx, sender, message)
        self._settle(ctx)

    @upon(HeartbeatMsg)
    def _on_heartbeat(self, ctx: Context, sender: MemberId, message: HeartbeatMsg) -> None:
        self._settle(ctx, self.detector.on_heartbeat(ctx, sender, message))

    @upon(WatchMsg)
    def _on_watch(self, ctx: Context, sender: MemberId, message: WatchMsg) -> None:
        self._settle(ctx, self.detector.on_watch(ctx, sender))

    @upon(PingMsg)
    def _on_ping(self, ctx: Context, sender: MemberId, message: PingMsg) -> None:
        self._settle(ctx, self.detector.on_ping(ctx, sender, message))

    @upon(PongMsg)
    def _on_pong(self, ctx: Context, sender: MemberId, message: PongMsg) -> None:
        self._settle(ctx, self.detector.on_pong(ctx, sender, message))

    def _settle(self, ctx: Context, reports: Sequence[Report] = ()) -> None:
        """Tell the election the findings, and the detector the leader that it follows now.

        This ends: only members that left the view bring further reports, each of them once.
        """
        inner, detector = self.inner, self.detector
        while True:
            for report in reports:
                if report.suspected:
                    self._suspect(ctx, report.member)
                else:
                    self._trust(ctx, report.member)
            reports = detector.follow(ctx, inner.leader, self._heir(ctx))
            if not reports:
                return

    def _suspect(self, ctx: Context, member: MemberId) -> None:
        wait = self.detector.config.successor_head_start
        if wait and member == self.inner.leader and not self._is_next(ctx, member):
            if member not in self.deferred:
                self.deferred[member] = None
                ctx.set_timer((DEFER, member), wait)
            return
        self.inner.on_suspect(ctx, member)

    def _trust(self, ctx: Context, member: MemberId) -> None:
        if member in self.deferred:  # the election has never heard of the suspicion
            del self.deferred[member]
            ctx.cancel_timer((DEFER, member))
            return
        self.inner.on_alive(ctx, member)

    def _is_next(self, ctx: Context, leader: MemberId) -> bool:
        """Whether this member is the best of those left, as far as it knows."""
        return self._next(ctx, leader) == ctx.me.id

    def _heir(self, ctx: Context) -> MemberId | None:
        """The member that should lead after this one, if it gets heartbeats more often."""
        mine = ctx.me.id
        if self.detector.config.successor_period is None or self.inner.leader != mine:
            return None
        return self._next(ctx, mine)

    def _next(self, ctx: Context, leader: MemberId) -> MemberId | None:
        for each in ctx.view.ranking(self.choice).ids:
            if each != leader and each not in self.detector.suspects:
                return each
        return None


def with_detector(
    elect: Callable[[], Election], config: HeartbeatConfig
) -> Callable[[], DetectorLayer]:
    """Turn a factory of elections into one whose elections each have a detector of their own."""
    return lambda: DetectorLayer(elect(), Detector(config))

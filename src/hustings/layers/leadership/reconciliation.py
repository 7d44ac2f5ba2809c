"""Reconciliation: members that differ about the leader come to agree.

Each leader tells one random elector, from time to time, that it leads. About one follower tells its
leader that it follows it. Two members that differ compare terms: the member that knows the later
term tells the other, which follows. Each election and each transfer takes a term above all that its
member knew, so the later term is really the newer one. Where two leaders took the same term, the
better of them insists: it takes the next term and tells all. Where the election lets a better
member displace the leader, the better of two insists whichever terms they took. A member that
learned from a message does not answer it, so an exchange ends after one answer.

Elections that announce do all this alone, except for the term.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hustings.core.choice import MemberId
from hustings.core.context import Context
from hustings.core.outcome import Elected
from hustings.layers.leadership.messages import (
    MAX_TERM,
    HandOverMsg,
    LeaderInfoMsg,
    LeaderQueryMsg,
)
from hustings.layers.leadership.standing import ELIGIBLE

if TYPE_CHECKING:
    from hustings.layers.leadership.layer import LeadershipLayer


class Reconciliation:
    """What one member reports about the leader, and how it acts on others' reports."""

    __slots__ = (
        "_insist_from",
        "_met",
        "_missing",
        "_observers_told",
        "_warn_from",
        "announced",
        "layer",
    )

    def __init__(self, layer: LeadershipLayer) -> None:
        self.layer = layer
        # the last leadership of this member that all were told
        self.announced: Elected | None = None
        self._insist_from = 0.0  # when it may insist again
        self._warn_from = 0.0  # when it may warn of a conflict again
        # a leader that is not in view, and since when
        self._missing: tuple[MemberId, float] | None = None
        self._observers_told = 0.0  # when observers were told last
        # The present leader, and another one of a later term that was reported.
        self._met: tuple[Elected, MemberId, int] | None = None

    # What this member reports

    def announce(self, ctx: Context, held: Elected) -> None:
        """Announce that this member leads. Observers hear it once at once."""
        if held != self.announced:
            self.announced = held
            self._tell_observers(ctx, held)

    def _tell_observers(self, ctx: Context, held: Elected) -> None:
        self._observers_told = ctx.now()
        if held.leader == ctx.me.id:  # one of several leaders does it for all
            info = self.layer.own_info(ctx.me.id, held.term)
            for member in self.layer.electors.observers:
                ctx.send(member, info)

    def insist(self, ctx: Context, above: int) -> None:
        """Lead on, in a term above `above`; not too often."""
        if ctx.now() >= self._insist_from:
            self.lead_above(ctx, above)

    def lead_above(self, ctx: Context, above: int) -> None:
        """Lead in a term above `above`, and tell all."""
        layer = self.layer
        self._insist_from = ctx.now() + 2 * layer.settings.delta
        term = max(layer.next_term(), min(above + 1, MAX_TERM))
        ctx.multicast(HandOverMsg(ctx.me.id, term))
        self.announced = Elected(ctx.me.id, term)
        layer.assume(ctx, ctx.me.id, term)

    def answer(self, ctx: Context, sender: MemberId, term: int) -> None:
        """Answer a question for the leader.

        The sender cannot follow into a term before the one it knows.
        """
        layer = self.layer
        held = layer.held
        if held is not None and held.leader == ctx.me.id and layer.inner.seats == 1:
            if term > held.term:
                self.insist(ctx, term)
        held = layer.held
        if held is not None:
            layer.electorate(ctx)
            ctx.send(sender, layer.leader_info(held))

    # What others report

    def compare(self, ctx: Context, sender: MemberId, info: LeaderInfoMsg) -> None:
        """Compare another member's report of the leader with this member's."""
        layer, leader = self.layer, info.leaders[0]
        held = layer.held
        if layer.pending is not None and layer.inner.term < info.term <= MAX_TERM:
            layer.inner.term = info.term  # so that its leadership begins in a later one
        if layer.resuming is not None:
            self._compare_before_resuming(ctx, sender, layer.resuming, info)
        elif held is None:
            self._learn(ctx, sender, info)
        elif layer.announces and leader != held.leader:
            return  # announcements settle everything except the term
        elif info.term > held.term:
            if leader == held.leader or not self._stands_by(ctx, held, info):
                self._catch_up(ctx, sender, info)
        elif info.term < held.term:
            ctx.send(sender, layer.leader_info(held))
        elif leader != held.leader:
            self._contend(ctx, leader, held)

    def _compare_before_resuming(
        self, ctx: Context, sender: MemberId, before: Elected, info: LeaderInfoMsg
    ) -> None:
        """This member led and was away. Whether the others followed it meanwhile."""
        leader = info.leaders[0]
        if info.term < before.term:
            return  # the sender does not know of its leadership yet
        if leader == ctx.me.id and info.term == before.term:
            self.layer.resume(ctx)
        elif leader != ctx.me.id and not self.layer.knows(leader):
            self.layer.inquiry.rumour = leader
        elif not self._stands_by(ctx, before, info):
            self._catch_up(ctx, sender, info)

    def _learn(self, ctx: Context, sender: MemberId, info: LeaderInfoMsg) -> None:
        """Without a leader, decide whether to follow the reported one."""
        layer, inquiry, leader = self.layer, self.layer.inquiry, info.leaders[0]
        waiting = inquiry.is_due(ctx.now())
        later = layer.settings.partial and info.term > layer.highest  # one has ended since
        if layer.resignation.resigned:
            return
        if not (inquiry.running or waiting or later or not layer.entered):
            return  # an election is under way, and will decide
        if leader == ctx.me.id:
            if layer.entered and layer.incumbency.standing >= ELIGIBLE:
                layer.begin(ctx, muted=True)
                self._accede(ctx, info)
        elif not layer.knows(leader):
            inquiry.rumour = leader
        elif self._outranks(ctx, leader):
            # The election will let this member take over, so it does not follow first.
            if layer.announces and layer.inner.term < info.term <= MAX_TERM:
                layer.inner.term = info.term  # so that it claims a later term than this one
        elif self._is_credible(ctx, sender, leader):
            layer.begin(ctx, muted=True)
            if info.term >= layer.highest:
                layer.entered = True
                layer.assume(ctx, leader, info.term)
            else:
                ctx.send(leader, LeaderQueryMsg(layer.highest))

    def _outranks(self, ctx: Context, leader: MemberId) -> bool:
        """Whether this member must displace a leader by the election's own rule."""
        layer = self.layer
        if not layer.preempts or layer.inner.seats > 1 or leader not in layer.electors:
            return False
        view = layer.electorate(ctx)
        return layer.order.better(view.candidate(ctx.me.id), view.candidate(leader))

    def _catch_up(self, ctx: Context, sender: MemberId, info: LeaderInfoMsg) -> None:
        """There is a later term than that of the present leader."""
        layer, leader, term = self.layer, info.leaders[0], info.term
        if leader == ctx.me.id:
            self._accede(ctx, info)
        elif layer.knows(leader) and self._is_credible(ctx, sender, leader):
            if term < layer.highest:
                ctx.send(leader, LeaderQueryMsg(layer.highest))
                return
            led = layer.leads(ctx.me.id)
            layer.assume(ctx, leader, term)
            held = layer.held
            if led and held is not None:
                ctx.multicast(layer.leader_info(held))  # else its followers hear it one by one
            elif leader != sender and held is not None and layer.doubts.speaks_for_all(ctx):
                ctx.send(leader, layer.leader_info(held))  # if it does not lead, it must say so

    def _stands_by(self, ctx: Context, held: Elected, info: LeaderInfoMsg) -> bool:
        """Whether the present leader must displace the one of the later term, because it is better.

        Such a leader insists. A follower tells its leader of the other one, and keeps its leader
        once. If the leader is alive, it will have insisted before the next message of this kind
        comes.
        """
        layer, rival = self.layer, info.leaders[0]
        electors = layer.electors
        if not layer.preempts or rival not in electors or held.leader not in electors:
            return False
        view = layer.electorate(ctx)
        if not layer.order.better(view.candidate(held.leader), view.candidate(rival)):
            return False
        if held.leader == ctx.me.id:
            self.insist(ctx, info.term)
            return True
        if layer.suspected(held.leader) or self._met == (held, rival, info.term):
            return False
        self._met = (held, rival, info.term)
        ctx.send(held.leader, info)
        return True

    def _accede(self, ctx: Context, info: LeaderInfoMsg) -> None:
        """Lead, because others were told that this member leads, or never missed it."""
        if not self.layer.leads(ctx.me.id):
            self.layer.incumbency.in_office = True
        self.insist(ctx, info.term)

    def _contend(self, ctx: Context, leader: MemberId, held: Elected) -> None:
        """Two leaders have one term. The better one insists, and must hear of the other first.

        It may be that neither leads, because each has followed the other.
        """
        layer, me = self.layer, ctx.me.id
        if leader not in layer.electors or ctx.now() < self._warn_from:
            return
        self._warn_from = ctx.now() + layer.settings.delta
        view = layer.electorate(ctx)
        ahead = leader if held.leader == me else held.leader
        if me in (leader, held.leader) and ahead in layer.electors:
            if layer.fair.better(view.candidate(me), view.candidate(ahead)):
                self.insist(ctx, held.term)
                return
        ctx.send(ahead if me == leader else leader, layer.leader_info(held))

    def _is_credible(self, ctx: Context, sender: MemberId, leader: MemberId) -> bool:
        """Whether a reported leader is alive, as far as this member knows."""
        layer = self.layer
        if not layer.suspected(leader):
            return True
        if sender == leader:
            layer.doubts.take_back(leader)
            layer.inner.on_alive(layer.within(ctx), leader)
        return sender == leader

    # From time to time

    def check(self, ctx: Context) -> None:
        """Tell others the leader, or ask them."""
        layer = self.layer
        held = layer.held
        if held is None:
            layer.inquiry.check(ctx)
        elif layer.leads(ctx.me.id):
            self._preside(ctx, held)
        else:
            layer.incumbency.give_up_seeking(ctx)
            self._follow_up(ctx, held)

    def _preside(self, ctx: Context, held: Elected) -> None:
        layer = self.layer
        others = layer.electors.others(ctx.me.id)
        if others and not layer.announces:
            ctx.send(ctx.rng.choice(others), layer.own_info(ctx.me.id, held.term))
        # A little early rather than one tick late.
        settings = layer.settings
        if ctx.now() - self._observers_told >= settings.informing - settings.period / 2:
            self._tell_observers(ctx, held)

    def _follow_up(self, ctx: Context, held: Elected) -> None:
        """Ask whether the leader knows that it leads. About one member of the group asks."""
        layer, leader = self.layer, held.leader
        doubts, partial = layer.doubts, layer.settings.partial
        if leader in layer.electors:
            self._missing = None
            size = doubts.size if partial else len(layer.electors.view)
            if ctx.rng.random() * size < 1.0:
                ctx.send(leader, layer.leader_info(held))
            return
        if layer.announces or (doubts.knows_a_part and not partial):
            return  # other members miss it, or it is known though not in view
        now = ctx.now()
        if self._missing is None or self._missing[0] != leader:
            self._missing = (leader, now)
        elif now - self._missing[1] >= layer.settings.leaderless_limit:
            self._missing = None
            layer.inner.on_suspect(layer.within(ctx), leader)

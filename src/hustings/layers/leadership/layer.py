"""The leadership layer: what owners need besides any election.

    the owner          hand_over, stand_back, stand, call, leave
    ---------------------------------------------------------------
    LeadershipLayer    which members may be elected, which one stays leader, do all agree?
    ---------------------------------------------------------------
    inner election     perhaps with a detector

The layer holds the state that all its parts share: the electors, the present leader and the highest
known term. Each part does one thing:

    electors           which members may be elected: the inner election's view has no observers
    incumbency         which leader comes first, so that a better member does not displace it
    transfer           a leader names its successor, which leads in the next term
    resignation        a member that stands back leads only while there is no other member
    preempt            a leader hands over to a better member that has been up for long enough
    inquiry            a member without a leader asks, and calls an election if none is known
    reconciliation     members that differ about the leader come to agree
    doubts             where views are partial, one member calls for all
    observed           what an observer was told of the leader

Pause      A leader that did not run for a while asks whether another member leads, and sends
           nothing else until it knows. If it did not run for too long, it does not lead meanwhile.
           If no other member has taken its place, it leads on in the same term.
Office     A member that announces itself leads once it has heard no better one for `claim_delay`.
Invariant  The terms that a member follows because of this layer only grow.
Cost       Two small messages in each `reconcile_interval`, one for each observer; a multicast with
           a new leader.
Guarantee  Advisory, like the inner elections: each of two sides has its leader until they meet.

Timer keys ("leadership", ...) belong to this layer. After each handler the world shows others a
member as `shown` has it; it marks observers by their standing, and calls `joined` and `woke` if it
can.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from hustings.core.choice import Candidate, MemberId
from hustings.core.context import Context, ForwardingContext, TimerKey
from hustings.core.election import Claim, Election, upon
from hustings.core.errors import ProtocolBug
from hustings.core.guard import Verdict
from hustings.core.messages import Message
from hustings.core.outcome import ELECTING, PAUSED, Elected, NoLeader, Outcome
from hustings.core.view import View
from hustings.layers.detector.layer import DetectorLayer
from hustings.layers.layer import Layer, find, innermost, unwrapped
from hustings.layers.leadership.config import TIMER, LeadershipConfig
from hustings.layers.leadership.doubts import DOUBT, Doubts
from hustings.layers.leadership.electors import Electors
from hustings.layers.leadership.incumbency import Heard, Incumbency
from hustings.layers.leadership.inquiry import ANSWERS, Inquiry
from hustings.layers.leadership.messages import (
    MAX_TERM,
    HandOverMsg,
    LeaderInfoMsg,
    LeaderQueryMsg,
    sound,
)
from hustings.layers.leadership.observer import UNHEARD, ObserverState
from hustings.layers.leadership.reconciliation import Reconciliation
from hustings.layers.leadership.resignation import RESIGNED, Resignation
from hustings.layers.leadership.standing import (
    ELIGIBLE,
    OBSERVER,
    ByStanding,
    is_observer,
    with_standing,
)
from hustings.layers.leadership.transfer import PREEMPT, REPEAT, Transfer, preempt

__all__ = ["RESIGNED", "LeadershipConfig", "LeadershipLayer", "with_leadership"]

WAITING = "waiting for other members"

JOIN: TimerKey = (TIMER, 0)  # until the membership has had time to answer
TICK: TimerKey = (TIMER, 1)
OFFICE: TimerKey = (TIMER, 7)  # until a member that announces itself leads

TIMERS = (JOIN, TICK, ANSWERS, REPEAT, PREEMPT, DOUBT, OFFICE)


class LeadershipContext(ForwardingContext):
    """The context of the inner election: its view contains the electors.

    The layer receives what the election declares.
    """

    __slots__ = ("_layer", "_muted", "_quiet", "_silent")

    def __init__(
        self,
        below: Context,
        layer: LeadershipLayer,
        *,
        muted: bool = False,
        quiet: bool = False,
        silent: bool = False,
    ) -> None:
        """`muted` drops declarations. `silent` also drops messages.

        `quiet`: a member that is back looks like a new one.
        """
        super().__init__(below)
        self._layer = layer
        self._muted = muted or silent
        self._silent = silent
        self._quiet = quiet

    @property
    def me(self) -> Candidate:
        return self._layer.incumbency.shown(self._below.me)

    @property
    def view(self) -> View:
        return self._layer.electorate(self._below)

    @property
    def incarnation(self) -> int:
        return 1 if self._quiet else self._below.incarnation

    def send(self, to: MemberId, message: Message) -> None:
        if not (self._silent or self._layer.resuming):
            self._below.send(to, message)

    def multicast(self, message: Message) -> None:
        if not (self._silent or self._layer.resuming):
            self._below.multicast(message)

    def declare(self, outcome: Outcome) -> None:
        if not self._muted:
            self._layer.declared(self._below, outcome)


def _anybody(member: MemberId) -> bool:
    return True


class LeadershipLayer(Layer):
    """An election with all that its owner needs."""

    adds = "a leadership layer"
    messages = (HandOverMsg, LeaderInfoMsg, LeaderQueryMsg)
    Staying: ClassVar[type[Incumbency]] = Incumbency
    Inquiring: ClassVar[type[Inquiry]] = Inquiry
    Reconciling: ClassVar[type[Reconciliation]] = Reconciliation
    # Whether a member is known to be there beyond what others say of it; a world may know.
    is_met: Callable[[MemberId], bool] = staticmethod(_anybody)

    def __init__(self, inner: Election, settings: LeadershipConfig, observer: bool = False) -> None:
        super().__init__(inner)
        if not isinstance(inner.choice, ByStanding):
            raise ProtocolBug("a leadership layer needs a choice by standing first: ByStanding")
        if inner.choice.taken:
            raise ProtocolBug("each member needs a ByStanding of its own: it knows the incumbent")
        self.settings = settings
        self.order = inner.choice  # as this member sees it: the incumbent comes first
        self.order.taken, self.order.several = True, inner.seats > 1
        self.plain = inner.choice.choice
        self.fair = ByStanding(self.plain)  # without the incumbent: all members agree on it
        self.announces = innermost(inner).assumptions.announces
        # Whether a leader stays. Members that all announce themselves all the time do not claim to
        # lead, so no term says which one does: there the best leads, as the election has it.
        claims = type(innermost(inner)).claim_of is not Election.claim_of
        self.stays = settings.sticky and (claims or not self.announces)
        # The election's own rule: whether a better member takes over from a living leader.
        self.preempts = not settings.sticky and innermost(inner).assumptions.displaces
        self.observer = observer
        self.told: Outcome | None = None  # the owner's last news
        self.pending: Elected | None = None  # this member's leadership, if it is not declared yet
        self.begun = False  # whether the inner election has been started
        self.entered = False  # whether the membership has had time to answer
        self.held_back = False  # takes part when its world says so, or another member does
        self.recovering = False  # was away: until it knows the leader, the election hears nothing
        self.resuming: Elected | None = None  # the leadership from before it was away
        self.gone = False
        self._knew_leader = False  # whether it ever had one
        self._affirmed = False  # whether the pending leadership was claimed again, if need be
        self._led = False
        self._had_leader = False  # at the last look
        self.electors = Electors(self.order)
        self.incumbency = self.Staying(self)
        self.transfer = Transfer(self)
        self.resignation = Resignation(self)
        self.inquiry = self.Inquiring(self)
        self.reconciliation = self.Reconciling(self)
        self.doubts = Doubts(self)
        self.observed = ObserverState(settings)

    @staticmethod
    def owns(key: TimerKey) -> bool:
        """Whether a timer belongs to this layer."""
        return isinstance(key, tuple) and key[0] == TIMER

    # What others may read

    @property
    def leader(self) -> MemberId | None:
        """The leader that this member knows."""
        if self.observer:
            return self.observed.leaders[0] if self.observed.leaders else None
        return self.inner.leader

    @leader.setter
    def leader(self, leader: MemberId | None) -> None:
        self.inner.leader = leader

    @property
    def term(self) -> int:
        """The highest known term."""
        return self.observed.term if self.observer else self.inner.term

    @term.setter
    def term(self, term: int) -> None:
        self.inner.term = term

    @property
    def leaders(self) -> tuple[MemberId, ...]:
        """All leaders that this member knows."""
        return self.observed.leaders if self.observer else self.inner.leaders

    def shown(self, me: Candidate) -> Candidate:
        """This member as the world must show it to others: the same object, if that is `me`."""
        return with_standing(me, OBSERVER) if self.observer else self.incumbency.shown(me)

    def state(self) -> str:
        if self.observer:
            return f"observer leader={self.leader} term={self.term}"
        return f"{self.inner.state()} first={self.electors.incumbent}"

    # What its parts share

    @property
    def held(self) -> Elected | None:
        """The leader, if there is one. A member that only waits to announce itself is none."""
        told, leader = self.told, self.inner.leader
        if isinstance(told, Elected) and (self.announces or told.leader == leader):
            return told
        if self.announces or leader is None:
            return None
        return Elected(leader, self.inner.term)

    @property
    def highest(self) -> int:
        """The highest term that this member knows of."""
        told = self.told
        return max(self.inner.term, told.term) if isinstance(told, Elected) else self.inner.term

    def next_term(self) -> int:
        """A term above all terms that this member knows."""
        return min(self.highest + 1, MAX_TERM)

    def leads(self, me: MemberId) -> bool:
        """Whether this member is a leader."""
        held = self.held
        if held is not None and self.inner.seats > 1:
            return me in self.inner.leaders
        return held is not None and held.leader == me

    def suspected(self, member: MemberId) -> bool:
        """Whether the inner detector, or gossip in its place, takes a member for dead."""
        if member in self.doubts:
            return True
        monitored = find(DetectorLayer, self.inner)
        return monitored is not None and member in monitored.detector.suspects

    def knows(self, leader: MemberId) -> bool:
        """Whether a leader may be followed. Where views are partial, a report is enough."""
        return leader in self.electors or self.settings.partial

    def electorate(self, ctx: Context) -> View:
        """The members that may be elected, as of this handler's start, with its own standing."""
        self.electors.stand(self.incumbency.shown(ctx.me))
        return self.electors.view

    def best_other(self, ctx: Context) -> MemberId | None:
        """The best other elector that does not stand back.

        One that this member has met comes first. A newcomer may have missed the goodbye of a member
        that left, and tell others of it: that one would never take over.
        """
        ranking = self.electorate(ctx).ranking(self.order).ids
        best = None
        for each in ranking:
            if each == ctx.me.id:
                continue
            if self.electors.standing(each) < ELIGIBLE:
                break  # and all after it
            if self.is_met(each):
                return each
            best = each if best is None else best
        return best

    # What this member says about the leader

    def leader_info(self, held: Elected) -> LeaderInfoMsg:
        """What this member reports about the leader."""
        known = self.inner.leaders if self.inner.seats > 1 else ()
        leaders = known if held.leader in known[:1] else (held.leader,)
        return LeaderInfoMsg(leaders, held.term)

    def own_info(self, me: MemberId, term: int) -> LeaderInfoMsg:
        """What a leader reports about itself."""
        leaders = self.inner.leaders if self.inner.seats > 1 else (me,)
        return LeaderInfoMsg(leaders or (me,), term)

    def leading(self) -> LeaderInfoMsg | None:
        """What gossip reports about the leader."""
        held = self.held
        return None if held is None else self.leader_info(held)

    # The inner election

    def within(self, ctx: Context) -> LeadershipContext:
        """The context of the inner election."""
        return LeadershipContext(ctx, self)

    def run_inner(self, ctx: Context, act: Callable[..., None], *about: object) -> None:
        self.look(ctx)
        act(LeadershipContext(ctx, self), *about)
        self.settle(ctx)

    def begin(self, ctx: Context, *, muted: bool = False) -> None:
        """Start the inner election, once.

        A member that is back from a crash may come to a group whose leader must stay. It calls no
        election: it looks like a new member.
        """
        if not self.begun:
            self.begun = True
            quiet = self.settings.sticky
            self.inner.start(LeadershipContext(ctx, self, muted=muted, quiet=quiet))

    def assume(self, ctx: Context, leader: MemberId, term: int) -> None:
        """Follow a leader, or lead, without an election. The owner is told once."""
        self.begin(ctx, muted=True)
        if term < self.highest:
            return
        if leader != ctx.me.id or self.incumbency.in_office or self.incumbency.standing >= ELIGIBLE:
            self.incumbency.put_first(leader)
        self.inner.assume_leader(LeadershipContext(ctx, self, muted=True), leader, term)
        outcome = Elected(leader, term)
        if outcome != self.told:
            self._tell(ctx, outcome)

    def step_down(self, ctx: Context, reason: str) -> None:
        """Stop leading, although no other member leads. The owner hears why."""
        if self.announces:
            # Send nothing: the others may never have missed this leader.
            self.inner.leave(LeadershipContext(ctx, self, silent=True))
            self.begun = False
        else:
            self.inner.leader = None
        self.incumbency.end(ctx.me.id)
        self._tell(ctx, NoLeader(reason))

    def declared(self, ctx: Context, outcome: Outcome) -> None:
        """The election declares an outcome. Tell the owner, unless others may also claim to lead.

        Where members announce themselves, all members that miss the leader do so before they have
        heard each other. One failover must give one leadership, that of the best of them.
        """
        leads = isinstance(self.told, Elected) and self.told.leader == ctx.me.id
        wait = 0.0 if leads or self.inner.seats > 1 else self.settings.claim_delay
        mine = outcome if isinstance(outcome, Elected) and outcome.leader == ctx.me.id else None
        if not wait or mine is None or len(self.electors.view) <= 1:
            self._tell(ctx, outcome)
            return
        if self.pending is None:
            if self.told != NoLeader(ELECTING):
                self._tell(ctx, NoLeader(ELECTING))
            last = min(wait, self.settings.delta)
            self._affirmed = last == wait
            ctx.set_timer(OFFICE, wait if self._affirmed else wait - last)
        self.pending = mine

    def _take_office(self, ctx: Context) -> None:
        """No better member has announced itself: this member leads.

        A worse member may have missed this one's claim, because it still followed the leader
        before. So this member claims again one delay before it leads, if it has heard such a
        member. Its leadership has one term from the beginning.
        """
        if self.pending is not None:
            self.inner.affirm(self.within(ctx))
        if self.pending is not None and not self._affirmed:
            self._affirmed = True
            ctx.set_timer(OFFICE, self.settings.delta)
        elif self.pending is not None:
            self._tell(ctx, self.pending)

    def _tell(self, ctx: Context, outcome: Outcome) -> None:
        """Tell the owner the outcome of the election, or of this layer.

        A term that the owner was told is stored, so that the owner never hears of an earlier one
        again. Not every election stores its term, and none does where it assumes a leader.
        """
        if self.pending is not None:
            self.pending = None
            ctx.cancel_timer(OFFICE)
        if outcome != NoLeader(PAUSED):
            self.resuming = None
        self.told = outcome
        if isinstance(outcome, Elected):
            self._knew_leader = True
            stored = ctx.stored.get("term")
            if not isinstance(stored, int) or stored < outcome.term:
                ctx.persist(term=outcome.term)
        ctx.declare(outcome)

    # Before and after each handler

    def look(self, ctx: Context) -> Sequence[MemberId]:
        """Update the electors. Return the members that the election was told about."""
        me, now = self.incumbency.shown(ctx.me), ctx.now()
        self.incumbency.look(me.id, now)
        changes = self.electors.refresh(ctx.view, me, now)
        if self.begun:
            for member in changes.lost:
                self.inner.on_suspect(self.within(ctx), member)
            for member in changes.added:
                self.inner.on_alive(self.within(ctx), member)
        if changes.added:
            self.resignation.end(ctx)
        return changes.added

    def settle(self, ctx: Context) -> None:
        """Check whether this member has begun or ended to lead, and whether there is a leader."""
        leads, held = self.leads(ctx.me.id), self.held
        if self._led and not leads:
            self.incumbency.end(ctx.me.id)
        if leads and held is not None:
            self.reconciliation.announce(ctx, held)
        self._led = leads
        if held is not None and self.resuming is None:
            if self.held_back:
                self.held_back, self.entered = False, True
            self.recovering = False
            self._had_leader = True
            self.inquiry.end()
        elif held is None and self._had_leader:
            self._had_leader = False
            self.inquiry.leaderless_since = ctx.now()
        self.incumbency.look(ctx.me.id, ctx.now())
        self.electorate(ctx)  # its own standing may have changed

    # What a world calls

    def start(self, ctx: Context) -> None:
        self.observer = self.observer or is_observer(ctx.me)
        self.look(ctx)
        ctx.set_timer(TICK, self.settings.period * ctx.rng.uniform(0.5, 1.0))
        if self.observer:
            self.observed.start(ctx)
            return
        self.inner.recall(ctx)  # not every election does, and none before its start
        self.inquiry.leaderless_since = ctx.now()
        if self.held_back:
            self._tell(ctx, NoLeader(WAITING))
        elif self.settings.joining:
            ctx.set_timer(JOIN, self.settings.joining)
        else:
            self._enter(ctx)
        self.settle(ctx)

    def joined(self, ctx: Context) -> None:
        """The membership has had time: a member answered, or none will."""
        if not (self.observer or self.gone or self.entered):
            ctx.cancel_timer(JOIN)
            self.held_back = False
            self.look(ctx)
            self._enter(ctx)
            self.settle(ctx)

    def hold_back(self, ctx: Context) -> None:
        """Its world has found a reason to wait, and this member has not taken part yet."""
        if not (self.observer or self.gone or self.begun or self.held_back):
            ctx.cancel_timer(JOIN)
            ctx.cancel_timer(ANSWERS)
            self.inquiry.end()
            self.entered, self.held_back = False, True
            self._tell(ctx, NoLeader(WAITING))

    def _enter(self, ctx: Context) -> None:
        if self.entered:
            return
        self.entered = True
        if not self.settings.sticky:
            self.begin(ctx)
        if self.held is None:
            self.inquiry.begin(ctx)

    def call(self, ctx: Context) -> None:
        if self.observer or self.gone or self.held_back:
            return
        self.look(ctx)
        self.resignation.end(ctx)
        self.begin(ctx)
        self.inner.call(self.within(ctx))
        self.settle(ctx)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        if not self.owns(key):
            if not self.observer:
                self.run_inner(ctx, self.inner.on_timer, key)
            return
        if self.gone:
            return
        self.look(ctx)
        if key == TICK:
            ctx.set_timer(TICK, self.settings.period)
            self._tick(ctx)
        elif key == JOIN:
            self._enter(ctx)
        elif key == ANSWERS:
            self.inquiry.conclude(ctx)
        elif key == REPEAT:
            self.transfer.repeat(ctx)
        elif key == DOUBT:
            self.doubts.give_up(ctx)
        elif key == PREEMPT:
            preempt(ctx, self)
        else:
            self._take_office(ctx)
        self.settle(ctx)

    def _tick(self, ctx: Context) -> None:
        if self.observer:
            self.observed.tick(ctx, self.electors.others(ctx.me.id))
        elif self.entered and not self.resignation.resigned and self.resuming is None:
            self.reconciliation.check(ctx)
            self.resignation.make_room(ctx)
            preempt(ctx, self)

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        observer = member in self.electors.observers
        self.look(ctx)
        if member in self.electors.since:
            # the time counts only while it is there without a break
            self.electors.since[member] = ctx.now()
        if self.observer:
            self.observed.lose(ctx, member)
        elif self.begun and not observer:
            if not self.doubts.doubt(ctx, member):
                self.inner.on_suspect(self.within(ctx), member)
            self.settle(ctx)

    def on_alive(self, ctx: Context, member: MemberId) -> None:
        told = self.look(ctx)
        self.doubts.take_back(member)
        if self.begun and member not in told and member not in self.electors.observers:
            self.inner.on_alive(self.within(ctx), member)
            self.settle(ctx)

    def on_verdict(self, ctx: Context, verdict: Verdict) -> None:
        if not self.observer:
            self.run_inner(ctx, self.inner.on_verdict, verdict)

    def assume_leader(self, ctx: Context, leader: MemberId, term: int) -> None:
        self.look(ctx)
        if self.observer:
            self.observed.hear(ctx, leader, (leader,), term)
            return
        self.entered = True
        ctx.cancel_timer(JOIN)
        self.assume(ctx, leader, term)
        self.settle(ctx)

    def woke(self, ctx: Context, gap: float) -> None:
        self.look(ctx)
        if self.gone:
            return
        if self.observer:
            if self.observed.leaders:
                self.observed.forget(ctx, UNHEARD)
            return
        self.inner.woke(self.within(ctx), gap)
        # If it stood still again before it knew, it asks again: the silence until now says nothing.
        before = self.resuming or self.held
        if before is not None and before.leader == ctx.me.id and self.inner.seats == 1:
            self.entered = self.recovering = True
            self.resuming = before
            if gap > self.settings.longest_stall and self.told != NoLeader(PAUSED):
                if not self.announces:
                    self.inner.leader = None
                self._tell(ctx, NoLeader(PAUSED))
            self.settle(ctx)
            self.inquiry.end()
            self.inquiry.begin(ctx)
            self.settle(ctx)

    def resume(self, ctx: Context) -> None:
        """Lead on in the same term: no other member has taken this one's place."""
        before, self.resuming = self.resuming, None
        if before is not None:
            self.recovering = False
            self.inquiry.end()
            ctx.cancel_timer(ANSWERS)
            if not self.announces:
                within = LeadershipContext(ctx, self, muted=True)
                self.inner.assume_leader(within, before.leader, before.term)
            self.incumbency.put_first(before.leader)
            if self.told != before:
                self._tell(ctx, before)

    def reclaim(self, ctx: Context) -> bool:
        """This member's lease lasts, and others have elected another member: lead on.

        False if this member gave its leadership up, or if the election lets a better one displace
        it.
        """
        held, me = self.held, ctx.me.id
        if self.gone or self.preempts or self.inner.seats > 1:
            return False
        if self.incumbency.standing < ELIGIBLE:
            return False
        if held is not None and held.term == self.transfer.given:
            return False
        self.look(ctx)
        self.reconciliation.lead_above(ctx, self.highest)
        self.settle(ctx)
        return self.leads(me)

    def leave(self, ctx: Context) -> None:
        self.look(ctx)
        self.gone = True
        if not self.observer:
            successor = self.best_other(ctx)
            if successor is not None and self.inner.seats == 1:
                self.transfer.hand_over(ctx, successor, to_all=True)
            self.resuming = None  # what it says from now on is a farewell
            self.inner.leave(self.within(ctx))
        for timer in TIMERS:
            ctx.cancel_timer(timer)

    # What an owner asks for

    def hand_over(self, ctx: Context, to: MemberId) -> bool:
        """Make another member the leader.

        False if that is impossible, or this member does not lead.
        """
        self.look(ctx)
        if self.observer or self.gone or to == ctx.me.id or to not in self.electors:
            return False
        done = self.transfer.hand_over(ctx, to)
        self.settle(ctx)
        return done

    def stand_back(self, ctx: Context) -> None:
        """Stop leading, and be chosen only if there is no other member."""
        if not (self.observer or self.gone):
            self.look(ctx)
            self.resignation.stand_back(ctx)
            self.settle(ctx)

    def stand(self, ctx: Context) -> None:
        """Be chosen like all other members."""
        if not (self.observer or self.gone):
            self.look(ctx)
            self.resignation.stand(ctx)
            self.settle(ctx)

    # Messages of other members

    def on_inner(self, ctx: Context, sender: MemberId, message: Message) -> None:
        if self.observer or self.recovering or self.transfer.is_past(ctx, sender):
            return
        self.look(ctx)
        claim = self._claim_of(message)
        heard = Heard.YES
        if claim is not None:
            told = self._is_told(ctx, sender, claim)
            heard = Heard.NO if told else self.incumbency.judge(ctx, sender, claim)
        if heard is Heard.NO:
            self.settle(ctx)
            return
        if not self.gone:
            self.resignation.end(ctx)
            if self.held_back:
                self.held_back, self.entered = False, True
            self.begin(ctx)
        self.inner.handlers[type(message)](self.inner, self.within(ctx), sender, message)
        if heard is Heard.CONTESTED:
            self.inner.affirm(self.within(ctx))
        elif claim is not None:
            self._take_term(ctx, sender, claim)
        self.settle(ctx)

    def _take_term(self, ctx: Context, sender: MemberId, claim: Claim) -> None:
        """The leader leads in a later term than the owner was told.

        An election may know that term already, from a claim that it did not follow. Then it does
        not declare it.
        """
        told = self.told
        if isinstance(told, Elected) and told.leader == sender == self.inner.leader:
            if told.term < claim.term <= self.inner.term and self.inner.seats == 1:
                self._tell(ctx, Elected(sender, claim.term))

    def _is_told(self, ctx: Context, sender: MemberId, claim: Claim) -> bool:
        """Whether a newcomer learned from a leader's own message whom to follow.

        It follows as if another member had told it. If its election saw the message first, a better
        member would displace the leader, which must stay. A newcomer that saw nobody has begun its
        election already. It follows a leader that claims for more than the first time: where all
        begin together, the best must stay. A result that is passed on is news, too, and the
        election passes it on.
        """
        if self._knew_leader or self.gone or not self.settings.sticky or self.inner.seats > 1:
            return False
        leader = sender if claim.leader is None else claim.leader
        if leader == ctx.me.id or not sound(told := LeaderInfoMsg((leader,), claim.term)):
            return False
        begun = self.begun
        asks = self.inquiry.running or not (self.entered or self.held_back)
        if asks or not begun:
            self.reconciliation.compare(ctx, sender, told)
            passed_on = claim.leader is not None
            if self.announces and not claim.repeated:
                self.incumbency.wait(leader)
            if asks and not self.knows(leader) and (passed_on or not begun):
                return True  # it may come into view yet
            if passed_on:
                return False  # the election passes it on to others
            return self.inner.leader == leader if begun else self.begun
        known = sender in self.electors and claim.term >= self.highest
        if known and claim.repeated and self.pending is None and claim.leader is None:
            self.assume(ctx, sender, claim.term)
            return True
        return False

    def _claim_of(self, message: Message) -> Claim | None:
        election, inner = unwrapped(self.inner, message)
        return election.claim_of(inner)

    @upon(HandOverMsg)
    def _on_hand_over(self, ctx: Context, sender: MemberId, message: HandOverMsg) -> None:
        if self.gone or sender == ctx.me.id or not sound(message):
            return
        if self.observer:
            self.observed.hear(ctx, sender, (message.to,), message.term)
            return
        self.look(ctx)
        self.transfer.on_hand_over(ctx, sender, message)
        self.settle(ctx)

    @upon(LeaderInfoMsg)
    def _on_leader_info(self, ctx: Context, sender: MemberId, message: LeaderInfoMsg) -> None:
        if self.gone or sender == ctx.me.id or not sound(message):
            return
        if self.observer:
            self.observed.hear(ctx, sender, message.leaders, message.term)
            return
        self.look(ctx)
        self.transfer.heard(sender, message.leaders[0], message.term)
        if self.inner.seats == 1:
            self.reconciliation.compare(ctx, sender, message)
        self.settle(ctx)

    @upon(LeaderQueryMsg)
    def _on_leader_query(self, ctx: Context, sender: MemberId, message: LeaderQueryMsg) -> None:
        if self.gone or self.observer or sender == ctx.me.id or not sound(message):
            return
        self.look(ctx)
        self.reconciliation.answer(ctx, sender, message.term)
        self.settle(ctx)


def with_leadership(
    elect: Callable[[], Election], settings: LeadershipConfig, observer: bool = False
) -> Callable[[], LeadershipLayer]:
    """Turn a factory of elections into one whose elections each have a leadership layer."""
    return lambda: LeadershipLayer(elect(), settings, observer)

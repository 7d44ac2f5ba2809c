"""The helm: what owners need beside an election, whichever it is.

    the owner          hand_over, stand_back, stand, call, leave
    ---------------------------------------------------------------
    LeadershipLayer             who may be elected, who is favoured, do all agree?
    ---------------------------------------------------------------
    inner election     perhaps with a detector

Electors   The election inside sees only members that may be elected: observers are not in its view.
Favour     Members compare by favour first (`Favoured`), then by the choice function. A leader whose
           place is not to be taken by the next better member (`preempt_after` is not 0) has more
           favour than all others once it has led for reconcile_interval; so has, at once, one that
           was handed its office. Favour ends with the office: a leader that crashed comes back
           without.
Hand-over  The leader tells its successor the next term, and that one tells all: whoever hears it
           for the first time, and knows of no later term, follows at once. Copies, late or out of
           order, carry a term that is no longer new. A round trip later the old leader says the
           same to all: who misses one hears the other. The successor is told again, a few times,
           until it speaks. Who leaves tells all at once. One of several leaders that hands over
           gives favour only, and the election does the rest.
Standing   Who stands back hands over, and has less favour than all others. With nobody to hand over
           to there is no leader, until somebody else turns up, it stands again, or an election
           is called.
Observers  Know the leader by hearsay, see `helm_lookout`; of several, the first.
Concord    Each leader tells one random elector, from time to time, that it leads; some followers
           tell their leader whom they follow. Who knows of a later term than the other says so. Of
           two leaders in one term, or in any with `preempt`, the better insists: it takes the next
           term and tells all. Who has no leader for long asks around, and calls an election if
           nobody knows one. Elections that announce do all that alone; only who has no leader asks.
Return     With `preempt_after` a leader hands over to a better member that was in view for so long.
Pause      A leader that did not run for too long holds itself for the leader no more, and asks.
Office     Whoever announces itself leads when it has heard no better one for claim_delay.
Invariant  Terms that a member follows by this layer's doing only grow.
Cost       Two small messages each reconcile_interval, one for each observer; a multicast with a
           new leader.
Guarantee  Advisory, like the elections inside: each of two sides has its leader until they meet.

Timer keys ("helm", ...) are the helm's. The world puts `wanted_favour` among a member's attributes
after each handler, marks observers by OBSERVER, and calls `joined` and `woke` if it can.
"""

from __future__ import annotations

from collections.abc import Callable

from hustings.core.choice import MemberId
from hustings.core.context import Context, TimerKey
from hustings.core.election import Election, upon
from hustings.core.guard import Verdict
from hustings.core.messages import Message, Role
from hustings.layers.leadership.config import LeadershipConfig
from hustings.layers.leadership.messages import AskMsg, HandOverMsg, TidingsMsg, sound
from hustings.layers.leadership.observer import UNHEARD, Lookout
from hustings.layers.leadership.priority import STOOD_BACK, favour_of, is_observer
from hustings.layers.leadership.reconciliation import Concord
from hustings.layers.leadership.state import (
    ANSWERS,
    DOUBT,
    HELM,
    JOIN,
    PREEMPT,
    REPEAT,
    SECURE,
    TICK,
    TIMERS,
)

__all__ = ["PAUSED", "RESIGNED", "LeadershipConfig", "LeadershipLayer", "with_leadership"]

PAUSED = "paused"
RESIGNED = "resigned"


class LeadershipLayer(Concord):
    """`inner` with a helm."""

    adds = "a helm"
    messages = (HandOverMsg, TidingsMsg, AskMsg)

    def __init__(self, inner: Election, settings: LeadershipConfig, observer: bool = False) -> None:
        super().__init__(inner, settings)
        self.observer = observer
        self.lookout = Lookout(settings)
        self.gone = False
        self.accepted: MemberId | None = None  # the successor, once it has said that it leads
        self._heir: tuple[MemberId, HandOverMsg, int] | None = None  # and how often it is told yet
        self._word: HandOverMsg | None = None  # that all are still to hear from this member
        # Who led before a hand-over, and until when what it said in office may be under way.
        self._outgoing: tuple[MemberId, float] | None = None

    @staticmethod
    def owns(key: TimerKey) -> bool:
        """Whether a timer is the helm's."""
        return isinstance(key, tuple) and key[0] == HELM

    # What one may ask

    @property
    def leader(self) -> MemberId | None:
        """Whom this member holds for the leader."""
        if self.observer:
            return self.lookout.leaders[0] if self.lookout.leaders else None
        return self.inner.leader

    @leader.setter
    def leader(self, leader: MemberId | None) -> None:
        self.inner.leader = leader

    @property
    def term(self) -> int:
        """The highest term known."""
        return self.lookout.term if self.observer else self.inner.term

    @term.setter
    def term(self, term: int) -> None:
        self.inner.term = term

    @property
    def leaders(self) -> tuple[MemberId, ...]:
        """All leaders that this member knows of."""
        return self.lookout.leaders if self.observer else self.inner.leaders

    def state(self) -> str:
        if self.observer:
            return f"observer leader={self.leader} term={self.term}"
        return f"{self.inner.state()} favour={self.wanted_favour:g}"

    # What a world calls

    def start(self, ctx: Context) -> None:
        self.observer = self.observer or is_observer(ctx.me)
        self.look(ctx)
        ctx.set_timer(TICK, self.settings.period * ctx.rng.uniform(0.5, 1.0))
        if self.observer:
            self.lookout.start(ctx)
            return
        self.inner.recall(ctx)  # not every election does, and none before it has been started
        self.bereft = ctx.now()
        if self.settings.joining:
            ctx.set_timer(JOIN, self.settings.joining)
        else:
            self.enter(ctx)
        self.settle(ctx)

    def joined(self, ctx: Context) -> None:
        """The membership has had its chance: somebody answered, or nobody will."""
        if not (self.observer or self.gone or self.entered):
            ctx.cancel_timer(JOIN)
            self.look(ctx)
            self.enter(ctx)
            self.settle(ctx)

    def call(self, ctx: Context) -> None:
        if self.observer or self.gone:
            return
        self.look(ctx)
        self.rise(ctx)
        self.begin(ctx)
        self.inner.call(self.within(ctx))
        self.settle(ctx)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        if not self.owns(key):
            if not self.observer:
                self.look(ctx)
                self.inner.on_timer(self.within(ctx), key)
                self.settle(ctx)
            return
        if self.gone:
            return
        self.look(ctx)
        if key == TICK:
            ctx.set_timer(TICK, self.settings.period)
            self._tick(ctx)
        elif key == JOIN:
            self.enter(ctx)
        elif key == ANSWERS:
            self.conclude(ctx)
        elif key == REPEAT:
            self._repeat(ctx)
        elif key == SECURE:
            self.secure(ctx)
        elif key == DOUBT:
            self.give_up_on(ctx)
        elif key == PREEMPT:
            self._preempt(ctx)
        else:
            self.take_office(ctx)
        self.settle(ctx)

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        observer = member in self.electors.observers
        self.look(ctx)
        if member in self.electors.since:
            self.electors.since[member] = ctx.now()  # what counts is to be there all the time
        if self.observer:
            self.lookout.lose(ctx, member)
        elif self.begun and not observer:
            if not self.doubt(ctx, member):
                self.inner.on_suspect(self.within(ctx), member)
            self.settle(ctx)

    def on_alive(self, ctx: Context, member: MemberId) -> None:
        told = self.look(ctx)
        self.doubted.pop(member, None)
        if self.begun and member not in told and member not in self.electors.observers:
            self.inner.on_alive(self.within(ctx), member)
            self.settle(ctx)

    def on_verdict(self, ctx: Context, verdict: Verdict) -> None:
        if not self.observer:
            self.look(ctx)
            self.inner.on_verdict(self.within(ctx), verdict)
            self.settle(ctx)

    def assume_leader(self, ctx: Context, leader: MemberId, term: int) -> None:
        self.look(ctx)
        if self.observer:
            self.lookout.hear(ctx, leader, (leader,), term)
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
            if self.lookout.leaders:
                self.lookout.forget(ctx, UNHEARD)
            return
        self.inner.woke(self.within(ctx), gap)
        if self.leads(ctx.me.id) and self.inner.seats == 1:
            self.step_down(ctx, PAUSED)
            self.settle(ctx)
            self.entered = self.dazed = True
            self.inquire(ctx)

    def leave(self, ctx: Context) -> None:
        self.look(ctx)
        self.gone = True
        if not self.observer:
            heir = self.best_other(ctx)
            if heir is not None and self.inner.seats == 1:
                self._name(ctx, heir, to_all=True)
            self.inner.leave(self.within(ctx))
        for timer in TIMERS:
            ctx.cancel_timer(timer)

    # What an owner asks for

    def hand_over(self, ctx: Context, to: MemberId) -> bool:
        """Make somebody else the leader; False if it cannot be, or this member does not lead."""
        self.look(ctx)
        if self.observer or self.gone or to == ctx.me.id or to not in self.electors:
            return False
        done = self._name(ctx, to)
        self.settle(ctx)
        return done

    def stand_back(self, ctx: Context) -> None:
        """Lead no more, and be chosen only if nobody else is."""
        if self.observer or self.gone:
            return
        self.look(ctx)
        self.base = STOOD_BACK
        if self.leads(ctx.me.id) and self.inner.seats == 1:
            heir = self.best_other(ctx)
            if heir is not None:
                self._name(ctx, heir)
            else:
                self.step_down(ctx, RESIGNED)
                self.resting = True
        self.grip = None
        self.settle(ctx)

    def stand(self, ctx: Context) -> None:
        """Be chosen like everybody else."""
        if self.observer or self.gone:
            return
        self.look(ctx)
        self.base = 0.0
        if self.resting:
            self.rise(ctx)
            self.inquire(ctx)
        self.settle(ctx)

    def _name(self, ctx: Context, to: MemberId, *, to_all: bool = False) -> bool:
        """Lead no more, and tell somebody that it does; `to_all`: the others at once, too.

        They hear it from the next leader. If all were told together, that one would have to wait
        for its turn on a machine that it shares with them. Only who would lead next otherwise hears
        it too, since that one misses this member's heartbeats soonest, and would act.
        """
        me = ctx.me.id
        if not self.leads(me):
            return False
        message = HandOverMsg(to, self.next_term(), self.more_favour())
        self.grip = self.accepted = None
        ctx.send(to, message)
        if self.inner.seats == 1:
            to_all = to_all or not self.settings.transfer_retries
            other = self.best_other(ctx)
            if other is not None and other != to and not to_all:
                ctx.send(other, message)
            self.electors.tell(to, message.favour)
            self.assume(ctx, to, message.term)
            if to_all:
                ctx.multicast(message)
            else:
                self._word = message
        if self.settings.transfer_retries:
            self._heir = (to, message, self.settings.transfer_retries)
            ctx.set_timer(REPEAT, 2 * self.settings.delta)
        return True

    def _repeat(self, ctx: Context) -> None:
        """A round trip has passed: all hear the word once more, and the successor if it is silent.

        Nobody does if there is another leader by now.
        """
        word, self._word = self._word, None
        to_all = word is not None and self._current(word)
        if word is not None and to_all:
            ctx.multicast(word)
        if self._heir is not None:
            to, message, left = self._heir
            self._heir = None
            if to in self.electors and (self._current(message) or self.inner.seats > 1):
                if not to_all:
                    ctx.send(to, message)
                if left > 1:
                    self._heir = (to, message, left - 1)
                    ctx.set_timer(REPEAT, 2 * self.settings.delta)

    def _current(self, message: HandOverMsg) -> bool:
        held = self.held
        return held is not None and (held.leader, held.term) == (message.to, message.term)

    # What others say

    def on_inner(self, ctx: Context, sender: MemberId, message: Message) -> None:
        if self.observer or self.dazed or self._is_past(ctx, sender):
            return
        self.look(ctx)
        if not self.gone:
            self.rise(ctx)
            self.begin(ctx)
        if message.role is Role.COORDINATOR:
            self.meet_rival(ctx, sender)
        self.inner.handlers[type(message)](self.inner, self.within(ctx), sender, message)
        self.settle(ctx)

    @upon(HandOverMsg)
    def _on_hand_over(self, ctx: Context, sender: MemberId, message: HandOverMsg) -> None:
        if self.gone or sender == ctx.me.id or not sound(message):
            return
        if self.observer:
            self.lookout.hear(ctx, sender, (message.to,), message.term)
            return
        self.look(ctx)
        self.heard_from(sender)
        self._leads_now(sender, message.to, message.term)
        if self.inner.seats > 1:
            self._favoured(ctx, sender, message)
        elif message.term > self.highest:
            self._succeed(ctx, sender, message)
        elif message.to == ctx.me.id and (held := self.held) is not None:
            if held.leader == ctx.me.id and held.term == message.term:
                ctx.send(sender, self.tidings(held))  # it is asked for a second time
        self.settle(ctx)

    def _succeed(self, ctx: Context, sender: MemberId, message: HandOverMsg) -> None:
        """A new leader in a new term."""
        to, me = message.to, ctx.me.id
        if self.announces and (held := self.held) is not None:
            self._outgoing = (held.leader, ctx.now() + self.settings.delta)
        if to == me:
            self.rise(ctx)
            self.grip = message.favour
            self.assume(ctx, me, message.term)
            if self.leads(me):
                self.announced = self.held
                ctx.multicast(message)
                ctx.send(sender, self.tidings_of(me, message.term))
            else:
                self.grip = None
        elif self.knows(to):
            self.electors.tell(to, message.favour)
            self.assume(ctx, to, message.term)

    def _is_past(self, ctx: Context, sender: MemberId) -> bool:
        """Whether something may have been said before a hand-over, by who led then.

        An election that announces might take it for a claim of now.
        """
        if self._outgoing is None:
            return False
        former, until = self._outgoing
        if ctx.now() > until:
            self._outgoing = None
            return False
        return sender == former

    def _favoured(self, ctx: Context, sender: MemberId, message: HandOverMsg) -> None:
        """One of several leaders gives way: the favour decides, and the election does the rest."""
        if message.to == ctx.me.id:
            if not self.leads(ctx.me.id):
                self.grip = message.favour
                self.courted = ctx.now()
            ctx.send(sender, self.tidings_of(ctx.me.id, message.term))

    @upon(TidingsMsg)
    def _on_tidings(self, ctx: Context, sender: MemberId, message: TidingsMsg) -> None:
        if self.gone or sender == ctx.me.id or not sound(message):
            return
        if self.observer:
            self.lookout.hear(ctx, sender, message.leaders, message.term)
            return
        self.look(ctx)
        self.heard_from(sender)
        self._leads_now(sender, message.leaders[0], message.term)
        if self.inner.seats == 1:
            self.compare(ctx, sender, message)
        self.settle(ctx)

    def heard_from(self, sender: MemberId) -> None:
        """A successor that speaks need not be told again."""
        if self._heir is not None and self._heir[0] == sender:
            self._heir = None

    def _leads_now(self, sender: MemberId, leader: MemberId, term: int) -> None:
        """A member says that it leads: so it has taken over, if it was asked to."""
        if sender == leader and term >= self.highest:
            self.accepted = sender

    @upon(AskMsg)
    def _on_ask(self, ctx: Context, sender: MemberId, message: AskMsg) -> None:
        if self.gone or self.observer or sender == ctx.me.id or not sound(message):
            return
        self.look(ctx)
        self.answer(ctx, sender, message.term)
        self.settle(ctx)

    # From time to time

    def _tick(self, ctx: Context) -> None:
        if self.observer:
            self.lookout.tick(ctx, self.electors.others(ctx.me.id))
        elif self.entered and not self.resting:
            self.check(ctx)
            self._make_room(ctx)
            self._preempt(ctx)

    def _make_room(self, ctx: Context) -> None:
        """Who stands back leads only while there is nobody else."""
        if self.base < 0.0 and self.grip is None and self.leads(ctx.me.id):
            heir = self.best_other(ctx)
            if heir is not None and self.inner.seats == 1:
                self._name(ctx, heir)

    def _preempt(self, ctx: Context) -> None:
        """Hand over to a better member that has been up for long enough, or see when that will be.

        Once more when the view changes: a member that is new is looked at with the next tick.
        """
        due, me = self.settings.preempt_after, ctx.me
        if not due or not self.leads(me.id) or self.inner.seats > 1:
            return
        now, best, wait = ctx.now(), me, due
        for member, at in self.electors.since.items():
            other = self.electors.candidate(member)
            if favour_of(other) < 0.0 or not self.plain.better(other, me):
                continue
            left = at + due - now
            if left > self.settings.delta / 100:  # a timer that is due now would fire for ever
                wait = min(wait, left)
            elif self.plain.better(other, best):
                best = other
        if best.id != me.id:
            self._name(ctx, best.id)
        elif wait < due:
            ctx.set_timer(PREEMPT, wait)


def with_leadership(
    elect: Callable[[], Election], settings: LeadershipConfig, observer: bool = False
) -> Callable[[], LeadershipLayer]:
    """What makes elections, each with a helm of its own, from what makes them without."""
    return lambda: LeadershipLayer(elect(), settings, observer)

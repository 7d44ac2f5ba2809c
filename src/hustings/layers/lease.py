"""An election with a guard behind it, as one election: worlds need not know.

Idea       The inner election only nominates. The member that it elects asks the guard for the
           lease. A member that is granted a token leads, tells the group, and renews. All others
           believe only a confirmed leader, and of these the one with the highest token.
Invariant  A member leads only inside the window of a grant. The window begins when the question was
           sent, and ends when the granted time, shortened by the possible drift of two clocks, is
           over by the local clock. At its end the member steps down by itself. After a pause it
           looks at the clock before it does anything else.
Cost       One question and one answer per renewal, one multicast with each; the inner election's
           cost is unchanged. The guard's load does not grow with the group. Where the guard can be
           looked at, every other member does so once for each new holder.
Guarantee  Whatever is lost, late, doubled, cut off or crashed: one holder per token, tokens grow.
           While clock rates stay within 1 +- drift: never two members in their windows at once.
           Nothing is promised about when: that depends on the inner election and the network.

The inner election may be any, also one with a detector. It keeps its own leader and term, which
are hints outside; `leader` and `term` here are the confirmed leader and the highest token seen.
Own timers begin with "guard-", which no inner election may use, and "token" is stored.

A member may lie about tokens, and a lie that is stored stays. So where the guard can be looked at
(`check`), `term` is what the guard itself has said to this member. What another member says is
shown if that member is in view and its token is not far above `term`, and it is looked up. Only
then is it stored, asked with or acted on. Where members are the guard, a member that asks outbids
a lie.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, ClassVar

import msgspec

from hustings.core.choice import MemberId
from hustings.core.config import Config, Positive
from hustings.core.context import Context, ForwardingContext, TimerKey
from hustings.core.election import Election, upon
from hustings.core.errors import BadInput, ProtocolBug
from hustings.core.guard import Freed, Granted, Held, Observed, Verdict
from hustings.core.messages import LayerMessage, Message, Role, Token
from hustings.core.outcome import ELECTING, PAUSED, Elected, NoLeader, Outcome
from hustings.layers.layer import Layer

# Settings


class LeaseConfig(Config, frozen=True, kw_only=True):
    """For how long a leader is confirmed, and what is known of clocks."""

    ttl: Annotated[
        Positive | None,
        msgspec.Meta(description="the length of a lease [30 delta]"),
    ] = None
    drift: Annotated[
        float,
        msgspec.Meta(
            ge=0, lt=1, description="the rate of every clock lies between 1 - drift and 1 + drift"
        ),
    ] = 0.001
    retry: Annotated[
        Positive | None,
        msgspec.Meta(description="the wait for an answer before the next question [3 delta]"),
    ] = None

    margin: Annotated[
        float,
        msgspec.Meta(
            ge=0,
            description="the last part of a lease, in which a member no longer leads "
            "and ends its work",
        ),
    ] = 0.0
    first_wait: Annotated[
        float,
        msgspec.Meta(
            ge=0, description="the wait before the first question after a start, to hear others"
        ),
    ] = 0.0

    @property
    def asked(self) -> float:
        """The time asked for."""
        return 30.0 * self.delta if self.ttl is None else self.ttl

    @property
    def patience(self) -> float:
        """How long an answer may take before the question is repeated."""
        return 3.0 * self.delta if self.retry is None else self.retry

    @property
    def shortest(self) -> float:
        """The shortest pause between an answer and the next question: a guard is not flooded."""
        return self.patience / 10.0

    @property
    def renewal(self) -> float:
        """How long after one question was sent, and granted, the next one is."""
        return self.asked / 3.0

    @property
    def slack(self) -> float:
        """By which factor one clock may run faster than another."""
        return (1.0 + self.drift) / (1.0 - self.drift)

    def window(self, ttl: float) -> float:
        """For how long, by one's own clock, a grant of `ttl` by the guard's clock surely lasts.

        >>> LeaseConfig(drift=0.0).window(30.0)
        30.0
        >>> round(LeaseConfig(drift=0.2).window(30.0), 6)
        20.0
        """
        return ttl / self.slack

    def leading(self, ttl: float) -> float:
        """For how long of that a member leads: the rest is for what it has under way."""
        return self.window(ttl) - self.margin

    def broken_rules(self) -> list[str]:
        broken = []
        if not math.isfinite(self.asked):
            broken.append("ttl must be finite: a leader that crashed would be confirmed for ever")
        if self.asked < 6.0 * self.delta:
            broken.append(
                f"ttl must be at least three round trips (6 delta = {6.0 * self.delta:g}), "
                f"not {self.asked:g}"
            )
        elif self.leading(self.asked) <= self.renewal + 2.0 * self.delta * (1.0 + self.drift):
            margin = f" and margin={self.margin:g}" if self.margin else ""
            verb = "leave" if self.margin else "leaves"
            broken.append(
                f"drift={self.drift:g}{margin} {verb} a window of {self.leading(self.asked):g} of "
                f"ttl={self.asked:g}: too short to renew in"
            )
        return broken


AWAITING = "awaiting confirmation"
LAPSED = "the confirmation ran out"
GIVEN_BACK = "the lead was given back"

ASK = "guard-ask"
END = "guard-end"
CHECK = "guard-check"

SPREAD = 0.1  # delays for each member of a group: within this time all members look at the guard
STEP = 1 << 16  # how far above the guard's own token a member's token may be and still be shown

__all__ = ["AWAITING", "GIVEN_BACK", "LAPSED", "LeaseConfig", "LeaseHeldMsg", "LeaseLayer"]
__all__ += ["ASK", "CHECK", "END", "SPREAD", "STEP", "with_lease"]


class LeaseHeldMsg(LayerMessage, frozen=True, tag="LEASE-HELD"):
    """The guard has granted `token` to `leader`. To `leader` itself: the largest known token.

    A member that does not lead may say so of a leader that the others cannot hear.
    """

    role: ClassVar[Role] = Role.COORDINATOR
    leader: MemberId
    token: Token


class NominatingContext(ForwardingContext):
    """What the inner election gets. Its declarations only nominate, and are kept in `said`."""

    __slots__ = ("said",)

    def __init__(self, below: Context) -> None:
        super().__init__(below)
        self.said: Outcome | None = None

    def declare(self, outcome: Outcome) -> None:
        self.said = outcome

    def acquire(self, ttl: float, request: int) -> None:
        raise ProtocolBug("an election under a guard does not ask the guard itself")

    def release(self, request: int) -> None:
        raise ProtocolBug("an election under a guard does not give back to the guard itself")


class LeaseLayer(Layer):
    """`inner` nominates, a guard confirms; leader and term are the confirmed ones."""

    adds: ClassVar[str] = "a guard"
    messages: ClassVar[tuple[type[Message], ...]] = (LeaseHeldMsg,)
    lapsed: ClassVar[str] = LAPSED  # the reason that is declared when a window has ended
    leader: MemberId | None = None
    term: int = 0

    def __init__(self, inner: Election, lease: LeaseConfig) -> None:
        if inner.seats > 1:
            raise BadInput(f"a guard confirms one leader, and {inner.seats} are to be elected")
        if LeaseHeldMsg in inner.handlers:
            raise BadInput("this election has a guard already: it needs no other")
        super().__init__(inner)
        self.lease = lease
        self.nominated = False  # whether the inner election has elected this member
        self.request = 0  # the number of the last question
        self.pending: dict[int, float] = {}  # questions without an answer, and when they were sent
        self.waiting: float | None = None  # since when the guard has not answered, if it was asked
        self.token = 0  # the last token that was granted to this incarnation
        self.until: float | None = None  # end of the window, while this member leads
        # number of works that run only while it leads; their runner counts them here
        self.engaged = 0
        self.owed = False  # the lease must be given back when these works have ended
        self.spent = False  # the last token's leadership is over: it makes no other one
        self.greeted = -1  # the version of the view at the last confirmation that went to all
        self.held: tuple[MemberId, int] | None = None  # the leader accepted last, its token
        self.doubted: tuple[MemberId, int] | None = None  # such a leader, if it was suspected since
        self.check: Callable[[], None] | None = None  # asks for `Observed`; its owner sets it
        self.checking = False  # whether it will soon
        self.bystander = False  # whether this member never asks the guard, and must not look at it
        self.unmoved = 0.0  # until then it leads on in spite of a token that it cannot check
        self.constancy = lease.asked  # how long it leads on after the next such token
        self.pause = lease.patience  # before the next question, while it is refused
        self.told: Outcome | None = None
        # Called when others have elected another member and the lease lasts; whether this member
        # leads on.
        self.reclaim: Callable[[Context], bool] | None = None
        self.early = lease.first_wait > 0  # it has just started, and has not asked yet
        self.barred: str | None = None  # why this member must not lead, if it must not

    # What a world calls. Everything looks at the clock first.

    def start(self, ctx: Context) -> None:
        stored = ctx.stored.get("token")
        if isinstance(stored, int):
            self.term = stored
        super().start(ctx)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        if key == END:
            self._step_down(ctx)
            return
        asked = self.request
        self._look(ctx)
        if key == CHECK:
            self._check_now()
        elif key != ASK:
            self.run_inner(ctx, self.inner.on_timer, key)
        elif self.nominated and self.owed:
            ctx.set_timer(ASK, self.lease.patience)
        elif self.nominated and self.barred is None and self.request == asked:
            self.pause = min(2.0 * self.pause, self.lease.asked)
            self._ask(ctx)

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        if self.held is not None and member == self.held[0]:  # also without a leader now
            self.doubted = self.held
        super().on_suspect(ctx, member)

    def on_verdict(self, ctx: Context, verdict: Verdict) -> None:
        self._look(ctx)
        if isinstance(verdict, Observed):
            self._learn(ctx, verdict.holder, verdict.token)
            if verdict.token > self.term:  # the token of a holder that it does not accept
                self._note(ctx, verdict.token)
            return
        self.waiting = None
        if isinstance(verdict, Freed):
            if self.nominated and self.until is None and self.barred is None:
                self.pause = self.lease.patience
                self._ask(ctx)
            return
        sent = self.pending.pop(verdict.request, None)
        if sent is None:
            return  # answered already, withdrawn, or so old that it cannot matter
        if isinstance(verdict, Granted):
            self._granted(ctx, sent, verdict)
        else:
            self._refused(ctx, verdict)

    def woke(self, ctx: Context, gap: float) -> None:
        """The time that the member slept counts: its lease went on."""
        self._look(ctx)
        if self.until is not None:
            ctx.set_timer(END, self.until - ctx.now(), eager=True)
        super().woke(ctx, gap)

    def leave(self, ctx: Context) -> None:
        super().leave(ctx)
        self._withdraw(ctx, None if self.until is None else NoLeader(GIVEN_BACK))

    def assume_leader(self, ctx: Context, leader: MemberId, term: int) -> None:
        """The inner election begins in the middle. No leader is confirmed without a grant."""
        self.inner.assume_leader(NominatingContext(ctx), leader, term)
        if leader == ctx.me.id:
            self._nominate(ctx)
        else:
            self.leader = leader

    @property
    def leaders(self) -> tuple[MemberId, ...]:
        """The confirmed leader."""
        return () if self.leader is None else (self.leader,)

    def state(self) -> str:
        held = "" if self.until is None else f" until={self.until:g}"
        return f"confirmed={self.leader} token={self.term}{held} | {self.inner.state()}"

    def silence(self, now: float) -> float:
        """For how long the guard has left this member's questions without an answer.

        0 if the guard answers, and if it is not asked: only a nominated member asks.
        """
        return 0.0 if self.waiting is None else max(0.0, now - self.waiting)

    @property
    def heard(self) -> int:
        """The highest token that may be true. It must not be granted again if the guard forgot it.

        Only if the guard is behind `term`, its own token, it is lifted above this.
        """
        return self.term if self.held is None else max(self.term, self.held[1])

    # What its owner does

    def settle_up(self, ctx: Context) -> None:
        """Give back the lease if it waited for the owner's works, and they have ended."""
        self._look(ctx)

    def bar(self, ctx: Context, reason: str | None) -> None:
        """With a reason: do not lead, whatever is elected or granted. Without one: lead again."""
        before, self.barred = self.barred, reason
        if reason is not None:
            wanted = self.nominated
            self._withdraw(ctx, NoLeader(reason) if wanted else None)
            self.nominated = wanted
        elif before is not None and self.nominated:
            self._nominate(ctx)

    # What the inner election says

    def run_inner(self, ctx: Context, act: Callable[..., None], *about: object) -> None:
        """Let the inner election act. What it declares is handled when it has returned."""
        self._look(ctx)
        within = NominatingContext(ctx)
        act(within, *about)
        if within.said is not None:
            self._heed(ctx, within.said, within)

    def _heed(self, ctx: Context, said: Outcome, within: NominatingContext) -> None:
        """The inner election's declaration decides which member asks the guard, not which leads."""
        if isinstance(said, Elected):
            if said.leader == ctx.me.id:
                self._nominate(ctx)
            elif self.until is None or self.reclaim is None or not self.reclaim(within):
                self._withdraw(ctx, None if said.leader == self.leader else NoLeader(AWAITING))
        elif said == NoLeader(ELECTING):
            # A leader goes on until the election has a new result: it may be elected again.
            if self.until is None:
                self._hold_nobody(ctx, said)
        elif said == NoLeader(PAUSED) and self.until is not None:
            pass  # the lease decides whether a member that stood still leads
        else:
            self._withdraw(ctx, said)

    def _nominate(self, ctx: Context) -> None:
        if self.until is not None:
            return  # it leads already, and renews by itself
        again, self.nominated = self.nominated, True
        self.pause = self.lease.patience
        self._hold_nobody(ctx, NoLeader(self.barred or AWAITING))
        if self.barred is not None:
            return
        if self.owed:
            ctx.set_timer(ASK, self.lease.patience)  # when the work that was begun has ended
        elif self.early:
            if not again:  # if several nominate themselves at once, the best should ask
                ctx.set_timer(ASK, self.lease.first_wait)
        else:
            self._ask(ctx)

    def _withdraw(self, ctx: Context, outcome: Outcome | None) -> None:
        """Stop leading and stop asking. With an `outcome`, accept no leader any more.

        The owner is told before the guard: the next leader may be confirmed at once.
        """
        wanted, self.nominated = self.nominated, False
        if wanted:
            self.pending.clear()
            self.waiting = None
            self._end(ctx)
            ctx.cancel_timer(ASK)
        if outcome is not None:
            self._hold_nobody(ctx, outcome)
        if wanted:
            self._return(ctx)

    # The guard

    def _ask(self, ctx: Context) -> None:
        """Ask the guard. The window of a grant begins now, before the question is sent."""
        now = ctx.now()
        self.early = False
        lasting = self.lease.leading(self.lease.asked)
        self.pending = {n: sent for n, sent in self.pending.items() if now < sent + lasting}
        self.request += 1
        self.pending[self.request] = now
        self.waiting = now if self.waiting is None else self.waiting
        ctx.acquire(self.lease.asked, self.request)
        ctx.set_timer(ASK, self.lease.patience if self.until is not None else self.pause)

    def _release(self, ctx: Context) -> None:
        """Give the lease back. Answers to earlier questions do not count any more."""
        self.pending.clear()
        self.request += 1
        ctx.release(self.request)

    def _return(self, ctx: Context) -> None:
        """Give the lease back after the works have ended: then another member may lead."""
        self.pending.clear()
        if self.engaged:
            self.owed = True
        else:
            self._release(ctx)

    def _granted(self, ctx: Context, sent: float, verdict: Granted) -> None:
        renewed = verdict.token == self.token == self.term
        now = ctx.now()
        until = sent + self.lease.leading(verdict.ttl)
        if until <= now:
            return  # the answer took longer than what it grants
        if verdict.token <= self.term and not renewed:
            # The guard has forgotten its tokens: no member would believe this one.
            if self.until is None:
                self._release(ctx)
            return
        if renewed and self.spent:
            # One leadership, one token: messages under the last token may still be under way.
            self._return(ctx)
            ctx.set_timer(ASK, self.lease.patience)
            return
        if self.until is not None and renewed:
            until = max(until, self.until)  # answers may overtake each other
        self.until = until
        self.pause = self.lease.patience
        if not renewed:
            self.token = self.term = verdict.token
            self.spent = False
            ctx.persist(token=verdict.token)
        ctx.set_timer(END, until - now, eager=True)
        ctx.set_timer(ASK, max(sent + self.lease.renewal - now, self.lease.shortest))
        ctx.multicast(LeaseHeldMsg(ctx.me.id, verdict.token))
        self.greeted = ctx.view.version
        self._hold(ctx, ctx.me.id, verdict.token)

    def _refused(self, ctx: Context, verdict: Held) -> None:
        self._learn(ctx, verdict.holder, verdict.token)
        if self.check is not None and self.leader is not None and self.leader not in ctx.view:
            # Members of other machines may have nothing but the guard in common with this one.
            ctx.multicast(LeaseHeldMsg(self.leader, verdict.token))
        if self.until is None:
            free = verdict.remaining * self.lease.slack
            ctx.set_timer(ASK, max(min(self.pause, free), self.lease.shortest))

    def _learn(self, ctx: Context, holder: MemberId | None, token: int) -> None:
        """The guard itself names the holder."""
        # A former incarnation of this member is another holder, which must not be believed. The
        # same holds if the holder is suspected and only its lease has not ended yet.
        if holder is not None and holder != ctx.me.id and self.doubted != (holder, token):
            self._accept(ctx, holder, token)

    def _look(self, ctx: Context) -> None:
        """Step down if the window is over. Called first, since this member may have paused."""
        if self.until is not None and ctx.now() >= self.until:
            self._step_down(ctx)
        if self.owed and not self.engaged:
            self.owed = False
            self._release(ctx)
            if self.nominated and self.barred is None:
                self._ask(ctx)
        if self.until is not None and ctx.view.version != self.greeted:
            # A new member need not wait for the next renewal to learn the leader.
            self.greeted = ctx.view.version
            ctx.multicast(LeaseHeldMsg(ctx.me.id, self.term))

    def _end(self, ctx: Context) -> None:
        """A leadership is over, if there was one."""
        if self.until is not None:
            self.until = None
            self.spent = True
            ctx.cancel_timer(END)

    def _step_down(self, ctx: Context) -> None:
        if self.until is not None:
            self._end(ctx)
            self._hold_nobody(ctx, NoLeader(LAPSED))

    # What is confirmed

    @upon(LeaseHeldMsg)
    def _on_held(self, ctx: Context, sender: MemberId, message: LeaseHeldMsg) -> None:
        self._look(ctx)
        token = message.token
        if message.leader == ctx.me.id:  # only the guard says whether this member leads
            self._outdone(ctx, sender, token)
        elif message.leader != sender:  # a leader speaks for itself, if it can be heard
            if sender == self.inner.leader and message.leader not in ctx.view:
                self._look_up(ctx, message.leader, token)
        elif self.bystander and sender == self.inner.leader:
            self.term = token  # nothing depends on this token, and a false one ends with its sender
            self._hold(ctx, sender, token)
        elif token < self.term:
            if self.leader in (None, sender) or self.inner.leader == sender:
                # The guard has lost its data and granted this token: no member here would believe
                # it.
                ctx.send(sender, LeaseHeldMsg(sender, self.term))
                self._check_now()  # a member that looks finds it out, and reminds the guard
        elif self.check is None:
            self._accept(ctx, sender, token)
        elif token > self.term or self.until is None:
            self._hearsay(ctx, sender, token)

    def _hearsay(self, ctx: Context, sender: MemberId, token: int) -> None:
        """Look up what another member says; until then show it, if it is likely."""
        if self.until is not None or sender not in ctx.view or token > self.term + STEP:
            self._check_now()
            return
        shown = self.told.term if isinstance(self.told, Elected) else 0
        if token > shown or self.leader in (None, sender) or self.inner.leader == sender:
            self._hold(ctx, sender, token)
        if token > self.term:
            self._check_soon(ctx)

    def _look_up(self, ctx: Context, leader: MemberId, token: int) -> None:
        """Another member says that this one leads, which is silent. The guard says if it does."""
        if self.check is None or self.bystander or self.until is not None:
            return
        if token > self.term or (token == self.term and self.leader != leader):
            self._check_soon(ctx)

    def _check_soon(self, ctx: Context) -> None:
        """Look at the guard at a random time: not all members look at once."""
        if not self.checking:
            self.checking = True
            spread = min(SPREAD * self.lease.delta * len(ctx.view), self.lease.renewal)
            ctx.set_timer(CHECK, ctx.rng.uniform(0.0, spread))

    def _check_now(self) -> None:
        self.checking = False
        if self.check is not None:
            self.check()

    def _outdone(self, ctx: Context, sender: MemberId, token: int) -> None:
        """A member knows a larger token. No member believes a smaller one, so ask anew."""
        if token <= self.term:
            return
        if self.check is None:
            self._note(ctx, token)
        elif sender not in ctx.view or ctx.now() < self.unmoved:
            return
        elif self.until is not None:
            # The message is false, or the guard has lost its data. Then the members that say so
            # remind the guard, and the next token is larger. Each time this is less likely, and so
            # it is rarer.
            self.unmoved = ctx.now() + self.constancy
            self.constancy *= 2.0
        if self.until is not None:
            self._end(ctx)
            self._hold_nobody(ctx, NoLeader(AWAITING))
            self._return(ctx)
            ctx.set_timer(ASK, self.lease.patience)

    def _accept(self, ctx: Context, leader: MemberId, token: int) -> None:
        """Accept the leader that was confirmed last."""
        if token < self.term or token == self.token:
            return
        if token > self.term:
            self._note(ctx, token)
        elif self.leader is not None:
            return
        self._end(ctx)  # the guard has granted the lease to another member
        self._hold(ctx, leader, token)

    def _note(self, ctx: Context, token: int) -> None:
        """Note the highest token."""
        self.term = token
        if not self.bystander:
            ctx.persist(token=token)

    def _hold(self, ctx: Context, leader: MemberId, token: int) -> None:
        self.leader, self.early = leader, False
        self.held = (leader, token)
        self._tell(ctx, Elected(leader, token))

    def _hold_nobody(self, ctx: Context, outcome: Outcome) -> None:
        self.leader = None
        self._tell(ctx, outcome)

    def _tell(self, ctx: Context, outcome: Outcome) -> None:
        if outcome != self.told:
            self.told = outcome
            ctx.declare(outcome)


def with_lease(elect: Callable[[], Election], lease: LeaseConfig) -> Callable[[], LeaseLayer]:
    """Turn a factory of elections into one whose elections each have a guard."""
    return lambda: LeaseLayer(elect(), lease)

"""The announce-listen state machine, to be read beside Programs 5.1 and 5.2, line by line.

Model      Multicast with loss and a delay of at most delta; members join, leave and crash
           unnoticed. No member needs to know the group: a member that claims to lead sends its
           candidate.
Idea       Every member takes itself for the leader, sleeps a while, and announces itself every T_A
           until it hears a better member. Then it listens, and begins anew after T_L of silence.
Invariant  A member runs one timer for itself: it sleeps (T_S), announces (T_A), or is kept out of
           the race by leaders whose messages it has received within T_L.
Cost       One message per T_A and leader at rest; see the variants for the cost until then.
Guarantee  Advisory. A lost announcement may give two leaders, and members follow a dead leader for
           up to T_L.
Paper      Announce-listen thesis, chapter 5: Programs 5.1 and 5.2, Figures 5.1 and 5.2.

Where the programs and the text disagree the text rules: an announcement of the present leader
re-arms the listen timer (the printed line 6 forgets it), and the timer tests stand beside the
reception, not inside it. At one instant sends go first, then arrivals, then listen timers.

The thesis leaves some points open. The decisions here:
- `leader` is oneself while asleep, but no member declares itself before its first announcement.
- Terms: a leadership takes the highest term seen plus one. A worse member may claim the leader's
  term or a later one, after a false departure or a start at the same moment. The leader then takes
  a new term with its next announcement. So the last leader has the last term.
- With k leaders (`leaders`) a member stays out of the race once it has heard k better ones. The
  best of them is `leader`, for all members, also for the other k - 1. A member that becomes one of
  the k, or stops being one, declares its `leader` again, so that its users learn of it.
- A claim is ignored if its id is not its sender's, or if it cannot be ranked.

The sketches of the thesis's section 5.7 are here, too:

Query: a member asks before it announces itself. A Query compares like an announcement. So the Query
of a better member also silences, although no member is declared leader for it. A leader that
receives the Query of a worse member answers by announcing itself. With query=query every member
asks at once instead of sleeping, and leaders answer at once. With query=suppress-query members
sleep before they ask, and leaders sleep before they answer, so one answer serves all that ask
meanwhile.

Bye: a departing leader says so, several times if messages may be lost, and its followers need not
wait for T_L. A member that does not lead leaves without a message. The Byes are `bye_gap` apart, so
a leader with a gap takes that long to leave. A leader that is cut short has sent the first.
"""

from __future__ import annotations

from typing import ClassVar

from hustings.core.choice import Candidate, Choice, MemberId
from hustings.core.context import Context, TimerKey
from hustings.core.election import Assumptions, Claim, Election, upon
from hustings.core.errors import BadInput
from hustings.core.messages import Message
from hustings.core.outcome import ELECTING, Elected, NoLeader, Outcome
from hustings.protocols.announce.following import Followed, Following, rankable
from hustings.protocols.announce.messages import AnnounceMsg, ByeMsg, QueryMsg
from hustings.protocols.announce.settings import AnnounceConfig

SUPPRESS_TIMER = "T_S"
ANNOUNCE_TIMER = "T_A"
QUERY_TIMER = "T_Q"
ANSWER_TIMER = "answer"
BYE_TIMER = "bye"

SUPPRESS = "suppress"
ANNOUNCE = "announce"
LISTEN = "listen"
QUERY = "query"
GONE = "gone"

MAX_TERM = 2**62  # a forged term above this limit is ignored


class Machine(Election):
    """SUPPRESS, ANNOUNCE, LISTEN, QUERY. A variant says how long to sleep and how to compare."""

    __slots__ = (
        "asked",
        "bar",
        "byes",
        "config",
        "contested",
        "departed",
        "following",
        "me",
        "mine",
        "number",
        "order",
        "phase",
        "reign",
        "saved",
        "seated",
        "told",
    )

    assumptions = Assumptions(reliable=False, announces=True)
    Settings = AnnounceConfig
    messages: ClassVar[tuple[type[Message], ...]] = (AnnounceMsg, QueryMsg, ByeMsg)
    config: AnnounceConfig

    def __init__(self, config: AnnounceConfig, choice: Choice) -> None:
        super().__init__(config, choice)
        self.order = self.criterion()
        self.following = Following(self.order, config.leaders)
        self.phase = SUPPRESS
        self.me = Candidate(0)  # this member; its attributes may change
        self.mine = self.bar = self.me  # my claim, and the candidate that a leader must beat
        self.number = 0  # announcements of my present leadership
        self.reign = 0  # its term
        self.contested = False  # a worse member has claimed that term, or a later one
        self.told: Outcome | None = None
        self.seated = False  # whether I led at my last declaration
        self.saved = 0  # the term that is stored
        self.asked = False  # an answer is due, on its own timer
        self.byes = 0  # Byes still to be sent
        # The member that sent the last Bye, and its term.
        self.departed: tuple[MemberId, int] = (0, 0)

    # What a variant decides

    def criterion(self) -> Choice:
        """The choice that compares candidates."""
        return self.choice

    def sleep(self, ctx: Context) -> float:
        """Return how long to be silent before the first announcement."""
        return 0.0

    def standing(self, ctx: Context, member: Candidate, slept: float | None) -> Candidate:
        """Return the claim of a member that wakes after `slept`; None: it does not compete."""
        return member

    def incumbent(self, ctx: Context, member: Candidate) -> Candidate:
        """Return the claim of a member that has always been leader."""
        return self.standing(ctx, member, 0.0)

    def can_rank(self, candidate: Candidate) -> bool:
        return self.order.can_rank(candidate)

    # Lines 1 to 3, and 12 to 14: I am the leader, as far as I know, and sleep

    def start(self, ctx: Context) -> None:
        self.recall(ctx)
        self.saved = self.term
        self.suppress(ctx)

    def suppress(self, ctx: Context) -> None:
        self.phase = SUPPRESS
        self.me = ctx.me
        t = self.sleep(ctx)
        self.mine = self.standing(ctx, ctx.me, t)
        self.take_stock(ctx)
        ctx.set_timer(SUPPRESS_TIMER, t, eager=True)

    # Lines 5 to 10: a message

    @upon(AnnounceMsg)
    def on_announce(self, ctx: Context, sender: MemberId, message: AnnounceMsg) -> None:
        if message.term > 0:
            self.hear(ctx, sender, message.candidate, message.term)

    def hear(self, ctx: Context, sender: MemberId, candidate: Candidate, term: int) -> None:
        """Treat a claim of a member; with a term the member claims to be leader."""
        if ctx.me is not self.me:
            self.reconsider(ctx)
        leader = self.following.of(sender)
        if leader is not None and candidate == leader.candidate:
            self.refresh(ctx, leader, term)
            return
        if sender != candidate.id or sender == ctx.me.id:
            return
        try:
            better = self.order.better(candidate, self.bar if leader is None else self.mine)
            matters = better or leader is not None or term > self.term or not self.contested
            if matters and not rankable(self.order.key(candidate)):
                return
        except BadInput:
            return  # it lacks an attribute that we rank by
        if leader is not None:
            self.restand(ctx, leader, candidate, term, better=better)
        elif better:
            self.follow(ctx, candidate, term)
        elif self.term <= term <= MAX_TERM:
            self.term = term
            self.contested = True

    def follow(self, ctx: Context, candidate: Candidate, term: int) -> None:
        """Listen to a better member."""
        who, when = self.departed
        if self.phase == GONE or (candidate.id == who and term <= when):
            return  # its own Bye has overtaken this message
        leader = self.following.add(candidate)
        leader.claimed = term > 0
        if self.following.full and self.phase != LISTEN:
            self.listen(ctx)
        self.learn(term)
        self.take_stock(ctx)
        ctx.set_timer(leader.timer, self.config.patience)

    def listen(self, ctx: Context) -> None:
        """Stay out of the race."""
        self.asked = False
        ctx.cancel_timer(ANSWER_TIMER)
        ctx.cancel_timer(QUERY_TIMER)
        self.phase = LISTEN
        self.me = ctx.me
        self.mine = self.standing(ctx, ctx.me, None)
        ctx.cancel_timer(SUPPRESS_TIMER)
        ctx.cancel_timer(ANNOUNCE_TIMER)

    def refresh(self, ctx: Context, leader: Followed, term: int) -> None:
        """Take a repeated announcement of my leader."""
        news = self.learn(term) or leader.age or (term > 0 and not leader.claimed)
        if news:
            leader.age = 0
            leader.claimed = leader.claimed or term > 0
            self.take_stock(ctx)
        ctx.set_timer(leader.timer, self.config.patience)

    def restand(
        self, ctx: Context, leader: Followed, candidate: Candidate, term: int, *, better: bool
    ) -> None:
        """Take a changed claim of my leader: it has slept again, or come back changed."""
        if better:
            leader.candidate = candidate
            self.following.sort()
            self.take_stock(ctx)
            self.refresh(ctx, leader, term)
        else:
            self.lose(ctx, leader)

    # Lines 11 to 18: timers

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        if key == SUPPRESS_TIMER:
            self.wake_up(ctx)
        elif key in (ANNOUNCE_TIMER, QUERY_TIMER, ANSWER_TIMER):
            self.announce(ctx)
        elif key == BYE_TIMER:
            self.say_bye(ctx)
        elif (leader := self.following.timed_by(key)) is not None:
            self.miss(ctx, leader)

    def wake_up(self, ctx: Context) -> None:
        """Announce or ask: no better member has announced."""
        if self.config.query == "none":
            self.announce(ctx)
            return
        self.phase = QUERY
        ctx.multicast(QueryMsg(self.mine))
        ctx.set_timer(QUERY_TIMER, self.config.wait)

    def announce(self, ctx: Context) -> None:
        """Announce that I lead, for the first time or again."""
        self.asked = False  # every announcement answers all queries so far
        ctx.cancel_timer(ANSWER_TIMER)
        if ctx.me is not self.me:
            self.reconsider(ctx)
        if self.phase != ANNOUNCE:
            self.phase = ANNOUNCE
            self.number = 0
            self.contested = True
        if self.contested:
            self.claim()
        self.number += 1
        self.take_stock(ctx)
        ctx.multicast(AnnounceMsg(self.reign, self.number, self.mine))
        ctx.set_timer(ANNOUNCE_TIMER, self.config.T_A, eager=True)

    def miss(self, ctx: Context, leader: Followed) -> None:
        """Age a leader that has been silent for one more step."""
        leader.age += 1
        if leader.age < self.config.aged:
            ctx.set_timer(leader.timer, self.config.patience)
            self.take_stock(ctx)
        else:
            self.lose(ctx, leader)

    def lose(self, ctx: Context, leader: Followed) -> None:
        """Drop a leader; without enough leaders I enter the race."""
        ctx.cancel_timer(leader.timer)
        self.following.remove(leader)
        if self.phase == LISTEN:
            self.suppress(ctx)
            return
        if self.phase == ANNOUNCE and not self.following.leaders:
            self.claim()  # of several leaders I am the best now
        self.take_stock(ctx)

    def reconsider(self, ctx: Context) -> None:
        """Drop leaders that are no longer better than I am: my own attributes have changed."""
        self.me = self.mine = ctx.me
        for leader in list(self.following.leaders):
            if not self.order.better(leader.candidate, self.mine):
                self.lose(ctx, leader)
        self.bar = self.following.bar(self.mine)

    # Own state

    def claim(self) -> None:
        """Take a term of my own, above all that I have seen."""
        self.contested = False
        self.term = self.reign = min(self.term + 1, MAX_TERM)

    def learn(self, term: int) -> bool:
        """Take a higher term and return whether it was one; terms only grow."""
        if self.term < term <= MAX_TERM:
            self.term = term
            return True
        return False

    def take_stock(self, ctx: Context) -> None:
        """Work out the leader, and the bar for a newcomer; declare what is new."""
        self.bar = self.following.bar(self.mine)
        best = self.following.leaders[0] if self.following.leaders else None
        outcome: Outcome = NoLeader(ELECTING)
        if best is not None:
            self.leader = best.id
            if best.claimed:
                outcome = Elected(best.id, self.term)
        else:
            self.leader = ctx.me.id
            if self.phase == ANNOUNCE:
                outcome = Elected(self.leader, self.reign)
        if self.saved != self.term:
            self.saved = self.term
            self.remember(ctx)
        seated = self.phase == ANNOUNCE
        if outcome != self.told or seated != self.seated:
            self.told = outcome
            self.seated = seated
            ctx.declare(outcome)

    @property
    def seats(self) -> int:
        return self.config.leaders

    @property
    def leaders(self) -> tuple[MemberId, ...]:
        """Return all known leaders, the best first; this member too, if it announces."""
        known = tuple(leader.id for leader in self.following.leaders)
        return (*known, self.mine.id) if self.phase == ANNOUNCE else known

    # Query: section 5.7

    @upon(QueryMsg)
    def on_query(self, ctx: Context, sender: MemberId, message: QueryMsg) -> None:
        self.hear(ctx, sender, message.candidate, term=0)
        if self.phase != ANNOUNCE or sender == ctx.me.id:
            return
        if self.config.query != "suppress-query":
            self.announce(ctx)
        elif not self.asked:
            self.asked = True
            ctx.set_timer(ANSWER_TIMER, self.sleep(ctx), eager=True)

    # Bye: section 5.7

    def leave(self, ctx: Context) -> None:
        if self.phase != ANNOUNCE:
            return
        self.phase = GONE
        self.forget(ctx)
        for timer in (ANNOUNCE_TIMER, ANSWER_TIMER):
            ctx.cancel_timer(timer)
        self.byes = self.config.byes(len(ctx.view) - 1)
        self.say_bye(ctx)

    def say_bye(self, ctx: Context) -> None:
        """Send one Bye now and the others later; all at once if there is no gap between them."""
        while self.byes:
            self.byes -= 1
            ctx.multicast(ByeMsg(self.reign))
            if self.byes and self.config.bye_gap:
                ctx.set_timer(BYE_TIMER, self.config.bye_gap, eager=True)
                return

    @upon(ByeMsg)
    def on_bye(self, ctx: Context, sender: MemberId, message: ByeMsg) -> None:
        self.departed = (sender, message.term)
        leader = self.following.of(sender)
        if leader is not None:
            self.lose(ctx, leader)

    # Entry points for others

    def claim_of(self, message: Message) -> Claim | None:
        if not isinstance(message, AnnounceMsg):
            return None
        return Claim(message.term, repeated=message.number > 1)

    def affirm(self, ctx: Context) -> None:
        if self.phase == ANNOUNCE and (self.contested or self.reign < self.term):
            self.contested = True
            self.announce(ctx)

    def call(self, ctx: Context) -> None:
        if self.phase == LISTEN:
            self.forget(ctx)
            self.suppress(ctx)

    def forget(self, ctx: Context) -> None:
        """Follow no leader."""
        for leader in list(self.following.leaders):
            ctx.cancel_timer(leader.timer)
            self.following.remove(leader)

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        leader = self.following.of(member)
        if leader is not None:
            self.lose(ctx, leader)

    def assume_leader(self, ctx: Context, leader: MemberId, term: int) -> None:
        """Enter a steady state: every member has just received an announcement of `leader`."""
        self.forget(ctx)
        self.leader = leader
        self.term = self.saved = term
        self.contested = False
        self.remember(ctx)
        self.told = Elected(leader, term)
        self.seated = leader == ctx.me.id
        if self.seated:
            self.phase = ANNOUNCE
            self.reign = term
            self.number = 1
            self.me = ctx.me
            self.mine = self.incumbent(ctx, ctx.me)
            ctx.cancel_timer(SUPPRESS_TIMER)
            ctx.set_timer(ANNOUNCE_TIMER, self.config.T_A, eager=True)
        else:
            self.assume_other(ctx, leader)
        self.bar = self.following.bar(self.mine)

    def assume_other(self, ctx: Context, leader: MemberId) -> None:
        """Follow another leader; with several leaders the others are still to be found."""
        known = ctx.view.candidate(leader) if leader in ctx.view else Candidate(leader)
        candidate = self.incumbent(ctx, known)
        try:
            self.order.key(candidate)
        except BadInput:  # I do not know it well enough to compare it
            self.suppress(ctx)
            return
        followed = self.following.add(candidate)
        followed.claimed = True
        ctx.set_timer(followed.timer, self.config.patience)
        if self.following.full:
            self.listen(ctx)
        else:
            self.suppress(ctx)

    def state(self) -> str:
        known = ",".join(map(str, self.leaders)) or "none"
        several = f" of {known}" if self.config.leaders > 1 else ""
        return f"leader={self.leader}{several} term={self.term} {self.phase}"

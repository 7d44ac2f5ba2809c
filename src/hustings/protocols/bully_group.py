"""Bully with a coordination group: the leader names its alternates in advance.

Model      Synchronous: a message to a live member arrives within delta, and a detector reports
           each crash. Every member knows all others; members crash and may come back.
Idea       The member that notices the crash (the teller) tells the alternates, best first. The
           first live alternate verifies the crash with a CHECK and takes over. If all are dead, the
           teller asks all better members and tells the best that answers.
Invariant  Of two leaders that know of each other's term the better one leads on, in a later term.
Cost       a + 2 messages before the m - 1 COORDINATORs, if a < K alternates are dead; with all K
           dead K + (n-d) + (m-d) + 2, or K + (n-d) if no member above d lives. 4 delays at best.
Guarantee  Advisory. A late answer may give two leaders for a while; a wrong suspicion of the leader
           alone does not.
Paper      Gholipour et al. 2009, known here from the overhead-aware election paper, section 2.

The summary leaves much open. The decisions here:
- A teller may be an alternate itself, or better than one. It then tells only the alternates better
  than itself and takes its own turn afterwards, with a CHECK. It skips alternates that it suspects.
- A member that already tells, asks or checks does not start again for further tellers. All of them
  wait for its one result.
- The list of alternates travels only with COORDINATOR. So a member that has come back is not on the
  list until the next COORDINATOR. If it is better than the alternates, it takes its own turn.
- A leader may have an outdated term, after a crash or a partition. Members tell it what they know,
  and the better leader announces itself anew.
- A leader that is told of a crash, or is asked, repeats its COORDINATOR to that member.
- Of two COORDINATORs of one term, a member may drop the better one because of an old suspicion, and
  take the worse one. So when a member trusts a better member than its leader again, or does so in
  a run of its own, it asks the better member, which replies with COORDINATOR if it leads.
- An ALIVE that clears the accused leader counts only for the run that it answers, unless the
  accused leader itself sends it. It may have been sent before the crash that this run is about.

The best live member leads in the end under two conditions: every crash is told to all members, and
told after the last messages of the dead member have arrived (delta). A suspicion that overtakes
those messages may leave a dead leader in place.
T1 is the wait for answers. T2 is the wait for an alternate to act: the message to the alternate
travels, the alternate waits T1, its result travels.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, ClassVar

from msgspec import Meta

from hustings.core.choice import Choice, MemberId
from hustings.core.config import Config
from hustings.core.context import Context, TimerKey
from hustings.core.election import About, Assumptions, Claim, Election, upon
from hustings.core.messages import Message, Role, Term
from hustings.core.outcome import ELECTING, Guarantee
from hustings.protocols.bully import ElectionMsg, OkMsg

ANSWERS = "T1"
ALTERNATE = "T2"

Group = tuple[MemberId, ...]


class CrashLeaderMsg(Message, frozen=True, tag="CRASH_LEADER"):
    """The leader of `term` is dead, or (None) the sender knows no leader: take over."""

    role: ClassVar[Role] = Role.OTHER
    term: Term
    leader: MemberId | None
    run: int  # the teller's own count


class CheckMsg(Message, frozen=True, tag="CHECK"):
    """Does the receiver still lead?"""

    role: ClassVar[Role] = Role.OTHER
    term: Term


class AliveMsg(Message, frozen=True, tag="ALIVE"):
    """This member leads."""

    role: ClassVar[Role] = Role.OTHER
    term: Term
    leader: MemberId
    group: Group
    run: int = 0  # of the teller that this answers; 0: of none


class CoordinatorMsg(Message, frozen=True, tag="COORDINATOR"):
    """The sender leads, and these are its alternates."""

    role: ClassVar[Role] = Role.COORDINATOR
    term: Term
    group: Group


class BullyGroupConfig(Config, frozen=True, kw_only=True):
    """Size of the group, and timers; each one that is not given is a multiple of delta."""

    K: Annotated[int, Meta(ge=1, description="the number of alternates that a leader names")] = 2
    T1: Annotated[float, Meta(gt=0, description="wait for answers; default 2 delta")] | None = None
    T2: (
        Annotated[float, Meta(gt=0, description="wait for an alternate; default T1 + 2 delta")]
        | None
    ) = None

    @property
    def answers(self) -> float:
        return 2 * self.delta if self.T1 is None else self.T1

    @property
    def alternate(self) -> float:
        return self.answers + 2 * self.delta if self.T2 is None else self.T2

    def warnings(self) -> list[str]:
        found = []
        if self.answers < 2 * self.delta:
            found.append(
                f"T1 = {self.answers:g} is shorter than a round trip ({2 * self.delta:g}): "
                "answers come too late and a live leader may be replaced; set T1 >= 2 delta"
            )
        if self.alternate < self.answers + 2 * self.delta:
            found.append(
                f"T2 = {self.alternate:g} is shorter than an alternate needs to act "
                f"({self.answers + 2 * self.delta:g}): the next one is told in vain; "
                "set T2 >= T1 + 2 delta"
            )
        return found


class Phase(Enum):
    """What a member does in a run."""

    IDLE = "idle"
    TELLING = "telling"  # it has told an alternate and waits for it
    ASKING = "asking"  # it has asked which members are alive
    CHECKING = "checking"  # it is about to take over


class BullyGroup(Election):
    """Gholipour's bully: a teller, a chain of alternates, one announcement."""

    __slots__ = (
        "accused",
        "answered",
        "config",
        "dead",
        "group",
        "informers",
        "last_resort",
        "phase",
        "queue",
        "run",
        "seen",
    )

    about = About(
        name="bully-group",
        family="bully",
        paper="Gholipour et al. 2009, in the overhead-aware election paper, section 2",
        idea="the leader names K alternates; the first live one checks the leader and takes over",
        model="synchronous, complete, crash and recovery, failure detector",
        guarantee=Guarantee.ADVISORY,
        cost="n messages while an alternate lives; 4 delays",
        promises="one leader, the best alive, while delays keep to delta and all learn of "
        "crashes; no exclusivity otherwise",
    )
    assumptions = Assumptions()
    Settings = BullyGroupConfig
    messages = (CrashLeaderMsg, CheckMsg, AliveMsg, ElectionMsg, OkMsg, CoordinatorMsg)
    config: BullyGroupConfig

    def __init__(self, config: BullyGroupConfig, choice: Choice) -> None:
        super().__init__(config, choice)
        self.group: Group = ()  # the leader's alternates, best first
        self.seen = 0  # the highest term seen; `term` is that of the leader I follow
        self.dead: set[MemberId] = set()  # suspected; for membership tests only, never iterated
        self.phase = Phase.IDLE
        self.accused: MemberId | None = None  # the leader that this run is about
        self.queue: list[MemberId] = []  # members to tell; the first has been told
        self.last_resort = False  # whether the queue holds all that answered, and no other is left
        self.answered: list[MemberId] = []
        self.run = 0  # counts my runs about a leader
        # Members that wait for my result, and in which run.
        self.informers: dict[MemberId, int] = {}

    # Calling an election

    def start(self, ctx: Context) -> None:
        self.recall(ctx)
        self.seen = self.term
        if ctx.incarnation > 1:  # back from a crash: any member may know the term, so ask all
            self.disown(ctx, ELECTING)
            self.ask(ctx, tuple(member for member in ctx.view if member != ctx.me.id))

    def call(self, ctx: Context) -> None:
        self.begin(ctx, self.leader)

    def assume_leader(self, ctx: Context, leader: MemberId, term: int) -> None:
        super().assume_leader(ctx, leader, term)
        self.dead.discard(leader)
        if self.phase is not Phase.IDLE:
            self.settle(ctx)
        self.seen = max(self.seen, term)
        self.group = self.alternates(ctx, leader)

    def alternates(self, ctx: Context, leader: MemberId) -> Group:
        """Return the next best members after a leader, without the suspected ones."""
        if leader not in ctx.view:
            return ()
        after = ctx.view.ranking(self.choice).worse_than(leader)
        alive = [member for member in after if member not in self.dead and member != self.accused]
        return tuple(alive[: self.config.K])

    def begin(self, ctx: Context, accused: MemberId | None) -> None:
        """Start a run; only one at a time."""
        if self.phase is not Phase.IDLE or accused == ctx.me.id:
            return
        self.accuse(accused)
        self.disown(ctx, ELECTING)
        self.queue = [member for member in self.group if self.above(ctx, member)]
        self.tell(ctx)

    def accuse(self, leader: MemberId | None) -> None:
        """Forget the suspicion: this run will show whether the leader lives."""
        self.accused = leader
        self.run += 1
        if leader is not None:
            self.dead.discard(leader)

    def above(self, ctx: Context, member: MemberId) -> bool:
        """Whether I know a member better than I am."""
        view = ctx.view
        return member in view and self.choice.better(view.candidate(member), ctx.me)

    def settles_for_less(self, ctx: Context, member: MemberId) -> bool:
        """Whether I follow a worse member than this one, or have no leader yet."""
        view, leader = ctx.view, self.leader
        if leader is None:
            return self.phase is not Phase.IDLE
        return leader not in view or self.choice.better(
            view.candidate(member), view.candidate(leader)
        )

    def tell(self, ctx: Context) -> None:
        """Tell the first member in the queue; if the queue is empty, do what is left."""
        while self.queue and self.queue[0] in self.dead:
            del self.queue[0]
        if self.queue:
            self.phase = Phase.TELLING
            ctx.send(self.queue[0], CrashLeaderMsg(self.seen, self.accused, self.run))
            ctx.set_timer(ALTERNATE, self.config.alternate)
        elif self.last_resort:
            self.win(ctx)
        elif any(not self.above(ctx, member) for member in self.group):
            self.check(ctx)
        else:
            self.ask(ctx, ctx.view.ranking(self.choice).better_than(ctx.me.id))

    def ask(self, ctx: Context, members: tuple[MemberId, ...]) -> None:
        """Ask which of these members are alive."""
        if not members:
            self.win(ctx)
            return
        self.phase = Phase.ASKING
        self.answered = []
        question = ElectionMsg(self.seen)
        for member in members:  # the suspects too: a suspicion may be wrong
            ctx.send(member, question)
        ctx.set_timer(ANSWERS, self.config.answers)

    def check(self, ctx: Context) -> None:
        """Take over as leader, unless the leader answers that it lives."""
        if self.accused is None or self.accused not in ctx.view:
            self.win(ctx)
            return
        self.phase = Phase.CHECKING
        ctx.send(self.accused, CheckMsg(self.seen))
        ctx.set_timer(ANSWERS, self.config.answers)

    def win(self, ctx: Context) -> None:
        """Lead: no better member is alive."""
        self.group = self.alternates(ctx, ctx.me.id)
        self.settle(ctx)
        self.seen += 1
        self.elect(ctx, ctx.me.id, self.seen)
        self.remember(ctx)
        victory = CoordinatorMsg(self.term, self.group)
        for member in ctx.view.ranking(self.choice).worse_than(ctx.me.id):
            ctx.send(member, victory)

    def settle(self, ctx: Context) -> None:
        """End the run."""
        self.phase = Phase.IDLE
        self.accused = None
        self.queue = []
        self.last_resort = False
        self.informers = {}
        ctx.cancel_timer(ANSWERS)
        ctx.cancel_timer(ALTERNATE)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        if self.phase is Phase.TELLING and key == ALTERNATE:
            del self.queue[:1]
            self.tell(ctx)
        elif self.phase is Phase.CHECKING and key == ANSWERS:
            self.win(ctx)
        elif self.phase is Phase.ASKING and key == ANSWERS:
            better = ctx.view.ranking(self.choice).better_than(ctx.me.id)
            self.queue = [member for member in better if member in self.answered]
            self.last_resort = True
            self.tell(ctx)

    # Being told, checked, asked

    @upon(CrashLeaderMsg)
    def on_crash_leader(self, ctx: Context, sender: MemberId, message: CrashLeaderMsg) -> None:
        deposed = (
            message.leader is not None
            and message.term > self.term
            and self.above(ctx, message.leader)
        )
        if self.leader == ctx.me.id and not deposed:
            self.assert_leadership(ctx, sender, message.term)
            return
        self.informers[sender] = message.run
        if self.phase is Phase.IDLE:
            mine_is_newer = self.leader is not None and self.term >= message.term
            self.accuse(self.leader if mine_is_newer else message.leader)
            self.seen = max(self.seen, message.term)
            self.check(ctx)

    @upon(CheckMsg)
    def on_check(self, ctx: Context, sender: MemberId, message: CheckMsg) -> None:
        if self.leader is not None and self.term >= message.term:
            ctx.send(sender, AliveMsg(self.term, self.leader, self.group))
        elif self.leader == ctx.me.id:
            self.assert_leadership(ctx, sender, message.term)

    @upon(ElectionMsg)
    def on_election(self, ctx: Context, sender: MemberId, message: ElectionMsg) -> None:
        ctx.send(sender, OkMsg(max(self.seen, message.term)))
        if self.leader != ctx.me.id:
            self.seen = max(self.seen, message.term)
        elif not self.above(ctx, sender):
            self.assert_leadership(ctx, sender, message.term)

    def assert_leadership(self, ctx: Context, doubter: MemberId, term: int) -> None:
        """Tell a member that I lead; tell all, if there has been a later leader."""
        if term > self.term:
            self.seen = max(self.seen, term)
            self.win(ctx)
        else:
            ctx.send(doubter, CoordinatorMsg(self.term, self.group))

    @upon(OkMsg)
    def on_ok(self, ctx: Context, sender: MemberId, message: OkMsg) -> None:
        self.seen = max(self.seen, message.term)
        if self.phase is Phase.ASKING:
            self.answered.append(sender)

    # Announcements of leaders

    @upon(AliveMsg)
    def on_alive_leader(self, ctx: Context, sender: MemberId, message: AliveMsg) -> None:
        leader = message.leader
        if leader == self.accused and sender != leader and message.run != self.run:
            return  # second-hand, or old: the run will show
        self.hear_of(ctx, message.leader, message.term, message.group)

    @upon(CoordinatorMsg)
    def on_coordinator(self, ctx: Context, sender: MemberId, message: CoordinatorMsg) -> None:
        if not self.hear_of(ctx, sender, message.term, message.group):
            self.object(ctx, sender, message.term)

    def hear_of(self, ctx: Context, leader: MemberId, term: int, group: Group) -> bool:
        """Follow a leader and return True, unless I know a better one."""
        self.seen = max(self.seen, term)
        view = ctx.view
        if leader == ctx.me.id:
            return True
        if leader in view:
            rival = view.candidate(leader)
            if self.choice.better(ctx.me, rival):
                return False
            present = self.leader
            if term == self.term and present is not None and present in view:
                if self.choice.better(view.candidate(present), rival):
                    return False
        if term < self.term:
            return leader == self.leader
        clash = self.leader == ctx.me.id and term == self.term
        informers = self.informers
        self.settle(ctx)
        self.group = group
        self.elect(ctx, leader, term)
        self.remember(ctx)
        for member, run in informers.items():
            ctx.send(member, AliveMsg(term, leader, group, run))
        if clash:  # some may have received mine last: it must lead in a term of its own
            ctx.send(leader, ElectionMsg(term + 1))
        if leader in self.dead:  # a last message, or a wrong suspicion: have it checked
            self.begin(ctx, leader)
        return True

    def object(self, ctx: Context, claimant: MemberId, term: int) -> None:
        """Tell the claimant what it does not know."""
        leader = self.leader
        if leader == ctx.me.id:
            self.assert_leadership(ctx, claimant, term)
        elif leader not in (None, claimant) and leader in ctx.view:
            self.refer(ctx, claimant, term, leader)
        elif self.above(ctx, claimant):
            ctx.send(claimant, ElectionMsg(self.seen))
        else:
            self.begin(ctx, None)

    def refer(self, ctx: Context, claimant: MemberId, term: int, leader: MemberId) -> None:
        """Bring two leaders together: one learns of the other, or of the other's term."""
        view = ctx.view
        if claimant not in view:
            return
        if self.choice.better(view.candidate(claimant), view.candidate(leader)):
            ctx.send(claimant, ElectionMsg(self.seen))
        elif term <= self.term:
            ctx.send(claimant, AliveMsg(self.term, leader, self.group))
        else:
            ctx.send(leader, ElectionMsg(self.seen))

    # Failures

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        if member == ctx.me.id:
            return
        self.dead.add(member)
        if member == self.leader:
            self.begin(ctx, member)
        elif self.phase is Phase.TELLING and self.queue[0] == member:
            self.tell(ctx)

    def on_alive(self, ctx: Context, member: MemberId) -> None:
        self.dead.discard(member)
        if member == ctx.me.id or member not in ctx.view:
            return
        if self.leader == ctx.me.id:
            ctx.send(member, CoordinatorMsg(self.term, self.group))  # it may have missed it
        elif self.settles_for_less(ctx, member):
            ctx.send(member, ElectionMsg(self.seen))  # it is better than my leader: it may lead

    def claim_of(self, message: Message) -> Claim | None:
        return Claim(message.term) if isinstance(message, CoordinatorMsg) else None

    def state(self) -> str:
        return f"leader={self.leader} term={self.term} phase={self.phase.value} group={self.group}"

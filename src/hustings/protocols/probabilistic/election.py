"""Probabilistic election: a hash picks a few members, which agree on the leader for all.

Model      Unreliable unicast and multicast, crashes, views that are partial and differ; the delay
           of messages that arrive is bounded. Members need news of crashes only to call an
           election.
Idea       An Init goes to all. A member whose hash with it falls below K/N_i becomes a relay
           member: about K of them, for any N, and each can tell which others of its view are. They
           tell each other the best candidate that they know, then each of them tells all members.
Invariant  A member holds the one leader that the finals of its latest round name, or none if they
           name several or none; until these finals arrive, it holds its earlier leader.
Cost       About K + 1 multicasts and, on average, O(K**2) unicasts a round, for any N.
Guarantee  Advisory: lost messages make two leaders unlikely, as `risk` says; in a partition each
           side elects for itself.
Paper      Gupta, van Renesse, Birman 2000: sections 3.1 to 3.3, Figure 3.

Beside Figure 3: `on_init` and `enter` are step 1, `relay`, `on_prefer` and `speak` step 2, `decide`
and `detect` step 3. The figure leaves some points open and has some errors. The decisions here:
- A reply goes out only if one's own choice is strictly better; else two that agree never end.
- (sequence, initiator, nonce, round) names a round; of two calls the larger wins.
- A member that missed the Init but receives a final adopts it after T_3, when the members that took
  part decide.
- A member that sees two leaders, or none, holds none, and may not ask again after the last round. A
  late final that names another leader is a conflict like any other.
- Views belong to the world. A member keeps for itself what the figure adds to a view.
- Every member decides T_2 + 2 T_3 after the beginning of a round: members begin up to T_3 apart.
- A member that detects a failed round waits a random part of the same window W. An Init says how
  much of W is left. The round begins T_3 after the end of W, for all at once, whichever of several
  Inits they have received.
- If a member calls with an outdated number, a few members tell it the present state. A member that
  comes back from a crash calls, and so learns which member leads.
- With `relay_by` = multicast each relay member tells all, once, its preferred candidate. Where
  views are small the relay graph would not be connected; this way it is complete.
- Terms: round l of sequence s has term (s - 1) max_rounds + l; terms never fall.
"""

from __future__ import annotations

from collections.abc import Iterable

from hustings.core.choice import Candidate, Choice, MemberId
from hustings.core.context import Context, TimerKey
from hustings.core.election import About, Assumptions, upon
from hustings.core.messages import Message
from hustings.core.outcome import ELECTING, Guarantee
from hustings.core.rounds import RoundBased
from hustings.core.thinning import pause
from hustings.protocols.probabilistic.hashing import Blake2, Filter, shared_filter
from hustings.protocols.probabilistic.messages import (
    MAX_JUMP,
    MAX_SEQUENCE,
    MAX_WITHOUT,
    Call,
    FinalMsg,
    InitMsg,
    PreferMsg,
    implied_term,
)
from hustings.protocols.probabilistic.risk import two_leaders
from hustings.protocols.probabilistic.settings import ProbabilisticConfig

BEGIN = "begin"  # until a round begins that I know of, or opened
RELAY = "T_2"
DECIDE = "T_1"  # from the Init, or the rest of it from the first final or my own
AGAIN = "W"

IDLE = "idle"
WAITING = "waiting"  # not a relay member: for the finals
RELAYING = "relaying"
SPOKEN = "spoken"  # a relay member that has sent its final: for those of the others
PAUSING = "pausing"  # has noticed that a round failed: for another member to ask again

NONE_NAMED, TWO_NAMED = "no leader was named", "two leaders were named"
MAX_GROWN = 4096  # members that a member keeps besides its view
MAX_LED = 64  # past leaders that a member remembers
NOBODY = Call(0, 0, 0)
_EMPTY: dict[MemberId, Candidate] = {}  # shared by all that keep nothing; stays empty


class Probabilistic(RoundBased):
    """One member. `current` and `round` name the latest round that it knows of."""

    __slots__ = (
        "best",
        "config",
        "current",
        "ends",
        "entered",
        "expected",
        "filter",
        "first",
        "gone",
        "grown",
        "held",
        "led",
        "named",
        "phase",
        "plan",
        "relays",
        "replaced",
        "round",
        "ruled",
        "several",
        "unicasts",
    )

    about = About(
        name="probabilistic",
        family="probabilistic",
        paper="Gupta, van Renesse, Birman 2000: Figure 3",
        idea="a hash picks about K members of any group; they choose the leader and tell all",
        model="lossy unicast and multicast, crashes, partial views",
        guarantee=Guarantee.ADVISORY,
        cost="about K+1 multicasts and, on average, O(K^2) unicasts a round, for any N",
        promises="one leader known to all with high probability; Elected.risk bounds the chance of "
        "two under independent loss (3e-8 at loss 0.001, 2e-2 at 0.3: K=7, N=2000), and nothing "
        "does under a partition",
    )
    assumptions = Assumptions(reliable=False, displaces=False, partial_views=True)
    Settings = ProbabilisticConfig
    messages = (InitMsg, PreferMsg, FinalMsg)
    config: ProbabilisticConfig
    hash_function = Blake2  # a subclass may use another one, made from the group's name

    def __init__(self, config: ProbabilisticConfig, choice: Choice) -> None:
        super().__init__(config, choice)
        self.plan = config.plan
        self.unicasts = config.relay_by == "unicast"
        self.filter: Filter = shared_filter(self.hash_function, config.group, config.hash_skew)
        self.current = NOBODY
        self.round = 0
        self.phase = IDLE
        self.expected: tuple[Call, int] | None = None  # the round that will begin
        self.named: Candidate | None = None  # by the finals of this round
        self.several = False  # whether they name further leaders, too
        self.held: Candidate | None = None  # the leader that I have declared
        self.best: Candidate | None = None  # in the relay phase
        self.relays: dict[MemberId, None] = {}  # {M_j}_i
        # End of the relay phase, by my clock; while pausing, of the wait for the next round.
        self.ends = 0.0
        self.grown = _EMPTY  # members that I know besides the view
        self.led: tuple[Candidate, ...] = ()  # leaders that I ever held
        self.gone: tuple[MemberId, ...] = ()  # suspected, the latest last
        self.ruled: tuple[MemberId, ...] = ()  # excluded by the latest call, and not back since
        self.replaced = 0  # elected leaders that I suspected, since I last learnt of one
        self.first = 0  # whether I was a relay member in the first round
        self.entered = 0  # in how many rounds I was one

    # Calling an election

    def start(self, ctx: Context) -> None:
        stored = ctx.stored.get("sequence")
        if isinstance(stored, int):
            self.current = Call(stored, 0, 0)
        if ctx.incarnation > 1:
            self.begin(ctx)

    def call(self, ctx: Context) -> None:
        if self.phase is IDLE and self.expected is None:
            self.replaced = 0
            self.ruled = ()
            self.begin(ctx)

    def begin(self, ctx: Context, *gone: MemberId) -> None:
        """Call a new election, of all members but those that are gone."""
        ruled = (each for each in self.ruled if each != ctx.me.id)
        without = tuple(dict.fromkeys((*ruled, *self.gone, *gone)))[-MAX_WITHOUT:]
        if ctx.view.best(self.choice, without) is None:
            without = gone  # a call must not exclude all: some must be back since
        sequence = min(self.current.sequence + 1, MAX_SEQUENCE)
        call = Call(sequence, ctx.me.id, ctx.rng.bits() >> 1, without)
        self.open(ctx, call, 1, self.config.delivery)

    def open(self, ctx: Context, call: Call, number: int, wait: float) -> None:
        """Multicast I or I'; the round begins when every member should have it, or later."""
        wait = max(wait, self.config.delivery)
        ctx.multicast(InitMsg(call, number, wait))
        self.expect(ctx, call, number, wait)

    def expect(self, ctx: Context, call: Call, number: int, wait: float) -> None:
        """Take part in a round as soon as it begins."""
        self.expected = (call, number)
        if self.phase is PAUSING:
            self.phase = IDLE
            ctx.cancel_timer(AGAIN)
        ctx.set_timer(BEGIN, wait)

    def assume_leader(self, ctx: Context, leader: MemberId, term: int) -> None:
        super().assume_leader(ctx, leader, term)
        rounds = self.plan.rounds
        call = Call((term + rounds - 1) // rounds, 0, 0)
        latest = max(self.current, call, key=lambda each: each.sequence)
        self.note(ctx, latest, rounds)  # it has no further effect
        self.phase = IDLE
        self.on_alive(ctx, leader)
        self.held = ctx.view.candidate(leader) if leader in ctx.view else None

    # Step 1: the filter

    @upon(InitMsg)
    def on_init(self, ctx: Context, sender: MemberId, message: InitMsg) -> None:
        call, number = message.call, message.round
        if sender in self.ruled and sender not in call.without:  # the sender is back
            self.ruled = tuple(other for other in self.ruled if other != sender)
        if self.is_new(call, number):
            wait = message.wait - self.config.delivery
            if not wait > 0.0:
                self.enter(ctx, call, number)
            elif self.expected is None or self.expected != (call, number):
                self.expect(ctx, call, number, min(wait, self.config.window))
        elif call.order < self.current.order:
            self.correct(ctx, sender, message)

    def is_new(self, call: Call, number: int) -> bool:
        """Whether a round comes after my latest one, and is not outdated."""
        if call is self.current and self.round and self.expected is None:
            return self.round < number <= self.plan.rounds
        if not call.sound or not 1 <= number <= self.plan.rounds:
            return False
        if call.sequence > self.current.sequence + MAX_JUMP:
            return False
        key = (*call.order, number)
        if self.expected is not None and key < (*self.expected[0].order, self.expected[1]):
            return False
        return key > (*self.current.order, self.round)

    def note(self, ctx: Context, call: Call, number: int) -> None:
        """Switch to a new round; what I hold stays until that round has ended."""
        if call.sequence > self.current.sequence:
            ctx.persist(sequence=call.sequence)
        self.current, self.round = call, number
        self.ruled = call.without
        self.named, self.several = None, False
        if self.expected is not None:
            ctx.cancel_timer(BEGIN)
            self.expected = None
        if self.phase is not IDLE:  # in the middle of an older round
            for key in (RELAY, DECIDE, AGAIN):
                ctx.cancel_timer(key)

    def enter(self, ctx: Context, call: Call, number: int, left: float | None = None) -> None:
        """Take part in a round whose relay phase has `left` left."""
        self.note(ctx, call, number)
        size = self.size(ctx)
        K = self.plan.K(number, size)
        wait = self.config.waiting(K) if left is None else left + 2 * self.config.delivery
        left = self.config.relaying(K) if left is None else left
        table = self.filter.table(call, number)
        if table.value(ctx.me.id) * size < K:
            relays = table.below(ctx.view.roster, K / size)
            self.relay(ctx, relays, left)
        else:
            self.phase = WAITING
            ctx.set_timer(DECIDE, wait)

    def size(self, ctx: Context) -> float:
        """Return N_i."""
        config = self.config
        match config.counts:
            case "exact":
                return float(config.N or len(ctx.view))
            case "gossip":
                return max(1.0, ctx.view.estimate or len(ctx.view))
        return max(1, len(ctx.view))

    def correct(self, ctx: Context, sender: MemberId, message: InitMsg) -> None:
        """Tell a caller that was away the present state, if I would relay."""
        if self.phase is not IDLE or self.held is None or not message.call.sound:
            return
        table = self.filter.table(message.call, message.round)
        size = self.size(ctx)
        if table.value(ctx.me.id) * size < self.plan.K(1, size) and self.round:
            ctx.send(sender, FinalMsg(self.current, self.round, self.held))

    # Step 2: the relay phase

    def relay(self, ctx: Context, passed: list[MemberId], left: float) -> None:
        """Tell all relay members of my view which candidate I prefer."""
        me, view = ctx.me, ctx.view
        self.phase = RELAYING
        self.entered += 1
        self.first |= self.round == 1
        for leader in self.led:
            self.learn(ctx, leader)
        self.best = self.preferred(ctx)
        self.ends = ctx.now() + left
        ctx.set_timer(RELAY, left)
        if not self.unicasts:
            if self.best is not None:
                ctx.multicast(PreferMsg(self.current, self.round, me, self.best, left))
            return
        self.relays = {each: None for each in passed if each in view and each != me.id}
        if self.grown:
            size, table = self.size(ctx), self.filter.table(self.current, self.round)
            K = self.plan.K(self.round, size)
            for each in self.grown:
                if each not in view and table.value(each) * size < K:
                    self.relays[each] = None
        if self.best is not None:
            self.tell(ctx, self.best, self.relays)

    def tell(self, ctx: Context, best: Candidate, others: Iterable[MemberId]) -> None:
        message = PreferMsg(self.current, self.round, ctx.me, best, self.ends - ctx.now())
        for each in others:
            ctx.send(each, message)

    def preferred(self, ctx: Context) -> Candidate | None:
        """Return the best of all that I know and that the call does not exclude."""
        without, choice, view = self.current.without, self.choice, ctx.view
        best = None if (known := view.best(choice, without)) is None else view.candidate(known)
        for other in self.grown.values():
            if other.id not in without and (best is None or choice.better(other, best)):
                if other.id not in view:  # else the view has its present attributes
                    best = other
        return best

    @upon(PreferMsg)
    def on_prefer(self, ctx: Context, sender: MemberId, message: PreferMsg) -> None:
        can_rank = self.choice.can_rank
        if sender != message.me.id or not can_rank(message.me) or not can_rank(message.best):
            return
        call, number = message.call, message.round
        if self.expected == (call, number):
            self.enter(ctx, call, number)  # other members have begun already
        elif self.config.join_on_contact and self.is_new(call, number):
            longest = self.config.relaying(self.plan.K(number, self.size(ctx)))
            self.enter(ctx, call, number, max(0.0, min(message.left, longest)))
        if self.phase is not RELAYING or (call, number) != (self.current, self.round):
            return
        if self.unicasts and sender != ctx.me.id:
            self.relays[sender] = None
        self.learn(ctx, message.me)
        self.compare(ctx, sender, message.best)

    def compare(self, ctx: Context, sender: MemberId, theirs: Candidate) -> None:
        """Take the better of two choices; a member that has the worse one is told."""
        mine = self.best
        if theirs.id in self.current.without:
            return
        if mine is None or self.choice.better(theirs, mine):
            self.best = theirs
            self.tell(ctx, theirs, self.relays)
        elif self.unicasts and self.choice.better(mine, theirs):
            self.tell(ctx, mine, (sender,))

    def learn(self, ctx: Context, other: Candidate) -> None:
        """Remember a member from now on."""
        if other.id in ctx.view or (len(self.grown) >= MAX_GROWN and other.id not in self.grown):
            return
        if not self.grown:
            self.grown = {}
        self.grown[other.id] = other

    def speak(self, ctx: Context) -> None:
        """End the relay phase: tell all members my choice."""
        self.phase = SPOKEN
        if self.best is not None:
            ctx.multicast(FinalMsg(self.current, self.round, self.best))
            self.hear(self.best)
        self.relays = {}
        ctx.set_timer(DECIDE, 2 * self.config.delivery)

    # Step 3: is there one leader?

    @upon(FinalMsg)
    def on_final(self, ctx: Context, sender: MemberId, message: FinalMsg) -> None:
        call, named = message.call, self.named
        current = (call is self.current or call == self.current) and message.round == self.round
        if current and named is not None and message.best.id == named.id:
            return  # nothing new, as for most members most of the time
        if message.best.id in call.without or not self.choice.can_rank(message.best):
            return
        if current and self.round > 0:
            self.hear(message.best)
            if self.phase is IDLE or self.phase is PAUSING:
                self.reconsider(ctx)
        elif self.is_new(call, message.round):
            self.note(ctx, call, message.round)
            self.hear(message.best)
            self.phase = WAITING
            ctx.set_timer(DECIDE, self.config.delivery)

    def hear(self, leader: Candidate) -> None:
        if self.named is None:
            self.named = leader
        elif self.named.id != leader.id:
            self.several = True

    def reconsider(self, ctx: Context) -> None:
        """Treat a final that arrives after my decision."""
        if self.several:
            if self.leader is not None:
                self.detect(ctx)
        elif self.leader is None and self.named is not None:
            ctx.cancel_timer(AGAIN)
            self.decide(ctx)

    def decide(self, ctx: Context) -> None:
        """Decide: all finals should have arrived."""
        leader = self.named
        if leader is None or self.several:
            return self.detect(ctx)
        self.phase, self.held = IDLE, leader
        if leader not in self.led:
            self.led = (*self.led, leader)[-MAX_LED:]
        term = self.current.term(self.round, self.plan.rounds)
        self.elect(ctx, leader.id, max(term, self.term), self.risk(ctx))
        if leader.id in self.gone and self.expected is None:  # and the call did not exclude it
            self.replace(ctx)

    def implies(self, message: Message) -> int:
        return implied_term(message, self.plan.rounds)

    def risk(self, ctx: Context) -> float | None:
        """Return the probability of two leaders, if network and hash are as the settings say."""
        config = self.config
        if config.p_mcastl is None or config.hash_skew != 1.0:
            return None
        size = self.size(ctx) if config.N is None else float(config.N)
        return two_leaders(self.plan, size, config.p_mcastl, config.p_fail)

    def detect(self, ctx: Context) -> None:
        """Hold no leader, and ask for another round: the finals named none or several."""
        config = self.config
        self.held = None
        self.phase = IDLE
        if self.round >= self.plan.rounds:
            self.give_up(ctx, f"no agreement in round {self.round}, the last")
            return
        self.disown(ctx, TWO_NAMED if self.several else NONE_NAMED)
        size = self.size(ctx)
        if self.expected is not None:
            return  # another member has asked already
        if config.thinning == "delay":
            self.phase = PAUSING
            self.ends = ctx.now() + config.window + config.delivery
            ctx.set_timer(AGAIN, config.window * pause(ctx.rng.random(), size))
        elif config.thinning == "all" or (
            self.filter.again(ctx.me.id, self.current, self.round) * size
            < self.plan.K(self.round, size)
        ):
            self.open(ctx, self.current, self.round + 1, config.delivery)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        if key == DECIDE:
            self.decide(ctx)
        elif key == RELAY:
            self.speak(ctx)
        elif key == AGAIN:
            self.open(ctx, self.current, self.round + 1, self.ends - ctx.now())
        elif self.expected is not None:
            self.enter(ctx, *self.expected)

    # Failures

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        if member == ctx.me.id or member in self.gone:
            return
        self.gone = (*self.gone, member)[-MAX_WITHOUT:]
        self.replaced = 0
        if member == self.leader and self.phase is IDLE and self.expected is None:
            self.replace(ctx)

    def replace(self, ctx: Context) -> None:
        """Replace a leader that is gone, up to a limit of replacements."""
        self.held = None
        self.replaced += 1
        if self.replaced > MAX_WITHOUT:
            self.give_up(ctx, f"{MAX_WITHOUT} leaders in a row were suspected")
            return
        self.disown(ctx, ELECTING)
        self.begin(ctx)

    def on_alive(self, ctx: Context, member: MemberId) -> None:
        self.gone = tuple(other for other in self.gone if other != member)
        self.ruled = tuple(other for other in self.ruled if other != member)
        self.replaced = 0

    def leave(self, ctx: Context) -> None:
        """Open the election that replaces this departing leader."""
        if self.leader == ctx.me.id:
            self.begin(ctx, ctx.me.id)

    # For others to read

    def opens(self, message: Message) -> tuple[int, ...] | None:
        if isinstance(message, InitMsg):
            return (*message.call.order, message.round)
        return None

    def span(self, message: Message, members: int) -> tuple[float, float]:
        """Return the start, T_3 before the round, and the end; a window before that is a pause."""
        if not isinstance(message, InitMsg):
            return 0.0, 0.0
        config = self.config
        K = self.plan.K(message.round, float(config.N or members))
        return message.wait - config.delivery, config.relaying(K) + 3 * config.delivery

    def tallies(self) -> dict[str, int]:
        return {"relay_members": self.first, "relayed": self.entered}

    def state(self) -> str:
        return (
            f"leader={self.leader} term={self.term} sequence={self.current.sequence} "
            f"round={self.round} {self.phase}"
        )

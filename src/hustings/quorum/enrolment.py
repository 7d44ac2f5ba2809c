"""How a voter finds out whether it may vote: it must never have voted and forgotten.

Model      Voters may lose their disk: fewer than a majority at a time, or all of them. A voter that
           comes with its disk has nothing to find out.
Idea       A voter without memory draws a number, its birth, and asks the others. If none of them
           votes, nobody remembers anything, and their births become the roster (genesis). If one
           that votes has this very birth on the roster that it began with, the voter was counted
           there and has not voted since. Otherwise it voted once and has forgotten: it begins
           another life, which a majority of voters other than it must take note of, and takes over
           the highest round that any of them has promised. They take note only if it says the
           number that each of them has sent it: nobody else can end its life. Whichever it is, it
           stays silent for one longest lease first.
Invariant  1. Whatever majority the forgotten votes were part of, one of those who took note was,
              too. If that one voted before it took note, the round is known to the voter again. If
              it votes afterwards, its vote says that the former life is over, and the two are not
              counted together.
           2. A lease that the former life accepted is over, by any clock, when the new one votes:
              also when all lives are new, and whoever holds it is cut off and no voter.
           3. Whoever answered "new" to somebody believes, when it begins to vote, in no former
              birth of that one: answers count only if they were given after the last doubt.
           4. There is a genesis only if at one instant nobody voted. Everybody is asked twice: who
              has the same birth both times, and votes neither time, did not vote in between.
              Voters that are said to have come later (initial=) never have one: the first ones may
              vote elsewhere.
           5. The rounds of a genesis lie above the first incarnation of every voter. Where that
              grows with the date, and one voter's date is right, they lie above all rounds before.
Cost       4(n - 1) messages for each voter once, and up to 2(n - 1) more for another life; one
           longest lease of silence without a disk.
Guarantee  Tokens grow whatever clocks do while fewer than a majority lose their disks. If all do,
           tokens grow as far as 5 goes. In between (two of three) those that forgot do not vote
           until disks are back or the others' are emptied, too, and say so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from hustings.core.choice import MemberId
from hustings.core.context import Context
from hustings.core.messages import Message
from hustings.quorum.lives import LIFE_BITS, life
from hustings.quorum.messages import Ballot, EnrollMsg, FreshMsg, KnownMsg, Lease, Sealed
from hustings.quorum.records import keep, kept
from hustings.quorum.voter import Voter

ENROLL = "quorum-enroll"

MAX_DOUBLINGS = 5
MAX_AHEAD = 64  # lives of another voter that this one may have missed
LONGER = 16.0  # times the longest lease: no lease that others tell of is waited for longer

Reachable = Callable[[Context], Sequence[MemberId]]  # voters to write to


class Enrolment:
    """One voter's way into the electorate."""

    def __init__(self, voter: Voter, patience: float, reachable: Reachable) -> None:
        self.voter = voter
        self.patience = patience
        self.reachable = reachable
        self.birth = 0
        self.nonce = 0
        self.tries = 0
        self.began = 0.0  # when it began to find out, by its clock
        self.ready = inf  # from when on it may vote, if it is to
        self.founds = True  # whether it may begin anew: not with voters that came later
        self.founded = False  # whether it votes because nobody remembered anything
        self.heard: dict[MemberId, int] = {}  # births of those that asked
        self.fresh: dict[MemberId, int] = {}  # births of those that answered, and do not vote
        self.known: dict[MemberId, KnownMsg] = {}  # answers of those that vote
        self.supposed: dict[MemberId, int] = {}  # `fresh` of before, if all were: asked again
        self.highest = 0  # incarnation of those that do not vote
        self.counted: KnownMsg | None = None  # an answer that this birth was there at a genesis
        self.founders: dict[MemberId, int] = {}  # births of the last genesis
        self.challenges: dict[MemberId, int] = {}  # what others must say before they are noted anew
        self.proofs: dict[MemberId, int] = {}  # what this one has to say to others

    # The beginning

    def start(self, ctx: Context) -> None:
        """Read what there is, or ask."""
        voter = self.voter
        self.began = self.ready = ctx.now()
        if not voter.durable:
            self._start_diskless(ctx)
            return
        voter.recall(ctx)
        self.birth = kept(ctx.stored, "birth", int) or 0
        voter.births = dict(kept(ctx.stored, "births", list[tuple[MemberId, int]]) or [])
        self.founders = dict(kept(ctx.stored, "founders", list[tuple[MemberId, int]]) or [])
        voter.votes = kept(ctx.stored, "votes", bool) or False
        if voter.votes:
            return
        self.ready = ctx.now() + voter.restart_wait(voter.longest)
        voter.begin_above(ctx.incarnation - 1)
        if not self.birth:
            self._be_born(ctx, 1)
        self._ask_anew(ctx)

    def _start_diskless(self, ctx: Context) -> None:
        """Whatever was accepted before is over after one longest lease.

        Whatever round was promised before lies below the incarnation where that grows with the
        date; elsewhere tokens are ordered only within an epoch that somebody else keeps.
        """
        voter = self.voter
        voter.begin_above(ctx.incarnation)
        self.ready += voter.restart_wait(voter.longest)
        ctx.set_timer(ENROLL, self.ready - ctx.now())

    def _be_born(self, ctx: Context, number: int) -> None:
        self.birth = number << LIFE_BITS | ctx.rng.bits() >> (64 - LIFE_BITS)
        self.counted = None
        keep(ctx, birth=self.birth)

    def begin_anew(self, ctx: Context) -> None:
        """Other voters were agreed on without this one: what it knows may be out of date.

        So it is as one that has forgotten.
        """
        voter = self.voter
        voter.sealed = None
        self.began, self.ready = ctx.now(), ctx.now() + voter.longest
        voter.votes = False
        keep(ctx, votes=False, sealed=None)
        self._be_born(ctx, life(self.introduce(ctx)) + 1)
        self._ask_anew(ctx)

    def introduce(self, ctx: Context) -> int:
        """How this member was born, now at the latest."""
        self.birth = self.birth or kept(ctx.stored, "birth", int) or 0
        if not self.birth:
            self._be_born(ctx, 1)
        return self.birth

    def seat(self, ctx: Context) -> None:
        """A configuration that this member never voted in begins with it as a voter."""
        self.ready = ctx.now()
        self.voter.births[ctx.me.id] = self.introduce(ctx)
        self._vote(ctx)

    def retire(self, ctx: Context) -> None:
        """Others vote from now on, whether this one did or was about to."""
        if self.ready == inf:
            return
        self.voter.votes, self.voter.sealed = False, None
        self.ready = inf
        self.counted = None
        self.fresh, self.known, self.heard, self.supposed = {}, {}, {}, {}
        ctx.cancel_timer(ENROLL)
        keep(ctx, votes=False, sealed=None)

    def assume(self, ctx: Context, holder: MemberId, term: int, ttl: float) -> None:
        """Begin in the middle: all vote, and have just accepted `holder`'s first incarnation."""
        voter = self.voter
        self.ready = ctx.now()
        voter.promised = Ballot(term, holder, 1)
        voter.lease = Lease(holder, 1, term, ttl)
        voter.until = ctx.now() + ttl
        voter.keep_promise(ctx)
        voter.keep_lease(ctx)
        self.seat(ctx)

    def on_timer(self, ctx: Context) -> None:
        """Time to vote, or to ask those who have not answered."""
        if self.voter.votes:
            return
        if not self.voter.durable:
            self.voter.votes = ctx.now() >= self.ready
            return
        if self._is_ready(ctx):
            self._resume(ctx)
        elif self.counted is not None and ctx.now() >= self.ready:
            self._follow(ctx, self.counted)
        elif self._nobody_votes():
            self._begin_with_all(ctx)
        else:
            self._ask(ctx)

    def _ask_anew(self, ctx: Context) -> None:
        """Only answers to what is asked from now on count."""
        self.nonce = ctx.rng.bits() >> 2
        self.fresh, self.known, self.supposed = {}, {}, {}
        self.tries = 0
        self._ask(ctx)

    def _ask(self, ctx: Context) -> None:
        for other in self.reachable(ctx):
            if other != ctx.me.id and other not in self.known:
                self._ask_one(ctx, other)  # also who did not vote: it may by now
        pause = self.patience * 2.0 ** min(self.tries, MAX_DOUBLINGS)
        self.tries += 1
        ctx.set_timer(ENROLL, pause)
        if len(self.voter.electorate.voters) == 1:
            self._begin_with_all(ctx)  # there is nobody to ask

    def _ask_one(self, ctx: Context, other: MemberId) -> None:
        number, proof = self.voter.electorate.number, self.proofs.get(other, 0)
        ctx.send(other, EnrollMsg(number, self.birth, self.nonce, proof))

    # Questions of others

    def on_enroll(self, ctx: Context, sender: MemberId, message: EnrollMsg) -> Message:
        """Another voter asks whether it has voted."""
        voter = self.voter
        number = voter.electorate.number
        if not voter.votes:
            self.heard[sender] = message.birth
            if sender in self.known or self.fresh.get(sender, message.birth) != message.birth:
                self._ask_anew(ctx)  # it has lost its disk since it answered
            elif self.tries > 1:
                self.tries = 0  # somebody has come up: do not wait so long any more
                self._ask(ctx)
            return FreshMsg(number, message.birth, message.nonce, self.birth, ctx.incarnation)
        listed, challenge = voter.births.get(sender, 0), 0
        if message.birth != listed:
            challenge = self.challenges.setdefault(sender, (ctx.rng.bits() >> 2) | 1)
        last = max(life(listed), 1)
        if message.proof == challenge and last < life(message.birth) <= last + MAX_AHEAD:
            listed = voter.births[sender] = message.birth
            del self.challenges[sender]
            self._keep_births(ctx)
        return KnownMsg(
            number,
            message.birth,
            message.nonce,
            listed,
            voter.promised.round,
            voter.lease,
            voter.known_births(),
            voter.sealed,
            life(listed) == 1 or self.founders.get(sender) == listed,
            challenge,
        )

    # Answers

    def _is_mine(self, message: FreshMsg | KnownMsg) -> bool:
        return (
            not self.voter.votes
            and message.config == self.voter.electorate.number
            and message.birth == self.birth
            and message.nonce == self.nonce
        )

    def on_fresh(self, ctx: Context, sender: MemberId, message: FreshMsg) -> None:
        """Another voter does not vote either."""
        if not self._is_mine(message):
            return
        if (
            not self.heard.get(sender, message.mine)
            == message.mine
            == self.fresh.get(sender, message.mine)
        ):
            self.heard.pop(sender, None)  # it has begun anew in between: which is the later birth?
            self._ask_anew(ctx)
            return
        self.fresh[sender] = message.mine
        self.highest = max(self.highest, message.incarnation)
        if self._nobody_votes():
            self._begin_with_all(ctx)

    def _nobody_votes(self) -> bool:
        """Whether all other voters have said that they do not, and it may begin with them."""
        electorate = self.voter.electorate
        may = self.founds or electorate.number > 0
        return may and len(self.fresh) == len(electorate.voters) - 1

    def _begin_with_all(self, ctx: Context) -> None:
        """Nobody seems to remember anything: wait, ask once more, and begin anew."""
        if ctx.now() < self.ready:
            self._wait(ctx)
        elif self.fresh != self.supposed:
            supposed = self.fresh
            self._ask_anew(ctx)
            self.supposed = supposed
        else:
            voter = self.voter
            self.founders = {**self.fresh, ctx.me.id: self.birth}
            voter.births = dict(self.founders)
            voter.begin_above(self.highest - 1)
            voter.keep_promise(ctx)
            keep(ctx, founders=sorted(self.founders.items()))
            self.founded = True
            self._vote(ctx)

    def on_known(self, ctx: Context, sender: MemberId, message: KnownMsg) -> None:
        """Another voter votes, and says what it knows of this one."""
        if not self._is_mine(message):
            return
        voters = self.voter.electorate.voters
        if len(message.births) != len(voters):
            return
        if message.listed != self.birth:
            new = self.proofs.get(sender) != message.challenge
            self.proofs[sender] = message.challenge
            if life(message.listed) >= life(self.birth) or life(self.birth) == 1:
                self._be_born(ctx, max(life(message.listed), life(self.birth)) + 1)
                self._ask_anew(ctx)
            elif new:
                self._ask_one(ctx, sender)
            return
        if message.counted:
            self.counted = message
            if ctx.now() >= self.ready:
                self._follow(ctx, message)
            else:
                self._wait(ctx)
            return
        self.fresh.pop(sender, None)
        self.known[sender] = message
        if message.lease is not None:  # it may be longer than what this voter accepts today
            ttl = min(message.lease.ttl, LONGER * self.voter.longest)
            self.ready = max(self.ready, self.began + self.voter.restart_wait(ttl))
        if self._is_ready(ctx):
            self._resume(ctx)
        elif len(self.known) >= self.voter.electorate.majority:
            self._wait(ctx)

    def _wait(self, ctx: Context) -> None:
        """Until it may vote; a timer that fires a rounding too early is not set for no time."""
        ctx.set_timer(ENROLL, max(self.ready - ctx.now(), self.patience / 16.0))

    def _follow(self, ctx: Context, known: KnownMsg) -> None:
        """Vote with those that began when this voter was there."""
        voter = self.voter
        voter.births = dict(zip(voter.electorate.voters, known.births, strict=True))
        voter.begin_above(known.promised)
        voter.keep_promise(ctx)
        self._vote(ctx)

    def _is_ready(self, ctx: Context) -> bool:
        enough = len(self.known) >= self.voter.electorate.majority
        return enough and ctx.now() >= self.ready

    def _resume(self, ctx: Context) -> None:
        """Go on from what the others have promised."""
        voter = self.voter
        births = dict(voter.births)
        for answer in self.known.values():
            for each, birth in zip(voter.electorate.voters, answer.births, strict=True):
                if life(birth) > life(births.get(each, 0)):
                    births[each] = birth
        voter.births = {**births, ctx.me.id: self.birth}
        highest = max(each.promised for each in self.known.values())
        if highest > voter.promised.round:
            voter.promised = Ballot(highest, 0, 0)
        told = [voter.lease, *(each.lease for each in self.known.values())]
        leases = [lease for lease in told if lease is not None]
        if leases:
            last = max(leases, key=lambda lease: lease.token)
            voter.lease = Lease(last.holder, last.incarnation, last.token, 0.0)
        seals = [each.sealed for each in self.known.values() if each.sealed is not None]
        if seals:
            last_seal = max(seals, key=lambda sealed: sealed.round)
            voter.sealed = Sealed(last_seal.round, last_seal.change, told=True)
        keep(ctx, promised=voter.promised, lease=voter.lease, sealed=voter.sealed)
        self._vote(ctx)

    def _vote(self, ctx: Context) -> None:
        ctx.cancel_timer(ENROLL)
        self.voter.votes = True
        self.counted = None
        self.fresh, self.known, self.heard, self.supposed = {}, {}, {}, {}
        if self.voter.durable:
            self._keep_births(ctx)
            keep(ctx, votes=True)

    def _keep_births(self, ctx: Context) -> None:
        keep(ctx, births=sorted(self.voter.births.items()))

    # In words

    def state(self) -> str:
        """Whether it votes, and why not; the same as long as the reason is."""
        voter = self.voter
        if voter.votes:
            return f"votes promised={voter.promised.round}"
        return "does not vote" + self._reason()

    def _reason(self) -> str:
        voter = self.voter
        need, others = voter.electorate.majority, len(voter.electorate.voters) - 1
        if self.ready == inf:
            return ""
        if not voter.durable:
            return " yet: it keeps nothing across restarts"
        if self.counted is not None or self._nobody_votes():
            return " yet: it remembers no vote, and no other voter did when it asked"
        if not self.founds and not voter.electorate.number and not self.known:
            return (
                ": it was told that the group began with others (initial=), and a majority of the "
                "voters that it was told of must know them: name the present ones; if all have "
                "lost their state, leave initial= out of all members' addresses"
            )
        if life(self.birth) == 1:
            return (
                f" yet: {len(self.fresh)} of the {others} other voters have answered, and as long "
                "as none of them remembers a vote all must"
            )
        lost = sum(life(birth) > 1 for birth in self.fresh.values())
        if others - lost < need:
            return (
                f": it has lost its disk, and so have {lost} other voters, and {need} that "
                "remember are needed: put disks back, or empty the state of all members: the "
                "voters then begin anew"
            )
        return f": it has lost its disk; {len(self.known)} of {need} voters that it needs answered"

    def excuse(self, now: float) -> str:
        """The same with the time left."""
        left = self.ready - now
        waits = 0.0 < left < inf
        return self.state() + (f"; it waits for {left:.1f} s more, one lease" if waits else "")

"""How a voter finds out whether it may vote: it must never have voted and forgotten.

Model      Voters may lose their disk, but fewer than a majority at a time, and not before all of
           them have begun to vote. A voter that comes with its disk has nothing to find out.
Idea       A voter without memory draws a number, its birth, and asks the others. If all of them
           are new like it, nobody can have voted, and their births become the roster (genesis). If
           one that votes has this very birth on its roster, the voter was counted when it was new
           and has not voted since. Otherwise it voted once and has forgotten: it begins another
           life, which a majority of voters other than it must take note of, takes over the highest
           round that any of them has promised, and stays silent for one longest lease.
Invariant  1. Whatever majority the forgotten votes were part of, one of those who took note was,
              too. If that one voted before it took note, the round is known to the voter again. If
              it votes afterwards, its vote says that the former life is over, and the two are not
              counted together.
           2. A lease that the former life accepted is over, by any clock, when the new one votes.
           3. Whoever answered "new" to somebody believes, when it begins to vote, in no former
              birth of that one: answers count only if they were given after the last doubt.
Cost       2(n - 1) messages for each voter once; one longest lease of silence after a lost disk.
Guarantee  With a majority of disks lost (two of three), a voter never votes again, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from hustings.core.choice import MemberId
from hustings.core.context import Context
from hustings.core.messages import Message
from hustings.protocols.quorum.lives import LIFE_BITS, life
from hustings.protocols.quorum.messages import Ballot, EnrollMsg, FreshMsg, KnownMsg, Lease
from hustings.protocols.quorum.records import keep, kept
from hustings.protocols.quorum.voter import Voter

ENROLL = "quorum-enroll"

MAX_DOUBLINGS = 5

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
        self.ready = inf  # from when on it may vote, by its clock, if it is to
        self.heard: dict[MemberId, int] = {}  # births of those that asked
        self.fresh: dict[MemberId, int] = {}  # births of those that answered, and do not vote
        self.known: dict[MemberId, KnownMsg] = {}  # answers of those that vote

    # The beginning

    def start(self, ctx: Context) -> None:
        """Read what there is, or ask."""
        voter = self.voter
        self.ready = ctx.now()
        if not voter.durable:
            self._start_diskless(ctx)
            return
        voter.recall(ctx)
        self.birth = kept(ctx.stored, "birth", int) or 0
        voter.births = dict(kept(ctx.stored, "births", list[tuple[MemberId, int]]) or [])
        voter.votes = kept(ctx.stored, "votes", bool) or False
        if voter.votes:
            return
        self.ready = ctx.now() + voter.restart_wait(voter.longest)
        if not self.birth:
            self._be_born(ctx, 1)
        self._ask_anew(ctx)

    def _start_diskless(self, ctx: Context) -> None:
        """Whatever was accepted before is over after one longest lease.

        Whatever round was promised before lies below the incarnation where that grows with the
        date; elsewhere tokens are ordered only within an epoch that somebody else keeps.
        """
        voter = self.voter
        voter.promised = Ballot(ctx.incarnation, 0, 0)
        self.ready += voter.restart_wait(voter.longest)
        ctx.set_timer(ENROLL, self.ready - ctx.now())

    def _be_born(self, ctx: Context, number: int) -> None:
        self.birth = number << LIFE_BITS | ctx.rng.bits() >> (64 - LIFE_BITS)
        keep(ctx, birth=self.birth)

    def begin_anew(self, ctx: Context) -> None:
        """Other voters were agreed on without this one: what it knows may be out of date.

        So it is as one that has forgotten.
        """
        voter = self.voter
        voter.sealed = None
        self.ready = ctx.now() + voter.longest
        if not voter.durable:
            voter.votes = False
            ctx.set_timer(ENROLL, voter.longest)
            return
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
        self.fresh, self.known, self.heard = {}, {}, {}
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
            return
        self._ask(ctx)

    def _ask_anew(self, ctx: Context) -> None:
        """Only answers to what is asked from now on count."""
        self.nonce = ctx.rng.bits() >> 2
        self.fresh, self.known = {}, {}
        self.tries = 0
        self._ask(ctx)

    def _ask(self, ctx: Context) -> None:
        electorate = self.voter.electorate
        question = EnrollMsg(electorate.number, self.birth, self.nonce)
        for other in self.reachable(ctx):
            if other != ctx.me.id and other not in self.known:
                ctx.send(other, question)  # also who did not vote: it may by now
        pause = self.patience * 2.0 ** min(self.tries, MAX_DOUBLINGS)
        self.tries += 1
        ctx.set_timer(ENROLL, pause)
        if len(electorate.voters) == 1:
            self._vote(ctx)  # there is nobody to ask

    # Questions of others

    def on_enroll(self, ctx: Context, sender: MemberId, message: EnrollMsg) -> Message:
        """Another voter asks whether it has voted."""
        voter = self.voter
        number = voter.electorate.number
        if not voter.votes:
            self.heard[sender] = message.birth
            if self.fresh.get(sender, message.birth) != message.birth:
                self._ask_anew(ctx)
            elif self.tries > 1:
                self.tries = 0  # somebody has come up: do not wait so long any more
                self._ask(ctx)
            return FreshMsg(number, message.birth, message.nonce, self.birth)
        listed = voter.births.get(sender, 0)
        if life(message.birth) > max(life(listed), 1):
            listed = voter.births[sender] = message.birth
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
        others = len(self.voter.electorate.voters) - 1
        lives = [life(birth) for birth in (self.birth, *self.fresh.values())]
        if len(self.fresh) == others and all(number == 1 for number in lives):
            self.voter.births = {**self.fresh, ctx.me.id: self.birth}
            self._vote(ctx)

    def on_known(self, ctx: Context, sender: MemberId, message: KnownMsg) -> None:
        """Another voter votes, and says what it knows of this one."""
        if not self._is_mine(message):
            return
        voters = self.voter.electorate.voters
        if len(message.births) != len(voters):
            return
        if message.listed != self.birth:
            if life(message.listed) >= life(self.birth) or life(self.birth) == 1:
                self._be_born(ctx, max(life(message.listed), life(self.birth)) + 1)
                self._ask_anew(ctx)
            return
        if life(self.birth) == 1:
            self.voter.births = dict(zip(voters, message.births, strict=True))
            self._vote(ctx)
            return
        self.fresh.pop(sender, None)
        self.known[sender] = message
        if self._is_ready(ctx):
            self._resume(ctx)
        elif len(self.known) >= self.voter.electorate.majority:
            ctx.set_timer(ENROLL, max(self.ready - ctx.now(), 0.0))

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
            voter.sealed = max(seals, key=lambda sealed: sealed.round)
        keep(ctx, promised=voter.promised, lease=voter.lease, sealed=voter.sealed)
        self._vote(ctx)

    def _vote(self, ctx: Context) -> None:
        ctx.cancel_timer(ENROLL)
        self.voter.votes = True
        self.fresh, self.known, self.heard = {}, {}, {}
        if self.voter.durable:
            self._keep_births(ctx)
            keep(ctx, votes=True)

    def _keep_births(self, ctx: Context) -> None:
        keep(ctx, births=sorted(self.voter.births.items()))

    def state(self) -> str:
        """Why it does not vote, in a sentence."""
        voter = self.voter
        if voter.votes:
            return f"votes promised={voter.promised.round}"
        if self.ready == inf:
            return "does not vote"
        if not voter.durable:
            return f"votes from {self.ready:g} on: it keeps nothing across restarts"
        if life(self.birth) == 1:
            others = len(voter.electorate.voters) - 1
            return (
                f"does not vote yet: {len(self.fresh)} of the {others} other voters have answered, "
                "and the first time all of them must"
            )
        need, others = voter.electorate.majority, len(voter.electorate.voters) - 1
        lost = sum(life(birth) > 1 for birth in self.fresh.values())
        if others - lost < need:
            return (
                f"never votes again: it has lost its disk, and so have {lost} other voters; "
                f"{need} that remember are needed: begin a new group, or put disks back"
            )
        return (
            f"does not vote: it has lost its disk; {len(self.known)} of {need} voters that it "
            f"needs have answered, and it stays silent until {self.ready:g}"
        )

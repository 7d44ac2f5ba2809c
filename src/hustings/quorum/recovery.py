"""How an acceptor finds out whether it may vote: it must never have voted and forgotten it.

Model      Acceptors may lose their disks: fewer than a majority at a time, or all of them. An
           acceptor that comes back with its disk has nothing to find out.
Idea       An acceptor without a disk draws an epoch and asks the others. There are three cases. If
           no other acceptor votes, none remembers anything: the epochs drawn become the roster of
           all (genesis). If a voting acceptor has this very epoch on the roster that it began with,
           this acceptor was counted there and has not voted since. Otherwise this acceptor voted
           once and has forgotten it. It begins another epoch, which a majority of the other voters
           must note, and takes over the highest round that any of them has promised. They note the
           epoch only if the acceptor repeats a number that each of them has sent to it. So no other
           member can end its epoch. In each case it stays silent for one longest lease first.
Invariant  1. Every majority that a forgotten vote was part of shares a member with the voters that
              noted the new epoch. If that member voted before it noted the epoch, the acceptor has
              learned its round. If it voted afterwards, its vote says that the former epoch is
              over, and the two votes are not counted together.
           2. A lease that was accepted in the former epoch is over, by any clock, when the new
              epoch votes. This also holds when all epochs are new, and when the holder is cut off
              and is no voter.
           3. Suppose an acceptor has answered another one "I do not vote either". When it begins
              to vote, it believes in no former epoch of that other acceptor. Answers count only if
              they were given after the last doubt.
           4. A genesis needs an instant at which no acceptor voted. All are asked twice: an
              acceptor that has the same epoch both times, and votes neither time, did not vote in
              between. Voters that came later by their settings (initial=) have no genesis: the
              first voters may vote elsewhere.
           5. The rounds of a genesis lie above the first incarnation of every voter. Where
              incarnations grow with the date, and one voter's date is right, they lie above all
              rounds before.
Cost       4(n - 1) messages for each voter once, and up to 2(n - 1) more for another epoch; one
           longest lease of silence without a disk.
Guarantee  Tokens grow, whatever clocks do, while fewer than a majority lose their disks. If all
           lose them, tokens grow as far as 5 goes. In between (two of three) the voters that lost
           their disks do not vote, and say so, until the disks are back or all disks are emptied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from hustings.core.choice import MemberId
from hustings.core.context import Context
from hustings.core.messages import Message
from hustings.quorum.acceptor import Acceptor, keep, kept
from hustings.quorum.epochs import EPOCH_BITS, epoch_number
from hustings.quorum.messages import (
    Ballot,
    Lease,
    RecoveryEmptyMsg,
    RecoveryMsg,
    RecoveryStateMsg,
    Sealed,
)

ENROLL = "quorum-enroll"

MAX_DOUBLINGS = 5
MAX_AHEAD = 64  # incarnations of another voter that this one may have missed
LONGER = 16.0  # times the longest lease: the limit of any wait for a lease that others report

Reachable = Callable[[Context], Sequence[MemberId]]  # voters to write to


class AcceptorRecovery:
    """How one acceptor gets to its vote."""

    def __init__(self, acceptor: Acceptor, patience: float, reachable: Reachable) -> None:
        self.acceptor = acceptor
        self.patience = patience
        self.reachable = reachable
        self.epoch = 0
        self.nonce = 0
        self.tries = 0
        self.began = 0.0  # when recovery began, by its clock
        self.ready = inf  # when it may vote, if it is going to
        self.founds = True  # whether a genesis is allowed: not with voters that came later
        self.founded = False  # whether it votes because no acceptor remembered anything
        self.heard: dict[MemberId, int] = {}  # epochs of the acceptors that asked
        # epochs of the acceptors that answered, and do not vote
        self.fresh: dict[MemberId, int] = {}
        self.known: dict[MemberId, RecoveryStateMsg] = {}  # answers of the acceptors that vote
        # the earlier `fresh`, if it had all others, which are asked again
        self.supposed: dict[MemberId, int] = {}
        self.highest = 0  # highest incarnation of those that do not vote
        self.counted: RecoveryStateMsg | None = (
            None  # an answer that this epoch was there at a genesis
        )
        self.founders: dict[MemberId, int] = {}  # epochs of the last genesis
        # the number that each other acceptor must repeat before its new epoch is noted
        self.challenges: dict[MemberId, int] = {}
        # the numbers that this acceptor must repeat to others
        self.proofs: dict[MemberId, int] = {}

    # The beginning

    def start(self, ctx: Context) -> None:
        """Read the disk, or ask the others."""
        acceptor = self.acceptor
        self.began = self.ready = ctx.now()
        if not acceptor.durable:
            self._start_diskless(ctx)
            return
        acceptor.recall(ctx)
        self.epoch = kept(ctx.stored, "birth", int) or 0
        acceptor.epochs = dict(kept(ctx.stored, "births", list[tuple[MemberId, int]]) or [])
        self.founders = dict(kept(ctx.stored, "founders", list[tuple[MemberId, int]]) or [])
        acceptor.votes = kept(ctx.stored, "votes", bool) or False
        if acceptor.votes:
            return
        self.ready = ctx.now() + acceptor.restart_wait(acceptor.longest)
        acceptor.begin_above(ctx.incarnation - 1)
        if not self.epoch:
            self._begin_epoch(ctx, 1)
        self._ask_anew(ctx)

    def _start_diskless(self, ctx: Context) -> None:
        """Start without a disk: an earlier lease is over after one longest lease.

        Earlier promised rounds lie below the incarnation, where incarnations grow with the date.
        Elsewhere tokens are ordered only as far as another service keeps them in order.
        """
        acceptor = self.acceptor
        acceptor.begin_above(ctx.incarnation)
        self.ready += acceptor.restart_wait(acceptor.longest)
        ctx.set_timer(ENROLL, self.ready - ctx.now())

    def _begin_epoch(self, ctx: Context, number: int) -> None:
        self.epoch = number << EPOCH_BITS | ctx.rng.bits() >> (64 - EPOCH_BITS)
        self.counted = None
        keep(ctx, birth=self.epoch)

    def begin_anew(self, ctx: Context) -> None:
        """Recover again: the voters were changed without this one, so its state may be out of date.

        It acts like an acceptor that has lost its disk.
        """
        acceptor = self.acceptor
        acceptor.sealed = None
        self.began, self.ready = ctx.now(), ctx.now() + acceptor.longest
        acceptor.votes = False
        keep(ctx, votes=False, sealed=None)
        self._begin_epoch(ctx, epoch_number(self.introduce(ctx)) + 1)
        self._ask_anew(ctx)

    def introduce(self, ctx: Context) -> int:
        """This member's epoch. Draw an epoch if there is none."""
        self.epoch = self.epoch or kept(ctx.stored, "birth", int) or 0
        if not self.epoch:
            self._begin_epoch(ctx, 1)
        return self.epoch

    def seat(self, ctx: Context) -> None:
        """Begin as an acceptor in a configuration in which this member never voted."""
        self.ready = ctx.now()
        self.acceptor.epochs[ctx.me.id] = self.introduce(ctx)
        self._vote(ctx)

    def retire(self, ctx: Context) -> None:
        """This member is no longer a voter."""
        if self.ready == inf:
            return
        self.acceptor.votes, self.acceptor.sealed = False, None
        self.ready = inf
        self.counted = None
        self.fresh, self.known, self.heard, self.supposed = {}, {}, {}, {}
        ctx.cancel_timer(ENROLL)
        keep(ctx, votes=False, sealed=None)

    def assume(self, ctx: Context, holder: MemberId, term: int, ttl: float) -> None:
        """Begin in the middle: all vote, and have just accepted a lease of `holder`."""
        acceptor = self.acceptor
        self.ready = ctx.now()
        acceptor.promised = Ballot(term, holder, 1)
        acceptor.lease = Lease(holder, 1, term, ttl)
        acceptor.until = ctx.now() + ttl
        acceptor.keep_promise(ctx)
        acceptor.keep_lease(ctx)
        self.seat(ctx)

    def on_timer(self, ctx: Context) -> None:
        """Begin to vote, or ask the others again that have not answered."""
        if self.acceptor.votes:
            return
        if not self.acceptor.durable:
            self.acceptor.votes = ctx.now() >= self.ready
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
        """Ask again: only answers to questions from now on count."""
        self.nonce = ctx.rng.bits() >> 2
        self.fresh, self.known, self.supposed = {}, {}, {}
        self.tries = 0
        self._ask(ctx)

    def _ask(self, ctx: Context) -> None:
        for other in self.reachable(ctx):
            if other != ctx.me.id and other not in self.known:
                self._ask_one(ctx, other)  # also a voter that did not vote: it may vote by now
        pause = self.patience * 2.0 ** min(self.tries, MAX_DOUBLINGS)
        self.tries += 1
        ctx.set_timer(ENROLL, pause)
        if len(self.acceptor.electorate.voters) == 1:
            self._begin_with_all(ctx)  # there is no other voter to ask

    def _ask_one(self, ctx: Context, other: MemberId) -> None:
        number, proof = self.acceptor.electorate.number, self.proofs.get(other, 0)
        ctx.send(other, RecoveryMsg(number, self.epoch, self.nonce, proof))

    # Questions of others

    def on_enroll(self, ctx: Context, sender: MemberId, message: RecoveryMsg) -> Message:
        """Another voter asks whether it has ever voted."""
        acceptor = self.acceptor
        number = acceptor.electorate.number
        if not acceptor.votes:
            self.heard[sender] = message.epoch
            if sender in self.known or self.fresh.get(sender, message.epoch) != message.epoch:
                self._ask_anew(ctx)  # the other voter has lost its disk since it answered
            elif self.tries > 1:
                self.tries = 0  # another voter has come up: shorten the waits again
                self._ask(ctx)
            return RecoveryEmptyMsg(
                number, message.epoch, message.nonce, self.epoch, ctx.incarnation
            )
        listed, challenge = acceptor.epochs.get(sender, 0), 0
        if message.epoch != listed:
            challenge = self.challenges.setdefault(sender, (ctx.rng.bits() >> 2) | 1)
        last = max(epoch_number(listed), 1)
        if message.proof == challenge and last < epoch_number(message.epoch) <= last + MAX_AHEAD:
            listed = acceptor.epochs[sender] = message.epoch
            del self.challenges[sender]
            self._keep_epochs(ctx)
        return RecoveryStateMsg(
            number,
            message.epoch,
            message.nonce,
            listed,
            acceptor.promised.round,
            acceptor.lease,
            acceptor.known_epochs(),
            acceptor.sealed,
            epoch_number(listed) == 1 or self.founders.get(sender) == listed,
            challenge,
        )

    # Answers

    def _is_mine(self, message: RecoveryEmptyMsg | RecoveryStateMsg) -> bool:
        return (
            not self.acceptor.votes
            and message.config == self.acceptor.electorate.number
            and message.epoch == self.epoch
            and message.nonce == self.nonce
        )

    def on_fresh(self, ctx: Context, sender: MemberId, message: RecoveryEmptyMsg) -> None:
        """Another voter does not vote either."""
        if not self._is_mine(message):
            return
        if (
            not self.heard.get(sender, message.mine)
            == message.mine
            == self.fresh.get(sender, message.mine)
        ):
            # it has begun anew in between, and which epoch is the later one is unknown
            self.heard.pop(sender, None)
            self._ask_anew(ctx)
            return
        self.fresh[sender] = message.mine
        self.highest = max(self.highest, message.incarnation)
        if self._nobody_votes():
            self._begin_with_all(ctx)

    def _nobody_votes(self) -> bool:
        """Whether all other voters have said that they do not vote, and a genesis is allowed."""
        electorate = self.acceptor.electorate
        may = self.founds or electorate.number > 0
        return may and len(self.fresh) == len(electorate.voters) - 1

    def _begin_with_all(self, ctx: Context) -> None:
        """No voter seems to remember a vote: wait, ask once more, then begin with all others."""
        if ctx.now() < self.ready:
            self._wait(ctx)
        elif self.fresh != self.supposed:
            supposed = self.fresh
            self._ask_anew(ctx)
            self.supposed = supposed
        else:
            acceptor = self.acceptor
            self.founders = {**self.fresh, ctx.me.id: self.epoch}
            acceptor.epochs = dict(self.founders)
            acceptor.begin_above(self.highest - 1)
            acceptor.keep_promise(ctx)
            keep(ctx, founders=sorted(self.founders.items()))
            self.founded = True
            self._vote(ctx)

    def on_known(self, ctx: Context, sender: MemberId, message: RecoveryStateMsg) -> None:
        """A voter that votes says what it knows of this acceptor."""
        if not self._is_mine(message):
            return
        voters = self.acceptor.electorate.voters
        if len(message.epochs) != len(voters):
            return
        if message.listed != self.epoch:
            new = self.proofs.get(sender) != message.challenge
            self.proofs[sender] = message.challenge
            if (
                epoch_number(message.listed) >= epoch_number(self.epoch)
                or epoch_number(self.epoch) == 1
            ):
                self._begin_epoch(
                    ctx, max(epoch_number(message.listed), epoch_number(self.epoch)) + 1
                )
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
        # the lease may be longer than those that this voter accepts today
        if message.lease is not None:
            ttl = min(message.lease.ttl, LONGER * self.acceptor.longest)
            self.ready = max(self.ready, self.began + self.acceptor.restart_wait(ttl))
        if self._is_ready(ctx):
            self._resume(ctx)
        elif len(self.known) >= self.acceptor.electorate.majority:
            self._wait(ctx)

    def _wait(self, ctx: Context) -> None:
        """Wait until it may vote. The shortest pause covers timers that fire a little too early."""
        ctx.set_timer(ENROLL, max(self.ready - ctx.now(), self.patience / 16.0))

    def _follow(self, ctx: Context, known: RecoveryStateMsg) -> None:
        """Vote with the acceptors that began when this voter was there."""
        acceptor = self.acceptor
        acceptor.epochs = dict(zip(acceptor.electorate.voters, known.epochs, strict=True))
        acceptor.begin_above(known.promised)
        acceptor.keep_promise(ctx)
        self._vote(ctx)

    def _is_ready(self, ctx: Context) -> bool:
        enough = len(self.known) >= self.acceptor.electorate.majority
        return enough and ctx.now() >= self.ready

    def _resume(self, ctx: Context) -> None:
        """Continue from the promises of the others."""
        acceptor = self.acceptor
        epochs = dict(acceptor.epochs)
        for answer in self.known.values():
            for each, epoch in zip(acceptor.electorate.voters, answer.epochs, strict=True):
                if epoch_number(epoch) > epoch_number(epochs.get(each, 0)):
                    epochs[each] = epoch
        acceptor.epochs = {**epochs, ctx.me.id: self.epoch}
        highest = max(each.promised for each in self.known.values())
        if highest > acceptor.promised.round:
            acceptor.promised = Ballot(highest, 0, 0)
        told = [acceptor.lease, *(each.lease for each in self.known.values())]
        leases = [lease for lease in told if lease is not None]
        if leases:
            last = max(leases, key=lambda lease: lease.token)
            acceptor.lease = Lease(last.holder, last.incarnation, last.token, 0.0)
        seals = [each.sealed for each in self.known.values() if each.sealed is not None]
        if seals:
            last_seal = max(seals, key=lambda sealed: sealed.round)
            acceptor.sealed = Sealed(last_seal.round, last_seal.change, told=True)
        keep(ctx, promised=acceptor.promised, lease=acceptor.lease, sealed=acceptor.sealed)
        self._vote(ctx)

    def _vote(self, ctx: Context) -> None:
        ctx.cancel_timer(ENROLL)
        self.acceptor.votes = True
        self.counted = None
        self.fresh, self.known, self.heard, self.supposed = {}, {}, {}, {}
        if self.acceptor.durable:
            self._keep_epochs(ctx)
            keep(ctx, votes=True)

    def _keep_epochs(self, ctx: Context) -> None:
        keep(ctx, births=sorted(self.acceptor.epochs.items()))

    # In words

    def state(self) -> str:
        """Whether it votes, or why not. The text stays the same as long as the reason does."""
        acceptor = self.acceptor
        if acceptor.votes:
            return f"votes promised={acceptor.promised.round}"
        return "does not vote" + self._reason()

    def _reason(self) -> str:
        acceptor = self.acceptor
        need, others = acceptor.electorate.majority, len(acceptor.electorate.voters) - 1
        if self.ready == inf:
            return ""
        if not acceptor.durable:
            return " yet: it keeps nothing across restarts"
        if self.counted is not None or self._nobody_votes():
            return " yet: it remembers no vote, and no other voter did when it asked"
        if not self.founds and not acceptor.electorate.number and not self.known:
            return (
                ": it was told that the group began with others (initial=), and a majority of the "
                "voters that it was told of must know them: name the present ones; if all have "
                "lost their state, leave initial= out of all members' addresses"
            )
        if epoch_number(self.epoch) == 1:
            return (
                f" yet: {len(self.fresh)} of the {others} other voters have answered, and as long "
                "as none of them remembers a vote all must"
            )
        lost = sum(epoch_number(epoch) > 1 for epoch in self.fresh.values())
        if others - lost < need:
            return (
                f": it has lost its disk, and so have {lost} other voters, and {need} that "
                "remember are needed: put disks back, or empty the state of all members: the "
                "voters then begin anew"
            )
        return f": it has lost its disk; {len(self.known)} of {need} voters that it needs answered"

    def excuse(self, now: float) -> str:
        """The reason in `state`, with the time left."""
        left = self.ready - now
        waits = 0.0 < left < inf
        return self.state() + (f"; it waits for {left:.1f} s more, one lease" if waits else "")

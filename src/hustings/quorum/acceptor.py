"""An acceptor: what it promises, what it accepts, and what it remembers of both.

Model      An acceptor crashes and comes back with what it stored. Its clock's rate is within
           1 +- drift.
Idea       An acceptor promises rounds in growing order and accepts one lease at a time. A proposer
           asks for a round before it asks for the lease. So of several proposers at once the one
           with the highest round goes on, and the others learn of it. Without rounds each of them
           could block a part of the acceptors for one lease.
Invariant  1. While a lease is valid by this acceptor's clock, no other holder's lease replaces it.
           2. Nothing is promised or accepted below the highest round promised. A round belongs to
              the one incarnation that it was promised to.
           3. Each promise and each acceptance is stored before it is sent. A lease that an earlier
              incarnation accepted counts for its whole time from the restart on.
           Two majorities share an acceptor. By 1 the shared one never has leases of two holders at
           once, so no two members hold at one time. By 2 a later holder has a higher round. By 3 a
           crash changes nothing.
Cost       One answer per question, one write per new round or holder, no write per renewal.
Guarantee  See `proposer`: one acceptor alone guarantees nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import TypeVar

import msgspec

from hustings.core.choice import MemberId
from hustings.core.context import Context
from hustings.core.errors import BadInput
from hustings.quorum.config import Electorate
from hustings.quorum.epochs import epoch_number
from hustings.quorum.messages import (
    NOBODY,
    AcceptedMsg,
    AcceptMsg,
    AvailableMsg,
    Ballot,
    ConfAcceptedMsg,
    ConfAcceptMsg,
    ConfInstallMsg,
    ConfPrepareMsg,
    ConfPromiseMsg,
    Lease,
    NackMsg,
    PrepareMsg,
    PromiseMsg,
    ReleaseMsg,
    Sealed,
)

T = TypeVar("T")

PREFIX = "quorum-"  # of the names under which an acceptor's state is stored
MAX_WAITING = 32  # refused members that a voter remembers


class Acceptor:
    """One acceptor's state. Its methods return the answer; the caller sends it."""

    def __init__(self, electorate: Electorate, longest: float, *, durable: bool = True) -> None:
        self.electorate = electorate
        self.longest = longest
        self.durable = durable
        self.promised = NOBODY
        self.lease: Lease | None = None  # the lease accepted last; it may have ended
        self.until = -inf  # when the lease ends, by this clock
        self.epochs: dict[MemberId, int] = {}  # the known epochs of all voters
        self.votes = False  # whether it votes: it has forgotten nothing that others count on
        # how this configuration ends: the acceptor votes here no more
        self.sealed: Sealed | None = None
        # the proposer that may seal, and its ticket
        self.surveyed: tuple[Ballot, int] | None = None
        # a ballot that was given back: no request of this round is accepted any more
        self.spent = NOBODY
        # the member that the last holder wants to be next, ...
        self.successor: MemberId | None = None
        self.successor_until = -inf  # ... and until when
        self.waiting: dict[MemberId, None] = {}  # members that were refused the lease

    # Storage

    def recall(self, ctx: Context) -> None:
        """Load what an earlier incarnation stored."""
        self.promised = kept(ctx.stored, "promised", Ballot) or NOBODY
        self.lease = kept(ctx.stored, "lease", Lease)
        self.sealed = kept(ctx.stored, "sealed", Sealed)
        if self.lease is not None:
            self.until = ctx.now() + self.restart_wait(self.lease.ttl)

    def begin_above(self, number: int) -> None:
        """Promise no round up to this one: earlier rounds may have been promised and forgotten."""
        if number > self.promised.round:
            self.promised = Ballot(number, 0, 0)

    def restart_wait(self, lasting: float) -> float:
        """How long after a restart a lease of this length may still count."""
        return lasting

    def keep_promise(self, ctx: Context) -> None:
        """Store the promise, before the acceptor sends it."""
        if self.durable:
            keep(ctx, promised=self.promised)

    def keep_lease(self, ctx: Context) -> None:
        """Store the lease, before the acceptor says that it has accepted it."""
        if self.durable:
            keep(ctx, lease=self.lease)

    # The rules

    def is_leased(self, now: float) -> bool:
        """Whether a member holds the lease, as far as this acceptor knows."""
        return self.lease is not None and now < self.until

    def is_taken(self, ballot: Ballot, now: float) -> bool:
        """Whether another member holds the lease, or the lease is reserved for another member."""
        if self.lease is not None and self.is_leased(now):
            return not self.lease.is_of(ballot)
        return now < self.successor_until and ballot.holder != self.successor

    def is_outdone(self, ballot: Ballot) -> bool:
        """Whether a higher round was promised, or this round to another proposer."""
        return ballot.round <= self.promised.round and ballot != self.promised

    def may_promise(self, ballot: Ballot, now: float) -> bool:
        """Whether this round may be promised, or a lease in it accepted."""
        return not self.is_taken(ballot, now) and not self.is_outdone(ballot)

    # Questions

    def prepare(self, ctx: Context, sender: MemberId, message: PrepareMsg) -> PromiseMsg | NackMsg:
        """A proposer asks for a round."""
        ballot = Ballot(message.round, sender, message.incarnation)
        if ballot == NOBODY or not self.may_promise(ballot, ctx.now()):
            return self._refuse(ctx, ballot)
        self.promise(ctx, ballot)
        return PromiseMsg(
            self.electorate.number,
            ballot.round,
            ballot.incarnation,
            self.known_epochs(),
            self.lease,
        )

    def promise(self, ctx: Context, ballot: Ballot) -> None:
        """Promise this round: from now on, accept and promise no lower round."""
        if ballot != self.promised:
            self.promised = ballot
            self.keep_promise(ctx)

    def propose(self, ctx: Context, sender: MemberId, message: AcceptMsg) -> AcceptedMsg | NackMsg:
        """A proposer asks for the lease, or renews it."""
        ballot = Ballot(message.round, sender, message.incarnation)
        sound = 0 < message.token <= message.round and 0 < message.ttl <= self.longest
        if not sound or ballot == self.spent or not self.may_promise(ballot, ctx.now()):
            return self._refuse(ctx, ballot)
        self.promise(ctx, ballot)
        self._accept(ctx, Lease(sender, message.incarnation, message.token, message.ttl))
        self.waiting.pop(sender, None)
        number, epochs = self.electorate.number, self.known_epochs()
        return AcceptedMsg(number, ballot.round, ballot.incarnation, message.request, epochs)

    def _accept(self, ctx: Context, lease: Lease) -> None:
        """Accept a lease. Never shorten an earlier acceptance, neither here nor on the disk."""
        until = ctx.now() + lease.ttl
        before = self.lease
        if before is not None and (before.holder, before.incarnation, before.token) == (
            lease.holder,
            lease.incarnation,
            lease.token,
        ):
            until = max(until, self.until)
            lease = before if before.ttl >= lease.ttl else lease
        self.until = until
        if lease != before:
            self.lease = lease
            self.keep_lease(ctx)

    def release(self, ctx: Context, sender: MemberId, message: ReleaseMsg, reserve: float) -> bool:
        """A proposer gives the lease back. Return True if it held the lease here."""
        ballot = Ballot(message.round, sender, message.incarnation)
        if ballot == self.promised:
            self.spent = ballot
        lease, now = self.lease, ctx.now()
        if lease is None or not lease.is_of(ballot) or lease.token != message.token:
            return False
        if not self.is_leased(now):
            return False
        self.lease = Lease(lease.holder, lease.incarnation, lease.token, 0.0)
        self.until = -inf
        self.keep_lease(ctx)
        if message.to is not None and message.to != sender:
            self.successor, self.successor_until = message.to, now + min(reserve, lease.ttl)
        return True

    def note_waiting(self, member: MemberId) -> None:
        """Remember a member that was refused, to tell it when the lease is available."""
        if len(self.waiting) < MAX_WAITING:
            self.waiting[member] = None

    def freed(self) -> tuple[AvailableMsg, list[MemberId]]:
        """The message for the waiting members, the reserved one first. Forget these members."""
        waiting, self.waiting = list(self.waiting), {}
        waiting.sort(key=lambda member: member != self.successor)
        token = 0 if self.lease is None else self.lease.token
        return AvailableMsg(self.electorate.number, token), waiting

    def _refuse(self, ctx: Context, ballot: Ballot) -> NackMsg:
        now = ctx.now()
        lease, remaining = None, 0.0
        if self.is_taken(ballot, now):
            if self.is_leased(now):
                lease, remaining = self.lease, self.until - now
            else:
                remaining = self.successor_until - now
            self.note_waiting(ballot.holder)
        return NackMsg(
            self.electorate.number,
            ballot.round,
            ballot.incarnation,
            self.promised.round,
            lease,
            remaining,
        )

    # The end of a configuration

    def survey(
        self, ctx: Context, sender: MemberId, message: ConfPrepareMsg
    ) -> ConfPromiseMsg | NackMsg:
        """A member asks for a round to change the voters. A lease does not prevent that."""
        ballot = Ballot(message.round, sender, message.incarnation)
        if self.is_outdone(ballot):
            return self._refuse(ctx, ballot)
        self.promise(ctx, ballot)
        if self.surveyed is None or self.surveyed[0] != ballot:
            self.surveyed = (ballot, ctx.rng.bits() >> 2)
        number, epochs, ticket = self.electorate.number, self.known_epochs(), self.surveyed[1]
        return ConfPromiseMsg(number, ballot.round, ballot.incarnation, epochs, self.sealed, ticket)

    def seal(
        self, ctx: Context, sender: MemberId, message: ConfAcceptMsg
    ) -> ConfAcceptedMsg | NackMsg:
        """A member ends this configuration: stop voting in it."""
        ballot = Ballot(message.round, sender, message.incarnation)
        if ballot != self.promised or self.surveyed != (ballot, message.ticket):
            return self._refuse(ctx, ballot)
        sealed = Sealed(ballot.round, message.change)
        if sealed != self.sealed:
            self.sealed = sealed
            keep(ctx, sealed=sealed)  # before another member hears that this voter votes no more
        number, epochs = self.electorate.number, self.known_epochs()
        return ConfAcceptedMsg(number, ballot.round, ballot.incarnation, epochs)

    def last_lease(self, ctx: Context) -> Lease | None:
        """The lease accepted last; its ttl is 0 if it is over."""
        lease = self.lease
        if lease is None or self.is_leased(ctx.now()):
            return lease
        return Lease(lease.holder, lease.incarnation, lease.token, 0.0)

    def install(self, ctx: Context, message: ConfInstallMsg) -> None:
        """Begin to vote in another configuration, with the state that the last one handed on."""
        if message.promised > self.promised.round:
            self.promised = Ballot(message.promised, 0, 0)
        self.lease, self.sealed, self.spent = message.lease, None, NOBODY
        self.surveyed = None
        self.until = -inf if message.lease is None else ctx.now() + message.lease.ttl
        self.successor_until = -inf
        change = message.change
        self.epochs = {each: self.epochs.get(each, 0) for each in change.voters}
        if epoch_number(self.epochs.get(change.newcomer, 0)) <= 1:
            self.epochs[change.newcomer] = change.epoch
        if self.durable:
            epochs = sorted(self.epochs.items())
            keep(ctx, promised=self.promised, lease=self.lease, sealed=None, births=epochs)

    def known_epochs(self) -> tuple[int, ...]:
        """The epoch of each voter that this one knows, in the order of the voters."""
        return tuple(self.epochs.get(each, 0) for each in self.electorate.voters)


# What is stored


def keep(ctx: Context, **fields: object) -> None:
    """Store fields durably before any later message of this handler leaves."""
    ctx.persist(**{PREFIX + name: msgspec.to_builtins(value) for name, value in fields.items()})


def kept(stored: Mapping[str, object], name: str, kind: type[T]) -> T | None:
    """The value that an earlier incarnation stored, or None.

    A voter that cannot read its own promises must not vote, and does not start.
    """
    value = stored.get(PREFIX + name)
    if value is None:
        return None
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise BadInput(
            f"what this voter stored as {PREFIX}{name} is not readable: {error}"
        ) from None

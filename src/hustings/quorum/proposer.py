"""A proposer: it asks the voters, counts their votes, and knows from when on it holds the lease.

Model      Messages may be late, lost, doubled and out of order; voters are as `acceptor` says.
Idea       Ask a majority for a round (PREPARE), then for the lease in it (ACCEPT). A renewal is the
           second question again: one round trip, no new round. The round in which the lease was
           first asked for is its token.
Invariant  1. A request counts as granted only when a majority accepted it, or a later request in
              the same round. All of these votes were cast after the request was made.
           2. A token is the round, or is kept from before. It is kept only if a majority of those
              that promised this round have accepted no higher token since. If another member had
              been granted a higher token in between, one of them would have accepted it.
           3. Votes are counted together only if none of them comes from an epoch that another
              voter knows to be over. What an acceptor promised before it lost its disk does not
              count, however late it arrives.
Cost       2 round trips for a new holder, 1 for a renewal, with all voters.
Guarantee  Tokens grow from holder to holder, whatever clocks do. While clock rates stay within
           1 +- drift, the holder is alone, if it counts the granted time from when it asked and
           shortens it by the drift. Two proposers at once may outbid each other for a while: each
           waits a random time.
"""

from __future__ import annotations

from collections.abc import Mapping

from hustings.core.choice import MemberId
from hustings.core.context import Context
from hustings.core.guard import Freed, Granted, Held, Verdict
from hustings.core.messages import Message
from hustings.quorum.config import Electorate
from hustings.quorum.epochs import EpochCheck
from hustings.quorum.messages import (
    MAX_NUMBER,
    AcceptedMsg,
    AcceptMsg,
    AvailableMsg,
    Lease,
    NackMsg,
    PrepareMsg,
    PromiseMsg,
    ReleaseMsg,
)

AGAIN = "quorum-again"

IDLE = "idle"
PREPARING = "preparing"  # wants a round
PROPOSING = "proposing"  # has a round: asks for the lease, or holds it

MAX_SENT = 64  # requests that an answer may still come to
MAX_DOUBLINGS = 5


class Proposer:
    """One member's proposer; messages for all voters are collected in `outbox`."""

    def __init__(self, electorate: Electorate, delta: float) -> None:
        self.electorate = electorate
        self.delta = delta
        self.phase = IDLE
        self.wanted = False  # whether this member wants the lease, unless another member holds it
        self.round = 0
        self.token = 0  # the token that was asked for or granted, and not given back
        self.highest = 0  # the highest round heard of
        self.request = 0
        self.ttl = 0.0
        self.sent: dict[int, float] = {}  # requests that were proposed in this round, and their ttl
        self.granted = 0  # the last request that was granted
        self.won = 0  # the last token that was granted
        self.outdone = False  # whether a voter promised a higher round to another member
        self.bumps = 0  # rounds in a row that lost to a higher round
        self.jumped = False  # whether it has gone on at once after one of these rounds
        self.resting = False  # whether it lets other members go first for a while
        self.promises: dict[MemberId, PromiseMsg] = {}
        self.accepts: dict[MemberId, int] = {}  # the latest request that each voter accepted
        self.refusals: dict[MemberId, NackMsg] = {}
        self.epoch_check = EpochCheck()
        self.outbox: list[Message] = []
        self.verdicts: list[Verdict] = []

    def majority(self) -> int:
        """The number of votes that decides."""
        return self.electorate.majority

    # What its member wants

    def acquire(self, ctx: Context, ttl: float, request: int) -> None:
        """Ask for the lease, or renew it."""
        self.request, self.ttl, self.wanted = request, ttl, True
        if self.phase == PROPOSING and not self.outdone:
            self._send_proposal(ctx)
        elif self.phase == PREPARING and not self.outdone:
            self._send_prepare(ctx)
        elif not self.resting:
            self.begin(ctx)

    def release(self, ctx: Context, to: MemberId | None) -> None:
        """Give the lease back, and stop asking for it."""
        if self.phase != IDLE or self.token:
            self._send_release(ctx, to)
        self.wanted = False
        self._stop(ctx)

    def _send_release(self, ctx: Context, to: MemberId | None) -> None:
        """Send the release. From now on no vote for this token counts."""
        number, token = self.electorate.number, self.token or self.round
        self.outbox.append(ReleaseMsg(number, self.round, ctx.incarnation, token, to))
        self.token = 0

    def again(self, ctx: Context) -> None:
        """Ask again: the wait for other proposers is over.

        A member that holds no lease must make a new request: its old request would be granted too
        late to be of use.
        """
        self.resting = False
        if not self.wanted or self.phase == PROPOSING:
            return
        if self.token:
            self.begin(ctx)
        else:
            self._stop(ctx)
            self.verdicts.append(Freed(0))

    def move(self, ctx: Context, electorate: Electorate) -> None:
        """The voters have changed: votes of the former voters no longer count."""
        self.electorate = electorate
        self._stop(ctx)
        self.again(ctx)

    # Asking

    def begin(self, ctx: Context) -> None:
        """Ask for a round above all rounds heard of."""
        ctx.cancel_timer(AGAIN)
        if self.highest >= MAX_NUMBER:
            self.phase = IDLE
            return  # no rounds are left: only a forged message can cause this
        self.round = self.highest = self.highest + 1
        self.phase = PREPARING
        self._forget_votes()
        self._send_prepare(ctx)

    def _stop(self, ctx: Context) -> None:
        ctx.cancel_timer(AGAIN)
        self.phase, self.resting = IDLE, False
        self._forget_votes()

    def _forget_votes(self) -> None:
        self.outdone = False
        self.promises, self.accepts, self.refusals, self.sent = {}, {}, {}, {}
        self.epoch_check = EpochCheck()

    def _send_prepare(self, ctx: Context) -> None:
        self.outbox.append(PrepareMsg(self.electorate.number, self.round, ctx.incarnation))

    def _send_proposal(self, ctx: Context) -> None:
        self.sent[self.request] = self.ttl
        if len(self.sent) > MAX_SENT:
            del self.sent[min(self.sent)]
        self.refusals = {}
        self.outbox.append(
            AcceptMsg(
                self.electorate.number,
                self.round,
                ctx.incarnation,
                self.token,
                self.ttl,
                self.request,
            )
        )

    # Votes

    def _is_mine(
        self, ctx: Context, sender: MemberId, message: PromiseMsg | AcceptedMsg | NackMsg
    ) -> bool:
        """Whether this message answers the present round, and comes from a voter of it."""
        return (
            sender in self.electorate.voters
            and message.config == self.electorate.number
            and message.round == self.round
            and message.incarnation == ctx.incarnation
            and self.phase != IDLE
        )

    def on_promise(self, ctx: Context, sender: MemberId, message: PromiseMsg) -> None:
        """A voter promises the round."""
        if not self._is_mine(ctx, sender, message) or not self._admit(sender, message.epochs):
            return
        self.refusals.pop(sender, None)
        if self.phase != PREPARING:
            return  # the lease that it accepted last may already be from this round
        self.promises[sender] = message
        if len(self.promises) >= self.majority():
            self.token = self.token if self._may_keep_token() else self.round
            self.phase = PROPOSING
            self._send_proposal(ctx)

    def _may_keep_token(self) -> bool:
        """Whether a majority has accepted no higher token."""
        if not self.token:
            return False
        leases = [each.lease for each in self.promises.values()]
        lower = [lease for lease in leases if lease is None or lease.token <= self.token]
        return len(lower) >= self.majority()

    def on_accepted(self, ctx: Context, sender: MemberId, message: AcceptedMsg) -> None:
        """A voter has accepted the lease for this member."""
        if not self._is_mine(ctx, sender, message) or message.request not in self.sent:
            return
        if not self._admit(sender, message.epochs):
            return
        self.refusals.pop(sender, None)
        self.accepts[sender] = max(message.request, self.accepts.get(sender, 0))
        if len(self.promises) < self.majority():
            self._stop(ctx)  # a voter that promised has lost its disk since
            self._rest(ctx, 0.0)
            return
        if len(self.accepts) < self.majority():
            return
        request = sorted(self.accepts.values(), reverse=True)[self.majority() - 1]
        if request > self.granted:
            self.granted, self.won = request, self.token
            self.bumps, self.jumped = 0, False
            self.verdicts.append(Granted(request, self.token, self.sent[request]))
            self.sent = {each: ttl for each, ttl in self.sent.items() if each >= request}

    def _admit(self, sender: MemberId, epochs: tuple[int, ...]) -> bool:
        """Whether a vote may be counted. Votes that it shows to be void are dropped."""
        void = self.epoch_check.admit(self.electorate, sender, epochs)
        for voter in void or ():
            self.promises.pop(voter, None)
            self.accepts.pop(voter, None)
        return void is not None

    # Refusals

    def on_refused(self, ctx: Context, sender: MemberId, message: NackMsg) -> None:
        """A voter refuses."""
        if not self._is_mine(ctx, sender, message):
            return
        self.highest = max(self.highest, message.promised)
        self.refusals[sender] = message
        if message.promised >= self.round:
            self.outdone = True
        if len(self.electorate.voters) - len(self.refusals) < self.majority():
            self._fail(ctx)
        elif self.phase == PREPARING and len(self.refusals) == 1:
            self._arm(ctx, message.remaining)  # the other voters may never answer

    def _fail(self, ctx: Context) -> None:
        """A majority is out of reach in this round."""
        refusals = self.refusals
        held = self._held(refusals)
        taken = [each.remaining for each in refusals.values() if each.remaining > 0]
        behind = self.phase == PREPARING and self.highest > self.round
        if self.token and self.token != self.won:
            self._send_release(
                ctx, None
            )  # voters that accepted the lease need not wait for its end
        self._stop(ctx)
        if held is not None:
            lease, remaining = held
            self.wanted = False
            self.verdicts.append(Held(self.request, lease.holder, lease.token, remaining))
        elif behind and not taken and not self.jumped:
            self.jumped = True
            self.begin(ctx)  # it did not know the others' highest round
        else:
            self._rest(ctx, min(taken, default=0.0))

    def _rest(self, ctx: Context, taken: float) -> None:
        self.resting = True
        self._arm(ctx, taken)

    def _arm(self, ctx: Context, taken: float) -> None:
        """Ask again when the obstacle is over.

        If the obstacle is only the question of another proposer, wait a random time.
        """
        pause = taken + ctx.rng.uniform(0.0, self.delta)
        if not taken:
            longest = self.delta * 2.0 ** min(self.bumps, MAX_DOUBLINGS)
            self.bumps += 1
            pause = 2.0 * self.delta + ctx.rng.uniform(0.0, longest)
        ctx.set_timer(AGAIN, pause)

    def _held(self, refusals: Mapping[MemberId, NackMsg]) -> tuple[Lease, float] | None:
        """The lease that a majority names, and the longest time for which it may last."""
        said: dict[tuple[MemberId, int, int], list[NackMsg]] = {}
        for each in refusals.values():
            if each.lease is not None and each.lease.incarnation:
                lease = each.lease
                said.setdefault((lease.holder, lease.incarnation, lease.token), []).append(each)
        for those in said.values():
            if len(those) >= self.majority() and those[0].lease is not None:
                return those[0].lease, max(each.remaining for each in those)
        return None

    def on_freed(self, sender: MemberId, message: AvailableMsg) -> None:
        """A voter says that the lease was given back, or that it votes now."""
        if sender in self.electorate.voters and self.phase != PROPOSING:
            self.resting = False
            self.verdicts.append(Freed(message.token))

    def state(self) -> str:
        """One line for traces."""
        return f"{self.phase} round={self.round}" if self.phase != IDLE else IDLE

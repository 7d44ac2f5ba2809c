"""Replacing one voter by another: one at a time, each change a configuration of its own.

Model      That of `acceptor`. In the configuration that ends, a majority must be up.
Idea       Voters agree on the change as on any value: a member asks a majority for a round
           (CONF-PREPARE), then for its agreement (CONF-ACCEPT). A voter that agrees stops voting in
           this configuration. When a majority has agreed, the members concerned are told of the
           next configuration (CONF-INSTALL), and each asks the voters whether that is true (see
           `configurations`). The new voters begin above all rounds of the last configuration, and
           accept the lease that was held.
Invariant  1. A configuration has one successor. A member that asks after a majority sealed a change
              hears of the change from one of them, and seals the same change again.
           2. A lease that was granted before was accepted by one of the voters that sealed, before
              it sealed. So the lease is among those they report. If they report one live lease,
              with the highest token, the new voters hold it for its full time. If they cannot tell
              which lease was granted, the new voters refuse all requests for one longest lease.
           3. A voter begins in a configuration once in an epoch. A voter that voted there and lost
              its disk begins another epoch (see `recovery`).
           4. A voter seals only for the member that it gave the round and a ticket. No member can
              seal in the name of another.
Cost       3 round trips with the voters, 1 with the newcomer; and the cost of `configurations`.
Guarantee  That of `proposer`, across configurations. Any voter that sealed a change completes it,
           if the member that began it does not.
"""

from __future__ import annotations

from hustings.core.choice import MemberId
from hustings.core.context import Context
from hustings.core.messages import Message
from hustings.quorum.config import Electorate
from hustings.quorum.epochs import EpochCheck
from hustings.quorum.messages import (
    Change,
    ConfAcceptedMsg,
    ConfAcceptMsg,
    ConfInstalledMsg,
    ConfInstallMsg,
    ConfPrepareMsg,
    ConfPromiseMsg,
    InvitedMsg,
    InviteMsg,
    NackMsg,
)

SEAL = "quorum-seal"

IDLE = "idle"
INVITING = "inviting"
SURVEYING = "surveying"
SEALING = "sealing"
INSTALLING = "installing"

MAX_TRIES = 16  # of one change, before it is left to the voters that sealed it
MAX_DOUBLINGS = 5


class Reconfiguration:
    """One member's part in changing the voters; messages to send are collected in `outbox`."""

    def __init__(self, electorate: Electorate, patience: float) -> None:
        self.electorate = electorate
        self.patience = patience
        self.phase = IDLE
        self.tries = 0
        self.round = 0
        self.highest = 0  # the highest round heard of
        self.nonce = 0  # the number that the newcomer must repeat
        # the change that this member wants, if none was sealed before
        self.wanted: Change | None = None
        self.change: Change | None = None
        self.epoch_check = EpochCheck()
        self.surveys: dict[MemberId, ConfPromiseMsg] = {}
        self.seals: dict[MemberId, ConfAcceptedMsg] = {}
        self.concerned: list[MemberId] = []  # voters before or after, and this member
        # the members of `concerned` that know the next configuration
        self.installed: dict[MemberId, None] = {}
        self.install: ConfInstallMsg | None = None
        self.outbox: list[tuple[MemberId, Message]] = []

    def majority(self) -> int:
        """How many of the old voters decide."""
        return self.electorate.majority

    # What its member wants

    def begin(self, ctx: Context, old: MemberId, new: MemberId) -> None:
        """Let `new` vote in the place of `old`."""
        kept = [each for each in self.electorate.voters if each != old]
        self.wanted = Change(tuple(sorted([*kept, new])), new, 0)
        self.phase, self.tries = INVITING, 0
        self.nonce = ctx.rng.bits() >> 2
        self._go_on(ctx)

    def heard(self, highest: int) -> None:
        """Note that rounds up to this one are taken."""
        self.highest = max(self.highest, highest)

    def finish(self, ctx: Context) -> None:
        """Complete the change that this voter has sealed."""
        if self.phase == IDLE:
            self.wanted, self.tries = None, 0
            self._survey(ctx)

    def on_timer(self, ctx: Context) -> None:
        """There were no answers, or too few: ask again."""
        if self.phase == IDLE:
            return
        if self.tries >= MAX_TRIES:
            self.stop(ctx)
        elif self.phase in (SURVEYING, SEALING):
            self._survey(ctx)
        else:
            self._go_on(ctx)

    def move(self, ctx: Context, electorate: Electorate) -> None:
        """Another configuration is in use now."""
        self.electorate = electorate
        if (
            self.phase != INSTALLING
            or self.install is None
            or (self.install.config != electorate.number)
        ):
            self.stop(ctx)

    def stop(self, ctx: Context) -> None:
        """Stop: the change is over."""
        ctx.cancel_timer(SEAL)
        self.phase, self.wanted, self.change, self.install = IDLE, None, None, None

    # Asking

    def _wait(self, ctx: Context) -> None:
        pause = self.patience * 2.0 ** min(self.tries, MAX_DOUBLINGS)
        self.tries += 1
        ctx.set_timer(SEAL, pause * (1.0 + ctx.rng.random()))

    def _go_on(self, ctx: Context) -> None:
        self._wait(ctx)
        if self.phase == INVITING and self.wanted is not None:
            self.outbox.append(
                (self.wanted.newcomer, InviteMsg(self.electorate.number, self.nonce))
            )
        elif self.install is not None:
            told = [each for each in self.concerned if each not in self.installed]
            self.outbox += [(each, self.install) for each in told]

    def _survey(self, ctx: Context) -> None:
        self._wait(ctx)
        self.round = self.highest = self.highest + 1
        self.phase = SURVEYING
        self.epoch_check, self.surveys, self.seals = EpochCheck(), {}, {}
        question = ConfPrepareMsg(self.electorate.number, self.round, ctx.incarnation)
        self.outbox += [(each, question) for each in self.electorate.voters]

    # Answers

    def on_invited(self, ctx: Context, sender: MemberId, message: InvitedMsg) -> None:
        """The newcomer tells its epoch."""
        wanted = self.wanted
        if self.phase != INVITING or wanted is None or sender != wanted.newcomer:
            return
        asked = (self.electorate.number, self.nonce)
        if (message.config, message.nonce) == asked and message.epoch:
            self.wanted = Change(wanted.voters, sender, message.epoch)
            self._survey(ctx)

    def _is_mine(
        self, ctx: Context, sender: MemberId, message: ConfPromiseMsg | ConfAcceptedMsg | NackMsg
    ) -> bool:
        return (
            sender in self.electorate.voters
            and message.config == self.electorate.number
            and message.round == self.round
            and message.incarnation == ctx.incarnation
        )

    def _admit(self, sender: MemberId, epochs: tuple[int, ...]) -> bool:
        void = self.epoch_check.admit(self.electorate, sender, epochs)
        for voter in void or ():
            self.surveys.pop(voter, None)
            self.seals.pop(voter, None)
        return void is not None

    def on_surveyed(self, ctx: Context, sender: MemberId, message: ConfPromiseMsg) -> None:
        """A voter promises the round."""
        if self.phase not in (SURVEYING, SEALING) or not self._is_mine(ctx, sender, message):
            return
        if not self._admit(sender, message.epochs):
            return
        self.surveys[sender] = message
        if self.phase == SEALING:
            self._ask_to_seal(ctx, sender)  # the promise is late
        elif len(self.surveys) >= self.majority():
            self._seal(ctx)

    def _seal(self, ctx: Context) -> None:
        """A majority has promised the round: end this configuration by the change begun first."""
        seals = [each.sealed for each in self.surveys.values() if each.sealed is not None]
        if seals:
            self.change = max(seals, key=lambda sealed: sealed.round).change
        elif self.wanted is not None:
            self.change = self.wanted
        else:
            self.stop(ctx)  # the seals are void: a majority goes on as before
            return
        self.phase = SEALING
        for voter in self.surveys:
            self._ask_to_seal(ctx, voter)

    def _ask_to_seal(self, ctx: Context, voter: MemberId) -> None:
        if self.change is not None:
            ticket, number = self.surveys[voter].ticket, self.electorate.number
            question = ConfAcceptMsg(number, self.round, ctx.incarnation, self.change, ticket)
            self.outbox.append((voter, question))

    def on_sealed(self, ctx: Context, sender: MemberId, message: ConfAcceptedMsg) -> None:
        """A voter has stopped voting in this configuration."""
        if self.phase != SEALING or not self._is_mine(ctx, sender, message):
            return
        if not self._admit(sender, message.epochs):
            return
        self.seals[sender] = message
        # If a voter that gave the round has lost its disk since, this voter takes another round.
        enough = min(len(self.surveys), len(self.seals)) >= self.majority()
        if enough and self.change is not None:
            self.install = ConfInstallMsg(self.electorate.number + 1, self.change, self.round, None)
            self.concerned = sorted({*self.electorate.voters, *self.change.voters, ctx.me.id})
            self.phase, self.installed, self.tries = INSTALLING, {}, 0
            self._go_on(ctx)

    def on_refused(self, ctx: Context, sender: MemberId, message: NackMsg) -> None:
        """A voter has promised a higher round. After a while, ask for a round above it."""
        if self._is_mine(ctx, sender, message):
            self.highest = max(self.highest, message.promised)

    def on_installed(self, ctx: Context, sender: MemberId, message: ConfInstalledMsg) -> None:
        """A member uses the next configuration."""
        if self.phase != INSTALLING or self.install is None:
            return
        if message.config >= self.install.config:
            if sender in self.concerned:
                self.installed[sender] = None
            if len(self.installed) == len(self.concerned):
                self.stop(ctx)

    def state(self) -> str:
        """One line for traces."""
        return "" if self.phase == IDLE else f" | {self.phase} the next voters"

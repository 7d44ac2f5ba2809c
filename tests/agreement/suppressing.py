"""A small multicast election: who wakes first announces itself, better ones take over.

Random wake-up times, eager announcements, listening timers and one multicast per announcement: all
that the elections by single messages do not use.
"""

from __future__ import annotations

from typing import ClassVar

from hustings.core.choice import Choice, MemberId
from hustings.core.config import Config
from hustings.core.context import Context, TimerKey
from hustings.core.election import Election, upon
from hustings.core.messages import Message, Role


class AnnounceMsg(Message, frozen=True, tag="ANNOUNCE"):
    """I lead."""

    role: ClassVar[Role] = Role.COORDINATOR
    round: int


class Suppressing(Election):
    """Announces every period while it leads; listens for three of them while it does not."""

    messages = (AnnounceMsg,)

    def __init__(self, config: Config, choice: Choice) -> None:
        super().__init__(config, choice)
        self.round = 0

    def start(self, ctx: Context) -> None:
        ctx.set_timer("announce", ctx.rng.random(), eager=True)

    def call(self, ctx: Context) -> None:
        ctx.set_timer("announce", 0.0, eager=True)

    def leave(self, ctx: Context) -> None:
        ctx.multicast(AnnounceMsg(-1))

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        if member == self.leader:
            ctx.set_timer("listen", 0.0)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        if key == "listen":
            self.disown(ctx, "silence")
            ctx.set_timer("announce", ctx.rng.random(), eager=True)
            return
        self.round += 1
        ctx.persist(round=self.round)
        if self.leader != ctx.me.id:
            self.elect(ctx, ctx.me.id, self.term + 1)
        ctx.multicast(AnnounceMsg(self.round))
        ctx.set_timer("announce", 1.0, eager=True)

    @upon(AnnounceMsg)
    def on_announce(self, ctx: Context, sender: MemberId, message: AnnounceMsg) -> None:
        mine = self.leader is not None and self.leader > sender
        if mine or message.round < 0:
            return
        if self.leader != sender:
            self.elect(ctx, sender, self.term + 1)
        ctx.cancel_timer("announce")
        ctx.set_timer("listen", 3.0)

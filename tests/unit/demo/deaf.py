"""Two elections that no story can settle, for tests."""

from __future__ import annotations

from typing import ClassVar

from hustings.core.choice import MemberId
from hustings.core.context import Context
from hustings.core.election import About, Election, upon
from hustings.core.messages import Message, Role
from hustings.core.outcome import Guarantee


class ShoutMsg(Message, frozen=True, tag="SHOUT"):
    """Here I am."""

    role: ClassVar[Role] = Role.ELECTION


class Deaf(Election):
    """Whoever calls multicasts, and nobody concludes anything."""

    about = About(
        name="deaf",
        family="none",
        paper="none",
        idea="shout and hope",
        model="none",
        guarantee=Guarantee.ADVISORY,
        cost="nothing",
        promises="nothing",
    )
    messages = (ShoutMsg,)

    def call(self, ctx: Context) -> None:
        ctx.multicast(ShoutMsg())

    @upon(ShoutMsg)
    def on_shout(self, ctx: Context, sender: MemberId, message: ShoutMsg) -> None:
        """Heard, and forgotten."""


class Vain(Deaf):
    """Whoever hears something takes itself for the leader, for ever."""

    @upon(ShoutMsg)
    def on_shout(self, ctx: Context, sender: MemberId, message: ShoutMsg) -> None:
        self.elect(ctx, ctx.me.id, 1)

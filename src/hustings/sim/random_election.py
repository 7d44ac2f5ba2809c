"""As wrong as an election can be: each member names leaders at random, and asks no other.

A guard must keep its promise with any election. After a call, a member stops that and holds the
best member that it knows, so that the run ends.
"""

from __future__ import annotations

from hustings.core.context import Context, TimerKey
from hustings.core.election import About, Election
from hustings.core.outcome import ELECTING, Guarantee

MUSE = "muse"


class RandomElection(Election):
    """Any member may lead at any time."""

    about = About(
        name="random-election",
        family="none",
        paper="none",
        idea="any member may lead at any time, until an election is called",
        model="any",
        guarantee=Guarantee.ADVISORY,
        cost="0",
        promises="nothing",
    )

    def start(self, ctx: Context) -> None:
        self._muse(ctx)

    def call(self, ctx: Context) -> None:
        ctx.cancel_timer(MUSE)
        view = ctx.view
        self.elect(ctx, max(view.ids, key=lambda one: self.choice.key(view.candidate(one))), 1)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        self._muse(ctx)
        match ctx.rng.below(8):
            case 0:
                self.disown(ctx, ELECTING)
            case 1:
                self.give_up(ctx, "tired")
            case 2 | 3:
                self.elect(ctx, ctx.rng.choice(ctx.view.ids), 1)
            case _:
                self.elect(ctx, ctx.me.id, 1)

    def _muse(self, ctx: Context) -> None:
        ctx.set_timer(MUSE, ctx.rng.choice((0.5, 2.0, ctx.rng.uniform(0.0, 20.0))))

"""The simplest elections: one nominates its member for ever, the other never does.

A layer that decides who leads goes round them, so that the search explores the layer and nothing
else.
"""

from __future__ import annotations

from hustings.core.context import Context
from hustings.core.election import About, Election
from hustings.core.outcome import Guarantee


class Standing(Election):
    """Nominates itself at the start and never changes its mind."""

    about = About(
        name="standing",
        family="none",
        paper="none",
        idea="whoever starts wants to lead",
        model="any",
        guarantee=Guarantee.ADVISORY,
        cost="0",
        promises="nothing",
    )

    def start(self, ctx: Context) -> None:
        self.elect(ctx, ctx.me.id, 1)


class Bystander(Election):
    """Never nominates itself, and has no opinion."""

    about = About(
        name="bystander",
        family="none",
        paper="none",
        idea="does nothing",
        model="any",
        guarantee=Guarantee.ADVISORY,
        cost="0",
        promises="nothing",
    )

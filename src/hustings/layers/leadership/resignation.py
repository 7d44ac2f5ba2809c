"""Resignation: a member that stands back leads only while there is no other member.

A leader that stands back hands over. If there is no member to hand over to, it resigns and there is
no leader until another member appears, this one stands again, or an election is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hustings.core.context import Context
from hustings.layers.leadership.standing import ELIGIBLE, LAST_RESORT

if TYPE_CHECKING:
    from hustings.layers.leadership.layer import LeadershipLayer

RESIGNED = "resigned"


class Resignation:
    """Whether this member stands back, and whether it left its group without a leader."""

    __slots__ = ("layer", "resigned")

    def __init__(self, layer: LeadershipLayer) -> None:
        self.layer = layer
        self.resigned = False  # stands back, and there was no other member

    def stand_back(self, ctx: Context) -> None:
        """Stop leading, and be chosen only if there is no other member."""
        layer = self.layer
        layer.incumbency.standing = LAST_RESORT
        if layer.leads(ctx.me.id) and layer.inner.seats == 1:
            successor = layer.best_other(ctx)
            if successor is not None:
                layer.transfer.hand_over(ctx, successor)
            else:
                layer.step_down(ctx, RESIGNED)
                self.resigned = True
        elif layer.resuming is not None:
            layer.step_down(ctx, RESIGNED)  # it asked whether it still leads, and must not any more
        layer.incumbency.end(ctx.me.id)

    def stand(self, ctx: Context) -> None:
        """Be chosen like all other members."""
        self.layer.incumbency.standing = ELIGIBLE
        if self.resigned:
            self.end(ctx)
            self.layer.inquiry.begin(ctx)

    def end(self, ctx: Context) -> None:
        """Take part again: another member is there, or the owner wants it."""
        if self.resigned:
            self.resigned = False
            self.layer.inquiry.be_due(ctx.now())
            self.layer.begin(ctx)

    def make_room(self, ctx: Context) -> None:
        """Hand over as soon as there is another member, if this one stands back."""
        layer = self.layer
        incumbency = layer.incumbency
        stands_back = incumbency.standing < ELIGIBLE and not incumbency.in_office
        if stands_back and layer.leads(ctx.me.id):
            successor = layer.best_other(ctx)
            if successor is not None and layer.inner.seats == 1:
                layer.transfer.hand_over(ctx, successor)

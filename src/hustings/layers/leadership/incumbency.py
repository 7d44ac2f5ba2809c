"""Incumbency: which leader must not be displaced by the next better member.

Each member knows that by itself: it is the leader that this member was told of, or has followed for
`probation`. That leader comes first in this member's order of the electors. So the election inside
keeps it, whatever attributes others have. It stays first until another leader takes its place, so a
member that missed it by mistake goes back to it. Where several members begin to lead together, none
is first yet, and the best stays.

Two leaders may each be first for those that follow it: after a partition, or if some missed their
leader. The later term wins, and the leader of the earlier one follows, too. Where leaders announce
themselves, a claim that is made for the first time is no news of a leader yet: its sender may only
have missed the present one. So the leader claims again, in a term above that, and its followers
wait. The sender hears it and goes back. If it claims again, it leads in the later term.

In one term the better of two leaders insists, and the other one follows.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import TYPE_CHECKING

from hustings.core.choice import Candidate, MemberId
from hustings.core.context import Context
from hustings.core.election import Claim
from hustings.layers.leadership.messages import MAX_TERM
from hustings.layers.leadership.standing import ELIGIBLE, IN_OFFICE, with_standing

if TYPE_CHECKING:
    from hustings.layers.leadership.layer import LeadershipLayer


class Heard(Enum):
    """What becomes of another member's claim to lead."""

    YES = "the election hears it"
    NO = "it does not: the leader stays"
    CONTESTED = "it does, and this leader claims again in a later term"


class Incumbency:
    """One member's own standing, and the leader that comes first for it."""

    __slots__ = (
        "_contest_from",
        "_held",
        "_shown",
        "_shown_as",
        "_shown_of",
        "_since",
        "in_office",
        "layer",
        "sought",
        "standing",
    )

    def __init__(self, layer: LeadershipLayer) -> None:
        self.layer = layer
        self.standing = ELIGIBLE
        # This member stays leader, though it may stand back: the leadership was handed to it. Of
        # several leaders also one that has led for its probation.
        self.in_office = False
        self.sought = 0.0  # since when this member has an office that it still has to win
        self._contest_from = 0.0  # when it may contradict a claim at once again
        self._held: MemberId | None = None  # the leader at the last look
        self._since = 0.0  # since when
        self._shown_of = Candidate(0)
        self._shown_as = ELIGIBLE
        self._shown = Candidate(0)

    def shown(self, me: Candidate) -> Candidate:
        """This member as others see it; the same object while nothing has changed.

        A leader to which the leadership was handed leads, also if it stood back.
        """
        standing = self.standing
        if self.in_office:
            standing = IN_OFFICE if self.layer.inner.seats > 1 else ELIGIBLE
        if me is not self._shown_of or standing != self._shown_as:
            self._shown_of, self._shown_as = me, standing
            self._shown = with_standing(me, standing)
        return self._shown

    # Who comes first

    def is_first(self, member: MemberId) -> bool:
        """Whether the next better member does not displace this one, as far as is known here."""
        return member == self.layer.electors.incumbent

    def put_first(self, leader: MemberId | None) -> None:
        """A leader comes first from now on, in place of one that leads no more."""
        if self.layer.stays and self.layer.inner.seats == 1:
            self.layer.electors.put_first(leader)

    def wait(self, member: MemberId) -> None:
        """A leader must prove itself first: it may be one of several that claim to lead."""
        if self.is_first(member):
            self.layer.electors.put_first(None)

    def end(self, me: MemberId) -> None:
        """This member's leadership is over, or was not won."""
        self.in_office = False
        self.wait(me)
        if self._held == me:
            self._since = math.inf  # it may lead until its successor does, but has no office

    def look(self, me: MemberId, now: float) -> None:
        """Put a leader first that has been followed for long enough."""
        layer = self.layer
        if not layer.stays:
            return
        held = layer.held
        leader = None if held is None else held.leader
        if layer.inner.seats > 1:  # of the leaders, this one may be another than the best
            leader = me if layer.leads(me) else None
        if leader != self._held:
            self._held, self._since = leader, now
        lasted = now - self._since
        if leader is None:
            if layer.inner.seats == 1 and lasted >= layer.settings.leaderless_limit:
                self.put_first(None)  # its election has come to nothing
        elif lasted >= self._probation(leader == me):
            if leader != me:
                self.put_first(leader)
            elif self.standing >= ELIGIBLE:
                self.put_first(me)
                self.in_office = self.in_office or layer.inner.seats > 1

    def _probation(self, own: bool) -> float:
        """For how long a leader is held before it comes first: everywhere at about one time.

        A member that announces itself waits for `claim_delay` before it leads; its followers follow
        it from its first announcement.
        """
        settings = self.layer.settings
        least, waited = settings.trial, settings.claim_delay
        return max(0.0, least - waited) if own else max(least, waited)

    def give_up_seeking(self, ctx: Context) -> None:
        """End a follower's office, once it has had the time to win it."""
        if self.in_office and ctx.now() - self.sought > self.layer.settings.leaderless_limit:
            self.end(ctx.me.id)

    # Other members' claims

    def judge(self, ctx: Context, sender: MemberId, claim: Claim) -> Heard:
        """Whether the election hears that another member says that it leads."""
        layer, held = self.layer, self.layer.held
        if held is None or not self.is_first(held.leader) or layer.inner.seats > 1:
            return Heard.YES
        if self.is_first(sender) or claim.leader is not None or not 0 < claim.term <= MAX_TERM:
            return Heard.YES
        leads, news = held.leader == ctx.me.id, claim.repeated or not layer.announces
        if claim.term > held.term:
            if not news:
                return self._contest(ctx) if leads else Heard.NO
            self.put_first(sender)
            return Heard.YES
        if claim.term == held.term and sender in layer.electors:
            if not self._is_behind(ctx, held.leader, sender):
                if leads:
                    layer.reconciliation.insist(ctx, claim.term)
                    return Heard.NO
            elif layer.announces and news:
                self.put_first(sender)
                return Heard.YES
        if not layer.announces:  # else the sender hears the leader's own announcements
            ctx.send(sender, layer.leader_info(held))
        return Heard.NO

    def _is_behind(self, ctx: Context, leader: MemberId, rival: MemberId) -> bool:
        """Whether another leader in the same term is better."""
        view = self.layer.electorate(ctx)
        if leader not in view:
            return True
        return self.layer.fair.better(view.candidate(rival), view.candidate(leader))

    def _contest(self, ctx: Context) -> Heard:
        """Contradict a claim at once, but not too often: else with the next announcement."""
        if ctx.now() < self._contest_from:
            return Heard.YES
        self._contest_from = ctx.now() + self.layer.settings.delta
        return Heard.CONTESTED

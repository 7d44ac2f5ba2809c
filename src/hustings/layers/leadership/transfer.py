"""Transfer: a leader hands its leadership over to a member that it names.

The leader tells its successor the next term, and the successor tells all. A member that hears of
the transfer for the first time, and knows no later term, follows at once. Copies that are late or
out of order carry a term that is no longer new. A round trip later the old leader tells all the
same, so a member that misses one message gets the other. The old leader repeats its message to the
successor a few times, until the successor speaks. A leader that leaves tells all at once.

One of several leaders gives its successor its office, and the election does the rest.

Pre-emption is a transfer that no owner asked for: with `preempt_after` a leader hands over to a
better member that has been in view for that long. Nothing happens in the inner election.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hustings.core.choice import MemberId
from hustings.core.context import Context, TimerKey
from hustings.layers.leadership.config import TIMER
from hustings.layers.leadership.messages import HandOverMsg
from hustings.layers.leadership.standing import ELIGIBLE

if TYPE_CHECKING:
    from hustings.layers.leadership.layer import LeadershipLayer

REPEAT: TimerKey = (TIMER, 3)
PREEMPT: TimerKey = (TIMER, 4)


class Transfer:
    """The transfers that one member has announced and heard of."""

    __slots__ = ("_former", "_successor", "_to_all", "accepted", "given", "handed", "layer")

    def __init__(self, layer: LeadershipLayer) -> None:
        self.layer = layer
        self.accepted: MemberId | None = None  # the successor, once it has said that it leads
        self.handed = 0  # the last term that another leader handed to this member
        self.given = 0  # the last term that this member handed to another one
        # The successor, its message, and how often the message is still to be repeated.
        self._successor: tuple[MemberId, HandOverMsg, int] | None = None
        # the message that this member still has to send to all
        self._to_all: HandOverMsg | None = None
        # The leader before a transfer, and until when its earlier messages may be under way.
        self._former: tuple[MemberId, float] | None = None

    def hand_over(self, ctx: Context, to: MemberId, *, to_all: bool = False) -> bool:
        """Stop leading, and tell `to` that it leads; `to_all`: tell the others at once, too.

        The others hear it from the next leader. If all were told together, the next leader would
        have to wait for its turn on a machine that it shares with them. One more member hears it at
        once: the member that would lead next otherwise. It misses this member's heartbeats first,
        and would act.
        """
        layer, me = self.layer, ctx.me.id
        if not layer.leads(me):
            return False
        message = HandOverMsg(to, layer.next_term())
        layer.incumbency.end(me)
        self.accepted, self.given = None, message.term
        ctx.send(to, message)
        repeats = layer.settings.transfer_retries
        if layer.inner.seats == 1:
            to_all = to_all or not repeats
            other = layer.best_other(ctx)
            if other is not None and other != to and not to_all:
                ctx.send(other, message)
            layer.assume(ctx, to, message.term)
            if to_all:
                ctx.multicast(message)
            else:
                self._to_all = message
        if repeats:
            self._successor = (to, message, repeats)
            ctx.set_timer(REPEAT, 2 * layer.settings.delta)
        return True

    def repeat(self, ctx: Context) -> None:
        """A round trip has passed: tell all once more, and the successor if it is silent.

        If there is another leader by now, send nothing.
        """
        layer = self.layer
        word, self._to_all = self._to_all, None
        to_all = word is not None and self._is_current(word)
        if word is not None and to_all:
            ctx.multicast(word)
        if self._successor is not None:
            to, message, left = self._successor
            self._successor = None
            if to in layer.electors and (self._is_current(message) or layer.inner.seats > 1):
                if not to_all:
                    ctx.send(to, message)
                if left > 1:
                    self._successor = (to, message, left - 1)
                    ctx.set_timer(REPEAT, 2 * layer.settings.delta)

    def _is_current(self, message: HandOverMsg) -> bool:
        held = self.layer.held
        return held is not None and (held.leader, held.term) == (message.to, message.term)

    def on_hand_over(self, ctx: Context, sender: MemberId, message: HandOverMsg) -> None:
        """A leader names its successor, or a successor says that it leads."""
        layer = self.layer
        self.heard(sender, message.to, message.term)
        if layer.inner.seats > 1:
            self._seek(ctx, sender, message)
        elif message.term > layer.highest:
            self._succeed(ctx, sender, message)
        elif message.to == ctx.me.id and (held := layer.held) is not None:
            if held.leader == ctx.me.id and held.term == message.term:
                # the successor is asked for a second time
                ctx.send(sender, layer.leader_info(held))

    def _succeed(self, ctx: Context, sender: MemberId, message: HandOverMsg) -> None:
        """Follow a new leader in a new term."""
        layer, to, me = self.layer, message.to, ctx.me.id
        if layer.announces and (held := layer.held) is not None:
            self._former = (held.leader, ctx.now() + layer.settings.delta)
        if to == me:
            layer.resignation.end(ctx)
            layer.incumbency.in_office = True
            layer.assume(ctx, me, message.term)
            if layer.leads(me):
                self.handed = message.term
                layer.reconciliation.announced = layer.held
                ctx.multicast(message)
                ctx.send(sender, layer.own_info(me, message.term))
            else:
                layer.incumbency.end(me)
        elif layer.knows(to):
            layer.assume(ctx, to, message.term)

    def _seek(self, ctx: Context, sender: MemberId, message: HandOverMsg) -> None:
        """One of several leaders gives way: the office decides, and the election acts on it."""
        incumbency, me = self.layer.incumbency, ctx.me.id
        if message.to == me:
            if not self.layer.leads(me):
                incumbency.in_office, incumbency.sought = True, ctx.now()
            ctx.send(sender, self.layer.own_info(me, message.term))

    def heard(self, sender: MemberId, leader: MemberId, term: int) -> None:
        """A member names a leader. This shows whether the successor has got the message.

        A successor that speaks need not be told again. A successor that says that it leads has
        taken over.
        """
        if self._successor is not None and self._successor[0] == sender:
            self._successor = None
        if sender == leader and term >= self.layer.highest:
            self.accepted = sender

    def is_past(self, ctx: Context, sender: MemberId) -> bool:
        """Whether the former leader may have sent a message before the transfer.

        An election that announces might take it for a present claim.
        """
        if self._former is None:
            return False
        former, until = self._former
        if ctx.now() > until:
            self._former = None
            return False
        return sender == former


def preempt(ctx: Context, layer: LeadershipLayer) -> None:
    """Hand over to a better member that has been up for long enough, or set a timer for that.

    This runs again when the view changes: the next tick looks at a new member.
    """
    due, me, electors = layer.settings.preempt_after, ctx.me, layer.electors
    if not due or not layer.leads(me.id) or layer.inner.seats > 1:
        return
    now, best, wait = ctx.now(), me, due
    for member, at in electors.since.items():
        other = electors.candidate(member)
        if electors.standing(member) < ELIGIBLE or not layer.plain.better(other, me):
            continue
        left = at + due - now
        if left > layer.settings.delta / 100:  # a timer that is due now would fire for ever
            wait = min(wait, left)
        elif layer.plain.better(other, best):
            best = other
    if best.id != me.id:
        layer.transfer.hand_over(ctx, best.id)
    elif wait < due:
        ctx.set_timer(PREEMPT, wait)

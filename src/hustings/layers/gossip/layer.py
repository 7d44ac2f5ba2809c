"""An election upon gossip membership and bimodal multicast, as one election: worlds need not know.

    inner election     ctx.view, ctx.multicast, on_suspect, on_alive
    ---------------------------------------------------------------
    Membership         which members are alive, how many there are
    Bimodal            multicast by epidemics
    ---------------------------------------------------------------
    the world          ctx.send, a lossy ctx.multicast, some seeds

The inner election sees another context. Its view is what gossip found, with an estimate of the
group's size. Its multicast goes through anti-entropy. Its messages to one member go directly. The
world's view is used only once, at the start, to choose a few seeds.

A multicast travels as the bytes it has on a wire. A table of the election's kinds reads them. So
its size is the real size, unreadable bytes are dropped here and not in a transport, and the same
bytes are passed on as copies. In a simulator that costs one encoding per multicast. Decodings are
remembered, since thousands of members read the same few messages.

Where views are pulled, a member may send a multicast while it does not know most of the group yet.
It sends the multicast once more, to the members that it learns of from the transfer. A leader that
hears an unknown member asks for that member's entry: a leader does not reach a member that it does
not know. Some time later a follower also asks for the entry of a leader that it does not know.

Timer keys ("gossip", ...) and ("mcast", ...) belong to this layer: no election may use these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial, reduce
from operator import or_
from typing import Any, NamedTuple

import msgspec

from hustings.core.choice import Candidate, MemberId
from hustings.core.context import Context, ForwardingContext, TimerKey
from hustings.core.election import Election, upon
from hustings.core.messages import Message, Role
from hustings.core.view import View
from hustings.layers.detector.detector import Report
from hustings.layers.gossip.config import GossipConfig, warm_up
from hustings.layers.gossip.membership import Membership
from hustings.layers.gossip.messages import (
    GossipMsg,
    JoinMsg,
    LeadingMsg,
    LeaveMsg,
    News,
    PullMsg,
    WelcomeMsg,
)
from hustings.layers.layer import Layer
from hustings.layers.leadership.messages import LeaderInfoMsg, sound
from hustings.layers.leadership.standing import ByStanding
from hustings.layers.multicast.bimodal import Bimodal
from hustings.layers.multicast.messages import CASTS, Cast, CopyMsg, DigestMsg, SolicitMsg

__all__ = ["GossipConfig", "GossipLayer", "warm_up", "with_gossip"]

_REMEMBERED = 4096  # decoded messages
_OWED = 4  # multicasts that members that are learned of too late still get ...
_LATE = 8  # ... if it is no later than this many delays


class Owed(NamedTuple):
    """A multicast that went out while its sender knew only a part of the group."""

    at: float
    message: Message
    had: frozenset[MemberId]  # members that got it; only tested, never iterated
    led: bool  # whether its sender was a leader then


class Codec:
    """An election's messages as bytes, and back."""

    __slots__ = ("decode", "encode")

    def __init__(self, kinds: tuple[type[Message], ...]) -> None:
        encoder = msgspec.msgpack.Encoder()
        # A union made at run time is beyond what a type checker can follow.
        union: Any = reduce(or_, kinds) if kinds else None
        decoder = msgspec.msgpack.Decoder(union)

        @lru_cache(maxsize=_REMEMBERED)
        def decode(body: bytes) -> Message | None:
            try:
                message = decoder.decode(body)
            except (msgspec.DecodeError, ValueError, OverflowError, RecursionError):
                return None
            return message if isinstance(message, Message) else None

        self.encode: Callable[[Message], bytes] = encoder.encode
        self.decode: Callable[[bytes], Message | None] = decode


class GossipContext(ForwardingContext):
    """The inner election's context: its view is the membership's, its multicast an epidemic."""

    __slots__ = ("_stack", "me")

    me: Candidate

    def __init__(self, below: Context, stack: GossipLayer) -> None:
        self._below = below
        self._stack = stack
        self.me = below.me  # the same during a whole handler, and read often

    @property
    def view(self) -> View:
        return self._stack.membership.circle.view

    def multicast(self, message: Message) -> None:
        stack = self._stack
        if message.role is not Role.DETECTOR:
            stack.owe(self._below, message)
        if stack.multicast is None or message.role is Role.DETECTOR:
            self._below.multicast(message)  # a lost heartbeat is not worth repairing
        else:
            stack.multicast.multicast(self._below, message.role, stack.codec.encode(message))


class GossipLayer(Layer):
    """`inner` upon `membership` and `multicast`, in one layer.

    Without a `multicast` of its own it uses the world's.
    """

    adds = "a stack"
    messages = (
        *(GossipMsg, LeadingMsg, WelcomeMsg, JoinMsg, PullMsg, LeaveMsg),
        *CASTS.values(),
        *(CopyMsg, DigestMsg, SolicitMsg),
    )

    def __init__(self, inner: Election, membership: Membership, multicast: Bimodal | None) -> None:
        super().__init__(inner)
        self.membership = membership
        self.multicast = multicast
        self.codec = _codec(tuple(inner.handlers))
        self._owed: list[Owed] = []  # multicasts of a member that knew too few others
        # Whether a world believes what a multicast carries. The world has read all other messages
        # itself.
        self.credible: Callable[[MemberId, Message], bool] | None = None

    # What a world calls

    def run_inner(self, ctx: Context, act: Callable[..., None], *about: object) -> None:
        act(GossipContext(ctx, self), *about)

    def start(self, ctx: Context) -> None:
        self.membership.start(ctx)
        self.inner.start(GossipContext(ctx, self))

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        if Membership.owns(key):
            self._settle(ctx, self.membership.on_timer(ctx, key))
            if self.membership.config.pull:
                for leader in self.inner.leaders:
                    if leader != ctx.me.id:  # whose name and place should be known
                        self.membership.pulling.meet(ctx, leader)
        elif self.multicast is not None and Bimodal.owns(key):
            self.multicast.on_timer(ctx)
        else:
            self.inner.on_timer(GossipContext(ctx, self), key)

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        self.membership.believe(member)
        self.inner.on_suspect(GossipContext(ctx, self), member)

    def on_alive(self, ctx: Context, member: MemberId) -> None:
        self.membership.sign_of_life(ctx, member)
        self.inner.on_alive(GossipContext(ctx, self), member)

    def woke(self, ctx: Context, gap: float) -> None:
        self.membership.woke(ctx)
        self.inner.woke(GossipContext(ctx, self), gap)

    def leave(self, ctx: Context) -> None:
        self.inner.leave(GossipContext(ctx, self))
        self.membership.leave(ctx)

    def state(self) -> str:
        known = self.membership
        return f"{self.inner.state()} view={len(known.view)} suspects={known.circle.suspects}"

    def unwrap(self, message: Message) -> Message:
        if isinstance(message, Cast | CopyMsg):
            carried = self.codec.decode(message.body)
            return message if carried is None else carried
        return message

    # Routing

    def on_inner(self, ctx: Context, sender: MemberId, message: Message) -> None:
        self._settle(ctx, self.membership.sign_of_life(ctx, sender))
        inner = self.inner
        if self.membership.circle.entry(sender) is None and ctx.me.id in inner.leaders:
            if self.membership.config.pull:
                self.membership.pulling.meet(ctx, sender)
        inner.handlers[type(message)](inner, GossipContext(ctx, self), sender, message)

    @upon(GossipMsg)
    def _on_gossip(self, ctx: Context, sender: MemberId, message: GossipMsg) -> None:
        self._take_in(ctx, sender, message)

    @upon(WelcomeMsg)
    def _on_welcome(self, ctx: Context, sender: MemberId, message: WelcomeMsg) -> None:
        self._take_in(ctx, sender, message)

    def _take_in(self, ctx: Context, sender: MemberId, message: News) -> None:
        self._keep_leaders()
        self._settle(ctx, self.membership.on_news(ctx, sender, message))
        if self._owed and not self.membership.partial:
            self._pay(ctx)

    @upon(LeadingMsg)
    def _on_leading(self, ctx: Context, sender: MemberId, message: LeadingMsg) -> None:
        """Gossip names the leader: this member should know the leader, whatever its rank."""
        leading, circle = message.leading, self.membership.circle
        if leading is None or not sound(leading):
            return self._take_in(ctx, sender, message)
        leaders = self.inner.leaders
        keep = leaders if leading.leaders[0] in leaders else (*leaders, leading.leaders[0])
        if keep != circle.keep:
            circle.keep = keep
        self._settle(ctx, self.membership.on_news(ctx, sender, message))
        inner = self.inner
        inner.handlers[LeaderInfoMsg](inner, GossipContext(ctx, self), sender, leading)
        self._keep_leaders()

    @upon(PullMsg)
    def _on_pull(self, ctx: Context, sender: MemberId, message: PullMsg) -> None:
        self._keep_leaders()
        self._settle(ctx, self.membership.on_pull(ctx, sender, message))

    @upon(JoinMsg)
    def _on_join(self, ctx: Context, sender: MemberId, message: JoinMsg) -> None:
        self._keep_leaders()
        membership = self.membership
        reports = membership.on_join(ctx, sender, message)
        order = self.inner.choice
        stays = isinstance(order, ByStanding) and ctx.me.id == order.incumbent
        if membership.config.pull and not message.asks and stays:
            # The election may speak to it next, and the member that welcomes it may not have heard
            # of this leader yet: it would take the leadership from a leader that it should follow.
            membership.pulling.hint(ctx, sender)
        self._settle(ctx, reports)

    @upon(LeaveMsg)
    def _on_leave(self, ctx: Context, sender: MemberId, message: LeaveMsg) -> None:
        self._settle(ctx, self.membership.on_leave(sender, message))

    @upon(*CASTS.values())
    def _on_cast(self, ctx: Context, sender: MemberId, message: Cast) -> None:
        self._settle(ctx, self.membership.sign_of_life(ctx, sender))
        if self.multicast is not None:
            self._deliver(ctx, sender, self.multicast.on_cast(ctx, sender, message))

    @upon(CopyMsg)
    def _on_copy(self, ctx: Context, sender: MemberId, message: CopyMsg) -> None:
        if self.multicast is not None:
            self._deliver(ctx, message.origin, self.multicast.on_copy(ctx, message))

    @upon(DigestMsg)
    def _on_digest(self, ctx: Context, sender: MemberId, message: DigestMsg) -> None:
        if self.multicast is not None:
            self.multicast.on_digest(ctx, sender, message)

    @upon(SolicitMsg)
    def _on_solicit(self, ctx: Context, sender: MemberId, message: SolicitMsg) -> None:
        if self.multicast is not None:
            self.multicast.on_solicit(ctx, sender, message)

    def owe(self, ctx: Context, message: Message) -> None:
        """Note a multicast that goes out, perhaps before this member knows its receivers."""
        if self.membership.pulling.widen(ctx) and self.multicast is None:
            had = frozenset(self.membership.view.ids)
            leads = ctx.me.id in self.inner.leaders
            self._owed = [*self._owed, Owed(ctx.now(), message, had, leads)][-_OWED:]

    def _pay(self, ctx: Context) -> None:
        """Send the multicasts to members that this member has learned of since.

        They get what it said as a leader only if it still leads.
        """
        owed, self._owed = self._owed, []
        latest = ctx.now() - _LATE * self.membership.config.delta
        leads = ctx.me.id in self.inner.leaders
        for one in owed:
            if one.at >= latest and (leads or not one.led):
                for member in self.membership.view.ids:
                    if member not in one.had:
                        ctx.send(member, one.message)

    def _keep_leaders(self) -> None:
        circle, leaders = self.membership.circle, self.inner.leaders
        if leaders != circle.keep:
            circle.keep = leaders

    def _deliver(self, ctx: Context, origin: MemberId, body: bytes | None) -> None:
        message = None if body is None else self.codec.decode(body)
        if message is not None and (self.credible is None or self.credible(origin, message)):
            inner = self.inner
            inner.handlers[type(message)](inner, GossipContext(ctx, self), origin, message)

    def _settle(self, ctx: Context, reports: Sequence[Report]) -> None:
        """Tell the election what gossip found out."""
        for report in reports:
            tell = self.inner.on_suspect if report.suspected else self.inner.on_alive
            tell(GossipContext(ctx, self), report.member)


@lru_cache(maxsize=256)
def _codec(kinds: tuple[type[Message], ...]) -> Codec:
    return Codec(kinds)


def with_gossip(elect: Callable[[], Election], config: GossipConfig) -> Callable[[], GossipLayer]:
    """Turn a factory of elections into one whose elections each have a gossip layer."""
    return partial(_stack, elect, config)


def _stack(elect: Callable[[], Election], config: GossipConfig) -> GossipLayer:
    inner = elect()
    membership = Membership(config, inner.choice.can_rank)
    return GossipLayer(inner, membership, Bimodal(config, membership.targets))

"""Bimodal multicast: almost all get a message, or almost none.

    p  == body ==>  q, r           the first phase: best effort, s is missed
    q  -- digest -->  s            each round: what I have
    s  -- solicit --> q            what I lack of it
    q  -- copy ---->  s

Model      Messages are lost. Members crash at any time, also the origin.
Idea       First the network's multicast, which may miss members. Then anti-entropy: in every round
           each member with a buffered message sends a digest to some random members of its view. A
           member that lacks a message asks for it. The members that have a message multiply. So the
           message dies out at once, or reaches nearly all members: the number of receivers has two
           modes.
Bounds     A digest lists `digest` messages, the latest first. In a round, `solicits` messages are
           asked for and `copies` are sent again. `buffer` messages are kept. A message is buffered
           until it is `buffering_time` old, counted from its sending and not from its arrival here:
           copies carry their age. After that no copy is accepted anywhere, and only a bit in a
           window remembers the message (`bimodal_memory`).
Cost       One multicast; then, while a message is buffered, `digests` messages a member and round.
           A silent group costs nothing.
Promise    At most once; within `buffering_time`, if delta bounds the delays and clocks keep pace.
           No order.
Paper      Birman, Hayden, Ozkasap, Xiao, Budiu, Minsky, "Bimodal Multicast", 1999.

Decisions beside the paper: without buffered messages there is no gossip. A member asks for a
message once within the time of a round, and then again, since request or copy may be lost. The
first phase is the world's multicast, without a tree of its own. Or the first phase is gossip, with
`spread`: the origin sends copies to `spread` random members, and each of them does the same when it
first gets a copy. Then no member sends to the whole group, and a multicast costs each member
`spread` messages.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter

from hustings.core.choice import MemberId
from hustings.core.context import Context, TimerKey
from hustings.core.errors import ProtocolBug
from hustings.core.messages import Role
from hustings.core.streams import Stream
from hustings.layers.gossip.config import GossipConfig
from hustings.layers.gossip.messages import MAX_ID, MAX_NUMBER
from hustings.layers.multicast.messages import (
    CASTS,
    Cast,
    CopyMsg,
    DigestMsg,
    MulticastId,
    SolicitMsg,
)

MCAST = "mcast"

_ROUND: TimerKey = (MCAST, 0)

Targets = Callable[[Stream, int], list[MemberId]]

_BELOW = 8  # multicasts in a row below the window, after which the window begins anew


class Window:
    """The multicasts of one origin that this member already has."""

    __slots__ = ("at", "below", "bits", "incarnation", "last", "top")

    def __init__(self, incarnation: int) -> None:
        self.incarnation = incarnation
        self.top = 0
        self.bits = 0  # bit i: number top - i was received
        self.at = 0.0  # when the last multicast came
        self.last = (0, 0)  # the last one below the window: incarnation and number
        self.below = 0  # how many in a row came below the window, each later than the one before


class Memory:
    """Which multicasts were already received, in bounded memory: all origins' windows.

    For each origin one window: its latest incarnation, the highest number heard of, and a bit for
    each of the numbers just below. What lies below the window counts as had. A number that is far
    above an origin's others need not be its own. If several multicasts in a row lie below the
    window, each later than the one before, it begins anew.

    There is room for `origins` of them. One more takes the place of the one that was silent for
    longest, provided that was longer than any copy of its messages can live. Otherwise it is
    refused: the bound may cost a message, but never doubles one.

    >>> memory = Memory(origins=2, width=8, lifetime=20.0)
    >>> memory.take((7, 1, 3), now=0.0), memory.take((7, 1, 3), now=1.0)
    (True, False)
    >>> memory.take((7, 1, 1), now=2.0), memory.take((7, 1, 30), now=2.0)
    (True, True)
    >>> memory.take((7, 1, 2), now=3.0)  # never had, but out of the window
    False
    """

    __slots__ = ("_lifetime", "_mask", "_origins", "_width", "_windows")

    def __init__(self, origins: int, width: int, lifetime: float) -> None:
        self._origins = origins
        self._width = width
        self._mask = (1 << width) - 1
        self._lifetime = lifetime
        self._windows: dict[MemberId, Window] = {}  # the origin with the longest silence first

    def __len__(self) -> int:
        return len(self._windows)

    def fresh(self, mid: MulticastId) -> bool:
        """Whether a multicast is new, and may be accepted."""
        origin, incarnation, number = mid
        window = self._windows.get(origin)
        if window is None or incarnation > window.incarnation:
            return (
                -MAX_ID <= origin < MAX_ID
                and 1 <= incarnation <= MAX_NUMBER
                and 1 <= number <= MAX_NUMBER
            )
        if incarnation < window.incarnation or number < 1:
            return False
        if number > window.top:
            return number <= MAX_NUMBER
        behind = window.top - number
        return behind < self._width and not window.bits >> behind & 1

    def take(self, mid: MulticastId, now: float) -> bool:
        """Accept a multicast if it is new and there is room. Return whether it was accepted."""
        if not self.fresh(mid) and not self._begins_anew(mid):
            return False
        origin, incarnation, number = mid
        window = self._windows.pop(origin, None)
        if window is None or window.incarnation < incarnation:
            if window is None and not self._room(now):
                return False
            window = Window(incarnation)
        window.below = 0
        if number > window.top:
            ahead = number - window.top
            window.bits = (window.bits << ahead if ahead < self._width else 0) & self._mask | 1
            window.top = number
        else:
            window.bits |= 1 << (window.top - number)
        window.at = now
        self._windows[origin] = window
        return True

    def _begins_anew(self, mid: MulticastId) -> bool:
        """Whether the window cannot be its origin's. Then the window begins anew."""
        origin, incarnation, number = mid
        window = self._windows.get(origin)
        if window is None or number < 1:
            return False
        if incarnation == window.incarnation and window.top - number < self._width:
            return False  # a copy
        if (incarnation, number) == window.last:
            return False
        window.below = window.below + 1 if (incarnation, number) > window.last else 1
        window.last = (incarnation, number)
        if window.below < _BELOW:
            return False
        del self._windows[origin]
        return True

    def _room(self, now: float) -> bool:
        if len(self._windows) < self._origins:
            return True
        oldest = next(iter(self._windows))
        if now - self._windows[oldest].at <= self._lifetime:
            return False
        del self._windows[oldest]
        return True


class Bimodal:
    """One member's part in the multicast. `targets` chooses random members of its view."""

    __slots__ = (
        "_asked",
        "_copies",
        "_held",
        "_number",
        "_resting",
        "_since",
        "_solicits",
        "_targets",
        "config",
        "memory",
    )

    def __init__(self, config: GossipConfig, targets: Targets) -> None:
        self.config = config
        self.memory = Memory(config.origins, config.window, config.buffering_time)
        self._targets = targets
        # When each message was sent, by this member's clock, and its body; in the order of arrival.
        self._held: dict[MulticastId, tuple[float, bytes]] = {}
        # requested messages, and when they were requested
        self._asked: dict[MulticastId, float] = {}
        self._number = 0
        self._resting = True
        self._since = 0.0  # when the present allowance began
        self._solicits = self._copies = 0  # how much of the allowance is used

    @staticmethod
    def owns(key: TimerKey) -> bool:
        """Whether a timer belongs to the multicast."""
        return isinstance(key, tuple) and key[0] == MCAST

    @property
    def buffered(self) -> int:
        """How many messages are buffered now."""
        return len(self._held)

    @property
    def asked(self) -> int:
        """How many requests it remembers."""
        return len(self._asked)

    # Called by the member. It must deliver each returned body now, and once

    def multicast(self, ctx: Context, role: Role, body: bytes) -> None:
        """Send to the whole group except this member."""
        if len(body) > self.config.multicast_bytes:
            raise ProtocolBug(
                f"a multicast of {len(body)} bytes, where body allows {self.config.multicast_bytes}"
            )
        self._number += 1
        mid = (ctx.me.id, ctx.incarnation, self._number)
        now = ctx.now()
        if self.config.spread:
            self._pass_on(ctx, mid, now, body)
        else:
            ctx.multicast(CASTS[role](ctx.incarnation, self._number, body))
        if self.memory.take(mid, now):
            self._hold(ctx, mid, now, body)

    def on_cast(self, ctx: Context, sender: MemberId, message: Cast) -> bytes | None:
        """A multicast of the first phase has arrived."""
        mid = (sender, message.incarnation, message.number)
        return self._receive(ctx, mid, self.config.delta, message.body)

    def on_copy(self, ctx: Context, message: CopyMsg) -> bytes | None:
        """A member sent a multicast again."""
        mid = (message.origin, message.incarnation, message.number)
        self._asked.pop(mid, None)
        if not 0.0 <= message.age <= self.config.buffering_time:
            return None  # too old, or not a valid age
        return self._receive(ctx, mid, message.age, message.body)

    def on_digest(self, ctx: Context, sender: MemberId, message: DigestMsg) -> None:
        """Ask for the messages that this member lacks, the latest first."""
        held, fresh = self._held, self.memory.fresh
        lacking = [
            mid
            for mid in message.ids[: self.config.digest]
            if mid not in held and mid[0] != ctx.me.id and fresh(mid)
        ]
        if not lacking:
            return
        now = ctx.now()
        self._allow(now)
        recent = now - self.config.round_time
        self._asked = {mid: at for mid, at in self._asked.items() if at > recent}
        wanted = [mid for mid in dict.fromkeys(lacking) if mid not in self._asked]
        wanted = wanted[: max(0, self.config.solicits - self._solicits)]
        if wanted:
            self._solicits += len(wanted)
            self._asked.update(dict.fromkeys(wanted, now))
            ctx.send(sender, SolicitMsg(tuple(wanted)))

    def on_solicit(self, ctx: Context, sender: MemberId, message: SolicitMsg) -> None:
        """Send the requested messages again that are still buffered."""
        now, config = ctx.now(), self.config
        self._allow(now)
        for mid in message.ids[: config.solicits]:
            if self._copies >= config.copies:
                return
            held = self._held.get(mid)
            if held is None:
                continue
            sent, body = held
            age = now - sent + config.delta
            if age <= config.buffering_time:
                self._copies += 1
                ctx.send(sender, CopyMsg(*mid, age, body))

    def on_timer(self, ctx: Context) -> None:
        """A round: forget old messages, send digests of the rest. With an empty buffer, pause."""
        config = self.config
        limit = ctx.now() - config.buffering_time
        held = {mid: one for mid, one in self._held.items() if one[0] > limit}
        self._held = held
        if not held:
            self._resting = True
            self._asked = {}
            return
        latest = sorted(((sent, mid) for mid, (sent, _) in held.items()), key=itemgetter(0))
        ids = tuple([mid for _, mid in latest[: -config.digest - 1 : -1]])
        digest = DigestMsg(ids)
        for target in self._targets(ctx.rng, config.digests):
            ctx.send(target, digest)
        ctx.set_timer(_ROUND, config.round_time)

    # How it works

    def _receive(self, ctx: Context, mid: MulticastId, age: float, body: bytes) -> bytes | None:
        now = ctx.now()
        if (
            mid[0] == ctx.me.id
            or len(body) > self.config.multicast_bytes
            or not self.memory.take(mid, now)
        ):
            return None
        self._hold(ctx, mid, now - age, body)
        if self.config.spread:
            self._pass_on(ctx, mid, now - age, body)
        return body

    def _pass_on(self, ctx: Context, mid: MulticastId, sent: float, body: bytes) -> None:
        """Send the first phase as gossip."""
        age = ctx.now() - sent + self.config.delta
        if age <= self.config.buffering_time:
            copy = CopyMsg(*mid, age, body)
            for target in self._targets(ctx.rng, self.config.spread):
                if target != mid[0]:
                    ctx.send(target, copy)

    def _hold(self, ctx: Context, mid: MulticastId, sent: float, body: bytes) -> None:
        if len(self._held) >= self.config.buffer:
            del self._held[min(self._held, key=lambda one: self._held[one][0])]
        self._held[mid] = (sent, body)
        if self._resting:
            self._resting = False
            # Spread the copies over time, because all members may have received it at once.
            ctx.set_timer(_ROUND, self.config.round_time * ctx.rng.random())

    def _allow(self, now: float) -> None:
        """Begin a new allowance with each new round."""
        if now - self._since >= self.config.round_time:
            self._since = now
            self._solicits = self._copies = 0

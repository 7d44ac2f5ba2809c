"""How a view that lags behind catches up: by state transfers that its member asks for.

    p  -- gossip: I know 900 -->  q, which knows 40
    q  -- pull -->  p             tell me of all
    p  == 900 entries ==>  q

Rumours of bounded size bring a few entries at a time. That is enough where members come and go one
by one. It takes for ever where many come at once. So gossip says how many members its sender knows:

- A member that knows far fewer asks for a transfer at once. A member that knows a few less does so
  from time to time, and ever more rarely where that brings nothing.
- A member that hears from one that knows far fewer says how many it knows itself.
- A crowd that joins a large group is welcomed with a few entries each. Its members pull the rest
  some time later, not all at once; but at once when they have a message for all.

Bounds: one request in a period, `transfers_per_period` transfers given in one, and as many hints.
"""

from __future__ import annotations

from typing import Protocol

from hustings.core.choice import MemberId
from hustings.core.context import Context, TimerKey
from hustings.layers.gossip.circle import Circle
from hustings.layers.gossip.config import GossipConfig
from hustings.layers.gossip.messages import GossipMsg, PullMsg, WelcomeMsg

_FAR = 8  # a view lags far behind if more than this part of it is missing
_NEAR = 16  # periods between two transfers if only a few are missing
_RAREST = 16  # the largest factor on that, where transfers bring nothing
_PACE = 60  # delays within which members that were welcomed with a few entries ask for the rest
_TIMES = 5  # at most this many times
_STRANGERS = 16  # unknown members that are asked for their entries in a period


class Speaker(Protocol):
    """The member that has the view."""

    @property
    def circle(self) -> Circle:
        """The members that it knows."""

    def gossip(self, *, asks: bool = False, names: bool = False) -> GossipMsg:
        """Its gossip now; `names`: it names the leader."""

    def transfer(self, ctx: Context, to: MemberId) -> None:
        """Send one member all entries."""


class Pulling:
    """One member's part: the transfers that it asks for and gives."""

    __slots__ = (
        "_ahead",
        "_config",
        "_given",
        "_hinted",
        "_host",
        "_known",
        "_rare",
        "_resting",
        "_speaker",
        "_strangers",
        "_timer",
        "_tried",
        "told",
    )

    def __init__(self, config: GossipConfig, speaker: Speaker, timer: TimerKey) -> None:
        self._config = config
        self._speaker = speaker
        self._timer = timer
        self.told = 0  # how many members there really are, while the rest is still to be pulled ...
        self._host: MemberId | None = None  # ... the member that said so ...
        self._tried = 0  # ... and how often the pull was tried
        # the last member that said that it knows more
        self._ahead: tuple[MemberId, int] | None = None
        self._known = 0  # how many members were known at the last request for a transfer,
        self._resting = 0  # how many periods ago that was,
        self._rare = 1  # and the factor on the wait for the next one
        # In this period: members that got a transfer, that were told to ask for one, that were
        # asked for their entries.
        self._given: dict[MemberId, None] = {}
        self._hinted: dict[tuple[MemberId, int], None] = {}
        self._strangers: dict[MemberId, None] = {}

    def tick(self) -> None:
        """Note that a period has passed."""
        self._given, self._hinted, self._strangers = {}, {}, {}
        self._resting += 1

    def give(self, ctx: Context, to: MemberId) -> None:
        """Give a transfer to a member: once in a period, and to a limited number of members."""
        if to not in self._given and len(self._given) < self._config.transfers_per_period:
            self._given[to] = None
            self._speaker.transfer(ctx, to)

    # After a welcome

    def on_welcome(self, ctx: Context, host: MemberId, message: WelcomeMsg, *, first: bool) -> None:
        """Check whether the welcome had all members."""
        there = min(message.known, self._config.view_size + 1)
        if len(message.entries) >= min(there, self._config.welcoming):
            self.told = 0
            ctx.cancel_timer(self._timer)
        elif first:
            self._host, self.told = host, there
            ctx.set_timer(self._timer, _PACE * self._config.delta * ctx.rng.random())

    def widen(self, ctx: Context) -> bool:
        """Catch up, because this member has a message for all. Return whether any are missing."""
        if self.told and not self._tried:
            self.pull_rest(ctx)
        elif self._ahead is not None and self._resting:
            member, known = self._ahead
            if known > len(self._speaker.circle.view) and self._speaker.circle.lives(member):
                self._pull(ctx, member)
        return self.told > 0

    def pull_rest(self, ctx: Context) -> None:
        """Ask for the members that the welcome left out. The second time, ask another member."""
        circle, host = self._speaker.circle, self._host
        if self._tried or host is None or not circle.lives(host):
            found = circle.targets(ctx.rng, 1)
            host = found[0] if found else None
        self._tried += 1
        if host is None or self._tried > _TIMES:
            self.told = 0  # gossip will bring the others
            return
        ctx.send(host, PullMsg(circle.own))
        ctx.set_timer(self._timer, self._tried * 2 * self._config.period)

    # After gossip

    def level(self, ctx: Context, sender: MemberId, message: GossipMsg) -> None:
        """If one of two members knows more than the other, one of them asks for a transfer."""
        mine = len(self._speaker.circle.view)
        theirs = min(message.known, self._config.view_size + 1)
        brings = len(message.entries)
        if theirs <= 0 or self.told:
            return  # the sender does not say; or the rest will be pulled anyway
        if theirs > mine:
            self._ahead = (sender, theirs)
            far = theirs - mine > max(brings, mine // _FAR)
            if self._resting >= (1 if far else _NEAR) * self._rare:
                self._pull(ctx, sender)
        elif mine - theirs > max(brings, theirs // _FAR) and not message.asks:
            self.hint(ctx, sender)

    def hint(self, ctx: Context, to: MemberId) -> None:
        """Send this member's gossip to a member: once in a period, and to a limited number."""
        entry = self._speaker.circle.entry(to)
        life = (to, 0 if entry is None else entry.incarnation)
        if life not in self._hinted and len(self._hinted) < self._config.transfers_per_period:
            self._hinted[life] = None
            ctx.send(to, self._speaker.gossip(names=True))

    def _pull(self, ctx: Context, member: MemberId) -> None:
        """Ask for a state transfer. After a transfer that brought nothing, ask more rarely."""
        mine = len(self._speaker.circle.view)
        self._rare = min(2 * self._rare, _RAREST) if self._known == mine else 1
        self._resting, self._known, self._ahead = 0, mine, None
        ctx.send(member, PullMsg(self._speaker.circle.own))

    def meet(self, ctx: Context, stranger: MemberId) -> None:
        """Ask an unknown member that has sent a message, and should be known, for its entry."""
        circle, asked = self._speaker.circle, self._strangers
        room = circle.known <= self._config.view_size
        if room and circle.entry(stranger) is None and stranger not in asked:
            if len(asked) < _STRANGERS:
                asked[stranger] = None
                ctx.send(stranger, self._speaker.gossip(asks=True))

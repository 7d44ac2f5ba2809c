"""How a view that lags behind catches up: by state transfers that its member asks for.

    p  -- gossip: I know 900 -->  q, who knows 40
    q  -- pull -->  p             tell me of all
    p  == 900 entries ==>  q

Rumours of bounded size bring a few entries at a time. That is enough where members come and go one
by one, and takes for ever where many come at once. So gossip says how many its sender knows:

- Who knows far fewer asks for a transfer at once; who knows a few less does so from time to time,
  and ever more rarely where that brings nothing.
- Who hears from somebody that knows far fewer says how many it knows itself.
- A crowd that joins a large group is welcomed with a few entries each. Its members pull the rest
  some time later, not all at once; but at once when they have something to tell all.

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
_NEAR = 16  # periods between two transfers for the sake of fewer
_RAREST = 16  # times as many, where transfers bring nothing
_PACE = 60  # delays within which those who were welcomed with a few entries ask for the rest
_TIMES = 5  # that they do so at most
_STRANGERS = 16  # in a period are asked who they are


class Speaker(Protocol):
    """Whose view it is."""

    @property
    def circle(self) -> Circle:
        """Whom it knows."""

    def gossip(self, *, asks: bool = False) -> GossipMsg:
        """What it has to say now."""

    def transfer(self, ctx: Context, to: MemberId) -> None:
        """Tell one member of all."""


class Pulling:
    """One member's part: what it asks for, and what it was asked for."""

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
        self.told = 0  # how many there are in truth, while the rest is still to be pulled ...
        self._host: MemberId | None = None  # ... by whose account ...
        self._tried = 0  # ... and how often that was tried
        self._ahead: tuple[MemberId, int] | None = None  # who said last that it knows more
        self._known = 0  # how many were known when a transfer was asked for last,
        self._resting = 0  # for how many periods none was,
        self._rare = 1  # and by what factor the next one has to wait longer
        # In this period: who got a transfer, who was told to ask for one, who was asked its name.
        self._given: dict[MemberId, None] = {}
        self._hinted: dict[tuple[MemberId, int], None] = {}
        self._strangers: dict[MemberId, None] = {}

    def tick(self) -> None:
        """A period has passed."""
        self._given, self._hinted, self._strangers = {}, {}, {}
        self._resting += 1

    def give(self, ctx: Context, to: MemberId) -> None:
        """Somebody asks for all, once in a period, and not too many do."""
        if to not in self._given and len(self._given) < self._config.transfers_per_period:
            self._given[to] = None
            self._speaker.transfer(ctx, to)

    # After a welcome

    def on_welcome(self, ctx: Context, host: MemberId, message: WelcomeMsg, *, first: bool) -> None:
        """Was that all of them?"""
        there = min(message.known, self._config.view_size + 1)
        if len(message.entries) >= min(there, self._config.welcoming):
            self.told = 0
            ctx.cancel_timer(self._timer)
        elif first:
            self._host, self.told = host, there
            ctx.set_timer(self._timer, _PACE * self._config.delta * ctx.rng.random())

    def widen(self, ctx: Context) -> bool:
        """This member has something to tell all, and should know them now; whether it does not."""
        if self.told and not self._tried:
            self.pull_rest(ctx)
        elif self._ahead is not None and self._resting:
            member, known = self._ahead
            if known > len(self._speaker.circle.view) and self._speaker.circle.lives(member):
                self._pull(ctx, member)
        return self.told > 0

    def pull_rest(self, ctx: Context) -> None:
        """Ask for those whom the welcome left out; the second time, somebody else."""
        circle, host = self._speaker.circle, self._host
        if self._tried or host is None or not circle.lives(host):
            found = circle.targets(ctx.rng, 1)
            host = found[0] if found else None
        self._tried += 1
        if host is None or self._tried > _TIMES:
            self.told = 0  # the others will be heard of by and by
            return
        ctx.send(host, PullMsg(circle.own))
        ctx.set_timer(self._timer, self._tried * 2 * self._config.period)

    # After gossip

    def level(self, ctx: Context, sender: MemberId, message: GossipMsg) -> None:
        """Where one of two knows more than the other, they do not leave it to rumours alone."""
        mine = len(self._speaker.circle.view)
        theirs = min(message.known, self._config.view_size + 1)
        brings = len(message.entries)
        if theirs <= 0 or self.told:
            return  # it does not say; or the rest will be pulled anyway
        if theirs > mine:
            self._ahead = (sender, theirs)
            far = theirs - mine > max(brings, mine // _FAR)
            if self._resting >= (1 if far else _NEAR) * self._rare:
                self._pull(ctx, sender)
        elif mine - theirs > max(brings, theirs // _FAR) and not message.asks:
            self.hint(ctx, sender)

    def hint(self, ctx: Context, to: MemberId) -> None:
        """Tell somebody what this member has to say, once in a period, and not too many."""
        entry = self._speaker.circle.entry(to)
        life = (to, 0 if entry is None else entry.incarnation)
        if life not in self._hinted and len(self._hinted) < self._config.transfers_per_period:
            self._hinted[life] = None
            ctx.send(to, self._speaker.gossip())

    def _pull(self, ctx: Context, member: MemberId) -> None:
        """Ask for a state transfer; after one that brought nothing, more rarely."""
        mine = len(self._speaker.circle.view)
        self._rare = min(2 * self._rare, _RAREST) if self._known == mine else 1
        self._resting, self._known, self._ahead = 0, mine, None
        ctx.send(member, PullMsg(self._speaker.circle.own))

    def meet(self, ctx: Context, stranger: MemberId) -> None:
        """Somebody who is not known has spoken, and should be: who is it?"""
        circle, asked = self._speaker.circle, self._strangers
        room = circle.known <= self._config.view_size
        if room and circle.entry(stranger) is None and stranger not in asked:
            if len(asked) < _STRANGERS:
                asked[stranger] = None
                ctx.send(stranger, self._speaker.gossip(asks=True))

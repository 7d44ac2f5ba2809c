"""Gossip membership: which members are alive, learned from rumours.

    p   3 --- 4 --- 5 --- 6 --x            p's counter grows until p crashes
         \\_ q says: p 4     \\_ r says: p 6
    q   .....|------------------|---- T_fail ----! suspects p ---- ... ----! forgets p
                                                   (T_cleanup after the last news)

Model      Members crash and come back. Messages are lost, late or doubled. No member lies.
Idea       Every T_gossip a member raises its own counter and tells some random members the counters
           that it has heard of. A member whose counter has not grown for T_fail becomes a suspect:
           it is no longer in view, and no longer mentioned. After T_cleanup it is forgotten.
Views      Partial where the group is larger than `view_size`: each member keeps the members whose
           ids come first in the order of a hash with a salt of its own. That is a sample without
           bias, however often some members are mentioned. Views differ, and agree only after a
           while. A member's leader is kept in any case, so that its crash is noticed.
Join       A new member asks some seeds, or by multicast the whole group. It gets a state transfer
           from those that answer: all seeds, and about three members of the group. A member that
           gets no answer asks again, by multicast, at most `join_attempts` times. Once in an epoch
           one member tells all that it is there: so the sides of a partition that has healed find
           each other.
Pull       With `pull`, a view that lags behind catches up by state transfers: see `pull`.
Leave      By a multicast. A member that misses it finds out by T_fail.
Size       Estimated by `size`, with codes in every message.
Bounds     A message: `entries`. State: `view_size` members, and as many forgotten ones (they must
           show a newer counter to be believed in again).
Cost       `fanout` messages a member and T_gossip.
Promise    A wrong suspicion has a probability of about p_mistake, if losses are independent and no
           more than `loss`. T_fail then grows like N log N / (fanout x entries): the price of
           messages of bounded size, known in the paper.
Paper      van Renesse, Minsky, Hayden, "A Gossip-Style Failure Detection Service", 1998.

Decisions beside the paper:
- Gossip does not mention suspects.
- A member that has not been heard of for T_fail / 2 is asked directly, and again a few times before
  it is suspected; one such question in a period. Rumours of bounded size reach nearly all in time.
  But with partial views some pairs of members have hardly any member in common to carry them. With
  `pull` the member is asked later, and a question or an answer replaces a message of gossip,
  because it is gossip, too.
- New incarnations supersede any counter of an old one. A member that hears a newer counter of its
  own than it has (its storage was lost) goes on above it.
- Any message from a suspect itself takes the suspicion back. So does later news of it from others.
  But where its end was seen, and not concluded from silence, only news that is later by T_fail
  counts: its last news is still being passed on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil

from hustings.core.choice import Candidate, MemberId
from hustings.core.context import Context, TimerKey
from hustings.core.errors import BadInput
from hustings.core.streams import Stream
from hustings.core.view import View
from hustings.layers.detector.detector import Report
from hustings.layers.gossip.circle import Circle
from hustings.layers.gossip.config import GossipConfig
from hustings.layers.gossip.messages import (
    MAX_ATTRIBUTES,
    MAX_NAME,
    Entry,
    GossipMsg,
    JoinMsg,
    LeadingMsg,
    LeaveMsg,
    News,
    PullMsg,
    WelcomeMsg,
    presentable,
    sound,
)
from hustings.layers.gossip.pull import Pulling
from hustings.layers.gossip.size import Sizing
from hustings.layers.leadership.messages import LeaderInfoMsg

GOSSIP = "gossip"

GOSSIP_TICK: TimerKey = (GOSSIP, 0)
_JOIN: TimerKey = (GOSSIP, 1)
_PULL: TimerKey = (GOSSIP, 2)

_ANSWERS = 3  # expected answers to a join that went to all members

_LARGE = 64  # contacts from which seeds are drawn without a list; members of a large group
_DRAWS = 32  # draws for each seed: enough where a member knows a tenth of the group

_CROWD = 16  # members that join a large group in one period; more of them get a few entries only
_FEW = 16  # times as many may be welcomed with a few entries as with all
_LONG = 0.7  # of T_fail: where views are whole, a member that is silent for this long is asked
_SOON, _OFTEN = 0.25, 6  # the same where they are partial, and how often until it is suspected
_DOUBTED = 0.5  # of its T_fail: a leader that is silent for this long is asked, and others are ...
_WITNESSES = 2  # ... in each period, whether they have heard of it
_INTRODUCED = 3  # members to which a new member of a large group introduces itself

_NOTHING: Sequence[Report] = ()


def _anybody(candidate: Candidate) -> bool:
    return True


def _seeds(view: View, me: MemberId, rng: Stream, count: int) -> list[MemberId]:
    """Random contacts, `count` of them, without a list of a large view."""
    roster, chosen = view.roster, dict[MemberId, None]()
    if len(roster) > _LARGE:
        for _ in range(_DRAWS * count):
            drawn = rng.choice(roster)
            if drawn != me and drawn in view:
                chosen[drawn] = None
            if len(chosen) >= count:
                return list(chosen)
    contacts = [member for member in roster if member != me and member in view]
    return rng.sample(contacts, min(count, len(contacts)))


class Membership:
    """One member's part in the gossip. `view` has the live members that it knows and itself."""

    __slots__ = (
        "_answered",
        "_callers",
        "_greeted",
        "_joins",
        "_place",
        "_times",
        "_times_of",
        "_welcomed",
        "_welcomes",
        "circle",
        "config",
        "joined",
        "leading",
        "pulling",
        "sizing",
    )

    def __init__(
        self,
        config: GossipConfig,
        accepts: Callable[[Candidate], bool] = _anybody,
        place: str = "",
    ) -> None:
        """`accepts` says which candidates an election can handle.

        `place` is where this member can be reached, unless the world finds that out by itself.
        """
        self.config = config
        self.circle = Circle(config, accepts)
        self.sizing = Sizing(config.minima, config.epoch_time)
        self.pulling = Pulling(config, self, _PULL)
        self.joined = False  # whether a member has answered
        # The leader that this member names in its gossip, where gossip names leaders.
        self.leading: Callable[[], LeaderInfoMsg | None] = lambda: None
        self._place = place
        self._joins = 0
        self._answered = 0  # questions in this period,
        # members that have this one in view, and when each was last heard
        self._callers: dict[MemberId, float] = {}
        self._welcomes = 0  # welcomes in this period ...
        # ... and the members and incarnations that got one, where none gets two
        self._welcomed: dict[tuple[MemberId, int], None] = {}
        self._greeted = 1  # the epoch in which it last considered telling all that it is there
        self._times = (0.0, 0.0)  # T_fail and T_cleanup ...
        self._times_of = 0.0  # ... in a group of this size

    @staticmethod
    def owns(key: TimerKey) -> bool:
        """Whether a timer belongs to gossip."""
        return isinstance(key, tuple) and key[0] == GOSSIP

    @property
    def view(self) -> View:
        """The live members, with the estimate of the group's size."""
        return self.circle.view

    @property
    def size(self) -> float:
        """The group's size, for timeouts: rather too large than too small."""
        known = float(max(self.circle.known, self.pulling.told))
        return known if self._counts else max(self.sizing.estimate, known)

    @property
    def partial(self) -> bool:
        """Whether this member has been told of only a part of the group, and knows that."""
        return self.pulling.told > 0

    @property
    def _counts(self) -> bool:
        return self.config.whole and self.circle.known <= self.config.view_size

    @property
    def _estimate(self) -> float:
        known = max(len(self.view), self.pulling.told)
        return float(known) if self._counts else self.sizing.estimate

    def targets(self, rng: Stream, count: int) -> list[MemberId]:
        """Random members of the view: `count` of them, or all if there are fewer.

        Where views are partial, also members that have this one in their views. Otherwise a member
        that is in no view might get no message.
        """
        chosen = self.circle.targets(rng, count)
        if callers := self._callers:
            known = len(self.view) - 1
            strangers = [each for each in callers if not self.circle.lives(each)]
            drawn = sum(rng.random() * (known + len(strangers)) >= known for _ in chosen)
            if drawn := min(drawn, len(strangers)):
                return [*chosen[drawn:], *rng.sample(strangers, drawn)]
        return chosen

    # What its member calls

    def start(self, ctx: Context) -> None:
        """Join: with some of the contacts that the context's view lists, or by multicast."""
        config, rng, me = self.config, ctx.rng, ctx.me
        if not presentable(me):
            raise BadInput(
                f"member {me.id} cannot be gossiped about: at most {MAX_ATTRIBUTES} attributes, "
                f"with names of at most {MAX_NAME} characters"
            )
        own = Entry(me, ctx.incarnation, 0, self._place)
        self.circle.begin(own, rng.bits())
        self.sizing.begin(ctx.now(), rng)
        self.view.estimate = self._estimate
        seeds = _seeds(ctx.view, me.id, rng, config.seeds)
        ask = JoinMsg(own, to_all=not seeds, asks=True)
        for seed in seeds:
            ctx.send(seed, ask)
        if not seeds:
            ctx.multicast(ask)
        self._joins = 1
        ctx.set_timer(_JOIN, config.join_wait)
        # Spread the joins over time, because all members may have started at once.
        ctx.set_timer(GOSSIP_TICK, config.period * rng.random())

    def on_timer(self, ctx: Context, key: TimerKey) -> Sequence[Report]:
        """A period has passed, or no member has answered."""
        if key == GOSSIP_TICK:
            return self._tick(ctx)
        if key == _JOIN:
            self._ask_again(ctx)
        elif key == _PULL:
            self.pulling.pull_rest(ctx)
        return _NOTHING

    def on_news(self, ctx: Context, sender: MemberId, message: News) -> Sequence[Report]:
        """Rumours, or a part of a state transfer."""
        most, welcome = self.config.entries, isinstance(message, WelcomeMsg)
        first = welcome and not self.joined
        if welcome:
            most = self.config.welcoming
            self.joined = True
            ctx.cancel_timer(_JOIN)
        elif isinstance(message, GossipMsg) and message.asks and sender != ctx.me.id:
            ctx.send(sender, self.gossip())
            self._answered += 1
        now = ctx.now()
        if self.config.partial and isinstance(message, GossipMsg):
            self._callers.pop(sender, None)
            self._callers[sender] = now
            if len(self._callers) > 2 * self.config.view_size:
                del self._callers[next(iter(self._callers))]
        self.sizing.hear(now, ctx.rng, message.epoch, message.minima, message.size)
        reports = self.circle.hear(message.entries[:most], now, sender)
        if self.config.pull and sender != ctx.me.id:
            if isinstance(message, WelcomeMsg):
                self.pulling.on_welcome(ctx, sender, message, first=first)
                self.view.estimate = self._estimate
            else:
                self.pulling.level(ctx, sender, message)
        if first:
            self._introduce(ctx, sender, to_all=False)
        return reports

    def on_pull(self, ctx: Context, sender: MemberId, message: PullMsg) -> Sequence[Report]:
        """A member of the group wants to know of all others."""
        entry = message.entry
        if entry.who.id != sender or sender == ctx.me.id or not sound(entry):
            return _NOTHING
        reports = self.circle.hear((entry,), ctx.now(), sender)
        self.pulling.give(ctx, sender)
        return reports

    def _introduce(self, ctx: Context, host: MemberId, *, to_all: bool) -> None:
        """Tell some members at once that this one is there, because rumours take time.

        When one member tells all, some of the members that did not know it answer.
        """
        here = JoinMsg(self.circle.own, to_all=to_all, asks=False)
        most = self.config.introductions
        if self.partial:  # a whole crowd would do so: rumours are enough
            return
        if len(self.view) > _LARGE:
            most = min(most, _INTRODUCED)
        for member in self.circle.targets(ctx.rng, most):
            if member != host:
                ctx.send(member, here)

    def on_join(self, ctx: Context, sender: MemberId, message: JoinMsg) -> Sequence[Report]:
        """A new member, one that is back, or one that was out of reach."""
        entry = message.entry
        if entry.who.id != sender or sender == ctx.me.id or not sound(entry):
            return _NOTHING
        new = not self.circle.lives(sender)
        reports = self.circle.hear((entry,), ctx.now(), sender)
        life = (sender, entry.incarnation)
        if not (message.asks or (new and message.to_all)) or life in self._welcomed:
            return reports
        few = self.config.pull and len(self.view) > _LARGE and self._welcomes >= _CROWD
        if self._welcomes >= self.config.transfers_per_period * (_FEW if few else 1):
            return reports
        if message.to_all and ctx.rng.random() * self.size >= _ANSWERS:
            return reports  # other members will
        self._welcomes += 1
        if self.config.pull:
            self._welcomed[life] = None
        if few:
            ctx.send(sender, WelcomeMsg(self.circle.some(), *self._sizes(), self._known))
        else:
            self.transfer(ctx, sender)
        return reports

    def transfer(self, ctx: Context, to: MemberId) -> None:
        """Send one member all entries, in as many messages as are allowed."""
        most = self.config.welcoming
        parts = -(-len(self.view) // (most - 1))
        for _ in range(min(self.config.transfer_messages, parts)):
            ctx.send(to, WelcomeMsg(self.circle.some(most), *self._sizes(), self._known))

    def on_leave(self, sender: MemberId, message: LeaveMsg) -> Sequence[Report]:
        """A member leaves. For its election that is the same as a crash."""
        report = self.circle.bid_farewell(sender, message.incarnation)
        return _NOTHING if report is None else (report,)

    def sign_of_life(self, ctx: Context, member: MemberId) -> Sequence[Report]:
        """A message came from `member` itself, or another member vouches for it."""
        report = self.circle.revive(member, ctx.now())
        return _NOTHING if report is None else (report,)

    def believe(self, member: MemberId) -> None:
        """Adopt another member's suspicion of `member`, until this member hears later news.

        That is news from `member` itself, or that it has lived on: rumours of it are under way for
        up to T_fail.
        """
        fail, config = self._times[0], self.config
        if config.partial and member in self.circle.keep:
            fail = min(fail, config.leader_fail_time)
        self.circle.suspect(member, ceil(fail / config.period))

    def woke(self, ctx: Context) -> None:
        """This member was away. If it heard nothing meanwhile, the other members are not to blame.

        They may have forgotten it, and would not tell it the leader.
        """
        self.circle.excuse(ctx.now())
        self.circle.renew_own(ctx.me if presentable(ctx.me) else self.circle.own.who)
        self._introduce(ctx, ctx.me.id, to_all=True)

    def card(self, *, asks: bool = True) -> JoinMsg:
        """The message for a member of which only the place is known: to join, or to be known."""
        return JoinMsg(self.circle.own, to_all=False, asks=asks)

    def leave(self, ctx: Context) -> None:
        """Leave: say so, and send nothing more."""
        ctx.cancel_timer(GOSSIP_TICK)
        ctx.cancel_timer(_JOIN)
        ctx.multicast(LeaveMsg(self.circle.own.incarnation))

    # How it works

    def _tick(self, ctx: Context) -> Sequence[Report]:
        now, config, circle = ctx.now(), self.config, self.circle
        self._welcomes, self._welcomed = 0, {}
        self.pulling.tick()
        self.sizing.tick(now, ctx.rng)
        self.view.estimate = self._estimate
        size = self.size
        if size != self._times_of:
            self._times_of = size
            self._times = config.fail_time(size), config.cleanup_time(size)
        fail, cleanup = self._times
        leader_fail = config.leader_fail_time if config.partial else fail
        reports = circle.look_round(now, fail, cleanup, leader_fail)
        circle.renew_own(ctx.me if presentable(ctx.me) else circle.own.who)
        if config.partial:
            self._callers = {who: at for who, at in self._callers.items() if now - at <= fail}
            self._confirm(ctx, leader_fail)
            silent = circle.longest_silent(now, fail, _SOON, _OFTEN)
        else:
            silent = circle.longest_silent(now, fail, _LONG if config.pull else 0.5)
        count = config.fanout
        if config.pull:  # a question or an answer is gossip too
            count = max(0, count - (silent is not None) - self._answered)
            self._answered = 0
        for target in circle.targets(ctx.rng, count):
            ctx.send(target, self.gossip())
        if silent is not None:
            ctx.send(silent, self.gossip(asks=True))
        self._greet(ctx)
        ctx.set_timer(GOSSIP_TICK, config.period)
        return reports

    def _confirm(self, ctx: Context, fail: float) -> None:
        """Ask a silent leader itself, and ask others whether they have heard of it since.

        So one member's bad luck deposes no leader. And a follower soon learns where its leader is.
        """
        now = ctx.now()
        if missing := self.circle.missing(now, _DOUBTED * fail):
            known = [who for who in missing if self.circle.lives(who)]
            for member in (*known, *self.circle.targets(ctx.rng, _WITNESSES)):
                ctx.send(member, self.gossip(asks=True))

    def gossip(self, *, asks: bool = False, names: bool = False) -> GossipMsg:
        """This member's gossip now; `names`: it names the leader, also where views are whole."""
        if (names or self.config.partial) and (leading := self.leading()) is not None:
            return LeadingMsg(self.circle.some(), *self._sizes(), asks, self._known, leading)
        return GossipMsg(self.circle.some(), *self._sizes(), asks, self._known)

    @property
    def _known(self) -> int:
        return len(self.view) if self.config.pull else 0

    def _sizes(self) -> tuple[int, tuple[int, ...], float | None]:
        sizing = self.sizing
        return sizing.epoch, sizing.codes, sizing.found

    def _ask_again(self, ctx: Context) -> None:
        if self.joined or self._joins >= self.config.join_attempts:
            return
        self._joins += 1
        ctx.multicast(JoinMsg(self.circle.own, to_all=True, asks=True))
        ctx.set_timer(_JOIN, self.config.join_wait)

    def _greet(self, ctx: Context) -> None:
        """Once in an epoch, about one member of the group tells all that it is there."""
        if self._greeted != self.sizing.epoch:
            self._greeted = self.sizing.epoch
            if ctx.rng.random() * self.size < 1.0:
                ctx.multicast(JoinMsg(self.circle.own, to_all=True, asks=False))

"""The failure detector of one member: sends heartbeats, watches others, and reports.

It is ordinary member's code: everything it sees or does goes through the context of the call. Which
silence counts as a crash is its monitor's affair, who beats to whom its pattern's.

Decisions beside the lecture:
- A copy of a heartbeat, or one overtaken by a newer, says nothing new and restarts no timer.
- A member that crashes and is back before its timer has run out is not reported, though its
  incarnation gives it away: it is alive, and to say otherwise might crown another beside it. That
  it has forgotten everything is its election's affair, which starts anew with it.
- A watched member that disappears from the view is reported as suspected, once, and forgotten.
- Whatever a suspect sends takes the suspicion back, also when it is no heartbeat; but only
  heartbeats move the timer of a member that is not suspected. With `liveness` = "messages" others
  excuse a silence, for a while: on a network that drops copies they prove as much.
- A timer that fires late tells of the member itself, see `health`.
- With `ping_timeout`, the silent member is asked before it is suspected. An answer excuses a
  silence twice; one that answers and does not beat has lost its office, and it does no good to
  follow it.
- With `successor_period`, the leader beats to its heir more often than to the others, and says in
  each heartbeat who that is. Who was the heir hears so at the old pace for a period: one lost
  heartbeat must not leave it waiting for the next too soon. The heir is not asked to confirm a
  silence: the next heartbeat would be there before the answer.

Patterns: who sends heartbeats to whom, and who watches whom. A pattern is a function from what a
member knows (its view, itself, its leader, its suspects) to its duties. It keeps nothing, so a
member only asks again when one of the four has changed.

    pattern        heartbeats each period    a crash is noticed by
    all-to-all     N(N-1)                    everybody
    ring           N                         the next live member before it
    leader-to-all  N-1                       everybody, if it was the leader's
    to-leader      N-1                       the leader, if it was another's

The counts are those of a group in which nobody is suspected. A pattern says who sends heartbeats
unasked. In a ring, when a member falls silent, the one after it knows nothing of that and would
never beat to its new watcher; and a leader that was suspected, lost its office and lives would be
suspected for ever. So a detector asks for heartbeats, each period, those whom it watches or
suspects and who would not send it any. With f members in a row down, a ring's period costs the
heartbeats of the live, one more, and f questions; and each of the f after the first is noticed
T + 2D later than the one before, having been asked in vain.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass

from hustings.core.choice import MemberId
from hustings.core.context import Context, TimerKey
from hustings.core.view import View
from hustings.layers.detector.health import Vigil
from hustings.layers.detector.heartbeat import (
    HeartbeatConfig,
    HeartbeatMsg,
    PingMsg,
    PongMsg,
    WatchMsg,
)

BEAT = "beat"
SILENCE = "detector"

_BEAT_TIMER: TimerKey = (BEAT, 0)
_WATCH = WatchMsg()
_OLDER = 8  # heartbeats in a row that are older than the latest: that one was not the sender's
_QUESTIONS = 2  # to one silent member before it is suspected whatever it answers


@dataclass(frozen=True, slots=True)
class Duties:
    """What one member does each period, and what others do for it."""

    beats: tuple[MemberId, ...] = ()  # to whom it sends a heartbeat
    watches: tuple[MemberId, ...] = ()  # whose silence it takes for a crash
    hears: tuple[MemberId, ...] = ()  # who, if alive, sends it heartbeats unasked


Pattern = Callable[[View, MemberId, MemberId | None, Container[MemberId]], Duties]

IDLE = Duties()


def all_to_all(
    view: View, me: MemberId, leader: MemberId | None, suspects: Container[MemberId]
) -> Duties:
    """Everybody watches everybody; suspects too, since they may be back or never have gone."""
    others = _others(view, me)
    return Duties(beats=others, watches=others, hears=others)


def ring(
    view: View, me: MemberId, leader: MemberId | None, suspects: Container[MemberId]
) -> Duties:
    """Beat to the member before me, dead or alive; watch the next live one after me."""
    ids = view.ids
    place = bisect_left(ids, me)
    before, after = ids[place - 1], ids[(place + 1) % len(ids)]
    if after == me:
        return IDLE
    watched = view.successor(me, suspects)
    return Duties(beats=(before,), watches=() if watched is None else (watched,), hears=(after,))


def leader_to_all(
    view: View, me: MemberId, leader: MemberId | None, suspects: Container[MemberId]
) -> Duties:
    """The leader beats, all others watch it: what an election needs, and no more.

    A silent leader may be alive and not know that it leads: it must be asked, like any suspect.
    """
    if leader == me:
        return Duties(beats=_others(view, me))
    if leader is None or leader not in view:
        return IDLE
    return Duties(watches=(leader,), hears=() if leader in suspects else (leader,))


def to_leader(
    view: View, me: MemberId, leader: MemberId | None, suspects: Container[MemberId]
) -> Duties:
    """All others beat, the leader watches them; nobody watches the leader.

    Here too a silent member may be alive, and not know who leads.
    """
    if leader == me:
        others = _others(view, me)
        return Duties(watches=others, hears=tuple(m for m in others if m not in suspects))
    return Duties(beats=(leader,)) if leader is not None and leader in view else IDLE


PATTERNS: Mapping[str, Pattern] = {
    "all-to-all": all_to_all,
    "ring": ring,
    "leader-to-all": leader_to_all,
    "to-leader": to_leader,
}


def _others(view: View, me: MemberId) -> tuple[MemberId, ...]:
    return tuple(member for member in view.ids if member != me)


@dataclass(frozen=True, slots=True)
class Report:
    """What a detector tells its election: a suspicion, or that one was wrong."""

    member: MemberId
    suspected: bool


_NOTHING: Sequence[Report] = ()


class Detector:
    """One member's detector; all its tables are bounded by the view."""

    __slots__ = (
        "_askers",
        "_beat_due",
        "_beating",
        "_former",
        "_health",
        "_heir",
        "_latest",
        "_leader",
        "_number",
        "_older",
        "_pattern",
        "_place",
        "_questions",
        "_round_due",
        "_turn",
        "_version",
        "_vigils",
        "asks",
        "config",
        "duties",
        "monitor",
        "suspects",
    )

    def __init__(self, config: HeartbeatConfig) -> None:
        self.config = config
        self.monitor = config.monitor()
        self.duties = IDLE
        self.asks: tuple[MemberId, ...] = ()  # who would not beat to this member unasked
        self.suspects: set[MemberId] = set()  # only asked, never walked through
        self._pattern = PATTERNS[config.pattern]
        self._leader: MemberId | None = None
        self._version = -1  # of the view that the duties were made for
        self._number = 0  # heartbeats sent so far
        self._beating = False
        self._beat_due = math.inf
        self._round_due = -math.inf  # when all have a heartbeat again, and not the heir alone
        self._turn = 0.0  # how many of the others are due, less those who had theirs
        self._place = 0  # of the next one among them
        self._heir: MemberId | None = None
        self._former: dict[MemberId, float] = {}  # heirs of before, and until when they are told
        self._questions = 0  # asked so far
        self._health = config.health()
        self._vigils: dict[MemberId, Vigil] = {}  # of those whom the monitor has deadlines for
        self._latest: dict[MemberId, tuple[int, int]] = {}  # incarnation and number last heard
        # Heartbeats older than that, in a row: the last one, and how many.
        self._older: dict[MemberId, tuple[tuple[int, int], int]] = {}
        self._askers: dict[MemberId, float] = {}  # who asked for heartbeats, and when last

    @staticmethod
    def owns(key: TimerKey) -> bool:
        """Whether a timer is a detector's."""
        return isinstance(key, tuple) and key[0] in (BEAT, SILENCE)

    @property
    def health(self) -> float:
        """By how much it multiplies its patience now: 1 unless its own timers fire late."""
        return self._health.latest

    # What its member calls

    def follow(
        self, ctx: Context, leader: MemberId | None, heir: MemberId | None = None
    ) -> Sequence[Report]:
        """Adapt to the present leader and view; the first call starts the detector.

        `heir` is who leads after this member, if it leads and there is `successor_period`.
        """
        known = heir == self._heir
        if known and leader == self._leader and ctx.view.version == self._version:
            return _NOTHING
        if not known:
            self._appoint(ctx, heir)
        tells = self._beating and not known and heir is not None
        self._leader = leader
        gone: Sequence[Report] = _NOTHING
        if ctx.view.version != self._version:
            self._version = ctx.view.version
            gone = self._forget_departed(ctx)
        self._arrange(ctx)
        if tells:
            self._beat(ctx)
        return gone

    def on_timer(self, ctx: Context, key: TimerKey) -> Sequence[Report]:
        """The period has passed, or somebody's silence has lasted too long."""
        if key == _BEAT_TIMER:
            now = ctx.now()
            self._health.late(now, now - self._beat_due)
            self._beat(ctx)
            return _NOTHING
        member = key[1]
        if not isinstance(member, int) or member in self.suspects:
            return _NOTHING
        vigil = self._vigils.get(member)
        if vigil is None or self._excused(ctx, member, vigil) or self._asked(ctx, member, vigil):
            return _NOTHING
        self.suspects.add(member)
        self._arrange(ctx)
        return (Report(member, True),)

    def on_heartbeat(
        self, ctx: Context, sender: MemberId, message: HeartbeatMsg
    ) -> Sequence[Report]:
        """A sign of life, if it is newer than the last one."""
        stamp = (message.incarnation, message.number)
        latest = self._latest.get(sender)
        if sender not in ctx.view:
            return _NOTHING
        if latest is not None and stamp <= latest and not self._counts_anew(sender, stamp):
            return _NOTHING
        self._latest[sender] = stamp
        self._older.pop(sender, None)
        if latest is not None and stamp[0] > latest[0]:
            self.monitor.reborn(sender)
        reports = self.sign_of_life(ctx, sender)
        vigil = self._vigils.get(sender)
        if vigil is not None:
            now = ctx.now()
            # Its timer is long due and has not fired: this member has slept.
            if self._health.late(now, now - vigil.due):
                self.monitor.pardon(sender)
            vigil.hasty = message.heir == ctx.me.id
            patience = self.monitor.heard(sender, now, self.config.pace(vigil.hasty))
            self._arm(ctx, sender, vigil, vigil.begin(now, patience, self._health.factor(now)))
        return reports

    def _counts_anew(self, sender: MemberId, stamp: tuple[int, int]) -> bool:
        """Whether heartbeat after heartbeat is older than the latest, each newer than the last.

        Then the latest was not the sender's, or the sender was restored from a snapshot.
        """
        last, times = self._older.get(sender, ((0, 0), 0))
        if stamp == last:
            return False
        self._older[sender] = (stamp, times + 1 if stamp > last else 1)
        return self._older[sender][1] >= _OLDER

    def on_ping(self, ctx: Context, sender: MemberId, message: PingMsg) -> Sequence[Report]:
        """Somebody has not heard this member for long."""
        if sender not in ctx.view:
            return _NOTHING
        ctx.send(sender, PongMsg(message.number))
        return self.sign_of_life(ctx, sender)

    def on_pong(self, ctx: Context, sender: MemberId, message: PongMsg) -> Sequence[Report]:
        """A silent member is there after all."""
        vigil = self._vigils.get(sender)
        if sender in self.suspects or vigil is None:
            return self.sign_of_life(ctx, sender)
        now = ctx.now()
        if vigil.asked == message.number and vigil.grant(now, now, self._health.factor(now)):
            vigil.asked = 0
            self._arm(ctx, sender, vigil, vigil.due - now)
        return _NOTHING

    def on_watch(self, ctx: Context, sender: MemberId) -> Sequence[Report]:
        """Somebody wants heartbeats whom the pattern would not give any."""
        if sender not in ctx.view:
            return _NOTHING
        reports = self.sign_of_life(ctx, sender)
        self._askers[sender] = ctx.now()
        if not self._beating:
            self._beat(ctx)
        return reports

    def sign_of_life(self, ctx: Context, member: MemberId) -> Sequence[Report]:
        """Something came from `member`, or somebody vouches for it."""
        if member not in self.suspects:
            if self.config.liveness == "messages" and member in self._vigils:
                self._vigils[member].sign = ctx.now()
            return _NOTHING
        self.suspects.discard(member)
        if member in self._vigils:
            self._expect(ctx, member, self.config.first)
        self._arrange(ctx)
        return (Report(member, False),)

    def woke(self, ctx: Context, gap: float) -> None:
        """The world noticed that this member stood still for `gap` until now."""
        now = ctx.now()
        if not self._health.late(now, gap):
            return
        factor = self._health.factor(now)
        for member, vigil in self._vigils.items():
            if member in self.suspects:
                continue
            if gap > self.config.timeout:
                self.monitor.pardon(member)
            if vigil.grant(now, vigil.since + 2.0 * gap, factor):
                self._arm(ctx, member, vigil, vigil.due - now)

    def believe(self, ctx: Context, member: MemberId) -> None:
        """Somebody else suspects `member`, and this detector goes along until it hears of it."""
        if member in ctx.view and member != ctx.me.id and member not in self.suspects:
            self.suspects.add(member)
            ctx.cancel_timer((SILENCE, member))
            self._arrange(ctx)

    def stop(self, ctx: Context) -> None:
        """The member departs: no more heartbeats, no more suspicions."""
        ctx.cancel_timer(_BEAT_TIMER)
        for member in self._vigils:
            ctx.cancel_timer((SILENCE, member))

    # How it works

    def _excused(self, ctx: Context, member: MemberId, vigil: Vigil) -> bool:
        """Whether a silence that was too long is to be waited for, because it proves nothing."""
        now = ctx.now()
        late = now - vigil.due
        since = max(vigil.since, vigil.sign)
        if self._health.late(now, late):
            self.monitor.pardon(member)
            since = max(since, vigil.since + 2.0 * late)
        if not vigil.grant(now, since, self._health.factor(now)):
            return False
        self._arm(ctx, member, vigil, vigil.due - now)
        return True

    def _asked(self, ctx: Context, member: MemberId, vigil: Vigil) -> bool:
        """Whether a silent member has just been asked, and may yet answer."""
        confirm = self.config.ping_timeout
        if not confirm or vigil.hasty or vigil.asked or vigil.questions >= _QUESTIONS:
            return False
        now = ctx.now()
        self._questions += 1
        vigil.ask(now, self._questions, confirm, self._health.factor(now))
        ctx.send(member, PingMsg(self._questions))
        self._arm(ctx, member, vigil, vigil.due - now)
        return True

    def _arm(self, ctx: Context, member: MemberId, vigil: Vigil, wait: float) -> None:
        self.monitor.deadlines[member] = vigil.due
        ctx.set_timer((SILENCE, member), wait)

    def _arrange(self, ctx: Context) -> None:
        """New duties: stop watching some, begin to watch others, ask those who must be asked."""
        self.duties = duties = self._pattern(ctx.view, ctx.me.id, self._leader, self.suspects)
        watched, unasked = dict.fromkeys(duties.watches), dict.fromkeys(duties.hears)
        asked = dict.fromkeys(self.asks)
        self.asks = tuple(
            member
            for member in ctx.view.ids
            if (member in watched or member in self.suspects) and member not in unasked
        )
        if self._beating:  # else the first beat, below, asks them
            for member in self.asks:
                if member not in asked:
                    ctx.send(member, _WATCH)
        # Who has left the view is still to be reported, by `follow`.
        for member in [m for m in self._vigils if m not in watched and m in ctx.view]:
            self._unwatch(ctx, member)
        for member in duties.watches:
            if member not in self._vigils:
                # A question needs up to D before the first heartbeat can be due.
                extra = 0.0 if member in unasked else self.config.margin
                self._expect(ctx, member, self.config.first + extra)
        if not self._beating:
            self._begin(ctx)

    def _begin(self, ctx: Context) -> None:
        """The first heartbeat, or a while to wait for it: a new leader has other things to say."""
        if not self.config.first_beat_delay or self.asks:
            self._beat(ctx)
        elif self.duties.beats:
            self._beating = True
            self._round_due = -math.inf
            ctx.set_timer(_BEAT_TIMER, self.config.first_beat_delay, eager=True)
            self._beat_due = ctx.now() + self.config.first_beat_delay

    def _expect(self, ctx: Context, member: MemberId, wait: float) -> None:
        now = ctx.now()
        self.monitor.watch(member, now, wait)
        vigil = self._vigils[member] = Vigil()
        self._arm(ctx, member, vigil, vigil.begin(now, wait, self._health.factor(now)))

    def _unwatch(self, ctx: Context, member: MemberId) -> None:
        del self._vigils[member]
        self.monitor.forget(member)
        ctx.cancel_timer((SILENCE, member))

    def _appoint(self, ctx: Context, heir: MemberId | None) -> None:
        """Another heir: whoever's pace that changes, all hear of it with the next heartbeat."""
        if self._heir is not None:
            self._former[self._heir] = ctx.now() + self.config.period
        self._heir = heir
        if heir is not None:
            self._former.pop(heir, None)
        self._round_due = -math.inf

    def _beat(self, ctx: Context) -> None:
        """One period: heartbeats to all who should have one; with nobody to beat to, rest."""
        now = ctx.now()
        self._health.factor(now)
        patience = now - self.config.timeout
        self._askers = {asker: at for asker, at in self._askers.items() if at >= patience}
        self._beating = bool(self.duties.beats or self.asks or self._askers)
        if not self._beating:
            return
        self._number += 1
        heartbeat = HeartbeatMsg(ctx.incarnation, self._number, self._heir)
        self._former = {member: end for member, end in self._former.items() if end > now}
        hasty = [*self._former] if self._heir is None else [self._heir, *self._former]
        period = (
            self.config.successor_period
            if hasty and self.config.successor_period
            else self.config.period
        )
        spread = bool(hasty) and self.config.beat == "send"
        told = self._round_due > -math.inf  # all have heard who the heir is
        due = not hasty or now + period / 2 >= self._round_due
        if due:
            self._round_due = now + self.config.period
        if due and not (spread and told):
            self._beat_to_all(ctx, heartbeat)
        else:
            for member in (*hasty, *(self._next_share(hasty) if spread else ())):
                if member in ctx.view:
                    ctx.send(member, heartbeat)
        if due:
            self._beat_on_request(ctx, heartbeat)
        # Eager: a heartbeat that is due now leaves before anything of this instant arrives.
        ctx.set_timer(_BEAT_TIMER, period, eager=True)
        self._beat_due = now + period

    def _beat_to_all(self, ctx: Context, heartbeat: HeartbeatMsg) -> None:
        duties = self.duties
        if self.config.beat == "multicast" and 0 < len(ctx.view) - 1 == len(duties.beats):
            ctx.multicast(heartbeat)
        else:
            for member in duties.beats:
                ctx.send(member, heartbeat)

    def _beat_on_request(self, ctx: Context, heartbeat: HeartbeatMsg) -> None:
        """To those who asked, unless they have theirs with the others; and ask in turn."""
        for member in self._askers:
            if member not in self.duties.beats:
                ctx.send(member, heartbeat)
        for member in self.asks:
            ctx.send(member, _WATCH)

    def _next_share(self, hasty: Sequence[MemberId]) -> list[MemberId]:
        """Whose turn it is among the others, so that each has one every T.

        If all had theirs together, a machine that they share would be busy with them just then, and
        the heir's next one late.
        """
        others = [member for member in self.duties.beats if member not in hasty]
        if not others or self.config.successor_period is None:
            return []
        self._turn += len(others) * self.config.successor_period / self.config.period
        count, self._turn = int(self._turn), self._turn % 1.0
        first, self._place = self._place, (self._place + count) % len(others)
        return [others[(first + each) % len(others)] for each in range(min(count, len(others)))]

    def _forget_departed(self, ctx: Context) -> Sequence[Report]:
        view, suspects = ctx.view, self.suspects
        departed = [member for member in self._vigils if member not in view]
        reports = [Report(member, True) for member in departed if member not in suspects]
        for member in departed:
            self._unwatch(ctx, member)
        self.suspects = {member for member in view.ids if member in suspects}
        self._latest = {member: at for member, at in self._latest.items() if member in view}
        self._older = {member: at for member, at in self._older.items() if member in view}
        self._askers = {member: at for member, at in self._askers.items() if member in view}
        return reports

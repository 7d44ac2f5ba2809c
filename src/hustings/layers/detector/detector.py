"""The failure detector of one member: sends heartbeats, watches others, and reports.

It is ordinary code of a member: everything that it sees or does goes through the context of the
call. Its monitor decides which silence counts as a crash. Its pattern decides which member sends
heartbeats to which.

Decisions beside the lecture:
- A copy of a heartbeat, or a heartbeat that a newer one overtook, says nothing new and restarts no
  timer.
- A member that crashes and is back before its timer has run out is not reported, though its
  incarnation shows the crash. It is alive, and a report might elect another member beside it. It
  has forgotten everything, but that concerns its election, which starts anew with it.
- A watched member that disappears from the view is reported as suspected, once, and forgotten.
- Any message from a suspect takes the suspicion back, also if it is no heartbeat. But only
  heartbeats move the timer of a member that is not suspected. With `liveness` = "messages" other
  messages excuse a silence, for a while: on a network that drops copies they prove as much.
- A timer that fires late says something about the member itself, see `health`.
- With `ping_timeout`, the silent member is asked before it is suspected. An answer excuses a
  silence twice. A member that answers and sends no heartbeats no longer leads, and should not be
  followed.
- With `successor_period`, the leader sends heartbeats to its heir more often than to the others,
  and names the heir in each heartbeat. A former heir hears of the change at the old pace for a
  period: if one heartbeat is lost, it must not expect the next too soon. The heir does not ask to
  confirm a silence: the next heartbeat would arrive before the answer.

Patterns: which member sends heartbeats to which, and which member watches which. A pattern is a
function from what a member knows (its view, itself, its leader, its suspects) to its duties. It
keeps nothing. So a member asks again only when one of the four has changed.

    pattern        heartbeats each period    a crash is noticed by
    all-to-all     N(N-1)                    all members
    ring           N                         the next live member before it
    leader-to-all  N-1                       all members, if it was the leader's
    to-leader      N-1                       the leader, if it was another's

The counts hold for a group without suspects. A pattern says which members send heartbeats unasked.
Two cases need more. In a ring, when a member falls silent, the next member does not know this and
would never send heartbeats to its new watcher. And a suspected leader that lost its leadership and
is alive would be suspected for ever. So in each period a detector asks for heartbeats from the
members that it watches or suspects and that would not send it any. With f members in a row down, a
ring's period costs the heartbeats of the live members, one more, and f questions. Each of the f
after the first is noticed T + 2D later than the one before, because it was asked in vain.
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
_OLDER = 8  # heartbeats in a row that are older than the latest: the latest was not the sender's
_QUESTIONS = 2  # to one silent member before it is suspected whatever it answers


@dataclass(frozen=True, slots=True)
class Duties:
    """What one member does each period, and what others do for it."""

    beats: tuple[MemberId, ...] = ()  # members to which it sends heartbeats
    watches: tuple[MemberId, ...] = ()  # members whose silence it takes for a crash
    hears: tuple[MemberId, ...] = ()  # members that, if alive, send it heartbeats unasked


Pattern = Callable[[View, MemberId, MemberId | None, Container[MemberId]], Duties]

IDLE = Duties()


def all_to_all(
    view: View, me: MemberId, leader: MemberId | None, suspects: Container[MemberId]
) -> Duties:
    """All members watch each other; suspects too, since they may be back or never have gone."""
    others = _others(view, me)
    return Duties(beats=others, watches=others, hears=others)


def ring(
    view: View, me: MemberId, leader: MemberId | None, suspects: Container[MemberId]
) -> Duties:
    """Send heartbeats to the member before me, dead or alive; watch the next live one after me."""
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
    """The leader sends heartbeats, all others watch it: what an election needs, and no more.

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
    """All others send heartbeats, the leader watches them; no member watches the leader.

    Here too a silent member may be alive, and not know the leader.
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
    """What a detector tells its election: a suspicion, or that a suspicion was wrong."""

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
        self.asks: tuple[MemberId, ...] = ()  # members that would send it no heartbeats unasked
        self.suspects: set[MemberId] = set()  # only tested for members, never iterated
        self._pattern = PATTERNS[config.pattern]
        self._leader: MemberId | None = None
        self._version = -1  # of the view for which the duties were made
        self._number = 0  # heartbeats sent so far
        self._beating = False
        self._beat_due = math.inf
        # when all members have a heartbeat again, and not the heir alone
        self._round_due = -math.inf
        self._turn = 0.0  # how many of the others are due, less those that had theirs
        self._place = 0  # of the next member among them
        self._heir: MemberId | None = None
        self._former: dict[MemberId, float] = {}  # former heirs, and until when they are told
        self._questions = 0  # asked so far
        self._health = config.health()
        self._vigils: dict[MemberId, Vigil] = {}  # for members with a deadline in the monitor
        self._latest: dict[MemberId, tuple[int, int]] = {}  # incarnation and number last heard
        # Heartbeats older than that, in a row: the last one, and how many.
        self._older: dict[MemberId, tuple[tuple[int, int], int]] = {}
        self._askers: dict[MemberId, float] = {}  # members that asked for heartbeats, and when last

    @staticmethod
    def owns(key: TimerKey) -> bool:
        """Whether a timer belongs to a detector."""
        return isinstance(key, tuple) and key[0] in (BEAT, SILENCE)

    @property
    def health(self) -> float:
        """The factor on its patience now: 1 unless its own timers fire late."""
        return self._health.latest

    # What its member calls

    def follow(
        self, ctx: Context, leader: MemberId | None, heir: MemberId | None = None
    ) -> Sequence[Report]:
        """Adapt to the present leader and view. The first call starts the detector.

        `heir` is the member that should lead after this one, if this one leads and there is
        `successor_period`.
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
        """The period has passed, or a member's silence has lasted too long."""
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
        """A sign of life, if this heartbeat is newer than the last one."""
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
            # The timer for the sender is long overdue and has not fired: this member has slept.
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
        """Another member has not heard this member for long."""
        if sender not in ctx.view:
            return _NOTHING
        ctx.send(sender, PongMsg(message.number))
        return self.sign_of_life(ctx, sender)

    def on_pong(self, ctx: Context, sender: MemberId, message: PongMsg) -> Sequence[Report]:
        """A silent member is alive after all."""
        vigil = self._vigils.get(sender)
        if sender in self.suspects or vigil is None:
            return self.sign_of_life(ctx, sender)
        now = ctx.now()
        if vigil.asked == message.number and vigil.grant(now, now, self._health.factor(now)):
            vigil.asked = 0
            self._arm(ctx, sender, vigil, vigil.due - now)
        return _NOTHING

    def on_watch(self, ctx: Context, sender: MemberId) -> Sequence[Report]:
        """A member wants heartbeats that the pattern would not send to it."""
        if sender not in ctx.view:
            return _NOTHING
        reports = self.sign_of_life(ctx, sender)
        self._askers[sender] = ctx.now()
        if not self._beating:
            self._beat(ctx)
        return reports

    def sign_of_life(self, ctx: Context, member: MemberId) -> Sequence[Report]:
        """A message came from `member`, or another member vouches for it."""
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
        """The world noticed that this member did not run for `gap` until now."""
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
        """Adopt another member's suspicion of `member`, until this detector hears of `member`."""
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
        """Whether to wait on after a silence that was too long, because it proves nothing."""
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
        """Whether a silent member has just been asked, and may still answer."""
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
        """New duties: stop watching some, begin to watch others, ask those that must be asked."""
        self.duties = duties = self._pattern(ctx.view, ctx.me.id, self._leader, self.suspects)
        watched, unasked = dict.fromkeys(duties.watches), dict.fromkeys(duties.hears)
        asked = dict.fromkeys(self.asks)
        self.asks = tuple(
            member
            for member in ctx.view.ids
            if (member in watched or member in self.suspects) and member not in unasked
        )
        if self._beating:  # otherwise the first beat, below, asks them
            for member in self.asks:
                if member not in asked:
                    ctx.send(member, _WATCH)
        # `follow` still has to report the members that have left the view.
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
        """Send the first heartbeat, or wait a while: a new leader has other messages to send."""
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
        """Set another heir.

        If that changes any pace, all members hear of it with the next heartbeat.
        """
        if self._heir is not None:
            self._former[self._heir] = ctx.now() + self.config.period
        self._heir = heir
        if heir is not None:
            self._former.pop(heir, None)
        self._round_due = -math.inf

    def _beat(self, ctx: Context) -> None:
        """One period: send heartbeats to the members that should have one.

        With none to send, pause.
        """
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
        told = self._round_due > -math.inf  # all members know the heir
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
        """Send heartbeats to members that asked and have none with the others; and ask in turn."""
        for member in self._askers:
            if member not in self.duties.beats:
                ctx.send(member, heartbeat)
        for member in self.asks:
            ctx.send(member, _WATCH)

    def _next_share(self, hasty: Sequence[MemberId]) -> list[MemberId]:
        """The members among the others whose turn it is, so that each has a heartbeat every T.

        If all had theirs together, a machine that they share would be busy with them just then, and
        the heir's next heartbeat would be late.
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

"""The beginning of a group that announces: when all members have heard the leader, and the cost.

The leader is found, not presumed: it is the first member that every other live member has held at
least once, even for a moment. `tmax` is the instant at which the last announcement that this needed
was sent. That announcement is known only if all messages take the same time. Otherwise only the
metrics that do not need it are given.

Members that speak at most once elect no common leader: their time is that of the last message. With
several leaders, a member declares only the best leader that it holds. So all members are examined
each time an announcement has arrived, and all messages must take the same time.

An established group (`Steady`) begins as if every member had just heard the leader. Then messages
get lost, and the time since each member last heard the leader becomes random. So nothing happens to
the group until every member has heard an announcement, except with probability `REST`. The leader's
first two announcements give the period.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import partial

from hustings.core.choice import MemberId
from hustings.core.messages import Message, Role
from hustings.core.outcome import Elected, Outcome
from hustings.sim.consistency import Metrics, held_by, most_held
from hustings.sim.delay import Fixed
from hustings.sim.loss import Loss
from hustings.sim.member import SimContext
from hustings.sim.network import Network
from hustings.sim.queue import END_OF_TIME, TICKS, on_grid
from hustings.sim.world import Ended, World

REST = 1e-6
MOST_PERIODS = 10_000  # where next to nothing arrives
MOST_WAITED = 300  # periods without a leader: many leases long


def warm_up(loss: Loss, members: int) -> int:
    """The number of announcements after which (nearly) surely every member has heard one.

    >>> from hustings.sim.loss import NoLoss, Uncorrelated
    >>> warm_up(NoLoss(), 500), warm_up(Uncorrelated(0.4), 500)
    (1, 22)
    """
    p = loss.again(members)  # at its worst: as if all were sending at once
    if not 0.0 < p < 1.0:
        return MOST_PERIODS if p else 1
    return min(MOST_PERIODS, math.ceil(math.log(REST / members) / math.log(p)))


class Steady:
    """Listens to an established leader. Calls `ready` once, when the times since are random."""

    def __init__(self, world: World, leader: MemberId, ready: Callable[[World], None]) -> None:
        self.leader = leader  # the established leader, or the member that has replaced it
        self._ready = ready
        self._periods = warm_up(world.network.multicasts, len(world.live()))
        self._period = 0.0
        self._waited = 0
        self._last: dict[MemberId, float] = {}  # when each member announced itself last
        world.listen_in(self)

    def sent(self, world: World, member: SimContext, to: MemberId | None, message: Message) -> None:
        """Learn the period from the first two announcements."""
        if message.role is not Role.COORDINATOR:
            return
        who, now = member.id, world.now
        if not self._period and who == self.leader and who in self._last:
            self._period = now - self._last[who]
            instant = now + self._periods * self._period
            if instant <= END_OF_TIME:  # else it is never ready
                world.at(instant, lambda: self._reached(world))
        self._last[who] = now

    def _reached(self, world: World) -> None:
        first = world.members[self.leader]
        if held_by(first) != first.id:  # it was overtaken, or something has happened to it
            leader = most_held(world)
            if leader in self._last:
                self.leader = leader
            elif self._wait_on(world):
                return
        self._ready(world)

    def _wait_on(self, world: World) -> bool:
        """No member leads yet: a guard may need time to confirm the first one. The wait is bounded.

        After the wait the scenario begins all the same, because the group may need it: voters may
        need the member that joins.
        """
        self._waited += 1
        instant = world.now + self._period
        if self._waited > MOST_WAITED or instant > END_OF_TIME:
            return False
        world.at(instant, lambda: self._reached(world))
        return True

    def after_next(self, fraction: float) -> float:
        """The instant at a fraction of the period after the leader's next announcement."""
        return self._last[self.leader] + (1.0 + fraction) * self._period

    def last_of(self, member: MemberId) -> float:
        """When a member announced itself last."""
        return self._last[member]


MAX_ROUNDS = 10_000  # announcements of one member, after which a run is given up


def one_delay(network: Network) -> float | None:
    """The delay of every message, if all delays are equal."""
    if isinstance(network.delay, Fixed) and not network.reorder:
        return on_grid(network.delay.bound)
    return None


class Speech:
    """Watches members that speak at most once, until nothing is left to happen."""

    def __init__(self) -> None:
        self._sends: list[float] = []
        self._speakers: dict[MemberId, None] = {}
        self._halt: float | None = None

    def sent(self, world: World, member: SimContext, to: MemberId | None, message: Message) -> None:
        """Note when messages leave."""
        if message.role is not Role.DETECTOR:
            self._sends.append(world.now)
            self._speakers[member.id] = None

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        """A member that has spoken or heard another one is done."""
        if outcome.__class__ is Elected:
            self._halt = world.now

    def changed(self, world: World, member: SimContext) -> None:
        """A member that comes or goes changes nothing about earlier messages."""

    def metrics(self, world: World) -> Metrics:
        """The last message, and when all had spoken or heard one."""
        return {
            "tmax": self._sends[-1] if self._sends else None,
            "t_halt": self._halt,
            "num_msgs": float(len(self._sends)),
            "sent_by_tmax": float(len(self._sends)),
            "first_round": float(len(self._speakers)),
            "first_round_time": self._sends[-1] if self._sends else None,
        }


class Hearing:
    """Watches a group from its start until all have heard the leader; then stops the run."""

    def __init__(self, world: World, *, ordered: bool = False) -> None:
        """`ordered`: better members should speak earlier."""
        self._ordered = ordered
        self._delay = one_delay(world.network)
        self._live = {member.id: None for member in world.live()}
        self._sends: list[float] = []  # of every message
        self._announced: dict[MemberId, list[float]] = {}  # of each member's announcements
        self._heard: dict[MemberId, dict[MemberId, float]] = {}  # leader, member: since when
        self._leader: MemberId | None = None
        self._silent: MemberId | None = None  # alone, and has not spoken yet
        self._complete = 0.0

    def sent(self, world: World, member: SimContext, to: MemberId | None, message: Message) -> None:
        """Note when messages leave."""
        role = message.role
        if role is Role.DETECTOR:
            return
        self._sends.append(world.now)
        if role is Role.COORDINATOR:
            if member.id in self._announced:
                self._announced[member.id].append(world.now)
                # A leader that all have heard is not waited for. A fault that comes much later is
                # waited for.
                if self._leader is None and len(self._announced[member.id]) > MAX_ROUNDS:
                    world.stop(Ended.MAX_ROUNDS)
            else:
                self._announced[member.id] = [world.now]
                if self._silent == member.id:
                    self._complete_with(world, member.id)

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        """Note when a member first holds a leader."""
        if outcome.__class__ is not Elected:
            return
        leader = outcome.leader
        if leader not in self._heard:
            self._heard[leader] = {}
        heard = self._heard[leader]
        if leader != member.id and member.id not in heard:
            heard[member.id] = world.now
        if len(heard) >= len(self._live) - 1:
            if not heard and leader not in self._announced:
                self._silent = leader
            else:
                self._complete_with(world, leader)

    def changed(self, world: World, member: SimContext) -> None:
        """A member that comes has to hear the leader, too. A member that is gone need not."""
        if member.up:
            self._live[member.id] = None
        elif member.id in self._live:
            del self._live[member.id]
            for leader, heard in self._heard.items():
                heard.pop(member.id, None)
                if len(heard) >= len(self._live) - 1:
                    self._complete_with(world, leader)

    def _complete_with(self, world: World, leader: MemberId) -> None:
        if self._leader is None and world.members[leader].up:
            self._leader = leader
            self._complete = world.now
            world.stop()

    def metrics(self, world: World) -> Metrics:
        """The metrics; without values if the group never agreed."""
        names: tuple[str, ...] = ("leadership_delay", "num_msgs", "first_round", "first_round_time")
        timed = ("tmax", "sent_by_tmax", "rounds", "avg_rounds")
        if self._ordered:
            names = (*names, "best_first")
        if self._leader is None:
            return dict.fromkeys((*timed, *names) if self._delay is not None else names)
        found: Metrics = {} if self._delay is None else self._timed(self._leader, self._delay)
        end = self._complete
        if not self._heard[self._leader]:  # alone: no other member heard it
            end = on_grid(end + (self._delay or 0.0))
        count = bisect_left if self._delay != 0.0 else bisect_right  # itself it counts in any case
        found["leadership_delay"] = end
        found["num_msgs"] = float(count(self._sends, end))
        firsts = [own[0] for own in self._announced.values() if count(own, end) > 0]
        found["first_round"] = float(len(firsts))
        found["first_round_time"] = max(firsts, default=None)
        if self._ordered:
            own = self._announced.get(self._leader, [end])
            found["best_first"] = float(own[0] <= min(firsts, default=end))
        return found

    def _timed(self, leader: MemberId, delay: float) -> Metrics:
        """The metrics that depend on which announcement arrived when."""
        own, heard = self._announced.get(leader, []), self._heard[leader]
        if not heard:  # no other member: it led when it first said so
            tmax, rounds, firsts = self._complete, 1, [1]
        else:
            firsts = [bisect_right(own, on_grid(at - delay)) for at in heard.values()]
            rounds = max(firsts)
            tmax = own[rounds - 1] if rounds else on_grid(self._complete - delay)
        return {
            "tmax": tmax,
            "sent_by_tmax": float(bisect_right(self._sends, tmax)),
            "rounds": float(rounds),
            "avg_rounds": sum(firsts) / len(firsts),
        }


class HearingAll:
    """Watches a group from its start until all have heard all leaders; then stops the run."""

    def __init__(self, seats: int, delay: float) -> None:
        self._seats = seats
        self._delay = delay
        self._sends: list[float] = []
        self._announced: dict[MemberId, list[float]] = {}
        # Of each leader and member that holds it: after which announcement it first did.
        self._firsts: dict[tuple[MemberId, MemberId], int] = {}
        self._tmax: float | None = None
        self._rounds = 0

    def sent(self, world: World, member: SimContext, to: MemberId | None, message: Message) -> None:
        """Note when messages leave, and look again when an announcement has landed."""
        if message.role is Role.DETECTOR:
            return
        self._sends.append(world.now)
        if message.role is Role.COORDINATOR:
            own = self._announced.setdefault(member.id, [])
            own.append(world.now)
            landed = world.now + self._delay + 1 / TICKS
            world.at(landed, partial(self._look, world, member.id, world.now, len(own)))

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        """Tells of the best leader only."""

    def changed(self, world: World, member: SimContext) -> None:
        """Seen at the next look."""

    def _look(self, world: World, sender: MemberId, sent: float, number: int) -> None:
        for member in world.live():
            if member.id != sender and sender in member.election.leaders:
                self._firsts.setdefault((sender, member.id), number)
        if self._tmax is None and settled(world, self._seats):
            self._tmax = sent
            self._rounds = number
            world.stop()

    def metrics(self, world: World) -> Metrics:
        """The metrics; without values if the group never agreed."""
        timed = ("tmax", "sent_by_tmax", "rounds", "avg_rounds")
        names = (*timed, "leadership_delay", "num_msgs", "first_round")
        if self._tmax is None:
            return dict.fromkeys(names)
        end = on_grid(self._tmax + self._delay)
        count = bisect_left if self._delay else bisect_right  # itself it counts in any case
        return {
            "tmax": self._tmax,
            "sent_by_tmax": float(bisect_right(self._sends, self._tmax)),
            "rounds": float(self._rounds),
            "avg_rounds": self._average(world, self._tmax),
            "leadership_delay": end,
            "num_msgs": float(count(self._sends, end)),
            "first_round": float(sum(count(own, end) > 0 for own in self._announced.values())),
        }

    def _average(self, world: World, tmax: float) -> float:
        """The mean number of announcements that each pair of leader and follower needed."""
        numbers = [
            # Announcements that arrived together with the last one were not examined separately.
            self._firsts.get((leader, member.id)) or bisect_right(self._announced[leader], tmax)
            for member in world.live()
            for leader in member.election.leaders
            if leader != member.id
        ]
        return sum(numbers) / len(numbers) if numbers else 1.0  # alone: as with one leader


def settled(world: World, seats: int) -> bool:
    """Whether all members hold the same leaders, and as many as intended.

    A leader holds itself and the better leaders; it need not know the worse ones.
    """
    held = {member.id: member.election.leaders for member in world.live()}
    longest = max(held.values(), key=len, default=())
    if len(longest) != min(seats, len(held)):
        return False
    own = {leader: longest[: place + 1] for place, leader in enumerate(longest)}
    return all(leaders == own.get(member, longest) for member, leaders in held.items())

"""The beginning of a group that announces: when everybody has heard the leader, and what it took.

The leader is found, not presumed: it is the first member whom everybody else alive has held once,
be it for a moment. `tmax` is the instant at which the announcement that completed this was sent.
Which one that was is known where all messages take the same time; elsewhere only the metrics that
do not need it are given.

Members that speak once at most elect nobody together: theirs is the time of the last message.
With several leaders, members do not declare which leaders they hold besides the best. So after
every announcement has landed, everybody is looked at, and all messages must take one time.

An established group (`Steady`) begins as if everybody had just heard the leader. Then messages get
lost, and how long ago each member last heard the leader becomes a matter of chance. So the group is
left alone for as many periods as it takes until, but for a chance of `REST`, every member has heard
an announcement. The period is taken from the leader's first two announcements.
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
MOST_WAITED = 300  # periods in which nobody leads: many leases long


def warm_up(loss: Loss, members: int) -> int:
    """How many announcements it takes until (nearly) surely everybody has heard one.

    >>> from hustings.sim.loss import NoLoss, Uncorrelated
    >>> warm_up(NoLoss(), 500), warm_up(Uncorrelated(0.4), 500)
    (1, 22)
    """
    p = loss.again(members)  # at its worst: as if all were sending at once
    if not 0.0 < p < 1.0:
        return MOST_PERIODS if p else 1
    return min(MOST_PERIODS, math.ceil(math.log(REST / members) / math.log(p)))


class Steady:
    """Listens to an established leader and calls `ready` once, when chance has set in."""

    def __init__(self, world: World, leader: MemberId, ready: Callable[[World], None]) -> None:
        self.leader = leader  # the established one, or who has taken its place by then
        self._ready = ready
        self._periods = warm_up(world.network.multicasts, len(world.live()))
        self._period = 0.0
        self._waited = 0
        self._last: dict[MemberId, float] = {}  # when each announced itself last
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
        """Nobody leads: a guard may take its time to confirm the first leader, but not for ever.

        A group that has waited in vain may need what is to happen, as voters need one that joins.
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
    """How long every message takes, if they all take as long."""
    if isinstance(network.delay, Fixed) and not network.reorder:
        return on_grid(network.delay.bound)
    return None


class Speech:
    """Watches members that speak once at most, until nothing is left to happen."""

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
        """Whoever has spoken or heard somebody is done."""
        if outcome.__class__ is Elected:
            self._halt = world.now

    def changed(self, world: World, member: SimContext) -> None:
        """Who comes or goes changes nothing about what was said."""

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
        """`ordered`: better ones are meant to speak earlier."""
        self._ordered = ordered
        self._delay = one_delay(world.network)
        self._live = {member.id: None for member in world.live()}
        self._sends: list[float] = []  # of every message
        self._announced: dict[MemberId, list[float]] = {}  # of each member's announcements
        self._heard: dict[MemberId, dict[MemberId, float]] = {}  # whom, by whom, first when
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
                # Who has been heard is waited for no more: a fault is, that is to come much later.
                if self._leader is None and len(self._announced[member.id]) > MAX_ROUNDS:
                    world.stop(Ended.MAX_ROUNDS)
            else:
                self._announced[member.id] = [world.now]
                if self._silent == member.id:
                    self._complete_with(world, member.id)

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        """Note who is first held by whom."""
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
        """Who comes has to hear the leader too, who is gone need not."""
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
        """What it took; without values if it did not come about."""
        names: tuple[str, ...] = ("leadership_delay", "num_msgs", "first_round", "first_round_time")
        timed = ("tmax", "sent_by_tmax", "rounds", "avg_rounds")
        if self._ordered:
            names = (*names, "best_first")
        if self._leader is None:
            return dict.fromkeys((*timed, *names) if self._delay is not None else names)
        found: Metrics = {} if self._delay is None else self._timed(self._leader, self._delay)
        end = self._complete
        if not self._heard[self._leader]:  # alone: nobody was there to hear it
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
        """What needs to know which announcement was received when."""
        own, heard = self._announced.get(leader, []), self._heard[leader]
        if not heard:  # nobody else is there: it led when it first said so
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
        """What it took; without values if it did not come about."""
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
        """Over all leaders and all who hold them: the first announcement that each pair needed."""
        numbers = [
            # What landed together with the last one was not looked at on its own any more.
            self._firsts.get((leader, member.id)) or bisect_right(self._announced[leader], tmax)
            for member in world.live()
            for leader in member.election.leaders
            if leader != member.id
        ]
        return sum(numbers) / len(numbers) if numbers else 1.0  # alone: as with one leader


def settled(world: World, seats: int) -> bool:
    """Whether all hold the same leaders, as many as there shall be.

    A leader holds those better than itself, and itself; it need not know of the worse ones.
    """
    held = {member.id: member.election.leaders for member in world.live()}
    longest = max(held.values(), key=len, default=())
    if len(longest) != min(seats, len(held)):
        return False
    own = {leader: longest[: place + 1] for place, leader in enumerate(longest)}
    return all(leaders == own.get(member, longest) for member, leaders in held.items())

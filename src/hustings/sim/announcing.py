"""The beginning of a group that announces: when everybody has heard the leader, and what it took.

The leader is found, not presumed: it is the first member whom everybody else alive has held once,
be it for a moment. `tmax` is the instant at which the announcement that completed this was sent.
Which one that was is known where all messages take the same time; elsewhere only the metrics that
do not need it are given.

Members that speak once at most elect nobody together: theirs is the time of the last message.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from hustings.core.choice import MemberId
from hustings.core.messages import Message, Role
from hustings.core.outcome import Elected, Outcome
from hustings.sim.consistency import Metrics
from hustings.sim.delay import Fixed
from hustings.sim.instants import on_grid
from hustings.sim.member import SimContext
from hustings.sim.network import Network
from hustings.sim.world import Ended, World

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

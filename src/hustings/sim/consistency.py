"""Which member holds which leader, over time: one table, updated with each declaration.

An observer of this file looks at the whole group once, when it begins. Then each declaration costs
it a fixed time, so that it can watch a group of hundreds for a long time.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable

from hustings.core.choice import MemberId
from hustings.core.outcome import Elected, Outcome
from hustings.sim.member import SimContext
from hustings.sim.queue import NEVER, on_grid
from hustings.sim.time_series import MAX_STEPS, SampledSeries
from hustings.sim.world import World

Metrics = dict[str, float | None]


def held_by(member: SimContext) -> MemberId | None:
    """The leader that a member holds."""
    outcome = member.outcome
    return outcome.leader if isinstance(outcome, Elected) else None


def most_held(world: World) -> MemberId | None:
    """The live member that most live members hold as leader."""
    held: dict[MemberId, int] = {}
    for member in world.live():
        leader = held_by(member)
        if leader is not None and world.members[leader].up:
            held[leader] = held.get(leader, 0) + 1
    return max(held, key=lambda each: held[each], default=None)


class Accord:
    """When all live members hold one live leader (accord), and when not (discord).

    An accord that begins and ends at one instant, between two events, does not end a discord; but
    `upon` hears of every accord, however short.
    """

    def __init__(self) -> None:
        self.upon: Callable[[World], None] | None = None
        self.leader: MemberId | None = None  # the leader that all hold, while they do
        self.since = 0.0  # when the present accord or discord began
        self._began: float | None = None
        self._discord = 0.0  # when the last discord began, ...
        self._whole = False  # ... and whether its beginning was seen
        self._leaving: MemberId | None = None
        self._holds: dict[MemberId, MemberId | None] = {}
        self._holders: dict[MemberId | None, int] = {}
        # Past discords: the time of all; the number seen from the start; the time of these.
        self._apart = 0.0
        self._number = 0
        self._lasted = 0.0

    def begin(self, world: World) -> None:
        """Watch from now on."""
        self._began = self.since = self._discord = world.now
        for member in world.live():
            self._enter(member)
        self._look(world)
        world.watch(self)

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        """A member holds another leader, or none."""
        leader = outcome.leader if outcome.__class__ is Elected else None
        holds, holders, who = self._holds, self._holders, member.id
        before = holds.get(who)
        if leader == before or who == self._leaving:
            return
        holds[who] = leader
        holders[before] -= 1
        number = holders[leader] = holders.get(leader, 0) + 1
        if self.leader is not None:
            self._break(world.now)
        if leader is not None and number == len(holds) and self._lives(world, leader):
            self._agree(world, leader)

    def _lives(self, world: World, leader: MemberId) -> bool:
        return world.members[leader].up and leader != self._leaving

    def changed(self, world: World, member: SimContext) -> None:
        """A member came up or went down."""
        if member.id in self._holds:
            self._holders[self._holds.pop(member.id)] -= 1
        if member.up and member.id != self._leaving:
            self._enter(member)
        self._look(world)

    def excuse(self, world: World, member: SimContext) -> None:
        """A member is about to leave: its opinion and its leadership no longer count."""
        self._leaving = member.id
        self.changed(world, member)

    def _enter(self, member: SimContext) -> None:
        held = self._holds[member.id] = held_by(member)
        self._holders[held] = self._holders.get(held, 0) + 1

    def _look(self, world: World) -> None:
        leader = next(iter(self._holds.values()), None)
        if leader is not None:
            unanimous = self._holders[leader] == len(self._holds)
            if not unanimous or not self._lives(world, leader):
                leader = None
        if leader == self.leader:
            return
        if self.leader is not None:
            self._break(world.now)
        if leader is not None:
            self._agree(world, leader)

    def _agree(self, world: World, leader: MemberId) -> None:
        self.leader = leader
        self.since = world.now
        if self.upon is not None:
            self.upon(world)

    def _break(self, now: float) -> None:
        self.leader = None
        if now > self.since:  # otherwise the discord before it continues
            self._settle()
            self._discord = now
            self._whole = True
        self.since = now

    def _settle(self) -> None:
        """The last discord ended when the present accord began."""
        lasted = self.since - self._discord
        self._apart += lasted
        if self._whole and lasted > 0:
            self._number += 1
            self._lasted += lasted
        self._discord = self.since

    def metrics(self, world: World) -> Metrics:
        """The metrics, at the end of a run."""
        number, fraction = None, None
        if self._began is not None:
            if self.leader is not None:
                self._settle()
            apart = self._apart + (world.now - self._discord if self.leader is None else 0.0)
            watched = world.now - self._began
            number, fraction = float(self._number), apart / watched if watched else None
        return {
            "inconsistent_fraction": fraction,
            "inconsistencies": number,
            "inconsistency_duration": self._lasted / self._number if self._number else None,
        }


def leads(member: SimContext) -> bool:
    """Whether a member takes itself for the leader, or for one of several."""
    if held_by(member) == member.id:
        return True
    election = member.election
    return election.seats > 1 and member.id in election.leaders


class Leaders:
    """How many live members take themselves for a leader: over time, and at most.

    With several seats, a member counts if it takes itself for one of the leaders.
    """

    def __init__(self) -> None:
        self.step: float | None = None  # of a time series; set it before time passes
        self._began: float | None = None
        self._several = False
        self._claims: dict[MemberId, None] = {}
        self._at = 0.0
        self._area = 0.0
        self._most = 0
        self._counts = array("I")  # at the instants of the time series

    def begin(self, world: World) -> None:
        """Watch from now on."""
        self._began = self._at = world.now
        self._several = any(one.election.seats > 1 for one in world.live())
        self._claims = {one.id: None for one in world.live() if leads(one)}
        self._most = len(self._claims)
        world.watch(self)

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        """A member begins to lead, or stops."""
        who = member.id
        if self._several:
            leading = leads(member)
        else:
            leading = outcome.__class__ is Elected and outcome.leader == who
        if leading:
            if who not in self._claims:
                self._enter(world, who)
        elif who in self._claims:
            self._exit(world, who)

    def changed(self, world: World, member: SimContext) -> None:
        """A member that goes no longer leads. A member that comes leads if it was only paused."""
        if member.id in self._claims:
            self._exit(world, member.id)
        if member.up and leads(member):
            self._enter(world, member.id)

    def _enter(self, world: World, who: MemberId) -> None:
        self._pass(world.now)
        self._claims[who] = None
        self._most = max(self._most, len(self._claims))

    def _exit(self, world: World, who: MemberId) -> None:
        self._pass(world.now)
        del self._claims[who]

    def _pass(self, now: float) -> None:
        self._area += (now - self._at) * len(self._claims)
        self._at = now
        if self.step is not None:
            while self._next() < now:
                self._counts.append(len(self._claims))

    def _next(self) -> float:
        """The next instant of the time series to be recorded, once the instant is over."""
        place = len(self._counts)
        if self._began is None or self.step is None or place > MAX_STEPS + 1:
            return NEVER
        return on_grid(self._began + place * self.step)

    def time_series(self, world: World) -> SampledSeries | None:
        """How many led at each instant of the grid, at the end of that instant."""
        if self._began is None or self.step is None:
            return None
        self._pass(world.now)
        counts, last = self._counts[:], len(self._claims)
        if self._next() == world.now:
            counts.append(last)
        return SampledSeries(counts[: MAX_STEPS + 1], last, cut=len(counts) > MAX_STEPS + 1)

    def metrics(self, world: World) -> Metrics:
        """The metrics, at the end of a run."""
        if self._began is None:
            return dict.fromkeys(("simultaneous_leaders", "simultaneous_leaders_max"))
        self._pass(world.now)
        watched = world.now - self._began
        return {
            "simultaneous_leaders": self._area / watched if watched else float(len(self._claims)),
            "simultaneous_leaders_max": float(self._most),
        }


class Lapses:
    """False departures: listeners that no longer hold the leader, although it is alive."""

    def __init__(self) -> None:
        self._leader: MemberId | None = None
        self._began = 0.0
        self._listeners = 0
        self._astray: dict[MemberId, float] = {}  # listeners without the leader, and since when
        self._early: dict[MemberId, None] = {}  # those for which this began before the observer did
        self._number = 0
        # Past lapses: the time of all; the number seen from the start; the time of these.
        self._lost = 0.0
        self._ended = 0
        self._lasted = 0.0

    def begin(self, world: World, leader: MemberId) -> None:
        """Watch from now on."""
        self._leader = leader
        self._began = world.now
        others = [member for member in world.live() if member.id != leader]
        self._listeners = len(others)
        self._astray = {one.id: world.now for one in others if held_by(one) != leader}
        self._early = dict.fromkeys(self._astray)
        world.watch(self)

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        """A listener loses the leader, or holds it again."""
        who = member.id
        if outcome.__class__ is Elected and outcome.leader == self._leader:
            since = self._astray.pop(who, None)
            if since is not None:
                self._lost += world.now - since
                if who in self._early:
                    del self._early[who]
                else:
                    self._ended += 1
                    self._lasted += world.now - since
        elif who not in self._astray and who != self._leader:
            self._astray[who] = world.now
            self._number += 1

    def changed(self, world: World, member: SimContext) -> None:
        """Nothing: this observer does not count other faults."""

    def metrics(self, world: World) -> Metrics:
        """The metrics, at the end of a run."""
        number, fraction = None, None
        if self._leader is not None:
            lost = self._lost + sum(world.now - since for since in self._astray.values())
            watched = (world.now - self._began) * self._listeners
            number, fraction = float(self._number), lost / watched if watched else None
        return {
            "false_departures": number,
            "false_departure_duration": self._lasted / self._ended if self._ended else None,
            "false_departure_fraction": fraction,
        }

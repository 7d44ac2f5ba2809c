"""Leaders of a mobile group, component by component: what is measured, and what must hold.

A component is a set of members that reach each other. A component is settled when all its members
hold one leader, and that leader is one of them. Components change when members move, so each has a
beginning: a split or a merger. The time from the beginning to one leader is measured. A component
that changes again before it has a leader counts as unsettled. A component that had a leader and
lost it, though no member moved, counts as a relapse.

`Roaming` moves the members. It expresses distance with what the world already has. With routed
links there is one partition, whose sides are the components. With direct links there is a one-way
cut for each member, from it to all members out of range.

A share of the time is weighted by members: it is that of a random member at a random instant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import partial

from hustings.core.choice import Choice, MemberId
from hustings.core.outcome import Elected, Outcome
from hustings.sim.checkers import Checker, Verdict
from hustings.sim.consistency import Metrics, held_by
from hustings.sim.faults import Heal, OneWay, Partition
from hustings.sim.measurements import RunMeasurement
from hustings.sim.member import SimContext
from hustings.sim.mobility import ROUTED, Component, Mobility, Topology
from hustings.sim.world import Ended, World


class Cause(Enum):
    """Why a component began."""

    START = "start"  # of the run; or a member of it came up or went down
    SPLIT = "split"
    MERGE = "merge"


@dataclass(slots=True, eq=False)
class ComponentState:
    """One component while its members stay the same."""

    members: Component
    since: float
    cause: Cause
    best: MemberId  # by the choice function
    leader: MemberId | None = None  # a member of the component that all members hold
    leading: int = 0  # members that take themselves for the leader
    apart: float | None = None  # since when there is no such leader; None while there is one
    settled: bool = False  # whether they ever had one


@dataclass(slots=True)
class Recovery:
    """Components with the same cause that began without one leader."""

    delays: list[float] = field(default_factory=list)
    unsettled: int = 0  # components that changed again, or met the end, before they had a leader

    def metrics(self, name: str) -> Metrics:
        """The mean time to one leader, and the share of components that did not get one."""
        number, begun = len(self.delays), len(self.delays) + self.unsettled
        return {
            f"{name}_delay": sum(self.delays) / number if number else None,
            f"{name}_unsettled": self.unsettled / begun if begun else None,
        }


@dataclass(slots=True)
class Times:
    """For how long each condition held; the first five count each member's time."""

    whole: float = 0.0
    one: float = 0.0  # all hold one leader, and it is one of them
    best: float = 0.0  # and it is the best of them
    none: float = 0.0  # no member takes itself for the leader
    several: float = 0.0  # more than one member does
    everywhere: float = 0.0  # every component has one leader
    components: float = 0.0  # each component's time
    leaders: float = 0.0  # each leader's time


class ComponentLeaders:
    """Watches which leader each member holds, by component; `regroup` gives it new components."""

    def __init__(self, choice: Choice) -> None:
        self._choice = choice
        self._reached: tuple[Component, ...] = ()  # including members that are down
        self._states: list[ComponentState] = []
        self._state_of: dict[MemberId, ComponentState] = {}
        self._holds: dict[MemberId, MemberId | None] = {}
        self._held_last: dict[MemberId, MemberId] = {}
        self._began = self._at = 0.0
        self._times = Times()
        self._changes = self._splits = self._merges = self._relapses = 0
        self._recoveries = {Cause.SPLIT: Recovery(), Cause.MERGE: Recovery()}
        self.stay = 0.0  # the longest time of unchanged members, two or more
        self.worst: tuple[float, float, Component] = (
            0.0,
            0.0,
            (),
        )  # time, since, members

    def begin(self, world: World) -> None:
        """Watch from now on."""
        self._began = self._at = world.now
        world.watch(self)

    def regroup(self, world: World, components: tuple[Component, ...]) -> None:
        """From now on, components consist of other members."""
        self._reached = components
        before = self._state_of
        fresh = self._rebuild(world)
        if not before:
            return
        parts: dict[MemberId, dict[MemberId, None]] = {}  # new components by old, by first members
        for state in fresh:
            origins = dict.fromkeys(before[one].members[0] for one in state.members)
            state.cause = Cause.MERGE if len(origins) > 1 else Cause.SPLIT
            self._merges += len(origins) > 1
            for origin in origins:
                parts.setdefault(origin, {})[state.members[0]] = None
        self._splits += sum(len(each) > 1 for each in parts.values())

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        """A member holds another leader, or none."""
        leader = outcome.leader if isinstance(outcome, Elected) else None
        who = member.id
        if who not in self._state_of or leader == self._holds.get(who):
            return
        self._pass(world.now)
        self._holds[who] = leader
        if leader is not None:
            self._changes += self._held_last.get(who, leader) != leader
            self._held_last[who] = leader
        self._look(self._state_of[who])

    def changed(self, world: World, member: SimContext) -> None:
        """A member came up or went down."""
        if (member.id in self._state_of) is not member.awake:
            self._holds[member.id] = held_by(member)
            self._rebuild(world)

    def _rebuild(self, world: World) -> list[ComponentState]:
        """Compute the components of the live members, and return the new ones."""
        self._pass(world.now)
        old = {state.members: state for state in self._states}
        self._states, fresh = [], []
        for component in self._reached:
            members = tuple(one for one in component if world.members[one].awake)
            state = old.pop(members, None)
            if state is None and members:
                state = self._found(world, members)
                fresh.append(state)
            if state is not None:
                self._states.append(state)
        for gone in old.values():
            self._close(gone, world.now)
        self._state_of = {one: state for state in self._states for one in state.members}
        return fresh

    def _found(self, world: World, members: Component) -> ComponentState:
        best = max(members, key=lambda one: self._choice.key(world.members[one].me))
        state = ComponentState(members, world.now, Cause.START, best, apart=world.now)
        self._look(state)
        return state

    def _look(self, state: ComponentState) -> None:
        """Update which leader its members hold now."""
        held = [self._holds.get(one) for one in state.members]
        agreed = held[0] in state.members and all(one == held[0] for one in held)
        state.leader = held[0] if agreed else None
        state.leading = sum(map(int.__eq__, state.members, [one or 0 for one in held]))

    def _pass(self, now: float) -> None:
        """Let time pass with everything unchanged; a state without duration is not seen."""
        passed, times = now - self._at, self._times
        if not passed:
            return
        for state in self._states:
            weight = passed * len(state.members)
            times.whole += weight
            times.one += weight * (state.leader is not None)
            times.best += weight * (state.leader == state.best)
            times.none += weight * (state.leading == 0)
            times.several += weight * (state.leading > 1)
            self._note(state)
        times.components += passed * len(self._states)
        times.leaders += passed * sum(state.leading for state in self._states)
        times.everywhere += passed * all(state.leader is not None for state in self._states)
        self._at = now

    def _note(self, state: ComponentState) -> None:
        """Record an accord or a discord that has lasted since the last look."""
        if state.leader is None:
            if state.apart is None:
                state.apart = self._at
                self._relapses += 1
        elif state.apart is not None:
            self._discord(state, self._at)
            if not state.settled and self._at > state.since and state.cause in self._recoveries:
                self._recoveries[state.cause].delays.append(self._at - state.since)
            state.apart, state.settled = None, True

    def _discord(self, state: ComponentState, until: float) -> None:
        if state.apart is not None and until - state.apart > self.worst[0]:
            self.worst = (until - state.apart, state.apart, state.members)

    def _close(self, state: ComponentState, now: float) -> None:
        """Close a component: its members change from now on, or the run ends."""
        self._discord(state, now)
        if len(state.members) > 1:
            self.stay = max(self.stay, now - state.since)
        if not state.settled and now > state.since and state.cause in self._recoveries:
            self._recoveries[state.cause].unsettled += 1

    def finish(self, world: World) -> Metrics:
        """Close everything at the end of a run; called once."""
        self._pass(world.now)
        for state in self._states:
            self._close(state, world.now)
        times, watched = self._times, world.now - self._began
        whole, components = times.whole or None, times.components or None
        sent = sum(world.sent.values())
        return {
            "components": times.components / watched if watched else None,
            "splits": float(self._splits),
            "merges": float(self._merges),
            "one_leader": times.one / whole if whole else None,
            "one_leader_everywhere": times.everywhere / watched if watched else None,
            "best_leader": times.best / whole if whole else None,
            "no_leader": times.none / whole if whole else None,
            "several_leaders": times.several / whole if whole else None,
            "leaders_per_component": times.leaders / components if components else None,
            **self._recoveries[Cause.SPLIT].metrics("split"),
            **self._recoveries[Cause.MERGE].metrics("merge"),
            "relapses": float(self._relapses),
            "leader_changes": self._changes / len(world.members),
            "message_rate": sent / whole if whole else None,
        }


class OneLeaderEach(Checker):
    """Members that stay together soon have one leader, which is one of them.

    A counterexample is a component whose members stayed the same and had no such leader for longer
    than `settle`. A run is undecided if no two members stayed together for this time.
    """

    name = "components"

    def __init__(self, leaders: ComponentLeaders, settle: float) -> None:
        self._leaders = leaders
        self._settle = settle

    def judge(self, world: World, ended: Ended) -> tuple[Verdict, str]:
        """After `finish`."""
        lasted, since, members = self._leaders.worst
        if lasted > self._settle:
            return Verdict.VIOLATED, (
                f"{_told(members)} from {since:g} on, without one leader of their own for "
                f"{lasted:g}: longer than {self._settle:g}"
            )
        if self._leaders.stay < self._settle:
            return Verdict.UNDECIDED, f"no two members stayed together for {self._settle:g}"
        return Verdict.HOLDS, f"no component lacked one leader for longer than {self._settle:g}"


def _told(members: Component) -> str:
    if len(members) == 1:
        return f"member {members[0]} was alone"
    shown = ", ".join(str(one) for one in members[:8])
    return f"members {shown}{', ...' if members[8:] else ''} stayed together"


PARTED = "out of range"  # the partition's name


class Roaming(RunMeasurement):
    """A mobile group, watched until the time limit."""

    def __init__(self, mobility: Mobility, horizon: float, choice: Choice, settle: float) -> None:
        super().__init__()
        self._mobility = mobility
        self._horizon = horizon
        self._components: tuple[Component, ...] = ()
        self._cut_off: dict[MemberId, tuple[MemberId, ...]] = {}  # with direct links
        self._watched = ComponentLeaders(choice)
        self.checker = OneLeaderEach(self._watched, settle)

    def begin(self, world: World) -> None:
        """Put members at their first places; call this before any of them sends."""
        self.open(world)
        world.be_careful()
        self._watched.begin(world)
        topologies = self._mobility.topologies(len(world.members), self._horizon, world.seed)
        self._move(world, next(topologies), topologies)
        world.at(self._horizon, lambda: None)  # a group at rest is watched to the end, too

    def _move(self, world: World, now: Topology, later: Iterator[Topology]) -> None:
        components, first = now.components(), not self._components
        changed, self._components = components != self._components, components
        if self._mobility.links != ROUTED:
            self._cut(world, now)
        elif changed and not (first and len(components) == 1):
            _part(world, components)
        if changed:
            self._watched.regroup(world, components)
        following = next(later, None)
        if following is not None:
            world.at(following.at, partial(self._move, world, following, later))

    def _cut(self, world: World, now: Topology) -> None:
        """Cut a member off from the members out of its range."""
        for member, near in now.neighbours.items():
            far = tuple(one for one in now.neighbours if one != member and one not in near)
            if far != self._cut_off.get(member, ()):
                name = f"{PARTED} of {member}"
                cut = OneWay(senders=(member,), to=far, name=name) if far else Heal(name=name)
                cut.happen(world)
                self._cut_off[member] = far

    def time(self, world: World) -> float:
        return world.now - self.origin

    def metrics(self, world: World) -> Metrics:
        return self._watched.finish(world)


def _part(world: World, components: tuple[Component, ...]) -> None:
    if len(components) > 1:
        Partition(sides=components, name=PARTED).happen(world)
    else:
        Heal(name=PARTED).happen(world)

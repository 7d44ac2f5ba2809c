"""What is claimed of elections in turmoil, each claim a function of a protocol and a seed.

A claim returns what was wrong, or None. The world runs in debug mode, so an exception in a handler
or a context kept too long is wrong, too.
"""

from __future__ import annotations

from collections.abc import Callable

from hustings.core.election import Election
from hustings.core.outcome import ELECTING, Elected, NoLeader, Outcome
from hustings.protocols.bully_map_printed import BullyMapPrinted
from hustings.protocols.stable import Stable
from hustings.sim.checkers import agreed_leader
from hustings.sim.faults import Call, Crash, Happening, Restart, schedule
from hustings.sim.member import SimContext
from hustings.sim.trace import Sink
from hustings.sim.world import Ended, World
from tests.swarm.detector import RightDetector
from tests.swarm.draws import (
    Group,
    draw_crash,
    draw_group,
    draw_trouble,
    reliable,
    unreliable,
    weighted,
)

MAX_EVENTS = 200_000

Claim = Callable[[type[Election], int, Sink | None], str | None]


def turmoil(kind: type[Election], seed: int, out: Sink | None = None) -> str | None:
    """Few faults, wide apart or close together, then the promised leader."""
    group = draw_group(kind, seed, "turmoil", reliable, out)
    stream, ids = group.stream, group.ids
    detector = _watch(group, kind)
    horizon = stream.choice((3.0, 8.0, 20.0, 60.0))
    happenings: list[Happening] = []
    if stream.below(5):
        leader = group.ranked()[0]
        group.assume(lambda: leader)
    else:  # a first election: somebody who lives in the end must call it
        happenings += [Call(member=member, at=horizon + 5) for member in ids]
    for _ in range(stream.below(9)):
        at, member = stream.uniform(0.0, horizon), stream.choice(ids)
        happenings.append(
            weighted(
                stream,
                [
                    (11, draw_crash(stream, member, at)),
                    (6, Restart(member=member, at=at)),
                    (3, Call(member=member, at=at)),
                ],
            )
        )
    if stream.below(2):
        happenings.append(Crash(member=group.ranked()[0], at=stream.uniform(0.0, horizon / 2)))
    return _promised(kind, group, detector, happenings)


def dense(kind: type[Election], seed: int, out: Sink | None = None) -> str | None:
    """Many faults at once, most of them to the best members, then the promised leader."""
    group = draw_group(kind, seed, "dense", reliable, out, fewest=3)
    stream, ids, ranked = group.stream, group.ids, group.ranked()
    detector = _watch(group, kind)
    group.assume(lambda: ranked[0])
    horizon = stream.choice((6.0, 15.0, 40.0))
    happenings: list[Happening] = []
    for _ in range(4 + stream.below(22)):
        at, anybody = stream.uniform(0.0, horizon), stream.choice(ids)
        good = ranked[min(int(stream.expovariate(0.6)), len(ids) - 1)]
        happenings.append(
            weighted(
                stream,
                [
                    (30, Crash(member=good, at=at)),
                    (15, Crash(member=anybody, at=at, after_sends=1 + stream.below(8))),
                    (35, Restart(member=good, at=at)),
                    (7, Restart(member=anybody, at=at)),
                    (13, Call(member=anybody, at=at)),
                ],
            )
        )
    return _promised(kind, group, detector, happenings)


def chaos(kind: type[Election], seed: int, out: Sink | None = None) -> str | None:
    """Nothing can be relied on: the run ends by itself, and nobody is left hanging."""
    group = draw_group(kind, seed, "chaos", unreliable, out)
    stream, ids = group.stream, group.ids
    if stream.below(10) < 7:
        group.assume(lambda: stream.choice(ids))  # perhaps each another one
    horizon = stream.choice((5.0, 30.0, 80.0))
    happenings: list[Happening] = []
    for _ in range(1 + stream.below(25)):
        happenings += draw_trouble(group, horizon)
    ended = _run(group, happenings)
    if ended is not Ended.QUIESCENT:
        return f"the run did not end by itself: {ended.value}"
    if kind is BullyMapPrinted:
        return None
    return _hanging(group)


CLAIMS: dict[str, Claim] = {"turmoil": turmoil, "dense": dense, "chaos": chaos}


def judge(claim: str, kind: type[Election], seed: int, out: Sink | None = None) -> str | None:
    """What was wrong, an exception included."""
    try:
        return CLAIMS[claim](kind, seed, out)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


class Loyalty:
    """An observer: once all hold one leader that nobody suspects, none drops it while it lives."""

    def __init__(self, detector: RightDetector) -> None:
        self._detector = detector
        self._settled: tuple[SimContext, int] | None = None  # the leader and its incarnation
        self.broken: str | None = None

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        if self._settled is None:
            agreed = agreed_leader(world)
            if agreed is not None and world.members[agreed].up:
                self._settled = world.members[agreed], world.members[agreed].incarnation
            return
        leader, life = self._settled
        if not leader.up or leader.incarnation != life or self._detector.suspected(leader.id):
            self._settled = None
        elif isinstance(outcome, Elected) and outcome.leader != leader.id:
            self.broken = (
                f"member {member.id} took {outcome.leader} at {world.now:g}, "
                f"while {leader.id} led and lived"
            )

    def changed(self, world: World, member: SimContext) -> None:
        """That a leader is gone is seen when the next outcome is declared."""


# How a run is played and what is asked of it


def _watch(group: Group, kind: type[Election]) -> RightDetector:
    """A right detector; where a protocol may expect a live view, it is repaired or left alone."""
    repairs = kind.assumptions.live_view and bool(group.stream.below(2))
    detector = RightDetector(group.stream, repairs=repairs)
    group.world.watch(detector)
    return detector


def _run(group: Group, happenings: list[Happening]) -> Ended:
    world = group.world
    schedule(world, happenings)
    ended = world.run(max_events=MAX_EVENTS)
    if world.tracer is not None:
        world.tracer.close(world.now, ended.value)
    return ended


def _promised(
    kind: type[Election], group: Group, detector: RightDetector, happenings: list[Happening]
) -> str | None:
    loyalty = Loyalty(detector)
    group.world.watch(loyalty)
    ended = _run(group, happenings)
    if ended is not Ended.QUIESCENT:
        return f"the run did not end by itself: {ended.value}"
    if kind is BullyMapPrinted:
        return None
    return _stable(group, loyalty) if kind is Stable else _best_leads(group)


def _best_leads(group: Group) -> str | None:
    """Every live member holds the best live member."""
    best = group.best_alive()
    for member in group.world.live():
        held = member.outcome.leader if isinstance(member.outcome, Elected) else member.outcome
        if held != best or member.election.leader != best:
            return f"member {member.id} holds {held}, but {best} is the best alive"
    return None


def _stable(group: Group, loyalty: Loyalty) -> str | None:
    """All hold one live leader, perhaps not the best, and nobody dropped one that lived."""
    if not group.world.live():
        return None
    leader = agreed_leader(group.world)
    if leader is None:
        held = {member.id: member.outcome for member in group.world.live()}
        return f"no one leader is held by all: {held}"
    if not group.world.members[leader].up:
        return f"the leader {leader} is dead"
    return loyalty.broken


def _hanging(group: Group) -> str | None:
    for member in group.world.live():
        took_part = member.incarnation > 1 or member.id in group.attendance.took_part
        if member.outcome == NoLeader(ELECTING) or (member.outcome is None and took_part):
            return f"member {member.id} is left with {member.outcome}"
    return None

"""Turmoil, then calm: whatever happens to members and messages, detectors find the truth again.

During the turmoil nothing is asked but that no handler raises and no table outgrows its view.
"""

from collections.abc import Callable
from itertools import takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.choice import MemberId
from hustings.layers.detector.accrual import AccrualConfig, AccrualMonitor
from hustings.layers.detector.detector import PATTERNS
from hustings.layers.detector.heartbeat import HeartbeatConfig
from hustings.sim.delay import Uniform
from hustings.sim.faults import (
    Crash,
    Happening,
    Heal,
    Leave,
    OneWay,
    Partition,
    Pause,
    Restart,
    Resume,
    Suspect,
    schedule,
)
from hustings.sim.member import SimContext
from hustings.sim.network import Network
from hustings.sim.world import World
from tests.unit.layers.detector.listeners import Listening, under_watch

N = 5
CALM = 12.0

members = st.integers(1, N)
pairs = st.tuples(members, members).filter(lambda pair: pair[0] != pair[1])
instants = st.integers(0, int(CALM * 8) - 1).map(lambda eighth: eighth / 8)


def to_one(kind: Callable[..., Happening]) -> st.SearchStrategy[Happening]:
    return st.builds(kind, member=members, at=instants)


turmoil = st.lists(
    to_one(Crash)
    | to_one(Restart)
    | to_one(Pause)
    | to_one(Resume)
    | to_one(Leave)
    | st.builds(lambda pair, at: Suspect(member=pair[0], about=pair[1], at=at), pairs, instants)
    | st.builds(lambda pair, at: OneWay(senders=pair[:1], to=pair[1:], at=at), pairs, instants)
    | st.builds(
        lambda cut, at: Partition(sides=(tuple(range(1, cut)), tuple(range(cut, N + 1))), at=at),
        st.integers(2, N),
        instants,
    ),
    max_size=12,
)
SETTINGS: dict[str, object] = {"T": 1.0, "D": 0.25, "delta": 0.25}
configs = st.sampled_from(sorted(PATTERNS)).flatmap(
    lambda pattern: st.sampled_from(
        [
            HeartbeatConfig.parse({**SETTINGS, "pattern": pattern}),
            AccrualConfig.parse({**SETTINGS, "pattern": pattern, "window": 10, "min_samples": 5}),
        ]
    )
)


def check_bounds(world: World) -> None:
    for member in world.live():
        detector = under_watch(world, member.id).detector
        tables = [detector.suspects, detector.monitor.deadlines, detector._latest, detector._askers]
        if isinstance(detector.monitor, AccrualMonitor):
            tables.append(detector.monitor.estimators)
        assert all(len(table) <= N for table in tables)


def agree(world: World) -> None:
    """All live members take one of them for the leader, as after an election."""
    for member in world.live():
        member.election.assume_leader(member, world.live()[0].id, 2)


def to_be_suspected(world: World, pattern: str, watcher: SimContext) -> list[MemberId]:
    """The dead whom a live member must suspect, if it knows them and the first live one leads."""
    ids = watcher.view.ids
    place = ids.index(watcher.id)
    others = ids[place + 1 :] + ids[:place]
    if pattern == "ring":  # the dead between itself and the next live member
        return list(takewhile(lambda member: not world.members[member].up, others))
    if pattern == "all-to-all" or (pattern == "to-leader" and watcher is world.live()[0]):
        return [member for member in others if not world.members[member].up]
    return []


@given(happenings=turmoil, config=configs, seed=st.integers(0, 99), leader=st.none() | members)
def test_after_the_turmoil_everybody_suspects_the_dead_and_nobody_else(
    happenings: list[Happening], config: HeartbeatConfig, seed: int, leader: MemberId | None
) -> None:
    """Cuts lose messages, pauses delay them; the network itself may only double them."""
    network = Network(Uniform(0.0, 0.25), duplicate=0.2)
    world = Listening(N, config, network, seed=seed, leader=leader)
    calm: list[Happening] = [
        *(Resume(member=member, at=CALM) for member in range(1, N + 1)),
        Heal(name="partition", at=CALM),
        Heal(name="one-way", at=CALM),
    ]
    schedule(world, [*happenings, *calm])
    world.run(until=CALM)
    check_bounds(world)
    agree(world)
    # Long enough for wide estimates to narrow, and for a ring to pass over the dead one by one.
    world.run(until=CALM + 100.0)
    check_bounds(world)
    for member in world.live():
        suspects = under_watch(world, member.id).detector.suspects
        assert suspects >= set(to_be_suspected(world, config.pattern, member))
        assert not [other for other in suspects if world.members[other].up]


@pytest.mark.parametrize("pattern", sorted(PATTERNS))
@given(happenings=turmoil, seed=st.integers(0, 99))
def test_no_turmoil_makes_a_handler_raise_in_debug_mode(
    pattern: str, happenings: list[Happening], seed: int
) -> None:
    config = HeartbeatConfig.parse({"pattern": pattern, "delta": 0.25})
    network = Network(Uniform(0.0, 0.5), duplicate=0.2, reorder=0.2, hold_back=3.0)
    world = Listening(N, config, network, seed=seed, leader=3, debug=True)
    schedule(world, happenings)
    world.run(until=CALM)
    check_bounds(world)

"""Detector and election under one roof: routing, reports, and elections that run by themselves."""

from collections.abc import Callable

import pytest

from hustings.core.choice import Candidate, Choice, HighestId, LowestId, MemberId
from hustings.core.election import Election
from hustings.core.errors import ProtocolBug
from hustings.core.outcome import Elected, Outcome
from hustings.layers.detector.accrual import AccrualConfig
from hustings.layers.detector.detector import Detector
from hustings.layers.detector.heartbeat import HeartbeatConfig, HeartbeatMsg, PingMsg, PongMsg
from hustings.layers.detector.layer import DetectorLayer, with_detector
from hustings.protocols.bully import Bully, BullyConfig, CoordinatorMsg, ElectionMsg
from hustings.protocols.ring import Ring, RingConfig
from hustings.sim.delay import Fixed, Uniform
from hustings.sim.faults import Call, Crash, Happening, Leave, Restart, schedule
from hustings.sim.member import SimContext
from hustings.sim.network import Network
from hustings.sim.trace import Header, Tracer
from hustings.sim.world import World
from hustings.testing.effects import Send, SetTimer
from hustings.testing.recorded import RecordedMember, recording, view_of
from tests.unit.layers.detector.listeners import Listening, people, under_watch

SETTINGS = {"T": 1.0, "D": 0.25, "delta": 0.25}


def bully(choice: Choice | None = None) -> Bully:
    return Bully(BullyConfig(delta=0.25), choice or HighestId())


def ring() -> Ring:
    return Ring(RingConfig(delta=0.25), HighestId())


def beating(pattern: str) -> HeartbeatConfig:
    return HeartbeatConfig.parse({**SETTINGS, "pattern": pattern})


def played(
    elect: Callable[[], Election],
    config: HeartbeatConfig,
    happenings: list[Happening],
    *,
    until: float = 20.0,
    seed: int = 0,
    debug: bool = False,
    tracer: Tracer | None = None,
) -> World:
    network = Network(delay=Uniform(0.0, 0.25))
    world = World(
        with_detector(elect, config),
        people(5),
        network=network,
        seed=seed,
        debug=debug,
        tracer=tracer,
    )
    world.start()
    schedule(world, happenings)
    world.run(until=until)
    return world


def beliefs(world: World) -> list[MemberId | None]:
    """Whom the live members take for their leader."""
    return [member.election.leader for member in world.live()]


# Routing


def test_one_process_may_hold_several_elections_with_detectors() -> None:
    config = HeartbeatConfig()
    one, other = DetectorLayer(bully(), Detector(config)), DetectorLayer(ring(), Detector(config))
    assert ElectionMsg in one.handlers
    assert ElectionMsg not in other.handlers
    assert HeartbeatMsg in one.handlers
    assert HeartbeatMsg in other.handlers
    assert HeartbeatMsg not in Bully.handlers
    assert set(DetectorLayer.handlers) == set(DetectorLayer.messages), (
        "the class has its own kinds alone"
    )
    assert one.handlers is DetectorLayer(bully(), Detector(config)).handlers


def test_a_detector_upon_a_detector_is_refused() -> None:
    inner = DetectorLayer(bully(), Detector(HeartbeatConfig()))
    with pytest.raises(
        ProtocolBug, match="HEARTBEAT, WATCH, DETECTOR-PING, DETECTOR-PONG has a detector already"
    ):
        DetectorLayer(inner, Detector(HeartbeatConfig()))


def test_leader_term_config_and_choice_are_the_inner_elections() -> None:
    inner = bully(LowestId())
    outer = DetectorLayer(inner, Detector(HeartbeatConfig()))
    assert outer.config is inner.config
    assert outer.choice is inner.choice
    outer.leader, outer.term = 3, 7
    assert (inner.leader, inner.term) == (3, 7)
    inner.leader = 4
    assert outer.leader == 4
    assert outer.state() == f"{inner.state()} suspects=[]"


def test_timers_go_to_the_part_that_armed_them() -> None:
    member = RecordedMember(
        with_detector(bully, beating("leader-to-all")), Candidate(2), view_of(people(3))
    )
    member.start()
    member.call()
    assert member.timers.keys() == {"T1"}
    member.fire("T1")
    assert member.outcome == Elected(2, 1)
    assert member.timers.keys() == {("beat", 0)}  # it leads now, and beats
    member.deliver(3, CoordinatorMsg(2))
    assert member.outcome == Elected(3, 2)
    assert ("detector", 3) in member.timers
    member.fire(("detector", 3))
    assert member.election.leader == 2  # nobody better is alive, so it took over at once
    assert member.outcome == Elected(2, 3)


def test_what_a_suspect_says_in_the_election_shows_that_it_lives() -> None:
    member = RecordedMember(
        with_detector(bully, beating("all-to-all")), Candidate(2), view_of(people(3))
    )
    member.start()
    member.fire(("detector", 3))
    assert member.election.state().endswith("suspects=[3]")
    member.deliver(3, ElectionMsg(0))
    assert member.election.state().endswith("suspects=[]")
    member.call()
    assert member.outcome != Elected(2, 1)  # it asks 3 again, instead of taking it for dead


# Deference


def deferring(me: MemberId) -> RecordedMember:
    config = HeartbeatConfig.parse(
        {**SETTINGS, "pattern": "leader-to-all", "successor_head_start": 0.5}
    )
    member = RecordedMember(with_detector(bully, config), Candidate(me), view_of(people(4)))
    member.start()
    member.assume_leader(4)
    return member


def test_the_best_of_those_left_acts_at_once() -> None:
    member = deferring(3)
    member.fire(("detector", 4))
    assert member.outcome == Elected(3, 2)


def test_the_others_wait_and_follow_whoever_has_won_meanwhile() -> None:
    member = deferring(2)
    effects = member.fire(("detector", 4))
    assert SetTimer(("defer", 4), 0.5) in effects
    assert not [each for each in effects if isinstance(each, Send) and each.to != 4]
    member.deliver(3, CoordinatorMsg(2))
    assert member.outcome == Elected(3, 2)
    effects = member.fire(("defer", 4))
    assert not [each for each in effects if isinstance(each, Send)]
    assert member.election.leader == 3


def test_when_nobody_has_won_meanwhile_they_ask() -> None:
    member = deferring(2)
    member.fire(("detector", 4))
    effects = member.fire(("defer", 4))
    assert [each.to for each in effects if isinstance(each, Send)] == [4, 3]


def test_a_leader_that_shows_up_meanwhile_was_never_suspected() -> None:
    member = deferring(2)
    member.fire(("detector", 4))
    member.deliver(4, HeartbeatMsg(1, 1))
    assert ("defer", 4) not in member.timers
    assert (member.election.leader, member.outcome) == (4, None)


def test_what_is_deferred_ends_with_the_member() -> None:
    member = deferring(2)
    member.suspect(4)
    member.leave()
    assert ("defer", 4) not in member.timers


def test_a_pause_that_the_world_noticed_reaches_the_detector() -> None:
    member = RecordedMember(
        with_detector(bully, beating("leader-to-all")), Candidate(2), view_of(people(3))
    )
    member.start()
    member.assume_leader(3)
    member.clock = 60.0
    assert isinstance(member.election, DetectorLayer)
    with recording(member.me, member.view, now=60.0) as ctx:
        member.election.woke(ctx, 59.0)
    assert member.election.detector.health == 8.0
    assert ctx.effects == [SetTimer(("detector", 3), 8 * 1.25, eager=False)]


def test_a_lifeline_that_broke_brings_the_next_leader_at_once_and_the_old_one_may_return() -> None:
    member = RecordedMember(
        with_detector(bully, beating("leader-to-all")), Candidate(2), view_of(people(3))
    )
    member.start()
    member.assume_leader(3)
    member.deliver(3, HeartbeatMsg(1, 40))
    member.suspect(3)
    assert member.outcome == Elected(2, 2)  # nobody better is alive
    member.deliver(3, HeartbeatMsg(2, 1))
    assert isinstance(member.election, DetectorLayer)
    assert member.election.detector.suspects == set()
    member.deliver(3, CoordinatorMsg(3))
    assert member.outcome == Elected(3, 3)
    assert member.timers[("detector", 3)].deadline == member.clock + 1.25


def test_an_answer_to_a_question_keeps_the_leader() -> None:
    config = HeartbeatConfig.parse({**SETTINGS, "pattern": "leader-to-all", "ping_timeout": 0.5})
    member = RecordedMember(with_detector(bully, config), Candidate(2), view_of(people(3)))
    member.start()
    member.assume_leader(3)
    assert Send(3, PingMsg(1)) in member.fire(("detector", 3))
    member.deliver(3, PongMsg(1))
    assert member.election.leader == 3
    member.fire(("detector", 3))
    member.fire(("detector", 3))
    assert member.election.leader == 2
    assert member.deliver(3, PingMsg(5))[0] == Send(3, PongMsg(5))


class Witness:
    """Compares what is declared with what the election then says of itself."""

    def __init__(self) -> None:
        self.seen: list[bool] = []

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        if isinstance(outcome, Elected):
            self.seen.append(member.election.leader == outcome.leader)

    def changed(self, world: World, member: SimContext) -> None:
        pass


def test_leader_is_true_also_in_the_middle_of_a_handler() -> None:
    world = World(
        with_detector(bully, beating("all-to-all")), people(3), network=Network(Fixed(0.25))
    )
    witness = Witness()
    world.watch(witness)
    world.start()
    schedule(world, [Call(member=1, at=0.5)])
    world.run(until=5.0)
    assert len(witness.seen) >= 3
    assert all(witness.seen)


# Elections that need nobody to tell them

PATTERNS_FOR = [
    *(("bully", bully, pattern) for pattern in ("all-to-all", "ring", "leader-to-all")),
    *(("ring", ring, pattern) for pattern in ("all-to-all", "ring")),
]
CONFIGS = [
    pytest.param(
        elect, config.parse({**SETTINGS, "pattern": pattern}), id=f"{name}-{kind}-{pattern}"
    )
    for name, elect, pattern in PATTERNS_FOR
    for kind, config in (("heartbeat", HeartbeatConfig), ("accrual", AccrualConfig))
]


@pytest.mark.parametrize("elect, config", CONFIGS)
@pytest.mark.parametrize("debug", [False, True])
def test_a_crash_of_the_leader_brings_the_next_best(
    elect: Callable[[], Election], config: HeartbeatConfig, debug: bool
) -> None:
    crashes: list[Happening] = [
        Call(member=2, at=0.5),
        Crash(member=5, at=20.3),
        Crash(member=4, at=40.0),
        Crash(member=1, at=40.0),
    ]
    for seed in range(3):
        world = played(elect, config, crashes, until=20.0, seed=seed, debug=debug)
        assert beliefs(world) == [5, 5, 5, 5, 5]
        world.run(until=39.5)
        assert beliefs(world) == [4, 4, 4, 4]
        world.run(until=60.0)
        assert beliefs(world) == [3, 3]
        assert [m.election.term for m in world.live()] == [world.members[3].election.term] * 2


@pytest.mark.parametrize("pattern", ["all-to-all", "ring", "leader-to-all"])
def test_the_best_one_takes_over_again_when_it_is_back(pattern: str) -> None:
    happenings: list[Happening] = [
        Call(member=1),
        Crash(member=5, at=5.0),
        Restart(member=5, at=12.0),
    ]
    world = played(bully, beating(pattern), happenings, until=11.9)
    assert beliefs(world) == [4, 4, 4, 4]
    world.run(until=20.0)
    assert beliefs(world) == [5] * 5
    # Those who noticed the crash noticed the return; in a ring that is its neighbour alone.
    assert [under_watch(world, m).detector.suspects for m in range(1, 6)] == [set()] * 5


@pytest.mark.parametrize("pattern", ["all-to-all", "ring", "leader-to-all"])
def test_a_leader_that_is_back_before_its_timer_ran_out_leads_again(pattern: str) -> None:
    happenings: list[Happening] = [
        Call(member=1),
        Crash(member=5, at=5.3),
        Restart(member=5, at=5.4),
    ]
    for seed in range(10):
        world = played(bully, beating(pattern), happenings, seed=seed)
        assert beliefs(world) == [5] * 5


@pytest.mark.parametrize("pattern", ["all-to-all", "ring", "leader-to-all"])
def test_a_leader_that_leaves_is_replaced(pattern: str) -> None:
    happenings: list[Happening] = [Call(member=1), Leave(member=5, at=5.0)]
    world = played(bully, beating(pattern), happenings)
    assert beliefs(world) == [4, 4, 4, 4]
    detectors = [under_watch(world, member).detector for member in range(1, 5)]
    assert all(5 not in detector.suspects for detector in detectors)


def test_one_seed_one_run() -> None:
    def digest(seed: int) -> str:
        tracer = Tracer(Header(protocol="bully", members=[1, 2, 3, 4, 5], seed=seed))
        crash = [Call(member=1), Crash(member=5, at=5.0), Restart(member=5, at=12.0)]
        world = played(bully, beating("ring"), list(crash), seed=seed, tracer=tracer)
        return tracer.close(world.now, "until")

    assert digest(1) == digest(1)
    assert digest(1) != digest(2)


def test_one_multicast_each_period_does_what_a_heartbeat_to_each_does() -> None:
    settings = {**SETTINGS, "pattern": "leader-to-all"}
    noted, counted = [], []
    for beat in ("send", "multicast"):
        config = HeartbeatConfig.parse({**settings, "beat": beat})
        world = Listening(5, config, Network(Fixed(0.25)), leader=5, debug=True)
        counted.append(world.beats(until=9.5))
        schedule(world, [Crash(member=5, at=9.75)])
        world.run(until=20.0)
        noted.append(world.journal)
    assert counted == [36, 9]  # at 1, 2, ... 9; the first left before it was counted from
    assert noted[0] == noted[1]
    assert [note.who for note in noted[0]] == [1, 2, 3, 4]

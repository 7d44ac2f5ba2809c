"""Runs upon gossip and bimodal multicast: they begin when views have settled and end by rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hustings.core.choice import HighestId
from hustings.core.errors import BadInput
from hustings.layers.detector.heartbeat import HeartbeatConfig
from hustings.layers.gossip.layer import GossipConfig, GossipLayer
from hustings.protocols.bully import Bully, BullyConfig
from hustings.protocols.probabilistic.election import Probabilistic
from hustings.protocols.probabilistic.settings import ProbabilisticConfig
from hustings.protocols.registry import find
from hustings.sim.experiment import Experiment
from hustings.sim.faults import Call, Crash, Suspect
from hustings.sim.play import play, prepare
from hustings.sim.scenarios import Scenario
from hustings.sim.stacking import settled_at
from hustings.sim.world import Ended
from tests.unit.sim.worlds import Ear

STACK = GossipConfig()
BULLY = Experiment(Bully, 6, BullyConfig(), stack=STACK)


def test_nothing_is_called_before_views_have_settled() -> None:
    world = prepare(BULLY, 0)
    origin = BULLY.origin
    assert origin == settled_at(STACK, 6) > 0
    world.run(until=origin - 0.001)
    assert world.last_declared == 0.0
    for member in world.live():
        assert isinstance(member.election, GossipLayer)
        assert list(member.election.membership.view) == [1, 2, 3, 4, 5, 6]
    assert play(BULLY, 0).metrics["leader"] == 6.0


def test_time_and_messages_count_from_there() -> None:
    found = play(BULLY, 0)
    assert found.ended is Ended.STOPPED
    time, upkeep = found.metrics["time"], found.metrics["detector_messages"]
    assert time is not None
    assert 0 < time <= 10.0
    alone = play(Experiment(Bully, 6, BullyConfig()), 0)
    assert found.metrics["messages"] == alone.metrics["messages"]
    # Six members gossip and send digests in each unit of time, and the run ends soon after.
    assert upkeep is not None
    assert 6 * time < upkeep < 6 * 6 * (time + 3 * STACK.buffering_time)


def test_faults_happen_as_long_after_that_as_they_are_planned() -> None:
    late = Scenario(extra=(Crash(member=6, at=2.5), Call(member=1, at=200.0)))
    experiment = replace(BULLY, scenario=late)
    world = prepare(experiment, 0)
    ear = Ear()
    world.watch(ear)
    assert world.run() is Ended.STOPPED
    down = [(at, who) for at, who, status, _ in ear.changes if status == "crashed"]
    assert down == [(experiment.origin + 2.5, 6)]
    assert world.now > experiment.origin + 200.0
    assert world.last_declared > experiment.origin + 200.0
    assert {member.election.leader for member in world.live()} == {5}


def test_the_crash_of_a_leader_is_noticed_when_the_scenario_says() -> None:
    experiment = replace(BULLY, scenario=Scenario("leader-crash", detectors=(2,)))
    found = play(experiment, 0).metrics
    assert found["leader"] == 5.0


def test_a_run_goes_on_while_a_member_waits() -> None:
    """A detector that errs once the group is at rest starts it again; no rest, no end."""
    wrong = Suspect(member=1, about=6, at=100.0)
    world = prepare(replace(BULLY, scenario=Scenario(extra=(wrong,))), 0)
    world.run()
    assert world.now > BULLY.origin + 100.0


def test_the_time_limit_counts_from_there_too() -> None:
    world = prepare(replace(BULLY, until=1.0), 0)
    assert play(replace(BULLY, until=1.0), 0).ended is Ended.UNTIL
    assert world.run(until=BULLY.origin + 1.0) is Ended.UNTIL


def test_rounds_upon_a_stack() -> None:
    settings = {"N": 30, "p_ucastl": 0.1, "p_mcastl": 0.1, "T_3": STACK.buffering_time}
    config = ProbabilisticConfig.parse({**settings, "estimate": "gossip"})
    found = play(Experiment(Probabilistic, 30, config, stack=STACK), 0)
    assert found.ended is Ended.STOPPED
    assert found.metrics["strong"] == 1.0
    assert found.metrics["rounds"] == 1.0
    assert found.metrics["mcasts"] == 1 + (found.metrics["relay_members"] or 0)


REFUSED: list[tuple[Callable[[], Experiment], str]] = [
    (lambda: replace(BULLY, detector=HeartbeatConfig()), "drop the detector"),
    (lambda: replace(BULLY, oracle=1.0), "drop the detector"),
    (lambda: replace(BULLY, scenario=Scenario("churn")), "scenario 'churn'"),
]


@pytest.mark.parametrize("make, complaint", REFUSED)
def test_what_does_not_go_upon_a_stack(make: Callable[[], Experiment], complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        make()


def test_who_announces_needs_no_gossip() -> None:
    kind = find("le-a")
    with pytest.raises(BadInput, match="announces by itself"):
        Experiment(kind, 4, kind.Settings(), HighestId(), stack=STACK)


def test_a_crash_after_the_election_is_waited_for() -> None:
    """The run goes on until gossip can have noticed it, and a successor is there."""
    config = ProbabilisticConfig.parse({"delta": 1.0})
    experiment = Experiment(
        Probabilistic,
        20,
        config,
        stack=GossipConfig(delta=1.0),
        scenario=Scenario(extra=(Crash(at=80.0, member=20),)),
        seed=3,
    )
    result = play(experiment, 0)
    assert result.metrics["strong"] == 1.0
    assert result.metrics["leader"] == 19.0

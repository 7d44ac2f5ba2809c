"""Experiments: values that say everything a run depends on, and single runs of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hustings.core.choice import Candidate, HighestId, parse_choice
from hustings.core.election import Election
from hustings.core.errors import BadInput
from hustings.core.outcome import Elected
from hustings.core.streams import derive
from hustings.layers.detector.heartbeat import HeartbeatConfig
from hustings.protocols.bully import Bully, BullyConfig
from hustings.protocols.registry import CATALOGUE, classes
from hustings.protocols.ring import Ring, RingConfig
from hustings.sim.checkers import Verdict
from hustings.sim.delay import Fixed, Uniform
from hustings.sim.experiment import Experiment
from hustings.sim.faults import Call, Crash, Partition, Pause
from hustings.sim.network import Network
from hustings.sim.play import measure, play, prepare
from hustings.sim.queue import END_OF_TIME
from hustings.sim.scenarios import Scenario
from hustings.sim.trace import Tracer
from hustings.sim.world import Ended, World

BULLY = Experiment(Bully, 8, BullyConfig(), scenario=Scenario("leader-crash"))


def test_one_run_is_measured_and_judged() -> None:
    result = play(BULLY, 0)
    assert result.metrics == {
        "election_messages": 28.0,
        "answer_messages": 21.0,
        "coordinator_messages": 6.0,
        "other_messages": 0.0,
        "messages": 55.0,
        "time": 4.0,
        "leader": 7.0,
    }
    assert result.ended is Ended.QUIESCENT
    assert result.digest is None
    assert {verdict for verdict, _ in result.verdicts.values()} == {Verdict.HOLDS}


def test_a_run_that_is_over_before_its_limit_was_not_cut_off() -> None:
    result = play(replace(BULLY, until=8.0), 0)
    assert result.ended is Ended.QUIESCENT
    assert result.verdicts["termination"][0] is Verdict.HOLDS
    assert play(replace(BULLY, until=2.0), 0).ended is Ended.UNTIL
    assert play(replace(BULLY, max_events=5), 0).ended is Ended.MAX_EVENTS


def test_the_last_event_may_be_a_declaration_without_a_message() -> None:
    """Only member 1 lives: nobody answers, and its timer makes it the leader."""
    alone = Scenario("leader-crash", crashed=(2, 3))
    result = play(Experiment(Bully, 4, BullyConfig(), scenario=alone), 0)
    assert result.metrics["time"] == 2.0
    assert result.metrics["leader"] == 1.0


def test_without_agreement_there_is_no_leader_to_report() -> None:
    result = play(replace(BULLY, until=2.0), 0)
    assert result.metrics["leader"] is None


def test_every_run_has_a_seed_of_its_own() -> None:
    seeds = [prepare(BULLY, run).seed for run in range(3)]
    assert seeds == [derive(0, "run", run) for run in range(3)]
    assert len({*seeds, prepare(replace(BULLY, seed=1), 0).seed}) == 4


def test_attributes_are_as_listed_or_drawn_anew_for_every_run() -> None:
    listed = Experiment(Bully, 3, BullyConfig(), attributes=(("cpu", (3.0, 1.0, 2.0)),))
    assert [one.attribute("cpu") for one in listed.candidates(5)] == [3.0, 1.0, 2.0]
    drawn = Experiment(Bully, 3, BullyConfig(), attributes=(("load", None), ("cpu", None)))
    one, again, other = drawn.candidates(5), drawn.candidates(5), drawn.candidates(6)
    assert one == again
    assert one != other
    assert all(0.0 <= each.attribute("cpu") < 1.0 for each in one)
    assert [name for name, _ in one[0].attributes] == ["cpu", "load"]
    assert (
        len({each.attribute("cpu") for each in one} | {each.attribute("load") for each in one}) == 6
    )


def test_the_choice_function_ranks_the_attributes() -> None:
    experiment = Experiment(
        Bully,
        4,
        BullyConfig(),
        choice=parse_choice("lowest:load"),
        attributes=(("load", (0.1, 0.5, 0.2, 0.9)),),
        scenario=Scenario("leader-crash"),
    )
    result = play(experiment, 0)
    assert result.metrics["leader"] == 3.0  # member 1 was best and is dead
    assert result.verdicts["validity"][0] is Verdict.HOLDS


# Detectors


def test_a_perfect_detector_finds_the_dead_leader_after_its_latency() -> None:
    result = play(replace(BULLY, oracle=3.0), 0)
    assert result.metrics["leader"] == 7.0
    assert result.metrics["time"] == 3.0 + 2.0  # all notice: those above know that 8 is dead


def test_with_a_perfect_detector_somebody_still_calls_the_first_election() -> None:
    result = play(Experiment(Bully, 4, BullyConfig(), oracle=2.0), 0)
    assert result.metrics["leader"] == 4.0
    assert result.verdicts["termination"][0] is Verdict.HOLDS


@pytest.mark.parametrize("scenario", [Scenario("leader-crash"), Scenario("start")])
def test_with_heartbeats_a_run_ends_when_all_have_agreed_for_a_while(scenario: Scenario) -> None:
    experiment = Experiment(
        Bully,
        4,
        BullyConfig(),
        scenario=scenario,
        detector=HeartbeatConfig(T=4.0, D=1.0),
        calm=30.0,
        until=500.0,
    )
    result = play(experiment, 0)
    assert result.ended is Ended.STOPPED
    assert result.metrics["leader"] == (4.0 if scenario.name == "start" else 3.0)
    assert result.metrics["detector_messages"]
    assert result.metrics["time"] is not None
    assert result.metrics["time"] < 20.0


def test_a_change_during_the_calm_starts_it_anew() -> None:
    scenario = Scenario("start", extra=(Crash(member=4, at=20.0),))
    experiment = Experiment(
        Bully, 4, BullyConfig(), scenario=scenario, oracle=2.0, calm=30.0, until=500.0
    )
    world = prepare(experiment, 0)
    world.at(400.0, lambda: None)  # so that it does not simply run dry
    assert world.run(experiment.until) is Ended.STOPPED
    assert world.now == world.last_declared + 30.0
    assert {member.outcome for member in world.live()} == {Elected(3, 2)}


def test_the_calm_is_not_deceived_by_a_dead_leader() -> None:
    """All agree on one who is gone, for longer than the calm lasts: no reason to stop."""
    scenario = Scenario("start", extra=(Crash(member=4, at=3.5),))
    experiment = Experiment(Bully, 4, BullyConfig(), scenario=scenario, oracle=2.0, calm=1.5)
    world = prepare(experiment, 0)
    world.at(100.0, lambda: None)
    assert world.run() is Ended.STOPPED
    assert {member.outcome for member in world.live()} == {Elected(3, 2)}


def test_a_calm_longer_than_time_never_comes() -> None:
    result = play(Experiment(Bully, 3, BullyConfig(), calm=END_OF_TIME), 0)
    assert result.ended is Ended.QUIESCENT


# Digests


def test_a_digest_is_of_the_run_and_changes_nothing() -> None:
    plain, digested = play(BULLY, 0), play(replace(BULLY, digest=True), 0)
    assert digested.digest
    assert replace(digested, digest=None) == plain
    tracer = Tracer(BULLY.header(0))
    assert play(BULLY, 0, tracer).digest == digested.digest
    assert play(replace(BULLY, digest=True), 1).digest != digested.digest


def test_debug_mode_changes_nothing() -> None:
    assert play(replace(BULLY, debug=True), 0) == play(BULLY, 0)


def test_the_header_says_what_was_run() -> None:
    header = replace(BULLY, seed=9).header(4)
    assert header.protocol == "bully"
    assert header.members == list(range(1, 9))
    assert header.seed == derive(9, "run", 4)
    assert header.settings["scenario"] == "leader-crash"
    assert header.settings["experiment_seed"] == 9
    assert header.settings["run"] == 4
    assert header.settings["delta"] == 1.0


# What is refused, before anything starts


def test_too_few_and_too_many_members() -> None:
    for members in (0, -3, 1_000_001):
        with pytest.raises(BadInput, match="members must lie between 1 and 1,000,000"):
            Experiment(Bully, members, BullyConfig())


def test_attributes_of_another_number_of_members() -> None:
    with pytest.raises(BadInput, match="'cpu' has 2 values for 3 members"):
        Experiment(Bully, 3, BullyConfig(), attributes=(("cpu", (1.0, 2.0)),))


def test_a_choice_by_an_attribute_that_nobody_has() -> None:
    with pytest.raises(BadInput, match="no attribute 'cpu'"):
        Experiment(Bully, 3, BullyConfig(), choice=parse_choice("highest:cpu"))


@pytest.mark.parametrize("until", [0.0, -1.0, 2 * END_OF_TIME, float("nan")])
def test_a_limit_that_is_no_time(until: float) -> None:
    with pytest.raises(BadInput, match="until must lie between 0 and"):
        replace(BULLY, until=until)


def test_a_limit_of_no_events() -> None:
    with pytest.raises(BadInput, match="max-events must be >= 1"):
        replace(BULLY, max_events=0)


def test_a_scenario_that_contradicts_itself() -> None:
    with pytest.raises(BadInput, match="at least one must live"):
        replace(BULLY, scenario=Scenario("leader-crash", crashed=tuple(range(1, 8))))


WRONG: list[Callable[[], Experiment]] = [
    lambda: replace(BULLY, view_probability=1.5),
    lambda: replace(BULLY, oracle=-1.0),
    lambda: replace(BULLY, calm=-1.0),
    lambda: replace(BULLY, scenario=Scenario("start", extra=(Crash(member=99),))),
    lambda: replace(BULLY, scenario=Scenario("start", extra=(Pause(member=1, at=-1.0),))),
    lambda: replace(BULLY, scenario=Scenario("start", extra=(Partition(sides=((1,), (1,))),))),
]


@pytest.mark.parametrize("wrong", WRONG)
def test_nothing_wrong_waits_until_the_run(wrong: Callable[[], Experiment]) -> None:
    with pytest.raises(BadInput):
        prepare(wrong(), 0)


# Rings and networks of other kinds


def test_a_ring_of_the_living_is_counted_by_the_living() -> None:
    result = play(Experiment(Ring, 10, RingConfig(), scenario=Scenario("leader-crash")), 0)
    assert result.metrics["messages"] == 2 * 9 + 8
    assert result.metrics["time"] == 2 * 9 + 8


def test_a_network_with_random_delays_still_elects_the_best() -> None:
    network = Network(delay=Uniform(0.1, 1.0))
    for run in range(5):
        result = play(replace(BULLY, network=network, choice=HighestId()), run)
        assert result.metrics["leader"] == 7.0
        assert result.verdicts["validity"][0] is Verdict.HOLDS


def test_time_is_the_last_arrival_or_declaration() -> None:
    extra = (Call(member=7, at=10.0),)
    world = prepare(replace(BULLY, scenario=Scenario("leader-crash", extra=extra)), 0)
    world.run()
    assert measure(world, detecting=False)["time"] == world.last_arrival
    assert measure(world, detecting=True)["time"] == world.last_declared
    assert world.last_arrival >= 11.0
    world = prepare(replace(BULLY, network=Network(delay=Fixed(0.5))), 0)
    world.run()
    assert measure(world, detecting=False)["time"] == 0.5 + 2.0 + 0.5


@pytest.mark.parametrize(
    "kind", [kind for kind in classes(CATALOGUE) if kind.assumptions.announces]
)
def test_an_election_that_announces_says_rightly_whether_it_repeats(kind: type[Election]) -> None:
    """A member alone leads, and then goes on for ever or falls silent."""
    world = World(lambda: kind(kind.Settings(), HighestId()), [Candidate(1)])
    world.start()
    silent = world.run(max_events=20) is Ended.QUIESCENT
    assert kind.assumptions.repeats is not silent

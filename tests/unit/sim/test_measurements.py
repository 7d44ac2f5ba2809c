"""Established groups that announce: disturbed in the middle of a steady life, or only watched."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hustings.core.streams import Stream, derive
from hustings.protocols.registry import find
from hustings.sim.announcing import MOST_PERIODS, REST, warm_up
from hustings.sim.checkers import Verdict
from hustings.sim.delay import Fixed
from hustings.sim.experiment import Experiment
from hustings.sim.faults import Crash, Heal, OneWay
from hustings.sim.loss import Correlated, NoLoss, Uncorrelated
from hustings.sim.network import Network
from hustings.sim.play import RunResult, play, prepare
from hustings.sim.scenarios import HORIZON, Scenario
from hustings.sim.world import Ended
from tests.unit.sim.beacons import beacons

RUNS = range(12)
D = 0.1


def phase(experiment: Experiment, run: int) -> float:
    """How long after an announcement of the leader things happen in a run."""
    return 1.0 - Stream(derive(prepare(experiment, run).seed, "phase")).random()


def delay(result: RunResult) -> float | None:
    return result.metrics["reestablishment_delay"]


# How long a group is left alone


def test_nothing_lost_nothing_to_wait_for() -> None:
    assert warm_up(NoLoss(), 1000) == 1


@pytest.mark.parametrize("p", [0.1, 0.4, 0.7, 0.99])
@pytest.mark.parametrize("n", [2, 500])
def test_everybody_has_nearly_surely_heard_an_announcement(p: float, n: int) -> None:
    number = warm_up(Uncorrelated(p), n)
    assert n * p**number <= REST < n * p ** (number - 1)


def test_the_warm_up_is_bounded() -> None:
    assert warm_up(Correlated(1.0), 2) == MOST_PERIODS
    assert warm_up(Correlated(0.99999), 2) == MOST_PERIODS


def test_loss_by_collisions_takes_longer_to_become_steady() -> None:
    plain = Uncorrelated(0.4)
    assert warm_up(replace(plain, collision=0.01), 50) > warm_up(plain, 50)


def lossy(p: float) -> Network:
    return Network(delay=Fixed(D), loss=Uncorrelated(p))


def test_it_happens_when_the_warm_up_is_over_between_two_announcements() -> None:
    experiment = beacons(
        0.3, 0.2, 0.4, scenario="leader-crash", network=lossy(0.5), T=2.0, L=1000.0
    )
    number = warm_up(experiment.network.loss, 3)
    for run in RUNS:
        world = prepare(experiment, run)
        world.run(2.0 * (2 + number))
        assert world.members[3].up
        world.run(2.0 * (2 + number) + 1.99999)
        crashed = not world.members[3].up
        assert crashed is (phase(experiment, run) < 0.99999)


# The leader goes


@pytest.mark.parametrize("name", ["leader-crash", "leader-leave"])
def test_the_leader_is_missed_after_its_last_announcement(name: str) -> None:
    """The others hear it D after it was sent, bear L of silence, and 2 sleeps for 0.2."""
    experiment = beacons(0.9, 0.2, 0.4, scenario=name, L=2.5)
    for run in RUNS:
        result = play(experiment, run)
        assert delay(result) == pytest.approx(D + 2.5 + 0.2 + D - phase(experiment, run))
        assert result.metrics["num_msgs"] == 1
        assert result.metrics["messages"] == 1  # of those since then
        assert result.metrics["leader"] == 2
        assert result.metrics["time"] == delay(result)
        assert result.ended is Ended.STOPPED
        assert {verdict for verdict, _ in result.verdicts.values()} == {Verdict.HOLDS}


def test_phases_are_uniform_and_differ_from_run_to_run() -> None:
    experiment = beacons(0.3, 0.2, 0.4, scenario="leader-crash", L=2.5)
    phases = [phase(experiment, run) for run in range(200)]
    assert all(0 < each <= 1 for each in phases)
    assert 0.4 < sum(phases) / 200 < 0.6
    assert len(set(phases)) == 200


def test_what_the_dead_leader_sent_last_still_counts() -> None:
    """With a delay of more than a period some of its messages land after its death."""
    experiment = beacons(0.3, 0.2, 0.4, scenario="leader-crash", L=2.5, delay=1.7)
    for run in RUNS:
        expected = 1.7 + 2.5 + 0.2 + 1.7 - phase(experiment, run)
        assert delay(play(experiment, run)) == pytest.approx(expected)


CUT = OneWay(senders=(3,), to=(1, 2))  # 1 and 2 cannot hear 3, and follow 2


def test_who_had_a_successor_all_along_has_lost_no_time() -> None:
    scenario = Scenario("leader-crash", extra=(CUT,))
    experiment = beacons(0.3, 0.2, 0.4, scenario=scenario, L=1.0, network=lossy(1e-9))
    for run in RUNS:
        result = play(experiment, run)
        assert delay(result) == 0.0
        assert result.metrics["num_msgs"] == 0


def test_unless_the_last_announcement_wins_them_back() -> None:
    """The cut ends right before it is sent; with a delay of 0.9 it mostly lands after the crash."""
    network = Network(delay=Fixed(0.9), loss=Uncorrelated(1e-9))
    last = 2.0 + warm_up(network.loss, 3)
    scenario = Scenario("leader-crash", extra=(CUT, Heal(name="one-way", at=last - 0.05)))
    experiment = beacons(5.0, 0.2, 0.4, scenario=scenario, L=1.0, network=network)
    for run in RUNS:
        expected = 0.9 + 1.0 + 0.2 + 0.9 - phase(experiment, run)
        assert delay(play(experiment, run)) == pytest.approx(expected)


def test_who_is_told_need_not_wait() -> None:
    experiment = beacons(0.3, 0.2, 0.4, scenario=Scenario("leader-crash", detectors=(1, 2)), L=50.0)
    for run in RUNS:
        if phase(experiment, run) > D:  # else the last announcement wins both back
            assert delay(play(experiment, run)) == pytest.approx(0.2 + D)


def test_nobody_misses_the_leader_if_all_listen_for_ever() -> None:
    result = play(beacons(0.3, 0.2, 0.4, scenario="leader-crash"), 0)
    assert delay(result) is None
    assert result.metrics["num_msgs"] is None
    assert result.ended is Ended.QUIESCENT
    assert result.verdicts["validity"][0] is Verdict.VIOLATED


def test_a_leader_that_says_goodbye_is_not_missed_for_long() -> None:
    experiment = beacons(0.3, 0.2, 0.4, scenario="leader-leave", L=50.0, byes=1)
    for run in RUNS:
        result = play(experiment, run)
        if phase(experiment, run) > D:  # else its last announcement lands after its Bye
            assert delay(result) == pytest.approx(D + 0.2 + D)
            assert result.metrics["num_msgs"] == 2


def test_who_says_goodbye_twice_has_to_stay_for_it() -> None:
    """The first Bye is cut off; the second, 2 later, is heard if its sender is still there."""
    scenario = Scenario("leader-leave", extra=(OneWay(senders=(3,), to=(1, 2)),))
    short = beacons(0.3, 0.2, 0.4, scenario=scenario, L=50.0, byes=2, gap=2.0, until=40.0)
    heal = Heal(name="one-way", at=4.01)  # after the departure
    healed = replace(short, scenario=replace(scenario, extra=(*scenario.extra, heal)))
    patient = replace(healed, scenario=replace(healed.scenario, linger=2.5))
    for run in RUNS:
        assert delay(play(healed, run)) is None
        assert delay(play(patient, run)) == pytest.approx(2.0 + D + 0.2 + D)


def test_if_another_has_taken_over_by_then_that_one_goes() -> None:
    scenario = Scenario("leader-crash", extra=(Crash(member=4, at=2.5),))
    experiment = beacons(0.3, 0.2, 0.4, 0.1, scenario=scenario, network=lossy(0.05), L=2.0, seed=11)
    result = play(experiment, 0)
    assert result.metrics["leader"] == 2
    assert delay(result) is not None


# One more comes


def test_a_better_one_joins_and_is_heard_by_all() -> None:
    experiment = beacons(0.3, 0.2, 0.4, scenario="join-larger")
    assert experiment.members == 2
    for run in RUNS:
        result = play(experiment, run)
        assert delay(result) == pytest.approx(0.4 + D)
        assert result.metrics["leader"] == 3
        assert result.metrics["simultaneous_leaders_max"] == 2


def test_a_worse_one_joins_and_hears_what_is_under_way_or_comes_next() -> None:
    experiment = beacons(5.0, 0.2, 0.4, scenario="join-smaller")
    for run in RUNS:
        late = phase(experiment, run)
        expected = D - late if late <= D else 1.0 - late + D
        result = play(experiment, run)
        assert delay(result) == pytest.approx(expected)
        assert result.metrics["leader"] == 3


def test_messages_are_counted_up_to_the_accord_itself() -> None:
    """The period is the delay: at the accord the leader speaks again, which counts no more."""
    experiment = beacons(5.0, 0.2, scenario="join-smaller", T=0.5, delay=0.5)
    for run in RUNS:
        result = play(experiment, run)
        assert result.metrics["num_msgs"] == 0
        assert result.metrics["messages"] == 1


# Nothing happens


def test_without_loss_nobody_goes_astray() -> None:
    result = play(beacons(0.3, 0.2, 0.4, scenario="false-departure", L=2.5, until=50.0), 0)
    assert result.ended is Ended.UNTIL
    assert result.metrics["false_departures"] == 0
    assert result.metrics["inconsistent_fraction"] == 0
    assert result.metrics["simultaneous_leaders"] == 1
    assert result.metrics["time"] == 47.0  # since the third announcement
    assert result.metrics["messages"] == 48.0  # at 3, 4, ... 50


def test_listeners_that_hear_nothing_go_astray_until_they_do() -> None:
    cut = OneWay(senders=(3,), to=(1, 2), at=10.05)
    heal = Heal(name="one-way", at=17.5)
    scenario = Scenario("false-departure", extra=(cut, heal))
    result = play(beacons(0.3, 0.2, 0.4, scenario=scenario, L=2.5, until=43.0), 0)
    # Last heard at 9.1 (the word of 10 is cut off in flight), missed at 11.6, heard again at 18.1.
    assert result.metrics["false_departures"] == 2
    assert result.metrics["false_departure_duration"] == pytest.approx(6.5)
    assert result.metrics["false_departure_fraction"] == pytest.approx(6.5 / 40)
    assert result.metrics["inconsistencies"] == 1
    assert result.metrics["inconsistency_duration"] == pytest.approx(6.5)
    assert result.metrics["inconsistent_fraction"] == pytest.approx(6.5 / 40)
    # 2 leads beside 3, from 11.8 to 18.1.
    assert result.metrics["simultaneous_leaders"] == pytest.approx(1 + 6.3 / 40)


def test_a_wrong_suspicion_is_a_false_departure() -> None:
    scenario = Scenario("false-departure", detectors=(1,))
    result = play(beacons(5.0, 0.2, 0.4, scenario=scenario, L=2.5, until=43.0), 0)
    assert result.metrics["false_departures"] == 1
    assert result.metrics["false_departure_duration"] == pytest.approx(D)  # 3 speaks at once


def test_what_has_no_end_has_a_limit() -> None:
    experiment = beacons(0.3, 0.2, scenario="false-departure")
    assert experiment.horizon == HORIZON
    assert replace(experiment, until=7.0).horizon == 7.0
    assert beacons(0.3, 0.2).horizon == beacons(0.3, 0.2).until


def test_a_limit_before_the_warm_up_is_over_leaves_nothing_to_tell() -> None:
    result = play(beacons(0.3, 0.2, scenario="false-departure", L=2.5, until=2.5), 0)
    assert result.metrics["false_departures"] is None
    assert result.metrics["inconsistent_fraction"] is None
    assert result.metrics["simultaneous_leaders"] is None


def test_runs_are_the_same_whoever_plays_them() -> None:
    experiment = beacons(0.3, 0.2, 0.4, scenario="leader-crash", L=2.5, network=lossy(0.4))
    assert play(experiment, 5) == play(experiment, 5)
    assert delay(play(experiment, 5)) != delay(play(experiment, 6))


def test_with_the_relative_key_a_joiner_takes_over_as_often_as_anybody() -> None:
    """1 in N + 1, within 4 standard errors."""
    kind = find("le-m")
    config = kind.Settings.parse({"delta": 0.1, "key": "relative", "T_L": "inf"})
    experiment = Experiment(
        kind, 4, config, network=Network(Fixed(0.1)), scenario=Scenario("join-larger"), seed=2
    )
    runs = 400
    taken = sum(play(experiment, run).metrics["leader"] == 5 for run in range(runs))
    assert abs(taken / runs - 0.2) < 4 * (0.2 * 0.8 / runs) ** 0.5


def test_a_baseline_that_does_not_mean_to_agree_is_not_asked_to() -> None:
    kind = find("sup")
    experiment = Experiment(
        kind, 10, kind.Settings.parse({"delta": 0.1}), network=Network(Fixed(0.1))
    )
    assert list(play(experiment, 0).verdicts) == ["termination"]

"""Members come and go: the draws, and groups that live through it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hustings.core.errors import BadInput
from hustings.layers.detector.heartbeat import HeartbeatConfig
from hustings.protocols.bully import Bully, BullyConfig
from hustings.sim.experiment import Experiment
from hustings.sim.play import play, prepare
from hustings.sim.scenarios import HORIZON, MAX_EVENTS, Rates, Scenario, draw
from hustings.sim.world import Ended
from tests.unit.sim.beacons import beacons
from tests.unit.sim.worlds import Ear


def churn(arrivals: float | None, departures: float | None, *, orderly: bool = False) -> Scenario:
    return Scenario("churn", rates=Rates(arrivals, departures, orderly))


# The draws


def test_arrivals_and_departures_are_poisson() -> None:
    plans = [draw(Rates(2.0, 5.0), 10, 100.0, seed) for seed in range(100)]
    assert sum(len(plan.arrivals) for plan in plans) == pytest.approx(5000, rel=0.06)
    assert sum(len(plan.departures) for plan in plans) == pytest.approx(2000, rel=0.09)
    for plan in plans:
        times = [at for at, _ in plan.arrivals]
        assert times == sorted(times)
        assert all(0 < at <= 100.0 for at in (*times, *plan.departures))


def test_every_id_is_used_once() -> None:
    plan = draw(Rates(2.0, None), 10, 100.0, 7)
    ids = [*plan.first, *(member for _, member in plan.arrivals)]
    assert sorted(ids) == list(range(1, plan.population + 1))
    assert len(plan.first) == 10
    assert plan.departures == ()


def test_who_comes_is_as_likely_to_be_better_as_worse() -> None:
    """With one there and one to come, the latter is the better one half of the time."""
    plans = [draw(Rates(1.0, None), 1, 1.0, seed) for seed in range(4000)]
    pairs = [plan for plan in plans if len(plan.arrivals) == 1]
    better = sum(plan.arrivals[0][1] == 2 for plan in pairs)
    assert len(pairs) > 1000
    assert better / len(pairs) == pytest.approx(0.5, abs=0.06)


def test_one_seed_one_plan() -> None:
    assert draw(Rates(2.0, 3.0), 5, 50.0, 1) == draw(Rates(2.0, 3.0), 5, 50.0, 1)
    assert draw(Rates(2.0, 3.0), 5, 50.0, 1) != draw(Rates(2.0, 3.0), 5, 50.0, 2)


WRONG = [
    (Rates(), "needs --arrivals MEAN, --departures MEAN or both"),
    (Rates(1e-3), f"arrivals every 0.001 until 1000 are more than {MAX_EVENTS:,}"),
    (Rates(None, 1e-3), "departures every 0.001"),
]


@pytest.mark.parametrize("rates, complaint", WRONG)
def test_nothing_and_too_much_are_refused(rates: Rates, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        beacons(0.1, 0.2, scenario=Scenario("churn", rates=rates))


@pytest.mark.parametrize("mean", [0.0, -1.0, float("nan"), float("inf")])
def test_a_mean_is_a_time(mean: float) -> None:
    with pytest.raises(BadInput, match="arrivals must be a mean time"):
        Rates(mean)
    with pytest.raises(BadInput, match="departures must be a mean time"):
        Rates(1.0, mean)


# Groups


def test_an_announcing_group_lives_through_it() -> None:
    experiment = beacons(*[0.5] * 6, scenario=churn(10.0, 10.0), L=2.5, until=300.0)
    result = play(experiment, 0)
    assert result.ended is Ended.UNTIL
    found = result.metrics
    for metric in ("arrivals", "departures"):
        assert found[metric] == pytest.approx(29.7, abs=20)
    fraction, leaders = found["inconsistent_fraction"], found["simultaneous_leaders"]
    assert fraction is not None
    assert 0.0 < fraction < 1.0
    assert leaders is not None
    assert 0.5 < leaders < 2.0
    assert found["time"] == pytest.approx(297.0)


def test_the_leader_goes_with_its_share_of_the_departures() -> None:
    """Of n exchangeable members each goes as often."""
    experiment = beacons(*[0.5] * 8, scenario=churn(5.0, 5.0), L=2.5, until=400.0)
    results = [play(experiment, run) for run in range(15)]
    departures = sum(result.metrics["departures"] or 0.0 for result in results)
    of_leaders = sum(result.metrics["leader_departures"] or 0.0 for result in results)
    assert departures > 900
    # The size of the group wanders, and nobody leads for some time after a departure.
    assert 0.05 < of_leaders / departures < 0.2


def test_who_comes_is_not_known_before() -> None:
    experiment = beacons(*[0.5] * 3, scenario=churn(5.0, None), L=2.5, until=60.0)
    world = prepare(experiment, 0)
    ear = Ear()
    world.watch(ear)
    assert len(world.live()[0].view) == len(world.live()) == 3
    world.run(60.0)
    assert len(world.live()) > 5
    assert world.live()[0].view.ids == [member.id for member in world.live()]
    assert {status for _, _, status, _ in ear.changes} == {"up"}
    assert min(at for at, *_ in ear.changes) >= 3.0  # not before the group is steady


@pytest.mark.parametrize("orderly, status", [(False, "crashed"), (True, "left")])
def test_who_goes_crashes_or_leaves_and_the_last_one_stays(orderly: bool, status: str) -> None:
    scenario = churn(None, 1.0, orderly=orderly)
    experiment = beacons(*[0.5] * 4, scenario=scenario, L=2.5, until=100.0)
    world = prepare(experiment, 0)
    ear = Ear()
    world.watch(ear)
    world.run(100.0)
    assert [change[2] for change in ear.changes] == [status] * 3
    assert len(world.live()) == 1


def test_traces_name_all_who_are_ever_there() -> None:
    experiment = beacons(*[0.5] * 3, scenario=churn(5.0, 5.0), until=60.0)
    for run in range(3):
        members = list(prepare(experiment, run).members)
        assert experiment.header(run).members == members
        assert len(members) > 3


def test_attributes_of_members_to_come_cannot_be_listed() -> None:
    experiment = beacons(0.1, 0.2, scenario=churn(5.0, 5.0))
    with pytest.raises(BadInput, match="attribute 'wake' must be random"):
        replace(experiment, attributes=(("wake", (0.1, 0.2)),))


# Members that do not announce


BULLY = Experiment(Bully, 6, BullyConfig(), scenario=churn(20.0, 20.0), oracle=1.0)


def test_members_that_are_told_live_through_it() -> None:
    result = play(replace(BULLY, until=400.0), 0)
    fraction = result.metrics["inconsistent_fraction"]
    assert fraction is not None
    assert 0.0 < fraction < 0.6
    assert result.metrics["messages"]
    assert result.ended is Ended.UNTIL
    assert BULLY.horizon == HORIZON


def test_a_detector_of_their_own_will_do_and_no_calm_ends_the_run() -> None:
    watched = replace(
        BULLY, oracle=None, detector=HeartbeatConfig(T=2.0, D=1.0), calm=10.0, until=200.0
    )
    result = play(watched, 0)
    assert result.ended is Ended.UNTIL
    assert result.metrics["detector_messages"]


def test_nobody_to_tell_them_nothing_to_run() -> None:
    with pytest.raises(BadInput, match="scenario 'churn' needs a --detection"):
        replace(BULLY, oracle=None)

"""Chapter 5 of the announce-listen thesis, section 5.7, "Composition and parameterization".

SUP followed by AL, without an order among members: the thesis asks whether it would elect, says
that it may leave several leaders or none, and sketches random announcers. It gives no numbers; the
closed forms of these tests are worked out here from those of SUP (specification, section 2).
"""

from __future__ import annotations

from statistics import fmean, stdev
from typing import Any

import pytest

from hustings.lab.closed_forms.announce.laws import Law
from hustings.lab.closed_forms.announce.messages import first_round_first_waker
from hustings.protocols.announce.al import Al
from hustings.protocols.announce.sup_al import SupAl
from hustings.protocols.announce.sup_al_random import SupAlRandom
from hustings.sim.delay import Fixed, PerLink
from hustings.sim.experiment import Description, Experiment, build
from hustings.sim.faults import Crash, OneWay, schedule
from hustings.sim.loss import Correlated, NoLoss
from hustings.sim.network import Network
from hustings.sim.play import RunResult, play
from hustings.sim.scenarios import Scenario
from hustings.sim.world import Ended
from tests.paper.announcing import DELTA, group

# 1 hears 2 soon, who hears 3 soon, who hears 1 soon; the other way everything takes long.
CIRCLE = PerLink({(2, 1): 0.2, (3, 2): 0.2, (1, 3): 0.2}, 1.5)


def started(kind: Any, members: int, *, network: Network | None = None, **given: Any) -> Experiment:
    return build(
        Description(
            kind=kind,
            members=members,
            network=network or Network(Fixed(DELTA)),
            scenario=given.pop("scenario", Scenario()),
            until=given.pop("until", None),
            settings=given,
        )
    )


def runs(experiment: Experiment, number: int) -> list[RunResult]:
    return [play(experiment, run) for run in range(number)]


def mean_of(results: list[RunResult], metric: str) -> tuple[float, float]:
    """Mean and standard error."""
    values = [value for each in results if (value := each.metrics[metric]) is not None]
    return fmean(values), stdev(values) / len(values) ** 0.5


# The deadlock


def test_a_hears_b_who_hears_c_who_hears_a() -> None:
    """Asymmetric delays: each defers to another process, and none becomes the leader."""
    experiment = started(SupAl, 3, network=Network(CIRCLE), T_S=0.1)
    result = play(experiment, 0)
    assert result.ended is Ended.QUIESCENT  # nothing is ever going to happen
    assert result.metrics["deadlock"] == 1
    assert result.metrics["leader"] is None
    assert result.metrics["messages"] == 3


def test_the_same_by_lost_messages() -> None:
    """The three links of the other way are cut."""
    against = [(1, 2), (2, 3), (3, 1)]
    cuts = tuple(OneWay(senders=(a,), to=(b,), name=f"cut {a}") for a, b in against)
    for run in runs(started(SupAl, 3, T_S=0.05, T_L="inf", scenario=Scenario(extra=cuts)), 20):
        assert (run.ended, run.metrics["deadlock"]) == (Ended.QUIESCENT, 1)


def test_it_takes_no_asymmetry() -> None:
    """More than the thesis says: two that speak within Delta of each other both give way."""
    run = group(SupAl, 2, T_S=0.05, T_L=float("inf")).run(5)
    assert run.leaders == {1: 2, 2: 1}
    assert len(run.said) == 2


@pytest.mark.parametrize("members", [2, 5, 20])
def test_how_often_they_deadlock_without_loss(members: int) -> None:
    """Unless the first to wake is alone for Delta: 1 - (1 - Delta/T_S)^N, with uniform sleeps."""
    results = runs(started(SupAl, members), 400)
    expected = 1 - (1 - DELTA) ** members
    error = (expected * (1 - expected) / 400) ** 0.5
    assert abs(mean_of(results, "deadlock")[0] - expected) <= 4 * error
    for each in results:
        assert (each.metrics["leader"] is None) == bool(each.metrics["deadlock"])


def test_a_listen_timer_ends_a_deadlock_after_t_l() -> None:
    """Nobody leads meanwhile, and the next attempt may end alike."""
    results = runs(started(SupAl, 20, T_L=3), 60)
    assert {each.ended for each in results} == {Ended.STOPPED}
    assert max(each.metrics["deadlocks"] or 0 for each in results) > 1
    assert mean_of(results, "deadlocked_fraction")[0] > 0.5
    assert all(each.metrics["leader"] is not None for each in results)


# Several leaders


def test_several_elect_themselves_if_announcers_stay() -> None:
    """SUP to the letter: who has spoken is done. Nobody deadlocks; whoever spoke leads."""
    members = 20
    results = runs(started(SupAl, members, yields=False, until=5.0), 200)
    assert all(each.metrics["deadlocks"] == 0 for each in results)
    mean, error = mean_of(results, "simultaneous_leaders_max")
    assert abs(mean - first_round_first_waker(members, 0.0, Law(), D=DELTA)) <= 4 * error


# Random announcers


def test_random_announcers_do_not_deadlock() -> None:
    """The circle that deadlocks sup-al: everybody comes to hold the best."""
    for run in runs(started(SupAlRandom, 3, network=Network(CIRCLE), T_S=0.1), 20):
        assert (run.ended, run.metrics["leader"]) == (Ended.STOPPED, 3)


@pytest.mark.parametrize("loss", [0.0, 0.4])
def test_an_interval_costs_what_sup_costs(loss: float) -> None:
    """The bandwidth stays below that of AL without a longer T_A."""
    members, intervals, counts = 30, 400, []
    lost = Correlated(loss) if loss else NoLoss()
    run = group(SupAlRandom, members, loss=lost, T_L=float("inf"), T_S=0.5).run(intervals)
    for k in range(intervals):
        counts.append(float(sum(k <= at < k + 1 for at, _ in run.said)))
    error = stdev(counts) / intervals**0.5
    expected = first_round_first_waker(members, loss, Law(0.5), D=DELTA)
    assert expected < members / 3
    assert abs(fmean(counts) - expected) <= 4 * error


def test_the_best_is_heard_when_its_turn_comes() -> None:
    """All have the same chance: N / (messages per interval) intervals, geometrically."""
    members = 10
    results = runs(started(SupAlRandom, members), 300)
    mean, error = mean_of(results, "tmax")
    turns = members / first_round_first_waker(members, 0.0, Law(0.5), D=DELTA)
    # In its interval it speaks some time of [0, T_S].
    assert turns - 1 - 4 * error <= mean <= turns - 1 + 0.5 + 4 * error
    quick, _ = mean_of(runs(started(Al, members), 5), "tmax")
    assert quick == 0  # AL, where everybody announces in every interval


def test_suppression_only_to_spread_the_announcements() -> None:
    """As in use: N messages, the first at T_S/(N+1) and the last at N T_S/(N+1) on average."""
    members, T_S, first, last = 9, 0.5, [], []
    for seed in range(300):
        said = group(SupAlRandom, members, seed=seed, T_S=T_S, suppress=False).run(0.9).said
        assert sorted(who for _, who in said) == list(range(1, members + 1))
        first.append(said[0][0])
        last.append(said[-1][0])
    for times, expected in ((first, T_S / 10), (last, 9 * T_S / 10)):
        assert abs(fmean(times) - expected) <= 4 * stdev(times) / 300**0.5


def test_random_announcers_miss_a_dead_leader() -> None:
    """T_L is 3 T_A for each member known: some turns of everybody."""
    run = group(SupAlRandom, 4, seed=2, leader=4)
    schedule(run.world, [Crash(at=0.5, member=4)])
    run.run(11)
    assert set(run.leaders.values()) == {4}
    run.run(40)
    assert set(run.leaders.values()) == {3}

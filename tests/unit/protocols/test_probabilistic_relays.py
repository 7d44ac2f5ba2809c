"""Relay members that hardly know each other find each other by multicast."""

from __future__ import annotations

import pytest

from hustings.protocols.probabilistic.election import Probabilistic
from hustings.protocols.probabilistic.settings import ProbabilisticConfig
from hustings.sim.experiment import Description, build
from hustings.sim.play import RunResult, play


def runs(relay_by: str, view: float) -> list[RunResult]:
    described = Description(
        kind=Probabilistic, members=200, view=view, settings={"relay_by": relay_by}, seed=3
    )
    experiment = build(described)
    return [play(experiment, number) for number in range(5)]


def metric(result: RunResult, name: str) -> float:
    value = result.metrics[name]
    assert value is not None
    return value


def test_by_multicast_small_views_need_one_round_and_by_unicast_several() -> None:
    by_view, by_all = runs("unicast", 0.05), runs("multicast", 0.05)
    assert all(metric(each, "rounds") > 1 for each in by_view)
    for each in by_all:
        assert metric(each, "rounds") == metric(each, "strong") == 1
        assert metric(each, "ucasts") == 0
        # An Init, and two of each relay member: whom it prefers, and whom they ended up with.
        assert metric(each, "mcasts") == 1 + 2 * metric(each, "relay_members")


@pytest.mark.parametrize("K", [1, 7, 1000])
def test_a_relay_phase_by_multicast_lasts_as_long_whatever_the_number_of_relay_members(
    K: float,
) -> None:
    config = ProbabilisticConfig(relay_by="multicast", T_3=2.0)
    assert config.relaying(K) == 4.0
    assert config.waiting(K) == 8.0
    assert not config.warnings()


def test_a_relay_phase_that_is_too_short_for_the_multicast_is_remarked_on() -> None:
    config = ProbabilisticConfig(relay_by="multicast", T_3=2.0, T_2=3.0)
    assert config.warnings() == ["T_2 is shorter than 2 T_3: relay members may miss each other"]

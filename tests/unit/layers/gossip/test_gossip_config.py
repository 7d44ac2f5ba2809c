"""The stack's settings: defaults, rules, and what follows from them."""

import pytest

from hustings.core.config import Surroundings
from hustings.core.errors import BadInput
from hustings.layers.gossip.layer import GossipConfig, warm_up


def test_times_default_to_multiples_of_delta() -> None:
    one, ten = GossipConfig(), GossipConfig(delta=10.0)
    for config in (one, ten):
        assert config.period == config.round_time == config.delta
        assert config.buffering_time == 20 * config.delta
        assert config.epoch_time == 100 * config.delta
    assert ten.fail_time(50) == pytest.approx(10 * one.fail_time(50))
    assert warm_up(ten, 50) == pytest.approx(10 * warm_up(one, 50))


def test_given_times_are_taken() -> None:
    config = GossipConfig.parse(
        {"T_gossip": 2.0, "T_fail": 50.0, "T_cleanup": 120.0, "T_round": 0.5, "rounds": 30}
    )
    assert config.period == 2.0
    assert config.fail_time(3) == config.fail_time(10**6) == 50.0
    assert config.cleanup_time(3) == 120.0
    assert config.buffering_time == 15.0
    assert GossipConfig(T_fail=50.0).cleanup_time(3) == 100.0


def test_patience_grows_with_the_group_once_a_message_cannot_hold_it() -> None:
    config = GossipConfig(entries=65)
    within = config.fail_time(65) / config.fail_time(9)
    beyond = config.fail_time(64_001) / config.fail_time(641)
    assert within < 2  # like log N
    assert 100 < beyond < 170  # like N log N
    assert config.fail_time(500) > GossipConfig(entries=500).fail_time(500)
    assert config.fail_time(500) > GossipConfig(entries=65, fanout=2).fail_time(500)


def test_more_loss_and_fewer_mistakes_take_more_patience() -> None:
    usual = GossipConfig().fail_time(100)
    assert GossipConfig(loss=0.5).fail_time(100) > usual
    assert GossipConfig(p_mistake=1e-12).fail_time(100) > usual


def test_the_size_of_the_view_does_not_matter_while_it_exceeds_a_message() -> None:
    assert GossipConfig(view_size=100).rate(1000) == GossipConfig(view_size=900).rate(1000)
    assert GossipConfig(view_size=20).rate(1000) < GossipConfig(view_size=900).rate(1000)


def test_the_simulator_tells_how_lossy_it_is() -> None:
    assert GossipConfig.for_group(50, Surroundings()) == {}
    assert GossipConfig.for_group(50, Surroundings(p_ucastl=0.2)) == {"loss": 0.2}
    hopeless = GossipConfig.for_group(50, Surroundings(p_ucastl=1.0))
    assert GossipConfig.parse(hopeless).fail_time(50) < 1e6


@pytest.mark.parametrize(
    "settings, sentence",
    [
        ({"T_fail": 0.5}, "T_fail (0.5) must be at least T_gossip (1)"),
        ({"T_fail": 9, "T_cleanup": 5}, "T_cleanup (5) must be at least T_fail (9)"),
        ({"T_cleanup": 5}, "T_cleanup (5) must be at least T_fail"),
        ({"fanout": 7, "view_size": 5}, "fanout (7) must not exceed view_size (5)"),
        ({"T_round": 0.01}, "rounds x T_round (0.2) must be at least delta (1)"),
        ({"T_gossip": "inf"}, "T_gossip must be finite"),
        ({"minima": 2}, "minima must be a whole number >= 3"),
        ({"entries": 1}, "entries must be a whole number >= 2"),
        ({"loss": 1}, "loss must be a number >= 0"),
        ({"p_mistake": 0}, "p_mistake must be a number > 0"),
        ({"seeds": -1}, "seeds must be a whole number >= 0"),
        ({"rounds": 0}, "rounds must be a whole number >= 1"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    settings: dict[str, object], sentence: str
) -> None:
    with pytest.raises(BadInput) as refused:
        GossipConfig.parse(settings)
    assert sentence in str(refused.value)


def test_all_broken_rules_are_told_together() -> None:
    with pytest.raises(BadInput) as refused:
        GossipConfig.parse({"T_fail": 0.5, "fanout": 7, "view_size": 5})
    assert str(refused.value).count("must") == 2


@pytest.mark.parametrize(
    "config, word",
    [
        (GossipConfig(T_fail=30.0, T_cleanup=40.0), "T_cleanup"),
        (GossipConfig(T_fail=5.0), "T_fail"),
        (GossipConfig(rounds=2), "anti-entropy"),
    ],
)
def test_settings_with_a_consequence_are_remarked_on(config: GossipConfig, word: str) -> None:
    assert GossipConfig().warnings() == []
    (warning,) = config.warnings()
    assert word in warning

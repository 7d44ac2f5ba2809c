"""Settings of the probabilistic election: what is refused, what is remarked upon, defaults."""

from __future__ import annotations

import pytest

from hustings.core.config import Surroundings, describe
from hustings.core.errors import BadInput
from hustings.protocols.probabilistic.settings import ProbabilisticConfig

parse = ProbabilisticConfig.parse


@pytest.mark.parametrize(
    "settings, sentence",
    [
        ({"K": 0}, "K must be a number > 0 <= 1000000000000.0, not 0"),
        ({"K": -7}, "K must be a number > 0"),
        ({"K": "many"}, "K must be a number > 0"),
        ({"view_prob": 0}, "view_prob must be a number > 0 <= 1, not 0"),
        ({"view_prob": 1.1}, "view_prob must be a number > 0 <= 1, not 1.1"),
        ({"max_rounds": 0}, "max_rounds must be a whole number >= 1 <= 64, not 0"),
        ({"max_rounds": 65}, "max_rounds must be a whole number >= 1 <= 64, not 65"),
        ({"max_rounds": 2.5}, "max_rounds must be a whole number"),
        ({"p_fail": 1.5}, "p_fail must be a number >= 0 <= 1, not 1.5"),
        ({"p_fail": "nan"}, "p_fail must be a number >= 0 <= 1, not 'nan'"),
        ({"p_ucastl": -0.1}, "p_ucastl must be a number >= 0 <= 1"),
        ({"p_mcastl": 2}, "p_mcastl must be a number >= 0 <= 1"),
        ({"N": 0}, "N must be a whole number >= 1"),
        ({"K_max": 0}, "K_max must be a number > 0"),
        ({"K_max": 3}, "K_max = 3 must be at least the first K, 7"),
        ({"strategy": "7,7"}, "does not grow"),
        ({"strategy": "seven"}, "strategy 'seven' is not understood"),
        ({"strategy": "7,14", "K": 7}, "K goes with a named strategy"),
        ({"estimate": "exact"}, "estimate=exact needs N, the size of the group"),
        ({"estimate": "guess"}, "estimate must be one of exact, gossip, view, not 'guess'"),
        ({"thinning": "none"}, "thinning must be one of delay, hash, all, not 'none'"),
        ({"join_on_contact": "perhaps"}, "join_on_contact must be true or false"),
        ({"W": 0}, "W must be a number > 0"),
        ({"W": "inf"}, "W must be finite"),
        ({"T_1": "inf"}, "T_1 must be finite"),
        ({"T_2": "inf"}, "T_2 must be finite"),
        ({"T_3": "inf"}, "T_3 must be finite"),
        ({"T_2": 0}, "T_2 must be a number > 0"),
        ({"N": 10**400}, "N must be a whole number >= 1"),
        ({"delta": 1e308}, "so long that a round would never end"),
        ({"group": "\udcff"}, "group must be a text that can be written as UTF-8"),
        ({"k": 7}, "unknown setting 'k'"),
    ],
)
def test_what_is_refused(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse(settings)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_all_broken_rules_come_at_once() -> None:
    with pytest.raises(BadInput) as refused:
        parse({"strategy": "9,3", "estimate": "exact", "T_3": "inf"})
    assert str(refused.value).count(";") == 2


def test_what_a_user_types_is_read() -> None:
    config = parse({"K": "40", "N": "10000", "join_on_contact": "true", "p_mcastl": "0.01"})
    assert (config.K, config.N, config.join_on_contact, config.p_mcastl) == (40, 10_000, True, 0.01)


def test_defaults() -> None:
    config = parse({})
    assert list(config.plan.sizes) == [7, 14, 28, 56, float("inf")]
    assert config.warnings() == []
    assert config.thinning == "delay"
    assert not config.join_on_contact
    assert config.p_fail == 0.0


@pytest.mark.parametrize(
    "settings, counts",
    [({}, "gossip"), ({"N": 5}, "exact"), ({"N": 5, "estimate": "view"}, "view")],
)
def test_where_the_size_of_the_group_comes_from(settings: dict[str, object], counts: str) -> None:
    assert parse(settings).counts == counts


def test_timers_are_multiples_of_the_longest_delay() -> None:
    config = parse({"delta": 0.5})
    assert config.delivery == 0.5
    assert config.relaying(7) == 5.25
    assert config.waiting(7) == 6.25
    assert config.window == 10.0


def test_timers_that_are_given_hold() -> None:
    config = parse({"T_1": 50, "T_2": 30, "T_3": 4, "W": 9})
    assert config.delivery == 4
    assert config.relaying(7) == config.relaying(56) == 30
    assert config.waiting(7) == 50
    assert config.window == 9
    assert parse({"T_3": 4}).waiting(7) == 10.5 + 8
    assert parse({"T_3": 4}).window == 80


def test_every_setting_is_explained() -> None:
    for name, rule, _, text in describe(ProbabilisticConfig):
        assert rule, name
        assert text, name


# Remarks


@pytest.mark.parametrize(
    "settings, remark",
    [
        ({"T_2": 80}, "T_2 = 80 is shorter than 84 delays"),
        ({"T_1": 85}, "T_1 is shorter than T_2 + 2 T_3 at K = 56"),
        ({"thinning": "hash"}, "thinning=delay finds nearly all of these"),
        ({"W": 1.5}, "W is not much longer than T_3"),
        ({"view_prob": 0.1, "N": 2000}, "too few to be connected; raise K, or let N_i be"),
    ],
)
def test_what_is_remarked_upon(settings: dict[str, object], remark: str) -> None:
    (found,) = parse(settings).warnings()
    assert remark in found


@pytest.mark.parametrize(
    "settings",
    [
        {"T_2": 84, "T_3": 1},
        {"T_1": 86, "N": 100},
        {"W": 2},
        {"thinning": "all"},
        {"view_prob": 0.5, "N": 2000},
        {"view_prob": 0.1, "N": 2000, "estimate": "view"},
        {"view_prob": 0.1, "N": 2000, "K": 70},
        {"K": 0.5, "view_prob": 0.01, "N": 9},
    ],
)
def test_what_is_not(settings: dict[str, object]) -> None:
    assert parse(settings).warnings() == []


# The world these settings are for


def test_a_simulator_fills_in_what_it_knows() -> None:
    around = Surroundings(p_ucastl=0.1, p_mcastl=0.2, p_fail=0.3, view_prob=0.4)
    known = ProbabilisticConfig.for_group(50, around)
    assert known == {"N": 50, "p_ucastl": 0.1, "p_mcastl": 0.2, "view_prob": 0.4}
    assert ProbabilisticConfig.for_group(50, Surroundings()) == {"N": 50}
    assert parse(known).counts == "exact"


def test_the_world_is_arranged_as_the_settings_say() -> None:
    config = parse({"p_ucastl": 0.1, "p_mcastl": 0.2, "p_fail": 0.3, "view_prob": 0.4})
    assert config.surroundings() == Surroundings(
        p_ucastl=0.1, p_mcastl=0.2, p_fail=0.3, view_prob=0.4
    )
    assert parse({}).surroundings() == Surroundings(p_fail=0.0)

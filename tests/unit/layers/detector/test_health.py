"""Local health, pure: the factor, the watch over a silence, and the settings."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.errors import BadInput
from hustings.layers.detector.health import Health, Vigil
from hustings.layers.detector.heartbeat import HeartbeatConfig

spans = st.floats(0.0, 100.0)


def fresh(most: float = 8.0) -> Health:
    return Health(most=most, half_life=10.0, unit=2.0, slack=0.5)


# The factor


def test_punctual_timers_leave_the_factor_at_one() -> None:
    health = fresh()
    assert not health.late(1.0, by=0.5)
    assert not health.late(2.0, by=-3.0)
    assert health.factor(3.0) == health.latest == 1.0


def test_lateness_counts_in_units_and_halves_in_time() -> None:
    health = fresh()
    assert health.late(100.0, by=2.0)
    assert health.latest == 2.0
    assert health.factor(110.0) == 1.5
    assert health.late(110.0, by=4.0)
    assert health.factor(110.0) == 3.5
    assert health.factor(120.0) == 2.25


def test_the_factor_comes_back_to_exactly_one() -> None:
    health = fresh()
    health.late(0.0, by=1e9)
    assert health.factor(200.0) == 1.0


def test_one_sleep_counts_once_however_many_timers_it_delays() -> None:
    health = fresh()
    assert [health.late(50.0, by=by) for by in (2.0, 1.5, 3.0)] == [True] * 3
    assert health.factor(50.0) == 2.0
    health.late(51.0, by=4.0)  # of these four, three were counted at 50
    assert health.factor(51.0) == pytest.approx(1 + 0.5**0.1 + 0.5)


def test_switched_off_nothing_is_noticed() -> None:
    health = fresh(most=1.0)
    assert not health.late(5.0, by=1e9)
    assert health.factor(5.0) == 1.0


@given(st.lists(st.tuples(spans, spans), max_size=30), st.floats(1.5, 20.0))
def test_the_factor_stays_within_its_bounds(sleeps: list[tuple[float, float]], most: float) -> None:
    health, now = fresh(most), 0.0
    for pause, by in sleeps:
        now += pause
        before = health.factor(now)
        noticed = health.late(now, by)
        after = health.factor(now)
        assert 1.0 <= before <= after <= most * (1 + 1e-12)
        assert noticed == (by > 0.5)
        assert health.factor(now + 1.0) <= after


def test_a_clock_that_steps_back_does_no_harm() -> None:
    health = fresh()
    health.late(50.0, by=2.0)
    assert health.factor(40.0) == 2.0
    assert health.late(40.0, by=2.0)  # nothing fresh in it
    assert health.factor(40.0) == 2.0


# The watch over a silence


def watching(wait: float = 4.0, factor: float = 1.0) -> Vigil:
    vigil = Vigil()
    assert vigil.begin(10.0, wait, factor) == wait * factor
    return vigil


def test_a_silence_is_excused_only_if_that_gives_more_time() -> None:
    vigil = watching()
    assert vigil.due == 14.0
    assert not vigil.grant(14.0, vigil.since, 1.0)
    assert not vigil.grant(12.0, 5.0, 1.0)
    assert vigil.grant(14.0, 11.0, 1.0)
    assert vigil.due == 15.0
    assert vigil.grant(15.0, 11.0, 2.0)  # the factor has grown meanwhile
    assert vigil.due == 19.0
    assert not vigil.grant(19.0, 11.0, 2.0)


def test_no_silence_begins_in_the_future() -> None:
    vigil = watching()
    assert vigil.grant(16.0, 99.0, 1.0)
    assert (vigil.since, vigil.due) == (16.0, 20.0)


@given(st.lists(st.floats(1.0, 8.0), min_size=60, max_size=60))
def test_excuses_for_one_silence_come_to_an_end(factors: list[float]) -> None:
    """The waiting that excuses add is bounded, however often its timer fires late."""
    vigil = watching()
    for factor in factors:
        if not vigil.grant(vigil.due, vigil.due, factor):
            break
    assert vigil.granted <= 16 * 4.0
    assert vigil.due <= 14.0 + 16 * 4.0
    assert not all(vigil.grant(vigil.due, vigil.due, 1.0) for _ in range(17))
    vigil.begin(500.0, 4.0, 1.0)
    assert vigil.grant(504.0, 504.0, 1.0)  # a new silence, new excuses


def test_a_question_puts_the_decision_off() -> None:
    vigil = watching()
    vigil.ask(14.0, 7, 0.5, 2.0)
    assert (vigil.asked, vigil.questions, vigil.due) == (7, 1, 15.0)
    assert not vigil.grant(15.0, vigil.since, 2.0)
    assert vigil.grant(15.5, vigil.since + 1.0, 2.0)  # late by half: as much again
    assert vigil.due == 16.0
    vigil.begin(16.0, 4.0, 1.0)
    assert (vigil.asked, vigil.questions) == (0, 0)


# Settings


def test_settings_default_to_multiples_of_the_period() -> None:
    config = HeartbeatConfig(T=8.0, D=2.0)
    assert config.usual_lateness == 1.0
    assert HeartbeatConfig(T=8.0, D=0.5).usual_lateness == 0.25
    assert HeartbeatConfig(T=8.0, D=0.0).usual_lateness == 1.0
    assert HeartbeatConfig(slack=0.125).usual_lateness == 0.125
    health = config.health()
    health.late(0.0, by=10.0)
    assert (health.factor(0.0), health.factor(80.0)) == (2.0, 1.5)
    health = HeartbeatConfig(T=8.0, D=2.0, health_half=5.0).health()
    health.late(0.0, by=10.0)
    assert health.factor(5.0) == 1.5


@pytest.mark.parametrize(
    "settings, sentence",
    [
        ({"health_max": 0.5}, "health_max must be a number >= 1 <= 100"),
        ({"health_max": "inf"}, "health_max must be a number >= 1 <= 100"),
        ({"health_half": 0}, "health_half must be a number > 0"),
        ({"health_half": math.inf}, "health_half must be finite"),
        ({"slack": 0}, "slack must be a number > 0"),
        ({"ping_timeout": -1}, "ping_timeout must be a number >= 0"),
        ({"ping_timeout": "inf"}, "ping_timeout must be finite"),
        ({"beat": "broadcast"}, "beat must be one of send, multicast"),
        ({"liveness": "any"}, "liveness must be one of heartbeats, messages"),
    ],
)
def test_bad_settings_get_a_sentence(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(BadInput) as refused:
        HeartbeatConfig.parse(settings)
    assert str(refused.value).startswith(sentence)


def test_a_multicast_to_one_neighbour_is_told_to_be_useless() -> None:
    (warning,) = HeartbeatConfig(beat="multicast", pattern="ring").warnings()
    assert "changes nothing with pattern ring" in warning
    assert not HeartbeatConfig(beat="multicast", pattern="leader-to-all").warnings()

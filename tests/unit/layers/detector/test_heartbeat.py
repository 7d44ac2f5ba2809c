"""The pure part of the heartbeat detector, and its settings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.errors import BadInput
from hustings.core.messages import Role
from hustings.layers.detector.heartbeat import (
    HeartbeatConfig,
    HeartbeatMonitor,
    HeartbeatMsg,
    WatchMsg,
)

ticks = st.integers(0, 400).map(lambda quarter: quarter / 4)


@given(
    timeout=ticks.filter(bool),
    arrivals=st.lists(st.tuples(st.integers(1, 4), ticks)),
    now=ticks,
)
def test_overdue_is_whoever_was_silent_for_longer(
    timeout: float, arrivals: list[tuple[int, float]], now: float
) -> None:
    monitor = HeartbeatMonitor(timeout)
    last: dict[int, float] = {}
    for member, at in sorted(arrivals, key=lambda arrival: arrival[1]):
        assert monitor.heard(member, at) == timeout
        last[member] = at
    assert sorted(monitor.overdue(now)) == sorted(m for m in last if now - last[m] > timeout)


def test_who_was_never_heard_has_its_own_time() -> None:
    monitor = HeartbeatMonitor(timeout=1.0)
    monitor.watch(7, now=10.0, wait=5.0)
    assert monitor.overdue(15.0) == []
    assert monitor.overdue(15.5) == [7]
    monitor.heard(7, now=12.0)
    assert monitor.overdue(13.5) == [7]


def test_the_forgotten_are_not_overdue() -> None:
    monitor = HeartbeatMonitor(timeout=1.0)
    monitor.heard(7, now=0.0)
    monitor.forget(7)
    monitor.forget(8)
    assert monitor.overdue(99.0) == []
    assert not monitor.deadlines


def test_what_a_detector_sends_is_no_cost_of_the_election() -> None:
    assert HeartbeatMsg.role is WatchMsg.role is Role.DETECTOR


def test_settings_default_to_the_lectures_proportions() -> None:
    config = HeartbeatConfig.parse({"delta": "0.25"})
    assert (config.period, config.margin, config.timeout, config.first) == (1.0, 0.25, 1.25, 1.25)
    assert not config.warnings()
    assert HeartbeatConfig.parse({"T": 2, "D": 0, "grace": 7}).first == 7.0


@pytest.mark.parametrize(
    "settings, sentence",
    [
        ({"T": 0}, "T must be a number > 0"),
        ({"T": -1}, "T must be a number > 0"),
        ({"T": "inf"}, "T must be finite"),
        ({"T": "nan"}, "T must be a number > 0"),
        ({"D": -0.5}, "D must be a number >= 0"),
        ({"D": "inf"}, "D must be finite"),
        ({"grace": 0}, "grace must be a number > 0"),
        ({"pattern": "star"}, "pattern must be one of all-to-all, ring, leader-to-all, to-leader"),
        ({"period": 1}, "unknown setting 'period'"),
    ],
)
def test_bad_settings_get_a_sentence(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(BadInput) as refused:
        HeartbeatConfig.parse(settings)
    assert str(refused.value).startswith(sentence)


@pytest.mark.parametrize(
    "settings, part",
    [
        ({"D": 0.5}, "a live member be suspected; set D >= delta"),
        ({"grace": 1}, "before its first heartbeat was due; set grace >= T + D"),
        ({"pattern": "to-leader"}, "its crash starts no election"),
    ],
)
def test_doubtful_settings_are_told_with_their_consequence(
    settings: dict[str, object], part: str
) -> None:
    (warning,) = HeartbeatConfig.parse(settings).warnings()
    assert part in warning

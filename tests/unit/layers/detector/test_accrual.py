"""The accrual estimator: phi, the wait that follows from it, and what it remembers."""

import math
from decimal import Decimal, localcontext
from statistics import NormalDist, fmean, pstdev

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hustings.core.errors import BadInput
from hustings.layers.detector.accrual import (
    AccrualConfig,
    AccrualMonitor,
    PeakEstimator,
    PhiEstimator,
    normal_deviations,
    normal_phi,
)

gaps = st.floats(0.01, 20.0)
thresholds = st.floats(0.01, 300.0)
tails = st.sampled_from(["normal", "exponential"])


def fed(config: AccrualConfig, pauses: list[float]) -> PhiEstimator:
    estimator = PhiEstimator(config)
    now = 100.0
    estimator.heard(now)
    for pause in pauses:
        now += pause
        estimator.heard(now)
    return estimator


@given(st.floats(-6.0, 6.0))
def test_phi_is_the_logarithm_of_the_tail(deviations: float) -> None:
    tail = NormalDist().cdf(-deviations)
    assert normal_phi(deviations) == pytest.approx(-math.log10(tail), rel=1e-6, abs=1e-9)


def slow_phi(deviations: int) -> float:
    """phi with forty digits, by the continued fraction of density over tail."""
    with localcontext(prec=40):
        z = ratio = Decimal(deviations)
        for term in range(400, 0, -1):
            ratio = z + term / ratio
        pi = Decimal("3.141592653589793238462643383279502884197")
        return -float(((-z * z / 2).exp() / ((2 * pi).sqrt() * ratio)).log10())


@pytest.mark.parametrize("deviations", [5, 20, 36, 37, 38, 100])
def test_phi_of_very_long_silences(deviations: int) -> None:
    assert normal_phi(deviations) == pytest.approx(slow_phi(deviations), rel=1e-12)


@given(st.floats(-5.0, 100.0), st.floats(0.001, 10.0))
def test_phi_grows_with_the_silence(deviations: float, more: float) -> None:
    assert normal_phi(deviations + more) > normal_phi(deviations)


@given(thresholds)
def test_deviations_are_the_inverse_of_phi(threshold: float) -> None:
    assert normal_phi(normal_deviations(threshold)) == pytest.approx(threshold, rel=1e-6)


@given(pauses=st.lists(gaps, max_size=30), threshold=thresholds, tail=tails)
def test_phi_reaches_the_threshold_when_the_wait_is_over(
    pauses: list[float], threshold: float, tail: str
) -> None:
    settings = {"threshold": threshold, "tail": tail, "min_samples": 3}
    estimator = fed(AccrualConfig.parse(settings), pauses)
    wait = estimator.wait()
    assert estimator.last is not None
    if wait > 0:
        after = estimator.last + wait
        assert estimator.phi(after) == pytest.approx(threshold, rel=1e-4, abs=1e-4)
        assert estimator.phi(after - wait / 8) < estimator.phi(after) < estimator.phi(after + 1)


@given(pauses=st.lists(gaps, min_size=1, max_size=40))
def test_mean_and_spread_are_those_of_the_window(pauses: list[float]) -> None:
    estimator = fed(AccrualConfig(window=10, min_samples=1, min_deviation=0.001), pauses)
    kept = pauses[-10:]
    assert len(estimator.gaps) == len(kept)
    assert estimator.mean == pytest.approx(fmean(kept))
    assert estimator.spread == pytest.approx(max(pstdev(kept), 0.001), abs=1e-6)


def test_too_few_gaps_leave_the_plain_timer_in_charge() -> None:
    config = AccrualConfig(T=1.0, D=0.25, min_samples=3)
    assert fed(config, []).wait() == fed(config, [9.0, 9.0]).wait() == 1.25
    assert fed(config, [9.0, 9.0, 9.0]).wait() > 9.0


def test_a_clockwork_is_not_trusted_more_than_the_least_deviation() -> None:
    wait = fed(AccrualConfig(T=1.0, D=0.25, min_deviation=0.1), [1.0] * 50).wait()
    assert wait == pytest.approx(1 + 0.1 * normal_deviations(8.0))


@example(late=[0.0] * 30 + [1.0])
@example(late=[1.0] + [0.0] * 9 + [1.0])
@given(late=st.lists(st.floats(0.0, 1.0), min_size=10, max_size=200))
def test_defaults_never_doubt_a_synchronous_member(late: list[float]) -> None:
    """Heartbeats every T, each up to D late: none comes after the wait that was computed for it."""
    config = AccrualConfig(T=4.0, D=1.0)
    estimator = PhiEstimator(config)
    for number, delay in enumerate(late):
        now = number * 4.0 + delay
        if estimator.last is not None:
            assert now <= estimator.last + estimator.wait()
        estimator.heard(now)


def test_patience_is_learnt_and_unlearnt() -> None:
    config = AccrualConfig(T=1.0, D=0.25, window=20)
    steady, slow = fed(config, [1.0] * 20), fed(config, [1.0] * 20 + [3.0, 1.0, 2.0])
    assert slow.wait() > 2 * steady.wait()
    assert fed(config, [3.0, 1.0, 2.0] + [1.0] * 20).wait() == steady.wait()


def test_a_clock_that_steps_back_does_no_harm() -> None:
    estimator = fed(AccrualConfig(min_samples=1), [1.0])
    estimator.heard(50.0)
    assert list(estimator.gaps) == [1.0, 0.0]
    assert estimator.phi(40.0) == estimator.phi(50.0)
    assert estimator.wait() > 0


def test_a_monitor_knows_each_member_apart_and_forgets() -> None:
    monitor = AccrualMonitor(AccrualConfig(T=1.0, D=0.25, min_samples=2))
    for instant in (0.0, 1.0, 2.0, 3.0):
        monitor.heard(1, instant)
        monitor.heard(2, instant * 5)
    assert monitor.phi(1, 6.0) > 8.0
    assert monitor.phi(2, 18.0) < 1.0
    assert monitor.phi(3, 18.0) == 0.0
    assert monitor.overdue(16.0) == [1]
    monitor.reborn(2)
    assert monitor.heard(2, 100.0) == 1.25
    monitor.forget(1)
    monitor.forget(2)
    assert not monitor.deadlines
    assert not monitor.estimators


@pytest.mark.parametrize(
    "settings, sentence",
    [
        ({"threshold": 0}, "threshold must be a number > 0 <= 300"),
        ({"threshold": 301}, "threshold must be a number > 0 <= 300"),
        ({"window": 1}, "window must be a whole number >= 2 <= 10000"),
        ({"window": 10_001}, "window must be a whole number >= 2 <= 10000"),
        ({"min_samples": 0}, "min_samples must be a whole number >= 1"),
        ({"window": 5, "min_samples": 6}, "min_samples = 6 must not exceed window = 5"),
        ({"tail": "fat"}, "tail must be one of normal, exponential, peak"),
        ({"safety": 0.5}, "safety must be a number >= 1 <= 100"),
        ({"memory": 0}, "memory must be a number >= 1"),
        ({"ceiling": 0}, "ceiling must be a number >= 1"),
        ({"min_deviation": 0}, "min_deviation must be a number > 0"),
        ({"min_deviation": "inf"}, "min_deviation must be finite"),
        ({"T": 0}, "T must be a number > 0"),
    ],
)
def test_bad_settings_get_a_sentence(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(BadInput) as refused:
        AccrualConfig.parse(settings)
    assert str(refused.value).startswith(sentence)


@pytest.mark.parametrize(
    "settings, part",
    [
        ({"threshold": 0.5}, "more often than once in ten heartbeats"),
        ({"tail": "exponential"}, "waits for 18.4 mean gaps"),
        ({"D": 0.5}, "set D >= delta"),
    ],
)
def test_doubtful_settings_are_told_with_their_consequence(
    settings: dict[str, object], part: str
) -> None:
    (warning,) = AccrualConfig.parse(settings).warnings()
    assert part in warning


# The tail "peak"


def peaked(pauses: list[float], **settings: object) -> PeakEstimator:
    config = AccrualConfig.parse({"T": 1.0, "D": 0.5, "tail": "peak", **settings})
    estimator = PeakEstimator(config)
    now = 100.0
    estimator.heard(now)
    for pause in pauses:
        now += pause
        estimator.heard(now)
    return estimator


def test_a_clockwork_gets_the_mean_gap_and_d() -> None:
    assert peaked([]).wait() == peaked([1.0] * 50).wait() == 1.5
    assert peaked([1.125] * 200).wait() == pytest.approx(1.625, abs=0.001)


def test_the_worst_lateness_counts_times_the_safety_and_fades_by_half() -> None:
    late = [1.0] * 20 + [1.5]
    assert peaked(late).wait() == pytest.approx(1.0 + 0.5 / 32 + 3 * 0.5)
    assert peaked(late, safety=4).wait() == pytest.approx(1.0 + 0.5 / 32 + 4 * 0.5)
    assert peaked(late + [1.0] * 100, memory=100, safety=4).wait() == pytest.approx(2.0, abs=0.01)
    assert peaked(late + [1.0] * 1000, memory=100).wait() == pytest.approx(1.5, abs=0.001)
    assert peaked([*late, 1.3]).peak == pytest.approx(0.5, abs=0.001)  # a lesser one hides none


def test_outages_are_not_learnt_from_and_patience_has_a_ceiling() -> None:
    assert peaked([1.0, 9.1], ceiling=6).wait() == 1.5
    assert peaked([1.0, 8.9], ceiling=6).wait() == 9.0


@given(pauses=st.lists(gaps, max_size=30))
def test_peak_patience_lies_between_its_bounds(pauses: list[float]) -> None:
    estimator = peaked(pauses)
    assert 0.5 <= estimator.wait() <= 6 * 1.5
    assert estimator.last is not None
    assert estimator.phi(estimator.last + estimator.wait()) == pytest.approx(8.0)
    assert estimator.phi(estimator.last - 1.0) == 0.0


def test_a_lateness_of_the_safety_is_borne_the_next_time() -> None:
    """After a stall, one that is twice as bad does no harm."""
    stall = 0.8
    assert peaked([1.0] * 20 + [1.0 + stall]).wait() > 1.0 + 2 * stall


def test_the_next_one_watched_is_expected_to_be_as_late_as_the_last() -> None:
    monitor = AccrualMonitor(AccrualConfig(T=1.0, D=0.5, tail="peak"))
    for now in (0.0, 1.0, 3.0):
        monitor.heard(1, now)
    monitor.forget(1)
    assert monitor.heard(2, 10.0) == pytest.approx(1.0 + 3.0)
    monitor.reborn(2)
    assert monitor.heard(2, 11.0) == pytest.approx(1.0 + 3.0)
    assert PeakEstimator(monitor.config).phi(5.0) == 0.0


def test_a_pardoned_gap_is_no_gap() -> None:
    for tail in ("normal", "peak"):
        monitor = AccrualMonitor(
            AccrualConfig.parse({"T": 1.0, "D": 0.5, "tail": tail, "min_samples": 2})
        )
        for now in (0.0, 1.0, 2.0, 3.0):
            before = monitor.heard(1, now)
        monitor.pardon(1)
        monitor.pardon(2)  # not watched
        assert monitor.heard(1, 7.0) == before
        assert monitor.heard(1, 9.0) > before

"""When a command is started again."""

from __future__ import annotations

import pytest

from hustings.net.restarts import (
    HELD_OUT_S,
    LONGEST_DELAY_S,
    Restart,
    RestartPolicy,
    Restarts,
)


@pytest.mark.parametrize(
    "when, after_success, after_failure",
    [
        (Restart.NEVER, None, None),
        (Restart.ON_FAILURE, None, 1.0),
        (Restart.ALWAYS, 1.0, 1.0),
    ],
)
def test_the_policy_decides(
    when: Restart, after_success: float | None, after_failure: float | None
) -> None:
    assert Restarts(RestartPolicy(when)).after(0, ran_s=1.0) == after_success
    assert Restarts(RestartPolicy(when)).after(3, ran_s=1.0) == after_failure


def test_delays_double_up_to_the_longest() -> None:
    restarts = Restarts(RestartPolicy(Restart.ALWAYS, delay_s=10.0))
    assert [restarts.after(1, 0.0) for _ in range(5)] == [10.0, 20.0, 40.0, 60.0, 60.0]
    for _ in range(5_000):  # and no power of two is too large for it
        assert restarts.after(1, 0.0) == LONGEST_DELAY_S


def test_a_longer_delay_than_the_longest_is_kept() -> None:
    restarts = Restarts(RestartPolicy(Restart.ALWAYS, delay_s=100.0))
    assert [restarts.after(1, 0.0) for _ in range(2)] == [100.0, 100.0]


def test_no_delay_stays_none() -> None:
    restarts = Restarts(RestartPolicy(Restart.ALWAYS, delay_s=0.0))
    assert [restarts.after(1, 0.0) for _ in range(3)] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("most", [0, 1, 3])
def test_restarts_in_a_row_are_bounded(most: int) -> None:
    restarts = Restarts(RestartPolicy(Restart.ON_FAILURE, most=most))
    delays = [restarts.after(1, 0.0) for _ in range(most + 1)]
    assert None not in delays[:most]
    assert delays[most] is None


def test_a_run_that_held_out_starts_the_count_anew() -> None:
    restarts = Restarts(RestartPolicy(Restart.ALWAYS, most=2))
    assert [restarts.after(1, 0.0) for _ in range(2)] == [1.0, 2.0]
    assert restarts.after(1, HELD_OUT_S) == 1.0
    assert restarts.after(1, HELD_OUT_S - 0.1) == 2.0
    assert restarts.after(1, 0.0) is None

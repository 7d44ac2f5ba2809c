"""The decimal grid of simulated time."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.sim.queue import ARRIVAL, CONTROL, EAGER, END_OF_TIME, NEVER, TIMER, on_grid

TICK = Fraction(1, 10**8)


@given(st.floats(0.0, END_OF_TIME))
def test_an_instant_is_the_double_nearest_to_a_whole_number_of_ticks(instant: float) -> None:
    placed = on_grid(instant)
    ticks = round(Fraction(placed) / TICK)
    assert placed == float(ticks * TICK)
    # Half a tick, and what doubles of this size cannot tell apart.
    assert abs(Fraction(placed) - Fraction(instant)) <= TICK / 2 + Fraction(math.ulp(instant))
    assert on_grid(placed) == placed


@given(st.lists(st.floats(0.0, 1000.0), max_size=50))
def test_sums_meet_at_one_instant_whichever_way_they_are_added_up(parts: list[float]) -> None:
    placed = [on_grid(part) for part in parts]
    step_by_step = 0.0
    for part in reversed(placed):
        step_by_step = on_grid(step_by_step + part)
    assert on_grid(sum(placed)) == on_grid(math.fsum(placed)) == step_by_step


@given(st.integers(1, 10**6), st.integers(1, 200))
def test_what_people_type_multiplies_exactly(thousandths: int, times: int) -> None:
    """So many delays one after the other end where a timer of so many delays ends."""
    delay = thousandths / 1000
    now = 0.0
    for _ in range(times):
        now = on_grid(now + delay)
    assert now == on_grid(times * delay)


@pytest.mark.parametrize("instant", [0.0, 0.1, 1.0, 2.5, END_OF_TIME, END_OF_TIME - 0.25, NEVER])
def test_these_lie_on_the_grid(instant: float) -> None:
    assert on_grid(instant) == instant


def test_what_goes_first_at_one_instant() -> None:
    assert CONTROL < EAGER < ARRIVAL < TIMER

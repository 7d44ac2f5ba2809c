"""The grid of simulated time."""

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from hustings.sim.instants import ARRIVAL, CONTROL, EAGER, END_OF_TIME, NEVER, TIMER, on_grid

STEP = Fraction(1, 2**28)
TIMES = st.floats(0.0, END_OF_TIME)


@given(TIMES)
def test_the_grid_has_the_nearest_multiple_of_its_step(instant: float) -> None:
    placed = Fraction(on_grid(instant))
    assert placed % STEP == 0
    assert abs(placed - Fraction(instant)) <= STEP / 2


@given(st.lists(st.floats(0.0, 1000.0), max_size=50))
def test_sums_of_instants_are_exact_whichever_way_they_are_added_up(parts: list[float]) -> None:
    placed = [on_grid(part) for part in parts]
    assert sum(placed) == sum(reversed(placed)) == math.fsum(placed)
    assert on_grid(math.fsum(placed)) == math.fsum(placed)


def test_the_ends_of_time() -> None:
    assert on_grid(0.0) == 0.0
    assert on_grid(END_OF_TIME) == END_OF_TIME
    assert on_grid(END_OF_TIME - 2.0**-28) == END_OF_TIME - 2.0**-28
    assert on_grid(NEVER) == NEVER


def test_what_goes_first_at_one_instant() -> None:
    assert CONTROL < EAGER < ARRIVAL < TIMER

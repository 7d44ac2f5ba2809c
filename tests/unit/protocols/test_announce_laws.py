"""Wake-up times and the number of Byes, each against a dumb twin."""

from __future__ import annotations

from math import exp, expm1
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.choice import candidate, parse_choice
from hustings.protocols.announce.laws import instant, place
from hustings.protocols.announce.settings import MAX_BYES, byes_for
from hustings.testing import view_of

UNIT = st.floats(0, 1, exclude_max=True)
INTERVALS = st.floats(0.001, 1000)


@given(u=UNIT, T_S=INTERVALS, lam=st.floats(0.01, 500))
def test_an_instant_lies_in_the_interval(u: float, T_S: float, lam: float) -> None:
    assert 0 <= instant("uniform", lam, T_S, u) <= T_S
    assert 0 <= instant("exponential", lam, T_S, u) <= T_S


@given(u=UNIT, T_S=INTERVALS, lam=st.floats(0.01, 30))
def test_the_exponential_law_inverts_its_distribution_function(
    u: float, T_S: float, lam: float
) -> None:
    """P(t) = (e^(lam t/T_S) - 1)/(e^lam - 1), as the specification prints it."""
    t = instant("exponential", lam, T_S, u)
    assert expm1(lam * t / T_S) / expm1(lam) == pytest.approx(u, abs=1e-9)


@pytest.mark.parametrize("lam", [0.5, 5.0, 10.0, 400.0])
def test_the_mean_of_the_exponential_law(lam: float) -> None:
    """T_S (1/(1 - e^-lam) - 1/lam), by the midpoint rule over the inverse."""
    steps = 20_000
    mean = fmean(instant("exponential", lam, 2.0, (i + 0.5) / steps) for i in range(steps))
    assert mean == pytest.approx(2.0 * (1 / (1 - exp(-lam)) - 1 / lam), rel=1e-4)


def test_better_members_have_earlier_places() -> None:
    loads = {1: 0.9, 2: 0.1, 3: 0.5, 4: 0.5}
    view = view_of([candidate(member, load=load) for member, load in loads.items()])
    places = {member: place(view, parse_choice("lowest:load"), member) for member in loads}
    assert places == {2: 0.0, 4: 0.25, 3: 0.5, 1: 0.75}
    assert place(view, parse_choice("highest-id"), 4) == 0
    alone = view_of([candidate(7)])
    assert place(alone, parse_choice("highest-id"), 7) == 0


@given(
    loss=st.floats(0.01, 0.9),
    receivers=st.integers(1, 1000),
    eps=st.sampled_from([0.5, 0.01, 1e-6]),
)
def test_the_fewest_byes_that_do(loss: float, receivers: int, eps: float) -> None:
    def all_hear(byes: int) -> float:
        return float((1 - loss**byes) ** receivers)

    byes = byes_for(loss, receivers, eps)
    assert all_hear(byes) >= 1 - eps - 1e-9
    assert byes == 1 or all_hear(byes - 1) <= 1 - eps + 1e-9


def test_byes_at_the_ends() -> None:
    assert byes_for(0.5, 0, 0.01) == 0  # nobody is there to hear one
    assert byes_for(0.0, 10**6, 1e-9) == 1
    assert byes_for(0.9999, 10**6, 1e-9) == MAX_BYES

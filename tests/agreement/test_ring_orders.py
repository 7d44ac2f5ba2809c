"""Rings in any order of ids: runs set against the closed forms and against a dumb twin."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from statistics import fmean, stdev
from typing import Any

import pytest

from hustings.core.errors import BadInput
from hustings.lab.closed_forms import ring as theory
from hustings.protocols.ring import Ring
from hustings.sim.experiment import Description, build
from hustings.sim.play import play
from hustings.sim.scenarios import Order, Scenario
from tests.unit.lab.closed_forms import rings

LECTURE = (3, 32, 5, 80, 6, 12)  # clockwise, as the lecture draws them


def played(
    order: Order | None, members: int, initiators: Iterable[int], run: int = 0
) -> dict[str, float | None]:
    scenario = Scenario("start", initiators=tuple(initiators))
    described = Description(kind=Ring, members=members, order=order, scenario=scenario)
    return play(build(described), run).metrics


@pytest.mark.parametrize("N", range(2, 25))
def test_all_initiate_and_ids_decrease(N: int) -> None:
    found = played("decreasing", N, range(1, N + 1))
    assert found["messages"] == theory.all_decreasing(N)
    assert found["leader"] == N


@pytest.mark.parametrize("N", range(3, 25))
def test_the_dearest_order_for_a_cache(N: int) -> None:
    assert played("decreasing", N, range(1, N))["messages"] == theory.most_with_cache(N)


@pytest.mark.parametrize("N, runs", [(6, 600), (30, 200), (200, 60)])
def test_all_initiate_in_random_order(N: int, runs: int) -> None:
    """Within 4 standard errors: by chance one such test in 16,000 fails, and the seed is fixed."""
    counted = [played("random", N, range(1, N + 1), run)["messages"] or 0.0 for run in range(runs)]
    error = stdev(counted) / sqrt(runs)
    assert error > 0
    assert abs(fmean(counted) - theory.all_random_mean(N)) <= 4 * error


@pytest.mark.parametrize("initiator", LECTURE)
def test_the_lectures_ring_from_every_initiator(initiator: int) -> None:
    """2N + hops from the initiator to 80; 6, which stands behind 80, makes the worst case."""
    hops = (LECTURE.index(80) - LECTURE.index(initiator)) % 6
    found = played(LECTURE, 6, [sorted(LECTURE).index(initiator) + 1])
    assert found["messages"] == found["time"] == theory.messages(6, hops)
    assert found["leader"] == 6
    assert initiator != 6 or found["messages"] == theory.printed_worst(6)


@pytest.mark.parametrize("N", [3, 4, 5])
def test_every_order_costs_what_the_twin_counts(N: int) -> None:
    for order in rings.orders(N):
        for initiators in [(order[0],), order[1:], order]:
            twin = rings.play(order, initiators, rings.CACHED)
            assert played(order, N, initiators)["messages"] == twin.messages


def test_an_order_is_the_same_wherever_it_begins() -> None:
    turned = (*LECTURE[2:], *LECTURE[:2])
    assert played(LECTURE, 6, [2, 5]) == played(turned, 6, [2, 5])


def test_increasing_is_the_order_without_one() -> None:
    assert played(range(1, 9), 8, [3, 5]) == played(None, 8, [3, 5])


def test_the_dead_are_left_out_of_the_order() -> None:
    scenario = Scenario("leader-crash", crashed=(4,), detectors=(2,))
    described = Description(kind=Ring, members=6, order="decreasing", scenario=scenario)
    found = play(build(described), 0).metrics
    assert found["messages"] == theory.messages(4, hops=2)  # 2, 1, 5: 3 stands between 5 and 2
    assert found["leader"] == 5


@pytest.mark.parametrize(
    "given, complaint",
    [
        ({"order": "sideways"}, "unknown order 'sideways'"),
        ({"order": (1, 2, 2)}, "--order names 2 twice"),
        ({"order": (1, 2)}, "--order names 2 ids, and there are 8 members"),
        ({"order": "random", "settings": {"place": "seat"}}, "drop that setting or attribute"),
        ({"settings": {"place": "seat"}}, "the settings name attribute 'seat'"),
        ({"order": "decreasing", "scenario": Scenario("churn")}, "--order must be random"),
    ],
)
def test_a_bad_order_gets_a_sentence(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        build(Description(kind=Ring, **given))

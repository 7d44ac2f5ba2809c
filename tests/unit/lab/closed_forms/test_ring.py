"""Ring: the numbers of the specification, and all cases of small rings counted."""

from __future__ import annotations

from statistics import fmean

import pytest

from hustings.lab.closed_forms import ring
from tests.unit.lab.closed_forms import rings


@pytest.mark.parametrize("N", range(2, 30))
def test_one_initiator_at_every_distance(N: int) -> None:
    order = range(1, N + 1)
    played = {hops: rings.play(order, [N - hops], rings.CACHED) for hops in range(N)}
    for hops, outcome in played.items():
        assert ring.messages(N, hops) == outcome.messages == outcome.time
    assert ring.printed_best(N) == played[0].messages
    assert ring.printed_worst(N) == played[N - 1].messages
    assert ring.mean_messages(N) == fmean(outcome.messages for outcome in played.values())


@pytest.mark.parametrize("N", range(2, 20))
def test_all_initiate_in_order(N: int) -> None:
    ids = range(1, N + 1)
    assert ring.all_increasing(N) == rings.play(ids, ids, rings.CACHED).messages
    assert ring.all_decreasing(N) == rings.play(ids[::-1], ids, rings.CACHED).messages


@pytest.mark.parametrize("N, printed", [(4, 12.333), (5, 16.417), (6, 20.7)])
def test_all_initiate_in_random_order(N: int, printed: float) -> None:
    counted = fmean(rings.play(order, order, rings.CACHED).messages for order in rings.orders(N))
    assert ring.all_random_mean(N) == pytest.approx(counted, rel=1e-12)
    assert ring.all_random_mean(N) == pytest.approx(printed, abs=5e-4)


@pytest.mark.parametrize("N", [4, 5])
def test_a_late_cache_costs_more(N: int) -> None:
    counted = fmean(
        rings.play(order, order, rings.LATE_CACHE).messages for order in rings.orders(N)
    )
    assert ring.all_random_mean_late_cache(N) == pytest.approx(counted, rel=1e-12)


@pytest.mark.parametrize("N, flag, cache", [(3, 9, 10), (4, 14, 16), (5, 20, 23)])
def test_the_most_over_all_cases(N: int, flag: int, cache: int) -> None:
    assert ring.most_with_flag(N) == flag
    assert max(outcome.messages for outcome in rings.every(N, rings.PLAIN)) == flag
    assert ring.most_with_cache(N) == cache
    assert max(outcome.messages for outcome in rings.every(N, rings.CACHED)) == cache


@pytest.mark.parametrize("N", range(3, 20))
def test_the_dearest_case_with_a_cache(N: int) -> None:
    falling = range(N, 0, -1)
    dearest = rings.play(falling, falling[1:], rings.CACHED)
    assert ring.most_with_cache(N) == dearest.messages


def test_the_most_in_a_ring_of_six() -> None:
    assert (ring.most_with_flag(6), ring.most_with_cache(6)) == (27, 31)


@pytest.mark.parametrize("N", [3, 4, 5])
def test_one_flag_with_a_cache_dead_locks(N: int) -> None:
    outcomes = list(rings.every(N, rings.ONE_FLAG))
    assert ring.dead_locked(N) == (sum(not o.leaders for o in outcomes), len(outcomes))


@pytest.mark.parametrize("rules", [rings.PLAIN, rings.CACHED])
@pytest.mark.parametrize("N", [3, 4, 5])
def test_the_other_readings_always_elect_the_best(N: int, rules: rings.Rules) -> None:
    assert all(outcome.leaders == {N} for outcome in rings.every(N, rules))


@pytest.mark.parametrize("n", range(4, 65))
def test_the_leader_dies_during_the_election(n: int) -> None:
    alone = rings.leader_dies(n, lambda i: i == n - 1)
    assert ring.leader_dies_predecessor_reruns(n) == alone
    assert ring.leader_dies_all_rerun(n) == rings.leader_dies(n, lambda i: True)


@pytest.mark.parametrize(
    "n, predecessor, everybody",
    [(4, 15, 15), (5, 16, 19), (8, 28, 31), (16, 60, 63), (64, 252, 255)],
)
def test_the_specification_says_so(n: int, predecessor: int, everybody: int) -> None:
    assert ring.leader_dies_predecessor_reruns(n) == predecessor
    assert ring.leader_dies_all_rerun(n) == everybody


def test_nobody_notices() -> None:
    assert ring.orphan_messages(20 * 9) == 20 * 9 + 1

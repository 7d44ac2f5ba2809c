"""Silence, false leaders, and what an adversary that knows the network breaks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product
from math import ceil, exp, factorial, log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hustings.core.errors import BadInput
from hustings.lab.closed_forms.committee import aware, polling


@pytest.mark.parametrize("n, leaders", [(10**3, 1.6), (10**4, 1.26), (10**5, 0.29), (10**6, 0.03)])
def test_false_leaders_of_step_9(n: int, leaders: float) -> None:
    poll = polling.printed_polled(log(n))
    found = polling.printed_false_leaders(n, 0.3, poll, 0.98)
    assert found == pytest.approx(leaders, abs=0.012)
    assert polling.false_leaders(n, 0.3, poll, 0.98) == pytest.approx(0.02 * found)
    assert polling.false_leaders(n, 0.3, poll, 1.0) == 0


def test_polls_of_every_kind() -> None:
    """All answers of five that are asked, one by one."""
    b, informed = 0.25, 0.9
    answers = b + (1 - b) * (1 - informed)
    wrong = confirmed = 0.0
    for replies in product((True, False), repeat=5):
        yes = sum(replies)
        if yes > 2:
            wrong += answers**yes * (1 - answers) ** (5 - yes)
            known = (1 - b) * informed
            confirmed += known**yes * (1 - known) ** (5 - yes)
    assert polling.printed_false_leaders(100, b, 5, informed) == pytest.approx(75 * wrong)
    assert polling.unanswered(b, 5, informed) == pytest.approx(1 - confirmed)


def test_the_silence_rule() -> None:
    assert 1 - polling.printed_silenced(36) == pytest.approx(2e-8, rel=0.05)
    assert polling.silenced(36) < 1e-40
    assert [polling.corrected_tau(mean) for mean in (0.5, 2, 12, 36)] == [8, 8, 48, 144]


@pytest.mark.parametrize("mean, tau", [(0.5, 0), (1.0, 3), (12.0, 8), (12.0, 12), (30.0, 60)])
def test_poisson_tails(mean: float, tau: int) -> None:
    below = sum(exp(-mean) * mean**j / factorial(j) for j in range(tau + 1))
    assert polling.poisson_beyond(mean, tau) == pytest.approx(1 - below, abs=1e-12)


@given(st.floats(0, 200), st.integers(0, 300))
def test_tails_fall(mean: float, tau: int) -> None:
    here = polling.poisson_beyond(mean, tau)
    assert -1e-15 <= here <= 1 + 1e-12
    assert polling.poisson_beyond(mean, tau + 1) <= here + 1e-12
    assert polling.poisson_beyond(mean + 1, tau) >= here - 1e-12


BROKEN = {  # b: by R = 1, 4, 16
    0.05: (0.15, 0.047, 0.012),
    0.1: (0.30, 0.16, 0.044),
    0.2: (0.60, 0.50, 0.22),
    0.3: (0.9, 0.9, 0.86),
}


@pytest.mark.parametrize("b", BROKEN)
def test_broken_shares(b: float) -> None:
    """As told, but for 0.0129, which stands there as .012, and 0.495 as .50."""
    for groups, told in zip((1, 4, 16), BROKEN[b], strict=True):
        assert aware.broken(b, groups) == pytest.approx(told, abs=0.0051 if told > 0.1 else 0.001)


def most_broken(members: int, budget: int, nodes: list[list[int]]) -> int:
    """The most nodes that some choice of bad members breaks: all choices tried."""
    most = 0
    for bad in combinations(range(members), budget):
        chosen = set(bad)
        fallen = sum(3 * sum(member in chosen for member in node) >= len(node) for node in nodes)
        most = max(most, fallen)
    return most


@pytest.mark.parametrize("budget", [1, 2, 3])
def test_one_group_each_gives_three_b(budget: int) -> None:
    """12 members in 4 nodes of 3: each bad member breaks a node."""
    nodes = [[3 * node + place for place in range(3)] for node in range(4)]
    assert most_broken(12, budget, nodes) / 4 == pytest.approx(aware.broken(budget / 12, 1))


def score(b: float, groups: int, beta: float) -> float:
    """E[top-b score] b, by sorting: the score's law, taken from the best down until b is used."""
    left, got = b, 0.0
    for value in range(groups, 0, -1):
        ways = factorial(groups) // factorial(value) // factorial(groups - value)
        share = min(left, ways * beta**value * (1 - beta) ** (groups - value))
        got += share * value
        left -= share
    return got


@settings(max_examples=18, deadline=None)
@given(st.floats(0.01, 0.32), st.integers(1, 12))
def test_the_broken_share_is_the_largest_root(b: float, groups: int) -> None:
    beta = aware.broken(b, groups)
    assert 0 < beta <= 3 * b + 1e-9
    assert score(b, groups, beta) >= beta * groups / 3 - 1e-7
    step = 3 * b / 500
    for place in range(1, 500):
        above = beta + place * step
        if above > min(1.0, 3 * b):
            break
        assert score(b, groups, above) < above * groups / 3 + 1e-6


@settings(max_examples=18, deadline=None)
@given(st.floats(0.01, 0.3), st.integers(1, 8))
def test_more_groups_help_and_more_bad_harm(b: float, groups: int) -> None:
    here = aware.broken(b, groups)
    assert aware.broken(b, 2 * groups) <= here + 1e-6
    assert aware.broken(b + 0.02, groups) >= here - 1e-6
    assert aware.broken(b, groups, 0.5) <= here + 1e-6
    assert aware.broken_at_most(b, groups + 1) <= aware.broken_at_most(b, groups)


def test_the_union_bound() -> None:
    """By hand at b = 0.05, R = 16; and it stays above the estimate."""
    sets = -(0.05 * log(0.05) + 0.95 * log(0.95))
    by_hand = sets / (2 * (1 / 3 - 0.05) ** 2 * 16)
    assert aware.broken_at_most(0.05, 16) == pytest.approx(by_hand)
    for b in BROKEN:
        for groups in (1, 4, 16):
            assert aware.broken_at_most(b, groups) >= aware.broken(b, groups)


def test_who_still_hears() -> None:
    assert aware.informed(0.15, 0.05) == pytest.approx(1 - 0.1 / 0.95)
    assert aware.informed(0.0, 0.2) == 1
    assert aware.informed(1.0, 0.5) == 0


def test_edges() -> None:
    assert aware.broken(0.0, 4) == 0
    assert aware.broken(0.34, 4) == 1
    assert polling.printed_polled(log(1000)) == ceil(log(1000) ** 2) == 48
    attempts: tuple[Callable[[], float], ...] = (
        lambda: aware.broken(-0.1, 1),
        lambda: aware.broken(0.1, 0),
        lambda: aware.broken_at_most(0.34, 1),
        lambda: polling.false_leaders(10, 0.1, 0, 0.5),
        lambda: polling.poisson_beyond(-1.0, 3),
    )
    for wrong in attempts:
        with pytest.raises(BadInput):
            wrong()

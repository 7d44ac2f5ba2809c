"""Endgames against plain recursions over every move, and the table of exact values."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import combinations, product
from math import comb

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hustings.core.errors import BadInput
from hustings.lab.closed_forms.committee import endgame
from hustings.lab.closed_forms.committee.network import phi

TABLE = [  # r, x, two-bin Feige, baton, path
    (16, 4, 0.159, 0.523, 0.43),
    (64, 6, 0.218, 0.861, 0.85),
    (64, 13, 0.107, 0.501, 0.58),
    (128, 13, 0.153, 0.823, 0.84),
    (128, 26, 0.079, 0.392, 0.58),
    (256, 26, 0.121, 0.800, 0.84),
]


@pytest.mark.parametrize("r, x, feige, baton, path", TABLE)
def test_the_table(r: int, x: int, feige: float, baton: float, path: float) -> None:
    assert endgame.feige(r, x) == pytest.approx(feige, abs=5e-4)
    assert endgame.baton(r, x) == pytest.approx(baton, abs=5e-4)
    assert endgame.path(x / r, 128) == pytest.approx(path, abs=0.006)


def test_feige_depends_on_powers_of_two() -> None:
    assert endgame.feige(48, 5) == pytest.approx(0.139, abs=5e-4)
    assert endgame.feige(64, 6) > endgame.feige(48, 5)


@cache
def every_bin(good: int, bad: int) -> float:
    """Two-bin elections with every placing of the bad tried; an empty bin does not count.

    If all sit in one bin the same candidates throw again. Whoever can wait for a better draw for
    ever gets it, so a state in which waiting is possible and some draw is lost for the good is
    worth what is left when waiting is never worse: iterate to the least fixed point.
    """
    if not bad:
        return 1.0
    if not good:
        return 0.0
    value = 1.0
    for _ in range(200):
        after = 0.0
        for a in range(good + 1):
            options = []
            for y in range(bad + 1):
                first, second = a + y, good - a + bad - y
                if not first or not second:
                    options.append(value)
                elif first <= second:
                    options.append(every_bin(a, y))
                else:
                    options.append(every_bin(good - a, bad - y))
            after += comb(good, a) / 2**good * min(options)
        value = after
    return value


@pytest.mark.parametrize("r", range(1, 15))
def test_feige_is_that_of_every_placing(r: int) -> None:
    for x in range(r + 1):
        assert endgame.feige(r, x) == pytest.approx(every_bin(r - x, x), abs=1e-12)


@cache
def every_pass(unvisited: tuple[bool, ...], holder_good: bool) -> float:
    """The baton among members who are good or not, one by one."""
    if not unvisited:
        return float(holder_good)
    after = [
        every_pass(unvisited[:place] + unvisited[place + 1 :], unvisited[place])
        for place in range(len(unvisited))
    ]
    return sum(after) / len(after) if holder_good else min(after)


@pytest.mark.parametrize("r", range(1, 9))
def test_baton_is_that_of_every_pass(r: int) -> None:
    for x in range(r):
        others = (True,) * (r - x - 1) + (False,) * x
        assert endgame.baton(r, x) == pytest.approx(every_pass(others, True), abs=1e-12)
        if x:  # a bad first holder is no worse
            bad_first = every_pass((True,) * (r - x) + (False,) * (x - 1), False)
            assert bad_first >= endgame.baton(r, x) - 1e-12
    assert endgame.baton(r, r) == 0


def value(labels: tuple[bool, ...], node: int) -> float:
    """The value of a node of an explicit tree; node k has children 2k+1 and 2k+2."""
    if 2 * node + 1 >= len(labels):
        return float(labels[node])
    below = value(labels, 2 * node + 1), value(labels, 2 * node + 2)
    return sum(below) / 2 if labels[node] else min(below)


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
@pytest.mark.parametrize("share", [0.0, 0.1, 1 / 3, 0.5, 1.0])
def test_path_is_the_mean_of_all_trees(depth: int, share: float) -> None:
    size = 2 ** (depth + 1) - 1
    total = 0.0
    for labels in product((True, False), repeat=size):
        good = sum(labels)
        total += (1 - share) ** good * share ** (size - good) * value(labels, 0)
    assert endgame.path(share, depth) == pytest.approx(total, abs=3e-6)


def test_path_among_a_few_candidates() -> None:
    """All labelings of a tree of depth 1 by 4 candidates, and all pairs of them bad."""
    total = 0.0
    for names in product(range(4), repeat=3):
        for bad in combinations(range(4), 2):
            labels = tuple(name not in bad for name in names)
            total += value(labels, 0) / 4**3 / 6
    assert endgame.path(2 / 4, 1) == pytest.approx(total)


@pytest.mark.parametrize(
    "share, expected",
    [
        (0.05, 0.934),
        (0.1, 0.841),
        (0.15, 0.724),
        (0.2, 0.584),
        (0.25, 0.428),
        (0.3, 0.264),
        (1 / 3, 0.163),
    ],
)
def test_phi(share: float, expected: float) -> None:
    assert endgame.path(share, 64) == pytest.approx(expected, abs=0.0015)
    assert endgame.path(share, 128) == pytest.approx(endgame.path(share, 64), abs=5e-4)
    assert phi(share + 0.013, 128) == pytest.approx(endgame.path(share + 0.013, 128), abs=5e-4)


@pytest.mark.parametrize("r, x, found", [(20, 4, 0.586), (20, 6, 0.283), (24, 7, 0.29)])
def test_explicit_trees_of_depth_twenty(r: int, x: int, found: float) -> None:
    """What random bad sets gave in some explicit trees: sampled, so only nearly."""
    assert endgame.path(x / r, 20) == pytest.approx(found, abs=0.02)


def test_depths() -> None:
    assert endgame.bounded_path_depth(0.3) < 128
    assert endgame.path_depth(20, 0.3) > 20  # the trees above were too flat for it
    assert endgame.entropy(0.5) == 1


@settings(max_examples=36, deadline=None)
@given(st.integers(2, 60), st.data())
def test_more_bad_candidates_are_worse(r: int, data: st.DataObject) -> None:
    x = data.draw(st.integers(0, r - 1))
    assert endgame.baton(r, x + 1) <= endgame.baton(r, x) + 1e-12
    assert endgame.feige(r, x + 1) <= endgame.feige(r, x) + 1e-12
    assert 0 <= endgame.feige(r, x) <= 1


@settings(max_examples=15, deadline=None)
@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 24))
def test_paths_fall_with_the_share_and_the_depth(one: float, other: float, depth: int) -> None:
    low, high = sorted((one, other))
    assert endgame.path(high, depth) <= endgame.path(low, depth) + 1e-4
    assert endgame.path(low, depth + 1) <= endgame.path(low, depth) + 1e-4


def test_domains() -> None:
    attempts: tuple[Callable[[], float], ...] = (
        lambda: endgame.feige(0, 0),
        lambda: endgame.baton(4, 5),
        lambda: endgame.path(1.5, 3),
        lambda: endgame.path(0.5, -1),
        lambda: endgame.path_depth(10, 0.5),
        lambda: endgame.bounded_path_depth(0.0),
    )
    for wrong in attempts:
        with pytest.raises(BadInput):
            wrong()

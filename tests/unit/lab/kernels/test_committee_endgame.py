"""Endgames: the reference table, trees written out, and games played through by hand."""

from __future__ import annotations

from functools import cache
from itertools import product
from math import comb

import numpy as np
import pytest

from hustings.lab.kernels.committee.endgame import (
    after_halving,
    baton_table,
    feige_table,
    last_value,
    path_table,
    path_value,
)


@pytest.mark.parametrize(
    "share, value",
    [
        (0.05, 0.934),
        (0.10, 0.841),
        (0.15, 0.724),
        (0.20, 0.584),
        (0.25, 0.428),
        (0.30, 0.264),
        (1 / 3, 0.163),
    ],
)
def test_path_has_the_reference_values(share: float, value: float) -> None:
    assert path_value(share, 1.0, 128) == pytest.approx(value, abs=0.002)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_path_against_all_trees(depth: int) -> None:
    """Every labelling of a small tree with good and bad, weighed and played through."""
    share = 0.25
    places = 2 ** (depth + 1) - 1

    def value(labels: tuple[int, ...], place: int) -> float:
        low = 2 * place + 1
        if low >= places:
            return 1.0 - labels[place]
        sides = value(labels, low), value(labels, low + 1)
        return min(sides) if labels[place] else sum(sides) / 2

    total = 0.0
    for labels in product((0, 1), repeat=places):
        bad = sum(labels)
        total += share**bad * (1 - share) ** (places - bad) * value(labels, 0)
    assert path_value(share, 1.0, depth) == pytest.approx(total, abs=1e-9)


def test_path_falls_with_the_share_and_with_depth() -> None:
    deep = path_table(128)
    assert deep[0] == pytest.approx(1.0)
    assert deep[-1] == pytest.approx(0.0)
    assert (np.diff(deep) <= 1e-12).all()
    assert (path_table(3) >= deep - 1e-9).all()


@pytest.mark.parametrize(
    "r, x, feige, baton",
    [
        (16, 4, 0.159, 0.523),
        (48, 5, 0.139, None),
        (64, 6, 0.218, 0.861),
        (64, 13, 0.107, 0.501),
        (128, 13, 0.153, 0.823),
        (128, 26, 0.079, 0.392),
        (256, 26, None, 0.800),
    ],
)
def test_reference_table(r: int, x: int, feige: float | None, baton: float | None) -> None:
    """Both are exact; the table has three digits."""
    if feige is not None:
        assert feige_table()[r - x, x] == pytest.approx(feige, abs=0.00051)
    if baton is not None:
        assert baton_table(r)[x] == pytest.approx(baton, abs=0.00051)


def by_names(holder: int, waiting: tuple[int, ...], bad: frozenset[int]) -> float:
    """Baton passing among named members: P(the last one is good)."""
    if not waiting:
        return float(holder not in bad)
    values = [
        by_names(each, tuple(other for other in waiting if other != each), bad) for each in waiting
    ]
    return min(values) if holder in bad else sum(values) / len(values)


@pytest.mark.parametrize("bad", range(5))
def test_baton_against_named_members(bad: int) -> None:
    members = range(6)
    villains = frozenset(range(6 - bad, 6))  # the lowest id is good
    assert baton_table(6)[bad] == pytest.approx(by_names(0, tuple(members[1:]), villains))


@cache
def played(good: int, bad: int) -> float:
    """Two bins to one by all plays of the adversary; a round without a loser is played again."""
    if not good or not bad:
        return float(bool(good))
    rows = []
    for zeros in range(good + 1):
        options = []
        stays = False
        for down in range(bad + 1):
            loads = ((zeros, down), (good - zeros, bad - down))
            filled = [load for load in loads if sum(load)]
            if len(filled) == 1:
                stays = True
                continue
            options.append(min(filled, key=sum))
        rows.append((comb(good, zeros) / 2**good, options, stays))
    value = 0.5
    for _ in range(400):
        value = sum(
            chance * min([played(*option) for option in options] + ([value] if stays else []))
            for chance, options, stays in rows
        )
    return value


@pytest.mark.parametrize("size", [2, 3, 4, 5, 6, 7, 8])
def test_feige_against_all_plays(size: int) -> None:
    for bad in range(size + 1):
        assert feige_table()[size - bad, bad] == pytest.approx(played(size - bad, bad), abs=1e-9)


def test_halving_has_the_chances_of_coins() -> None:
    """Three good, two bad, to two at most: all eight throws of the good by hand.

    3:0 and 0:3: one bin is without good members, the bad take it and are alone. 2:1 and 1:2: the
    single good one is joined by one of them.
    """
    goods, bads, chances, sizes = after_halving(3, 2, 2, True)
    found = {(int(g), int(x)): float(p) for g, x, p in zip(goods, bads, chances, strict=True)}
    assert found == pytest.approx({(0, 2): 0.25, (1, 1): 0.75})
    assert sizes == [5.0]


def test_those_left_must_be_able_to_agree() -> None:
    assert last_value("small", 21, 10, 64, 3) > 0.0
    assert last_value("small", 20, 10, 64, 3) == 0.0
    assert last_value("baton", 20, 10, 64, 3) == 0.0
    assert last_value("small", 20, 10, 64, 2) > 0.0


@pytest.mark.parametrize("endgame", ["feige", "baton", "small"])
def test_where_the_bad_move_like_the_good_each_is_one_of_many(endgame: str) -> None:
    assert last_value(endgame, 9, 3, 16, 3, steers=False) == 0.75
    assert last_value(endgame, 9, 3, 16, 3) < 0.75


def test_who_is_left_where_nobody_packs_is_a_sample() -> None:
    """As thrown by hand: the same law of how many are left, and of how many of these are bad."""
    good, bad = 8, 4
    counts: dict[tuple[int, int], float] = {}
    for zeros in range(good + 1):
        for theirs in range(bad + 1):
            chance = comb(good, zeros) * comb(bad, theirs) / 2 ** (good + bad)
            one, two = zeros + theirs, good + bad - zeros - theirs
            if one == 0 or two == 0:
                left = good, bad
            elif one <= two:
                left = zeros, theirs
            else:
                left = good - zeros, bad - theirs
            counts[left] = counts.get(left, 0.0) + chance
    goods, bads, chances, sizes = after_halving(good, bad, 6, packs=False)
    assert sizes == [12.0]
    found: dict[tuple[int, int], float] = {}
    for g, x, chance in zip(goods.tolist(), bads.tolist(), chances.tolist(), strict=True):
        found[g, x] = found.get((g, x), 0.0) + chance
    cut = {left: chance for left, chance in counts.items() if sum(left) <= 6}
    for left, chance in cut.items():
        if sum(left) < 6:
            assert found[left] == pytest.approx(chance, abs=1e-9), left
    share = sum(chance * x / (g + x) for (g, x), chance in found.items())
    assert share == pytest.approx(bad / (good + bad))

"""Lightest bin: packing against every play of tiny groups, and the reference values."""

from __future__ import annotations

from itertools import product
from math import sqrt

import numpy as np
import pytest

from hustings.lab.kernels.committee.bins import (
    BAD,
    GHOST,
    BinRules,
    bad_share_after,
    elect_all,
    empty_committees,
    gather,
    leaf_committees,
    new_room,
    pack_many,
    pack_two,
)
from hustings.lab.kernels.committee.network import grown
from hustings.lab.kernels.counter import root


def winner(loads: list[int]) -> int:
    """The first of the lightest bins that are not empty."""
    return min((load, place) for place, load in enumerate(loads) if load)[1]


def best_play(counts: tuple[int, ...], bad: int) -> tuple[float, bool]:
    """The largest bad share that any play of the bad reaches, and whether anybody need be out."""
    best = -1.0
    for play in product(range(len(counts)), repeat=bad):
        loads = [good + play.count(bin_) for bin_, good in enumerate(counts)]
        won = winner(loads)
        if loads[won] < sum(loads):
            best = max(best, play.count(won) / loads[won])
    return best, best >= 0.0


@pytest.mark.parametrize("zeros", range(5))
@pytest.mark.parametrize("ones", range(5))
@pytest.mark.parametrize("bad", range(5))
def test_two_bins_are_packed_as_well_as_any_play_can(zeros: int, ones: int, bad: int) -> None:
    if zeros + ones + bad == 0:
        return
    share, split = best_play((zeros, ones), bad)
    bin_, filled = pack_two(zeros, ones, bad)
    if not split:
        assert bin_ == -1, "all sit in one bin, and stay"
        return
    good = (zeros, ones)[bin_]
    assert filled <= bad
    assert filled / (good + filled) == pytest.approx(share)


@pytest.mark.parametrize("counts", list(product(range(4), repeat=4)))
def test_many_bins_are_packed_as_well_as_any_play_can(counts: tuple[int, ...]) -> None:
    if sum(counts) == 0:
        return
    bad = 3
    loads = [
        [good + play.count(bin_) for bin_, good in enumerate(counts)]
        for play in product(range(4), repeat=bad)
    ]
    plays = list(product(range(4), repeat=bad))
    best = max(
        play.count(winner(load)) / load[winner(load)]
        for play, load in zip(plays, loads, strict=True)
    )
    bin_, filled = pack_many(np.array(counts), bad)
    assert filled / (counts[bin_] + filled) == pytest.approx(best)


@pytest.mark.parametrize(
    "k, bad, halvings, oneshot, share",
    [
        (512, 51, 2, False, 0.174),
        (512, 51, 2, True, 0.178),
        (1024, 102, 3, False, 0.196),
        (1024, 102, 3, True, 0.208),
        (1024, 205, 3, False, 0.292),
        (1024, 205, 3, True, 0.305),
        (2048, 205, 4, False, 0.211),
        (2048, 205, 4, True, 0.234),
        (2048, 614, 1, False, 0.315),
    ],
)
def test_reference_values(k: int, bad: int, halvings: int, oneshot: bool, share: float) -> None:
    """Both are means of about a thousand elections, and theirs is given to three digits."""
    runs = 1000
    found = [bad_share_after(k, bad, halvings, oneshot, grown(root(5), i)) for i in range(runs)]
    error = float(np.std(found)) / sqrt(runs)
    assert abs(float(np.mean(found)) - share) <= 4 * sqrt(2) * error + 0.0005


def test_distinct_members_and_who_cannot_be_counted_on() -> None:
    """Members 0-4 and 3-7 in two committees: 3 sits twice, 4 is lost in one only, 6 in its only."""
    below = leaf_committees(
        np.array([0, 5, 10]), np.array([0, 1, 2, 3, 4, 3, 4, 5, 6, 7], np.int32)
    )
    below.lost[4] = below.lost[8] = 1
    below.ghosts[1] = 2
    state = np.zeros(8, np.uint8)
    state[7] = BAD
    room = new_room(8, 20, 2)
    good, faulty = gather(np.array([0, 1], np.int32), below, state, 0, room)
    assert sorted(room.good[:good].tolist()) == [0, 1, 2, 3, 4, 5]
    assert sorted(room.faulty[:faulty].tolist()) == [GHOST] * 3 + [7]


@pytest.mark.parametrize("bad, owned", [(9, 0), (10, 1)])
def test_from_a_third_on_the_adversary_owns_a_node(bad: int, owned: int) -> None:
    k = 30
    below = leaf_committees(np.array([0, k]), np.arange(k, dtype=np.int32))
    state = np.zeros(k, np.uint8)
    state[:bad] = BAD
    out = empty_committees(1, k)
    elect_all(
        root(1),
        np.array([0, 1]),
        np.zeros(1, np.int32),
        below,
        state,
        BinRules(1, False, True, False, 3),
        np.zeros(k, np.int64),
        new_room(k, k, 2),
        out,
    )
    assert out.owned[0] == owned
    if owned:
        assert out.start[1] == 0, "nobody good sits there"
        assert out.ghosts[0] == k // 2
    else:
        assert 0 < out.start[1] <= k // 2


def test_halving_loses_no_more_than_one_shot() -> None:
    runs = 300
    means = [
        np.mean([bad_share_after(2048, 205, 4, shot, grown(root(2), i)) for i in range(runs)])
        for shot in (False, True)
    ]
    assert means[0] < means[1]

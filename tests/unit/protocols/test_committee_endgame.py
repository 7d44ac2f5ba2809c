"""Endgames: all coins of tiny games against the recursion, larger ones against the tables."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import cache
from math import sqrt

import pytest

from hustings.core.choice import MemberId
from hustings.core.streams import Stream, derive
from hustings.protocols.committee.agreement import Seat, broadcast_rounds
from hustings.protocols.committee.bins import lightest, loads
from hustings.protocols.committee.endgame import (
    Baton,
    Style,
    Walk,
    leader_of,
    leader_rounds,
    pass_baton,
    walk_down,
)
from hustings.protocols.committee.lockstep import Script
from hustings.protocols.committee.misbehaving import (
    AdversaryScene,
    Honest,
    Pack,
    Split,
    outlook,
    packing,
)
from tests.unit.protocols.committee_kit import Coins, every_play, sit

Members = tuple[MemberId, ...]
STYLES: tuple[Style, ...] = ("full", "small", "baton", "feige")


def ids(members: int) -> Members:
    return tuple(range(1, members + 1))


# Baton


@cache
def baton(holds: bool, good: int, bad: int) -> Fraction:
    """P(good leader): a good one holds the baton or not, and so many have not had it."""
    if good + bad == 0:
        return Fraction(int(holds))
    to_good = baton(True, good - 1, bad) if good else None
    to_bad = baton(False, good, bad - 1) if bad else None
    moves = [each for each in (to_good, to_bad) if each is not None]
    if not holds:
        return min(moves)
    weighed = [(good, to_good), (bad, to_bad)]
    return sum(
        (Fraction(number, good + bad) * each for number, each in weighed if each is not None),
        Fraction(0),
    )


@pytest.mark.parametrize(
    "r, x, expected",
    [(16, 4, 0.523), (64, 6, 0.861), (64, 13, 0.501), (128, 13, 0.823), (128, 26, 0.392)],
)
def test_the_recursion_gives_the_table(r: int, x: int, expected: float) -> None:
    """With a good first holder, which is what the adversary would have: (256, 26) is .800."""
    assert float(baton(True, r - x - 1, x)) == pytest.approx(expected, abs=0.0006)
    assert baton(True, r - x - 1, x) < baton(False, r - x, x - 1)


@pytest.mark.parametrize(
    "r, bad", [(4, (2,)), (4, (1,)), (4, (4,)), (3, (2,)), (2, (1,)), (5, (3,))]
)
def test_all_coins_of_a_tiny_baton(r: int, bad: Members) -> None:
    """Message by message, in a committee of five that bears one liar."""

    def play(coins: Coins) -> MemberId:
        scripts = {
            each: pass_baton(Seat(each, ids(5)), ids(r), Stream(0) if each in bad else coins)
            for each in ids(5)
        }
        sat = sit(scripts, bad, Pack())
        assert sat.agreed
        assert set(sat.rounds.values()) == {max(0, r - 2) * broadcast_rounds(5)}
        return sat.good[0]

    plays = list(every_play(play))
    assert sum(weight for weight, _ in plays) == 1
    good = sum(weight for weight, leader in plays if leader not in bad)
    first = 1 not in bad
    waiting = r - len(bad) - first
    assert good == baton(first, waiting, len(bad) - (not first))


def test_a_baton_goes_to_everybody_once() -> None:
    game = Baton.begin((7, 3, 9, 5))
    held = [game.holder]
    while game.waiting:
        game = game.passed(len(game.waiting) // 2)
        held.append(game.holder)
    assert held[0] == 3
    assert sorted(held) == [3, 5, 7, 9]


# Path


def test_labels_are_public_even_and_of_the_roster() -> None:
    one, other = Walk.begin(ids(8), 12), Walk.begin(ids(9)[1:], 12)
    found: Counter[MemberId] = Counter()
    same = 0
    for node in range(1, 4097):
        here = Walk(one.candidates, one.key, 0, node).holder
        found[here] += 1
        same += here == Walk(other.candidates, other.key, 0, node).holder
    assert sorted(found) == list(ids(8))
    assert all(abs(count - 512) < 5 * sqrt(512 * 7 / 8) for count in found.values())
    assert abs(same - 4096 * 7 / 64) < 5 * sqrt(448)
    assert Walk.begin((3, 1, 2), 4).key == Walk.begin((1, 2, 3), 4).key


def test_a_walk_counts_its_steps() -> None:
    walk = Walk.begin(ids(3), 3).step(1).step(0)
    assert (walk.node, walk.left) == (0b110, 1)


@pytest.mark.parametrize("bad", [(2,), (1,), ()])
def test_all_coins_of_a_tiny_path(bad: Members) -> None:
    depth = 4

    def play(coins: Coins) -> MemberId:
        scripts = {
            each: walk_down(Seat(each, ids(5)), ids(5), depth, Stream(0) if each in bad else coins)
            for each in ids(5)
        }
        sat = sit(scripts, bad, Pack())
        assert sat.agreed
        assert set(sat.rounds.values()) == {depth * broadcast_rounds(5)}
        return sat.good[0]

    good = sum((weight for weight, leader in every_play(play) if leader not in bad), Fraction(0))
    assert float(good) == outlook(Walk.begin(ids(5), depth), AdversaryScene(bad, Stream(0)), depth)
    assert (good == 1) == (bad == ())


def test_a_bad_holder_takes_the_worse_branch() -> None:
    """Of all first branches of many trees: Pack never chooses the better outlook."""
    pack = Pack()
    lower = 0
    for roster in range(40):
        members = tuple(range(roster, roster + 6))
        scene = AdversaryScene(members[:2], Stream(0))
        walk = Walk.begin(members, 6)
        views = [outlook(walk.step(branch), scene, 5) for branch in (0, 1)]
        chosen = pack.move(scene, walk)
        assert views[chosen] == min(views)
        lower += views[0] != views[1]
    assert lower > 20


def walked(r: int, bad: Members, depth: int, seed: int) -> bool:
    """Whether a path that nobody disturbs but by its own moves ends with a good leader."""
    rng = Stream(seed)
    scene, pack = AdversaryScene(bad, rng), Pack()
    walk = Walk.begin(tuple(range(seed * r, (seed + 1) * r)), depth)
    while walk.left:
        bad_one = scene.is_bad(walk.holder)
        walk = walk.step(pack.move(scene, walk) if bad_one else rng.below(2))
    return not scene.is_bad(walk.holder)


@pytest.mark.parametrize("share, expected", [(0.1, 0.841), (0.2, 0.584)])
def test_paths_reach_the_mean_field(share: float, expected: float) -> None:
    """phi(share) within four standard errors; every run has a tree of its own."""
    r, runs = 60, 250
    good = 0
    for seed in range(runs):
        first = seed * r
        bad = tuple(range(first, first + round(share * r)))
        good += walked(r, bad, 24, seed)
    assert good / runs == pytest.approx(expected, abs=4 * sqrt(0.25 / runs))
    assert good / runs < 1 - share - 0.01  # worse than a coin of the whole group


# Feige, and all of them in committees


def last_of(r: int, x: int, rng: Stream) -> bool:
    good, bad, stalls = r - x, x, 0
    while good + bad > 1 and stalls < 8:
        choices = [rng.below(2) for _ in range(good)]
        spread = loads(choices, 2)
        plan = packing(spread, bad)
        won = lightest([*choices, *plan], 2)
        stalls += spread[won] + plan.count(won) == good + bad
        good, bad = spread[won], plan.count(won)
    return rng.below(good + bad) < good


@pytest.mark.parametrize("r, x, expected", [(16, 4, 0.159), (64, 13, 0.107), (48, 5, 0.139)])
def test_feige_to_one_loses_most(r: int, x: int, expected: float) -> None:
    """Near the table, which has the best adversary: ours takes the best share at each throw."""
    rng = Stream(derive(4, r, x))
    runs = 1500
    good = sum(last_of(r, x, rng) for _ in range(runs)) / runs
    assert expected - 0.035 < good < expected + 0.045
    assert good < float(baton(True, r - x - 1, x)) - 0.2


@pytest.mark.parametrize("style", STYLES)
def test_a_committee_agrees_on_one_of_it(style: Style) -> None:
    k, bad = 13, (1, 5, 9, 12)

    def script(me: MemberId, seed: int) -> Script[Members]:
        rng = Stream(derive(seed, me))
        return leader_of(Seat(me, ids(k)), style, rng, depth=6, r_end=5)

    leaders = set()
    for seed in range(3):
        for liar in (Pack(), Split(), Honest()):
            sat = sit({each: script(each, seed) for each in ids(k)}, bad, liar)
            assert sat.agreed
            (leader,) = sat.good[0]
            assert leader in ids(k)
            leaders.add(leader)
            assert len(set(sat.rounds.values())) == 1
            most = leader_rounds(Seat(1, ids(k)), style, depth=6, r_end=5)
            assert sat.rounds[2] <= most
            if style in ("full", "small"):
                assert sat.rounds[2] == most
    assert len(leaders) > 1


def test_rounds_of_the_specification() -> None:
    """One public committee of 128: about 24 000 rounds for a path of 128 steps."""
    seat = Seat(1, ids(128))
    assert leader_rounds(seat, "full") == leader_rounds(seat, "small") == 128 * 187 == 23936
    assert leader_rounds(seat, "baton") == 126 * 187
    assert leader_rounds(seat, "baton", r_end=2) == 6 * 187
    assert leader_rounds(seat, "small", r_end=64, depth=10) == 11 * 187

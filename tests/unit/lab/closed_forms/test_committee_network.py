"""Networks by their knobs, what they cost and how often they elect a good leader."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hustings.core.errors import BadInput
from hustings.lab.closed_forms.committee import bins, costs, network
from hustings.lab.closed_forms.committee.network import NetworkNumbers, lean, robust
from hustings.protocols.committee.profiles import profile


def four(n: int) -> NetworkNumbers:
    """Four leaves for each member: the first network against corruption that knows it."""
    return replace(lean(n), d0=4, layers=((16, 16, 2),) if n == 1000 else lean(n).layers)


TWO_LAYERS = NetworkNumbers(10**6, 32, 1, ((32, 32, 2), (16, 16, 4)), monitors=16)


@pytest.mark.parametrize(
    "knobs, k, c, leaves, nodes, seats",
    [
        (lean(10**3), 258, 129, 62, 4, 516),
        (four(10**3), 258, 65, 248, 16, 1032),
        (lean(10**4), 513, 128, 312, 20, 2564),
        (four(10**4), 513, 128, 1248, 78, 10000),
        (lean(10**5), 1024, 128, 3125, 98, 12544),
        (four(10**5), 1024, 128, 12500, 391, 50048),
        (lean(10**6), 2048, 128, 31250, 489, 62592),
        (four(10**6), 2048, 128, 125000, 1954, 250112),
    ],
)
def test_shapes(knobs: NetworkNumbers, k: int, c: int, leaves: int, nodes: int, seats: int) -> None:
    assert round(network.participants(knobs)) == k
    assert round(network.committee(knobs)) == c
    assert (knobs.leaves, network.top_nodes(knobs)) == (leaves, nodes)
    assert round(network.top_seats(knobs)) == seats
    assert network.most_memberships(knobs) == knobs.d0
    assert knobs.memberships[0] <= knobs.groups <= 4


@pytest.mark.parametrize("name, made", [("lean", lean), ("robust", robust)])
def test_the_same_numbers_as_the_profiles(name: str, made: Callable[[int], NetworkNumbers]) -> None:
    for power in range(16, 81):
        n = int(2 ** (power / 4))
        for size in (n, n + 1, 230, 231, 3162, 3163, 31622, 31623):
            ours, theirs = made(size), profile(name, size)
            for key in ("c0", "d0", "layers", "monitors", "fan", "depth", "r_end"):
                assert getattr(ours, key) == getattr(theirs, key), (size, key)
            assert network.polled(size) == theirs.poll


def test_two_layers() -> None:
    assert list(TWO_LAYERS.nodes) == [977, 62]
    assert list(TWO_LAYERS.participants) == [1024, 4096]
    assert list(TWO_LAYERS.committees) == [256, 256]
    assert TWO_LAYERS.seats == 15872


def test_large_electorates_at_three_tenths() -> None:
    for n in (10**4, 10**5):
        knobs = NetworkNumbers(n, 32, 1, ((64, 64, 1),))
        assert network.participants(knobs) == pytest.approx(2048, rel=0.002)
        assert network.committee(knobs) == pytest.approx(1024, rel=0.002)
        assert network.top_members(knobs) == pytest.approx(n / 2)
        assert network.root_bad(knobs, 0.3) == pytest.approx(0.314, abs=0.001)
        assert network.good_leader(knobs, 0.3) == pytest.approx(0.22, abs=0.01)


SIMULATED = [  # knobs, b, bad at the root, P of full, small, baton
    (lean(10**3), 0.05, 0.082, 0.88, 0.70, 0.61),
    (lean(10**3), 0.1, 0.140, 0.75, 0.54, 0.36),
    (lean(10**3), 0.2, 0.241, 0.46, 0.22, 0.05),
    (four(10**3), 0.1, 0.140, 0.75, 0.40, 0.26),
    (lean(10**4), 0.05, 0.116, 0.81, 0.36, 0.23),
    (lean(10**4), 0.1, 0.173, 0.66, 0.19, 0.09),
    (lean(10**4), 0.2, 0.271, 0.36, 0.01, 0.002),
    (four(10**4), 0.05, 0.073, 0.89, 0.52, 0.37),
    (four(10**4), 0.1, 0.134, 0.77, 0.34, 0.17),
    (four(10**4), 0.2, 0.239, 0.46, 0.05, 0.01),
    (lean(10**5), 0.1, 0.198, 0.59, 0.12, 0.04),
    (lean(10**5), 0.2, 0.295, 0.28, 0.0, 0.0),
    (lean(10**6), 0.1, 0.214, 0.54, 0.09, 0.02),
    (lean(10**6), 0.2, 0.306, 0.24, 0.0, 0.0),
    (four(10**6), 0.1, 0.193, 0.60, 0.11, 0.02),
]


@pytest.mark.parametrize("knobs, b, bad, full, small, baton", SIMULATED)
def test_random_corruption_as_simulated(
    knobs: NetworkNumbers, b: float, bad: float, full: float, small: float, baton: float
) -> None:
    """Within the noise of two to two hundred trials."""
    assert network.root_bad(knobs, b) == pytest.approx(bad, abs=0.004)
    assert network.good_leader(knobs, b) == pytest.approx(full, abs=0.012)
    assert network.good_leader(knobs, b, "small") == pytest.approx(small, abs=0.06)
    assert network.good_leader(knobs, b, "baton") == pytest.approx(baton, abs=0.02)


def test_a_third_is_too_much() -> None:
    assert network.root_bad(lean(10**4), 0.3) > 1 / 3
    assert network.good_leader(lean(10**4), 0.3) == 0
    assert network.root_bad(lean(10**4), 0.5) == 1
    assert network.root_bad(lean(10**4), 0.0) == 0
    assert network.good_leader(lean(10**4), 0.0) == 1


@pytest.mark.parametrize("b, chance", [(0.1, 0.838), (0.2, 0.581), (0.3, 0.247)])
def test_one_public_committee(b: float, chance: float) -> None:
    assert network.single(10**6, b) == pytest.approx(chance, abs=0.001)


def test_one_public_committee_costs() -> None:
    assert costs.path_bits(128, 128) == pytest.approx(2.3e5, rel=0.02)
    assert costs.path_rounds(128, 128) == pytest.approx(2.4e4, rel=0.01)


@pytest.mark.parametrize("k, h", [(256, 1), (512, 2), (1024, 3), (2048, 4)])
def test_elections(k: int, h: int) -> None:
    bits = costs.election_bits(k, h)
    assert bits == pytest.approx(28 * k**2 * (1 - 2.0**-h), rel=0.02)
    if h > 1:
        saved = 1 - bits / costs.one_shot_bits(k, 2**h)
        assert 0.115 <= saved <= 0.405  # "12 to 40 per cent cheaper"


@pytest.mark.parametrize(
    "n, feige, path, king",
    [
        (10**3, 2.5e7, 1.4e7, 1.8e9),
        (10**4, 2.8e9, 1.4e9, 2e12),
        (10**5, 2.8e11, 1.4e11, 2e15),
        (10**6, 2.8e13, 1.4e13, 2e18),
    ],
)
def test_everybody_with_everybody(n: int, feige: float, path: float, king: float) -> None:
    assert costs.everybody_by_feige(n) == pytest.approx(feige, rel=0.02)
    assert costs.everybody_by_path(n) == pytest.approx(path, rel=0.01)
    assert costs.everybody_by_phase_king(n) == pytest.approx(king, rel=0.03)


def test_small_groups_by_path() -> None:
    assert costs.everybody_by_path(64) == pytest.approx(6.0e4, rel=0.01)
    assert costs.everybody_by_path(256) == pytest.approx(9.2e5, rel=0.01)


@pytest.mark.parametrize(
    "n, bits, rounds", [(10**3, 1.5e6, 9.5e4), (10**4, 7.9e6, 5.8e5), (10**5, 3.4e7, 2.4e6)]
)
def test_bits_and_rounds_of_a_lean_network(n: int, bits: float, rounds: float) -> None:
    """The words between nodes were counted a little differently there."""
    assert costs.tree_bits(lean(n), 0.1) == pytest.approx(bits, rel=0.13)
    assert costs.tree_rounds(lean(n), 0.1) == pytest.approx(rounds, rel=0.03)


def test_a_million_members() -> None:
    """Close to what is tabled, and less: lists go as marks where that is shorter."""
    assert 1.3e8 < costs.tree_bits(lean(10**6), 0.1) < 1.4e8
    assert costs.tree_rounds(lean(10**6), 0.1) == pytest.approx(1.1e7, rel=0.05)
    assert 7.8e8 < costs.tree_bits(four(10**6), 0.1) < 9.7e8
    assert 6e8 < costs.tree_bits(robust(10**6), 0.1) < 9.7e8


def test_the_crossover_is_where_the_tree_wins_for_good() -> None:
    for rival in (
        costs.everybody_by_path,
        costs.everybody_by_feige,
        costs.everybody_by_phase_king,
    ):
        found = costs.crossover(rival)
        assert found <= 64
        for n in (found, 64, 256, 1000, 10**4, 10**5, 10**6):
            assert costs.tree_bits(lean(n)) < rival(n)

    def halved(n: int) -> float:
        return costs.tree_bits(lean(n)) / 2

    with pytest.raises(BadInput, match="more bits at every n"):
        costs.crossover(halved)


def test_learning_counted_one_by_one() -> None:
    """A network of 4 nodes: every list that is sent, from whom and to whom."""
    knobs = NetworkNumbers(256, 8, 1, ((8, 8, 2),), monitors=3, fan=2)
    nodes, c, names = 4, 16, 8
    told = asked = by_leaves = 0
    for node in range(nodes):
        for other in range(nodes):
            if other != node:
                told += 64 * knobs.fan  # each member under `node` hears `fan` members
                asked += c * knobs.monitors * 8  # each of c asks all members of some leaves
                by_leaves += knobs.monitors * 8 * knobs.fan * 8 + c * knobs.monitors * 8
    marks = 64  # of those who took part: fewer bits than 16 names
    assert costs.learning_bits(knobs) == pytest.approx((told + asked) * marks / 256)
    assert costs.leaf_learning_bits(knobs) == pytest.approx(by_leaves * c * names / 256)


def test_names_where_marks_are_longer() -> None:
    """Of 64 participants at most 4 are left, and 8 bits name one of 256."""
    few = NetworkNumbers(256, 8, 1, ((8, 8, 4),), monitors=3, fan=2)
    told, asked = 4 * 3 * 64 * 2, 4 * 3 * 4 * 3 * 8
    assert costs.learning_bits(few) == pytest.approx((told + asked) * 4 * 8 / 256)


def test_halvings_to() -> None:
    assert [network.halvings_to(k, 128) for k in (100, 128, 129, 512, 513)] == [0, 0, 1, 2, 2]


@settings(max_examples=15, deadline=None)
@given(st.integers(16, 20_000), st.floats(0, 0.3))
def test_more_bad_members_are_worse(n: int, b: float) -> None:
    knobs = lean(n)
    here = network.root_bad(knobs, b)
    assert b - 1e-9 <= here <= 1
    assert network.root_bad(knobs, b + 0.03) >= here - 1e-9
    deeper = replace(knobs, layers=tuple((q, s, h + 1) for q, s, h in knobs.layers))
    if here < 1 / 3:
        assert network.root_bad(deeper, b) >= here - 0.02
    assert costs.tree_bits(knobs) > 0


def test_what_makes_no_network() -> None:
    attempts: tuple[tuple[Callable[[], object], str], ...] = (
        (lambda: lean(15), "at least 16"),
        (lambda: NetworkNumbers(100, 0), "c0 must be between"),
        (lambda: NetworkNumbers(100, 10, 0), "d0 must be at least 1"),
        (lambda: NetworkNumbers(100, 10, 1, ((4, 3, 1),)), "2 <= q <= s"),
        (lambda: NetworkNumbers(100, 10, 1, ()), "at least one layer"),
        (lambda: network.good_leader(lean(1000), 0.1, "dice"), "full, small or baton"),
        (lambda: network.single(10, 0.1, 11), "between 1 and n"),
        (lambda: network.halvings_to(5, 0), "r_end"),
    )
    for wrong, sentence in attempts:
        with pytest.raises(BadInput, match=sentence):
            wrong()
    assert network.participants(lean(10**6)) <= bins.LARGEST

"""The layered network: layers, tree, monitors, and how well it samples."""

from __future__ import annotations

from collections import Counter
from math import exp

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hustings.core.streams import Stream
from hustings.protocols.committee.corruption import greedy
from hustings.protocols.committee.network import (
    CommitteeNetwork,
    lay_out,
    over_representation,
    share_above,
)
from hustings.protocols.committee.profiles import Knobs, profile
from hustings.protocols.committee.settings import CommitteeConfig, knobs_of


def network(n: int, **given: object) -> CommitteeNetwork:
    return lay_out(tuple(range(n)), knobs_of(CommitteeConfig.parse(given), n))


@pytest.mark.parametrize(
    "n, name, nodes, voters, at_the_root",
    [
        (1_000, "lean", [62, 4, 1], 259, 498),
        (1_000, "robust", [496, 62, 1], 130, 1_000),
        (10_000, "lean", [312, 20, 1], 513, 2496),
        (10_000, "robust", [5000, 313, 1], 256, 10_000),
        (100_000, "lean", [3125, 98, 1], 1024, 12500),
    ],
)
def test_sizes_of_the_practical_networks(
    n: int, name: str, nodes: list[int], voters: int, at_the_root: int
) -> None:
    """Nodes as tabled; electorates and root as tabled but for what does not divide."""
    built = lay_out(tuple(range(n)), profile(name, n))
    assert [len(layer) for layer in built.layers] == nodes
    assert max(node.voters for node in built.layers[1]) == voters
    assert built.root.voters == at_the_root


shapes = st.tuples(st.integers(2, 5), st.integers(0, 3), st.integers(1, 2)).map(
    lambda drawn: (drawn[0], drawn[0] + drawn[1], drawn[2])
)


@settings(deadline=None, max_examples=24)
@given(
    n=st.integers(30, 120),
    c0=st.integers(3, 6),
    d0=st.integers(1, 3),
    layers=st.lists(shapes, min_size=0, max_size=2),
    seed=st.integers(0, 5),
)
def test_a_tree_over_all_leaves(
    n: int, c0: int, d0: int, layers: list[tuple[int, int, int]], seed: int
) -> None:
    knobs = Knobs(
        members=n,
        c0=c0,
        d0=d0,
        layers=tuple(layers),
        monitors=4,
        fan=3,
        depth=4,
        r_end=8,
        poll=8,
        tau=None,
        endgame="full",
        bins="halving",
        final="conjunction",
        network_seed=seed,
    )
    built = lay_out(tuple(range(n)), knobs)
    leaves = list(range(len(built.roster.leaves)))
    assert list(built.root.leaves) == leaves
    for lower, upper in zip(built.layers, built.layers[1:], strict=False):
        children = [child for node in upper for child in node.children]
        assert children == list(range(len(lower)))  # everybody has one parent
        for node in upper:
            assert not [child for child in node.children if child not in node.below]
            under = sorted({leaf for each in node.below for leaf in lower[each].leaves})
            if node is not built.root:
                assert list(node.monitors) == under
        assert sorted(leaf for node in upper for leaf in node.leaves) == leaves
    for depth, (q, s, _) in enumerate(layers, 1):
        families = [len(node.children) for node in built.layers[depth]]
        assert max(families) - min(families) <= 1
        for node in built.layers[depth]:
            assert 1 <= len(node.children) <= q
            want = min(len(node.children) + s - q, len(built.layers[depth - 1]))
            assert len(node.below) == want
    for layer, rows in enumerate(built.relatives):
        for index, others in enumerate(rows):
            assert index not in others
            for other in others:
                assert index in built.relatives[layer][other]


def test_who_hears_of_whom() -> None:
    built = network(48, c0=4, d0=2, layers="4:6:1", fan=3)
    assert len(built.layers[1]) == 6
    told: Counter[tuple[int, int]] = Counter()
    for guard, subjects in built.hearings[1].items():
        for subject, sources in subjects.items():
            assert len(sources) >= 3
            for source in sources:
                assert source in built.guards[1][subject]
                assert guard in built.reports[1][source][subject]
                told[source, subject] += 1
            others = [node for node in range(6) if guard in built.guards[1][node]]
            assert [node for node in others if subject in built.relatives[1][node]]
    reported = {
        (source, subject): len(readers)
        for source, subjects in built.reports[1].items()
        for subject, readers in subjects.items()
    }
    assert reported == dict(told)


def test_reports_are_shared_out_evenly() -> None:
    built = network(64)
    for node in (0, 1):
        load = Counter(
            {
                source: len(subjects.get(node, ()))
                for source, subjects in built.reports[1].items()
                if node in subjects
            }
        )
        assert sorted(load) == list(built.guards[1][node])
        assert set(load.values()) == {3}


def test_the_papers_monitors_hear_from_whole_leaves() -> None:
    built = network(40, profile="printed", c0=5, d0=2, layers="4:4:1")
    leaves = built.roster.leaves
    first, second = built.layers[1][:2]
    for place, leaf in enumerate(first.monitors):
        partner = leaves[second.monitors[place]]
        for guard in leaves[leaf]:
            heard = built.hearings[1][guard][1]
            assert not [member for member in partner if member not in heard]


def test_a_public_committee_is_a_network_of_one_leaf() -> None:
    built = network(50, profile="single", size=9)
    assert [len(layer) for layer in built.layers] == [1, 1]
    assert len(built.roster.leaves[0]) == 9
    assert built.root.voters == 9
    other = network(50, profile="single", size=9, network_seed=1)
    assert other.roster.leaves != built.roster.leaves


def test_every_member_lays_out_the_same_network() -> None:
    ids = tuple(range(0, 300, 3))
    knobs = profile("robust", 100)
    one = lay_out(ids, knobs)
    lay_out.cache_clear()
    assert lay_out(ids, knobs) == one
    assert lay_out(ids, knobs) is lay_out(ids, knobs)


# How well it samples


def test_a_random_set_is_hardly_ever_over_represented() -> None:
    """A leaf of c0 drawn at random exceeds by delta with probability exp(-2 c0 delta^2) at most."""
    built = network(4000, d0=4)  # 500 leaves of 32
    for seed in range(5):
        chosen = Stream(seed).sample(range(4000), 800)
        excesses = over_representation(built, chosen)
        assert len(excesses) == 500
        assert abs(sum(excesses)) / 500 < 1e-3  # leaves are about equally large
        for delta in (0.1, 0.15, 0.2):
            assert share_above(excesses, delta) <= exp(-2 * 32 * delta**2) + 0.02
        assert share_above(over_representation(built, chosen, layer=1), 0.1) == 0.0


def test_more_leaves_for_each_member_sample_better() -> None:
    """What a tenth, picked with the network in hand, can do to the first elections."""
    owned = {}
    for leaves in (1, 4, 8):
        built = network(10_000, d0=leaves)
        bad = greedy(built.roster, 1000, Stream(7))
        owned[leaves] = share_above(over_representation(built, bad, layer=1), 1 / 3 - 0.1 - 1e-9)
    assert owned[1] == pytest.approx(0.3, abs=0.01)  # 3b: every electorate costs a third
    assert 0.12 <= owned[4] <= 0.16
    assert 0.05 <= owned[8] <= 0.1


def test_any_set_of_a_small_network_is_bounded_by_counting() -> None:
    """Members sit d0 times: no set has more than |X|/(share n) of its leaves, whatever it is."""
    built = network(60, c0=6, d0=3, layers="5:5:1")
    for seed in range(20):
        bad = greedy(built.roster, 12, Stream(seed))
        excesses = over_representation(built, bad)
        full = share_above(excesses, 0.5 - 0.2 - 1e-9)
        assert full <= 12 * 3 / (0.5 * 6 * 30) + 1e-9


def test_tau_follows_the_average() -> None:
    built = network(20, profile="printed", c0=4, d0=12, layers="2:12:1", tau=5)
    assert built.tau(1) == 5
    corrected = network(20, c0=4, d0=12, layers="2:12:1")
    mean = corrected.slots(1)
    assert mean > 12
    assert corrected.tau(1) == 4 * mean
    assert network(64).tau(1) == 8

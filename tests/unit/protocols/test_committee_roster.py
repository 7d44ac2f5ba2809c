"""Who sits in which leaf: everybody equally often, by a public seed."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from hustings.core.streams import Stream
from hustings.protocols.committee.roster import (
    Roster,
    bipartite,
    distinct,
    seated,
    seated_by_graph,
)


@settings(deadline=None, max_examples=36)
@given(n=st.integers(1, 150), c0=st.integers(1, 40), d0=st.integers(1, 5), seed=st.integers(0, 9))
def test_everybody_sits_in_so_many_leaves_of_about_one_size(
    n: int, c0: int, d0: int, seed: int
) -> None:
    members = [3 * each + 1 for each in range(n)]
    leaves = seated(members, c0, d0, seed)
    assert len(leaves) == d0 * max(1, n // c0)
    assert Counter(member for leaf in leaves for member in leaf) == dict.fromkeys(members, d0)
    sizes = [len(leaf) for leaf in leaves]
    assert max(sizes) - min(sizes) <= 1
    if n >= c0:
        assert c0 <= min(sizes)
        assert max(sizes) < 2 * c0
    for leaf in leaves:
        assert leaf == sorted(dict.fromkeys(leaf))


def test_the_seed_decides() -> None:
    members = range(60)
    assert seated(members, 8, 2, 5) == seated(members, 8, 2, 5)
    assert seated(members, 8, 2, 5) != seated(members, 8, 2, 6)
    first, second = seated(members, 8, 2, 5)[:7], seated(members, 8, 2, 5)[7:]
    assert first != second


def test_chance_mixes_leaves() -> None:
    """Two given members share a leaf about as often as chance has it: 9 of 99 in leaves of 10."""
    shared = 0
    for seed in range(400):
        leaves = seated(range(100), 10, 1, seed)
        shared += sum(0 in leaf and 1 in leaf for leaf in leaves)
    assert 20 <= shared <= 55  # 36.4 expected; beyond three standard deviations at either end


@settings(deadline=None, max_examples=36)
@given(
    left=st.integers(2, 80),
    right=st.integers(1, 30),
    more=st.integers(0, 40),
    seed=st.integers(0, 9),
)
def test_a_graph_has_its_stretches_and_even_degrees(
    left: int, right: int, more: int, seed: int
) -> None:
    right = min(left, right)
    cuts = [place * left // right for place in range(right + 1)]
    stretches = [range(one, two) for one, two in pairwise(cuts)]
    rows = bipartite(left, stretches, more, Stream(seed))
    degrees = Counter(dict.fromkeys(range(left), 0))
    for row, stretch in zip(rows, stretches, strict=True):
        assert len(row) == min(left, len(stretch) + more)
        assert row == sorted(dict.fromkeys(row))
        assert not [label for label in stretch if label not in row]
        degrees.update(row)
    assert max(degrees.values()) - min(degrees.values()) <= 3


def test_the_papers_graph_seats_the_group() -> None:
    members = [5 * each for each in range(40)]
    leaves = seated_by_graph(members, 10, 3, 0)
    assert len(leaves) == 12
    assert {len(leaf) for leaf in leaves} == {10}
    for number, leaf in enumerate(leaves):  # its own stretch of the labels is there
        own = members[number * 40 // 12 : (number + 1) * 40 // 12]
        assert not [member for member in own if member not in leaf]
    counts = Counter(member for leaf in leaves for member in leaf)
    assert sum(counts.values()) == 120
    assert max(counts.values()) - min(counts.values()) <= 3


def test_two_seats_are_one_voice() -> None:
    roster = Roster((1, 2, 3, 4), ((1, 2), (2, 3), (3, 4)), ((0, 1), (1, 2)))
    assert roster.electorates == ((1, 2, 3), (2, 3, 4))
    assert roster.leaves_of == {1: (0,), 2: (0, 1), 3: (1, 2), 4: (2,)}
    assert roster.position[3] == 2
    assert distinct([]) == ()

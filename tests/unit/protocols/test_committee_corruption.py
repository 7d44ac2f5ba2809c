"""Whom adversaries corrupt: as many as they may, and where it helps them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hustings.core.choice import MemberId
from hustings.core.streams import Stream
from hustings.protocols.committee.corruption import CORRUPTIONS, SIGHT, PathTree
from hustings.protocols.committee.network import lay_out
from hustings.protocols.committee.owning import Market, best_number, harm
from hustings.protocols.committee.profiles import profile
from hustings.protocols.committee.roster import Roster
from hustings.protocols.committee.settings import CommitteeConfig, knobs_of


def roster(name: str, n: int) -> Roster:
    return lay_out(tuple(range(n)), profile(name, n)).roster


def owned(rows: Sequence[Sequence[MemberId]], bad: Sequence[MemberId], parts: int) -> float:
    chosen = frozenset(bad)
    held = [sum(member in chosen for member in row) * parts >= len(row) for row in rows]
    return sum(held) / len(held)


def corrupt(kind: str, group: Roster, budget: int, seed: int = 5) -> tuple[MemberId, ...]:
    return CORRUPTIONS[kind][0](group, budget, Stream(seed))


@settings(deadline=None, max_examples=24)
@given(
    kind=st.sampled_from([name for name in CORRUPTIONS if name != "none"]),
    name=st.sampled_from(["lean", "robust", "single", "printed"]),
    n=st.integers(16, 90),
    share=st.floats(0, 0.5),
    seed=st.integers(0, 3),
)
def test_the_budget_is_spent_and_not_more(
    kind: str, name: str, n: int, share: float, seed: int
) -> None:
    group = roster(name, n)
    budget = int(share * n)
    bad = corrupt(kind, group, budget, seed)
    assert len(bad) == budget
    assert list(bad) == sorted(frozenset(bad))
    assert not [member for member in bad if member not in group.position]
    assert corrupt(kind, group, budget, seed) == bad


def test_nobody() -> None:
    assert corrupt("none", roster("lean", 64), 20) == ()


def test_more_than_there_are() -> None:
    group = roster("lean", 20)
    for kind in CORRUPTIONS:
        assert corrupt(kind, group, 99) in ((), group.members)


@pytest.mark.parametrize(
    "name, b, share",
    [
        ("lean", 0.05, 0.15),
        ("lean", 0.1, 0.30),
        ("lean", 0.2, 0.60),
        ("four", 0.05, 0.047),
        ("four", 0.1, 0.146),
        ("four", 0.2, 0.41),
    ],
)
def test_greedy_owns_about_what_was_found(name: str, b: float, share: float) -> None:
    """With one electorate for each member 3b of them, exactly; with four, as measured before."""
    settings = {"d0": 4} if name == "four" else {}
    knobs = knobs_of(CommitteeConfig.parse(settings), 10_000)
    group = lay_out(tuple(range(10_000)), knobs).roster
    found = owned(group.electorates, corrupt("greedy", group, int(b * 10_000)), 3)
    if name == "lean":
        assert found == pytest.approx(share, abs=0.001)
    else:
        assert 0.75 * share <= found <= 1.25 * share


def test_each_corruption_does_what_it_is_for() -> None:
    group = roster("lean", 10_000)
    bad = {kind: corrupt(kind, group, 1000) for kind in CORRUPTIONS}
    nodes = {kind: owned(group.electorates, bad[kind], 3) for kind in CORRUPTIONS}
    leaves = {kind: owned(group.leaves, bad[kind], 2) for kind in CORRUPTIONS}
    assert nodes["random"] == nodes["none"] == 0
    assert max(nodes, key=lambda kind: nodes[kind]) == "greedy"
    assert 0 < nodes["mixed"] <= nodes["greedy"]
    assert nodes["cluster"] == pytest.approx(0.1, abs=0.001)
    assert max(leaves, key=lambda kind: leaves[kind]) == "leaf"
    assert leaves["leaf"] == pytest.approx(0.2, abs=0.005)
    whole = [
        row for row in group.electorates if not [each for each in row if each not in bad["cluster"]]
    ]
    assert len(whole) >= 1


def test_mixed_does_no_less_harm_than_greedy() -> None:
    """The estimate would own two electorates of ten thousand members; three do more harm."""
    group = roster("lean", 10_000)
    market = Market.of(group.electorates, 3, group, 500, Stream(1))
    reach, taken = market.best(market.targets(Stream(2)))
    number = best_number(market, reach, group.throws[0], Stream(3))
    fewer = market.spread(market.price(reach[:number]) or [])
    assert (number, len(reach)) == (2, 3)
    did = [harm(market, bad, group, Stream(4)) for bad in (fewer, market.spread(taken))]
    assert did[0] < did[1]
    assert owned(group.electorates, corrupt("mixed", group, 500), 3) == 0.15


def test_the_second_layer_falls_with_fewer_bad_members() -> None:
    """A ninth of the members below a node owns it: greedy spends three times as many on each."""
    knobs = knobs_of(CommitteeConfig.parse({"c0": 4, "layers": "4:4:1,9:9:1"}), 2_000)
    group = lay_out(tuple(range(2_000)), knobs).roster
    (upper,) = group.above
    fallen = {}
    for kind in ("greedy", "second"):
        chosen = frozenset(corrupt(kind, group, 100))
        down = [3 * sum(each in chosen for each in row) >= len(row) for row in group.electorates]
        fallen[kind] = sum(3 * sum(down[node] for node in below) >= len(below) for below in upper)
    assert len(upper) == 14
    assert fallen["second"] >= 5
    assert fallen["second"] > fallen["greedy"]


def test_with_one_layer_the_second_is_the_first() -> None:
    group = roster("lean", 500)
    assert corrupt("second", group, 50, 4) == corrupt("greedy", group, 50, 4)


@pytest.mark.parametrize("depth, least, most", [(6, 0.0, 0.35), (60, 0.0, 1.0)])
def test_who_sits_well_in_the_tree(depth: int, least: float, most: float) -> None:
    """Three of twelve in a tree of 127 places: some set of them does much better than any set."""
    knobs = knobs_of(
        CommitteeConfig.parse({"profile": "single", "size": 12, "endgame": "full", "path": depth}),
        12,
    )
    group = lay_out(tuple(range(12)), knobs).roster
    assert group.path == depth
    bad = corrupt("tree", group, 3)
    tree = PathTree(group.members, min(depth, SIGHT))
    found = tree.value(frozenset(bad).__contains__)
    every = sorted(
        tree.value(frozenset(each).__contains__) for each in combinations(group.members, 3)
    )
    assert found <= every[len(every) // 20]
    assert least <= found <= most


def test_where_the_tree_is_not_public_greedy_is_all_there_is() -> None:
    group = roster("robust", 200)
    assert group.path == 0
    assert corrupt("tree", group, 20, 3) == corrupt("greedy", group, 20, 3)
    few = lay_out(
        tuple(range(30)),
        knobs_of(CommitteeConfig.parse({"profile": "single", "size": 8, "endgame": "full"}), 30),
    ).roster
    assert corrupt("tree", few, 3, 3) == corrupt("greedy", few, 3, 3)


def test_the_first_are_the_first_kings() -> None:
    assert corrupt("first", roster("robust", 64), 5, 1) == (0, 1, 2, 3, 4)


def test_other_streams_corrupt_others() -> None:
    group = roster("robust", 64)
    for kind in CORRUPTIONS:
        if kind not in ("none", "first"):
            assert corrupt(kind, group, 12, 1) != corrupt(kind, group, 12, 2)

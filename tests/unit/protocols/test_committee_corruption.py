"""Whom adversaries corrupt: as many as they may, and where it helps them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hustings.core.choice import MemberId
from hustings.core.streams import Stream
from hustings.protocols.committee.corruption import CORRUPTIONS
from hustings.protocols.committee.network import lay_out
from hustings.protocols.committee.profiles import profile
from hustings.protocols.committee.roster import Roster


def roster(name: str, n: int) -> Roster:
    return lay_out(tuple(range(n)), profile(name, n)).roster


def owned(rows: Sequence[Sequence[MemberId]], bad: Sequence[MemberId], parts: int) -> float:
    chosen = frozenset(bad)
    held = [sum(member in chosen for member in row) * parts >= len(row) for row in rows]
    return sum(held) / len(held)


def corrupt(kind: str, group: Roster, budget: int, seed: int = 5) -> tuple[MemberId, ...]:
    return CORRUPTIONS[kind][0](group, budget, Stream(seed))


@settings(deadline=None, max_examples=40)
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
        ("robust", 0.05, 0.047),
        ("robust", 0.1, 0.146),
        ("robust", 0.2, 0.41),
    ],
)
def test_greedy_owns_about_what_was_found(name: str, b: float, share: float) -> None:
    """With one electorate for each member 3b of them, exactly; with four, as measured before."""
    group = roster(name, 10_000)
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
    assert nodes["mixed"] == pytest.approx(nodes["greedy"] / 2, abs=0.051)
    assert nodes["cluster"] == pytest.approx(0.1, abs=0.001)
    assert max(leaves, key=lambda kind: leaves[kind]) == "leaf"
    assert leaves["leaf"] == pytest.approx(0.2, abs=0.005)
    whole = [
        row for row in group.electorates if not [each for each in row if each not in bad["cluster"]]
    ]
    assert len(whole) >= 1


def test_the_first_are_the_first_kings() -> None:
    assert corrupt("first", roster("robust", 64), 5, 1) == (0, 1, 2, 3, 4)


def test_other_streams_corrupt_others() -> None:
    group = roster("robust", 64)
    for kind in CORRUPTIONS:
        if kind not in ("none", "first"):
            assert corrupt(kind, group, 12, 1) != corrupt(kind, group, 12, 2)

"""Profiles: the tabled numbers at the tabled sizes, sensible ones in between, sentences below."""

from __future__ import annotations

import pytest

from hustings.core.errors import BadInput, UnknownName
from hustings.protocols.committee.network import lay_out
from hustings.protocols.committee.profiles import (
    BY_MESSAGE,
    LARGEST_COMMITTEE,
    PROFILES,
    levels,
    polls,
    profile,
)


@pytest.mark.parametrize(
    "n, name, c0, d0, shape",
    [
        (1_000, "lean", 16, 1, (16, 16, 1)),
        (1_000, "robust", 16, 8, (8, 8, 1)),
        (10_000, "lean", 32, 1, (16, 16, 2)),
        (10_000, "robust", 16, 8, (16, 16, 1)),
        (100_000, "lean", 32, 1, (32, 32, 3)),
        (100_000, "robust", 16, 4, (16, 16, 1)),
        (1_000_000, "lean", 32, 1, (64, 64, 4)),
        (1_000_000, "robust", 16, 5, (64, 64, 3)),
        (10_000, "high-b", 32, 1, (64, 64, 1)),
        (100_000, "high-b", 32, 1, (64, 64, 1)),
    ],
)
def test_the_tabled_knobs(n: int, name: str, c0: int, d0: int, shape: tuple[int, int, int]) -> None:
    knobs = profile(name, n)
    assert (knobs.c0, knobs.d0, knobs.layers) == (c0, d0, (shape,))
    fan = {"lean": 3 if n > 1_000 else 9, "robust": 9, "high-b": 9}[name]
    assert (knobs.fan, knobs.depth, knobs.r_end) == (fan, 128, 128)
    if name == "robust":
        assert knobs.monitors == (4 if n < 3163 else 3)
    else:
        assert knobs.monitors == 8
    assert (knobs.endgame, knobs.bins, knobs.final, knobs.tau) == (
        "full",
        "halving",
        "conjunction",
        None,
    )


def test_polls_grow_with_the_powers_of_ten() -> None:
    assert [polls(10**power) for power in (3, 4, 5, 6)] == [64, 96, 128, 160]
    assert polls(20) == 19


@pytest.mark.parametrize("name", PROFILES)
def test_every_size_has_a_network(name: str) -> None:
    for n in [*range(16, 320), 499, 500, 999, 3162, 3163]:
        knobs = profile(name, n)
        assert knobs.members == n
        assert knobs.c0 <= n
        nodes = knobs.d0 * (n // knobs.c0)
        for q, s, _ in knobs.layers:
            assert s <= nodes
            nodes = -(-nodes // q)
        assert nodes >= 1


@pytest.mark.parametrize("name", ["lean", "single"])
def test_small_groups_are_made_for_messages(name: str) -> None:
    for n in range(16, BY_MESSAGE + 1):
        built = lay_out(tuple(range(n)), profile(name, n))
        assert all(node.voters <= LARGEST_COMMITTEE for layer in built.layers[1:] for node in layer)


def test_small_lean_groups_lose_members_by_one_halving_only() -> None:
    """Each halving lets the bad in; whoever is elected walks the path."""
    for n in range(16, 500):
        knobs = profile("lean", n)
        assert [h for _, _, h in knobs.layers] == [1]
        root = lay_out(tuple(range(n)), knobs).root.voters
        assert knobs.endgame == "full" or root <= knobs.r_end


def test_lean_groups_have_several_electorates() -> None:
    for n in [16, 31, 64, 103, 104, 128, 129, 500, 3163, 31623]:
        built = lay_out(tuple(range(n)), profile("lean", n))
        assert len(built.layers[1]) >= 2


def test_a_public_committee() -> None:
    assert [profile("single", n).single for n in (2, 64, 200, 1000, 10**6)] == [
        2,
        64,
        128,
        128,
        128,
    ]


def test_the_paper_has_no_layers_in_any_group_one_could_meet() -> None:
    for n in (4, 10, 1000, 10**6, 10**12, 3 * 10**15):
        assert levels(n) == 0
        assert profile("printed", n).layers == ()
        assert profile("printed", n).c0 == n
    assert levels(4 * 10**15) == 1
    assert levels(5 * 10**17) == 1
    assert levels(6 * 10**17) == 2
    with pytest.raises(BadInput, match="no such network can be laid out"):
        profile("printed", 4 * 10**15)
    knobs = profile("printed", 1000)
    assert (knobs.tau, knobs.endgame, knobs.bins, knobs.final) == (8, "feige", "oneshot", "printed")
    assert knobs.poll == 48  # ln^2 n
    assert knobs.padding


@pytest.mark.parametrize(
    "name, n, sentence",
    [
        ("lean", 15, "profile lean is for 16 members or more, not 15, or take profile=single"),
        ("robust", 2, "profile robust is for 16 members or more, not 2, or take profile=single"),
        ("single", 1, "profile single is for 2 members or more, not 1"),
        ("printed", 3, "profile printed is for 4 members or more, not 3, or take profile=single"),
    ],
)
def test_too_small_a_group_is_told_the_smallest(name: str, n: int, sentence: str) -> None:
    with pytest.raises(BadInput) as refused:
        profile(name, n)
    assert str(refused.value) == sentence


def test_an_unknown_profile_suggests() -> None:
    with pytest.raises(UnknownName, match="unknown profile 'robst': did you mean 'robust'"):
        profile("robst", 100)
    with pytest.raises(BadInput, match="ln n is not above 1"):
        levels(2)

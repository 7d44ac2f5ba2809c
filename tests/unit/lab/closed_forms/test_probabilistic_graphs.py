"""Connectivity and agreement against every graph of a few members, listed one by one."""

from __future__ import annotations

from itertools import combinations, product
from math import prod

import pytest

from hustings.core.errors import BadInput
from hustings.lab.closed_forms.probabilistic.graphs import (
    LARGEST,
    connected,
    disagreeing,
    printed_connected,
    unconnected,
)


def components(m: int, edges: list[tuple[int, int]]) -> list[set[int]]:
    parts = [{member} for member in range(m)]
    for a, b in edges:
        one = next(part for part in parts if a in part)
        other = next(part for part in parts if b in part)
        if one is not other:
            one |= other
            parts.remove(other)
    return parts


def every_graph(m: int, edge: float) -> list[tuple[float, list[set[int]]]]:
    pairs = list(combinations(range(m), 2))
    found = []
    for present in product((True, False), repeat=len(pairs)):
        chance = prod(edge if there else 1 - edge for there in present)
        edges = [pair for pair, there in zip(pairs, present, strict=True) if there]
        found.append((chance, components(m, edges)))
    return found


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("edge", [0.0, 0.05, 0.4, 0.64, 0.99, 1.0])
def test_connectivity_is_that_of_all_graphs(m: int, edge: float) -> None:
    whole = sum(chance for chance, parts in every_graph(m, edge) if len(parts) == 1)
    assert connected(m, edge) == pytest.approx(whole, rel=1e-12)
    assert unconnected(m, edge) == pytest.approx(1 - whole, abs=1e-14)


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("edge, view_prob", [(0.75, 0.5), (0.2, 0.3), (0.0, 0.9), (0.5, 1.0)])
def test_components_agree_as_in_all_graphs(m: int, edge: float, view_prob: float) -> None:
    """First choices up to a candidate so far down that it hardly matters."""
    deep = 200
    agreed = 0.0
    for chance, parts in every_graph(m, edge):
        hidden = [(1 - view_prob) ** len(part) for part in parts]
        for place in range(deep):  # all components choose the candidate at this place
            agreed += chance * prod(each**place * (1 - each) for each in hidden)
    assert disagreeing(m, edge, view_prob) == pytest.approx(1 - agreed, abs=1e-12)


def test_the_printed_value_lies_above_the_exact_one() -> None:
    assert printed_connected(5, 0.4) == pytest.approx(0.523, abs=5e-4)
    assert connected(5, 0.4) == pytest.approx(0.490, abs=5e-4)
    assert all(printed_connected(m, 0.4) > connected(m, 0.4) for m in range(4, 60))
    assert [round(printed_connected(m, 0.4), 2) for m in (1, 2, 3)] == [0.37, 0.30, 0.34]


@pytest.mark.parametrize("m, edge", [(60, 0.001), (300, 0.05), (512, 0.3)])
def test_both_sides_of_one_are_exact(m: int, edge: float) -> None:
    assert connected(m, edge) + unconnected(m, edge) == pytest.approx(1.0, abs=1e-11)


def test_small_probabilities_keep_their_digits() -> None:
    """Few edges: trees only, of which there are m^(m-2)."""
    assert connected(10, 1e-9) == pytest.approx(10**8 * 1e-81, rel=1e-6)
    """Many edges: it falls apart where a single member is cut off."""
    assert unconnected(100, 0.5) == pytest.approx(100 * 0.5**99, rel=1e-9)


def test_large_graphs_are_bounded_from_above() -> None:
    exact, bound = unconnected(LARGEST, 0.02), unconnected(LARGEST + 1, 0.02)
    assert exact * 0.98 < bound < 1.2 * exact
    assert unconnected(1000, 0.001) == 1.0
    assert disagreeing(1000, 0.02, 0.5) == unconnected(1000, 0.02)


@pytest.mark.parametrize(
    "call",
    [
        lambda: connected(0, 0.5),
        lambda: connected(LARGEST + 1, 0.5),
        lambda: unconnected(3, 1.5),
        lambda: printed_connected(0, 0.5),
    ],
)
def test_what_is_no_graph_is_refused(call: object) -> None:
    assert callable(call)
    with pytest.raises(BadInput, match="must"):
        call()

"""Strategies of the probabilistic election: the K of each round."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.errors import BadInput
from hustings.protocols.probabilistic.strategy import MAX_ROUNDS, strategy


@pytest.mark.parametrize(
    "text, K, rounds, cap, sizes",
    [
        ("paper", None, None, None, (7, 14, 28, 56, inf)),
        ("paper", 3, 3, None, (3, 6, inf)),
        ("paper", 3, 1, None, (3,)),
        ("paper", 7, 5, 20, (7, 14, 20, 20, 20)),
        ("paper", 7, 5, 7, (7, 7, 7, 7, 7)),
        ("doubling", None, None, None, (7, 14, 28, 56, 112)),
        ("doubling", 0.5, 3, None, (0.5, 1, 2)),
        ("doubling", 5, 3, 12.5, (5, 10, 12.5)),
        ("7,14,28,N", None, None, None, (7, 14, 28, inf)),
        (" 1.5 , 2 ", None, 2, None, (1.5, 2)),
        ("N", None, None, None, (inf,)),
        ("4,N", None, None, 40, (4, 40)),
        ("N", None, None, 100, (100,)),
    ],
)
def test_names_and_lists(
    text: str, K: float | None, rounds: int | None, cap: float | None, sizes: tuple[float, ...]
) -> None:
    made = strategy(text, K, rounds, cap)
    assert made.sizes == sizes
    assert made.rounds == len(sizes)


def test_the_last_k_is_the_group() -> None:
    made = strategy("paper", None, None, None)
    assert [made.K(number, 2000.0) for number in range(1, 6)] == [7, 14, 28, 56, 2000]
    assert made.K(5, 12.5) == 12.5


UNDERSTOOD = "is not understood: use paper, doubling, or the K of each round as 7,14,28,N"


@pytest.mark.parametrize(
    "text, K, rounds, cap, sentence",
    [
        ("7,7", None, None, None, "strategy '7,7' does not grow: each K must exceed the one"),
        ("7,14,13", None, None, None, "does not grow"),
        ("N,7", None, None, None, "does not grow"),
        ("N,N", None, None, None, "does not grow"),
        ("tripling", None, None, None, f"strategy 'tripling' {UNDERSTOOD}"),
        ("", None, None, None, UNDERSTOOD),
        ("7,,14", None, None, None, UNDERSTOOD),
        ("0,7", None, None, None, UNDERSTOOD),
        ("-1", None, None, None, UNDERSTOOD),
        ("7,inf", None, None, None, UNDERSTOOD),
        ("1e999", None, None, None, UNDERSTOOD),
        ("nan", None, None, None, UNDERSTOOD),
        ("7,n", None, None, None, UNDERSTOOD),
        ("7,14", 7, None, None, "K goes with a named strategy: '7,14' says itself what K is"),
        ("7,14", None, 3, None, "max_rounds is 3, but strategy '7,14' has 2"),
        ("paper", 7, None, 6, "K_max = 6 must be at least the first K, 7"),
        (",".join(map(str, range(1, 66))), None, None, None, "at most 64 rounds, not 65"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(
    text: str, K: float | None, rounds: int | None, cap: float | None, sentence: str
) -> None:
    with pytest.raises(BadInput) as refused:
        strategy(text, K, rounds, cap)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


@given(
    st.sampled_from(["paper", "doubling"]),
    st.floats(1e-6, 1e12),
    st.integers(1, MAX_ROUNDS),
    st.none() | st.floats(0.0, 1e13),
)
def test_k_never_falls_and_never_exceeds_its_cap(
    text: str, K: float, rounds: int, cap: float | None
) -> None:
    try:
        made = strategy(text, K, rounds, None if cap is None else K + cap)
    except BadInput:
        pytest.fail("all of these are in order")
    assert made.rounds == rounds
    assert made.sizes[0] == K
    assert list(made.sizes) == sorted(made.sizes)
    if cap is None:
        assert len(set(made.sizes)) == rounds
    else:
        assert made.sizes[-1] <= K + cap

"""What an agreement costs: numbers that were counted, and a twin that counts every message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.errors import BadInput
from hustings.lab.closed_forms.committee import agreement


def counted(members: list[int], v: int, proposal: int, sent: dict[int, int]) -> int:
    """Play who sends what of a recursive phase king; returns the rounds."""
    k = len(members)
    if k <= 16:
        for king in members[: (k - 1) // 3 + 1]:
            for member in members:
                sent[member] += (k - 1) * (v + proposal)
            sent[king] += (k - 1) * v
        return 3 * ((k - 1) // 3 + 1)
    rounds = 0
    middle = (k + 1) // 2
    for half in (members[:middle], members[middle:]):
        for member in members:
            sent[member] += (k - 1) * (v + proposal)
        rounds += 2 + counted(half, v, proposal, sent) + 1
        for member in half:
            sent[member] += (k - 1) * v
    return rounds


@pytest.mark.parametrize("k", [1, 2, 3, 4, 16, 17, 31, 33, 64, 65, 100, 258])
@pytest.mark.parametrize("values", [2, 3, 4, 16])
def test_bits_and_rounds_are_those_of_a_run(k: int, values: int) -> None:
    v, proposal = agreement.widths(values)
    members = list(range(k))
    sent = dict.fromkeys(members, 0)
    rounds = counted(members, v, proposal, sent)
    assert agreement.agreement_bits(k, values) == pytest.approx(sum(sent.values()) / k)
    assert agreement.agreement_rounds(k) == rounds


@pytest.mark.parametrize(
    "k, bits, rounds", [(128, 1823, 186), (1024, 14346, 1530), (16, 276, 18), (64, 934, 90)]
)
def test_recursive_phase_king(k: int, bits: int, rounds: int) -> None:
    assert round(agreement.agreement_bits(k)) == bits
    assert agreement.agreement_rounds(k) == rounds


def test_phase_king() -> None:
    assert agreement.phase_king_bits(1024) == pytest.approx(1.05e6, rel=0.005)
    assert agreement.phase_king_rounds(1024) == 1026
    assert agreement.phase_king_bits(512) == pytest.approx(512**2, rel=0.01)


@pytest.mark.parametrize("k", [4096, 65536])
def test_orders_of_growth(k: int) -> None:
    assert agreement.agreement_bits(k) == pytest.approx(14 * k, rel=0.01)
    assert agreement.agreement_rounds(k) == pytest.approx(1.5 * k, rel=0.01)


def test_widths_of_values() -> None:
    assert [agreement.widths(m) for m in (2, 3, 4, 7, 8)] == [
        (1, 2),
        (2, 2),
        (2, 3),
        (3, 3),
        (3, 4),
    ]
    with pytest.raises(BadInput, match="at least 2"):
        agreement.widths(1)
    with pytest.raises(BadInput, match="at least 1"):
        agreement.agreement_bits(0)


@given(st.integers(1, 3000), st.integers(2, 64))
def test_more_participants_or_values_cost_more(k: int, values: int) -> None:
    here = agreement.agreement_bits(k, values)
    assert agreement.agreement_bits(2 * k, values) > here
    assert agreement.agreement_bits(k, values + 1) >= here
    assert agreement.broadcast_bits(k, values) >= here
    assert agreement.agreement_rounds(k + 3) >= agreement.agreement_rounds(k)


def test_sixteen_is_kept_for_the_rounds() -> None:
    """Phase king among 16 takes more bits than two halves of 8 would, and fewer rounds."""
    assert agreement.agreement_bits(17) < agreement.agreement_bits(16)
    assert agreement.agreement_rounds(17) > agreement.agreement_rounds(16)

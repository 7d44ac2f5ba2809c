"""Bits as committees send them: exact lengths, hostile bytes, and counts of many votes at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.errors import ProtocolBug
from hustings.protocols.committee.bits import (
    MAX_PAYLOAD,
    BitCounts,
    Bits,
    Reader,
    SlateMsg,
    bits_of,
    bits_of_planes,
    pack,
    planes_of,
    planes_of_bits,
    slate,
    value_bits,
    values_of,
    width_of,
    wire_bits,
    within,
)

FIELDS = st.integers(0, 20).flatmap(
    lambda width: st.tuples(st.integers(0, (1 << width) - 1), st.just(width))
)


@given(st.lists(FIELDS, max_size=12))
def test_what_is_packed_is_read(fields: list[tuple[int, int]]) -> None:
    bits = pack(fields)
    assert bits.length == sum(width for _, width in fields)
    message = slate(3, bits)
    assert value_bits(message) == bits.length
    assert len(message.payload) == bits.length // 8 + 1
    back = bits_of(message.payload)
    assert back == bits
    reader = Reader(bits)
    assert [reader.take(width) for _, width in fields] == [number for number, _ in fields]
    assert not reader.short
    assert reader.left == 0


@given(st.binary(max_size=40), st.lists(st.integers(0, 50), max_size=8))
def test_no_bytes_break_a_reader(payload: bytes, widths: list[int]) -> None:
    bits = bits_of(payload)
    if bits is None:
        assert not any(payload)
        return
    assert 0 <= bits.value < 1 << bits.length
    assert value_bits(SlateMsg(0, payload)) == bits.length
    reader = Reader(bits)
    for width in widths:
        assert 0 <= reader.take(width) < 1 << width
    assert reader.short == (sum(widths) > bits.length)


def test_too_long_is_missing_and_is_never_sent() -> None:
    assert bits_of(b"\x01" + bytes(MAX_PAYLOAD - 1)) is not None
    assert bits_of(b"\x01" + bytes(MAX_PAYLOAD)) is None
    with pytest.raises(ProtocolBug, match="cannot be sent as"):
        slate(0, Bits(0, 8 * MAX_PAYLOAD))
    with pytest.raises(ProtocolBug, match="8 cannot be sent as 3 bits"):
        slate(0, Bits(8, 3))
    with pytest.raises(ValueError, match="4 does not fit into 2 bits"):
        pack([(4, 2)])


def test_the_wire_counts_whole_bytes() -> None:
    sizes = [wire_bits(slate(0, Bits(0, length))) for length in (0, 7, 8, 15, 16)]
    assert [size - sizes[0] for size in sizes] == [0, 0, 8, 8, 16]
    assert wire_bits(slate(1 << 40, Bits(0, 0))) > sizes[0]


@given(st.integers(1, 5).flatmap(lambda w: st.tuples(st.just(w), st.lists(st.integers(0, 31)))))
def test_planes_hold_values(case: tuple[int, list[int]]) -> None:
    width, raw = case
    values = [value % (1 << width) for value in raw]
    planes = planes_of(values, width)
    assert values_of(planes, len(values)) == values
    bits = bits_of_planes(planes, len(values))
    assert bits.length == width * len(values)
    assert planes_of_bits(bits, width, len(values)) == planes
    assert planes_of_bits(Bits(0, bits.length + 1), width, len(values)) is None
    for options in range(1, (1 << width) + 1):
        mask = within(planes, options, len(values))
        assert values_of((mask,), len(values)) == [int(value < options) for value in values]


@given(st.lists(st.lists(st.booleans(), min_size=5, max_size=5), max_size=40))
def test_a_tally_counts_as_a_list_of_counters_does(votes: list[list[bool]]) -> None:
    tally, other = BitCounts(), BitCounts()
    counts, others = [0] * 5, [0] * 5
    for number, vote in enumerate(votes):
        tally.add(planes_of([int(each) for each in vote], 1)[0])
        counts = [count + each for count, each in zip(counts, vote, strict=True)]
        if number % 3:
            other.add(planes_of([int(each) for each in reversed(vote)], 1)[0])
            pairs = zip(others, reversed(vote), strict=True)
            others = [count + each for count, each in pairs]
    assert [tally.of(place) for place in range(5)] == counts
    for number in range(1, len(votes) + 3):
        reached = values_of((tally.at_least(number),), 5)
        assert reached == [int(count >= number) for count in counts]
    halves = values_of((tally.exceeds_half_of(other),), 5)
    assert halves == [int(2 * one > two) for one, two in zip(counts, others, strict=True)]


@given(st.lists(st.tuples(st.integers(0, 31), st.integers(0, 20)), max_size=12))
def test_a_vector_that_is_added_many_times_counts_as_many_vectors(
    ballots: list[tuple[int, int]],
) -> None:
    together, singly = BitCounts(), BitCounts()
    for vector, times in ballots:
        together.add(vector, times)
        for _ in range(times):
            singly.add(vector)
    assert [together.of(place) for place in range(5)] == [singly.of(place) for place in range(5)]
    for number in range(1, sum(times for _, times in ballots) + 2):
        assert together.at_least(number) == singly.at_least(number)
    assert together.exceeds_half_of(singly) == singly.exceeds_half_of(singly)


def test_widths_are_logarithms() -> None:
    for options in range(1, 300):
        width = width_of(options)
        assert 1 << width >= options
        assert width == 0 or 1 << (width - 1) < options

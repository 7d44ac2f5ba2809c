"""Canonical encodings: equal if and only if the values are."""

from __future__ import annotations

from enum import Enum

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.errors import ProtocolBug
from hustings.core.streams import Stream
from hustings.explore.encoding import encode

PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


def as_told(value: object) -> str:
    """Tells 1 from 1.0 and True, and one order of a dict from another."""
    return repr(value)


@given(VALUES, VALUES)
def test_equal_if_and_only_if_the_values_are(one: object, other: object) -> None:
    assert (encode(one) == encode(other)) == (as_told(one) == as_told(other))


class Colour(Enum):
    RED = 1
    BLUE = 2


class Point(msgspec.Struct, frozen=True):
    x: int
    y: int


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a: object) -> None:
        self.a = a


def test_enums_structs_and_objects_are_told_by_their_contents() -> None:
    assert encode(Colour.RED) != encode(Colour.BLUE)
    assert encode(Point(1, 2)) == encode(Point(1, 2)) != encode(Point(2, 1))
    assert encode(Stream(1)) == encode(Stream(1)) != encode(Stream(2))
    assert encode({3, 1, 2}) == encode({2, 3, 1}) != encode({1, 2})
    assert encode(Slotted(1)) == encode(Slotted(1)) != encode(Slotted(2))


def test_sharing_and_cycles() -> None:
    shared: list[object] = []
    assert encode([shared, shared]) != encode([[], []])
    shared.append(shared)
    assert encode(shared) == encode(shared)


def test_what_cannot_be_told_by_its_contents_is_refused() -> None:
    with pytest.raises(ProtocolBug, match="cannot be told"):
        encode(object())
    with pytest.raises(ProtocolBug, match="made on the way"):
        encode(lambda: None)


def test_functions_of_modules_are_known_by_name() -> None:
    assert encode(as_told) == encode(as_told) != encode(encode)
    assert encode(Stream(1).bits) != encode(Stream(2).bits)

"""Bits: what members of a committee send each other, measured to the bit.

The paper counts bits, so a message carries exactly the bits that a formula counts, and one more: on
the wire a leading 1 marks where they begin, so the length follows from the bytes. To read what a
bad member wrote never raises: a text that is too short reads as zeros, and an invalid text as
missing.

A vector of values, one for each of many instances of agreement, goes as planes: first the lowest
bit of all values, then the next, and so on. Bit i of a plane belongs to instance i. So one integer
operation serves all instances at once, and `BitCounts` counts the votes of all of them together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from hustings.core.errors import ProtocolBug
from hustings.core.messages import Message, Role

MAX_PAYLOAD = 1 << 16  # bytes: more than any committee has to send in one round
MAX_CHANNEL = 1 << 62

_encode = msgspec.msgpack.Encoder().encode


class Bits(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A number of bits; the first one written is the lowest of `value`."""

    value: int
    length: int


NOTHING = Bits(0, 0)


class SlateMsg(Message, frozen=True, tag="SLATE"):
    """What a member sends in this round, on one channel."""

    role: ClassVar[Role] = Role.ELECTION
    channel: Annotated[int, Meta(ge=0, le=MAX_CHANNEL)]
    payload: Annotated[bytes, Meta(max_length=MAX_PAYLOAD)]


def slate(channel: int, bits: Bits) -> SlateMsg:
    """Return the message that carries these bits.

    >>> slate(7, Bits(0b101, 3))
    SlateMsg(channel=7, payload=b'\\r')
    """
    if bits.value >> bits.length or bits.length >= 8 * MAX_PAYLOAD:
        raise ProtocolBug(f"{bits.value} cannot be sent as {bits.length} bits")
    marked = bits.value | 1 << bits.length
    return SlateMsg(channel, marked.to_bytes(bits.length // 8 + 1, "big"))


def bits_of(payload: bytes) -> Bits | None:
    """Return the bits of a payload; None without a mark, or if it is too long to be one of ours.

    >>> bits_of(slate(0, Bits(5, 3)).payload)
    Bits(value=5, length=3)
    >>> bits_of(b"") is bits_of(bytes(3)) is None
    True
    """
    if not payload or len(payload) > MAX_PAYLOAD:
        return None
    marked = int.from_bytes(payload, "big")
    length = marked.bit_length() - 1
    return None if length < 0 else Bits(marked ^ 1 << length, length)


def value_bits(message: SlateMsg) -> int:
    """Return the bits that a formula counts: those without the mark; 0 if there are none.

    >>> value_bits(slate(0, Bits(0, 12)))
    12
    """
    return max(0, int.from_bytes(message.payload, "big").bit_length() - 1)


def wire_bits(message: SlateMsg) -> int:
    """Return the number of bits of the encoded message."""
    return 8 * len(_encode(message))


def pack(fields: Iterable[tuple[int, int]]) -> Bits:
    """Write numbers of given widths, one after the other.

    >>> pack([(3, 2), (0, 1), (9, 4)])
    Bits(value=75, length=7)
    """
    value = length = 0
    for number, width in fields:
        if not 0 <= number < 1 << width:
            raise ValueError(f"{number} does not fit into {width} bits")
        value |= number << length
        length += width
    return Bits(value, length)


class Reader:
    """Reads numbers from bits in the order in which they were packed.

    >>> reader = Reader(pack([(3, 2), (0, 1), (9, 4)]))
    >>> reader.take(2), reader.take(1), reader.left, reader.take(4), reader.short
    (3, 0, 4, 9, False)
    >>> reader.take(5), reader.short
    (0, True)
    """

    __slots__ = ("_rest", "left", "short")

    def __init__(self, bits: Bits) -> None:
        self._rest = bits.value
        self.left = bits.length
        self.short = False  # whether more bits were taken than there were

    def take(self, width: int) -> int:
        """Return the next number; missing bits read as zeros."""
        number = self._rest & (1 << width) - 1
        self._rest >>= width
        if width > self.left:
            self.short = True
        self.left = max(0, self.left - width)
        return number


def width_of(options: int) -> int:
    """Return how many bits tell this many options apart: ceil(log2 options).

    >>> [width_of(options) for options in (1, 2, 3, 4, 5, 128, 129)]
    [0, 1, 2, 2, 3, 7, 8]
    """
    return max(0, options - 1).bit_length()


# Vectors

Planes = tuple[int, ...]  # the values of all instances, lowest bits first


def planes_of(values: Sequence[int], width: int) -> Planes:
    """Return values of instances 0, 1, ... as planes.

    >>> planes_of([2, 0, 3], 2)
    (4, 5)
    """
    planes = [0] * width
    for place, value in enumerate(values):
        for bit in range(width):
            planes[bit] |= (value >> bit & 1) << place
    return tuple(planes)


def values_of(planes: Planes, count: int) -> list[int]:
    """Return the values of instances 0 to count-1.

    >>> values_of((4, 5), 3)
    [2, 0, 3]
    """
    return [
        sum((plane >> place & 1) << bit for bit, plane in enumerate(planes))
        for place in range(count)
    ]


def bits_of_planes(planes: Planes, count: int) -> Bits:
    """Return a vector of `count` values in the form for sending."""
    value = 0
    for plane in reversed(planes):
        value = value << count | plane
    return Bits(value, count * len(planes))


def planes_of_bits(bits: Bits | None, width: int, count: int) -> Planes | None:
    """Return the vector that was sent; None if nothing arrived, or a vector of another size.

    >>> planes_of_bits(bits_of_planes((4, 5), 3), 2, 3)
    (4, 5)
    >>> planes_of_bits(Bits(0, 5), 2, 3) is planes_of_bits(None, 2, 3) is None
    True
    """
    if bits is None or bits.length != width * count:
        return None
    if width == 1:
        return (bits.value,)
    mask = (1 << count) - 1
    return tuple(bits.value >> bit * count & mask for bit in range(width))


def within(planes: Planes, options: int, count: int) -> int:
    """Return as a mask in which instances the value is one of 0 .. options-1.

    >>> bin(within(planes_of([0, 1, 2, 3], 2), 3, 4))
    '0b111'
    """
    same = (1 << count) - 1  # in the bits so far, the value equals the largest one allowed
    less = 0
    most = options - 1
    for bit in range(len(planes) - 1, -1, -1):
        plane = planes[bit]
        if most >> bit & 1:
            less |= same & ~plane
            same &= plane
        else:
            same &= ~plane
    return less | same


class BitCounts:
    """Counts for every instance at once how often its bit was set.

    The counts are kept as planes, too. Adding a vector ripples a carry through them, which takes
    two operations on average, for any number of instances. Adding it many times takes as many
    ripples as the number has ones.

    >>> tally = BitCounts()
    >>> for vector in (0b011, 0b001, 0b101):
    ...     tally.add(vector)
    >>> [bin(tally.at_least(number)) for number in (1, 2, 3, 4)]
    ['0b111', '0b1', '0b1', '0b0']
    >>> tally.add(0b010, 5)
    >>> [tally.of(instance) for instance in (0, 1, 2)]
    [3, 6, 1]
    """

    __slots__ = ("planes",)

    def __init__(self) -> None:
        self.planes: list[int] = []

    def add(self, vector: int, times: int = 1) -> None:
        """Count this many votes in every instance whose bit is set."""
        lowest = 0
        while vector and times:
            if times & 1:
                self._carry(vector, lowest)
            times >>= 1
            lowest += 1

    def _carry(self, vector: int, lowest: int) -> None:
        """Add a vector to the planes from this one on."""
        planes = self.planes
        while len(planes) < lowest:
            planes.append(0)
        for place in range(lowest, len(planes)):
            plane = planes[place]
            planes[place] = plane ^ vector
            vector &= plane
            if not vector:
                return
        planes.append(vector)

    def at_least(self, number: int) -> int:
        """Return the instances that have this many votes or more; `number` is at least 1."""
        planes = self.planes
        if number >> len(planes):
            return 0
        more = 0
        same = -1  # in the planes so far, from the highest down, the count equals `number`
        for place in range(len(planes) - 1, -1, -1):
            plane = planes[place]
            if number >> place & 1:
                same &= plane
            else:
                more |= same & plane
                same &= ~plane
        return more | same

    def exceeds_half_of(self, other: BitCounts) -> int:
        """Return the instances with more than half of the votes that `other` has there."""
        mine = [0, *self.planes]  # doubled
        more = 0
        same = -1
        for place in range(max(len(mine), len(other.planes)) - 1, -1, -1):
            one = mine[place] if place < len(mine) else 0
            two = other.planes[place] if place < len(other.planes) else 0
            more |= same & one & ~two
            same &= ~(one ^ two)
        return more

    def of(self, place: int) -> int:
        """Return the votes of one instance."""
        return sum((plane >> place & 1) << bit for bit, plane in enumerate(self.planes))

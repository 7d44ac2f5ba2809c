"""Random streams: one seed makes the whole world.

blake2b derives every stream's seed from the world's seed and a path of labels. So the seed depends
neither on the order in which streams are made nor on PYTHONHASHSEED.

`Stream` is SplitMix64, because a member's stream must be small. The standard library's Mersenne
Twister holds 2.5 kB of state, more than the rest of a simulated member together.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from math import log
from typing import TypeVar

from hustings.core.digests import blake2b

T = TypeVar("T")

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_TO_UNIT = 2.0**-53


def derive(seed: int, *path: str | int) -> int:
    """The 64-bit seed of the stream that `path` names under `seed`.

    >>> derive(1, "member", 3) == derive(1, "member", 3)
    True
    >>> derive(1, "member", 3) == derive(1, "member", 4)
    False
    >>> derive(1, "a", "b") == derive(1, "ab")
    False
    """
    text = "\x1f".join([str(seed), *(f"{type(part).__name__[0]}{part}" for part in path)])
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


class Stream:
    """A small, fast, seeded source of randomness with the usual draws."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def bits(self) -> int:
        """64 random bits."""
        self._state = z = (self._state + _GOLDEN) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def random(self) -> float:
        """A float in [0, 1)."""
        return (self.bits() >> 11) * _TO_UNIT

    def uniform(self, low: float, high: float) -> float:
        """A float between `low` and `high`."""
        return low + (high - low) * self.random()

    def below(self, bound: int) -> int:
        """An integer in [0, bound), without modulo bias."""
        if not 0 < bound <= _MASK + 1:
            raise ValueError("bound must lie between 1 and 2**64")
        limit = (_MASK + 1) - (_MASK + 1) % bound
        while (draw := self.bits()) >= limit:
            pass
        return draw % bound

    def expovariate(self, rate: float) -> float:
        """An exponential waiting time with mean 1/rate."""
        return -log(1.0 - self.random()) / rate

    def choice(self, items: Sequence[T]) -> T:
        """One of `items`, each equally likely."""
        return items[self.below(len(items))]

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """`count` different items, in random order."""
        if not 0 <= count <= len(items):
            raise ValueError("count must lie between 0 and the number of items")
        moved: dict[int, T] = {}  # a Fisher-Yates shuffle that stores only what it touched
        chosen: list[T] = []
        for i in range(count):
            j = i + self.below(len(items) - i)
            chosen.append(moved.get(j, items[j]))
            moved[j] = moved.get(i, items[i])
        return chosen

    def shuffle(self, items: MutableSequence[T]) -> None:
        """Put `items` into random order, in place."""
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]

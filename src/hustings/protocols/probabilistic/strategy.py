"""Strategies: the K of each round, known to all members beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import inf, isfinite

from hustings.core.errors import BadInput

PAPER = "paper"
DOUBLING = "doubling"
NAMED = (PAPER, DOUBLING)
MAX_ROUNDS = 64


@dataclass(frozen=True, slots=True)
class Strategy:
    """K by round; an infinite K stands for the whole group."""

    sizes: tuple[float, ...]

    @property
    def rounds(self) -> int:
        """The number of rounds after which the election is given up."""
        return len(self.sizes)

    def K(self, number: int, group: float) -> float:
        """Return K of round `number` (from 1) in a group of the assumed size."""
        size = self.sizes[number - 1]
        return group if size == inf else size


@lru_cache(maxsize=256)
def strategy(text: str, K: float | None, rounds: int | None, cap: float | None) -> Strategy:
    """Make a strategy from its name, or from a list such as `7,14,28,N`.

    `paper` doubles K from round to round and takes the whole group in the last of several;
    `doubling` only doubles. `cap` bounds K in any round, the last included.

    >>> strategy("paper", 7, 5, None).sizes
    (7, 14, 28, 56, inf)
    >>> strategy("paper", 7, 5, 100).sizes
    (7, 14, 28, 56, 100)
    >>> strategy("5,20,N", None, None, None).sizes
    (5.0, 20.0, inf)
    """
    if text in NAMED:
        first = 7 if K is None else K
        count = 5 if rounds is None else rounds
        sizes = [first * 2.0**number if number else first for number in range(count)]
        sizes = [int(size) if size == int(size) else size for size in sizes]
        if text == PAPER and count > 1:
            sizes[-1] = inf
    else:
        sizes = _listed(text)
        if K is not None:
            raise BadInput(f"K goes with a named strategy: {text!r} says itself what K is")
        if rounds is not None and rounds != len(sizes):
            raise BadInput(f"max_rounds is {rounds}, but strategy {text!r} has {len(sizes)}")
    if cap is not None:
        if cap < sizes[0] < inf:
            raise BadInput(f"K_max = {cap:g} must be at least the first K, {sizes[0]:g}")
        sizes = [min(size, cap) for size in sizes]
    return Strategy(tuple(sizes))


def _listed(text: str) -> list[float]:
    sizes: list[float] = []
    for part in text.split(","):
        try:
            size = inf if part.strip() == "N" else float(part)
        except ValueError:
            size = 0.0
        if not size > 0 or (not isfinite(size) and part.strip() != "N"):
            raise BadInput(
                f"strategy {text!r} is not understood: use {', '.join(NAMED)}, or the K of each "
                "round as 7,14,28,N with N for the whole group"
            )
        if sizes and not size > sizes[-1]:
            raise BadInput(f"strategy {text!r} does not grow: each K must exceed the one before")
        sizes.append(size)
    if len(sizes) > MAX_ROUNDS:
        raise BadInput(f"a strategy has at most {MAX_ROUNDS} rounds, not {len(sizes)}")
    return sizes

"""Whether what a fence accepted and refused could have happened one after the other.

All clocks of a history are one clock: `time.monotonic` is the same for all processes of a machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple


class Try(NamedTuple):
    """One attempt to write: when it began and ended, and whether it was let through, if known."""

    token: int
    began: float
    ended: float
    accepted: bool | None
    highest: int = 0  # as a refusal named it

    @classmethod
    def read(cls, lines: Iterable[str]) -> list[Try]:
        return [cls(*json.loads(line)) for line in lines if line.endswith("\n")]

    def line(self) -> str:
        return json.dumps(list(self)) + "\n"


def complaints(tries: Sequence[Try]) -> list[str]:
    """What a register that only grows could not have done."""
    found = []
    largest_ended = 0
    for moment, this in sorted(_moments(tries), key=lambda each: each[0]):
        if this.accepted is None:
            continue
        if moment[1] == _END:
            largest_ended = max(largest_ended, this.token if this.accepted else this.highest)
        elif this.accepted and this.token < largest_ended:
            found.append(f"{this} was accepted after {largest_ended} had been")
    first: dict[int, float] = {}
    for this in tries:
        first[this.token] = min(this.began, first.get(this.token, this.began))
    for this in tries:
        if this.accepted is not False:
            continue
        if this.highest <= this.token:
            found.append(f"{this} was refused, and names no larger one")
        if first.get(this.highest, this.ended) >= this.ended:
            found.append(f"{this} was refused for a token that nobody had tried")
    return found


# What ends and begins at one instant may have overlapped: the begin comes first.
_BEGIN, _END = 0, 1
Moment = tuple[tuple[float, int], Try]


def _moments(tries: Sequence[Try]) -> Iterable[Moment]:
    for each in tries:
        yield (each.began, _BEGIN), each
        yield (each.ended, _END), each


def falls(tokens: Sequence[int]) -> list[tuple[int, int]]:
    """Where a sequence, in the store's own order, decreases."""
    return [(a, b) for a, b in pairwise(tokens) if b < a]

"""Draws in sequence, for kernels whose next step depends on the last: numbers, coins, binomials.

A stream is an array of two words: a key and the number of its words that are used. The binomial is
our own: numba's works on a probability that underflows for large groups.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hustings.lab.kernels.compiling import compiled
from hustings.lab.kernels.counter import S11, UNIT, word

Stream = NDArray[np.uint64]

ONE = np.uint64(1)


@compiled
def uniform(stream: Stream) -> float:
    """Draw a number of (0, 1]."""
    stream[1] += ONE
    return ((word(stream[0], stream[1]) >> S11) + ONE) * UNIT


@compiled
def coin(stream: Stream, p: float) -> bool:
    """Draw True with probability `p`; without a draw where the result is certain."""
    if p <= 0.0:
        return False
    return p >= 1.0 or uniform(stream) <= p


@compiled
def below(stream: Stream, bound: int) -> int:
    """Draw a whole number of 0 .. bound - 1, for bounds up to 2**53."""
    return min(bound - 1, int((1.0 - uniform(stream)) * bound))


@compiled
def binomial(stream: Stream, n: int, p: float) -> int:
    """Draw how many of n succeed, each with probability p; for n up to 2**53."""
    if n <= 0 or p <= 0.0:
        return 0
    if p >= 1.0:
        return n
    if p > 0.5:
        return n - _lesser(stream, n, 1.0 - p)
    return _lesser(stream, n, p)


@compiled
def _lesser(stream: Stream, n: int, p: float) -> int:
    """Draw a binomial with p <= 1/2: by inversion, or by rejection where there are many."""
    if n * p >= 10.0:
        return _rejected(stream, n, p)
    odds = p / (1.0 - p)
    # The chance that none succeeds: at least 2^-20 here, where (1 - p)^n by itself would lose all
    # digits of a small p.
    none = math.exp(n * math.log1p(-p))
    while True:
        left = uniform(stream)
        chance = none
        found = 0
        while left > chance and found < n:
            left -= chance
            found += 1
            chance *= odds * ((n - found + 1) / found)
            if chance < UNIT:  # beyond what a number can tell apart
                break
        if left <= chance:
            return found


@compiled
def _rejected(stream: Stream, n: int, p: float) -> int:
    """Hoermann's transformed rejection with squeeze (BTRS, 1993), exact for any n p >= 10."""
    q = 1.0 - p
    spread = math.sqrt(n * p * q)
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    quick = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * spread
    odds = p / q
    m = np.floor((n + 1) * p)
    while True:
        u = uniform(stream) - 0.5
        v = uniform(stream)
        us = 0.5 - abs(u)
        if us <= 0.0:
            continue
        k = np.floor((2.0 * a / us + b) * u + c)
        if us >= 0.07 and v <= quick:
            return int(k)
        if k < 0.0 or k > n:
            continue
        v = math.log(v * alpha / (a / (us * us) + b))
        bound = (
            (m + 0.5) * math.log((m + 1.0) / (odds * (n - m + 1.0)))
            + (n + 1.0) * math.log((n - m + 1.0) / (n - k + 1.0))
            + (k + 0.5) * math.log(odds * (n - k + 1.0) / (k + 1.0))
            + _tail(m)
            + _tail(n - m)
            - _tail(k)
            - _tail(n - k)
        )
        if v <= bound:
            return int(k)


@compiled
def _tail(k: float) -> float:
    """Return the remainder of Stirling's formula for log k!."""
    if k < 10.0:
        exact = math.lgamma(k + 1.0)
        return exact - (0.5 * math.log(2.0 * math.pi) + (k + 0.5) * math.log(k + 1.0) - (k + 1.0))
    square = (k + 1.0) * (k + 1.0)
    return (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / square) / square) / (k + 1.0)

"""A generator without a state: every random number is a function of its purpose.

A key and an index make a 64-bit word. Keys branch: from a seed to a run, from a run to a message.
So the coin of one receiver of one message is the same whether or not any other is tossed, in any
order, on any core. A coin that cannot matter need not be tossed at all.

The words of one key are those of SplitMix64 with that key as its seed.
"""

from __future__ import annotations

from hashlib import blake2b
from math import ceil

import numpy as np

from hustings.lab.kernels.compiling import compiled

STEP = np.uint64(0x9E3779B97F4A7C15)  # 2**64 by the golden ratio
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
BRANCH = np.uint64(0xD1B54A32D192ED03)  # tells keys from words
S27, S30, S31, S11 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(11)
MESSAGE = np.uint64(1 << 63)  # tells the keys of messages from those of sleeps
S32 = np.uint64(32)

UNIT = 2.0**-53
WHOLE = 2.0**53


def root(seed: int) -> np.uint64:
    """The key of a seed, which may be any whole number."""
    data = blake2b(f"fast {seed}".encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(data, "big"))


@compiled
def limit(p: float) -> np.uint64:
    """Return the bound for the upper 53 bits of a word: below it with probability `p`."""
    return np.uint64(ceil(p * WHOLE))


@compiled
def mix(x: np.uint64) -> np.uint64:
    """Mix a word: every bit of the result depends on every bit of `x`."""
    x = (x ^ (x >> S30)) * FIRST
    x = (x ^ (x >> S27)) * SECOND
    return x ^ (x >> S31)


@compiled
def word(key: np.uint64, index: np.uint64) -> np.uint64:
    """The word of a key at an index."""
    return mix(key + (index + np.uint64(1)) * STEP)


@compiled
def branch(key: np.uint64, index: np.uint64) -> np.uint64:
    """Return the key that branches from another one at an index."""
    return mix(word(key, index) ^ BRANCH)


@compiled
def message_key(run: np.uint64, sender: int, number: int) -> np.uint64:
    """The key of a member's announcement with this number, below 2**32."""
    return branch(run, MESSAGE | (np.uint64(sender) << S32) | np.uint64(number))


@compiled
def number_of(key: np.uint64, index: int) -> float:
    """A number of [0, 1)."""
    return (word(key, np.uint64(index)) >> S11) * UNIT


@compiled
def below(key: np.uint64, index: int, bar: np.uint64) -> bool:
    """Toss a coin: whether the number is below `bar`, made by `limit`; indices may be negative."""
    return bool((word(key, np.uint64(np.int64(index))) >> S11) < bar)

"""How long a member sleeps, and whether a message gets lost."""

from __future__ import annotations

from math import exp, log
from typing import NamedTuple

import numpy as np

from hustings.lab.kernels.compiling import compiled
from hustings.lab.kernels.counter import branch, limit, number_of
from hustings.lab.kernels.results import Floats, Ints

NEVER = 1 << 62
NONE, CORRELATED, UNCORRELATED = 0, 1, 2  # loss models
EVERYBODY = -1  # the receiver whose coin decides for all


class Sleep(NamedTuple):
    """The law of the wake-up time: `lam` is 0 where it is uniform. Lengths are in ticks."""

    longest: float
    lam: float


class LossLaw(NamedTuple):
    """A loss model; `collision` is what each other message under way adds."""

    model: int
    p: float
    collision: float
    bar: np.uint64  # the limit of p


@compiled
def nap(key: np.uint64, member: int, sleep: Sleep) -> float:
    """Return how long a member sleeps, in ticks and fractions."""
    return nap_of(number_of(key, member), sleep)


@compiled
def nap_of(u: float, sleep: Sleep) -> float:
    """Return the sleep for a drawn number of [0, 1): the larger, the longer."""
    if sleep.longest == 0.0:
        return 0.0
    if sleep.lam == 0.0:
        return sleep.longest * u
    least = exp(-sleep.lam)  # e^lam would overflow
    return max(0.0, sleep.longest * (1.0 + log(least + u * (1.0 - least)) / sleep.lam))


@compiled
def first_naps(run: np.uint64, sleep: Sleep, slept: Floats, wakes: Ints) -> None:
    """Fill in how long each member sleeps first, and the tick at which it wakes."""
    key = branch(run, np.uint64(0))
    for member in range(slept.size):
        slept[member] = nap(key, member, sleep)
        wakes[member] = np.int64(np.rint(slept[member]))


@compiled
def bar_at(loss: LossLaw, sharing: int) -> np.uint64:
    """Return the limit of the loss for a message that shared the network with `sharing` others."""
    if loss.collision == 0.0:
        return loss.bar
    return limit(1.0 - (1.0 - loss.p) * (1.0 - loss.collision) ** sharing)

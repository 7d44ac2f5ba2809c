"""Chance for the transcription: sleeps and losses from one seeded source, and samples of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import exp, log
from random import Random

from tests.agreement.announce.transcription import (
    TICKS,
    Case,
    Lost,
    Metrics,
    Wake,
    agreed_at,
    metrics,
    play,
    ticks,
)

FOREVER = 10**6 * TICKS
WARM_UP = 20  # periods before something happens, so that the beginning is forgotten


def sleeps(rng: Random, T_S: float = 1.0) -> Wake:
    """Uniform on the suppression interval."""
    return lambda member, nth, now: ticks(rng.random() * T_S)


def late_sleeps(rng: Random, lam: float, T_S: float = 1.0) -> Wake:
    """The truncated exponential law, whose density grows."""

    def wake(member: int, nth: int, now: int) -> int:
        return ticks(T_S / lam * log(1 + rng.random() * (exp(lam) - 1)))

    return wake


def losses(rng: Random, model: str, loss: float) -> Lost:
    """One coin for each message, or one for each message and receiver."""
    if model == "none":
        return lambda sender, number, receiver: False
    if model == "uncorrelated":
        return lambda sender, number, receiver: rng.random() < loss
    fates: dict[tuple[int, int], bool] = {}

    def lost(sender: int, number: int, receiver: int) -> bool:
        if (sender, number) not in fates:
            fates[sender, number] = rng.random() < loss
        return fates[sender, number]

    return lost


def starts(
    algorithm: str,
    n: int,
    model: str,
    loss: float,
    runs: int,
    *,
    delta: float = 0.1,
    wake: Callable[[Random], Wake] = sleeps,
) -> Iterator[Metrics]:
    """The metrics of simultaneous starts with T_A = T_S = 1 and T_L infinite."""
    case = Case(algorithm, n, TICKS, None, ticks(delta))
    for seed in range(runs):
        rng = Random(f"{algorithm} {n} {model} {loss} {delta} {seed}")
        found = metrics(play(case, wake(rng), losses(rng, model, loss), FOREVER, settle=True))
        assert found is not None
        yield found


def departures(n: int, k: int, model: str, loss: float, runs: int) -> Iterator[float]:
    """le-s with T_L = k T_A: how long until all survivors hold the successor of a dead leader.

    The leader's last message may still be under way and bring listeners back to it, so agreement
    counts only after that.
    """
    delta = TICKS // 10
    for seed in range(runs):
        rng = Random(f"departure {n} {k} {model} {loss} {seed}")
        last = WARM_UP * TICKS
        gone = last + 1 + rng.randrange(TICKS - 1)
        case = Case("le-s", n, TICKS, k * TICKS, delta, steady=n, crashes={n: gone})
        run = play(case, sleeps(rng), losses(rng, model, loss), gone + 40 * TICKS)
        landed = max(gone, last + delta)
        agreed = agreed_at(run, list(range(1, n)), n - 1, landed)
        assert agreed is not None
        yield max(0, agreed - gone) / TICKS  # who agreed before has lost no time


def joins(n: int, larger: bool, model: str, loss: float, runs: int) -> Iterator[float]:
    """le-s: how long until all agree after one more came to a group of n that had a leader."""
    for seed in range(runs):
        rng = Random(f"join {n} {larger} {model} {loss} {seed}")
        old, new = (n, n + 1) if larger else (n + 1, 1)
        come = WARM_UP * TICKS + 1 + rng.randrange(TICKS - 1)
        case = Case("le-s", n + 1, TICKS, None, TICKS // 10, steady=old, joins={new: come})
        run = play(case, sleeps(rng), losses(rng, model, loss), come + 40 * TICKS)
        agreed = agreed_at(run, list(range(1, n + 2)), n + 1, come)
        assert agreed is not None
        yield (agreed - come) / TICKS

"""Bounds against a dumb twin: rounds played message by message, one member at a time.

The twin shares nothing with the closed forms. Its seeds are fixed; each comparison allows four
standard errors, which chance exceeds once in some ten thousand.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt

import pytest

from hustings.lab.closed_forms.probabilistic import messages
from hustings.lab.closed_forms.probabilistic.leaders import simple_two_leaders, two_leaders
from hustings.lab.closed_forms.probabilistic.round import Round
from hustings.lab.closed_forms.probabilistic.success import success, torn, unsettled

FINAL = 0.85  # when in the round the finals are sent


@dataclass(frozen=True)
class Seen:
    """One round: what came of it and what it took."""

    strong: bool
    two: bool
    again: bool
    torn: bool
    first: int
    unicasts: int
    relay: int


def relay_phase(
    rng: random.Random, one: Round, best: list[int], known: list[set[int]], dead: list[float]
) -> int:
    """Unit delays; members from len(best) on missed the initiating message. Returns unicasts."""
    last = int(1.5 * one.K) + 4
    sent = 0
    box: list[tuple[int, int, int]] = []

    def tell(i: int, others: list[int]) -> None:
        nonlocal sent
        sent += len(others)
        box.extend((i, j, best[i]) for j in others if rng.random() >= one.p_ucastl)

    for i in range(len(best)):
        tell(i, sorted(known[i]))
    for now in range(1, last):
        arriving, box[:] = list(box), []
        for i, j, choice in arriving:
            if j >= len(best) or dead[j] * last / FINAL < now:
                continue
            known[j].add(i)
            if choice < best[j]:
                best[j] = choice
                tell(j, sorted(known[j]))
            elif choice > best[j]:
                tell(j, [i])
    return sent


def play(rng: random.Random, one: Round) -> Seen:
    passers = [g for g in range(one.N) if rng.random() < one.passing]
    heard = [rng.random() >= one.p_mcastl for _ in passers]
    relay = [g for g, there in zip(passers, heard, strict=True) if there]
    order = relay + [g for g, there in zip(passers, heard, strict=True) if not there]
    views = [
        {j for j in range(len(order)) if rng.random() < one.view_prob} - {i}
        for i in range(len(relay))
    ]
    best = []
    for i, own in enumerate(relay):
        listed = {order[j] for j in views[i]}
        choice = 0
        while choice != own and not (
            choice in listed if choice in order else rng.random() < one.view_prob
        ):
            choice += 1
        best.append(choice)
    crash = {g: rng.random() for g in range(one.N) if rng.random() < one.p_fail}
    first = sum(map(len, views))
    unicasts = relay_phase(rng, one, best, views, [crash.get(g, 9.0) for g in relay])
    finals = [
        (g, choice) for g, choice in zip(relay, best, strict=True) if crash.get(g, 9.0) >= FINAL
    ]
    named = {choice for _, choice in finals}
    strong, again, own = len(named) == 1 and not named & set(crash), False, 0
    for g in range(one.N):
        if g in crash:
            continue
        got = {choice for who, choice in finals if who == g or rng.random() >= one.p_mcastl}
        own += got == {g}
        if len(got) != 1:
            strong = False
            again = again or bool(got) or rng.random() >= one.p_mcastl
    return Seen(strong, own >= 2, again, len(named) != 1, first, unicasts, len(relay))


CASES = {
    "gentle": Round(7, 0.5, 0.1, 0.1, 0.01, 300, FINAL),
    "lossy": Round(7, 0.5, 0.3, 0.3, 0.05, 200, FINAL),
    "narrow": Round(5, 0.3, 0.2, 0.2, 0.1, 150, FINAL),
    "crashing": Round(7, 0.3, 0.0, 0.0, 0.2, 150, FINAL),
    "deaf": Round(4, 0.6, 0.5, 0.5, 0.02, 150, FINAL),
}
RUNS = 2500


@lru_cache
def played(name: str) -> list[Seen]:
    rng = random.Random(f"twin {name}")
    return [play(rng, CASES[name]) for _ in range(RUNS)]


def estimate(values: list[float]) -> tuple[float, float]:
    mean = sum(values) / len(values)
    spread = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, sqrt(spread / len(values))


@pytest.mark.parametrize("name", CASES)
def test_success_is_bounded_from_below(name: str) -> None:
    mean, error = estimate([each.strong for each in played(name)])
    bound = success(CASES[name])
    assert bound <= mean + 4 * error
    assert bound > 0.6 * mean - 4 * error  # and is of use


@pytest.mark.parametrize("name", CASES)
def test_another_round_is_bounded_from_above(name: str) -> None:
    mean, error = estimate([each.again for each in played(name)])
    assert mean - 4 * error <= unsettled(CASES[name]) < 2.5 * mean + 4 * error


@pytest.mark.parametrize("name", CASES)
def test_two_leaders_are_bounded_from_above(name: str) -> None:
    mean, error = estimate([each.two for each in played(name)])
    bound = two_leaders(CASES[name])
    assert mean - 4 * error <= bound <= simple_two_leaders(CASES[name])
    assert bound < 4 * mean + 6 / RUNS


@pytest.mark.parametrize("name", CASES)
def test_unicasts(name: str) -> None:
    one = CASES[name]
    mean, error = estimate([each.first for each in played(name)])
    assert mean == pytest.approx(messages.first_unicasts(one), abs=4 * error)
    mean, error = estimate([each.unicasts for each in played(name)])
    assert mean < messages.mean_unicasts_at_most(one)
    mean, error = estimate([each.relay for each in played(name)])
    assert mean == pytest.approx(messages.relay_members(one), abs=4 * error)


def test_without_loss_the_law_is_exact() -> None:
    rng = random.Random("without loss")
    one = Round(5, 0.4, N=1500)
    mean, error = estimate([play_relay_only(rng, one) for _ in range(4000)])
    assert mean == pytest.approx(torn(5, 0.4, N=1500), abs=4 * error)


def play_relay_only(rng: random.Random, one: Round) -> bool:
    """As `play`, with a number of relay members drawn at once and nobody to listen."""
    m = sum(rng.random() < one.passing for _ in range(one.N))
    views = [{j for j in range(m) if rng.random() < one.view_prob} - {i} for i in range(m)]
    best = []
    for _ in range(m):
        choice = 0
        while rng.random() >= one.view_prob:
            choice += 1
        best.append(choice)
    relay_phase(rng, Round(20, 0.4), best, views, [9.0] * m)
    return len(set(best)) != 1

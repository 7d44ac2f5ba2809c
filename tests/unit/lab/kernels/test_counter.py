"""The generator: known words, even numbers, and draws that do not hang together."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from hustings.lab.kernels.counter import below, branch, limit, message_key, number_of, root, word

RUNS = 20_000


def words(key: int, count: int) -> list[int]:
    return [int(word(np.uint64(key), np.uint64(index))) for index in range(count)]


def test_words_are_those_of_splitmix64() -> None:
    """The first numbers of the published generator for the seeds 0 and 1234567."""
    assert words(0, 3) == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert words(1234567, 3) == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


def test_seeds_are_any_whole_numbers() -> None:
    roots = {int(root(seed)) for seed in (0, 1, -1, 2**64, 2**64 + 1, -(2**200))}
    assert len(roots) == 6


def test_keys_differ_wherever_they_are_for_something_else() -> None:
    run = np.uint64(branch(root(1), np.uint64(0)))
    keys = [int(message_key(run, who, number)) for who in range(40) for number in range(40)]
    keys += [int(branch(run, np.uint64(nap))) for nap in range(40)]
    keys += [int(branch(root(1), np.uint64(number))) for number in range(40)]
    assert len(keys) == len(set(keys))


def test_numbers_are_even() -> None:
    """Sixteen bins of equal weight, by chi-squared: beyond 45 once in ten thousand times."""
    key = root(3)
    values = [number_of(key, index) for index in range(RUNS)]
    assert 0.0 <= min(values) < max(values) < 1.0
    bins = np.histogram(values, 16, (0.0, 1.0))[0]
    assert ((bins - RUNS / 16) ** 2 / (RUNS / 16)).sum() < 45


@pytest.mark.parametrize("p", [0.0, 0.001, 0.4, 0.999, 1.0])
def test_coins_fall_as_often_as_they_should(p: float) -> None:
    bar = np.uint64(limit(p))
    fell = sum(below(root(5), index, bar) for index in range(RUNS))
    assert abs(fell - RUNS * p) <= 4.5 * sqrt(RUNS * p * (1 - p))


@pytest.mark.parametrize("apart", ["receivers", "numbers", "senders", "runs"])
def test_neighbouring_coins_are_independent(apart: str) -> None:
    """Two coins that differ in one thing only: a product of both as often as by chance."""
    bar, both = np.uint64(limit(0.4)), 0
    for number in range(RUNS):
        run, other = (np.uint64(branch(root(7), np.uint64(number + later))) for later in (0, RUNS))
        key, sender, place, receiver = {
            "receivers": (run, 3, 1, 9),
            "numbers": (run, 3, 2, 8),
            "senders": (run, 4, 1, 8),
            "runs": (other, 3, 1, 8),
        }[apart]
        one = np.uint64(message_key(run, 3, 1))
        two = np.uint64(message_key(key, sender, place))
        both += below(one, 8, bar) and below(two, receiver, bar)
    assert abs(both - RUNS * 0.16) < 4.5 * sqrt(RUNS * 0.16 * 0.84)

"""Random streams: known outputs, fair draws, and no trace of the hash seed."""

import os
import subprocess
import sys
from collections import Counter
from hashlib import blake2b
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.streams import Stream, derive

SEEDS = st.integers(0, 2**64 - 1)


@pytest.mark.parametrize(
    "seed, expected",
    [
        # The published outputs of SplitMix64.
        (0, [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]),
        (
            1234567,
            [
                6457827717110365317,
                3203168211198807973,
                9817491932198370423,
                4593380528125082431,
                16408922859458223821,
            ],
        ),
    ],
)
def test_the_generator_is_splitmix64(seed: int, expected: list[int]) -> None:
    stream = Stream(seed)
    assert [stream.bits() for _ in expected] == expected


def dumb_bits(seed: int, count: int) -> list[int]:
    """SplitMix64 again, as its definition reads, without carried state."""
    found = []
    for i in range(1, count + 1):
        z = (seed + i * 0x9E3779B97F4A7C15) % 2**64
        z = (z ^ z // 2**30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z // 2**27) * 0x94D049BB133111EB % 2**64
        found.append(z ^ z // 2**31)
    return found


@given(seed=SEEDS)
def test_the_generator_agrees_with_its_dumb_twin(seed: int) -> None:
    stream = Stream(seed)
    assert [stream.bits() for _ in range(8)] == dumb_bits(seed, 8)


@given(seed=SEEDS)
def test_random_is_the_top_53_bits(seed: int) -> None:
    draw = Stream(seed).random()
    assert 0 <= draw < 1
    assert draw == (Stream(seed).bits() >> 11) / 2**53


def chi_square(counts: list[int]) -> float:
    expected = sum(counts) / len(counts)
    return sum((count - expected) ** 2 / expected for count in counts)


@pytest.mark.parametrize("bound", [2, 3, 7, 10, 64])
def test_below_is_uniform(bound: int) -> None:
    stream = Stream(derive(5, "below", bound))
    seen = Counter(stream.below(bound) for _ in range(20_000))
    assert sorted(seen) == list(range(bound))
    freedom = bound - 1
    # Six standard deviations above the mean of the distribution; the seed is fixed.
    assert chi_square([seen[i] for i in range(bound)]) < freedom + 6 * sqrt(2 * freedom)


def test_random_is_uniform() -> None:
    stream = Stream(derive(5, "random"))
    bins = [0] * 50
    for _ in range(50_000):
        bins[int(stream.random() * 50)] += 1
    assert chi_square(bins) < 49 + 6 * sqrt(2 * 49)


def test_expovariate_has_the_mean_and_the_median_of_its_law() -> None:
    stream = Stream(derive(5, "exp"))
    draws = sorted(stream.expovariate(4.0) for _ in range(20_000))
    assert draws[0] >= 0
    assert abs(sum(draws) / len(draws) - 0.25) < 6 * 0.25 / sqrt(len(draws))
    assert abs(draws[len(draws) // 2] - 0.6931 / 4) < 0.01


@given(seed=SEEDS, bound=st.integers(1, 2**64))
def test_below_stays_below(seed: int, bound: int) -> None:
    assert 0 <= Stream(seed).below(bound) < bound


@given(seed=SEEDS)
def test_below_wastes_no_draw_on_a_power_of_two(seed: int) -> None:
    assert Stream(seed).below(2**64) == Stream(seed).bits()
    assert Stream(seed).below(2**20) == Stream(seed).bits() % 2**20


def test_below_draws_again_rather_than_favour_small_numbers() -> None:
    # Of 2**64 values, 2**63 - 1 are left over for this bound: nearly every other draw is refused.
    bound = 2**63 + 1
    seeds = [seed for seed in range(100) if Stream(seed).bits() >= bound]
    assert len(seeds) > 20
    for seed in seeds:
        twin = Stream(seed)
        expected = next(draw for draw in iter(twin.bits, None) if draw < bound)
        assert Stream(seed).below(bound) == expected


@pytest.mark.parametrize("bound", [0, -1])
def test_below_refuses_an_empty_range(bound: int) -> None:
    with pytest.raises(ValueError, match="between 1 and 2"):
        Stream(1).below(bound)


@given(seed=SEEDS, low=st.floats(-1e6, 1e6, width=32), width=st.floats(0, 1e6, width=32))
def test_uniform_stays_between(seed: int, low: float, width: float) -> None:
    draw = Stream(seed).uniform(low, low + width)
    assert low <= draw <= low + width


@given(seed=SEEDS, data=st.data(), items=st.lists(st.integers(), max_size=12))
def test_sample_takes_different_places(seed: int, data: st.DataObject, items: list[int]) -> None:
    count = data.draw(st.integers(0, len(items)))
    places = list(enumerate(items))
    chosen = Stream(seed).sample(places, count)
    assert len(chosen) == count
    assert len({place for place, _ in chosen}) == count
    assert all(places[place] == (place, item) for place, item in chosen)


@pytest.mark.parametrize("count", [-1, 4])
def test_sample_refuses_more_than_there_are(count: int) -> None:
    with pytest.raises(ValueError, match="between 0 and"):
        Stream(1).sample([1, 2, 3], count)


def test_every_sample_is_equally_likely_in_every_order() -> None:
    stream = Stream(derive(5, "sample"))
    seen = Counter(tuple(stream.sample("abcd", 2)) for _ in range(12_000))
    assert len(seen) == 12
    assert chi_square(list(seen.values())) < 11 + 6 * sqrt(2 * 11)


@given(seed=SEEDS, items=st.lists(st.integers(), max_size=12))
def test_shuffle_keeps_every_item(seed: int, items: list[int]) -> None:
    shuffled = list(items)
    Stream(seed).shuffle(shuffled)
    assert sorted(shuffled) == sorted(items)


def test_every_order_is_equally_likely() -> None:
    stream = Stream(derive(5, "shuffle"))
    seen: Counter[str] = Counter()
    for _ in range(12_000):
        letters = list("abc")
        stream.shuffle(letters)
        seen["".join(letters)] += 1
    assert len(seen) == 6
    assert chi_square(list(seen.values())) < 5 + 6 * sqrt(2 * 5)


def test_choice_takes_each() -> None:
    stream = Stream(derive(5, "choice"))
    seen = Counter(stream.choice("xyz") for _ in range(6_000))
    assert chi_square([seen[letter] for letter in "xyz"]) < 2 + 6 * sqrt(2 * 2)


LABELS = st.lists(st.text("ab-12", max_size=3) | st.integers(-3, 300), max_size=3).map(tuple)


@given(
    one=st.tuples(st.integers(-9, 9), LABELS),
    other=st.tuples(st.integers(-9, 9), LABELS),
)
def test_different_paths_give_different_seeds(
    one: tuple[int, tuple[str | int, ...]], other: tuple[int, tuple[str | int, ...]]
) -> None:
    if one != other:
        assert derive(one[0], *one[1]) != derive(other[0], *other[1])
    assert derive(one[0], *one[1]) == derive(one[0], *one[1])
    assert 0 <= derive(one[0], *one[1]) < 2**64


def test_a_number_and_its_text_are_different_labels() -> None:
    assert derive(1, "member", 3) != derive(1, "member", "3")


def test_seeds_are_the_first_eight_bytes_of_blake2b() -> None:
    digest = blake2b(b"7\x1fsmember\x1fi3", digest_size=8).digest()
    assert derive(7, "member", 3) == int.from_bytes(digest, "big")


PROGRAM = """
from hustings.core.streams import Stream, derive
stream = Stream(derive(3, "member", 4, "x"))
letters = list("abcdefgh")
stream.shuffle(letters)
print(letters, stream.sample(range(100), 5), stream.random(), stream.expovariate(2.0))
"""


def test_streams_do_not_depend_on_the_hash_seed() -> None:
    told = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    ]
    assert told[0]
    assert told[0] == told[1] == told[2]

"""The laws of loss, by exact tests on fixed seeds (level: see laws.py)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import product
from random import Random

import pytest

from hustings.core.errors import BadInput
from hustings.sim.delay import Fixed, Uniform
from hustings.sim.loss import Uncorrelated, parse_loss, reached
from hustings.sim.network import Network
from tests.unit.sim.laws import believable
from tests.unit.sim.worlds import Stage, cry, lossy, ping

PROBABILITIES = [0.01, 0.1, 0.25, 0.3, 1 / 3, 0.5, 0.9, 0.999]
MESSAGES = 3_000


@pytest.mark.parametrize("p", PROBABILITIES)
def test_each_receiver_misses_a_message_with_the_given_probability(p: float) -> None:
    chance = Random(1)
    marks = reached(20_000, p, chance)
    assert len(marks) == 20_000
    assert believable(marks.count(0), 20_000, p)
    assert marks.count(0) + marks.count(1) == 20_000


@pytest.mark.parametrize("p", PROBABILITIES)
def test_receivers_miss_a_message_independently(p: float) -> None:
    """All eight patterns of three receivers have the probability of independent coins."""
    chance = Random(2)
    patterns = Counter(bytes(reached(3, p, chance)) for _ in range(MESSAGES))
    for pattern in product((0, 1), repeat=3):
        expected = 1.0
        for mark in pattern:
            expected *= 1 - p if mark else p
        assert believable(patterns[bytes(pattern)], MESSAGES, expected), pattern


@pytest.mark.parametrize("p", [2**-40, 1e-12])
def test_a_very_small_probability_is_not_rounded_up(p: float) -> None:
    assert reached(50_000, p, Random(3)).count(0) == 0


@pytest.mark.parametrize("receivers", [0, 1, 1_000])
def test_nobody_misses_at_zero_and_everybody_at_one(receivers: int) -> None:
    assert bytes(reached(receivers, 0.0, Random(4))) == b"\1" * receivers
    assert bytes(reached(receivers, 1.0, Random(4))) == b"\0" * receivers


def test_even_the_smallest_probability_is_one() -> None:
    assert reached(100, 5e-324, Random(5)).count(1) == 100


def test_nothing_is_tossed_where_nothing_can_be_lost() -> None:
    chance = Random(6)
    before = chance.getstate()
    reached(100, 0.0, chance)
    assert chance.getstate() == before


# In a world. Fast: one fixed delay. Careful: the same without the short path. Slow: a delay each.

WAYS: dict[str, Callable[[float, bool], Stage]] = {
    "fast": lambda p, correlated: Stage(4, network=lossy(p, correlated=correlated)),
    "careful": lambda p, correlated: Stage(
        4, network=lossy(p, correlated=correlated, delay=Fixed(0.5)), careful=True
    ),
    "slow": lambda p, correlated: Stage(
        4, network=lossy(p, correlated=correlated, delay=Uniform(0.25, 0.75))
    ),
}


def patterns_of(stage: Stage) -> Counter[tuple[int, ...]]:
    """Who of members 2, 3 and 4 received each of many multicasts."""
    for number in range(MESSAGES):
        stage.let(float(number), 1, cry(number))
    receivers: dict[str, list[int]] = {f"PING {number} from 1": [] for number in range(MESSAGES)}
    for _, who, what in stage.played():
        receivers[what].append(who)
    return Counter(tuple(sorted(each)) for each in receivers.values())


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("p", [0.1, 0.6])
def test_uncorrelated_loss_is_a_coin_for_each_receiver_of_a_multicast(way: str, p: float) -> None:
    found = patterns_of(WAYS[way](p, False))
    for bits in product((0, 1), repeat=3):
        pattern = tuple(member for member, bit in zip((2, 3, 4), bits, strict=True) if bit)
        expected = (1 - p) ** len(pattern) * p ** (3 - len(pattern))
        assert believable(found[pattern], MESSAGES, expected), pattern


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("p", [0.1, 0.6])
def test_correlated_loss_is_one_coin_for_all_receivers_of_a_multicast(way: str, p: float) -> None:
    found = patterns_of(WAYS[way](p, True))
    assert set(found) == {(), (2, 3, 4)}
    assert believable(found[()], MESSAGES, p)


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("correlated", [False, True])
@pytest.mark.parametrize("p", [0.1, 0.6])
def test_a_message_to_one_member_is_lost_by_one_coin(way: str, correlated: bool, p: float) -> None:
    stage = WAYS[way](p, correlated)
    for number in range(MESSAGES):
        stage.let(float(number), 1, ping(number, 2, 3))
    stage.run()
    both = Counter(at // 1 for at, _, _ in stage.journal)
    assert believable(len(stage.journal), 2 * MESSAGES, 1 - p)
    assert believable(sum(many == 2 for many in both.values()), MESSAGES, (1 - p) ** 2)


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("correlated", [False, True])
def test_certain_loss_loses_everything(way: str, correlated: bool) -> None:
    stage = WAYS[way](1.0, correlated)
    cry(1)(stage.members[1])
    ping(2, 2, 3)(stage.members[4])
    assert stage.played() == []


def test_a_lost_message_was_sent() -> None:
    for way, make in WAYS.items():
        stage = make(1.0, False)
        cry(1)(stage.members[1])
        ping(2, 2, 3)(stage.members[4])
        stage.run()
        assert sum(stage.sent.values()) == 3, way


def test_different_seeds_lose_different_messages() -> None:
    def lost(seed: int) -> list[int]:
        stage = Stage(40, network=lossy(0.5), seed=seed)
        cry(1)(stage.members[1])
        return [who for _, who, _ in stage.played()]

    assert lost(1) == lost(1)
    assert lost(1) != lost(2)


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan")])
def test_what_is_no_probability_is_refused(p: float) -> None:
    with pytest.raises(BadInput, match=r"loss must lie in \[0, 1\]"):
        Uncorrelated(p)
    with pytest.raises(BadInput, match=r"collision must lie in \[0, 1\]"):
        Uncorrelated(0.0, p)
    with pytest.raises(BadInput, match=r"duplicate must lie in \[0, 1\]"):
        Network(duplicate=p)
    with pytest.raises(BadInput, match=r"reorder must lie in \[0, 1\]"):
        Network(reorder=p)


@pytest.mark.parametrize("p, collision", [(0.1, 0.0), (0.0, 0.1)])
def test_a_network_that_loses_nothing_has_no_probability_of_loss(
    p: float, collision: float
) -> None:
    with pytest.raises(BadInput, match="'none' loses nothing"):
        parse_loss("none", p, collision)

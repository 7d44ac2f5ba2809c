"""Delays, duplicates, reordering and order on a link."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from random import Random

import pytest

from hustings.core.errors import BadInput
from hustings.sim.delay import Delay, Fixed, Lognormal, PerLink, Uniform
from hustings.sim.network import Network
from hustings.sim.queue import on_grid
from tests.unit.sim.laws import believable
from tests.unit.sim.worlds import Stage, cry, ping

MANY = 3_000


def arrivals(network: Network, spacing: float = 10.0, count: int = MANY) -> list[tuple[int, float]]:
    """(number, time under way) of messages from 1 to 2, in the order of their arrival."""
    stage = Stage(2, network=network, seed=11)
    for number in range(count):
        stage.let(spacing * number, 1, ping(number, 2))
    numbers = [(int(what.split()[1]), at) for at, _, what in stage.played()]
    return [(number, at - on_grid(spacing * number)) for number, at in numbers]


def test_a_fixed_delay_is_fixed() -> None:
    assert {delay for _, delay in arrivals(Network(delay=Fixed(0.75)), count=50)} == {0.75}


def test_uniform_delays_are_uniform() -> None:
    delays = [delay for _, delay in arrivals(Network(delay=Uniform(1.0, 3.0)))]
    assert len(delays) == MANY
    assert all(1.0 <= delay <= 3.0 for delay in delays)
    for quarter in range(4):
        low = 1.0 + quarter / 2
        assert believable(sum(low <= delay < low + 0.5 for delay in delays), MANY, 0.25)


def test_lognormal_delays_have_their_median_and_spread() -> None:
    law = Lognormal(2.0, 0.5)
    delays = [delay for _, delay in arrivals(Network(delay=law))]
    assert believable(sum(delay < 2.0 for delay in delays), MANY, 0.5)
    one_sigma = sum(2.0 * math.exp(-0.5) < delay < 2.0 * math.exp(0.5) for delay in delays)
    assert believable(one_sigma, MANY, math.erf(1 / math.sqrt(2)))
    assert believable(sum(delay > law.bound for delay in delays), MANY, 0.001)


def test_a_lognormal_delay_without_spread_is_fixed() -> None:
    assert Lognormal(2.0, 0.0).draw(Random(1), 1, 2) == Lognormal(2.0, 0.0).bound == 2.0


def test_each_link_may_have_its_delay_in_each_direction() -> None:
    delay = PerLink({(1, 2): 3.0, (2, 1): 0.5}, 1.0)
    stage = Stage(3, network=Network(delay=delay))
    for member in (1, 2, 3):
        cry(member)(stage.members[member])
    assert sorted(stage.played()) == [
        (0.5, 1, "PING 2 from 2"),
        (1.0, 1, "PING 3 from 3"),
        (1.0, 2, "PING 3 from 3"),
        (1.0, 3, "PING 1 from 1"),
        (1.0, 3, "PING 2 from 2"),
        (3.0, 2, "PING 1 from 1"),
    ]


@pytest.mark.parametrize(
    "delay, bound",
    [
        (Fixed(0.5), 0.5),
        (Uniform(1.0, 3.0), 3.0),
        (PerLink({(1, 2): 4.0}, 1.0), 4.0),
        (PerLink({(1, 2): 0.5}, 1.0), 1.0),
        (PerLink(), 1.0),
    ],
)
def test_a_bound_is_what_timers_may_rely_on(delay: Delay, bound: float) -> None:
    assert delay.bound == bound


def test_every_receiver_of_a_multicast_has_a_delay_of_its_own() -> None:
    stage = Stage(30, network=Network(delay=Uniform(1.0, 2.0)))
    cry(1)(stage.members[1])
    instants = [at for at, _, _ in stage.played()]
    assert len(set(instants)) == 29


# Copies


@pytest.mark.parametrize("duplicate", [0.0, 0.2, 1.0])
def test_messages_are_doubled_with_the_given_probability(duplicate: float) -> None:
    copies = Counter(number for number, _ in arrivals(Network(duplicate=duplicate)))
    assert set(copies) == set(range(MANY))
    assert set(copies.values()) <= {1, 2}
    assert believable(sum(many == 2 for many in copies.values()), MANY, duplicate)


def test_a_second_copy_has_a_delay_of_its_own() -> None:
    network = Network(delay=Uniform(1.0, 2.0), duplicate=1.0)
    delays: dict[int, list[float]] = {}
    for number, delay in arrivals(network):
        delays.setdefault(number, []).append(delay)
    assert all(len(set(pair)) == 2 for pair in delays.values())


def test_a_doubled_message_was_sent_once_and_a_multicast_is_doubled_for_each() -> None:
    stage = Stage(3, network=Network(duplicate=1.0))
    cry(1)(stage.members[1])
    assert [who for _, who, _ in stage.played()] == [2, 2, 3, 3]
    assert sum(stage.sent.values()) == 1


# Order


def test_messages_are_held_back_with_the_given_probability_and_not_for_longer() -> None:
    held = [d for _, d in arrivals(Network(reorder=0.3, hold_back=2.0)) if d > 1.0]
    assert believable(len(held), MANY, 0.3)
    assert max(held) <= 3.0
    assert believable(sum(delay < 2.0 for delay in held), len(held), 0.5)


def disorder(network: Network) -> int:
    """How many messages that leave 0.25 apart are overtaken by the next one."""
    numbers = [number for number, _ in arrivals(network, spacing=0.25, count=400)]
    return sum(one > other for one, other in pairwise(numbers))


def test_a_message_that_is_held_back_is_overtaken() -> None:
    assert disorder(Network()) == 0
    assert disorder(Network(reorder=0.3, hold_back=2.0)) > 20


def test_a_link_that_keeps_order_delays_who_would_overtake() -> None:
    assert disorder(Network(delay=Uniform(0.5, 2.5))) > 20
    assert disorder(Network(delay=Uniform(0.5, 2.5), fifo=True)) == 0
    late = [delay for _, delay in arrivals(Network(delay=Uniform(0.5, 2.5), fifo=True), 0.25, 400)]
    assert all(0.5 <= delay <= 2.5 for delay in late)


def test_only_messages_of_one_link_keep_their_order() -> None:
    delay = PerLink({(1, 3): 5.0, (2, 3): 1.0})
    stage = Stage(3, network=Network(delay=delay, fifo=True))
    ping(1, 3)(stage.members[1])
    ping(2, 3)(stage.members[2])
    assert [what for _, _, what in stage.played()] == ["PING 2 from 2", "PING 1 from 1"]


def test_copies_keep_the_order_of_a_link_too() -> None:
    network = Network(delay=Uniform(0.5, 2.5), fifo=True, duplicate=0.5)
    numbers = [number for number, _ in arrivals(network, spacing=0.25, count=400)]
    assert numbers == sorted(numbers)
    assert len(numbers) > 500


# What is refused


@pytest.mark.parametrize("wrong", [-1.0, math.inf, math.nan])
def test_a_delay_that_is_no_time_is_refused(wrong: float) -> None:
    for make in (
        lambda: Fixed(wrong),
        lambda: Uniform(wrong, 1.0),
        lambda: Uniform(0.0, wrong),
        lambda: Lognormal(wrong, 1.0),
        lambda: Lognormal(1.0, wrong),
        lambda: PerLink({(1, 2): wrong}),
        lambda: PerLink({}, wrong),
        lambda: Network(hold_back=wrong),
    ):
        with pytest.raises(BadInput, match="must be a finite time >= 0"):
            make()


def test_contradictions_are_refused() -> None:
    with pytest.raises(BadInput, match="LOW <= HIGH"):
        Uniform(2.0, 1.0)
    with pytest.raises(BadInput, match="median must be > 0"):
        Lognormal(0.0, 1.0)
    with pytest.raises(BadInput, match="needs a hold-back time"):
        Network(reorder=0.5)
    with pytest.raises(BadInput, match="both reorder and keep links in order"):
        Network(reorder=0.5, hold_back=1.0, fifo=True)


def test_a_spread_beyond_all_numbers_is_refused_with_a_sentence() -> None:
    with pytest.raises(BadInput, match="sigma"):
        Lognormal(1.0, 1000.0)

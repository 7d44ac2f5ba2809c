"""Exact chances, beside the processes that they are about, drawn."""

from __future__ import annotations

import math
from random import Random

import pytest

from hustings.lab.plans.chances import (
    all_lost,
    late,
    longest_delay,
    longest_pause,
    mean_pause,
    missed,
    pause_tail,
    shortest,
    tail,
    unanswered,
)
from hustings.sim.delay import Delay, Exponential, Fixed, Lognormal, PerLink, Uniform
from hustings.sim.environment import parse_environment
from hustings.sim.loss import Burst, Loss, NoLoss, Uncorrelated
from hustings.sim.pauses import Pauses

DRAWS = 200_000
LAWS = [Uniform(1.0, 3.0), Exponential(0.7), Lognormal(0.5, 0.8), Lognormal(0.5, 0.0)]
LOSSES = [
    Uncorrelated(0.3),
    Burst(0.2, 4.0),
    Burst(0.1, 5.0, 0.6),
    Burst(0.45, 1.5),
]


class Odd(Delay):
    """A law that is not one of ours: half of its times are 1, and half are 2."""

    name = "odd"

    def draw(self, rng: Random, sender: int, receiver: int) -> float:
        return float(rng.randint(1, 2))

    @property
    def bound(self) -> float:
        return 2.0


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("time", [0.0, 0.4, 0.9, 1.7, 2.9])
def test_the_tail_of_a_law(law: Delay, time: float) -> None:
    chance = Random(7)
    longer = sum(law.draw(chance, 1, 2) > time for _ in range(DRAWS)) / DRAWS
    assert tail(law, time) == pytest.approx(longer, abs=0.004)


def test_tails_of_other_laws() -> None:
    assert tail(Odd(), 1.5) == pytest.approx(0.5, abs=0.03)
    assert (tail(Odd(), 2.0), tail(Odd(), 0.5)) == (0.0, 1.0)
    links = PerLink({(1, 2): 5.0}, 1.0)
    assert (tail(links, 4.0), shortest(links), shortest(Odd())) == (1.0, 1.0, 0.0)
    sites = parse_environment(
        '[sites]\na = 2\nb = 2\n[delay]\nwithin = "1ms"\nbetween."a,b" = "uniform:10ms,30ms"\n'
    )
    assert tail(sites.network.delay, 0.02) == pytest.approx(0.5)
    assert shortest(sites.network.delay) == 0.001
    assert longest_delay(sites) == 0.03


@pytest.mark.parametrize("law", [Exponential(0.1), Uniform(0.0, 1.0), Lognormal(0.05, 1.0)])
@pytest.mark.parametrize("longest", [0.3, math.inf])
def test_the_mean_of_pauses(law: Delay, longest: float) -> None:
    pauses, chance = Pauses(1.0, law, longest), Random(3)
    drawn = sum(pauses.draw(chance, 1) for _ in range(DRAWS)) / DRAWS
    assert mean_pause(pauses) == pytest.approx(drawn, rel=0.02)


def test_no_pause_is_longer_than_the_longest() -> None:
    pauses = Pauses(1.0, Exponential(0.1), 0.8)
    assert pause_tail(pauses, 0.8) == 0.0
    assert pause_tail(pauses, 0.79) == pytest.approx(math.exp(-7.9))
    assert longest_pause(pauses) == pytest.approx(0.1 * math.log(1000.0))
    assert longest_pause(Pauses(1.0, Uniform(0.0, 5.0), 0.8)) == 0.8
    assert (longest_pause(None), mean_pause(None), pause_tail(None, 0.0)) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_silence_begins(loss: Loss, count: int) -> None:
    """One message arrives, and the next `count` are lost, beside a long chain of messages."""
    fate = loss.fate(Random(11))
    lost = [fate(0.0, 1, 2) for _ in range(DRAWS)]
    seen = sum(
        not lost[at] and all(lost[at + 1 : at + 1 + count]) for at in range(DRAWS - count)
    ) / (DRAWS - count)
    assert missed(loss, count) == pytest.approx(seen, abs=0.004 + 0.03 * seen)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("tries, steps", [(1, 1), (2, 1), (2, 3), (4, 1), (3, 2)])
def test_questions_without_an_answer(loss: Loss, tries: int, steps: int) -> None:
    """Each try is a fresh pair of links in its long-run state."""
    chance, runs, failed = Random(5), 40_000, 0
    for _ in range(runs):
        fate = loss.fate(chance)
        none = True
        for turn in range(tries):
            for _ in range(steps - 1 if turn else 0):
                fate(0.0, 1, 2)  # other messages on the same link
            there, back = fate(0.0, 1, 2), fate(0.0, 2, 1)
            none = none and (there or back)
        failed += none
    assert unanswered(loss, tries, steps) == pytest.approx(failed / runs, abs=0.006)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("count, steps", [(1, 1), (2, 1), (3, 2), (4, 3)])
def test_messages_that_are_all_lost(loss: Loss, count: int, steps: int) -> None:
    fate = loss.fate(Random(13))
    lost = [fate(0.0, 1, 2) for _ in range(DRAWS)]
    last = DRAWS - count * steps
    seen = sum(all(lost[at : at + count * steps : steps]) for at in range(last)) / last
    assert all_lost(loss, count, steps) == pytest.approx(seen, abs=0.003 + 0.03 * seen)


def test_without_loss_nothing_is_missed() -> None:
    assert missed(NoLoss(), 1) == 0.0
    assert missed(NoLoss(), 0) == 1.0
    assert unanswered(NoLoss(), 1) == 0.0
    assert (all_lost(NoLoss(), 1), all_lost(NoLoss(), 0)) == (0.0, 1.0)


def test_a_message_that_is_held_back() -> None:
    held = parse_environment('[delay]\nwithin = "10ms"\nreorder = "25%"\nhold-back = "40ms"\n')
    assert longest_delay(held) == pytest.approx(0.05)
    assert late(held, 0.02) == pytest.approx(0.25)
    assert late(held, 0.06) == 0.0
    assert late(parse_environment('[delay]\nwithin = "10ms"\n'), 0.005) == 1.0
    assert isinstance(held.network.delay, Fixed)

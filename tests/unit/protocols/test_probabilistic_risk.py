"""The bound on two leaders: against exact values of the event it describes, and against runs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import comb

import pytest

from hustings.core.choice import Candidate, LowestId, MemberId
from hustings.core.outcome import Elected, Outcome
from hustings.core.streams import Stream, derive
from hustings.protocols.probabilistic.election import Probabilistic
from hustings.protocols.probabilistic.risk import two_leaders
from hustings.protocols.probabilistic.settings import ProbabilisticConfig
from hustings.protocols.probabilistic.strategy import Strategy, strategy
from hustings.sim.loss import Uncorrelated
from hustings.sim.member import SimContext
from hustings.sim.network import Network
from hustings.sim.world import World

PAPER = strategy("paper", None, None, None)
ONCE = strategy("7", None, None, None)


def splits(finals: int, most: int | None = None) -> Iterator[tuple[int, ...]]:
    """In how many parts, each not larger than the one before, finals may name leaders."""
    if finals == 0:
        yield ()
        return
    for first in range(min(finals, most or finals), 0, -1):
        for rest in splits(finals - first, first):
            yield (first, *rest)


def pair(named: tuple[int, ...], p: float) -> float:
    """The probability that some two of the leaders named declare themselves, exactly.

    Each hears each final but for its losses, on its own: it declares itself if it hears at least
    one that names it and none that names another.
    """
    finals = sum(named)
    none, one = 1.0, 0.0
    for mine in named:
        declares = p ** (finals - mine) * (1 - p**mine)
        none, one = none * (1 - declares), one * (1 - declares) + none * declares
    return 1.0 - none - one


def worst_round(members: int, share: float, p: float) -> float:
    """As unlucky as relay members may be: for each number of finals the worst way to disagree."""
    speaks = share * (1 - p)
    return sum(
        comb(members, finals)
        * speaks**finals
        * (1 - speaks) ** (members - finals)
        * max(pair(named, p) for named in splits(finals))
        for finals in range(members + 1)
    )


@pytest.mark.parametrize("p", [0.01, 0.1, 0.3, 0.5, 0.7])
@pytest.mark.parametrize("members", [2, 5, 9, 16])
def test_in_one_round_no_disagreement_is_more_likely_than_the_bound(members: int, p: float) -> None:
    share = min(1.0, 7 / members)
    assert worst_round(members, share, p) <= two_leaders(ONCE, members, p, 0.0) * (1 + 1e-9)


def test_the_bound_is_near_what_may_happen() -> None:
    """Within a factor of three of the worst case where losses are rare: it is no empty bound."""
    for members in (9, 16):
        for p in (0.001, 0.01):
            exact = worst_round(members, 7 / members, p)
            assert two_leaders(ONCE, members, p, 0.0) < 3 * exact


def summed(chain: Strategy, members: int, p: float, p_fail: float) -> float:
    """The bound term by term: over rounds, numbers of finals, and numbers of leaders named."""
    pairs = max(named * (named - 1) / 2 * p ** (named - 2) for named in range(2, 300))
    total = 0.0
    for number in range(1, chain.rounds + 1):
        speaks = min(1.0, chain.K(number, members) / members) * (1 - p) * (1 - p_fail)
        for finals in range(members + 1):
            chance = comb(members, finals) * speaks**finals * (1 - speaks) ** (members - finals)
            total += chance * pairs * p ** max(finals, 2)
            if number > 1:  # a leader of yesterday that hears neither the Init nor a final
                total += chance * p * p**finals
    return min(1.0, total)


@pytest.mark.parametrize("p", [0.001, 0.05, 0.3, 0.5, 0.8])
@pytest.mark.parametrize("chain", [PAPER, ONCE, strategy("2,5,40", None, None, None)])
def test_it_is_the_sum_that_it_says(chain: Strategy, p: float) -> None:
    for members in (2, 11, 60):
        for p_fail in (0.0, 0.2):
            expected = summed(chain, members, p, p_fail)
            assert two_leaders(chain, members, p, p_fail) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("chain", [PAPER, ONCE, strategy("3,9,N", None, None, None)])
def test_it_grows_with_the_loss(chain: Strategy) -> None:
    losses = [0.0, 1e-9, 1e-4, 0.001, 0.01, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.99, 0.9999, 1.0]
    risks = [two_leaders(chain, 2000, p, 0.001) for p in losses]
    assert all(low <= high for low, high in pairwise(risks))
    assert (risks[0], risks[-1]) == (0.0, 1.0)


def test_it_falls_as_k_grows_and_grows_with_crashes() -> None:
    for p in (0.001, 0.1, 0.3):
        falling = [
            two_leaders(strategy("paper", K, None, None), 2000, p, 0.0) for K in (3, 5, 7, 14, 28)
        ]
        assert all(high > low for high, low in pairwise(falling))
        rising = [two_leaders(PAPER, 2000, p, p_fail) for p_fail in (0.0, 0.01, 0.1, 0.5, 1.0)]
        assert all(low < high for low, high in pairwise(rising))


def test_it_hardly_depends_on_the_size_of_a_large_group() -> None:
    for p in (0.001, 0.3):
        small, large = (two_leaders(PAPER, size, p, 0.001) for size in (1e3, 1e9))
        assert small == pytest.approx(large, rel=0.05)


def test_one_alone_is_not_two() -> None:
    assert two_leaders(PAPER, 1, 0.3, 0.0) == 0.0
    assert two_leaders(PAPER, 2, 0.3, 0.0) > 0.0


@pytest.mark.parametrize("p", [0.001, 0.3, 0.999999])
@pytest.mark.parametrize("members", [1, 2, 7, 1e12])
def test_it_is_a_probability_for_every_group(members: float, p: float) -> None:
    for p_fail in (0.0, 1.0):
        assert 0.0 <= two_leaders(PAPER, members, p, p_fail) <= 1.0


# Runs of the protocol itself


class Leaders:
    """Whether there was an instant at whose end two live members held themselves."""

    def __init__(self) -> None:
        self.now: dict[MemberId, float] = {}
        self.since = 0.0
        self.twice = False

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        if world.now > self.since:
            self.settle()
            self.since = world.now
        if isinstance(outcome, Elected) and outcome.leader == member.id:
            self.now[member.id] = world.now
        else:
            self.now.pop(member.id, None)

    def changed(self, world: World, member: SimContext) -> None:
        """Nobody crashes here."""

    def settle(self) -> None:
        self.twice = self.twice or len(self.now) > 1


def had_two(seed: int, members: int, p: float) -> tuple[bool, float]:
    """One election with views of half the group; and the risk that was declared."""
    stream = Stream(derive(seed, "risk"))
    config = ProbabilisticConfig.parse({"N": members, "K": 3, "p_mcastl": p, "p_ucastl": p})
    ids = range(1, members + 1)
    views = {me: [other for other in ids if other == me or stream.random() < 0.5] for me in ids}
    world = World(
        lambda: Probabilistic(config, LowestId()),
        [Candidate(me) for me in ids],
        seed=seed,
        network=Network(loss=Uncorrelated(p)),
        views=views,
    )
    leaders = Leaders()
    world.watch(leaders)
    world.start()
    world.tell(world.members[1 + stream.below(members)], "call")
    world.run(max_events=100_000)
    leaders.settle()
    risk = two_leaders(config.plan, float(members), p, 0.0)
    for member in world.live():
        if isinstance(member.outcome, Elected):
            assert member.outcome.risk == risk
    return leaders.twice, risk


def test_runs_have_two_leaders_no_more_often_than_said() -> None:
    """One-sided at 4 standard errors of the bound: level below 1e-4."""
    runs = 600
    happened = 0
    risk = 1.0
    for seed in range(runs):
        twice, risk = had_two(seed, 12, 0.4)
        happened += twice
    assert risk < 0.9
    assert happened > 0
    assert happened / runs < risk + 4 * (risk * (1 - risk) / runs) ** 0.5

"""Losses in bursts: the chain of each link against the formulas of Gilbert and Elliott."""

from __future__ import annotations

from itertools import groupby, pairwise
from math import sqrt
from random import Random

import pytest

from hustings.core.errors import BadInput
from hustings.sim.announcing import warm_up
from hustings.sim.delay import Delay, Fixed, Uniform
from hustings.sim.loss import Burst, Uncorrelated, parse_loss
from hustings.sim.network import Network
from tests.unit.sim.worlds import Stage, cry, ping

MANY = 60_000
SIGMAS = 5.0  # a correct program strays that far once in a million seeds


def series(loss: Burst, number: int = MANY) -> list[bool]:
    """Whether each message of one link was lost."""
    fate = loss.fate(Random(7))
    return [fate(float(at), 1, 2) for at in range(number)]


@pytest.mark.parametrize("p, length", [(0.1, 5.0), (0.3, 2.0), (0.5, 20.0), (0.02, 1.0)])
def test_the_share_of_lost_messages_is_p(p: float, length: float) -> None:
    """Messages of one link depend on each other: the variance grows by (1 + r) / (1 - r)."""
    loss = Burst(p, length)
    r = 1.0 - loss.leave - loss.enter  # how much of a deviation is left at the next message
    spread = sqrt(p * (1 - p) / MANY * (1 + r) / (1 - r))
    assert sum(series(loss)) / MANY == pytest.approx(p, abs=SIGMAS * spread)


@pytest.mark.parametrize("p, length", [(0.1, 5.0), (0.3, 2.0), (0.5, 20.0), (0.02, 1.0)])
def test_the_mean_length_of_a_burst_is_as_given(p: float, length: float) -> None:
    bursts = [len(list(run)) for lost, run in groupby(series(Burst(p, length))) if lost]
    spread = sqrt(length * (length - 1) / len(bursts))  # of a geometric law
    mean = sum(bursts) / len(bursts)
    assert mean == pytest.approx(length, abs=SIGMAS * spread + 1e-9)


def test_a_bad_link_may_lose_only_some_of_its_messages() -> None:
    loss = Burst(0.1, 50.0, bad=0.25)
    assert loss.share == pytest.approx(0.4)
    fates = series(loss)
    assert sum(fates) / MANY == pytest.approx(0.1, abs=0.02)
    after_a_loss = [later for one, later in pairwise(fates) if one]
    again = sum(after_a_loss) / len(after_a_loss)
    assert again == pytest.approx(loss.again(1), abs=0.03)


def test_each_link_has_a_state_of_its_own() -> None:
    fate = Burst(0.5, 1e6).fate(Random(3))  # as good as for ever
    first = {link: fate(0.0, *link) for link in [(one, 9) for one in range(200)]}
    later = {link: fate(1.0, *link) for link in first}
    assert first == later
    assert 60 < sum(first.values()) < 140


DELAYS: dict[str, Delay] = {"fixed": Fixed(0.5), "uniform": Uniform(0.25, 0.75)}


@pytest.mark.parametrize("delay", list(DELAYS))
def test_messages_to_one_and_to_all_share_the_state_of_a_link(delay: str) -> None:
    network = Network(delay=DELAYS[delay], loss=Burst(0.5, 1e6))
    stage = Stage(40, network=network, seed=5)
    for number in range(4):
        stage.let(float(number), 1, ping(number, *range(2, 41)))
        stage.let(float(number) + 0.5, 1, cry(number))
    stage.played()
    heard = [len(stage.heard(member)) for member in range(2, 41)]
    assert set(heard) == {0, 8}
    assert stage.lost["loss"] == 8 * heard.count(0)


def test_the_way_of_a_multicast_is_decided_for_each_receiver() -> None:
    network = Network(delay=Fixed(0.5), multicast_loss=Burst(0.3, 1.0))
    assert not network.plain
    stage = Stage(4, network=network)
    for number in range(2_000):
        stage.let(float(number), 1, cry(number))
        stage.let(float(number), 1, ping(number, 2))
    stage.played()
    unicasts = 2_000  # which lose nothing
    for member in (2, 3, 4):
        own = len(stage.heard(member)) - (unicasts if member == 2 else 0)
        assert own / 2_000 == pytest.approx(0.7, abs=0.05)


def test_a_group_warms_up_for_longer_where_losses_follow_each_other() -> None:
    assert warm_up(Burst(0.4, 10.0), 50) > 5 * warm_up(Uncorrelated(0.4), 50)


@pytest.mark.parametrize(
    "settings, sentence",
    [
        ({"length": "0.5"}, "length of a burst must be >= 1"),
        ({"length": "soon"}, "loss setting length must be a number"),
        ({"bad": "2"}, r"bad must lie in \[0, 1\]"),
        ({"bad": "0.05"}, "lose at most"),
        ({"size": "2"}, "unknown loss setting 'size'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        parse_loss("burst", 0.1, settings=settings)


def test_options_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(BadInput, match=r"bursts of 2 messages lose at most 0\.667"):
        parse_loss("burst", 0.9, settings={"length": "2"})
    with pytest.raises(BadInput, match="--collision does not go with loss model 'burst'"):
        parse_loss("burst", 0.1, 0.1)
    with pytest.raises(BadInput, match="'correlated' has no settings"):
        parse_loss("correlated", 0.1, settings={"length": "2"})
    with pytest.raises(BadInput, match="--loss-set goes with --loss-model"):
        parse_loss(None, 0.1, settings={"length": "2"})

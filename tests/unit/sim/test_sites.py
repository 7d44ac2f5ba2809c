"""Members at several sites: who is where, and how messages fare between the sites."""

from __future__ import annotations

from random import Random

import pytest

from hustings.core.errors import BadInput
from hustings.lab import simulate
from hustings.lab.options import Options
from hustings.sim.delay import Fixed, Uniform
from hustings.sim.loss import Burst, Correlated, NoLoss, Uncorrelated
from hustings.sim.network import Network
from hustings.sim.sites import SiteLoss, Sites, parse_sites, site_delay, site_loss
from tests.unit.sim.laws import believable
from tests.unit.sim.worlds import Stage, cry, ping

TWO = parse_sites("a=2,b=2")
THREE = parse_sites("a=1,b=2,c=1")


def test_members_are_placed_in_the_order_of_their_ids() -> None:
    assert [THREE.of(member) for member in (1, 2, 3, 4)] == [0, 1, 1, 2]
    assert THREE.of(5) == 2  # one that joins
    assert THREE.of(0) == 0  # the guard
    assert THREE.members == 4


def test_shares_of_links_add_up() -> None:
    pairs = [(one, other) for one in range(3) for other in range(3)]
    assert sum(THREE.share(pair) for pair in pairs) == pytest.approx(1.0)
    assert TWO.share((0, 1)) == pytest.approx(4 / 12)
    assert TWO.share((0, 0)) == pytest.approx(2 / 12)


def test_messages_take_the_delay_of_their_pair_of_sites() -> None:
    delay = site_delay(TWO, Fixed(0.5), ["a,b=3"])
    stage = Stage(4, network=Network(delay=delay))
    cry(1)(stage.members[1])
    ping(2, 1, 3)(stage.members[4])
    assert sorted(stage.played()) == [
        (0.5, 2, "PING 1 from 1"),
        (0.5, 3, "PING 2 from 4"),
        (3.0, 1, "PING 2 from 4"),
        (3.0, 3, "PING 1 from 1"),
        (3.0, 4, "PING 1 from 1"),
    ]


def test_each_direction_may_have_a_delay_of_its_own() -> None:
    delay = site_delay(TWO, Fixed(0.5), ["a>b=3", "b>a=uniform:1,2", "b,b=0.25"])
    rng = Random(1)
    assert delay.draw(rng, 1, 3) == 3.0
    assert 1.0 <= delay.draw(rng, 3, 1) <= 2.0
    assert delay.draw(rng, 3, 4) == 0.25
    assert delay.draw(rng, 1, 2) == 0.5
    assert delay.bound == 3.0
    assert delay.between[1, 0] == Uniform(1.0, 2.0)


def test_messages_get_lost_as_their_pair_of_sites_says() -> None:
    loss = site_loss(TWO, Uncorrelated(0.1), ["a,b=0.5"])
    assert loss.p == pytest.approx((4 * 0.1 + 8 * 0.5) / 12)
    stage = Stage(4, network=Network(loss=loss))
    for number in range(2_000):
        stage.let(float(number), 1, cry(number))
    stage.played()
    assert believable(len(stage.heard(2)), 2_000, 0.9)
    assert believable(len(stage.heard(3)), 2_000, 0.5)
    assert believable(len(stage.heard(4)), 2_000, 0.5)


def test_the_loss_between_sites_is_of_the_model_within_them() -> None:
    within = Burst(0.1, 4.0)
    loss = site_loss(TWO, within, ["a,b=0.3"])
    assert isinstance(loss, SiteLoss)
    assert loss.between == {(0, 1): Burst(0.3, 4.0), (1, 0): Burst(0.3, 4.0)}
    only = site_loss(TWO, NoLoss(), ["a>b=0.3"])
    assert isinstance(only, SiteLoss)
    assert only.between == {(0, 1): Uncorrelated(0.3)}
    assert site_loss(TWO, within, []) is within


def test_what_sites_cannot_have_is_refused() -> None:
    with pytest.raises(BadInput, match="no delay is given from site a to site c"):
        site_delay(THREE, Fixed(1.0), ["a,b=1", "b,c=1"])
    with pytest.raises(BadInput, match="unknown site 'd'"):
        site_delay(TWO, Fixed(1.0), ["a,d=1"])
    with pytest.raises(BadInput, match="given twice"):
        site_delay(TWO, Fixed(1.0), ["a,b=1", "b>a=2"])
    with pytest.raises(BadInput, match="write A,B=DELAY"):
        site_delay(TWO, Fixed(1.0), ["a-b"])
    with pytest.raises(BadInput, match="goes with no correlated loss"):
        site_loss(TWO, Correlated(0.1), ["a,b=0.3"])
    with pytest.raises(BadInput, match="goes with no collisions"):
        site_loss(TWO, Uncorrelated(0.1, 0.1), ["a,b=0.3"])
    with pytest.raises(BadInput, match="drop p_ucastl"):
        site_loss(TWO, Uncorrelated(0.1), ["a,b=0.3"]).with_p(0.2)


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("a=3", "at least two"),
        ("a=3,a=2", "name of its own"),
        ("a=3,b=0", "at least one member"),
        ("a=3,b", "write NAME=MEMBERS"),
    ],
)
def test_sites_that_make_no_sense_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        parse_sites(text)


def test_a_group_at_sites_is_as_large_as_they_are() -> None:
    options = Options.of(sites={"a": 3, "b": 2}, between={("a", "b"): 0.4}, delay=0.1)
    assert options.words() == ["--delay=0.1", "--sites=a=3,b=2", "--between=a,b=0.4"]
    assert options.size == 5
    study = simulate("bully", sites={"a": 3, "b": 2}, between={("a", "b"): 0.4}, delay=0.1)
    assert study.experiment.members == 5
    assert study.experiment.config.delta == 0.4
    with pytest.raises(BadInput, match="--sites places 5 members, and the group has 6"):
        simulate("bully", members=6, sites="a=3,b=2", between=["a,b=1"])
    with pytest.raises(BadInput, match="--between-loss go with --sites"):
        simulate("bully", between=["a,b=1"])
    with pytest.raises(BadInput, match="--link does not go with --sites"):
        simulate("bully", sites="a=3,b=2", between=["a,b=1"], links=["1>2=3"])


def test_sites_print_as_what_they_are() -> None:
    assert repr(Sites(("a", "b"), (1, 2))) == "Sites(names=('a', 'b'), sizes=(1, 2))"

"""Messages to one member and messages to the group may get lost with different probabilities."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hustings.core.errors import BadInput
from hustings.sim.delay import Delay, Fixed, Uniform
from hustings.sim.loss import Correlated, Loss, NoLoss, Uncorrelated
from hustings.sim.member import Status
from hustings.sim.network import Network
from hustings.sim.trace import Header, Tracer
from tests.unit.sim.laws import believable
from tests.unit.sim.worlds import Stage, cry, ping

MESSAGES = 3_000
DELAYS: dict[str, Delay] = {
    "fast": Fixed(0.5),
    "careful": Fixed(0.5),
    "slow": Uniform(0.25, 0.75),
}


def uncorrelated(p: float, collision: float = 0.0) -> Loss:
    return Uncorrelated(p, collision)


def stage_of(way: str, network: Network) -> Stage:
    return Stage(4, network=replace(network, delay=DELAYS[way]), careful=way == "careful")


def heard(stage: Stage) -> tuple[int, int]:
    """How many unicasts to member 2 and how many receptions of multicasts."""
    for number in range(MESSAGES):
        stage.let(float(number), 1, ping(2 * number, 2))
        stage.let(float(number), 3, cry(2 * number + 1))
    unicasts = multicasts = 0
    for _, _, what in stage.played():
        if int(what.split()[1]) % 2:
            multicasts += 1
        else:
            unicasts += 1
    return unicasts, multicasts


@pytest.mark.parametrize("way", list(DELAYS))
@pytest.mark.parametrize("one, all_", [(0.3, 0.05), (0.05, 0.3), (0.0, 0.4), (0.4, 0.0)])
def test_each_kind_of_message_has_its_own_loss(way: str, one: float, all_: float) -> None:
    network = Network(loss=uncorrelated(one), multicast_loss=uncorrelated(all_))
    unicasts, multicasts = heard(stage_of(way, network))
    assert believable(unicasts, MESSAGES, 1 - one)
    assert believable(multicasts, 3 * MESSAGES, 1 - all_)


@pytest.mark.parametrize("way", list(DELAYS))
def test_only_multicasts_may_be_lost_and_all_at_once(way: str) -> None:
    network = Network(multicast_loss=Correlated(0.3))
    unicasts, multicasts = heard(stage_of(way, network))
    assert unicasts == MESSAGES
    assert multicasts % 3 == 0
    assert believable(multicasts // 3, MESSAGES, 0.7)


def test_the_loss_of_multicasts_is_that_of_all_messages_unless_given() -> None:
    network = Network(loss=uncorrelated(0.3))
    assert network.multicasts is network.loss
    assert replace(network, multicast_loss=NoLoss()).multicasts == NoLoss()
    same = replace(network, multicast_loss=uncorrelated(0.3))
    assert stage_of("fast", same).network.plain
    assert heard(stage_of("fast", same)) == heard(stage_of("fast", network))


def test_fast_and_careful_ways_lose_the_same() -> None:
    network = Network(loss=uncorrelated(0.2), multicast_loss=uncorrelated(0.6))
    stages = [stage_of(way, network) for way in ("fast", "careful")]
    assert heard(stages[0]) == heard(stages[1])
    assert stages[0].journal == stages[1].journal
    assert stages[0].lost == stages[1].lost


def test_a_collision_of_multicasts_is_theirs() -> None:
    """With two messages always under way at once, a multicast meets the other one."""
    network = Network(multicast_loss=uncorrelated(0.1, 0.5))
    assert not network.plain
    unicasts, multicasts = heard(stage_of("fast", network))
    assert unicasts == MESSAGES
    assert believable(multicasts, 3 * MESSAGES, 0.45)


def test_what_is_no_probability_is_refused() -> None:
    with pytest.raises(BadInput, match=r"loss must lie in \[0, 1\]"):
        Network(multicast_loss=uncorrelated(1.5))


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("gone", [Status.CRASHED, Status.PAUSED])
@pytest.mark.parametrize("way", list(DELAYS))
def test_one_coin_for_each_receiver_also_where_somebody_is_down(
    way: str, gone: Status, traced: bool
) -> None:
    """Who is down costs nobody else a second toss, and who stands still has one of its own."""
    network = Network(loss=uncorrelated(0.4), delay=DELAYS[way])
    header = Header(protocol="chat", members=[1, 2, 3, 4], seed=0)
    stage = Stage(
        4,
        network=network,
        careful=way == "careful",
        tracer=Tracer(header) if traced else None,
    )
    down = stage.members[4]
    if gone is Status.PAUSED:
        stage.pause(down)
    else:
        stage.change(down, gone)
    for number in range(MESSAGES):
        stage.let(float(number), 1, ping(2 * number, 2))
        stage.let(float(number), 3, cry(2 * number + 1))
    played = stage.played()
    unicasts = sum(int(what.split()[1]) % 2 == 0 for _, _, what in played)
    by_member = {who: sum(one == who for _, one, _ in played) for who in (1, 2, 4)}
    assert believable(unicasts, MESSAGES, 0.6)
    assert believable(by_member[1], MESSAGES, 0.6)
    assert believable(by_member[2] - unicasts, MESSAGES, 0.6)
    assert by_member[4] == 0
    tossed = 3 * MESSAGES  # one for each unicast and two for each multicast
    if gone is Status.PAUSED:  # its socket still takes what it is sent
        tossed += MESSAGES
        assert believable(len(down.backlog or []), MESSAGES, 0.6)
    assert believable(stage.lost["loss"], tossed, 0.4)

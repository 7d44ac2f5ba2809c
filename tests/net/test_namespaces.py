"""Members in network namespaces, each with its own kernel tables, on a network that goes wrong.

What the ports' own switch cannot show is shown here: connections that hang rather than break,
machines that vanish without a word from their kernel, packets of TCP that are lost or disordered.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from hustings.lab.plans.namespaces import EnvironmentLaws, Switch, obstacle
from hustings.sim.environment import parse_environment
from tests.net.kit.troop import Soldier, Troop
from tests.net.kit.tunnels import Weather

NAMES = ["ada", "ben", "cleo", "dan", "eve"]
# Every change is tried with one family, `make soak` with the others as well.
OTHERS = [pytest.param(name, marks=pytest.mark.soak) for name in ("bully", "probabilistic")]
three_kinds = pytest.mark.parametrize("protocol", ["le-s", *OTHERS])


@pytest.fixture(autouse=True)
def possible() -> None:
    """Namespaces can be had, or the sentence says why not."""
    assert not obstacle(), f"no network namespaces here ({obstacle()}): root or /dev/net/tun needed"


@pytest.fixture
def troop(protocol: str) -> Iterator[Troop]:
    with Troop(tunnels=True, protocol=protocol, seed=1) as made:
        yield made


def switch(troop: Troop) -> Switch:
    assert troop.switch is not None
    return troop.switch


def where(soldiers: list[Soldier]) -> list[str]:
    return [each.tunnel for each in soldiers if each.tunnel is not None]


def complete(troop: Troop) -> tuple[Soldier, list[Soldier]]:
    """A leader, and the others."""
    soldiers = troop.muster(NAMES)
    troop.known(5)
    leader = troop.settled()
    return leader, [each for each in soldiers if each is not leader]


@three_kinds
def test_a_machine_that_vanishes(troop: Troop) -> None:
    """No kernel says anything: neither a refusal nor the end of a stream."""
    leader, rest = complete(troop)
    switch(troop).cut(where([leader]), where(rest))
    troop.kill(leader)
    second = troop.agreed(but=leader.name, among=rest, within=20)
    assert second.term > leader.term


@three_kinds
def test_two_sides_elect_and_become_one_again(troop: Troop) -> None:
    leader, rest = complete(troop)
    near, far = [leader, rest[0]], rest[1:]
    switch(troop).cut(where(near), where(far))
    troop.agreed(but=leader.name, among=far, within=20)
    assert leader.leading
    switch(troop).heal()
    troop.known(5, within=40)
    troop.settled(within=40)


@three_kinds
@pytest.mark.parametrize("mute", [True, False], ids=["unheard", "deaf"])
def test_a_leader_that_is_cut_off_one_way(troop: Troop, mute: bool) -> None:
    leader, rest = complete(troop)
    here, there = where([leader]), where(rest)
    if mute:
        switch(troop).cut(here, there, both=False)
        troop.agreed(but=leader.name, among=rest, within=20)
    else:
        switch(troop).cut(there, here, both=False)
        troop.linger(2.0, lambda: True, "")
    switch(troop).heal()
    troop.known(5, within=40)
    troop.settled(within=40)


@three_kinds
@pytest.mark.parametrize(
    "weather",
    [
        Weather(loss=0.3),
        Weather(delay=0.01, jitter=0.03),
        pytest.param(Weather(copies=0.5), marks=pytest.mark.soak),
        Weather(loss=0.1, copies=0.2, delay=0.002, jitter=0.02),
    ],
    ids=["30 % loss", "delay out of order", "copies", "all at once"],
)
def test_bad_weather(troop: Troop, weather: Weather) -> None:
    switch(troop).laws = weather
    troop.muster(NAMES, within=30)
    troop.known(5, within=30)
    leader = troop.settled(within=30)
    troop.kill(leader)
    troop.agreed(but=leader.name, within=30)
    assert switch(troop).passed > 50


@three_kinds
def test_the_switch_is_what_is_between_them(troop: Troop) -> None:
    """A witness for the tests above: without the switch nobody hears anybody."""
    troop.up("ada")
    switch(troop).laws = Weather(loss=1.0)
    other = troop.up("ben", alone=True)
    troop.wait(lambda: other.leading, "alone, it leads")
    assert troop.ask(other)["members"] == ["ben"]
    assert switch(troop).dropped > 0


# Loopback has no way for multicasts of IPv6, so there is a device for them.
IN_A_NAMESPACE = """
import sys
from tests.net.kit.crowd import Crowd
from tests.net.kit.loops import run
from hustings.lab.plans.namespaces import address, enter
from tests.net.kit.tunnels import add_ipv6

device = enter(address(1))
add_ipv6("fd77::1")

async def story():
    more = {"multicast": sys.argv[1], "seeds": [], "insecure": True}
    async with Crowd(protocol=sys.argv[2], bind="[fd77::1]:0", **more) as crowd:
        await crowd.add_all(["a", "b", "c"])
        await crowd.known(3)
        leader = await crowd.agreed()
        await leader.kill()
        await crowd.agreed(but=leader.name)
        sent = [each.metrics() for each in crowd.open()]
        assert all(each.frames_sent < sum(each.messages_sent.values()) + 5 for each in sent), sent

run(story())
"""


@three_kinds
@pytest.mark.parametrize("group", ["[ff02::77%member]", "[ff05::77]"])
def test_ip_multicast_by_ipv6(protocol: str, group: str) -> None:
    """Members that know no seed find each other, and a message to all is one packet."""
    words = [sys.executable, "-c", IN_A_NAMESPACE, f"ip:{group}:7400", protocol]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


LAWS = """
[delay]
within = "lognormal:15ms,0.3"
[loss]
rate = "4%"
burst = 4
"""


@pytest.mark.parametrize("protocol", ["le-s"])
def test_a_survey_finds_what_the_network_does_and_who_stood_still(troop: Troop) -> None:
    """`hustings measure`: processes that stop are neither losses nor delays of the network."""
    soldiers = troop.muster(["a", "b", "c"])
    observer = troop.up("watch", observer=True)
    tunnels = [each.tunnel or "" for each in [*soldiers, observer]]
    numbers = {tunnel: number for number, tunnel in enumerate(tunnels, 1)}
    switch(troop).laws = EnvironmentLaws(parse_environment(LAWS), numbers, seed=7)
    observer.order("survey", seconds=24.0, rate=5.0)
    for turn in range(6):
        troop.linger(2.5, lambda: True, "")
        troop.pause(soldiers[turn % 3])
        troop.linger(0.5, lambda: True, "")
        troop.resume(soldiers[turn % 3])
    (found,) = troop.wait(lambda: observer.told("surveyed"), "the survey ends", 30.0)
    rows = {row["what"]: row for row in found["rows"]}
    made = parse_environment(found["text"])
    assert 0.0135 <= rows["one way, median"]["value"] <= 0.03  # a busy machine adds to it
    assert rows["lost"]["low"] * 0.8 <= 0.04 <= rows["lost"]["high"] * 1.2
    assert rows["mean burst"]["low"] * 0.8 <= 4.0 <= rows["mean burst"]["high"] * 1.2
    assert made.pauses is not None
    assert 0.45 <= made.pauses.longest <= 1.5
    assert rows["pauses of each member"]["samples"] >= 6, found["text"]
    assert made.members == 3

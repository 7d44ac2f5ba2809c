"""Bounds, beside what members on a virtual clock do, and beside brute force."""

from __future__ import annotations

from itertools import combinations

import pytest

from hustings.lab.plans.bounds import (
    contradictions,
    failover,
    round_trip,
    survives,
    timers,
    traffic,
    two_leaders,
    wrong,
)
from hustings.lab.plans.configuration import Configuration, member_name
from hustings.lab.plans.goals import GroupGoals
from hustings.net.keys import SECRET, Key
from hustings.sim.environment import Environment, parse_environment
from hustings.testing import Group

LAN = '[delay]\nwithin = "1ms"\n'
SITES = (
    "[sites]\na = 3\nb = 2\nc = 2\n"
    + LAN
    + 'between."a,b" = "20ms"\n'
    + ('between."a,c" = "30ms"\nbetween."b,c" = "10ms"\n')
)
PAUSES = '[pauses]\nrate = "6/h"\nlength = "uniform:0s,1s"\nlongest = "800ms"\n'
QUORUM = Configuration(guard="quorum", voters=(1, 2, 3), ttl=4.0)


def environment(text: str = LAN, members: int | None = 5) -> Environment:
    return parse_environment(text if members is None else f"members = {members}\n{text}")


# Failover


@pytest.mark.parametrize(
    "configuration, members",
    [
        (Configuration(), 5),
        (Configuration(settings={"T_A": 0.1, "T_L": 0.5}), 3),
        (Configuration(settings={"delta": 0.01}), 5),
        (QUORUM, 4),
        (QUORUM.but(ttl=2.0), 4),
    ],
)
def test_a_machine_that_ends(configuration: Configuration, members: int) -> None:
    """Ends of leaders at many phases: none takes longer than the high end.

    The low end is one for the 99th percentile, so the longest of all is above it, up to a tenth.
    """
    span, times = failover(configuration, environment(members=members)), []
    for seed in range(8):
        options = configuration.join_options(durable=False)
        with Group(seed=seed, **options) as group:
            for number in range(1, members + 1):
                group.join(member_name(number))
            leader = group.settle()
            group.advance(3.0 + 0.17 * seed)
            begin = group.now
            group.kill(leader, machine=True)
            group.settle()
            times.append(group.now - begin)
    assert 0.9 * span.low < max(times) <= span.high


def test_a_lease_lasts_longer_than_a_patience() -> None:
    place = environment()
    assert failover(QUORUM, place).because == "the lease of the leader that ended"
    assert failover(QUORUM, place).low > failover(Configuration(), place).high
    patient = QUORUM.but(settings={"T_A": 1.0, "T_L": 9.0})
    # Gossip takes the leader for gone before its lease is over.
    assert failover(patient, place).because == "the lease of the leader that ended"
    quiet = patient.but(gossip_settings={"T_fail": 30.0})
    assert failover(quiet, place).because == "patience and election"


def test_the_nearest_majority_answers() -> None:
    place = environment(SITES, None)
    # From a, b and c in turn the second nearest voter is 20, 10 and 10 ms away.
    spread = Configuration(guard="quorum", voters=(1, 4, 6))
    assert round_trip(spread, place) == pytest.approx(4 * 0.02)
    beside = Configuration(guard="quorum", voters=(1, 2, 4))
    assert round_trip(beside, place) == pytest.approx(4 * 0.03)
    assert round_trip(Configuration(guard="etcd"), place) == pytest.approx(2 * 0.03)
    assert round_trip(Configuration(), place) == 0.0


def test_lost_news_of_a_leader_takes_longer_in_a_larger_group() -> None:
    lossy = LAN + '[loss]\nrate = "5%"\n'
    small, large = environment(lossy, 5), environment(lossy, 100)
    assert failover(QUORUM, environment()).high < failover(QUORUM, small).high
    assert failover(QUORUM, small).high < failover(QUORUM, large).high
    repaired = QUORUM.but(multicast="bimodal")
    assert failover(repaired, large).high < failover(QUORUM, large).high
    assert failover(repaired, environment()).high == failover(QUORUM, environment()).high


# Wrong failovers


def test_a_pause_that_no_lease_bears_is_a_wrong_failover() -> None:
    place = environment(LAN + PAUSES)
    narrow = QUORUM.but(ttl=0.6)
    span = wrong(narrow, place)
    window = timers(narrow, place).window
    # Lengths are uniform up to one second and none is longer than 800 ms.
    assert span.low == pytest.approx(6 / 3600 * (1.0 - window))
    assert span.high > span.low
    assert wrong(QUORUM, place).low == 0.0


def test_losses_and_pauses_only_add() -> None:
    calm = environment()
    lossy = environment(LAN + '[loss]\nrate = "5%"\nburst = 5\n')
    paused = environment(LAN + PAUSES)
    for configuration in (Configuration(), QUORUM.but(ttl=2.0)):
        assert wrong(configuration, calm).high == 0.0
        assert wrong(configuration, lossy).high > 0.0
        assert wrong(configuration, paused).high >= wrong(configuration, calm).high


def test_more_voters_and_longer_leases_are_calmer() -> None:
    lossy = environment(LAN + '[loss]\nrate = "1%"\nburst = 5\n', 7)
    five = QUORUM.but(voters=(1, 2, 3, 4, 5))
    assert wrong(five, lossy).high < wrong(QUORUM, lossy).high / 10
    assert wrong(QUORUM.but(ttl=6.0), lossy).high < wrong(QUORUM, lossy).high / 10


def test_pauses_end_leaderships_as_often_as_the_low_end_says() -> None:
    """A leader that stands still for longer than anybody waits, on the virtual clock."""
    place = environment()
    span = timers(Configuration(), place)
    longest = max(span.longest + span.elects, span.stall) + 0.001
    for pause, loses in ((1.05 * longest, True), (0.9 * (span.patience - span.period), False)):
        with Group(seed=4) as group:
            for number in range(1, 6):
                group.join(member_name(number))
            leader = group.settle(steady=2.0)
            group.pause(leader)
            group.advance(pause)
            group.resume(leader)
            assert (group.settle(steady=1.0) != leader) is loses


# Two leaders, survival


def test_two_leaders() -> None:
    place = environment()
    assert two_leaders(QUORUM, place).high == 0.0
    assert two_leaders(Configuration(guard="redis"), place).high > 0.0
    assert 0.0 < two_leaders(Configuration(), place).high < 5.0
    cut = environment(SITES + '[outages]\nrate = "1/year"\nlasts = "1h"\nkind = "cut"\n', None)
    assert two_leaders(Configuration(), cut).high == float("inf")


@pytest.mark.parametrize("count", [3, 5, 7])
def test_survival_of_a_site_by_brute_force(count: int) -> None:
    place, goals = environment(SITES, None), GroupGoals(survive=("site",))
    homes = {number: "aaabbcc"[number - 1] for number in range(1, 8)}
    for voters in combinations(range(1, 8), count):
        lives = all(
            2 * sum(homes[each] != site for each in voters) > count for site in ("a", "b", "c")
        )
        told = survives(Configuration(guard="quorum", voters=voters), place, goals)
        assert (not told) is lives


def test_survival_of_members_and_engines() -> None:
    place = environment()

    def fails(configuration: Configuration, *what: str) -> list[str]:
        return survives(configuration, place, GroupGoals(survive=what))

    assert not fails(QUORUM, "1 members")
    assert fails(QUORUM, "2 members") == ["3 voters survive the loss of 1, not of 2"]
    assert not fails(Configuration(), "4 members")
    assert "nobody would be left" in fails(Configuration(), "5 members")[0]
    assert fails(Configuration(guard="etcd"), "engine")
    assert not fails(QUORUM, "engine")
    assert fails(Configuration(), "site") == ["with one site nobody is left when it fails"]


# Bytes


@pytest.mark.parametrize(
    "configuration, members",
    [
        (Configuration(), 5),
        (Configuration(), 20),
        (Configuration(protocol="bully"), 10),
        (QUORUM, 10),
        (Configuration(multicast="gossip"), 20),
        (Configuration(multicast="bimodal"), 10),
        (Configuration(settings={"T_A": 2.0, "T_L": 8.0}, gossip_settings={"T_gossip": 5.0}), 10),
    ],
)
def test_bytes_at_rest(configuration: Configuration, members: int) -> None:
    """The estimate and the counted bytes differ by less than two fifths."""
    place = environment(members=members)
    options = configuration.join_options(durable=False)
    with Group(
        seed=2, environment=place, key=Key(b"k" * SECRET), insecure=False, **options
    ) as group:
        for number in range(1, members + 1):
            group.join(member_name(number))
        leader = group.settle()
        group.advance(5.0)
        before = {name: sum(group.wire(name)) for name in group.up}
        group.advance(40.0)
        rates = {name: (sum(group.wire(name)) - before[name]) / 40.0 for name in group.up}
    told = traffic(configuration, place)
    led = rates.pop(leader)
    mean = sum(rates.values()) / len(rates)
    assert 0.6 * told.leader < led < 1.4 * told.leader
    assert 0.6 * told.member < mean < 1.4 * told.member


# Contradictions


@pytest.mark.parametrize(
    "configuration, text, words",
    [
        (QUORUM.but(ttl=1.5), LAN + PAUSES, "ttl is 1.5s, less than twice the longest pause"),
        (QUORUM.but(ttl=3.0, grace=0.0), LAN + PAUSES, "raise ttl, or lower the grace"),
        (Configuration(stall_bound=0.5), LAN + PAUSES, "the stall bound is 500ms, and pauses"),
        (Configuration(), LAN + PAUSES, "a leader is missed after 900ms, and pauses take up to"),
        (Configuration(), '[delay]\nwithin = "80ms"\n', "delta is 50ms, and a message takes up to"),
        (Configuration(settings={"T_L": 0.15}), LAN, "before its next sign of life is due"),
        (QUORUM, LAN + '[clocks]\ndrift = "1%"\n', "clocks differ by 0.01, and the lease allows"),
        (QUORUM.but(voters=(1, 2, 9)), LAN, "member 9 is to vote, and there are 5"),
        (Configuration(limits={"members": 4}), LAN, "the limit members is 4, and 5 members"),
    ],
)
def test_contradictions(configuration: Configuration, text: str, words: str) -> None:
    told = contradictions(configuration, environment(text))
    assert any(words in each for each in told), told


def test_voters_in_one_site() -> None:
    place = environment(SITES, None)
    assert contradictions(QUORUM, place) == ["all voters stand at a: without it no member leads"]
    (told,) = contradictions(QUORUM.but(voters=(1, 2, 4)), place)
    assert told == "2 of 3 voters stand at a: without it no member leads"
    assert contradictions(QUORUM.but(voters=(1, 4, 6)), place) == []
    assert contradictions(Configuration(), environment()) == []

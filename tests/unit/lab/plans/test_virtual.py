"""Configurations on the virtual clock: what is seen of them, compared with what must be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from math import inf
from pathlib import Path

import pytest

import hustings
from hustings.core.errors import BadInput, UnknownName
from hustings.lab.plans.configuration import Configuration
from hustings.lab.plans.deployment import Deployment
from hustings.lab.plans.virtual import ObservedGroup, observe
from hustings.sim.environment import Environment, parse_environment

STILL = "[delay]\nwithin = '2ms'\n"
SITES = """
[sites]
a = 3
b = 2
[delay]
within = "1ms"
between."a,b" = "20ms"
"""
BURSTS = SITES + "[loss]\nrate = '2%'\nburst = 4\n"
PAUSES = STILL + "[pauses]\nrate = '6/m'\nlength = '{length}'\n"
ANNOUNCING = Configuration(settings={"T_A": 0.2, "T_L": 1.0, "delta": 0.05})
QUORUM = Configuration(guard="quorum", voters=(1, 2, 3), ttl=3.0)


def seen(
    configuration: Configuration,
    text: str,
    *kinds: str,
    seeds: int = 3,
    failovers: int = 2,
    calm: float = 5.0,
    jobs: int = 1,
) -> ObservedGroup:
    return observe(
        configuration,
        environment(text),
        seeds=range(seeds),
        failovers_per_seed=failovers,
        calm=calm,
        kinds=kinds,
        members=5,
        jobs=jobs,
    )


def environment(text: str) -> Environment:
    return parse_environment(text)


def test_machines_that_are_gone_are_missed_after_their_time_out() -> None:
    """The last announcement came up to T_A before the death; members differ in when they notice."""
    found = seen(ANNOUNCING, STILL, "machine", seeds=6)
    claim = ANNOUNCING.configured().leadership.claim_delay
    assert len(found.failovers) == 12
    for each in found.failovers:
        assert 1.0 - 0.2 <= each.until_new_leader - claim <= 1.0 + 0.2 + 0.1
        assert each.until_new_leader <= each.until_all_follow < inf
        assert each.without_leader == pytest.approx(each.until_new_leader)
        assert each.two_leaders == 0.0
    slower = ANNOUNCING.but(settings={**ANNOUNCING.settings, "T_L": 3.0})
    later = seen(slower, STILL, "machine", seeds=2)
    assert min(each.until_new_leader for each in later.failovers) > 2.8


def test_processes_that_end_are_missed_at_once() -> None:
    by_process, by_machine = (
        seen(ANNOUNCING, STILL, kind, seeds=4).failover(0.5).value
        for kind in ("process", "machine")
    )
    assert by_process < by_machine - 0.3


def test_what_is_seen_depends_on_seeds_alone() -> None:
    alone = seen(ANNOUNCING, BURSTS, "process", "machine", seeds=4)
    assert alone == seen(ANNOUNCING, BURSTS, "process", "machine", seeds=4, jobs=2)
    assert len({each.until_all_follow for each in alone.failovers}) > 4


_ELSEWHERE = """
import json, sys
from hustings.lab.plans.configuration import Configuration
from hustings.lab.plans.virtual import observe
from hustings.sim.environment import parse_environment
found = observe(
    Configuration(guard="quorum", voters=(1, 2, 3), ttl=3.0), parse_environment(sys.argv[1]),
    seeds=[5], failovers_per_seed=2, calm=3.0,
)
print(json.dumps([repr(found.failovers), repr(found.calm)]))
"""


def test_what_is_seen_does_not_depend_on_the_hash_seed() -> None:
    told = []
    for hash_seed in ("0", "1"):
        source = Path(hustings.__file__).resolve().parents[1]
        done = subprocess.run(
            [sys.executable, "-c", _ELSEWHERE, BURSTS],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(source)},
            capture_output=True,
            check=True,
            timeout=100,
        )
        told.append(json.loads(done.stdout))
    assert told[0] == told[1]
    assert "until_all_follow" in told[0][0]


def test_candidates_with_one_seed_meet_the_same_deaths() -> None:
    first = seen(ANNOUNCING, STILL, "machine")
    second = seen(Configuration(protocol="bully"), STILL, "machine")
    assert [each.seed for each in first.failovers] == [each.seed for each in second.failovers]
    one, other = (Deployment(each, environment(STILL), 7, 5) for each in (ANNOUNCING, QUORUM))
    assert one.name(3) == other.name(3)


def test_a_site_that_is_cut_off_has_a_leader_of_its_own_unless_there_is_a_guard() -> None:
    alone = seen(ANNOUNCING, SITES, "site", failovers=1)
    assert all(each.two_leaders > 4.0 for each in alone.failovers)


def test_a_site_that_is_cut_off_with_most_voters_takes_the_leadership_with_it() -> None:
    outcomes = []
    for voters in ((1, 2, 4), (3, 4, 5)):
        found = seen(QUORUM.but(voters=voters), SITES, "site", seeds=2, failovers=1, calm=0.0)
        assert {each.two_leaders for each in found.failovers} == {0.0}
        for each in found.failovers:
            there = [voter for voter in voters if (voter > 3) == (each.leader > 3)]
            outcomes.append(len(there) > 1)
            assert (each.until_new_leader == inf) is outcomes[-1]
            assert outcomes[-1] or 1.0 < each.until_all_follow < 10.0
    assert set(outcomes) == {True, False}


def test_a_site_that_crashes() -> None:
    outages = "[outages]\nrate = '1/day'\nlasts = '1m'\nkind = 'crash'\n"
    found = seen(ANNOUNCING, SITES + outages, "site", failovers=1)
    assert all(each.two_leaders == 0.0 for each in found.failovers)
    assert all(each.until_all_follow < 4.0 for each in found.failovers)
    usual = observe(
        ANNOUNCING, environment(SITES + outages), seeds=[1], failovers_per_seed=3, calm=1.0
    )
    assert usual.kinds == ("process", "machine", "site")


def test_voters_outlast_a_restart() -> None:
    """Voters keep their promises, so the group is never without a majority of them."""
    found = seen(QUORUM, STILL, "process", seeds=2, failovers=3)
    assert found.unsettled == ()
    assert all(each.until_all_follow < 2 * 3.0 + 1.0 for each in found.failovers)


def test_an_engine_is_as_far_away_as_its_site() -> None:
    near, far = (
        seen(Configuration(guard="etcd", ttl=3.0, guard_site=site), SITES, "machine", failovers=1)
        for site in ("a", "b")
    )
    for found in (near, far):
        assert found.two_leaders == 0.0
        assert all(1.0 < each.until_all_follow < 8.0 for each in found.failovers)
    assert near.failovers != far.failovers
    with pytest.raises(BadInput, match="'c', which the environment lacks"):
        seen(Configuration(guard="etcd", guard_site="c"), SITES, "machine")


def test_pauses_beyond_the_time_out_are_wrong_failovers() -> None:
    short = seen(ANNOUNCING, PAUSES.format(length="100ms"), seeds=2, failovers=0, calm=60.0)
    assert (short.wrong, short.calm_seconds) == (0, 120.0)
    assert 0.0 < short.wrong_rate.high < 0.03
    long = seen(ANNOUNCING, PAUSES.format(length="3s"), seeds=2, failovers=0, calm=60.0)
    assert long.wrong >= 4  # of about twelve pauses of leaders
    assert long.wrong_rate.low > 0.0


def test_bytes_are_those_of_the_leader_and_of_the_others() -> None:
    found = seen(ANNOUNCING, STILL, "machine", failovers=0, calm=20.0)
    assert found.bytes_leader.value > 1.2 * found.bytes_member.value
    assert found.bytes_most().value >= found.bytes_leader.low
    oftener = ANNOUNCING.but(settings={**ANNOUNCING.settings, "T_A": 0.05})
    more = seen(oftener, STILL, "machine", failovers=0, calm=20.0)
    assert more.bytes_leader.value > 2 * found.bytes_leader.value


def test_quantiles_are_those_of_the_worst_kind() -> None:
    found = seen(ANNOUNCING, STILL, "process", "machine", seeds=6)
    assert found.failover() == found.failover(kind="machine")
    assert found.failover(kind="process").value < found.failover().low
    with pytest.raises(UnknownName, match="site"):
        found.failover(kind="site")


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    observe(
        ANNOUNCING,
        environment(STILL),
        seeds=[1, 2],
        failovers_per_seed=0,
        calm=0.0,
        members=2,
        tell=lambda done, of: told.append((done, of)),
    )
    assert told == [(1, 2), (2, 2)]


@pytest.mark.parametrize(
    "given, sentence",
    [
        ({"kinds": ["flood"]}, "flood"),
        ({"kinds": ["site"]}, "only where the environment has sites"),
        ({"seeds": []}, "at least one seed"),
        ({"members": 1}, "from 2 to 1000 members, not 1"),
        ({"members": 2, "configuration": QUORUM}, "member 3 is to vote, and there are 2"),
    ],
)
def test_refusals(given: dict[str, object], sentence: str) -> None:
    usual: dict[str, object] = {
        "configuration": ANNOUNCING,
        "seeds": [1],
        "failovers_per_seed": 1,
        "calm": 1.0,
        "members": 5,
        **given,
    }
    made = usual.pop("configuration")
    assert isinstance(made, Configuration)
    with pytest.raises(BadInput, match=sentence):
        observe(made, environment(STILL), **usual)  # type: ignore[arg-type]  # wrong on purpose

"""Candidates: each can be deployed, each change has a reason, and what is impossible is said."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from hustings.lab.plans.bounds import survives, timers, traffic
from hustings.lab.plans.candidates import Proposal, impossible, placements, propose, rounded
from hustings.lab.plans.configuration import Configuration
from hustings.lab.plans.goals import GroupGoals
from hustings.protocols.registry import JOINED
from hustings.sim.environment import Environment, parse_environment

TWO = '[sites]\na = 20\nb = 20\n[delay]\nwithin = "500us"\nbetween."a,b" = "40ms"\n'
BURSTS = '[loss]\nrate = "1%"\nburst = 5\n'
PAUSES = '[pauses]\nrate = "6/h"\nlength = "exponential:100ms"\nlongest = "800ms"\n'
WAN = TWO + BURSTS + PAUSES
CASES = [
    ({"failover-p99": "5s", "wrong": "1/month", "two-leaders": "never"}, WAN),
    ({"failover-p99": "5s", "wrong": "1/month"}, WAN),
    ({"failover-p99": "1s"}, 'members = 5\n[delay]\nwithin = "1ms"\n'),
    ({"failover-p99": "20s", "two-leaders": "never", "engines": "etcd"}, WAN),
    ({"bytes": "100/s", "two-leaders": "10s"}, 'members = 5000\n[delay]\nwithin = "30ms"\n'),
    (
        {"wrong": "1/week", "survive": "2 members"},
        'members = 9\n[delay]\nwithin = "1ms"\n' + BURSTS,
    ),
    ({"bytes": "2kB/s"}, 'members = 20\n[delay]\nwithin = "1ms"\n'),
]


def asked(goals: Mapping[str, object], text: str) -> tuple[GroupGoals, Environment]:
    return GroupGoals.parse(goals), parse_environment(text)


def changed(candidate: Proposal) -> list[str]:
    """The names of all settings that differ from the defaults."""
    usual, now = Configuration(), candidate.configuration
    names = [
        name
        for name in ("protocol", "multicast", "detector", "guard", "ttl", "stall_bound")
        if getattr(now, name) != getattr(usual, name)
    ]
    if now.grace not in (None, 5.0):
        names.append("grace")
    names += ["voters"] if now.voters else []
    names += list(now.settings)
    for table in ("detector_settings", "gossip_settings", "leadership_settings", "limits"):
        names += [f"{table.replace('_', '-')}.{name}" for name in getattr(now, table)]
    return [name.replace("stall_bound", "stall-bound") for name in names]


@pytest.mark.parametrize("goals, text", CASES)
def test_each_candidate_can_be_deployed_and_says_why(goals: dict[str, object], text: str) -> None:
    wanted, place = asked(goals, text)
    space = propose(wanted, place)
    assert space.candidates
    keys = [each.configuration.key for each in space.candidates]
    assert len(keys) == len(set(keys)) <= 900
    for each in space.candidates:
        each.configuration.configured()
        assert sorted(reason.setting for reason in each.reasons) == sorted(changed(each))
        assert all(reason.because and reason.goal and reason.value for reason in each.reasons)
        assert not survives(each.configuration, place, wanted)


@pytest.mark.parametrize("goals, text", CASES)
def test_each_protocol_is_tried_or_left_out_with_a_reason(
    goals: dict[str, object], text: str
) -> None:
    space = propose(*asked(goals, text))
    tried = {each.configuration.protocol for each in space.candidates}
    assert tried.isdisjoint(space.protocols)
    assert tried | set(space.protocols) == set(JOINED)


def test_leases_bear_the_longest_pause_and_end_in_time() -> None:
    goals, place = asked(*CASES[0])
    for each in propose(goals, place).candidates:
        at = timers(each.configuration, place)
        assert each.configuration.guard == "quorum"
        assert at.window - at.renewal > 0.8
        assert at.ttl < 5.0


def test_bytes_are_kept() -> None:
    for case in (CASES[4], CASES[6]):
        goals, place = asked(*case)
        every = [
            traffic(each.configuration, place).most for each in propose(goals, place).candidates
        ]
        assert min(every) <= (goals.bytes or 0.0)


def test_a_large_group_has_the_limits_that_it_needs() -> None:
    for each in propose(*asked(*CASES[4])).candidates:
        assert each.configuration.limits["members"] == 6250
        assert each.configuration.limits["connections"] == 6248


def test_placements_deal_voters_to_sites() -> None:
    three = parse_environment(
        '[sites]\na = 3\nb = 3\nc = 1\n[delay]\nwithin = "1ms"\n'
        'between."a,b" = "1ms"\nbetween."a,c" = "1ms"\nbetween."b,c" = "1ms"\n'
    )
    site = GroupGoals(survive=("site",))
    assert placements(site, three)[0] == (1, 4, 7)
    assert all(len(each) % 2 for each in placements(site, three))
    two = [each for each in placements(GroupGoals(), parse_environment(TWO)) if len(each) == 3]
    assert two == [(1, 2, 21), (1, 21, 22)]
    lost = GroupGoals(survive=("2 members",))
    assert all(len(each) >= 5 for each in placements(lost, three))


@pytest.mark.parametrize(
    "goals, text, words, nearest",
    [
        (
            {"two-leaders": "never", "survive": "site"},
            TWO,
            "never two leaders and survive any site with two sites",
            "--sites a=20,b=20,c=1",
        ),
        ({"survive": "site"}, 'members = 3\n[delay]\nwithin = "1ms"\n', "there is one site", "two"),
        ({"survive": "40 members"}, TWO, "nobody is left", "--survive '39 members'"),
        ({"two-leaders": "never", "survive": "4 members"}, TWO, "at most 7 can", "3 members"),
        (
            {"two-leaders": "never"},
            'members = 2\n[delay]\nwithin = "1ms"\n',
            "a majority takes 3 voters, and there are 2",
            "a third member",
        ),
        ({"failover-p99": "50ms"}, TWO, "a round trip between the farthest members", "160ms"),
    ],
)
def test_the_impossible(goals: dict[str, object], text: str, words: str, nearest: str) -> None:
    found = impossible(*asked(goals, text))
    assert any(words in each.because and nearest in each.nearest for each in found), found


def test_an_engine_makes_it_possible() -> None:
    goals = {"two-leaders": "never", "survive": "site", "engines": "etcd"}
    assert impossible(*asked(goals, TWO)) == []
    with_engine = {**goals, "survive": ["site", "engine"]}
    assert impossible(*asked(with_engine, TWO))
    advisory = {"two-leaders": "never", "survive": "site", "engines": "redis"}
    assert impossible(*asked(advisory, TWO))


def test_times_are_rounded() -> None:
    assert rounded(0.123) == 0.13
    assert rounded(0.123, up=False) == 0.12
    assert rounded(99.9) == 100.0
    assert rounded(0.0) == 0.0

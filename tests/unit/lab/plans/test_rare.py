"""Rates that are too small to count: compared with counting, and with a closed form."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from math import exp, inf
from typing import Any

import pytest

from hustings.core.errors import BadInput, UnknownName
from hustings.lab.plans.configuration import Configuration
from hustings.lab.plans.rare import BOUND, COUNTED, LEAST, SPLIT, Rate, network_alone, wrong_rate
from hustings.lab.plans.splitting import (
    LEADER,
    SILENCE,
    CopyFailed,
    Level,
    SplitGroup,
    SplitWork,
    Tree,
    play_split,
)
from hustings.lab.plans.virtual import observe
from hustings.sim.environment import parse_environment

STILL = "members = 3\n[delay]\nwithin = '2ms'\n"
MEAN, PAUSES = 0.15, 60 / 3600.0
PAUSING = STILL + "[pauses]\nrate = '60/h'\nlength = 'exponential:150ms'\n"
BURSTS = STILL + "[loss]\nrate = '5%'\nburst = 4\n"


def announcing(listen: float, period: float = 0.2) -> Configuration:
    """Members that miss a leader after `listen`, and not sooner: not by the membership either."""
    return Configuration(settings={"T_A": period, "T_L": listen, "delta": 0.05})


def rate(configuration: Configuration, text: str, effort: float, **given: Any) -> Rate:
    """In small processes of their own: a copy of one that has loaded all tests costs far more."""
    given = {"jobs": 2, **given}
    return wrong_rate(configuration, parse_environment(text), effort=effort, **given)


def test_pauses_of_the_leader_against_a_closed_form() -> None:
    """A pause is missed if it is longer than T_L, less what had passed since the last beat."""
    found = rate(announcing(1.0), PAUSING, 4000.0, seed=3)
    least, most = (PAUSES * exp(-length / MEAN) for length in (1.0 + 0.2, 1.0 - 0.2 - 0.05))
    assert found.method == SPLIT
    assert found.lost == 0  # it could not have been counted
    assert found.interval.low < most
    assert found.interval.high > least
    assert least / 5 < found.value < most * 5


def test_splitting_against_counting() -> None:
    """About one wrong failover a minute: both can be had."""
    configuration = announcing(0.6, 0.1)
    split = rate(configuration, BURSTS, 2000.0, seed=1)
    counted = observe(
        configuration,
        parse_environment(BURSTS),
        seeds=range(2),
        failovers_per_seed=0,
        calm=400.0,
    )
    assert split.method == SPLIT
    assert counted.wrong >= 4
    assert split.interval.low < counted.wrong_rate.high
    assert split.interval.high > counted.wrong_rate.low
    assert counted.wrong_rate.value / 5 < split.value < counted.wrong_rate.value * 5


def test_what_is_frequent_is_counted() -> None:
    often = STILL.replace("[delay]", "[loss]\nrate = '60%'\n[delay]")
    found = rate(announcing(0.5), often, 6000.0)
    assert found.method == COUNTED
    assert found.lost >= 30
    assert found.interval.value == pytest.approx(found.lost / found.seconds)


def test_what_never_happened_has_a_bound_below_that_of_counting() -> None:
    found = rate(announcing(4.0), BURSTS, 2500.0)
    assert found.method == BOUND
    assert found.value == 0.0
    assert LEAST < found.high < 0.5 * 3.0 / found.seconds


def test_where_nothing_is_lost_and_nobody_pauses() -> None:
    found = rate(announcing(1.0), STILL, 1000.0)
    assert (found.method, found.value, found.high) == (BOUND, 0.0, LEAST)


def test_a_leader_with_a_lease_loses_it_by_pauses() -> None:
    guarded = Configuration(guard="quorum", voters=(1, 2, 3), ttl=3.0)
    long = PAUSING.replace("150ms", "600ms")
    found = rate(guarded, long, 2500.0)
    # Between the whole lease and what is left of it just before it is renewed.
    least, most = (PAUSES * exp(-length / 0.6) for length in (3.0 + 1.0, 3.0 * 0.9 - 1.2))
    assert found.method in (SPLIT, COUNTED)
    assert found.interval.low < most
    assert found.interval.high > least


def test_the_rate_depends_on_its_seed_alone() -> None:
    first, again, other = (
        rate(announcing(0.6, 0.1), BURSTS, 600.0, seed=seed, jobs=jobs)
        for seed, jobs in ((1, 1), (1, 2), (2, 1))
    )
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    "text, expected",
    [
        ("[delay]\nwithin = '2ms'", 0.0),
        ("[delay]\nwithin = '300ms'", inf),  # compared with 20: each one is late
        ("[delay]\nwithin = 'exponential:10ms'", 20.0 * exp(-20.0)),
        ("[delay]\nwithin = 'lognormal:10ms,1'", 20.0 * 0.00136904),
        ("[delay]\nwithin = '2ms'\n[loss]\nrate = '1%'", inf),
    ],
)
def test_what_a_network_causes_that_loses_nothing(text: str, expected: float) -> None:
    found = network_alone(parse_environment(text), announcing(1.0), 3)
    if expected == inf:
        assert found >= 20.0
    else:
        assert found == pytest.approx(expected, rel=1e-4)


# Copies


def work(levels: Sequence[Level] = (), cause: str = SILENCE, budget: float = 400.0) -> SplitWork:
    return SplitWork(
        announcing(0.8, 0.1),
        parse_environment(PAUSING + "[loss]\nrate = '15%'\nburst = 3\n"),
        3,
        (5,),
        budget,
        0.25,
        {cause: tuple(levels)},
    )


def test_copies_are_counted_with_their_share() -> None:
    """With the highest level out of reach, nothing depends on it."""
    levels = [Level(0.3, 4), Level(0.4, 1), Level(0.45, 3), Level(50.0, 60)]
    (run,) = play_split(work(levels), 0, 1)
    trees = run.trees[SILENCE]
    assert trees
    for tree in trees:
        assert tree.arrivals[0] == 1
        assert tree.weights[0] == 1.0
        assert tree.weights[1] == pytest.approx(tree.arrivals[1] / 4)
        assert tree.weights[2] == pytest.approx(tree.arrivals[2] / 4)
        assert tree.arrivals[1] >= tree.arrivals[2]
        assert tree.arrivals[3] == 0
    assert any(0 < tree.arrivals[1] < 4 for tree in trees)  # copies differ
    assert run.trees[LEADER]
    with suppress(ChildProcessError):  # there is no child at all
        assert os.waitpid(-1, os.WNOHANG) == (0, 0)  # no copy waits to be looked at


def test_a_copy_that_fails_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> float:
        raise ValueError("no such path")

    monkeypatch.setattr(SplitGroup, "_follow", fail)
    with pytest.raises(CopyFailed, match="ValueError: no such path"):
        play_split(work([Level(0.3, 4)]), 0, 1)


def test_a_copy_ends_with_whoever_made_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []

    def end(status: int) -> None:
        ended.append(status)
        raise SystemExit(status)

    monkeypatch.setattr(os, "getppid", iter(range(10_000)).__next__)
    monkeypatch.setattr(os, "_exit", end)
    with pytest.raises(SystemExit):
        play_split(work(), 0, 1)
    assert ended == [1]


def test_refusals() -> None:
    with pytest.raises(UnknownName, match="effort"):
        wrong_rate(announcing(1.0), parse_environment(STILL), effort="some")
    with pytest.raises(BadInput, match="more than 0"):
        rate(announcing(1.0), STILL, 0.0)
    assert Tree().value == 0.0

"""One environment in two worlds: composed members of the simulator, and members on a virtual clock.

Both meet bursts of loss, pauses and two sites; the leader's machine crashes at 15 s. The median and
the quartiles of the failover agree within 10 %. Most of that is for the leader's place: in the
simulator it is at the second site, and on the virtual clock mostly at the first, 20 ms apart. What
the second world does to its members is what the file says.
"""

from __future__ import annotations

import asyncio
from math import sqrt
from statistics import fmean, quantiles
from typing import NamedTuple

import pytest

from hustings.lab import simulate
from hustings.sim.environment import parse_environment
from hustings.testing import Group

TEXT = """[sites]
a = 3
b = 2
[delay]
within = "lognormal:300us,0.4"
between."a,b" = "20ms"
[loss]
rate = "2%"
burst = 4
[pauses]
rate = "2/m"
length = "exponential:80ms"
longest = "400ms"
"""
ENVIRONMENT = parse_environment(TEXT)
NAMES = tuple("vwxyz")
CRASH_AT = 15.0
RUNS = 24  # on the virtual clock


class Seen(NamedTuple):
    """What was seen on the virtual clock."""

    failovers: list[float]
    pauses: list[float]  # their lengths
    sent: int  # datagrams before the crash
    lost: int


@pytest.fixture(scope="module")
def seen() -> Seen:
    found = Seen([], [], 0, 0)
    for seed in range(RUNS):
        found = _played(seed, found)
    return found


def _played(seed: int, before: Seen) -> Seen:
    with Group(seed=seed, environment=ENVIRONMENT, protocol="le-s") as group:
        group.run(_join_together(group))
        group.advance(CRASH_AT - group.now)
        sent, lost = group.network.tally["sent"], group.network.tally["lost"]
        leader = group.settle()
        crash = group.now
        group.kill(leader, machine=True)
        group.settle(steady=5.0)
        told = [each for each in group.log if each.time > crash and each.member != leader]
        last = max(each.time for each in told if each.state.leader is not None)
        before.failovers.append(last - crash)
        before.pauses.extend(_pauses(group, crash))
    return Seen(before.failovers, before.pauses, before.sent + sent, before.lost + lost)


def _pauses(group: Group, until: float) -> list[float]:
    """The lengths of pauses that began before an instant, and have ended."""
    lengths, since = [], {}
    for each in group.changes:
        if each.what == "paused":
            since[each.member] = each.time
        elif each.what == "resumed" and since[each.member] < until:
            lengths.append(each.time - since[each.member])
    return lengths


async def _join_together(group: Group) -> None:
    await asyncio.gather(*(group.inside.join(name) for name in NAMES))


def test_the_failover_takes_as_long_in_both_worlds(seen: Seen) -> None:
    study = simulate(
        "le-s",
        environment=TEXT,
        composed=True,
        settings={"delta": 0.05},  # the default of `join`
        faults=f"crash:5@{CRASH_AT:g}",
        runs=60,
        seed=3,
    )
    simulated = [time - CRASH_AT for time in study.values["time"] if time > CRASH_AT]  # 5 led
    assert len(simulated) > 20
    for one, other in zip(quantiles(simulated), quantiles(seen.failovers), strict=True):
        assert one == pytest.approx(other, rel=0.1)


def test_losses_and_pauses_are_those_of_the_file(seen: Seen) -> None:
    share = ENVIRONMENT.network.loss.p
    clustered = 2 * 4 - 1  # by how much bursts of 4 raise the variance of a count
    spread = sqrt(seen.sent * share * clustered)
    assert seen.lost == pytest.approx(seen.sent * share, abs=4 * spread)
    assert spread < 0.2 * seen.sent * share
    expected = RUNS * len(NAMES) * CRASH_AT * 2 / 60
    assert len(seen.pauses) == pytest.approx(expected, abs=4 * sqrt(expected))
    assert fmean(seen.pauses) == pytest.approx(0.0795, abs=4 * 0.08 / sqrt(expected))
    assert max(seen.pauses) < 0.4 + 1e-6

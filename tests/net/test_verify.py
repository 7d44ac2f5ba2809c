"""Predictions tried on real processes: those that hold agree, and wrong ones are found out.

The virtual clock and the processes share no clock, no network and no scheduler: only the members'
own code and the environment.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from hustings.core.errors import BadInput
from hustings.lab.plans import real_group
from hustings.lab.plans.configuration import Configuration
from hustings.lab.plans.intervals import poisson_rate
from hustings.lab.plans.namespaces import EnvironmentLaws, obstacle
from hustings.lab.plans.real_group import NotVerified
from hustings.lab.plans.verify import reduced, scaled_back, shown, verify
from hustings.lab.plans.virtual import ObservedGroup, observe
from hustings.sim.environment import parse_environment

ENVIRONMENT = """
members = 3
[delay]
within = "lognormal:5ms,0.3"
[loss]
rate = "1%"
burst = 3
[pauses]
rate = "30/h"
length = "exponential:80ms"
longest = "400ms"
"""
SITES = """
[sites]
a = 300
b = 100
[delay]
within = "1ms"
between."a,b" = "20ms"
[loss]
rate = "1%"
between."a,b" = "2%"
"""


@pytest.fixture(scope="module")
def predicted() -> ObservedGroup:
    return observe(
        Configuration(),
        parse_environment(ENVIRONMENT),
        seeds=range(8),
        failovers_per_seed=8,
        calm=20.0,
        kinds=("process", "machine"),
    )


def test_a_prediction_that_holds_agrees(predicted: ObservedGroup) -> None:
    told: list[str] = []
    found = verify(
        Configuration(),
        parse_environment(ENVIRONMENT),
        predicted,
        seconds=20.0,
        tell=lambda share, what: told.append(what),
    )
    table = "\n".join(" | ".join(row.cells()) for row in found.rows)
    assert found.agrees, table
    assert (found.members, found.failovers >= 4, found.pauses >= 1) == (3, True, True)
    words = "failover after a dead process, half within"
    assert words in [row.what for row in found.rows]
    assert "3 processes start" in told
    assert any("times as often as in the environment" in note for note in found.notes)


def test_a_wrong_prediction_is_found_out(predicted: ObservedGroup) -> None:
    """Failovers said to be eight times as long, and bytes a third."""
    slow = tuple(
        replace(each, until_all_follow=8 * each.until_all_follow) for each in predicted.failovers
    )
    few = tuple(
        replace(
            each,
            bytes_leader=each.bytes_leader / 3,
            bytes_members=tuple(rate / 3 for rate in each.bytes_members),
        )
        for each in predicted.calm
    )
    wrong = replace(predicted, failovers=slow, calm=few)
    often = poisson_rate(4000, 100.0)  # wrong failovers, per second
    found = verify(
        Configuration(), parse_environment(ENVIRONMENT), wrong, seconds=16.0, wrong=often
    )
    assert not found.agrees
    off = [row.what for row in found.rows if not row.agrees]
    assert any(each.startswith("failover after a dead machine") for each in off)
    assert "bytes of the leader" in off
    assert "wrong failovers" in off
    assert "DISAGREES" in [row.cells()[-1] for row in found.rows]


OUTAGES = """
[sites]
a = 1
b = 1
c = 1
[delay]
within = "1ms"
between."a,b" = "5ms"
between."a,c" = "5ms"
between."b,c" = "5ms"
[outages]
rate = "1/month"
lasts = "10m"
"""


def test_sites_are_cut_off_where_the_environment_has_outages() -> None:
    environment = parse_environment(OUTAGES)
    guarded = Configuration(guard="quorum", voters=(1, 2, 3), ttl=2.0)
    expected = observe(
        guarded, environment, seeds=range(8), failovers_per_seed=4, calm=5.0, kinds=("site",)
    )
    found = verify(guarded, environment, expected, seconds=28.0)
    table = "\n".join(" | ".join(row.cells()) for row in found.rows)
    assert found.agrees, table
    assert "failover after a failed site, half within" in [row.what for row in found.rows]
    two = next(row for row in found.rows if row.what.startswith("two leaders"))
    assert two.measured <= 0.05, "a leader that is cut off gives up before its lease ends"


def gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"


def until(condition: Callable[[], bool], within: float = 20.0) -> None:
    end, again = time.monotonic() + within, threading.Event()
    while not condition():
        assert time.monotonic() < end, "not in time"
        again.wait(0.05)


STARTS = """
import sys
from hustings.lab.plans.configuration import Configuration
from hustings.lab.plans.real_group import RealGroup
from hustings.sim.environment import parse_environment

environment = parse_environment("[delay]\\nwithin = '1ms'")
with RealGroup(Configuration(), environment, 3, 1) as group:
    group.start(group.members)
    pids = [group._nursery.pid, *(each.pid for each in group.members)]
    print(*pids, flush=True)
    group.advance(60.0)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_no_process_outlives_the_one_that_started_it(number: signal.Signals) -> None:
    words = [sys.executable, "-c", STARTS]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        try:
            assert run.stdout is not None
            pids = [int(each) for each in run.stdout.readline().split()]
            assert len(pids) == 4
            assert not any(gone(pid) for pid in pids)
            run.send_signal(number)
            until(lambda: all(gone(pid) for pid in pids))
        finally:
            run.kill()


def test_where_the_system_refuses_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real_group, "obstacle", lambda: "PermissionError: not permitted")
    with pytest.raises(NotVerified, match=r"allows no network namespaces .*: run as root"):
        verify(Configuration(), parse_environment(ENVIRONMENT), seconds=10.0)


def test_what_cannot_be_verified_is_refused_before_anything_starts() -> None:
    environment = parse_environment(ENVIRONMENT)
    with pytest.raises(BadInput, match="takes 10 s or more"):
        verify(Configuration(), environment, seconds=3.0)
    with pytest.raises(BadInput, match="two members or more"):
        verify(Configuration(), parse_environment("[delay]\nwithin = '1ms'"), seconds=10.0)
    with pytest.raises(BadInput, match="its engine would have to run"):
        verify(Configuration(guard="etcd"), environment, seconds=10.0)


def test_a_large_group_is_tried_at_a_size_that_one_machine_runs() -> None:
    environment = parse_environment(SITES)
    smaller, few = reduced(Configuration(), environment, 400)
    assert few == 60
    assert smaller.sites is not None
    assert (smaller.sites.names, smaller.sites.sizes) == (("a", "b"), (45, 15))
    rng = random.Random(1)
    assert smaller.network.delay.draw(rng, 1, 60) == 0.02
    assert smaller.network.delay.draw(rng, 1, 45) == 0.001
    assert reduced(Configuration(), environment, 60) == (environment, 60)
    with pytest.raises(NotVerified, match="with voters is too large for one machine"):
        reduced(Configuration(guard="quorum", voters=(1, 2, 301)), environment, 400)


def test_the_switch_has_the_losses_and_delays_of_the_environment() -> None:
    laws = EnvironmentLaws(parse_environment(ENVIRONMENT), {"x": 1, "y": 2}, seed=3)
    rng = random.Random(1)
    ways = [laws.ways(rng, "x", "y", 0.0) for _ in range(50_000)]
    lost = [not each for each in ways]
    bursts = sum(now and not before for before, now in pairwise(lost))
    times = sorted(each[0] for each in ways if each)
    assert sum(lost) / len(lost) == pytest.approx(0.01, rel=0.2)
    assert sum(lost) / bursts == pytest.approx(3.0, rel=0.2)
    assert times[len(times) // 2] == pytest.approx(0.005, rel=0.02)


@pytest.mark.parametrize("usual, caused", [(0.05, 0.0), (0.0, 0.004), (0.03, 0.002)])
def test_frequent_pauses_are_scaled_back_and_other_causes_are_not(
    usual: float, caused: float
) -> None:
    """`caused` is by pauses, which come twenty times as often in a part of the time."""
    hits = 0
    for seed in range(100):
        rng = random.Random(seed)

        def count(rate: float, seconds: float, rng: random.Random = rng) -> int:
            at, found = 0.0, 0
            while rate and (at := at + rng.expovariate(rate)) < seconds:
                found += 1
            return found

        calm = count(usual + caused, 60.0)
        paused = count(usual + 20 * caused, 90.0)
        found = scaled_back((calm, 60.0), (paused, 90.0), 20.0)
        hits += found.low <= usual + caused <= found.high
    assert hits >= 98


def test_numbers_as_people_read_them() -> None:
    assert [shown(*each) for each in ((1.234, "s"), (0.0, "/s"), (5.0, ""))] == [
        "1.23s",
        "never",
        "5",
    ]


def test_namespaces_can_be_had() -> None:
    assert not obstacle(), obstacle()
    assert os.path.exists("/dev/net/tun")

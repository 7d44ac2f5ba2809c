"""The swarm in an environment: what a small group stands for, and that its faults are played."""

from __future__ import annotations

import io
import json
import shlex
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from hustings import lab
from hustings.core.errors import BadInput
from hustings.sim.checkers import Verdict
from hustings.sim.environment import parse_environment
from hustings.sim.guarding import GUARD
from hustings.sim.random_election import RandomElection
from hustings.sim.swarm import Entry, Swarm, play
from hustings.sim.swarm_drawing import ScaledEnvironment
from hustings.sim.trace import Changed, Linked
from hustings.sim.trace_read import read_stream
from tests.unit.cli.commands import in_process

TEXT = """[sites]
a = 20
b = 10
[delay]
within = "2ms"
between."a,b" = "40ms"
[loss]
rate = "5%"
burst = 3
between."a,b" = "20%"
[pauses]
rate = "6/h"
length = "400ms"
[outages]
rate = "1/month"
lasts = "800ms"
[clocks]
drift = "10%"
"""
HERE = parse_environment(TEXT)
SWARM = Swarm((Entry(RandomElection),), environment=HERE)


def test_a_few_members_stand_for_a_whole_group() -> None:
    scaled = ScaledEnvironment.of(HERE, (3, 7, 9))
    assert [scaled.site(member) for member in (GUARD, 3, 7, 9)] == [0, 0, 0, 1]
    network, rng = scaled.network, Random(1)
    assert network.delay.bound == 1.0  # time counts in the longest delay
    assert network.delay.draw(rng, 3, 9) == network.delay.draw(rng, 9, GUARD) == 1.0
    assert network.delay.draw(rng, 3, 7) == pytest.approx(0.05)
    fate = network.loss.fate(Random(2))
    within, across = (sum(fate(0.0, 3, other) for _ in range(20_000)) / 20_000 for other in (7, 9))
    assert within == pytest.approx(0.05, abs=0.01)
    assert across == pytest.approx(0.2, abs=0.03)


def test_what_the_environment_says_is_played() -> None:
    """Pauses of 400 ms are ten delays, outages of 800 ms are twenty, unless the calm ends them."""
    outages, pauses = [], []
    for seed in range(60):
        out = io.BytesIO()
        play(SWARM, seed, out)
        trace = read_stream(io.BytesIO(out.getvalue()))
        sites = ScaledEnvironment.of(HERE, tuple(trace.header.members))
        cut: dict[str, float] = {}
        held: dict[int, float] = {}
        for event in trace.events:
            if isinstance(event, Linked) and event.what == "partition":
                if all(len({sites.site(one) for one in side}) <= 1 for side in event.sides):
                    cut[event.name] = event.t
            elif isinstance(event, Linked) and event.name in cut:
                outages.append(event.t - cut.pop(event.name))
            elif isinstance(event, Changed) and event.status == "paused":
                held[event.m] = event.t
            elif isinstance(event, Changed) and event.m in held:
                pauses.append(event.t - held.pop(event.m))
    assert outages.count(20.0) > 10
    assert pauses.count(10.0) > 10


def test_a_seed_is_the_same_world_again_and_another_one_than_without() -> None:
    one, again = play(SWARM, 5), play(SWARM, 5)
    assert one == again
    assert one.counts != play(replace(SWARM, environment=None), 5).counts


def test_what_is_promised_holds_in_an_environment() -> None:
    found = lab.swarm(environment=TEXT, seeds=40)
    assert found.failed == 0
    assert found.tally.counts["grants"] > 40


def test_a_broken_register_is_seen_in_an_environment() -> None:
    broken = replace(SWARM, fenced=False)
    verdicts = [play(broken, seed).verdicts["register"][0] for seed in range(150)]
    assert Verdict.VIOLATED in verdicts


@pytest.mark.parametrize(
    "text, beyond, sentence",
    [
        ("[delay]\nwithin = '0s'", False, "a swarm counts time in delays"),
        ("[delay]\nwithin = '1s'", True, "clocks cannot break a bound of 0"),
        ("[delay]\nwithin = 1s", False, "line 2"),
    ],
)
def test_environments_without_a_swarm(text: str, beyond: bool, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        lab.swarm(environment=f"{text}\n", beyond=beyond, seeds=1)


def test_the_command_line_says_the_environment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "e.toml"
    file.write_text(TEXT)
    hustings = in_process(capsys)
    for given in (file, HERE):
        found = lab.swarm(environment=given, seeds=5, guards=["memory"])
        told = json.loads(hustings(*shlex.split(found.command)[1:], "--json").out)
        assert told == found.to_json()
    refused = hustings("swarm", "--environment", str(tmp_path / "none.toml"), "--seeds", "1")
    assert "No such file" in refused.complaint

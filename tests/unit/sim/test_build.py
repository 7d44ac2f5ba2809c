"""One description gives the same runs from Python and from the command line, bit for bit."""

from __future__ import annotations

import json
import shlex
from functools import partial
from typing import Any

import pytest

from hustings.core.errors import BadInput
from hustings.lab.options import electorate
from hustings.lab.runs.engines import report
from hustings.protocols.bully import Bully, BullyConfig
from hustings.protocols.registry import CATALOGUE, classes, find
from hustings.sim.delay import Delay, Fixed, Lognormal, Uniform
from hustings.sim.experiment import Description, Experiment, build
from hustings.sim.loss import Uncorrelated
from hustings.sim.member import Clocks
from hustings.sim.network import Network
from hustings.sim.play import play
from hustings.sim.scenarios import Scenario
from tests.unit.cli.commands import in_process

TENTH = Network(delay=Fixed(0.1))
LOSSY = Network(delay=Fixed(0.1), loss=Uncorrelated(0.2))

# What is typed after `hustings sim PROTOCOL`, and the same from Python.
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "le-s": ("le-s", "-n 20 --delay 0.1", {"members": 20, "network": TENTH}),
    "bully": ("bully", "--delay 0.1", {"network": TENTH}),
    "scenario": (
        "le-s",
        "--delay 0.1 --loss 0.2 --scenario leader-crash",
        {"network": LOSSY, "scenario": Scenario("leader-crash")},
    ),
    "settings": (
        "le-m",
        "--delay 0.1 --set T_A=2 --set T_S=0.5 --seed 7",
        {"network": TENTH, "settings": {"T_A": 2, "T_S": 0.5}, "seed": 7},
    ),
    "large": (
        "probabilistic",
        "-n 40 --delay uniform:0.1,0.4 --view 0.8 --loss 0.2",
        {
            "members": 40,
            "network": Network(delay=Uniform(0.1, 0.4), loss=Uncorrelated(0.2)),
            "view": 0.8,
        },
    ),
    "detector": (
        "bully-map",
        "--delay 0.1 --detection heartbeat --detection-set T=0.5 --scenario leader-crash",
        {
            "network": TENTH,
            "detection": "heartbeat",
            "detection_settings": {"T": 0.5},
            "scenario": Scenario("leader-crash"),
        },
    ),
    "lease": (
        "bully-grant",
        # Some clocks run faster than answers come in this election: it goes on to the limit.
        "--delay 0.1 --guard memory --guard-set ttl=3 --drift 0.01 --max-events 20000",
        {"network": TENTH, "guard": {"ttl": 3}, "clocks": Clocks(0.01), "max_events": 20_000},
    ),
    "quorum": (
        "bully",
        "--delay 0.1 --guard quorum --guard-set voters=5",
        {"network": TENTH, "guard": {}, "voting": partial(electorate, 5)},
    ),
    "gossip": (
        "bully",
        "-n 6 --delay 0.1 --membership gossip",
        {"members": 6, "network": TENTH, "membership": "gossip"},
    ),
    "no delay": ("le-a", "--delay 0", {"network": Network(delay=Fixed(0.0))}),
}


@pytest.mark.parametrize("case", CASES)
def test_python_and_the_command_line_play_the_same_runs(
    case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name, typed, given = CASES[case]
    shown = in_process(capsys)(
        "sim", name, *shlex.split(typed), "--runs", "2", "--digest", "--json"
    )
    told = json.loads(shown.out)
    experiment = build(Description(kind=find(name), digest=True, **given))
    runs = report([play(experiment, run) for run in (0, 1)], 0)
    assert runs.digest == told["digest"]
    means = {key: None if one is None else one.mean for key, one in runs.metrics.items()}
    assert means == {key: one["mean"] for key, one in told["metrics"].items()}


@pytest.mark.parametrize("delay", [Fixed(0.1), Uniform(0.2, 3.0), Lognormal(0.5, 0.2)])
@pytest.mark.parametrize("kind", classes(CATALOGUE), ids=lambda kind: kind.about.name)
def test_settings_without_a_delta_take_the_networks_bound(kind: Any, delay: Delay) -> None:
    network = Network(delay=delay)
    config = kind.Settings.parse({})
    assert Experiment(kind, 8, config, network=network).config.delta == delay.bound


@pytest.mark.parametrize("kind", ["bully", "broadcast"])
def test_times_scale_with_the_delay(kind: str) -> None:
    """Timers are multiples of the delay, also where nobody mentions delta."""
    election = find(kind)
    crash = Scenario("leader-crash", detectors=(1,))
    slow = play(Experiment(election, 8, election.Settings(), scenario=crash), 0)
    quick = play(Experiment(election, 8, election.Settings(), scenario=crash, network=TENTH), 0)
    assert slow.metrics["time"] == pytest.approx(10 * (quick.metrics["time"] or 0.0))
    assert quick.metrics["messages"] == slow.metrics["messages"]


def test_a_delta_that_was_given_is_kept() -> None:
    given = Experiment(Bully, 8, BullyConfig(delta=1.0), network=TENTH)
    assert given.config.delta == 1.0
    assert Experiment(Bully, 8, BullyConfig(), network=Network(delay=Fixed(0.0))).config.delta == 1


def test_a_derived_delta_is_checked_against_the_other_settings() -> None:
    kind = find("le-s")
    config = kind.Settings.parse({"query": "query", "T_Q": 5.0})
    with pytest.raises(BadInput, match="T_Q = 5 must be at least a round trip"):
        Experiment(kind, 4, config, network=Network(delay=Fixed(10.0)))


@pytest.mark.parametrize(
    "given, complaint",
    [
        ({"members": 0}, "members must be at least 1"),
        ({"view": 1.5}, "view probability"),
        ({"detection": "guessing"}, "unknown detector 'guessing'"),
        ({"detection_settings": {"T": 1}}, "goes with --detection"),
        ({"detection": "perfect", "detection_settings": {"latency": "soon"}}, "latency must be"),
        ({"membership": "half"}, "unknown membership 'half'"),
        ({"gossip_settings": {"fanout": 3}}, "goes with --membership gossip"),
        ({"settings": {"T_X": 1}}, "unknown setting 'T_X'"),
    ],
)
def test_a_mistake_gets_a_sentence(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        build(Description(kind=Bully, **given))

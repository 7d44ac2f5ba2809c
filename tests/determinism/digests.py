"""Digests of a set of experiments, as one JSON object; also a program that prints them.

The set uses whatever might depend on the order of a hash or on the process: random delays, loss,
views, clocks, attributes, crashes in the middle of a send, partitions, detectors.
"""

from __future__ import annotations

import io
import json
import sys

from hustings.core.choice import parse_choice
from hustings.core.election import Election
from hustings.lab.byzantine import messages
from hustings.lab.byzantine.experiment import ByRounds, by_rounds
from hustings.layers.detector.heartbeat import HeartbeatConfig
from hustings.protocols.bully import Bully, BullyConfig
from hustings.protocols.registry import find
from hustings.protocols.ring import Ring, RingConfig
from hustings.sim.delay import Fixed, Lognormal, Uniform
from hustings.sim.experiment import Experiment
from hustings.sim.faults import Crash, Heal, Partition, Pause, Restart, Resume
from hustings.sim.loss import Correlated, Uncorrelated
from hustings.sim.member import Clocks
from hustings.sim.mobility import DIRECT, RandomWaypoint
from hustings.sim.network import Network
from hustings.sim.play import RunResult
from hustings.sim.play import play as play_world
from hustings.sim.scenarios import Rates, Scenario
from hustings.sim.trace import Tracer

FAULTS = Scenario(
    "leader-crash",
    crashed=(3,),
    detectors=(1, 5),
    extra=(
        Crash(member=8, after_sends=3, at=1.0),
        Pause(member=6, at=0.5),
        Partition(sides=((1, 2, 4), (5, 6, 7)), at=2.0),
        Heal(at=7.0),
        Resume(member=6, at=8.0),
        Restart(member=8, at=9.0),
    ),
)
MESSY = Network(
    delay=Uniform(0.2, 1.0),
    loss=Uncorrelated(0.1, 0.01),
    duplicate=0.1,
    reorder=0.1,
    hold_back=2.0,
)
KINDS: list[tuple[type[Election], BullyConfig | RingConfig]] = [
    (Bully, BullyConfig()),
    (Ring, RingConfig()),
]


def experiments(seed: int) -> dict[str, Experiment]:
    """By name; those whose name begins with `random` depend on their seed."""
    made: dict[str, Experiment] = {}
    for kind, config in KINDS:
        name = kind.about.name
        made[f"plain {name}"] = Experiment(kind, 9, config, scenario=FAULTS, seed=seed, until=90.0)
        for label, network in (
            ("messy", MESSY),
            ("lossy", Network(delay=Fixed(0.5), loss=Correlated(0.2))),
            ("slow", Network(delay=Lognormal(0.5, 0.7), fifo=True)),
        ):
            made[f"random {label} {name}"] = Experiment(
                kind,
                9,
                config,
                choice=parse_choice("highest:cpu,lowest:load"),
                attributes=(("cpu", (1.0, 2.0, 2.0, 1.0, 3.0, 3.0, 1.0, 2.0, 4.0)), ("load", None)),
                network=network,
                scenario=Scenario("leader-crash"),
                seed=seed,
                view_probability=0.9,
                clocks=Clocks(0.05, 3.0),
                until=90.0,
            )
        made[f"random watched {name}"] = Experiment(
            kind,
            6,
            config,
            network=Network(delay=Uniform(0.1, 1.0), loss=Uncorrelated(0.05)),
            scenario=Scenario("leader-crash"),
            seed=seed,
            detector=HeartbeatConfig(T=3.0, D=1.0),
            until=60.0,
        )
    return made | announcing(seed) | moving(seed) | large(seed) | among_liars(seed)


def moving(seed: int) -> dict[str, Experiment]:
    """Members that move, over several hops and over one."""
    kind = find("le-s")
    ways = {
        "routed": RandomWaypoint(pause=5.0, speed_max=30.0),
        "direct": RandomWaypoint(links=DIRECT, range=400.0, speed_max=30.0),
    }
    return {
        f"random moving {name} le-s": Experiment(
            kind,
            8,
            kind.Settings.parse({"delta": 0.1}),
            network=Network(delay=Fixed(0.1)),
            scenario=Scenario(mobility=model),
            seed=seed,
            until=60.0,
        )
        for name, model in ways.items()
    }


def announcing(seed: int) -> dict[str, Experiment]:
    """Those who announce, in each of their scenarios."""
    lossy = Network(delay=Fixed(0.1), loss=Uncorrelated(0.3, 0.001))
    settings: dict[str, dict[str, object]] = {
        "le-a": {},
        "le-s": {"law": "exponential", "query": "suppress-query", "bye": 2},
        "le-m": {"aged": 2, "T_L": 4.0},
    }
    made: dict[str, Experiment] = {}
    for name, own in settings.items():
        kind = find(name)
        config = kind.Settings.parse({"delta": 0.1, **own})
        for scenario in (
            Scenario("start"),
            Scenario("leader-crash"),
            Scenario("leader-leave"),
            Scenario("join-larger"),
            Scenario("join-smaller"),
            Scenario("false-departure"),
            Scenario("churn", rates=Rates(arrivals=4.0, departures=5.0)),
        ):
            made[f"random {scenario.name} {name}"] = Experiment(
                kind, 7, config, network=lossy, scenario=scenario, seed=seed, until=60.0
            )
    return made


def large(seed: int) -> dict[str, Experiment]:
    """The probabilistic election: its calls are drawn, so each of its runs depends on the seed."""
    kind = find("probabilistic")
    settings: dict[str, dict[str, object]] = {
        "delay": {"N": 9, "K": 3},
        "hash": {"N": 9, "K": 3, "thinning": "hash", "join_on_contact": True},
        "view": {"estimate": "view", "K": 2, "thinning": "all"},
    }
    made: dict[str, Experiment] = {}
    for name, own in settings.items():
        for label, scenario in (("crash", FAULTS), ("start", Scenario("start", initiators=(2, 7)))):
            made[f"random {label} probabilistic {name}"] = Experiment(
                kind,
                9,
                kind.Settings.parse(own),
                network=MESSY,
                scenario=scenario,
                seed=seed,
                view_probability=0.7,
                until=300.0,
            )
    return made


def among_liars(seed: int) -> dict[str, Experiment]:
    """Elections in rounds, in which coins are thrown by good and bad members."""
    tree = {"c0": 4, "layers": "2:2:1", "path": 4, "r_end": 4, "b": 0.2}
    settings: dict[str, tuple[str, int, dict[str, object]]] = {
        "random liars": ("committee", 24, {**tree, "d0": 2}),
        "random greedy": ("committee", 24, {**tree, "adversary": "greedy", "endgame": "baton"}),
        "random public": ("committee", 16, {"profile": "single", "size": 7, "path": 4, "b": 0.2}),
        "random noise": ("agreement", 10, {"adversary": "noise", "instances": 3}),
        "random split": ("agreement", 10, {"adversary": "random+split", "protocol": "king"}),
        "random pack": ("lightest-bin", 10, {"adversary": "pack", "style": "baton"}),
    }
    made: dict[str, Experiment] = {}
    for label, (name, members, own) in settings.items():
        kind = find(name)
        plain = Experiment(kind, members, kind.Settings.parse(own), seed=seed)
        made[f"{label} {name}"] = by_rounds(plain, limited=False)
    return made


def play(experiment: Experiment, run: int, tracer: Tracer) -> RunResult:
    """One run, by whoever plays such an experiment."""
    player = messages.play if isinstance(experiment, ByRounds) else play_world
    return player(experiment, run, tracer)


def digests(seed: int) -> dict[str, list[str | None]]:
    """Of the first two runs of each."""
    return {
        name: [play(experiment, run, Tracer(experiment.header(run))).digest for run in (0, 1)]
        for name, experiment in experiments(seed).items()
    }


def story(experiment: Experiment) -> list[str]:
    """What happened in the first run, without the first and last lines, which name the seed."""
    out = io.BytesIO()
    play(experiment, 0, Tracer(experiment.header(0), out))
    return out.getvalue().decode().splitlines()[1:-1]


if __name__ == "__main__":
    sys.stdout.write(json.dumps(digests(int(sys.argv[1]))))

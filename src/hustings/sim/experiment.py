"""An experiment: one protocol, one group, one scenario, as a value; and how to play one run of it.

Run number k of an experiment has its own seed, derived from the experiment's, so it is the same
run whoever plays it, alone or among thousands, on whatever process.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import msgspec

from hustings.core.choice import Candidate, Choice, HighestId
from hustings.core.config import Config
from hustings.core.election import Election
from hustings.core.errors import BadInput
from hustings.core.messages import Role
from hustings.core.outcome import Outcome
from hustings.core.streams import Stream, derive
from hustings.sim.checkers import Verdict, agreed_leader, all_checkers, attach
from hustings.sim.instants import END_OF_TIME
from hustings.sim.member import SimContext
from hustings.sim.models import Network
from hustings.sim.oracle import Oracle
from hustings.sim.scenarios import Scenario, begin, cast
from hustings.sim.trace import Header, Tracer
from hustings.sim.views import partial_views
from hustings.sim.world import Ended, World
from hustings.substrate.detector import Detector
from hustings.substrate.heartbeat import HeartbeatConfig
from hustings.substrate.monitored import Monitored

MAX_MEMBERS = 1_000_000


@dataclass(frozen=True, slots=True)
class Clocks:
    """How far members' clocks are off: each draws its own rate and offset within these bounds."""

    drift: float = 0.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.drift < 1.0:
            raise BadInput(f"clock drift must lie in [0, 1), not {self.drift:g}")
        if not 0.0 <= self.offset <= END_OF_TIME:
            raise BadInput(f"clock offset must lie in [0, {END_OF_TIME:g}], not {self.offset:g}")


@dataclass(frozen=True, slots=True)
class Experiment:
    """Everything a run depends on."""

    kind: type[Election]
    members: int
    config: Config
    choice: Choice = field(default_factory=HighestId)
    attributes: tuple[tuple[str, tuple[float, ...] | None], ...] = ()  # None: drawn by the seed
    network: Network = field(default_factory=Network)
    scenario: Scenario = field(default_factory=Scenario)
    seed: int = 0
    view_probability: float = 1.0
    clocks: Clocks = field(default_factory=Clocks)
    detector: HeartbeatConfig | None = None  # a failure detector under every member
    oracle: float | None = None  # latency of a perfect detector, if there is one
    calm: float | None = None  # stop once all agree for so long: members with detectors never rest
    until: float = END_OF_TIME
    max_events: int = 50_000_000
    debug: bool = False
    digest: bool = False  # digest every run, as a trace would

    def __post_init__(self) -> None:
        """Refuse what cannot be run, before anything starts."""
        if not 1 <= self.members <= MAX_MEMBERS:
            raise BadInput(f"members must lie between 1 and {MAX_MEMBERS:,}, not {self.members:,}")
        for name, values in self.attributes:
            if values is not None and len(values) != self.members:
                raise BadInput(
                    f"attribute {name!r} has {len(values)} values for {self.members} members"
                )
        if not 0 < self.until <= END_OF_TIME:
            raise BadInput(f"until must lie between 0 and {END_OF_TIME:g}, not {self.until:g}")
        if self.calm is not None and not self.calm >= 0:
            raise BadInput(f"calm must be a time >= 0, not {self.calm:g}")
        if self.max_events < 1:
            raise BadInput(f"max-events must be >= 1, not {self.max_events}")
        candidates = self.candidates(0)
        for candidate in candidates:
            self.choice.key(candidate)
        cast(self.scenario, candidates, self.choice, scripted=self.scripted)

    @property
    def scripted(self) -> bool:
        """Whether the scenario tells who notices a crash; otherwise a detector finds out."""
        return self.detector is None and self.oracle is None

    def header(self, run: int) -> Header:
        """The first line of a trace of one run."""
        return Header(
            protocol=self.kind.about.name,
            members=list(range(1, self.members + 1)),
            seed=derive(self.seed, "run", run),
            settings={
                "experiment_seed": self.seed,
                "run": run,
                "scenario": self.scenario.name,
                "choice": self.choice.name,
                **msgspec.to_builtins(self.config),
            },
        )

    def candidates(self, seed: int) -> list[Candidate]:
        """The group's members; attributes without values are drawn from [0, 1)."""
        streams = {name: Stream(derive(seed, "attribute", name)) for name, _ in self.attributes}
        group = []
        for place in range(self.members):
            own = tuple(
                (name, streams[name].random() if values is None else values[place])
                for name, values in sorted(self.attributes)
            )
            group.append(Candidate(place + 1, own))
        return group


@dataclass(frozen=True, slots=True)
class RunResult:
    """What came of one run."""

    metrics: dict[str, float | None]
    verdicts: dict[str, tuple[Verdict, str]]
    ended: Ended
    digest: str | None = None


_COUNTED = (Role.ELECTION, Role.ANSWER, Role.COORDINATOR, Role.OTHER)


def prepare(experiment: Experiment, run: int, tracer: Tracer | None = None) -> World:
    """The world of run number `run`, set up and not yet begun."""
    seed = derive(experiment.seed, "run", run)
    candidates = experiment.candidates(seed)
    world = World(
        partial(_make, experiment),
        candidates,
        seed=seed,
        network=experiment.network,
        views=partial_views([one.id for one in candidates], experiment.view_probability, seed),
        tracer=tracer,
        debug=experiment.debug,
    )
    _set_clocks(world, experiment.clocks, seed)
    parts = cast(experiment.scenario, candidates, experiment.choice, scripted=experiment.scripted)
    if experiment.oracle is not None:
        world.watch(Oracle(experiment.oracle))
    if experiment.calm is not None:
        last = max((happening.at for happening in experiment.scenario.extra), default=0.0)
        world.watch(Calm(experiment.calm, last))
    live_view = experiment.kind.assumptions.live_view
    begin(world, experiment.scenario, parts, live_view=live_view, tell=experiment.scripted)
    return world


def play(experiment: Experiment, run: int, tracer: Tracer | None = None) -> RunResult:
    """Play one run to its end and judge it."""
    displaces = experiment.kind.assumptions.displaces
    checkers = all_checkers(experiment.choice, displaces=displaces)
    if tracer is None and experiment.digest:
        tracer = Tracer(experiment.header(run))
    world = prepare(experiment, run, tracer)
    attach(checkers, world)
    ended = world.run(experiment.until, experiment.max_events)
    digest = None
    if tracer is not None:
        digest = tracer.close(world.now, ended.value)
    return RunResult(
        metrics=measure(world, detecting=experiment.calm is not None),
        verdicts={checker.name: checker.judge(world, ended) for checker in checkers},
        ended=ended,
        digest=digest,
    )


def measure(world: World, *, detecting: bool) -> dict[str, float | None]:
    """Messages by role, time, leader.

    `time` is the last arrival at a live member or the last declaration, whichever is later; where
    heartbeats keep arriving, the last declaration.
    """
    counts = dict.fromkeys(Role, 0)
    for kind, number in world.sent.items():
        counts[kind.role] += number
    metrics: dict[str, float | None] = {
        f"{role.value}_messages": float(counts[role]) for role in _COUNTED
    }
    metrics["messages"] = float(sum(counts[role] for role in _COUNTED))
    if detecting:
        metrics["detector_messages"] = float(counts[Role.DETECTOR])
        metrics["time"] = world.last_declared
    else:
        metrics["time"] = max(world.last_arrival, world.last_declared)
    leader = agreed_leader(world)
    metrics["leader"] = None if leader is None else float(leader)
    return metrics


class Calm:
    """Stops a run once all live members have agreed for a while and no fault is due any more."""

    def __init__(self, calm: float, last_fault: float) -> None:
        self._calm = calm
        self._last_fault = last_fault
        self._changes = 0

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        self._watch(world)

    def changed(self, world: World, member: SimContext) -> None:
        self._watch(world)

    def _watch(self, world: World) -> None:
        self._changes += 1
        instant = max(world.now, self._last_fault) + self._calm
        if agreed_leader(world) is not None and instant <= END_OF_TIME:
            world.at(instant, partial(self._look, world, self._changes))

    def _look(self, world: World, changes: int) -> None:
        leader = agreed_leader(world)
        if changes == self._changes and leader is not None and world.members[leader].up:
            world.stop()


def _make(experiment: Experiment) -> Election:
    election = experiment.kind(experiment.config, experiment.choice)
    if experiment.detector is None:
        return election
    return Monitored(election, Detector(experiment.detector))


def _set_clocks(world: World, clocks: Clocks, seed: int) -> None:
    if not clocks.drift and not clocks.offset:
        return
    stream = Stream(derive(seed, "clocks"))
    for member in world.members.values():
        rate = 1.0 + stream.uniform(-clocks.drift, clocks.drift)
        member.keep_time(rate, stream.uniform(0.0, clocks.offset))

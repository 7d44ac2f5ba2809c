"""An experiment: one protocol, one group, one scenario, as a value; and how to play one run of it.

Run number k of an experiment has its own seed, derived from the experiment's, so it is the same
run whoever plays it, alone or among thousands, on whatever process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import msgspec

from hustings.core.choice import Candidate, Choice, HighestId
from hustings.core.config import Config
from hustings.core.election import Election
from hustings.core.errors import BadInput
from hustings.core.plugins import source_digest
from hustings.core.streams import Stream, derive
from hustings.layers.detector.detector import Detector
from hustings.layers.detector.heartbeat import HeartbeatConfig
from hustings.layers.detector.layer import DetectorLayer
from hustings.layers.gossip.layer import GossipConfig, with_gossip
from hustings.layers.lease import LeaseConfig, LeaseLayer
from hustings.sim.arranging import Arranged, arrange, told_delta
from hustings.sim.checkers import Checker, LastBit, Verdict, all_checkers, attach
from hustings.sim.churn import Plan, draw
from hustings.sim.clocks import Clocks
from hustings.sim.course import Sampled, check_step
from hustings.sim.guarding import MemoryGuard
from hustings.sim.instants import END_OF_TIME
from hustings.sim.network import Network
from hustings.sim.oracle import Oracle
from hustings.sim.pauses import Pauses, Pausing
from hustings.sim.resident import Composition, Leaderships
from hustings.sim.roaming import Roaming
from hustings.sim.rounds import Rounds, has_rounds
from hustings.sim.safety import safety_checkers
from hustings.sim.scenarios import (
    HORIZON,
    JOINING,
    Cast,
    Scenario,
    begin,
    begin_announcing,
    cast,
    turnover,
)
from hustings.sim.stacking import Settled, settled_at
from hustings.sim.stopping import Calm, Confirmable, PlayOn, settling_time, unplayed
from hustings.sim.studies import Churn, Study, measure
from hustings.sim.trace import Header, Tracer
from hustings.sim.views import gossiped_size, partial_views
from hustings.sim.voting import Present, Voting
from hustings.sim.world import Ended, World

MAX_MEMBERS = 1_000_000
MAX_COUNTED = 10**12
MAX_STACKED = 2_000


@dataclass(frozen=True, slots=True)
class Experiment:
    """Everything a run depends on."""

    kind: type[Election]
    members: int
    config: Config  # without a delta of its own it takes the network's bound on delays
    choice: Choice = field(default_factory=HighestId)
    attributes: tuple[tuple[str, tuple[float, ...] | None], ...] = ()  # None: drawn by the seed
    network: Network = field(default_factory=Network)
    scenario: Scenario = field(default_factory=Scenario)
    seed: int = 0
    view_probability: float = 1.0
    p_fail: float = 0.0  # a member's crash in one round, where there are rounds
    clocks: Clocks = field(default_factory=Clocks)
    pauses: Pauses | None = None  # members stand still at random
    detector: HeartbeatConfig | None = None  # a failure detector under every member
    oracle: float | None = None  # latency of a perfect detector, if there is one
    guard: LeaseConfig | None = None  # a guard that confirms leaders
    voting: Voting | None = None  # and it is made of members that vote
    composition: Composition | None = None  # members as they run on a real network
    stack: GossipConfig | None = None  # gossip and bimodal multicast under every member
    calm: float | None = None  # stop once all agree for so long: members with detectors never rest
    until: float = END_OF_TIME
    max_events: int = 50_000_000
    consensus: bool = False  # judge the last bit of the leader's id as a decision, too
    debug: bool = False
    digest: bool = False  # digest every run, as a trace would
    course: float | None = None  # note the number of leaders in such steps of time
    counted: bool = False  # described, for an engine that makes no members, and not to be played
    # What does not differ between runs, worked out once.
    _group: tuple[Candidate, ...] | None = field(
        default=None, init=False, compare=False, repr=False
    )
    _cast: Cast | None = field(default=None, init=False, compare=False, repr=False)
    repeating: bool = field(default=False, init=False, compare=False)  # a lone member never rests
    # Network, views and crashes as the settings want them.
    arranged: Arranged = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse what cannot be run, before anything starts."""
        object.__setattr__(self, "config", told_delta(self.kind, self.config, self.network))
        arranged = arrange(self.config, self.network, self.view_probability, self.p_fail)
        if self.stack is not None:
            arranged = replace(arranged, view_probability=self.view_probability)
        object.__setattr__(self, "arranged", arranged)
        if arranged.p_fail and not has_rounds(self.kind):
            name = self.kind.about.name
            raise BadInput(f"p_fail is a crash in the course of a round, and {name} has no rounds")
        if self.stack is not None:
            self._check_stack()
        most = MAX_COUNTED if self.counted else MAX_MEMBERS
        if not 1 <= self.members <= most:
            raise BadInput(f"members must lie between 1 and {most:,}, not {self.members:,}")
        for name, values in self.attributes:
            if values is not None and self.scenario.name == "churn":
                raise BadInput(f"churn draws who comes: attribute {name!r} must be random, too")
            if values is not None and len(values) != self.population():
                raise BadInput(
                    f"attribute {name!r} has {len(values)} values for {self.population()} members"
                )
        for name in self.config.attributes_needed:
            if name not in dict(self.attributes):
                raise BadInput(f"the settings name attribute {name!r}: give it by --attribute")
        if not 0 < self.until <= END_OF_TIME:
            raise BadInput(f"until must lie between 0 and {END_OF_TIME:g}, not {self.until:g}")
        if self.calm is not None and not self.calm >= 0:
            raise BadInput(f"calm must be a time >= 0, not {self.calm:g}")
        if self.max_events < 1:
            raise BadInput(f"max-events must be >= 1, not {self.max_events}")
        if self.scenario.name == "churn":
            self.scenario.rates.check(self.horizon)
        if self.scenario.mobility is not None:
            self.scenario.mobility.check(self.members, self.horizon)
        if not self.counted:
            self._cast_roles()

    def _cast_roles(self) -> None:
        """Who is there and who is who, as far as no run differs from another."""
        plan = self.plan(0)
        candidates = self.candidates(0, plan)
        for candidate in candidates:
            self.choice.key(candidate)
        if self.composition is not None:
            self._check_composed()
        elif self.guard is not None:
            _make(self)  # what a guard cannot confirm is told before anything starts
        if self.kind.assumptions.announces:
            object.__setattr__(self, "repeating", _repeats(self, candidates[0]))
        if self.course is not None:
            self._check_course(self.course)
        parts = self.cast(candidates, plan)
        if plan is None and all(values is not None for _, values in self.attributes):
            object.__setattr__(self, "_group", tuple(candidates))
            object.__setattr__(self, "_cast", parts)

    def _check_composed(self) -> None:
        if self.scenario.name != "start":
            raise BadInput(
                "composed members begin as a group that starts: take --scenario start, and faults "
                "for what happens to them, as --fault crash:8@20"
            )
        if self.stack is not None or self.detector is not None or self.oracle is not None:
            raise BadInput("composed members have a detector and gossip membership of their own")
        if self.debug:
            raise BadInput("--debug goes with elections that are not composed")
        if self.members > MAX_STACKED:
            raise BadInput(
                f"at most {MAX_STACKED:,} composed members are played, not {self.members:,}: all "
                "of them gossip all the time"
            )

    def _check_stack(self) -> None:
        if self.detector is not None or self.oracle is not None:
            raise BadInput("gossip membership finds out by itself who is gone: drop the detector")
        if self.kind.assumptions.announces:
            name = self.kind.about.name
            raise BadInput(f"{name} announces by itself and does not go upon gossip membership")
        if self.scenario.name == "churn":
            raise BadInput("scenario 'churn' has no beginning that gossip could settle before")
        if self.scenario.mobility is not None:
            raise BadInput("members that move upon gossip membership are --composed")
        if self.members > MAX_STACKED:
            raise BadInput(
                f"upon gossip membership at most {MAX_STACKED:,} members are played, not "
                f"{self.members:,}: all of them gossip all the time"
            )

    def _check_course(self, step: float) -> None:
        if not self.announces and self.scenario.name != "churn":
            raise BadInput(
                "a course is kept of leaders that come and go by themselves: take an election "
                "that announces, or scenario churn"
            )
        check_step(step, self.horizon if self.endless else None)

    @property
    def source(self) -> str:
        """Digests of the files that its users' classes are in; kept results depend on them."""
        network = self.network
        classes = (self.kind, type(network.loss), type(network.multicasts), type(network.delay))
        return "".join(source_digest(each) for each in dict.fromkeys(classes))

    @property
    def announces(self) -> bool:
        """Whether members find out by themselves what happens; who speaks once begins so only."""
        announces = self.kind.assumptions.announces and self.composition is None
        return announces and (self.repeating or self.scenario.name == "start")

    @property
    def endless(self) -> bool:
        """Whether the scenario goes on until the time limit."""
        return self.scenario.endless(announces=self.announces) or self.settling

    @property
    def settling(self) -> bool:
        """Whether members start that repeat themselves and need not come to agree on a leader."""
        starts = self.announces and self.repeating and self.scenario.name == "start"
        return starts and not self.kind.assumptions.agrees

    @property
    def horizon(self) -> float:
        """The time limit; a scenario without an end of its own has one by default."""
        return HORIZON if self.endless and self.until == END_OF_TIME else self.until

    @property
    def origin(self) -> float:
        """When the scenario's time begins in the world's: a stack has to settle first."""
        return 0.0 if self.stack is None else settled_at(self.stack, self.members)

    @property
    def scripted(self) -> bool:
        """Whether the scenario tells who notices a crash; otherwise a detector finds out."""
        return self.detector is None and self.oracle is None

    def header(self, run: int) -> Header:
        """The first line of a trace of one run."""
        seed = derive(self.seed, "run", run)
        return Header(
            protocol=self.kind.about.name,
            members=list(range(1, self.population(self.plan(seed)) + 1)),
            seed=seed,
            settings={
                "experiment_seed": self.seed,
                "run": run,
                "scenario": self.scenario.name,
                "choice": self.choice.name,
                **msgspec.to_builtins(self.config),
            },
        )

    def plan(self, seed: int) -> Plan | None:
        """Who comes and goes when, if anybody does."""
        if self.scenario.name != "churn":
            return None
        return draw(self.scenario.rates, self.members, self.horizon, seed)

    def population(self, plan: Plan | None = None) -> int:
        """How many are ever in the group."""
        if plan is not None:
            return plan.population
        return self.members + (self.scenario.name in JOINING)

    def candidates(self, seed: int, plan: Plan | None = None) -> list[Candidate]:
        """All who are ever in the group; attributes without values are drawn from [0, 1)."""
        if self._group is not None:
            return list(self._group)
        streams = {name: Stream(derive(seed, "attribute", name)) for name, _ in self.attributes}
        group = []
        for place in range(self.population(plan)):
            own = tuple(
                (name, streams[name].random() if values is None else values[place])
                for name, values in sorted(self.attributes)
            )
            group.append(Candidate(place + 1, own))
        return group

    def cast(self, candidates: list[Candidate], plan: Plan | None) -> Cast:
        """Who is who in one run."""
        if self._cast is not None:
            return self._cast
        return cast(
            self.scenario,
            candidates,
            self.choice,
            scripted=self.scripted,
            announces=self.announces or self.composition is not None,
            unanimous=self.config.unanimous,
            plan=plan,
        )

    def present(self, parts: Cast) -> Present:
        """Who is there from the beginning, if somebody has to know; the crashed, if it was asked.

        The scenario's own leader is not if it is dead or leaves at once, nor is who is to join.
        """
        if self.voting is None:
            return ()
        gone = {*parts.later, *parts.down} - {*self.scenario.crashed}
        if self.scenario.name == "leader-leave" and not self.announces:
            gone.add(parts.leader or 0)
        return tuple(each for each in range(1, self.population() + 1) if each not in gone)


@dataclass(frozen=True, slots=True)
class RunResult:
    """What came of one run."""

    metrics: dict[str, float | None]
    verdicts: dict[str, tuple[Verdict, str]]
    ended: Ended
    digest: str | None = None
    course: Sampled | None = None  # of the number of leaders, where it is kept
    unplayed: tuple[str, ...] = ()  # faults that were due, and did not happen before the end


class _Stage(NamedTuple):
    """A world, and who watches it for what."""

    world: World
    study: Study | Settled | None
    rounds: Rounds | None
    leaderships: Leaderships | None = None
    pausing: Pausing | None = None


def prepare(experiment: Experiment, run: int, tracer: Tracer | None = None) -> World:
    """The world of run number `run`, set up and not yet begun."""
    return _prepare(experiment, run, tracer).world


def _prepare(experiment: Experiment, run: int, tracer: Tracer | None) -> _Stage:
    arranged = experiment.arranged
    seed = derive(experiment.seed, "run", run)
    plan = experiment.plan(seed)
    candidates = experiment.candidates(seed, plan)
    parts = experiment.cast(candidates, plan)
    world = World(
        _maker(experiment, experiment.present(parts)),
        candidates,
        seed=seed,
        network=arranged.network,
        views=partial_views([one.id for one in candidates], arranged.view_probability, seed),
        tracer=tracer,
        debug=experiment.debug,
    )
    experiment.clocks.set_in(world, seed)
    if experiment.guard is not None and experiment.voting is None:
        drift = experiment.clocks.drift
        MemoryGuard(world, 1.0 + Stream(derive(seed, "guard's clock")).uniform(-drift, drift))
    if experiment.oracle is not None:
        world.watch(Oracle(experiment.oracle))
    studied = experiment.announces and experiment.repeating  # and a study says when it is over
    roams = experiment.scenario.mobility is not None
    if experiment.calm is not None and not studied and plan is None and not roams:
        last = max((happening.at for happening in experiment.scenario.extra), default=0.0)
        world.watch(Calm(experiment.calm, last))
    due = tuple(one for one in experiment.scenario.extra if one.at <= experiment.horizon)
    if studied and due and not experiment.endless:
        PlayOn(world, due, settling_time(experiment.config))
    settled = None
    if experiment.stack is not None:
        last = max((happening.at for happening in experiment.scenario.extra), default=0.0)
        settled = Settled(experiment.stack, experiment.members, last)
        settled.begin(world)
    leaderships = None
    if experiment.composition is not None:
        world.stall_bound = experiment.composition.stall_bound
        leaderships = Leaderships()
        world.watch(leaderships)
    study = _begin(experiment, world, parts, plan)
    lease = experiment.guard or experiment.config
    # A member that moves may come near a guard again, and one that is paused goes on.
    if isinstance(lease, LeaseConfig) and not roams and experiment.pauses is None:
        grace = lease.asked * lease.slack + settling_time(experiment.config)
        Confirmable(world, experiment.scenario.extra, experiment.origin, grace)
    rounds = None
    if has_rounds(experiment.kind):
        rounds = Rounds(arranged.p_fail)
        rounds.begin(world)
        world.knowledge.estimate(gossiped_size(len(world.live()), seed))
    pausing = None
    if experiment.pauses is not None:
        pausing = Pausing(experiment.pauses, world, experiment.origin)
    return _Stage(world, study or settled, rounds, leaderships, pausing)


def _begin(experiment: Experiment, world: World, parts: Cast, plan: Plan | None) -> Study | None:
    scenario = experiment.scenario
    # A detector finds the dead among those that it knows: nobody takes them out before it has.
    live_view = experiment.kind.assumptions.live_view and experiment.detector is None
    roaming = _roaming(experiment)
    if experiment.announces:
        return begin_announcing(
            world,
            scenario,
            parts,
            plan,
            live_view=live_view,
            started=experiment.detector is not None or experiment.voting is not None,
            guarded=experiment.guard is not None,
            repeating=experiment.repeating,
            settling=settling_time(experiment.config) if experiment.settling else None,
            displaces=experiment.kind.assumptions.displaces,
            roaming=roaming,
        )
    begin(
        world,
        scenario,
        parts,
        live_view=live_view,
        tell=experiment.scripted,
        guarded=experiment.guard is not None,
        origin=experiment.origin,
        roaming=roaming,
    )
    if plan is None:
        return roaming
    return Churn(world, turnover(scenario, plan, call=True), None)


def _roaming(experiment: Experiment) -> Roaming | None:
    mobility = experiment.scenario.mobility
    if mobility is None:
        return None
    settle = mobility.settle or experiment.calm or settling_time(experiment.config)
    return Roaming(mobility, experiment.horizon, experiment.choice, settle)


def play(experiment: Experiment, run: int, tracer: Tracer | None = None) -> RunResult:
    """Play one run to its end and judge it."""
    checkers = _checkers(experiment)
    if experiment.consensus:
        checkers.append(LastBit())
    if experiment.guard is not None:
        checkers += safety_checkers(central=experiment.voting is None)
    if tracer is None and experiment.digest:
        tracer = Tracer(experiment.header(run))
    world, study, rounds, leaderships, pausing = _prepare(experiment, run, tracer)
    attach(checkers, world)
    if isinstance(study, Roaming):
        checkers.append(study.checker)
    if isinstance(study, Study):
        study.leaders.step = experiment.course
    until = min(experiment.origin + experiment.horizon, END_OF_TIME)
    ended = world.run(until, experiment.max_events)
    digest = None if tracer is None else tracer.close(world.now, ended.value)
    metrics = {} if rounds is None else rounds.metrics(world)
    detecting = experiment.calm is not None or experiment.stack is not None
    metrics.update(measure(world, detecting=detecting, study=study))
    if leaderships is not None:
        metrics.update(leaderships.metrics())
    if pausing is not None:
        metrics.update(pausing.metrics())
    return RunResult(
        metrics=metrics,
        verdicts={checker.name: checker.judge(world, ended) for checker in checkers},
        ended=ended,
        digest=digest,
        course=study.leaders.course(world) if isinstance(study, Study) else None,
        unplayed=unplayed(world, experiment.scenario.extra, experiment.origin),
    )


def _checkers(experiment: Experiment) -> list[Checker]:
    """What is asked of a whole group in the end; of one that moves, nothing."""
    if experiment.scenario.mobility is not None:
        return []
    assumptions, composition = experiment.kind.assumptions, experiment.composition
    return all_checkers(
        experiment.choice,
        displaces=assumptions.displaces if composition is None else composition.displaces,
        announces=assumptions.announces,
        agrees=assumptions.agrees,
        unheard=has_rounds(experiment.kind) and not assumptions.reliable,
    )


def _maker(experiment: Experiment, present: Present) -> Callable[[], Election]:
    """What makes one member's election; where nothing goes round it, without a detour."""
    if experiment.composition is not None:
        return experiment.composition.make
    make = partial(_make, experiment, present)
    if experiment.detector is None and experiment.guard is None:
        make = partial(experiment.kind, experiment.config, experiment.choice)
    return make if experiment.stack is None else with_gossip(make, experiment.stack)


def _make(experiment: Experiment, present: Present = ()) -> Election:
    election: Election = experiment.kind(experiment.config, experiment.choice)
    if experiment.detector is not None:
        election = DetectorLayer(election, Detector(experiment.detector))
    if experiment.guard is None:
        return election
    confirmed = LeaseLayer(election, experiment.guard)
    return confirmed if experiment.voting is None else experiment.voting(confirmed, present)


def _repeats(experiment: Experiment, candidate: Candidate) -> bool:
    """Whether a member that is alone goes on for ever: found by trying, whatever election it is."""
    world = World(lambda: experiment.kind(experiment.config, experiment.choice), [candidate])
    world.start()
    return world.run(max_events=20) is not Ended.QUIESCENT

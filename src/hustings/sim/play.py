"""One run of an experiment: the world is set up, played to its end, and judged.

Run number k of an experiment has its own seed, derived from the experiment's, so it is the same run
alone or among thousands, in any process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from hustings.core.election import Election
from hustings.core.messages import Role
from hustings.core.streams import Stream, derive
from hustings.layers.gossip.layer import with_gossip
from hustings.layers.lease import LeaseConfig
from hustings.sim.agenda import Agenda
from hustings.sim.checkers import (
    Checker,
    LastBit,
    Verdict,
    agreed_leader,
    all_checkers,
    attach,
)
from hustings.sim.components import Roaming
from hustings.sim.experiment import Experiment, has_rounds
from hustings.sim.failing import Failing
from hustings.sim.faults import Crash, Happening
from hustings.sim.guarding import MemoryGuard, Present
from hustings.sim.measurements import Churn, RunMeasurement
from hustings.sim.member import gossiped_size, partial_views
from hustings.sim.oracle import Oracle
from hustings.sim.pauses import Pausing
from hustings.sim.queue import END_OF_TIME
from hustings.sim.resident import Leaderships
from hustings.sim.rounds import Rounds
from hustings.sim.safety import safety_checkers
from hustings.sim.scenarios import (
    Cast,
    Plan,
    begin,
    begin_announcing,
    turnover,
)
from hustings.sim.stacking import Settled
from hustings.sim.stopping import Calm, Confirmable, PlayOn, settling_time
from hustings.sim.time_series import SampledSeries
from hustings.sim.trace import Tracer
from hustings.sim.traffic import NetworkBytes
from hustings.sim.world import Ended, World

_COUNTED = (Role.ELECTION, Role.ANSWER, Role.COORDINATOR, Role.OTHER)


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of one run."""

    metrics: dict[str, float | None]
    verdicts: dict[str, tuple[Verdict, str]]
    ended: Ended
    digest: str | None = None
    time_series: SampledSeries | None = None  # of the number of leaders, where it is kept
    unplayed: tuple[str, ...] = ()  # faults that were due, and did not happen before the end


class _Stage(NamedTuple):
    """A world and its observers."""

    world: World
    study: RunMeasurement | Settled | None
    rounds: Rounds | None
    leaderships: Leaderships | None = None
    by_chance: tuple[Pausing | Failing, ...] = ()
    traffic: NetworkBytes | None = None


def prepare(experiment: Experiment, run: int, tracer: Tracer | None = None) -> World:
    """The world of run number `run`, set up and not yet begun."""
    return _prepare(experiment, run, tracer).world


def _prepare(experiment: Experiment, run: int, tracer: Tracer | None) -> _Stage:
    experiment.check_playable()
    effective = experiment.effective
    seed = derive(experiment.seed, "run", run)
    plan = experiment.plan(seed)
    candidates = experiment.candidates(seed, plan)
    parts = experiment.cast(candidates, plan)
    make = _maker(experiment, experiment.present(parts))
    world = World(
        make,
        candidates,
        seed=seed,
        network=effective.network,
        views=partial_views([one.id for one in candidates], effective.view_probability, seed),
        tracer=tracer,
        debug=experiment.debug,
    )
    experiment.clocks.set_in(world, seed)
    if experiment.guard is not None and experiment.voting is None:
        _set_guard(experiment, world, seed)
    if experiment.oracle is not None:
        world.watch(Oracle(experiment.oracle))
    studied = experiment.announces and experiment.repeating  # and a study decides when it is over
    roams = experiment.scenario.mobility is not None
    last = max((happening.at for happening in experiment.scenario.extra), default=0.0)
    if experiment.calm is not None and plan is None and not (studied or roams):
        # What comes at random has no last one: a time limit says how long it is watched.
        if not experiment.by_chance or experiment.until == END_OF_TIME:
            world.watch(Calm(experiment.calm, last))
    due = tuple(one for one in experiment.scenario.extra if one.at <= experiment.horizon)
    if studied and due and not experiment.endless:
        PlayOn(world, due, settling_time(experiment.config))
    settled = None
    if experiment.stack is not None:
        settled = Settled(experiment.stack, experiment.members, last)
        settled.begin(world)
    leaderships = None
    if experiment.composition is not None:
        world.stall_bound = experiment.composition.stall_bound
        leaderships = Leaderships()
        world.watch(leaderships)
    study = _begin(experiment, world, parts, plan)
    lease = experiment.guard or experiment.config
    # A member that moves may reach a guard again, and a paused member may continue.
    if (
        isinstance(lease, LeaseConfig)
        and not roams
        and experiment.pauses is None
        and not experiment.by_chance
    ):
        grace = lease.asked * lease.slack + settling_time(experiment.config)
        Confirmable(world, experiment.scenario.extra, experiment.origin, grace)
    rounds = None
    if has_rounds(experiment.kind):
        rounds = Rounds(effective.p_fail)
        rounds.begin(world)
        world.knowledge.estimate(gossiped_size(len(world.live()), seed))
    chance, frames = _by_chance(experiment, world), experiment.frames
    traffic = frames and NetworkBytes(world, frames(make()), experiment.origin)
    return _Stage(world, study or settled, rounds, leaderships, chance, traffic)


def _set_guard(experiment: Experiment, world: World, seed: int) -> None:
    """A register whose clock drifts, too."""
    drift = experiment.clocks.drift
    MemoryGuard(world, 1.0 + Stream(derive(seed, "guard's clock")).uniform(-drift, drift))


def _by_chance(experiment: Experiment, world: World) -> tuple[Pausing | Failing, ...]:
    """The pauses, crashes and outages of a run, if there are any."""
    agenda, begin = Agenda(world), experiment.origin
    found: list[Pausing | Failing] = []
    if experiment.pauses is not None:
        found.append(Pausing(experiment.pauses, world, agenda, begin))
    if experiment.environment is not None:
        found.append(Failing(experiment.environment, world, agenda, begin))
    agenda.arm()
    return tuple(found)


def _begin(
    experiment: Experiment, world: World, parts: Cast, plan: Plan | None
) -> RunMeasurement | None:
    scenario = experiment.scenario
    # A detector finds the dead among the members that it knows: until then they stay there.
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
    world, study, rounds, leaderships, by_chance, traffic = _prepare(experiment, run, tracer)
    attach(checkers, world)
    if isinstance(study, Roaming):
        checkers.append(study.checker)
    if isinstance(study, RunMeasurement):
        study.leaders.step = experiment.time_series
    until = min(experiment.origin + experiment.horizon, END_OF_TIME)
    ended = world.run(until, experiment.max_events)
    digest = None if tracer is None else tracer.close(world.now, ended.value)
    metrics = {} if rounds is None else rounds.metrics(world)
    detecting = experiment.calm is not None or experiment.stack is not None
    metrics.update(measure(world, detecting=detecting, study=study))
    if leaderships is not None:
        metrics.update(leaderships.metrics())
    for each in by_chance:
        metrics.update(each.metrics())
    if traffic is not None:
        metrics.update(traffic.metrics(world))
    return RunResult(
        metrics=metrics,
        verdicts={checker.name: checker.judge(world, ended) for checker in checkers},
        ended=ended,
        digest=digest,
        time_series=study.leaders.time_series(world) if isinstance(study, RunMeasurement) else None,
        unplayed=unplayed(world, experiment.scenario.extra, experiment.origin),
    )


def _checkers(experiment: Experiment) -> list[Checker]:
    """What is judged of a whole group at the end; of a group that moves, nothing."""
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
    """What makes one member's election; the class itself if no layer goes round it."""
    if experiment.composition is not None:
        return experiment.composition.make
    make = partial(experiment.make_election, present)
    if experiment.detector is None and experiment.guard is None:
        make = partial(experiment.kind, experiment.config, experiment.choice)
    return make if experiment.stack is None else with_gossip(make, experiment.stack)


def measure(
    world: World, *, detecting: bool, study: RunMeasurement | Settled | None = None
) -> dict[str, float | None]:
    """Messages by role, time, leader, and what a study has found.

    `time` is the last arrival at a live member or the last declaration, the later of them. With
    heartbeats, which keep arriving, it is the last declaration. A study has its own `time`, and its
    messages count from its beginning.
    """
    counts = dict.fromkeys(Role, 0)
    for kind, number in world.sent.items():
        counts[kind.role] += number - (study.earlier.get(kind, 0) if study is not None else 0)
    metrics: dict[str, float | None] = (
        study.metrics(world) if isinstance(study, RunMeasurement) else {}
    )
    metrics.update({f"{role.value}_messages": float(counts[role]) for role in _COUNTED})
    metrics["messages"] = float(sum(counts[role] for role in _COUNTED))
    if detecting:
        metrics["detector_messages"] = float(counts[Role.DETECTOR])
    if world.guard is not None:
        metrics["guard_requests"] = float(world.guard.asked)
    if isinstance(study, RunMeasurement):
        metrics["time"] = study.time(world)
    elif study is not None:
        metrics["time"] = max(0.0, world.last_declared - study.origin)
    elif detecting:
        metrics["time"] = world.last_declared
    else:
        metrics["time"] = max(world.last_arrival, world.last_declared)
    leader = agreed_leader(world)
    metrics["leader"] = None if leader is None else float(leader)
    return metrics


def unplayed(world: World, faults: tuple[Happening, ...], origin: float) -> tuple[str, ...]:
    """The faults that have not happened by the end of a run, as they were typed."""
    return tuple(
        f"{fault.label} at {fault.at:g}" for fault in faults if not _happened(world, fault, origin)
    )


def _happened(world: World, fault: Happening, origin: float) -> bool:
    if fault.at + origin > world.now:
        return False
    if isinstance(fault, Crash) and fault.after_sends:
        return world.members[fault.member].fuse is None  # otherwise it waits for more sends
    return True

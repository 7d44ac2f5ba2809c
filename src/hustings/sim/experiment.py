"""An experiment: one protocol, one group, one scenario, as a value; `build` makes it from options.

`build` is the one place where settings are derived: from the network (`delta`), from the scenario,
from the size of the group and from what lies below the election. The command line and Python both
come here, so one description gives the same runs, bit for bit. `sim/play.py` plays the runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from hustings.core.choice import Candidate, Choice, HighestId, parse_choice
from hustings.core.config import Config, Surroundings, parse_number
from hustings.core.election import Election
from hustings.core.errors import BadInput, UnknownName
from hustings.core.plugins import source_digest
from hustings.core.rounds import RoundBased
from hustings.core.streams import Stream, derive
from hustings.layers.detector.detector import Detector
from hustings.layers.detector.heartbeat import HeartbeatConfig
from hustings.layers.detector.layer import DetectorLayer
from hustings.layers.detector.registry import find_detector
from hustings.layers.gossip.layer import GossipConfig
from hustings.layers.lease import LeaseConfig, LeaseLayer
from hustings.layers.measurement import WORST
from hustings.sim.environment import Environment
from hustings.sim.faults import Alive, Suspect
from hustings.sim.guarding import Present, Voting
from hustings.sim.loss import Loss, check_probability
from hustings.sim.member import Clocks
from hustings.sim.network import Network
from hustings.sim.pauses import Pauses
from hustings.sim.queue import END_OF_TIME
from hustings.sim.resident import Composition
from hustings.sim.scenarios import (
    HORIZON,
    JOINING,
    PLACE,
    RANDOM,
    Cast,
    Order,
    Plan,
    Scenario,
    cast,
    draw,
    places_of,
)
from hustings.sim.stacking import settled_at
from hustings.sim.stopping import endless_wait
from hustings.sim.time_series import check_step
from hustings.sim.trace import Header
from hustings.sim.traffic import ToFrameSize
from hustings.sim.world import MAX_EVENTS

MAX_MEMBERS = 1_000_000
MAX_COUNTED = 10**12
MAX_STACKED = 2_000
SCRIPTED, PERFECT = "scripted", "perfect"  # besides the detectors of the registry
MEMBERSHIPS = ("ideal", "gossip")
ANY_NUMBER = 10**9  # members that churn may bring
FEWEST_EVENTS = 2_000_000  # limit of a run that has an end of its own, at least

Settings = Mapping[str, object]
# From delta to what makes the group's own members the guard.
ToVoting = Callable[[float], Voting]


class Composed(NamedTuple):
    """Members as they run on a real network: their settings and parts, and how long to wait."""

    config: Config
    guard: LeaseConfig | None
    composition: Composition
    calm: float  # the time after which an agreement counts as lasting


@dataclass(frozen=True)
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
    environment: Environment | None = None  # where network, clocks and pauses come from
    frames: ToFrameSize | None = None  # what says how many bytes a message takes
    detector: HeartbeatConfig | None = None  # a failure detector under every member
    oracle: float | None = None  # latency of a perfect detector, if there is one
    guard: LeaseConfig | None = None  # a guard that confirms leaders
    voting: Voting | None = None  # and it is made of members that vote
    composition: Composition | None = None  # members as they run on a real network
    stack: GossipConfig | None = None  # gossip and bimodal multicast under every member
    calm: float | None = None  # stop when all agree for this time: detectors never rest
    until: float = END_OF_TIME
    max_events: int = 50_000_000
    consensus: bool = False  # judge the last bit of the leader's id as a decision, too
    debug: bool = False
    digest: bool = False  # digest every run, as a trace would
    time_series: float | None = None  # record the number of leaders in steps of this time

    def __post_init__(self) -> None:
        """Refuse what cannot be run, before anything starts."""
        # The one setting that follows from the network, also where an experiment is made by hand.
        object.__setattr__(self, "config", told_delta(self.kind, self.config, self.network))
        if self.effective.p_fail and not has_rounds(self.kind):
            name = self.kind.about.name
            raise BadInput(f"p_fail is a crash in the course of a round, and {name} has no rounds")
        if self.stack is not None:
            self._check_stack()
        # An engine that makes no members takes larger groups than the simulator plays.
        most = MAX_COUNTED if has_rounds(self.kind) else MAX_MEMBERS
        if not 1 <= self.members <= most:
            raise BadInput(f"members must lie between 1 and {most:,}, not {self.members:,}")
        for name, values in self.attributes:
            if values is not None and self.scenario.name == "churn":
                raise BadInput(f"churn draws the members: attribute {name!r} must be random, too")
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
        if self.composition is not None:
            self._check_composed()
        elif self.guard is not None:
            self.make_election()  # a guard that can confirm no leader is an error now
        if self.time_series is not None:
            self._check_time_series(self.time_series)
        # A plain start with ids names no member and ranks nothing, so it cannot be wrong.
        plain = self.scenario == Scenario() and isinstance(self.choice, HighestId)
        if not plain and not has_rounds(self.kind):
            self.check_playable()

    def check_playable(self) -> None:
        """Refuse what cannot be played message by message; kernels take groups that are larger."""
        assert self._playable

    @cached_property
    def _playable(self) -> bool:
        if self.members > MAX_MEMBERS:
            raise BadInput(f"members must lie between 1 and {MAX_MEMBERS:,}, not {self.members:,}")
        plan = self.plan(0)
        candidates = self.candidates(0, plan)
        for candidate in candidates:
            self.choice.key(candidate)
        self.cast(candidates, plan)
        return True

    @cached_property
    def effective(self) -> Effective:
        """Network, views and crashes, with the settings applied."""
        found = effective_network(self.config, self.network, self.view_probability, self.p_fail)
        if self.stack is not None:
            found = replace(found, view_probability=self.view_probability)
        return found

    @property
    def repeating(self) -> bool:
        """Whether leaders announce themselves for ever."""
        return self.kind.assumptions.announces and self.kind.assumptions.repeats

    @cached_property
    def _same_in_all_runs(self) -> tuple[tuple[Candidate, ...], Cast] | None:
        """The group and the roles in it, if no run differs from another."""
        if self.scenario.name == "churn" or any(values is None for _, values in self.attributes):
            return None
        group = tuple(self._draw_candidates(0, None))
        return group, self._draw_cast(list(group), None)

    def make_election(self, present: Present = ()) -> Election:
        """One member's election with its detector and its lease, if it has them."""
        election: Election = self.kind(self.config, self.choice)
        if self.detector is not None:
            election = DetectorLayer(election, Detector(self.detector))
        if self.guard is None:
            return election
        confirmed = LeaseLayer(election, self.guard)
        return confirmed if self.voting is None else self.voting(confirmed, present)

    def _check_composed(self) -> None:
        if self.scenario.name != "start":
            raise BadInput(
                "composed members begin as a group that starts: take --scenario start, and "
                "faults such as --fault crash:8@20"
            )
        if self.stack is not None or self.detector is not None or self.oracle is not None:
            raise BadInput("composed members have a detector and gossip membership of their own")
        if self.debug:
            raise BadInput("--debug needs elections that are not composed")
        if self.members > MAX_STACKED:
            raise BadInput(
                f"at most {MAX_STACKED:,} composed members are played, not {self.members:,}: all "
                "of them gossip all the time"
            )

    def _check_stack(self) -> None:
        if self.detector is not None or self.oracle is not None:
            raise BadInput(
                "gossip membership notices by itself that a member is gone: drop the detector"
            )
        if self.kind.assumptions.announces:
            name = self.kind.about.name
            raise BadInput(f"{name} announces by itself and does not go upon gossip membership")
        if self.scenario.name == "churn":
            raise BadInput("scenario 'churn' has no beginning before which gossip could settle")
        if self.scenario.mobility is not None:
            raise BadInput("members that move upon gossip membership are --composed")
        if self.members > MAX_STACKED:
            raise BadInput(
                f"upon gossip membership at most {MAX_STACKED:,} members are played, not "
                f"{self.members:,}: all of them gossip all the time"
            )

    def _check_time_series(self, step: float) -> None:
        if not self.announces and self.scenario.name != "churn":
            raise BadInput(
                "a time series needs leaders that come and go by themselves: take an "
                "election that announces, or scenario churn"
            )
        check_step(step, self.horizon if self.endless else None)

    @property
    def source(self) -> str:
        """Digests of the files that its users' classes are in; kept results depend on them."""
        network = self.network
        classes = (
            *(self.kind, type(network.loss), type(network.multicasts), type(network.delay)),
            type(self.detector),
        )
        told = "" if self.environment is None else self.environment.to_toml()
        read = blake2b(told.encode(), digest_size=16).hexdigest() if told else ""
        return "".join(source_digest(each) for each in dict.fromkeys(classes)) + read

    @property
    def by_chance(self) -> bool:
        """Whether pauses, crashes or outages come at random, as an environment has them."""
        found = self.environment
        return found is not None and (found.pauses, found.crashes, found.outages) != (None,) * 3

    @property
    def announces(self) -> bool:
        """Whether members notice faults by themselves.

        Members that speak once notice only a start.
        """
        announces = self.kind.assumptions.announces and self.composition is None
        return announces and (self.repeating or self.scenario.name == "start")

    @property
    def endless(self) -> bool:
        """Whether the scenario goes on until the time limit."""
        return self.scenario.endless(announces=self.announces) or self.settling

    @property
    def settling(self) -> bool:
        """Whether members start here that repeat themselves and may never agree on a leader."""
        starts = self.announces and self.repeating and self.scenario.name == "start"
        return starts and not self.kind.assumptions.agrees

    @property
    def horizon(self) -> float:
        """The time limit; a scenario without an end of its own has one by default."""
        return HORIZON if self.endless and self.until == END_OF_TIME else self.until

    @property
    def origin(self) -> float:
        """The world's time at which the scenario begins: gossip must settle first."""
        return 0.0 if self.stack is None else settled_at(self.stack, self.members)

    @property
    def scripted(self) -> bool:
        """Whether the scenario says which members notice a crash. If not, a detector does."""
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
        """The members that come and go, and when, if there is churn."""
        if self.scenario.name != "churn":
            return None
        return draw(self.scenario.rates, self.members, self.horizon, seed)

    def population(self, plan: Plan | None = None) -> int:
        """The number of members that are ever in the group."""
        if plan is not None:
            return plan.population
        return self.members + self.scenario.joining

    def candidates(self, seed: int, plan: Plan | None = None) -> list[Candidate]:
        """All members that are ever in the group.

        Attributes without values are drawn from [0, 1).
        """
        same = self._same_in_all_runs
        return list(same[0]) if same is not None else self._draw_candidates(seed, plan)

    def _draw_candidates(self, seed: int, plan: Plan | None) -> list[Candidate]:
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
        """The role of each member in one run."""
        same = self._same_in_all_runs
        return same[1] if same is not None else self._draw_cast(candidates, plan)

    def _draw_cast(self, candidates: list[Candidate], plan: Plan | None) -> Cast:
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
        """The members that must be there from the beginning; the crashed ones, if they were given.

        The scenario's own leader is not among them if it is dead or leaves at once, nor is a member
        that joins later.
        """
        if self.voting is None:
            return ()
        gone = {*parts.later, *parts.down} - {*self.scenario.crashed}
        if self.scenario.name == "leader-leave" and not self.announces:
            gone.add(parts.leader or 0)
        return tuple(each for each in range(1, self.population() + 1) if each not in gone)


# From options to an experiment


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """One experiment as a person describes it. What is left out is derived, or has a default.

    `settings` are those of the election. `guard` holds the settings of a lease if a guard confirms
    leaders; with `voting`, members of the group are that guard. With a `composer`, such as
    `hustings.testing.composed.compose_members`, members are built as `join` builds them, and time
    is in seconds.
    """

    kind: type[Election]
    members: int = 8
    settings: Settings = field(default_factory=dict)
    scenario: Scenario = field(default_factory=Scenario)
    network: Network = field(default_factory=Network)
    choice: Choice | str = "highest-id"
    attributes: tuple[tuple[str, tuple[float, ...] | None], ...] = ()
    order: Order | None = None  # of ids clockwise, where the election goes round a ring
    seed: int = 1
    view: float | None = None  # probability that a member knows another one; None: 1
    clocks: Clocks = field(default_factory=Clocks)
    pauses: Pauses | None = None  # members stand still at random
    environment: Environment | None = None  # says the network, clocks, pauses; time is in seconds
    frames: ToFrameSize | None = None  # what says how many bytes a message takes
    detection: str = SCRIPTED
    detection_settings: Settings = field(default_factory=dict)
    guard: Settings | None = None
    voting: ToVoting | None = None
    composer: Callable[[Description, Settings], Composed] | None = None
    leadership_settings: Settings = field(default_factory=dict)  # of composed members
    measure: Settings = field(default_factory=dict)  # the measurement that ranks composed members
    membership: str = "ideal"
    gossip_settings: Settings = field(default_factory=dict)
    until: float | None = None
    max_events: int | None = None
    time_series: float | None = None
    consensus: bool = False  # judge the last bit of the leader's id as a decision, too
    debug: bool = False
    digest: bool = False


def build(described: Description) -> Experiment:
    """The experiment that is described. Errors are reported before anything starts.

    >>> from hustings.sim.delay import Fixed
    >>> class Quiet(Election):
    ...     about = None
    >>> build(Description(kind=Quiet, network=Network(delay=Fixed(0.1)))).config.delta
    0.1
    """
    if described.members < 1:
        raise BadInput(f"members must be at least 1, not {described.members}")
    if described.environment is not None:
        described = _placed_in(described, described.environment)
    if described.order is not None:
        described = _placed(described, described.order)
    joining = ANY_NUMBER if described.scenario.name == "churn" else 1
    joining *= described.scenario.name in (*JOINING, "churn")
    described.network.delay.check(described.members, joining)
    _check_suspicions(described)
    if described.composer is not None:
        return _composed(described, described.composer)
    _check_not_composed(described)
    view = check_probability("view probability", 1.0 if described.view is None else described.view)
    config = effective_settings(described)
    stack = _stack(described, config)
    if stack is not None:
        config = effective_settings(described, _settings_upon(stack, config))
    detector, oracle = _detection(described, config.delta)
    guard = None
    if described.guard is not None:
        guard = LeaseConfig.parse({"delta": config.delta, **described.guard})
    choice = described.choice
    experiment = Experiment(
        kind=described.kind,
        members=described.members,
        config=config,
        choice=parse_choice(choice) if isinstance(choice, str) else choice,
        attributes=described.attributes,
        network=described.network,
        scenario=described.scenario,
        seed=described.seed,
        view_probability=1.0 if stack is not None else view,
        clocks=described.clocks,
        pauses=described.pauses,
        environment=described.environment,
        frames=described.frames,
        detector=detector,
        oracle=oracle,
        guard=guard,
        voting=None if described.voting is None else described.voting(config.delta),
        stack=stack,
        calm=_calm(detector, guard, config.delta),
        until=END_OF_TIME if described.until is None else described.until,
        max_events=_most_events(described),
        consensus=described.consensus,
        debug=described.debug,
        digest=described.digest,
        time_series=described.time_series,
    )
    if not has_rounds(described.kind):  # such a group may be too large to be made
        experiment.check_playable()
    unlimited = described.until is None and described.max_events is None
    if unlimited and experiment.announces:
        wait = endless_wait(experiment)
        if wait is not None:
            raise BadInput(wait)
    return experiment


def _check_not_composed(described: Description) -> None:
    """Refuse settings of composed members."""
    if described.leadership_settings:
        raise BadInput("--leadership-set goes with --composed")
    if described.measure:
        raise BadInput("--measure-set goes with --composed")


def _placed_in(described: Description, environment: Environment) -> Description:
    """The same in an environment: its network, its clocks, its pauses."""
    own = (described.network, described.clocks, described.pauses)
    if own != (Network(), Clocks(), None):
        raise BadInput("an environment says the network, the clocks and the pauses: drop those")
    if described.scenario.mobility is not None:
        raise BadInput("an environment says who reaches whom: drop the mobility")
    if environment.sites is not None and environment.members != described.members:
        raise BadInput(
            f"the environment's sites hold {environment.members} members, and the group has "
            f"{described.members}: both numbers must be the same"
        )
    return replace(
        described,
        network=environment.network,
        clocks=Clocks(environment.drift),
        pauses=environment.pauses,
    )


def _placed(described: Description, order: Order) -> Description:
    """The same with an attribute that says each member's place, and a setting that names it."""
    kind, given = described.kind, [name for name, _ in described.attributes]
    if PLACE not in kind.Settings.__struct_fields__:
        raise BadInput(f"--order goes with an election round a ring, and {kind.about.name} is none")
    if PLACE in described.settings or PLACE in given:
        raise BadInput(f"--order says each member's {PLACE}: drop that setting or attribute")
    population = described.members + described.scenario.joining
    if described.scenario.name == "churn" and order != RANDOM:
        raise BadInput("churn draws the members: with it --order must be random")
    places = (PLACE, places_of(order, population))
    return replace(
        described,
        order=None,
        settings={**described.settings, PLACE: PLACE},
        attributes=(*described.attributes, places),
    )


def _composed(
    described: Description, composer: Callable[[Description, Settings], Composed]
) -> Experiment:
    """The same with members that are built as on a real network."""
    if described.membership != "ideal" or described.gossip_settings:
        raise BadInput("composed members have gossip membership of their own: drop --membership")
    if described.view is not None:
        raise BadInput("composed members find each other by gossip: drop --view")
    kind = described.kind
    made = composer(described, {**derived_delta(kind, described.network), **described.settings})
    choice = described.choice
    return Experiment(
        kind=kind,
        members=described.members,
        config=made.config,
        choice=parse_choice(choice) if isinstance(choice, str) else choice,
        attributes=_attributes(described),
        network=described.network,
        scenario=described.scenario,
        seed=described.seed,
        clocks=described.clocks,
        pauses=described.pauses,
        environment=described.environment,
        frames=described.frames,
        guard=made.guard,
        voting=None if described.voting is None else described.voting(made.config.delta),
        composition=made.composition,
        calm=made.calm,
        until=END_OF_TIME if described.until is None else described.until,
        max_events=_most_events(described),
        consensus=described.consensus,
        debug=described.debug,
        digest=described.digest,
        time_series=described.time_series,
    )


def _attributes(described: Description) -> tuple[tuple[str, tuple[float, ...] | None], ...]:
    """The given attributes, and those that members measure: nothing measured yet."""
    if not described.measure:
        return described.attributes
    measured = (str(described.measure.get("what", "loss")), (WORST,) * described.members)
    return (*described.attributes, measured)


def effective_settings(described: Description, upon: Settings | None = None) -> Config:
    """The given settings, then those of the scenario or of the layers below, then the defaults."""
    kind = described.kind
    given = {**derived_delta(kind, described.network), **described.settings}
    given = {**_known(described, given), **(upon or {}), **given}
    usual = scenario_settings(kind, described.scenario)
    if usual.keys() - given.keys():
        try:
            return kind.Settings.parse({**usual, **given})
        except BadInput:
            pass  # what was given contradicts it, or is wrong alone
    return kind.Settings.parse(given)


def scenario_settings(kind: type[Election], scenario: Scenario) -> dict[str, object]:
    """The settings of a scenario, unless others are given; none with faults or mobility.

    For example, a start is measured with a leader that no member misses. A group with faults must
    miss a leader.
    """
    eventful = scenario.extra or scenario.mobility is not None
    return {} if eventful else kind.Settings.for_scenario(scenario.name)


def _known(described: Description, given: Settings) -> dict[str, object]:
    """Settings that follow from the world."""
    view = 1.0 if described.view is None else described.view
    around = Surroundings(
        p_ucastl=described.network.loss.p, p_mcastl=described.network.multicasts.p, view_prob=view
    )
    known = described.kind.Settings.for_group(described.members, around)
    if described.view is not None and "view_prob" in known and "view_prob" in given:
        if _number(given["view_prob"]) not in (None, view):
            raise BadInput(
                f"--view {view:g} and --set view_prob={given['view_prob']} contradict each other: "
                "drop one of them"
            )
    return known


def _number(value: object) -> float | None:
    """The given value as a number, if it is one; errors are reported where settings are read."""
    try:
        return parse_number(str(value))
    except ValueError:
        return None


def _check_suspicions(described: Description) -> None:
    """Refuse what a detector cannot say; a test may still force it."""
    scenario = described.scenario
    known = range(1, described.members + scenario.joining + 1)
    for fault in scenario.extra:
        if not isinstance(fault, Suspect | Alive):
            continue
        if fault.about == fault.member:
            raise BadInput(
                f"a detector tells member {fault.member} of others, not of itself: name two members"
            )
        if fault.about not in known and scenario.name != "churn":
            raise UnknownName("member", str(fault.about), map(str, known))


def _most_events(described: Description) -> int:
    if described.max_events is not None:
        return described.max_events
    if described.scenario.endless(announces=described.kind.assumptions.announces):
        return MAX_EVENTS
    return max(FEWEST_EVENTS, 8 * described.members**2)


def _calm(
    detector: HeartbeatConfig | None, guard: LeaseConfig | None, delta: float
) -> float | None:
    """The time after which an agreement counts as lasting; None where runs come to rest."""
    longest = [] if detector is None else [2 * detector.timeout]
    longest += [] if guard is None else [guard.asked]
    return max(longest) + 20 * delta if longest else None


def _detection(described: Description, delta: float) -> tuple[HeartbeatConfig | None, float | None]:
    """A detector's configuration, or a perfect detector's latency, or neither."""
    given = dict(described.detection_settings)
    found = None
    if described.detection not in (SCRIPTED, PERFECT):
        found = find_detector(described.detection, (SCRIPTED, PERFECT))
    if described.detection != SCRIPTED and described.scenario.detectors:
        raise BadInput(
            "--detector names the members that notice, but with --detection "
            f"{described.detection} members notice by themselves: drop one of them"
        )
    if found is not None:
        return found.parse({"delta": delta, **given}), None
    if described.detection == SCRIPTED:
        if given:
            raise BadInput("--detection-set goes with --detection perfect, heartbeat or accrual")
        return None, None
    if described.scenario.mobility is not None:
        raise BadInput(
            "a perfect detector reports crashes, not of members out of reach: with --mobility "
            "take --detection heartbeat or accrual"
        )
    return None, _latency(given)


def _latency(given: dict[str, object]) -> float:
    text = given.pop("latency", 0.0)
    if given:
        raise UnknownName("detection setting", next(iter(given)), ["latency"])
    latency = _number(text)
    if latency is None or not abs(latency) < float("inf"):
        raise BadInput(f"latency must be a number, not {str(text).strip()!r}")
    return latency


def _stack(described: Description, config: Config) -> GossipConfig | None:
    """The layers under an election with these settings, if there are any."""
    if described.membership not in MEMBERSHIPS:
        raise UnknownName("membership", described.membership, MEMBERSHIPS)
    if described.membership == "ideal":
        if described.gossip_settings:
            raise BadInput("--gossip-set goes with --membership gossip")
        return None
    around = config.surroundings()
    known: dict[str, object] = {"delta": config.delta}
    known |= GossipConfig.for_group(described.members, around)
    if around.view_prob is not None and around.view_prob < 1.0:
        known["view_size"] = max(1, round(around.view_prob * (described.members - 1)))
    return GossipConfig.parse({**known, **described.gossip_settings})


def _settings_upon(stack: GossipConfig, config: Config) -> dict[str, object]:
    """Settings of an election on gossip, unless others are given.

    A multicast has arrived when it is no longer buffered, and gossip says the size of the group.
    """
    fields = [each.name for each in msgspec.structs.fields(config)]
    wanted: dict[str, object] = {"T_3": stack.buffering_time, "estimate": "gossip"}
    return {name: value for name, value in wanted.items() if name in fields}


# What follows from the settings and the network

AS_GOOD_AS_NONE = 1e-6  # a delay


@dataclass(frozen=True, slots=True)
class Effective:
    """The parts of a world. Settings win over options."""

    network: Network
    view_probability: float
    p_fail: float  # the probability that a member crashes in one round


def effective_network(
    config: Config, network: Network, view_probability: float, p_fail: float
) -> Effective:
    """The given network, views and crashes; settings replace them."""
    around = config.surroundings()
    one = _at(network.loss, around.p_ucastl)
    group = _at(network.multicasts, around.p_mcastl)
    if (one, group) != (network.loss, network.multicasts):
        network = replace(network, loss=one, multicast_loss=None if group == one else group)
    if around.view_prob is not None:
        view_probability = around.view_prob
    if around.p_fail is not None:
        p_fail = around.p_fail
    check_probability("p_fail", p_fail)
    return Effective(network, view_probability, p_fail)


def _at(loss: Loss, p: float | None) -> Loss:
    """The same loss with another probability."""
    if p is None or p == loss.p:
        return loss
    return loss.with_p(p)


def derived_delta(kind: type[Election], network: Network) -> dict[str, object]:
    """The bound on the delays of this network; the default timers are multiples of it."""
    bound = network.delay.bound
    if bound > 0:
        return {"delta": bound}
    # Without delays it is as the default has it, but for timers that are not stretched to it.
    return {"delta": AS_GOOD_AS_NONE} if kind.assumptions.announces else {}


def told_delta(kind: type[Election], config: Config, network: Network) -> Config:
    """The same settings with this network's bound on delays, if none was given."""
    if not config.assumes_delta:
        return config
    told = derived_delta(kind, network)
    if not told:
        return config
    config = msgspec.structs.replace(config, **told)
    broken = config.broken_rules()
    if broken:
        raise BadInput("; ".join(broken))
    return config


def has_rounds(kind: type[Election]) -> bool:
    """Whether an election of this kind says what opens a round."""
    return issubclass(kind, RoundBased)

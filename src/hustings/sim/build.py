"""An experiment from plain options: what is not given follows from what is.

This is the one place where settings are derived: from the network (`delta`), from the scenario,
from the size of the group and from what lies below the election. The command line and Python both
come here, so one description gives the same runs, bit for bit, whoever typed it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import msgspec

from hustings.core.choice import Choice, parse_choice
from hustings.core.config import Config, Surroundings
from hustings.core.election import Election
from hustings.core.errors import BadInput, UnknownName
from hustings.core.numbers import parse_number
from hustings.layers.detector.accrual import AccrualConfig
from hustings.layers.detector.heartbeat import HeartbeatConfig
from hustings.layers.gossip.layer import GossipConfig
from hustings.layers.lease import LeaseConfig
from hustings.layers.measurement import WORST
from hustings.sim.arranging import derived_delta
from hustings.sim.clocks import Clocks
from hustings.sim.experiment import Experiment
from hustings.sim.faults import Alive, Suspect
from hustings.sim.instants import END_OF_TIME
from hustings.sim.loss import check_probability
from hustings.sim.network import Network
from hustings.sim.ordering import PLACE, RANDOM, Order, places_of
from hustings.sim.pauses import Pauses
from hustings.sim.prospects import endless_wait
from hustings.sim.resident import Composition
from hustings.sim.rounds import has_rounds
from hustings.sim.scenarios import JOINING, Scenario
from hustings.sim.voting import Voting
from hustings.sim.world import MAX_EVENTS

DETECTION = ("scripted", "perfect", "heartbeat", "accrual")
MEMBERSHIPS = ("ideal", "gossip")
ANY_NUMBER = 10**9  # members that churn may bring
FEWEST_EVENTS = 2_000_000  # limit of a run that has an end of its own, at least

Settings = Mapping[str, object]
# From delta to what makes the group's own members the guard.
ToVoting = Callable[[float], Voting]


class Composed(NamedTuple):
    """Members as they run on a real network: settings, what they are made of, how long to wait."""

    config: Config
    guard: LeaseConfig | None
    composition: Composition
    calm: float  # after how long an agreement may be taken to last


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """One experiment as a person describes it; whatever is left out is derived, or the default.

    `settings` are those of the election. `guard` holds the settings of a lease where a guard
    confirms leaders; with `voting` members of the group are that guard. With a `composer`, such as
    `hustings.testing.composed.compose_members`, members are put together as `join` does it, and
    time is in seconds.
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
    detection: str = "scripted"
    detection_settings: Settings = field(default_factory=dict)
    guard: Settings | None = None
    voting: ToVoting | None = None
    composer: Callable[[Description, Settings], Composed] | None = None
    leadership_settings: Settings = field(default_factory=dict)  # of composed members
    measure: Settings = field(default_factory=dict)  # what composed members are ranked by
    membership: str = "ideal"
    gossip_settings: Settings = field(default_factory=dict)
    until: float | None = None
    max_events: int | None = None
    time_series: float | None = None
    consensus: bool = False  # judge the last bit of the leader's id as a decision, too
    debug: bool = False
    digest: bool = False
    counted: bool = False  # for an engine that makes no members


def build(described: Description) -> Experiment:
    """The experiment that is described; what is wrong is told before anything starts.

    >>> from hustings.sim.delay import Fixed
    >>> class Quiet(Election):
    ...     about = None
    >>> build(Description(kind=Quiet, network=Network(delay=Fixed(0.1)))).config.delta
    0.1
    """
    if described.members < 1:
        raise BadInput(f"members must be at least 1, not {described.members}")
    if described.order is not None:
        described = _placed(described, described.order)
    joining = ANY_NUMBER if described.scenario.name == "churn" else 1
    joining *= described.scenario.name in (*JOINING, "churn")
    described.network.delay.check(described.members, joining)
    _check_suspicions(described)
    if described.composer is not None:
        return _composed(described, described.composer)
    if described.leadership_settings:
        raise BadInput("--leadership-set goes with --composed")
    if described.measure:
        raise BadInput("--measure-set goes with --composed")
    view = check_probability("view probability", 1.0 if described.view is None else described.view)
    config = effective_settings(described)
    stack = _stack(described, config)
    if stack is not None:
        config = effective_settings(described, _settings_upon(stack, config))
    detector, oracle = _detection(described, config.delta)
    guard = None
    if described.guard is not None:
        guard = LeaseConfig.parse({"delta": config.delta, **described.guard})
    choice = (
        parse_choice(described.choice) if isinstance(described.choice, str) else described.choice
    )
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
        counted=described.counted and has_rounds(described.kind),
        course=described.time_series,
    )
    if described.until is None and described.max_events is None:
        wait = endless_wait(experiment)
        if wait is not None:
            raise BadInput(wait)
    return experiment


def _placed(described: Description, order: Order) -> Description:
    """The same with an attribute that says each member's place, and a setting that names it."""
    kind, given = described.kind, [name for name, _ in described.attributes]
    if PLACE not in kind.Settings.__struct_fields__:
        raise BadInput(f"--order goes with an election round a ring, and {kind.about.name} is none")
    if PLACE in described.settings or PLACE in given:
        raise BadInput(f"--order says each member's {PLACE}: drop that setting or attribute")
    population = described.members + (described.scenario.name in JOINING)
    if described.scenario.name == "churn" and order != RANDOM:
        raise BadInput("churn draws who comes: with it --order must be random")
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
    """The same with members that are put together as on a real network."""
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
        guard=made.guard,
        voting=None if described.voting is None else described.voting(made.config.delta),
        composition=made.composition,
        calm=made.calm,
        until=END_OF_TIME if described.until is None else described.until,
        max_events=_most_events(described),
        consensus=described.consensus,
        debug=described.debug,
        digest=described.digest,
        course=described.time_series,
    )


def _attributes(described: Description) -> tuple[tuple[str, tuple[float, ...] | None], ...]:
    """As given, and what members measure: nothing yet."""
    if not described.measure:
        return described.attributes
    measured = (str(described.measure.get("what", "loss")), (WORST,) * described.members)
    return (*described.attributes, measured)


def effective_settings(described: Description, upon: Settings | None = None) -> Config:
    """Settings as given, else as the scenario or what lies below has them, else the defaults."""
    kind = described.kind
    given = {**derived_delta(kind, described.network), **described.settings}
    given = {**_known(described, given), **(upon or {}), **given}
    usual = scenario_settings(kind, described.scenario)
    if usual.keys() - given.keys():
        try:
            return kind.Settings.parse({**usual, **given})
        except BadInput:
            pass  # what was given does not go with it, or is wrong by itself
    return kind.Settings.parse(given)


def scenario_settings(kind: type[Election], scenario: Scenario) -> dict[str, object]:
    """What a scenario sets unless others are given: nothing where faults happen or members move.

    A start is measured without a leader being missed, say; a group in which something happens
    has to miss one.
    """
    eventful = scenario.extra or scenario.mobility is not None
    return {} if eventful else kind.Settings.for_scenario(scenario.name)


def _known(described: Description, given: Settings) -> dict[str, object]:
    """Settings that follow from what the world is like."""
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
    """What was given as a number, if it is one; what is wrong is told where settings are read."""
    try:
        return parse_number(str(value))
    except ValueError:
        return None


def _check_suspicions(described: Description) -> None:
    """Refuse what a detector cannot say; a test may still make one say it."""
    scenario = described.scenario
    known = range(1, described.members + (scenario.name in JOINING) + 1)
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
    """After how long an agreement may be taken to last; None where runs come to rest."""
    longest = [] if detector is None else [2 * detector.timeout]
    longest += [] if guard is None else [guard.asked]
    return max(longest) + 20 * delta if longest else None


def _detection(described: Description, delta: float) -> tuple[HeartbeatConfig | None, float | None]:
    """A detector's configuration, or a perfect detector's latency, or neither."""
    given = dict(described.detection_settings)
    if described.detection not in DETECTION:
        raise UnknownName("detection", described.detection, DETECTION)
    if described.detection != "scripted" and described.scenario.detectors:
        raise BadInput(
            f"--detector scripts who notices, but --detection {described.detection} finds out by "
            "itself: drop one of them"
        )
    if described.detection == "scripted":
        if given:
            raise BadInput("--detection-set goes with --detection perfect, heartbeat or accrual")
        return None, None
    if described.detection == "perfect":
        if described.scenario.mobility is not None:
            raise BadInput(
                "a perfect detector tells of crashes, not of members out of reach: with --mobility "
                "take --detection heartbeat or accrual"
            )
        return None, _latency(given)
    kind = HeartbeatConfig if described.detection == "heartbeat" else AccrualConfig
    return kind.parse({"delta": delta, **given}), None


def _latency(given: dict[str, object]) -> float:
    text = given.pop("latency", 0.0)
    if given:
        raise UnknownName("detection setting", next(iter(given)), ["latency"])
    latency = _number(text)
    if latency is None or not abs(latency) < float("inf"):
        raise BadInput(f"latency must be a number, not {str(text).strip()!r}")
    return latency


def _stack(described: Description, config: Config) -> GossipConfig | None:
    """What lies under an election with these settings, if that is more than the ideal."""
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
    """Settings that an election upon a stack takes unless others are given.

    A multicast is there when it is buffered no more, and the size of the group is what gossip says.
    """
    fields = [each.name for each in msgspec.structs.fields(config)]
    wanted: dict[str, object] = {"T_3": stack.buffering_time, "estimate": "gossip"}
    return {name: value for name, value in wanted.items() if name in fields}

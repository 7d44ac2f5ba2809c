"""The options that describe an experiment, and how they become one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from hustings.cli import reading
from hustings.cli.guarding import GUARD_OPTIONS, lease, voting
from hustings.cli.substrate import SUBSTRATE_OPTIONS, settings_upon, stack_of
from hustings.core.choice import MemberId, parse_choice
from hustings.core.config import Config, Surroundings
from hustings.core.election import Election
from hustings.core.errors import BadInput, UnknownName
from hustings.sim.churn import Rates
from hustings.sim.course import MAX_STEPS
from hustings.sim.experiment import Clocks, Experiment
from hustings.sim.instants import END_OF_TIME
from hustings.sim.models import Loss, LossModel, Network, PerLink, check_probability
from hustings.sim.prospects import endless_wait
from hustings.sim.rounds import has_rounds
from hustings.sim.scenarios import HORIZON, JOINING, SCENARIOS, Scenario
from hustings.sim.world import MAX_EVENTS
from hustings.substrate.accrual import AccrualConfig
from hustings.substrate.confirmed import GuardConfig
from hustings.substrate.heartbeat import HeartbeatConfig

F = TypeVar("F", bound=Callable[..., Any])

DETECTION = ("scripted", "perfect", "heartbeat", "accrual")
AS_GOOD_AS_NONE = 1e-6  # a delay
ADJUSTED = "adjusted"  # uncorrelated loss that grows with the traffic

FAULT_HELP = (
    "Something that happens to the group, again and again: crash:7@2.5 (at time 2.5), "
    "crash:7+3@0 (after its 3rd transmission from time 0), restart:7@9, pause:3@1, resume:3@5, "
    "leave:4@2, call:2@0, suspect:3>7@1 and alive:3>7@2 (a detector that errs), "
    "partition:1,2|3-5@2, one-way:1>2,3@2, heal:@9 (partition), heal:one-way@9."
)


GROUP_OPTIONS = (
    click.option(
        "-n",
        "--members",
        type=int,
        default=8,
        show_default=True,
        help="Members, with ids 1 to n; n counts the crashed leader, but not who joins.",
    ),
    click.option(
        "--scenario",
        type=str,
        default="start",
        show_default=True,
        help=f"What happens to the group: {', '.join(SCENARIOS)}.",
    ),
    click.option(
        "--detector",
        "detectors",
        multiple=True,
        metavar="ID",
        help="Who notices the leader's crash; several notice at once. "
        "[default: the worst live member; nobody where members announce]",
    ),
    click.option(
        "--initiator",
        "initiators",
        multiple=True,
        metavar="ID",
        help="Who calls the election; several call at once.",
    ),
    click.option(
        "--crashed", default="", metavar="IDS", help="Further dead members, as 60,61 or 60-63."
    ),
    click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="A setting of the protocol: see hustings protocols NAME.",
    ),
    click.option(
        "--delay",
        default="1",
        show_default=True,
        help="One-way delay: NUMBER, uniform:LOW,HIGH, lognormal:MEDIAN,SIGMA.",
    ),
    click.option(
        "--choice",
        default="highest-id",
        show_default=True,
        help="Who is best: highest-id, lowest-id, highest:ATTR, lowest:ATTR,...",
    ),
    click.option(
        "--attribute",
        "attributes",
        multiple=True,
        metavar="NAME=VALUES",
        help="What --choice ranks: cpu=3,1,2 by member, or cpu=random.",
    ),
    click.option(
        "--seed", type=int, default=1, show_default=True, help="One seed makes the whole world."
    ),
)

WORLD_OPTIONS = (
    click.option("--loss", type=float, default=0.0, help="Probability that a message is lost."),
    click.option(
        "--loss-model",
        type=str,
        default=None,
        help="uncorrelated (a coin per receiver), correlated (one for all), or adjusted "
        "(uncorrelated, and more with --collision).",
    ),
    click.option(
        "--collision",
        type=float,
        default=0.0,
        help="Extra loss for each message under way at the same time.",
    ),
    click.option(
        "--link",
        "links",
        multiple=True,
        metavar="A>B=DELAY",
        help="A link with a delay of its own.",
    ),
    click.option("--duplicate", type=float, default=0.0, help="Probability of a second copy."),
    click.option(
        "--reorder",
        type=float,
        default=0.0,
        help="Probability of being held back by up to --hold-back.",
    ),
    click.option("--hold-back", type=float, default=0.0, help="See --reorder."),
    click.option("--fifo", is_flag=True, help="Links keep the order of their messages."),
    click.option("--fault", "faults", multiple=True, metavar="WHAT:WHO@TIME", help=FAULT_HELP),
    click.option(
        "--view",
        type=float,
        default=None,
        help="Probability that a member knows another one.  [default: 1]",
    ),
    click.option("--drift", type=float, default=0.0, help="Largest error of a clock's rate."),
    click.option("--offset", type=float, default=0.0, help="Largest offset of a clock."),
    click.option(
        "--detection",
        default="scripted",
        show_default=True,
        help="scripted (as --detector says), perfect, heartbeat, accrual.",
    ),
    click.option(
        "--detection-set",
        "detection_settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="perfect: latency. heartbeat: T, D, pattern. accrual: and more.",
    ),
    *GUARD_OPTIONS,
    *SUBSTRATE_OPTIONS,
    click.option(
        "--arrivals", type=float, metavar="MEAN", help="churn: mean time between two arrivals."
    ),
    click.option(
        "--departures", type=float, metavar="MEAN", help="churn: mean time between two departures."
    ),
    click.option(
        "--orderly", is_flag=True, help="churn: who goes leaves in good order, and does not crash."
    ),
    click.option(
        "--linger",
        type=float,
        default=0.0,
        help="How long who leaves stays up to say goodbye more than once.",
    ),
    click.option(
        "--until",
        type=float,
        default=None,
        help=f"Time limit; {HORIZON:g} where a scenario has no end of its own.",
    ),
    click.option("--max-events", type=int, default=None, help="Event limit."),
    click.option(
        "--course",
        type=float,
        default=None,
        metavar="STEP",
        help="Also report how many lead at 0, STEP, 2 STEP, ...: mean, standard error and maximum "
        f"over all runs, up to the end of the longest, at most {MAX_STEPS:,} steps. Members that "
        "announce, or churn.",
    ),
    click.option("--debug", is_flag=True, help="Raise when a protocol keeps its context."),
)


def group_options(command: F) -> F:
    """Options that say who is in the group and what happens to it."""
    for option in reversed(GROUP_OPTIONS):
        command = option(command)
    return command


def world_options(command: F) -> F:
    """Options of the network, the clocks and the limits."""
    for option in reversed(WORLD_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What was typed."""

    members: int
    scenario: str
    detectors: tuple[str, ...]
    initiators: tuple[str, ...]
    crashed: str
    settings: tuple[str, ...]
    delay: str
    choice: str
    attributes: tuple[str, ...]
    seed: int
    loss: float = 0.0
    loss_model: str | None = None
    collision: float = 0.0
    links: tuple[str, ...] = ()
    duplicate: float = 0.0
    reorder: float = 0.0
    hold_back: float = 0.0
    fifo: bool = False
    faults: tuple[str, ...] = ()
    view: float | None = None
    drift: float = 0.0
    offset: float = 0.0
    detection: str = "scripted"
    detection_settings: tuple[str, ...] = ()
    guard: str = "none"
    guard_settings: tuple[str, ...] = ()
    substrate: str = "ideal"
    substrate_settings: tuple[str, ...] = ()
    arrivals: float | None = None
    departures: float | None = None
    orderly: bool = False
    linger: float = 0.0
    until: float | None = None
    max_events: int | None = None
    course: float | None = None
    debug: bool = False


def build(
    kind: type[Election], typed: Options, *, digest: bool = False, counted: bool = False
) -> Experiment:
    """An experiment from what was typed; `counted`: by an engine that makes no members."""
    if typed.members < 1:
        raise BadInput(f"members must be at least 1, not {typed.members}")
    network = _network(typed)
    config = _config(kind, typed, network.delay.bound)
    stack = stack_of(typed.substrate, typed.substrate_settings, config, typed.members)
    if stack is not None:
        config = _config(kind, typed, network.delay.bound, settings_upon(stack, config))
    detector, oracle = _detection(typed, config.delta)
    guard = lease(typed.guard, typed.guard_settings, config.delta)
    scenario = _scenario(typed)
    experiment = Experiment(
        kind=kind,
        members=typed.members,
        config=config,
        choice=parse_choice(typed.choice),
        attributes=reading.attributes(typed.attributes),
        network=network,
        scenario=scenario,
        seed=typed.seed,
        view_probability=1.0 if stack is not None else _view(typed),
        clocks=Clocks(typed.drift, typed.offset),
        detector=detector,
        oracle=oracle,
        guard=guard,
        voting=voting(typed.guard, typed.guard_settings, config.delta, typed.members),
        stack=stack,
        calm=_calm(detector, guard, config.delta),
        until=END_OF_TIME if typed.until is None else typed.until,
        max_events=_most_events(kind, scenario, typed),
        debug=typed.debug,
        digest=digest,
        counted=counted and has_rounds(kind),
        course=typed.course,
    )
    if typed.until is None and typed.max_events is None:
        wait = endless_wait(experiment)
        if wait is not None:
            raise BadInput(wait)
    return experiment


def _config(
    kind: type[Election], typed: Options, bound: float, upon: Mapping[str, object] | None = None
) -> Config:
    """Settings as typed, else as the scenario or what lies below has them, else the defaults."""
    # Timers default to multiples of the delay bound, so the protocol is told it.
    given: dict[str, object] = {"delta": bound} if bound > 0 else {}
    if bound == 0 and kind.assumptions.announces:
        given = {"delta": AS_GOOD_AS_NONE}  # its timers are its own, and do not stretch to it
    given |= reading.settings(typed.settings)
    given = {**_known(kind, typed, given), **(upon or {}), **given}
    usual = kind.Settings.for_scenario(typed.scenario)
    if usual.keys() - given.keys():
        try:
            return kind.Settings.parse({**usual, **given})
        except BadInput:
            pass  # what was typed does not go with it, or is wrong by itself
    return kind.Settings.parse(given)


def _known(kind: type[Election], typed: Options, given: Mapping[str, object]) -> dict[str, object]:
    """Settings that follow from the options which say what the world is like."""
    view = _view(typed)
    around = Surroundings(p_ucastl=typed.loss, p_mcastl=typed.loss, view_prob=view)
    known = kind.Settings.for_group(typed.members, around)
    if typed.view is not None and "view_prob" in known and "view_prob" in given:
        if reading.number(str(given["view_prob"]), "view_prob") != view:
            raise BadInput(
                f"--view {view:g} and --set view_prob={given['view_prob']} contradict each other: "
                "drop one of them"
            )
    return known


def _view(typed: Options) -> float:
    """The probability that a member knows another one."""
    return check_probability("view probability", 1.0 if typed.view is None else typed.view)


def _most_events(kind: type[Election], scenario: Scenario, typed: Options) -> int:
    if typed.max_events is not None:
        return typed.max_events
    if scenario.endless(announces=kind.assumptions.announces):
        return MAX_EVENTS
    return max(2_000_000, 8 * typed.members**2)


def _network(typed: Options) -> Network:
    delay = reading.delay(typed.delay, typed.links)
    if isinstance(delay, PerLink) and typed.scenario != "churn":
        members = typed.members + (typed.scenario in JOINING)
        for sender, receiver in delay.table:
            if not 1 <= min(sender, receiver) <= max(sender, receiver) <= members:
                raise BadInput(
                    f"--link {sender}>{receiver} names no member: ids are 1 to {members}"
                )
    model = typed.loss_model
    if model is None:
        model = "uncorrelated" if typed.loss or typed.collision else "none"
    if model == ADJUSTED:
        if not typed.collision:
            raise BadInput("loss model 'adjusted' needs --collision: how much each message adds")
        model = "uncorrelated"
    if model not in [each.value for each in LossModel]:
        raise UnknownName("loss model", model, [*(each.value for each in LossModel), ADJUSTED])
    return Network(
        delay=delay,
        loss=Loss(LossModel(model), typed.loss, typed.collision),
        duplicate=typed.duplicate,
        reorder=typed.reorder,
        hold_back=typed.hold_back,
        fifo=typed.fifo,
    )


def _scenario(typed: Options) -> Scenario:
    return Scenario(
        name=typed.scenario,
        crashed=reading.members(typed.crashed, "--crashed") if typed.crashed.strip() else (),
        detectors=_ids(typed.detectors, "--detector"),
        initiators=_ids(typed.initiators, "--initiator"),
        extra=tuple(reading.fault(each) for each in typed.faults),
        rates=Rates(typed.arrivals, typed.departures, typed.orderly),
        linger=typed.linger,
    )


def _ids(texts: tuple[str, ...], what: str) -> tuple[MemberId, ...]:
    return tuple(member for text in texts for member in reading.members(text, what))


def _calm(
    detector: HeartbeatConfig | None, guard: GuardConfig | None, delta: float
) -> float | None:
    """After how long an agreement may be taken to last; None where runs come to rest."""
    longest = [] if detector is None else [2 * detector.timeout]
    longest += [] if guard is None else [guard.asked]
    return max(longest) + 20 * delta if longest else None


def _detection(typed: Options, delta: float) -> tuple[HeartbeatConfig | None, float | None]:
    """A detector's configuration, or a perfect detector's latency, or neither."""
    given = reading.settings(typed.detection_settings)
    if typed.detection not in DETECTION:
        raise UnknownName("detection", typed.detection, DETECTION)
    if typed.detection != "scripted" and typed.detectors:
        raise BadInput(
            f"--detector scripts who notices, but --detection {typed.detection} finds out by "
            "itself: drop one of them"
        )
    if typed.detection == "scripted":
        if given:
            raise BadInput("--detection-set goes with --detection perfect, heartbeat or accrual")
        return None, None
    if typed.detection == "perfect":
        latency = given.pop("latency", "0")
        if given:
            raise UnknownName("detection setting", next(iter(given)), ["latency"])
        return None, reading.number(latency, "latency")
    kind = HeartbeatConfig if typed.detection == "heartbeat" else AccrualConfig
    return kind.parse({"delta": delta, **given}), None

"""The options that describe an experiment, and how they become one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from hustings.cli import reading
from hustings.core.choice import MemberId, parse_choice
from hustings.core.election import Election
from hustings.core.errors import BadInput, UnknownName
from hustings.sim.experiment import Clocks, Experiment
from hustings.sim.instants import END_OF_TIME
from hustings.sim.models import Loss, LossModel, Network, PerLink
from hustings.sim.scenarios import SCENARIOS, Scenario
from hustings.substrate.accrual import AccrualConfig
from hustings.substrate.heartbeat import HeartbeatConfig

F = TypeVar("F", bound=Callable[..., Any])

DETECTION = ("scripted", "perfect", "heartbeat", "accrual")

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
        help="Members, with ids 1 to n; n counts the crashed leader.",
    ),
    click.option(
        "--scenario",
        type=str,
        default="start",
        show_default=True,
        help=f"How the run begins: {', '.join(SCENARIOS)}.",
    ),
    click.option(
        "--detector",
        "detectors",
        multiple=True,
        metavar="ID",
        help="Who notices the leader's crash; several notice at once. "
        "[default: the worst live member]",
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
        help="uncorrelated (a coin per receiver) or correlated (one for all).",
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
        "--view", type=float, default=1.0, help="Probability that a member knows another one."
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
    click.option("--until", type=float, default=None, help="Time limit."),
    click.option("--max-events", type=int, default=None, help="Event limit."),
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
    view: float = 1.0
    drift: float = 0.0
    offset: float = 0.0
    detection: str = "scripted"
    detection_settings: tuple[str, ...] = ()
    until: float | None = None
    max_events: int | None = None
    debug: bool = False


def build(kind: type[Election], typed: Options, *, digest: bool = False) -> Experiment:
    """An experiment from what was typed."""
    if typed.members < 1:
        raise BadInput(f"members must be at least 1, not {typed.members}")
    network = _network(typed)
    given = reading.settings(typed.settings)
    bound = network.delay.bound
    # Timers default to multiples of the delay bound, so the protocol is told it.
    config = kind.Settings.parse({"delta": bound, **given} if bound > 0 else given)
    detector, oracle = _detection(typed, config.delta)
    most = typed.max_events
    return Experiment(
        kind=kind,
        members=typed.members,
        config=config,
        choice=parse_choice(typed.choice),
        attributes=reading.attributes(typed.attributes),
        network=network,
        scenario=_scenario(typed),
        seed=typed.seed,
        view_probability=typed.view,
        clocks=Clocks(typed.drift, typed.offset),
        detector=detector,
        oracle=oracle,
        calm=None if detector is None else 2 * detector.timeout + 20 * config.delta,
        until=END_OF_TIME if typed.until is None else typed.until,
        max_events=max(2_000_000, 8 * typed.members**2) if most is None else most,
        debug=typed.debug,
        digest=digest,
    )


def remarks_on(experiment: Experiment) -> list[str]:
    """What works but has a consequence worth knowing."""
    remarks = experiment.config.warnings()
    if experiment.detector is not None:
        remarks += experiment.detector.warnings()
    loss = experiment.network.loss
    if experiment.kind.assumptions.reliable and (loss.p or loss.collision):
        remarks.append(
            f"{experiment.kind.about.name} assumes that messages arrive; with loss it may end "
            "without a leader, or with two"
        )
    return remarks


def _network(typed: Options) -> Network:
    delay = reading.delay(typed.delay, typed.links)
    if isinstance(delay, PerLink):
        for sender, receiver in delay.table:
            if not 1 <= min(sender, receiver) <= max(sender, receiver) <= typed.members:
                raise BadInput(
                    f"--link {sender}>{receiver} names no member: ids are 1 to {typed.members}"
                )
    model = typed.loss_model
    if model is None:
        model = "uncorrelated" if typed.loss or typed.collision else "none"
    if model not in [each.value for each in LossModel]:
        raise UnknownName("loss model", model, [each.value for each in LossModel])
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
    )


def _ids(texts: tuple[str, ...], what: str) -> tuple[MemberId, ...]:
    return tuple(member for text in texts for member in reading.members(text, what))


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

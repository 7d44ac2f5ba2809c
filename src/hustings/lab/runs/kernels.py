"""An experiment in the form of the compiled kernels; what they cannot play is refused."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING

import msgspec

from hustings.core.choice import HighestId
from hustings.core.errors import BadInput
from hustings.lab.kernels.announce.parameters import PROTOCOLS, AnnounceParameters
from hustings.lab.kernels.probabilistic.parameters import ProbabilisticParameters
from hustings.protocols.probabilistic.election import Probabilistic
from hustings.protocols.probabilistic.settings import ProbabilisticConfig
from hustings.sim.delay import Fixed
from hustings.sim.experiment import Experiment
from hustings.sim.loss import Coins
from hustings.sim.network import Network
from hustings.sim.scenarios import Scenario

if TYPE_CHECKING:
    from hustings.lab.kernels.results import Columns

# What a kernel models itself, and limits that it replaces by its own.
_TAKEN = ("kind", "members", "config", "choice", "network", "scenario", "seed", "calm")
_LIMITS = ("max_events",)
_SETTINGS = ("delta", "T_A", "T_S", "T_L", "law", "lam", "key")

KNOWN = (*PROTOCOLS, Probabilistic.about.name)
_ARRANGED = ("view_probability", "p_fail")  # by Surroundings, for elections that have them
_BALLOTED = (
    *("delta", "K", "strategy", "max_rounds", "K_max", "N", "estimate", "thinning", "W"),
    *("join_on_contact", "p_ucastl", "p_mcastl", "p_fail", "view_prob", "T_2", "T_3", "group"),
    "hash_skew",
)

BALLOTS = 5_000
CUT = "max-rounds"  # how a run ends that the kernel gave up


def setting_of(experiment: Experiment) -> AnnounceParameters | ProbabilisticParameters:
    """The kernels' parameters for an experiment."""
    for doubt in _beyond(experiment):
        raise BadInput(f"engine 'fast' {doubt}: take --engine events")
    if isinstance(experiment.config, ProbabilisticConfig):
        return _ballot_of(experiment, experiment.config)
    network, config = experiment.network, experiment.config
    given: dict[str, float | str] = {
        name: value
        for name in ("T_A", "T_S", "law", "lam", "key")
        if (value := getattr(config, name, None)) is not None
    }
    if hasattr(config, "listen"):
        given["T_L"] = config.listen
    return msgspec.convert(
        {
            "protocol": experiment.kind.about.name,
            "members": experiment.members,
            "delay": network.delay.bound,
            "loss_model": network.loss.name,
            "loss": network.loss.p,
            "collision": network.loss.collision,
            **given,
        },
        AnnounceParameters,
    )


def _ballot_of(experiment: Experiment, config: ProbabilisticConfig) -> ProbabilisticParameters:
    """Times in units of the delay: the kernel's delay is 1."""
    effective = experiment.effective
    delay = effective.network.delay.bound
    return ProbabilisticParameters(
        members=experiment.members,
        sizes=tuple(float(size) for size in config.plan.sizes),
        view_prob=effective.view_probability,
        p_ucastl=effective.network.loss.p,
        p_mcastl=effective.network.multicasts.p,
        p_fail=effective.p_fail,
        estimate=config.counts,
        thinning=config.thinning,
        join_on_contact=config.join_on_contact,
        T_2=None if config.T_2 is None else config.T_2 / delay,
        pace=1.5 * config.delta / delay,
        T_3=config.delivery / delay,
        W=config.window / delay,
        delay=delay,
        hash_skew=config.hash_skew,
    )


def _beyond(experiment: Experiment) -> Iterator[str]:
    """Features that the kernels do not model."""
    name = experiment.kind.about.name
    if name not in KNOWN:
        yield f"plays {', '.join(KNOWN)}, not {name}"
    if experiment.scenario != Scenario():
        yield "plays simultaneous starts without faults only"
    if not isinstance(experiment.choice, HighestId):
        yield f"knows no other choice than highest-id, not {experiment.choice.name}"
    if not isinstance(experiment.network.delay, Fixed):
        yield "knows one fixed delay only"
    for loss in (experiment.network.loss, experiment.network.multicasts):
        if not isinstance(loss, Coins):
            yield f"knows losses decided by one coin each, not {loss.name} loss"
    large = isinstance(experiment.config, ProbabilisticConfig)
    yield from _strange_to_large(experiment) if large else _strange_to_announcing(experiment)
    taken = (*_TAKEN, *_LIMITS, *(_ARRANGED if large else ()))
    for field in fields(experiment):
        if not field.init or field.name in taken:
            continue
        made = field.default_factory
        usual = field.default if made is MISSING else made()
        if getattr(experiment, field.name) != usual:
            yield f"knows no {field.name.replace('_', ' ')}"
    usual_config = experiment.kind.Settings()
    for key in experiment.config.__struct_fields__:
        known = key in (_BALLOTED if large else _SETTINGS)
        if not known and getattr(experiment.config, key) != getattr(usual_config, key):
            yield f"knows no {key} = {getattr(experiment.config, key)}"


def _strange_to_announcing(experiment: Experiment) -> Iterator[str]:
    network = experiment.network
    if network != Network(delay=network.delay, loss=network.loss):
        yield "knows loss and collisions, and nothing else that may happen to a message"


def _strange_to_large(experiment: Experiment) -> Iterator[str]:
    network, config = experiment.effective.network, experiment.config
    usual = Network(delay=network.delay, loss=network.loss, multicast_loss=network.multicast_loss)
    if network != usual:
        yield "knows loss, and nothing else that may happen to a message"
    losses = (network.loss, network.multicasts)
    if any(loss.shared or loss.collision for loss in losses):
        yield "knows uncorrelated loss only, for this election"
    if network.delay.bound <= 0:
        yield "needs a --delay > 0 for this election"
    if isinstance(config, ProbabilisticConfig) and config.N not in (None, experiment.members):
        yield f"knows no other N than {experiment.members}, the size of the group"


def ending_of(setting: AnnounceParameters | ProbabilisticParameters) -> str:
    """How a run ends by itself, in the event simulator's words."""
    resting = isinstance(setting, ProbabilisticParameters) or setting.protocol == "sup"
    return "quiescent" if resting else "stopped"


def play_kernel(
    setting: AnnounceParameters | ProbabilisticParameters, seed: int, first: int, last: int
) -> Columns:
    """Play runs first .. last - 1 on the right kernel."""
    if isinstance(setting, AnnounceParameters):
        from hustings.lab.kernels.announce.play import play  # noqa: PLC0415  # an extra

        return play(setting, seed, first, last)
    from hustings.lab.kernels.probabilistic.play import play as elect  # noqa: PLC0415  # an extra

    return elect(setting, seed, first, last)


def at_once(setting: AnnounceParameters | ProbabilisticParameters, members: int) -> int:
    """How many runs make a piece of work, for this many members in all its runs."""
    if isinstance(setting, ProbabilisticParameters):
        return BALLOTS  # the cost does not depend on the members
    return max(1, members // setting.members)


def known(column: list[float]) -> list[float]:
    """The values, from the runs that have one."""
    return [value for value in column if not math.isnan(value)]

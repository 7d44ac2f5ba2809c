"""The world that an election's settings are meant for, made from the world that was asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec

from hustings.core.config import Config
from hustings.core.election import Election
from hustings.core.errors import BadInput
from hustings.sim.loss import Loss, check_probability
from hustings.sim.network import Network

AS_GOOD_AS_NONE = 1e-6  # a delay


@dataclass(frozen=True, slots=True)
class Arranged:
    """What a world is made of: where the settings say something, as they say."""

    network: Network
    view_probability: float
    p_fail: float  # a member's crash in the course of one round


def arrange(config: Config, network: Network, view_probability: float, p_fail: float) -> Arranged:
    """Put what the settings take the world to be like in the place of what is given."""
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
    return Arranged(network, view_probability, p_fail)


def _at(loss: Loss, p: float | None) -> Loss:
    """The same loss with another probability."""
    if p is None or p == loss.p:
        return loss
    return loss.with_p(p)


def derived_delta(kind: type[Election], network: Network) -> dict[str, object]:
    """The bound on delays as this network has it: timers default to multiples of it."""
    bound = network.delay.bound
    if bound > 0:
        return {"delta": bound}
    # Without delays it is as the default has it, but for timers that are not stretched to it.
    return {"delta": AS_GOOD_AS_NONE} if kind.assumptions.announces else {}


def told_delta(kind: type[Election], config: Config, network: Network) -> Config:
    """The same settings with this network's bound on delays, where nobody gave one."""
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

"""Sensitivity: by how much each assumption about the environment may worsen before a goal breaks.

One assumption at a time grows by a factor. What was measured moves by as much as its closed form
moves, until a goal is missed; halving finds the factor. Where no goal breaks up to a large factor,
that is said.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace

from hustings.core.durations import show_duration
from hustings.core.errors import BadInput
from hustings.core.quantities import write_share
from hustings.lab.plans.bounds import failover, timers, traffic, wrong
from hustings.lab.plans.candidates import BYTES, DELAYS, FAILOVER, WRONG
from hustings.lab.plans.chances import longest_delay, longest_pause, worst_loss
from hustings.lab.plans.goals import show_rate
from hustings.lab.plans.search import PlayedProposal, Prediction
from hustings.sim.delay import Delay, PerLink
from hustings.sim.environment import Environment
from hustings.sim.loss import Loss
from hustings.sim.sites import SiteDelay, SiteLoss

LARGEST = 64.0  # the largest factor that is tried
HALVINGS = 14
Grow = Callable[[Environment, float], Environment]


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """One assumption, and where a goal breaks."""

    assumption: str
    assumed: str
    breaks_at: str  # the value; "" if no goal breaks
    factor: float  # inf: none
    goal: str

    def to_json(self) -> dict[str, object]:
        """For scripts."""
        return {
            "assumption": self.assumption,
            "assumed": self.assumed,
            "breaks_at": self.breaks_at or None,
            "factor": self.factor,
            "goal": self.goal or None,
        }


def sensitivity(played: PlayedProposal, environment: Environment) -> list[Sensitivity]:
    """All assumptions, one by one."""
    found = []
    for name, grow, show in _ASSUMPTIONS:
        shown = show(environment)
        if not shown:
            continue
        factor, goal = _breaks(played, environment, grow)
        at = "" if math.isinf(factor) else show(grow(environment, factor))
        found.append(Sensitivity(name, shown, at, factor, goal))
    found += _drift(played, environment)
    return found


def _breaks(played: PlayedProposal, environment: Environment, grow: Grow) -> tuple[float, str]:
    """The factor at which the first goal is missed, and that goal."""
    already = _missed(played, environment, environment)
    if already:
        return 1.0, already

    def broken(factor: float) -> str:
        try:
            worse = grow(environment, factor)
        except BadInput:
            return ""  # no such network
        return _missed(played, environment, worse)

    high = 1.0
    while high < LARGEST and not broken(high):
        high *= 2.0
    if not broken(high):
        return math.inf, ""
    low = high / 2.0
    for _ in range(HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if broken(middle) else (middle, high)
    return high, broken(high)


def _missed(played: PlayedProposal, now: Environment, worse: Environment) -> str:
    """The first goal that is missed in a worse environment."""
    configuration = played.configuration
    at = timers(configuration, worse)
    wanted = [each for each in played.predictions if each.wanted is not None]
    if worse is not now and longest_delay(worse) > max(at.delta, longest_delay(now)):
        return DELAYS
    for each in wanted:
        if _moved(played, each, now, worse) > (each.wanted or 0.0):
            return each.goal
    return ""


def _moved(played: PlayedProposal, one: Prediction, now: Environment, worse: Environment) -> float:
    """The high end of a prediction, moved by as much as its closed form moves."""
    configuration = played.configuration
    if one.goal == FAILOVER:
        before, after = failover(configuration, now), failover(configuration, worse)
        ends = (before.high, after.high) if math.isfinite(before.high) else (before.low, after.low)
        return one.high + ends[1] - ends[0]
    if one.goal == WRONG:
        spans = wrong(configuration, now), wrong(configuration, worse)
        return max(
            one.high + spans[1].low - spans[0].low, one.high * _ratio(*(s.high for s in spans))
        )
    if one.goal == BYTES:
        rates = traffic(configuration, now).most, traffic(configuration, worse).most
        return one.high * rates[1] / rates[0]
    return one.high


def _ratio(before: float, after: float) -> float:
    if before <= 0.0:
        return math.inf if after > 0.0 else 1.0
    return after / before


def _drift(played: PlayedProposal, environment: Environment) -> list[Sensitivity]:
    """The drift of clocks that the lease allows for."""
    lease = played.configuration.configured().lease
    if lease is None:
        return []
    assumed = write_share(environment.drift, "ppm") if environment.drift else "none"
    factor = lease.drift / environment.drift if environment.drift else math.inf
    at = write_share(lease.drift, "ppm")
    return [Sensitivity("clock drift", assumed, at, factor, "two-leaders")]


# How each assumption grows, and how it is shown


def _more_loss(environment: Environment, factor: float) -> Environment:
    network = environment.network
    return replace(environment, network=replace(network, loss=_lossier(network.loss, factor)))


def _lossier(loss: Loss, factor: float) -> Loss:
    if isinstance(loss, SiteLoss):
        within = _lossier(loss.within, factor)
        between = {pair: _lossier(each, factor) for pair, each in loss.between.items()}
        return SiteLoss.of(loss.sites, within, between)
    if factor * loss.p > 1.0:
        raise BadInput("more than everything cannot be lost")
    return loss.with_p(factor * loss.p)


def _more_delay(environment: Environment, factor: float) -> Environment:
    network = environment.network
    return replace(environment, network=replace(network, delay=longer(network.delay, factor)))


def longer(law: Delay, factor: float) -> Delay:
    """The same law with all its times longer."""
    if isinstance(law, SiteDelay):
        between = {pair: longer(each, factor) for pair, each in law.between.items()}
        return replace(law, within=longer(law.within, factor), between=between)
    if isinstance(law, PerLink):
        table = {link: factor * each for link, each in law.table.items()}
        return replace(law, table=table, otherwise=factor * law.otherwise)
    times = {
        each.name: factor * getattr(law, each.name)
        for each in fields(law)
        if each.name not in law.unitless
    }
    return replace(law, **times)


def _longer_pauses(environment: Environment, factor: float) -> Environment:
    pauses = environment.pauses
    if pauses is None:
        return environment
    length = longer(pauses.length, factor)
    return replace(
        environment, pauses=replace(pauses, length=length, longest=factor * pauses.longest)
    )


def _more_pauses(environment: Environment, factor: float) -> Environment:
    pauses = environment.pauses
    if pauses is None:
        return environment
    return replace(environment, pauses=replace(pauses, rate=factor * pauses.rate))


def _shown_loss(environment: Environment) -> str:
    p = worst_loss(environment.network.loss).p
    return f"{100 * p:.3g}%" if p else ""


def _shown_delay(environment: Environment) -> str:
    way = longest_delay(environment)
    return f"up to {show_duration(float(f'{way:.3g}'))}" if way else ""


def _shown_pause(environment: Environment) -> str:
    pause = longest_pause(environment.pauses)
    return f"up to {show_duration(float(f'{pause:.3g}'))}" if pause else ""


def _shown_rate(environment: Environment) -> str:
    return "" if environment.pauses is None else show_rate(environment.pauses.rate)


_ASSUMPTIONS: tuple[tuple[str, Grow, Callable[[Environment], str]], ...] = (
    ("loss", _more_loss, _shown_loss),
    ("delay", _more_delay, _shown_delay),
    ("length of pauses", _longer_pauses, _shown_pause),
    ("rate of pauses", _more_pauses, _shown_rate),
)

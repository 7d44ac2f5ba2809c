"""What a network and its machines do to one message, one window or one pause: exact chances.

Law: nothing here is simulated or estimated, except the laws of other packages, from which a fixed
number of draws is taken. Tests compare each form with the drawn process.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from functools import lru_cache
from random import Random
from typing import NamedTuple

from hustings.core.streams import derive
from hustings.sim.delay import Delay, Exponential, Fixed, Lognormal, PerLink, Uniform
from hustings.sim.environment import Environment
from hustings.sim.loss import Burst, Coins, Loss
from hustings.sim.pauses import Pauses
from hustings.sim.sites import SiteDelay, SiteLoss

DRAWS = 4096  # from a law that is not one of ours
_STEPS = 512  # of an integral


def tail(law: Delay, time: float) -> float:
    """The probability that a time of this law is longer.

    Of several laws, as between sites, the longest counts.

    >>> tail(Uniform(1.0, 3.0), 2.5), tail(Fixed(2.0), 2.0), tail(Fixed(2.0), 1.9)
    (0.25, 0.0, 1.0)
    """
    if isinstance(law, Fixed):
        return float(law.delay > time)
    if isinstance(law, Uniform):
        if time < law.low or law.high == law.low:
            return float(law.high > time)
        return max(0.0, (law.high - time) / (law.high - law.low))
    if isinstance(law, Exponential):
        return math.exp(-max(0.0, time) / law.mean)
    if isinstance(law, Lognormal):
        if time <= 0.0:
            return 1.0
        if law.sigma == 0.0:
            return float(law.median > time)
        return 0.5 * math.erfc(math.log(time / law.median) / (law.sigma * math.sqrt(2.0)))
    if isinstance(law, SiteDelay):
        return max(tail(each, time) for each in (law.within, *law.between.values()))
    if isinstance(law, PerLink):
        return float(max([law.otherwise, *law.table.values()]) > time)
    drawn = _drawn(law)
    return (len(drawn) - bisect_right(drawn, time)) / len(drawn)


def shortest(law: Delay) -> float:
    """The shortest time of a law."""
    if isinstance(law, Fixed):
        return law.delay
    if isinstance(law, Uniform):
        return law.low
    if isinstance(law, SiteDelay):
        return min(shortest(each) for each in (law.within, *law.between.values()))
    if isinstance(law, PerLink):
        return min([law.otherwise, *law.table.values()])
    return 0.0


@lru_cache(maxsize=16)
def _drawn(law: Delay) -> list[float]:
    chance = Random(derive(0, "law", law.name))
    return sorted(law.draw(chance, 1, 2) for _ in range(DRAWS))


def pause_tail(pauses: Pauses | None, time: float) -> float:
    """The probability that a pause is longer.

    >>> pause_tail(Pauses(1.0, Exponential(1.0), longest=2.0), 2.0)
    0.0
    """
    if pauses is None or time >= pauses.longest:
        return 0.0
    return tail(pauses.length, time)


def longest_pause(pauses: Pauses | None) -> float:
    """The time that no pause exceeds, or the 99.9th percentile of a law without an end."""
    if pauses is None:
        return 0.0
    return min(pauses.longest, pauses.length.bound)


def mean_pause(pauses: Pauses | None) -> float:
    """The mean length of a pause, by an integral of its tail."""
    if pauses is None:
        return 0.0
    most = pauses.longest
    if math.isinf(most):
        most = 8.0 * pauses.length.bound
    step = most / _STEPS
    return step * sum(pause_tail(pauses, (place + 0.5) * step) for place in range(_STEPS))


def worst_loss(loss: Loss) -> Loss:
    """The loss of the worst link: between sites, that of the pair with most losses."""
    if isinstance(loss, SiteLoss):
        return max((loss.within, *loss.between.values()), key=lambda each: each.p)
    return loss


def missed(loss: Loss, count: int) -> float:
    """The probability that one message of a link arrives, and the next `count` do not.

    For each message that arrives this is the probability that a silence of `count` messages begins.

    >>> from hustings.sim.loss import Uncorrelated
    >>> round(missed(Uncorrelated(0.1), 2), 6)
    0.009
    >>> round(missed(Burst(0.01, 5.0), 3) / missed(Burst(0.01, 5.0), 2), 6)  # a burst goes on
    0.8
    """
    loss = worst_loss(loss)
    if isinstance(loss, Burst):
        # Weights of a good and of a bad link, for what has happened so far.
        good, bad = 1.0 - loss.share, loss.share * (1.0 - loss.bad)
        for _ in range(count):
            good, bad = 0.0, (good * loss.enter + bad * (1.0 - loss.leave)) * loss.bad
        return good + bad
    p = loss.p
    if isinstance(loss, Coins):
        return (1.0 - p) * p**count
    return (1.0 - p) * p * loss.again(1) ** (count - 1) if count else 1.0 - p


def all_lost(loss: Loss, count: int, steps: int = 1) -> float:
    """The probability that `count` messages of a link are lost, each `steps` after the last.

    >>> round(all_lost(Burst(0.01, 5.0), 2), 6)
    0.008
    """
    chain = _chain(worst_loss(loss), steps)
    weights = [begin * lost for begin, lost in zip(chain.begins, chain.loses, strict=True)]
    for _ in range(count - 1):
        weights = [
            sum(weights[state] * chain.turns[state][after] for state in (0, 1)) * chain.loses[after]
            for after in (0, 1)
        ]
    return sum(weights) if count else 1.0


def unanswered(loss: Loss, tries: int, steps: int = 1) -> float:
    """The probability that `tries` questions in a row have no answer, on one link there and back.

    A question, or its answer, is lost each time. From one question to the next the link takes
    `steps` messages, and the link back takes one.

    >>> from hustings.sim.loss import Uncorrelated
    >>> round(unanswered(Uncorrelated(0.1), 2), 6)
    0.0361
    """
    there, back = _chain(worst_loss(loss), steps), _chain(worst_loss(loss), 1)
    weights = {
        (one, other): there.begins[one] * back.begins[other] for one in (0, 1) for other in (0, 1)
    }
    for turn in range(tries):
        if turn:
            weights = _moved(weights, there, back)
        for (one, other), weight in weights.items():
            lost = 1.0 - (1.0 - there.loses[one]) * (1.0 - back.loses[other])
            weights[one, other] = weight * lost
    return sum(weights.values())


class _Chain(NamedTuple):
    """A link as a chain of two states, good and bad."""

    begins: tuple[float, float]
    loses: tuple[float, float]
    turns: tuple[tuple[float, float], tuple[float, float]]  # from a state to each


def _chain(loss: Loss, steps: int) -> _Chain:
    """A loss as such a chain, from one message to the one that is `steps` later."""
    if isinstance(loss, Burst):
        share, kept = loss.share, (1.0 - loss.leave - loss.enter) ** steps
        stays = share + (1.0 - share) * kept  # bad, if it was bad
        comes = share - share * kept  # bad, if it was good
        return _Chain(
            (1.0 - share, share),
            (0.0, loss.bad),
            ((1.0 - comes, comes), (1.0 - stays, stays)),
        )
    p = loss.p
    if isinstance(loss, Coins) or not p:
        return _Chain((1.0, 0.0), (p, p), ((1.0, 0.0), (1.0, 0.0)))
    again = loss.again(1)  # of another model: after a loss, the next is lost with this probability
    comes = min(1.0, p * (1.0 - again) / (1.0 - p)) if p < 1.0 else 1.0
    return _Chain((1.0 - p, p), (0.0, 1.0), ((1.0 - comes, comes), (1.0 - again, again)))


def _moved(
    weights: dict[tuple[int, int], float], there: _Chain, back: _Chain
) -> dict[tuple[int, int], float]:
    found = dict.fromkeys(weights, 0.0)
    for (one, other), weight in weights.items():
        for after, on in enumerate(there.turns[one]):
            for later, off in enumerate(back.turns[other]):
                found[after, later] += weight * on * off
    return found


def longest_delay(environment: Environment) -> float:
    """The one-way delay that nearly no message exceeds, between the farthest members."""
    network = environment.network
    return network.delay.bound + network.hold_back


def late(environment: Environment, time: float) -> float:
    """The probability that a message between the farthest members takes longer."""
    network = environment.network
    if network.hold_back:
        early = tail(network.delay, time)
        held = tail(network.delay, time - network.hold_back)
        return (1.0 - network.reorder) * early + network.reorder * held
    return tail(network.delay, time)

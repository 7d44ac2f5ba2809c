"""How often a leader loses its leadership in calm time, where counting would take years.

Idea       Importance splitting (Kahn and Harris 1951, Villen-Altamirano 1991). A wrong failover
           begins with silence: a member has not heard the leader for a while, or a lease was not
           renewed. Whenever the silence reaches a level, the group is copied, and each copy goes on
           with other random numbers until the silence is over, reaches the next level, or the
           leadership is lost. A loss counts with the share of its copy.
Copies     A copy is a forked process: members on the virtual clock have no sockets. Bursts under
           way stay, and a pause goes on as one of its law that has lasted so long.
Causes     Pauses begin at a known rate, so a pause of the leader, or of another member, is begun on
           purpose at a random time. What the network does happens by itself, in groups in which
           nobody pauses until a silence begins.
Levels     They are placed by what was seen before: about one path in four reaches the next. Any
           levels give a right mean; poor ones give a wide interval.
Interval   Silences are independent of each other, and each contributes a weight. The sum of such
           weights has the interval of Fay and Feuer (1997). If no copy lost its leadership, the
           result is an upper bound: how often the highest level was reached, times the largest
           probability with which so many copies would all have been lucky. It holds if a wrong
           failover passes this level, as it does where silence is its cause. Where the network
           loses nothing, a closed form bounds what it can cause by itself.

Nothing depends on time or on the number of processes: the effort is counted in what is
played (`splitting.py`); one unit is about a millisecond of a processor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from hustings.core.errors import BadInput, UnknownName
from hustings.core.streams import derive
from hustings.lab.plans.configuration import Configuration
from hustings.lab.plans.deployment import check_size
from hustings.lab.plans.intervals import (
    Interval,
    poisson_rate,
    proportion,
    rank,
    weighted_rate,
)
from hustings.lab.plans.splitting import (
    CAUSES,
    LEADER,
    SILENCE,
    Level,
    SplitRun,
    SplitWork,
    Tree,
    play_split,
)
from hustings.lab.plans.virtual import Tell, period_of, play_groups
from hustings.sim.delay import Delay, Exponential, Fixed, Lognormal, Uniform
from hustings.sim.environment import Environment
from hustings.sim.sites import SiteDelay

COUNTED, SPLIT, BOUND = "counted", "splitting", "upper bound"
EFFORTS = {"quick": 20_000.0, "usual": 200_000.0, "thorough": 2_000_000.0}
FIRST = 0.2  # of the effort: groups are only watched
ROUNDS = 6  # after that; each may add levels
GROUPS = 2  # in a round, of a large effort: each has to settle first
_LARGE = 20_000.0
COPIES = 4  # of a path that has reached a new level
MOST_COPIES = 60
MOST_LEVELS = 40
ENOUGH = 30  # losses that were counted plainly: nothing has to be split
LEAST = 1 / (100 * 365 * 86_400.0)  # no rate is believed to be less: once in a hundred years
_BASE = 0.75  # of the looks find less silence than the base ...
_CALM = 2.4  # ... which is above the usual silence between two signs of life
_FURTHER = 2  # levels beyond those that were seen, at the distance of the last two
_PARTS = (0.75, 0.94, 0.985)  # of the paths end below a new level
_LEAST_PATHS = 3  # that reach a new level


@dataclass(frozen=True, slots=True)
class Rate:
    """How often a leadership is lost in calm time, per second of group time."""

    interval: Interval
    method: str  # counted, splitting or upper bound
    seconds: float  # group time that was watched, without copies
    lost: int  # losses that were counted plainly in `seconds`
    copies: int  # losses in copies
    levels: int  # of silence

    @property
    def value(self) -> float:
        """The estimate; 0 if only an upper bound is known."""
        return self.interval.value

    @property
    def high(self) -> float:
        """The upper end."""
        return self.interval.high


def wrong_rate(
    configuration: Configuration,
    environment: Environment,
    *,
    effort: str | float = "usual",
    seed: int = 0,
    members: int = 0,
    tell: Tell | None = None,
    jobs: int = 1,
) -> Rate:
    """The rate of wrong failovers, with its interval and its method.

    `effort` is quick, usual or thorough, or a number of such units.
    """
    return _Estimate(configuration, environment, _effort(effort), seed, members, tell, jobs).made()


def _effort(effort: str | float) -> float:
    if isinstance(effort, str):
        if effort not in EFFORTS:
            raise UnknownName("effort", effort, list(EFFORTS))
        return EFFORTS[effort]
    if not 0.0 < effort < math.inf:
        raise BadInput("an effort is a number of milliseconds, more than 0")
    return effort


class _Cause:
    """Losses with one cause: the levels of its silences, and what came of them so far."""

    def __init__(self) -> None:
        self.levels: tuple[Level, ...] = ()
        self.trees: list[Tree] = []
        self.exposure = 0.0  # group seconds, or pauses

    def learn(self, trees: Sequence[Tree], exposure: float, look: float) -> None:
        """Add what a round has found, and prepare the levels for the next one."""
        self.trees += trees
        self.exposure += exposure
        reached = [sum(each.arrivals[at] for each in trees) for at in range(len(self.levels))]
        tops = [top for each in trees for top in each.tops]
        lost = sum(map(math.isinf, tops))
        following = [*reached[1:], lost][: len(reached)]
        self.levels = tuple(
            replace(level, copies=_copies(level.copies, count, after))
            for level, count, after in zip(self.levels, reached, following, strict=True)
        )
        if len(self.levels) < MOST_LEVELS:
            self.levels += _new_levels(self.levels, tops, look)

    def rate(self, per: float) -> Interval:
        """Losses for each unit of exposure, times `per`."""
        weights = [each.value for each in self.trees]
        if any(weights):
            return weighted_rate(weights, self.exposure).times(per)
        return self._bound().times(per)

    def _bound(self) -> Interval:
        """Nothing was lost: the level that was reached says how often it can be at most."""
        if not self.exposure:
            return Interval(0.0, 0.0, math.inf, BOUND)
        bounds = [poisson_rate(0, self.exposure).high]
        for at in range(len(self.levels)):
            # Trees of earlier rounds had fewer levels.
            trees = [each for each in self.trees if len(each.weights) > at]
            count = sum(each.arrivals[at] for each in trees)
            if count:
                often = weighted_rate([each.weights[at] for each in trees], self.exposure).high
                bounds.append(often * proportion(0, count).high)
        return Interval(0.0, 0.0, min(bounds), BOUND)


def _copies(before: int, reached: int, following: int) -> int:
    """How many copies a path gets, so that about one of them reaches the next level."""
    if not reached:
        return before
    if not following:  # more copies only if so many would have shown something
        return min(MOST_COPIES, 2 * before) if reached >= _LEAST_PATHS else before
    return min(MOST_COPIES, max(1, round(before * reached / following)))


def _new_levels(levels: Sequence[Level], tops: Sequence[float], look: float) -> tuple[Level, ...]:
    """Levels above the others, by the silences of those paths that came so far."""
    count = len(tops)
    lost = sum(map(math.isinf, tops))
    if count < 2 * _LEAST_PATHS or lost * COPIES >= count:
        return ()
    floor = levels[-1].height if levels else 0.0
    values, found = sorted(tops), list[Level]()
    for part in _PARTS:
        height = values[rank(part, count) - 1]
        above = sum(each >= height for each in values)
        if height < math.inf and height > floor + look and above >= _LEAST_PATHS:
            found.append(Level(height, COPIES))
            floor = height
    if found:
        below = (*levels, *found)[-2].height if len(levels) + len(found) > 1 else 0.0
        step = max(look, found[-1].height - below)
        found += [Level(floor + step * number, COPIES) for number in range(1, _FURTHER + 1)]
    return tuple(found)


class _Estimate:
    """One estimate, in rounds."""

    def __init__(
        self,
        configuration: Configuration,
        environment: Environment,
        effort: float,
        seed: int,
        members: int,
        tell: Tell | None,
        jobs: int,
    ) -> None:
        self._configuration = configuration
        self._environment = environment
        self._effort = effort
        self._seed = seed
        self._members = members
        self._tell = tell
        self._jobs = jobs
        self._seconds = 0.0
        self._lost = 0
        self._look = math.inf
        self._groups = GROUPS if effort >= _LARGE else 1
        self._causes = {cause: _Cause() for cause in CAUSES}
        check_size(configuration, environment.members or members)

    def made(self) -> Rate:
        """Watch; then split, round by round."""
        first = self._round(-1, math.inf, self._effort * FIRST)
        self._seconds = sum(each.seconds for each in first)
        self._lost = sum(each.lost for each in first)
        heights = [each.heights for each in first]
        looks = sorted(height for each in heights for height in each)
        if self._lost >= ENOUGH or not looks:
            return self._rate(poisson_rate(self._lost, self._seconds), COUNTED)
        self._look = max(self._seconds / (len(looks) + 1), 1e-9)
        middle, upper = (looks[rank(part, len(looks)) - 1] for part in (0.5, _BASE))
        base = max(upper + self._look, _CALM * middle)
        silences, direct = self._causes[SILENCE], 0
        seen = [top for each in heights for top in _excursions(each, base)]
        for number in range(ROUNDS):
            if not silences.levels:
                silences.levels = _new_levels((), seen, base)
            found = self._round(number, base, self._effort * (1.0 - FIRST) / ROUNDS)
            direct += sum(each.lost for each in found)
            seen += [top for each in found for top in _excursions(each.heights, base)]
            for name, cause in self._causes.items():
                trees = [tree for each in found for tree in each.trees.get(name, ())]
                seconds = sum(each.seconds for each in found)
                cause.learn(trees, seconds if name == SILENCE else len(trees), self._look)
        return self._sum(direct)

    def _round(self, number: int, base: float, budget: float) -> list[SplitRun]:
        """Play the groups of one round."""
        work = SplitWork(
            self._configuration,
            self._environment,
            self._members,
            tuple(derive(self._seed, "rare", number, group) for group in range(self._groups)),
            budget / self._groups,
            base,
            {name: cause.levels for name, cause in self._causes.items()},
        )
        tell = None if self._tell is None else partial(self._told, number + 1)
        runs: list[SplitRun] = play_groups(work, self._groups, play_split, self._jobs, tell)
        return runs

    @property
    def _size(self) -> int:
        return self._environment.members or self._members

    def _told(self, before: int, done: int, of: int) -> None:
        assert self._tell is not None
        self._tell(before * of + done, (ROUNDS + 1) * of)

    def _sum(self, direct: int) -> Rate:
        """Losses of all causes together."""
        silences = self._causes[SILENCE]
        parts = [silences.rate(1.0)]
        late = network_alone(self._environment, self._configuration, self._size)
        if not parts[0].value:
            parts[0] = replace(parts[0], high=min(parts[0].high, max(late, LEAST)))
        pauses = self._environment.pauses
        if pauses is not None:
            others = self._size - 1
            for name, cause in self._causes.items():
                if name != SILENCE:
                    parts.append(cause.rate(pauses.rate * (1 if name == LEADER else others)))
        if direct:  # lost without a silence that reached the first level
            parts.append(poisson_rate(direct, silences.exposure))
        value = sum(each.value for each in parts)
        low = value - math.sqrt(sum((each.value - each.low) ** 2 for each in parts))
        high = value + math.sqrt(sum((each.high - each.value) ** 2 for each in parts))
        method = SPLIT if value else BOUND
        return self._rate(Interval(value, max(0.0, low), high, method), method)

    def _rate(self, interval: Interval, method: str) -> Rate:
        causes = self._causes.values()
        return Rate(
            interval=interval,
            method=method,
            seconds=self._seconds,
            lost=self._lost,
            copies=sum(math.isinf(top) for c in causes for tree in c.trees for top in tree.tops),
            levels=max(len(each.levels) for each in causes),
        )


def network_alone(environment: Environment, configuration: Configuration, members: int) -> float:
    """How often at most a network that loses nothing causes a silence of two periods by itself.

    One sign of life of the leader must be a whole period late for that. Infinite: the network loses
    datagrams, or nothing is known of its law.
    """
    network = environment.network
    if network.loss.p or network.reorder:
        return math.inf
    delay = network.delay
    laws = [delay.within, *delay.between.values()] if isinstance(delay, SiteDelay) else [delay]
    period = period_of(configuration)
    return 2.0 * (members - 1) / period * max(_beyond(law, period) for law in laws)


def _beyond(law: Delay, time: float) -> float:
    """The probability that a datagram takes longer."""
    if isinstance(law, Fixed | Uniform):
        return float(law.bound > time)
    if isinstance(law, Exponential):
        return math.exp(-time / law.mean)
    if isinstance(law, Lognormal) and law.sigma:
        return 0.5 * math.erfc(math.log(time / law.median) / law.sigma / math.sqrt(2.0))
    return math.inf


def _excursions(heights: Sequence[float], base: float) -> list[float]:
    """The longest silence of each time in which the silence was above the base."""
    found, highest = list[float](), 0.0
    for height in heights:
        if height >= base:
            highest = max(highest, height)
        elif highest:
            found.append(highest)
            highest = 0.0
    return found

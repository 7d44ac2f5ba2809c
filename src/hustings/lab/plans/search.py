"""The search for a plan: bounds prune, then the virtual clock plays fewer and fewer, ever longer.

All candidates of a round meet equal seeds, so they have the same links, pauses and deaths. What is
played depends on the goals, the seed and the effort, and not on how long it took: the work of a
round is estimated by the messages that a group sends.

In a group that is larger than the effort allows, fewer members are played. Then the closed forms
carry what was measured to the real size, and the method says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from hustings.core.durations import show_duration
from hustings.core.errors import BadInput
from hustings.core.quantities import write_duration
from hustings.lab.plans.bounds import (
    failover,
    members_of,
    survives,
    timers,
    traffic,
    two_leaders,
    wrong,
)
from hustings.lab.plans.candidates import (
    BYTES,
    FAILOVER,
    NEVER,
    SURVIVE,
    WRONG,
    Impossible,
    Proposal,
    Space,
    propose,
    rounded,
)
from hustings.lab.plans.configuration import Configuration
from hustings.lab.plans.goals import GroupGoals, show_bytes, show_rate
from hustings.lab.plans.intervals import fewest_values, mean_of, quantile
from hustings.lab.plans.rare import wrong_rate
from hustings.lab.plans.virtual import MACHINE, PROCESS, SITE, ObservedGroup, observe
from hustings.lab.runs.playing import Progress, Tell
from hustings.sim.environment import Environment
from hustings.sim.sites import SiteDelay, SiteLoss, Sites

MET, MISSED, OPEN = "met", "missed", "undecided"
FRAME_COST = 8e-5  # seconds of a processor for one message of a group on the virtual clock
FRAME = 180.0  # bytes of a usual one
START = 0.02  # seconds of a processor for one member's start
CALM = 20.0  # seconds in which each group is watched in calm time, at least
_ANSWER = 3.0  # seconds around each failover
MOST = 1e9


@dataclass(frozen=True, slots=True)
class SearchRound:
    """One round: how many candidates are played, on how many seeds, with how many failovers."""

    kept: int
    seeds: int
    failovers: int
    work: float  # seconds of a processor that it may take, about


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is played."""

    members: int  # of a group, at most
    rounds: tuple[SearchRound, ...]


EFFORTS: dict[str, Effort] = {
    "quick": Effort(24, (SearchRound(4, 2, 3, 16.0), SearchRound(2, 8, 8, 30.0))),
    "usual": Effort(
        100,
        (SearchRound(12, 2, 4, 120.0), SearchRound(5, 6, 8, 200.0), SearchRound(3, 32, 12, 500.0)),
    ),
    "thorough": Effort(
        300,
        (
            SearchRound(24, 3, 6, 600.0),
            SearchRound(10, 12, 12, 1500.0),
            SearchRound(4, 96, 16, 5000.0),
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a configuration does about one goal."""

    goal: str
    wanted: float | None  # None: it is no goal, and is told beside the others
    value: float
    low: float
    high: float
    method: str

    @property
    def verdict(self) -> str:
        """Whether the goal is met, as far as the interval tells; "" without a goal."""
        if self.wanted is None:
            return ""
        if self.high <= self.wanted:
            return MET
        return MISSED if self.low > self.wanted else OPEN

    @property
    def margin(self) -> float | None:
        """The part of the goal that is left, from the interval's end: 0.2 is a fifth."""
        if self.wanted is None or math.isinf(self.high):
            return None
        if self.wanted == 0.0:
            return 0.0 if self.high == 0.0 else None
        return 1.0 - self.high / self.wanted

    def show(self, value: float) -> str:
        """A value of this goal as people write it."""
        if math.isinf(value):
            return "no end"
        if self.goal == WRONG:
            return show_rate(value)
        if self.goal == BYTES:
            return show_bytes(value)
        if value == 0.0:
            return "never" if self.goal == NEVER else "0s"
        return show_duration(float(f"{value:.3g}"))


@dataclass(frozen=True, slots=True)
class PlayedProposal:
    """A candidate, what was seen of it, and what follows for each goal."""

    proposal: Proposal
    observed: ObservedGroup
    predictions: tuple[Prediction, ...]
    broken: tuple[str, ...]  # what it is to survive and does not

    @property
    def configuration(self) -> Configuration:
        """What is played."""
        return self.proposal.configuration

    def of(self, goal: str) -> Prediction:
        """The prediction for a goal."""
        return next(each for each in self.predictions if each.goal == goal)

    @property
    def verdict(self) -> str:
        """Whether all goals are met."""
        if self.broken:
            return MISSED
        told = [each.verdict for each in self.predictions]
        return MISSED if MISSED in told else OPEN if OPEN in told else MET

    @property
    def costs(self) -> tuple[float, ...]:
        """What should be small: failover, wrong failovers, two leaders, bytes."""
        return tuple(self.of(goal).high for goal in (FAILOVER, WRONG, NEVER, BYTES))


@dataclass(frozen=True, slots=True)
class SearchedPlan:
    """The result of a search."""

    front: tuple[
        PlayedProposal, ...
    ]  # not beaten in everything by another one; the proposed one first
    tried: int
    pruned: Mapping[str, int]  # how many candidates miss each goal by closed forms
    played: int
    space: Space
    members: int  # that were played
    seeds: int


def search(
    goals: GroupGoals,
    environment: Environment,
    *,
    effort: str = "usual",
    seed: int = 0,
    jobs: int = 1,
    tell: Tell | None = None,
) -> SearchedPlan:
    """The best candidates for these goals."""
    space = propose(goals, environment)
    left, pruned = prune(space.candidates, goals, environment)
    rounds = EFFORTS[effort].rounds
    smaller, most = environment, EFFORTS[effort].members
    if members_of(environment) > most:
        smaller = scaled(environment, most)
    played: list[PlayedProposal] = []
    steps = _Steps(rounds, tell)
    ranked = sorted(left, key=lambda each: _promise(each, goals, environment))
    chosen = _varied(ranked, rounds[0].kept)
    number = 0
    for place, one in enumerate(rounds):
        if not chosen:
            break
        seeds = _seeds(chosen, smaller, one, seed)
        played = [
            judge(
                each,
                goals,
                environment,
                play(
                    moved(each.configuration, environment, smaller),
                    goals,
                    smaller,
                    seeds,
                    one,
                    jobs,
                    steps.one(place),
                ),
                smaller,
            )
            for each in chosen
        ]
        number = max(number, len(played))
        following = rounds[place + 1].kept if place + 1 < len(rounds) else 4
        best = _front(played, goals)[:following]
        chosen = [each.proposal for each in best]
    front = tuple(_front(played, goals)[:4]) if played else ()
    split = [_split(each, goals, environment, smaller, effort, seed, jobs) for each in front]
    front = tuple(_front(split, goals))
    return SearchedPlan(
        front,
        len(space.candidates),
        pruned,
        number,
        space,
        members_of(smaller),
        len(seeds) if played else 0,
    )


# Closed forms


def prune(
    every: Sequence[Proposal], goals: GroupGoals, environment: Environment
) -> tuple[list[Proposal], dict[str, int]]:
    """Drop candidates that cannot meet a goal; count them by the goal."""
    left, pruned = [], dict[str, int]()
    for each in every:
        why = _misses(each.configuration, goals, environment)
        if why:
            pruned[why] = pruned.get(why, 0) + 1
        else:
            left.append(each)
    return left, pruned


def _misses(configuration: Configuration, goals: GroupGoals, environment: Environment) -> str:
    """A goal that a configuration misses for certain; "" if there is none."""
    if goals.failover_p99 is not None:
        if failover(configuration, environment).low > goals.failover_p99:
            return FAILOVER
    if goals.wrong is not None and wrong(configuration, environment).low > goals.wrong:
        return WRONG
    if goals.two_leaders == 0.0 and two_leaders(configuration, environment).high > 0.0:
        return NEVER
    if survives(configuration, environment, goals):
        return SURVIVE
    if goals.bytes is not None:
        if 0.6 * traffic(configuration, environment).most > goals.bytes:
            return BYTES
    return ""


def _promise(
    proposal: Proposal, goals: GroupGoals, environment: Environment
) -> tuple[float, float, float]:
    """How far a candidate may be from the goals; small is good."""
    configuration = proposal.configuration
    over = 0.0
    fails, errs = failover(configuration, environment), wrong(configuration, environment)
    if goals.failover_p99 is not None:
        known = math.isfinite(fails.high)
        high = fails.high if known else fails.low + 1.0
        over += max(0.0, math.log(max(high, 1e-9) / goals.failover_p99)) + (0.0 if known else 0.1)
    if goals.wrong is not None and errs.high > goals.wrong:
        over += 0.2 * math.log(errs.high / goals.wrong)
    size = traffic(configuration, environment).most
    if goals.bytes is not None:
        over += max(0.0, math.log(size / goals.bytes))
    over += 0.0 if configuration.runs_commands else 0.05
    liked = {"calm": errs.high, "speed": fails.low, "bytes": size}.get(goals.prefer, 0.0)
    return (round(over, 3), liked, float(len(proposal.reasons)))


def _varied(ranked: Sequence[Proposal], most: int) -> list[Proposal]:
    """The most promising ones, of all kinds in turn.

    Kinds differ in protocol, guard and multicast, and in whether `hustings run` can keep them.
    """
    kinds: dict[tuple[object, ...], list[Proposal]] = {}
    for each in ranked:
        one = each.configuration
        key = (one.protocol, one.guard, one.multicast, one.runs_commands)
        kinds.setdefault(key, []).append(each)
    chosen: list[Proposal] = []
    while len(chosen) < most and any(kinds.values()):
        for some in kinds.values():
            if some and len(chosen) < most:
                chosen.append(some.pop(0))
    return chosen


# Playing


def scaled(environment: Environment, most: int) -> Environment:
    """The same environment with fewer members, in the same shares at its sites."""
    members = members_of(environment)
    if environment.sites is None or members <= most:
        return replace(environment, members=min(members, most))
    sizes = tuple(max(1, round(size * most / members)) for size in environment.sites.sizes)
    sites = Sites(environment.sites.names, sizes)
    network = environment.network
    delay, loss = network.delay, network.loss
    if isinstance(delay, SiteDelay):
        delay = replace(delay, sites=sites)
    if isinstance(loss, SiteLoss):
        loss = SiteLoss.of(sites, loss.within, loss.between)
    network = replace(network, delay=delay, loss=loss)
    return replace(environment, network=network, sites=sites, members=None)


def moved(configuration: Configuration, real: Environment, smaller: Environment) -> Configuration:
    """A configuration whose voters stand at the same sites of a smaller group."""
    if not configuration.voters or real.sites is None or smaller.sites is None:
        return configuration
    if real.sites == smaller.sites:
        return configuration
    begins = [sum(smaller.sites.sizes[:place]) for place in range(len(smaller.sites.sizes))]
    taken = [0] * len(begins)
    voters = []
    for each in configuration.voters:
        place = real.sites.of(each)
        taken[place] += 1
        voters.append(begins[place] + taken[place])
    return configuration.but(voters=tuple(voters))


def _kinds(
    configuration: Configuration, goals: GroupGoals, environment: Environment
) -> tuple[str, ...]:
    """The ends of leaders that are played: of its machine, of its process, and of its site."""
    site = GroupGoals(survive=("site",))
    if "site" in goals.survive and not survives(configuration, environment, site):
        return (MACHINE, PROCESS, SITE)
    return (MACHINE, PROCESS)


def play(
    configuration: Configuration,
    goals: GroupGoals,
    environment: Environment,
    seeds: Sequence[int],
    one: SearchRound,
    jobs: int,
    tell: Callable[[int, int], None] | None,
) -> ObservedGroup:
    """One candidate in one round."""
    at = timers(configuration, environment)
    return observe(
        configuration,
        environment,
        seeds=seeds,
        failovers_per_seed=one.failovers,
        calm=max(CALM, 4.0 * at.period, 2.0 * at.gossip),
        kinds=_kinds(configuration, goals, environment),
        members=members_of(environment),
        tell=tell,
        jobs=jobs,
    )


def _seeds(
    chosen: Sequence[Proposal], environment: Environment, one: SearchRound, seed: int
) -> list[int]:
    """The seeds of a round: fewer where a group is large and sends much."""
    costs = sum(cost(each.configuration, environment, one) for each in chosen)
    count = max(2, min(one.seeds, math.floor(one.work / max(costs, 1e-9))))
    return [seed * 1_000_003 + 1 + each for each in range(count)]


def cost(configuration: Configuration, environment: Environment, one: SearchRound) -> float:
    """About how many seconds of a processor one seed takes."""
    at, members = timers(configuration, environment), members_of(environment)
    rates = traffic(configuration, environment)
    frames = (rates.leader + (members - 1) * rates.member) / 2.0 / FRAME
    each = _ANSWER + at.period + failover(configuration, environment).low
    seconds = max(CALM, 4.0 * at.period, 2.0 * at.gossip) + one.failovers * each
    return START * members + FRAME_COST * frames * seconds


class _Steps:
    """Progress over all rounds."""

    def __init__(self, rounds: Sequence[SearchRound], tell: Tell | None) -> None:
        self._rounds = rounds
        self._tell = tell
        self._work = sum(each.work for each in rounds)
        self._known = 0.0
        self._place = -1
        self._done = 0

    def one(self, place: int) -> Callable[[int, int], None] | None:
        """What hears how many groups of the next candidate are done."""
        if self._tell is None:
            return None
        if place != self._place:
            self._place, self._done = place, 0
        begun = self._done
        self._done += 1
        kept = self._rounds[place].kept
        before = sum(each.work for each in self._rounds[:place])

        def told(done: int, count: int) -> None:
            part = min(1.0, (begun + done / max(1, count)) / kept)
            share = (before + part * self._rounds[place].work) / self._work
            assert self._tell is not None
            self._tell(Progress(place, len(self._rounds), done, count, done, share))

        return told


# Predictions


def judge(
    proposal: Proposal,
    goals: GroupGoals,
    environment: Environment,
    observed: ObservedGroup,
    played: Environment,
) -> PlayedProposal:
    """What follows from what was seen, for each goal."""
    configuration = proposal.configuration
    fewer = (
        ""
        if members_of(played) == members_of(environment)
        else (f"; {members_of(played)} members played, the rest by closed form")
    )
    return PlayedProposal(
        proposal,
        observed,
        (
            _failover(configuration, goals, environment, observed, played, fewer),
            _wrong(configuration, goals, environment, observed, fewer),
            _two(configuration, goals, environment, observed, fewer),
            _bytes(configuration, goals, environment, observed, played, fewer),
        ),
        tuple(survives(configuration, environment, goals)),
    )


def _failover(
    configuration: Configuration,
    goals: GroupGoals,
    environment: Environment,
    observed: ObservedGroup,
    played: Environment,
    fewer: str,
) -> Prediction:
    if not observed.failovers:
        high = failover(configuration, environment).high
        return Prediction(FAILOVER, goals.failover_p99, high, 0.0, math.inf, "never settled")
    seen = observed.failover(0.99)
    real, small = failover(configuration, environment), failover(configuration, played)
    shift = real.low - small.low
    if math.isfinite(real.high) and math.isfinite(small.high):
        shift = real.high - small.high  # also by what losses add in a larger group
    count = len(observed.failovers)
    method = f"{count} failovers on the virtual clock: {seen.method}{fewer}"
    high = seen.high + shift
    longest = max(each.until_all_follow for each in observed.failovers)
    if longest + shift <= real.high < high:
        high = real.high
        method = f"{count} failovers on the virtual clock, the upper end by closed form{fewer}"
    return Prediction(
        FAILOVER,
        goals.failover_p99,
        seen.value + shift,
        max(0.0, seen.low + shift),
        high,
        method,
    )


def _wrong(
    configuration: Configuration,
    goals: GroupGoals,
    environment: Environment,
    observed: ObservedGroup,
    fewer: str,
) -> Prediction:
    """Counted, and bounded by the closed form as long as the count does not contradict it."""
    span, seen = wrong(configuration, environment), observed.wrong_rate
    holds = seen.low <= span.high
    low = max(seen.low, span.low if holds else 0.0)
    counted = f"{observed.wrong} in {observed.calm_seconds:.0f} s on the virtual clock"
    if holds and span.high < seen.high:
        method = f"upper bound by closed form, not contradicted by {counted}{fewer}"
        value = span.high if not observed.wrong else min(seen.value, span.high)
        return Prediction(WRONG, goals.wrong, value, low, span.high, method)
    return Prediction(
        WRONG, goals.wrong, max(seen.value, low), low, seen.high, f"counted: {counted}{fewer}"
    )


def _two(
    configuration: Configuration,
    goals: GroupGoals,
    environment: Environment,
    observed: ObservedGroup,
    fewer: str,
) -> Prediction:
    span, seen = two_leaders(configuration, environment), observed.two_leaders
    if span.high == 0.0:
        method = f"{span.because}; {show_duration(float(f'{seen:.3g}'))} seen{fewer}"
        return Prediction(NEVER, goals.two_leaders, seen, 0.0, seen, method)
    times = [each.two_leaders for each in observed.failovers]
    count = len(times)
    if math.isinf(span.high) or not times:
        return Prediction(NEVER, goals.two_leaders, seen, seen, math.inf, f"{span.because}{fewer}")
    if max(times) == 0.0:
        # What was never seen may still happen in a few of a hundred, for as long as it can last.
        high = 0.0 if count >= fewest_values(0.99) else span.high
        method = f"none in {count} failovers; else {span.because}{fewer}"
        return Prediction(NEVER, goals.two_leaders, seen, 0.0, max(seen, high), method)
    found = quantile(times, 0.99, clusters=[each.seed for each in observed.failovers])
    method = f"99th percentile of {count} failovers: {found.method}{fewer}"
    return Prediction(NEVER, goals.two_leaders, found.value, found.low, found.high, method)


def _bytes(
    configuration: Configuration,
    goals: GroupGoals,
    environment: Environment,
    observed: ObservedGroup,
    played: Environment,
    fewer: str,
) -> Prediction:
    if not observed.calm:
        return Prediction(BYTES, goals.bytes, math.inf, 0.0, math.inf, "never settled")
    seen = mean_of([max(each.bytes_leader, *each.bytes_members) for each in observed.calm])
    ratio = traffic(configuration, environment).most / traffic(configuration, played).most
    return Prediction(
        BYTES,
        goals.bytes,
        seen.value * ratio,
        max(0.0, seen.low) * ratio,
        seen.high * ratio,
        f"counted with headers and seals, of the member with most: {seen.method}{fewer}",
    )


def _split(
    one: PlayedProposal,
    goals: GroupGoals,
    environment: Environment,
    smaller: Environment,
    effort: str,
    seed: int,
    jobs: int,
) -> PlayedProposal:
    """The same with the rate of wrong failovers by importance splitting, if that may decide.

    It decides nothing where another goal is missed already.
    """
    if one.verdict != OPEN or one.of(WRONG).verdict != OPEN:
        return one
    rate = wrong_rate(
        moved(one.configuration, environment, smaller),
        smaller,
        effort=effort,
        seed=seed,
        members=members_of(smaller),
        jobs=jobs,
    )
    seen = (
        f"{rate.lost} in {rate.seconds:.0f} s on the virtual clock, {rate.copies} in copies of it"
    )
    method = f"{rate.method}: {seen}"
    if members_of(smaller) < members_of(environment):
        method += f"; {members_of(smaller)} members played"
    found = Prediction(WRONG, goals.wrong, rate.value, rate.interval.low, rate.high, method)
    return replace(
        one,
        predictions=tuple(found if each.goal == WRONG else each for each in one.predictions),
    )


# The best


def _front(played: Sequence[PlayedProposal], goals: GroupGoals) -> list[PlayedProposal]:
    """Those that no other beats in everything, the best first; those that meet the goals go first.

    One beats another if it is no worse in each cost and better in one by a twentieth.
    """
    order = {MET: 0, OPEN: 1, MISSED: 2}
    kept = [
        each
        for each in played
        if not any(_beats(other, each) for other in played if other is not each)
    ]
    rest = [each for each in played if each not in kept]

    def rank(one: PlayedProposal) -> tuple[float, ...]:
        # A configuration that hustings run can keep goes before one that it cannot.
        return (order[one.verdict], not one.configuration.runs_commands, *_liked(one, goals))

    return sorted(kept, key=rank) + sorted(rest, key=rank)


def _beats(one: PlayedProposal, other: PlayedProposal) -> bool:
    """Whether one is at least as good in everything, and better in something."""
    order = {MET: 0, OPEN: 1, MISSED: 2}
    if order[one.verdict] > order[other.verdict]:
        return False
    pairs = [(min(a, MOST), min(b, MOST)) for a, b in zip(one.costs, other.costs, strict=True)]
    return all(a <= b for a, b in pairs) and any(a < 0.95 * b for a, b in pairs)


def _liked(one: PlayedProposal, goals: GroupGoals) -> tuple[float, ...]:
    """What the user prefers; else how much of each goal is left, the scarcest first."""
    fail, errs, _, size = one.costs
    if goals.prefer:
        return ({"speed": fail, "calm": errs, "bytes": size}[goals.prefer],)
    margins = [each.margin for each in one.predictions if each.wanted is not None]
    least = min((each if each is not None else -MOST for each in margins), default=0.0)
    return (-round(least, 1), float(len(one.proposal.reasons)), fail)


# What is nearest


def nearest(goals: GroupGoals, environment: Environment) -> list[Impossible]:
    """For each goal that no candidate can meet beside the others, the nearest that one can."""
    found = []
    if goals.failover_p99 is not None:
        time = goals.failover_p99
        for _ in range(60):
            time *= 1.25
            wider = replace(goals, failover_p99=time)
            if prune(propose(wider, environment).candidates, wider, environment)[0]:
                told = f"--failover-p99 {write_duration(rounded(time))}"
                found.append(Impossible(FAILOVER, "no candidate fails over so soon", told))
                break
    for name, goal in (("wrong", WRONG), ("bytes", BYTES)):
        wanted = getattr(goals, name)
        if wanted is None:
            continue
        without = replace(goals, wrong=None) if goal == WRONG else replace(goals, bytes=None)
        left = prune(propose(without, environment).candidates, without, environment)[0]
        if not left:
            continue
        value = min(
            wrong(each.configuration, environment).low
            if goal == WRONG
            else 0.6 * traffic(each.configuration, environment).most
            for each in left
        )
        if value > wanted:
            shown = show_rate(value) if goal == WRONG else show_bytes(value).replace(" B", "")
            found.append(Impossible(goal, "no candidate keeps to it", f"--{name} {shown}"))
    return found


def nearest_played(found: Sequence[PlayedProposal]) -> list[Impossible]:
    """For each goal that the best of the played configurations misses, what it does instead."""
    if not found:
        return []
    return [
        Impossible(
            each.goal,
            "no configuration that was played keeps to it beside the other goals",
            f"--{each.goal} {each.show(each.high).replace(' B/s', '/s').replace(' ', '')}",
        )
        for each in found[0].predictions
        if each.verdict == MISSED and math.isfinite(each.high)
    ]


def check_goals(goals: GroupGoals) -> None:
    """Refuse a plan without a goal: everything would do."""
    if not goals.demanded:
        raise BadInput(
            "a plan needs a goal: give --failover-p99, --wrong, --two-leaders, --survive or --bytes"
        )

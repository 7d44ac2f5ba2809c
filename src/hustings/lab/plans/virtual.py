"""What a configuration does in an environment: members as they would be deployed, on many seeds.

Each seed is a group of its own on the virtual clock (`deployment.py`). It settles, is watched in
calm time, and then loses its leader again and again: the process ends, the machine is gone, or the
leader's whole site is cut off or crashes, by turns. Everything is read from the log after the event
(`history.py`).

A failover is over when every other member has followed a new leader that leads. A leadership that a
member loses in calm time, while it is up, is a wrong failover: no crash and no request explains it.
A pause of the leader is no crash. Bytes are those of whole datagrams, headers included.

>>> from hustings.sim.environment import parse_environment
>>> found = observe(
...     Configuration(), parse_environment("[delay]\\nwithin = '2ms'"), members=3, seeds=range(2),
...     failovers_per_seed=2, calm=5.0)
>>> len(found.failovers), found.wrong, found.calm_seconds
(4, 0, 10.0)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from hustings.core.errors import BadInput, UnknownName
from hustings.core.streams import Stream, derive
from hustings.lab.plans.configuration import Configuration
from hustings.lab.plans.deployment import Deployment, check_size
from hustings.lab.plans.history import History
from hustings.lab.plans.intervals import Interval, mean_of, poisson_rate, quantile
from hustings.lab.runs.executors import PROCESSES, Task, open_pool
from hustings.sim.environment import CRASH, Environment

PROCESS, MACHINE, SITE = "process", "machine", "site"
KINDS = (PROCESS, MACHINE, SITE)
WITHIN = 60.0  # seconds until members must agree ...
PERIODS = 20  # ... or so many periods of the leader's signs of life, if that is longer
GLANCE = 0.02  # seconds between two looks whether all follow
WARM = 5.0  # seconds from the first agreement until anything counts: members still find each other
WATCHED = 1.0  # seconds after a failover in which a second leader still belongs to it
CUT_OFF = 5.0  # seconds for which a site stays cut off after the failover
LONGEST_PHASE = 10.0
MOST_SEEDS = 100_000

Tell = Callable[[int, int], None]  # groups that are done, and all of them


@dataclass(frozen=True, slots=True)
class Failover:
    """The end of one leader. Times are in seconds from there; infinite: not in time."""

    seed: int
    kind: str  # process, machine or site
    leader: int  # the number of the leader that ended
    until_new_leader: float  # until another member leads
    until_all_follow: float  # until all others have followed it
    without_leader: float  # with no leader, until all others followed
    two_leaders: float  # the longest time in which two members led


@dataclass(frozen=True, slots=True)
class CalmTime:
    """Some time in which nobody crashed."""

    seed: int
    seconds: float
    wrong: int  # leaderships that were lost
    two_leaders: float  # the longest time in which two members led
    without_leader: float
    bytes_leader: float  # per second, sent and received, headers included
    bytes_members: tuple[float, ...]  # of each other member


@dataclass(frozen=True, slots=True)
class ObservedGroup:
    """What was seen of all seeds."""

    members: int
    failovers: tuple[Failover, ...]
    calm: tuple[CalmTime, ...]
    unsettled: tuple[int, ...]  # seeds whose members did not agree at the start, or again

    def failover(
        self, p: float = 0.99, *, kind: str | None = None, future: int | None = None
    ) -> Interval:
        """The p-th quantile of the time until all follow, of the kind for which it is longest."""
        return self._quantile(lambda each: each.until_all_follow, p, kind, future)

    def new_leader(
        self, p: float = 0.99, *, kind: str | None = None, future: int | None = None
    ) -> Interval:
        """The same of the time until another member leads."""
        return self._quantile(lambda each: each.until_new_leader, p, kind, future)

    def of_kind(self, kind: str) -> tuple[Failover, ...]:
        """The failovers of one kind."""
        return tuple(each for each in self.failovers if each.kind == kind)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of failovers that there were."""
        return tuple(kind for kind in KINDS if self.of_kind(kind))

    @property
    def calm_seconds(self) -> float:
        """Group time in which nobody crashed."""
        return sum(each.seconds for each in self.calm)

    @property
    def wrong(self) -> int:
        """Wrong failovers in that time."""
        return sum(each.wrong for each in self.calm)

    @property
    def wrong_rate(self) -> Interval:
        """Wrong failovers per second, as they were counted."""
        return poisson_rate(self.wrong, self.calm_seconds)

    @property
    def two_leaders(self) -> float:
        """The longest time in which two members led."""
        after = (each.two_leaders for each in self.failovers)
        return max([0.0, *after, *(each.two_leaders for each in self.calm)])

    @property
    def bytes_leader(self) -> Interval:
        """Bytes per second of the leader, the mean over seeds."""
        return mean_of([each.bytes_leader for each in self.calm])

    @property
    def bytes_member(self) -> Interval:
        """Bytes per second of another member, the mean over members and seeds."""
        return mean_of([fmean(each.bytes_members) for each in self.calm])

    def bytes_most(self, p: float = 0.99) -> Interval:
        """Bytes per second of the member that has most, the p-th quantile over seeds."""
        return quantile([max(each.bytes_leader, *each.bytes_members) for each in self.calm], p)

    def _quantile(
        self, value: Callable[[Failover], float], p: float, kind: str | None, future: int | None
    ) -> Interval:
        kinds = self.kinds if kind is None else (kind,)
        found = []
        for each in kinds:
            some = self.of_kind(each)
            if not some:
                raise UnknownName("kind of failover that was observed", each, self.kinds)
            seeds = [one.seed for one in some]
            found.append(quantile([value(one) for one in some], p, clusters=seeds, future=future))
        if not found:
            raise BadInput("no failover was observed")
        return max(found, key=lambda each: (each.high, each.value))


def observe(
    configuration: Configuration,
    environment: Environment,
    *,
    seeds: Sequence[int],
    failovers_per_seed: int,
    calm: float,
    kinds: Sequence[str] | None = None,
    members: int = 0,
    tell: Tell | None = None,
    jobs: int = 1,
) -> ObservedGroup:
    """Play a configuration in an environment, once for each seed.

    `kinds` are process, machine and site; without it the first two, and site if the environment has
    outages. `members` counts if the environment leaves their number open. The result depends on the
    seeds alone, not on `jobs`.
    """
    chosen = tuple(kinds) if kinds is not None else _usual_kinds(environment)
    for kind in chosen:
        if kind not in KINDS:
            raise UnknownName("kind of failover", kind, KINDS)
    if SITE in chosen and environment.sites is None:
        raise BadInput("a site can fail only where the environment has sites")
    if not 1 <= len(seeds) <= MOST_SEEDS or failovers_per_seed < 0 or not 0.0 <= calm < math.inf:
        raise BadInput("observe needs at least one seed, and no negative number of anything")
    check_size(configuration, environment.members or members)
    work = Work(configuration, environment, tuple(seeds), failovers_per_seed, calm, chosen, members)
    played = play_groups(work, len(seeds), play_some, jobs, tell)
    return ObservedGroup(
        members=environment.members or members,
        failovers=tuple(each for one in played for each in one.failovers),
        calm=tuple(one.calm for one in played if one.calm is not None),
        unsettled=tuple(one.seed for one in played if not one.settled),
    )


def _usual_kinds(environment: Environment) -> tuple[str, ...]:
    return KINDS if environment.outages is not None else (PROCESS, MACHINE)


@dataclass(frozen=True, slots=True)
class Work:
    """All groups to play."""

    configuration: Configuration
    environment: Environment
    seeds: tuple[int, ...]
    failovers: int
    calm: float
    kinds: tuple[str, ...]
    members: int


@dataclass(frozen=True, slots=True)
class PlayedGroup:
    """What was seen of one group."""

    seed: int
    settled: bool
    failovers: tuple[Failover, ...]
    calm: CalmTime | None


def play_groups(
    work: Any, count: int, job: Callable[[Any, int, int], list[Any]], jobs: int, tell: Tell | None
) -> list[Any]:
    """Play `count` pieces of work in parallel processes; results are in the order of the pieces."""
    results: dict[int, Any] = {}
    with open_pool(PROCESSES, jobs, job) as pool:
        following = 0
        while len(results) < count:
            while following < count and pool.idle:
                pool.submit(Task(0, following, following + 1), work)
                following += 1
            for task, found in pool.collect():
                results[task.first] = found[0]
            if tell is not None:
                tell(len(results), count)
    return [results[place] for place in range(count)]


def play_some(work: Work, first: int, last: int) -> list[PlayedGroup]:
    """Play the groups of some seeds, perhaps in a process of their own."""
    return [_play(work, place) for place in range(first, last)]


def _play(work: Work, place: int) -> PlayedGroup:
    seed = work.seeds[place]
    with Deployment(work.configuration, work.environment, seed, work.members) as deployment:
        return deployment.run(_Play(deployment, work, seed, place).play())


@dataclass(frozen=True, slots=True)
class _Ended:
    """The end of a leader, to be looked up in the history."""

    kind: str
    leader: str
    others: tuple[str, ...]
    successor: str | None
    begin: float
    end: float  # until then a second leader belongs to it


class _Play:
    """One group."""

    def __init__(self, deployment: Deployment, work: Work, seed: int, place: int) -> None:
        self._deployment = deployment
        self._group = deployment.inside
        self._work = work
        self._seed = seed
        self._place = place
        self._ended: list[_Ended] = []
        period = period_of(work.configuration)
        self._phase = min(LONGEST_PHASE, period)
        self._within = max(WITHIN, PERIODS * period)

    async def play(self) -> PlayedGroup:
        group = self._group
        await self._deployment.join()
        settled = await self._followed(group.up) is not None
        calm: tuple[float, float, dict[str, int], dict[str, int]] | None = None
        if settled:
            await group.advance(max(WARM, self._phase))
            begin, before = group.now, self._bytes()
            await group.advance(self._work.calm)
            calm = (begin, group.now, before, self._bytes())
            for turn in range(self._work.failovers):
                settled = await self._fail_over(turn)
                if not settled:
                    break
        history = History(group.log, group.changes, group.now)
        return PlayedGroup(
            self._seed,
            settled,
            tuple(self._told(history, each) for each in self._ended),
            None if calm is None or calm[1] <= calm[0] else self._calm(history, *calm),
        )

    def _bytes(self) -> dict[str, int]:
        return {name: sum(self._group.wire(name)) for name in self._group.up}

    def _calm(
        self,
        history: History,
        begin: float,
        end: float,
        before: dict[str, int],
        after: dict[str, int],
    ) -> CalmTime:
        seconds = end - begin
        rates = {name: (after[name] - before[name]) / seconds for name in before}
        led = [name for each in history.between(begin, end) for name in each.acting]
        leader = led[0] if led else next(iter(rates))
        return CalmTime(
            seed=self._seed,
            seconds=seconds,
            wrong=history.lost(begin, end),
            two_leaders=history.most_at_once(begin, end),
            without_leader=history.without(begin, end, tuple(rates)),
            bytes_leader=rates.pop(leader),
            bytes_members=tuple(rates.values()),
        )

    # Failovers

    async def _fail_over(self, turn: int) -> bool:
        """End the leader; whether the group agreed again afterwards, with all its members."""
        group, work = self._group, self._work
        chance = Stream(derive(self._seed, "death", turn))
        await group.advance(self._phase * chance.random())
        leader = await self._followed(group.up)
        if leader is None:
            return False
        kind = work.kinds[(self._place + turn) % len(work.kinds)]
        hit = [leader]
        if kind == SITE:
            numbers = self._deployment.site(self._deployment.number(leader))
            hit = [self._deployment.name(each) for each in numbers]
        others = [name for name in group.up if name not in hit]
        cut = kind == SITE and not self._crashes
        begin = group.now
        if cut:
            group.partition(hit, others)
        else:
            for name in hit:
                group.kill(name, machine=kind != PROCESS)
        successor = await self._followed(others)
        await group.advance(CUT_OFF if cut else WATCHED)
        end = group.now
        if cut:
            group.heal()
        else:
            for name in hit:
                await group.restart(name)
        again = await self._followed(group.up)
        await group.advance(WATCHED)
        end = group.now if cut else end  # two leaders of two sides find each other again
        self._ended.append(_Ended(kind, leader, tuple(others), successor, begin, end))
        return again is not None

    @property
    def _crashes(self) -> bool:
        """Whether a site that fails crashes; otherwise it is cut off, which is harder."""
        outages = self._work.environment.outages
        return outages is not None and outages.kind == CRASH

    async def _followed(self, names: Collection[str]) -> str | None:
        """Wait until each of these members has followed one leader among them; its name.

        Members that are paused need not follow. None: it took too long.
        """
        group, until = self._group, self._group.now + self._within
        leader: str | None = None
        waiting: dict[str, None] = {}
        while True:
            paused = group.paused
            acting = [name for name in group.leaders if name in names and name not in paused]
            if len(acting) == 1:
                if acting[0] != leader:
                    leader, waiting = acting[0], dict.fromkeys(names)
                for name in list(waiting):
                    its = group.member(name).leader
                    if name in paused or (its is not None and its.name == leader):
                        del waiting[name]
                if not waiting:
                    return leader
            if group.now >= until:
                return None
            await group.advance(GLANCE)

    def _told(self, history: History, ended: _Ended) -> Failover:
        begin, end, others = ended.begin, ended.end, ended.others
        first = follow = math.inf
        if ended.successor is not None:
            first = history.first_acting(begin, end, others) - begin
            follow = history.all_follow(begin, end, others, ended.successor) - begin
        return Failover(
            seed=self._seed,
            kind=ended.kind,
            leader=self._deployment.number(ended.leader),
            until_new_leader=first,
            until_all_follow=follow,
            without_leader=history.without(begin, min(end, begin + follow), others),
            two_leaders=history.most_at_once(begin, end),
        )


def period_of(configuration: Configuration) -> float:
    """The longest period of a leader's signs of life: deaths fall anywhere in it."""
    made = configuration.configured()
    periods = [float(getattr(made.election, "T_A", 0.0))]
    if made.detector is not None:
        periods.append(made.detector.period)
    if made.lease is not None:
        periods.append(made.lease.renewal)
    return max(0.1, *periods)

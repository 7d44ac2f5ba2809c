"""One group that is copied when it comes close to what is rare: the machine of `rare.py`.

A copy is a forked process, and goes on with other random numbers from the same past. Members on the
virtual clock hold nothing of the system, so a copy of them is as good as the original. A copy tells
its result through a pipe and ends at once; it ends, too, when the process that made it has ended.

Effort     A second of a group costs as much as it has members, and some more. One unit is about a
           millisecond of a processor.
Silence    Without a guard: the longest time for which a member has not heard the leader. While a
           member is paused it hears nothing. With a guard: the time since the lease was asked for.
Lost       A member that is up no longer takes itself for the leader. All such losses count, until
           one leader is followed by all again.
Over       The silence is below the base, the leader runs, and no other member takes itself for one.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import NoReturn

from hustings.core.errors import HustingsError
from hustings.core.streams import Stream, derive
from hustings.lab.plans.configuration import Configuration
from hustings.lab.plans.deployment import Deployment
from hustings.lab.plans.virtual import period_of
from hustings.net.fork import copy_in_children
from hustings.sim.environment import Environment

ALONE = 10  # members: what a group costs in addition to its members
SILENCE, LEADER, OTHER = "silence", "a pause of the leader", "a pause of another member"
CAUSES = (SILENCE, LEADER, OTHER)
FORK = 12.0  # what a copy costs before it does anything
LOOKS = 8  # at the silence, in each period of the leader's signs of life
LONGEST = 200  # periods until a silence is taken to be over
WARM = 15.0  # seconds from the first agreement until anything counts ...
WARM_PERIODS = 20  # ... at least so many periods: at first members still find each other
WITHIN = 120.0  # seconds until a group agrees
SETTLED = 1.0  # seconds for which one leader must be followed until losses are over
_OFTEN = 0.1  # of the looks in which a pause may be begun, one is


class CopyFailed(HustingsError):
    """A copy of a group ended without a result."""


@dataclass(frozen=True, slots=True)
class Level:
    """At this silence a path is copied."""

    height: float
    copies: int


@dataclass(slots=True)
class Tree:
    """What came of one silence, or of one pause of the leader, in all copies."""

    value: float = 0.0  # how many losses are to be expected of it
    arrivals: list[int] = field(default_factory=list)  # of paths, at each level
    weights: list[float] = field(default_factory=list)  # of these paths
    tops: list[float] = field(default_factory=list)  # longest silences above the highest level
    spent: float = 0.0  # effort


@dataclass(frozen=True, slots=True)
class SplitWork:
    """What one round plays: a group for each seed."""

    configuration: Configuration
    environment: Environment
    members: int
    seeds: tuple[int, ...]
    budget: float  # effort of each group
    base: float  # below it there is no silence; infinite: look only
    levels: Mapping[str, tuple[Level, ...]]  # of each cause


@dataclass(frozen=True, slots=True)
class SplitRun:
    """What was seen of one group."""

    seconds: float  # group time in which it was watched
    lost: int  # leaderships that were lost outside of what was split
    heights: tuple[float, ...]  # the silence at each look, where nothing of it was split
    trees: Mapping[str, tuple[Tree, ...]]  # of each cause


def play_split(work: SplitWork, first: int, last: int) -> list[SplitRun]:
    """Play the groups of some seeds."""
    return [_play(work, work.seeds[place]) for place in range(first, last)]


def _play(work: SplitWork, seed: int) -> SplitRun:
    original = os.getpid()
    try:
        with Deployment(
            work.configuration, work.environment, seed, work.members, durable=False
        ) as deployment:
            return deployment.run(SplitGroup(deployment, work, seed).play())
    finally:
        if os.getpid() != original:  # a copy must never come back here
            os._exit(1)


class SplitGroup:
    """One group, or one copy of it."""

    def __init__(self, deployment: Deployment, work: SplitWork, seed: int) -> None:
        self._deployment = deployment
        self._group = deployment.inside
        self._work = work
        self._path = seed  # of the random numbers of this copy
        self._made_by = os.getppid()
        self._period = period_of(work.configuration)
        self._look = self._period / LOOKS
        self._leader = ""
        self._leading: dict[str, None] = {}
        self._read = 0  # entries of the log that have been read
        self._heard: dict[str, float] = {}  # when each member last heard the leader
        self._fresh = False  # whether the last silence is over
        self._lease = deployment.lease
        self._spent = 0.0
        self._seconds = 0.0
        self._lost = 0

    @property
    def _only_looks(self) -> bool:
        return math.isinf(self._work.base)

    async def play(self) -> SplitRun:
        """Watch the group until the budget is spent; copy it where that is worth it."""
        work = self._work
        await self._deployment.join()
        for member in self._group.running.values():
            copy_in_children(member)
        self._group.network.heard = {}
        settled = await self._settle()
        until = self._group.now + max(WARM, WARM_PERIODS * self._period)
        while settled and self._group.now < until:
            await self._step()
        settled = settled and await self._settle()
        self._seconds, self._lost, self._spent = 0.0, 0, 0.0
        chance = Stream(derive(self._path, "pauses to begin"))
        heights: list[float] = []
        trees: dict[str, list[Tree]] = {cause: [] for cause in self._causes}
        ready = False
        while settled and self._spent < work.budget:
            if await self._step():
                settled, ready = await self._settle(), False
                continue
            height, levels = self._height(), work.levels.get(SILENCE, ())
            if not levels:
                heights.append(height)
            ready = self._is_over(height) or (ready and height < work.base)
            if levels and height >= max(work.base, levels[0].height) and self._fresh:
                self._fresh = False
                trees[SILENCE].append(await self._tree(SILENCE))
                settled = await self._pass()
            elif ready:
                self._fresh = True
                cause = self._next_pause(trees)
                if cause is not None and chance.random() < _OFTEN:
                    trees[cause].append(await self._tree(cause))
        told = {cause: tuple(each) for cause, each in trees.items()}
        return SplitRun(self._seconds, self._lost, tuple(heights), told)

    @property
    def _causes(self) -> tuple[str, ...]:
        if self._only_looks or self._work.environment.pauses is None:
            return (SILENCE,)
        return CAUSES

    def _next_pause(self, trees: Mapping[str, Sequence[Tree]]) -> str | None:
        """Whose pause to begin in a copy: each cause gets as much effort as the others."""
        if len(trees) == 1:
            return None
        spent = {cause: sum(tree.spent for tree in each) for cause, each in trees.items()}
        spent[SILENCE] = self._spent - spent[LEADER] - spent[OTHER]
        least = min(CAUSES, key=lambda cause: spent[cause])
        return None if least == SILENCE else least

    async def _settle(self) -> bool:
        """Wait until all have followed one leader for a while, and note which; whether they do."""
        leader = await self._followed()
        if leader is None:
            return False
        group, self._leader = self._group, leader
        self._heard = {name: group.now for name in group.up if name != leader}
        group.hold_pauses(not self._only_looks)
        return True

    async def _followed(self) -> str | None:
        """The leader, once all have followed it for a while; None: it took too long."""
        group = self._group
        until, since, leader = group.now + WITHIN, group.now, ""
        while group.now < until:
            await self._step()
            leading = list(self._leading)
            if leading != [leader] or not self._is_followed(leader):
                leader, since = leading[0] if len(leading) == 1 else "", group.now
            elif group.now >= since + SETTLED:
                return leader
        return None

    def _is_followed(self, leader: str) -> bool:
        group = self._group
        paused = group.paused
        for name in group.up:
            its = group.member(name).leader
            if name not in paused and (its is None or its.name != leader):
                return False
        return True

    # Time

    async def _step(self) -> int:
        """Let a little time pass; how many leaderships were lost in it."""
        if os.getppid() != self._made_by:  # nobody waits for this copy any more
            os._exit(1)
        await self._group.advance(self._look)
        self._seconds += self._look
        self._spent += self._look * (self._deployment.members + ALONE)
        lost = 0
        log = self._group.log
        for each in log[self._read :]:
            if each.state.leading:
                self._leading[each.member] = None
            elif each.member in self._leading:
                del self._leading[each.member]
                lost += 1
        self._read = len(log)
        self._lost += lost
        self._listen()
        return lost

    def _listen(self) -> None:
        """Note when each member last heard the leader; one that is paused hears nothing."""
        heard, group = self._group.network.heard, self._group
        if heard is None or not self._leader:
            return
        paused = group.paused
        leader = group.endpoint(self._leader)
        for name, before in self._heard.items():
            if name not in paused:
                self._heard[name] = heard.get((leader, group.endpoint(name)), before)

    def _height(self) -> float:
        """The silence: for how long the leader was not heard, or its lease was not renewed."""
        now = self._group.now
        if self._lease is None:
            return now - min(self._heard.values(), default=now)
        return self._lease - self._group.member(self._leader).remaining

    def _is_over(self, height: float) -> bool:
        if height >= self._work.base or list(self._leading) != [self._leader]:
            return False
        return self._leader not in self._group.paused

    async def _pass(self) -> bool:
        """Let a silence go by that was split: its losses do not count again."""
        before, until = self._lost, self._group.now + LONGEST * self._period
        settled = True
        while self._group.now < until:
            if await self._step():
                settled = await self._settle()
                break
            if self._is_over(self._height()):
                break
        self._lost = before
        return settled

    # Copies

    async def _tree(self, cause: str) -> Tree:
        """All copies of one silence, which has reached the first level, or of one pause."""
        levels = self._work.levels.get(cause, ())
        tree = Tree(arrivals=[0] * len(levels), weights=[0.0] * len(levels))
        before, self._spent = self._spent, 0.0
        if cause == SILENCE:
            tree.value = await self._split(tree, levels, 0, 1.0)
        else:
            tree.value = await self._copied(tree, levels, -1, 1.0, 0, cause)
        tree.spent += self._spent
        self._spent = before + tree.spent
        self._path = derive(self._path, "next")
        return tree

    async def _split(self, tree: Tree, levels: Sequence[Level], at: int, weight: float) -> float:
        """What copies of this path bring, which has just reached the level `at`."""
        tree.arrivals[at] += 1
        tree.weights[at] += weight
        copies = levels[at].copies
        if copies == 1:
            return await self._follow(tree, levels, at + 1, weight)
        parts = [
            await self._copied(tree, levels, at, weight / copies, copy) for copy in range(copies)
        ]
        return sum(parts) / copies

    async def _follow(self, tree: Tree, levels: Sequence[Level], at: int, weight: float) -> float:
        """Follow this path until its silence is over: its losses, or those of its copies."""
        until = self._group.now + LONGEST * self._period
        before, highest = self._lost, 0.0
        while self._group.now < until:
            if await self._step():
                highest = math.inf
                await self._followed()  # further losses belong to it
                break
            height = self._height()
            highest = max(highest, height)
            if at < len(levels) and height >= levels[at].height:
                return await self._split(tree, levels, at, weight)
            if self._is_over(height):
                break
        if at == len(levels) or math.isinf(highest):
            tree.tops.append(highest)
        return float(self._lost - before)

    async def _copied(
        self,
        tree: Tree,
        levels: Sequence[Level],
        at: int,
        weight: float,
        copy: int,
        cause: str = SILENCE,
    ) -> float:
        """Let a copy of this process follow a path from here; what it brings."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            await self._as_copy(writing, levels, at, weight, copy, cause)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            told = pipe.read()
        _, status = os.waitpid(child, 0)
        if status or not told:
            raise CopyFailed(f"a copy of a group failed: {told.decode() or status}")
        found = Tree(**json.loads(told))
        for place in range(len(levels)):
            tree.arrivals[place] += found.arrivals[place]
            tree.weights[place] += found.weights[place]
        tree.tops += found.tops
        tree.spent += found.spent + FORK
        return found.value

    async def _as_copy(
        self,
        writing: int,
        levels: Sequence[Level],
        at: int,
        weight: float,
        copy: int,
        cause: str,
    ) -> NoReturn:
        """What a copy does from its first moment to its last."""
        status = 1
        try:
            asyncio._set_running_loop(self._group.loop)  # it is not taken over by itself
            self._made_by = os.getppid()
            self._path = derive(self._path, "copy", at + 1, copy)
            self._deployment.reseed(self._path)
            self._group.hold_pauses(False)
            if cause != SILENCE:
                others = list(self._heard)
                other = others[Stream(self._path).below(len(others))]
                self._group.begin_pause(self._leader if cause == LEADER else other)
            self._spent = 0.0
            tree = Tree(arrivals=[0] * len(levels), weights=[0.0] * len(levels))
            tree.value = await self._follow(tree, levels, at + 1, weight)
            tree.spent += self._spent
            _tell(writing, json.dumps(asdict(tree)))
            status = 0
        except BaseException as error:  # whatever it is, the original must hear of it
            _tell(writing, f"{type(error).__name__}: {error}")
        finally:
            os._exit(status)


def _tell(writing: int, told: str) -> None:
    with os.fdopen(writing, "wb") as pipe:
        pipe.write(told.encode())

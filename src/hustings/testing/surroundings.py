"""An environment around the members of a group in memory: its laws for each link, and its pauses.

Law: each link and each member has a random stream of its own. So what happens on one link does not
depend on what is sent on another, and two groups with one seed meet the same pauses.

Members are numbered in the order of joining, from 1: with sites the first members are at the first
site. `reseed` lets a run go on with other random numbers, and with the same past: bursts under way
stay, and a pause that has lasted for some time lasts on as one of its law that has lasted so long.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextvars import Context
from random import Random
from statistics import NormalDist
from typing import Protocol

from hustings.core.streams import Stream, derive
from hustings.sim.delay import Delay, Exponential, Fixed, Lognormal, Uniform
from hustings.sim.environment import Environment
from hustings.sim.pauses import Pauses

_TRIES = 10_000  # draws until one is longer than what has passed


class StreamRandom(Random):
    """The interface of `random.Random` for laws, upon a small stream that may be changed."""

    def __init__(self) -> None:
        super().__init__(0)
        self.stream = Stream(0)

    def upon(self, stream: Stream) -> Random:
        """Draw from this stream from now on."""
        self.stream = stream
        self.gauss_next = None  # the second half of a draw by another stream
        return self

    def random(self) -> float:
        return self.stream.random()

    def getrandbits(self, k: int, /) -> int:
        bits = 0
        for _ in range(-(-k // 64)):
            bits = bits << 64 | self.stream.bits()
        return bits >> (-k % 64)


class LinkLaws:
    """What an environment's network does to datagrams."""

    def __init__(self, environment: Environment) -> None:
        network = environment.network
        self.header = environment.header
        self.duplicate = network.duplicate
        self._network = network
        self._random = StreamRandom()
        self._fate = network.loss.fate(self._random)  # it holds the state of bursts
        self._latest: dict[tuple[int, int], float] = {}  # last arrival, where none may overtake

    def lost(self, stream: Stream, now: float, sender: int, receiver: int) -> bool:
        """Whether a datagram that leaves now is lost."""
        self._random.upon(stream)
        return self._fate(now, sender, receiver)

    def way(self, stream: Stream, now: float, sender: int, receiver: int) -> float:
        """How long a datagram that leaves now is under way."""
        network, rng = self._network, self._random.upon(stream)
        time = network.delay.draw(rng, sender, receiver)
        if network.reorder and rng.random() < network.reorder:
            time += network.hold_back * rng.random()
        if not network.fifo:
            return time
        link = sender, receiver
        self._latest[link] = arrival = max(now + time, self._latest.get(link, 0.0))
        return arrival - now


class PausableGroup(Protocol):
    """The group whose members pause."""

    @property
    def up(self) -> list[str]:
        """The members that are up."""

    @property
    def paused(self) -> list[str]:
        """The members that are paused."""

    def pause(self, name: str) -> None:
        """A member stands still."""

    def resume(self, name: str) -> None:
        """It continues."""


class MemberPauses:
    """The pauses of all members of a group."""

    def __init__(
        self,
        group: PausableGroup,
        pauses: Pauses,
        seed: int,
        loop: asyncio.AbstractEventLoop,
        context: Context,
    ) -> None:
        self._group = group
        self._pauses = pauses
        self._seed = seed
        self._loop = loop
        self._context = context
        self._random = StreamRandom()
        self._numbers: dict[str, int] = {}
        self._streams: dict[str, Stream] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._since: dict[str, float] = {}  # the beginning of each pause of this object

    def watch(self, name: str, number: int) -> None:
        """A member has joined for the first time."""
        self._numbers[name] = number
        self._streams[name] = Stream(derive(self._seed, "pauses", number))
        self._wait(name)

    def reseed(self, seed: int) -> None:
        """Go on with other random numbers; pauses under way have lasted as long as they have."""
        self._seed = seed
        now = self._loop.time()
        for name, number in self._numbers.items():
            self._streams[name] = stream = Stream(derive(seed, "pauses", number))
            since = self._since.get(name)
            if since is None:
                self._wait(name)
                continue
            law, most = self._pauses.length, self._pauses.longest
            whole = min(most, longer(law, now - since, self._random.upon(stream), number))
            self._later(name, max(0.0, since + whole - now), self._end)

    def stop(self) -> None:
        """No member pauses any more."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _later(self, name: str, seconds: float, act: Callable[[str], None]) -> None:
        if name in self._timers:
            self._timers[name].cancel()
        self._timers[name] = self._loop.call_later(seconds, act, name, context=self._context)

    def _wait(self, name: str) -> None:
        self._later(name, self._streams[name].expovariate(self._pauses.rate), self._begin)

    def _begin(self, name: str) -> None:
        length = self._pauses.draw(self._random.upon(self._streams[name]), self._numbers[name])
        if name not in self._group.up or name in self._group.paused:
            self._wait(name)
            return
        self._since[name] = self._loop.time()
        self._group.pause(name)
        self._later(name, length, self._end)

    def _end(self, name: str) -> None:
        del self._since[name]
        if name in self._group.paused:  # otherwise it was killed meanwhile, or resumed by a test
            self._group.resume(name)
        self._wait(name)


def longer(law: Delay, passed: float, rng: Random, member: int) -> float:
    """A draw from a law, given that it is more than what has passed.

    >>> longer(Fixed(2.0), 1.5, Random(1), 1)
    2.0
    >>> 1.5 <= longer(Uniform(1.0, 2.0), 1.5, Random(1), 1) <= 2.0
    True
    """
    if isinstance(law, Fixed):
        return max(law.delay, passed)
    if isinstance(law, Uniform):
        return rng.uniform(max(law.low, min(passed, law.high)), law.high)
    if isinstance(law, Exponential):
        return passed + law.draw(rng, member, member)
    if isinstance(law, Lognormal) and passed > 0.0 and law.sigma > 0.0:
        normal = NormalDist(math.log(law.median), law.sigma)
        beyond = 1.0 - normal.cdf(math.log(passed))
        share = 1.0 - beyond * (1.0 - rng.random())
        return max(passed, math.exp(normal.inv_cdf(share))) if 0.0 < share < 1.0 else passed
    for _ in range(_TRIES):
        drawn = law.draw(rng, member, member)
        if drawn > passed:
            return drawn
    return passed  # it ends now: the law has hardly anything longer

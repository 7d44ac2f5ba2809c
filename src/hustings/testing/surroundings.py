"""An environment around the members of a group in memory: laws for each link, and what chance does.

Chance pauses members, crashes them, and lets whole sites fail, each for some time.

Law: each link, each member and each site has a random stream of its own. So what happens on one
link does not depend on what is sent on another, and two groups with one seed meet the same pauses.

Members are numbered in the order of joining, from 1: with sites the first members are at the first
site. `reseed` lets a run go on with other random numbers, and with the same past: bursts under way
stay, and a pause that has lasted for some time lasts on as one of its law that has lasted so long.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass
from random import Random
from statistics import NormalDist
from typing import Protocol

from hustings.core.errors import BadInput
from hustings.core.streams import Stream, derive
from hustings.sim.delay import Delay, Exponential, Fixed, Lognormal, Uniform
from hustings.sim.environment import CUT, Environment

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
        if network.loss.shared or network.loss.collision:
            raise BadInput(
                "members in memory lose each datagram by itself: an environment with correlated "
                "losses or collisions is for the simulator"
            )
        self.header = environment.header
        self.dark: dict[int, None] = {}  # sites that are cut off
        self._sites = environment.sites
        self.duplicate = network.duplicate
        self._network = network
        self._random = StreamRandom()
        self._fate = network.loss.fate(self._random)  # it holds the state of bursts
        self._latest: dict[tuple[int, int], float] = {}  # last arrival, where none may overtake

    def lost(self, stream: Stream, now: float, sender: int, receiver: int) -> bool:
        """Whether a datagram that leaves now is lost."""
        self._random.upon(stream)
        return self._fate(now, sender, receiver)

    def cut(self, sender: int, receiver: int) -> bool:
        """Whether one of the two is at a site that is cut off, and the other is not."""
        if self._sites is None or not self.dark:
            return False
        one, other = self._sites.of(sender), self._sites.of(receiver)
        return one != other and (one in self.dark or other in self.dark)

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


class ChanceGroup(Protocol):
    """The group to whose members things happen."""

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

    def kill(self, name: str, *, machine: bool) -> None:
        """A member ends without a farewell."""

    def incarnation(self, name: str) -> int:
        """How many processes a member has had."""

    def bring_back(self, name: str, incarnation: int) -> None:
        """It runs again, unless it has been brought back since that incarnation."""


class MemberChance:
    """The pauses, crashes and outages of an environment, for all members of a group.

    A crash is that of a machine: others get no answer, and no refusal either.
    """

    def __init__(
        self,
        group: ChanceGroup,
        environment: Environment,
        laws: LinkLaws,
        seed: int,
        loop: asyncio.AbstractEventLoop,
        context: Context,
    ) -> None:
        self._group = group
        self._laws = laws
        self._sites = environment.sites
        self._outages = environment.outages
        self._names: dict[int, str] = {}
        self._down: dict[int, int] = {}  # members that have crashed: their incarnations
        self._stopped: dict[int, dict[int, int]] = {}  # by site: members that its outage stopped
        here = loop, context, seed
        pauses, crashes, outages = environment.pauses, environment.crashes, environment.outages
        self._pausing = self._crashing = self._failing = None
        if pauses is not None:
            law = SpellLaw(pauses.rate, pauses.length, pauses.longest)
            self._pausing = Spells("pauses", law, self._pause, self._resume, *here)
        if crashes is not None:
            law = SpellLaw(crashes.rate, crashes.back)
            self._crashing = Spells("crashes", law, self._crash, self._return, *here)
        if outages is not None:
            law = SpellLaw(outages.rate, outages.lasts)
            self._failing = Spells("outages", law, self._fail, self._recover, *here)

    @property
    def _spells(self) -> list[Spells]:
        return [one for one in (self._pausing, self._crashing, self._failing) if one is not None]

    def watch(self, name: str, number: int) -> None:
        """A member has joined for the first time."""
        if not self._names and self._failing is not None and self._sites is not None:
            for site in range(len(self._sites.names)):
                self._failing.watch(site)
        self._names[number] = name
        for spells in (self._pausing, self._crashing):
            if spells is not None:
                spells.watch(number)

    def reseed(self, seed: int) -> None:
        """Go on with other random numbers; what is under way has lasted as long as it has."""
        for spells in self._spells:
            spells.reseed(seed)

    def stop(self) -> None:
        """Nothing happens any more."""
        for spells in self._spells:
            spells.stop()

    def hold_pauses(self, held: bool) -> None:
        """Whether nobody begins to pause by chance from now on."""
        if self._pausing is not None:
            self._pausing.held = held

    def begin_pause(self, number: int) -> None:
        """Let a member that runs pause now, for as long as the environment's law draws."""
        if self._pausing is not None:
            self._pausing.begin(number)

    def _pause(self, number: int) -> bool:
        name = self._names[number]
        if name not in self._group.up or name in self._group.paused:
            return False
        self._group.pause(name)
        return True

    def _resume(self, number: int) -> None:
        name = self._names[number]
        if name in self._group.paused:  # otherwise it was killed meanwhile, or resumed by a test
            self._group.resume(name)

    def _crash(self, number: int) -> bool:
        name = self._names[number]
        if name not in self._group.up:
            return False
        self._down[number] = self._kill(name)
        return True

    def _kill(self, name: str) -> int:
        """Its machine is gone; the number of the incarnation that has ended."""
        self._group.kill(name, machine=True)
        return self._group.incarnation(name)

    def _return(self, number: int) -> None:
        incarnation = self._down.pop(number)
        site = None if self._sites is None else self._sites.of(number)
        if site in self._stopped:
            self._stopped[site][number] = incarnation  # its machine has no power yet
        else:
            self._group.bring_back(self._names[number], incarnation)

    def _fail(self, site: int) -> bool:
        assert self._sites is not None
        if self._outages is not None and self._outages.kind == CUT:
            self._laws.dark[site] = None
            return True
        self._stopped[site] = {
            number: self._kill(name)
            for number, name in self._names.items()
            if self._sites.of(number) == site and name in self._group.up
        }
        return True

    def _recover(self, site: int) -> None:
        self._laws.dark.pop(site, None)
        for number, incarnation in self._stopped.pop(site, {}).items():
            self._group.bring_back(self._names[number], incarnation)


@dataclass(frozen=True, slots=True)
class SpellLaw:
    """How often something happens, and how long it lasts."""

    rate: float
    length: Delay
    longest: float = math.inf


class Spells:
    """Something that happens to each member, or to each site, for a while, again and again."""

    def __init__(
        self,
        what: str,
        law: SpellLaw,
        begin: Callable[[int], bool],
        end: Callable[[int], None],
        loop: asyncio.AbstractEventLoop,
        context: Context,
        seed: int,
    ) -> None:
        """`what` names the random streams; `begin` says whether it could happen."""
        self._what = what
        self._law = law
        self._begin = begin
        self._end = end
        self._loop = loop
        self._context = context
        self._seed = seed
        self._random = StreamRandom()
        self._streams: dict[int, Stream] = {}
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._since: dict[int, float] = {}  # the beginning of each spell
        self.held = False  # whether none begins by chance at present

    def watch(self, number: int) -> None:
        """From now on it happens to this one, too."""
        self._streams[number] = Stream(derive(self._seed, self._what, number))
        self._wait(number)

    def reseed(self, seed: int) -> None:
        """Go on with other random numbers; spells under way have lasted as long as they have."""
        self._seed = seed
        now = self._loop.time()
        for number in self._streams:
            self._streams[number] = stream = Stream(derive(seed, self._what, number))
            since = self._since.get(number)
            if since is None:
                self._wait(number)
                continue
            whole = longer(self._law.length, now - since, self._random.upon(stream), number)
            whole = min(self._law.longest, whole)
            self._later(number, max(0.0, since + whole - now), self._over)

    def begin(self, number: int) -> None:
        """Let it happen now, for as long as the law draws; chance must not have begun it."""
        rng = self._random.upon(self._streams[number])
        length = min(self._law.longest, self._law.length.draw(rng, number, number))
        if self._begin(number):
            self._since[number] = self._loop.time()
            self._later(number, length, self._over)
        else:
            self._wait(number)

    def stop(self) -> None:
        """Nothing happens any more."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _later(self, number: int, seconds: float, act: Callable[[int], None]) -> None:
        if number in self._timers:
            self._timers[number].cancel()
        self._timers[number] = self._loop.call_later(seconds, act, number, context=self._context)

    def _wait(self, number: int) -> None:
        self._later(number, self._streams[number].expovariate(self._law.rate), self._happen)

    def _happen(self, number: int) -> None:
        if self.held:
            self._wait(number)
        else:
            self.begin(number)

    def _over(self, number: int) -> None:
        del self._since[number]
        self._end(number)
        self._wait(number)


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

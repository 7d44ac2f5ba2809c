"""A committee in memory: scripts in lock step without a world, some of them spoken for.

Every round all scripts speak, then the adversary, who has seen what the good ones say, replaces the
words of the bad ones; then everybody hears. The same scripts run in the simulator, and a test holds
the two to the same results.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import Generic, TypeVar

from hustings.core.choice import HighestId, MemberId, candidate
from hustings.core.config import Config
from hustings.core.streams import Stream
from hustings.protocols.committee.bits import Bits
from hustings.protocols.committee.lockstep import Lockstep, Script, Spoken
from hustings.protocols.committee.misbehaving import AdversaryScene, Honest, Voice, infiltrated
from hustings.sim.world import Ended, World

T = TypeVar("T")


@dataclass
class Sat(Generic[T]):
    """A committee that has come to its end."""

    bad: tuple[MemberId, ...]
    results: dict[MemberId, T] = field(default_factory=dict)
    rounds: dict[MemberId, int] = field(default_factory=dict)
    bits: dict[MemberId, int] = field(default_factory=dict)

    @property
    def good(self) -> list[T]:
        """The results of good members."""
        return [self.results[each] for each in sorted(self.results) if each not in self.bad]

    @property
    def agreed(self) -> bool:
        return all(result == self.good[0] for result in self.good)


def sit(
    scripts: Mapping[MemberId, Script[T]],
    bad: Collection[MemberId] = (),
    voice: Voice | None = None,
    seed: int = 0,
) -> Sat[T]:
    """Play scripts of one channel to their ends."""
    scene = AdversaryScene(bad, Stream(seed))
    scene.members = {member: Lockstep(Config(), HighestId()) for member in scripts}
    sat: Sat[T] = Sat(scene.bad)
    heard: dict[MemberId, dict[MemberId, Bits]] = {member: {} for member in scripts}
    sat.bits = dict.fromkeys(scripts, 0)
    sat.rounds = dict.fromkeys(scripts, 0)
    while len(sat.results) < len(scripts):
        scene.turn(scene.round + 1)
        spoken: dict[MemberId, Spoken] = {}
        for member, script in scripts.items():
            if member in sat.results:
                continue
            try:
                spoken[member] = next(script) if scene.round == 1 else script.send(heard[member])
                sat.rounds[member] += 1
            except StopIteration as end:
                sat.results[member] = end.value
        for member, seat in scene.members.items():
            seat.spoken = {0: spoken[member]} if member in spoken else {}
        heard = {member: {} for member in spoken}
        for member, mine in spoken.items():
            outbox = mine.outbox
            if scene.is_bad(member):
                outbox = (voice or Honest()).speak(scene, member, mine)
            for to, bits in outbox.items():
                sat.bits[member] += bits.length
                if to in heard and to != member:
                    heard[to][member] = bits
    return sat


def worldly(
    make: Callable[[], Lockstep],
    members: int,
    bad: Iterable[MemberId] = (),
    voice: Voice | None = None,
    *,
    seed: int = 0,
    debug: bool = False,
) -> tuple[World, AdversaryScene]:
    """The same in the simulator, run to its end."""
    scene = AdversaryScene(bad, Stream(seed))
    people = [candidate(each) for each in range(1, members + 1)]
    world = World(infiltrated(make, voice or Honest(), scene), people, seed=seed, debug=debug)
    world.start()
    assert world.run() is Ended.QUIESCENT
    return world, scene


class Coins(Stream):
    """A stream whose draws are told beforehand; beyond them it draws 0 and notes the bound."""

    __slots__ = ("bounds", "told")

    def __init__(self, told: list[int]) -> None:
        super().__init__(0)
        self.told = told
        self.bounds: list[int] = []

    def below(self, bound: int) -> int:
        place = len(self.bounds)
        self.bounds.append(bound)
        return self.told[place] if place < len(self.told) else 0


def every_play(play: Callable[[Coins], T]) -> Iterator[tuple[Fraction, T]]:
    """All results of a game of chance with their probabilities, by trying all its coins."""
    told: list[int] = []
    while True:
        coins = Coins(list(told))
        result = play(coins)
        told += [0] * (len(coins.bounds) - len(told))
        yield Fraction(1, prod(coins.bounds)), result
        while told and told[-1] == coins.bounds[len(told) - 1] - 1:
            told.pop()
        if not told:
            return
        told[-1] += 1

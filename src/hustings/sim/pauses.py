"""Members that stand still at random: garbage collection, a busy machine, a suspended one.

While a member is paused it handles nothing: messages wait for it, and so do its timers. It
continues as after `--fault resume`: first `woke` tells a member that watches for stalls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import inf
from random import Random
from typing import TYPE_CHECKING

from hustings.core.config import finite_number
from hustings.core.errors import BadInput, UnknownName
from hustings.core.streams import derive
from hustings.sim.delay import Delay, Fixed, parse_delay

if TYPE_CHECKING:
    from hustings.core.choice import MemberId
    from hustings.sim.agenda import Agenda
    from hustings.sim.world import World


@dataclass(frozen=True, slots=True)
class Pauses:
    """How often a member pauses, and for how long."""

    rate: float  # pauses of one member in a unit of time in which it runs
    length: Delay = Fixed()  # noqa: RUF009 (frozen)
    longest: float = inf  # no pause takes longer

    def __post_init__(self) -> None:
        if not 0.0 < self.rate < inf:
            raise BadInput(f"the rate of pauses must be a number > 0, not {self.rate:g}")
        if not self.longest > 0.0:
            raise BadInput(f"the longest pause must be a time > 0, not {self.longest:g}")

    def draw(self, rng: Random, member: MemberId) -> float:
        """How long one pause of a member takes."""
        return min(self.longest, self.length.draw(rng, member, member))


def parse_pauses(rate: float, settings: Mapping[str, str]) -> Pauses:
    """`--pause RATE` with `--pause-set length=LAW` and `longest=TIME`.

    >>> parse_pauses(0.01, {"length": "exponential:2", "longest": "10"})
    Pauses(rate=0.01, length=Exponential(mean=2.0), longest=10.0)
    """
    for key in settings:
        if key not in ("length", "longest"):
            raise UnknownName("pause setting", key, ["length", "longest"])
    length = parse_delay(settings["length"]) if "length" in settings else Fixed()
    longest = finite_number(settings["longest"], "longest pause") if "longest" in settings else inf
    return Pauses(rate, length, longest)


class Pausing:
    """The pauses of one run. They have a random stream of their own."""

    def __init__(self, pauses: Pauses, world: World, agenda: Agenda, begin: float) -> None:
        self._pauses = pauses
        self._world = world
        self._agenda = agenda
        self._rng = Random(derive(world.seed, "pauses"))
        self._paused: dict[MemberId, tuple[int, float]] = {}  # incarnation, and since when
        self.pauses = 0
        self.time = 0.0
        for member in world.members:
            self._next_pause(begin, member)

    def _next_pause(self, now: float, member: MemberId) -> None:
        self._later(now + self._rng.expovariate(self._pauses.rate), member, self._pause)

    def _later(self, at: float, member: MemberId, act: Callable[[MemberId], None]) -> None:
        self._agenda.later(at, member, partial(act, member))

    def _pause(self, member: MemberId) -> None:
        world = self._world
        ctx = world.members[member]
        if not ctx.up:  # it is down, or something else has paused it
            self._next_pause(world.now, member)
            return
        world.pause(ctx)
        self.pauses += 1
        self._paused[member] = ctx.incarnation, world.now
        self._agenda.in_effect += 1
        self._later(world.now + self._pauses.draw(self._rng, member), member, self._resume)

    def _resume(self, member: MemberId) -> None:
        world = self._world
        ctx = world.members[member]
        incarnation, since = self._paused.pop(member)
        self._agenda.in_effect -= 1
        self.time += world.now - since
        if ctx.incarnation == incarnation:  # otherwise it crashed and came back during the pause
            world.resume(ctx)
        self._next_pause(world.now, member)

    def metrics(self) -> dict[str, float | None]:
        """At the end of a run: how many pauses there were, and how long a member's took."""
        ended = self.pauses - len(self._paused)
        return {
            "pauses": float(self.pauses),
            "pause_length": self.time / ended if ended else None,
        }

"""The watcher: what every member was like at every time, seen from outside.

It is an observer of the world: it hears of each outcome and each change of status, and changes
nothing. Suspicions are not announced; they are read off the detectors after every slice of time, so
their instants are exact to one slice.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from hustings.core.choice import MemberId
from hustings.core.outcome import Elected, Outcome
from hustings.layers.detector.layer import DetectorLayer
from hustings.sim.member import SimContext, Status
from hustings.sim.world import World

T = TypeVar("T")

History = list[tuple[float, T]]  # what held since when


@dataclass(frozen=True, slots=True)
class State:
    """One member at one time: its status and what it declared last."""

    status: Status = Status.OUT
    incarnation: int = 0
    outcome: Outcome | None = None

    @property
    def leader(self) -> MemberId | None:
        """Whom this member takes for the leader."""
        return self.outcome.leader if isinstance(self.outcome, Elected) else None


class Watcher:
    """Keeps every member's history."""

    def __init__(self, members: Sequence[MemberId]) -> None:
        self.states: dict[MemberId, History[State]] = {
            member: [(0.0, State())] for member in members
        }
        self.suspects: dict[MemberId, History[tuple[MemberId, ...]]] = {
            member: [(0.0, ())] for member in members
        }
        self.leading: History[tuple[MemberId, ...]] = [(0.0, ())]  # live, and for itself the leader
        self.last_change = 0.0  # when a member last changed its status or its leader

    # What the world tells

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        """A member declared an outcome."""
        self._become(world.now, member, outcome)

    def changed(self, world: World, member: SimContext) -> None:
        """A member came up, crashed, paused, went on."""
        self._become(world.now, member, member.outcome)

    def _become(self, t: float, member: SimContext, outcome: Outcome | None) -> None:
        before = self.state(member.id)
        state = State(member.status, member.incarnation, outcome)
        self.states[member.id].append((t, state))
        if (state.status, state.leader) != (before.status, before.leader):
            self.last_change = t
        leading = tuple(
            each
            for each in self.states
            if self.state(each).status is Status.UP and self.state(each).leader == each
        )
        if leading != self.leading[-1][1]:
            self.leading.append((t, leading))

    def look(self, world: World) -> None:
        """Read the detectors."""
        for member in world.live():
            if isinstance(member.election, DetectorLayer):
                now = tuple(sorted(member.election.detector.suspects))
                if now != self.suspects[member.id][-1][1]:
                    self.suspects[member.id].append((world.now, now))

    # What one may ask

    def state(self, member: MemberId) -> State:
        """A member's state now."""
        return self.states[member][-1][1]

    def two_leaders(self, start: float, end: float) -> float:
        """For how long between two instants more than one live member took itself for leader."""
        total = 0.0
        for place, (since, leading) in enumerate(self.leading):
            until = self.leading[place + 1][0] if place + 1 < len(self.leading) else end
            if len(leading) > 1:
                total += max(0.0, min(until, end) - max(since, start))
        return total


def latest(history: Sequence[tuple[float, T]], t: float) -> T:
    """What a history says about instant `t`.

    >>> latest([(0.0, "none"), (2.0, "one")], 1.9), latest([(0.0, "none"), (2.0, "one")], 2.0)
    ('none', 'one')
    """
    return history[bisect_right(history, t, key=lambda entry: entry[0]) - 1][1]

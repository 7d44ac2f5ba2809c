"""Whom a member follows: at most k leaders, the best first.

With one leader this is the thesis's variable `leader`. With k of them a member keeps out of the
race once it follows k that are better than itself, and then takes up only one that is better than
the weakest of those.

A leader that stays silent ages. While it has an age it is still followed, but it no longer keeps
anybody out: a member that announces itself and is better than this member takes its place.
"""

from __future__ import annotations

from math import inf

from hustings.core.choice import Candidate, Choice, MemberId
from hustings.core.context import TimerKey

LISTEN_TIMER = "T_L"


def rankable(key: tuple[float, ...]) -> bool:
    """Whether all that a claim is ranked by are finite numbers.

    >>> rankable((0.5, 3)), rankable((float("nan"), 3)), rankable((float("inf"), 3))
    (True, False, False)
    """
    return all(-inf < value < inf for value in key)


class Followed:
    """A leader, as this member knows it."""

    __slots__ = ("age", "candidate", "claimed", "id", "timer")

    def __init__(self, candidate: Candidate, timer: TimerKey) -> None:
        self.id = candidate.id
        self.candidate = candidate
        self.timer = timer  # its own: T_L since it was last heard
        self.age = 0  # steps towards its expiry
        self.claimed = False  # whether it has announced itself; a Query is no claim yet


class Following:
    """The leaders that one member follows."""

    __slots__ = ("_by_id", "_order", "_timers", "full", "leaders", "of")

    def __init__(self, order: Choice, k: int) -> None:
        self._order = order
        self._timers: list[TimerKey] = [LISTEN_TIMER]
        if k > 1:
            self._timers = [(LISTEN_TIMER, place) for place in range(1, k + 1)]
        self.leaders: list[Followed] = []
        self.full = False  # whether there are as many as the group shall have
        self._by_id: dict[MemberId, Followed] = {}
        self.of = self._by_id.get  # the leader with this id, if it is one: asked at every message

    def timed_by(self, timer: TimerKey) -> Followed | None:
        """The leader whose silence this timer measures."""
        return next((leader for leader in self.leaders if leader.timer == timer), None)

    def add(self, candidate: Candidate) -> Followed:
        """Follow one more, in place of the weakest if there are k already."""
        if self.full:
            weakest = self._weakest()
            timer = weakest.timer
            self.remove(weakest)
        else:
            taken = [leader.timer for leader in self.leaders]
            timer = next(timer for timer in self._timers if timer not in taken)
        leader = self._by_id[candidate.id] = Followed(candidate, timer)
        self.leaders.append(leader)
        self.full = len(self.leaders) == len(self._timers)
        self.sort()
        return leader

    def remove(self, leader: Followed) -> None:
        """Follow one less."""
        self.leaders.remove(leader)
        del self._by_id[leader.id]
        self.full = False

    def sort(self) -> None:
        """The best first; needed when one's standing has changed."""
        if len(self.leaders) > 1:
            self.leaders.sort(key=lambda leader: self._order.key(leader.candidate), reverse=True)

    def bar(self, mine: Candidate) -> Candidate:
        """Whom an announcer must beat to be followed, where I stand as `mine`."""
        if not self.full:
            return mine
        weakest = self._weakest()
        return mine if weakest.age else weakest.candidate

    def _weakest(self) -> Followed:
        for leader in reversed(self.leaders):
            if leader.age:
                return leader
        return self.leaders[-1]

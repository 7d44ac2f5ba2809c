"""The leaders that a member follows: at most k, the best first.

With one leader this is the thesis's variable `leader`. With k leaders a member stays out of the
race once it follows k members better than itself. Then it accepts only a new leader that is better
than the weakest of those.

A leader that stays silent ages. A member still follows an aged leader, but that leader no longer
keeps other members out: a member that announces itself and is better than this member takes its
place.
"""

from __future__ import annotations

from math import inf

from hustings.core.choice import Candidate, Choice, MemberId
from hustings.core.context import TimerKey

LISTEN_TIMER = "T_L"


def rankable(key: tuple[float, ...]) -> bool:
    """Whether all numbers that rank a claim are finite.

    >>> rankable((0.5, 3)), rankable((float("nan"), 3)), rankable((float("inf"), 3))
    (True, False, False)
    """
    return all(-inf < value < inf for value in key)


class Followed:
    """A leader, with what this member knows about it."""

    __slots__ = ("age", "candidate", "claimed", "id", "timer")

    def __init__(self, candidate: Candidate, timer: TimerKey) -> None:
        self.id = candidate.id
        self.candidate = candidate
        self.timer = timer  # its own timer: T_L since its last message
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
        self.full = False  # whether there are k leaders
        self._by_id: dict[MemberId, Followed] = {}
        self.of = self._by_id.get  # lookup by id, used at every message

    def timed_by(self, timer: TimerKey) -> Followed | None:
        """Return the leader whose silence this timer measures."""
        return next((leader for leader in self.leaders if leader.timer == timer), None)

    def add(self, candidate: Candidate) -> Followed:
        """Follow one more leader, in place of the weakest if there are k already."""
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
        """Stop following a leader."""
        self.leaders.remove(leader)
        del self._by_id[leader.id]
        self.full = False

    def sort(self) -> None:
        """Sort the best first; needed when the claim of a leader has changed."""
        if len(self.leaders) > 1:
            self.leaders.sort(key=lambda leader: self._order.key(leader.candidate), reverse=True)

    def bar(self, mine: Candidate) -> Candidate:
        """Return the candidate that an announcer must beat to be followed; I stand as `mine`."""
        if not self.full:
            return mine
        weakest = self._weakest()
        return mine if weakest.age else weakest.candidate

    def _weakest(self) -> Followed:
        for leader in reversed(self.leaders):
            if leader.age:
                return leader
        return self.leaders[-1]

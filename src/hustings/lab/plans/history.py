"""What happened in a group on the virtual clock, read from its log after the event.

A member *acts* as the leader at an instant if it is up, is not paused and takes itself for the
leader. A leadership is *lost* if a member that is up no longer takes itself for the leader. Changes
of one instant count together: a member that wakes after its lease has ended does not act at all.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from hustings.testing import Logged, MemberChange


class Stretch(NamedTuple):
    """A time in which the same members act as leaders."""

    begin: float
    end: float
    acting: tuple[str, ...]

    @property
    def length(self) -> float:
        """Its seconds."""
        return self.end - self.begin


class History:
    """The leaders of a group from its start to `end`."""

    def __init__(self, log: Sequence[Logged], changes: Sequence[MemberChange], end: float) -> None:
        self.stretches: list[Stretch] = []
        self.losses: list[tuple[float, str]] = []  # when a member that is up lost its leadership
        self._log = log
        self._paused = [(each.time, each.member) for each in changes if each.what == "paused"]
        self._resumed = [(each.time, each.member) for each in changes if each.what == "resumed"]
        up: dict[str, None] = {}
        paused: dict[str, None] = {}
        leading: dict[str, None] = {}
        acting: tuple[str, ...] = ()
        since = 0.0
        for time, happened in groupby(_merged(log, changes), key=lambda each: each.time):
            if time > end:
                break
            before = list(leading)
            for each in happened:
                if isinstance(each, MemberChange):
                    _change(each, up, paused, leading)
                elif each.member in up and each.state.leading:
                    leading[each.member] = None
                else:
                    leading.pop(each.member, None)
            self.losses += [(time, name) for name in before if name in up and name not in leading]
            now = tuple(name for name in leading if name in up and name not in paused)
            if now != acting:
                if time > since:
                    self.stretches.append(Stretch(since, time, acting))
                acting, since = now, time
        if end > since:
            self.stretches.append(Stretch(since, end, acting))

    def between(self, begin: float, end: float) -> list[Stretch]:
        """The stretches of some time, cut at its ends."""
        return [
            Stretch(max(begin, each.begin), min(end, each.end), each.acting)
            for each in self.stretches
            if each.end > begin and each.begin < end
        ]

    def lost(self, begin: float, end: float) -> int:
        """How many leaderships were lost by members that were up."""
        return sum(begin < time <= end for time, _ in self.losses)

    def most_at_once(self, begin: float, end: float) -> float:
        """The longest time without a break in which two members or more acted as leaders."""
        longest = running = 0.0
        for each in self.between(begin, end):
            running = running + each.length if len(each.acting) > 1 else 0.0
            longest = max(longest, running)
        return longest

    def without(self, begin: float, end: float, among: Collection[str]) -> float:
        """Seconds in which none of these members acted as the leader."""
        return sum(
            each.length
            for each in self.between(begin, end)
            if not any(name in among for name in each.acting)
        )

    def first_acting(self, begin: float, end: float, among: Collection[str]) -> float:
        """When one of these members first acted as the leader; infinite: never."""
        for each in self.between(begin, end):
            if any(name in among for name in each.acting):
                return each.begin
        return math.inf

    def all_follow(self, begin: float, end: float, among: Collection[str], leader: str) -> float:
        """When the last of these members first followed this leader after `begin`.

        A member that was paused at `end`, and did not follow before, need not have followed.
        """
        waiting = dict.fromkeys(among)
        followed: dict[str, float] = {}
        for each in self._log:
            if each.time > end:
                break
            if each.member not in waiting:
                continue
            is_it = each.state.leader is not None and each.state.leader.name == leader
            if each.time <= begin:
                if is_it:
                    followed[each.member] = begin
                else:
                    followed.pop(each.member, None)
            elif is_it and each.member not in followed:
                followed[each.member] = each.time
        missing = [name for name in among if name not in followed and not self._asleep(name, end)]
        last = max(followed.values()) if followed and not missing else math.inf
        return max(last, self.first_acting(begin, end, (leader,)))

    def _asleep(self, name: str, time: float) -> bool:
        """Whether a member was paused at some time."""
        paused = max((at for at, who in self._paused if who == name and at <= time), default=-1.0)
        awake = max((at for at, who in self._resumed if who == name and at <= time), default=-1.0)
        return paused > awake


def _merged(log: Iterable[Logged], changes: Iterable[MemberChange]) -> list[Logged | MemberChange]:
    """In the order of time; what was done to members comes before what they found."""
    everything: list[Logged | MemberChange] = [*changes, *log]
    return sorted(everything, key=lambda each: each.time)


def _change(
    each: MemberChange, up: dict[str, None], paused: dict[str, None], leading: dict[str, None]
) -> None:
    match each.what:
        case "joined":
            up[each.member] = None
            paused.pop(each.member, None)
            leading.pop(each.member, None)
        case "left" | "killed":
            up.pop(each.member, None)
            paused.pop(each.member, None)
            leading.pop(each.member, None)
        case "paused":
            paused[each.member] = None
        case _:
            paused.pop(each.member, None)

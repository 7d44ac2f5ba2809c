"""The electors: the members of a view that may be elected, with their known priorities.

Gossip brings a new priority some periods late. A hand-over brings it at once. Such a reported
priority replaces gossip's value until gossip brings another value than before, or until another
member leads. Reports only add priorities: gossip brings the end of a priority.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hustings.core.choice import Candidate, MemberId
from hustings.core.view import View
from hustings.layers.leadership.standing import (
    MAX_PRIORITY,
    is_observer,
    priority_of,
    standing_of,
    with_priority,
)


@dataclass(frozen=True, slots=True)
class Told:
    """A priority from a report."""

    priority: float
    gossiped: float  # gossip's value at that time: any other value is newer


@dataclass(frozen=True, slots=True)
class Changes:
    """The result of a look at the world's view."""

    added: Sequence[MemberId] = ()
    lost: Sequence[MemberId] = ()  # members that are still there, but may not be elected any more


NOTHING = Changes()


class Electors:
    """A view of the electors that follows the world's view; also the observers in it."""

    __slots__ = (
        "_base",
        "_directory",
        "_lapsed",
        "_me",
        "_peak",
        "_seen",
        "_told",
        "_trusted",
        "_version",
        "_voided",
        "observers",
        "since",
        "view",
    )

    def __init__(self) -> None:
        self._base: View | None = None
        self._version = -1
        self._me: Candidate | None = None
        self._seen: dict[MemberId, Candidate] = {}  # the world's view at the last look
        self._told: dict[MemberId, Told] = {}
        self._lapsed: dict[MemberId, float] = {}  # former leaders' priorities, until they change
        self._voided: dict[
            MemberId, float
        ] = {}  # reported priorities that gossip has not brought yet
        self._peak = 0.0  # the highest priority that any member had
        self._trusted: MemberId | None = None
        self._directory: dict[MemberId, Candidate] = {}
        self.observers: dict[MemberId, float] = {}  # observers, and since when each is there
        self.since: dict[MemberId, float] = {}  # since when each other elector is in view
        self.view = View(self._directory, [])

    def __contains__(self, member: MemberId) -> bool:
        return member in self._directory

    def others(self, me: MemberId) -> list[MemberId]:
        """All electors except one."""
        return [member for member in self.view.ids if member != me]

    def candidate(self, member: MemberId) -> Candidate:
        """An elector, with the priority that is known here."""
        return self._directory[member]

    def priority(self, member: MemberId) -> float:
        """An elector's priority."""
        return priority_of(self._directory[member])

    def standing(self, member: MemberId) -> float:
        """An elector's standing."""
        return standing_of(self._directory[member])

    def top(self) -> float:
        """The highest priority so far, also of members that are gone and may come back with it."""
        return self._peak

    def tell(self, member: MemberId, priority: float) -> None:
        """Note a report of the priority of an elector that leads."""
        base = self._seen.get(member)
        if base is not None and member in self._directory and priority > self.priority(member):
            self._told[member] = Told(priority, priority_of(base))
            self._put(member, with_priority(base, priority))

    def trust(self, leader: MemberId) -> None:
        """Note that this member leads. Other members' priorities end with their leadership.

        This holds here from now on, and everywhere once those members have said so themselves.
        """
        for member in [each for each in self._told if each != leader]:
            self._voided[member] = self._told.pop(member).priority
            self._put(member, self._overlaid(self._seen[member]))
        if leader == self._trusted:
            return
        self._trusted = leader
        if self._lapsed.pop(leader, None) is not None and leader in self._directory:
            self._put(leader, self._overlaid(self._seen[leader]))
        own = None if self._me is None else self._me.id
        for member in self.view.ids:
            priority = priority_of(self._directory[member])
            if priority > 0.0 and member not in (leader, own):
                self._lapsed[member] = priority
                self._put(member, self._overlaid(self._seen[member]))

    def honour(self, member: MemberId) -> None:
        """A member says that it leads: its priority is valid, whatever happened since."""
        priority = max(self._lapsed.pop(member, 0.0), self._voided.pop(member, 0.0))
        if priority > 0.0 and member in self._directory:
            self._put(member, self._overlaid(self._seen[member]))
            self.tell(member, priority)

    def stand(self, me: Candidate) -> None:
        """This member itself is a candidate as `me`."""
        if me is not self._me and me.id in self._directory:
            self._me = me
            self._put(me.id, me)

    def refresh(self, base: View, me: Candidate, now: float) -> Changes:
        """Look at the world's view. `me` is this member as the election sees it."""
        self._estimate(base)
        if base is self._base and base.version == self._version:
            self.stand(me)
            return NOTHING
        self._base, self._version, self._me = base, base.version, me
        changes = self._compare(base, me, now)
        self._estimate(base)
        return changes

    def _compare(self, base: View, me: Candidate, now: float) -> Changes:
        seen, directory, candidate = self._seen, self._directory, base.candidate
        added, lost = [], []
        for member in base.ids:
            there = candidate(member)
            if seen.get(member) is there:
                continue
            seen[member] = there
            self._voided.pop(member, None)
            if member == me.id:
                continue
            if is_observer(there):
                self.observers.setdefault(member, now)
                if self._drop(member):
                    lost.append(member)
                continue
            self.observers.pop(member, None)
            if member in directory:
                self._put(member, self._overlaid(there))
            else:
                added.append(member)
                self.since[member] = now
                directory[member] = there = self._overlaid(there)
                self._peak = max(self._peak, min(priority_of(there), MAX_PRIORITY))
        self._list(added)
        if len(seen) != len(base.ids):
            gone = [each for each in seen if each not in base]
            for member in gone:
                del seen[member]
                self.observers.pop(member, None)
                self._drop(member)
        if not is_observer(me):
            self._put(me.id, me)  # whatever the world's view contains
        return Changes(added, lost)

    def _list(self, added: Sequence[MemberId]) -> None:
        """Members that are in the directory come into view; many members together, in one step."""
        if len(added) > 1:
            self.view.ids.extend(added[1:])
            self.view.ids.sort()
        if added:
            self.view.add(added[0])

    def _overlaid(self, there: Candidate) -> Candidate:
        told = self._told.get(there.id)
        if told is None:
            lapsed = self._lapsed.get(there.id)
            if lapsed is not None and lapsed != priority_of(there):
                del self._lapsed[there.id]
                lapsed = None
            return there if lapsed is None else with_priority(there, 0.0)
        if priority_of(there) != told.gossiped:
            del self._told[there.id]  # gossip has brought it by now
            return there
        return with_priority(there, told.priority)

    def _put(self, member: MemberId, candidate: Candidate) -> None:
        old = self._directory.get(member)
        if old is not candidate:
            self._peak = max(self._peak, min(priority_of(candidate), MAX_PRIORITY))
            self._directory[member] = candidate
            if old != candidate:
                self.view.add(member)

    def _drop(self, member: MemberId) -> bool:
        self._told.pop(member, None)
        self._lapsed.pop(member, None)
        self._voided.pop(member, None)
        self.since.pop(member, None)
        if self._directory.pop(member, None) is None:
            return False
        self.view.remove(member)
        return True

    def _estimate(self, base: View) -> None:
        """Estimate the number of electors alone: the group's size includes observers."""
        size = base.estimate
        if size is not None and self.observers:
            size *= len(self.view) / max(1, len(self.view) + len(self.observers))
        self.view.estimate = size

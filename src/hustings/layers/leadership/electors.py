"""The electors: those of a view who may be elected, with the priority that is known here.

Gossip tells of a new priority some periods after it was given; a hand-over tells of it at once.
What was told is laid over what gossip says, until gossip says something else than it did, or
another member leads. It only adds: a priority that has ended is for gossip to tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hustings.core.choice import Candidate, MemberId
from hustings.core.view import View
from hustings.layers.leadership.priority import (
    MAX_PRIORITY,
    is_observer,
    priority_of,
    with_priority,
)


@dataclass(frozen=True, slots=True)
class Told:
    """A priority that somebody told of."""

    priority: float
    gossiped: float  # what gossip said then: anything else is newer


@dataclass(frozen=True, slots=True)
class Changes:
    """What a look at the world's view brought."""

    added: Sequence[MemberId] = ()
    lost: Sequence[MemberId] = ()  # who is still there, but may not be elected any more


NOTHING = Changes()


class Electors:
    """A view of the electors, kept in step with the world's; also who is there only to observe."""

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
        self._seen: dict[MemberId, Candidate] = {}  # the world's view, when last looked at
        self._told: dict[MemberId, Told] = {}
        self._lapsed: dict[MemberId, float] = {}  # priorities of former leaders, until they change
        self._voided: dict[
            MemberId, float
        ] = {}  # priorities told of them that gossip has not brought
        self._peak = 0.0  # the highest priority that anybody had
        self._trusted: MemberId | None = None
        self._directory: dict[MemberId, Candidate] = {}
        self.observers: dict[MemberId, float] = {}  # since when
        self.since: dict[MemberId, float] = {}  # of all other electors, when they came into view
        self.view = View(self._directory, [])

    def __contains__(self, member: MemberId) -> bool:
        return member in self._directory

    def others(self, me: MemberId) -> list[MemberId]:
        """All electors but one."""
        return [member for member in self.view.ids if member != me]

    def candidate(self, member: MemberId) -> Candidate:
        """An elector as it is known here."""
        return self._directory[member]

    def priority(self, member: MemberId) -> float:
        """An elector's priority."""
        return priority_of(self._directory[member])

    def top(self) -> float:
        """The highest priority of all, also of those who are gone and may come back with it."""
        return self._peak

    def tell(self, member: MemberId, priority: float) -> None:
        """Somebody told of the priority of an elector that leads."""
        base = self._seen.get(member)
        if base is not None and member in self._directory and priority > self.priority(member):
            self._told[member] = Told(priority, priority_of(base))
            self._put(member, with_priority(base, priority))

    def trust(self, leader: MemberId) -> None:
        """This one leads: a priority that others have, or were said to, is over with their office.

        It is so here from now on, and everywhere when they have said so themselves.
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
        """It says that it leads: the priority it had is not over, whoever was trusted since."""
        priority = max(self._lapsed.pop(member, 0.0), self._voided.pop(member, 0.0))
        if priority > 0.0 and member in self._directory:
            self._put(member, self._overlaid(self._seen[member]))
            self.tell(member, priority)

    def stand(self, me: Candidate) -> None:
        """This member itself stands as `me`."""
        if me is not self._me and me.id in self._directory:
            self._me = me
            self._put(me.id, me)

    def refresh(self, base: View, me: Candidate, now: float) -> Changes:
        """Look at the world's view; `me` is this member as the election shall see it."""
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
            self._put(me.id, me)  # whatever the world's view says
        return Changes(added, lost)

    def _list(self, added: Sequence[MemberId]) -> None:
        """Those who are in the directory come into view; many of them together, in one go."""
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
            del self._told[there.id]  # gossip has caught up
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
        """Of the electors alone: observers count in the group's size."""
        size = base.estimate
        if size is not None and self.observers:
            size *= len(self.view) / max(1, len(self.view) + len(self.observers))
        self.view.estimate = size

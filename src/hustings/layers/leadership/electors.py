"""The electors: the members of a view that may be elected, and the incumbent among them.

The incumbent comes first in the order by which this member compares. It is what this member knows
of the terms, so the order is its own, and no other member is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hustings.core.choice import Candidate, MemberId
from hustings.core.view import View
from hustings.layers.leadership.standing import ByStanding, is_observer, standing_of


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
        "_me",
        "_order",
        "_seen",
        "_version",
        "observers",
        "since",
        "view",
    )

    def __init__(self, order: ByStanding) -> None:
        self._order = order
        self._base: View | None = None
        self._version = -1
        self._me: Candidate | None = None
        self._seen: dict[MemberId, Candidate] = {}  # the world's view at the last look
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
        """An elector, as it is known here."""
        return self._directory[member]

    def standing(self, member: MemberId) -> float:
        """An elector's standing."""
        return standing_of(self._directory[member])

    @property
    def incumbent(self) -> MemberId | None:
        """The member that comes first among those of one standing."""
        return self._order.incumbent

    def put_first(self, member: MemberId | None) -> None:
        """This member is the incumbent from now on; None: no member is."""
        before = self._order.incumbent
        if member != before:
            self._order.incumbent = member
            for each in (before, member):
                if each in self._directory:
                    self.view.add(each)  # a new version, so that rankings are made anew

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
            if member == me.id:
                continue
            if is_observer(there):
                self.observers.setdefault(member, now)
                if self._drop(member):
                    lost.append(member)
                continue
            self.observers.pop(member, None)
            if member in directory:
                self._put(member, there)
            else:
                added.append(member)
                self.since[member] = now
                directory[member] = there
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

    def _put(self, member: MemberId, candidate: Candidate) -> None:
        old = self._directory.get(member)
        if old is not candidate:
            self._directory[member] = candidate
            if old != candidate:
                self.view.add(member)

    def _drop(self, member: MemberId) -> bool:
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

"""Views: the members that one member knows, in the order of their ids.

Views are shared where possible (all full views of a group are one object). Only the world that owns
a view changes it. A protocol reads it. `version` grows with every change. So a protocol may keep
what it computed from a view, and knows when to compute it again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Container, Iterator, Mapping, Sequence
from math import inf

from hustings.core.choice import Candidate, Choice, MemberId


class Ranking:
    """The members of one view from best to worst by one choice function."""

    __slots__ = ("ids", "position")

    def __init__(self, ids: tuple[MemberId, ...]) -> None:
        self.ids = ids
        self.position = {member: place for place, member in enumerate(ids)}

    def better_than(self, member: MemberId) -> tuple[MemberId, ...]:
        """All better members, best first."""
        return self.ids[: self.position[member]]

    def worse_than(self, member: MemberId) -> tuple[MemberId, ...]:
        """All worse members, best first."""
        return self.ids[self.position[member] + 1 :]


class Seats:
    """The members of one view round a ring, by the attribute that gives each member's place.

    A member without the attribute, or with a value that is no number, stands behind all others.
    Members at one place are ordered by id.
    """

    __slots__ = ("order", "place", "version")

    def __init__(self, view: View, place: str) -> None:
        self.place = place
        self.version = view.version
        self.order = sorted(self._seat(view.candidate(member)) for member in view.ids)

    def _seat(self, who: Candidate) -> tuple[float, MemberId]:
        value = dict(who.attributes).get(self.place, inf)
        return (value if -inf < value < inf else inf), who.id

    def after(self, me: Candidate, skip: Container[MemberId]) -> MemberId | None:
        """The next member clockwise that is not in `skip`; None when no other member is left."""
        order = self.order
        start = bisect_right(order, self._seat(me))
        for offset in range(len(order)):
            _, other = order[(start + offset) % len(order)]
            if other != me.id and other not in skip:
                return other
        return None


class View:
    """A sorted list of known members over a directory of candidates."""

    __slots__ = ("_directory", "_ranked_by", "_ranking", "_seats", "estimate", "ids", "version")

    def __init__(self, directory: Mapping[MemberId, Candidate], ids: list[MemberId]) -> None:
        self._directory = directory
        self.ids = ids
        self.version = 0
        self.estimate: float | None = None  # of the group's size, where a layer estimates it
        self._ranking: Ranking | None = None
        self._ranked_by: Choice | None = None
        self._seats: Seats | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[MemberId]:
        return iter(self.ids)

    def __contains__(self, member: object) -> bool:
        if not isinstance(member, int):
            return False
        place = bisect_left(self.ids, member)
        return place < len(self.ids) and self.ids[place] == member

    def candidate(self, member: MemberId) -> Candidate:
        """What this view knows about a member."""
        return self._directory[member]

    def ranking(self, choice: Choice) -> Ranking:
        """This view from best to worst. It is kept until the view or the choice changes."""
        ranking = self._ranking
        if ranking is None or self._ranked_by != choice:
            directory = self._directory
            ids = sorted(self.ids, key=lambda i: choice.key(directory[i]), reverse=True)
            self._ranking = ranking = Ranking(tuple(ids))
            self._ranked_by = choice
        return ranking

    @property
    def roster(self) -> Sequence[MemberId]:
        """A list that contains all members of this view; several views share it where possible.

        Other members may be on it, too. A caller that walks it checks each member with `in`.
        """
        return self.ids

    def best(self, choice: Choice, but: Container[MemberId] = ()) -> MemberId | None:
        """The best member of this view that is not in `but`."""
        return next((each for each in self.ranking(choice).ids if each not in but), None)

    def successor(self, member: MemberId, skip: Container[MemberId] = ()) -> MemberId | None:
        """The next id clockwise (increasing, then wrapping) that is not in `skip`.

        None when no other member is left.
        """
        ids = self.ids
        start = bisect_right(ids, member)
        for offset in range(len(ids)):
            other = ids[(start + offset) % len(ids)]
            if other != member and other not in skip:
                return other
        return None

    def successor_by(
        self, place: str, me: Candidate, skip: Container[MemberId] = ()
    ) -> MemberId | None:
        """The same where an attribute gives each member's place, increasing clockwise."""
        seats = self._seats
        if seats is None or seats.place != place or seats.version != self.version:
            self._seats = seats = Seats(self, place)
        return seats.after(me, skip)

    def add(self, member: MemberId) -> None:
        """For the world: a member became known, or its attributes changed in the directory."""
        if member not in self:
            insort(self.ids, member)
        self._changed()

    def remove(self, member: MemberId) -> None:
        """For the world: a member is no longer known."""
        place = bisect_left(self.ids, member)
        if place < len(self.ids) and self.ids[place] == member:
            del self.ids[place]
            self._changed()

    def _changed(self) -> None:
        self.version += 1
        self._ranking = None

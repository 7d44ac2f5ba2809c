"""Whom a multicast can reach: worked out once, and kept until somebody comes or goes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from itertools import compress
from typing import TYPE_CHECKING

from hustings.sim.loss import reached

if TYPE_CHECKING:
    from random import Random

    from hustings.core.choice import MemberId
    from hustings.core.election import Election, Handler
    from hustings.core.messages import Message
    from hustings.sim.member import SimContext


_OTHER = bytes([1, 0]) + bytes(254)  # a table that turns marks round


class Reach:
    """The members that messages can reach, up or paused, by id."""

    __slots__ = ("all_up", "ids", "members", "pairs", "table")

    def __init__(self, everybody: Iterable[SimContext]) -> None:
        self.members = [one for one in everybody if one.awake or one.backlog is not None]
        self.ids = [one.id for one in self.members]
        up = [one for one in self.members if one.awake]
        self.all_up = len(up) == len(self.members)
        # If one table of handlers serves all, a look-up serves them all too.
        self.table: Mapping[type[Message], Handler] | None = None
        self.pairs: list[tuple[Election, SimContext]] = []
        if self.all_up and up:
            first = up[0].handlers
            pairs = [(one.election, one) for one in up if one.handlers is first]
            if len(pairs) == len(up):
                self.table = first
                self.pairs = pairs

    def __contains__(self, member: MemberId) -> bool:
        place = bisect_left(self.ids, member)
        return place < len(self.ids) and self.ids[place] == member

    def of(self, marks: bytearray) -> list[MemberId]:
        """Whom these marks stand for."""
        return list(compress(self.ids, marks))

    def but(self, marks: bytearray, sender: MemberId) -> list[MemberId]:
        """Whom a multicast with these marks misses."""
        missed = list(compress(self.ids, marks.translate(_OTHER)))
        if sender in self:
            missed.remove(sender)
        return missed

    def marks(self, sender: MemberId, loss: float, chance: Random) -> tuple[bytearray, int]:
        """For each member a 1 if a multicast of `sender` reaches it, else a 0; how many lose it."""
        ids = self.ids
        marks = reached(len(ids), loss, chance)
        place = bisect_left(ids, sender)
        if place < len(ids) and ids[place] == sender:
            marks[place] = 0
            return marks, marks.count(0) - 1
        return marks, marks.count(0)

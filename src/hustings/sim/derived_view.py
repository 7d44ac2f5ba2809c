"""Views that are not stored: they follow from the seed, row by row, when something asks for them.

A group of N whose members know each other with probability v has N * N pairs. Here the row of one
member is derived from (seed, member) by a hash, in bulk, and only when something looks at it. A
member that asks for the number of its acquaintances, or now and then for one of them, keeps that
number. A member that looks further keeps N bits.

Changes lie on top. A member that is gone is gone for all at once (`Acquaintance.forget`); what one
member learns or forgets concerns only its own view.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterator, Mapping, Sequence
from hashlib import shake_128
from itertools import compress

from hustings.core.choice import Candidate, Choice, MemberId
from hustings.core.streams import Stream, derive
from hustings.core.view import Ranking, View

DIGITS = 8  # binary digits of the probability that are decided in bulk
NOW_AND_THEN = 8  # this many questions about one member are answered without keeping the row
_MARKS = bytes(49) + b"\1" + bytes(206)  # a table that turns the digits "0" and "1" into marks


class Acquaintance:
    """What the views of one world share: members, probability, and the members that are gone."""

    __slots__ = (
        "_digits",
        "_order",
        "_order_at",
        "_ordered_by",
        "_rest",
        "changes",
        "directory",
        "estimate",
        "gone",
        "probability",
        "roster",
        "seed",
    )

    def __init__(self, ids: list[MemberId], probability: float, seed: int) -> None:
        self.roster = ids  # sorted; all members that are ever in the group
        self.probability = probability
        self.seed = seed
        self.directory: Mapping[MemberId, Candidate] = {}  # the world's, once it has one
        self.estimate: float | None = None
        self.changes = 0  # of all views together
        self.gone: dict[MemberId, int] = {}  # forgotten by all, and with which change
        self._digits, self._rest = _digits(probability)
        self._order: tuple[MemberId, ...] = ()
        self._order_at = -1
        self._ordered_by: Choice | None = None

    def view(self, owner: MemberId) -> DerivedView:
        """The view of one member."""
        return DerivedView(self, owner)

    def forget(self, member: MemberId) -> None:
        """All views lose a member at once."""
        self.changes += 1
        self.gone[member] = self.changes

    def refresh(self) -> None:
        """A member's attributes may have changed."""
        self.changes += 1

    def place(self, member: MemberId) -> int:
        """Where a member stands on the roster; -1 if it does not."""
        roster = self.roster
        place = bisect_left(roster, member)
        return place if place < len(roster) and roster[place] == member else -1

    def order(self, choice: Choice) -> tuple[MemberId, ...]:
        """All members from best to worst."""
        if self._order_at != self.changes or self._ordered_by != choice:
            directory = self.directory
            ids = sorted(self.roster, key=lambda i: choice.key(directory[i]), reverse=True)
            self._order = tuple(ids)
            self._order_at = self.changes
            self._ordered_by = choice
        return self._order

    def row(self, owner: MemberId) -> int:
        """The members that one member knows at first, as bits in the order of the roster.

        Each other member has a uniform number of its own, and is known if that number is less than
        the probability. The numbers are compared digit by digit, one digit of all numbers at a
        time. The few that are undecided after `DIGITS` digits are compared one by one. So the
        probability is exact.
        """
        width = (len(self.roster) + 7) // 8
        drawn = self._drawn(owner, width)
        known, undecided = 0, (1 << len(self.roster)) - 1
        for place, digit in enumerate(self._digits):
            drawn_here = drawn[place * width : (place + 1) * width]
            ones = undecided & int.from_bytes(drawn_here, "little")
            if digit:
                known |= undecided ^ ones
                undecided = ones
            else:
                undecided ^= ones
        if self._rest and undecided:
            known |= self._settle(owner, undecided)
        return known | 1 << self.place(owner)

    def knows(self, owner: MemberId, place: int) -> bool:
        """One bit of a row, cheaper than the row."""
        width = (len(self.roster) + 7) // 8
        drawn = self._drawn(owner, width)
        for at, digit in zip(range(place >> 3, len(drawn), width), self._digits, strict=True):
            if (drawn[at] >> (place & 7) & 1) != digit:
                return digit or self.roster[place] == owner
        if not self._rest:
            return self.roster[place] == owner
        return bool(self.row(owner) >> place & 1)

    def _drawn(self, owner: MemberId, width: int) -> bytes:
        source = shake_128(f"view\x1f{self.seed}\x1f{owner}".encode())
        return source.digest(width * len(self._digits))

    def _settle(self, owner: MemberId, undecided: int) -> int:
        """The known ones among the members whose first digits equal the probability's."""
        draw = Stream(derive(self.seed, "view", owner)).random
        digits = bin(undecided)[:1:-1]  # the last first
        known = bytearray(len(digits) // 8 + 1)
        place = digits.find("1")
        while place >= 0:
            if draw() < self._rest:
                known[place >> 3] |= 1 << (place & 7)
            place = digits.find("1", place + 1)
        return int.from_bytes(known, "little")


def _digits(probability: float) -> tuple[tuple[bool, ...], float]:
    """The first binary digits of a probability below 1, and the rest as a probability.

    >>> _digits(0.625)
    ((True, False, True), 0.0)
    """
    digits: list[bool] = []
    while probability and len(digits) < DIGITS:
        probability *= 2
        digits.append(probability >= 1)
        probability -= digits[-1]
    return tuple(digits), probability


class DerivedView(View):
    """One member's view, computed when something asks for it."""

    __slots__ = (
        "_asked",
        "_at",
        "_common",
        "_ids",
        "_own",
        "_owner",
        "_row",
        "_size",
        "_sized_at",
        "_told",
    )

    def __init__(self, common: Acquaintance, owner: MemberId) -> None:
        # Unlike a View, this puts off what can wait: a large group has one for each member.
        self._common = common
        self._owner = owner
        self._own = 0  # changes of this view alone
        self._row: bytes | None = None  # set once something has looked inside
        self._asked = 0
        self._size = 0
        self._sized_at = -1  # the version with that size
        self._told: dict[MemberId, tuple[bool, int]] | None = None  # known or not, and since when
        self._at = -1  # the version of the list or the ranking
        self._ids: list[MemberId] | None = None
        self._ranking = None
        self._ranked_by = None
        self._seats = None

    @property
    def version(self) -> int:
        """Grows with every change, of this view or of all."""
        return self._own + self._common.changes

    @version.setter
    def version(self, version: int) -> None:
        self._own = version - self._common.changes

    @property
    def estimate(self) -> float | None:
        """An estimate of the group's size, the same for all members."""
        return self._common.estimate

    @estimate.setter
    def estimate(self, estimate: float | None) -> None:
        self._common.estimate = estimate

    @property
    def ids(self) -> list[MemberId]:
        """All known members, in order."""
        self._keep_up()
        if self._ids is None:
            common = self._common
            self._bits()
            if self._told or common.gone:
                self._ids = [each for each in common.roster if each in self]
            else:
                bits = int.from_bytes(self._bits(), "little")
                digits = format(bits, f"0{len(common.roster)}b")[::-1].encode()
                self._ids = list(compress(common.roster, digits.translate(_MARKS)))
        return self._ids

    @ids.setter
    def ids(self, ids: list[MemberId]) -> None:
        raise AttributeError("a derived view is changed by add and remove")

    def __len__(self) -> int:
        common = self._common
        version = self._own + common.changes
        if self._sized_at != version:
            row = self._row  # if there is none, compute a row for this call alone
            bits = common.row(self._owner) if row is None else int.from_bytes(row, "little")
            size = bits.bit_count()
            for member in {**common.gone, **(self._told or {})}:
                size += (member in self) - self._at_first(member)
            self._size = size
            self._sized_at = version
        return self._size

    def __iter__(self) -> Iterator[MemberId]:
        return iter(self.ids)

    def __contains__(self, member: object) -> bool:
        if not isinstance(member, int):
            return False
        gone = self._common.gone
        if self._told is not None and member in self._told:
            known, since = self._told[member]
            if since >= gone.get(member, 0):
                return known
        return member not in gone and self._at_first(member)

    def candidate(self, member: MemberId) -> Candidate:
        """What is known of a member of this view."""
        return self._common.directory[member]

    def ranking(self, choice: Choice) -> Ranking:
        """This view from best to worst; kept until the view or the choice changes."""
        self._keep_up()
        ranking = self._ranking
        if ranking is None or self._ranked_by != choice:
            self._bits()
            order = self._common.order(choice)
            self._ranking = ranking = Ranking(tuple(each for each in order if each in self))
            self._ranked_by = choice
        return ranking

    @property
    def roster(self) -> Sequence[MemberId]:
        """All members, known or not: one list for all views."""
        return self._common.roster

    def best(self, choice: Choice, but: Container[MemberId] = ()) -> MemberId | None:
        """The best member of this view not in `but`; looks at 1/probability members on average."""
        self._bits()  # more questions will follow
        order = self._common.order(choice)
        return next((each for each in order if each not in but and each in self), None)

    def successor(self, member: MemberId, skip: Container[MemberId] = ()) -> MemberId | None:
        """The next id clockwise that is not in `skip`; None when no other member is left."""
        roster = self._common.roster
        start = bisect_right(roster, member)
        for offset in range(len(roster)):
            other = roster[(start + offset) % len(roster)]
            if other != member and other in self and other not in skip:
                return other
        return None

    def add(self, member: MemberId) -> None:
        """Called by the world: a member became known, or its attributes changed."""
        if self._common.place(member) < 0:
            raise ValueError(f"member {member} is not on the roster")
        if member not in self:
            self._tell(member, True)
        self._changed()

    def remove(self, member: MemberId) -> None:
        """Called by the world: a member is no longer known."""
        if member in self:
            self._tell(member, False)
            self._changed()

    def _tell(self, member: MemberId, known: bool) -> None:
        if self._told is None:
            self._told = {}
        self._told[member] = known, self._common.changes

    def _at_first(self, member: MemberId) -> bool:
        common = self._common
        place = common.place(member)
        if place < 0:
            return False
        if self._row is None and self._asked < NOW_AND_THEN:
            self._asked += 1
            return common.knows(self._owner, place)
        return bool(self._bits()[place >> 3] >> (place & 7) & 1)

    def _bits(self) -> bytes:
        if self._row is None:
            width = (len(self._common.roster) + 7) // 8
            self._row = self._common.row(self._owner).to_bytes(width, "little")
        return self._row

    def _keep_up(self) -> None:
        """Drop what was computed for an earlier version."""
        version = self.version
        if self._at != version:
            self._at = version
            self._ids = None
            self._ranking = None

    def _changed(self) -> None:
        self._own += 1

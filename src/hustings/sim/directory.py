"""The candidates of a world, looked up in the members themselves: no second table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hustings.core.choice import Candidate, MemberId
from hustings.sim.member import SimContext


class Directory(Mapping[MemberId, Candidate]):
    """The candidate of every member by id."""

    __slots__ = ("_members",)

    def __init__(self, members: dict[MemberId, SimContext]) -> None:
        self._members = members

    def __getitem__(self, member: MemberId) -> Candidate:
        return self._members[member].me

    def __iter__(self) -> Iterator[MemberId]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

"""What the records of a group say: which leader members follow, since when, how many changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from bench.net.records import NOBODY, Kind, Record


@dataclass(frozen=True, slots=True)
class Agreement:
    """All members asked about follow `leader`; the last of them began to at `at_ns`."""

    leader: int
    at_ns: int


@dataclass(slots=True)
class Timeline:
    """The latest record of every member, and all records before it."""

    records: list[Record] = field(default_factory=list)
    leaders: dict[int, int] = field(default_factory=dict)
    since: dict[int, int] = field(default_factory=dict)

    def add(self, records: Iterable[Record]) -> None:
        for record in records:
            self.records.append(record)
            if record.kind is Kind.LEADER:
                self.leaders[record.member] = record.leader
                self.since[record.member] = record.at_ns

    def forget(self, member: int) -> None:
        """Drop a member that is gone: neither its records nor later silence counts."""
        self.leaders.pop(member, None)
        self.since.pop(member, None)

    def agreement(self, live: Sequence[int]) -> Agreement | None:
        """Return the leader, itself alive, that all of `live` follow; None if they differ."""
        named = {self.leaders.get(member, NOBODY) for member in live}
        if len(named) != 1:
            return None
        (leader,) = named
        if leader not in live:
            return None
        return Agreement(leader, max(self.since[member] for member in live))


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes in a stretch of time in which there should be none."""

    leaders: int  # times a member took up leading
    words: int  # times any member's idea of the leader changed


def changes(records: Iterable[Record], begin_ns: int, end_ns: int) -> Changes:
    """Every record of the stretch counts: a member reports only what differs from before."""
    inside = [
        record
        for record in records
        if record.kind is Kind.LEADER and begin_ns <= record.at_ns <= end_ns
    ]
    leading = sum(record.leader == record.member for record in inside)
    return Changes(leading, len(inside))


def called(records: Iterable[Record], member: int, begin_ns: int) -> int | None:
    """When `member` made the call it was told to make after `begin_ns`; none if it was refused."""
    at = None
    for record in records:
        if record.member == member and record.at_ns >= begin_ns:
            if record.kind is Kind.REFUSED:
                return None
            if record.kind is Kind.CALLED:
                at = record.at_ns
    return at

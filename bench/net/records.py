"""What a member reports: sixteen bytes, written in one piece, so that no two mix in the pipe."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

FORM = struct.Struct("<HHiq")
NOBODY = -1


class Kind(IntEnum):
    LEADER = 1  # the member's leader from now on, or NOBODY
    CALLED = 2  # the member is about to make the call it was told to make
    REFUSED = 3  # that call was refused


@dataclass(frozen=True, slots=True)
class Record:
    kind: Kind
    member: int
    leader: int
    at_ns: int


def pack(record: Record) -> bytes:
    return FORM.pack(record.kind, record.member, record.leader, record.at_ns)


def unpack(data: bytes) -> tuple[list[Record], bytes]:
    """The whole records in `data`, and the rest."""
    whole = len(data) - len(data) % FORM.size
    return list(_records(data[:whole])), data[whole:]


def _records(data: bytes) -> Iterator[Record]:
    for kind, member, leader, at_ns in FORM.iter_unpack(data):
        yield Record(Kind(kind), member, leader, at_ns)


class Reporter:
    """The writing end of one member."""

    def __init__(self, descriptor: int, member: int) -> None:
        self.descriptor = descriptor
        self.member = member
        self.leader = NOBODY

    def follow(self, leader: int) -> None:
        """Report the leader if it has changed."""
        if leader != self.leader:
            self.leader = leader
            self.say(Kind.LEADER, leader)

    def say(self, kind: Kind, leader: int = NOBODY) -> None:
        record = Record(kind, self.member, leader, time.monotonic_ns())
        os.write(self.descriptor, pack(record))

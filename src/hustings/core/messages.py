"""Messages: one frozen struct per kind, the same object in the simulator and on the wire."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

import msgspec


class Role(Enum):
    """What a message is for; counts are reported by role so that protocols compare."""

    ELECTION = "election"  # calls, probes, candidates on their way
    ANSWER = "answer"  # OK, acknowledgement, an id in reply
    COORDINATOR = "coordinator"  # the result, told to others
    OTHER = "other"  # grants, checks, stops, votes
    DETECTOR = "detector"  # heartbeats: never counted as a cost of the election


class Message(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=True):
    """Base of all messages.

    A subclass gives its papers' name as tag, `class Ok(Message, tag="OK")`: that is what traces
    show and what stands on the wire. `gc=False` is sound because a frozen message holds only
    values and so cannot be part of a cycle.
    """

    role: ClassVar[Role] = Role.OTHER


def kind_of(message: Message | type[Message]) -> str:
    """The message kind's name, as in the paper: `ELECTION`, `OK`, ..."""
    return str(message.__struct_config__.tag)

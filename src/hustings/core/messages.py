"""Messages: one frozen struct per kind, the same object in the simulator and on the wire."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

# Numbers that members outbid each other with. A message that says too high a number is refused on a
# network (`net.plausible`): nobody could outbid it. `per_ms` is how fast such a number can grow at
# most, so that the date bounds it; a number that is only ever compared with one's own is no matter.
#
# An integer field that is called term, round, epoch, ballot or sequence counts as a `Term` without
# saying so.
PACE = "per_ms"
Term = Annotated[int, Meta(extra={PACE: 1, "follows": "term"})]
# Tokens of a quorum begin where lives do, 1024 in a millisecond, and zxids need room. Engines end
# at 2^53, which must stay far away.
TOKEN_PACE = 1280
Token = Annotated[int, Meta(extra={PACE: TOKEN_PACE, "follows": "token"})]
Count = Annotated[int, Meta(extra={PACE: 1})]
Incarnation = Annotated[int, Meta(extra={PACE: 1024})]
Weight = Annotated[float, Meta(extra={PACE: 1})]

TERM_NAMES = frozenset(("term", "round", "epoch", "ballot", "sequence"))


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


class LayerMessage(Message, frozen=True):
    """Base of the messages of layers, guards and the network, whose tags are theirs alone."""


# A group's messages share one wire with those of its layers. So these tags, and all that begin with
# the prefix, are refused where an election's class is made: in the simulator it would run, and on a
# network nobody could tell the two apart.
RESERVED_TAGS = frozenset(
    (
        *("CAST", "CAST-ANSWER", "CAST-COORDINATOR", "CAST-DETECTOR", "CAST-ELECTION"),
        *("CAST-OTHER", "CONFIG", "CONFIG-CONFLICT", "DETECTOR-PING", "DETECTOR-PONG", "DIGEST"),
        *("GOSSIP", "GOSSIP-LEADER", "HEARTBEAT", "HELLO", "JOIN", "LEADER-INFO", "LEADER-QUERY"),
        *("LEASE-HELD", "LEAVE", "MEASURE", "NAME-TAKEN", "OLD-INCARNATION", "PROBE"),
        *("PROBE-REPLY", "PROCESS-ENDED", "RETRANSMIT", "SOLICIT", "STATE-REQUEST"),
        *("STATE-TRANSFER", "TRANSFER-LEADER", "WATCH"),
    )
)
RESERVED_PREFIX = "Q-"  # of voters


def is_reserved(kind: type[Message]) -> bool:
    """Whether an election may not have this kind of message: its tag is a layer's.

    >>> class Probe(Message, tag="PROBE"):
    ...     hops: int
    >>> is_reserved(Probe)
    True
    """
    tag = kind_of(kind)
    if issubclass(kind, LayerMessage):
        return False
    return tag in RESERVED_TAGS or tag.startswith(RESERVED_PREFIX)


def kind_of(message: Message | type[Message]) -> str:
    """The message kind's name, as in the paper: `ELECTION`, `OK`, ..."""
    return str(message.__struct_config__.tag)

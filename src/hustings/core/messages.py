"""Messages: one frozen struct per kind, the same object in the simulator and on the wire."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec
from msgspec import Meta

# Numbers with which members outbid each other. On a network, a message with too high a number is
# refused (`net.plausible`), because no member could outbid it. `per_ms` is the fastest growth of
# such a number, so that the date bounds it. A number that a member only compares with its own needs
# no bound.
#
# An integer field with the name term, round, epoch, ballot or sequence counts as a `Term` without
# this mark.
PACE = "per_ms"
Term = Annotated[int, Meta(extra={PACE: 1, "follows": "term"})]
# Tokens of a quorum begin where incarnations do, 1024 in a millisecond, and zxids need room.
# Engines end at 2^53, which must stay far away.
TOKEN_PACE = 1280
Token = Annotated[int, Meta(extra={PACE: TOKEN_PACE, "follows": "token"})]
Count = Annotated[int, Meta(extra={PACE: 1})]
Incarnation = Annotated[int, Meta(extra={PACE: 1024})]

TERM_NAMES = frozenset(("term", "round", "epoch", "ballot", "sequence"))


class Role(Enum):
    """What a message is for. Counts are reported by role, so that protocols can be compared."""

    ELECTION = "election"  # calls, probes, candidates on their way
    ANSWER = "answer"  # OK, acknowledgement, an id in reply
    COORDINATOR = "coordinator"  # the result, told to others
    OTHER = "other"  # grants, checks, stops, votes
    DETECTOR = "detector"  # heartbeats: never counted as a cost of the election


class Former(NamedTuple):
    """How a message looks in earlier wire versions, up to and with `until`.

    `form` has the same tag. `read` makes the present message of it, and `write` makes it of the
    present message; both take whatever the types allow.
    """

    until: int
    form: type[Message]
    read: Callable[[Any], Message]
    write: Callable[[Any], Message]


class Message(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=True):
    """Base of all messages.

    A subclass takes the paper's name as its tag: `class Ok(Message, tag="OK")`. Traces and the wire
    show the tag. `gc=False` is sound because a frozen message holds only values and so cannot be
    part of a cycle.
    """

    role: ClassVar[Role] = Role.OTHER
    formers: ClassVar[tuple[Former, ...]] = ()  # of this very class, not of those made from it


class LayerMessage(Message, frozen=True):
    """Base of the messages of layers, guards and the network. No election may use their tags."""


# A group's messages share one wire with those of its layers. So these tags, and all tags that begin
# with the prefix, are refused where an election's class is made. In the simulator such a class
# would run, and on a network a member could not tell the two messages apart.
RESERVED_TAGS = frozenset(
    (
        *("CAST", "CAST-ANSWER", "CAST-COORDINATOR", "CAST-DETECTOR", "CAST-ELECTION"),
        *("CAST-OTHER", "CONFIG", "CONFIG-CONFLICT", "DETECTOR-PING", "DETECTOR-PONG", "DIGEST"),
        *("GOSSIP", "GOSSIP-LEADER", "HEARTBEAT", "HELLO", "JOIN", "LEADER-INFO", "LEADER-QUERY"),
        *("LEASE-HELD", "LEAVE", "MEASURE", "NAME-TAKEN", "OLD-INCARNATION", "PROBE"),
        *("PROBE-REPLY", "PROCESS-ENDED", "RETRANSMIT", "SOLICIT", "STATE-REQUEST"),
        *("STATE-TRANSFER", "SURVEY", "SURVEY-ECHO", "SURVEY-PROBE", "SURVEY-REPLY"),
        *("TRANSFER-LEADER", "WATCH"),
    )
)
RESERVED_PREFIX = "Q-"  # of voters


def is_reserved(kind: type[Message]) -> bool:
    """Whether a layer has this tag, so that an election may not use this kind of message.

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
    """The name of the message kind, as in the paper: `ELECTION`, `OK`, ..."""
    return str(message.__struct_config__.tag)


def former_of(kind: type[Message], version: int) -> Former | None:
    """The form that a kind of message has in an earlier wire version; None: the present one.

    >>> class Vote(Message, tag="VOTE"):
    ...     term: int
    >>> former_of(Vote, 1) is None
    True
    """
    found = [each for each in vars(kind).get("formers", ()) if each.until >= version]
    return min(found, key=lambda each: each.until, default=None)

"""Messages between nodes, beside those of the elections that the nodes run."""

from __future__ import annotations

from typing import ClassVar

from hustings.core.choice import MemberId
from hustings.core.messages import LayerMessage, Message, Role


class HelloMsg(LayerMessage, frozen=True, tag="HELLO"):
    """Opens a stream, and shows whose it is. The stream is a crash watch, or carries a transfer."""

    role: ClassVar[Role] = Role.DETECTOR


class ProbeMsg(LayerMessage, frozen=True, tag="PROBE"):
    """Asks whether a member is there. The answer repeats the number."""

    role: ClassVar[Role] = Role.DETECTOR
    nonce: int


class ProbeReplyMsg(LayerMessage, frozen=True, tag="PROBE-REPLY"):
    """The answer to a probe: this member is here."""

    role: ClassVar[Role] = Role.DETECTOR
    nonce: int


class NameTakenMsg(LayerMessage, frozen=True, tag="NAME-TAKEN"):
    """Tells a member that its name is taken: by which address, and in which incarnation.

    The message goes to one incarnation of one member only. So a recorded copy is of no use.
    """

    role: ClassVar[Role] = Role.DETECTOR
    place: str
    incarnation: int
    yours: int


class OldIncarnationMsg(LayerMessage, frozen=True, tag="OLD-INCARNATION"):
    """Tells a member that this later incarnation of it was heard."""

    role: ClassVar[Role] = Role.DETECTOR
    incarnation: int
    yours: int


class ProcessEndedMsg(LayerMessage, frozen=True, tag="PROCESS-ENDED"):
    """Says that a member's process has ended: no process listens at its address any more."""

    role: ClassVar[Role] = Role.DETECTOR
    member: MemberId
    incarnation: int


class ConfigMsg(LayerMessage, frozen=True, tag="CONFIG"):
    """The sender's configuration: name, value, and whether it must be equal; all understand it.

    A question has a number, and the answer repeats it. An answer names some other members of its
    group. So the asking member need not take the size of that group from one member.
    """

    role: ClassVar[Role] = Role.DETECTOR
    nonce: int
    answer: bool
    settled: bool
    members: int
    led: bool
    fields: tuple[tuple[str, str, bool], ...]
    peers: tuple[tuple[str, int], ...] = ()


class ConfigConflictMsg(LayerMessage, frozen=True, tag="CONFIG-CONFLICT"):
    """Says that a member with another configuration is at this address: ask it."""

    role: ClassVar[Role] = Role.DETECTOR
    host: str
    port: int


CONTROL_MESSAGES: tuple[type[Message], ...] = (
    HelloMsg,
    ProbeMsg,
    ProbeReplyMsg,
    NameTakenMsg,
    OldIncarnationMsg,
    ProcessEndedMsg,
    ConfigMsg,
    ConfigConflictMsg,
)

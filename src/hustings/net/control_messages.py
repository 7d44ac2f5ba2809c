"""What hosts say to each other beside the elections they run."""

from __future__ import annotations

from typing import ClassVar

from hustings.core.choice import MemberId
from hustings.core.messages import LayerMessage, Message, Role


class HelloMsg(LayerMessage, frozen=True, tag="HELLO"):
    """Opens a stream, and shows whose it is: one that is kept to see it end, or a transfer."""

    role: ClassVar[Role] = Role.DETECTOR


class ProbeMsg(LayerMessage, frozen=True, tag="PROBE"):
    """Is anybody there? Say so, with this number."""

    role: ClassVar[Role] = Role.DETECTOR
    nonce: int


class ProbeReplyMsg(LayerMessage, frozen=True, tag="PROBE-REPLY"):
    """I am here."""

    role: ClassVar[Role] = Role.DETECTOR
    nonce: int


class NameTakenMsg(LayerMessage, frozen=True, tag="NAME-TAKEN"):
    """A living member has your name: this is where it is, and in which incarnation.

    Said to one incarnation of one member, and to nobody else: it must be of no use to whoever
    records it.
    """

    role: ClassVar[Role] = Role.DETECTOR
    place: str
    incarnation: int
    yours: int


class OldIncarnationMsg(LayerMessage, frozen=True, tag="OLD-INCARNATION"):
    """I have heard you in a later incarnation, this one, than in yours."""

    role: ClassVar[Role] = Role.DETECTOR
    incarnation: int
    yours: int


class ProcessEndedMsg(LayerMessage, frozen=True, tag="PROCESS-ENDED"):
    """Where this member was, nobody listens any more: its process has ended."""

    role: ClassVar[Role] = Role.DETECTOR
    member: MemberId
    incarnation: int


class ConfigMsg(LayerMessage, frozen=True, tag="CONFIG"):
    """So am I configured: name, value, and whether it must be equal. Understood by all members.

    A question has a number, which its answer repeats. An answer names some others of its group, so
    that whoever asks need not believe one of them how many they are.
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
    """I have met somebody there who is configured otherwise: ask it."""

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

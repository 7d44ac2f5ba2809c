"""Messages between nodes, beside those of the elections that the nodes run."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

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


MOST_PROBES = 8  # of a train
MOST_STALLS = 16  # that an answer tells
MOST_TRIPS = 16  # round trips that an answer tells

Seconds = Annotated[float, Meta(ge=0)]
Tally = Annotated[int, Meta(ge=0)]
Stall = tuple[Tally, Seconds, Seconds]  # its number, how long ago it ended, how long it took


class WayCounts(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What became of the numbered datagrams of one way, from one member to another."""

    sent: Tally = 0
    lost: Tally = 0
    after_loss: Tally = 0  # those that followed a lost one in their train
    lost_again: Tally = 0  # of these


class LinkReport(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What one member has measured of its way to another, and back; the counts only grow."""

    target: MemberId
    out: WayCounts
    back: WayCounts
    unsettled: Tally  # probes of which it is not known what became of them
    trips: Annotated[tuple[Seconds, ...], Meta(max_length=MOST_TRIPS)]  # the latest, in seconds
    trip_count: Tally  # of all so far


class SurveyMsg(LayerMessage, frozen=True, tag="SURVEY"):
    """Asks a member what it has measured, and to send a train of probes to another member.

    `series` is the number of the survey; `number` counts its questions, and the answer repeats it.
    """

    role: ClassVar[Role] = Role.DETECTOR
    series: int
    number: int
    target: MemberId | None = None
    probes: Annotated[int, Meta(ge=0, le=MOST_PROBES)] = 0


class SurveyReplyMsg(LayerMessage, frozen=True, tag="SURVEY-REPLY"):
    """The answer: this member's clock, when it stood still, and what it knows of the way."""

    role: ClassVar[Role] = Role.DETECTOR
    series: int
    number: int
    clock: float
    watched: Seconds  # for how long it was looked for stalls
    stalls: Annotated[tuple[Stall, ...], Meta(max_length=MOST_STALLS)]  # the latest
    stall_count: Tally  # of all so far
    longest: Seconds  # the longest stall since the process began
    link: LinkReport | None = None


class SurveyProbeMsg(LayerMessage, frozen=True, tag="SURVEY-PROBE"):
    """A numbered probe of a survey, from one member to another."""

    role: ClassVar[Role] = Role.DETECTOR
    series: int
    number: Tally


class SurveyEchoMsg(LayerMessage, frozen=True, tag="SURVEY-ECHO"):
    """The answer to a probe. Bit i of `heard` is set if the probe `number - i` has come, too."""

    role: ClassVar[Role] = Role.DETECTOR
    series: int
    number: Tally
    heard: Tally
    stalls: Tally  # of the answering process so far


CONTROL_MESSAGES: tuple[type[Message], ...] = (
    HelloMsg,
    ProbeMsg,
    ProbeReplyMsg,
    NameTakenMsg,
    OldIncarnationMsg,
    ProcessEndedMsg,
    ConfigMsg,
    ConfigConflictMsg,
    SurveyMsg,
    SurveyReplyMsg,
    SurveyProbeMsg,
    SurveyEchoMsg,
)

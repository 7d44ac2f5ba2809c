"""What hosts say to each other beside the elections they run."""

from __future__ import annotations

from typing import ClassVar

from hustings.core.choice import MemberId
from hustings.core.messages import Message, Role


class LifelineMsg(Message, frozen=True, tag="LIFELINE"):
    """Opens a stream that is kept only to see it end."""

    role: ClassVar[Role] = Role.DETECTOR


class ProbeMsg(Message, frozen=True, tag="PROBE"):
    """Is anybody there? Say so, with this number."""

    role: ClassVar[Role] = Role.DETECTOR
    nonce: int


class PresentMsg(Message, frozen=True, tag="PRESENT"):
    """I am here."""

    role: ClassVar[Role] = Role.DETECTOR
    nonce: int


class NameTakenMsg(Message, frozen=True, tag="NAME-TAKEN"):
    """A living member has your name: this is where it is, and in which of its lives.

    Said to one life of one member, and to nobody else: it must be of no use to whoever records it.
    """

    role: ClassVar[Role] = Role.DETECTOR
    place: str
    life: int
    yours: int


class LivedLaterMsg(Message, frozen=True, tag="LIVED-LATER"):
    """I have heard you in a later life, this one, than in yours."""

    role: ClassVar[Role] = Role.DETECTOR
    life: int
    yours: int


class GoneMsg(Message, frozen=True, tag="GONE"):
    """Where this member was, nobody listens any more: its process has ended."""

    role: ClassVar[Role] = Role.DETECTOR
    member: MemberId
    incarnation: int


COURTESY: tuple[type[Message], ...] = (
    LifelineMsg,
    ProbeMsg,
    PresentMsg,
    NameTakenMsg,
    LivedLaterMsg,
    GoneMsg,
)

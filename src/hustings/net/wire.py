"""Messages as bytes and back: one frame format for datagrams and streams, sealed or not.

    frame     = "H" | version (1) | mode (1) | group tag (4) | body
    body      = envelope, or what `sealing` makes of it, as the mode says
    envelope  = [group, protocol, version, sender, incarnation, number, recipient, payload]
    payload   = [kind, fields ...]: the same frozen struct that the simulator passes on

The group tag is a short digest of the group's label, so that several groups may share a port; the
label itself stands in the envelope and is bound into the seal. So is the direction: a datagram
cannot be passed off as a part of a stream, nor a question on a stream as an answer.

Law of this file: what arrives yields a message or a reason, never an exception, and nothing that
arrives says how much memory is taken. It is read as data only: msgpack into structs that are known
beforehand.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from hustings.core.choice import MemberId
from hustings.core.digests import blake2b
from hustings.core.errors import ProtocolBug
from hustings.core.messages import Message
from hustings.net.courtesy import ConfigMsg
from hustings.net.dialect import UNREADABLE, UNWRITABLE, Dialect, check_label
from hustings.net.limits import Limits, Reason
from hustings.net.strict import MAX_INTEGER

if TYPE_CHECKING:
    from hustings.net.sealing import KeyRing

MAGIC = b"H"
VERSION = 2  # of frames: their form and the tags of messages; others are refused
CLEAR, SEALED, SIGNED = 0, 1, 2  # sealed with a key, signed with this machine's, or neither
TAG = 4
HEADER = len(MAGIC) + 2 + TAG

MAX_NUMBER = 1 << 53  # of incarnations and frames, as gossip has it


class Direction(IntEnum):
    """On which way a frame travels; bound into its seal."""

    DATAGRAM = 1
    QUESTION = 2  # on a stream, from who opened it
    ANSWER = 3  # on a stream, from who accepted it


class Envelope(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """Who says it to whom."""

    group: str
    protocol: str
    version: int
    sender: MemberId
    incarnation: int
    number: int
    recipient: MemberId | None
    payload: msgspec.Raw


class Received(NamedTuple):
    """A message that may be handled, and what the envelope says about it."""

    sender: MemberId
    incarnation: int
    number: int
    to_all: bool
    message: Message


class Frame(NamedTuple):
    """Bytes to send, and the way they must go: what no datagram holds goes over a stream."""

    data: bytes
    direction: Direction


_encoder = msgspec.msgpack.Encoder()
_envelopes = msgspec.msgpack.Decoder(Envelope)


class Wire:
    """One member's way to write frames and to read them.

    Neither counts nor remembers what arrives: that is `gate`'s.
    """

    def __init__(
        self,
        group: str,
        me: MemberId,
        incarnation: int,
        dialect: Dialect,
        ring: KeyRing | None = None,
        limits: Limits | None = None,
    ) -> None:
        check_label("group", group)
        if not (1 <= incarnation <= MAX_NUMBER and -MAX_INTEGER <= me < MAX_INTEGER):
            raise ProtocolBug(f"member {me} in its life {incarnation} cannot be told on a wire")
        self.group = group
        self.me = me
        self.incarnation = incarnation
        self.dialect = dialect
        self.ring = ring
        self.limits = limits or Limits()
        self._read = dialect.reader(self.limits.view)
        self._label = group.encode()
        self._tag = group_tag(group)
        self._number = 0
        self.label = ""  # of the frame that was read last
        self.namesake: Received | None = None  # what another one of this name said last

    def write(
        self,
        message: Message,
        to: MemberId | None = None,
        direction: Direction = Direction.DATAGRAM,
    ) -> Frame | Reason:
        """A frame for one member, or for whoever gets it, or why there is none.

        Too large for a datagram, it becomes a question on a stream. The same frame may be sent to
        many; written twice, it counts twice.
        """
        envelope = self._envelope(message, to)
        if isinstance(envelope, Reason):
            return envelope
        data = self._frame(envelope, direction)
        if direction is Direction.DATAGRAM and len(data) > self.limits.datagram:
            direction = Direction.QUESTION
            data = self._frame(envelope, direction)
        if len(data) > self.largest(direction):
            return Reason.UNSENDABLE
        return Frame(data, direction)

    def read(self, data: bytes, direction: Direction) -> Received | Reason:
        """The message in what arrived, or why there is none."""
        plain = self._open(data, direction)
        if isinstance(plain, Reason):
            return plain
        try:
            envelope = _envelopes.decode(plain)
        except UNREADABLE:
            return Reason.MALFORMED
        self.label = envelope.protocol
        reason = self._refusal(envelope)
        if reason not in (None, Reason.DUPLICATE_NAME, Reason.OTHER_PROTOCOL):
            return reason
        message = self._read(envelope.payload)
        if isinstance(message, Reason):
            self.namesake = None
            return reason or message
        if reason is Reason.OTHER_PROTOCOL:
            if not isinstance(message, ConfigMsg):
                return reason
            reason = None  # how others are configured is heard across labels
        got = Received(
            envelope.sender,
            envelope.incarnation,
            envelope.number,
            envelope.recipient is None,
            message,
        )
        if reason is not None:
            self.namesake = got
            return reason
        return got

    def largest(self, direction: Direction) -> int:
        """The most bytes of a frame on this way."""
        limits = self.limits
        return limits.datagram if direction is Direction.DATAGRAM else limits.transfer

    def _envelope(self, message: Message, to: MemberId | None) -> bytes | Reason:
        if self._number >= MAX_NUMBER:
            return Reason.UNSENDABLE  # the next life has numbers again
        try:
            payload = _encoder.encode(message)
        except UNWRITABLE:
            return Reason.UNSENDABLE
        self._number += 1
        dialect = self.dialect
        return _encoder.encode(
            Envelope(
                self.group,
                dialect.protocol,
                dialect.version,
                self.me,
                self.incarnation,
                self._number,
                to,
                msgspec.Raw(payload),
            )
        )

    def _frame(self, envelope: bytes, direction: Direction) -> bytes:
        if self.ring is None:
            return self._header(CLEAR) + envelope
        header = self._header(self.ring.mode)
        return header + self.ring.seal(envelope, self._bound(header, direction))

    def _header(self, mode: int) -> bytes:
        return MAGIC + bytes((VERSION, mode)) + self._tag

    def _bound(self, header: bytes, direction: Direction) -> bytes:
        """What the seal covers beside the envelope; only the last part may vary in length."""
        return header + bytes((direction,)) + self._label

    def _open(self, data: bytes, direction: Direction) -> bytes | Reason:
        if len(data) > self.largest(direction):
            return Reason.TOO_LARGE
        if len(data) < HEADER or data[:1] != MAGIC:
            return Reason.NOT_A_FRAME
        if data[1] != VERSION:
            return Reason.UNKNOWN_VERSION
        if data[2] not in (CLEAR, SEALED, SIGNED):
            return Reason.UNKNOWN_MODE
        header = data[:HEADER]
        if header[-TAG:] != self._tag:
            return Reason.OTHER_GROUP
        if data[2] == CLEAR:
            return Reason.NOT_SEALED if self.ring is not None else data[HEADER:]
        if self.ring is None:
            return Reason.SEALED
        if data[2] != self.ring.mode:
            return Reason.UNKNOWN_KEY
        return self.ring.open(data[HEADER:], self._bound(header, direction))

    def _refusal(self, envelope: Envelope) -> Reason | None:
        """What is wrong with an envelope that could be read."""
        if envelope.group != self.group:
            return Reason.OTHER_GROUP
        if envelope.version != self.dialect.version:
            return Reason.OTHER_PROTOCOL_VERSION
        if not (
            1 <= envelope.incarnation <= MAX_NUMBER
            and 1 <= envelope.number <= MAX_NUMBER
            and -MAX_INTEGER <= envelope.sender < MAX_INTEGER
            and -MAX_INTEGER <= (envelope.recipient or 0) < MAX_INTEGER
        ):
            return Reason.IMPLAUSIBLE_NUMBER
        if envelope.sender == self.me:
            same = envelope.incarnation == self.incarnation
            return Reason.ECHO if same else Reason.DUPLICATE_NAME
        if envelope.recipient not in (None, self.me):
            return Reason.MISDIRECTED
        return None if self.dialect.understands(envelope.protocol) else Reason.OTHER_PROTOCOL


def group_tag(group: str) -> bytes:
    """What stands for the group at the head of its frames."""
    return blake2b(group.encode(), digest_size=TAG, person=b"hustings group").digest()


def tag_of(data: bytes) -> bytes | None:
    """The group tag of what arrived, for a port that serves several groups; None if it has none."""
    return data[HEADER - TAG : HEADER] if len(data) >= HEADER and data[:1] == MAGIC else None


def version_of(data: bytes) -> int:
    """The wire version of a frame, or 0 where there is none.

    >>> version_of(b"H\\x01"), version_of(b"H"), version_of(b"no frame")
    (1, 0, 0)
    """
    return data[1] if len(data) > 1 and data[:1] == MAGIC else 0

"""Messages as bytes and back: one frame format for datagrams and streams, sealed or not.

    frame     = "H" | version (1) | mode (1) | group tag (4) | body
    body      = envelope, or what `seal` makes of it, as the mode says
    envelope  = [group, protocol, version, sender, incarnation, number, recipient, payload]
    payload   = [kind, fields ...]: the same frozen struct that the simulator passes on

The group tag is a short digest of the group's label, so that several groups may share a port. The
label itself is in the envelope and is bound into the seal. The direction is bound too: a datagram
cannot be passed off as part of a stream, nor a question on a stream as an answer.

A codec knows the message kinds of one protocol in one version, as one tagged union. It decodes each
payload twice. A protocol's messages say `int` and mean a number that can be calculated with. They
say `tuple` and mean no more entries than a member can take, and `str` and mean a name or a line. So
`strict` makes a stricter double of each type, with bounds on numbers and lengths, and with exactly
the declared fields. The additional decoding in C finds what a walk through the message in Python
would find in many times the time. `flaw` is that walk: it names what is wrong, and tests compare
the doubles with it.

Law of this file: what arrives yields a message or a reason, never an exception, and cannot decide
how much memory is used. It is read as data only: msgpack into structs that are known beforehand.
"""

from __future__ import annotations

import math
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from functools import lru_cache, reduce
from operator import or_
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    NamedTuple,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import Meta

from hustings.core.choice import MemberId
from hustings.core.digests import blake2b
from hustings.core.election import Election
from hustings.core.errors import BadInput, ProtocolBug
from hustings.core.messages import Message, kind_of
from hustings.net.control_messages import ConfigMsg
from hustings.net.limits import Limits, Reason

if TYPE_CHECKING:
    from hustings.net.seal import KeyRing

MAGIC = b"H"
VERSION = 3  # of frames: their form and the tags of messages; other versions are refused
CLEAR, SEALED, SIGNED = 0, 1, 2  # not sealed; sealed with a key; signed with this machine's
TAG = 4
HEADER = len(MAGIC) + 2 + TAG

MAX_NUMBER = 1 << 53  # of incarnations and frames, as in gossip


class Direction(IntEnum):
    """The way on which a frame travels; bound into its seal."""

    DATAGRAM = 1
    QUESTION = 2  # on a stream, from the side that opened it
    ANSWER = 3  # on a stream, from the side that accepted it


class Envelope(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The sender and the recipient of a message."""

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
    """Bytes to send, and their direction: a frame that no datagram holds goes over a stream."""

    data: bytes
    direction: Direction


_encoder = msgspec.msgpack.Encoder()
_envelopes = msgspec.msgpack.Decoder(Envelope)


class Wire:
    """One member's way to write and read frames.

    It neither counts nor remembers what arrives: `filter` does that.
    """

    def __init__(
        self,
        group: str,
        me: MemberId,
        incarnation: int,
        codec: WireCodec,
        ring: KeyRing | None = None,
        limits: Limits | None = None,
    ) -> None:
        check_label("group", group)
        if not (1 <= incarnation <= MAX_NUMBER and -MAX_INTEGER <= me < MAX_INTEGER):
            raise ProtocolBug(f"member {me} in its life {incarnation} cannot be told on a wire")
        self.group = group
        self.me = me
        self.incarnation = incarnation
        self.codec = codec
        self.ring = ring
        self.limits = limits or Limits()
        self._read = codec.reader(self.limits.view)
        self._label = group.encode()
        self._tag = group_tag(group)
        self._number = 0
        self.label = ""  # of the last frame that was read
        self.duplicate: Received | None = None  # the last message from another process of this name

    def write(
        self,
        message: Message,
        to: MemberId | None = None,
        direction: Direction = Direction.DATAGRAM,
    ) -> Frame | Reason:
        """A frame for one member, or for any that gets it; or the reason why there is none.

        A frame that is too large for a datagram becomes a question on a stream. The same frame may
        be sent to many members. A message that is written twice gets two numbers.
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
        """The message in the data that arrived, or the reason why there is none."""
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
            self.duplicate = None
            return reason or message
        if reason is Reason.OTHER_PROTOCOL:
            if not isinstance(message, ConfigMsg):
                return reason
            reason = None  # configuration messages are understood across labels
        got = Received(
            envelope.sender,
            envelope.incarnation,
            envelope.number,
            envelope.recipient is None,
            message,
        )
        if reason is not None:
            self.duplicate = got
            return reason
        return got

    def largest(self, direction: Direction) -> int:
        """The most bytes that a frame in this direction may have."""
        limits = self.limits
        return limits.datagram if direction is Direction.DATAGRAM else limits.transfer

    def _envelope(self, message: Message, to: MemberId | None) -> bytes | Reason:
        if self._number >= MAX_NUMBER:
            return Reason.UNSENDABLE  # the next incarnation has numbers again
        try:
            payload = _encoder.encode(message)
        except UNWRITABLE:
            return Reason.UNSENDABLE
        self._number += 1
        codec = self.codec
        return _encoder.encode(
            Envelope(
                self.group,
                codec.protocol,
                codec.version,
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
        """What is wrong with a readable envelope."""
        if envelope.group != self.group:
            return Reason.OTHER_GROUP
        if envelope.version != self.codec.version:
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
        return None if self.codec.understands(envelope.protocol) else Reason.OTHER_PROTOCOL


def group_tag(group: str) -> bytes:
    """The tag of the group at the head of its frames."""
    return blake2b(group.encode(), digest_size=TAG, person=b"hustings group").digest()


def tag_of(data: bytes) -> bytes | None:
    """The group tag of a frame, for a port that serves several groups; None if it has none."""
    return data[HEADER - TAG : HEADER] if len(data) >= HEADER and data[:1] == MAGIC else None


def version_of(data: bytes) -> int:
    """The wire version of a frame, or 0 where there is none.

    >>> version_of(b"H\\x01"), version_of(b"H"), version_of(b"no frame")
    (1, 0, 0)
    """
    return data[1] if len(data) > 1 and data[:1] == MAGIC else 0


MARK = "#"  # in a label, before the digest of what members must have in common
ANY = "*"  # in place of the digest: an observer
LONGEST_LABEL = 64  # bytes, of groups and protocols

# Errors of msgspec for bytes of another type than expected; text is decoded late.
UNREADABLE = (msgspec.DecodeError, ValueError, OverflowError, RecursionError)
UNWRITABLE = (msgspec.EncodeError, ValueError, TypeError, OverflowError, RecursionError)

Payload = bytes | msgspec.Raw
Read = Callable[[Payload], Message | Reason]


class _Kind(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The first element of a payload, whatever follows."""

    tag: str


_kinds = msgspec.msgpack.Decoder(_Kind)


class WireCodec:
    """Encodes and decodes the messages of a group."""

    __slots__ = ("_decoder", "_tags", "kinds", "protocol", "version")

    def __init__(self, protocol: str, kinds: Sequence[type[Message]], version: int = 1) -> None:
        if not kinds:
            raise ProtocolBug(f"{protocol} has no messages to send")
        tags = [kind_of(kind) for kind in kinds]
        if twice := sorted({tag for tag in tags if tags.count(tag) > 1}):
            raise ProtocolBug(f"{protocol} has two kinds of message named {', '.join(twice)}")
        check_label("protocol", protocol)
        self.protocol = protocol
        self.version = version
        self.kinds = tuple(kinds)
        self._tags = frozenset(tags)
        self._decoder = _decoder(self.kinds)

    def understands(self, label: str) -> bool:
        """Whether frames with this label belong to this group, or may belong to it."""
        if label == self.protocol:
            return True
        own, theirs = self.protocol.partition(MARK), label.partition(MARK)
        return own[0] == theirs[0] and ANY in (own[2], theirs[2])

    @property
    def undecided(self) -> bool:
        """Whether the member may still belong to any group of this protocol."""
        return self.protocol.endswith(MARK + ANY)

    def take_up(self, label: str) -> None:
        """A member that may belong to any group belongs to this one from now on."""
        if self.undecided and self.understands(label):
            self.protocol = label

    def give_up(self) -> None:
        """The member may belong to any group again."""
        self.protocol = f"{self.protocol.partition(MARK)[0]}{MARK}{ANY}"

    @classmethod
    def of(cls, election: Election | type[Election], protocol: str, version: int = 1) -> WireCodec:
        """The codec for an election, together with all that it is composed with."""
        return cls(protocol, tuple(election.handlers), version)

    def reader(self, most: int) -> Read:
        """A reader of payloads: it checks the fields, and allows `most` entries in any list."""
        check = _strict_decoder(self.kinds, most).decode
        decode = self._decoder.decode

        def read(payload: Payload) -> Message | Reason:
            try:
                check(payload)
                message = decode(payload)
            except msgspec.ValidationError:
                return self._blame(payload, most)
            except UNREADABLE:
                return Reason.MALFORMED
            assert isinstance(message, Message)
            return message

        return read

    def _blame(self, payload: Payload, most: int) -> Reason:
        """Why a payload was refused; this need not be quick."""
        try:
            tag = _kinds.decode(payload).tag
        except UNREADABLE:
            return Reason.MALFORMED
        if tag not in self._tags:
            return Reason.UNKNOWN_KIND
        try:
            return flaw(self._decoder.decode(payload), most) or Reason.BAD_FIELDS
        except UNREADABLE:
            return Reason.BAD_FIELDS


def check_label(what: str, label: str) -> None:
    """Refuse a group's or protocol's name that is not fit for the wire or a log."""
    try:
        size = len(label.encode())
    except UnicodeEncodeError:
        size = 0
    if not (1 <= size <= LONGEST_LABEL and label.isprintable() and label == label.strip()):
        raise BadInput(
            f"{what} {label!r} does not do: 1 to {LONGEST_LABEL} bytes of printable text, "
            "without blanks around it"
        )


@lru_cache(maxsize=64)
def _strict_decoder(kinds: tuple[type[Message], ...], most: int) -> msgspec.msgpack.Decoder[Any]:
    """Shared by the members of one process: it takes a while to make the doubles."""
    return msgspec.msgpack.Decoder(strict(_union(kinds), most))


@lru_cache(maxsize=64)
def _decoder(kinds: tuple[type[Message], ...]) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(_union(kinds))


def _union(kinds: tuple[type[Message], ...]) -> Any:
    return reduce(or_, kinds)


MAX_INTEGER = 1 << 63  # excluded: the largest number plus one can still be written
MAX_TEXT = 4096  # characters

_LARGEST = sys.float_info.max
_INTEGER = Annotated[int, Meta(ge=-MAX_INTEGER, le=MAX_INTEGER - 1)]
_FLOAT = Annotated[float, Meta(ge=-_LARGEST, le=_LARGEST)]  # excludes NaN too
_TEXT = Annotated[str, Meta(max_length=MAX_TEXT)]


def strict(kind: Any, most: int) -> Any:
    """The stricter double of a type, with at most `most` entries in any collection."""
    return _double(kind, most, {})


def flaw(value: object, most: int) -> Reason | None:
    """What no proper member would send: numbers that are too large, endless lists and texts."""
    if isinstance(value, int):
        return None if -MAX_INTEGER <= value < MAX_INTEGER else Reason.IMPLAUSIBLE_NUMBER
    if isinstance(value, float):
        return None if math.isfinite(value) else Reason.IMPLAUSIBLE_NUMBER
    if isinstance(value, str):
        return None if len(value) <= MAX_TEXT else Reason.BAD_FIELDS
    if isinstance(value, msgspec.Struct):
        parts: Sequence[object] = [getattr(value, name) for name in value.__struct_fields__]
    elif isinstance(value, tuple | list | set | frozenset | Mapping):
        if len(value) > most:
            return Reason.TOO_MANY
        parts = [*value, *value.values()] if isinstance(value, Mapping) else list(value)
    else:
        return None
    for part in parts:
        if found := flaw(part, most):
            return found
    return None


def _double(kind: Any, most: int, made: dict[Any, Any]) -> Any:
    if kind is int:
        return _INTEGER
    if kind is float:
        return _FLOAT
    if kind is str:
        return _TEXT
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return made[kind] if kind in made else _double_struct(kind, most, made)
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _double(parts[0], most, made)  # its own bounds are checked with the real type
    doubles = tuple(part if part is ... else _double(part, most, made) for part in parts)
    if origin in (Union, types.UnionType):
        return reduce(or_, doubles)
    if origin is tuple and ... not in parts:
        return types.GenericAlias(tuple, doubles)
    if origin in (tuple, list, set, frozenset, dict):
        return Annotated[origin[doubles], Meta(max_length=most)]
    return kind


def _double_struct(kind: type[msgspec.Struct], most: int, made: dict[Any, Any]) -> Any:
    config = kind.__struct_config__
    made[kind] = kind  # a type within itself is left as it is there
    hints = get_type_hints(kind, include_extras=True)
    made[kind] = msgspec.defstruct(
        kind.__name__,
        [(name, _double(hints[name], most, made)) for name in kind.__struct_fields__],
        rename=dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)),
        tag=config.tag,
        tag_field=None if config.array_like else config.tag_field,
        array_like=config.array_like,
        forbid_unknown_fields=True,
        frozen=True,
        gc=False,
    )
    return made[kind]

"""Messages as bytes and back: one frame format for datagrams and streams, sealed or not.

    frame     = "H" | version (1) | mode (1) | group tag (4) | body
    body      = envelope, or what `seal` makes of it, as the mode says
    envelope  = [group, protocol, version, sender, incarnation, number, recipient, payload]
    payload   = [kind, fields ...]: the same frozen struct that the simulator passes on

The group tag is a short digest of the group's label, so that several groups may share a port; the
label itself stands in the envelope and is bound into the seal. So is the direction: a datagram
cannot be passed off as a part of a stream, nor a question on a stream as an answer.

A codec knows the kinds of message of one protocol in one version, as one tagged union. It decodes
twice. A protocol's messages say `int` and mean a number that one can count on with; they say
`tuple` and mean no more entries than a member can bear, and `str` and mean a name or a line. So
`strict` makes of each type a stricter double, with bounds on numbers and lengths and with no field
too many or too few: one more decoding in C finds what a walk through the message would find in many
times the time. `flaw` is that walk: it names what is wrong, and the doubles are tested against it.

Law of this file: what arrives yields a message or a reason, never an exception, and nothing that
arrives decides how much memory is taken. It is read as data only: msgpack into structs that are
known beforehand.
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

    Neither counts nor remembers what arrives: that is `filter`'s.
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
        self.label = ""  # of the frame that was read last
        self.duplicate: Received | None = None  # what another one of this name said last

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
            self.duplicate = None
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
            self.duplicate = got
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
        """What is wrong with an envelope that could be read."""
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


MARK = "#"  # in a label, before the digest of what members must have in common
ANY = "*"  # instead of the digest: one that only observes
LONGEST_LABEL = 64  # bytes, of groups and protocols

# What msgspec raises for bytes that are not what was asked for; text is decoded late.
UNREADABLE = (msgspec.DecodeError, ValueError, OverflowError, RecursionError)
UNWRITABLE = (msgspec.EncodeError, ValueError, TypeError, OverflowError, RecursionError)

Payload = bytes | msgspec.Raw
Read = Callable[[Payload], Message | Reason]


class _Kind(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A payload's first element, whatever follows."""

    tag: str


_kinds = msgspec.msgpack.Decoder(_Kind)


class WireCodec:
    """What a group's members say to each other."""

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
        """Whether frames with this label are of this group, or may be."""
        if label == self.protocol:
            return True
        own, theirs = self.protocol.partition(MARK), label.partition(MARK)
        return own[0] == theirs[0] and ANY in (own[2], theirs[2])

    @property
    def undecided(self) -> bool:
        """Whether it may be of any group of this protocol, still."""
        return self.protocol.endswith(MARK + ANY)

    def take_up(self, label: str) -> None:
        """One that may be of any group is of this one from now on."""
        if self.undecided and self.understands(label):
            self.protocol = label

    def give_up(self) -> None:
        """It may be of any group again."""
        self.protocol = f"{self.protocol.partition(MARK)[0]}{MARK}{ANY}"

    @classmethod
    def of(cls, election: Election | type[Election], protocol: str, version: int = 1) -> WireCodec:
        """What an election handles, together with all that it is composed with."""
        return cls(protocol, tuple(election.handlers), version)

    def reader(self, most: int) -> Read:
        """From a payload to a message with sane fields, and at most so many entries in any list."""
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
        """What is wrong with a payload that was refused; it need not be quick."""
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
    """Refuse a group's or protocol's name that has no place on the wire or in a log."""
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
    """Shared by the members of one process: making the doubles takes a while."""
    return msgspec.msgpack.Decoder(strict(_union(kinds), most))


@lru_cache(maxsize=64)
def _decoder(kinds: tuple[type[Message], ...]) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(_union(kinds))


def _union(kinds: tuple[type[Message], ...]) -> Any:
    return reduce(or_, kinds)


MAX_INTEGER = 1 << 63  # not included: one more can still be written
MAX_TEXT = 4096  # characters

_LARGEST = sys.float_info.max
_INTEGER = Annotated[int, Meta(ge=-MAX_INTEGER, le=MAX_INTEGER - 1)]
_FLOAT = Annotated[float, Meta(ge=-_LARGEST, le=_LARGEST)]  # which no NaN is either
_TEXT = Annotated[str, Meta(max_length=MAX_TEXT)]


def strict(kind: Any, most: int) -> Any:
    """The double of a type, with at most so many entries in anything that has entries."""
    return _double(kind, most, {})


def flaw(value: object, most: int) -> Reason | None:
    """What no member would say: numbers that one cannot reckon with, endless lists and texts."""
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

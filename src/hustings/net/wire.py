"""Messages as bytes and back: one frame format for datagrams and streams, sealed or not.

    frame     = "H" | version (1) | mode and reach (1) | group tag (4) | body
    body      = envelope, or what `seal` makes of it, as the mode says
    envelope  = [group, protocol, version, sender, incarnation, number, recipient, payload]
    payload   = [kind, fields ...]: the same frozen struct that the simulator passes on

A member writes frames of one wire version, `VERSION`, and reads those from `OLDEST` to `NEWEST`. So
a release can read a form that only the next one writes, and releases in a row understand each other
(`versions.py` is for those that do not). The byte of the mode also tells how many versions before
and after its own the sender reads: a frame is refused if its sender could not read an answer. Where
a message had another form before, its class says so (`Message.formers`).

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
from hustings.core.messages import Message, former_of, kind_of
from hustings.net.control_messages import ConfigMsg
from hustings.net.limits import Limits, Reason, WireVersions

if TYPE_CHECKING:
    from hustings.net.seal import KeyRing

MAGIC = b"H"
# The version of frames: their form, and the tags and forms of messages.
OLDEST = 3  # that this release reads: the release before may write it
VERSION = 3  # that it writes
NEWEST = 3  # that it reads: the next release may write it
FIRST = 3  # that tells which versions its sender reads; bodies of multicasts tell later ones
OURS = WireVersions(OLDEST, VERSION, NEWEST)
CLEAR, SEALED, SIGNED = 0, 1, 2  # not sealed; sealed with a key; signed with this machine's
TAG = 4
HEADER = len(MAGIC) + 2 + TAG

# Of frames that tell which versions a member reads (`versions.py`). Their form, the head and the
# seal never change, since members of all versions must understand them.
NOTICE = 0

_ARRAYS = 0x80  # from here on a first byte begins a payload, and below it is a wire version
_ACROSS = (bytes((NOTICE,)), bytes((FIRST - 1,)))
_MODE = 3  # the bits of the mode, in its byte
_BACK, _AHEAD, _REACH = 2, 5, 7  # where the two numbers of versions lie beside it; their bits


def _mode_byte(mode: int, versions: WireVersions) -> int:
    back, ahead = versions.written - versions.oldest, versions.newest - versions.written
    return mode | back << _BACK | ahead << _AHEAD


def versions_of(data: bytes) -> WireVersions:
    """The wire versions that a frame tells of its sender; zeros where there is no frame.

    >>> versions_of(b"H\\x04\\x06"), versions_of(b"no frame").written
    (WireVersions(oldest=3, written=4, newest=4), 0)
    """
    if len(data) < 3 or data[:1] != MAGIC:
        return WireVersions(0, 0, 0)
    written, byte = data[1], data[2]
    return WireVersions(written - (byte >> _BACK & _REACH), written, written + (byte >> _AHEAD))


def _readable() -> dict[bytes, int]:
    """The two bytes for version and mode that are read here, and the mode that they mean."""
    heads = (
        bytes((written, byte)) for written in range(OLDEST, NEWEST + 1) for byte in range(1 << 8)
    )
    return {
        head: head[1] & _MODE
        for head in heads
        if head[1] & _MODE in (CLEAR, SEALED, SIGNED) and OURS.meets(versions_of(MAGIC + head))
    }


_READABLE = _readable()


def mode_of(data: bytes) -> int | Reason:
    """The mode of a frame, or why frames that begin so are not read here."""
    mode = _READABLE.get(data[len(MAGIC) : len(MAGIC) + 2])
    if mode is not None:
        return mode
    return Reason.UNKNOWN_MODE if OURS.meets(versions_of(data)) else Reason.UNKNOWN_VERSION


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
    size: int = 0  # bytes of its frame


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
        self._readers = codec.readers(self.limits.view)
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
        message = self._readers[data[1] - OLDEST](envelope.payload)
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
            len(data),
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
        codec = self.codec
        try:
            payload = codec.write(message)
        except UNWRITABLE:
            return Reason.UNSENDABLE
        self._number += 1
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

    def write_notice(self, notice: bytes) -> bytes:
        """The frame for a notice about versions, which members of all versions understand."""
        header = MAGIC + bytes((NOTICE, self._mode)) + self._tag
        return self._sealed(header, notice, Direction.DATAGRAM)

    def read_notice(self, data: bytes) -> bytes | Reason:
        """The notice in a frame, or the reason why there is none."""
        if not is_notice(data):
            return Reason.NOT_A_FRAME
        return self._open(data, Direction.DATAGRAM, _mode_in(data))

    def opens(self, data: bytes) -> bool:
        """Whether a datagram of any wire version is one of this group, with its seal if it has."""
        return self.obstacle(data) is None

    def obstacle(self, data: bytes) -> Reason | None:
        """What beside its wire version keeps a datagram from being read: its group or its seal."""
        found = self._open(data, Direction.DATAGRAM, _mode_in(data))
        return found if isinstance(found, Reason) else None

    def write_old(self, message: Message, version: int) -> bytes | None:
        """A datagram for members of a version that tells no range, and whose form is the same."""
        envelope = self._envelope(message, None)
        if isinstance(envelope, Reason):
            return None
        header = MAGIC + bytes((version, self._mode)) + self._tag
        return self._sealed(header, envelope, Direction.DATAGRAM)

    def read_old(self, data: bytes) -> ConfigMsg | None:
        """The message about a configuration in a datagram of such a version."""
        plain = self._open(data, Direction.DATAGRAM, _mode_in(data))
        if isinstance(plain, Reason):
            return None
        try:
            envelope = _envelopes.decode(plain)
        except UNREADABLE:
            return None
        if self._refusal(envelope) not in (None, Reason.OTHER_PROTOCOL):
            return None
        message = _configs()(envelope.payload)
        return message if isinstance(message, ConfigMsg) else None

    @property
    def _mode(self) -> int:
        return CLEAR if self.ring is None else self.ring.mode

    def _frame(self, content: bytes, direction: Direction) -> bytes:
        head = bytes((VERSION, _mode_byte(self._mode, OURS)))
        return self._sealed(MAGIC + head + self._tag, content, direction)

    def _sealed(self, header: bytes, content: bytes, direction: Direction) -> bytes:
        if self.ring is None:
            return header + content
        return header + self.ring.seal(content, self._bound(header, direction))

    def _bound(self, header: bytes, direction: Direction) -> bytes:
        """What the seal covers beside the envelope; only the last part may vary in length."""
        return header + bytes((direction,)) + self._label

    def _open(
        self, data: bytes, direction: Direction, mode: int | Reason | None = None
    ) -> bytes | Reason:
        """What is in a frame; `mode` is for frames of any version."""
        if len(data) > self.largest(direction):
            return Reason.TOO_LARGE
        if len(data) < HEADER or data[:1] != MAGIC:
            return Reason.NOT_A_FRAME
        if mode is None:
            mode = mode_of(data)
        if isinstance(mode, Reason):
            return mode
        header = data[:HEADER]
        if header[-TAG:] != self._tag:
            return Reason.OTHER_GROUP
        if mode == CLEAR:
            return Reason.NOT_SEALED if self.ring is not None else data[HEADER:]
        if self.ring is None:
            return Reason.SEALED
        if mode != self.ring.mode:
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


def _mode_in(data: bytes) -> int:
    """The mode of a frame of any version."""
    return data[2] & _MODE if len(data) > 2 else CLEAR


def is_across(data: bytes) -> bool:
    """Whether a datagram may be one of those that are understood across wire versions."""
    return data[:1] == MAGIC and data[1:2] in _ACROSS


def is_notice(data: bytes) -> bool:
    """Whether a frame is a notice about versions."""
    return data[:1] == MAGIC and data[1:2] == bytes((NOTICE,))


MARK = "#"  # in a label, before the digest of what members must have in common
ANY = "*"  # in place of the digest: an observer
LONGEST_LABEL = 64  # bytes, of groups and protocols

# Errors of msgspec for bytes of another type than expected; text is decoded late.
UNREADABLE = (msgspec.DecodeError, ValueError, OverflowError, RecursionError)
UNWRITABLE = (msgspec.EncodeError, ValueError, TypeError, OverflowError, RecursionError)

Payload = bytes | memoryview | msgspec.Raw
Read = Callable[[Payload], Message | Reason]


class _Kind(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The first element of a payload, whatever follows."""

    tag: str


_kinds = msgspec.msgpack.Decoder(_Kind)


class WireCodec:
    """Encodes and decodes the messages of a group."""

    __slots__ = ("_older", "_tags", "kinds", "protocol", "version")

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
        found = {kind: former_of(kind, VERSION) for kind in self.kinds}
        self._older = {kind: old.write for kind, old in found.items() if old is not None}

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

    def write(self, message: Message) -> bytes:
        """The payload for a message, in its form of the written version."""
        older = self._older.get(type(message)) if self._older else None
        return _encoder.encode(message if older is None else older(message))

    def write_body(self, message: Message) -> bytes:
        """The payload in a multicast. Others pass it on as it is, so it tells its wire version.

        A byte before the payload does. No byte means `FIRST`, whose payloads begin as arrays do,
        with a byte above all versions.
        """
        head = b"" if VERSION == FIRST else bytes((VERSION,))
        return head + self.write(message)

    def body_reader(self, most: int) -> Read:
        """A reader of such payloads, in any version that is read."""
        readers = self.readers(most)

        def read(body: Payload) -> Message | Reason:
            payload = memoryview(body)
            written = payload[0] if payload and payload[0] < _ARRAYS else FIRST
            if not OLDEST <= written <= NEWEST:
                return Reason.UNKNOWN_VERSION
            return readers[written - OLDEST](payload if written == FIRST else payload[1:])

        return read

    def readers(self, most: int) -> tuple[Read, ...]:
        """A reader for each wire version that is read, the oldest first."""
        return tuple(self.reader(most, version) for version in range(OLDEST, NEWEST + 1))

    def reader(self, most: int, version: int = NEWEST) -> Read:
        """A reader of payloads: it checks the fields, and allows `most` entries in any list."""
        formers = {kind: former_of(kind, version) for kind in self.kinds}
        kinds = tuple(kind if (old := formers[kind]) is None else old.form for kind in self.kinds)
        renew = {old.form: old.read for old in formers.values() if old is not None}
        check = _strict_decoder(kinds, most).decode
        decode = _decoder(kinds).decode

        def read(payload: Payload) -> Message | Reason:
            try:
                check(payload)
                message = decode(payload)
                if renew and type(message) in renew:
                    message = renew[type(message)](message)
            except msgspec.ValidationError:
                return self._blame(payload, kinds, most)
            except UNREADABLE:
                return Reason.MALFORMED
            assert isinstance(message, Message)
            return message

        return read

    def _blame(self, payload: Payload, kinds: tuple[type[Message], ...], most: int) -> Reason:
        """Why a payload was refused; this need not be quick."""
        try:
            tag = _kinds.decode(payload).tag
        except UNREADABLE:
            return Reason.MALFORMED
        if tag not in self._tags:
            return Reason.UNKNOWN_KIND
        try:
            return flaw(_decoder(kinds).decode(payload), most) or Reason.BAD_FIELDS
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


@lru_cache(maxsize=1)
def _configs() -> Read:
    """Of the message that is understood across labels and, since its form is the same, versions."""
    return WireCodec("config", (ConfigMsg,)).reader(Limits().view)


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

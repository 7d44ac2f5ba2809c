"""A dialect: the kinds of message of one protocol in one version, as one tagged union.

Law of this file, as of `wire`: what is read yields a message or a reason, never an exception.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, reduce
from operator import or_
from typing import Any

import msgspec

from hustings.core.election import Election
from hustings.core.errors import BadInput, ProtocolBug
from hustings.core.messages import Message, kind_of
from hustings.net.limits import Reason
from hustings.net.strict import flaw, strict

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


class Dialect:
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
    def of(cls, election: Election | type[Election], protocol: str, version: int = 1) -> Dialect:
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

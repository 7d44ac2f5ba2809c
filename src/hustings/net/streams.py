"""Frames on a stream: each after its length, four bytes, the highest first."""

from __future__ import annotations

from hustings.net.keys import ID
from hustings.net.limits import Reason
from hustings.net.wire import CLEAR, HEADER, MAGIC, SEALED, SIGNED, VERSION, Wire, group_tag

PREFIX = 4
HEAD = HEADER + ID  # bytes of a frame that tell whether the rest of it is worth waiting for


def on_stream(frame: bytes) -> bytes:
    """A frame as a stream carries it.

    >>> on_stream(b"frame")
    b'\\x00\\x00\\x00\\x05frame'
    """
    return len(frame).to_bytes(PREFIX, "big") + frame


class Unstreamed:
    """Frames from a stream's bytes, however these are cut.

    Holds at most one frame that is not complete. Once a length is not allowed, nothing after it
    can be told apart: `broken` says why and the stream is to be closed. `most` may change from one
    frame to the next. Whoever reads no more than `missing` bytes at a time gets each frame by
    itself, and its first bytes as `head` before the others.

    >>> stream = Unstreamed(most=100)
    >>> stream.feed(b"\\x00\\x00\\x00\\x02ab\\x00\\x00"), stream.feed(b"\\x00\\x01c")
    ([b'ab'], [b'c'])
    >>> stream.feed(b"\\xff\\xff\\xff\\xffabc"), stream.broken.value
    ([], 'too-large')
    """

    __slots__ = ("_rest", "broken", "most")

    def __init__(self, most: int) -> None:
        self.most = most
        self._rest = bytearray()
        self.broken: Reason | None = None

    @property
    def waiting(self) -> int:
        """Bytes of a frame that is not complete yet."""
        return len(self._rest)

    @property
    def missing(self) -> int:
        """Bytes until the length is known, then until the head is, then until the frame is."""
        got = len(self._rest)
        if got < PREFIX:
            return PREFIX - got
        whole = PREFIX + int.from_bytes(self._rest[:PREFIX], "big")
        return min(whole, PREFIX + HEAD) - got if got < PREFIX + HEAD else whole - got

    @property
    def head(self) -> bytes | None:
        """The first bytes of a frame, at the moment when they and no more are there."""
        return bytes(self._rest[PREFIX:]) if len(self._rest) == PREFIX + HEAD else None

    def drop(self) -> None:
        """Forget what has come of a frame that will not be complete."""
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The frames that are complete with these bytes."""
        if self.broken is not None:
            return []
        rest = self._rest
        rest += data
        frames: list[bytes] = []
        start = 0
        while len(rest) - start >= PREFIX:
            begin = start + PREFIX
            length = int.from_bytes(rest[start:begin], "big")
            if not 0 < length <= self.most:
                self.broken = Reason.TOO_LARGE if length else Reason.NOT_A_FRAME
                rest.clear()
                return frames
            if len(rest) - begin < length:
                break
            frames.append(bytes(rest[begin : begin + length]))
            start = begin + length
        del rest[:start]
        return frames

    def end(self) -> Reason | None:
        """The stream is over: whether that was in the middle of a frame."""
        if self.broken is None and self._rest:
            self.broken = Reason.TRUNCATED
            self._rest.clear()
            return self.broken
        return None


def refusal_of(head: bytes, wire: Wire) -> Reason | None:
    """What is wrong with a frame of which only the first bytes are there, if they show it.

    Whoever has no key can write these bytes too: they save a member from reading what was meant for
    another port, and prove nothing.
    """
    if head[: len(MAGIC)] != MAGIC:
        return Reason.NOT_A_FRAME
    if head[1] != VERSION:
        return Reason.UNKNOWN_VERSION
    if head[2] not in (CLEAR, SEALED, SIGNED):
        return Reason.UNKNOWN_MODE
    if head[3:HEADER] != group_tag(wire.group):
        return Reason.OTHER_GROUP
    if head[2] == CLEAR:
        return None if wire.ring is None else Reason.NOT_SEALED
    if wire.ring is None:
        return Reason.SEALED
    return None if head[HEADER:HEAD].hex() in wire.ring.ids else Reason.UNKNOWN_KEY

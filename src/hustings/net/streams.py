"""Frames on a stream: each after its length, four bytes, the highest first."""

from __future__ import annotations

from hustings.net.limits import Reason

PREFIX = 4


def on_stream(frame: bytes) -> bytes:
    """A frame as a stream carries it.

    >>> on_stream(b"frame")
    b'\\x00\\x00\\x00\\x05frame'
    """
    return len(frame).to_bytes(PREFIX, "big") + frame


class Unstreamed:
    """Frames from a stream's bytes, however these are cut.

    Holds at most one frame that is not complete. Once a length is not allowed, nothing after it
    can be told apart: `broken` says why and the stream is to be closed.

    >>> stream = Unstreamed(most=100)
    >>> stream.feed(b"\\x00\\x00\\x00\\x02ab\\x00\\x00"), stream.feed(b"\\x00\\x01c")
    ([b'ab'], [b'c'])
    >>> stream.feed(b"\\xff\\xff\\xff\\xffabc"), stream.broken.value
    ([], 'too-large')
    """

    __slots__ = ("_most", "_rest", "broken")

    def __init__(self, most: int) -> None:
        self._most = most
        self._rest = bytearray()
        self.broken: Reason | None = None

    @property
    def waiting(self) -> int:
        """Bytes of a frame that is not complete yet."""
        return len(self._rest)

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
            if not 0 < length <= self._most:
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
            self.broken = Reason.CUT_SHORT
            self._rest.clear()
            return self.broken
        return None

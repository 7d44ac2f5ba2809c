"""Traces: what happened in one run, one JSON value a line, and a digest of everything.

The first line is a `Header`. The last is a `Footer` with the number of records and the digest of
everything before it, so a reader notices a file that was cut short or edited. Tracing must not slow
a run down much: a record is an array of its name and its fields, `["recv", 1.0, 5, 17]`; frequent
records are written as plain tuples; and records are encoded in batches. `trace_read` reads a file
back.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from hustings.core.choice import MemberId
from hustings.core.messages import Message
from hustings.core.outcome import Outcome

VERSION = 1
_BATCH = 384  # fewer than would start the garbage collector

_M = TypeVar("_M")  # a message: a `Message` when written, a plain list when read back


class _Line(msgspec.Struct, frozen=True, tag_field="e", forbid_unknown_fields=True, gc=False):
    """A line of a trace; `gc=False` is sound because it holds only values."""


class _Record(
    msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True, gc=False
):
    """A record: an array of its name and its fields in the order below, short for speed."""


class Header(_Line, frozen=True, tag="hustings-trace", kw_only=True):
    """What was run."""

    version: int = VERSION
    protocol: str
    members: list[MemberId]
    seed: int
    settings: dict[str, Any] = {}


class Sent(_Record, Generic[_M], frozen=True, tag="send"):
    """Member `m` sent message number `n` to one member, or (None) to the group."""

    t: float
    m: MemberId
    n: int
    to: MemberId | None
    msg: _M


class Received(_Record, frozen=True, tag="recv"):
    """Message number `n` reached member `m`."""

    t: float
    m: MemberId
    n: int


class Heard(_Record, frozen=True, tag="heard"):
    """Message number `n`, a multicast, reached these members at once, in this order.

    It stands for one `Received` per member, and a reader expands it to these. One line for a
    multicast keeps tracing cheap in large groups.
    """

    t: float
    n: int
    ms: list[MemberId]


class Missed(_Record, frozen=True, tag="missed"):
    """Message number `n`, a multicast, did not reach these members: one `Lost` for each."""

    t: float
    n: int
    ms: list[MemberId]
    why: str


class Lost(_Record, frozen=True, tag="lost"):
    """Message number `n` did not reach `to` (None: any member), and why."""

    t: float
    n: int
    to: MemberId | None
    why: str


class Fired(_Record, frozen=True, tag="timer"):
    """A timer of member `m` expired."""

    t: float
    m: MemberId
    key: str


class Declared(_Record, frozen=True, tag="declare"):
    """Member `m` declared an outcome."""

    t: float
    m: MemberId
    outcome: Outcome


class Told(_Record, frozen=True, tag="told"):
    """Member `m` was told something from outside: call, suspect, alive, leave."""

    t: float
    m: MemberId
    what: str
    about: MemberId | None = None


class Changed(_Record, frozen=True, tag="status"):
    """Member `m` came up, crashed, paused, left."""

    t: float
    m: MemberId
    status: str
    incarnation: int


class Linked(_Record, frozen=True, tag="links"):
    """Links were cut or healed: the sides, or (one-way) which members could not reach which."""

    t: float
    what: str
    name: str
    sides: tuple[tuple[MemberId, ...], ...] = ()


class Footer(_Line, frozen=True, tag="end", kw_only=True):
    """How the run ended, and the digest that seals the file."""

    t: float
    ended: str
    records: int
    digest: str


Record = (
    Sent[Message] | Received | Heard | Missed | Lost | Fired | Declared | Told | Changed | Linked
)

_ENCODER = msgspec.json.Encoder()


def new_digest() -> blake2b:
    """The running digest of an empty trace."""
    return blake2b(digest_size=16)


def seal(digest: blake2b, footer: Footer) -> str:
    """The digest in the footer: over all lines before the footer, and its own other fields."""
    whole = digest.copy()
    whole.update(_ENCODER.encode(msgspec.structs.replace(footer, digest="")))
    return whole.hexdigest()


class Sink(Protocol):
    """Where a trace goes: a binary file, or anything else that takes bytes."""

    def write(self, data: bytes, /) -> object:
        """Take all of `data`."""


class Tracer:
    """Collects records, encodes them in batches, digests them, and writes them where asked."""

    __slots__ = ("_digest", "_out", "_records", "add", "count", "number")

    def __init__(self, header: Header, out: Sink | None = None) -> None:
        self._records: list[Record | tuple[object, ...]] = []
        self._digest = new_digest()
        self._out = out
        self.count = 0
        self.number = 0  # messages sent so far
        self._write(_ENCODER.encode(header) + b"\n")
        self.add = self._records.append

    # The frequent records. Each method writes the tuple of the struct that its docstring names.

    def received(self, t: float, m: MemberId, number: int) -> None:
        """`Received`."""
        self.add(("recv", t, m, number))

    def spread(self, t: float, number: int, heard: list[MemberId], missed: list[MemberId]) -> None:
        """`Heard`, and `Missed` for the members that lost it."""
        if heard:
            self.add(("heard", t, number, heard))
        if missed:
            self.add(("missed", t, number, missed, "loss"))

    def lost(self, t: float, number: int, to: MemberId | None, why: str) -> None:
        """`Lost`."""
        self.add(("lost", t, number, to, why))

    def fired(self, t: float, m: MemberId, key: str) -> None:
        """`Fired`."""
        self.add(("timer", t, m, key))

    def breathe(self) -> None:
        """Encode the collected records if there are many."""
        if len(self._records) >= _BATCH:
            self._flush()

    def close(self, t: float, ended: str) -> str:
        """Write the footer and return the digest."""
        self._flush()
        # float: a caller's time may be an int, and the reader would write it back as another text.
        footer = Footer(t=float(t), ended=ended, records=self.count, digest="")
        footer = msgspec.structs.replace(footer, digest=seal(self._digest, footer))
        if self._out is not None:
            self._out.write(_ENCODER.encode(footer) + b"\n")
        return footer.digest

    def _flush(self) -> None:
        self.count += len(self._records)
        self._write(_ENCODER.encode_lines(self._records))
        self._records.clear()

    def _write(self, data: bytes) -> None:
        self._digest.update(data)
        if self._out is not None:
            self._out.write(data)

"""Reading a trace back: a `Trace`, or one sentence that says why the file cannot be read.

A trace may come from anywhere. So it is read line by line within stated bounds, every record is
checked against the header and the records before it, and the seal is checked at the end. Code that
draws a `Trace` can then rely on three facts: times do not run backwards, every member is in the
header, and every message was sent before it arrived.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import msgspec

from hustings.core.errors import BadInput
from hustings.sim.files import reason, shown
from hustings.sim.member import Status
from hustings.sim.trace import (
    VERSION,
    Changed,
    Declared,
    Fired,
    Footer,
    Header,
    Heard,
    Linked,
    Lost,
    Missed,
    Received,
    Sent,
    Told,
    new_digest,
    seal,
)

MAX_LINE = 16 * 2**20  # bytes; the header of a million members takes half of it
MAX_RECORDS = 2_000_000
MAX_BYTES = 256 * 2**20

_MAGIC = Header.__struct_config__.tag
_STATUSES = frozenset(status.value for status in Status if status is not Status.OUT)
_COMPRESSED = {b"\x1f\x8b": "gzip", b"PK": "zip", b"BZh": "bzip2", b"\xfd7zXZ": "xz"}
_QUOTED = 120  # characters of a broken file that may appear in a sentence

Said = list[Any]  # a message read back: its kind, then its fields
Event = Sent[Said] | Received | Lost | Fired | Declared | Told | Changed | Linked


class _Stamp(msgspec.Struct, frozen=True):
    """What the header of every version has."""

    e: str
    version: int


_STAMP = msgspec.json.Decoder(_Stamp)
_HEADER = msgspec.json.Decoder(Header)
_RECORD: msgspec.json.Decoder[Event | Heard | Missed] = msgspec.json.Decoder(Event | Heard | Missed)
_FOOTER = msgspec.json.Decoder(Footer)
_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


@dataclass(frozen=True, slots=True)
class Trace:
    """One run as its trace tells it."""

    header: Header
    events: list[Event]
    footer: Footer


def kind(sent: Sent[Said]) -> str:
    """The kind of a message read back: `ELECTION`, `OK`, ..."""
    return str(sent.msg[0])


def read_trace(path: str | Path) -> Trace:
    """A whole trace from a file."""
    with _opened(path) as stream:
        return read_stream(stream, shown(path))


def read_stream(stream: IO[bytes], name: str = "the trace") -> Trace:
    """A whole trace from an open binary stream; `name` names the stream in error sentences."""
    reader = TraceReader(stream, name)
    events = list(reader)
    return Trace(reader.header, events, reader.footer)


def verify(path: str | Path) -> Footer:
    """Check a trace of any length without keeping it, and return its footer."""
    with _opened(path) as stream:
        reader = TraceReader(stream, shown(path), max_records=None, max_bytes=None)
        for _ in reader:
            pass
        return reader.footer


def _opened(path: str | Path) -> IO[bytes]:
    try:
        return open(path, "rb")
    except FileNotFoundError:
        raise BadInput(f"there is no file {shown(path)}") from None
    except IsADirectoryError:
        raise BadInput(f"{shown(path)} is a directory, not a trace") from None
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot read {shown(path)}: {reason(error)}") from None


class TraceReader:
    """Reads the header at once and yields the records; `footer` is set after the last record."""

    def __init__(
        self,
        stream: IO[bytes],
        name: str,
        *,
        max_records: int | None = MAX_RECORDS,
        max_bytes: int | None = MAX_BYTES,
    ) -> None:
        self._stream = stream
        self._name = name
        self._max_records = max_records
        self._max_bytes = max_bytes
        self._digest = new_digest()
        self._line = 0  # number of the line read last
        self._bytes = 0
        self._records = 0  # lines between header and footer
        self._events = 0  # the events that these stand for
        self._sent = 0  # number of the message sent last
        self._now = 0.0
        self.footer: Footer
        self.header = self._read_header()
        self._members = frozenset(self.header.members)
        if len(self._members) < max(1, len(self.header.members)):
            raise self._bad("the header names no member, or one twice")
        if not -(2**63) <= min(self._members) <= max(self._members) < 2**63:
            raise self._bad("a member's id does not fit into 64 bits")

    def __iter__(self) -> Iterator[Event]:
        while line := self._read_line():
            item = self._decode(line)
            if isinstance(item, Footer):
                self._close(item)
                return
            self._digest.update(line)
            self._records += 1
            for event in _single(item):
                self._check(event)
                yield event
        raise BadInput(
            f"{self._name} is cut short: it ends after line {self._line}, without a footer"
        )

    # Lines

    def _read_line(self) -> bytes:
        try:
            line = self._stream.readline(MAX_LINE + 1)
        except (OSError, EOFError) as error:
            why = reason(error) if isinstance(error, OSError) else str(error)
            raise BadInput(f"cannot read {self._name}: {why}") from None
        if not line:
            return line
        self._line += 1
        self._bytes += len(line)
        if len(line) > MAX_LINE:
            if self._line == 1:
                raise self._foreign(f"its first line is longer than {MAX_LINE:,} bytes")
            raise self._bad(f"the line is longer than {MAX_LINE:,} bytes")
        if self._max_bytes is not None and self._bytes > self._max_bytes:
            raise BadInput(f"{self._name} is longer than {self._max_bytes:,} bytes, the limit")
        return line

    def _read_header(self) -> Header:
        line = self._read_line()
        if not line:
            raise self._foreign("it is empty")
        for magic, format_ in _COMPRESSED.items():
            if line.startswith(magic):
                raise self._foreign(f"it looks like {format_} data, which must be unpacked first")
        try:
            stamp = _STAMP.decode(line)
        except UnicodeDecodeError:
            raise self._foreign("it is not UTF-8 text") from None
        except _BROKEN:
            raise self._foreign("its first line is no trace header") from None
        if stamp.e != _MAGIC:
            raise self._foreign("its first line is no trace header")
        if stamp.version != VERSION:
            raise BadInput(
                f"{self._name} is a trace of version {stamp.version}; "
                f"this hustings reads version {VERSION}"
            )
        try:
            header = _HEADER.decode(line)
        except _BROKEN as error:
            raise self._bad(f"the header is broken: {_told(error)}") from None
        self._digest.update(line)
        return header

    def _decode(self, line: bytes) -> Event | Heard | Missed | Footer:
        try:
            return _FOOTER.decode(line) if line.startswith(b"{") else _RECORD.decode(line)
        except _BROKEN as error:
            if not line.endswith(b"\n"):
                raise BadInput(
                    f"{self._name} is cut short: line {self._line}, its last, breaks off"
                ) from None
            if isinstance(error, UnicodeDecodeError):
                raise self._bad("the line is not UTF-8 text") from None
            raise self._bad(f"no trace record: {_told(error)}") from None

    # Checks that need more than one line

    def _check(self, event: Event) -> None:
        self._events += 1
        if self._max_records is not None and self._events > self._max_records:
            raise BadInput(f"{self._name} has more than {self._max_records:,} records, the limit")
        self._check_time(event.t)
        if isinstance(event, Sent):
            self._check_sent(event)
        elif isinstance(event, (Received, Lost)):
            if not 1 <= event.n <= self._sent:
                raise self._bad(f"message {_cut(event.n)} was not sent before")
            self._check_member(event.to if isinstance(event, Lost) else event.m)
        elif isinstance(event, Linked):
            for side in event.sides:
                for member in side:
                    self._check_member(member)
        else:
            self._check_member(event.m)
            if isinstance(event, Changed) and event.status not in _STATUSES:
                raise self._bad(f"there is no status {_cut(event.status)}")

    def _check_sent(self, event: Sent[Said]) -> None:
        if event.n != self._sent + 1:
            raise self._bad(f"message {self._sent + 1} is expected, not {_cut(event.n)}")
        self._sent = event.n
        self._check_member(event.m)
        self._check_member(event.to)
        if not event.msg or not isinstance(event.msg[0], str):
            raise self._bad("a message must begin with its kind")

    def _check_time(self, t: float) -> None:
        if t < self._now:
            raise self._bad(f"time runs backwards, from {self._now:g} to {t:g}")
        self._now = t

    def _check_member(self, member: int | None) -> None:
        if member is not None and member not in self._members:
            raise self._bad(f"the header names no member {_cut(member)}")

    def _close(self, footer: Footer) -> None:
        self._check_time(footer.t)
        at = self._line
        if self._read_line():
            raise BadInput(f"{self._name} goes on after its footer in line {at}")
        if footer.records != self._records:
            raise BadInput(
                f"{self._name} has {self._records} records where its footer, "
                f"line {at}, counts {_cut(footer.records)}: some are missing or were added"
            )
        if footer.digest != seal(self._digest, footer):
            raise BadInput(
                f"{self._name} was changed after it was written: "
                f"the digest in its footer, line {at}, does not match"
            )
        self.footer = footer

    def _bad(self, why: str) -> BadInput:
        return BadInput(f"{self._name}, line {self._line}: {why}")

    def _foreign(self, why: str) -> BadInput:
        return BadInput(f"{self._name} is not a hustings trace: {why}")


def _single(item: Event | Heard | Missed) -> Iterator[Event]:
    """The single records that a record about several members stands for."""
    if isinstance(item, Heard):
        for member in item.ms:
            yield Received(item.t, member, item.n)
    elif isinstance(item, Missed):
        for member in item.ms:
            yield Lost(item.t, item.n, member, item.why)
    else:
        yield item


def _told(error: Exception) -> str:
    """A decoder's complaint; it may quote the file, so it is made safe to print."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return _safe(str(error))


def _cut(value: object) -> str:
    return _safe(repr(value))


def _safe(text: str) -> str:
    clean = "".join(char if char.isprintable() else "?" for char in text[:_QUOTED])
    return clean + "..." if len(text) > _QUOTED else clean

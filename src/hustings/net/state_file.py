"""What a member must not forget: its incarnation, and what its election persisted.

    hustings-state 1 CHECKSUM LENGTH
    (a msgpack of group, member, incarnation and fields)

A promise that was sent and then forgotten is a broken promise. So nothing here is repaired, guessed
or created anew by itself: a file that is not exactly what was written is refused with a sentence.
Each opening begins a new incarnation, which is on disk before it begins.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from hustings.core.choice import MemberId
from hustings.core.digests import blake2b
from hustings.core.errors import BadInput, ProtocolBug
from hustings.core.messages import TOKEN_PACE
from hustings.net.files import read_whole, replace, shown, why
from hustings.net.fork import keep_from_children
from hustings.net.storage import MAX_INCARNATION, NotPersisted
from hustings.net.validation import bounds

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = 1
LARGEST = 1024 * 1024  # bytes of a file
DEEPEST = 16  # nested values
_COUNTED = {"term": 1, "epoch": 1, "sequence": 1, "token": TOKEN_PACE}  # how fast each can grow

_HEAD = re.compile(rb"hustings-state ([0-9]{1,9}) ([0-9a-f]{32}) ([0-9]{1,9})\n")
_BEGIN = re.compile(rb"hustings-state ([0-9]{1,9}) ")


class _State(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    group: str
    member: MemberId
    incarnation: int
    fields: dict[str, Any]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_State)


class StateFile:
    """One member's state file, locked while it is open.

    The lock is a file beside the state file, which is replaced with every write. The lock ends with
    the process, in whatever way the process ends.
    """

    def __init__(self, path: str | Path, group: str, member: MemberId, *, first: int = 1) -> None:
        """Open or create the file as the next incarnation; `first` is that of a new file.

        On a network `first` comes from `incarnation_by_clock`. So a member whose file was deleted
        is not taken for one of its former incarnations.
        """
        self._what = f"state file {shown(path)}"
        try:
            self._path = os.path.realpath(path)  # a link that changes later has no effect
        except (OSError, ValueError) as error:
            raise BadInput(f"cannot open {self._what}: {why(error)}") from None
        self._lock = self._locked()
        keep_from_children(self, _lock_of)  # it would hold the lock when this process has ended
        try:
            before = self._read(group, member)
            life = first if before is None else before.incarnation + 1
            if not 1 <= life <= MAX_INCARNATION:
                raise BadInput(f"{self._what} cannot count another life after {life - 1}")
            self._state = _State(group, member, life, {} if before is None else before.fields)
            self._written: bytes | None = None
            self._write(self._state)
        except NotPersisted as error:
            self.close()
            raise BadInput(str(error)) from None
        except BaseException:
            self.close()
            raise

    @property
    def incarnation(self) -> int:
        """The number of the present incarnation."""
        return self._state.incarnation

    @property
    def stored(self) -> Mapping[str, object]:
        """All fields, as the last successful write left them; sequences are tuples."""
        return MappingProxyType(self._state.fields)

    def persist(self, fields: Mapping[str, object]) -> None:
        """Store fields beside the others; when this returns, they survive a crash.

        Raises `NotPersisted` if they may not survive. Fields that are stored already cost nothing.
        """
        fresh = {name: _plain(value, name, DEEPEST) for name, value in fields.items()}
        state = self._state
        self._write(_State(state.group, state.member, state.incarnation, {**state.fields, **fresh}))

    def close(self) -> None:
        """Close and unlock the file; a second call does nothing."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, state: _State) -> None:
        if self._lock is None:
            raise ProtocolBug(f"{self._what} was written to after it was closed")
        data = _encode(state)
        if len(data) > LARGEST:
            raise ProtocolBug(f"{len(data)} bytes of state are more than {LARGEST}")
        if data != self._written:
            self._written = None  # if this fails, the disk may have either content
            try:
                replace(self._path, data)
            except OSError as error:
                raise NotPersisted(f"cannot write {self._what}: {why(error)}") from None
            self._written = data
        self._state = state

    def _locked(self) -> int | None:
        path = self._path + ".lock"
        try:
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            raise BadInput(
                f"cannot open {self._what}: its folder does not exist; create it first"
            ) from None
        except (OSError, ValueError) as error:
            raise BadInput(f"cannot open {self._what}: {why(error)}") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(lock, 0)
            os.pwrite(lock, b"%d\n" % os.getpid(), 0)
        except BlockingIOError:
            holder = re.fullmatch(rb"([0-9]{1,10})\n", os.pread(lock, 16, 0))
            os.close(lock)
            who = f"process {int(holder[1])}" if holder else "another process"
            raise BadInput(
                f"{self._what} is in use by {who}: stop that one, or give this member its own file"
            ) from None
        except OSError as error:
            os.close(lock)
            raise BadInput(f"cannot lock {self._what}: {why(error)}") from None
        return lock

    def _read(self, group: str, member: MemberId) -> _State | None:
        try:
            data, _ = read_whole(self._path, LARGEST)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise BadInput(f"cannot read {self._what}: {why(error)}") from None
        state = self._decode(data)
        if state.group != group:
            raise BadInput(
                f"{self._what} belongs to group {state.group!r}, not {group!r}: give each group "
                "its own file"
            )
        if state.member != member:
            raise BadInput(
                f"{self._what} belongs to member {state.member}, not {member}: give each member "
                "its own file"
            )
        return state

    def _decode(self, data: bytes) -> _State:
        begin = _BEGIN.match(data)
        if begin is not None and int(begin[1]) > FORMAT:
            raise BadInput(
                f"{self._what} was written by a newer hustings (format {int(begin[1])}, and this "
                f"one reads up to {FORMAT}): upgrade this hustings, and do not delete the file"
            )
        head = _HEAD.match(data)
        if head is None or int(head[1]) != FORMAT:
            raise self._damaged("it does not begin as one" if data else "it is empty")
        body = data[head.end() :]
        if len(body) != int(head[3]):
            raise self._damaged(
                f"it has {len(body)} bytes after its first line and {int(head[3])} were written"
            )
        if _check(body) != head[2]:
            raise self._damaged("its checksum does not match")
        try:
            state = _decoder.decode(body)
            fields = {name: _plain(value, name, DEEPEST) for name, value in state.fields.items()}
        except (msgspec.DecodeError, ValueError, RecursionError, ProtocolBug):
            raise self._damaged("its content is not a state") from None
        return msgspec.structs.replace(state, fields=fields)

    def _damaged(self, how: str) -> BadInput:
        return BadInput(
            f"{self._what} is damaged ({how}) and what this member promised cannot be read: delete "
            "it, and start under a member id that the group has not seen; a voter of a quorum "
            "keeps its name, and asks the others before it votes again"
        )


def refuse_absurd(stored: Mapping[str, object], path: str, date: float) -> None:
    """Refuse numbers that the member took from a liar, or stored while its date was wrong.

    Other members refuse a term that no group can have reached.
    """
    for name, per_ms in _COUNTED.items():
        value = stored.get(name)
        if isinstance(value, int) and value > bounds(date, per_ms).end:
            raise BadInput(
                f"state file {shown(path)} holds {name} {value}, which no group can have reached "
                "by now: another member lied to this one, or this machine's date is wrong. Set the "
                "date; if it is right, move the file away and start the member again: it learns "
                "the group's number from the others. If all members say this, stop all of them "
                "first and move all of these files away (guide, Security: after an attack)"
            )


def _encode(state: _State) -> bytes:
    try:
        body = _encoder.encode(state)
    except (msgspec.EncodeError, ValueError, OverflowError) as error:
        raise ProtocolBug(f"state cannot be written: {error}") from None
    return b"hustings-state %d %s %d\n" % (FORMAT, _check(body), len(body)) + body


def _check(body: bytes) -> bytes:
    return blake2b(body, digest_size=16, person=b"hustings state").hexdigest().encode()


def _plain(value: object, name: str, depth: int) -> object:
    """A value as it will be read back: numbers, texts, bytes, and tuples and mappings of these."""
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    if depth > 0 and isinstance(value, tuple | list):
        return tuple(_plain(each, name, depth - 1) for each in value)
    if depth > 0 and isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {str(key): _plain(each, name, depth - 1) for key, each in value.items()}
    raise ProtocolBug(f"{name} cannot be persisted: {type(value).__name__} is not a plain value")


def _lock_of(file: StateFile) -> int:
    return -1 if file._lock is None else file._lock

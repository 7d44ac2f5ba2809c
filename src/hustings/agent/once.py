"""Work that a group does once: `hustings run --once`.

    the command ends with 0, and nothing had asked it to end
        -> its supervisor writes the success into a file, or the member writes it to the engine
        -> the member tells the group, and leaves with 0 when the others know it
        -> the others leave with 0, too

Law: no member starts the command when it knows of a success, and each looks before each start.

The group's name names the work. What was done is kept in up to three places:

- **The members** have an attribute with the time of the success. It reaches every member of the
  group, on all machines, and newcomers as long as one member is there.
- **A file beside the user's local key**, without a guard and with `quorum://`. The supervisor
  writes it before the lock on the command is free. So the success counts even if the member has
  been killed meanwhile. Each member that hears of the success writes the file of its own machine.
- **The guard's engine**, if there is one, beside the lease and for good.

This is "at least once": if a member dies after its command has ended and before the success is in
the engine, or has reached another machine, the command runs again there. No protocol can know
whether a process that is gone had finished. The command must bear a second run.
"""

from __future__ import annotations

import asyncio
import os
import time
from calendar import timegm
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from hustings.agent.clearance import file_beside_key
from hustings.agent.logs import EventLog
from hustings.core.choice import MemberId
from hustings.core.digests import blake2b
from hustings.core.errors import BadInput, HustingsError, printable
from hustings.net.files import OWNER_ONLY, read_whole, shown, why

if TYPE_CHECKING:
    from hustings.net.member import SuccessEngine

ONCE_MARK = "~once"  # a member's attribute: when the work was done, in seconds; 0: not yet
LOOK_S = 0.1  # seconds between two looks at what the others say
CONFIRM_S = 0.02  # the same, while a member waits for the others to hear of a success
TELL_S = 5.0  # seconds that the others have to hear of it
AGAIN_S = 1.0  # seconds before an engine that did not answer is asked again
LONGEST = 200  # bytes of a record
FORMAT = "%Y-%m-%dT%H:%M:%SZ"  # of its time, also in `supervisor.py`
_LATEST = 253_402_300_799.0  # the end of the year 9999, which dates cannot exceed


def moment(seconds: float) -> str:
    """A time as a record has it.

    >>> moment(0.0), moment(1e300)
    ('1970-01-01T00:00:00Z', '9999-12-31T23:59:59Z')
    """
    return time.strftime(FORMAT, time.gmtime(min(seconds, _LATEST)))


def _time_of(record: str) -> float:
    """The time with which a record begins, or now if it begins with something else."""
    try:
        return max(float(timegm(time.strptime(record[:20], FORMAT))), 1.0)
    except ValueError:
        return time.time()


class SuccessFile:
    """What this machine remembers: one line, or nothing yet."""

    def __init__(self, path: str) -> None:
        self.path = path

    def read(self) -> str:
        """The record; empty if there is none."""
        try:
            data, _ = read_whole(self.path, LONGEST)
        except FileNotFoundError:
            return ""
        except (OSError, ValueError) as error:
            raise BadInput(f"cannot read {shown(self.path)}: {why(error)}") from None
        lines = data[:LONGEST].lstrip(b"\n")
        return printable(lines.decode(errors="replace").partition("\n")[0])

    def open(self) -> int:
        """A descriptor that a record can be written to.

        A file without a record gets an empty line. So a full disk is noticed before the work is
        done, and the block that the record needs is there.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = -1
        try:
            descriptor = os.open(self.path, flags, OWNER_ONLY)
            if not os.fstat(descriptor).st_size:
                self._put(descriptor, b"\n")
        except (OSError, ValueError) as error:
            if descriptor >= 0:
                os.close(descriptor)
            raise self._refusal(error) from None
        return descriptor

    def write(self, record: str) -> None:
        """Keep a record, unless there is one."""
        if self.read():
            return
        descriptor = self.open()
        try:
            self._put(descriptor, record.encode()[: LONGEST - 1] + b"\n")
        except OSError as error:
            raise self._refusal(error) from None
        finally:
            os.close(descriptor)

    @staticmethod
    def _put(descriptor: int, line: bytes) -> None:
        os.write(descriptor, line)
        os.fsync(descriptor)

    def _refusal(self, error: OSError | ValueError) -> BadInput:
        return BadInput(f"cannot keep a success in {shown(self.path)}: {why(error)}")


def success_file(group: str, key: str) -> SuccessFile:
    """The file of a group; `key` tells the group from others of the same name."""
    label = f"{group}\n{key}".encode()
    digest = blake2b(label, digest_size=8, person=b"hustings once").hexdigest()
    return SuccessFile(file_beside_key(f"once-{digest}.done", "keep a success in"))


class Once:
    """What one member knows of the group's work, and what it does about it."""

    def __init__(self, file: SuccessFile | None, log: EventLog) -> None:
        """`file`: None where the guard's engine keeps the success."""
        self.known = ""  # the success that this member knows of
        self.is_recorded = False  # where it outlives the members
        self.file = file
        self._log = log
        self._at = 0.0
        self._member: OnceMember | None = None
        self._has_finished = False
        self._hurried = False

    def attend(self, member: OnceMember) -> None:
        """Set the member, once it has joined; `BadInput` if its group cannot do work once."""
        if member.seats != 1:
            raise BadInput("--once needs a protocol with one leader: several would do the work")
        if member.engine is not None and not member.engine.keeps_words:
            raise BadInput("--once needs a guard that can keep a success, and this one cannot")
        self._member = member

    # What is known

    def look(self) -> bool:
        """Whether this machine's file or another member knows of a success."""
        if not self.known and self.file is not None and (record := self.file.read()):
            self._learn(record, _time_of(record))
        if not self.known and self._member is not None:
            for peer in self._member.members():
                at = self._member.marks_of(peer.id).get(ONCE_MARK, 0.0)
                if at > 0 and not peer.me:
                    self._learn(f"{moment(at)}, as {peer.name} says", at)
                    break
        return bool(self.known)

    @property
    def remedy(self) -> str:
        """How the work can be done again, in words."""
        again = "" if self.file is None else f"remove {shown(self.file.path)}, or "
        return f"to do it again, {again}give the group another name"

    async def ask(self) -> bool:
        """The same, and the guard's engine is asked until it answers."""
        told = False
        while not self.look() and (engine := self._engine) is not None:
            try:
                if record := await engine.success():
                    self._learn(printable(record[:LONGEST]), _time_of(record))
                    self.is_recorded = True
                break
            except BadInput:
                raise
            except HustingsError as error:
                if not told:
                    told = True
                    said = f"waits: whether the work is done is not known: {error}"
                    self._log.warning("once-unknown", said)
                await asyncio.sleep(AGAIN_S)
        return bool(self.known)

    async def heard(self) -> None:
        """Wait until another member, or the machine's file, tells of a success."""
        while not self.look():
            await asyncio.sleep(LOOK_S)

    def succeeded(self, name: str) -> None:
        """The command of this member has succeeded."""
        record = "" if self.file is None else self.file.read()  # as the supervisor wrote it
        record = record or f"{moment(time.time())} by {name}"
        self._learn(record, _time_of(record))

    def _learn(self, record: str, at: float) -> None:
        if not self.known:
            self.known, self._at = record, at

    @property
    def _engine(self) -> SuccessEngine | None:
        return None if self._member is None else self._member.engine

    # What follows

    def open_file(self) -> int | None:
        """A descriptor with which the command's supervisor can keep the success."""
        return None if self.file is None else self.file.open()

    async def finish(self) -> None:
        """Record the success, and wait until the others know of it. A second call does nothing."""
        if self._has_finished or self._member is None:
            return
        self._write()
        self._member.mark(ONCE_MARK, self._at)
        await self._record()
        await self._confirm(self._member)
        self._has_finished = True

    def hurry(self) -> None:
        """Give up on an engine that does not answer."""
        self._hurried = True

    def _write(self) -> None:
        if self.file is None:
            return
        try:
            self.file.write(self.known)
        except BadInput as error:
            said = f"the success is not kept on this machine, only by the members: {error}"
            self._log.warning("once-unrecorded", said)
        self.is_recorded = True

    async def _record(self) -> None:
        told = False
        while not self.is_recorded and (engine := self._engine) is not None:
            try:
                if not await engine.success():
                    await engine.record(self.known)
                self.is_recorded = True
            except HustingsError as error:
                if not told:
                    told = True
                    said = f"the work is done, and its success is not recorded yet: {error}"
                    self._log.warning("once-unrecorded", said)
                if self._hurried:
                    return
                await asyncio.sleep(AGAIN_S)

    async def _confirm(self, member: OnceMember) -> None:
        """Wait until all members that are here for the same work know that it is done."""
        until = time.monotonic() + TELL_S
        while waits := [
            peer.name
            for peer in member.members()
            if not peer.me and member.marks_of(peer.id).get(ONCE_MARK) == 0.0
        ]:
            if time.monotonic() >= until:
                names = ", ".join(waits[:8])
                said = f"did not hear that {names} know of the success: they may do the work again"
                self._log.warning("once-untold", said)
                return
            await asyncio.sleep(CONFIRM_S)


def once_for(joining: OnceJoining, log: EventLog) -> Once:
    """What a member that is about to join knows; the others see that it is here for the work."""
    key = joining.record_key
    once = Once(None if key is None else success_file(joining.group, key), log)
    joining.mark(ONCE_MARK, 0.0)
    return once


class OncePeer(Protocol):
    """A member of the group."""

    @property
    def id(self) -> MemberId: ...
    @property
    def name(self) -> str: ...
    @property
    def me(self) -> bool: ...


class OnceMember(Protocol):
    """The part of a member that is used here."""

    @property
    def seats(self) -> int: ...
    @property
    def engine(self) -> SuccessEngine | None: ...
    def members(self) -> Sequence[OncePeer]: ...
    def mark(self, name: str, value: float) -> None: ...
    def marks_of(self, member: MemberId) -> Mapping[str, float]: ...


class OnceJoining(Protocol):
    """A member that is about to join."""

    @property
    def group(self) -> str: ...
    @property
    def record_key(self) -> str | None: ...
    def mark(self, name: str, value: float) -> None: ...

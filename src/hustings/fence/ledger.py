"""The highest tokens seen, in a file that survives a crash and is shared between processes.

    hustings-tokens 1 CHECKSUM LENGTH
    {"jobs":7}

If the ledger forgot a token that had passed, an older token could pass after it. So a larger token
is on disk before any code acts on it. Nothing here is ever repaired or begun anew by itself: if the
file is gone, or is not exactly what was written, no token passes. The file is replaced as a whole,
under a lock that lies beside it. The folder must be on a file system of this machine: remote file
systems do not always keep locks.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path

import msgspec

from hustings.core.errors import BadInput
from hustings.fence.fence import LARGEST_TOKEN, FenceBroken, FenceBusy, admitted, checked

FORMAT = 1
LONGEST_NAME = 255
MOST_NAMES = 4096
LARGEST = 8 * 1024 * 1024  # bytes of a file
PATIENCE = 5.0  # seconds to wait for other processes, which need milliseconds

_HEAD = re.compile(rb"hustings-tokens ([0-9]{1,9}) ([0-9a-f]{32}) ([0-9]{1,9})\n")
_BEGUN = b"the tokens lie in the file beside this one\n"
_decoder = msgspec.json.Decoder(dict[str, int])


class Ledger:
    """One file of tokens, by the names of the things that they protect."""

    def __init__(self, path: str | Path, *, patience: float = PATIENCE) -> None:
        """Open the file, or create it if there never was one."""
        self._what = f"token file {_shown(path)}"
        self._patience = patience
        self._durable: dict[str, int] = {}  # tokens that this process knows to be on disk
        try:
            self._path = Path(os.path.realpath(path))
        except (OSError, ValueError) as error:
            raise BadInput(f"cannot open {self._what}: {_why(error)}") from None
        self._guard = self._path.with_name(self._path.name + ".lock")
        with self._locked() as lock:
            self._begin(lock)

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self._path

    def highest(self, name: str) -> int:
        """The highest token that passed under this name; 0 if none has passed."""
        return self._read().get(name, 0)

    def tokens(self) -> dict[str, int]:
        """The highest tokens of all names."""
        return self._read()

    def passes(self, name: str, token: int) -> bool:
        """Whether `token` is the highest and known to be on disk; `StaleToken` if it is smaller.

        One read and no lock. False means that `admit` is needed.
        """
        checked(token)
        highest = self.highest(name)
        admitted(token, highest)
        return token == highest == self._durable.get(name)

    def admit(self, name: str, token: int) -> None:
        """Let `token` pass, and no smaller token later; `StaleToken` if a larger one has passed."""
        if not self.passes(name, token):
            with self.closed():
                self.raised(name, token)

    @contextmanager
    def closed(self) -> Iterator[None]:
        """For a short time, let no other thread or process raise a token."""
        with self._locked():
            yield

    def raised(self, name: str, token: int) -> None:
        """The same as `admit`, for a caller inside of `closed`."""
        if len(name) > LONGEST_NAME:
            raise BadInput(f"a name in a {self._what} has at most {LONGEST_NAME} characters")
        tokens = self._read()
        highest = tokens.get(name, 0)
        admitted(token, highest)
        if token > highest:
            if name not in tokens and len(tokens) >= MOST_NAMES:
                raise FenceBroken(f"{self._what} is full: it has room for {MOST_NAMES} names")
            self._write({**tokens, name: token})
        elif self._durable.get(name) != token:
            self._sync()  # the writer may have died between the rename and this call
        self._durable[name] = token

    def _begin(self, lock: int) -> None:
        begun = bool(os.fstat(lock).st_size)
        if not begun and not os.path.lexists(self._path):
            self._write({})
        self._read()
        if not begun:
            try:
                os.write(lock, _BEGUN)
                os.fsync(lock)
                sync_folder(self._guard.parent)
            except OSError as error:
                raise self._unwritable(error) from None

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Lock the file.

        It is opened anew each time, so that threads of one process exclude each other.
        """
        try:
            lock = os.open(self._guard, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            raise FenceBroken(
                f"cannot open {self._what}: its folder does not exist; create it first"
            ) from None
        except (OSError, ValueError) as error:
            raise FenceBroken(f"cannot open {self._what}: {_why(error)}") from None
        try:
            self._await(lock)
            try:
                yield lock
            finally:
                # closing does not release the lock if a fork holds it too
                fcntl.flock(lock, fcntl.LOCK_UN)
        finally:
            os.close(lock)

    def _await(self, lock: int) -> None:
        """Wait for the lock, with a limit: a process that holds the lock may have been stopped."""
        end = time.monotonic() + self._patience
        pause = 0.0005
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise FenceBusy(
                        f"{self._what} is locked by another process for more than "
                        f"{self._patience:g} s: see that none is stopped, and try again"
                    ) from None
                time.sleep(pause)
                pause = min(0.02, pause * 2)
            except OSError as error:
                raise FenceBroken(f"cannot lock {self._what}: {_why(error)}") from None
            else:
                return

    def _read(self) -> dict[str, int]:
        try:
            return self._decode(_read_whole(self._path))
        except FileNotFoundError:
            raise self._damaged("it is gone") from None
        except (OSError, ValueError) as error:
            raise FenceBroken(f"cannot read {self._what}: {_why(error)}") from None

    def _decode(self, data: bytes) -> dict[str, int]:
        head = _HEAD.match(data)
        if head is None:
            raise self._damaged("it does not begin as one" if data else "it is empty")
        if int(head[1]) > FORMAT:
            raise FenceBroken(
                f"{self._what} was written by a newer hustings (format {int(head[1])}, and this "
                f"one reads up to {FORMAT}): upgrade this hustings, and do not delete the file"
            )
        body = data[head.end() :]
        if int(head[1]) != FORMAT or len(body) != int(head[3]):
            raise self._damaged("it is not as long as it was written")
        if _check(body) != head[2]:
            raise self._damaged("its checksum does not match")
        try:
            tokens = _decoder.decode(body)
        except (msgspec.DecodeError, ValueError, RecursionError):
            raise self._damaged("its content is not a table of tokens") from None
        if not all(0 < token <= LARGEST_TOKEN for token in tokens.values()):
            raise self._damaged("it holds numbers that are no tokens")
        return tokens

    def _write(self, tokens: dict[str, int]) -> None:
        body = msgspec.json.encode(tokens)
        data = b"hustings-tokens %d %s %d\n" % (FORMAT, _check(body), len(body)) + body
        if len(data) > LARGEST:
            raise FenceBroken(f"{self._what} is full: it may have {LARGEST} bytes")
        part = self._path.with_name(self._path.name + ".new")
        try:
            _write_whole(part, data)
            os.replace(part, self._path)
        except OSError as error:
            with suppress(OSError):
                part.unlink()  # on a full disk the part takes room
            raise self._unwritable(error) from None
        self._sync()

    def _sync(self) -> None:
        try:
            sync_folder(self._path.parent)
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> FenceBroken:
        return FenceBroken(f"cannot write {self._what}: {_why(error)}")

    def _damaged(self, how: str) -> FenceBroken:
        return FenceBroken(
            f"{self._what} is damaged ({how}) and the highest token is not known: put back a copy "
            "of it that is as new as the last write, or delete it and its lock file and begin with "
            "tokens larger than all that were ever granted"
        )


def _check(body: bytes) -> bytes:
    return blake2b(body, digest_size=16, person=b"hustings tokens").hexdigest().encode()


def _shown(path: str | Path) -> str:
    text = os.fspath(path)
    return text if text.isprintable() and text else repr(text)


def _why(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _read_whole(path: Path) -> bytes:
    """Read the file.

    It is opened without waiting: a pipe under this name must not block the caller.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb", buffering=0) as stream:
        status = os.fstat(descriptor)
        if status.st_mode & 0o170000 != 0o100000:
            raise ValueError("it is not a regular file")
        if status.st_size > LARGEST:
            raise ValueError(f"it has more than {LARGEST} bytes")
        return stream.readall()


def _write_whole(path: Path, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make a folder's names survive a crash."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""Requests under way, by resource and token, so that a larger token can push smaller ones out.

Three things happen when a token arrives that is larger than all before:

1. The ledger is raised, on disk. From then on no smaller token enters.
2. Requests under way with smaller tokens are *overtaken*: they are marked, and woken so that they
   end. In other processes with the same ledger a watcher does this within `TICK` seconds.
3. The larger token waits until smaller ones have left the application, for at most `grace` seconds
   after it was first seen. Then it enters: a request that hangs blocks it no longer.

The order makes it safe. A request that enters first announces itself, and then looks at the ledger.
A request that raised the ledger looks afterwards which requests have entered. So each smaller token
was either seen or refused. Locks on files beside the ledger show which requests have entered. The
locks end with their process.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from hustings.fence.fence import FenceBroken, FenceBusy, Overtaken, StaleToken
from hustings.fence.ledger import Ledger

TICK = 0.02  # seconds until a process sees a token that another process raised
LINGER = 0.1  # seconds for which a watcher stays without requests
TRIES = 200  # to take a lock that other processes hold for microseconds

_log = logging.getLogger("hustings.fence")


class Request:
    """One request with a token, from its head to its end."""

    def __init__(self, name: str, token: int, wake: Callable[[], None]) -> None:
        self.name = name
        self.token = token
        self.wake = wake
        self.overtaken_by = 0  # the larger token, once there is one
        self.overtaken_at = 0.0
        self.entered = False  # the application has got the request
        self.present = False  # larger tokens wait for the request
        # the request was cancelled, and larger tokens wait for it until then
        self.lingers_until = 0.0

    def stale(self) -> StaleToken:
        """The error for the request once it is overtaken."""
        kind = Overtaken if self.entered else StaleToken
        return kind(self.token, self.overtaken_by)


class _Turn:
    """The highest token of one name, as far as this process knows."""

    def __init__(self, token: int) -> None:
        self.token = token
        self.since = time.monotonic()
        self.clear = False  # it waits for no smaller token any more


class InFlight:
    """All requests with tokens in this process, and a look at those of other processes."""

    def __init__(self, ledger: Ledger, grace: float) -> None:
        self._ledger = ledger
        self._grace = grace
        self._presence = Presence(ledger.path.with_name(ledger.path.name + ".inflight"))
        self._lock = threading.Lock()
        self._some = threading.Condition(self._lock)
        self._requests: dict[str, dict[Request, None]] = {}
        self._turns: dict[str, _Turn] = {}  # at most as many as the ledger has names
        self._watcher: threading.Thread | None = None

    def begin(self, name: str, token: int, wake: Callable[[], None]) -> Request:
        """Register a request whose head has arrived. `wake` is called when it is overtaken."""
        request = Request(name, token, wake)
        with self._lock:
            self._requests.setdefault(name, {})[request] = None
            if self._watcher is None or not self._watcher.is_alive():
                self._watcher = threading.Thread(
                    target=self._watch, name="hustings-fence", daemon=True
                )
                self._watcher.start()
            self._some.notify()
        return request

    def end(self, request: Request) -> None:
        """Note that the request has left the application, or never entered."""
        with self._lock:
            others = self._requests.get(request.name, {})
            others.pop(request, None)
            if not others:
                self._requests.pop(request.name, None)
        self._absent(request)

    def linger(self, request: Request) -> None:
        """Note that the request was cancelled; the application may have left its work to a thread.

        The fence cannot see such a thread. So larger tokens wait as if the request were still
        there.
        """
        with self._lock:
            present = request.present
            if present:
                since = request.overtaken_at if request.overtaken_by else time.monotonic()
                request.lingers_until = since + self._grace
        if not present:
            self.end(request)

    def is_admitted(self, request: Request) -> bool:
        """Whether the request's token is the highest, and on disk already; or `StaleToken`."""
        known = self._ledger.passes(request.name, request.token)
        if known:
            self.overtake(request.name, request.token)
        return known

    def admit(self, request: Request) -> None:
        """Raise the ledger to the request's token, and overtake smaller ones; or `StaleToken`."""
        self._ledger.admit(request.name, request.token)
        self.overtake(request.name, request.token)

    def overtake(self, name: str, highest: int) -> None:
        """Mark and wake the requests with smaller tokens than `highest`."""
        with self._lock:
            turn = self._turns.get(name)
            if turn is None or turn.token < highest:
                self._turns[name] = _Turn(highest)
            smaller = [
                each
                for each in self._requests.get(name, {})
                if each.token < highest and not each.overtaken_by
            ]
            for each in smaller:
                each.overtaken_at = time.monotonic()
                each.overtaken_by = highest
        for each in smaller:
            each.wake()

    def is_clear(self, request: Request) -> bool:
        """Whether no smaller token is at work any more, or those that are had their time."""
        turn = self._turns[request.name]
        if turn.clear or turn.token != request.token:  # if a larger token came, `enter` refuses
            return True
        if self._presence.is_smaller(request.name, request.token):
            if time.monotonic() < turn.since + self._grace:
                return False
            _log.warning(
                "token %d of %r enters beside requests with smaller ones, which have not left the "
                "application within %g s, or were cancelled and may have left work to a thread: "
                "what they still write only their store can refuse",
                request.token,
                request.name,
                self._grace,
            )
        turn.clear = True
        return True

    def enter(self, request: Request) -> None:
        """Announce that the request enters, and then compare once more; or `StaleToken`."""
        self._presence.hold(request.name, request.token)
        request.present = True
        self._ledger.admit(request.name, request.token)
        request.entered = True

    def compare(self, request: Request) -> None:
        """`Overtaken` if the request's token is below the highest at this moment, on disk."""
        highest = self._ledger.highest(request.name)
        if highest > request.token:
            self.overtake(request.name, highest)
        if request.overtaken_by:
            raise request.stale()

    def _watch(self) -> None:
        while True:
            with self._lock:
                if not self._requests and not self._some.wait(LINGER) and not self._requests:
                    self._watcher = None
                    return
                names = list(self._requests)
            # the next part that is sent, or the next request, finds out and is refused
            with suppress(FenceBroken):
                tokens = self._ledger.tokens()
                for name in names:
                    self.overtake(name, tokens.get(name, 0))
            self._abandon()
            time.sleep(TICK)

    def _abandon(self) -> None:
        """Stop announcing the requests that were overtaken or cancelled a grace ago."""
        now = time.monotonic()
        with self._lock:
            there = [each for requests in self._requests.values() for each in requests]
            over = [each for each in there if each.present and self._is_late(each, now)]
        for each in over:
            if each.lingers_until and not each.overtaken_by:
                self._absent(each)  # no larger token has waited for it
            self.abandon(each)
            if each.lingers_until:
                self.end(each)

    def _is_late(self, request: Request, now: float) -> bool:
        if request.lingers_until:
            return now > request.lingers_until
        return bool(request.overtaken_by) and now > request.overtaken_at + self._grace

    def abandon(self, request: Request) -> None:
        """Stop waiting for a request that was overtaken and does not leave the application."""
        if self._absent(request):
            _log.warning(
                "a request with token %d of %r was overtaken by %d and %s %g s later: nobody "
                "waits for it any more, and what it still writes only its store can refuse",
                request.token,
                request.name,
                request.overtaken_by,
                "cancelled; it may be at work in a thread"
                if request.lingers_until
                else "has not left the application",
                self._grace,
            )

    def _absent(self, request: Request) -> bool:
        with self._lock:
            present, request.present = request.present, False
        if present:
            self._presence.let_go(request.name, request.token)
        return present


class Presence:
    """Which tokens are at work, visible to all processes: a locked file for each token.

    The requests and processes of one token share a lock. It ends with their processes. The next
    larger token removes a file that is not locked.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        # file: (descriptor, number of requests that hold it)
        self._held: dict[str, tuple[int, int]] = {}
        self._make_folder()

    def hold(self, name: str, token: int) -> None:
        """Announce one more request with this token."""
        file = f"{_prefix(name)}.{token}"
        with self._lock:
            descriptor, count = self._held.get(file) or (self._locked(file), 0)
            self._held[file] = (descriptor, count + 1)

    def let_go(self, name: str, token: int) -> None:
        """Take back one announcement."""
        file = f"{_prefix(name)}.{token}"
        with self._lock:
            descriptor, count = self._held.pop(file)
            if count > 1:
                self._held[file] = (descriptor, count - 1)
                return
            # closing does not release the lock if a fork holds it too
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)

    def is_smaller(self, name: str, token: int) -> bool:
        """Whether any request with a smaller token is at work, here or elsewhere."""
        prefix = _prefix(name) + "."
        try:
            with os.scandir(self._folder) as entries:
                files = [each.name for each in entries if each.name.startswith(prefix)]
        except FileNotFoundError:
            return False
        except OSError as error:
            raise self._broken(error) from None
        tokens = {file: file.removeprefix(prefix) for file in files}
        smaller = [file for file, text in tokens.items() if text.isdigit() and int(text) < token]
        return any(self._is_held(file) for file in smaller)

    def _is_held(self, file: str) -> bool:
        path = self._folder / file
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise self._broken(error) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)
        except BlockingIOError:
            return True
        except OSError as error:
            raise self._broken(error) from None
        finally:
            os.close(descriptor)
        return False

    def _locked(self, file: str) -> int:
        path = self._folder / file
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
        for _ in range(TRIES):
            try:
                descriptor = os.open(path, flags, 0o600)
            except FileNotFoundError:
                self._make_folder()
                continue
            except OSError as error:
                raise self._broken(error) from None
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:  # another process checks whether the file is locked
                os.close(descriptor)
                time.sleep(0.001)
                continue
            if os.fstat(descriptor).st_nlink:
                return descriptor
            os.close(descriptor)  # another process removed it as a dead one's before it was locked
        raise FenceBusy(f"{path.name} in {self._folder.name} is locked by others: try again")

    def _make_folder(self) -> None:
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise self._broken(error) from None

    def _broken(self, error: OSError) -> FenceBroken:
        return FenceBroken(f"cannot use the folder {self._folder.name!r}: {error.strerror}")


def _prefix(name: str) -> str:
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

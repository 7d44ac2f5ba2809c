"""Requests under way, by resource and token, so that a larger token can push smaller ones out.

Three things happen when a token larger than all before arrives:

1. The ledger is raised, on disk. From then on no smaller one enters.
2. Smaller ones that are under way are *overtaken*: they are marked, and woken so that they end. In
   other processes with the same ledger a watcher does this within `TICK` seconds.
3. The larger one waits until smaller ones have left the application, for at most `grace` seconds
   after its token was first seen. Then it enters: one that hangs holds nobody up for longer.

The order makes it safe: whoever enters says so first and looks at the ledger then; whoever raised
the ledger looks afterwards who has entered. So each smaller one was either seen or refused. Who has
entered is told by locks on files beside the ledger, which end with their process.
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

TICK = 0.02  # seconds until a process sees a token that another one raised
LINGER = 0.1  # seconds for which a watcher without requests stays
TRIES = 200  # to take a lock that others hold for microseconds

_log = logging.getLogger("hustings.fence")


class Request:
    """One request with a token, from its head to its end."""

    def __init__(self, name: str, token: int, wake: Callable[[], None]) -> None:
        self.name = name
        self.token = token
        self.wake = wake
        self.overtaken_by = 0  # the larger token, once there is one
        self.overtaken_at = 0.0
        self.entered = False  # the application has got it
        self.present = False  # and larger ones wait for it
        self.lingers_until = 0.0  # it was cancelled, and is waited for until then

    def stale(self) -> StaleToken:
        """What is said to it once it is overtaken."""
        kind = Overtaken if self.entered else StaleToken
        return kind(self.token, self.overtaken_by)


class _Turn:
    """The highest token of one name, as far as this process knows."""

    def __init__(self, token: int) -> None:
        self.token = token
        self.since = time.monotonic()
        self.clear = False  # no smaller one is waited for any more


class InFlight:
    """All requests with tokens in this process, and a look at those of others."""

    def __init__(self, ledger: Ledger, grace: float) -> None:
        self._ledger = ledger
        self._grace = grace
        self._presence = Presence(ledger.path.with_name(ledger.path.name + ".inflight"))
        self._lock = threading.Lock()
        self._some = threading.Condition(self._lock)
        self._requests: dict[str, dict[Request, None]] = {}
        self._turns: dict[str, _Turn] = {}  # as many as the ledger has names
        self._watcher: threading.Thread | None = None

    def begin(self, name: str, token: int, wake: Callable[[], None]) -> Request:
        """A request whose head has arrived; `wake` is called once, when it is overtaken."""
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
        """It has left the application, or never entered."""
        with self._lock:
            others = self._requests.get(request.name, {})
            others.pop(request, None)
            if not others:
                self._requests.pop(request.name, None)
        self._absent(request)

    def linger(self, request: Request) -> None:
        """It was cancelled in the application, which may have left its work to a thread.

        Nobody can see that, so larger tokens wait as for one that is still there.
        """
        with self._lock:
            present = request.present
            if present:
                since = request.overtaken_at if request.overtaken_by else time.monotonic()
                request.lingers_until = since + self._grace
        if not present:
            self.end(request)

    def is_admitted(self, request: Request) -> bool:
        """Whether its token is the highest, and on disk already; or `StaleToken`."""
        known = self._ledger.passes(request.name, request.token)
        if known:
            self.overtake(request.name, request.token)
        return known

    def admit(self, request: Request) -> None:
        """Raise the ledger to this token, and overtake smaller ones; or `StaleToken`."""
        self._ledger.admit(request.name, request.token)
        self.overtake(request.name, request.token)

    def overtake(self, name: str, highest: int) -> None:
        """Mark and wake those with smaller tokens than `highest`."""
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
        """Whether no smaller one is at work any more, or those that are had their time."""
        turn = self._turns[request.name]
        if turn.clear or turn.token != request.token:  # if a larger one came, `enter` refuses
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
        """Tell that it enters the application, and then compare once more; or `StaleToken`."""
        self._presence.hold(request.name, request.token)
        request.present = True
        self._ledger.admit(request.name, request.token)
        request.entered = True

    def compare(self, request: Request) -> None:
        """`Overtaken` if its token is below the highest at this moment, on disk."""
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
            with suppress(FenceBroken):  # whoever sends or enters finds out, and is refused
                tokens = self._ledger.tokens()
                for name in names:
                    self.overtake(name, tokens.get(name, 0))
            self._abandon()
            time.sleep(TICK)

    def _abandon(self) -> None:
        """No longer say that those are at work who were overtaken, or cancelled, a grace ago."""
        now = time.monotonic()
        with self._lock:
            there = [each for requests in self._requests.values() for each in requests]
            over = [each for each in there if each.present and self._is_late(each, now)]
        for each in over:
            if each.lingers_until and not each.overtaken_by:
                self._absent(each)  # nobody has waited for it
            self.abandon(each)
            if each.lingers_until:
                self.end(each)

    def _is_late(self, request: Request, now: float) -> bool:
        if request.lingers_until:
            return now > request.lingers_until
        return bool(request.overtaken_by) and now > request.overtaken_at + self._grace

    def abandon(self, request: Request) -> None:
        """Wait no longer for one that was overtaken and does not leave the application."""
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
    """Which tokens are at work, for all processes to see: a locked file for each.

    Locks are shared among requests and processes of one token, and end with their processes. A
    file that nobody locks is removed by the next larger token.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._held: dict[str, tuple[int, int]] = {}  # file: descriptor, how many hold it
        self._make_folder()

    def hold(self, name: str, token: int) -> None:
        """Say that one more request with this token is at work."""
        file = f"{_prefix(name)}.{token}"
        with self._lock:
            descriptor, count = self._held.get(file) or (self._locked(file), 0)
            self._held[file] = (descriptor, count + 1)

    def let_go(self, name: str, token: int) -> None:
        """One less."""
        file = f"{_prefix(name)}.{token}"
        with self._lock:
            descriptor, count = self._held.pop(file)
            if count > 1:
                self._held[file] = (descriptor, count - 1)
                return
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # closing does not, if a fork holds it too
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
            except BlockingIOError:  # somebody looks whether it is held
                os.close(descriptor)
                time.sleep(0.001)
                continue
            if os.fstat(descriptor).st_nlink:
                return descriptor
            os.close(descriptor)  # taken for a dead one's before it was locked
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

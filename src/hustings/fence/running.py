"""Who is at work with which token, so that a larger one can wait until smaller ones have ended.

The order is what makes it safe: whoever comes enters here first and asks the ledger then, whoever
raises the ledger looks here afterwards. So each smaller one was either seen here or refused there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class Running:
    """Requests under way in this process, by name and token."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at_work: dict[str, dict[int, int]] = {}  # name: token: how many
        self._waiting: dict[str, list[tuple[int, Callable[[], None]]]] = {}

    def enter(self, name: str, token: int) -> None:
        """One more."""
        with self._lock:
            tokens = self._at_work.setdefault(name, {})
            tokens[token] = tokens.get(token, 0) + 1

    def leave(self, name: str, token: int) -> None:
        """One less; wakes whoever waited for it as the last."""
        with self._lock:
            tokens = self._at_work[name]
            tokens[token] -= 1
            if not tokens[token]:
                del tokens[token]
            least = min(tokens, default=None)
            waiting = self._waiting.get(name, [])
            free = [each for each in waiting if least is None or each[0] <= least]
            self._waiting[name] = [each for each in waiting if each not in free]
            if not self._waiting[name]:
                del self._waiting[name]
            if not tokens:
                del self._at_work[name]
        for _, wake in free:
            wake()

    def when_alone(self, name: str, token: int, wake: Callable[[], None]) -> bool:
        """Whether nobody smaller is at work; if somebody is, `wake` is called when none is."""
        with self._lock:
            if min(self._at_work.get(name, {}), default=token) >= token:
                return True
            self._waiting.setdefault(name, []).append((token, wake))
            return False

    def forget(self, name: str, wake: Callable[[], None]) -> None:
        """Wait no more."""
        with self._lock:
            waiting = [each for each in self._waiting.pop(name, []) if each[1] is not wake]
            if waiting:
                self._waiting[name] = waiting

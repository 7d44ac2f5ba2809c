"""Debug mode: a context that can be used only while its handler runs.

Not to be confused with a guard, which confirms leaders: see guard.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from hustings.core.choice import Candidate, MemberId
from hustings.core.context import Context, TimerKey
from hustings.core.errors import StaleContext
from hustings.core.messages import Message
from hustings.core.outcome import Outcome
from hustings.core.streams import Stream
from hustings.core.view import View


class GuardedContext:
    """Passes everything on to a context until it is closed, then raises `StaleContext`."""

    __slots__ = ("_inner",)

    def __init__(self, inner: Context) -> None:
        self._inner: Context | None = inner

    def close(self) -> None:
        """The handler has returned."""
        self._inner = None

    @property
    def _open(self) -> Context:
        if self._inner is None:
            raise StaleContext("a context was used after its handler returned: do not keep it")
        return self._inner

    @property
    def me(self) -> Candidate:
        return self._open.me

    @property
    def view(self) -> View:
        return self._open.view

    @property
    def rng(self) -> Stream:
        return self._open.rng

    @property
    def incarnation(self) -> int:
        return self._open.incarnation

    @property
    def stored(self) -> Mapping[str, object]:
        return self._open.stored

    def now(self) -> float:
        return self._open.now()

    def send(self, to: MemberId, message: Message) -> None:
        self._open.send(to, message)

    def multicast(self, message: Message) -> None:
        self._open.multicast(message)

    def set_timer(self, key: TimerKey, delay: float, *, eager: bool = False) -> None:
        self._open.set_timer(key, delay, eager=eager)

    def cancel_timer(self, key: TimerKey) -> None:
        self._open.cancel_timer(key)

    def persist(self, **fields: object) -> None:
        self._open.persist(**fields)

    def declare(self, outcome: Outcome) -> None:
        self._open.declare(outcome)

    def acquire(self, ttl: float, request: int) -> None:
        self._open.acquire(ttl, request)

    def release(self, request: int) -> None:
        self._open.release(request)

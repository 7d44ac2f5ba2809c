"""The context that an election under a guard gets: its declarations are only proposals."""

from __future__ import annotations

from collections.abc import Mapping

from hustings.core.choice import Candidate, MemberId
from hustings.core.context import Context, TimerKey
from hustings.core.errors import ProtocolBug
from hustings.core.messages import Message
from hustings.core.outcome import Outcome
from hustings.core.streams import Stream
from hustings.core.view import View


class NominatingContext:
    """Passes everything on but declarations: the last one is kept in `said`, for who made this."""

    __slots__ = ("_ctx", "said")

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self.said: Outcome | None = None

    @property
    def me(self) -> Candidate:
        return self._ctx.me

    @property
    def view(self) -> View:
        return self._ctx.view

    @property
    def rng(self) -> Stream:
        return self._ctx.rng

    @property
    def incarnation(self) -> int:
        return self._ctx.incarnation

    @property
    def stored(self) -> Mapping[str, object]:
        return self._ctx.stored

    def now(self) -> float:
        return self._ctx.now()

    def send(self, to: MemberId, message: Message) -> None:
        self._ctx.send(to, message)

    def multicast(self, message: Message) -> None:
        self._ctx.multicast(message)

    def set_timer(self, key: TimerKey, delay: float, *, eager: bool = False) -> None:
        self._ctx.set_timer(key, delay, eager=eager)

    def cancel_timer(self, key: TimerKey) -> None:
        self._ctx.cancel_timer(key)

    def persist(self, **fields: object) -> None:
        self._ctx.persist(**fields)

    def declare(self, outcome: Outcome) -> None:
        self.said = outcome

    def acquire(self, ttl: float, request: int) -> None:
        raise ProtocolBug("an election under a guard does not ask the guard itself")

    def release(self, request: int) -> None:
        raise ProtocolBug("an election under a guard does not give back to the guard itself")

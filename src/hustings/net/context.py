"""The network's context: it records what a handler does, so that it is persisted before it is sent.

A message that promises something must not leave before the promise is on disk. So `send`,
`multicast` and `declare` are written down; when the handler has returned, what it persisted is
stored, and only then do messages leave, is the owner told, and is the guard asked. Timers are the
member's own affair and are armed at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from hustings.core.choice import Candidate, MemberId
from hustings.core.context import TimerKey
from hustings.core.errors import ProtocolBug
from hustings.core.messages import Message
from hustings.core.outcome import Outcome
from hustings.core.streams import Stream
from hustings.core.view import View


class Desk(Protocol):
    """What a context reads from, and where its timers are."""

    me: Candidate
    view: View
    rng: Stream
    incarnation: int

    @property
    def stored(self) -> Mapping[str, object]:
        """What was persisted."""

    def now(self) -> float:
        """The monotonic clock."""

    def arm(self, key: TimerKey, delay: float) -> None:
        """Arm a timer, or arm it anew."""

    def disarm(self, key: TimerKey) -> None:
        """Forget a timer."""


class NetContext:
    """The context of one handler call."""

    __slots__ = (
        "_desk",
        "declared",
        "fields",
        "incarnation",
        "lease_calls",
        "me",
        "now",
        "rng",
        "sent",
        "view",
    )

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        # None of these changes during a handler, and each is asked for several times.
        self.me = desk.me
        self.view = desk.view
        self.rng = desk.rng
        self.incarnation = desk.incarnation
        self.now = desk.now
        self.sent: list[tuple[MemberId | None, Message]] = []  # None: to all
        self.fields: dict[str, object] = {}
        self.declared: list[Outcome] = []
        self.lease_calls: list[tuple[float | None, int]] = []  # (ttl, request); None: release

    @property
    def stored(self) -> Mapping[str, object]:
        stored = self._desk.stored
        return {**stored, **self.fields} if self.fields else stored

    def send(self, to: MemberId, message: Message) -> None:
        self.sent.append((to, message))

    def multicast(self, message: Message) -> None:
        self.sent.append((None, message))

    def set_timer(self, key: TimerKey, delay: float, *, eager: bool = False) -> None:
        """On a real clock no two things happen at one instant: `eager` makes no difference."""
        if not delay >= 0:
            raise ProtocolBug(f"member {self.me.id} armed timer {key!r} with delay {delay}")
        self._desk.arm(key, delay)

    def cancel_timer(self, key: TimerKey) -> None:
        self._desk.disarm(key)

    def persist(self, **fields: object) -> None:
        self.fields.update(fields)

    def declare(self, outcome: Outcome) -> None:
        self.declared.append(outcome)

    def acquire(self, ttl: float, request: int) -> None:
        self.lease_calls.append((ttl, request))

    def release(self, request: int) -> None:
        self.lease_calls.append((None, request))

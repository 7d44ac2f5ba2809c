"""The context: a protocol's only access to the world.

A context is valid only inside one handler call. There are three: the simulator's context schedules
at once; the network's context records, persists and then sends; the recording context returns
effects as values. A protocol cannot tell which of them it uses.

Layers may stand between a world and a protocol. Each layer gives the protocol above it a
`ForwardingContext` of its own. That context changes the layer's part and passes on the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast

from hustings.core.choice import Candidate, MemberId
from hustings.core.errors import StaleContext
from hustings.core.messages import Message
from hustings.core.outcome import Outcome
from hustings.core.streams import Stream
from hustings.core.view import View

TimerKey = str | tuple[str, int]


class Context(Protocol):
    """What a handler may see and do."""

    @property
    def me(self) -> Candidate:
        """This member: its id and the attributes that the choice function ranks."""

    @property
    def view(self) -> View:
        """The members known now, this one included; sorted by id."""

    @property
    def rng(self) -> Stream:
        """This member's own stream."""

    @property
    def incarnation(self) -> int:
        """1 at the first start, and one more after each restart."""

    @property
    def stored(self) -> Mapping[str, object]:
        """What earlier incarnations persisted."""

    def now(self) -> float:
        """The local clock. It may drift, and says nothing about other members' clocks."""

    def send(self, to: MemberId, message: Message) -> None:
        """Send to one member. The message counts when it is sent, also to a dead member."""

    def multicast(self, message: Message) -> None:
        """Send to the whole group except this member. This counts as one message."""

    def set_timer(self, key: TimerKey, delay: float, *, eager: bool = False) -> None:
        """Call `on_timer(key)` after `delay`. The same key sets the timer again.

        An infinite delay cancels the timer. At one instant eager timers fire before the arrivals,
        and all others after them. A key is either always eager or never.
        """

    def cancel_timer(self, key: TimerKey) -> None:
        """Cancel a timer. A timer that is not set is no error."""

    def persist(self, **fields: object) -> None:
        """Store fields durably, before any message of this handler leaves."""

    def declare(self, outcome: Outcome) -> None:
        """Tell this member's owner the outcome of the election."""

    def acquire(self, ttl: float, request: int) -> None:
        """Ask the guard for the lease, for `ttl`. A holder renews the lease with this call.

        The answer, if one comes, is `on_verdict`. It carries `request`, which must grow from one
        call to the next. A world without a guard raises `ProtocolBug`.
        """

    def release(self, request: int) -> None:
        """Give the lease back to the guard. There is no answer."""


class ForwardingContext:
    """Passes all calls on to the context below. A subclass changes some of them.

    Like the context below, it is valid for one handler call.
    """

    __slots__ = ("_below",)

    def __init__(self, below: Context) -> None:
        self._below = below

    @property
    def me(self) -> Candidate:
        return self._below.me

    @property
    def view(self) -> View:
        return self._below.view

    @property
    def rng(self) -> Stream:
        return self._below.rng

    @property
    def incarnation(self) -> int:
        return self._below.incarnation

    @property
    def stored(self) -> Mapping[str, object]:
        return self._below.stored

    def now(self) -> float:
        return self._below.now()

    def send(self, to: MemberId, message: Message) -> None:
        self._below.send(to, message)

    def multicast(self, message: Message) -> None:
        self._below.multicast(message)

    def set_timer(self, key: TimerKey, delay: float, *, eager: bool = False) -> None:
        self._below.set_timer(key, delay, eager=eager)

    def cancel_timer(self, key: TimerKey) -> None:
        self._below.cancel_timer(key)

    def persist(self, **fields: object) -> None:
        self._below.persist(**fields)

    def declare(self, outcome: Outcome) -> None:
        self._below.declare(outcome)

    def acquire(self, ttl: float, request: int) -> None:
        self._below.acquire(ttl, request)

    def release(self, request: int) -> None:
        self._below.release(request)


class _Closed:
    """Stands below a context whose handler has returned."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # tools such as doctest ask for these when they search modules
            raise AttributeError(name)
        raise StaleContext("a context was used after its handler returned: do not keep it")


_CLOSED = cast("Context", _Closed())


class CheckedContext(ForwardingContext):
    """Debug mode: passes all calls on until it is closed, then raises `StaleContext`."""

    __slots__ = ()

    def close(self) -> None:
        """The handler has returned."""
        self._below = _CLOSED

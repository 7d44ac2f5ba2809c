"""A crash inside a handler, between what it stores and what it sends.

A handler's effects are as on a network: they count when it returns, what it stores comes first and
what it sends leaves afterwards, one message after the other. A member that dies in between leaves
nothing behind (it died before the disk had it), or what it stored alone, or that and the first few
of its messages. Its declarations are lost with it: no other code can act on them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

from hustings.core.choice import MemberId
from hustings.core.context import Context, ForwardingContext, TimerKey
from hustings.core.election import Election
from hustings.core.guard import Verdict
from hustings.core.messages import Message
from hustings.core.outcome import Outcome
from hustings.sim.member import SimContext, Status

if TYPE_CHECKING:
    from hustings.sim.world import World


class _Sort(Enum):
    STORED = "stored"
    SENT = "sent"
    OTHER = "other"


class MidwayContext(ForwardingContext):
    """Holds back the effects of a handler until their fate is decided."""

    __slots__ = ("_effects", "_stored")

    def __init__(self, below: Context) -> None:
        super().__init__(below)
        self._effects: list[tuple[_Sort, Callable[[], None]]] = []
        self._stored: Mapping[str, object] = below.stored

    # What was done

    @property
    def stores(self) -> bool:
        """Whether the handler has stored anything."""
        return any(sort is _Sort.STORED for sort, _ in self._effects)

    def apply(self) -> None:
        """All of it happens."""
        for _, effect in self._effects:
            effect()

    def store(self) -> None:
        """What was stored is on the disk."""
        for sort, effect in self._effects:
            if sort is _Sort.STORED:
                effect()

    def send_first(self, number: int) -> None:
        """The first messages leave."""
        for effect in [effect for sort, effect in self._effects if sort is _Sort.SENT][:number]:
            effect()

    # The effects of the context

    @property
    def stored(self) -> Mapping[str, object]:
        return self._stored

    def send(self, to: MemberId, message: Message) -> None:
        self._note(_Sort.SENT, partial(super().send, to, message))

    def multicast(self, message: Message) -> None:
        self._note(_Sort.SENT, partial(super().multicast, message))

    def set_timer(self, key: TimerKey, delay: float, *, eager: bool = False) -> None:
        self._note(_Sort.OTHER, partial(super().set_timer, key, delay, eager=eager))

    def cancel_timer(self, key: TimerKey) -> None:
        self._note(_Sort.OTHER, partial(super().cancel_timer, key))

    def persist(self, **fields: object) -> None:
        self._stored = {**self._stored, **fields}
        self._note(_Sort.STORED, partial(super().persist, **fields))

    def declare(self, outcome: Outcome) -> None:
        self._note(_Sort.OTHER, partial(super().declare, outcome))

    def acquire(self, ttl: float, request: int) -> None:
        self._note(_Sort.SENT, partial(super().acquire, ttl, request))

    def release(self, request: int) -> None:
        self._note(_Sort.SENT, partial(super().release, request))

    def _note(self, sort: _Sort, effect: Callable[[], None]) -> None:
        self._effects.append((sort, effect))


class Trap(Election):
    """Replaces a member's election until the handler that it waits for has run."""

    def __init__(
        self,
        world: World,
        ctx: SimContext,
        *,
        kept: bool,
        sends: int,
        storing: bool,
        until: float,
    ) -> None:
        """`kept`: what the handler stores is on the disk, and `sends` of its messages leave.

        `storing`: the trap waits for a handler that stores something; otherwise it takes the next
        handler. From the instant `until` on it does nothing.
        """
        inner = ctx.election
        super().__init__(inner.config, inner.choice)
        self.inner = inner
        self._world = world
        self._ctx = ctx
        self._kept = kept
        self._sends = sends
        self._storing = storing
        self._until = until
        self.handlers = dict.fromkeys(inner.handlers, Trap._receive)
        ctx.election = self
        ctx.handlers = self.handlers

    # What a world calls

    def start(self, ctx: Context) -> None:
        self._run(self.inner.start)

    def call(self, ctx: Context) -> None:
        self._run(self.inner.call)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        self._run(self.inner.on_timer, key)

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        self._run(self.inner.on_suspect, member)

    def on_alive(self, ctx: Context, member: MemberId) -> None:
        self._run(self.inner.on_alive, member)

    def on_verdict(self, ctx: Context, verdict: Verdict) -> None:
        self._run(self.inner.on_verdict, verdict)

    def leave(self, ctx: Context) -> None:
        self._run(self.inner.leave)

    def _receive(self, ctx: Context, sender: MemberId, message: Message) -> None:
        handler = self.inner.handlers[type(message)]
        self._run(lambda midway: handler(self.inner, midway, sender, message))

    def _run(self, handler: Callable[..., None], *about: MemberId | TimerKey | Verdict) -> None:
        ctx = self._ctx
        midway = MidwayContext(ctx)
        handler(midway, *about)
        if self._world.now >= self._until or (self._storing and not midway.stores):
            midway.apply()
            return
        if self._kept:
            midway.store()
            midway.send_first(self._sends)
        if ctx.up:
            self._world.change(ctx, Status.CRASHED)

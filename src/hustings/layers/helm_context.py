"""The context of an election at the helm: its view holds the electors, and what it declares passes
through the helm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from hustings.core.choice import Candidate, MemberId
from hustings.core.context import Context, TimerKey
from hustings.core.messages import Message
from hustings.core.outcome import Outcome
from hustings.core.streams import Stream
from hustings.core.view import View


class Bridge(Protocol):
    """What the context asks of the helm."""

    def standing(self, me: Candidate) -> Candidate:
        """This member as it wants to be seen."""

    def electorate(self, ctx: Context) -> View:
        """Who may be elected."""

    def declared(self, ctx: Context, outcome: Outcome) -> None:
        """The election declares something."""


class HelmedContext:
    """Valid, like the one below it, for one handler call."""

    __slots__ = ("_below", "_bridge", "_muted", "_quiet", "_silent")

    def __init__(
        self,
        below: Context,
        bridge: Bridge,
        *,
        muted: bool = False,
        quiet: bool = False,
        silent: bool = False,
    ) -> None:
        """`muted`: declarations are dropped; `silent`: messages are, too.

        `quiet`: a member that is back seems to be new.
        """
        self._below = below
        self._bridge = bridge
        self._muted = muted or silent
        self._silent = silent
        self._quiet = quiet

    @property
    def me(self) -> Candidate:
        return self._bridge.standing(self._below.me)

    @property
    def view(self) -> View:
        return self._bridge.electorate(self._below)

    @property
    def rng(self) -> Stream:
        return self._below.rng

    @property
    def incarnation(self) -> int:
        return 1 if self._quiet else self._below.incarnation

    @property
    def stored(self) -> Mapping[str, object]:
        return self._below.stored

    def now(self) -> float:
        return self._below.now()

    def send(self, to: MemberId, message: Message) -> None:
        if not self._silent:
            self._below.send(to, message)

    def multicast(self, message: Message) -> None:
        if not self._silent:
            self._below.multicast(message)

    def set_timer(self, key: TimerKey, delay: float, *, eager: bool = False) -> None:
        self._below.set_timer(key, delay, eager=eager)

    def cancel_timer(self, key: TimerKey) -> None:
        self._below.cancel_timer(key)

    def persist(self, **fields: object) -> None:
        self._below.persist(**fields)

    def declare(self, outcome: Outcome) -> None:
        if not self._muted:
            self._bridge.declared(self._below, outcome)

    def acquire(self, ttl: float, request: int) -> None:
        self._below.acquire(ttl, request)

    def release(self, request: int) -> None:
        self._below.release(request)

"""The context of an election whose guard are voters among the members."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from hustings.core.choice import Candidate, MemberId
from hustings.core.context import Context, TimerKey
from hustings.core.messages import Message
from hustings.core.outcome import Outcome
from hustings.core.streams import Stream
from hustings.core.view import View


class Asking(Protocol):
    """Who takes questions to the voters."""

    def acquire(self, ctx: Context, ttl: float, request: int) -> None:
        """This member wants the lease."""

    def release(self, ctx: Context) -> None:
        """This member wants it no more."""


class QuorateContext:
    """Passes everything on but what is for the guard."""

    __slots__ = ("_below", "_voters")

    def __init__(self, below: Context, voters: Asking) -> None:
        self._below = below
        self._voters = voters

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
        self._voters.acquire(self._below, ttl, request)

    def release(self, request: int) -> None:
        self._voters.release(self._below)

"""What supervising a command needs of a member, so that a test can play one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from hustings.core.outcome import Guarantee


class Peer(Protocol):
    """Another member, or oneself."""

    @property
    def name(self) -> str: ...


class State(Protocol):
    """What a member thinks about leadership."""

    @property
    def term(self) -> int: ...
    @property
    def leader(self) -> Peer | None: ...
    @property
    def leading(self) -> bool: ...
    @property
    def reason(self) -> str: ...


class Term(Protocol):
    """A period of leading."""

    @property
    def number(self) -> int: ...
    @property
    def token(self) -> int | None: ...
    @property
    def draining(self) -> asyncio.Event: ...
    @property
    def lost(self) -> asyncio.Event: ...


class Candidate(Protocol):
    """What is needed of a member here."""

    @property
    def group(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def bound(self) -> float: ...
    @property
    def guarantee(self) -> Guarantee: ...
    @property
    def until(self) -> float | None: ...
    def campaign(self, drain: float = 0.0) -> AbstractAsyncContextManager[Term]: ...
    def observe(self) -> AsyncIterator[State]: ...
    async def resign(self) -> None: ...
    async def stand(self) -> None: ...

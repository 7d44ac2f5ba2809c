"""Effects: what a handler did through its context, as frozen values that compare."""

from __future__ import annotations

from dataclasses import dataclass

from hustings.core.choice import MemberId
from hustings.core.context import TimerKey
from hustings.core.messages import Message
from hustings.core.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Send:
    """A message to one member."""

    to: MemberId
    message: Message


@dataclass(frozen=True, slots=True)
class Multicast:
    """A message to the whole group but the sender."""

    message: Message


@dataclass(frozen=True, slots=True)
class SetTimer:
    """A timer was armed, or armed again."""

    key: TimerKey
    delay: float
    eager: bool = False


@dataclass(frozen=True, slots=True)
class CancelTimer:
    """A timer was cancelled, whether it was armed or not."""

    key: TimerKey


@dataclass(frozen=True, slots=True)
class Persist:
    """Fields were stored; pairs sorted by name, so that equal stores are equal values."""

    fields: tuple[tuple[str, object], ...]


@dataclass(frozen=True, slots=True)
class Declare:
    """An outcome was declared to the member's owner."""

    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Acquire:
    """The guard was asked to confirm the member as leader."""

    ttl: float
    request: int


@dataclass(frozen=True, slots=True)
class Release:
    """The member told the guard that it does not lead any more."""

    request: int


Effect = Send | Multicast | SetTimer | CancelTimer | Persist | Declare | Acquire | Release


def persist(**fields: object) -> Persist:
    """The effect of `ctx.persist(...)` with the same arguments.

    >>> persist(vote=3, term=1)
    Persist(fields=(('term', 1), ('vote', 3)))
    """
    return Persist(tuple(sorted(fields.items())))

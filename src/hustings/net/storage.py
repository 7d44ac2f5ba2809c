"""The interface to a member's stored fields, and a storage in memory. `state_file` stores on disk.

It is a file of its own, since a member without a state file need not load `state_file`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from hustings.core.errors import HustingsError

MAX_INCARNATION = 1 << 53


class NotPersisted(HustingsError):
    """The state could not be written, so what depends on it must not be sent. Try again later."""


class Storage(Protocol):
    """Keeps a member's fields."""

    @property
    def stored(self) -> Mapping[str, object]:
        """All stored fields."""

    def persist(self, fields: Mapping[str, object]) -> None:
        """Store some more; they are durable when this returns; raises `NotPersisted` on failure."""


class VolatileStorage:
    """A storage that ends with the process."""

    def __init__(self) -> None:
        self._fields: dict[str, object] = {}

    @property
    def stored(self) -> Mapping[str, object]:
        return self._fields

    def persist(self, fields: Mapping[str, object]) -> None:
        self._fields.update(fields)


def incarnation_by_clock(unix_seconds: float) -> int:
    """An incarnation for a member without a state file, or with a new one; it grows with the date.

    >>> incarnation_by_clock(1_700_000_000.5)
    1700000000500
    """
    return min(MAX_INCARNATION, max(1, int(unix_seconds * 1000.0)))

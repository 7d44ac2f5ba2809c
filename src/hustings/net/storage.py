"""Where a member's fields are kept, and which life it begins; on disk it is `durable` that does it.

Apart from `durable`, which a member without a state file need not load.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from hustings.core.errors import HustingsError

MAX_INCARNATION = 1 << 53


class NotPersisted(HustingsError):
    """The state could not be written: what depends on it must not be sent. Trying again is fine."""


class Storage(Protocol):
    """Where a member's fields are kept."""

    @property
    def stored(self) -> Mapping[str, object]:
        """All of them."""

    def persist(self, fields: Mapping[str, object]) -> None:
        """Keep some more, for good when this returns; `NotPersisted` if that failed."""


class VolatileStorage:
    """A memory that ends with the process."""

    def __init__(self) -> None:
        self._fields: dict[str, object] = {}

    @property
    def stored(self) -> Mapping[str, object]:
        return self._fields

    def persist(self, fields: Mapping[str, object]) -> None:
        self._fields.update(fields)


def incarnation_by_clock(unix_seconds: float) -> int:
    """An incarnation for a member without a state file, or with a new one: grows with the date.

    >>> incarnation_by_clock(1_700_000_000.5)
    1700000000500
    """
    return min(MAX_INCARNATION, max(1, int(unix_seconds * 1000.0)))

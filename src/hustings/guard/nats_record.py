"""What the guard on NATS keeps in its bucket: one record per group, and its key."""

from __future__ import annotations

import re

import msgspec

from hustings.guard.seam import Holder


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """What stands in the bucket for a group."""

    ttl: float
    holder: str | None = None
    life: int = 0
    token: int = 0  # 0 in the first record of a period of holding: its revision is the token
    to: str | None = None  # whom the last holder wanted to be next
    base: int = 0  # what a revision is added to, to make a token


class Entry(msgspec.Struct, frozen=True):
    """A record with its revision; no record, no entry yet."""

    record: Record | None
    revision: int

    @property
    def token(self) -> int:
        """Of who holds, or of who held last."""
        return (self.record.token if self.record else 0) or self.revision + self.base

    @property
    def base(self) -> int:
        return self.record.base if self.record else 0

    def is_of(self, holder: Holder) -> bool:
        record = self.record
        return record is not None and (record.holder, record.life) == (holder.name, holder.life)


def key_of(group: str) -> str:
    """A key for any name: other signs than letters, digits, _ and - in hex after `=`.

    >>> key_of("jobs.eu")
    'jobs=2Eeu'
    """
    return "".join(
        chr(each) if re.match(rb"[A-Za-z0-9_-]", bytes([each])) else f"={each:02X}"
        for each in group.encode()
    )

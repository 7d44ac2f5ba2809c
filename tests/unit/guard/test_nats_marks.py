"""A NATS bucket that was lost and made anew counts its revisions anew."""

from __future__ import annotations

import pytest

from hustings.guard.nats import NatsEntry, NatsGuard, NatsRecord


class Clocked(NatsGuard):
    """A guard on the test's clock."""

    time = 100.0

    def now(self) -> float:
        return self.time


def test_an_old_revision_of_a_new_bucket_is_no_lease_that_stood_still() -> None:
    guard = Clocked([], "bucket", "key", shown="nats://a", timeout=1.0)
    old = NatsEntry(NatsRecord(ttl=5.0, holder="ada", incarnation=1, token=9), 9)
    assert guard._remaining(old) == pytest.approx(5.0)
    guard.time = 200.0
    assert guard._remaining(old) < 0
    new = NatsEntry(NatsRecord(ttl=5.0, holder="ben", incarnation=1, token=10), 9)
    assert guard._remaining(new) == pytest.approx(5.0)

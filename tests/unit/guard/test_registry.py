"""What guards there are, and what each promises."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hustings.core.errors import BadInput
from hustings.core.outcome import Guarantee
from hustings.guard import config
from hustings.guard.base import Guarantees
from hustings.guard.config import GroupGuard
from hustings.guard.inspection import all_guarantees
from hustings.guard.registry import CATALOGUE


def test_every_guard_is_listed_with_what_it_promises() -> None:
    found = dict(all_guarantees())
    assert list(found) == list(CATALOGUE)
    told = {listed.name: promise for listed, promise in found.items()}
    assert all(isinstance(each, Guarantees) for each in told.values())
    by_clock = {name: each.clock for name, each in told.items() if isinstance(each, Guarantees)}
    assert by_clock["quorum"] == "voters"
    assert by_clock["memory"] == "this process"
    assert by_clock["redis"] == "each observer"
    redis = told["redis"]
    assert isinstance(redis, Guarantees)
    assert (redis.guarantee, redis.monotone) == (Guarantee.ADVISORY, False)


def test_a_guard_that_cannot_be_used_here_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = BadInput("guard postgres needs a client that is not installed")

    def guard_for(guard: str, group: str, id_of: Callable[[str], int]) -> GroupGuard:
        if guard.startswith("postgres"):
            raise missing
        return config.guard_for(guard, group, id_of)

    monkeypatch.setattr("hustings.guard.inspection.guard_for", guard_for)
    found = {listed.name: promise for listed, promise in all_guarantees()}
    assert len(found) == len(CATALOGUE)
    assert found["postgres"] is missing
    assert isinstance(found["memory"], Guarantees)

"""What guards there are, and what each promises."""

from __future__ import annotations

import pytest

from hustings.core.errors import BadInput
from hustings.core.outcome import Guarantee
from hustings.guard import catalogue, urls
from hustings.guard.catalogue import CATALOGUE, promises
from hustings.guard.seam import Promise


def test_every_guard_is_listed_with_what_it_promises() -> None:
    found = dict(promises())
    assert list(found) == list(CATALOGUE)
    told = {listed.name: promise for listed, promise in found.items()}
    assert all(isinstance(each, Promise) for each in told.values())
    by_clock = {name: each.clock for name, each in told.items() if isinstance(each, Promise)}
    assert by_clock["quorum"] == "voters"
    assert by_clock["memory"] == "this process"
    assert by_clock["redis"] == "who waits"
    redis = told["redis"]
    assert isinstance(redis, Promise)
    assert (redis.guarantee, redis.monotone) == (Guarantee.ADVISORY, False)


def test_a_guard_that_cannot_be_used_here_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = BadInput("guard postgres needs a client that is not installed")

    def make(text: str, group: str) -> object:
        if text.startswith("postgres"):
            raise missing
        return urls.make_guard(text, group)

    monkeypatch.setattr(catalogue, "make_guard", make)
    found = {listed.name: promise for listed, promise in promises()}
    assert len(found) == len(CATALOGUE)
    assert found["postgres"] is missing
    assert isinstance(found["memory"], Promise)

"""Engines in memory for the tests of guards, each in the place of its client."""

from __future__ import annotations

import pytest

from tests.unit.guard import fakes_etcd, fakes_http
from tests.unit.guard.fakes_etcd import Etcd
from tests.unit.guard.fakes_http import Network


@pytest.fixture
def etcd(monkeypatch: pytest.MonkeyPatch) -> Etcd:
    """A cluster that every guard's client reaches."""
    return fakes_etcd.patched(monkeypatch)


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Network:
    """A network of HTTP servers, none of them there yet."""
    return fakes_http.patched(monkeypatch)

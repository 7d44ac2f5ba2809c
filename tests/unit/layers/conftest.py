"""Members with a lease layer, for its tests."""

from __future__ import annotations

import pytest

from tests.unit.layers.puppets import Driven, granted_at_102


@pytest.fixture
def driven() -> Driven:
    return Driven()


@pytest.fixture
def leading() -> Driven:
    """Asked at 100, answered at 102: until 120."""
    return granted_at_102()

"""A program that handles signals to stop, as servers do."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture
def heard() -> Iterator[list[int]]:
    """The signals that the program's own handler got."""
    told: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(each, lambda number, frame: told.append(number)) for each in numbers]
    yield told
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)

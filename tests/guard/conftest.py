"""Engines for the tests of guards: each is started when first wanted, and shared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.guard.engines import started
from tests.guard.engines.base import Engine
from tests.net.running import runs  # noqa: F401 (a fixture)


@pytest.fixture(scope="session")
def engines() -> Iterator[Callable[[str], Engine]]:
    """Engines by name, until the last test is over."""
    running: dict[str, Engine] = {}
    with ExitStack() as ends:

        def get(name: str) -> Engine:
            if name not in running:
                running[name] = ends.enter_context(started(name))
            return running[name]

        yield get


@pytest.fixture
def engine(request: pytest.FixtureRequest, engines: Callable[[str], Engine]) -> Iterator[Engine]:
    """The engine that a test is parametrised with; it runs again afterwards, whatever was done."""
    found = engines(request.param)
    try:
        yield found
    finally:
        found.resume()
        found.start()

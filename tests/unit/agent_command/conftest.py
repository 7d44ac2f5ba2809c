"""A supervised command of which nothing is left after the test."""

from __future__ import annotations

import asyncio
import os
import signal
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.unit.agent_command.playing import PATIENCE_S, Play, Played, Story, processes_of


@pytest.fixture
def name() -> Iterator[str]:
    """A member's name by which the processes of its command can be told from all others."""
    unique = f"member-{uuid.uuid4().hex}"
    yield unique
    left = processes_of(unique)
    for process in left:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    assert left == [], "something of a command has outlived its test"


@pytest.fixture
def play(name: str, tmp_path: Path) -> Play:
    """Play a story with a member of that name, in a folder of its own."""

    def played(story: Story) -> None:
        async def whole() -> None:
            async with asyncio.timeout(2 * PATIENCE_S):
                await story(Played(tmp_path, name))

        asyncio.run(whole())

    return played

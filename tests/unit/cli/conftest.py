"""`hustings(...)` runs a command line in this process."""

import pytest

from tests.unit.cli.commands import Hustings, in_process


@pytest.fixture
def hustings(capsys: pytest.CaptureFixture[str]) -> Hustings:
    return in_process(capsys)

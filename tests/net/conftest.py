"""What tests of members share.

Where network namespaces are impossible their tests are left out, and the report says so.

Nothing is skipped in silence: with CI in the environment those tests run and fail instead, each
with the reason. What they test is also tested by the ports' own switch, which needs nothing.
"""

from __future__ import annotations

import os

import pytest

from hustings.lab.plans.namespaces import obstacle
from tests.net.running import runs  # noqa: F401 (a fixture)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    needy = [item for item in items if item.path.name in _NEEDY]
    if not needy or os.environ.get("CI") or not obstacle():
        return
    config.hook.pytest_deselected(items=needy)
    items[:] = [item for item in items if item not in needy]
    config.stash[_LEFT_OUT] = f"{len(needy)} tests need network namespaces: {obstacle()}"


_NEEDY = ("test_namespaces.py", "test_verify.py")
_LEFT_OUT = pytest.StashKey[str]()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    said = config.stash.get(_LEFT_OUT, "")
    if said:
        terminalreporter.write_line(f"left out: {said}", yellow=True)

"""What is installed here, for a report of a defect and for a script that plans an upgrade.

`hustings --version --json` prints it.
"""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

from hustings._version import __version__
from hustings.extras import NAME, requirements
from hustings.guard.registry import CATALOGUE
from hustings.net.wire import NEWEST, OLDEST, VERSION


def about() -> dict[str, Any]:
    """The versions of hustings, its messages, Python, the system, and the clients of engines.

    >>> found = about()
    >>> found["wire"]["oldest"] <= found["wire"]["written"] <= found["wire"]["newest"]
    True
    >>> found["engines"]["memory"]
    {'found': True, 'clients': {}}
    """
    return {
        "version": __version__,
        "wire": {"written": VERSION, "oldest": OLDEST, "newest": NEWEST},
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": platform.platform(),
        "engines": {each.name: _engine(each.extra) for each in CATALOGUE},
    }


def _engine(extra: str) -> dict[str, Any]:
    """Whether an engine's guard can be used: what its extra asks for is installed."""
    if not extra:
        return {"found": True, "clients": {}}
    try:
        wanted = requirements(distribution(NAME), extra)
    except PackageNotFoundError:  # a source tree on the path, not installed
        return {"found": False, "clients": {}}
    clients = {name: _installed(name) for name in map(_name, wanted)}
    return {"found": None not in clients.values(), "clients": clients}


def _name(requirement: str) -> str:
    """The name of the distribution that a requirement asks for.

    >>> _name("aetcd>=1.0"), _name("nats-py >=2.7"), _name("a[b]~=1")
    ('aetcd', 'nats-py', 'a')
    """
    for place, letter in enumerate(requirement):
        if not (letter.isalnum() or letter in "-_."):
            return requirement[:place]
    return requirement


def _installed(name: str) -> str | None:
    try:
        return distribution(name).version
    except PackageNotFoundError:
        return None

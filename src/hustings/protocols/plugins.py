"""Elections from elsewhere: installed packages, modules and files.

A package installs elections through entry points of the group `hustings.protocols`. The name of an
entry point is the name of the protocol; its object is the class:

    [project.entry-points."hustings.protocols"]
    claims = "mine.elections:Claims"
"""

from __future__ import annotations

from collections.abc import Collection

from hustings.core.election import Election
from hustings.core.plugins import Plugins

_PLUGINS = Plugins(
    group="hustings.protocols",
    noun="protocol",
    base=Election,
    name_of=lambda kind: getattr(getattr(kind, "about", None), "name", None),
)


def load(protocol: str, ours: Collection[str]) -> object:
    """Load what `module:Class`, `file.py:Class` or the name of an entry point stands for."""
    return _PLUGINS.load(protocol, ours)


def names(ours: Collection[str]) -> list[str]:
    """List the names that installed packages bring; they cannot replace ours."""
    return _PLUGINS.names(ours)

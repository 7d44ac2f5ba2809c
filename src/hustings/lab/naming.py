"""How a command line names a protocol that Python was handed."""

from __future__ import annotations

from hustings.core.election import Election
from hustings.protocols.registry import Protocol, is_ours


def named(protocol: Protocol, kind: type[Election]) -> str | None:
    """The name; None for a class that only this process has."""
    if is_ours(kind):
        return kind.about.name
    if isinstance(protocol, str):
        return protocol
    if "." in kind.__qualname__ or kind.__module__ == "__main__":
        return None
    return f"{kind.__module__}:{kind.__qualname__}"

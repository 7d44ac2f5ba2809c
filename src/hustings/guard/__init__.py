"""Guards: leases with tokens, so that there are never two leaders, on the engine that is there.

`seam` says what a guard is, `urls` finds one by its address; the other modules are one engine each.
"""

from hustings.guard.base import (
    Behind,
    Floor,
    Grant,
    Guarantees,
    Guard,
    HeldBy,
    Holder,
    Holding,
    MemoryLost,
    NotGranted,
    Unreachable,
)
from hustings.guard.urls import GuardUrl, make_guard, parse_url, schemes

__all__ = [
    "Behind",
    "Floor",
    "Grant",
    "Guarantees",
    "Guard",
    "GuardUrl",
    "HeldBy",
    "Holder",
    "Holding",
    "MemoryLost",
    "NotGranted",
    "Unreachable",
    "make_guard",
    "parse_url",
    "schemes",
]

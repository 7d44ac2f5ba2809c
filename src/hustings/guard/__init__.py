"""Guards: leases with tokens, so that there are never two leaders.

`base` says what a guard is. `urls` finds a guard by its address. Most of the other modules are one
engine each.
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

"""Fences: the resource's side, which refuses the writes of a leader that was replaced.

A lease ends by a clock, and a process can be stopped between the look at the clock and the write.
The resource can do better: it remembers the highest token that it has seen, and refuses smaller
tokens, whatever any clock says. `postgres`, `redis`, `http` and `file` are fences for the things in
their names. `Fence` is for a store of one's own.
"""

from hustings.fence.asgi import AsgiFence
from hustings.fence.fence import (
    AsyncFence,
    AsyncStore,
    Fence,
    FenceBroken,
    FenceBusy,
    Overtaken,
    StaleToken,
    Stamped,
    Store,
)
from hustings.fence.file import FileFence
from hustings.fence.ledger import Ledger
from hustings.fence.postgres import PostgresFence, SnapshotTooOld
from hustings.fence.redis import RedisFence
from hustings.fence.wsgi import WsgiFence

__all__ = [
    "AsgiFence",
    "AsyncFence",
    "AsyncStore",
    "Fence",
    "FenceBroken",
    "FenceBusy",
    "FileFence",
    "Ledger",
    "Overtaken",
    "PostgresFence",
    "RedisFence",
    "SnapshotTooOld",
    "StaleToken",
    "Stamped",
    "Store",
    "WsgiFence",
]

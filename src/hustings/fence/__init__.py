"""Fences: the resource's side, which refuses the writes of a leader that was replaced.

A lease ends by a clock, and a process can be stopped between looking at it and writing. What is
written to can do better: it remembers the highest token it has seen, and refuses smaller ones,
whatever time it is for whom. `postgres`, `redis`, `http` and `file` are fences for what their names
say; `Fence` is for a store of one's own.
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

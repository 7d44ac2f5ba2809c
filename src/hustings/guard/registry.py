"""The table of guards: each engine's module, its addresses, its token, and who shares its lock.

A guard that comes with the package has one entry here, and nothing else about it is listed
elsewhere. A package of your own adds a guard with an entry point of the group `hustings.guards`:
see `urls`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class GuardEntry(NamedTuple):
    """One guard. Its name is the scheme of its addresses, and the module here that makes it."""

    name: str
    example: str
    token: str
    shares: str = "-"  # the tools whose elections it takes part in
    extra: str = ""  # brings the engine's client
    schemes: tuple[str, ...] = ()  # further schemes
    port: int | None = None  # the usual one
    path: str = ""  # what an address without a path means


VOTERS = GuardEntry("quorum", "quorum://a,b,c", "ballot of the voters")
ENGINES = (
    GuardEntry(
        "etcd",
        "etcd://127.0.0.1:2379",
        token="create revision",
        shares="etcdctl elect, Go's Election",
        extra="etcd",
        schemes=("etcds",),
        port=2379,
    ),
    GuardEntry(
        "zookeeper",
        "zookeeper://127.0.0.1:2181",
        token="czxid",
        shares="kazoo's Election, Curator's latch",
        extra="zookeeper",
        port=2181,
        path="hustings",
    ),
    GuardEntry(
        "postgres",
        "postgres://user@127.0.0.1/db",
        token="counter in the row",
        extra="postgres",
        schemes=("postgresql",),
        port=5432,
    ),
    GuardEntry(
        "redis",
        "redis://127.0.0.1:6379",
        token="INCR",
        extra="redis",
        schemes=("rediss", "valkey"),
        port=6379,
        path="0",
    ),
    GuardEntry(
        "nats",
        "nats://127.0.0.1:4222",
        token="revision",
        extra="nats",
        port=4222,
        path="hustings",
    ),
    GuardEntry(
        "consul",
        "consul://127.0.0.1:8500",
        token="index",
        shares="consul lock",
        extra="consul",
        port=8500,
    ),
    GuardEntry(
        "kubernetes",
        "kubernetes://default/lease",
        token="version",
        shares="client-go's leader election",
        extra="kubernetes",
        port=6443,
    ),
    GuardEntry("memory", "memory://", token="counter"),
)
CATALOGUE = (VOTERS, *ENGINES)

# Every scheme of an engine that comes with the package.
BY_SCHEME: Mapping[str, GuardEntry] = {
    scheme: entry for entry in ENGINES for scheme in (entry.name, *entry.schemes)
}

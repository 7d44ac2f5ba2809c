"""The table of guards: each guard's address, its token, and the tools that share its lock."""

from __future__ import annotations

from typing import NamedTuple

from hustings.core.errors import BadInput
from hustings.guard.base import Guarantees
from hustings.guard.quorum import SCHEME, VoterOptions
from hustings.guard.urls import make_guard, parse_url


class Listed(NamedTuple):
    """A guard's line in the table."""

    name: str
    example: str
    token: str
    shares: str  # the tools whose elections it takes part in

    def guarantees(self) -> Guarantees:
        """Its guarantees at its example's address; `BadInput` if the guard cannot be used here."""
        if self.name == SCHEME:
            return VoterOptions(parse_url(self.example), lambda _: 0).guarantees
        return make_guard(self.example, "group").guarantees


CATALOGUE = (
    Listed("quorum", "quorum://a,b,c", "ballot of the voters", "-"),
    Listed("etcd", "etcd://127.0.0.1:2379", "create revision", "etcdctl elect, Go's Election"),
    Listed("zookeeper", "zookeeper://127.0.0.1:2181", "czxid", "kazoo's Election, Curator's latch"),
    Listed("postgres", "postgres://user@127.0.0.1/db", "counter in the row", "-"),
    Listed("redis", "redis://127.0.0.1:6379", "INCR", "-"),
    Listed("nats", "nats://127.0.0.1:4222", "revision", "-"),
    Listed("consul", "consul://127.0.0.1:8500", "index", "consul lock"),
    Listed("kubernetes", "kubernetes://default/lease", "version", "client-go's leader election"),
    Listed("memory", "memory://", "counter", "-"),
)


def all_guarantees() -> list[tuple[Listed, Guarantees | BadInput]]:
    """Each guard and its guarantees, or why it cannot be used here: see `NotInstalled`."""
    found: list[tuple[Listed, Guarantees | BadInput]] = []
    for listed in CATALOGUE:
        try:
            found.append((listed, listed.guarantees()))
        except BadInput as error:
            found.append((listed, error))
    return found

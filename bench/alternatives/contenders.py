"""What is compared: each way, the engine that it needs, its lease, and its token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.alternatives.recipes import LEASE_S

REDIS = "valkey"  # the server behind what speaks Redis
NEEDS: Mapping[str | None, str] = {
    None: "nothing",
    "postgres": "PostgreSQL",
    REDIS: "Redis",
    "etcd": "etcd",
    "zookeeper": "ZooKeeper",
}
QUORUM = "quorum"
HIDDEN = "no; the engine has one"


@dataclass(frozen=True, slots=True)
class Contender:
    """One way."""

    code: str
    label: str
    recipe: str
    packages: tuple[str, ...]
    engine: str | None  # of tests/guard/engines
    lease: str  # how long a leader that is not heard stays the leader, and the library's default
    token: str = "no"  # by which a resource can refuse an old leader

    @property
    def needs(self) -> str:
        return NEEDS[self.engine]


def _hustings(guard: str, engine: str | None) -> Contender:
    label = f"hustings, guard {guard}"
    lease = f"{LEASE_S} s (default)"
    return Contender(f"hustings-{guard}", label, "hustings", (), engine, lease, "yes")


def _lease(default: str) -> str:
    return f"{LEASE_S} s (default {default})"


CONTENDERS = (
    Contender("hustings", "hustings", "hustings", (), None, "none: a detector"),
    _hustings(QUORUM, None),
    Contender(
        "pysyncobj",
        "PySyncObj ReplLockManager",
        "pysyncobj",
        ("pysyncobj",),
        None,
        f"{LEASE_S} s (no default)",
    ),
    _hustings("postgres", "postgres"),
    Contender(
        "advisory", "advisory lock", "advisory", ("asyncpg",), "postgres", "none: the session"
    ),
    _hustings("redis", REDIS),
    Contender("redis", "redis-py Lock", "redis", ("redis",), REDIS, _lease("for ever")),
    Contender("tooz", "tooz", "tooz", ("tooz",), REDIS, _lease("30 s")),
    Contender(
        "redbeat", "RedBeat", "redbeat", ("celery", "celery-redbeat"), REDIS, _lease("1500 s")
    ),
    _hustings("etcd", "etcd"),
    Contender("aetcd", "aetcd lock", "aetcd", ("aetcd",), "etcd", _lease("60 s"), HIDDEN),
    _hustings("zookeeper", "zookeeper"),
    Contender("kazoo", "kazoo Election", "kazoo", ("kazoo",), "zookeeper", _lease("10 s"), HIDDEN),
)
BY_CODE: Mapping[str, Contender] = {each.code: each for each in CONTENDERS}

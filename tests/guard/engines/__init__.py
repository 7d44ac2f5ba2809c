"""Real engines for tests, each a module with a class `Engine` (see `base`).

To add one, write the module and add a line here: the conformance suite finds it by this table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module

from tests.guard.engines.base import Engine

ENGINES: Mapping[str, str] = {
    "etcd": "tests.guard.engines.etcd",
    "memory": "tests.guard.engines.memory",
    "nats": "tests.guard.engines.nats",
    "postgres": "tests.guard.engines.postgres",
    "valkey": "tests.guard.engines.valkey",
    "zookeeper": "tests.guard.engines.zookeeper",
}


def kind_of(name: str) -> type[Engine]:
    """The class of one engine; nothing is started."""
    kind: type[Engine] = import_module(ENGINES[name]).Engine
    assert kind.name == name
    return kind


@contextmanager
def started(name: str) -> Iterator[Engine]:
    """An engine that runs during a block."""
    engine = kind_of(name)()
    try:
        engine.start()
        yield engine
    finally:
        engine.close()

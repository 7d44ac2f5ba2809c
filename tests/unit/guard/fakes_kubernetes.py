"""The server of tests/guard/fakes with watches in memory, and a guard on it in virtual time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from hustings.guard import Guard, Holder, make_guard
from tests.guard.fakes.kubernetes import Key, Kubernetes
from tests.unit.guard.fakes_http import Network

PLACE = "http://h:6443"
PATH = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
ADA, BEN = Holder("ada", 1), Holder("ben", 1)
TTL = 15.0


class Server(Kubernetes):
    """A server whose watches are read from memory."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network
        self.streams: list[Stream] = []
        self.watch_status = 200
        network.servers[PLACE] = self

    async def _watch(self, request: Any, namespace: str) -> Any:
        assert request.query["watch"] == "True"
        name = request.query["fieldSelector"].removeprefix("metadata.name=")
        stream = Stream(self, (namespace, name), request.query.get("resourceVersion"))
        self.streams.append(stream)
        return stream

    @property
    def lease(self) -> dict[str, Any]:
        return self.leases["default", "jobs"]

    @property
    def spec(self) -> dict[str, Any]:
        found: dict[str, Any] = self.lease["spec"]
        return found

    @property
    def marks(self) -> dict[str, str]:
        found: dict[str, str] = self.lease["metadata"].get("annotations", {})
        return found

    def count(self, method: str) -> int:
        return sum(each.method == method for each in self.network.asked)

    def before_writing(self, act: Callable[[], Any], times: int = 1) -> None:
        """Somebody acts before each of our next writes over the Lease."""
        for _ in range(times):
            self.network.before(f"PUT {PATH}/jobs", act)

    async def label(self) -> None:
        """Somebody writes something that is no concern of ours."""
        await self.foreign("jobs", self.spec.get("holderIdentity", ""))


class Stream:
    """One watch: events since a version, then those that come."""

    def __init__(self, server: Server, key: Key, since: str | None) -> None:
        self.status = server.watch_status
        self.since = since
        self.closed = False
        self.content = self
        self._server = server
        self._key = key
        self._told = int(since or 0)
        self._more: list[bytes] = []

    async def say(self, line: bytes) -> None:
        """What is read next."""
        async with self._server._changed:
            self._more.append(line)
            self._server._changed.notify_all()

    async def readline(self) -> bytes:
        server = self._server
        async with server._changed:
            while True:
                if self._more:
                    return self._more.pop(0)
                for version, key, event in server.events:
                    if version > self._told and key == self._key:
                        self._told = version
                        return json.dumps(event).encode() + b"\n"
                await server._changed.wait()

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def server(network: Network) -> Server:
    return Server(network)


def opened(options: str = "") -> Guard:
    return make_guard(f"kubernetes://h?tls=no{options}", "jobs")


async def silence(_: Any) -> Any:
    await asyncio.Event().wait()

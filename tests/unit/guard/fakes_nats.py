"""NATS in memory, in virtual time: buckets with revisions, watchers, and what disturbs.

It stands where the guard has its client, and does what `nats.js.kv` does with a server. An act can
be put before a request (`on`): somebody else is quicker, a bucket vanishes, an answer is lost.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, TypeVar

import msgspec
import pytest
from nats.errors import TimeoutError as NoNews
from nats.js.api import StorageType
from nats.js.errors import (
    BucketNotFoundError,
    KeyNotFoundError,
    KeyWrongLastSequenceError,
    NoStreamResponseError,
)

from hustings.guard import Holder, make_guard
from hustings.guard import nats as module
from hustings.guard.nats import NatsGuard, NatsRecord

T = TypeVar("T")

ADA, BEN = Holder("ada", 1), Holder("ben", 1)
TTL = 5.0
LATENCY = 0.001  # seconds from a question to its answer
LOST, SILENT = "lost", "silent"  # what may become of an answer


@dataclass
class Found:
    """The newest entry of a key; a deletion has no value."""

    value: bytes | None
    revision: int
    deleted: bool = False


@dataclass
class Bucket:
    """A bucket with its settings."""

    storage: StorageType = StorageType.FILE
    max_age: float | None = None
    replicas: int = 1
    direct: bool | None = None
    entries: dict[str, Found] = field(default_factory=dict)
    newest: int = 0

    def add(self, key: str, value: bytes | None, deleted: bool = False) -> int:
        self.newest += 1
        self.entries[key] = Found(value, self.newest, deleted)
        return self.newest


@dataclass
class Act:
    """Something that happens at the nth request of a kind."""

    kind: str
    key: str | None
    nth: int
    act: Callable[[], object]


class Server:
    """What all clients talk to."""

    def __init__(self) -> None:
        self.buckets: dict[str, Bucket] = {}
        self.clients: list[FakeClient] = []
        self.watchers: list[Watcher] = []
        self.asked: list[tuple[str, str, float]] = []  # what, which key, when
        self.greets: Callable[[FakeClient], Awaitable[None]] | None = None
        self._acts: list[Act] = []

    # What tests do

    def on(
        self, kind: str, act: Callable[[], object], key: str | None = None, nth: int = 1
    ) -> None:
        """Before the nth such request is carried out; an act may return what becomes of it."""
        self._acts.append(Act(kind, key, nth, act))

    def put(self, text: str, key: str = "jobs", bucket: str = "hustings") -> int:
        """Somebody else writes; the new revision."""
        revision = self.buckets.setdefault(bucket, Bucket()).add(key, text.encode())
        self._fire(key)
        return revision

    def delete(self, key: str = "jobs", bucket: str = "hustings") -> int:
        revision = self.buckets[bucket].add(key, b"", deleted=True)
        self._fire(key)
        return revision

    def found(self, key: str = "jobs", bucket: str = "hustings") -> str:
        return (self.buckets[bucket].entries[key].value or b"").decode()

    def count(self, kind: str, key: str | None = None) -> int:
        return sum(each[0] == kind and key in (None, each[1]) for each in self.asked)

    async def cut(self) -> None:
        """All connections end, and are made anew."""
        for each in self.clients:
            await each.options["disconnected_cb"]()

    # What the server does

    async def answer(self, kind: str, key: str, perform: Callable[[], T]) -> T:
        await asyncio.sleep(LATENCY)
        self.asked.append((kind, key, asyncio.get_running_loop().time()))
        told = await self._disturbed(kind, key)
        if isinstance(told, Exception):
            raise told
        if told == SILENT:
            await asyncio.sleep(3600.0)
        done = perform()
        if told == LOST:
            await asyncio.sleep(3600.0)
        return done

    async def _disturbed(self, kind: str, key: str) -> object:
        for each in [e for e in self._acts if e.kind == kind and e.key in (None, key)]:
            each.nth -= 1
            if each.nth == 0:
                self._acts.remove(each)
                told = each.act()
                if inspect.isawaitable(told):
                    told = await told
                if told is not None:
                    return told
        return None

    def _fire(self, key: str) -> None:
        for each in self.watchers:
            if each.key == key:
                each.news.put_nowait(key)


class FakeClient:
    """A connection."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.options: dict[str, Any] = {}
        self.closed = 0
        self._connecting = False

    async def connect(self, **options: Any) -> None:
        self.options = options
        self.server.clients.append(self)
        self._connecting = True
        try:
            await asyncio.sleep(LATENCY)
            if self.server.greets is not None:
                await self.server.greets(self)
        finally:
            self._connecting = False

    async def close(self) -> None:
        assert not self._connecting, "what still connects is not closed"
        self.closed += 1

    def jetstream(self, timeout: float) -> Stream:
        return Stream(self.server, timeout)


class Stream:
    """JetStream, for one client."""

    def __init__(self, server: Server, timeout: float) -> None:
        self.server = server
        self.timeout = timeout

    async def key_value(self, bucket: str) -> Store:
        def find() -> Store:
            if bucket not in self.server.buckets:
                raise BucketNotFoundError
            return Store(self.server, bucket, self.timeout)

        return await self.server.answer("find", bucket, find)

    async def create_key_value(
        self, bucket: str, storage: StorageType, replicas: int, direct: bool
    ) -> Store:
        def make() -> Store:
            made = Bucket(storage, replicas=replicas, direct=direct)
            self.server.buckets.setdefault(bucket, made)
            return Store(self.server, bucket, self.timeout)

        return await self.server.answer("make", bucket, make)


class Store:
    """A bucket, for one client."""

    def __init__(self, server: Server, bucket: str, timeout: float) -> None:
        self.server = server
        self.bucket = bucket
        self.timeout = timeout

    def _there(self) -> Bucket:
        if self.bucket not in self.server.buckets:
            raise NoStreamResponseError
        return self.server.buckets[self.bucket]

    async def status(self) -> Any:
        def tell() -> Any:
            return SimpleNamespace(stream_info=SimpleNamespace(config=self._there()))

        return await self.server.answer("status", self.bucket, tell)

    async def get(self, key: str) -> Found:
        def read() -> Found:
            bucket = self.server.buckets.get(self.bucket)
            entry = bucket and bucket.entries.get(key)
            if not entry:
                raise KeyNotFoundError
            if entry.deleted:
                raise KeyNotFoundError(entry, "DEL")
            return entry

        return await self.server.answer("get", key, read)

    async def put(self, key: str, value: bytes) -> int:
        return await self.server.answer("put", key, lambda: self._add(key, value))

    async def create(self, key: str, value: bytes) -> int:
        def write() -> int:
            entry = self._there().entries.get(key)
            if entry is not None and not entry.deleted:
                raise KeyWrongLastSequenceError("wrong last sequence")
            return self._add(key, value)

        return await self.server.answer("create", key, write)

    async def update(self, key: str, value: bytes, last: int) -> int:
        def write() -> int:
            entry = self._there().entries.get(key)
            if last != (0 if entry is None else entry.revision):
                raise KeyWrongLastSequenceError("wrong last sequence")
            return self._add(key, value)

        return await self.server.answer("update", key, write)

    def _add(self, key: str, value: bytes) -> int:
        revision = self._there().add(key, value)
        self.server._fire(key)
        return revision

    async def watch(self, key: str) -> Watcher:
        def begin() -> Watcher:
            self._there()
            self.server.watchers.append(Watcher(self.server, key))
            return self.server.watchers[-1]

        return await self.server.answer("watch", key, begin)


class Watcher:
    """A subscription."""

    def __init__(self, server: Server, key: str) -> None:
        self.server = server
        self.key = key
        self.news: asyncio.Queue[str] = asyncio.Queue()
        self.waits: list[float] = []

    async def updates(self, timeout: float) -> str:
        self.waits.append(timeout)
        try:
            return await asyncio.wait_for(self.news.get(), timeout)
        except TimeoutError:
            raise NoNews from None

    async def stop(self) -> None:
        await self.server.answer("stop", self.key, lambda: self.server.watchers.remove(self))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    """A server that every guard's client connects to."""
    made = Server()
    monkeypatch.setattr(module, "_Client", lambda: FakeClient(made))
    return made


def closed_guard(url: str = "nats://h", group: str = "jobs") -> NatsGuard:
    made = make_guard(url, group)
    assert isinstance(made, NatsGuard)
    return made


async def opened(url: str = "nats://h", group: str = "jobs") -> NatsGuard:
    made = closed_guard(url, group)
    await made.open()
    return made


def record(server: Server) -> NatsRecord:
    """What the bucket holds of the lease."""
    return msgspec.json.decode(server.found(), type=NatsRecord)

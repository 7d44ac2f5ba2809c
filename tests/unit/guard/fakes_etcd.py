"""The part of etcd that an election needs, in memory, behind the stubs that the guard uses.

Keys with revisions, transactions, leases that end in virtual time, watches, logins; and nodes that
are down or silent. `before` and `after` let somebody else act between two requests.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import grpc
from aetcd import rpc

from hustings.guard import Guard, etcd_nodes, make_guard
from tests.net.kit.virtual import now

Act = Callable[[], object]  # awaited if it can be
LEASE_MISSING = "etcdserver: requested lease not found"


def failure(code: grpc.StatusCode, details: str) -> grpc.aio.AioRpcError:
    nothing = grpc.aio.Metadata()
    return grpc.aio.AioRpcError(code, nothing, nothing, details=details)


class Asked(NamedTuple):
    """One request, as a node has seen it."""

    target: str
    method: str
    request: Any
    timeout: float | None
    metadata: tuple[tuple[str, str], ...]


class Etcd:
    """A cluster: one store, reached by any of its nodes."""

    def __init__(self) -> None:
        self.revision = 1
        self.keys: dict[bytes, Any] = {}
        self.leases: dict[int, tuple[int, float]] = {}  # granted for, until
        self.shortest = 1  # lease in seconds
        self.accounts: dict[str, str] = {}
        self.logins: set[str] = set()
        self.down: dict[str, grpc.aio.AioRpcError] = {}  # by target
        self.silent: set[str] = set()
        self.mute_renewals = False  # their streams end without a word
        self.stood_still = 0.0  # for so long the client's process did nothing
        self.asked: list[Asked] = []
        self.channels: list[Channel] = []
        self.streams: list[Stream] = []
        self._acts: list[tuple[str, str, int, Act]] = []

    # What tests do

    def before(self, method: str, act: Act, skip: int = 0) -> None:
        """Somebody acts once, before a request of this kind is looked at."""
        self._acts.append(("before", method, skip, act))

    def after(self, method: str, act: Act, skip: int = 0) -> None:
        """Somebody acts once, when a request was carried out and is not yet answered."""
        self._acts.append(("after", method, skip, act))

    def write(self, key: str, value: str, lease: int = 0) -> int:
        """What somebody else writes; the revision."""
        self.revision += 1
        self._put(key.encode(), value.encode(), lease, self.revision)
        return self.revision

    def erase(self, key: str) -> None:
        self.revision += 1
        del self.keys[key.encode()]
        self._tell(key.encode())

    def text(self, key: str) -> str | None:
        found = self.keys.get(key.encode())
        return None if found is None else found.value.decode()

    def standing(self, name: str) -> list[str]:
        """Keys of an election."""
        return [key.decode() for key in self.keys if key.startswith(f"{name}/".encode())]

    def methods(self) -> list[str]:
        return [each.method for each in self.asked]

    def grant(self, lease: int, seconds: int) -> None:
        self.leases[lease] = (seconds, now() + seconds)

    def forget(self) -> None:
        """Come back without a store."""
        self.revision, self.keys, self.leases = 1, {}, {}

    # What nodes do

    async def serve(self, asked: Asked) -> Any:
        self.asked.append(asked)
        if asked.target in self.down:
            raise self.down[asked.target]
        if asked.target in self.silent:
            await asyncio.Event().wait()
        await self._interlude("before", asked.method)
        self.expire()
        self._check_login(asked)
        name = re.sub("([A-Z])", r"_\1", asked.method).lower()  # _lease_grant, for one
        answer = getattr(self, name)(asked.request)
        await self._interlude("after", asked.method)
        return answer

    async def _interlude(self, when: str, method: str) -> None:
        for number, (moment, name, skip, act) in enumerate(self._acts):
            if (moment, name) == (when, method):
                if skip:
                    self._acts[number] = (moment, name, skip - 1, act)
                    continue
                del self._acts[number]
                waiting = act()
                if isinstance(waiting, Awaitable):
                    await waiting
                return

    def _check_login(self, asked: Asked) -> None:
        if not self.accounts or asked.method == "Authenticate":
            return
        token = dict(asked.metadata).get("token")
        if token is None:
            raise failure(rpc.StatusCode.INVALID_ARGUMENT, "etcdserver: user name is empty")
        if token not in self.logins:
            raise failure(rpc.StatusCode.UNAUTHENTICATED, "etcdserver: invalid auth token")

    def _authenticate(self, request: Any) -> Any:
        if not self.accounts:
            raise failure(
                rpc.StatusCode.FAILED_PRECONDITION, "etcdserver: authentication is not enabled"
            )
        if self.accounts.get(request.name) != request.password:
            raise failure(
                rpc.StatusCode.INVALID_ARGUMENT,
                "etcdserver: authentication failed, invalid user ID or password",
            )
        token = f"login-{len(self.logins) + 1}"
        self.logins.add(token)
        return rpc.AuthenticateResponse(token=token)

    # Keys

    def _range(self, request: Any) -> Any:
        found = [self.keys[key] for key in self._within(request.key, request.range_end)]
        if request.sort_target == rpc.RangeRequest.CREATE:
            found.sort(key=lambda each: each.create_revision)
        return rpc.RangeResponse(header=self._header(), kvs=found)

    def _txn(self, request: Any) -> Any:
        revision = self.revision + 1
        succeeded, answers = self._branch(request, revision)
        return rpc.TxnResponse(header=self._header(), succeeded=succeeded, responses=answers)

    def _branch(self, request: Any, revision: int) -> tuple[bool, list[Any]]:
        holds = all(self._holds(each) for each in request.compare)
        operations = request.success if holds else request.failure
        return holds, [self._operate(each, revision) for each in operations]

    def _operate(self, operation: Any, revision: int) -> Any:
        kind = operation.WhichOneof("request")
        if kind == "request_range":
            return rpc.ResponseOp(response_range=self._range(operation.request_range))
        if kind == "request_txn":
            succeeded, answers = self._branch(operation.request_txn, revision)
            inner = rpc.TxnResponse(succeeded=succeeded, responses=answers)
            return rpc.ResponseOp(response_txn=inner)
        if kind == "request_put":
            put = operation.request_put
            self._put(put.key, put.value, put.lease, revision)
            return rpc.ResponseOp(response_put=rpc.PutResponse())
        gone = [k for k in (operation.request_delete_range.key,) if k in self.keys]
        for key in gone:
            del self.keys[key]
            self.revision = revision
            self._tell(key)
        return rpc.ResponseOp(response_delete_range=rpc.DeleteRangeResponse(deleted=len(gone)))

    def _put(self, key: bytes, value: bytes, lease: int, revision: int) -> None:
        if lease and lease not in self.leases:
            raise failure(rpc.StatusCode.NOT_FOUND, LEASE_MISSING)
        old = self.keys.get(key)
        self.revision = revision
        self.keys[key] = rpc.KeyValue(
            key=key,
            value=value,
            lease=lease,
            create_revision=revision if old is None else old.create_revision,
            mod_revision=revision,
            version=1 if old is None else old.version + 1,
        )
        self._tell(key)

    def _holds(self, compare: Any) -> bool:
        assert compare.result == rpc.Compare.EQUAL
        found = [self.keys[key] for key in self._within(compare.key, compare.range_end)]
        if compare.target == rpc.Compare.VALUE:
            return bool(found) and all(each.value == compare.value for each in found)
        found = found or [rpc.KeyValue()]
        if compare.target == rpc.Compare.MOD:
            return all(each.mod_revision == compare.mod_revision for each in found)
        return all(each.create_revision == compare.create_revision for each in found)

    def _within(self, key: bytes, end: bytes) -> list[bytes]:
        return sorted(k for k in self.keys if (key <= k < end if end else k == key))

    def _header(self) -> Any:
        return rpc.ResponseHeader(revision=self.revision)

    # Leases

    def expire(self) -> None:
        for lease in [each for each, (_, until) in self.leases.items() if until <= now()]:
            self._end_lease(lease)

    def _end_lease(self, lease: int) -> None:
        del self.leases[lease]
        gone = [key for key, each in self.keys.items() if each.lease == lease]
        self.revision += bool(gone)
        for key in gone:
            del self.keys[key]
            self._tell(key)

    def _lease_grant(self, request: Any) -> Any:
        if request.ID in self.leases:
            raise failure(rpc.StatusCode.FAILED_PRECONDITION, "etcdserver: lease already exists")
        assert request.ID > 0
        self.grant(request.ID, max(request.TTL, self.shortest))
        return rpc.LeaseGrantResponse(header=self._header(), ID=request.ID)

    def _lease_revoke(self, request: Any) -> Any:
        if request.ID not in self.leases:
            raise failure(rpc.StatusCode.NOT_FOUND, LEASE_MISSING)
        self._end_lease(request.ID)
        return rpc.LeaseRevokeResponse(header=self._header())

    def _lease_time_to_live(self, request: Any) -> Any:
        if request.ID not in self.leases:
            return rpc.LeaseTimeToLiveResponse(ID=request.ID, TTL=-1, grantedTTL=0)
        granted, until = self.leases[request.ID]
        left = int(until - now())
        return rpc.LeaseTimeToLiveResponse(ID=request.ID, TTL=left, grantedTTL=granted)

    def _lease_keep_alive(self, request: Any) -> Any:
        if self.mute_renewals:
            return None
        granted = 0
        if request.ID in self.leases:
            granted, _ = self.leases[request.ID]
            self.grant(request.ID, granted)
        return rpc.LeaseKeepAliveResponse(ID=request.ID, TTL=granted)

    # Watches

    def _watch(self, request: Any) -> Any:
        return rpc.WatchResponse(created=True)

    def _tell(self, key: bytes) -> None:
        for stream in self.streams:
            stream.tell(key)


class Channel:
    """What stubs speak through: closing it gives up what is under way."""

    def __init__(self, etcd: Etcd, target: str, tls: Any = None) -> None:
        self.etcd = etcd
        self.target = target
        self.tls = tls
        self.closed = False
        self._calls: set[asyncio.Future[Any]] = set()
        etcd.channels.append(self)

    async def close(self) -> None:
        self.closed = True
        for call in self._calls:
            call.cancel()

    def unary_unary(self, path: str, **_: Any) -> Any:
        method = path.rpartition("/")[2]

        async def call(request: Any, timeout: float, metadata: Any = ()) -> Any:
            return await self.ask(Asked(self.target, method, request, timeout, tuple(metadata)))

        return call

    def stream_stream(self, path: str, **_: Any) -> Any:
        method = path.rpartition("/")[2]

        def call(
            requests: Iterator[Any] | None = None, timeout: float | None = None, metadata: Any = ()
        ) -> Stream:
            return Stream(self, method, requests, timeout, tuple(metadata))

        return call

    async def ask(self, asked: Asked) -> Any:
        if self.closed:
            raise grpc.aio.UsageError("Channel is closed.")
        work = asyncio.ensure_future(self._timed(asked))
        self._calls.add(work)
        try:
            return await work
        finally:
            self._calls.discard(work)

    async def _timed(self, asked: Asked) -> Any:
        try:
            async with asyncio.timeout(asked.timeout):
                return await self.etcd.serve(asked)
        except TimeoutError:
            raise failure(rpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded") from None


class Stream:
    """A call with many requests and answers; it is read in one way only, as grpc's are."""

    def __init__(
        self,
        channel: Channel,
        method: str,
        requests: Iterator[Any] | None,
        timeout: float | None,
        metadata: tuple[tuple[str, str], ...],
    ) -> None:
        self.cancelled = False
        self._channel = channel
        self._method = method
        self._requests = requests
        self._timeout = timeout
        self._metadata = metadata
        self._style = ""
        self._range = (b"", b"")
        self._answers: asyncio.Queue[Any] = asyncio.Queue()
        channel.etcd.streams.append(self)

    def cancel(self) -> bool:
        self.cancelled = True
        self._answers.put_nowait(asyncio.CancelledError())
        return True

    def put(self, answer: Any) -> None:
        """What is read next: an answer, the end, or an error."""
        self._answers.put_nowait(answer)

    def tell(self, key: bytes) -> None:
        begin, end = self._range
        if begin <= key < end:
            self.put(rpc.WatchResponse(events=[rpc.Event(kv=rpc.KeyValue(key=key))]))

    async def write(self, request: Any) -> None:
        created = request.create_request
        answer = await self._ask(request)
        self._range = (created.key, created.range_end)
        self.put(answer)

    async def read(self) -> Any:
        self._use("read")
        answer = await self._answers.get()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def __aiter__(self) -> AsyncIterator[Any]:
        self._use("iterate")
        for request in self._requests or ():
            answer = await self._ask(request)
            if answer is not None:
                yield answer

    def _use(self, style: str) -> None:
        if self._style not in ("", style):
            raise grpc.aio.UsageError("streams are read in one way only")
        self._style = style

    async def _ask(self, request: Any) -> Any:
        channel = self._channel
        asked = Asked(channel.target, self._method, request, self._timeout, self._metadata)
        return await channel.ask(asked)


def patched(monkeypatch: Any) -> Etcd:
    """A cluster that every address leads to, on the clock of the running loop."""
    etcd = Etcd()

    def secure(target: str, tls: Any, options: Any) -> Channel:
        assert tls is not None
        return Channel(etcd, target, tls)

    clock = SimpleNamespace(monotonic=lambda: now() + etcd.stood_still)
    monkeypatch.setattr(etcd_nodes, "time", clock)
    monkeypatch.setattr(rpc, "insecure_channel", lambda target, options: Channel(etcd, target))
    monkeypatch.setattr(rpc, "secure_channel", secure)
    return etcd


def opened(options: str = "") -> Guard:
    return make_guard(f"etcd://h{options}", "jobs")

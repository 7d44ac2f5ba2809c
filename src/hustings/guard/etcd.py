"""A guard on etcd, in the same election as `etcdctl elect` and Go's concurrency.Election.

Layout     Under the election's name, one key per candidate: name/lease in hex. Its value is the
           candidate's name. The key is bound to the candidate's lease. The candidate with the
           oldest key leads. The revision of the key's creation is the token. Revisions only grow,
           so tokens do.
Recovery   A cluster that has lost its store counts revisions anew. An operator then writes a key
           beside the election (name.base). Its number is added to every revision to make a token.
           Foreign candidates do not know this key, and do not need it.
Identity   A word in one more key (name.identity), drawn by the first member.
Success    Likewise (name.success).
Fairness   Our members do not queue: they create a key only if there is none under the name, in one
           transaction. So a foreign candidate that queues is never overtaken.
Lease      Granted by consensus, so after the question was sent. A renewal asks one node for the key
           first. The node cannot answer without the present leader of the cluster. Then the renewal
           goes to the same node. A leader of the cluster may have been deposed without knowing it
           (it was paused, say). Its answer is thereby no older than the question, and the new
           leader gives every lease its full time from its own start.
Transfer   `release(to=...)` leaves a key beside the election (name.next) for the rest of the lease.
           Meanwhile only that member creates a key. Foreign candidates do not know this key.

The path of the address and the group make the election's name (`path/group`, or the group alone).
The option `election` gives the full name. Leases are whole seconds, rounded up. A cluster with the
usual settings makes a lease of one second last two, so that the cluster's own elections do not end
it.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

import grpc
from aetcd import rpc

from hustings.core.errors import BadInput
from hustings.guard.base import (
    DECIDED,
    Behind,
    Floor,
    Guarantees,
    Guard,
    HeldBy,
    Holder,
    Holding,
    NotGranted,
    Unreachable,
    base_of,
)
from hustings.guard.etcd_nodes import EtcdLine, Nodes, tls_files
from hustings.guard.observer import Feed, SeenLease, follow
from hustings.guard.pending_releases import PendingReleases
from hustings.guard.urls import NET_S, TIMEOUT_S, GuardUrl, seconds

PORT = 2379
SHORTEST = 1.0  # etcd counts whole seconds


class Queue(NamedTuple):
    """The candidates in the order of their keys' creation, at one moment."""

    candidates: list[Any]
    base: int  # the number that is added to revisions
    base_version: int  # the revision that wrote the base; 0 without a base
    revision: int  # of the whole cluster

    @property
    def last(self) -> int:
        """The last token; all later tokens are larger."""
        return self.revision + self.base

    def token(self, key: Any) -> int:
        return int(key.create_revision) + self.base

    def is_of(self, key: Any, holder: Holder, token: int) -> bool:
        return self.token(key) == token and _belongs(key, holder)


class EtcdGuard(Guard):
    """The election `name` of a cluster."""

    guarantees = Guarantees(
        monotone=True,
        proviso=f"a cluster that lost its store, or was restored from a snapshot, {DECIDED}",
    )
    recovers = True

    def __init__(self, nodes: Nodes, name: str) -> None:
        super().__init__()
        self.nodes = nodes
        self.name = name
        self.prefix = f"{name}/".encode()
        self.end = f"{name}0".encode()  # "0" follows "/": the end of all keys that begin with name/
        self.next_key = f"{name}.next".encode()
        self.base_key = f"{name}.base".encode()
        self._returns = PendingReleases()
        self._highest = 0  # highest token that any observer has seen

    def check_ttl(self, ttl: float) -> None:
        super().check_ttl(ttl)
        if ttl < SHORTEST:
            raise BadInput(f"ttl must be at least {SHORTEST:g} s with etcd, not {ttl:g}")

    async def open(self) -> None:
        await self.nodes.converse(self._queue, opening=True)

    async def close(self) -> None:
        await self.nodes.close()

    # Questions

    async def _acquire(self, holder: Holder, ttl: float, floor: Floor) -> int | HeldBy | Behind:
        await self._returns.settle(holder, self._release)
        # the same lease in all attempts: an earlier attempt may have worked
        lease = _lease_for(holder)

        async def talk(line: EtcdLine) -> int | HeldBy | Behind:
            queue = await self._queue(line)
            entered = not queue.candidates
            if entered:
                if queue.last < floor.known:
                    return Behind(queue.last)
                queue = await self._enter(line, holder, lease, ttl)
            if not queue.candidates:
                return await self._reserved(line, ttl)
            first = queue.candidates[0]
            token = queue.token(first)
            if not _belongs(first, holder):
                return await self._held(line, first, token, ttl)
            # its own token, but it has heard since that members do not believe it
            if token < floor.known:
                await self._withdraw(line, first, None)
                return HeldBy("", 0, 0.0) if queue.last >= floor.known else Behind(queue.last)
            if entered or await self._prolong(line, first, holder, ttl):
                return token
            return HeldBy(holder.name, token, 0.0)  # this key is about to go

        return await self.nodes.converse(talk)

    async def _renew(self, holder: Holder, token: int, ttl: float) -> None:
        async def talk(line: EtcdLine) -> None:
            queue = await self._queue(line)
            candidates = queue.candidates
            if not candidates or not queue.is_of(candidates[0], holder, token):
                raise NotGranted(f"{holder} does not hold {token} any more")
            if not await self._prolong(line, candidates[0], holder, ttl):
                raise NotGranted(f"the lease of {holder} has run out")

        await self.nodes.converse(talk)

    async def _release(self, holder: Holder, token: int, to: str | None) -> None:
        async def talk(line: EtcdLine) -> None:
            queue = await self._queue(line)
            for each in queue.candidates:
                if queue.is_of(each, holder, token):
                    await self._withdraw(line, each, to)

        self._returns.sent(holder, token)
        await self.nodes.converse(talk)
        self._returns.confirmed(holder, token)

    async def _word(self, kind: str, word: str, *, instead: bool) -> str:
        """A word in one more key.

        The cluster's id as identity will not do: etcd derives it from settings that two may share.
        """
        key = f"{self.name}.{kind}".encode()
        read = rpc.RequestOp(request_range=rpc.RangeRequest(key=key))
        none = [] if instead else [_compare(key, create_revision=0)]
        put = _put(key, word, 0)

        async def talk(line: EtcdLine) -> str:
            request = rpc.TxnRequest(compare=none, success=[put, read], failure=[read])
            answer = await line.call(line.kv.Txn, request)
            return _text(answer.responses[-1].response_range.kvs[0].value)

        return await self.nodes.converse(talk)

    async def _recover(self, above: int) -> None:
        """A member that holds the lease meanwhile gets a larger token when it asks next."""

        async def talk(line: EtcdLine) -> bool:
            queue = await self._queue(line)
            if queue.last >= above:
                return True
            request = rpc.TxnRequest(
                compare=[_compare(self.base_key, mod_revision=queue.base_version)],
                success=[_put(self.base_key, str(above), 0)],
            )
            return bool((await line.call(line.kv.Txn, request)).succeeded)

        while not await self.nodes.converse(talk):
            pass  # another operator has just written it

    async def _queue(self, line: EtcdLine) -> Queue:
        """The candidates and the base. A majority answers, so they are never stale."""
        standing = rpc.RangeRequest(
            key=self.prefix,
            range_end=self.end,
            sort_target=rpc.RangeRequest.CREATE,
            sort_order=rpc.RangeRequest.ASCEND,
        )
        request = rpc.TxnRequest(
            success=[
                rpc.RequestOp(request_range=standing),
                rpc.RequestOp(request_range=rpc.RangeRequest(key=self.base_key)),
            ]
        )
        answer = await line.call(line.kv.Txn, request)
        candidates, bases = (list(each.response_range.kvs) for each in answer.responses)
        base, version = 0, 0
        for key in bases:
            base = base_of(key.value, f"key {self.name}.base in etcd")
            version = int(key.mod_revision)
        return Queue(candidates, base, version, int(answer.header.revision))

    async def _enter(self, line: EtcdLine, holder: Holder, lease: int, ttl: float) -> Queue:
        """Create a key if there is no candidate and no reservation. Then return the candidates."""
        try:
            grant = rpc.LeaseGrantRequest(TTL=math.ceil(ttl), ID=lease)
            await line.call(line.leases.LeaseGrant, grant)
        except rpc.AioRpcError as error:
            if "already exists" not in str(error.details()):
                raise  # otherwise an earlier attempt arrived after all
        nobody = _compare(self.prefix, create_revision=0, range_end=self.end)
        free = _compare(self.next_key, create_revision=0)
        mine = _compare(self.next_key, value=holder.name.encode())
        put = _put(self.prefix + b"%x" % lease, holder.name, lease)
        clear = _delete(self.next_key)
        reserved = rpc.TxnRequest(compare=[nobody, mine], success=[put, clear])
        request = rpc.TxnRequest(
            compare=[nobody, free],
            success=[put],
            failure=[rpc.RequestOp(request_txn=reserved)],
        )
        await line.call(line.kv.Txn, request)
        queue = await self._queue(line)
        if not any(int(each.lease) == lease for each in queue.candidates):
            await self._revoke(line, lease)
        return queue

    async def _prolong(self, line: EtcdLine, key: Any, holder: Holder, ttl: float) -> bool:
        """Renew the lease of a key. If the time is too short, bind the key to a longer lease.

        Return whether the key is kept.
        """
        granted = await line.keep_alive(key.lease)
        if granted <= 0 or granted >= ttl:
            return granted > 0
        lease = _lease_for(holder)
        grant = rpc.LeaseGrantRequest(TTL=math.ceil(ttl), ID=lease)
        await line.call(line.leases.LeaseGrant, grant)
        request = rpc.TxnRequest(
            compare=[_compare(key.key, create_revision=key.create_revision)],
            success=[_put(key.key, holder.name, lease)],
        )
        kept = bool((await line.call(line.kv.Txn, request)).succeeded)
        await self._revoke(line, int(key.lease) if kept else lease)
        return kept

    async def _withdraw(self, line: EtcdLine, key: Any, to: str | None) -> None:
        success = [_delete(key.key)]
        if to is not None:
            success.append(_put(self.next_key, to, key.lease))
        request = rpc.TxnRequest(
            compare=[_compare(key.key, create_revision=key.create_revision)], success=success
        )
        await line.call(line.kv.Txn, request)
        if to is None:
            await self._revoke(line, int(key.lease))

    async def _revoke(self, line: EtcdLine, lease: int) -> None:
        try:
            await line.call(line.leases.LeaseRevoke, rpc.LeaseRevokeRequest(ID=lease))
        except rpc.AioRpcError as error:
            if error.code() != rpc.StatusCode.NOT_FOUND:
                raise

    async def _held(self, line: EtcdLine, key: Any, token: int, ttl: float) -> HeldBy:
        remaining = await self._remaining(line, int(key.lease), ttl)
        return HeldBy(_text(key.value), token, remaining)

    async def _reserved(self, line: EtcdLine, ttl: float) -> HeldBy:
        """There is no candidate, and yet no key could be created: the place is reserved."""
        answer = await line.call(line.kv.Range, rpc.RangeRequest(key=self.next_key))
        for key in answer.kvs:
            remaining = await self._remaining(line, int(key.lease), ttl)
            return HeldBy(_text(key.value), 0, remaining)
        return HeldBy("", 0, 0.0)  # the reservation has just ended: ask again

    async def _remaining(self, line: EtcdLine, lease: int, ttl: float) -> float:
        if lease == 0:
            return ttl  # a key without a lease stays until a client deletes it
        answer = await line.call(line.leases.LeaseTimeToLive, rpc.LeaseTimeToLiveRequest(ID=lease))
        return float(min(max(answer.TTL + 1, 0), answer.grantedTTL))  # etcd rounds down

    # Watching

    def _observe(self) -> AsyncIterator[Holding]:
        return follow(self._watch, NET_S)

    @asynccontextmanager
    async def _watch(self) -> AsyncIterator[Feed]:
        create = rpc.WatchCreateRequest(key=self.prefix, range_end=self.end)

        async def begin(line: EtcdLine) -> Any:
            stream = line.watch()
            await stream.write(rpc.WatchRequest(create_request=create))
            await stream.read()  # etcd's answer that the watch has begun
            return stream

        stream = await self.nodes.converse(begin)
        feed = _Feed(self)
        pump = asyncio.create_task(feed.pump(stream))
        try:
            yield feed
        finally:
            stream.cancel()
            pump.cancel()
            await asyncio.wait([pump])


class _Feed:
    """An observer's watch. It only says when to look."""

    def __init__(self, guard: EtcdGuard) -> None:
        self._guard = guard
        self._news = asyncio.Event()
        self._over = False

    async def pump(self, stream: Any) -> None:
        try:
            with suppress(rpc.AioRpcError, asyncio.InvalidStateError):
                # As in `begin`: a stream is read in one way only.
                while (change := await stream.read()) is not grpc.aio.EOF and not change.canceled:
                    self._news.set()
        finally:
            self._over = True
            self._news.set()

    async def look(self) -> SeenLease:
        self._news.clear()
        guard = self._guard
        queue = await guard.nodes.converse(guard._queue)
        if not queue.candidates:
            return SeenLease(Holding(None, guard._highest), 0.0)
        first = queue.candidates[0]
        token = queue.token(first)
        guard._highest = max(guard._highest, token)
        return SeenLease(Holding(_text(first.value), token), math.inf)

    async def wait(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()
        if self._over:
            raise Unreachable("the watch at etcd has ended")


def make(url: GuardUrl, group: str) -> EtcdGuard:
    """`etcd://user:password@host:port,host:port/path?election=name&timeout=2`; TLS with etcds."""
    url.only("timeout", "election", "ca", "cert", "key")
    if (url.user is None) != (url.password is None):
        raise BadInput(f"{url.scheme} needs both a user and a password, or neither")
    account = None if url.user is None or url.password is None else (url.user, url.password)
    files = [url.options.get(each) for each in ("ca", "cert", "key")]
    if url.scheme == "etcd" and any(files):
        raise BadInput("options ca, cert and key are for the scheme etcds")
    name = url.options.get("election") or (f"{url.path}/{group}" if url.path else group)
    nodes = Nodes(
        url.addresses(PORT),
        shown=url.shown,
        timeout=seconds(url, "timeout", TIMEOUT_S),
        account=account,
        tls=tls_files(*files) if url.scheme == "etcds" else None,
    )
    return EtcdGuard(nodes, name)


def _lease_for(holder: Holder) -> int:
    """A new number for a lease. Its lower half identifies the holder, also to another guard."""
    return (secrets.randbits(30) + 1) << 32 | _tag(holder)


def _tag(holder: Holder) -> int:
    return int.from_bytes(hashlib.blake2b(str(holder).encode(), digest_size=4).digest())


def _belongs(key: Any, holder: Holder) -> bool:
    """Whether a key belongs to this incarnation of this member."""
    try:
        lease = int(key.key.rpartition(b"/")[2], 16)
    except ValueError:
        return False
    return lease & 0xFFFFFFFF == _tag(holder) and _text(key.value) == holder.name


def _text(value: bytes) -> str:
    return value.decode(errors="replace")


def _compare(
    key: bytes,
    *,
    create_revision: int | None = None,
    mod_revision: int | None = None,
    value: bytes | None = None,
    range_end: bytes = b"",
) -> Any:
    if mod_revision is not None:
        return rpc.Compare(
            result=rpc.Compare.EQUAL, target=rpc.Compare.MOD, key=key, mod_revision=mod_revision
        )
    if value is not None:
        return rpc.Compare(result=rpc.Compare.EQUAL, target=rpc.Compare.VALUE, key=key, value=value)
    return rpc.Compare(
        result=rpc.Compare.EQUAL,
        target=rpc.Compare.CREATE,
        key=key,
        range_end=range_end,
        create_revision=create_revision,
    )


def _put(key: bytes, value: str, lease: int) -> Any:
    return rpc.RequestOp(request_put=rpc.PutRequest(key=key, value=value.encode(), lease=lease))


def _delete(key: bytes) -> Any:
    return rpc.RequestOp(request_delete_range=rpc.DeleteRangeRequest(key=key))

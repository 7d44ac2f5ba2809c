"""The nodes of an etcd cluster: one node at a time, each call within a time limit.

aetcd brings etcd's messages and stubs. Its client speaks no TLS, and speaks to one node only. So
this module makes the channels. A whole conversation (`converse`) goes to one node, because the
proof in a lease's renewal depends on the node that answered the question before it. So addresses
are of nodes, not of a load balancer in front of them. If the node fails, the conversation begins
again with the next node. A conversation must allow that it begins twice.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import grpc
from aetcd import rpc

from hustings.core.errors import BadInput
from hustings.guard.base import Unreachable

T = TypeVar("T")

# Every guard has a channel of its own. It reconnects quickly when a node comes back. The pause
# between pings is the shortest that etcd allows with its usual settings.
CHANNEL_OPTIONS = (
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.keepalive_time_ms", 6000),
    ("grpc.keepalive_timeout_ms", 3000),
    ("grpc.enable_http_proxy", 0),
)

PAUSE = 0.1  # seconds before all nodes are tried once more

# Errors that waiting does not cure.
HOPELESS = (
    rpc.StatusCode.INVALID_ARGUMENT,
    rpc.StatusCode.PERMISSION_DENIED,
    rpc.StatusCode.UNIMPLEMENTED,
)


class EtcdNode:
    """One node: its channel, and the token of its login."""

    def __init__(self, channel: Any, account: tuple[str, str] | None) -> None:
        self.channel = channel
        self.account = account
        self.metadata: tuple[tuple[str, str], ...] = ()


class EtcdLine:
    """One conversation with one node, which ends at a given time."""

    def __init__(self, node: EtcdNode, until: float) -> None:
        self.node = node
        self.until = until
        self.kv: Any = rpc.KVStub(node.channel)
        self.leases: Any = rpc.LeaseStub(node.channel)

    async def call(self, method: Any, request: Any) -> Any:
        """One question, one answer; raises the client's own error."""
        await self._log_in()
        return await method(request, timeout=self._left(), metadata=self.node.metadata)

    async def keep_alive(self, lease: int) -> int:
        """Renew a lease. Return for how many seconds it is renewed; 0 if it does not exist."""
        await self._log_in()
        stream = self.leases.LeaseKeepAlive(
            iter([rpc.LeaseKeepAliveRequest(ID=lease)]),
            timeout=self._left(),
            metadata=self.node.metadata,
        )
        try:
            async for answer in stream:
                return int(answer.TTL)
        finally:
            stream.cancel()
        raise Unreachable("etcd ended the renewal of a lease without an answer")

    def watch(self) -> Any:
        """A stream of changes, which lasts longer than this conversation.

        It ends when the node loses the rest of the cluster: an isolated node sees no changes.
        """
        metadata = (*self.node.metadata, ("hasleader", "true"))
        return rpc.WatchStub(self.node.channel).Watch(metadata=metadata)

    async def _log_in(self) -> None:
        if self.node.account is None or self.node.metadata:
            return
        name, password = self.node.account
        request = rpc.AuthenticateRequest(name=name, password=password)
        login = rpc.AuthStub(self.node.channel).Authenticate
        self.node.metadata = (("token", (await login(request, timeout=self._left())).token),)

    def _left(self) -> float:
        return max(self.until - time.monotonic(), 0.001)


class Nodes:
    """All nodes of a cluster."""

    def __init__(
        self,
        addresses: Sequence[tuple[str, int]],
        *,
        shown: str,
        timeout: float,
        account: tuple[str, str] | None = None,
        tls: Any = None,
    ) -> None:
        self.addresses = list(addresses)
        self.shown = shown
        self.timeout = timeout
        self._account = account
        self._tls = tls
        self._nodes: list[EtcdNode] = []
        self._closed = False
        self._first = 0  # the node to ask first: the one that answered last

    async def close(self) -> None:
        self._closed = True
        nodes, self._nodes = self._nodes, []
        for node in nodes:
            await node.channel.close()

    def _pass_over(self, number: int) -> None:
        """Ask the following node first, unless another conversation has already moved on."""
        if self._first == number:
            self._first = (number + 1) % len(self.addresses)

    async def converse(
        self, talk: Callable[[EtcdLine], Awaitable[T]], *, opening: bool = False
    ) -> T:
        """Have a conversation with a node that answers; every node gets its share of the time."""
        self._closed = self._closed and not opening
        end = time.monotonic() + self.timeout
        refusal = ""
        while True:
            before, refusal, changing = refusal, "", False
            first = self._first  # other conversations may move on to another node meanwhile
            for left in range(len(self.addresses), 0, -1):
                if self._closed:
                    raise Unreachable("the guard on etcd is closed")
                number = (first - left) % len(self.addresses)
                node = self._open()[number]
                share = max(end - time.monotonic(), 0.0) / left
                line = EtcdLine(node, time.monotonic() + share)
                try:
                    async with asyncio.timeout(share):
                        return await self._talk(line, talk)
                except TimeoutError:
                    why = f"no answer within {share:.3g} s"
                    refusal = refusal or before  # silence does not take back a refusal
                    await self._reconnect(number, node)
                except asyncio.CancelledError:
                    if _is_being_cancelled():
                        raise
                    why = "the connection was given up"  # another conversation gave it up
                except rpc.BaseError as error:
                    why = str(error)  # the same, between two questions
                except rpc.AioRpcError as error:
                    why = str(error.details())
                    if error.code() == rpc.StatusCode.DEADLINE_EXCEEDED:
                        refusal = refusal or before
                        await self._reconnect(number, node)
                    changing |= why.startswith("etcdserver:")  # for example between two leaders
                    if opening and self._is_refused(error.code(), why):
                        refusal = why
                self._pass_over(number)
            over = time.monotonic() + PAUSE >= end
            if refusal and over:
                raise BadInput(f"etcd at {self.shown} speaks no TLS, or not with us: {refusal}")
            if over or not (refusal or changing):
                raise Unreachable(f"etcd at {self.shown} cannot be used now: {why}")
            await asyncio.sleep(PAUSE)

    async def _talk(self, line: EtcdLine, talk: Callable[[EtcdLine], Awaitable[T]]) -> T:
        try:
            return await talk(line)
        except rpc.AioRpcError as error:
            if error.code() != rpc.StatusCode.UNAUTHENTICATED or not line.node.metadata:
                raise
        line.node.metadata = ()  # a login expires; the next conversation then begins anew
        return await talk(line)

    def _is_refused(self, code: Any, details: str) -> bool:
        """Whether a connection was broken off during the TLS handshake.

        A node that is just starting does so too. Only if it lasts is it a mistake.
        """
        if code in HOPELESS or "authentication is not enabled" in details:
            raise BadInput(f"etcd at {self.shown} refuses: {details}")
        if code == rpc.StatusCode.UNAUTHENTICATED:
            raise BadInput(f"etcd at {self.shown} wants another name or password: {details}")
        if "certificate" in details.lower():
            raise BadInput(
                f"etcd at {self.shown}: no TLS connection, see options ca, cert and key: {details}"
            )
        return "handshake" in details.lower()

    async def _reconnect(self, number: int, node: EtcdNode) -> None:
        """Give up a connection that does not answer: it may be dead without a sign."""
        if self._nodes and self._nodes[number] is node:
            channel = self._channel(*self.addresses[number])
            self._nodes[number] = EtcdNode(channel, self._account)
            await node.channel.close()

    def _open(self) -> list[EtcdNode]:
        if not self._nodes:
            self._nodes = [EtcdNode(self._channel(*each), self._account) for each in self.addresses]
        return self._nodes

    def _channel(self, host: str, port: int) -> Any:
        target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        if self._tls is None:
            return rpc.insecure_channel(target, options=CHANNEL_OPTIONS)
        return rpc.secure_channel(target, self._tls, options=CHANNEL_OPTIONS)


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def tls_files(ca: str | None, cert: str | None, key: str | None) -> Any:
    """The credentials of a channel, from files. The error names a file that cannot be read."""
    if (cert is None) != (key is None):
        raise BadInput("options cert and key of etcds belong together")
    contents = []
    for name, path in (("ca", ca), ("key", key), ("cert", cert)):
        try:
            contents.append(None if path is None else Path(path).read_bytes())
        except OSError as error:
            raise BadInput(f"option {name} of etcds: {error.strerror}: {path}") from None
    return grpc.ssl_channel_credentials(*contents)

"""A guard on Kubernetes: the same Lease object as client-go's leader election.

Record     A Lease (coordination.k8s.io/v1). holderIdentity is name#number. leaseDurationSeconds,
           acquireTime and renewTime are as client-go writes them. leaseTransitions grows with each
           new holder. Every write names the resourceVersion that it replaces: of two writers one
           fails.
Token      The resourceVersion with which a period of holding began. Versions of one kind of object
           are numbers that grow, also when the Lease is deleted and made anew. (leaseTransitions
           would begin again.) Renewals copy the token in an annotation. A foreign holder writes no
           annotation: its token is the version at which it was first seen. In a cluster that counts
           anew, an annotation has a number that is added to versions, so that tokens go on above
           it.
Lease      Measured by each observer, as client-go does: if a Lease stays the same for its duration,
           by the observer's own monotonic clock, it is over (`local_expiry`). Times written in the
           Lease are for people.
Transfer   `release(to=...)` leaves a name in an annotation. For as long as the lease lasted, only
           that one of our members takes it. client-go does not know the annotation.

    kubernetes://                                     in the cluster, else as kubectl would
    kubernetes:///namespace?context=name&kubeconfig=file
    kubernetes://:token@host:port/namespace?ca=file   without any of that

The Lease has the group's name. The option `lease` gives another name.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from kubernetes_asyncio import client, config

from hustings.core.errors import BadInput
from hustings.guard.base import (
    Behind,
    Floor,
    Guarantees,
    Guard,
    HeldBy,
    Holder,
    Holding,
    NotGranted,
    Unreachable,
)
from hustings.guard.local_expiry import ExpiryObserver
from hustings.guard.observer import Feed, SeenLease, follow
from hustings.guard.urls import LONGEST_TTL_S, NET_S, TIMEOUT_S, GuardUrl, one_of, seconds

SHORTEST_S = 1.0
ATTEMPTS = 5  # at a write, if another writer is quicker

EVIDENCE = (
    "tested against a small server with the documented rules and against written conversations; "
    "against Kubernetes itself only where HUSTINGS_TEST_KUBERNETES gives its address"
)


class KubernetesGuard(Guard):
    """The Lease `name` of a namespace."""

    lifts = recovers = True

    guarantees = Guarantees(
        monotone=True,
        proviso="a cluster restored from a backup counts from the backup's version; Kubernetes "
        "promises comparable versions from 1.35 on, and with etcd they are comparable before that",
        clock="each observer",
        evidence=EVIDENCE,
    )

    def __init__(
        self,
        configure: Configure,
        name: str,
        namespace: str | None,
        *,
        shown: str,
        timeout: float,
    ) -> None:
        super().__init__()
        self.name = name
        self.namespace = namespace
        self.shown = shown
        self.timeout = timeout
        self._configure = configure
        self._http: Any = None
        self._api: Any = None
        self._unchanged = ExpiryObserver()
        self._last: KubernetesLease | None = None  # the Lease that this guard wrote last
        self._first_seen: tuple[object, int] = (None, 0)  # a period of holding, and its token

    def check_ttl(self, ttl: float) -> None:
        super().check_ttl(ttl)
        if not SHORTEST_S <= ttl <= LONGEST_TTL_S:
            raise BadInput(
                f"ttl must lie between {SHORTEST_S:g} and {LONGEST_TTL_S:g} s with Kubernetes, "
                f"not {ttl:g}"
            )

    async def open(self) -> None:
        if self._http is None:
            await self._connect()
        try:
            await self._read()
        except _Refused as refusal:
            await self.close()
            if refusal.status in (400, 401, 403):
                raise BadInput(f"Kubernetes at {self.shown} refuses: {refusal.said}") from None
            raise Unreachable(f"Kubernetes at {self.shown}: {refusal.said}") from None
        except aiohttp.ClientSSLError as error:
            await self.close()
            raise BadInput(f"Kubernetes at {self.shown}: no TLS connection ({error})") from None
        except (msgspec.DecodeError, KeyError) as error:
            await self.close()
            raise Unreachable(f"what answers at {self.shown} is not Kubernetes: {error}") from None
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        http, self._http, self._api = self._http, None, None
        if http is not None:
            await http.close()

    async def _connect(self) -> None:
        settings = client.Configuration()
        namespace = await self._configure(settings)
        self.namespace = self.namespace or namespace or "default"
        try:
            self._http = client.ApiClient(settings)
        except (OSError, ssl.SSLError) as error:
            raise BadInput(f"Kubernetes at {self.shown}: its certificates: {error}") from None
        self._api = client.CoordinationV1Api(self._http)

    # Questions

    async def _acquire(self, holder: Holder, ttl: float, floor: Floor) -> int | HeldBy | Behind:
        async with self._unreachable():
            for _ in range(ATTEMPTS):
                lease = await self._read()
                if lease is not None:
                    refusal = self._refusal(lease, holder)
                    if refusal is not None:
                        return refusal
                    if lease.identity == str(holder) and self._remaining(lease) > 0:
                        token = self._token(lease)
                        if token >= floor.known:
                            if await self._write(lease, self._renewed(lease, token, ttl)):
                                return token
                            continue
                last = 0 if lease is None else max(self._token(lease), lease.base)
                if last < floor.known and not floor.lift:
                    return Behind(last)
                base = floor.known if last < floor.known else 0
                taken = await self._write(lease, self._taken(lease, holder, ttl, base))
                if taken is not None:
                    return self._token(taken)
        raise Unreachable(f"Lease {self.name} in Kubernetes at {self.shown} changes too fast")

    def _taken(
        self, lease: KubernetesLease | None, holder: Holder, ttl: float, base: int
    ) -> dict[str, Any]:
        """The Lease after `holder` takes it. A `base` lifts later tokens."""
        if lease is None:
            return new_lease(self.name, self.namespace, holder, ttl, base)
        return lease.taken(holder, ttl, base)

    async def _recover(self, above: int) -> None:
        """The present holder keeps its token. The next holder gets a larger token."""
        async with self._unreachable():
            for _ in range(ATTEMPTS):
                lease = await self._read()
                if lease is None:
                    body = new_lease(self.name, self.namespace, None, 1.0, above)
                elif lease.base >= above:
                    return
                else:
                    body = lease.lifted(self._token(lease), above)
                if await self._write(lease, body) is not None:
                    return
        raise Unreachable(f"Lease {self.name} in Kubernetes at {self.shown} changes too fast")

    async def _word(self, kind: str, word: str, *, instead: bool) -> str:
        mark = f"hustings/{kind}"  # an annotation
        async with self._unreachable():
            for _ in range(ATTEMPTS):
                lease = await self._read()
                if lease is None:
                    body = new_lease(self.name, self.namespace, None, 1.0)
                    body["metadata"]["annotations"] = {mark: word}
                elif mark in lease.marks and not instead:
                    return lease.marks[mark]
                else:
                    body = lease.marked(self._token(lease), mark, word)
                if await self._write(lease, body) is not None:
                    return word
        raise Unreachable(f"Lease {self.name} in Kubernetes at {self.shown} changes too fast")

    def _refusal(self, lease: KubernetesLease, holder: Holder) -> HeldBy | None:
        """Why the holder cannot have the Lease, or None if it can."""
        if lease.identity == str(holder):
            return None
        remaining = self._remaining(lease)
        if remaining <= 0:
            return None
        if lease.identity:
            return HeldBy(lease.holder, self._token(lease), remaining)
        successor = lease.marks.get(NEXT_MARK)
        if successor not in (None, holder.name):
            return HeldBy(str(successor), 0, remaining)
        return None

    def _remaining(self, lease: KubernetesLease) -> float:
        """For how long a Lease still counts, by this guard's clock. Other clocks may differ."""
        return self._unchanged.remaining(lease.version, lease.ttl, self.now())

    def _renewed(self, lease: KubernetesLease, token: int, ttl: float) -> dict[str, Any]:
        """The Lease after its holder renews it. It never ends before an earlier promise."""
        return lease.renewed(token, max(ttl, self._remaining(lease)))

    async def _renew(self, holder: Holder, token: int, ttl: float) -> None:
        def renewed(lease: KubernetesLease) -> dict[str, Any]:
            if self._remaining(lease) <= 0:
                raise NotGranted(f"the lease of {holder} has run out")
            return self._renewed(lease, token, ttl)

        await self._replace(holder, token, renewed)

    async def _release(self, holder: Holder, token: int, to: str | None) -> None:
        with suppress(NotGranted):
            await self._replace(holder, token, lambda lease: lease.freed(token, to))

    async def _replace(
        self, holder: Holder, token: int, make: Callable[[KubernetesLease], dict[str, Any]]
    ) -> None:
        """Write over this holder's own Lease, whichever of its writes arrived last."""
        async with self._unreachable():
            lease = self._last
            if lease is None or lease.identity != str(holder):
                lease = await self._read()
            for _ in range(ATTEMPTS):
                if lease is None or lease.identity != str(holder) or self._token(lease) != token:
                    raise NotGranted(f"{holder} does not hold {token} any more")
                if await self._write(lease, make(lease)) is not None:
                    return
                lease = await self._read()
        raise Unreachable(f"Lease {self.name} in Kubernetes at {self.shown} changes too fast")

    def _token(self, lease: KubernetesLease) -> int:
        """The token of the present holder, or of the last one."""
        if lease.carried is not None:
            return lease.carried
        if self._first_seen[0] != lease.period:
            if not lease.version.isdigit():
                raise Unreachable(f"Kubernetes at {self.shown} has versions that are no numbers")
            self._first_seen = (lease.period, int(lease.version) + lease.base)
        return self._first_seen[1]

    # HTTP

    async def _read(self) -> KubernetesLease | None:
        answer = await self._ask(
            lambda **how: self._api.read_namespaced_lease(self.name, self.namespace, **how)
        )
        return None if answer is None else KubernetesLease(answer)

    async def _write(
        self, old: KubernetesLease | None, body: dict[str, Any]
    ) -> KubernetesLease | None:
        """The Lease as it is now, or None if another writer was quicker."""
        try:
            if old is None:
                answer = await self._ask(
                    lambda **how: self._api.create_namespaced_lease(self.namespace, body, **how)
                )
            else:
                answer = await self._ask(
                    lambda **how: self._api.replace_namespaced_lease(
                        self.name, self.namespace, body, **how
                    )
                )
        except _Refused as refusal:
            if refusal.status == 409:
                return None
            raise
        if answer is None and old is None:
            raise _Refused(404, f"there is no namespace {self.namespace}")
        if answer is None:
            return None
        written = KubernetesLease(answer)
        self._last = written
        self._remaining(written)  # the time starts now, whenever the Lease is read again
        return written

    async def _ask(self, call: Callable[..., Any]) -> dict[str, Any] | None:
        """An object, or None if it does not exist."""
        if self._api is None:
            raise Unreachable("the guard on Kubernetes is not open")
        try:
            async with asyncio.timeout(self.timeout):
                answer = await call(_preload_content=False)
                said = await answer.read()
        except TimeoutError:
            raise Unreachable(f"Kubernetes at {self.shown} did not answer in time") from None
        except aiohttp.ClientSSLError:
            raise
        except (aiohttp.ClientError, OSError) as error:
            raise Unreachable(f"Kubernetes at {self.shown} cannot be used now: {error}") from None
        if answer.status == 404:
            return None
        if answer.status >= 300:
            raise _Refused(answer.status, _message(said) or f"status {answer.status}")
        return msgspec.json.decode(said, type=dict[str, Any])

    @asynccontextmanager
    async def _unreachable(self) -> AsyncIterator[None]:
        """Turn refusals into `Unreachable`: what is refused now may be allowed later."""
        try:
            yield
        except (_Refused, aiohttp.ClientError, msgspec.DecodeError, KeyError) as error:
            raise Unreachable(f"Kubernetes at {self.shown} refuses: {error}") from None

    # Watching

    def _observe(self) -> AsyncIterator[Holding]:
        return follow(self._watch, NET_S)

    @asynccontextmanager
    async def _watch(self) -> AsyncIterator[Feed]:
        async with self._unreachable():
            feed = _Feed(self)
            try:
                yield feed
            finally:
                feed.end()


class _Feed:
    """An observer's watch. It begins where the last look ended."""

    def __init__(self, guard: KubernetesGuard) -> None:
        self._guard = guard
        self._version = ""
        self._stream: Any = None

    async def look(self) -> SeenLease:
        guard = self._guard
        lease = await guard._read()
        self._version = "" if lease is None else lease.version
        if lease is None:
            return SeenLease(Holding(None, guard._first_seen[1]), 0.0)
        token = guard._token(lease)
        remaining = guard._remaining(lease)
        if not lease.identity or remaining <= 0:
            return SeenLease(Holding(None, token), 0.0)
        return SeenLease(Holding(lease.holder, token), remaining)

    async def wait(self, seconds: float) -> None:
        """Wait until the Lease differs from the last look, for at most this time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                if self._stream is None:
                    await self._begin()
                while line := await self._stream.content.readline():
                    event = msgspec.json.decode(line, type=dict[str, Any])
                    if event.get("type") == "ERROR":
                        break  # the server has forgotten the version to continue from
                    if event["object"]["metadata"]["resourceVersion"] != self._version:
                        return
                raise _Refused(410, "the watch has ended")  # servers end a watch after some minutes

    async def _begin(self) -> None:
        guard = self._guard
        how = {"resource_version": self._version} if self._version else {}
        self._stream = await guard._api.list_namespaced_lease(
            guard.namespace,
            field_selector=f"metadata.name={guard.name}",
            watch=True,
            _preload_content=False,
            **how,
        )
        if self._stream.status >= 300:
            status = self._stream.status
            self.end()
            raise _Refused(status, f"to watch (status {status})")

    def end(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()


class _Refused(Exception):
    """Kubernetes has understood the question, and refuses it."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status
        self.said = said


def make(url: GuardUrl, group: str) -> KubernetesGuard:
    """`kubernetes://:token@host:port/namespace?lease=name&ca=file`, or without a host."""
    url.only("timeout", "lease", "kubeconfig", "context", "ca", "tls")
    name = url.options.get("lease", group)
    for what, text in (("a Lease", name), ("a namespace", url.path or "default")):
        if not re.fullmatch(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", text):
            raise BadInput(
                f"{what} is named by small letters, digits, - and ., not {text!r} (option lease)"
            )
    return KubernetesGuard(
        access(url),
        name,
        url.path or None,
        shown=url.shown,
        timeout=seconds(url, "timeout", TIMEOUT_S),
    )


def _message(said: bytes) -> str:
    try:
        return str(msgspec.json.decode(said, type=dict[str, Any]).get("message", ""))
    except msgspec.DecodeError:
        return said.decode(errors="replace")[:200]


# The Lease object

# Annotations: the holder's token, the member for which the Lease is reserved, and the number that
# is added to versions. The words beside the lease are annotations, too.
TOKEN_MARK, NEXT_MARK, BASE_MARK = "hustings/token", "hustings/next", "hustings/base"
OF_OURS = re.compile(r"(.+)#\d+")


class KubernetesLease:
    """A Lease as the server shows it, and the values that are read from it."""

    def __init__(self, shown: dict[str, Any]) -> None:
        self.shown = shown
        metadata, self.spec = shown["metadata"], shown.get("spec") or {}
        self.version = str(metadata["resourceVersion"])
        self.marks: dict[str, str] = metadata.get("annotations") or {}
        self.identity = str(self.spec.get("holderIdentity") or "")
        self.ttl = float(self.spec.get("leaseDurationSeconds") or 0)
        self.transitions = int(self.spec.get("leaseTransitions") or 0)

    @property
    def holder(self) -> str:
        """The holder's name, without its incarnation if it is one of our members."""
        ours = OF_OURS.fullmatch(self.identity)
        return ours.group(1) if ours else self.identity

    @property
    def period(self) -> tuple[str, int, object]:
        """A value that stays the same during one period of holding."""
        return self.identity, self.transitions, self.spec.get("acquireTime")

    @property
    def carried(self) -> int | None:
        """The token in the annotation, if the holder has written one."""
        token, _, identity = self.marks.get(TOKEN_MARK, "").partition(" ")
        return int(token) if token.isdigit() and identity == self.identity else None

    @property
    def base(self) -> int:
        """The number that is added to a version to make a token."""
        number = self.marks.get(BASE_MARK, "")
        return int(number) if number.isascii() and number.isdigit() else 0

    def _written(self, marks: dict[str, str], **spec: object) -> dict[str, Any]:
        """The Lease after a write that changes only our fields."""
        others = {k: v for k, v in self.marks.items() if k not in (TOKEN_MARK, NEXT_MARK)}
        metadata = {**self.shown["metadata"], "annotations": {**others, **marks}}
        return {**self.shown, "metadata": metadata, "spec": {**self.spec, **spec}}

    def taken(self, holder: Holder, ttl: float, base: int) -> dict[str, Any]:
        """The Lease after another holder takes it."""
        marks = {BASE_MARK: str(base)} if base else {}
        return self._written(marks, **_begun(holder, ttl), leaseTransitions=self.transitions + 1)

    def lifted(self, token: int, base: int) -> dict[str, Any]:
        """The Lease if its holder stays, and all later tokens are larger."""
        return self.marked(token, BASE_MARK, str(base))

    def marked(self, token: int, mark: str, value: str) -> dict[str, Any]:
        """The Lease with one other annotation, and otherwise unchanged."""
        kept = {NEXT_MARK: self.marks[NEXT_MARK]} if NEXT_MARK in self.marks else {}
        return self._written({**kept, TOKEN_MARK: f"{token} {self.identity}", mark: value})

    def renewed(self, token: int, ttl: float) -> dict[str, Any]:
        """The Lease after its holder renews it."""
        marks = {TOKEN_MARK: f"{token} {self.identity}"}
        return self._written(marks, leaseDurationSeconds=math.ceil(ttl), renewTime=_now())

    def freed(self, token: int, to: str | None) -> dict[str, Any]:
        """The Lease without a holder, as client-go writes it.

        It lasts one second, or as long as before if it is reserved.
        """
        now = _now()
        marks = {TOKEN_MARK: f"{token} "} | ({} if to is None else {NEXT_MARK: to})
        return self._written(
            marks,
            holderIdentity="",
            leaseDurationSeconds=1 if to is None else math.ceil(self.ttl),
            acquireTime=now,
            renewTime=now,
        )


def new_lease(
    name: str, namespace: str | None, holder: Holder | None, ttl: float, base: int = 0
) -> dict[str, Any]:
    """The first Lease of this name. Without a holder it only says which number tokens exceed."""
    metadata: dict[str, Any] = {"name": name, "namespace": namespace}
    if base:
        metadata["annotations"] = {BASE_MARK: str(base)}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": {**_begun(holder, ttl), "leaseTransitions": 0},
    }


def _begun(holder: Holder | None, ttl: float) -> dict[str, object]:
    now = _now()
    return {
        "holderIdentity": "" if holder is None else str(holder),
        "leaseDurationSeconds": math.ceil(ttl),
        "acquireTime": now,
        "renewTime": now,
    }


def _now() -> str:
    """The time as Kubernetes reads it: with exactly six digits of a second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


# Which server an address means, and how a client logs in

PORT = 6443
NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")

# Fills in a client's settings. Returns the namespace if it knows one.
Configure = Callable[[Any], Awaitable[str | None]]


def access(url: GuardUrl) -> Configure:
    """The server that the address names, or else the server that is known on this machine."""
    if len(url.hosts) > 1 or url.user is not None:
        raise BadInput("kubernetes takes one host, and a token as kubernetes://:token@host")
    if url.hosts:
        return _given(url)
    for option in ("ca", "tls"):
        if option in url.options:
            raise BadInput(f"option {option} of kubernetes needs a host")
    return _found(url)


def _given(url: GuardUrl) -> Configure:
    """The server that the address names."""
    for option in ("kubeconfig", "context"):
        if option in url.options:
            raise BadInput(f"option {option} of kubernetes is for an address without a host")
    ((host, port),) = url.addresses(PORT)
    scheme = "https" if one_of(url, "tls", "yes", "no") == "yes" else "http"
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    async def configure(settings: Any) -> str | None:
        settings.host = f"{scheme}://{place}"
        settings.ssl_ca_cert = url.options.get("ca")
        if url.password is not None:
            settings.api_key = {"BearerToken": url.password}
            settings.api_key_prefix = {"BearerToken": "Bearer"}
        return None

    return configure


def _found(url: GuardUrl) -> Configure:
    """The server of the cluster that this process runs in, or the server in kubectl's file."""
    file, context = url.options.get("kubeconfig"), url.options.get("context")

    async def configure(settings: Any) -> str | None:
        try:
            if file is None and context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
                load: Any = config.load_incluster_config
                load(client_configuration=settings)
                return NAMESPACE_FILE.read_text().strip() if NAMESPACE_FILE.exists() else None
            await config.load_kube_config(
                config_file=file, context=context, client_configuration=settings
            )
        except (config.ConfigException, OSError, ValueError) as error:
            raise BadInput(f"kubernetes: no server is known: {error}") from None
        return None

    return configure

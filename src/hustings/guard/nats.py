"""A guard on NATS: one record per group in a key-value bucket of JetStream, kept by its revision.

Record     The holder, its incarnation, the time after each renewal, and the token. Every write
           names the revision that it replaces. So of two writers one fails.
Token      The revision with which a period of holding began. The server gives out revisions, one
           count for the whole bucket. So they only grow. In a bucket that was made anew they begin
           anew. Then the record also has a number (`base`), and the token is the revision plus that
           number.
Lease      Measured by each observer: if a revision stays the same for the time in the record, by
           the observer's own monotonic clock, its lease is over (`local_expiry`). Expiry by the
           server would follow its wall clock, which may be set.
Identity   A word in one more entry (key.identity), drawn by the first member.
Success    Likewise (key.success).
Transfer   `release(to=...)` leaves a name in the record. For the time of a lease, only that member
           takes it.

    nats://user:password@host:port,host:port/bucket?replicas=3&synced=yes

The bucket (else "hustings") is made on disk if there is none, also while members run. Unless its
setting `sync_interval` is `always`, a server syncs its answered writes to disk only every two
minutes. The option `synced=yes` says that the setting is `always`. Only then do tokens surely
survive a loss of power.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import msgspec
from nats.aio.client import Client
from nats.errors import (
    AuthorizationError,
    Error,
    InvalidUserCredentialsError,
    SecureConnFailedError,
    SecureConnRequiredError,
    SecureConnWantedError,
)
from nats.js.api import StorageType
from nats.js.errors import (
    APIError,
    BucketNotFoundError,
    KeyNotFoundError,
    KeyWrongLastSequenceError,
    NoStreamResponseError,
)
from nats.js.kv import KeyValue

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
from hustings.guard.urls import (
    NET_S,
    TIMEOUT_S,
    TLS_OPTIONS,
    GuardUrl,
    check_bounds,
    client_tls,
    one_of,
    seconds,
)

# What the bucket contains


class NatsRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A group's record in the bucket."""

    ttl: float
    holder: str | None = None
    incarnation: int = 0
    token: int = 0  # 0 in the first record of a period of holding: its revision is the token
    to: str | None = None  # the member that the last holder wanted to be next
    base: int = 0  # the number that is added to a revision to make a token


class NatsEntry(msgspec.Struct, frozen=True):
    """A record with its revision. Without a record, there is no entry yet."""

    record: NatsRecord | None
    revision: int

    @property
    def token(self) -> int:
        """The token of the present holder, or of the last one."""
        return (self.record.token if self.record else 0) or self.revision + self.base

    @property
    def base(self) -> int:
        return self.record.base if self.record else 0

    def is_of(self, holder: Holder) -> bool:
        record = self.record
        return record is not None and (record.holder, record.incarnation) == (
            holder.name,
            holder.incarnation,
        )


def key_of(group: str) -> str:
    """A key for any name. Signs other than letters, digits, _ and - are in hex after `=`.

    >>> key_of("jobs.eu")
    'jobs=2Eeu'
    """
    return "".join(
        chr(each) if re.match(rb"[A-Za-z0-9_-]", bytes([each])) else f"={each:02X}"
        for each in group.encode()
    )


T = TypeVar("T")

PORT = 4222
ATTEMPTS = 5  # at a write, if another writer is quicker
RECONNECT_S = 0.2
PING_S = 3  # a connection without a sign for two such times is given up

NO_TLS = (SecureConnFailedError, SecureConnRequiredError, SecureConnWantedError, ssl.SSLError)
NOT_ENABLED = (10039, 10076)  # JetStream is not enabled: for this account, at all

SYNCED = Guarantees(
    monotone=True,
    proviso="a bucket that is created again counts from the beginning",
    clock="each observer",
)
UNSYNCED = Guarantees(
    monotone=False,
    proviso="a server that loses power may forget its last answers, unless it runs with "
    "sync_interval: always (then say synced=yes); a bucket that is created again counts from the "
    "beginning",
    clock="each observer",
)


class _Client(Client):
    """A client that never sends its password in plain text if TLS was asked for.

    It also closes the connection to a server that does not greet it. The base class would forget
    the connection.
    """

    async def _process_connect_init(self) -> None:
        try:
            await super()._process_connect_init()
        except BaseException:
            transport: Any = self._transport
            if transport is not None:
                transport.close()
            raise

    def _connect_command(self) -> bytes:
        if "tls" in self.options and not self._server_info.get("tls_required"):
            raise SecureConnWantedError
        return super()._connect_command()


class NatsGuard(Guard):
    """The record `key` of a bucket."""

    lifts = recovers = True

    def __init__(
        self,
        servers: list[str],
        bucket: str,
        key: str,
        *,
        shown: str,
        timeout: float,
        account: tuple[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
        replicas: int = 1,
        synced: bool = False,
    ) -> None:
        super().__init__()
        self.guarantees = SYNCED if synced else UNSYNCED
        self.shown = shown
        self.timeout = timeout
        self._servers = servers
        self._bucket = bucket
        self._key = key
        self._account = account
        self._tls = tls
        self._replicas = replicas
        self._client: Client | None = None
        self._store: KeyValue | None = None
        self._made = 0  # how often this guard has made the bucket
        self._unchanged = ExpiryObserver()
        self._last = NatsEntry(None, 0)  # the record that this guard wrote last
        self._cut = asyncio.Event()  # set when a connection ends: watches do not survive it
        self._failed: list[Exception] = []  # why connecting fails

    def check_ttl(self, ttl: float) -> None:
        super().check_ttl(ttl)
        check_bounds(ttl, "NATS")

    # The connection

    async def open(self) -> None:
        if self._client is not None:
            return
        client = _Client()
        try:
            await self._connect(client)
            self._store = await self._ask(self._find_bucket(client))
        except BaseException:
            await client.close()
            raise
        self._client = client

    async def close(self) -> None:
        client, self._client, self._store = self._client, None, None
        if client is not None:
            await client.close()

    async def _connect(self, client: Client) -> None:
        """Connect within the time for a question. Later the client reconnects by itself."""
        self._failed.clear()
        hopeless = asyncio.Event()

        async def failed(error: Exception) -> None:
            self._failed[:] = [*self._failed[-9:], error]
            if _is_no_entry(error) or isinstance(error, NO_TLS):
                hopeless.set()

        async def cut() -> None:
            self._cut.set()
            self._cut = asyncio.Event()

        user, password = self._account or (None, None)
        pause: Any = RECONNECT_S  # fractions work, although the types say otherwise
        connecting = asyncio.ensure_future(
            client.connect(
                servers=self._servers,
                user=user,
                password=password,
                tls=self._tls,
                error_cb=failed,
                disconnected_cb=cut,
                connect_timeout=max(1, int(self.timeout)),
                reconnect_time_wait=pause,
                max_reconnect_attempts=-1,
                ping_interval=PING_S,
            )
        )
        giving_up = asyncio.ensure_future(hopeless.wait())
        try:
            async with asyncio.timeout(self.timeout):
                await asyncio.wait([connecting, giving_up], return_when=asyncio.FIRST_COMPLETED)
                if connecting.done():
                    await connecting
                    return
        except (TimeoutError, OSError, Error) as error:
            self._failed.append(error)
        finally:
            for task in (connecting, giving_up):
                task.cancel()
            await asyncio.gather(connecting, giving_up, return_exceptions=True)
        raise self._reason()

    def _reason(self) -> Exception:
        """Why there is no connection."""
        for error in self._failed:
            if _is_no_entry(error):
                return BadInput(f"NATS at {self.shown} wants another user or password: {error}")
            if isinstance(error, NO_TLS):
                return BadInput(
                    f"NATS at {self.shown}: no TLS connection, or it must be one; "
                    f"see options {', '.join(TLS_OPTIONS)}: {error}"
                )
        why = next((str(error) for error in self._failed if str(error)), "no answer")
        return Unreachable(f"NATS at {self.shown} cannot be reached: {why}")

    async def _find_bucket(self, client: Client) -> KeyValue:
        stream = client.jetstream(timeout=self.timeout)
        try:
            try:
                store = await stream.key_value(self._bucket)
            except BucketNotFoundError:
                store = await stream.create_key_value(
                    bucket=self._bucket,
                    storage=StorageType.FILE,
                    replicas=self._replicas,
                    direct=False,
                )
                self._made += 1
            config = (await store.status()).stream_info.config
        except APIError as error:
            if error.err_code in NOT_ENABLED or error.code in (400, 401, 403):
                raise BadInput(f"NATS at {self.shown} refuses: {error.description}") from None
            raise
        if config.storage != StorageType.FILE:
            raise BadInput(f"bucket {self._bucket} is kept in memory: tokens would be forgotten")
        if config.max_age:
            raise BadInput(f"entries of bucket {self._bucket} expire: leases would be forgotten")
        return store

    async def _ask(self, question: Awaitable[T]) -> T:
        """A question with its answer, within the time for one."""
        try:
            async with asyncio.timeout(self.timeout):
                return await question
        except (KeyNotFoundError, KeyWrongLastSequenceError, NoStreamResponseError):
            raise  # this error is an answer, too
        except TimeoutError:
            raise Unreachable(f"NATS at {self.shown} did not answer in time") from None
        except (Error, OSError) as error:
            raise Unreachable(f"NATS at {self.shown} cannot be used now: {error}") from None

    # Questions

    async def _acquire(self, holder: Holder, ttl: float, floor: Floor) -> int | HeldBy | Behind:
        for _ in range(ATTEMPTS):
            entry = await self._read()
            refusal = self._refusal(entry, holder)
            if refusal is not None:
                return refusal
            held = entry.is_of(holder) and self._remaining(entry) > 0
            last = entry.token if held else max(entry.token, entry.base)
            behind = last < floor.known
            if behind and not floor.lift:
                return Behind(last)
            base = max(entry.base, floor.known) if behind else entry.base
            kept = entry.token if held and not behind else 0
            # an earlier promise still counts
            lasts = max(ttl, self._remaining(entry)) if kept else ttl
            record = NatsRecord(
                ttl=lasts, holder=holder.name, incarnation=holder.incarnation, token=kept, base=base
            )
            written = await self._write(record, entry.revision)
            if written is not None:
                return kept or written + base
        raise Unreachable(f"the record in NATS at {self.shown} changes too fast")

    def _refusal(self, entry: NatsEntry, holder: Holder) -> HeldBy | None:
        """Why the holder cannot have the record, or None if it can."""
        record = entry.record
        if record is None or entry.is_of(holder):
            return None
        remaining = self._remaining(entry)
        if remaining <= 0:
            return None
        if record.holder is not None:
            return HeldBy(record.holder, entry.token, remaining)
        if record.to not in (None, holder.name):
            return HeldBy(str(record.to), 0, remaining)
        return None

    def _remaining(self, entry: NatsEntry) -> float:
        """For how long a record still counts, by this guard's clock. Other clocks may differ."""
        ttl = 0.0 if entry.record is None else entry.record.ttl
        # A bucket made anew counts anew: an old number may belong to a record that is new.
        mark = (entry.revision, entry.record)
        return self._unchanged.remaining(mark, ttl, self.now())

    async def _renew(self, holder: Holder, token: int, ttl: float) -> None:
        entry = self._last if self._last.is_of(holder) else await self._read()
        if entry.is_of(holder) and self._remaining(entry) <= 0:
            raise NotGranted(f"the lease of {holder} has run out")

        def renewed(old: NatsEntry) -> NatsRecord:
            lasts = max(ttl, self._remaining(old))  # an earlier promise still counts
            return NatsRecord(
                ttl=lasts,
                holder=holder.name,
                incarnation=holder.incarnation,
                token=token,
                base=old.base,
            )

        await self._replace(entry, holder, token, renewed)

    async def _release(self, holder: Holder, token: int, to: str | None) -> None:
        entry = await self._read()
        if entry.record is None or not entry.is_of(holder) or entry.token != token:
            return
        ttl = entry.record.ttl
        with suppress(NotGranted):
            await self._replace(
                entry,
                holder,
                token,
                lambda old: NatsRecord(ttl=ttl, token=token, to=to, base=old.base),
            )

    async def _recover(self, above: int) -> None:
        """The present holder keeps its token. The next holder gets a larger token."""
        for _ in range(ATTEMPTS):
            entry = await self._read()
            old = entry.record or NatsRecord(ttl=0.0)
            held = old.holder is not None and self._remaining(entry) > 0
            token = entry.token if held else max(entry.token, above)
            # that token belongs to no holder
            kept = old if held else NatsRecord(ttl=old.ttl, to=old.to)
            record = msgspec.structs.replace(kept, token=token, base=max(entry.base, above))
            if await self._write(record, entry.revision) is not None:
                return
        raise Unreachable(f"the record in NATS at {self.shown} changes too fast")

    async def _word(self, kind: str, word: str, *, instead: bool) -> str:
        key = f"{self._key}.{kind}"  # no group has this key: dots in names are quoted
        for _ in range(ATTEMPTS):
            try:
                write = self._kept().put if instead else self._kept().create
                with suppress(KeyWrongLastSequenceError):  # there is a word already
                    await self._ask(write(key, word.encode()))
                found = await self._ask(self._kept().get(key))
                return (found.value or b"").decode(errors="replace")
            except (NoStreamResponseError, KeyNotFoundError):  # another client has just deleted it
                await self._make_again()
        raise Unreachable(f"the {kind} in NATS at {self.shown} changes too fast")

    async def _replace(
        self, entry: NatsEntry, holder: Holder, token: int, make: Callable[[NatsEntry], NatsRecord]
    ) -> None:
        """Write over this holder's own record, whichever of its writes arrived last."""
        for _ in range(ATTEMPTS):
            if not entry.is_of(holder) or entry.token != token:
                raise NotGranted(f"{holder} does not hold {token} any more")
            if await self._write(make(entry), entry.revision) is not None:
                return
            entry = await self._read()
        raise Unreachable(f"the record in NATS at {self.shown} changes too fast")

    async def _read(self) -> NatsEntry:
        try:
            found = await self._ask(self._kept().get(self._key))
        except KeyNotFoundError as error:
            # Another client deleted it: the next write replaces the deletion.
            return NatsEntry(None, 0 if error.entry is None else error.entry.revision or 0)
        return self._entry(found.value or b"", found.revision or 0)

    def _entry(self, value: bytes, revision: int) -> NatsEntry:
        try:
            return NatsEntry(msgspec.json.decode(value, type=NatsRecord), revision)
        except msgspec.DecodeError as error:
            raise Unreachable(
                f"record {self._key} in bucket {self._bucket} is not a guard's: {error}"
            ) from None

    async def _write(self, record: NatsRecord, replaces: int) -> int | None:
        """The new revision. None if another writer was quicker, or if the bucket had to be made."""
        value = msgspec.json.encode(record)
        try:
            revision = await self._ask(self._kept().update(self._key, value, last=replaces))
        except KeyWrongLastSequenceError:
            return None
        except NoStreamResponseError:
            await self._make_again()
            return None
        self._last = NatsEntry(record, revision)
        self._remaining(self._last)  # the time starts now, whenever the record is read again
        return revision

    async def _make_again(self) -> None:
        """Make the bucket again if it is gone: a server lost its store, or a client deleted it."""
        if self._client is None:
            raise Unreachable("the guard on NATS is not open")
        made = self._made
        try:
            self._store = await self._ask(self._find_bucket(self._client))
        except (BadInput, NoStreamResponseError) as error:
            raise Unreachable(f"NATS at {self.shown} cannot be used now: {error}") from None
        if self._made > made:
            self.note(f"bucket {self._bucket} in NATS at {self.shown} was gone: it is made again")

    def _kept(self) -> KeyValue:
        if self._store is None:
            raise Unreachable("the guard on NATS is not open")
        return self._store

    # Watching

    def _observe(self) -> AsyncIterator[Holding]:
        return follow(self._watch, NET_S)

    @asynccontextmanager
    async def _watch(self) -> AsyncIterator[Feed]:
        watcher: Any = await self._ask(self._kept().watch(self._key))
        try:
            yield _Feed(self, watcher)
        finally:
            with suppress(Unreachable):
                await self._ask(watcher.stop())


class _Feed:
    """An observer's subscription."""

    def __init__(self, guard: NatsGuard, watcher: Any) -> None:
        self._guard = guard
        self._watcher = watcher
        self._cut = guard._cut
        self._newest = 0

    async def look(self) -> SeenLease:
        guard = self._guard
        entry = await guard._read()
        if entry.revision < self._newest:  # an old bucket is gone, and brings no changes
            raise Unreachable("the bucket in NATS was made again")
        self._newest = entry.revision
        if entry.record is None or entry.record.holder is None:
            return SeenLease(Holding(None, entry.token), 0.0)
        remaining = guard._remaining(entry)
        if remaining <= 0:
            return SeenLease(Holding(None, entry.token), 0.0)
        return SeenLease(Holding(entry.record.holder, entry.token), remaining)

    async def wait(self, seconds: float) -> None:
        """Wait until there is news. If the connection was cut, begin anew."""
        news = asyncio.ensure_future(self._watcher.updates(timeout=seconds))
        cut = asyncio.ensure_future(self._cut.wait())
        try:
            await asyncio.wait([news, cut], return_when=asyncio.FIRST_COMPLETED)
            if cut.done():
                raise Unreachable("the connection to NATS was cut")
        finally:
            for task in (news, cut):
                task.cancel()
            await asyncio.gather(news, cut, return_exceptions=True)


def make(url: GuardUrl, group: str) -> NatsGuard:
    """`nats://user:password@host:port,host:port/bucket?replicas=3&synced=yes&tls=yes&ca=file`."""
    url.only("timeout", "replicas", "synced", *TLS_OPTIONS)
    if (url.user is None) != (url.password is None):
        raise BadInput("nats needs both a user and a password, or neither")
    bucket = url.path or "hustings"
    if not re.fullmatch(r"[A-Za-z0-9_-]+", bucket):
        raise BadInput(f"a bucket of nats is named by letters, digits, _ and -, not {bucket!r}")
    replicas = url.number("replicas", 1)
    if replicas not in (1, 2, 3, 4, 5):
        raise BadInput(f"option replicas of nats must be a number from 1 to 5, not {replicas:g}")
    servers = [
        f"nats://[{host}]:{port}" if ":" in host else f"nats://{host}:{port}"
        for host, port in url.addresses(PORT)
    ]
    return NatsGuard(
        servers,
        bucket,
        key_of(group),
        shown=url.shown,
        timeout=seconds(url, "timeout", TIMEOUT_S),
        account=None if url.user is None or url.password is None else (url.user, url.password),
        tls=client_tls(url),
        replicas=int(replicas),
        synced=one_of(url, "synced", "no", "yes") == "yes",
    )


def _is_no_entry(error: Exception) -> bool:
    """Whether the entry is missing. The client knows a late answer; else it is a plain error."""
    known = isinstance(error, (AuthorizationError, InvalidUserCredentialsError))
    return known or "authorization violation" in str(error).lower()

"""A guard on Consul, for the same lock as `consul lock` and the Lock of its Go client.

Layout     One key, prefix/.lock, marked with the flags that tell locks from other keys, bound to
           the holder's session. Its value is the holder's name.
Token      The key's ModifyIndex when it was acquired: an index of the whole cluster, which only
           grows. (LockIndex counts acquisitions, but begins anew when the key is deleted, as
           `consul lock` does when it ends.)
Recovery   A cluster that has lost its store counts indexes anew. An operator then writes a key
           beside the lock (prefix/.base). Its number is added to every index to make a token.
Identity   A word in one more key (prefix/.identity), drawn by the first member.
Success    Likewise (prefix/.success).
Lease      The session's TTL. Consul never ends a session earlier than one TTL after its renewal.
           Consul takes up to twice the TTL. This time also covers a leader of the cluster that
           renews sessions and does not know that it was deposed. A TTL is at least 10 s, and never
           changes.
Delay      After a session has expired, Consul gives its key to no session for the lock-delay of the
           expired session. Foreign sessions use 15 s. Ours use none (option `lock_delay`), because
           their leases are over by then. A member that asks meanwhile is refused.
Transfer   None: `release(to=...)` is a plain release.

    consul://:token@host:port,host:port/path?dc=east&tls=yes

Path and group make the prefix (`path/group`, or the group alone). The option `election` gives the
full prefix. The guard uses aiohttp to talk to the agents: the API is HTTP, and a Consul client
would add nothing that is needed here.
"""

from __future__ import annotations

import asyncio
import base64
import math
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple
from urllib.parse import quote

import aiohttp
import msgspec

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
from hustings.guard.observer import Feed, SeenLease, follow
from hustings.guard.pending_releases import PendingReleases
from hustings.guard.urls import NET_S, TIMEOUT_S, TLS_OPTIONS, GuardUrl, client_tls, seconds

PORT = 8500
SHORTEST_S, LONGEST_S = 10.0, 86400.0
LOCK_FLAGS = 0x2DDCCBC058A50C18  # the Go client's flags of a lock
MISSING = 404
NO_TLS = 0  # a status that no server returns

EVIDENCE = (
    "tested against a small server with the documented rules and against written conversations; "
    "against Consul itself only where HUSTINGS_TEST_CONSUL gives its address"
)


class Lock(msgspec.Struct, frozen=True, rename="pascal"):
    """The lock's key, as Consul shows it."""

    modify_index: int
    lock_index: int = 0
    flags: int = 0
    value: str | None = None
    session: str | None = None

    @property
    def holder(self) -> str:
        """The name that the holder has written. Foreign holders often write none."""
        written = base64.b64decode(self.value or "").decode(errors="replace")
        return written or f"session {self.session}"


class _Created(msgspec.Struct, rename={"id": "ID"}):
    id: str


class _Session(msgspec.Struct, rename="pascal"):
    name: str = ""


def _session_name(holder: Holder) -> str:
    """The name of a holder's session. It identifies the holder, also to another guard."""
    return f"hustings: {holder}"


class ConsulSession(NamedTuple):
    """One incarnation of one member: its session, and the lease that the session holds."""

    session: str
    ttl: float
    token: int = 0
    lock_index: int = 0
    base: int = 0  # the number that was added to the index to make the token


class ConsulGuard(Guard):
    """The lock at `key`."""

    guarantees = Guarantees(
        monotone=True,
        proviso=f"a cluster that lost its store, or was restored from a snapshot, {DECIDED}",
        evidence=EVIDENCE,
    )
    recovers = True

    def __init__(
        self,
        places: list[str],
        key: str,
        *,
        shown: str,
        timeout: float,
        secret: str | None = None,
        tls: ssl.SSLContext | None = None,
        datacenter: str | None = None,
        lock_delay: float = 0.0,
    ) -> None:
        super().__init__()
        self.key = key
        self.shown = shown
        self.timeout = timeout
        self._places = places
        self._first = 0
        self._headers = {} if secret is None else {"X-Consul-Token": secret}
        self._tls = tls
        self._common = {} if datacenter is None else {"dc": datacenter}
        self._lock_delay = lock_delay
        self._http: aiohttp.ClientSession | None = None
        self._standing: dict[Holder, ConsulSession] = {}
        self._returns = PendingReleases()
        self._highest = 0  # highest token that any observer has seen
        self._base = 0  # the number that is added to indexes, as it was last read

    def check_ttl(self, ttl: float) -> None:
        super().check_ttl(ttl)
        if not SHORTEST_S <= ttl <= LONGEST_S:
            raise BadInput(
                f"ttl must lie between {SHORTEST_S:g} and {LONGEST_S:g} s with Consul, not {ttl:g}"
            )

    async def open(self) -> None:
        """Check that keys can be read, that sessions can be made, and that the key is free."""
        try:
            lock, _ = await self._look()
            if lock is not None and lock.flags != LOCK_FLAGS:
                raise BadInput(f"key {self.key} in Consul at {self.shown} is not a lock")
            await self._end_session(await self._new_session("hustings", SHORTEST_S))
            await self._read_base()
        except _Refused as refusal:
            await self.close()
            if refusal.status in (401, 403):
                raise BadInput(
                    f"Consul at {self.shown} wants another token: {refusal.said}"
                ) from None
            if refusal.status == NO_TLS:
                raise BadInput(
                    f"Consul at {self.shown}: {refusal.said}; see options {', '.join(TLS_OPTIONS)}"
                ) from None
            raise Unreachable(f"Consul at {self.shown} refuses: {refusal.said}") from None
        except (msgspec.DecodeError, ValueError) as error:
            await self.close()
            raise Unreachable(f"what answers at {self.shown} is not Consul: {error}") from None
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        http, self._http = self._http, None
        if http is not None:
            await http.close()

    # Questions

    async def _acquire(self, holder: Holder, ttl: float, floor: Floor) -> int | HeldBy | Behind:
        await self._returns.settle(holder, self._release)
        async with self._unreachable():
            answer = await self._lock(holder, ttl)
            if isinstance(answer, HeldBy) or answer >= floor.known:
                return answer
            # The token shows only once the lock is held. No member believes this number.
            await self._let_go(self._standing.pop(holder))
            return Behind(answer)

    async def _lock(self, holder: Holder, ttl: float) -> int | HeldBy:
        lock, _ = await self._look()
        await self._read_base()
        me = self._standing.get(holder)
        if lock is not None and lock.session is not None:
            if me is None or lock.session != me.session:
                return HeldBy(lock.holder, self._token(lock), ttl)
            if await self._renew_session(me, ttl):
                return self._hold(holder, me, lock)
        me = await self._stand(holder, me, ttl)
        await self._put({"acquire": me.session, "flags": str(LOCK_FLAGS)}, holder.name)
        lock, _ = await self._look()
        if lock is not None and lock.session == me.session:
            return self._hold(holder, me, lock)
        if lock is not None and lock.session is not None:
            return HeldBy(lock.holder, self._token(lock), ttl)
        return HeldBy("", 0, min(ttl, SHORTEST_S))  # the delay after a session that has expired

    async def _renew(self, holder: Holder, token: int, ttl: float) -> None:
        me = self._standing.get(holder)
        if me is None or me.token != token:
            raise NotGranted(f"{holder} does not hold {token}")
        async with self._unreachable():
            lock, _ = await self._look()
            await self._read_base()
            held = lock is not None and (lock.session, lock.lock_index, self._base) == (
                me.session,
                me.lock_index,
                me.base,
            )
            if not held or not await self._renew_session(me, ttl):
                raise NotGranted(f"{holder} does not hold {token} any more")

    async def _release(self, holder: Holder, token: int, to: str | None) -> None:
        me = self._standing.get(holder)
        if me is None or me.token != token:
            return
        self._returns.sent(holder, token)
        async with self._unreachable():
            await self._let_go(me)
        self._returns.confirmed(holder, token)
        self._standing.pop(holder, None)

    async def _release_for(self, holder: Holder, token: int) -> None:
        async with self._unreachable():
            lock, _ = await self._look()
            await self._read_base()
            if lock is None or lock.session is None or self._token(lock) != token:
                return
            status, body, _ = await self._ask("GET", f"session/info/{lock.session}", {})
            found = [] if status == MISSING else msgspec.json.decode(body, type=list[_Session])
            if [each.name for each in found] == [_session_name(holder)]:
                await self._let_go(ConsulSession(lock.session, 0.0))

    async def _let_go(self, me: ConsulSession) -> None:
        """Release the key, then the session: a session that ends with a key causes the delay."""
        await self._put({"release": me.session}, "")
        await self._end_session(me.session)

    async def _recover(self, above: int) -> None:
        """A member that holds the lease meanwhile gets a larger token when it asks next."""
        async with self._unreachable():
            done = False
            while not done:
                version = await self._read_base()
                if self._base >= above:
                    return
                path, how = f"kv/{quote(self._base_key)}", {"cas": str(version)}
                _, body, _ = await self._ask("PUT", path, how, str(above).encode())
                done = body.strip() == b"true"
            self._base = above

    async def _word(self, kind: str, word: str, *, instead: bool) -> str:
        path = f"kv/{quote(self._beside(kind))}"
        async with self._unreachable():
            await self._ask("PUT", path, {} if instead else {"cas": "0"}, word.encode())
            status, body, _ = await self._ask("GET", path, {"consistent": ""})
            if status == MISSING:
                raise Unreachable(f"Consul at {self.shown} keeps no key {self._beside(kind)}")
            key = msgspec.json.decode(body, type=list[Lock])[0]
            return base64.b64decode(key.value or "").decode(errors="replace")

    async def _read_base(self) -> int:
        """Read the number that is added to indexes.

        Return the index of its key, or 0 without a key.
        """
        path = f"kv/{quote(self._base_key)}"
        status, body, _ = await self._ask("GET", path, {"consistent": ""})
        if status == MISSING:
            self._base = 0
            return 0
        key = msgspec.json.decode(body, type=list[Lock])[0]
        number = base64.b64decode(key.value or "")
        self._base = base_of(number, f"key {self._base_key} in Consul")
        return key.modify_index

    def _token(self, lock: Lock) -> int:
        return lock.modify_index + self._base

    @property
    def _base_key(self) -> str:
        return self._beside("base")

    def _beside(self, what: str) -> str:
        return f"{self.key.removesuffix('.lock')}.{what}"

    def _hold(self, holder: Holder, me: ConsulSession, lock: Lock) -> int:
        """Remember what is held. The index grows if another client writes to the key meanwhile."""
        if not me.token or (me.lock_index, me.base) != (lock.lock_index, self._base):
            me = me._replace(token=self._token(lock), lock_index=lock.lock_index, base=self._base)
            self._standing[holder] = me
        return me.token

    # Sessions and the key

    async def _stand(self, holder: Holder, me: ConsulSession | None, ttl: float) -> ConsulSession:
        """A session that lasts: the present one if it can be renewed for long, or a new one."""
        if me is not None and me.ttl >= ttl and await self._renew_session(me, me.ttl):
            return me
        session = await self._new_session(_session_name(holder), ttl)
        self._standing[holder] = ConsulSession(session, ttl)
        return self._standing[holder]

    async def _new_session(self, name: str, ttl: float) -> str:
        wanted = {
            "Name": name,
            "TTL": f"{math.ceil(ttl * 1000.0)}ms",
            "LockDelay": f"{math.ceil(self._lock_delay * 1000.0)}ms",
            "Behavior": "release",
        }
        _, body, _ = await self._ask("PUT", "session/create", {}, msgspec.json.encode(wanted))
        return msgspec.json.decode(body, type=_Created).id

    async def _renew_session(self, me: ConsulSession, ttl: float) -> bool:
        if ttl > me.ttl:
            raise BadInput(f"ttl stays what it was at first with Consul: {me.ttl:g} s, not {ttl:g}")
        status, _, _ = await self._ask("PUT", f"session/renew/{me.session}", {})
        return status != MISSING

    async def _end_session(self, session: str) -> None:
        await self._ask("PUT", f"session/destroy/{session}", {})

    async def _put(self, how: dict[str, str], value: str) -> bool:
        _, body, _ = await self._ask("PUT", self._path, how, value.encode())
        return body.strip() == b"true"

    async def _look(self, after: int = 0, wait: float = 0.0) -> tuple[Lock | None, int]:
        """The key, and the index to wait after.

        The cluster's leader answers, so they are never stale.
        """
        query = {"consistent": ""}
        if after:
            query = {"index": str(after), "wait": f"{math.ceil(wait * 1000.0)}ms"}
        status, body, index = await self._ask("GET", self._path, query, wait=wait)
        if status == MISSING:
            return None, index
        return msgspec.json.decode(body, type=list[Lock])[0], index

    @property
    def _path(self) -> str:
        return f"kv/{quote(self.key)}"

    # HTTP

    async def _ask(
        self, method: str, path: str, query: dict[str, str], body: bytes = b"", wait: float = 0.0
    ) -> tuple[int, bytes, int]:
        """Status, body and index of an answer. Agents are tried in turn."""
        if self._http is None:
            self._http = aiohttp.ClientSession(headers=self._headers)
        end = time.monotonic() + self.timeout + wait
        why = "no answer"
        # another question may move on to another agent meanwhile
        first, count = self._first, len(self._places)
        for left in range(count, 0, -1):
            number = (first - left) % count
            share = max(end - time.monotonic(), 0.0) / left
            url = f"{self._places[number]}/v1/{path}"
            try:
                async with self._http.request(
                    method,
                    url,
                    params={**self._common, **query},
                    data=body or None,
                    ssl=True if self._tls is None else self._tls,
                    timeout=aiohttp.ClientTimeout(total=share),
                ) as answer:
                    said = await answer.read()
            except TimeoutError:
                why = f"no answer within {share:.3g} s"
            except aiohttp.ClientSSLError as error:
                raise _Refused(NO_TLS, f"no TLS connection ({error})") from None
            except (aiohttp.ClientError, OSError) as error:
                why = str(error)
            else:
                if answer.status < 300 or answer.status == MISSING:
                    return answer.status, said, int(answer.headers.get("X-Consul-Index", "0"))
                why = said.decode(errors="replace").strip() or str(answer.status)
                if answer.status < 500:
                    raise _Refused(answer.status, why)
            if self._first == number:
                self._first = (number + 1) % count
        raise Unreachable(f"Consul at {self.shown} cannot be used now: {why}")

    @asynccontextmanager
    async def _unreachable(self) -> AsyncIterator[None]:
        """Turn refusals into `Unreachable`: what is refused now may be allowed later."""
        try:
            yield
        except _Refused as refusal:
            raise Unreachable(f"Consul at {self.shown} refuses: {refusal.said}") from None
        except (msgspec.DecodeError, ValueError) as error:
            raise Unreachable(f"what answers at {self.shown} is not Consul: {error}") from None

    # Watching

    def _observe(self) -> AsyncIterator[Holding]:
        return follow(self._watch, NET_S)

    @asynccontextmanager
    async def _watch(self) -> AsyncIterator[Feed]:
        async with self._unreachable():
            yield _Feed(self)


class _Feed:
    """An observer's questions. The last one waits for its answer."""

    def __init__(self, guard: ConsulGuard) -> None:
        self._guard = guard
        self._index = 0

    async def look(self) -> SeenLease:
        guard = self._guard
        await guard._read_base()  # an operator may have lifted it since
        lock, self._index = await guard._look()
        if lock is None or lock.session is None:
            return SeenLease(Holding(None, guard._highest), 0.0)
        token = guard._token(lock)
        guard._highest = max(guard._highest, token)
        return SeenLease(Holding(lock.holder, token), math.inf)

    async def wait(self, seconds: float) -> None:
        if self._index:
            await self._guard._look(self._index, seconds)
        else:
            await asyncio.sleep(seconds)


class _Refused(Exception):
    """Consul has understood the question, and refuses it."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status
        self.said = said


def make(url: GuardUrl, group: str) -> ConsulGuard:
    """`consul://:token@host:port,host:port/path?election=prefix&dc=east&lock_delay=0&tls=yes`."""
    url.only("timeout", "election", "dc", "lock_delay", *TLS_OPTIONS)
    if url.user is not None:
        raise BadInput("consul knows no users: give the token as consul://:token@host")
    lock_delay = url.number("lock_delay", 0.0)
    if not 0.0 <= lock_delay <= 60.0:
        raise BadInput(f"option lock_delay of consul lies between 0 and 60 s, not {lock_delay:g}")
    tls = client_tls(url)
    scheme = "http" if tls is None else "https"
    prefix = url.options.get("election") or (f"{url.path}/{group}" if url.path else group)
    return ConsulGuard(
        [
            f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
            for host, port in url.addresses(PORT)
        ],
        f"{prefix.strip('/')}/.lock",
        shown=url.shown,
        timeout=seconds(url, "timeout", TIMEOUT_S),
        secret=url.password,
        tls=tls,
        datacenter=url.options.get("dc"),
        lock_delay=lock_delay,
    )

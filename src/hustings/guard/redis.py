"""A guard in Redis or Valkey: one hash for each group, changed by scripts only.

    guard = make_guard("redis://:password@cache.example:6379/0", "billing")

Its promises depend on the server, which may forget writes. As a rule, the guard is ADVISORY and its
tokens are not monotone: a failover to a replica, a restart without the last writes, an eviction or
a flush forgets leases and tokens. During a failover two servers may grant at once. After a restart
or a failover that it notices, the guard grants nothing until the longest lease is over. So a plain
restart makes no second holder. Tokens may still begin anew. A server that this process does not
know yet may just have been restarted: the first holder of a group that is new there waits for one
lease.

`persistence=always` says that there is one server, that no other server replaces it, and that every
write is on disk before it is answered. Then the guard is LEASED and its tokens are monotone. As far
as CONFIG GET is permitted, `open` checks it: `appendonly` must be yes, `appendfsync` always, and
`maxmemory-policy` must not evict keys without a time to live.

Each waiting member measures the lease on its own monotonic clock (`local_expiry`). If a hash stays
the same for the time that its holder asked for, the holder's lease is over. Nothing expires and the
server's time of day is never read. So steps of that time end no lease and lengthen none. A member
that has watched takes over when the lease is over. A member that sees the hash for the first time
waits for the holder's whole time.

Observers subscribe to a channel with the key's name. Keyspace notifications are not needed. Nodes
of a cluster are refused.

Options: `timeout` (seconds for one question, 2), `poll` (seconds after which an observer looks in
any case, 5), `persistence` (unknown or always); with rediss `ca`, `cert` and `key`, names of files.
"""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hustings.core.errors import BadInput
from hustings.core.outcome import Guarantee
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
from hustings.guard.local_expiry import ATTEMPTS, LOOKS, LocalExpiry, new_mark
from hustings.guard.observer import SeenLease, follow
from hustings.guard.pending_releases import PendingReleases
from hustings.guard.redis_scripts import (
    ACQUIRE,
    BEHIND,
    GRANTED,
    LOOK,
    RECOVER,
    RELEASE,
    RENEW,
    RUN,
    WORD,
)
from hustings.guard.redis_wire import Ear, RedisWire
from hustings.guard.urls import NET_S, TIMEOUT_S, GuardUrl, check_bounds, one_of, seconds

KEEPING = Guarantees(
    monotone=True,
    proviso="as long as no other server takes its place and it is not flushed",
    clock="each observer",
)
VOLATILE = Guarantees(
    guarantee=Guarantee.ADVISORY,
    monotone=False,
    proviso=(
        "a failover, a restart without the last writes, an eviction or a flush forgets tokens "
        "and leases"
    ),
    clock="each observer",
)
# The server settings that `persistence=always` promises.
REQUIRED = {"appendonly": ("yes",), "appendfsync": ("always",)}
EVICTING = ("allkeys-lru", "allkeys-lfu", "allkeys-random")

_MOST_RUNS = 64
_RUNS: dict[str, float] = {}  # runs of servers, and when this process first knew of them


def _known_for(run: str) -> float:
    """The least time for which the server with this run id has been running."""
    now = time.monotonic()
    first = _RUNS.setdefault(run, now)
    while len(_RUNS) > _MOST_RUNS:
        del _RUNS[next(iter(_RUNS))]
    return now - first


class RedisGuard(Guard):
    """The lease of one group."""

    lifts = recovers = True

    def __init__(
        self,
        wire: RedisWire,
        group: str,
        *,
        poll: float = NET_S,
        keeps: bool = False,
        clock: Callable[[], float] | None = None,
    ) -> None:
        super().__init__(clock=clock)
        self.guarantees = KEEPING if keeps else VOLATILE
        # A cluster hashes the part in braces. Names are quoted, so that no two groups share a key.
        self._key = f"hustings:{{{quote(group, safe='')}}}:guard"
        self._poll = poll
        self._keeps = keeps
        self._wire = wire
        self._returns = PendingReleases()
        self._expiry = LocalExpiry()
        self._run_id = ""  # the run id of the server, where the server may lose writes
        self._longest = 0.0  # longest lease that this guard has heard of

    def check_ttl(self, ttl: float) -> None:
        super().check_ttl(ttl)
        check_bounds(ttl, "Redis")

    async def open(self) -> None:
        async with self._wire.understood():
            await self._run(LOOK)
            await self._wire.command("PUBLISH", self._key, "")
            if self._keeps:
                await self._check_settings()
            else:
                self._knows(await self._run(RUN))

    async def close(self) -> None:
        await self._wire.close()

    async def _acquire(self, holder: Holder, ttl: float, floor: Floor) -> int | HeldBy | Behind:
        await self._returns.settle(holder, self._release)
        for _ in range(ATTEMPTS):
            sent, mark = self.now(), new_mark()
            kind, *answer = await self._ask(
                ACQUIRE,
                *(holder.name, str(holder.incarnation), _micros(ttl), mark),
                self._expiry.ended(sent),
                *self._promised(sent),
                str(floor.known),
                _flag(floor.lift),
                _flag(floor.lift and self._still_leads(holder, floor.known, sent)),
                *self._server(),
            )
            token = int(answer[0])
            if kind == BEHIND:
                self._knows(answer[1])
                return Behind(token)
            if kind == GRANTED:
                self._expiry.wrote(mark, token, _seconds(answer[1]), sent, self.now())
                return token
            left = self._refused(token, *answer[1:])
            if left > 0:
                break
        return HeldBy(answer[1], token, max(left, 0.0))

    def _refused(self, token: int, holder: str, mark: str, lasting: str) -> float:
        """For how long the lease cannot be acquired."""
        if not token and not holder:  # the mark is a run that may have forgotten a lease
            self._knows(mark)
            return _seconds(lasting)
        return self._saw(mark, token, lasting)

    async def _renew(self, holder: Holder, token: int, ttl: float) -> None:
        sent, mark = self.now(), new_mark()
        if self._expiry.has_run_out(token, sent):
            raise NotGranted(f"the lease of {holder} has run out")
        lasting = await self._ask(
            RENEW, *_who(holder, token), _micros(ttl), mark, *self._promised(sent)
        )
        if not lasting:
            raise NotGranted(f"{holder} does not hold token {token} any more")
        self._expiry.wrote(mark, token, _seconds(lasting), sent, self.now())

    async def _release(self, holder: Holder, token: int, to: str | None) -> None:
        self._returns.sent(holder, token)
        successor = () if to is None else (to,)
        await self._ask(RELEASE, *_who(holder, token), new_mark(), *successor)
        self._returns.confirmed(holder, token)

    async def _recover(self, above: int) -> None:
        await self._ask(RECOVER, str(above))

    async def _word(self, kind: str, word: str, *, instead: bool) -> str:
        return str(await self._ask(WORD, kind, word, _flag(instead)))

    # What this guard knows

    def _saw(self, mark: str, token: int, lasting: str) -> float:
        ttl = _seconds(lasting)
        self._longest = max(self._longest, ttl)
        return self._expiry.saw(mark, token, ttl, self.now())

    def _promised(self, now: float) -> tuple[str, str]:
        mine, remains = self._expiry.promised(now)
        return mine, _micros(remains)

    def _knows(self, run: str) -> None:
        self._run_id = run
        if run:
            _known_for(run)

    def _server(self) -> tuple[str, str, str, str]:
        """What the script must know of the server.

        Whether the server keeps all writes, its run, for how long the run is known, and the longest
        lease.
        """
        known_s = _known_for(self._run_id) if self._run_id else 0.0
        return _flag(self._keeps), self._run_id, str(int(known_s * 1e6)), _micros(self._longest)

    def _observe(self) -> AsyncIterator[Holding]:
        return follow(self._attend, self._poll)

    @asynccontextmanager
    async def _attend(self) -> AsyncIterator[_Attention]:
        async with self._wire.listening(self._key) as ear:
            yield _Attention(self, ear)

    # Questions

    async def _ask(self, script: str, *arguments: str) -> Any:
        """Ask during normal work. A failure at this point may pass."""
        try:
            async with self._wire.understood():
                return await self._run(script, *arguments)
        except BadInput as error:
            raise Unreachable(str(error)) from None

    async def _run(self, script: str, *arguments: str) -> Any:
        return await self._wire.command("EVAL", script, 1, self._key, *arguments)

    async def _check_settings(self) -> None:
        for name, wanted in REQUIRED.items():
            value = await self._wire.setting(name)
            if value is not None and value not in wanted:
                raise BadInput(
                    f"persistence=always, but {name} of {self._wire.shown} is {value}: "
                    f"CONFIG SET {name} {wanted[0]}, or leave that option out"
                )
        policy = await self._wire.setting("maxmemory-policy")
        if policy in EVICTING and await self._wire.setting("maxmemory") != "0":
            raise BadInput(
                f"persistence=always, but {self._wire.shown}, when full, evicts keys ({policy}): "
                "CONFIG SET maxmemory-policy noeviction, or leave that option out"
            )


class _Attention:
    """An observer's connection."""

    def __init__(self, guard: RedisGuard, ear: Ear) -> None:
        self._guard = guard
        self._ear = ear

    async def look(self) -> SeenLease:
        said, holder, mark, lasting = await self._guard._ask(LOOK)
        token = int(said)
        remaining = self._guard._saw(mark, token, lasting)
        if holder is None or remaining <= 0:
            return SeenLease(Holding(None, token), 0.0)
        return SeenLease(Holding(holder, token), min(remaining, _seconds(lasting) / LOOKS))

    async def wait(self, seconds: float) -> None:
        await self._ear.wait(seconds)


def _who(holder: Holder, token: int) -> tuple[str, str, str]:
    return holder.name, str(holder.incarnation), str(token)


def _flag(value: bool) -> str:
    return "1" if value else "0"


def _micros(ttl: float) -> str:
    return str(math.ceil(ttl * 1e6))


def _seconds(micros: str) -> float:
    return int(micros) / 1e6


def make(url: GuardUrl, group: str) -> Guard:
    """`redis://user:password@host:port/number?options`, `rediss://` with TLS."""
    files = ("ca", "cert", "key") if url.scheme == "rediss" else ()
    url.only("timeout", "poll", "persistence", *files)
    for name in files:
        if name in url.options and not Path(url.options[name]).is_file():
            raise BadInput(f"option {name} of {url.scheme}: there is no file {url.options[name]!r}")
    if len(url.hosts) > 1:
        raise BadInput(f"a guard in {url.scheme} is one server, and {len(url.hosts)} are given")
    if url.path and not (url.path.isascii() and url.path.isdigit()):
        raise BadInput(f"the path of {url.scheme} is the number of a database, not {url.path!r}")
    return RedisGuard(
        RedisWire(url, seconds(url, "timeout", TIMEOUT_S)),
        group,
        poll=seconds(url, "poll", NET_S),
        keeps=one_of(url, "persistence", "unknown", "always") == "always",
    )

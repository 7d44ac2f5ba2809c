"""A guard in Redis or Valkey: one hash for each group, changed by scripts only.

    guard = make_guard("redis://:password@cache.example:6379/0", "billing")

What it promises depends on the server, which is not known to keep what it was told. As a rule, the
guard is ADVISORY and its tokens are not monotone: a failover to a replica, a restart without the
last writes, an eviction or a flush forgets leases and tokens, and during a failover two servers may
grant at once. After a restart or a failover that it notices, it lets nobody in until the longest
lease is over, so that a plain restart makes no second holder; tokens may begin anew all the same.

`persistence=always` says that there is one server, that nothing takes its place, and that every
write is on disk before it is answered. Then the guard is LEASED and its tokens are monotone. As far
as CONFIG GET is permitted, `open` checks it: `appendonly` must be yes, `appendfsync` always, and
`maxmemory-policy` none that evicts keys without a time to live.

The server's clock measures leases; a step of it forwards ends them early. Observers subscribe to a
channel with the key's name; keyspace notifications are not needed. Nodes of a cluster are refused.

Options: `timeout` (seconds for one question, 2), `poll` (seconds after which an observer looks in
any case, 5), `persistence` (unknown or always); with rediss `ca`, `cert` and `key`, names of files.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hustings.core.errors import BadInput
from hustings.core.outcome import Guarantee
from hustings.guard.options import NET_S, TIMEOUT_S, check_bounds, one_of, seconds
from hustings.guard.redis_scripts import ACQUIRE, LOOK, RELEASE, RENEW
from hustings.guard.redis_wire import Ear, Wire
from hustings.guard.returns import Returns
from hustings.guard.seam import Guard, HeldBy, Holder, Holding, NotGranted, Promise, Unreachable
from hustings.guard.urls import GuardUrl
from hustings.guard.watching import Seen, follow

KEEPING = Promise(
    monotone=True,
    proviso="as long as nothing takes the server's place and nobody flushes it",
)
FORGETFUL = Promise(
    guarantee=Guarantee.ADVISORY,
    monotone=False,
    proviso=(
        "a failover, a restart without the last writes, an eviction or a flush forgets tokens "
        "and leases"
    ),
)
# What `persistence=always` says of the server's settings.
REQUIRED = {"appendonly": ("yes",), "appendfsync": ("always",)}
EVICTING = ("allkeys-lru", "allkeys-lfu", "allkeys-random")


class RedisGuard(Guard):
    """The lease of one group."""

    def __init__(
        self,
        wire: Wire,
        group: str,
        *,
        poll: float = NET_S,
        keeps: bool = False,
        clock: Callable[[], float] | None = None,
    ) -> None:
        super().__init__(clock=clock)
        self.promise = KEEPING if keeps else FORGETFUL
        # In braces what a cluster would go by; quoted, so that no group is another one's key.
        self._key = f"hustings:{{{quote(group, safe='')}}}:guard"
        self._poll = poll
        self._keeps = keeps
        self._wire = wire
        self._returns = Returns()

    def check_ttl(self, ttl: float) -> None:
        super().check_ttl(ttl)
        check_bounds(ttl, "Redis")

    async def open(self) -> None:
        async with self._wire.understood():
            await self._run(LOOK)
            await self._wire.command("PUBLISH", self._key, "")
            if self._keeps:
                await self._check_settings()

    async def close(self) -> None:
        await self._wire.close()

    async def _acquire(self, holder: Holder, ttl: float) -> int | HeldBy:
        await self._returns.settle(holder, self._release)
        keeps = "1" if self._keeps else "0"
        answer = await self._ask(ACQUIRE, holder.name, str(holder.life), _micros(ttl), keeps)
        if answer[0]:
            return int(answer[1])
        return HeldBy(answer[2], int(answer[1]), int(answer[3]) / 1e6)

    async def _renew(self, holder: Holder, token: int, ttl: float) -> None:
        if not await self._ask(RENEW, *_who(holder, token), _micros(ttl)):
            raise NotGranted(f"{holder} does not hold token {token} any more")

    async def _release(self, holder: Holder, token: int, to: str | None) -> None:
        self._returns.sent(holder, token)
        await self._ask(RELEASE, *_who(holder, token), *(() if to is None else (to,)))
        self._returns.confirmed(holder, token)

    def _observe(self) -> AsyncIterator[Holding]:
        return follow(self._attend, self._poll)

    @asynccontextmanager
    async def _attend(self) -> AsyncIterator[_Attention]:
        async with self._wire.listening(self._key) as ear:
            yield _Attention(self, ear)

    # Questions

    async def _ask(self, script: str, *arguments: str) -> Any:
        """Ask in the middle of things: whatever goes wrong now may pass."""
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

    async def look(self) -> Seen:
        token, holder, remaining = await self._guard._ask(LOOK)
        return Seen(Holding(holder, int(token)), int(remaining) / 1e6)

    async def wait(self, seconds: float) -> None:
        await self._ear.wait(seconds)


def _who(holder: Holder, token: int) -> tuple[str, str, str]:
    return holder.name, str(holder.life), str(token)


def _micros(ttl: float) -> str:
    return str(math.ceil(ttl * 1e6))


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
        Wire(url, seconds(url, "timeout", TIMEOUT_S)),
        group,
        poll=seconds(url, "poll", NET_S),
        keeps=one_of(url, "persistence", "unknown", "always") == "always",
    )

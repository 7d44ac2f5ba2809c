"""A guard in PostgreSQL: one row for each group, with a token that grows by one.

    guard = make_guard("postgres://user:password@db.example:5432/app", "billing")

The table and its functions are installed once, with `install` or the text `MIGRATION`. Questions
are single statements, so a pooler in between does no harm. Observers LISTEN on a connection of
their own. Behind a pooler that shares sessions, LISTEN receives nothing. Say `listen=no` there:
then observers look every `poll` seconds instead.

Each waiting member measures the lease on its own monotonic clock (`local_expiry`). If a row stays
the same for the time that its holder asked for, the holder's lease is over. The server's time of
day is never read. So steps of that time end no lease and lengthen none. A member that has watched
takes over when the lease is over. A member that sees the row for the first time waits for the
holder's whole time.

Tokens are as durable as the database's commits. A failover to a standby that had not received the
last commits, or a restored backup, forgets tokens, and leases with them.

Options: `timeout` (seconds for one question, 2), `listen` (yes or no), `poll` (seconds after which
an observer looks in any case; 5, or 1 with listen=no), `sslmode` (prefer, disable, require,
verify-full) and `sslrootcert`. Of several hosts, the guard uses the first that accepts writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from hustings.core.errors import BadInput
from hustings.guard.base import (
    IDENTITY,
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
from hustings.guard.postgres_schema import MIGRATION, VERSION, channel_of
from hustings.guard.postgres_wire import PostgresAddress, PostgresWire, text, understood
from hustings.guard.urls import NET_S, TIMEOUT_S, GuardUrl, check_bounds, one_of, seconds

__all__ = ["MIGRATION", "PostgresGuard", "make"]

INSTALL_S = 30.0  # another session may hold the lock of the schema

_OPTIONS = ("timeout", "listen", "poll", "sslmode", "sslrootcert")


class PostgresGuard(Guard):
    """The lease of one group."""

    guarantees = Guarantees(
        monotone=True,
        proviso=(
            "as durable as commits: a failover to a standby that is behind, or a restored backup, "
            "loses tokens"
        ),
        clock="each observer",
    )
    lifts = recovers = True

    def __init__(
        self,
        address: PostgresAddress,
        group: str,
        *,
        timeout: float = TIMEOUT_S,
        listens: bool = True,
        poll: float = NET_S,
        clock: Callable[[], float] | None = None,
    ) -> None:
        super().__init__(clock=clock)
        self._address = address
        self._group = group
        self._timeout = timeout
        self._listens = listens
        self._poll = poll
        self._wire: PostgresWire | None = None
        self._turn = asyncio.Lock()
        self._returns = PendingReleases()
        self._expiry = LocalExpiry()

    def check_ttl(self, ttl: float) -> None:
        super().check_ttl(ttl)
        check_bounds(ttl, "PostgreSQL")

    async def open(self) -> None:
        version = await self._ask("hustings.guard_version()")
        if version != VERSION:
            raise BadInput(
                f"the schema of the guard at {self._address.shown} is of version {version}, "
                f"and this is {VERSION}: run `hustings guards URL --install`"
            )

    async def install(self) -> None:
        """Make the guard's table and functions, or bring them up to date."""
        async with understood(self._address.shown, INSTALL_S):
            wire = await self._address.dial()
            try:
                await wire.execute(MIGRATION)
            finally:
                wire.end()

    async def close(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.end()

    async def _acquire(self, holder: Holder, ttl: float, floor: Floor) -> int | HeldBy | Behind:
        await self._returns.settle(holder, self._release)
        for _ in range(ATTEMPTS):
            sent, mark = self.now(), new_mark()
            answer = await self._call(
                "acquire",
                *(text(holder.name), str(holder.incarnation), repr(ttl), mark),
                self._expiry.ended(sent) or "0",
                *self._promised(sent),
                str(floor.known),
                str(floor.lift),
            )
            if "behind" in answer:
                return Behind(answer["behind"])
            token = int(answer["token"])
            if answer["granted"]:
                self._expiry.wrote(mark, token, answer["ttl"], sent, self.now())
                return token
            left = self._expiry.saw(str(answer["mark"]), token, answer["ttl"], self.now())
            if left > 0:
                break
        return HeldBy(answer["holder"], token, max(left, 0.0))

    async def _renew(self, holder: Holder, token: int, ttl: float) -> None:
        sent, mark = self.now(), new_mark()
        if self._expiry.has_run_out(token, sent):
            raise NotGranted(f"the lease of {holder} has run out")
        answer = await self._call(
            "renew", *_who(holder, token), repr(ttl), mark, *self._promised(sent)
        )
        if not answer["granted"]:
            raise NotGranted(f"{holder} does not hold token {token} any more")
        self._expiry.wrote(mark, token, answer["ttl"], sent, self.now())

    async def _release(self, holder: Holder, token: int, to: str | None) -> None:
        self._returns.sent(holder, token)
        await self._call("release", *_who(holder, token), text(to), new_mark())
        self._returns.confirmed(holder, token)

    async def _recover(self, above: int) -> None:
        await self._call("recover", str(above))

    async def _word(self, kind: str, word: str, *, instead: bool) -> str:
        # Each kind has a row. No group has a name with a line break.
        row = self._group if kind == IDENTITY else f"{self._group}\n{kind}"
        return str(await self._call("name", text(word), str(instead), group=row))

    def _promised(self, now: float) -> tuple[str, str]:
        mine, remains = self._expiry.promised(now)
        return mine or "0", repr(remains)

    def _observe(self) -> AsyncIterator[Holding]:
        return follow(self._attend, self._poll)

    @asynccontextmanager
    async def _attend(self) -> AsyncIterator[_Attention]:
        changed = asyncio.Event()
        wire: PostgresWire | None = None
        try:
            async with understood(self._address.shown, self._timeout):
                wire = await self._address.dial()
                if self._listens:
                    await wire.listen(channel_of(self._group), changed.set)
            yield _Attention(self, wire, changed)
        finally:
            if wire is not None:
                wire.end()

    # Questions

    async def _call(self, question: str, *arguments: str, group: str | None = None) -> Any:
        """Ask during normal work. A failure at this point may pass."""
        given = ", ".join([text(self._group if group is None else group), *arguments])
        try:
            return await self._ask(f"hustings.guard_{question}({given})")
        except BadInput as error:
            raise Unreachable(str(error)) from None

    async def _ask(self, expression: str) -> Any:
        async with understood(self._address.shown, self._timeout), self._turn:
            try:
                if self._wire is None or self._wire.ended:
                    self._wire = await self._address.dial()
                return await self._wire.ask(expression)
            except BaseException:
                # The rest of this conversation would be read as the next question's answer.
                await self.close()
                raise


class _Attention:
    """An observer's connection."""

    def __init__(self, guard: PostgresGuard, wire: PostgresWire, changed: asyncio.Event) -> None:
        self._guard = guard
        self._wire = wire
        self._changed = changed

    async def look(self) -> SeenLease:
        self._changed.clear()
        guard = self._guard
        async with understood(guard._address.shown, guard._timeout):
            state = await self._wire.ask(f"hustings.guard_look({text(guard._group)})")
        token, ttl = state["token"], state["ttl"]
        remaining = guard._expiry.saw(str(state["mark"]), token, ttl, guard.now())
        if state["holder"] is None or remaining <= 0:
            return SeenLease(Holding(None, token), 0.0)
        return SeenLease(Holding(state["holder"], token), min(remaining, ttl / LOOKS))

    async def wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            pass


def _who(holder: Holder, token: int) -> tuple[str, str, str]:
    return text(holder.name), str(holder.incarnation), str(token)


def make(url: GuardUrl, group: str) -> Guard:
    """`postgres://user:password@host:port/database?options`."""
    url.only(*_OPTIONS)
    if "\0" in group:
        raise BadInput("a group's name in PostgreSQL has no NUL character")
    listens = one_of(url, "listen", "yes", "no") == "yes"
    return PostgresGuard(
        PostgresAddress(url),
        group,
        timeout=seconds(url, "timeout", TIMEOUT_S),
        listens=listens,
        poll=seconds(url, "poll", NET_S if listens else 1.0),
    )

"""A guard on ZooKeeper, in the same queue as kazoo's Election and Lock, or Curator's LeaderLatch.

Layout     Under the election's path, one ephemeral sequential node per candidate, whose data is the
           candidate's name. The lowest number leads. The zxid of its node's creation is the token.
Token      Numbers are given out in the order of zxids, and the leader has the lowest number that
           exists. So a later leader's node was created later. Unlike the numbers, zxids go on
           growing when the path is deleted and made anew.
Recovery   An ensemble that was set up anew counts zxids anew. An operator then writes a node beside
           the path (path.base). Its number is added to every zxid to make a token. Foreign
           candidates do not know this node, and do not need it.
Identity   A word in one more node (path.identity), drawn by the first member.
Success    Likewise (path.success).
Fairness   Our members do not queue. They create a node only where there is none, and delete it at
           once if another candidate's number turns out to be lower. So no candidate in the queue is
           ever overtaken.
Lease      A session per holder, which lasts as long as the lease. Only taking up the session again
           renews it (`zookeeper_wire` says why): a holder that stops asking soon holds nothing. A
           write after the renewal proves that the leader of the ensemble which renewed the session
           had not been deposed.
Transfer   `release(to=...)` leaves a node beside the path (path.next) for the rest of the session.
           Meanwhile only that member creates a node. Foreign candidates do not know this node.

The path of the address (else "hustings") and the group make the election's path. The option
`election` gives the full path. The option `recipe` chooses the names of nodes: kazoo's or
Curator's. A server limits sessions to between 2 and 20 ticks unless configured otherwise. A guard
that has been opened refuses other lease times.
"""

from __future__ import annotations

import asyncio
import math
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple, TypeVar

from aiozk import exc, protocol

from hustings.core.digests import blake2b
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
from hustings.guard.urls import NET_S, TIMEOUT_S, TLS_OPTIONS, GuardUrl, client_tls, one_of, seconds
from hustings.guard.zookeeper_wire import (
    LONGEST_MS,
    Ensemble,
    Failure,
    Lapsed,
    NoTls,
    Session,
    ZookeeperWire,
)

PORT = 2181
OBSERVER_S = 10.0  # how long an observer's session lasts without a sign
_TAG_BYTES = 8
T = TypeVar("T")
# Numbers that overflowed are negative. The dash of Curator's `-latch-` is not a minus sign.
NUMBERED = re.compile(r"((?:(?<=[_-])-)?\d{10})$")

Talk = Callable[[ZookeeperWire], Awaitable[T]]


class ZookeeperSession(NamedTuple):
    """One incarnation of one member: its session, and the mark in the names of its nodes."""

    session: Session
    mark: str


class ZookeeperNode(NamedTuple):
    """The leader's node, as the leader has written it."""

    holder: str
    token: int


class ZooKeeperGuard(Guard):
    """The election at `path`."""

    guarantees = Guarantees(
        monotone=True,
        proviso=f"an ensemble that was set up again, or restored from a backup, {DECIDED}",
    )
    recovers = True

    def __init__(
        self, ensemble: Ensemble, path: str, *, recipe: str = "kazoo", private: bool = False
    ) -> None:
        super().__init__()
        self.ensemble = ensemble
        self.path = path
        self.next_path = f"{path}.next"
        self.base_path = f"{path}.base"
        self._recipe = recipe
        self._acl = [protocol.AUTHED_UNRESTRICTED if private else protocol.UNRESTRICTED_ACCESS]
        self._standing: dict[Holder, ZookeeperSession] = {}
        self._bounds = (0.0, math.inf)
        self._highest = 0  # highest token that any observer has seen
        self._returns = PendingReleases()

    def check_ttl(self, ttl: float) -> None:
        super().check_ttl(ttl)
        shortest, longest = self._bounds
        if not shortest <= ttl <= min(longest, LONGEST_MS / 1000.0):
            raise BadInput(
                f"ttl must lie between {shortest:g} and {longest:g} s with this ZooKeeper, "
                f"not {ttl:g}"
            )

    async def open(self) -> None:
        """Make the path, and learn the bounds of leases."""
        try:
            self._bounds = (await self._try_session(1), await self._try_session(LONGEST_MS))
        except exc.NoAuth:
            raise BadInput(
                f"ZooKeeper at {self.ensemble.shown} wants another user or password for {self.path}"
            ) from None
        except NoTls as error:
            raise BadInput(
                f"ZooKeeper at {self.ensemble.shown}: no TLS connection ({error}); "
                "see options tls, ca, cert and key"
            ) from None

    async def close(self) -> None:
        self._standing.clear()

    # Questions

    async def _acquire(self, holder: Holder, ttl: float, floor: Floor) -> int | HeldBy | Behind:
        if await self._returns.settle(holder, self._release):
            # In another session: a reservation in this one ends with the session.
            self._standing.pop(holder, None)
        if holder in self._standing:
            try:
                return await self._stand(self._standing[holder], holder, ttl, floor.known)
            except Lapsed:
                pass
        self._standing[holder] = ZookeeperSession(Session(), self._new_mark(holder))
        return await self._stand(self._standing[holder], holder, ttl, floor.known)

    async def _stand(
        self, me: ZookeeperSession, holder: Holder, ttl: float, known: int
    ) -> int | HeldBy | Behind:
        async def talk(wire: ZookeeperWire) -> int | HeldBy | Behind:
            candidates = await self._candidates(wire, me.session)
            base, _ = await self._base(wire, me.session)
            last = wire.zxid + base  # all later tokens are larger
            created = not candidates
            if created:
                if last < known:
                    return Behind(last)
                kept = await self._kept_for(wire, me.session)
                if kept not in (None, holder.name):
                    return HeldBy(str(kept), 0, ttl)
                await self._create(wire, me, holder)
                if kept is not None:
                    await self._delete(wire, me.session, self.next_path)
                candidates = await self._children(wire, me.session)
            for each in candidates[1:]:
                # another candidate was quicker, or an earlier attempt of ours
                if each.startswith(me.mark):
                    await self._delete(wire, me.session, f"{self.path}/{each}")
            first = await self._node(wire, me.session, candidates[0], base)
            if first is None:
                return HeldBy("", 0, 0.0)  # it has just ended: ask again
            if not candidates[0].startswith(me.mark):
                return HeldBy(first.holder, first.token, ttl)
            if first.token < known:  # it has heard since that members do not believe this token
                await self._delete(wire, me.session, f"{self.path}/{candidates[0]}")
                return HeldBy("", 0, 0.0) if last >= known else Behind(last)
            if created or await self._is_confirmed(wire, me.session, candidates[0]):
                return first.token
            return HeldBy("", 0, 0.0)

        return await self._talk(me.session, ttl, talk)

    async def _renew(self, holder: Holder, token: int, ttl: float) -> None:
        me = self._standing.get(holder)
        if me is None:
            raise NotGranted(f"{holder} does not hold {token}")

        async def talk(wire: ZookeeperWire) -> int | HeldBy:
            candidates = await self._candidates(wire, me.session)
            base, _ = await self._base(wire, me.session)
            if candidates and candidates[0].startswith(me.mark):
                first = await self._node(wire, me.session, candidates[0], base)
                if first is not None and first.token == token:
                    if await self._is_confirmed(wire, me.session, candidates[0]):
                        return token
            raise NotGranted(f"{holder} does not hold {token} any more")

        try:
            await self._talk(me.session, ttl, talk)
        except Lapsed:
            del self._standing[holder]
            raise NotGranted(f"the session of {holder} has run out") from None

    async def _release(self, holder: Holder, token: int, to: str | None) -> None:
        me = self._standing.get(holder)
        if me is None:
            return
        # A lease in its last moments is not made longer by giving it back.
        ttl = me.session.granted_s

        async def talk(wire: ZookeeperWire) -> int | HeldBy:
            candidates = await self._candidates(wire, me.session)
            base, _ = await self._base(wire, me.session)
            mine = [each for each in candidates if each.startswith(me.mark)]
            for each in mine:
                node = await self._node(wire, me.session, each, base)
                if node is not None and node.token == token:
                    await self._withdraw(wire, me.session, f"{self.path}/{each}", to)
            return token

        self._returns.sent(holder, token)
        with suppress(Lapsed):  # then its node is gone too
            await self._talk(me.session, ttl, talk)
        self._returns.confirmed(holder, token)
        if to is not None:
            self._standing.pop(holder, None)  # the reservation lasts as long as the session

    async def _release_for(self, holder: Holder, token: int) -> None:
        async def talk(wire: ZookeeperWire, session: Session) -> None:
            candidates = await self._candidates(wire, session)
            base, _ = await self._base(wire, session)
            for each in candidates:
                if _is_of(each, holder):
                    node = await self._node(wire, session, each, base)
                    if node is not None and node.token == token:
                        await self._delete(wire, session, f"{self.path}/{each}")

        await self._visit(talk)

    async def _word(self, kind: str, word: str, *, instead: bool) -> str:
        async def talk(wire: ZookeeperWire, session: Session) -> str:
            await self._candidates(wire, session)
            path = f"{self.path}.{kind}"
            with suppress(exc.NodeExists):
                await wire.ask(session, self._new(path, word))
            if instead:
                write = protocol.SetDataRequest(path=path, data=word.encode(), version=-1)
                await wire.ask(session, write)
            read = protocol.GetDataRequest(path=path, watch=False)
            return _text((await wire.ask(session, read)).data)

        return await self._visit(talk)

    async def _recover(self, above: int) -> None:
        """A member that holds the lease meanwhile gets a larger token when it asks next."""

        async def talk(wire: ZookeeperWire, session: Session) -> bool:
            await self._candidates(wire, session)
            base, version = await self._base(wire, session)
            if wire.zxid + base >= above:
                return True
            number = str(above).encode()
            write = protocol.SetDataRequest(path=self.base_path, data=number, version=version)
            if version < 0:
                write = self._new(self.base_path, str(above))
            try:
                await wire.ask(session, write)
            except (exc.BadVersion, exc.NodeExists, exc.NoNode):
                return False  # another operator has just written it
            return True

        while not await self._visit(talk):
            pass

    async def _visit(self, talk: Callable[[ZookeeperWire, Session], Awaitable[T]]) -> T:
        """Run a conversation in a session that is closed afterwards."""
        session = Session()

        async def visit(wire: ZookeeperWire) -> T:
            done = await talk(wire, session)
            await wire.ask(session, protocol.CloseRequest())
            return done

        try:
            return await self.ensemble.converse(session, int(OBSERVER_S * 1000.0), visit)
        except (Failure, NoTls, Lapsed) as error:
            raise Unreachable(f"ZooKeeper at {self.ensemble.shown} refuses: {error}") from None

    async def _withdraw(
        self, wire: ZookeeperWire, session: Session, path: str, to: str | None
    ) -> None:
        if to is not None:
            both = protocol.TransactionRequest()
            both.add(self._new(self.next_path, to, ephemeral=True))
            both.add(protocol.DeleteRequest(path=path, version=-1))
            try:
                answer = await wire.ask(session, both)
            except (exc.NodeExists, exc.NoNode):
                answer = None
            if answer is not None and not any(isinstance(r, Exception) for r in answer.responses):
                return
        await self._delete(wire, session, path)

    # Nodes

    async def _candidates(self, wire: ZookeeperWire, session: Session) -> list[str]:
        """The candidates in the order of their numbers, as of now: servers may lag behind."""
        await wire.ask(session, protocol.SyncRequest(path=self.path))
        return await self._children(wire, session)

    async def _children(
        self, wire: ZookeeperWire, session: Session, watch: bool = False
    ) -> list[str]:
        request = protocol.GetChildren2Request(path=self.path, watch=watch)
        try:
            names = list((await wire.ask(session, request)).children)
        except exc.NoNode:
            await self._make_path(wire, session)
            names = list((await wire.ask(session, request)).children)
        numbered = [(match.group(1), each) for each in names if (match := NUMBERED.search(each))]
        return [each for _, each in sorted(numbered, key=lambda pair: int(pair[0]))]

    async def _base(self, wire: ZookeeperWire, session: Session) -> tuple[int, int]:
        """The number that is added to zxids, and the version of its node; -1 without a node.

        It is read after the candidates: a base that is lifted meanwhile makes a token larger, never
        smaller.
        """
        request = protocol.GetDataRequest(path=self.base_path, watch=False)
        try:
            answer = await wire.ask(session, request)
        except exc.NoNode:
            return 0, -1
        base = base_of(answer.data or b"", f"node {self.base_path} in ZooKeeper")
        return base, int(answer.stat.version)

    async def _node(
        self, wire: ZookeeperWire, session: Session, name: str, base: int
    ) -> ZookeeperNode | None:
        request = protocol.GetDataRequest(path=f"{self.path}/{name}", watch=False)
        try:
            answer = await wire.ask(session, request)
        except exc.NoNode:
            return None
        return ZookeeperNode(_text(answer.data), int(answer.stat.created_zxid) + base)

    async def _is_confirmed(self, wire: ZookeeperWire, session: Session, name: str) -> bool:
        """Whether a majority says that a node exists: a write that changes nothing.

        A deposed leader of the ensemble cannot answer the write. So the leader that renewed the
        session just before, on the same connection, was not deposed either.
        """
        request = protocol.TransactionRequest()
        request.add(protocol.CheckVersionRequest(path=f"{self.path}/{name}", version=-1))
        try:
            answer = await wire.ask(session, request)
        except exc.NoNode:
            return False
        return not any(isinstance(each, Exception) for each in answer.responses)

    async def _kept_for(self, wire: ZookeeperWire, session: Session) -> str | None:
        request = protocol.GetDataRequest(path=self.next_path, watch=False)
        try:
            return _text((await wire.ask(session, request)).data)
        except exc.NoNode:
            return None

    async def _create(self, wire: ZookeeperWire, me: ZookeeperSession, holder: Holder) -> None:
        path = f"{self.path}/{me.mark}"
        await wire.ask(me.session, self._new(path, holder.name, ephemeral=True, sequential=True))

    async def _delete(self, wire: ZookeeperWire, session: Session, path: str) -> None:
        with suppress(exc.NoNode):
            await wire.ask(session, protocol.DeleteRequest(path=path, version=-1))

    async def _make_path(self, wire: ZookeeperWire, session: Session) -> None:
        parts = self.path.split("/")[1:]
        for count in range(1, len(parts) + 1):
            with suppress(exc.NodeExists):
                await wire.ask(session, self._new("/" + "/".join(parts[:count]), ""))

    def _new(
        self, path: str, data: str, *, ephemeral: bool = False, sequential: bool = False
    ) -> Any:
        request = protocol.CreateRequest(path=path, data=data.encode(), acl=self._acl)
        request.set_flags(ephemeral=ephemeral, sequential=sequential)
        return request

    def _new_mark(self, holder: Holder) -> str:
        """How names of nodes begin: a unique word, and the prefix of the recipe.

        The first half of the word identifies the holder, also to another guard.
        """
        unique = _tag(holder) + secrets.token_hex(_TAG_BYTES)
        return f"{unique}__lock__" if self._recipe == "kazoo" else f"_c_{unique}-latch-"

    # Sessions

    async def _talk(self, session: Session, ttl: float, talk: Talk[T]) -> T:
        # A session taken up for less time than an earlier promise would end before the promise.
        asked, sent = max(ttl, session.until - self.now()), self.now()

        async def checked(wire: ZookeeperWire) -> T:
            session.until = max(session.until, sent + session.granted_s)
            if session.granted_s < ttl:  # this server's bounds differ from the first server's
                raise Unreachable(f"a server of ZooKeeper grants only {session.granted_s:g} s")
            return await talk(wire)

        try:
            return await self.ensemble.converse(session, math.ceil(asked * 1000.0), checked)
        except (Failure, NoTls) as error:
            raise Unreachable(f"ZooKeeper at {self.ensemble.shown} refuses: {error}") from None

    async def _try_session(self, ttl_ms: int) -> float:
        """The session time that the server grants when asked for this time."""
        session = Session()

        async def talk(wire: ZookeeperWire) -> None:
            await self._candidates(wire, session)
            await wire.ask(session, protocol.CloseRequest())

        await self.ensemble.converse(session, ttl_ms, talk)
        return session.granted_s

    # Watching

    def _observe(self) -> AsyncIterator[Holding]:
        newest = Session(ordered=True)  # an observer must not go back at a server that lags behind
        return follow(lambda: self._watch(newest), NET_S)

    @asynccontextmanager
    async def _watch(self, newest: Session) -> AsyncIterator[Feed]:
        session = Session(ordered=True)
        session.zxid = newest.zxid
        try:
            async with (
                # A server that is just starting may accept a connection and never answer.
                asyncio.timeout(self.ensemble.timeout) as greeting,
                self.ensemble.line(session, int(OBSERVER_S * 1000.0)) as wire,
            ):
                greeting.reschedule(None)
                try:
                    yield _Feed(self, wire, session)
                finally:
                    newest.zxid = session.zxid
        except (OSError, EOFError, Failure, Lapsed, NoTls) as error:
            self.ensemble.next()
            raise Unreachable(f"ZooKeeper at {self.ensemble.shown} hung up: {error}") from None


class _Feed:
    """An observer's connection."""

    def __init__(self, guard: ZooKeeperGuard, wire: ZookeeperWire, session: Session) -> None:
        self._guard = guard
        self._wire = wire
        self._session = session

    async def look(self) -> SeenLease:
        """Look. Every look sets a watch, and keeps the session alive."""
        async with _bounded(self._guard.ensemble.timeout):
            while True:
                names = await self._guard._children(self._wire, self._session, watch=True)
                if not names:
                    return SeenLease(Holding(None, self._guard._highest), 0.0)
                base, _ = await self._guard._base(self._wire, self._session)
                first = await self._guard._node(self._wire, self._session, names[0], base)
                if first is not None:
                    self._guard._highest = max(self._guard._highest, first.token)
                    return SeenLease(Holding(first.holder, first.token), math.inf)

    async def wait(self, seconds: float) -> None:
        await self._wire.changed(min(seconds, self._session.granted_s / 3.0))


@asynccontextmanager
async def _bounded(timeout: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(timeout):
            yield
    except TimeoutError:
        raise Unreachable("ZooKeeper did not answer an observer in time") from None


def make(url: GuardUrl, group: str) -> ZooKeeperGuard:
    """`zookeeper://user:password@host:port,host:port/path?election=/path&recipe=curator`."""
    url.only("timeout", "election", "recipe", *TLS_OPTIONS)
    if (url.user is None) != (url.password is None):
        raise BadInput("zookeeper needs both a user and a password, or neither")
    path = url.options.get("election") or f"/{url.path or 'hustings'}/{group}"
    if not path.startswith("/") or path.endswith("/") or "//" in path:
        raise BadInput(f"the election's path must be like /jobs/billing, not {path!r}")
    ensemble = Ensemble(
        url.addresses(PORT),
        shown=url.shown,
        timeout=seconds(url, "timeout", TIMEOUT_S),
        account=None if url.user is None else f"{url.user}:{url.password}",
        tls=client_tls(url),
    )
    recipe = one_of(url, "recipe", "kazoo", "curator")
    return ZooKeeperGuard(ensemble, path, recipe=recipe, private=url.user is not None)


def _text(value: bytes | None) -> str:
    return (value or b"").decode(errors="replace")


def _tag(holder: Holder) -> str:
    return blake2b(str(holder).encode(), digest_size=_TAG_BYTES).hexdigest()


def _is_of(node: str, holder: Holder) -> bool:
    """Whether a node's name is one that this incarnation of this member has given."""
    return node.removeprefix("_c_").startswith(_tag(holder))

"""The guard that somebody has chosen for a group, checked before anything starts."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hustings.core.choice import MemberId
from hustings.core.durations import parse_duration, show_duration
from hustings.core.election import Election
from hustings.core.errors import BadInput
from hustings.guard.base import Guarantees, Guard, Holder, Unreachable
from hustings.guard.client import LeaseClient
from hustings.guard.quorum import SCHEME, Quorum, Voters
from hustings.guard.urls import GuardUrl, make_guard, parse_url
from hustings.layers.lease import LeaseConfig, LeaseLayer
from hustings.net.agreed_config import Field
from hustings.net.node import Host

GuardLike = str | Callable[[str], Guard]

SAME = {"etcds": "etcd", "postgresql": "postgres", "rediss": "redis", "valkey": "redis"}
PORTS = {
    "consul": 8500,
    "etcd": 2379,
    "kubernetes": 6443,
    "nats": 4222,
    "postgres": 5432,
    "redis": 6379,
    "zookeeper": 2181,
}
SCOPES = ("election", "dc", "lease", "recipe", "context")  # options that choose a part of an engine
USUAL_PATHS = {"nats": "hustings", "redis": "0", "zookeeper": "hustings"}
_LIFE_BITS = 62
MOST_KIND = 24  # characters
PATIENCE = 10.0  # seconds for which an engine that does not answer is tried when a member opens
_AGAIN = 0.5


@dataclass(slots=True)
class Chosen:
    """An engine, or voters of the group's own."""

    shown: str  # for sentences, without a password
    guarantees: Guarantees
    lease: Mapping[str, object]  # what is asked of it
    engine: Callable[[], Guard] | None = None
    quorum: Quorum | None = None
    address: str = ""  # the engine's, without what does not matter to which one it is
    scope: str = ""  # the part of the engine that is asked
    named: bool = False  # whether the address is a name that somebody gave
    known_as: str = ""  # what the engine calls itself, once it was asked

    @property
    def kind(self) -> str:
        """What all members of a group must have in common; addresses they may give differently."""
        name = self.shown.partition(":")[0].lower()
        return SAME.get(name, name)[:MOST_KIND]

    @property
    def voting(self) -> Callable[[LeaseLayer], Election] | None:
        """What makes members the guard."""
        return None if self.quorum is None else self.quorum.around

    async def agreed(self, asked: float, note: Callable[[str], None]) -> tuple[Field, ...]:
        """What all members of a group must say alike; the engine may have to be asked."""
        kind = Field("guard", self.kind, True)
        if self.quorum is not None:
            return (kind, *self.quorum.agreed(asked))
        scope = (Field("guard path", self.scope, True),) if self.scope else ()
        return (kind, Field("guard engine", await self._identity(note), True), *scope)

    async def _identity(self, note: Callable[[str], None]) -> str:
        assert self.engine is not None
        guard = self.engine()
        if self.named or type(guard)._name is Guard._name:
            return self.address
        await _open(guard, self.shown, PATIENCE, note)
        try:
            self.known_as = await guard.identity()
            return self.known_as or self.address
        except Unreachable as error:
            raise BadInput(f"guard {self.shown} does not tell which one it is: {error}") from None
        finally:
            await guard.close()

    async def petitioner(
        self,
        member: str,
        id_of: Callable[[str], MemberId],
        note: Callable[[str], None],
        heir: Callable[[], str | None],
        known: Callable[[], tuple[int, int]],
    ) -> LeaseClient | None:
        """Who asks the engine for a member, opened; nobody where the guard is the group itself."""
        if self.engine is None:
            return None
        guard = self.engine()
        await _open(guard, self.shown, PATIENCE, note)
        guard.known_as = self.known_as
        # Not the incarnation: two processes with copies of one state would be the same holder.
        holder = Holder(member, secrets.randbits(_LIFE_BITS))
        return LeaseClient(guard, holder, id_of, note, heir, known)

    def begin_above(self, date: int) -> None:
        """Tokens of the group's own voters are larger than this number, which grows with time."""
        if self.quorum is not None:
            self.quorum.above = date

    def voters(self, host: Host, id_of: Callable[[str], MemberId]) -> Voters:
        """Who votes, where the guard is the group itself."""
        return Voters(host, id_of)

    def check(self, lease: LeaseConfig | None, member: str, *, kept: bool) -> None:
        """Refuse what cannot work; `kept` is whether the member keeps anything."""
        if self.engine is not None and lease is not None:
            self.engine().check_ttl(lease.asked)
        if self.quorum is not None and lease is not None:
            self.quorum.check(lease.asked)
        if self.quorum is not None and self.quorum.durable and not kept:
            if member in self.quorum.names:
                raise BadInput(
                    "a voter must keep what it promises: give it a state directory, or use "
                    f"{self.shown}?durable=no"
                )


def choose(
    guard: GuardLike,
    group: str,
    id_of: Callable[[str], MemberId],
    ttl: str | float | None = None,
    settings: Mapping[str, object] | None = None,
) -> Chosen:
    """Read what was chosen; everything that is wrong with the address is told here."""

    def lease(promise: Guarantees) -> dict[str, object]:
        """Drift is the engine's unless somebody knows better."""
        asked = {"drift": promise.drift, **(settings or {})}
        return asked if ttl is None else {**asked, "ttl": parse_duration(ttl, "ttl")}

    if not isinstance(guard, str):
        if not callable(guard):
            raise BadInput(f"a guard is given by its address, and not as {type(guard).__name__}")
        made = guard(group)
        return Chosen(
            type(made).__name__,
            made.guarantees,
            lease(made.guarantees),
            engine=lambda: guard(group),
        )
    url = parse_url(guard)
    if url.scheme == SCHEME:
        quorum = Quorum(url, id_of)
        shown = f"{SCHEME}://{','.join(quorum.names)}"
        return Chosen(shown, quorum.guarantees, lease(quorum.guarantees), quorum=quorum)
    made = make_guard(guard, group)
    return Chosen(
        url.shown,
        made.guarantees,
        lease(made.guarantees),
        engine=lambda: make_guard(guard, group),
        address=url.identity or _address(url),
        scope=_scope(url),
        named=bool(url.identity),
    )


def _scope(url: GuardUrl) -> str:
    """Without what an engine is asked for anyway."""
    kind, path = SAME.get(url.scheme, url.scheme), url.path
    if kind == "redis" and path.isascii() and path.isdigit():
        path = f"{int(path)}"
    usual = {"recipe": "kazoo"} if kind == "zookeeper" else {}
    options = {name: url.options[name] for name in SCOPES if name in url.options}
    chosen = [f"{name}={value}" for name, value in options.items() if value != usual.get(name)]
    return " ".join([*([path] if path not in ("", USUAL_PATHS.get(kind)) else []), *chosen])


def _address(url: GuardUrl) -> str:
    """Hosts and ports in order: without an account, and whichever of them is named first."""
    port = PORTS.get(SAME.get(url.scheme, url.scheme))
    places = sorted(f"{host}:{given or port or ''}" for host, given in url.hosts)
    return ",".join(places) or "this machine"


async def _open(guard: Guard, shown: str, patience: float, note: Callable[[str], None]) -> None:
    """Open a guard; one that does not answer is tried for a while, and then given up."""
    loop = asyncio.get_running_loop()
    end, told = loop.time() + patience, False
    while True:
        try:
            await guard.open()
        except Unreachable as error:
            if loop.time() + _AGAIN >= end:
                await guard.close()
                raise BadInput(
                    f"guard {shown} did not answer for {show_duration(patience)} ({error}): start "
                    "it, or correct its address"
                ) from None
            if not told:
                note(f"guard {shown} does not answer: trying for {show_duration(patience)}")
                told = True
            await asyncio.sleep(_AGAIN)
        else:
            return

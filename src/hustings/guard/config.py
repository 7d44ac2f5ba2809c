"""From plain options to the guard of a group: `guard_for` makes the guard once, and checks it.

A program, the agent, `hustings run` and the test kit all come here, through `hustings.join`. There
is one guard: the options make it, it tells the engine's identity, and then the member's lease
client uses it.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from hustings.core.choice import MemberId
from hustings.core.durations import parse_duration, show_duration
from hustings.core.election import Election
from hustings.core.errors import BadInput, Unavailable
from hustings.guard.base import Guarantees, Guard, Holder, Unreachable
from hustings.guard.client import LeaseClient
from hustings.guard.quorum import SCHEME, GroupVoters, VoterOptions
from hustings.guard.registry import BY_SCHEME
from hustings.guard.urls import GuardUrl, make_guard, parse_url
from hustings.guard.witness import Witness
from hustings.layers.lease import LeaseConfig, LeaseLayer
from hustings.net.agreed_config import Field
from hustings.net.node import MemberNode

GuardLike = str | Callable[[str], Guard]
T = TypeVar("T")

SCOPES = ("election", "dc", "lease", "recipe", "context")  # options that choose a part of an engine
_INCARNATION_BITS = 62
MOST_KIND = 24  # characters
WAIT_S = 10.0  # seconds for which a member that opens tries an engine that does not answer
LONGEST_WAIT_S = 86_400.0
_AGAIN, _LONGEST_PAUSE = 0.5, 5.0  # seconds between two tries: the first pause, and the longest


@dataclass(slots=True)
class GroupGuard:
    """The guard of one group as its options say: an engine, or voters among its members."""

    shown: str  # for messages to people, without a password
    guarantees: Guarantees
    lease: Mapping[str, object]  # the settings of the lease
    make: Callable[[], Guard] | None = None  # another guard on the same engine
    made: Guard | None = None  # the first guard, until it is opened
    quorum: VoterOptions | None = None
    address: str = ""  # the engine's, without the parts that do not identify it
    scope: str = ""  # the part of the engine that is used
    named: bool = False  # whether the address is a name that a user chose
    known_as: str = ""  # the engine's own identity, once the engine was asked
    opened: Guard | None = None  # until a lease client takes it
    wait_s: float = WAIT_S  # how long an engine that does not answer is tried
    group: str = ""
    witnessed: bool = True  # whether members of this machine may see the end of this process

    @property
    def kind(self) -> str:
        """The part that all members of a group must have in common; their addresses may differ."""
        name = self.shown.partition(":")[0].lower()
        return _kind(name)[:MOST_KIND]

    @property
    def is_engine(self) -> bool:
        """Whether the guard is a server outside of the group. Otherwise members vote."""
        return self.make is not None

    @property
    def voting(self) -> Callable[[LeaseLayer], Election] | None:
        """The function that makes members the guard."""
        return None if self.quorum is None else self.quorum.around

    async def agreed(self, asked: float, note: Callable[[str], None]) -> tuple[Field, ...]:
        """The values that must be equal at all members of a group.

        The engine may have to be asked.
        """
        kind = Field("guard", self.kind, True)
        if self.quorum is not None:
            return (kind, *self.quorum.agreed(asked))
        scope = (Field("guard path", self.scope, True),) if self.scope else ()
        return (kind, Field("guard engine", await self._identity(note), True), *scope)

    async def _identity(self, note: Callable[[str], None]) -> str:
        if self.named:
            return self.address
        await self.open(note)
        return self.known_as or self.address

    def _guard(self) -> Guard:
        """The guard that the options made. After that guard was used, a new guard."""
        assert self.make is not None
        if self.made is None:
            self.made = self.make()
        return self.made

    async def open(self, note: Callable[[str], None]) -> Guard:
        """Open the engine. It stays open until a lease client takes it, or until `close`.

        `note` hears that it does not answer yet.
        """
        if self.opened is None:
            guard = self._guard()
            self.made = None  # no guard is opened twice
            try:
                await self.until_it_answers(guard.open, note)
                if not self.named:
                    self.known_as = await self.until_it_answers(guard.identity, note)
            except BaseException:
                await guard.close()
                raise
            self.opened = guard
        return self.opened

    async def until_it_answers(
        self, ask: Callable[[], Awaitable[T]], note: Callable[[str], None]
    ) -> T:
        """Ask the engine something. If it does not answer, ask again for a while, less and less."""
        loop, length = asyncio.get_running_loop(), show_duration(self.wait_s)
        began, pause, told = loop.time(), _AGAIN, False
        while True:
            try:
                answer = await ask()
            except Unreachable as error:
                left = began + self.wait_s - loop.time()
                if left <= 0:
                    raise Unavailable(
                        f"guard {self.shown} did not answer for {length} ({error}): start it, or "
                        "correct its address"
                    ) from None
                if not told:
                    note(f"guard {self.shown} does not answer: trying for {length} ({error})")
                    told = True
                await asyncio.sleep(min(pause, left))
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                if told:
                    waited = show_duration(round(loop.time() - began, 1))
                    note(f"guard {self.shown} answers after {waited}")
                return answer

    async def close(self) -> None:
        """Close a guard that was opened and that no lease client took."""
        guard, self.opened = self.opened, None
        if guard is not None:
            await guard.close()

    async def client(
        self,
        member: str,
        id_of: Callable[[str], MemberId],
        note: Callable[[str], None],
        successor: Callable[[], str | None],
        known: Callable[[], tuple[int, int]],
    ) -> LeaseClient | None:
        """An open lease client of a member for its engine; None where members vote."""
        if not self.is_engine:
            return None
        guard = await self.open(note)
        self.opened = None
        guard.known_as = self.known_as
        # Not the incarnation: two processes with copies of one state would be the same holder.
        holder = Holder(member, secrets.randbits(_INCARNATION_BITS))
        return LeaseClient(guard, holder, id_of, note, successor, known, self._witness(guard))

    def _witness(self, guard: Guard) -> Witness | None:
        if not (self.witnessed and guard.outlives):
            return None
        return Witness(" ".join([self.kind, self.known_as or self.address, self.scope, self.group]))

    def begin_above(self, date: int) -> None:
        """Make all tokens of the group's own voters larger than this date, which grows."""
        if self.quorum is not None:
            self.quorum.above = date

    def voters(self, host: MemberNode, id_of: Callable[[str], MemberId]) -> GroupVoters:
        """The voters, where the group itself is the guard."""
        return GroupVoters(host, id_of)

    def check(self, lease: LeaseConfig | None, member: str, *, kept: bool) -> None:
        """Refuse what cannot work. `kept` says whether the member stores anything."""
        if self.is_engine and lease is not None:
            self._guard().check_ttl(lease.asked)
        if self.quorum is not None and lease is not None:
            self.quorum.check(lease.asked)
        if self.quorum is not None and self.quorum.durable and not kept:
            if member in self.quorum.names:
                raise BadInput(
                    "a voter must keep what it promises: give it a state directory, or use "
                    f"{self.shown}?durable=no"
                )


def guard_for(
    guard: GuardLike,
    group: str,
    id_of: Callable[[str], MemberId],
    ttl: str | float | None = None,
    settings: Mapping[str, object] | None = None,
    wait: str | float | None = None,
) -> GroupGuard:
    """The guard that plain options mean; checks the address."""
    wait_s = WAIT_S if wait is None else parse_duration(wait, "guard_wait")
    if not 0 <= wait_s <= LONGEST_WAIT_S:
        longest = show_duration(LONGEST_WAIT_S)
        raise BadInput(f"guard_wait must be at most {longest}, not {show_duration(wait_s)}")

    def lease(guarantees: Guarantees) -> dict[str, object]:
        """The lease settings. The drift is the engine's, unless the user gives one."""
        asked = {"drift": guarantees.drift, **(settings or {})}
        return asked if ttl is None else {**asked, "ttl": parse_duration(ttl, "ttl")}

    if not isinstance(guard, str):
        if not callable(guard):
            raise BadInput(f"a guard is given by its address, and not as {type(guard).__name__}")
        made = guard(group)
        return GroupGuard(
            type(made).__name__,
            made.guarantees,
            lease(made.guarantees),
            make=lambda: guard(group),
            made=made,
            wait_s=wait_s,
            group=group,
        )
    url = parse_url(guard)
    if url.scheme == SCHEME:
        quorum = VoterOptions(url, id_of)
        shown = f"{SCHEME}://{','.join(quorum.names)}"
        return GroupGuard(shown, quorum.guarantees, lease(quorum.guarantees), quorum=quorum)
    made = make_guard(guard, group)
    return GroupGuard(
        url.shown,
        made.guarantees,
        lease(made.guarantees),
        make=lambda: make_guard(guard, group),
        made=made,
        address=url.identity or _address(url),
        scope=_scope(url),
        named=bool(url.identity),
        wait_s=wait_s,
        group=group,
    )


def _kind(scheme: str) -> str:
    """The engine of a scheme: two schemes may mean the same engine."""
    return BY_SCHEME[scheme].name if scheme in BY_SCHEME else scheme


def _scope(url: GuardUrl) -> str:
    """The scope, without what every engine has anyway."""
    kind, path = _kind(url.scheme), url.path
    usual_path = BY_SCHEME[url.scheme].path if url.scheme in BY_SCHEME else ""
    if kind == "redis" and path.isascii() and path.isdigit():
        path = f"{int(path)}"
    usual = {"recipe": "kazoo"} if kind == "zookeeper" else {}
    options = {name: url.options[name] for name in SCOPES if name in url.options}
    chosen = [f"{name}={value}" for name, value in options.items() if value != usual.get(name)]
    return " ".join([*([path] if path not in ("", usual_path) else []), *chosen])


def _address(url: GuardUrl) -> str:
    """Hosts and ports in order, without the account. The order in the address does not matter."""
    port = BY_SCHEME[url.scheme].port if url.scheme in BY_SCHEME else None
    places = sorted(f"{host}:{given or port or ''}" for host, given in url.hosts)
    return ",".join(places) or "this machine"

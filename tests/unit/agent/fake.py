"""Members and a network that do nothing by themselves: a test says what happens."""

from __future__ import annotations

import asyncio
import io
import queue
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from hustings.agent import agent_member
from hustings.agent.access import Token
from hustings.agent.config import GroupConfig
from hustings.agent.daemon import Note
from hustings.agent.events import Broadcast
from hustings.agent.http import Api
from hustings.agent.logs import Log
from hustings.agent.server import Connections, Server, connections_for, listen, server_for
from hustings.core.errors import BadInput, HustingsError, UnknownName
from hustings.net.addresses import Address
from hustings.net.keys import Key
from hustings.net.member_state import Leadership, Metrics, NotLeader, Peer

TOKEN = "open-sesame-open-sesame"
PATIENCE_S = 20.0


def peer(name: str, me: bool = False, leader: bool = False, observer: bool = False) -> Peer:
    number = sum(map(ord, name))
    return Peer(
        id=(1 << 61) + number,
        name=name,
        address=f"127.0.0.1:{7000 + number % 1000}",
        attributes={"cpu": float(number % 7)},
        incarnation=1,
        observer=observer,
        me=me,
        leader=leader,
    )


class FakeMember:
    """A member of a group whose others are `others`."""

    def __init__(
        self, group: str = "billing", name: str = "web-1", others: tuple[str, ...] = ("web-2",)
    ) -> None:
        self.group = group
        self.name = name
        self.address = peer(name).address
        self.others = others
        self.observer = False
        self.did: list[Any] = []
        self.refuses: HustingsError | None = None
        self.hangs = False
        self.state = self._state(None, 0, "joining")
        self.counts: dict[str, Any] = {}
        self._changed = asyncio.Event()
        self._closed = False

    @property
    def closed(self) -> bool:
        return self._closed

    def lead(self, name: str | None, term: int = 1, reason: str = "") -> None:
        """This one leads now, or nobody does."""
        self.state = self._state(name, term, reason)
        self._wake()

    def end(self) -> None:
        """It ends, and nobody told it to."""
        self._closed = True
        self._wake()

    def members(self) -> tuple[Peer, ...]:
        now = None if self.state.leader is None else self.state.leader.name
        names = sorted((self.name, *self.others))
        return tuple(
            peer(each, each == self.name, each == now, each == self.name and self.observer)
            for each in names
        )

    @property
    def is_leader(self) -> bool:
        return self.state.leading

    def metrics(self) -> Metrics:
        numbers: dict[str, Any] = {
            "is_leader": self.state.leading,
            "term": self.state.term,
            "members": 1 + len(self.others),
            "leader_changes": 2,
            "leaderless_seconds": 1.5,
            "election_count": 0,
            "election_seconds": 0.0,
            "election_durations": (),
            "messages_sent": {"ANNOUNCE": 7},
            "messages_received": {"ANNOUNCE": 5, "JOIN": 1},
            "frames_sent": 8,
            "frames_received": 6,
            "bytes_sent": 800,
            "bytes_received": 600,
            "drops": {"replayed": 3},
            "stale_bound": 4.5,
            "health": 1.0,
        }
        return Metrics(**{**numbers, **self.counts})

    async def observe(self) -> AsyncIterator[Leadership]:
        seen: Leadership | None = None
        while True:
            changed = self._changed
            if self.state != seen:
                seen = self.state
                yield seen
            elif self._closed:
                return
            else:
                await changed.wait()

    async def elect(self) -> None:
        await self._do("elect")

    async def resign(self) -> None:
        await self._do("resign")
        if self.state.leading:
            self.lead(self.others[0], self.state.term + 1)

    async def stand(self) -> None:
        await self._do("stand")

    async def transfer(self, to: str, drain: float | None = None) -> None:
        await self._do(("transfer", to, drain))
        if to not in self.others:
            raise UnknownName("member", to, self.others)
        if not self.state.leading:
            raise NotLeader(f"{self.name} does not lead group {self.group!r}")
        self.lead(to, self.state.term + 1)

    async def update(self, attributes: Mapping[str, float]) -> None:
        await self._do(("update", dict(attributes)))

    def rekey(self, keys: Iterable[Key]) -> None:
        self.did.append(("rekey", [key.id for key in keys]))

    async def leave(self) -> None:
        await self._do("leave")
        self._closed = True
        self.lead(None, self.state.term, "left")

    async def _do(self, what: object) -> None:
        self.did.append(what)
        if self.refuses is not None:
            raise self.refuses
        if self.hangs:
            await asyncio.Event().wait()

    def _state(self, name: str | None, term: int, reason: str) -> Leadership:
        leader = None if name is None else peer(name, name == self.name, leader=True)
        return Leadership(
            group=self.group,
            term=term,
            leader=leader,
            leaders=() if leader is None else (leader,),
            leading=name == self.name,
            reason=reason,
        )

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


@dataclass
class FakeNetwork:
    """Hands out the members it was given."""

    members: dict[str, FakeMember]
    refuses: dict[str, BadInput] = field(default_factory=dict)
    warning: str | None = None
    slow: bool = False  # to open
    late: bool = False  # to join
    opened: bool = False
    closed: bool = False
    notes: dict[str, Note] = field(default_factory=dict)

    async def open(self) -> str:
        self.opened = True
        if self.slow:
            await asyncio.Event().wait()
        return "127.0.0.1:7400"

    async def join(self, group: GroupConfig, note: Note) -> FakeMember:
        if group.group in self.refuses:
            raise self.refuses[group.group]
        if self.late:
            await asyncio.Event().wait()
        self.notes[group.group] = note
        return self.members[group.group]

    def drops(self) -> Mapping[str, int]:
        return {"other-group": 4, "echo": 0}

    async def close(self) -> None:
        self.closed = True


@dataclass
class Agent:
    """An application of fakes on a real socket."""

    url: str
    members: dict[str, FakeMember]
    broadcast: Broadcast
    api: Api
    server: Server
    loop: asyncio.AbstractEventLoop

    def lead(self, group: str, name: str | None, term: int = 1, reason: str = "") -> None:
        """Somebody leads now, and everybody is told."""
        asyncio.run_coroutine_threadsafe(self._lead(group, name, term, reason), self.loop).result()

    def end(self) -> None:
        """Stop serving."""
        self.broadcast.end()
        self.server.end()

    async def _lead(self, group: str, name: str | None, term: int, reason: str) -> None:
        self.members[group].lead(name, term, reason)
        publish(self.broadcast, self.members[group])


def publish(broadcast: Broadcast, member: FakeMember) -> None:
    """Tell everybody how things are, as the agent does."""
    broadcast.publish(
        {"time": "1970-01-01T00:00:00.000Z", **agent_member.leadership_json(member.state)}
    )


def quiet() -> Log:
    """A log that nobody reads."""
    return Log(io.StringIO())


def api_of(
    members: dict[str, FakeMember],
    token: str | None = TOKEN,
    streams: int = 8,
    log: Log | None = None,
) -> Api:
    """The application's inside, over fakes."""
    access = None if token is None else Token(token)
    return Api(members, Broadcast(streams), log or quiet(), access, lambda: {"other-group": 4})


@contextmanager
def served(
    *groups: str,
    token: str | None = TOKEN,
    streams: int = 8,
    port: int = 0,
    connections: Connections | None = None,
) -> Iterator[Agent]:
    """An agent of fakes, with a server in a thread of its own; `web-1`, its own member, leads."""
    listener = listen(Address("127.0.0.1", port))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    found: queue.Queue[Agent] = queue.Queue()

    async def run() -> None:
        members = {group: FakeMember(group) for group in groups}
        api = api_of(members, token, streams)
        for member in members.values():
            member.lead("web-1", 1)
            publish(api.broadcast, member)
        room = connections_for(streams, quiet()) if connections is None else connections
        server = server_for(api.app(), room)
        loop = asyncio.get_running_loop()
        found.put(Agent(url, members, api.broadcast, api, server, loop))
        await server.serve([listener])

    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    agent = found.get(timeout=PATIENCE_S)
    try:
        yield agent
    finally:
        if not agent.loop.is_closed():
            agent.loop.call_soon_threadsafe(agent.end)
        thread.join(PATIENCE_S)
        assert not thread.is_alive()

"""ZooKeeper in memory, in virtual time: a tree with zxids, sessions, watches, and what disturbs.

It speaks the bytes of the protocol, so that the whole client is tried. An act can be put between
two requests (`on`): somebody else is quicker, a node vanishes, an answer is lost.
"""

from __future__ import annotations

import asyncio
import inspect
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiozk import exc, protocol
from aiozk.protocol.primitives import Int
from aiozk.protocol.stat import Stat
from aiozk.protocol.transaction import MultiHeader

LATENCY = 0.001  # seconds from a question to its answer
LOST, SILENT = "lost", "silent"  # what may become of an answer
FOREIGN = 999  # a session of somebody else, which never ends
PASSWORD = b"s" * 16

REQUESTS: dict[int, Any] = {
    each.opcode: each
    for each in (
        protocol.AuthRequest,
        protocol.CheckVersionRequest,
        protocol.CloseRequest,
        protocol.CreateRequest,
        protocol.DeleteRequest,
        protocol.GetChildren2Request,
        protocol.GetDataRequest,
        protocol.SetDataRequest,
        protocol.SyncRequest,
    )
}


@dataclass
class Node:
    """A node of the tree."""

    data: bytes | None
    created: int
    owner: int = 0
    version: int = 0
    counter: int = 0  # of children that were created
    scheme: str = "world"
    account: str = ""

    def stat(self) -> Any:
        return Stat(
            created_zxid=self.created,
            last_modified_zxid=self.created,
            created=0,
            modified=0,
            version=self.version,
            child_version=self.counter,
            acl_version=0,
            ephemeral_owner=self.owner,
            data_length=len(self.data or b""),
            num_children=0,
            last_modified_children=0,
        )


@dataclass
class Life:
    """A session, as the server knows it."""

    timeout_ms: int
    ends: float


@dataclass
class Act:
    """Something that happens at the nth request of a kind."""

    kind: str
    path: str | None
    nth: int
    act: Callable[[], object]


@dataclass
class Asked:
    """A request that came."""

    kind: str
    path: str
    port: int
    at: float
    request: Any = field(repr=False)


class Server:
    """An ensemble: one tree, at as many ports as one likes."""

    def __init__(self, shortest_ms: int = 500, longest_ms: int = 60_000) -> None:
        self.bounds = (shortest_ms, longest_ms)
        self.zxid = 0
        self.nodes: dict[str, Node] = {"/": Node(b"", 0)}
        self.lives: dict[int, Life] = {FOREIGN: Life(0, float("inf"))}
        self.asked: list[Asked] = []
        self.connects: list[Any] = []  # requests to begin or take up a session
        self.lines: list[Line] = []
        self.refuses: dict[int, Exception] = {}  # by port
        self.mute: set[int] = set()  # ports that take connections and say nothing
        self.tls: list[Any] = []  # what each connection brought for it
        self.work: list[asyncio.Future[None]] = []  # answers under way
        self._acts: list[Act] = []
        self._newest = 0
        self._stale: dict[str, Node] | None = None

    # What tests do

    def on(
        self, kind: str, act: Callable[[], object], path: str | None = None, nth: int = 1
    ) -> None:
        """Before the nth such request is carried out; an act may return what is answered.

        An act may be a coroutine: the request waits for it.
        """
        self._acts.append(Act(kind, path, nth, act))

    def create(self, path: str, data: str = "", owner: int = 0) -> None:
        """Somebody else makes a node, and what is above it."""
        above, _, _ = path.rpartition("/")
        if above and above not in self.nodes:
            self.create(above)
        self.zxid += 1
        self.nodes[path] = Node(data.encode(), self.zxid, owner)
        self.nodes[above or "/"].counter += 1
        self._fire(above or "/")

    def stand(self, path: str, name: str, prefix: str = "f__lock__", owner: int = FOREIGN) -> str:
        """Somebody else becomes a candidate; its node's name."""
        if path not in self.nodes:
            self.create(path)
        node = f"{prefix}{self.nodes[path].counter:010d}"
        self.create(f"{path}/{node}", name, owner)
        return node

    def write(self, path: str, data: str) -> None:
        self.zxid += 1
        self.nodes[path].data = data.encode()
        self.nodes[path].version += 1

    def delete(self, path: str) -> None:
        self.zxid += 1
        for each in [each for each in self.nodes if f"{each}/".startswith(f"{path}/")]:
            del self.nodes[each]
        self._fire(path.rpartition("/")[0] or "/")

    def end_session(self, number: int) -> None:
        del self.lives[number]
        self.zxid += 1
        for path in [path for path, node in self.nodes.items() if node.owner == number]:
            del self.nodes[path]
            self._fire(path.rpartition("/")[0])

    def end_sessions(self) -> None:
        """All but the foreign one."""
        for number in [number for number in self.lives if number != FOREIGN]:
            self.end_session(number)

    def children(self, path: str) -> list[str]:
        start = "/" if path == "/" else f"{path}/"
        found = [each[len(start) :] for each in self.nodes if each.startswith(start)]
        return [each for each in found if each and "/" not in each]

    def data(self, path: str) -> str:
        return (self.nodes[path].data or b"").decode()

    def kinds(self, kind: str, path: str | None = None) -> int:
        """How many such requests came."""
        return sum(each.kind == kind and path in (None, each.path) for each in self.asked)

    def lag(self) -> None:
        """From now on reads show the present state, until somebody asks for a sync."""
        self._stale = dict(self.nodes)

    def hang_up(self) -> None:
        """All connections are cut."""
        for each in self.lines:
            each.cut()

    # What the server does

    async def connect(self, host: str, port: int, ssl: Any = None) -> tuple[Any, Any]:
        await asyncio.sleep(LATENCY)
        self.tls.append(ssl)
        if port in self.refuses:
            raise self.refuses[port]
        line = Line(self, port)
        self.lines.append(line)
        return line.reader, line

    def expire(self) -> None:
        now = asyncio.get_running_loop().time()
        for number in [number for number, life in self.lives.items() if life.ends <= now]:
            self.end_session(number)

    def take_up(self, request: Any) -> tuple[int, int]:
        """The session's number and its time; (0, 0) if it is over."""
        self.connects.append(request)
        self.expire()
        low, high = self.bounds
        timeout = min(max(request.timeout, low), high)
        number = request.session_id
        if number == 0:
            self.zxid += 1
            self._newest += 1
            number = self._newest
        elif number not in self.lives or request.password != PASSWORD:
            return 0, 0
        self.lives[number] = Life(timeout, 0.0)
        self.touch(number)
        return number, timeout

    def touch(self, number: int) -> None:
        life = self.lives[number]
        life.ends = asyncio.get_running_loop().time() + life.timeout_ms / 1000.0

    async def disturbed(self, asked: Asked) -> object:
        fitting = [e for e in self._acts if e.kind == asked.kind and e.path in (None, asked.path)]
        for each in fitting:
            each.nth -= 1
            if each.nth == 0:
                self._acts.remove(each)
                told = each.act()
                if inspect.isawaitable(told):
                    told = await told
                if told is not None:
                    return told
        return None

    def perform(self, line: Line, request: Any) -> Any:
        """The answer, or an error is raised."""
        if self._stale is not None and not isinstance(request, protocol.SyncRequest):
            newest, self.nodes = self.nodes, self._stale
            try:
                return self._performed(line, request)
            finally:
                self.nodes = newest
        return self._performed(line, request)

    def _performed(self, line: Line, request: Any) -> Any:
        match request:
            case protocol.SyncRequest():
                self._stale = None
                return protocol.SyncResponse(path=request.path)
            case protocol.AuthRequest():
                line.account = request.auth.decode()
                return None
            case protocol.CloseRequest():
                self.end_session(line.session)
                return None
            case protocol.GetChildren2Request():
                node = self._node(line, request.path)
                if request.watch:
                    line.watched.add(request.path)
                names = sorted(self.children(request.path), reverse=True)
                return protocol.GetChildren2Response(children=names, stat=node.stat())
            case protocol.GetDataRequest():
                node = self._node(line, request.path)
                return protocol.GetDataResponse(data=node.data, stat=node.stat())
            case protocol.TransactionRequest():
                return self._all_or_nothing(line, request)
        self.zxid += 1
        return self._written(line, request)

    def _written(self, line: Line, request: Any) -> Any:
        match request:
            case protocol.CreateRequest():
                return protocol.CreateResponse(path=self._created(line, request))
            case protocol.CheckVersionRequest():
                self._checked(line, request)
                return protocol.CheckVersionResponse()
            case protocol.DeleteRequest():
                self._checked(line, request)
                del self.nodes[request.path]
                self._fire(request.path.rpartition("/")[0])
                return protocol.DeleteResponse()
            case protocol.SetDataRequest():
                node = self._checked(line, request)
                node.data, node.version = request.data, node.version + 1
                return protocol.SetDataResponse(stat=node.stat())
        raise exc.Unimplemented

    def _node(self, line: Line, path: str) -> Node:
        node = self.nodes.get(path)
        if node is None:
            raise exc.NoNode
        if node.scheme == "auth" and node.account != line.account:
            raise exc.NoAuth
        return node

    def _checked(self, line: Line, request: Any) -> Node:
        node = self._node(line, request.path)
        if request.version not in (-1, node.version):
            raise exc.BadVersion
        return node

    def _created(self, line: Line, request: Any) -> str:
        above = request.path.rpartition("/")[0] or "/"
        parent = self._node(line, above)
        path = str(request.path)
        if request.flags & protocol.CreateRequest.SEQUENTIAL_FLAG:
            path += f"{parent.counter:010d}"
        if path in self.nodes:
            raise exc.NodeExists
        if parent.owner:
            raise exc.NoChildrenForEphemerals
        scheme = request.acl[0].id.scheme
        if scheme == "auth" and line.account is None:
            raise exc.InvalidACL
        owner = line.session if request.flags & protocol.CreateRequest.EPHEMERAL_FLAG else 0
        account = line.account or ""
        self.nodes[path] = Node(request.data, self.zxid, owner, scheme=scheme, account=account)
        parent.counter += 1
        self._fire(above)
        return path

    def _all_or_nothing(self, line: Line, request: Any) -> Any:
        self.zxid += 1
        before = dict(self.nodes)
        answer = protocol.TransactionResponse()
        for place, each in enumerate(request.requests):
            try:
                answer.responses.append(self._written(line, each))
            except exc.ResponseError as error:
                self.nodes = before
                later = len(request.requests) - place - 1
                gone = [exc.RolledBack() for _ in range(place)]
                skipped = [exc.RuntimeInconsistency() for _ in range(later)]
                answer.responses = [*gone, error, *skipped]
                break
        return answer

    def _fire(self, path: str) -> None:
        for each in self.lines:
            if path in each.watched and not each.closed:
                each.watched.discard(path)
                event = protocol.WatchEvent(type=4, state=3, path=path)
                each.says(struct.pack("!iqi", -1, -1, 0) + _packed(event))


class Line:
    """The server's side of a connection, which its client takes for a writer."""

    def __init__(self, server: Server, port: int) -> None:
        self.server = server
        self.port = port
        self.reader = asyncio.StreamReader()
        self.session = 0
        self.account: str | None = None
        self.watched: set[str] = set()
        self.closed = False
        self._heard = b""

    def write(self, data: bytes) -> None:
        self._heard += data
        while len(self._heard) >= 4:
            (size,) = struct.unpack("!i", self._heard[:4])
            if len(self._heard) < 4 + size:
                return
            frame, self._heard = self._heard[4 : 4 + size], self._heard[4 + size :]
            asyncio.get_running_loop().call_later(LATENCY, self._hear, frame)

    def close(self) -> None:
        self.closed = True

    def cut(self) -> None:
        if not self.reader.at_eof():
            self.reader.feed_eof()
        self.closed = True

    def says(self, payload: bytes) -> None:
        self.reader.feed_data(struct.pack("!i", len(payload)) + payload)

    def _hear(self, frame: bytes) -> None:
        if self.closed or self.port in self.server.mute:
            return
        if not self.session:
            request, _ = protocol.ConnectRequest.parse(frame, 0)
            self.session, timeout = self.server.take_up(request)
            answer = protocol.ConnectResponse(
                protocol_version=0,
                timeout=timeout,
                session_id=self.session,
                password=PASSWORD if self.session else b"\0" * 16,
            )
            return self.says(_packed(answer) + b"\0")
        number, opcode = struct.unpack("!ii", frame[:8])
        answering = asyncio.ensure_future(self._answer(number, _parsed(opcode, frame)))
        self.server.work.append(answering)

    async def _answer(self, number: int, request: Any) -> None:
        server = self.server
        kind = type(request).__name__.removesuffix("Request")
        now = asyncio.get_running_loop().time()
        asked = Asked(kind, getattr(request, "path", ""), self.port, now, request)
        server.asked.append(asked)
        told = await server.disturbed(asked)
        server.expire()
        if self.closed or told == SILENT:
            return
        if self.session not in server.lives:
            return self._says(number, error=exc.SessionExpired.error_code)
        server.touch(self.session)
        if isinstance(told, exc.ResponseError):
            return self._says(number, error=told.error_code)
        try:
            answer = server.perform(self, request)
        except exc.ResponseError as error:
            return self._says(number, error=error.error_code)
        if told == LOST:
            return self.cut()
        self._says(number, b"" if answer is None else _rendered(answer))

    def _says(self, number: int, rest: bytes = b"", error: Any = 0) -> None:
        self.says(struct.pack("!iqi", number, self.server.zxid, error) + rest)


def _packed(part: Any) -> bytes:
    shape, data = part.render()
    return struct.pack("!" + shape, *data)


def _parsed(opcode: int, frame: bytes) -> Any:
    if opcode != protocol.TransactionRequest.opcode:
        return REQUESTS[opcode].parse(frame, 8)[0]
    whole = protocol.TransactionRequest()
    header, offset = MultiHeader.parse(frame, 8)
    while not header.done:
        one, offset = REQUESTS[header.type].parse(frame, offset)
        whole.add(one)
        header, offset = MultiHeader.parse(frame, offset)
    return whole


def _rendered(answer: Any) -> bytes:
    if not isinstance(answer, protocol.TransactionResponse):
        return _packed(answer)
    text = b""
    for each in answer.responses:
        if isinstance(each, exc.ResponseError):
            text += _packed(MultiHeader(type=-1, done=False, error=each.error_code))
            text += struct.pack("!" + Int.fmt, each.error_code)
        else:
            text += _packed(MultiHeader(type=each.opcode, done=False, error=0)) + _packed(each)
    return text + _packed(MultiHeader(type=-1, done=True, error=-1))

"""Connections of the agent's HTTP: bounded in number and in time, with room kept for health checks.

uvicorn's protocol class bounds neither the time in which a request arrives nor the time in which an
answer is read. It has one bound on the number of connections, and refuses every client beyond it.
So a client that opens connections and sends nothing would silence the agent for good.

Here a request has to arrive within a time, and an answer has to be read within a time. When the
number of connections is at its limit, a new connection replaces an idle one: of the client that has
most of them, the one that was idle longest. If no connection is idle, one that was answered before
gives way. So a client that asks without end does not keep out a client that asks for the first
time. If no connection can give way, there are some additional places, on which only load balancers
and monitors are answered. Every refusal is JSON.

Members share the event loop, and a leader whose loop is held up steps down. So input is read in
turns, one in each round of the loop. A turn is a piece of the data of one connection, and at most
one request in it. A connection with more data waits for its next turn, and no more is read from it
meanwhile.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import re
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import h11
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.h11_impl import H11Protocol

from hustings.agent.http import refusal
from hustings.agent.logs import EventLog
from hustings.core.errors import BadInput
from hustings.net.addresses import Address
from hustings.net.files import why

# An attacker could fill the disk with what uvicorn would log about bad requests.
_ERRORS = logging.Logger("uvicorn.error", logging.ERROR)
_ERRORS.parent = logging.getLogger()

KEPT_FOR_HEALTH = 32  # additional connections, for `is_health`
SILENT_S = 60.0  # between two log lines for one reason
PIECE = 1024  # bytes that are read in one turn: they cost a few milliseconds
LONGEST_HEAD = 8192  # bytes of a request before its body
MOST_LINES = 100  # lines of a request before its body
_LONGEST_LINE = 512  # bytes of a request's first line that are checked for a health request
HEALTH_IN_A_ROW = 3  # turns of health requests before one of another kind, if both wait


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a client may take, in seconds."""

    request: float = 10.0  # for a whole request to arrive: head and body
    answer: float = 30.0  # for reading any part of an answer
    closing: float = 5.0  # for reading the rest of it after we have closed
    look: float = 1.0  # between two checks of all connections


def is_health(path: str) -> bool:
    """Whether this is a request of load balancers, supervisors and monitors."""
    return path in ("/healthz", "/readyz", "/metrics") or path.endswith("/is-leader")


_BLANK_LINE = re.compile(rb"\n\r?\n")


class Turns:
    """Connections with unread data: one of them has its turn in each round of the loop.

    Health requests go first, though not always. Equal connections go in the order of arrival.
    """

    def __init__(self) -> None:
        self._health: dict[Connection, None] = {}
        self._others: dict[Connection, None] = {}
        self._in_a_row = 0  # turns of health requests
        self._next: asyncio.Handle | None = None

    def __contains__(self, one: object) -> bool:
        return one in self._health or one in self._others

    def ask(self, one: Connection) -> None:
        """Queue a connection that has data to read; it may be queued already."""
        if one not in self:
            queue = self._health if one.asks_for_health() else self._others
            queue[one] = None
            self._go_on(one.loop)

    def leave(self, one: Connection) -> None:
        """Remove a connection that has no more data to read."""
        self._health.pop(one, None)
        self._others.pop(one, None)

    def _go_on(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._next is None and (self._health or self._others):
            self._next = loop.call_soon(self._turn, loop)

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        self._next = None
        health = bool(self._health) and not (self._others and self._in_a_row >= HEALTH_IN_A_ROW)
        queue = self._health if health else self._others
        self._in_a_row = self._in_a_row + 1 if health else 0
        if queue:
            one = next(iter(queue))
            del queue[one]
            self._go_on(loop)  # also if this turn fails
            one.take_turn()
            self._go_on(loop)


class Connections:
    """All connections of one agent."""

    def __init__(self, most: int, log: EventLog, patience: Patience | None = None) -> None:
        self.most = most
        self.patience = patience or Patience()
        self.refused: Counter[str] = Counter()  # by reason
        self.turns = Turns()
        self._log = log
        self._open: dict[Connection, None] = {}  # oldest first
        self._told_at: dict[str, float] = {}
        self._looking: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._open)

    def opened(self, one: Connection) -> bool:
        """Add a connection; returns whether it fits without the places that are kept for health."""
        room = len(self._open) < self.most or self._make_room(one.now)
        if not room and len(self._open) >= self.most + KEPT_FOR_HEALTH:
            self.note(
                "connection-limit",
                "there are as many HTTP connections as may be, all of them at work",
            )
            one.transport.abort()
        self._open[one] = None
        if self._looking is None:
            self._look_later(one.loop)
        return room

    def closed(self, one: Connection) -> None:
        """Remove a closed connection."""
        self._open.pop(one, None)
        self.turns.leave(one)

    def note(self, reason: str, sentence: str) -> None:
        """Count a refusal, and log it if none for this reason was logged lately."""
        self.refused[reason] += 1
        now = asyncio.get_running_loop().time()
        if now >= self._told_at.get(reason, -SILENT_S) + SILENT_S:
            self._told_at[reason] = now
            count = self.refused[reason]
            self._log.warning("http-refused", sentence, reason=reason, count=count)

    def _make_room(self, now: float) -> bool:
        """Close a connection that may give way; returns whether there was one."""
        idle = [one for one in self._open if one.is_idle(now)]
        may = idle or [one for one in self._open if one.was_answered]
        if not may:
            return False
        sources = Counter(one.source for one in may)
        most = max(sources.values())
        first = min(
            (one for one in may if sources[one.source] == most), key=lambda one: one.waits_since
        )
        self.note(
            "evicted", f"HTTP connections are closed to make room: {len(self._open)} are open"
        )
        first.give_way()
        self.closed(first)
        return True

    def _look_later(self, loop: asyncio.AbstractEventLoop) -> None:
        self._looking = loop.call_later(self.patience.look, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close connections that take too long."""
        now = loop.time()
        for one in list(self._open):
            one.check(now)
        self._looking = None
        if self._open:
            self._look_later(loop)


class _Flow(FlowControl):
    """Reads no more from a connection while data of it waits for a turn."""

    def __init__(self, transport: asyncio.Transport, unread: bytearray) -> None:
        super().__init__(transport)
        self._unread = unread

    def pause_reading(self) -> None:
        """Pause even if the state says paused: uvicorn bypasses this class in one place."""
        self.read_paused = True
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Resume if no data waits for a turn."""
        if not self._unread:
            super().resume_reading()


class Connection(H11Protocol):
    """One connection, with the times since which it waits."""

    shared: ClassVar[Connections]

    def __init__(self, *arguments: Any, **more: Any) -> None:
        """Called by uvicorn."""
        super().__init__(*arguments, **more)
        self.logger = _ERRORS
        self.source = ""
        self.waits_since = self.now  # for a request, or for the rest of one
        self._unread = bytearray()  # data that waits for its turn
        self._begun = False  # part of the next request has come
        self._answered = False  # at least one request of it
        self._half_closed = False
        self._paused_at: float | None = None  # the client reads nothing since then
        self._closing_at: float | None = None

    @property
    def now(self) -> float:
        """The time on the loop's clock."""
        return self.loop.time()

    @property
    def busy(self) -> bool:
        """Whether a request is being answered."""
        cycle: Any = self.cycle  # None before the first request, whatever its type says
        return cycle is not None and not cycle.response_complete

    @property
    def was_answered(self) -> bool:
        """Whether it had an answer, and has no request under way."""
        return self._answered and not self.busy

    def is_idle(self, now: float) -> bool:
        """Whether no request is under way, or only an answer that the client does not read."""
        stalled = self._paused_at is not None and now - self._paused_at >= self.shared.patience.look
        return stalled or not (self.busy or self in self.shared.turns)

    def give_way(self) -> None:
        """Close now; do not wait for a client that does not read."""
        if self._paused_at is None:
            self.transport.close()
        else:
            self.transport.abort()

    # --- events of the transport -----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A connection opened."""
        super().connection_made(cast(asyncio.Transport, transport))  # uvloop's has another class
        self.flow = _Flow(self.transport, self._unread)
        self.source = self.client[0] if self.client else ""
        if not self.shared.opened(self):
            self.app = _only_health(self.app)

    def connection_lost(self, exc: Exception | None) -> None:
        """A connection closed."""
        self.shared.closed(self)
        self._unread.clear()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Queue data. Data does not extend the time: a slow client counts as a silent one.

        The time-out of an idle connection is uvicorn's, and any byte cancels it.
        """
        self._begun = True
        self._unset_keepalive_if_required()
        self._unread += data
        self.flow.pause_reading()
        self.shared.turns.ask(self)

    def eof_received(self) -> Any:
        """A client that sends no more requests may still wait for the answer to its last one."""
        self._half_closed = self._answers() or self in self.shared.turns
        return self._half_closed  # True: the transport stays open for the answer

    def _answers(self) -> bool:
        """Whether an answer is under way that will end."""
        return self.busy and self.scope["path"] != "/v1/events"

    def pause_writing(self) -> None:
        """The client does not read."""
        super().pause_writing()
        self._paused_at = self.now

    def resume_writing(self) -> None:
        """The client reads again."""
        super().resume_writing()
        self._paused_at = None

    # --- turns -----------------------------------------------------------------------------------

    def asks_for_health(self) -> bool:
        """Whether the data to be read next begins with a health request."""
        if self.busy:
            return False
        begin = (self.conn.trailing_data[0] + bytes(self._unread[:_LONGEST_LINE]))[:_LONGEST_LINE]
        _, _, rest = begin.partition(b" ")
        target, end, _ = rest.partition(b" ")
        return bool(end) and is_health(target.partition(b"?")[0].decode("latin-1"))

    def handle_events(self) -> None:
        """Queue for a turn, where uvicorn would handle the events at once."""
        self.shared.turns.ask(self)

    def take_turn(self) -> None:
        """Read a piece of the data, and at most one request."""
        if self.transport.is_closing():
            return
        if not self._has_whole_request():
            piece = bytes(self._unread[:PIECE])
            del self._unread[:PIECE]
            if self.conn.their_state is h11.IDLE and self._has_too_many_lines(piece):
                self.shared.note("headers-too-large", "an HTTP request had too many headers")
                self.refuse(431, f"a request has at most {MOST_LINES} lines before its body")
                return
            if piece:
                self.conn.receive_data(piece)
            super().handle_events()
        if self._half_closed and not self._answers() and not self._unread:
            self.transport.close()
        elif self._unread or (self._has_whole_request() and self.conn.trailing_data[0]):
            self.flow.pause_reading()
            if not self._has_whole_request():
                self.shared.turns.ask(self)
        else:
            self.flow.resume_reading()

    def _has_too_many_lines(self, piece: bytes) -> bool:
        head = self.conn.trailing_data[0] + piece
        end = _BLANK_LINE.search(head)
        return head.count(b"\n", 0, end.start() if end else len(head)) > MOST_LINES

    def _has_whole_request(self) -> bool:
        """Whether a whole request has to be answered before more is read."""
        return self.busy and self.conn.their_state in (h11.DONE, h11.MUST_CLOSE)

    # --- answers ---------------------------------------------------------------------------------

    def on_response_complete(self) -> None:
        """From now on the connection waits for its next request."""
        self.waits_since = self.now
        self._begun = False
        self._answered = True
        super().on_response_complete()
        if self._unread:
            self.shared.turns.ask(self)
        elif self._half_closed and self not in self.shared.turns:
            self.transport.close()

    def _should_upgrade(self) -> bool:
        """Never upgrade: only HTTP is spoken here, and the attempt is not worth a log line."""
        return False

    def send_400_response(self, msg: str) -> None:
        """Refuse in JSON, as all refusals."""
        self.shared.note("not-http", "a request over HTTP was not understood")
        self.refuse(400, "this is not a request of HTTP/1.1 that can be understood")

    def refuse(self, status: int, sentence: str) -> None:
        """Send an error in place of the application's answer, and close."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE) and not self.busy:
            body = json.dumps({"error": sentence}, separators=(",", ":")).encode() + b"\n"
            headers = [
                ("content-type", "application/json"),
                ("cache-control", "no-store"),
                ("content-length", str(len(body))),
                ("connection", "close"),
            ]
            response = h11.Response(status_code=status, headers=headers)
            for event in (response, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    # --- time limits -----------------------------------------------------------------------------

    def check(self, now: float) -> None:
        """Close or abort the connection if the client has taken too long."""
        patience = self.shared.patience
        if self.transport.is_closing():
            self._closing_at = now if self._closing_at is None else self._closing_at
            if now - self._closing_at >= patience.closing:
                self.transport.abort()
        elif self._paused_at is not None and now - self._paused_at >= patience.answer:
            self.shared.note("response-timeout", "an HTTP client did not take its answer: cut off")
            self.transport.abort()
        elif not self.busy and now - self.waits_since >= patience.request:
            self._give_up()

    def _give_up(self) -> None:
        self.shared.note("request-timeout", "an HTTP request did not arrive in time: closed")
        if self._begun and self.conn.their_state is h11.IDLE:
            self.refuse(408, "the request did not arrive in time")
        else:
            self.transport.close()


def protocol_for(connections: Connections) -> type[Connection]:
    """A protocol class whose connections are counted in `connections`."""
    return type("Connection", (Connection,), {"shared": connections})


_CROWDED = "as many connections as may be are at work, and what is left is kept for health"


def _only_health(app: Any) -> Any:
    async def health_or_refusal(scope: Scope, receive: Receive, send: Send) -> None:
        if is_health(scope["path"]):
            await app(scope, receive, send)
        else:
            await refusal(503, _CROWDED, {"retry-after": "1", "connection": "close"})(
                scope, receive, send
            )

    return health_or_refusal


_BACKLOG = 128  # connections that may wait to be accepted
_AT_ONCE = 16  # connections that are accepted in one round of the loop
_RECEIVED = 16 * 1024  # bytes that the system buffers of a connection; it takes twice as much
_BESIDES = 128  # connections in addition to those of event listeners
_IDLE_S = 5  # seconds between two requests on one connection
_FIRST_FREE = 1024  # lower ports need privileges


class Server(uvicorn.Server):
    """A server that leaves signals to the agent, and sleeps until it is asked or told to end."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._told = asyncio.Event()

    def end(self) -> None:
        """Accept no more connections, and finish the answers under way."""
        self.should_exit = True
        self._told.set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then set the larger backlog: the standard loop accepts a whole backlog at once."""
        await super().startup(sockets)
        for listener in sockets or []:
            listener.listen(_BACKLOG)

    async def main_loop(self) -> None:
        """Wait for the end. uvicorn's own loop would check ten times a second."""
        await self.on_tick(0)
        await self._told.wait()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none: the agent handles SIGTERM."""
        yield


def connections_for(streams: int, log: EventLog, patience: Patience | None = None) -> Connections:
    """Connections for event listeners, and some for other requests."""
    return Connections(streams + _BESIDES, log, patience)


def server_for(app: ASGIApp, connections: Connections) -> Server:
    """A server for one agent: bounded connections, and no header that names the software."""
    config = uvicorn.Config(
        app,
        loop="none",  # there is one already
        http=protocol_for(connections),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,  # it would have to be kept up to date
        proxy_headers=False,
        timeout_keep_alive=_IDLE_S,
        backlog=_AT_ONCE,
        h11_max_incomplete_event_size=LONGEST_HEAD,
    )
    return Server(config)


def listen(bind: Address) -> socket.socket:
    """A listening socket; an error is told in a sentence."""
    try:
        found = socket.getaddrinfo(bind.host, bind.port, type=socket.SOCK_STREAM)
    except OSError:
        raise BadInput(f"HTTP address {bind} cannot be resolved: give it by number") from None
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVED)
        with suppress(OSError):
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise BadInput(_told(bind, error)) from None
    return listener


def _told(bind: Address, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"HTTP address {bind} is in use: another agent may run; choose one with --http"
    if error.errno in (errno.EACCES, errno.EPERM) and bind.port < _FIRST_FREE:
        return f"HTTP address {bind} needs privileges: choose a port from {_FIRST_FREE} up"
    return f"cannot listen for HTTP on {bind}: {why(error)}"

"""HTTP on a socket: bound before anything else starts, and ended when the agent says so."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import uvicorn
from starlette.types import ASGIApp

from hustings.agent.connections import LONGEST_HEAD, Connections, Patience, protocol_for
from hustings.agent.logs import Log
from hustings.core.errors import BadInput
from hustings.net.addresses import Address
from hustings.net.files import why

_BACKLOG = 128  # connections that may wait to be accepted
_AT_ONCE = 16  # connections that are accepted in one round of the loop
_RECEIVED = 16 * 1024  # bytes that the system keeps of a connection; it takes twice as much
_BESIDES = 128  # connections beside those that listen to events
_IDLE_S = 5  # between two requests on one connection
_FIRST_FREE = 1024  # ports below are the administrator's


class Server(uvicorn.Server):
    """A server that leaves signals to the agent, and sleeps until it is asked or told to end."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._told = asyncio.Event()

    def end(self) -> None:
        """Take no more connections, finish what is under way."""
        self.should_exit = True
        self._told.set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As ever; the standard loop accepts as many at once as may wait, which are too many."""
        await super().startup(sockets)
        for listener in sockets or []:
            listener.listen(_BACKLOG)

    async def main_loop(self) -> None:
        """Wait for the end. The usual loop looks ten times a second whether it has come."""
        await self.on_tick(0)
        await self._told.wait()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """None: SIGTERM is the agent's business."""
        yield


def connections_for(streams: int, log: Log, patience: Patience | None = None) -> Connections:
    """Room for those who listen to events, and for others besides."""
    return Connections(streams + _BESIDES, log, patience)


def server_for(app: ASGIApp, connections: Connections) -> Server:
    """A server for one agent: bounded connections, and no word about what it is made of."""
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
    """A socket that takes connections from now on; what is wrong is told in a sentence."""
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

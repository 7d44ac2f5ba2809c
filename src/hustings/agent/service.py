"""HTTP of an agent, or of `hustings run`: from the check of its address to its last answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from hustings.agent.access import Hosts, Token, own_names, permit_http, read_token
from hustings.agent.agent_member import AgentMember, leadership_json
from hustings.agent.config_file import variable
from hustings.agent.events import Broadcast
from hustings.agent.http import Api
from hustings.agent.logs import EventLog, timestamp
from hustings.agent.server import Server, connections_for, listen, server_for
from hustings.net.addresses import Address
from hustings.net.member_state import Leadership

STREAMS = 64  # listeners of /v1/events at one time
LAST_S = 1.0  # seconds that answers have when everything else has ended


def token_for(file: Path | None, text: str | None) -> str | None:
    """The token for orders, from a file or else from the environment; None if there is none."""
    return read_token(file, text, variable("http-token"))


def names_for(bind: Address, names: Iterable[str]) -> Hosts:
    """The names that were given, and those of this machine."""
    return Hosts([bind.host, *names, *own_names()])


class HttpService:
    """One listening address, and what answers there. `serve` it in a task of its own."""

    def __init__(
        self,
        bind: Address,
        log: EventLog,
        *,
        members: dict[str, AgentMember] | None = None,
        token: str | None = None,
        names: Iterable[str] = (),
        streams: int = STREAMS,
        drops: Callable[[], Mapping[str, int]] = dict,
        groups: Iterable[str] = (),
    ) -> None:
        """Listen; `BadInput` says why this cannot be.

        `names` are host names of requests, in addition to those of this machine. `groups` are those
        that `members` will have: until then nothing is ready.
        """
        self.members: dict[str, AgentMember] = {} if members is None else members
        self.warning: str | None = permit_http(bind, token=token is not None)
        self._listener = listen(bind)
        self._broadcast = Broadcast(streams)
        self._connections = connections_for(streams, log)
        self.api = Api(
            self.members,
            self._broadcast,
            log,
            None if token is None else Token(token),
            drops,
            lambda: self._connections.refused,
            names_for(bind, names),
            groups,
        )
        self._server: Server | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self._listener.getsockname()[:2]
        return f"http://{Address(host, port)}"

    def tell(self, state: Leadership) -> None:
        """Send a change of leadership to all listeners."""
        self._broadcast.publish({"time": timestamp(time.time()), **leadership_json(state)})

    async def serve(self) -> None:
        """Answer until `end` is called."""
        if self.api.stopping:
            return
        self._server = server_for(self.api.app(), self._connections)
        await self._server.serve([self._listener])

    def end(self) -> None:
        """Accept no more connections, and finish the answers under way."""
        self.api.stopping = True
        self._broadcast.end()
        if self._server is not None:
            self._server.end()

    def hurry(self) -> None:
        """Do not wait for answers."""
        if self._server is not None:
            self._server.force_exit = True

    async def finish(self, serving: asyncio.Task[None]) -> None:
        """End `serve` in order: answers under way have a second.

        A server that is cancelled while it listens leaves its listener to the event loop, and the
        end of uvloop can wait for that for ever.
        """
        self.end()
        await asyncio.wait({serving}, timeout=LAST_S)
        self.hurry()
        await asyncio.wait({serving}, timeout=LAST_S)
        serving.cancel()
        await asyncio.wait({serving})

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()

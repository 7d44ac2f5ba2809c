"""A network of HTTP servers in memory, in the place of aiohttp's client, and in virtual time.

Servers are the same as in tests/guard/fakes. `before` and `after` let somebody else act between two
requests, or lose an answer on its way.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Generator, Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

import aiohttp
from kubernetes_asyncio.client import rest
from multidict import CIMultiDict
from yarl import URL

from hustings.guard import consul
from tests.net.kit.virtual import now

Act = Callable[[], object]  # awaited if it can be
Handler = Callable[[Any], Awaitable[Any]]


class Asked(NamedTuple):
    """One request, as it was sent."""

    place: str
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    timeout: float | None
    tls: Any

    async def read(self) -> bytes:
        return self.body


class Network:
    """Which server answers at which host and port; who is not there refuses."""

    def __init__(self) -> None:
        self.servers: dict[str, Handler] = {}
        self.asked: list[Asked] = []
        self.open = 0  # sessions of clients
        self.stood_still = 0.0  # for so long the client's process did nothing
        self._acts: list[tuple[str, str, int, Act]] = []

    def before(self, request: str, act: Act, skip: int = 0) -> None:
        """Somebody acts once before a request is looked at: `PUT /v1/kv/jobs/.lock`, say."""
        self._acts.append(("before", request, skip, act))

    def after(self, request: str, act: Act, skip: int = 0) -> None:
        """Somebody acts once when a request was carried out and is not yet answered."""
        self._acts.append(("after", request, skip, act))

    def requests(self) -> list[str]:
        return [f"{each.method} {each.path}" for each in self.asked]

    def client(self, **how: Any) -> Session:
        return Session(self, **how)

    async def answer(self, asked: Asked) -> Any:
        self.asked.append(asked)
        if asked.place not in self.servers:
            raise aiohttp.ClientConnectionError(f"nobody is at {asked.place}")
        name = f"{asked.method} {asked.path}"
        await self._interlude("before", name)
        answer = await self.servers[asked.place](asked)
        await self._interlude("after", name)
        return answer

    async def _interlude(self, when: str, request: str) -> None:
        for number, (moment, name, skip, act) in enumerate(self._acts):
            if (moment, name) == (when, request):
                if skip:
                    self._acts[number] = (moment, name, skip - 1, act)
                    continue
                del self._acts[number]
                waiting = act()
                if isinstance(waiting, Awaitable):
                    await waiting
                return


class Session:
    """In the place of aiohttp.ClientSession."""

    def __init__(
        self,
        network: Network,
        headers: Mapping[str, str] | None = None,
        connector: aiohttp.BaseConnector | None = None,
        **_: Any,
    ) -> None:
        self._network = network
        self._headers = dict(headers or {})
        self._connector = connector
        self._closed = False
        network.open += 1

    async def close(self) -> None:
        assert not self._closed
        self._closed = True
        self._network.open -= 1
        if self._connector is not None:
            await self._connector.close()

    def request(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        data: Any = None,
        ssl: Any = None,
        timeout: aiohttp.ClientTimeout | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Call:
        assert not self._closed
        place = URL(url)
        sent = data.encode() if isinstance(data, str) else data or b""
        return Call(
            self._network,
            Asked(
                f"{place.scheme}://{place.raw_host}:{place.port}",
                method,
                place.path,
                {**place.query, **(params or {})},
                CIMultiDict({**self._headers, **(headers or {})}),
                sent,
                None if timeout is None else timeout.total,
                ssl,
            ),
        )


class Call:
    """A request under way: to be awaited, or entered."""

    def __init__(self, network: Network, asked: Asked) -> None:
        self._network = network
        self._asked = asked

    def __await__(self) -> Generator[Any, None, Any]:
        return self._answer().__await__()

    async def __aenter__(self) -> Any:
        return await self._answer()

    async def __aexit__(self, *_: object) -> None:
        pass

    async def _answer(self) -> Any:
        async with asyncio.timeout(self._asked.timeout):
            answer = await self._network.answer(self._asked)
        return Answer(answer) if hasattr(answer, "body") else answer


class Answer:
    """What a client sees of a server's response."""

    def __init__(self, response: Any) -> None:
        self.status = response.status
        self.headers = response.headers
        self._body = response.body or b""

    async def read(self) -> bytes:
        return bytes(self._body)

    def close(self) -> None:
        pass


def _quick_context(cafile: str | None) -> ssl.SSLContext:
    """Without the papers of all the world, which take long to read."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if cafile is not None:
        context.load_verify_locations(cafile)
    return context


def patched(monkeypatch: Any) -> Network:
    """A network in the place of aiohttp's, on the clock of the running loop."""
    network = Network()
    monkeypatch.setattr(aiohttp, "ClientSession", network.client)
    clock = SimpleNamespace(monotonic=lambda: now() + network.stood_still)
    monkeypatch.setattr(consul, "time", clock)
    monkeypatch.setattr(rest, "ssl", SimpleNamespace(create_default_context=_quick_context))
    return network

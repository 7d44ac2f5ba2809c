"""What the guard on Kubernetes says of a server that refuses, is silent, or is none."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.client_reqrep import ConnectionKey

from hustings.core.errors import BadInput
from hustings.guard import Unreachable, make_guard
from tests.guard.answers import granted
from tests.net.kit.virtual import now, virtually
from tests.unit.guard.fakes_http import Network
from tests.unit.guard.fakes_kubernetes import ADA, PLACE, TTL, Server, opened, server, silence

__all__ = ["server"]


def always(status: int, text: str) -> Any:
    async def answer(_: Any) -> web.Response:
        return web.Response(status=status, text=text)

    return answer


@pytest.mark.parametrize(
    "status, text, kind, says",
    [
        (400, '{"message": "no"}', BadInput, "Kubernetes at kubernetes://h refuses: no"),
        (401, '{"message": "no"}', BadInput, "Kubernetes at kubernetes://h refuses: no"),
        (403, "no", BadInput, "Kubernetes at kubernetes://h refuses: no"),
        (300, "no", Unreachable, "Kubernetes at kubernetes://h: no"),
        (500, "x" * 300, Unreachable, "Kubernetes at kubernetes://h: " + "x" * 200),
        (503, "{}", Unreachable, "Kubernetes at kubernetes://h: status 503"),
        (200, "<html>", Unreachable, "what answers at kubernetes://h is not Kubernetes: JSON"),
        (200, "{}", Unreachable, "what answers at kubernetes://h is not Kubernetes: 'metadata'"),
    ],
)
def test_refusals_are_told_apart_when_it_is_opened(
    network: Network, status: int, text: str, kind: type[Exception], says: str
) -> None:
    async def story() -> None:
        network.servers[PLACE] = always(status, text)
        with pytest.raises(kind) as caught:
            await opened().open()
        assert str(caught.value).startswith(says)
        if status != 200:
            assert str(caught.value) == says
        assert network.open == 0

    virtually(story())


def test_no_tls_is_told_when_it_is_opened_and_waited_for_later(
    network: Network, server: Server
) -> None:
    key = ConnectionKey("h", 6443, True, True, None, None, None)

    async def no_tls(_: Any) -> Any:
        raise aiohttp.ClientConnectorSSLError(key, OSError(1, "wrong version"))

    async def story() -> None:
        async with opened() as guard:
            network.servers[PLACE] = no_tls
            with pytest.raises(Unreachable, match=r"kubernetes://h refuses: .*wrong version"):
                await guard.acquire(ADA, TTL)
        with pytest.raises(BadInput, match=r"kubernetes://h: no TLS connection \(.*wrong version"):
            await opened().open()
        assert network.open == 0

    virtually(story())


def test_what_is_refused_later_may_be_allowed_again(network: Network, server: Server) -> None:
    async def story() -> None:
        async with opened() as guard:
            first = await granted(guard, ADA, TTL)
            network.servers[PLACE] = always(403, '{"message": "not yours"}')
            for ask in (
                guard.renew(first, TTL),
                guard.acquire(ADA, TTL),
                guard.release(first),
                guard.recover(9),
                guard.identity(),
            ):
                with pytest.raises(Unreachable, match="kubernetes://h refuses: not yours"):
                    await ask
            network.servers[PLACE] = server
            await guard.renew(first, TTL)

    virtually(story())


def test_a_write_that_is_refused_is_not_taken_for_one_that_came_too_late(
    network: Network, server: Server
) -> None:
    async def story() -> None:
        async with opened() as guard:
            first = await granted(guard, ADA, TTL)

            async def read_only(request: Any) -> Any:
                if request.method == "PUT":
                    return web.Response(status=403, text="read only")
                return await server(request)

            network.servers[PLACE] = read_only
            with pytest.raises(Unreachable, match="kubernetes://h refuses: read only"):
                await guard.renew(first, TTL)
            assert server.count("PUT") == 1

    virtually(story())


def test_a_server_that_is_silent_or_away_is_unreachable_in_time(
    network: Network, server: Server
) -> None:
    async def story() -> None:
        async with opened("&timeout=3") as guard:
            network.servers[PLACE] = silence
            with pytest.raises(Unreachable, match="kubernetes://h did not answer in time"):
                await guard.acquire(ADA, TTL)
            assert now() == 3.0
            del network.servers[PLACE]
            with pytest.raises(Unreachable, match="cannot be used now: nobody is at"):
                await guard.acquire(ADA, TTL)
        with pytest.raises(Unreachable, match="cannot be used now"):
            await opened().open()
        assert network.open == 0

    virtually(story())


def test_a_guard_that_is_not_open_says_so(network: Network, server: Server) -> None:
    async def story() -> None:
        guard = opened()
        await guard.close()
        with pytest.raises(Unreachable, match="the guard on Kubernetes is not open"):
            await guard.acquire(ADA, TTL)
        await guard.open()
        await guard.open()
        assert network.open == 1
        await guard.close()
        assert network.open == 0
        with pytest.raises(Unreachable, match="not open"):
            await guard.acquire(ADA, TTL)
        await guard.open()
        await granted(guard, ADA, TTL)
        await guard.close()

    virtually(story())


def test_a_namespace_that_is_not_there_is_told_of(server: Server) -> None:
    async def story() -> None:
        async with make_guard("kubernetes://h/nowhere?tls=no", "jobs") as guard:
            with pytest.raises(Unreachable, match="refuses: there is no namespace nowhere"):
                await guard.acquire(ADA, TTL)

    virtually(story())


def test_ttls_that_a_lease_cannot_keep_are_refused() -> None:
    guard = opened()
    guard.check_ttl(1.0)
    guard.check_ttl(86400.0)
    for ttl in (0.9, 86400.5):
        with pytest.raises(BadInput, match="between 1 and 86400 s with Kubernetes, not"):
            guard.check_ttl(ttl)
    with pytest.raises(BadInput, match="positive time"):
        guard.check_ttl(float("nan"))

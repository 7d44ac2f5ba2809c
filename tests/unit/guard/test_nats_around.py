"""The guard on NATS: addresses, connecting, buckets, and its client."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from nats.aio.client import Client
from nats.errors import (
    AuthorizationError,
    Error,
    NoServersError,
    SecureConnRequiredError,
    SecureConnWantedError,
)
from nats.js.api import StorageType
from nats.js.errors import APIError, NoStreamResponseError, ServiceUnavailableError

from hustings.core.errors import BadInput
from hustings.guard import Unreachable
from hustings.guard.nats import PING_S, RECONNECT_S, _Client, key_of
from tests.guard.answers import granted
from tests.net.kit.virtual import virtually
from tests.unit.guard.fakes_nats import (
    ADA,
    SILENT,
    TTL,
    Bucket,
    FakeClient,
    Server,
    closed_guard,
    opened,
    server,
)

__all__ = ["server"]

WORD = "jobs.identity"
NOT_OPEN = r"^the guard on NATS is not open$"


# Addresses


@pytest.mark.parametrize(
    "url, says",
    [
        ("nats://h?tmeout=1", "timeout"),
        ("nats://ada@h", "nats needs both a user and a password, or neither"),
        ("nats://:secret@h", "nats needs both a user and a password, or neither"),
        ("nats://h/a.b", r"named by letters, digits, _ and -, not 'a\.b'"),
        ("nats://h?replicas=0", "option replicas of nats must be a number from 1 to 5, not 0"),
        ("nats://h?replicas=6", "option replicas of nats must be a number from 1 to 5, not 6"),
        ("nats://h?replicas=1.5", "option replicas of nats must be a number from 1 to 5, not 1.5"),
        ("nats://h?synced=perhaps", "option synced of nats must be one of no, yes"),
        ("nats://h?timeout=0", "option timeout of nats must be a positive time"),
        ("nats://h?cert=x", "need tls=yes"),
    ],
)
def test_bad_addresses_are_refused(url: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        closed_guard(url)


def test_an_address_says_who_is_asked_and_how(server: Server) -> None:
    async def story() -> None:
        await opened("nats://ada:secret@h,i:7,[::1]:8/B-1_x?replicas=5&timeout=3.7&tls=yes")
        options = server.clients[0].options
        assert options["servers"] == ["nats://h:4222", "nats://i:7", "nats://[::1]:8"]
        assert (options["user"], options["password"]) == ("ada", "secret")
        assert isinstance(options["tls"], ssl.SSLContext)
        assert options["connect_timeout"] == 3
        assert (options["reconnect_time_wait"], options["ping_interval"]) == (RECONNECT_S, PING_S)
        assert options["max_reconnect_attempts"] == -1, "it goes on trying"
        made = server.buckets["B-1_x"]
        assert (made.replicas, made.storage, made.direct) == (5, StorageType.FILE, False)

    virtually(story())


def test_an_address_need_say_nothing(server: Server) -> None:
    async def story() -> None:
        ours = await opened("nats://h?timeout=0.5")
        options = server.clients[0].options
        assert (options["user"], options["password"], options["tls"]) == (None, None, None)
        assert options["connect_timeout"] == 1
        assert server.buckets["hustings"].replicas == 1
        assert ours.timeout == 0.5
        assert closed_guard().timeout == 2.0
        assert not closed_guard().guarantees.monotone
        assert not closed_guard("nats://h?synced=no").guarantees.monotone
        assert closed_guard("nats://h?synced=yes").guarantees.monotone

    virtually(story())


@pytest.mark.parametrize("replicas", [1, 2, 3, 4, 5])
def test_a_bucket_has_as_many_replicas_as_asked_for(server: Server, replicas: int) -> None:
    async def story() -> None:
        await opened(f"nats://h?replicas={replicas}")
        assert server.buckets["hustings"].replicas == replicas

    virtually(story())


def test_every_group_has_a_key_of_its_own(server: Server) -> None:
    async def story() -> None:
        for group in ("a.b", "a=2Eb", "a b", "ä", "A_b-9"):
            await granted(await opened(group=group), ADA, TTL)
        assert list(server.buckets["hustings"].entries) == [
            "a=2Eb",
            "a=3D2Eb",
            "a=20b",
            "=C3=A4",
            "A_b-9",
        ]
        assert key_of("\n") == "=0A"

    virtually(story())


def test_leases_that_nobody_can_keep_or_wait_for_are_refused() -> None:
    ours = closed_guard()
    ours.check_ttl(0.01)
    ours.check_ttl(86400.0)
    for ttl in (0.009, 86401.0):
        with pytest.raises(BadInput, match="ttl of a lease in NATS must lie between"):
            ours.check_ttl(ttl)
    with pytest.raises(BadInput, match="ttl must be a positive time"):
        ours.check_ttl(0.0)


# Connecting


def test_a_guard_connects_once_and_hangs_up(server: Server) -> None:
    async def story() -> None:
        ours = await opened()
        await ours.open()
        (client,) = server.clients
        assert client.closed == 0
        await ours.close()
        await ours.close()
        assert client.closed == 1
        asks: list[Awaitable[object]] = [ours.acquire(ADA, TTL), ours.identity(), ours.look()]
        for ask in asks[:2]:
            with pytest.raises(Unreachable, match=NOT_OPEN):
                await ask
        with pytest.raises(Unreachable, match="did not say who holds"):
            await asks[2]
        with pytest.raises(Unreachable, match=NOT_OPEN):
            await ours._make_again()
        await ours.open()
        assert len(server.clients) == 2
        await granted(ours, ADA, TTL)

    virtually(story())


def telling(*errors: Exception, then: Exception | None = None) -> Any:
    """A client that tells of errors, and raises one or goes on trying."""

    async def greet(client: FakeClient) -> None:
        for each in errors:
            await client.options["error_cb"](each)
        if then is not None:
            raise then
        await asyncio.sleep(3600.0)

    return greet


WRONG = "NATS at nats://h wants another user or password: "
NO_TLS = "NATS at nats://h: no TLS connection, or it must be one; see options tls, ca, cert, key: "


@pytest.mark.parametrize(
    "error, says",
    [
        (AuthorizationError(), f"{WRONG}nats: authorization failed"),
        (Error("nats: 'Authorization Violation'"), f"{WRONG}nats: 'Authorization Violation'"),
        (SecureConnRequiredError(), f"{NO_TLS}nats: secure connection required"),
        (ssl.SSLError(1, "not ours"), f"{NO_TLS}not ours"),
    ],
)
def test_what_waiting_does_not_cure_is_told_at_once(
    server: Server, error: Exception, says: str
) -> None:
    async def story() -> None:
        server.greets = telling(OSError("refused"), error)
        ours = closed_guard()
        with pytest.raises(BadInput, match=f"^{re.escape(says)}$"):
            await ours.open()
        assert ours.now() < 0.1
        server.greets = telling(then=error)
        with pytest.raises(BadInput, match=f"^{re.escape(says)}$"):
            await ours.open()
        assert [each.closed for each in server.clients] == [1, 1]
        server.greets = None
        await ours.open()

    virtually(story())


@pytest.mark.parametrize(
    "greets, why",
    [
        (telling(), "no answer"),
        (telling(OSError()), "no answer"),
        (telling(OSError(), OSError("refused"), OSError("later")), "refused"),
        (telling(*[OSError(str(each)) for each in range(25)]), "15"),
    ],
)
def test_who_is_away_is_waited_for_as_long_as_for_an_answer(
    server: Server, greets: Callable[[FakeClient], Awaitable[None]], why: str
) -> None:
    async def story() -> None:
        server.greets = greets
        ours = closed_guard()
        with pytest.raises(Unreachable, match=f"^NATS at nats://h cannot be reached: {why}$"):
            await ours.open()
        assert ours.now() == pytest.approx(2.0, abs=0.01)
        assert server.clients[0].closed == 1
        server.greets = telling(then=NoServersError())
        with pytest.raises(Unreachable, match="cannot be reached: nats: no servers available"):
            await ours.open()

    virtually(story())


def test_who_gives_up_leaves_nothing_behind(server: Server) -> None:
    async def story() -> None:
        server.greets = telling()
        opening = asyncio.ensure_future(closed_guard().open())
        await asyncio.sleep(0.1)
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        assert server.clients[0].closed == 1
        assert asyncio.all_tasks() == {asyncio.current_task()}
        server.greets = None
        await opened()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    virtually(story())


# Buckets


@pytest.mark.parametrize(
    "bucket, says",
    [
        (Bucket(storage=StorageType.MEMORY), "^bucket hustings is kept in memory: tokens would"),
        (Bucket(max_age=60.0), "^entries of bucket hustings expire: leases would be forgotten$"),
    ],
)
def test_buckets_that_forget_are_refused(server: Server, bucket: Bucket, says: str) -> None:
    async def story() -> None:
        server.buckets["hustings"] = bucket
        ours = closed_guard()
        with pytest.raises(BadInput, match=says):
            await ours.open()
        assert server.clients[0].closed == 1
        server.buckets["hustings"] = Bucket()
        await ours.open()
        server.buckets["hustings"] = bucket
        server.on("update", NoStreamResponseError)
        with pytest.raises(Unreachable, match=r"cannot be used now: .*forgotten"):
            await ours.acquire(ADA, TTL)

    virtually(story())


@pytest.mark.parametrize(
    "error, says",
    [
        (APIError(503, "not enabled", 10076), "refuses: not enabled$"),
        (APIError(503, "not for you", 10039), "refuses: not for you$"),
        (APIError(400, "bad", 1), "refuses: bad$"),
        (APIError(401, "who", 1), "refuses: who$"),
        (APIError(403, "no", 1), "refuses: no$"),
    ],
)
def test_a_server_that_keeps_no_buckets_is_a_mistake(
    server: Server, error: APIError, says: str
) -> None:
    async def story() -> None:
        server.on("find", lambda: error)
        with pytest.raises(BadInput, match=f"^NATS at nats://h {says}"):
            await closed_guard().open()

    virtually(story())


def test_a_server_that_is_not_ready_is_none(server: Server) -> None:
    async def story() -> None:
        server.on("find", lambda: ServiceUnavailableError(503, "no leader", 10008))
        with pytest.raises(Unreachable, match=r"cannot be used now: .*no leader"):
            await closed_guard().open()
        server.on("make", lambda: SILENT)
        ours = closed_guard()
        began = ours.now()
        with pytest.raises(Unreachable, match="did not answer in time"):
            await ours.open()
        assert ours.now() - began == pytest.approx(2.0, abs=0.01)

    virtually(story())


def test_a_bucket_that_vanishes_again_while_it_is_made_is_told(server: Server) -> None:
    async def story() -> None:
        ours = await opened()
        server.buckets.clear()
        server.on("status", server.buckets.clear)
        with pytest.raises(Unreachable, match="cannot be used now: nats: no response from stream"):
            await ours.acquire(ADA, TTL)

    virtually(story())


# The client


class Transport:
    closed = False

    def close(self) -> None:
        self.closed = True


def test_a_client_hangs_up_on_who_does_not_greet_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def greeted(self: Client) -> None:
        if self.options.get("fails"):
            raise TimeoutError

    monkeypatch.setattr(Client, "_process_connect_init", greeted)

    async def story() -> None:
        client, transport = _Client(), Transport()
        there: Any = transport
        client._transport = there
        await client._process_connect_init()
        assert [transport.closed] == [False]
        client.options["fails"] = True
        with pytest.raises(TimeoutError):
            await client._process_connect_init()
        assert [transport.closed] == [True]
        client._transport = None
        with pytest.raises(TimeoutError):
            await client._process_connect_init()

    virtually(story())


def test_a_client_gives_no_password_in_plain_text_where_tls_was_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Client, "_connect_command", lambda self: b"CONNECT")

    async def story() -> None:
        client = _Client()
        assert client._connect_command() == b"CONNECT"
        client.options["tls"] = None
        with pytest.raises(SecureConnWantedError):
            client._connect_command()
        client._server_info = {"tls_required": True}
        assert client._connect_command() == b"CONNECT"

    virtually(story())

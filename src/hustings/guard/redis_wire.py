"""Connections to Redis or Valkey: the only place that knows the client, and what its errors mean.

The client repeats nothing by itself, and never waits longer than its limit.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from redis import exceptions as refused
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from hustings.core.errors import BadInput
from hustings.guard.base import Unreachable
from hustings.guard.urls import GuardUrl

PORT = 6379

_NO_ACCESS = (
    refused.AuthenticationError,
    refused.AuthorizationError,
    refused.NoPermissionError,
    refused.AuthenticationWrongNumberOfArgsError,
)


class RedisWire:
    """A server as one guard reaches it."""

    def __init__(self, url: GuardUrl, timeout: float) -> None:
        self.shown = url.shown
        self.timeout = timeout
        ((host, port),) = url.addresses(PORT)
        self._secured = url.scheme == "rediss"
        secured: dict[str, Any] = {}
        if self._secured:
            secured = {
                "ssl": True,
                "ssl_ca_certs": url.options.get("ca"),
                "ssl_certfile": url.options.get("cert"),
                "ssl_keyfile": url.options.get("key"),
            }
        # The client's types are not complete: here they end.
        self._client: Any = Redis(
            host=host,
            port=port,
            db=int(url.path or "0"),
            username=url.user,
            password=url.password,
            # Waiting is bounded here, once: the client's own way may swallow a cancellation.
            socket_timeout=None,
            socket_connect_timeout=timeout,
            retry=Retry(NoBackoff(), 0),
            decode_responses=True,
            protocol=2,
            **secured,
        )

    async def command(self, *words: str | int) -> Any:
        """An answer of the server; within `understood`."""
        return await self._client.execute_command(*words)

    async def setting(self, name: str) -> str | None:
        """A setting of the server, if the server may tell it; within `understood`."""
        try:
            found = await self._client.config_get(name)
        except refused.ResponseError:
            return None
        value = found.get(name)
        return None if value is None else str(value)

    @asynccontextmanager
    async def listening(self, channel: str) -> AsyncIterator[Ear]:
        """Receive the messages of a channel, from the first moment of the block."""
        hearing = self._client.pubsub()
        try:
            async with self.understood():
                await hearing.subscribe(channel)
                await hearing.get_message(timeout=self.timeout)  # the server's confirmation
            yield Ear(hearing, self.shown, self.timeout)
        finally:
            await hearing.aclose()

    async def close(self) -> None:
        await self._client.aclose()

    @asynccontextmanager
    async def understood(self) -> AsyncIterator[None]:
        """Use the server in bounded time. Failures become a sentence."""
        shown = self.shown
        try:
            async with asyncio.timeout(self.timeout):
                yield
        except (TimeoutError, refused.TimeoutError):
            # To a server without TLS, the handshake looks like the beginning of a line that never
            # ends.
            hint = ": does it speak TLS?" if self._secured else ""
            raise Unreachable(f"{shown} did not answer within {self.timeout:g} s{hint}") from None
        except _NO_ACCESS as error:
            raise BadInput(f"{shown} refuses access: {error}") from None
        except refused.MovedError:
            raise BadInput(f"{shown} is a node of a cluster: a guard needs one server") from None
        except refused.ConnectionError as error:
            if isinstance(error.__context__, ssl.SSLError):
                raise BadInput(f"no TLS with {shown}: {error.__context__.reason}") from None
            raise Unreachable(f"{shown} cannot be reached: {error}") from None
        except refused.ResponseError as error:
            if "DB index" in str(error):
                raise BadInput(f"{shown}: {error}") from None
            raise Unreachable(f"{shown} cannot answer: {error}") from None
        except (OSError, refused.RedisError) as error:
            raise Unreachable(f"{shown} cannot be asked: {error}") from None


class Ear:
    """A subscription."""

    def __init__(self, hearing: Any, shown: str, timeout: float) -> None:
        self._hearing = hearing
        self._shown = shown
        self._timeout = timeout

    async def wait(self, seconds: float) -> None:
        """Wait for a message, for at most this time. Then check that the server is alive."""
        try:
            # The client connects again by itself, and then waits for a greeting without a limit.
            async with asyncio.timeout(seconds + self._timeout) as patience:
                if await self._hearing.get_message(timeout=seconds) is None:
                    patience.reschedule(asyncio.get_running_loop().time() + self._timeout)
                    await self._hearing.ping()
                    await self._hearing.get_message(timeout=None)
        except TimeoutError:
            raise Unreachable(f"{self._shown} has fallen silent") from None
        except (OSError, refused.RedisError) as error:
            raise Unreachable(f"{self._shown} is not heard any more: {error}") from None

"""A connection to PostgreSQL: the only place that knows the client, and what its errors mean.

A question is one statement in one message of the simple protocol, and its answer is one value.
There is no prepared statement that a transaction pooler could lose or mix up. The client returns
rows in that protocol only for COPY, so every question is a COPY. Arguments are written into it, as
hex.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import asyncpg
import msgspec
from asyncpg import exceptions as refused

from hustings.core.errors import BadInput
from hustings.guard.base import Unreachable
from hustings.guard.passwords import check_passfile
from hustings.guard.urls import GuardUrl, one_of
from hustings.net.fork import keep_from_children

PORT = 5432

_NO_ACCESS = (refused.InvalidAuthorizationSpecificationError, refused.InsufficientPrivilegeError)
_NO_SCHEMA = (
    refused.InvalidSchemaNameError,
    refused.UndefinedFunctionError,
    refused.UndefinedTableError,
)
_OUTAGES = (
    OSError,
    refused.PostgresError,
    refused.InterfaceError,
    refused.InternalClientError,  # the connection ended while the client was at work
)
_ASK_FOR_TLS = bytes.fromhex("0000000804d2162f")


class PostgresAddress:
    """Where a database is and how to log in, from a guard's address."""

    def __init__(self, url: GuardUrl) -> None:
        self.shown = url.shown
        self._places = places = url.addresses(PORT)
        self._arguments: dict[str, Any] = {
            "host": [host for host, _ in places],
            "port": [port for _, port in places],
            "user": url.user,
            "password": url.password,
            "database": url.path or None,
            "ssl": _encryption(url),
            # Of several hosts, take the one that accepts writes. With one host, the first write
            # shows it.
            "target_session_attrs": "read-write" if len(places) > 1 else "any",
            "statement_cache_size": 0,
        }

    async def dial(self) -> PostgresWire:
        if self._arguments["password"] is None:
            check_passfile()
        try:
            return PostgresWire(await asyncpg.connect(**self._arguments))
        except ConnectionError as error:
            # The client says so of any unexpected answer, for example of a server that shuts down.
            if "rejected SSL" in str(error) and await self._does_not_speak_tls():
                raise BadInput(
                    f"{self.shown} does not speak TLS, and sslmode asks for it"
                ) from None
            raise

    async def _does_not_speak_tls(self) -> bool:
        """Whether a server plainly says that it speaks no TLS, although TLS is required."""
        if self._arguments["ssl"] == "prefer":
            return False
        reader, writer = await asyncio.open_connection(*self._places[0])
        try:
            writer.write(_ASK_FOR_TLS)
            return await reader.read(1) == b"N"
        finally:
            writer.transport.abort()


class PostgresWire:
    """One connection. It does one thing at a time. A caller that was cancelled must `end` it."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        keep_from_children(self, _socket_of)

    @property
    def ended(self) -> bool:
        return bool(self._connection.is_closed())

    async def ask(self, expression: str) -> Any:
        """The value of a jsonb expression."""
        said = bytearray()

        async def hear(more: bytes) -> None:
            said.extend(more)

        query = f"SELECT encode(convert_to(({expression})::text, 'UTF8'), 'hex')"
        await self._connection.copy_from_query(query, output=hear)
        return msgspec.json.decode(bytes.fromhex(said.decode()))

    async def execute(self, statements: str) -> None:
        await self._connection.execute(statements)

    async def listen(self, channel: str, wake: Callable[[], None]) -> None:
        """Call `wake` at each message on the channel, and when the connection ends."""
        await self._connection.add_listener(channel, lambda *_: wake())
        self._connection.add_termination_listener(lambda *_: wake())

    def end(self) -> None:
        """Close at once, without a farewell message."""
        self._connection.terminate()


def text(value: str | None) -> str:
    """Any text as an SQL expression."""
    if value is None:
        return "NULL::text"
    return f"convert_from(decode('{value.encode().hex()}', 'hex'), 'UTF8')"


@asynccontextmanager
async def understood(shown: str, within_s: float) -> AsyncIterator[None]:
    """Use a connection in bounded time. Failures become a sentence."""
    try:
        async with asyncio.timeout(within_s):
            yield
    except TimeoutError:
        raise Unreachable(f"{shown} did not answer within {within_s:g} s") from None
    except _NO_ACCESS as error:
        raise BadInput(f"{shown} refuses access: {_brief(error)}") from None
    except (refused.InvalidCatalogNameError, refused.ClientConfigurationError) as error:
        raise BadInput(f"{shown}: {_brief(error)}") from None
    except _NO_SCHEMA:
        raise BadInput(
            f"the schema of the guard is not installed at {shown}: "
            "run `hustings guards URL --install` once, with a role that may create it"
        ) from None
    except ssl.SSLError as error:
        raise BadInput(f"no TLS with {shown}: {error.reason or error}") from None
    except _OUTAGES as error:
        raise Unreachable(f"{shown} cannot be asked: {_brief(error)}") from None


def _brief(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__


def _encryption(url: GuardUrl) -> Any:
    mode = one_of(url, "sslmode", "prefer", "disable", "require", "verify-full")
    roots = url.options.get("sslrootcert")
    if roots is not None and mode != "verify-full":
        raise BadInput("option sslrootcert of postgres goes with sslmode=verify-full")
    if mode == "disable":
        return False
    if mode != "verify-full":
        return mode
    with suppress(OSError):
        return ssl.create_default_context(cafile=roots)
    raise BadInput(f"option sslrootcert of postgres: {roots!r} holds no certificates")


def _socket_of(wire: PostgresWire) -> int:
    transport = getattr(wire._connection, "_transport", None)  # asyncpg has no other way to it
    found = None if transport is None else transport.get_extra_info("socket")
    return -1 if found is None else int(found.fileno())

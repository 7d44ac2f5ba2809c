"""PostgreSQL's client: how it is connected, what its errors mean, and how questions are written."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from asyncpg import exceptions as refused

from hustings.core.errors import BadInput
from hustings.guard import Unreachable, parse_url
from hustings.guard import postgres_wire as module
from hustings.guard.postgres_wire import PostgresAddress, PostgresWire, text, understood
from tests.net.kit.virtual import now, virtually
from tests.unit.guard.postgres_model import SHOWN, URL, Connection, Database


@contextmanager
def said(kind: type[Exception], sentence: str) -> Iterator[None]:
    with pytest.raises(kind) as caught:
        yield
    assert str(caught.value) == sentence
    assert caught.value.__suppress_context__


# How it is connected


class Dialled:
    """A way to connect that keeps what it was given, and fails if it is told to."""

    def __init__(self) -> None:
        self.given: dict[str, Any] = {}
        self.fails: Exception | None = None

    async def __call__(self, **given: Any) -> Connection:
        self.given = given
        if self.fails is not None:
            raise self.fails
        return Connection(Database(), given)


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch) -> Dialled:
    made = Dialled()
    monkeypatch.setattr(module, "asyncpg", SimpleNamespace(connect=made))
    monkeypatch.delenv("PGPASSFILE", raising=False)
    return made


def dial(url: str) -> PostgresWire:
    return virtually(PostgresAddress(parse_url(url)).dial())


def test_an_address_becomes_what_the_client_takes(dialled: Dialled) -> None:
    assert not dial("postgres://ada:secret@db:7000/app").ended
    assert dialled.given == {
        "host": ["db"],
        "port": [7000],
        "user": "ada",
        "password": "secret",
        "database": "app",
        "ssl": "prefer",
        "target_session_attrs": "any",
        "statement_cache_size": 0,
    }


def test_what_an_address_leaves_out_and_several_hosts(dialled: Dialled) -> None:
    dial("postgres://")
    given = dialled.given
    assert (given["host"], given["port"], given["database"]) == (["127.0.0.1"], [5432], None)
    dial("postgres://a,b:7001")
    assert (dialled.given["host"], dialled.given["port"]) == (["a", "b"], [5432, 7001])
    assert dialled.given["target_session_attrs"] == "read-write"


def test_a_file_of_passwords_is_checked_where_it_is_needed(
    dialled: Dialled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passwords = tmp_path / "pgpass"
    passwords.write_text("*:*:*:*:secret\n")
    passwords.chmod(0o644)
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    dial("postgres://ada:secret@db")  # this one brings its own
    with pytest.raises(BadInput, match="can be used by others than its owner"):
        dial("postgres://ada@db")


@pytest.mark.parametrize(
    "options, wanted",
    [("", "prefer"), ("?sslmode=disable", False), ("?sslmode=require", "require")],
)
def test_how_secret_a_connection_is(dialled: Dialled, options: str, wanted: object) -> None:
    dial(URL + options)
    assert dialled.given["ssl"] == wanted
    assert type(dialled.given["ssl"]) is type(wanted)


def test_certificates_are_verified_where_that_is_asked_for(dialled: Dialled) -> None:
    dial(f"{URL}?sslmode=verify-full")
    assert dialled.given["ssl"].verify_mode is ssl.CERT_REQUIRED
    assert dialled.given["ssl"].check_hostname


@pytest.mark.parametrize(
    "options, sentence",
    [
        ("sslmode=maybe", "sslmode of postgres must be one of prefer, disable, require, verify-"),
        ("sslrootcert=x", "option sslrootcert of postgres goes with sslmode=verify-full"),
        ("sslmode=require&sslrootcert=x", "goes with sslmode=verify-full"),
        ("sslmode=verify-full&sslrootcert=/no/x", "sslrootcert of postgres: '/no/x' holds no cert"),
    ],
)
def test_wrong_ways_to_be_secret_get_a_sentence(options: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        PostgresAddress(parse_url(f"{URL}?{options}"))


# A server that does not speak TLS


class Plain:
    """A server that answers the question for TLS with one byte."""

    def __init__(self, says: bytes) -> None:
        self.says = says
        self.place: tuple[object, ...] = ()
        self.heard = b""
        self.aborted = 0
        self.transport = self

    async def open_connection(self, *place: object) -> tuple[Plain, Plain]:
        self.place = place
        return self, self

    def write(self, data: bytes) -> None:
        self.heard += data

    async def read(self, count: int) -> bytes:
        return self.says[:count]

    def abort(self) -> None:
        self.aborted += 1


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> Plain:
    made = Plain(b"N")
    monkeypatch.setattr(
        module, "asyncio", SimpleNamespace(open_connection=made.open_connection, timeout=None)
    )
    return made


REJECTED = ConnectionError("PostgreSQL server at db rejected SSL upgrade")


def test_a_server_that_plainly_cannot_is_a_mistake(dialled: Dialled, plain: Plain) -> None:
    dialled.fails = REJECTED
    with said(BadInput, f"{SHOWN} does not speak TLS, and sslmode asks for it"):
        dial(f"{URL}?sslmode=require")
    assert plain.place == ("db", 7000)
    assert plain.heard.hex() == "0000000804d2162f", "as the protocol asks for TLS"
    assert plain.aborted == 1


@pytest.mark.parametrize(
    "options, says, error",
    [
        ("?sslmode=require", b"S", REJECTED),
        ("?sslmode=require", b"", REJECTED),
        ("", b"N", REJECTED),
        ("?sslmode=require", b"N", ConnectionError("reset")),
    ],
)
def test_what_may_be_a_server_that_ends_is_no_mistake(
    dialled: Dialled, plain: Plain, options: str, says: bytes, error: Exception
) -> None:
    plain.says, dialled.fails = says, error
    with pytest.raises(ConnectionError) as caught:
        dial(URL + options)
    assert caught.value is error
    assert plain.aborted == bool(plain.place)


# Conversations


def test_an_answer_in_pieces_is_one_value() -> None:
    async def story() -> None:
        database = Database()
        database.answers = [{"holder": 'ä"\n', "token": 7}]
        wire = PostgresWire(await database.connect())
        assert await wire.ask("hustings.guard_look(1)") == {"holder": 'ä"\n', "token": 7}

    virtually(story())


def test_a_listener_is_called_for_news_and_at_the_end() -> None:
    async def story() -> None:
        connection = await Database().connect()
        wire = PostgresWire(connection)
        calls: list[int] = []
        await wire.listen("news", lambda: calls.append(1))
        ((channel, wake),) = connection.listeners
        wake(connection, 1, channel, "")
        assert (channel, len(calls)) == ("news", 1)
        connection.lose()
        assert len(calls) == 2
        assert wire.ended

    virtually(story())


def test_a_connection_ends_at_once() -> None:
    async def story() -> None:
        wire = PostgresWire(await Database().connect())
        assert wire.ended is False
        wire.end()
        assert wire.ended is True

    virtually(story())


@pytest.mark.parametrize("value", ["", "ada", "'); DROP TABLE x; --", "ä\\\n"])
def test_a_text_is_written_so_that_nothing_in_it_matters(value: str) -> None:
    written = text(value)
    assert written == f"convert_from(decode('{value.encode().hex()}', 'hex'), 'UTF8')"
    assert text(None) == "NULL::text"


# What errors mean


def secretly(reason: str | None) -> Exception:
    error: Any = ssl.SSLError(1, "no handshake")
    error.reason = reason
    assert isinstance(error, ssl.SSLError)
    return error


INSTALL = (
    f"the schema of the guard is not installed at {SHOWN}: run `hustings guards URL --install` "
    "once, with a role that may create it"
)


@pytest.mark.parametrize(
    "error, sentence",
    [
        (refused.InvalidPasswordError("wrong"), f"{SHOWN} refuses access: wrong"),
        (refused.InvalidAuthorizationSpecificationError("who?"), f"{SHOWN} refuses access: who?"),
        (refused.InsufficientPrivilegeError("no\nHINT"), f"{SHOWN} refuses access: no"),
        (refused.InvalidCatalogNameError("no such db"), f"{SHOWN}: no such db"),
        (refused.ClientConfigurationError("odd"), f"{SHOWN}: odd"),
        (refused.InvalidSchemaNameError("hustings"), INSTALL),
        (refused.UndefinedFunctionError("guard_look"), INSTALL),
        (refused.UndefinedTableError("guard_lease"), INSTALL),
        (secretly("CERTIFICATE_VERIFY_FAILED"), f"no TLS with {SHOWN}: CERTIFICATE_VERIFY_FAILED"),
        (secretly(None), f"no TLS with {SHOWN}: {secretly(None)}"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_what_waiting_does_not_cure(error: Exception, sentence: str) -> None:
    async def story() -> None:
        with said(BadInput, sentence):
            async with understood(SHOWN, 2.0):
                raise error

    virtually(story())


@pytest.mark.parametrize(
    "error, sentence",
    [
        (OSError("broken"), "cannot be asked: broken"),
        (ConnectionRefusedError(), "cannot be asked: ConnectionRefusedError"),
        (refused.TooManyConnectionsError("full\nmore"), "cannot be asked: full"),
        (refused.ReadOnlySQLTransactionError("standby"), "cannot be asked: standby"),
        (refused.InterfaceError("closed"), "cannot be asked: closed"),
        (refused.InternalClientError("went away"), "cannot be asked: went away"),
        (TimeoutError("late"), "did not answer within 2 s"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_what_may_pass(error: Exception, sentence: str) -> None:
    async def story() -> None:
        with said(Unreachable, f"{SHOWN} {sentence}"):
            async with understood(SHOWN, 2.0):
                raise error

    virtually(story())


def test_a_question_takes_no_longer_than_its_time() -> None:
    async def story() -> None:
        with said(Unreachable, f"{SHOWN} did not answer within 0.25 s"):
            async with understood(SHOWN, 0.25):
                await asyncio.sleep(0.26)
        assert now() == 0.25

    virtually(story())


@pytest.mark.parametrize("kind", [KeyError, AssertionError])
def test_an_error_of_our_own_is_nobodys_outage(kind: type[Exception]) -> None:
    async def story() -> None:
        async with understood(SHOWN, 2.0):
            raise kind

    with pytest.raises(kind):
        virtually(story())

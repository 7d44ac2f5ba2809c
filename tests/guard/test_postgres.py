"""The PostgreSQL guard beyond what all guards have: schema, roles, poolers, notifications, TLS."""

from __future__ import annotations

import asyncio
import ssl
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from hustings.core.errors import BadInput
from hustings.guard import Grant, Holder, Unreachable, make_guard, parse_url
from hustings.guard.inspection import install
from hustings.guard.postgres import MIGRATION
from hustings.guard.postgres_schema import VERSION, channel_of
from hustings.guard.postgres_wire import PostgresAddress, PostgresWire, text
from tests.guard.answers import refused
from tests.guard.conformance import granted, reached, rig_on
from tests.guard.engines.base import Engine, free_port
from tests.guard.engines.certificates import Certificates
from tests.guard.engines.postgres import PASSWORD, POOLED, USER
from tests.guard.engines.postgres import Engine as Postgres
from tests.guard.pooler import Pooler
from tests.guard.proxy import Proxy
from tests.net.kit.loops import background, run

ADA, BEN = Holder("ada", 1), Holder("ben", 1)
OWNER = f"{USER}:{PASSWORD}"
SCHEMA_1 = Path(__file__).parent / "postgres_schema_1.sql"
SCHEMA_3 = Path(__file__).parent / "postgres_schema_3.sql"


@pytest.fixture
def postgres(engines: Callable[[str], Engine]) -> Postgres:
    found = engines("postgres")
    assert isinstance(found, Postgres)
    return found


@pytest.fixture
def database(postgres: Postgres) -> str:
    """A new database without anything in it."""
    name = f"db_{uuid.uuid4().hex}"
    postgres.execute(f"CREATE DATABASE {name} TEMPLATE template0")
    return name


async def dial(url: str) -> PostgresWire:
    return await PostgresAddress(parse_url(url)).dial()


def test_every_statement_may_meet_another_session(postgres: Postgres) -> None:
    async def play() -> None:
        async with Pooler(postgres.port) as pooler:
            url = postgres.url_of(POOLED, at=pooler.port) + "?listen=no&poll=0.1"
            async with make_guard(url, "pooled") as one, make_guard(url, "pooled") as two:
                for incarnation in range(3):
                    first = await granted(one, Holder("ada", incarnation), 20.0)
                    await refused(two, BEN, 20.0)
                    renewed = await one.renew(first, 20.0)
                    assert renewed.token == first.token
                    await one.release(renewed, to="ben")
                    second = await granted(two, BEN, 20.0)
                    assert second.token == first.token + 1
                    async with one.observe() as states:
                        assert (await anext(states)).token == second.token
                        await two.release(second)
                        assert (await anext(states)).holder is None
            assert len(pooler.sessions) >= 4
            assert all(session.turns > 2 for session in pooler.sessions[:4])

    run(play())


def test_the_pooler_of_this_test_finds_who_relies_on_a_session(postgres: Postgres) -> None:
    async def play() -> None:
        async with Pooler(postgres.port) as pooler:
            wire = await dial(postgres.url_of(POOLED, at=pooler.port))
            try:
                await wire.execute("PREPARE mine AS SELECT 1")
                with pytest.raises(Exception, match='statement "mine" does not exist'):
                    await wire.execute("EXECUTE mine")
            finally:
                wire.end()

    run(play())


def test_a_missing_schema_says_what_to_run(postgres: Postgres, database: str) -> None:
    async def play() -> None:
        url = postgres.url_of(OWNER, database)
        guard = make_guard(url, "group")
        with pytest.raises(BadInput, match="hustings guards URL --install"):
            await guard.open()
        await asyncio.gather(*(install(url) for _ in range(4)))  # at once, and again
        async with guard:
            first = await granted(guard, ADA, 20.0)
            await install(url)
            assert (await guard.renew(first, 20.0)).token == first.token, "it keeps what it has"

    run(play())


def test_a_schema_of_another_version_is_refused(postgres: Postgres, database: str) -> None:
    async def play() -> None:
        url = postgres.url_of(OWNER, database)
        wire = await dial(url)
        await wire.execute(MIGRATION.replace(f"to_jsonb({VERSION})", "to_jsonb(99)"))
        wire.end()
        guard = make_guard(url, "group")
        try:
            with pytest.raises(BadInput, match=r"version 99.*hustings guards URL --install"):
                await guard.open()
        finally:
            await guard.close()

    run(play())


async def with_schema_1(url: str) -> PostgresWire:
    """A connection to a database as the first version of the schema left it; ada holds there."""
    wire = await dial(url)
    await wire.execute(SCHEMA_1.read_text())
    for token in (1, 2):
        told = await wire.ask(f"hustings.guard_acquire('group', 'ada', {token}, 0.5)")
        assert told == {"granted": True, "token": token}
        await wire.ask(f"hustings.guard_release('group', 'ada', {token}, {token}, NULL)")
    told = await wire.ask("hustings.guard_acquire('group', 'ada', 3, 0.5)")
    assert told == {"granted": True, "token": 3}
    return wire


def test_the_first_version_of_the_schema_is_refused(postgres: Postgres, database: str) -> None:
    async def play() -> None:
        url = postgres.url_of(OWNER, database)
        (await with_schema_1(url)).end()
        guard = make_guard(url, "group")
        try:
            with pytest.raises(BadInput, match=rf"version 1, and this is {VERSION}.*--install"):
                await guard.open()
        finally:
            await guard.close()

    run(play())


def test_the_first_version_of_the_schema_is_brought_up_to_date(
    postgres: Postgres, database: str
) -> None:
    """Tokens go on, a lease counts for its whole time, and an old member is let in no more."""

    async def play() -> None:
        url = postgres.url_of(OWNER, database)
        wire = await with_schema_1(url)
        try:
            await install(url)
            async with make_guard(url, "group") as guard:
                began = guard.now()
                held = await refused(guard, BEN, 0.5)
                assert (held.holder, held.token) == ("ada", 3)
                grant = await granted(guard, BEN, 20.0)
                assert grant.token == 4
                assert guard.now() >= began + 0.5
                with pytest.raises(Exception, match="does not exist"):
                    await wire.ask("hustings.guard_acquire('group', 'ada', 3, 0.5)")
                await install(url)
                await guard.renew(grant, 20.0)
        finally:
            wire.end()

    run(play())


def test_a_member_of_version_3_goes_on_across_the_change_of_names(
    postgres: Postgres, database: str
) -> None:
    """A holder that began before keeps lease and token, renews, and reserves the lease for BEN."""

    async def play() -> None:
        url = postgres.url_of(OWNER, database)
        wire = await dial(url)
        acquire = "hustings.guard_acquire('group', 'ada', 5, 20.0, {}, 0, 0, 0, 0, False)"
        try:
            await wire.execute(SCHEMA_3.read_text())
            assert await wire.ask(acquire.format(11)) == {"granted": True, "token": 1, "ttl": 20.0}
            await asyncio.gather(*(install(url) for _ in range(3)))
            async with make_guard(url, "group") as guard:
                held = await refused(guard, BEN, 20.0)
                assert (held.holder, held.token) == ("ada", 1)
                await refused(guard, Holder("ada", 6), 20.0)
                assert await wire.ask(acquire.format(12)) == {
                    "granted": True,
                    "token": 1,
                    "ttl": 20.0,
                }
                renew = "hustings.guard_renew('group', 'ada', 5, 1, 20.0, 13, 12, 20.0)"
                assert await wire.ask(renew) == {"granted": True, "ttl": 20.0}
                assert await wire.ask("hustings.guard_release('group', 'ada', 5, 1, 'ben', 14)")
                assert (await refused(guard, Holder("cyn", 1), 20.0)).holder == "ben"
                assert (await granted(guard, BEN, 20.0)).token == 2
        finally:
            wire.end()

    run(play())


def test_a_state_from_before_shows_no_mark_again(postgres: Postgres, database: str) -> None:
    """As after a restored backup: the row is as it was, and its holder goes on from there."""

    async def play() -> None:
        url = postgres.url_of(OWNER, database)
        await install(url)
        wire = await dial(url)
        try:
            async with make_guard(url, "group") as one, make_guard(url, "group") as two:
                grant = await granted(one, ADA, 0.5)
                await wire.execute("CREATE TABLE backup AS TABLE hustings.guard_lease")
                grant = await one.renew(grant, 0.5)
                await refused(two, BEN, 0.5)  # it has seen the renewal
                for _ in range(15):
                    await wire.execute(
                        "UPDATE hustings.guard_lease SET mark = backup.mark FROM backup"
                    )
                    grant = await one.renew(grant, 0.5)
                    await refused(two, BEN, 0.5)
                    await asyncio.sleep(0.05)
        finally:
            wire.end()

    run(play())


def test_a_schema_that_goes_in_the_middle_is_an_outage(postgres: Postgres, database: str) -> None:
    async def play() -> None:
        url = postgres.url_of(OWNER, database)
        await install(url)
        async with make_guard(url, "group") as guard:
            wire = await dial(url)
            await wire.execute("DROP SCHEMA hustings CASCADE")
            wire.end()
            with pytest.raises(Unreachable, match="not installed"):
                await guard.acquire(ADA, 20.0)
            await install(url)
            assert isinstance(await guard.acquire(ADA, 20.0), Grant)

    run(play())


def test_a_role_needs_what_the_migration_says_and_no_more(postgres: Postgres) -> None:
    postgres.execute("DROP ROLE IF EXISTS poor; CREATE ROLE poor LOGIN PASSWORD 'p00r'")

    async def play() -> None:
        async with make_guard(postgres.url_of(POOLED), "modest") as guard:
            await guard.release(await granted(guard, ADA, 20.0))
        poor = make_guard(postgres.url_of("poor:p00r"), "group")
        try:
            with pytest.raises(BadInput, match="refuses access"):
                await poor.open()
        finally:
            await poor.close()

    run(play())


def test_a_server_that_can_only_be_read_is_an_outage(postgres: Postgres, database: str) -> None:
    async def play() -> None:
        url = postgres.url_of(OWNER, database)
        await install(url)
        wire = await dial(url)
        await wire.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
        wire.end()
        async with make_guard(url, "group") as guard:
            with pytest.raises(Unreachable, match="read-only"):
                await guard.acquire(ADA, 20.0)

    run(play())


def test_sessions_that_serialise_everything_do_not_let_two_in(
    postgres: Postgres, database: str
) -> None:
    """Some askers are told to come again; that is all."""

    async def play() -> None:
        url = postgres.url_of(OWNER, database)
        await install(url)
        wire = await dial(url)
        await wire.execute(
            f"ALTER DATABASE {database} SET default_transaction_isolation = 'serializable'"
        )
        wire.end()
        guards = [make_guard(url, "group") for _ in range(4)]
        try:
            holders = [Holder(f"m{number}", 1) for number in range(4)]
            tokens = []
            for _ in range(3):
                answers = await asyncio.gather(
                    *(g.acquire(h, 20.0) for g, h in zip(guards, holders, strict=True)),
                    return_exceptions=True,
                )
                (won,) = [each for each in answers if isinstance(each, Grant)]
                assert not [each for each in answers if type(each) is Exception]
                tokens.append(won.token)
                await guards[holders.index(won.holder)].release(won)
            assert tokens == sorted(set(tokens))
        finally:
            for guard in guards:
                await guard.close()

    run(play())


def test_a_hasty_session_still_writes_tokens_down(postgres: Postgres) -> None:
    async def play() -> None:
        wire = await dial(postgres.url())
        try:
            await wire.execute("BEGIN; SET LOCAL synchronous_commit = off")
            await wire.ask(
                f"hustings.guard_acquire({text('hasty')}, 'ada', 1, 20, 1, 0, 0, 0, 0, false)"
            )
            assert await wire.ask("to_jsonb(current_setting('synchronous_commit'))") == "on"
        finally:
            wire.end()

    run(play())


def test_every_change_is_announced_and_a_renewal_too(postgres: Postgres) -> None:
    """Who waits measures from the last renewal, so it must hear of it."""

    async def play() -> None:
        heard: list[int] = []
        wire = await dial(postgres.url())
        try:
            async with rig_on(postgres) as rig:
                await wire.listen(channel_of(rig.group), lambda: heard.append(1))
                guard = await rig.guard()
                grant = await granted(guard, ADA, 20.0)
                await reached(lambda: len(heard) == 1, "the grant is announced")
                grant = await guard.renew(grant, 20.0)
                await reached(lambda: len(heard) == 2, "the renewal is announced")
                await guard.release(grant)
                await reached(lambda: len(heard) == 3, "the release is announced")
        finally:
            wire.end()

    run(play())


def test_an_observer_without_a_listening_session_polls(postgres: Postgres) -> None:
    async def play() -> None:
        url = postgres.url() + "?listen=no&poll=0.1"
        async with make_guard(url, "polled") as guard:
            grant = await granted(guard, ADA, 20.0)
            async with guard.observe() as states:
                assert (await anext(states)).token == grant.token
                await guard.release(grant)
                assert (await anext(states)).holder is None

    run(play())


def test_of_several_hosts_one_that_answers_is_used(postgres: Postgres) -> None:
    async def play() -> None:
        places = f"127.0.0.1:{free_port()},127.0.0.1:{postgres.port}"
        async with make_guard(f"postgres://{OWNER}@{places}/postgres", "hosts") as guard:
            assert isinstance(await guard.acquire(ADA, 20.0), Grant)

    run(play())


@pytest.mark.parametrize("way", ["option", "passfile", "variable"])
def test_a_password_need_not_stand_in_the_address(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    bare = url = postgres.url_of(USER)
    secret = tmp_path / "secret"
    if way == "option":
        secret.write_text(f"{PASSWORD}\n")
        url += f"?password_file={secret}"
    elif way == "passfile":
        secret.write_text(f"127.0.0.1:{postgres.port}:*:{USER}:{PASSWORD}\n")
        monkeypatch.setenv("PGPASSFILE", str(secret))
    else:
        secret.touch()
        monkeypatch.setenv("PGPASSWORD", PASSWORD)
    secret.chmod(0o600)

    async def play() -> None:
        await install(url)
        async with make_guard(url, "secretive") as guard:
            await guard.release(await granted(guard, ADA, 20.0))
        monkeypatch.delenv("PGPASSFILE", raising=False)
        monkeypatch.delenv("PGPASSWORD", raising=False)
        with pytest.raises(BadInput, match="refuses access"):
            await make_guard(bare, "secretive").open()

    run(play())


@pytest.mark.parametrize(
    "name", ["o'brien", 'a "b"', "back\\slash", "ünï/cødé %s $1", "{}", "x" * 500, "", "a\nb"]
)
def test_any_name_is_a_name(postgres: Postgres, name: str) -> None:
    async def play() -> None:
        one = make_guard(postgres.url(), f"g{name}")
        two = make_guard(postgres.url(), f"g{name}'")
        async with one, two:
            grant = await granted(one, Holder(name, 2**70), 20.0)
            assert (await refused(one, BEN, 20.0)).holder == name
            await one.release(grant, to=name)
            assert (await refused(one, BEN, 20.0)).holder == name
            assert isinstance(await two.acquire(BEN, 20.0), Grant), "another group"

    run(play())


def test_a_group_that_a_database_cannot_name_is_refused() -> None:
    with pytest.raises(BadInput, match="NUL"):
        make_guard("postgres://db", "a\0b")


@pytest.mark.parametrize(
    "options, word",
    [
        ("listen=perhaps", "listen"),
        ("poll=0", "poll"),
        ("sslmode=loose", "sslmode"),
        ("sslrootcert=x", "sslrootcert"),
        ("sslmode=verify-full&sslrootcert=no/such/file", "sslrootcert"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: str, word: str) -> None:
    with pytest.raises(BadInput, match=word):
        make_guard(f"postgres://db?{options}", "group")


def test_tls_is_checked_against_the_authority_that_was_named(
    postgres: Postgres, tmp_path: Path
) -> None:
    papers = Certificates(tmp_path)
    shown = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    shown.load_cert_chain(papers.cert, papers.key)

    async def play() -> None:
        async with Proxy(postgres.port, secret=shown, on_demand=True) as proxy:
            url = postgres.url_of(OWNER, at=proxy.port) + "?sslmode=verify-full"
            async with make_guard(f"{url}&sslrootcert={papers.ca}", "tls") as guard:
                assert isinstance(await guard.acquire(ADA, 20.0), Grant)
            stranger = make_guard(url, "tls")
            with pytest.raises(BadInput, match="TLS"):
                await stranger.open()

    run(play())


@pytest.mark.parametrize("mode", ["prefer", "require"])
def test_a_server_that_ends_while_it_is_asked_for_tls_is_an_outage(mode: str) -> None:
    """Its last word is neither yes nor no."""

    async def falter(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(8)
        writer.write(b"E")
        writer.close()

    async def play() -> None:
        server = await asyncio.start_server(falter, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            guard = make_guard(f"postgres://ada:x@127.0.0.1:{port}/a?sslmode={mode}", "group")
            with pytest.raises(Unreachable):
                await guard.open()

    run(play())


def test_a_server_that_is_killed_while_many_come_is_an_outage_and_nothing_else(
    postgres: Postgres,
) -> None:
    async def come() -> None:
        guard = make_guard(postgres.url(), "group")
        while True:
            with suppress(Unreachable):
                await guard.open()
            await guard.close()
            await asyncio.sleep(0.002)

    async def play() -> None:
        async with background(come(), come(), come()) as tasks:
            for _ in range(5):
                await asyncio.sleep(0.05)
                await asyncio.to_thread(postgres.stop, kill=True)
                await asyncio.to_thread(postgres.start)
            assert not [task for task in tasks if task.done()]

    run(play())

"""The Redis guard beyond what all guards have: what a forgetful server costs, settings, TLS."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hustings.core.errors import BadInput
from hustings.core.outcome import Guarantee
from hustings.guard import (
    Grant,
    Guard,
    HeldBy,
    Holder,
    NotGranted,
    Unreachable,
    make_guard,
    parse_url,
)
from hustings.guard.redis_wire import Ear, RedisWire
from tests.guard.answers import refused
from tests.guard.conformance import granted, reached, rig_on
from tests.guard.engines.base import Engine
from tests.guard.engines.certificates import Certificates
from tests.guard.engines.stepped import SteppedCache
from tests.guard.engines.valkey import PASSWORD
from tests.guard.engines.valkey import Engine as Valkey
from tests.guard.proxy import Proxy
from tests.net.kit.loops import run

ADA, BEN = Holder("ada", 1), Holder("ben", 1)
TTL = 2.0


class VolatileStorage(Valkey):
    """A server that begins with nothing after every start."""

    def command(self) -> list[str]:
        return [*super().command(), "--appendonly", "no"]

    def url(self, group: str | None = None, at: int | None = None) -> str:
        return super().url(group, at).partition("?")[0]


@pytest.fixture
def valkey(engines: Callable[[str], Engine]) -> Valkey:
    found = engines("valkey")
    assert isinstance(found, Valkey)
    return found


@contextmanager
def setting(valkey: Valkey, name: str, value: str, before: str) -> Iterator[None]:
    assert valkey.say(f"CONFIG SET {name} {value}") == b"+OK"
    try:
        yield
    finally:
        assert valkey.say(f"CONFIG SET {name} {before}") == b"+OK"


def plain(valkey: Valkey, account: str = f":{PASSWORD}") -> str:
    """An address that says nothing of the server's persistence."""
    return f"redis://{account}@127.0.0.1:{valkey.port}"


# What it promises


def test_what_is_not_known_is_not_promised() -> None:
    unknown = make_guard("redis://cache", "group").guarantees
    assert not unknown.monotone
    assert unknown.guarantee is Guarantee.ADVISORY
    assert "failover" in unknown.proviso
    always = make_guard("redis://cache?persistence=always", "group").guarantees
    assert always.monotone
    assert always.guarantee is Guarantee.LEASED


@pytest.mark.parametrize(
    "name, value, before",
    [("appendfsync", "everysec", "always"), ("appendonly", "no", "yes")],
)
def test_a_promise_that_the_settings_deny_is_refused(
    valkey: Valkey, name: str, value: str, before: str
) -> None:
    async def play() -> None:
        async with make_guard(plain(valkey), "group"):
            pass  # which promises nothing
        guard = make_guard(valkey.url(), "group")
        try:
            with pytest.raises(BadInput, match=f"{name}.*{value}.*CONFIG SET {name} {before}"):
                await guard.open()
        finally:
            await guard.close()

    with setting(valkey, name, value, before):
        run(play())


def test_a_server_that_evicts_anything_is_refused(valkey: Valkey) -> None:
    async def play() -> None:
        guard = make_guard(valkey.url(), "group")
        try:
            with pytest.raises(BadInput, match="evicts"):
                await guard.open()
        finally:
            await guard.close()

    with (
        setting(valkey, "maxmemory", "100mb", "0"),
        setting(valkey, "maxmemory-policy", "allkeys-lru", "noeviction"),
    ):
        run(play())


def test_a_user_who_may_not_see_settings_is_believed(valkey: Valkey) -> None:
    """And who may not say when something changes is told so."""
    can = "~hustings:* +eval +time +hget +hset +hdel +hincrby +publish +subscribe +unsubscribe"
    assert valkey.say(f"ACL SETUSER modest reset on >m0dest &hustings:* {can}") == b"+OK"
    assert valkey.say(f"ACL SETUSER mute reset on >m0dest resetchannels {can}") == b"+OK"

    async def play() -> None:
        url = plain(valkey, "modest:m0dest")
        for each in (url, f"{url}?persistence=always"):
            async with make_guard(each, "modest") as guard:
                await guard.release(await granted(guard, ADA, TTL))
        mute = make_guard(plain(valkey, "mute:m0dest"), "modest")
        try:
            with pytest.raises(BadInput, match="refuses access"):
                await mute.open()
        finally:
            await mute.close()

    run(play())


# What a server forgets


def test_a_server_that_forgot_a_lease_lets_nobody_in_before_it_is_over() -> None:
    engine = VolatileStorage()

    async def play() -> None:
        async with rig_on(engine) as rig:
            one, two = await rig.guard(), await rig.guard()
            first = await granted(one, ADA, TTL)
            await asyncio.to_thread(engine.stop, kill=True)
            await asyncio.to_thread(engine.start)
            held = await refused_when_reached(two)
            assert (held.token, held.holder) == (0, ""), "it does not know who it was"
            with pytest.raises(NotGranted):
                await one.renew(first, TTL)
            await granted(two, BEN, TTL)
            assert one.now() >= first.deadline, "the next came in while the first could act"

    try:
        engine.start()
        run(play())
    finally:
        engine.close()


async def refused_when_reached(guard: Guard) -> HeldBy:
    while True:
        try:
            return await refused(guard, BEN, TTL)
        except Unreachable:
            await asyncio.sleep(0.02)


def test_after_a_restart_that_may_have_lost_writes_only_the_holder_goes_on() -> None:
    """This server comes back with what it knew, but nobody said that it would."""
    engine = Valkey()

    async def play() -> None:
        url = plain(engine)
        async with make_guard(url, "group") as one, make_guard(url, "group") as two:
            first = await granted(one, ADA, TTL)
            await one.release(first)
            second = await granted(two, BEN, TTL)
            await asyncio.to_thread(engine.stop, kill=True)
            await asyncio.to_thread(engine.start)
            await refused_when_reached(one)
            renewed = await two.renew(second, TTL)
            assert renewed.token == second.token
            await two.release(renewed)
            assert (await refused(one, ADA, TTL)).token == 0, "a lease may have been lost"
            third = await granted(one, ADA, TTL)
            assert third.token > second.token

    try:
        engine.start()
        run(play())
    finally:
        engine.close()


def test_a_young_group_on_a_server_known_for_a_lease_does_not_wait(valkey: Valkey) -> None:
    async def play() -> None:
        url = plain(valkey)
        async with make_guard(url, "first") as guard:
            await granted(guard, ADA, 0.5)  # by now this process has known the server for so long
        async with make_guard(url, "young") as guard:
            assert isinstance(await guard.acquire(ADA, 0.5), Grant)

    run(play())


def test_how_long_a_server_says_that_it_runs_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It says so by its time of day: after a step it has run for an hour, or began tomorrow."""
    engine = SteppedCache()

    async def play() -> None:
        async with rig_on(engine) as rig:
            for by_s in (3600.0, -3600.0):
                engine.step(by_s)
                monkeypatch.setattr("hustings.guard.redis._RUNS", {})  # a process that is new
                guard = await rig.guard()
                opened = guard.now()
                held = await refused(guard, ADA, 0.5)
                assert (held.token, held.holder) == (0, "")
                await granted(guard, ADA, 0.5)
                assert 0.5 <= guard.now() - opened < 5.0
                rig.group += "s"

    try:
        engine.start()
        run(play())
    finally:
        engine.close()


def test_the_longest_lease_heard_of_is_waited_for() -> None:
    """The server has forgotten it, the guard has not."""

    async def play() -> None:
        async with rig_on(VolatileStorage()) as rig:
            engine = rig.engine
            assert isinstance(engine, VolatileStorage)
            try:
                engine.start()
                one, two = await rig.guard(), await rig.guard()
                first = await granted(one, ADA, 1.5)
                await refused(two, BEN, 0.2)
                await asyncio.to_thread(engine.stop, kill=True)
                await asyncio.to_thread(engine.start)
                await granted(two, BEN, 0.2)
                assert one.now() >= first.deadline, "the next came in while the first could act"
            finally:
                engine.close()

    run(play())


def test_a_forgetful_server_goes_on_above_what_is_known() -> None:
    """After one lease, and not one for the restart and another one for the lost tokens."""
    engine = VolatileStorage()

    async def play() -> None:
        async with rig_on(engine) as rig:
            one, two = await rig.guard(), await rig.guard()
            notes: list[str] = []
            two.note = notes.append
            await one.recover(1000)
            first = await granted(one, ADA, TTL)
            assert first.token == 1001
            await asyncio.to_thread(engine.stop, kill=True)
            await asyncio.to_thread(engine.start)
            began = two.now()
            second = await granted(two, BEN, TTL, first.token)
            assert two.now() >= first.deadline, "the next came in while the first could act"
            assert two.now() < began + 1.9 * TTL
            assert second.token == 1002
            assert [note for note in notes if "last token is 0, and token 1001" in note] == notes[
                :1
            ]
            assert "lost its memory" in notes[0]
            await two.release(second)
            assert (await granted(one, ADA, TTL)).token == 1003, "who knows of nothing goes on, too"

    try:
        engine.start()
        run(play())
    finally:
        engine.close()


def test_a_leader_in_its_time_goes_on_at_once_on_a_forgetful_server() -> None:
    engine = VolatileStorage()

    async def play() -> None:
        async with rig_on(engine) as rig:
            one, two = await rig.guard(), await rig.guard()
            first = await granted(one, ADA, 8.0)
            await asyncio.to_thread(engine.stop, kill=True)
            await asyncio.to_thread(engine.start)
            held = await two.acquire(BEN, 8.0, first.token)
            assert (held.token, isinstance(held, HeldBy)) == (0, True)
            again = await granted(one, ADA, 8.0, first.token)
            assert again.token == first.token + 1
            assert one.now() < first.deadline
            assert (await refused(two, BEN, 8.0)).token == again.token

    try:
        engine.start()
        run(play())
    finally:
        engine.close()


# What an older release left there


async def old_lease(wire: RedisWire, key: str, until: int) -> None:
    fields = ("token", 7, "holder", "old", "life", 5, "ttl", 500_000, "until", until)
    await wire.command("HSET", key, *fields)


def test_a_record_with_the_older_name_of_the_incarnation_is_waited_for_and_replaced(
    valkey: Valkey,
) -> None:
    """The older field goes, so that an older member never takes the new record for its own."""

    async def play() -> None:
        wire = RedisWire(parse_url(valkey.url()), 2.0)
        try:
            async with rig_on(valkey) as rig:
                guard = await rig.guard()
                key = f"hustings:{{{rig.group}}}:guard"
                fields = ("token", 7, "holder", "ada", "life", 1, "ttl", 500_000, "mark", "m")
                await wire.command("HSET", key, *fields)
                began = guard.now()
                held = await refused(guard, ADA, 0.5)
                assert (held.holder, held.token) == ("ada", 7)
                grant = await granted(guard, ADA, 20.0)
                assert grant.token == 8
                assert guard.now() - began >= 0.5, "the whole stored time"
                assert await wire.command("HGET", key, "life") is None
                assert int(await wire.command("HGET", key, "incarnation")) == 1
        finally:
            await wire.close()

    run(play())


def test_a_lease_of_the_first_format_is_waited_for_and_goes_on(valkey: Valkey) -> None:
    async def play() -> None:
        wire = RedisWire(parse_url(valkey.url()), 2.0)
        try:
            async with rig_on(valkey) as rig:
                guard = await rig.guard()
                key = f"hustings:{{{rig.group}}}:guard"
                for renewal in range(4):  # long past, by the time of day, and renewed all the same
                    await old_lease(wire, key, 1_000_000 + renewal)
                    held = await refused(guard, BEN, 0.5)
                    assert (held.holder, held.token) == ("old", 7)
                    await asyncio.sleep(0.2)
                began = guard.now()
                grant = await granted(guard, BEN, 20.0)
                assert grant.token == 8
                assert guard.now() - began >= 0.2, "the last renewal counts"
                until = await wire.command("HGET", key, "until")
                assert int(until) > 2**52, "a member of that release is kept out"
                await guard.release(grant)
                assert await wire.command("HGET", key, "until") is None, "and let in again"
        finally:
            await wire.close()

    run(play())


# What it leaves in the server


def test_a_group_is_one_key_that_stays(valkey: Valkey) -> None:
    async def play() -> None:
        wire = RedisWire(parse_url(valkey.url()), 2.0)
        try:
            async with make_guard(valkey.url(), "kept") as guard:
                await guard.release(await granted(guard, ADA, TTL), to="ben")
            assert await wire.command("KEYS", "*kept*") == ["hustings:{kept}:guard"]
            assert await wire.command("PTTL", "hustings:{kept}:guard") == -1
        finally:
            await wire.close()

    run(play())


def test_every_change_is_announced_and_a_renewal_too(valkey: Valkey) -> None:
    """Who waits measures from the last renewal, so it must hear of it."""

    async def play() -> None:
        wire = RedisWire(parse_url(valkey.url()), 2.0)
        try:
            async with rig_on(valkey) as rig:
                guard = await rig.guard()
                heard: list[object] = []
                async with wire.listening(f"hustings:{{{rig.group}}}:guard") as ear:
                    listening = asyncio.create_task(_listen(ear, heard))
                    grant = await granted(guard, ADA, TTL)
                    await reached(lambda: len(heard) == 1, "the grant is announced")
                    grant = await guard.renew(grant, TTL)
                    await reached(lambda: len(heard) == 2, "the renewal is announced")
                    await guard.release(grant)
                    await reached(lambda: len(heard) == 3, "the release is announced")
                    listening.cancel()
                    await asyncio.wait([listening])
        finally:
            await wire.close()

    run(play())


async def _listen(ear: Ear, heard: list[object]) -> None:
    while True:
        message = await ear._hearing.get_message(timeout=60.0)
        if message is not None:
            heard.append(message)


@pytest.mark.parametrize(
    "name", ["o'brien", 'a "b"', "a}b{c", "ünï/cødé %s", "{}", "x" * 500, "", "a\nb", "a:b"]
)
def test_any_name_is_a_name(valkey: Valkey, name: str) -> None:
    async def play() -> None:
        one = make_guard(valkey.url(), f"g{name}")
        two = make_guard(valkey.url(), f"g{name}}}")
        async with one, two:
            grant = await granted(one, Holder(name, 2**70), TTL)
            assert (await refused(one, BEN, TTL)).holder == name
            await one.release(grant, to=name)
            assert (await refused(one, BEN, TTL)).holder == name
            grant = await granted(two, BEN, TTL)
            await two.release(grant)

    run(play())


# Addresses


def test_a_password_need_not_stand_in_the_address(
    valkey: Valkey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    secret.write_text(PASSWORD)
    secret.chmod(0o600)
    bare = f"redis://127.0.0.1:{valkey.port}"
    monkeypatch.setenv("CACHE_PASSWORD", PASSWORD)

    async def play() -> None:
        for option in (f"password_file={secret}", "password_env=CACHE_PASSWORD"):
            async with make_guard(f"{bare}?{option}", "secretive"):
                pass
        guard = make_guard(bare, "secretive")
        with pytest.raises(BadInput, match="refuses access"):
            await guard.open()
        await guard.close()
        monkeypatch.setenv("REDISCLI_AUTH", PASSWORD)
        async with make_guard(bare, "secretive"):
            pass

    run(play())


@pytest.mark.parametrize(
    "url, word",
    [
        ("redis://a,b", "one server"),
        ("redis://a/main", "number of a database"),
        ("redis://a?persistence=perhaps", "persistence"),
        ("redis://a?poll=0", "poll"),
        ("redis://a?ca=x", "ca"),
        ("rediss://a?ca=no/such/file", "no file"),
    ],
)
def test_addresses_that_make_no_sense_are_refused(url: str, word: str) -> None:
    with pytest.raises(BadInput, match=word):
        make_guard(url, "group")


def test_tls_is_checked_against_the_authority_that_was_named(
    valkey: Valkey, tmp_path: Path
) -> None:
    papers = Certificates(tmp_path)
    shown = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    shown.load_cert_chain(papers.cert, papers.key)

    async def play() -> None:
        async with Proxy(valkey.port, secret=shown) as proxy:
            url = f"rediss://:{PASSWORD}@127.0.0.1:{proxy.port}"
            async with make_guard(f"{url}?ca={papers.ca}", "tls") as guard:
                assert isinstance(await guard.acquire(ADA, 0.5), Grant | HeldBy)
            stranger = make_guard(url, "tls")
            try:
                with pytest.raises(BadInput, match="TLS"):
                    await stranger.open()
            finally:
                await stranger.close()

    run(play())


def test_a_server_without_tls_leaves_a_hint(valkey: Valkey) -> None:
    async def play() -> None:
        guard = make_guard(f"rediss://127.0.0.1:{valkey.port}?timeout=0.5", "group")
        try:
            with pytest.raises(Unreachable, match="TLS"):
                await guard.open()
        finally:
            await guard.close()

    run(play())

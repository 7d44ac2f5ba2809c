"""The guard on NATS: its bucket and record, what others may do to them, and TLS."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import StorageType

from hustings.core.errors import BadInput
from hustings.guard import HeldBy, Holder, NotGranted, Unreachable, make_guard
from tests.guard.answers import granted
from tests.guard.engines.certificates import Certificates
from tests.guard.engines.nats import PASSWORD, USER, Engine
from tests.net.kit.loops import run

TTL = 5.0
ANNA, BERT = Holder("anna", 1), Holder("bert", 1)


@pytest.fixture
def nats(engines: Callable[[str], Engine]) -> Engine:
    return engines("nats")


@asynccontextmanager
async def foreigner(nats: Engine) -> AsyncIterator[JetStreamContext]:
    client = Client()
    await client.connect(f"nats://127.0.0.1:{nats.port}", user=USER, password=PASSWORD)
    try:
        yield client.jetstream()
    finally:
        await client.close()


def url_of(nats: Engine, bucket: str) -> str:
    return f"nats://{USER}:{PASSWORD}@127.0.0.1:{nats.port}/{bucket}"


def test_the_token_is_the_revision_with_which_holding_began(nats: Engine) -> None:
    async def story() -> None:
        async with foreigner(nats) as stream, make_guard(url_of(nats, "mine"), "a.b ü") as guard:
            store = await stream.key_value("mine")
            grant = await granted(guard, ANNA, TTL)
            entry = await store.get("a=2Eb=20=C3=BC")
            assert entry.revision == grant.token
            await guard.renew(grant, TTL)
            later = await store.get("a=2Eb=20=C3=BC")
            assert later.revision is not None
            assert later.revision > grant.token
            answer = await guard.acquire(BERT, TTL)
            assert isinstance(answer, HeldBy)
            assert answer.token == grant.token

    run(story())


def test_a_record_somebody_deletes_is_not_renewed(nats: Engine) -> None:
    async def story() -> None:
        async with foreigner(nats) as stream, make_guard(url_of(nats, "mine"), "gone") as guard:
            grant = await granted(guard, ANNA, TTL)
            await (await stream.key_value("mine")).delete("gone")
            with pytest.raises(NotGranted):
                await guard.renew(grant, TTL)
            assert (await granted(guard, ANNA, TTL)).token > grant.token

    run(story())


def test_a_record_of_somebody_else_is_left_alone(nats: Engine) -> None:
    async def story() -> None:
        async with foreigner(nats) as stream, make_guard(url_of(nats, "mine"), "odd") as guard:
            store = await stream.key_value("mine")
            await store.put("odd", b"something else")
            with pytest.raises(Unreachable, match="odd"):
                await guard.acquire(ANNA, TTL)
            assert (await store.get("odd")).value == b"something else"

    run(story())


def test_who_waits_counts_from_when_it_first_saw_a_revision(nats: Engine) -> None:
    """Not from when it was written, of which only another clock could tell."""

    async def story() -> None:
        now = 1000.0
        url = url_of(nats, "mine")
        async with make_guard(url, "wait") as guard, make_guard(url, "wait") as waiting:
            waiting._clock = lambda: now
            grant = await granted(guard, ANNA, TTL)
            assert await waiting.acquire(BERT, TTL) == HeldBy("anna", grant.token, TTL)
            now += TTL - 0.1
            assert isinstance(await waiting.acquire(BERT, TTL), HeldBy)
            await guard.renew(grant, TTL)
            now += TTL - 0.1
            assert await waiting.acquire(BERT, TTL) == HeldBy("anna", grant.token, TTL)
            now += TTL
            assert (await granted(waiting, BERT, TTL)).token > grant.token
            with pytest.raises(NotGranted):
                await guard.renew(grant, TTL)

    run(story())


def test_buckets_that_forget_are_refused(nats: Engine) -> None:
    async def story() -> None:
        async with foreigner(nats) as stream:
            await stream.create_key_value(bucket="fleeting", storage=StorageType.MEMORY)
            await stream.create_key_value(bucket="ageing", storage=StorageType.FILE, ttl=60.0)
        for bucket, says in (("fleeting", "memory"), ("ageing", "expire")):
            with pytest.raises(BadInput, match=says):
                await make_guard(url_of(nats, bucket), "jobs").open()

    run(story())


def test_tokens_are_promised_only_if_the_server_syncs() -> None:
    assert not make_guard("nats://h", "jobs").guarantees.monotone
    assert make_guard("nats://h?synced=yes", "jobs").guarantees.monotone


class Sealed(Engine):
    """A server that speaks TLS, with whomever its authority vouches for."""

    def prepare(self) -> None:
        super().prepare()
        self.papers = Certificates(self.folder)
        with (self.folder / "nats.conf").open("a") as text:
            text.write(
                f'tls {{ cert_file: "{self.papers.cert}", key_file: "{self.papers.key}"\n'
                f'  ca_file: "{self.papers.ca}", verify: true }}\n'
            )


def test_tls_wants_the_right_papers(tmp_path: Path) -> None:
    stranger = Certificates(tmp_path)
    sealed = Sealed()

    async def story() -> None:
        plain = f"nats://{USER}:{PASSWORD}@127.0.0.1:{sealed.port}"
        async with make_guard(f"{plain}?tls=yes&{sealed.papers.options}", "tls") as guard:
            await granted(guard, ANNA, TTL)
        for wrong in (plain, f"{plain}?tls=yes&{stranger.options}"):
            with pytest.raises(BadInput, match="TLS"):
                await make_guard(wrong, "tls").open()

    try:
        sealed.start()
        run(story())
    finally:
        sealed.close()


@pytest.mark.parametrize(
    "url, says",
    [
        ("nats://h?tmeout=1", "timeout"),
        ("nats://anna@h", "password"),
        ("nats://h/a.b", "bucket"),
        ("nats://h?replicas=6", "replicas"),
        ("nats://h?synced=perhaps", "synced"),
        ("nats://h?cert=x", "tls"),
        ("nats://h?tls=yes&key=x", "cert"),
    ],
)
def test_bad_addresses_are_refused(url: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        make_guard(url, "jobs")

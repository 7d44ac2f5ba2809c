"""The guard on Consul, against a small server with Consul's rules and a conversation by heart.

With HUSTINGS_TEST_CONSUL set to the address of a guard (consul://127.0.0.1:8500), Consul itself
takes part in the tests that need no command over time.
"""

from __future__ import annotations

import os
import ssl
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hustings.core.errors import BadInput
from hustings.guard import (
    Grant,
    Guard,
    HeldBy,
    Holder,
    Holding,
    MemoryLost,
    NotGranted,
    Unreachable,
    make_guard,
)
from hustings.guard.consul import LOCK_FLAGS
from tests.guard.answers import granted, refused
from tests.guard.engines.base import free_port
from tests.guard.engines.certificates import Certificates
from tests.guard.fakes.consul import Consul
from tests.guard.fakes.serving import Replay, served
from tests.net.kit.loops import run

TTL = 10.0
ANNA, BERT = Holder("anna", 1), Holder("bert", 1)
CONVERSATION = Path(__file__).parent / "conversations" / "consul.jsonl"
REAL = os.environ.get("HUSTINGS_TEST_CONSUL")


@asynccontextmanager
async def two_guards(consul: Consul, options: str = "") -> AsyncIterator[tuple[Guard, Guard]]:
    async with served(consul) as port:
        url = f"consul://127.0.0.1:{port}/service{options}"
        async with make_guard(url, "jobs") as one, make_guard(url, "jobs") as two:
            yield one, two


@pytest.mark.parametrize("place", ["fake", *(["real"] if REAL else [])])
def test_one_holds_then_the_other(place: str) -> None:
    async def play() -> None:
        async with served(Consul()) as port:
            url = REAL if place == "real" and REAL else f"consul://127.0.0.1:{port}"
            group = f"jobs-{uuid.uuid4().hex[:8]}"
            async with make_guard(url, group) as one, make_guard(url, group) as two:
                async with two.observe() as states:
                    assert (await anext(states)).holder is None
                    first = await granted(one, ANNA, TTL)
                    assert await anext(states) == Holding("anna", first.token)
                    held = await refused(two, BERT, TTL)
                    assert (held.holder, held.token) == ("anna", first.token)
                    assert (await one.renew(first, TTL)).token == first.token
                    assert (await granted(one, ANNA, TTL)).token == first.token
                    assert (await refused(one, Holder("anna", 2), TTL)).token == first.token
                    await one.release(first, to="carl")  # Consul favours nobody
                    assert await anext(states) == Holding(None, first.token)
                    second = await granted(two, BERT, TTL)
                    assert second.token > first.token
                    assert await anext(states) == Holding("bert", second.token)
                with pytest.raises(NotGranted):
                    await one.renew(first, TTL)
                await one.release(first)
                await two.renew(second, TTL)
                await two.release(second)

    run(play())


def test_it_speaks_as_written_down() -> None:
    """A foreign lock is held, then deleted by who held it; LockIndex begins anew."""

    async def play() -> None:
        replay = Replay(CONVERSATION)
        async with served(replay) as port:
            url = f"consul://127.0.0.1:{port}/service"
            async with make_guard(url, "jobs") as guard:
                held = await guard.acquire(ANNA, 15.0)
                assert held == HeldBy("session d2b1ab0e-6a3e-4d1b-9e26-6cb40c2e26f5", 1181, 15.0)
                grant = await granted(guard, ANNA, 15.0)
                assert grant.token == 1193
                grant = await guard.renew(grant, 15.0)
                await guard.release(grant)
        replay.check()

    run(play())


def test_a_session_that_is_not_renewed_ends_and_the_lock_with_it() -> None:
    async def play() -> None:
        consul = Consul()
        async with two_guards(consul) as (one, two):
            first = await granted(one, ANNA, TTL)
            await consul.pass_time(TTL - 1.0)
            first = await one.renew(first, TTL)
            await consul.pass_time(TTL - 1.0)
            assert (await refused(two, BERT, TTL)).holder == "anna"
            async with two.observe() as states:
                assert (await anext(states)).holder == "anna"
                await consul.pass_time(1.0)
                assert (await anext(states)).holder is None
            second = await granted(two, BERT, TTL)
            assert second.token > first.token
            with pytest.raises(NotGranted):
                await one.renew(first, TTL)

    run(play())


def test_the_delay_of_a_lock_is_kept() -> None:
    async def play() -> None:
        consul = Consul()
        async with two_guards(consul, "?lock_delay=15") as (one, two):
            first = await granted(one, ANNA, TTL)
            await consul.pass_time(TTL)
            assert (await refused(two, BERT, TTL)).token == 0
            await consul.pass_time(14.0)
            await refused(two, BERT, TTL)
            await consul.pass_time(1.0)
            second = await granted(two, BERT, TTL)
            assert second.token > first.token
            await two.release(second)  # on purpose, so without a delay
            await granted(one, ANNA, TTL)

    run(play())


def test_tokens_grow_though_the_key_is_deleted() -> None:
    async def play() -> None:
        consul = Consul()
        async with two_guards(consul) as (one, two):
            first = await granted(one, ANNA, TTL)
            await one.release(first)
            consul.keys.clear()
            second = await granted(two, BERT, TTL)
            assert consul.keys["service/jobs/.lock"]["LockIndex"] == 1
            assert second.token > first.token

    run(play())


def test_a_write_to_the_key_does_not_end_the_lease() -> None:
    async def play() -> None:
        consul = Consul()
        async with two_guards(consul) as (one, two):
            first = await granted(one, ANNA, TTL)
            consul.index += 5
            consul.keys["service/jobs/.lock"]["ModifyIndex"] = consul.index
            assert (await one.renew(first, TTL)).token == first.token
            assert (await granted(one, ANNA, TTL)).token == first.token
            await one.release(first)
            assert (await granted(two, BERT, TTL)).token > consul.index - 5

    run(play())


def test_what_cannot_be_is_said() -> None:
    async def play() -> None:
        consul = Consul("s3cret")
        async with served(consul) as port:
            with pytest.raises(BadInput, match="token") as caught:
                await make_guard(f"consul://:wr0ng@127.0.0.1:{port}", "jobs").open()
            assert "wr0ng" not in str(caught.value)
            url = f"consul://:s3cret@127.0.0.1:{port}"
            consul.keys["other/.lock"] = {"ModifyIndex": 3, "Flags": 7}
            with pytest.raises(BadInput, match="not a lock"):
                await make_guard(url, "other").open()
            async with make_guard(url, "jobs") as guard:
                for ttl in (9.9, 86401.0):
                    with pytest.raises(BadInput, match="ttl"):
                        await guard.acquire(ANNA, ttl)
                grant = await granted(guard, ANNA, TTL)
                with pytest.raises(BadInput, match="stays what it was"):
                    await guard.renew(grant, TTL + 1.0)
                consul.down = True
                with pytest.raises(Unreachable, match="No cluster leader"):
                    await guard.renew(grant, TTL)
                consul.down = False
                await guard.renew(grant, TTL)
        with pytest.raises(Unreachable):
            await make_guard(f"consul://127.0.0.1:{free_port()}?timeout=0.5", "jobs").open()

    run(play())


def test_an_agent_that_is_gone_is_replaced_by_another() -> None:
    async def play() -> None:
        async with served(Consul()) as port:
            url = f"consul://127.0.0.1:{free_port()},127.0.0.1:{port}"
            async with make_guard(url, "jobs") as guard:
                await granted(guard, ANNA, TTL)

    run(play())


def test_tls_wants_the_right_papers(tmp_path: Path) -> None:
    mine, stranger = tmp_path / "mine", tmp_path / "stranger"
    mine.mkdir()
    stranger.mkdir()
    right, wrong = Certificates(mine), Certificates(stranger)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(right.cert, right.key)

    async def play() -> None:
        async with served(Consul(), tls) as port:
            url = f"consul://127.0.0.1:{port}?tls=yes&ca="
            async with make_guard(f"{url}{right.ca}", "jobs") as guard:
                await granted(guard, ANNA, TTL)
            with pytest.raises(BadInput, match="TLS"):
                await make_guard(f"{url}{wrong.ca}", "jobs").open()

    run(play())


def test_locks_are_marked_as_the_go_client_does() -> None:
    async def play() -> None:
        consul = Consul()
        async with two_guards(consul, "?election=/global/lock") as (one, _):
            await granted(one, ANNA, TTL)
            assert consul.keys["global/lock/.lock"]["Flags"] == LOCK_FLAGS

    run(play())


@pytest.mark.parametrize(
    "url, says",
    [
        ("consul://h?tmeout=1", "timeout"),
        ("consul://anna:secret@h", "users"),
        ("consul://h?lock_delay=61", "lock_delay"),
        ("consul://h?ca=x", "tls"),
    ],
)
def test_bad_addresses_are_refused(url: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        make_guard(url, "jobs")


def test_the_promise_says_what_was_tested() -> None:
    assert "HUSTINGS_TEST_CONSUL" in make_guard("consul://h", "jobs").guarantees.evidence


def test_a_cluster_that_counts_anew_grants_nothing_until_an_operator_decides() -> None:
    async def play() -> None:
        consul = Consul()
        async with two_guards(consul) as (one, two):
            consul.index = 5000
            first = await granted(one, ANNA, TTL)
            await consul.forget()
            with pytest.raises(NotGranted):
                await one.renew(first, TTL)
            for _ in range(2):
                with pytest.raises(MemoryLost, match=f"--recover --above {first.token}"):
                    await two.acquire(BERT, TTL, first.token)
                assert consul.sessions == {}, "it has let go of what it got"
            await one.recover(first.token)
            await one.recover(10)
            answer = await two.acquire(BERT, TTL, first.token)
            assert isinstance(answer, Grant)
            second = answer
            assert second.token > first.token
            assert (await two.renew(second, TTL)).token == second.token
            held = await one.acquire(ANNA, TTL, first.token)
            assert held == HeldBy("bert", second.token, TTL)
            async with one.observe() as states:
                assert await anext(states) == Holding("bert", second.token)
            await two.release(second)
            assert (await granted(one, ANNA, TTL)).token > second.token

    run(play())


def test_who_holds_while_an_operator_lifts_goes_on_with_a_larger_token() -> None:
    async def play() -> None:
        async with two_guards(Consul()) as (one, two):
            first = await granted(one, ANNA, TTL)
            await two.recover(9000)
            with pytest.raises(NotGranted):
                await one.renew(first, TTL)
            held = await refused(two, BERT, TTL)
            first = await granted(one, ANNA, TTL)
            assert first.token == held.token > 9000
            await one.renew(first, TTL)
            await one.release(first)
            second = await granted(two, BERT, TTL)
            assert second.token > 9000
            assert (await granted(two, BERT, TTL)).token == second.token

    run(play())


def test_a_base_that_is_no_number_is_told_of() -> None:
    async def play() -> None:
        consul = Consul()
        consul.keys["service/jobs/.base"] = {"ModifyIndex": 3, "Value": "bWFueQ=="}
        with pytest.raises(Unreachable, match=r"\.base"):
            async with two_guards(consul):
                pass

    run(play())

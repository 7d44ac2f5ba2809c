"""The guard on ZooKeeper beside kazoo's candidates, and in an ensemble that loses servers."""

from __future__ import annotations

import asyncio
import re
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from aiozk import protocol
from kazoo.client import KazooClient
from kazoo.recipe.election import Election
from kazoo.recipe.lock import Lock

from hustings.core.errors import BadInput
from hustings.guard import (
    Grant,
    Guard,
    HeldBy,
    Holder,
    Holding,
    NotGranted,
    Unreachable,
    make_guard,
)
from hustings.guard.zookeeper import ZooKeeperGuard
from hustings.guard.zookeeper_wire import Session, ZookeeperWire
from tests.guard.answers import granted
from tests.guard.engines.base import wait_until
from tests.guard.engines.certificates import Certificates
from tests.guard.engines.zookeeper import PASSWORD, USER, Engine, One, three
from tests.guard.proxy import Proxy
from tests.net.kit.loops import run

PATIENCE_S = 60.0
TTL = 5.0
LONG_TTL = 20.0
ANNA, BERT = Holder("anna", 1), Holder("bert", 1)


@pytest.fixture
def zookeeper(engines: Callable[[str], Engine]) -> Engine:
    return engines("zookeeper")


@contextmanager
def foreigner(server: One) -> Iterator[Any]:
    """Another client, with threads of its own."""
    client = KazooClient(
        f"127.0.0.1:{server.port}", auth_data=[("digest", f"{USER}:{PASSWORD}")], timeout=PATIENCE_S
    )
    client.start(PATIENCE_S)
    try:
        yield client
    finally:
        client.stop()
        client.close()


class Candidate:
    """Somebody who stands in kazoo's election, in a thread, and leads until told to end."""

    def __init__(self, client: Any, path: str, name: str) -> None:
        self.election = Election(client, path, name)
        self.leads, self.ends = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self.election.run, args=(self._lead,))

    def _lead(self) -> None:
        self.leads.set()
        assert self.ends.wait(PATIENCE_S)

    def __enter__(self) -> Candidate:
        self._thread.start()
        return self

    def __exit__(self, *about: object) -> None:
        self.ends.set()
        self.election.cancel()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()


def test_turns_are_taken_with_kazoo_after_a_recovery(zookeeper: Engine) -> None:
    async def story() -> None:
        async with make_guard(zookeeper.url(), "lifted") as guard:
            await guard.recover(10**9)
            grant = await granted(guard, ANNA, TTL)
            with (
                foreigner(zookeeper) as client,
                Candidate(client, "/hustings/lifted", "foreign") as other,
            ):
                await asyncio.to_thread(
                    wait_until,
                    lambda: len(client.get_children("/hustings/lifted")) == 2,
                    "a queue of two",
                )
                await guard.release(grant)
                assert await asyncio.to_thread(other.leads.wait, PATIENCE_S)
                answer = await guard.acquire(BERT, TTL, grant.token)
                assert isinstance(answer, HeldBy)
                (node,) = client.get_children("/hustings/lifted")
                assert answer.token == client.exists(f"/hustings/lifted/{node}").czxid + 10**9
                assert answer.token > grant.token > 10**9
                async with guard.observe() as states:
                    assert await anext(states) == Holding("foreign", answer.token)
                    other.ends.set()
                    assert await anext(states) == Holding(None, answer.token)
            assert (await granted(guard, BERT, TTL)).token > answer.token

    run(story())


def test_a_base_that_is_no_number_is_told_of(zookeeper: Engine) -> None:
    async def story() -> None:
        async with make_guard(zookeeper.url(), "odd") as guard:
            with foreigner(zookeeper) as client:
                for value in (b"many", b"-1", b"", b"9" * 30):
                    if client.exists("/hustings/odd.base"):
                        client.set("/hustings/odd.base", value)
                    else:
                        client.create("/hustings/odd.base", value)
                    with pytest.raises(Unreachable, match=r"odd\.base"):
                        await guard.acquire(ANNA, TTL)

    run(story())


@pytest.mark.parametrize("how", ["acquire", "renew"])
def test_who_goes_on_is_confirmed_by_a_write_at_the_end(
    zookeeper: Engine, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Reads, and the renewal of a session, may be answered by a leader that was deposed."""
    asked: list[object] = []
    plain = ZookeeperWire.ask

    async def recorded(self: ZookeeperWire, session: Session, request: Any) -> Any:
        asked.append(request)
        return await plain(self, session, request)

    async def story() -> None:
        async with make_guard(zookeeper.url(), f"confirmed-{how}") as guard:
            grant = await granted(guard, ANNA, LONG_TTL)
            monkeypatch.setattr(ZookeeperWire, "ask", recorded)
            if how == "renew":
                await guard.renew(grant, LONG_TTL)
            else:
                assert (await granted(guard, ANNA, LONG_TTL)).token == grant.token
            assert isinstance(asked[-1], protocol.TransactionRequest)

    run(story())


@pytest.mark.parametrize("how", ["acquire", "renew"])
def test_who_is_not_confirmed_does_not_go_on(
    zookeeper: Engine, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Its node is deleted between the look and the write."""
    plain = ZookeeperWire.ask

    async def story() -> None:
        path = f"unconfirmed-{how}"
        async with make_guard(zookeeper.url(), path) as guard:
            with foreigner(zookeeper) as client:
                grant = await granted(guard, ANNA, LONG_TTL)

                async def spoiled(self: ZookeeperWire, session: Session, request: Any) -> Any:
                    if isinstance(request, protocol.TransactionRequest):
                        for each in client.get_children(f"/hustings/{path}"):
                            client.delete(f"/hustings/{path}/{each}")
                    return await plain(self, session, request)

                monkeypatch.setattr(ZookeeperWire, "ask", spoiled)
                if how == "renew":
                    with pytest.raises(NotGranted):
                        await guard.renew(grant, LONG_TTL)
                else:
                    assert isinstance(await guard.acquire(ANNA, LONG_TTL), HeldBy)

    run(story())


def test_it_takes_over_from_kazoo(zookeeper: Engine) -> None:
    async def story() -> None:
        async with make_guard(zookeeper.url(), "after") as guard:
            with (
                foreigner(zookeeper) as client,
                Candidate(client, "/hustings/after", "foreign") as other,
            ):
                assert await asyncio.to_thread(other.leads.wait, PATIENCE_S)
                answer = await guard.acquire(ANNA, TTL)
                assert isinstance(answer, HeldBy)
                assert answer.holder == "foreign"
                (node,) = client.get_children("/hustings/after")
                assert answer.token == client.exists(f"/hustings/after/{node}").czxid
                async with guard.observe() as states:
                    assert await anext(states) == Holding("foreign", answer.token)
                    other.ends.set()
                    assert await anext(states) == Holding(None, answer.token)
                grant = await granted(guard, ANNA, TTL)
            assert grant.token > answer.token

    run(story())


def test_kazoo_takes_over_from_it_and_is_not_overtaken(zookeeper: Engine) -> None:
    async def story() -> None:
        path = "/hustings/before"
        async with make_guard(zookeeper.url(), "before") as guard:
            grant = await granted(guard, ANNA, TTL)
            with foreigner(zookeeper) as client, Candidate(client, path, "foreign") as other:
                await asyncio.to_thread(
                    wait_until, lambda: len(client.get_children(path)) == 2, "a queue of two"
                )
                assert other.election.contenders() == ["anna", "foreign"]
                grant = await guard.renew(grant, TTL)
                assert not other.leads.is_set()
                await guard.release(grant)
                # Who stands in the queue is next, though somebody else asks at once.
                answer = await guard.acquire(BERT, TTL)
                assert isinstance(answer, HeldBy)
                assert answer.holder == "foreign"
                assert answer.token > grant.token
                assert await asyncio.to_thread(other.leads.wait, PATIENCE_S)

    run(story())


def test_with_curator_s_names_it_stands_in_curator_s_queue(zookeeper: Engine) -> None:
    """kazoo can be told to heed the names of Curator's latch, and so stands for Curator here."""

    async def story() -> None:
        path = "/elsewhere/latch"
        url = f"{zookeeper.url()}?recipe=curator&election={path}"
        async with make_guard(url, "ignored") as guard:
            grant = await granted(guard, ANNA, TTL)
            with foreigner(zookeeper) as client:
                (node,) = client.get_children(path)
                assert re.fullmatch(r"_c_[0-9a-f]{32}-latch-\d{10}", node)
                lock = Lock(client, path, "foreign", extra_lock_patterns=["-latch-"])
                assert not await asyncio.to_thread(lock.acquire, blocking=False)
                await guard.release(grant)
                assert await asyncio.to_thread(lock.acquire, timeout=PATIENCE_S)
                answer = await guard.acquire(ANNA, TTL)
                assert isinstance(answer, HeldBy)
                assert answer.token > grant.token
                await asyncio.to_thread(lock.release)
            assert (await granted(guard, ANNA, TTL)).token > answer.token

    run(story())


def test_a_node_somebody_deletes_is_not_renewed(zookeeper: Engine) -> None:
    async def story() -> None:
        async with make_guard(zookeeper.url(), "gone") as guard:
            grant = await granted(guard, ANNA, TTL)
            with foreigner(zookeeper) as client:
                client.delete("/hustings/gone", recursive=True)
            with pytest.raises(NotGranted):
                await guard.renew(grant, TTL)
            # Numbers begin anew with the path; tokens do not.
            assert (await granted(guard, ANNA, TTL)).token > grant.token

    run(story())


def test_bounds_of_leases_are_the_server_s(zookeeper: Engine) -> None:
    async def story() -> None:
        async with make_guard(zookeeper.url(), "bounds") as guard:
            for ttl in (0.4, 60.1):
                with pytest.raises(BadInput, match=r"between 0\.5 and 60 s"):
                    guard.check_ttl(ttl)
            guard.check_ttl(0.5)

    run(story())


def test_tls_wants_the_right_papers(zookeeper: Engine, tmp_path: Path) -> None:
    mine, stranger = tmp_path / "mine", tmp_path / "stranger"
    mine.mkdir()
    stranger.mkdir()
    right, wrong = Certificates(mine), Certificates(stranger)
    secret = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    secret.load_cert_chain(right.cert, right.key)

    async def story() -> None:
        async with Proxy(zookeeper.port, secret=secret) as proxy:
            url = f"{zookeeper.url(at=proxy.port)}?tls=yes&timeout=1&"
            async with make_guard(url + right.options, "tls") as guard:
                grant = await granted(guard, ANNA, TTL)
                await guard.renew(grant, TTL)
            with pytest.raises(BadInput, match="TLS"):
                await make_guard(url + wrong.options, "tls").open()

    run(story())


def test_a_server_that_grants_less_than_asked_grants_nothing(zookeeper: Engine) -> None:
    async def story() -> None:
        async with make_guard(zookeeper.url(), "less") as guard:
            assert isinstance(guard, ZooKeeperGuard)
            guard._bounds = (0.5, 90.0)  # as another server of the ensemble might have said
            with pytest.raises(Unreachable, match="60 s"):
                await guard.acquire(ANNA, 70.0)

    run(story())


def test_a_release_that_arrives_late_takes_nothing_from_its_sender(zookeeper: Engine) -> None:
    """Every question has a connection of its own: it is the release's that is held here."""

    async def story() -> None:
        async with Proxy(zookeeper.port) as proxy:
            url = zookeeper.url(at=proxy.port) + "?timeout=0.5"
            async with make_guard(url, "late") as far, make_guard(zookeeper.url(), "late") as near:
                grant = await granted(far, ANNA, TTL)
                held = proxy.hold(proxy.questions)
                with pytest.raises(Unreachable):
                    await far.release(grant)
                proxy.hold_present(proxy.questions)
                again = await granted(far, ANNA, TTL)
                held.set()
                for _ in range(10):
                    assert isinstance(await near.acquire(BERT, TTL), HeldBy)
                assert (await renewed(far, again)).token == again.token

    run(story())


async def renewed(guard: Guard, grant: Grant) -> Grant:
    """A server that has lost the others answers nobody; within the lease another does."""
    while True:
        try:
            return await guard.renew(grant, LONG_TTL)
        except Unreachable:
            assert guard.now() < grant.deadline


def test_an_ensemble_of_three() -> None:
    async def story(servers: list[One]) -> None:
        places = ",".join(f"127.0.0.1:{each.port}" for each in servers)
        url = f"zookeeper://{places}"
        async with make_guard(url, "three") as guard, make_guard(url, "three") as other:
            grant = await granted(guard, ANNA, LONG_TTL)
            async with other.observe() as states:
                assert await anext(states) == Holding("anna", grant.token)
                for server in servers:
                    server.stop(kill=True)
                    grant = await renewed(guard, grant)
                    await asyncio.to_thread(server.start)
                answer = await other.acquire(BERT, TTL)
                assert isinstance(answer, HeldBy)
                assert answer.token == grant.token
                await guard.release(grant)
                assert await anext(states) == Holding(None, grant.token)
                later = await granted(other, BERT, LONG_TTL)
                assert later.token > grant.token
            await no_renewal_without_the_leader(servers, other, later)

    with three() as servers:
        run(story(servers))


async def no_renewal_without_the_leader(servers: list[One], holder: Guard, grant: Grant) -> None:
    """A follower by itself would answer pings; it must not be able to prolong a lease."""
    assert isinstance(holder, ZooKeeperGuard)
    (leader,) = [each for each in servers if each.mode() == "leader"]
    follower = next(each for each in servers if each is not leader)
    holder.ensemble.addresses = [("127.0.0.1", follower.port)]
    holder.ensemble.timeout = 0.7  # less than the others need to see that their leader is gone
    holder.ensemble.next()
    leader.pause()
    try:
        with pytest.raises(Unreachable):
            await holder.renew(grant, TTL)
    finally:
        leader.resume()
    await renewed(holder, grant)


def test_a_leader_that_was_deposed_renews_nothing() -> None:
    """Held for a while, it does not know yet that the others have elected another leader.

    It would answer what has waited for it, and count the lease from then on; the others count from
    their election, and let the next one in before the holder's time is over.
    """

    async def story(servers: list[One]) -> None:
        (leader,) = [each for each in servers if each.mode() == "leader"]
        others = [each for each in servers if each is not leader]
        places = ",".join(f"127.0.0.1:{each.port}" for each in others)
        here = f"zookeeper://127.0.0.1:{leader.port}?timeout=5"
        async with (
            make_guard(here, "old") as holder,
            make_guard(f"zookeeper://{places}?timeout=1", "old") as next_one,
        ):
            grant = await granted(holder, ANNA, TTL)
            leader.pause()
            await asyncio.to_thread(
                wait_until, lambda: any(each.mode() == "leader" for each in others), "a new leader"
            )
            while holder.now() < grant.deadline - 1.0:  # the later, the more it would gain
                await asyncio.sleep(0.05)
            renewing = asyncio.ensure_future(holder.renew(grant, TTL))
            await asyncio.wait([renewing], timeout=0.1)
            leader.resume()
            with suppress(Unreachable):
                grant = await renewing
            while isinstance(await next_one.acquire(BERT, TTL), HeldBy):
                await asyncio.sleep(0.02)
            assert holder.now() >= grant.deadline, "the next came in while the first could act"

    with three() as servers:
        run(story(servers))


@pytest.mark.parametrize(
    "url, says",
    [
        ("zookeeper://h?tmeout=1", "timeout"),
        ("zookeeper://anna@h", "password"),
        ("zookeeper://h?recipe=cooking", "curator"),
        ("zookeeper://h?election=jobs", "path"),
        ("zookeeper://h?ca=x", "tls"),
        ("zookeeper://h?tls=yes&ca=no-such-file", "ca, cert and key"),
    ],
)
def test_bad_addresses_are_refused(url: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        make_guard(url, "jobs")

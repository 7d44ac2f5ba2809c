"""The guard on etcd beside foreign candidates, in a cluster that loses a node, and over TLS."""

from __future__ import annotations

import asyncio
import re
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from aetcd import rpc

from hustings.core.errors import BadInput
from hustings.guard import (
    HeldBy,
    Holder,
    Holding,
    NotGranted,
    Unreachable,
    make_guard,
)
from hustings.guard.etcd_nodes import EtcdLine, Nodes
from tests.guard.answers import granted
from tests.guard.engines.base import wait_until
from tests.guard.engines.certificates import Certificates
from tests.guard.engines.etcd import Engine, Node, three
from tests.net.kit.loops import run

PATIENCE_S = 30.0
TTL = 2.0
ANNA, BERT = Holder("anna", 1), Holder("bert", 1)


@pytest.fixture
def etcd(engines: Callable[[str], Engine]) -> Engine:
    return engines("etcd")


@contextmanager
def candidate(etcd: Node, name: str, value: str) -> Iterator[subprocess.Popen[str]]:
    """`etcdctl elect`: it waits its turn, says so when it leads, and resigns when told to end."""
    process = etcd.control("elect", name, value)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)


def queue_of(etcd: Node, name: str) -> list[str]:
    """The keys of an election, in the order of coming, as the foreign client sees them."""
    words = ("get", f"{name}/", "--prefix", "--keys-only", "--sort-by=CREATE", "--order=ASCEND")
    return etcd.order(*words).split()


def test_it_takes_over_from_etcdctl(etcd: Engine) -> None:
    async def story() -> None:
        async with make_guard(etcd.url(), "after") as guard:
            with candidate(etcd, "after", "foreign") as other:
                assert other.stdout is not None
                key = await asyncio.to_thread(other.stdout.readline)
                assert re.fullmatch(r"after/[0-9a-f]+\n", key)
                answer = await guard.acquire(ANNA, TTL)
                assert isinstance(answer, HeldBy)
                assert answer.holder == "foreign"
                async with guard.observe() as states:
                    assert await anext(states) == Holding("foreign", answer.token)
                    other.terminate()
                    assert (await anext(states)).holder is None
                    grant = await granted(guard, ANNA, TTL)
            assert grant.token > answer.token

    run(story())


def test_turns_are_taken_with_etcdctl_after_a_recovery(etcd: Engine) -> None:
    async def story() -> None:
        async with make_guard(etcd.url(), "lifted") as guard:
            await guard.recover(10**9)
            assert queue_of(etcd, "lifted") == [], "nobody stands because of it"
            grant = await granted(guard, ANNA, TTL)
            with candidate(etcd, "lifted", "foreign") as other:
                await asyncio.to_thread(
                    wait_until, lambda: len(queue_of(etcd, "lifted")) == 2, "a queue of two"
                )
                await guard.release(grant)
                assert other.stdout is not None
                won = await asyncio.to_thread(other.stdout.readline)
                assert won.strip() == queue_of(etcd, "lifted")[0]
                answer = await guard.acquire(BERT, TTL, grant.token)
                assert isinstance(answer, HeldBy)
                assert answer.holder == "foreign"
                assert answer.token > grant.token > 10**9
                async with guard.observe() as states:
                    assert await anext(states) == Holding("foreign", answer.token)
            assert (await granted(guard, BERT, TTL)).token > answer.token

    run(story())


def test_a_base_that_is_no_number_is_told_of(etcd: Engine) -> None:
    async def story() -> None:
        async with make_guard(etcd.url(), "odd") as guard:
            for value in ("many", "-1", "9" * 30):
                etcd.order("put", "--", "odd.base", value)
                with pytest.raises(Unreachable, match=r"odd\.base"):
                    await guard.acquire(ANNA, TTL)

    run(story())


def test_etcdctl_takes_over_from_it_and_is_not_overtaken(etcd: Engine) -> None:
    async def story() -> None:
        async with make_guard(etcd.url(), "before") as guard:
            grant = await granted(guard, ANNA, TTL)
            assert etcd.order("get", "before/", "--prefix", "--print-value-only").strip() == "anna"
            with candidate(etcd, "before", "foreign") as other:
                await asyncio.to_thread(
                    wait_until, lambda: len(queue_of(etcd, "before")) == 2, "a queue of two"
                )
                grant = await guard.renew(grant, TTL)
                async with guard.observe() as states:
                    assert await anext(states) == Holding("anna", grant.token)
                    await guard.release(grant)
                    # Who stands in the queue is next, though somebody else asks at once.
                    answer = await guard.acquire(BERT, TTL)
                    assert isinstance(answer, HeldBy)
                    assert answer.holder == "foreign"
                    assert answer.token > grant.token
                    assert await anext(states) == Holding("foreign", answer.token)
                assert other.stdout is not None
                won = await asyncio.to_thread(other.stdout.readline)
                assert won.strip() == queue_of(etcd, "before")[0]

    run(story())


def test_its_key_is_one_of_go_s_election(etcd: Engine) -> None:
    async def story() -> None:
        async with make_guard(f"{etcd.url()}/prod", "keys") as guard:
            grant = await granted(guard, ANNA, TTL)
            (key,) = queue_of(etcd, "prod/keys")
            assert re.fullmatch(r"prod/keys/[0-9a-f]+", key)
            shown = etcd.order("get", key, "--write-out=fields")
            facts = dict(re.findall(r'"(\w+)" : (\S+)', shown))
            assert int(facts["CreateRevision"]) == grant.token
            assert f"{int(facts['Lease']):x}" == key.rpartition("/")[2]
            await guard.release(grant)
            assert queue_of(etcd, "prod/keys") == []

    run(story())


def test_a_key_somebody_deletes_is_not_renewed(etcd: Engine) -> None:
    async def story() -> None:
        async with make_guard(f"{etcd.url()}?election=/odd/name", "ignored") as guard:
            grant = await granted(guard, ANNA, TTL)
            etcd.order("del", "/odd/name/", "--prefix")
            with pytest.raises(NotGranted):
                await guard.renew(grant, TTL)
            assert (await granted(guard, ANNA, TTL)).token > grant.token

    run(story())


def test_a_longer_lease_keeps_the_token(etcd: Engine) -> None:
    async def story() -> None:
        async with make_guard(etcd.url(), "longer") as guard:
            grant = await granted(guard, ANNA, TTL)
            longer = await guard.renew(grant, 30.0)
            assert longer.token == grant.token
            assert longer.deadline > grant.deadline + 20.0
            answer = await guard.acquire(BERT, TTL)
            assert isinstance(answer, HeldBy)
            assert 25.0 < answer.remaining <= 30.0

    run(story())


def test_another_guard_knows_its_own_holder_again(etcd: Engine) -> None:
    async def story() -> None:
        async with (
            make_guard(etcd.url(), "again") as guard,
            make_guard(etcd.url(), "again") as more,
        ):
            grant = await granted(guard, ANNA, TTL)
            assert (await granted(more, ANNA, TTL)).token == grant.token
            assert isinstance(await more.acquire(Holder("anna", 2), TTL), HeldBy)
            await more.release(grant)
            assert (await granted(guard, BERT, TTL)).token > grant.token

    run(story())


def test_one_question_in_vain_does_not_cancel_another(etcd: Engine) -> None:
    """The first to give up gives up the connection that the second waits on."""

    async def story() -> None:
        async with make_guard(f"{etcd.url()}?timeout=0.4", "vain") as guard:
            grant = await granted(guard, ANNA, 10.0)
            etcd.pause()
            try:
                first = asyncio.ensure_future(guard.renew(grant, 10.0))
                await asyncio.wait([first], timeout=0.2)
                second = asyncio.ensure_future(guard.acquire(BERT, 10.0))
                for each in (first, second):
                    with pytest.raises(Unreachable):
                        await each
            finally:
                etcd.resume()
            assert (await guard.renew(grant, 10.0)).token == grant.token

    run(story())


def test_a_cluster_of_three_loses_any_one() -> None:
    async def story(nodes: list[Node]) -> None:
        places = ",".join(f"127.0.0.1:{node.port}" for node in nodes)
        url = f"etcd://{places}?timeout=6"
        async with make_guard(url, "three") as guard, make_guard(url, "three") as other:
            grant = await granted(guard, ANNA, 10.0)
            async with other.observe() as states:
                assert await anext(states) == Holding("anna", grant.token)
                for node in nodes:
                    node.stop(kill=True)
                    grant = await guard.renew(grant, 10.0)
                    answer = await other.acquire(BERT, 10.0)
                    assert isinstance(answer, HeldBy)
                    assert answer.token == grant.token
                    await asyncio.to_thread(node.start)
                await guard.release(grant)
                assert await anext(states) == Holding(None, grant.token)
                later = await granted(other, BERT, 10.0)
                assert later.token > grant.token
                assert await anext(states) == Holding("bert", later.token)

    with three() as nodes:
        run(story(nodes))


class Sealed(Node):
    """A node that speaks TLS only, and only with whom its authority vouches for."""

    def __init__(self) -> None:
        super().__init__()
        self.papers = Certificates(self.folder)

    def command(self) -> list[str]:
        plain = f"http://127.0.0.1:{self.port}"
        papers = [
            *("--cert-file", str(self.papers.cert), "--key-file", str(self.papers.key)),
            *("--client-cert-auth", "--trusted-ca-file", str(self.papers.ca)),
        ]
        words = [word.replace(plain, plain.replace("http", "https")) for word in super().command()]
        return [*words, *papers]

    def ready(self) -> bool:
        """Whether somebody listens: it does so once it serves."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=1.0):
            return True


def test_tls_wants_the_right_papers(tmp_path: Path) -> None:
    stranger = Certificates(tmp_path)
    sealed = Sealed()

    async def story() -> None:
        place, mine = f"etcds://127.0.0.1:{sealed.port}", sealed.papers
        async with make_guard(f"{place}?{mine.options}", "tls") as guard:
            await granted(guard, ANNA, TTL)
        for wrong in (place, f"{place}?{stranger.options}"):
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
        ("etcd://h?tmeout=1", "timeout"),
        ("etcd://h?timeout=0", "timeout"),
        ("etcd://anna@h", "password"),
        ("etcd://h?ca=x", "etcds"),
        ("etcds://h?cert=x", "key"),
        ("etcds://h?ca=no-such-file", "no-such-file"),
    ],
)
def test_bad_addresses_are_refused(url: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        make_guard(url, "jobs")


def test_nobody_there_is_said_in_time() -> None:
    async def story() -> None:
        with pytest.raises(Unreachable, match="cannot be used now"):
            await make_guard("etcd://127.0.0.1:1?timeout=0.5", "jobs").open()

    run(story())


@pytest.mark.parametrize("then", ["silence", "its own deadline"])
def test_a_refusal_is_not_forgotten_for_an_answer_that_came_too_late(then: str) -> None:
    """The last of many tries has hardly any time left: it proves nothing."""
    asked: list[EtcdLine] = []

    async def talk(line: EtcdLine) -> None:
        asked.append(line)
        if len(asked) == 1:
            raise rpc.AioRpcError(rpc.StatusCode.UNAVAILABLE, (), (), "Ssl handshake failed")
        if then == "silence":
            await asyncio.Event().wait()
        await asyncio.sleep(0.1)
        raise rpc.AioRpcError(rpc.StatusCode.DEADLINE_EXCEEDED, (), (), "Deadline Exceeded")

    async def story() -> None:
        nodes = Nodes([("127.0.0.1", 1)], shown="here", timeout=0.3)
        try:
            with pytest.raises(BadInput, match=r"speaks no TLS.*handshake failed"):
                await nodes.converse(talk, opening=True)
        finally:
            await nodes.close()

    run(story())
    assert len(asked) > 1


def test_a_node_that_refuses_and_then_is_gone_is_no_mistake_of_the_address() -> None:
    said = iter(("Ssl handshake failed", "connection refused"))

    async def talk(_: EtcdLine) -> None:
        raise rpc.AioRpcError(rpc.StatusCode.UNAVAILABLE, (), (), next(said))

    async def story() -> None:
        nodes = Nodes([("127.0.0.1", 1)], shown="here", timeout=10.0)
        try:
            with pytest.raises(Unreachable, match="connection refused"):
                await nodes.converse(talk, opening=True)
        finally:
            await nodes.close()

    run(story())

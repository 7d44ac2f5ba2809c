"""The guard on Kubernetes, against a small server with its rules and a conversation by heart.

With HUSTINGS_TEST_KUBERNETES set to the address of a guard (kubernetes:///default), a real cluster
takes part in the test that needs no command over time.
"""

from __future__ import annotations

import asyncio
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
    NotGranted,
    Unreachable,
    make_guard,
)
from tests.guard.answers import granted, refused
from tests.guard.engines.base import free_port
from tests.guard.engines.certificates import Certificates
from tests.guard.fakes.kubernetes import Kubernetes
from tests.guard.fakes.serving import Replay, served
from tests.net.kit.loops import run, until

TTL = 15.0
ANNA, BERT = Holder("anna", 1), Holder("bert", 1)
CONVERSATION = Path(__file__).parent / "conversations" / "kubernetes.jsonl"
REAL = os.environ.get("HUSTINGS_TEST_KUBERNETES")


class Clock:
    """A clock that tests set."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def two_guards(server: Kubernetes) -> AsyncIterator[tuple[Guard, Guard]]:
    async with served(server) as port:
        url = f"kubernetes://127.0.0.1:{port}?tls=no"
        async with make_guard(url, "jobs") as one, make_guard(url, "jobs") as two:
            yield one, two


@pytest.mark.parametrize("place", ["fake", *(["real"] if REAL else [])])
def test_one_holds_then_the_other(place: str) -> None:
    async def play() -> None:
        async with served(Kubernetes()) as port:
            url = REAL if place == "real" and REAL else f"kubernetes://127.0.0.1:{port}?tls=no"
            group = f"jobs-{uuid.uuid4().hex[:8]}"
            async with make_guard(url, group) as one, make_guard(url, group) as two:
                async with two.observe() as states:
                    assert (await anext(states)).holder is None
                    first = await granted(one, ANNA, TTL)
                    assert await anext(states) == Holding("anna", first.token)
                    held = await refused(two, BERT, TTL)
                    assert (held.holder, held.token) == ("anna", first.token)
                    first = await one.renew(first, TTL)
                    assert (await refused(two, BERT, TTL)).token == first.token
                    assert (await granted(one, ANNA, TTL)).token == first.token
                    assert (await refused(one, Holder("anna", 2), TTL)).token == first.token
                    await one.release(first, to="carl")
                    assert await anext(states) == Holding(None, first.token)
                    assert (await refused(two, BERT, TTL)).holder == "carl"
                    second = await granted(two, Holder("carl", 9), TTL)
                    assert second.token > first.token
                    assert await anext(states) == Holding("carl", second.token)
                with pytest.raises(NotGranted):
                    await one.renew(first, TTL)
                await one.release(first)
                await two.renew(second, TTL)
                await two.release(second)

    run(play())


def test_it_speaks_as_written_down() -> None:
    """client-go holds, renews and releases; a label is written between our look and our write."""

    async def play() -> None:
        replay = Replay(CONVERSATION)
        async with served(replay) as port:
            url = f"kubernetes://127.0.0.1:{port}/prod?tls=no"
            async with make_guard(url, "jobs") as guard:
                held = await refused(guard, ANNA, TTL)
                assert held.holder == "host-7_0b5e0c1f-0f0a-4b51-8bb1-0a4f5d1c2e3f"
                grant = await granted(guard, ANNA, TTL)
                assert grant.token == 48233
                grant = await guard.renew(grant, TTL)
                assert grant.token == 48233
                await guard.release(grant)
        replay.check()

    run(play())


def test_a_lease_that_stays_the_same_for_its_time_is_over() -> None:
    async def play() -> None:
        clock, server = Clock(), Kubernetes()
        async with two_guards(server) as (one, two):
            two._clock = clock
            first = await granted(one, ANNA, TTL)
            assert await refused(two, BERT, TTL) == HeldBy("anna", first.token, TTL)
            clock.now += TTL - 1.0
            assert (await refused(two, BERT, TTL)).remaining == 1.0
            first = await one.renew(first, TTL)
            clock.now += 1.0
            assert await refused(two, BERT, TTL) == HeldBy("anna", first.token, TTL)
            clock.now += TTL
            second = await granted(two, BERT, TTL)
            assert second.token > first.token
            spec = server.leases["default", "jobs"]["spec"]
            assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("bert#1", 1)
            with pytest.raises(NotGranted):
                await one.renew(first, TTL)

    run(play())


def test_times_written_by_others_are_not_read() -> None:
    """A holder whose wall clock is years off is as good a holder as any."""

    async def play() -> None:
        clock, server = Clock(), Kubernetes()
        async with two_guards(server) as (one, _):
            one._clock = clock
            times = {"acquireTime": "1999-01-01T00:00:00.000000Z"}
            await server.foreign("jobs", "host_1", leaseDurationSeconds=20, **times)
            held = await refused(one, ANNA, TTL)
            assert (held.holder, held.remaining) == ("host_1", 20.0)
            for second in range(3):  # it renews: another version, the same period of holding
                clock.now += 19.0
                again = {"renewTime": f"1999-01-01T00:00:0{second}.000000Z"}
                await server.foreign("jobs", "host_1", leaseDurationSeconds=20, **times, **again)
                assert await refused(one, ANNA, TTL) == held
            clock.now += 20.0
            assert (await granted(one, ANNA, TTL)).token > held.token

    run(play())


def test_what_has_run_out_is_a_new_period_with_a_new_token() -> None:
    async def play() -> None:
        clock, server = Clock(), Kubernetes()
        async with two_guards(server) as (one, _):
            one._clock = clock
            first = await granted(one, ANNA, TTL)
            clock.now += TTL
            with pytest.raises(NotGranted):
                await one.renew(first, TTL)
            assert (await granted(one, ANNA, TTL)).token > first.token

    run(play())


def test_tokens_grow_though_the_lease_is_deleted() -> None:
    async def play() -> None:
        server = Kubernetes()
        async with two_guards(server) as (one, two):
            first = await granted(one, ANNA, TTL)
            async with two.observe() as states:
                assert (await anext(states)).holder == "anna"
                await server.delete("default", "jobs")
                assert await anext(states) == Holding(None, first.token)
            second = await granted(two, BERT, TTL)
            assert server.leases["default", "jobs"]["spec"]["leaseTransitions"] == 0
            assert second.token > first.token
            with pytest.raises(NotGranted):
                await one.renew(first, TTL)

    run(play())


def test_what_others_keep_in_the_lease_stays() -> None:
    async def play() -> None:
        server = Kubernetes()
        async with two_guards(server) as (one, two):
            grant = await granted(one, ANNA, TTL)
            lease = server.leases["default", "jobs"]
            lease["metadata"]["annotations"] = {"team": "billing"}
            lease["spec"]["strategy"] = "OldestEmulationVersion"
            await server.foreign("jobs", "anna#1")
            await one.renew(grant, TTL)
            await one.release(grant)
            await granted(two, BERT, TTL)
            lease = server.leases["default", "jobs"]
            assert lease["metadata"]["annotations"] == {"team": "billing"}
            assert lease["spec"]["strategy"] == "OldestEmulationVersion"

    run(play())


def test_a_watch_that_is_too_old_begins_anew() -> None:
    async def play() -> None:
        server = Kubernetes()
        async with two_guards(server) as (one, two), two.observe() as states:
            grant = await granted(one, ANNA, TTL)
            server.forgotten = server.version + 1
            assert (await anext(states)).holder == "anna"
            following = asyncio.ensure_future(anext(states))
            await until(lambda: server.refused, "a watch is refused")
            await one.release(grant)
            assert (await following).holder is None

    run(play())


def test_what_cannot_be_is_said() -> None:
    async def play() -> None:
        server = Kubernetes("s3cret")
        async with served(server) as port:
            place = f"127.0.0.1:{port}?tls=no&timeout=1"
            with pytest.raises(BadInput, match="Unauthorized") as caught:
                await make_guard(f"kubernetes://:wr0ng@{place}", "jobs").open()
            assert "wr0ng" not in str(caught.value)
            async with make_guard(f"kubernetes://:s3cret@{place}", "jobs") as guard:
                for ttl in (0.9, 86401.0):
                    with pytest.raises(BadInput, match="ttl"):
                        await guard.acquire(ANNA, ttl)
                grant = await granted(guard, ANNA, TTL)
                server.down = True
                with pytest.raises(Unreachable, match="timed out"):
                    await guard.renew(grant, TTL)
                server.down = False
                await guard.renew(grant, TTL)
            nowhere = f"kubernetes://:s3cret@127.0.0.1:{port}/nowhere?tls=no"
            async with make_guard(nowhere, "jobs") as guard:
                with pytest.raises(Unreachable, match="no namespace nowhere"):
                    await guard.acquire(ANNA, TTL)
        with pytest.raises(Unreachable):
            await make_guard(f"kubernetes://127.0.0.1:{free_port()}?tls=no", "jobs").open()

    run(play())


def test_tls_wants_the_right_papers(tmp_path: Path) -> None:
    mine, stranger = tmp_path / "mine", tmp_path / "stranger"
    mine.mkdir()
    stranger.mkdir()
    right, wrong = Certificates(mine), Certificates(stranger)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(right.cert, right.key)

    async def play() -> None:
        async with served(Kubernetes(), tls) as port:
            url = f"kubernetes://127.0.0.1:{port}?ca="
            async with make_guard(f"{url}{right.ca}", "jobs") as guard:
                await granted(guard, ANNA, TTL)
            with pytest.raises(BadInput, match="TLS"):
                await make_guard(f"{url}{wrong.ca}", "jobs").open()
            with pytest.raises(BadInput, match="certificates"):
                await make_guard(f"{url}no-such-file", "jobs").open()

    run(play())


def test_a_kubeconfig_is_read_as_kubectl_does(tmp_path: Path) -> None:
    async def play() -> None:
        server = Kubernetes("s3cret")
        async with served(server) as port:
            file = tmp_path / "config"
            file.write_text(KUBECONFIG.format(port=port))
            url = f"kubernetes:///prod?kubeconfig={file}"
            async with make_guard(url, "jobs") as guard:
                await granted(guard, ANNA, TTL)
            assert list(server.leases) == [("prod", "jobs")]
            with pytest.raises(BadInput, match="no server is known"):
                await make_guard(f"{url}&context=other", "jobs").open()

    run(play())


KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: here
clusters: [{{name: here, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: me, user: {{token: s3cret}}}}]
contexts: [{{name: here, context: {{cluster: here, user: me}}}}]
"""


@pytest.mark.parametrize(
    "url, says",
    [
        ("kubernetes://h?tmeout=1", "timeout"),
        ("kubernetes://a,b", "one host"),
        ("kubernetes://anna:secret@h", "token"),
        ("kubernetes://h/No_Namespace", "namespace"),
        ("kubernetes://h?lease=No_Lease", "Lease"),
        ("kubernetes://h?context=x", "context"),
        ("kubernetes://?ca=x", "host"),
    ],
)
def test_bad_addresses_are_refused(url: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        make_guard(url, "jobs")


def test_the_promise_says_what_was_tested() -> None:
    assert "HUSTINGS_TEST_KUBERNETES" in make_guard("kubernetes://h", "jobs").guarantees.evidence


def test_a_cluster_that_counts_anew_goes_on_above_what_is_known() -> None:
    async def play() -> None:
        server, clock = Kubernetes(), Clock()
        async with two_guards(server) as (one, two):
            two._clock = clock
            server.version = 5000
            first = await granted(one, ANNA, TTL)
            server.forget()
            with pytest.raises(NotGranted):
                await one.renew(first, TTL)
            assert await two.acquire(BERT, TTL, first.token) == HeldBy("", 0, TTL)
            assert server.leases == {}, "nothing is written before it is safe"
            clock.now += TTL
            second = await two.acquire(BERT, TTL, first.token)
            assert isinstance(second, Grant)
            assert second.token > first.token
            assert (await two.renew(second, TTL)).token == second.token
            held = await refused(one, ANNA, TTL)
            assert (held.holder, held.token) == ("bert", second.token)
            await server.foreign("jobs", "client-go", acquireTime="now", leaseTransitions=7)
            assert (await refused(one, ANNA, TTL)).token > second.token, "also of who knows nothing"

    run(play())


def test_a_holder_in_its_time_goes_on_at_once_when_its_lease_is_gone() -> None:
    async def play() -> None:
        server = Kubernetes()
        async with two_guards(server) as (one, _):
            server.version = 5000
            first = await granted(one, ANNA, TTL)
            server.forget()
            again = await one.acquire(ANNA, TTL, first.token)
            assert isinstance(again, Grant)
            assert again.token > first.token

    run(play())


@pytest.mark.parametrize("held", [False, True])
def test_an_operator_lifts_tokens(held: bool) -> None:
    async def play() -> None:
        async with two_guards(Kubernetes()) as (one, two):
            first = await granted(one, ANNA, TTL) if held else None
            await two.recover(9000)
            await two.recover(10)
            if first is not None:
                first = await one.renew(first, TTL)
                assert (await refused(two, BERT, TTL)).token == first.token
                await one.release(first)
            second = await granted(two, BERT, TTL)
            assert second.token > 9000
            assert (await granted(two, BERT, TTL)).token == second.token
            assert (await refused(one, ANNA, TTL)).token == second.token

    run(play())


def test_who_is_favoured_stays_so_when_tokens_are_lifted() -> None:
    async def play() -> None:
        async with two_guards(Kubernetes()) as (one, two):
            await one.release(await granted(one, ANNA, TTL), to="carl")
            await two.recover(9000)
            assert (await refused(two, BERT, TTL)).holder == "carl"

    run(play())


def test_asking_for_less_takes_nothing_from_what_was_promised() -> None:
    async def play() -> None:
        clock = Clock()
        async with two_guards(Kubernetes()) as (one, two):
            one._clock = two._clock = clock
            first = await granted(one, ANNA, 30.0)
            clock.now += 5.0
            first = await one.renew(first, 2.0)
            clock.now += 1.0
            assert (await granted(one, ANNA, 2.0)).token == first.token
            await refused(two, BERT, TTL)
            clock.now += 23.9
            await refused(two, BERT, TTL)
            clock.now += 0.2
            assert (await granted(two, BERT, TTL)).token > first.token

    run(play())

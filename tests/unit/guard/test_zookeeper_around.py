"""The guard on ZooKeeper: addresses, opening, identity, recovery."""

from __future__ import annotations

import asyncio
import re
import ssl

import pytest

from hustings.core.errors import BadInput
from hustings.guard import (
    HeldBy,
    Unreachable,
)
from hustings.guard.base import IDENTITY
from hustings.guard.zookeeper_wire import LONGEST_MS
from tests.guard.answers import granted
from tests.net.kit.virtual import virtually
from tests.unit.guard.fakes_zookeeper import FOREIGN, Server
from tests.unit.guard.zookeeper_kit import (
    ADA,
    BASE,
    BEN,
    PATH,
    TTL,
    WORD,
    guard,
    server,
)

__all__ = ["server"]


# Addresses


@pytest.mark.parametrize(
    "url, says",
    [
        ("zookeeper://h?tmeout=1", "timeout"),
        ("zookeeper://ada@h", "zookeeper needs both a user and a password, or neither"),
        ("zookeeper://:secret@h", "zookeeper needs both a user and a password, or neither"),
        ("zookeeper://h?election=jobs", "must be like /jobs/billing, not 'jobs'"),
        ("zookeeper://h?election=/jobs/", "must be like /jobs/billing, not '/jobs/'"),
        ("zookeeper://h?election=/a//jobs", "must be like /jobs/billing, not '/a//jobs'"),
        ("zookeeper://h?recipe=soup", "option recipe of zookeeper must be one of kazoo, curator"),
        ("zookeeper://h?timeout=0", "option timeout of zookeeper must be a positive time"),
        ("zookeeper://h?cert=x", "need tls=yes"),
    ],
)
def test_bad_addresses_are_refused(url: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        guard(url)


@pytest.mark.parametrize(
    "url, path",
    [
        ("zookeeper://h", "/hustings/jobs"),
        ("zookeeper://h/a/b", "/a/b/jobs"),
        ("zookeeper://h?election=/latch", "/latch"),
    ],
)
def test_an_address_says_where_the_election_is(server: Server, url: str, path: str) -> None:
    async def story() -> None:
        grant = await granted(guard(url), ADA, TTL)
        (node,) = server.children(path)
        assert server.nodes[f"{path}/{node}"].created == grant.token
        assert server.nodes[path].owner == 0, "the path stays"

    virtually(story())


def test_an_address_says_who_is_asked_and_for_how_long(server: Server) -> None:
    async def story() -> None:
        server.mute = {2181, 7}
        for url, seconds in (("zookeeper://h,i:7", 2.0), ("zookeeper://h,i:7?timeout=3", 3.0)):
            ours = guard(url)
            began = ours.now()
            shown = re.escape("zookeeper://h,i:7")
            with pytest.raises(Unreachable, match=f"^ZooKeeper at {shown} cannot be used now"):
                await ours.acquire(ADA, 1.5)
            assert ours.now() - began == pytest.approx(seconds, abs=0.01)
        assert [each.port for each in server.lines] == [2181, 7] * 2
        assert server.tls == [None] * 4

    virtually(story())


def test_tls_is_spoken_where_it_is_asked_for(server: Server) -> None:
    async def story() -> None:
        await granted(guard("zookeeper://h?tls=yes"), ADA, TTL)
        assert isinstance(server.tls[0], ssl.SSLContext)

    virtually(story())


def test_nodes_of_a_user_are_that_user_s(server: Server) -> None:
    async def story() -> None:
        grant = await granted(guard("zookeeper://ada:secret@h"), ADA, TTL)
        (node,) = server.children(PATH)
        for path in (PATH, f"{PATH}/{node}"):
            kept = server.nodes[path]
            assert (kept.scheme, kept.account) == ("auth", "ada:secret")
        with pytest.raises(BadInput, match=f"wants another user or password for {PATH}$"):
            await guard("zookeeper://ada:other@h").open()
        other = guard()
        with pytest.raises(BadInput, match=r"^ZooKeeper at zookeeper://h wants another user"):
            await other.open()
        with pytest.raises(Unreachable, match="refuses: NoAuth"):
            await other.acquire(BEN, TTL)
        assert await guard("zookeeper://ada:secret@h").acquire(BEN, TTL) == HeldBy(
            "ada", grant.token, TTL
        )

    virtually(story())


def test_nodes_of_nobody_are_everybody_s(server: Server) -> None:
    async def story() -> None:
        await granted(guard(), ADA, TTL)
        assert all(node.scheme == "world" for node in server.nodes.values())
        assert server.kinds("Auth") == 0

    virtually(story())


def test_curator_s_candidates_have_curator_s_names(server: Server) -> None:
    async def story() -> None:
        await granted(guard("zookeeper://h?recipe=curator"), ADA, TTL)
        (node,) = server.children(PATH)
        assert re.fullmatch(r"_c_[0-9a-f]{32}-latch-0000000000", node)

    virtually(story())


# Opening


def test_whoever_opens_learns_the_bounds_and_leaves_nothing_but_the_path(server: Server) -> None:
    async def story() -> None:
        ours = guard()
        ours.check_ttl(0.001)
        ours.check_ttl(LONGEST_MS / 1000.0)
        with pytest.raises(BadInput):
            ours.check_ttl(LONGEST_MS / 1000.0 + 1)
        with pytest.raises(BadInput, match="ttl must be a positive time"):
            ours.check_ttl(0.0)
        await ours.open()
        assert [each.timeout for each in server.connects] == [1, LONGEST_MS]
        assert list(server.nodes) == ["/", "/hustings", PATH]
        assert list(server.lives) == [FOREIGN], "its sessions are closed"
        ours.check_ttl(0.5)
        ours.check_ttl(60.0)
        for ttl in (0.49, 60.1):
            says = f"^ttl must lie between 0.5 and 60 s with this ZooKeeper, not {ttl}$"
            with pytest.raises(BadInput, match=says):
                ours.check_ttl(ttl)

    virtually(story())


@pytest.mark.parametrize(
    "error, why",
    [(ssl.SSLError(1, "not ours"), "not ours"), (ConnectionResetError(), "connection was closed")],
)
def test_no_tls_is_a_mistake_once_it_lasts(server: Server, error: Exception, why: str) -> None:
    async def story() -> None:
        ours = guard()
        server.refuses[2181] = error
        says = rf"^ZooKeeper at zookeeper://h: no TLS connection \(.*{why}.*\); see options tls"
        with pytest.raises(BadInput, match=says):
            await ours.open()
        assert 1.8 <= ours.now() <= 2.0
        assert 15 <= len(server.tls) <= 20, "with a pause between attempts"
        for ask in (ours.identity(), ours.acquire(ADA, TTL)):
            with pytest.raises(Unreachable, match=r"^ZooKeeper at zookeeper://h refuses: .*" + why):
                await ask

    virtually(story())


def test_a_server_that_is_just_starting_is_waited_for(server: Server) -> None:
    async def story() -> None:
        server.refuses[2181] = ConnectionResetError()
        asyncio.get_running_loop().call_later(1.0, server.refuses.clear)
        ours = guard()
        await ours.open()
        assert 1.0 <= ours.now() <= 1.2

    virtually(story())


def test_a_path_that_somebody_else_makes_meanwhile_is_there(server: Server) -> None:
    async def story() -> None:
        server.on("Create", lambda: server.create(PATH))
        await guard().open()
        assert PATH in server.nodes

    virtually(story())


# Identity


def test_the_first_word_stays_until_another_is_put_in_its_place(server: Server) -> None:
    async def story() -> None:
        ours, far = guard(), guard()
        word = await ours.identity()
        assert (len(word), server.data(WORD)) == (16, word)
        assert await far.identity() == word
        assert await far._word(IDENTITY, "other", instead=False) == word
        assert server.nodes[WORD].version == 0
        assert await far._word(IDENTITY, "other", instead=True) == "other"
        assert await far._word(IDENTITY, "third", instead=True) == "third"
        assert await ours.identity() == "third"
        assert server.nodes[WORD].owner == 0, "it stays"
        assert list(server.lives) == [FOREIGN], "its sessions are closed"
        assert {each.timeout for each in server.connects} == {10_000}

    virtually(story())


def test_a_server_that_lags_has_no_other_word(server: Server) -> None:
    async def story() -> None:
        server.lag()
        word = await guard().identity()
        server.lag()
        server.write(WORD, "newer")
        assert await guard().identity() == "newer" != word

    virtually(story())


# Recovery


def test_an_operator_lifts_tokens(server: Server) -> None:
    async def story() -> None:
        ours = guard()
        for above in (1000, 2000):
            visits = len(server.connects)
            await ours.recover(above)
            assert len(server.connects) == visits + 1, "once is enough"
            assert server.data(BASE) == str(above)
            grant = await granted(ours, ADA, TTL)
            assert grant.token > above
            await ours.release(grant)
        version = server.nodes[BASE].version
        await ours.recover(2000)
        await ours.recover(server.zxid + 1 + 2000)
        assert server.nodes[BASE].version == version, "there is nothing to lift"
        above = server.zxid + 2 + 2000
        await ours.recover(above)
        assert server.data(BASE) == str(above)
        server.end_sessions()
        assert server.nodes[BASE].owner == 0, "it stays"

    virtually(story())


def test_of_two_operators_the_higher_one_is_heeded(server: Server) -> None:
    async def story() -> None:
        ours = guard()
        server.on("Create", lambda: server.create(BASE, "500"), path=BASE)
        await ours.recover(1000)
        assert server.data(BASE) == "1000"
        server.on("SetData", lambda: server.write(BASE, "3000"), path=BASE)
        await ours.recover(2000)
        assert server.data(BASE) == "3000"
        server.on("SetData", lambda: server.delete(BASE), path=BASE)
        await ours.recover(4000)
        assert server.data(BASE) == "4000"

    virtually(story())


def test_who_holds_while_tokens_are_lifted_has_a_larger_one_next(server: Server) -> None:
    async def story() -> None:
        ours = guard()
        grant = await granted(ours, ADA, TTL)
        await guard().recover(1000)
        again = await granted(ours, ADA, TTL)
        assert again.token == grant.token + 1000

    virtually(story())


def test_a_session_that_lapses_while_an_operator_asks_is_told(server: Server) -> None:
    async def story() -> None:
        server.on("Sync", server.end_sessions)
        with pytest.raises(Unreachable, match=r"^ZooKeeper at zookeeper://h refuses: "):
            await guard().recover(1000)

    virtually(story())

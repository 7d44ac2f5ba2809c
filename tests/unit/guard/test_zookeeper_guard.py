"""Who is let in by the guard on ZooKeeper, and with which token, whoever comes in between."""

from __future__ import annotations

import asyncio
import re

import pytest
from aiozk import exc

from hustings.guard import (
    Behind,
    Floor,
    Grant,
    HeldBy,
    MemoryLost,
    NotGranted,
)
from tests.guard.answers import granted
from tests.net.kit.virtual import virtually
from tests.unit.guard.fakes_zookeeper import FOREIGN, LOST, Server
from tests.unit.guard.zookeeper_kit import (
    ADA,
    BASE,
    BEN,
    PATH,
    TTL,
    guard,
    only,
    server,
)

__all__ = ["server"]

ASK_AGAIN = HeldBy("", 0, 0.0)


# Who is let in


def test_a_candidate_s_node_is_a_lease(server: Server) -> None:
    async def story() -> None:
        ours = guard()
        sent = ours.now()
        grant = await granted(ours, ADA, TTL)
        node = server.nodes[only(server)]
        assert re.fullmatch(rf"{PATH}/[0-9a-f]{{32}}__lock__0000000000", only(server))
        assert (node.data, node.owner) == (b"ada", 1)
        assert grant == Grant(ADA, node.created, sent + TTL / ours.slack)
        assert server.connects[-1].timeout == TTL * 1000
        assert await guard().acquire(BEN, 7.0) == HeldBy("ada", grant.token, 7.0)
        await asyncio.sleep(TTL - 0.1)
        assert isinstance(await guard().acquire(BEN, TTL), HeldBy), "it lives as long as asked for"
        await asyncio.sleep(0.1)
        assert (await granted(guard(), BEN, TTL)).token > grant.token

    virtually(story())


@pytest.mark.parametrize("recipe", ["kazoo", "curator"])
def test_of_two_who_come_at_once_one_is_let_in(server: Server, recipe: str) -> None:
    async def story() -> None:
        near, far = (guard(f"zookeeper://h?recipe={recipe}") for _ in range(2))
        await near.open()
        first: list[Grant] = []

        async def quicker() -> None:
            first.append(await granted(near, ADA, TTL))

        server.on("Create", quicker)
        assert await far.acquire(BEN, TTL) == HeldBy("ada", first[0].token, TTL)
        assert server.data(only(server)) == "ada", "who was slower does not queue"
        assert (await near.renew(first[0], TTL)).token == first[0].token

    virtually(story())


@pytest.mark.parametrize(
    "first, second",
    [
        ("a__lock__0000000009", "0__lock__0000000010"),
        ("b-latch-0000000001", "a-latch-0000000002"),
        ("b__lock__-2147483648", "a__lock__0000000001"),
        ("b-latch--2147483648", "a-latch-0000000001"),
        ("b__lock__-2147483648", "a__lock__-2147483647"),
    ],
)
def test_the_lowest_number_leads_however_nodes_are_named(
    server: Server, first: str, second: str
) -> None:
    async def story() -> None:
        server.create(f"{PATH}/lease_holder", "nobody")
        server.create(f"{PATH}/{second}", "second", FOREIGN)
        server.create(f"{PATH}/{first}", "first", FOREIGN)
        token = server.nodes[f"{PATH}/{first}"].created
        assert await guard().acquire(ADA, TTL) == HeldBy("first", token, TTL)
        assert len(server.children(PATH)) == 3, "nobody of ours queues"

    virtually(story())


def test_who_holds_keeps_its_token_and_is_renewed(server: Server) -> None:
    async def story() -> None:
        ours = guard()
        grant = await granted(ours, ADA, TTL)
        await asyncio.sleep(3.0)
        sent = ours.now()
        assert await ours.acquire(ADA, TTL) == Grant(ADA, grant.token, sent + TTL / ours.slack)
        assert server.kinds("Transaction") == 1, "confirmed by a write"
        assert len(server.children(PATH)) == 1
        await asyncio.sleep(4.0)
        assert (await ours.renew(grant, TTL)).token == grant.token
        await asyncio.sleep(4.0)
        assert isinstance(await guard().acquire(BEN, TTL), HeldBy)

    virtually(story())


@pytest.mark.parametrize("error", [None, exc.NoNode()])
def test_a_node_that_vanishes_before_it_is_confirmed_is_no_lease(
    server: Server, error: exc.ResponseError | None
) -> None:
    async def story() -> None:
        ours = guard()
        grant = await granted(ours, ADA, TTL)

        def vanish() -> object:
            server.delete(only(server))
            return error

        server.on("Transaction", vanish)
        assert await ours.acquire(ADA, TTL) == ASK_AGAIN
        grant = await granted(ours, ADA, TTL)
        server.on("Transaction", vanish)
        with pytest.raises(NotGranted, match=rf"^ada#1 does not hold {grant.token} any more$"):
            await ours.renew(grant, TTL)

    virtually(story())


def test_who_leads_no_more_when_it_is_read_makes_one_ask_again(server: Server) -> None:
    async def story() -> None:
        node = f"{PATH}/{server.stand(PATH, 'foreign')}"
        server.on("GetData", lambda: server.delete(node), path=node)
        assert await guard().acquire(ADA, TTL) == ASK_AGAIN

    virtually(story())


def test_servers_that_lag_behind_are_told_to_catch_up(server: Server) -> None:
    async def story() -> None:
        await guard().open()
        server.lag()
        token = (await granted(guard(), ADA, TTL)).token
        server.lag()
        server.delete(only(server))
        grant = await granted(guard(), BEN, TTL)
        assert grant.token > token

    virtually(story())


def test_who_only_asks_leaves_no_watches(server: Server) -> None:
    async def story() -> None:
        ours = guard()
        await ours.identity()
        await ours.recover(1000)
        grant = await granted(ours, ADA, TTL)
        await ours.renew(grant, TTL)
        reads = [each for each in server.asked if each.kind in ("GetData", "GetChildren2")]
        assert not any(each.request.watch for each in reads)

    virtually(story())


def test_a_creation_whose_answer_is_lost_is_found_again(server: Server) -> None:
    async def story() -> None:
        ours = guard("zookeeper://h1,h2")
        await ours.open()
        server.on("Create", lambda: LOST)
        grant = await granted(ours, ADA, TTL)
        assert grant.token == server.nodes[only(server)].created
        assert {each.port for each in server.asked} == {2181}

    virtually(story())


def test_of_own_nodes_only_the_lowest_is_kept(server: Server) -> None:
    async def story() -> None:
        ours = guard()
        grant = await granted(ours, ADA, TTL)
        node = only(server)
        server.create(node[:-1] + "7", "ada", 1)
        assert (await granted(ours, ADA, TTL)).token == grant.token
        assert only(server) == node

    virtually(story())


def test_a_session_that_lapsed_begins_anew(server: Server) -> None:
    async def story() -> None:
        ours = guard()
        grant = await granted(ours, ADA, TTL)
        server.end_sessions()
        again = await granted(ours, ADA, TTL)
        assert again.token > grant.token
        server.on("Transaction", server.end_sessions)
        assert (await granted(ours, ADA, TTL)).token > again.token, "also in the middle of it"
        with pytest.raises(NotGranted, match="any more"):
            await ours.renew(grant, TTL)

    virtually(story())


# Tokens that are known


def test_below_a_known_token_nothing_is_granted(server: Server) -> None:
    async def story() -> None:
        ours = guard()
        await ours.open()
        last = server.zxid + 1  # with the session that asks
        assert await ours._acquire(ADA, TTL, Floor(last + 1)) == Behind(last)
        assert server.children(PATH) == []
        with pytest.raises(MemoryLost, match=rf"its last token is {last}, and token 99 is known"):
            await ours.acquire(ADA, TTL, known=99)
        assert await ours._acquire(ADA, TTL, Floor(last)) == last + 1

    virtually(story())


def test_a_base_is_added_to_what_is_there(server: Server) -> None:
    async def story() -> None:
        ours = guard()
        await ours.open()
        server.create(BASE, "1000")
        last = server.zxid + 1 + 1000
        assert await ours._acquire(ADA, TTL, Floor(last + 1)) == Behind(last)
        grant = await ours.acquire(ADA, TTL, known=last)
        assert isinstance(grant, Grant)
        assert grant.token == server.nodes[only(server)].created + 1000
        assert (await ours.renew(grant, TTL)).token == grant.token
        assert await guard().acquire(BEN, TTL) == HeldBy("ada", grant.token, TTL)
        await ours.release(grant)
        assert server.children(PATH) == []

    virtually(story())


def test_who_hears_later_that_nobody_believes_it_stands_down(server: Server) -> None:
    async def story() -> None:
        ours = guard()
        grant = await granted(ours, ADA, TTL)
        assert await ours._acquire(ADA, TTL, Floor(grant.token)) == grant.token
        last = server.zxid
        assert await ours._acquire(ADA, TTL, Floor(last + 1)) == Behind(last)
        assert server.children(PATH) == []
        grant = await granted(ours, ADA, TTL)
        server.create("/elsewhere")
        assert await ours._acquire(ADA, TTL, Floor(server.zxid)) == ASK_AGAIN
        assert server.children(PATH) == []
        assert await ours._acquire(ADA, TTL, Floor(server.zxid)) == server.zxid

    virtually(story())

"""Holding on to a lease in ZooKeeper, letting go of it, and what goes wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import pytest
from aiozk import exc

from hustings.guard import (
    Grant,
    HeldBy,
    NotGranted,
    Unreachable,
)
from hustings.guard.zookeeper import ZooKeeperGuard
from tests.guard.answers import granted
from tests.net.kit.virtual import virtually
from tests.unit.guard.fakes_zookeeper import FOREIGN, LOST, SILENT, Server
from tests.unit.guard.zookeeper_kit import (
    ADA,
    BASE,
    BEN,
    NEXT,
    PATH,
    TTL,
    guard,
    only,
    server,
)

__all__ = ["server"]


# Holding on, and letting go


def test_a_renewal_of_what_is_not_held_is_refused(server: Server) -> None:
    async def story() -> None:
        ours = guard()
        with pytest.raises(NotGranted, match=r"^ada#1 does not hold 7$"):
            await ours.renew(Grant(ADA, 7, 0.0), TTL)
        assert server.connects == []
        grant = await granted(ours, ADA, TTL)
        with pytest.raises(NotGranted, match=f"^ada#1 does not hold {grant.token + 1} any more$"):
            await ours.renew(Grant(ADA, grant.token + 1, 0.0), TTL)
        server.create(f"{PATH}/0__lock__-2147483648", "foreign", FOREIGN)
        with pytest.raises(NotGranted, match="any more"):
            await ours.renew(grant, TTL)
        server.delete(PATH)
        with pytest.raises(NotGranted, match="any more"):
            await ours.renew(grant, TTL)

    virtually(story())


def test_a_node_that_vanishes_before_it_is_read_is_not_renewed(server: Server) -> None:
    async def story() -> None:
        ours = guard()
        grant = await granted(ours, ADA, TTL)
        node = only(server)
        server.on("GetData", lambda: server.delete(node), path=node)
        with pytest.raises(NotGranted, match="any more"):
            await ours.renew(grant, TTL)

    virtually(story())


def test_a_session_that_ran_out_is_not_renewed(server: Server) -> None:
    async def story() -> None:
        ours = guard()
        grant = await granted(ours, ADA, TTL)
        await asyncio.sleep(TTL + 1)
        with pytest.raises(NotGranted, match=r"^the session of ada#1 has run out$"):
            await ours.renew(grant, TTL)
        with pytest.raises(NotGranted, match=r"^ada#1 does not hold"):
            await ours.renew(grant, TTL)

    virtually(story())


def test_a_promise_is_not_cut_short_by_a_shorter_one(server: Server) -> None:
    async def story() -> None:
        ours = guard()
        grant = await granted(ours, ADA, 20.0)
        at = ours.now()
        await asyncio.sleep(5.0)
        await ours.renew(grant, 4.0)
        assert 14_900 <= server.connects[-1].timeout <= 15_000
        await asyncio.sleep(at + 19.9 - ours.now())
        assert isinstance(await guard().acquire(BEN, TTL), HeldBy)
        await ours.renew(grant, 4.0)
        assert server.connects[-1].timeout == 4000

    virtually(story())


def test_a_lease_in_fractions_of_milliseconds_is_no_shorter(server: Server) -> None:
    async def story() -> None:
        await granted(guard(), ADA, 2.0001)
        assert server.connects[-1].timeout == 2001

    virtually(story())


def test_what_is_given_back_is_to_be_had(server: Server) -> None:
    async def story() -> None:
        ours = guard()
        grant = await granted(ours, ADA, TTL)
        await ours.release(Grant(ADA, grant.token + 1, 0.0))
        assert len(server.children(PATH)) == 1, "another token is not given back"
        await ours.release(grant)
        assert server.children(PATH) == []
        assert server.connects[-1].timeout == TTL * 1000, "a release makes nothing longer"
        count = len(server.connects)
        await ours.release(Grant(BEN, 7, 0.0))
        assert len(server.connects) == count, "who holds nothing has nothing to give back"
        assert (await granted(guard(), BEN, TTL)).token > grant.token

    virtually(story())


def test_a_release_of_what_has_gone_is_fine(server: Server) -> None:
    async def story() -> None:
        ours = guard()
        for vanish in ("GetData", "Delete"):
            grant = await granted(ours, ADA, TTL)
            node = only(server)
            server.on(vanish, partial(server.delete, node), path=node)
            await ours.release(grant)
        grant = await granted(ours, ADA, TTL)
        server.end_sessions()
        await ours.release(grant)
        again = await granted(ours, ADA, TTL)
        assert again.token > grant.token

    virtually(story())


@pytest.mark.parametrize("became", [LOST, SILENT])
def test_a_release_in_doubt_is_confirmed_before_one_asks_again(server: Server, became: str) -> None:
    async def story() -> None:
        ours = guard()
        grant = await granted(ours, ADA, TTL)
        node = only(server)
        server.on("Delete", lambda: became, path=node)
        with pytest.raises(Unreachable):
            await ours.release(grant)
        again = await granted(ours, ADA, TTL)
        assert again.token > grant.token
        assert only(server) != node
        assert server.nodes[only(server)].owner != 1, "in another session"
        count = server.kinds("Delete")
        assert (await granted(ours, ADA, TTL)).token == again.token
        assert server.kinds("Delete") == count, "what was confirmed is not repeated"

    virtually(story())


def test_a_lease_is_handed_to_somebody(server: Server) -> None:
    async def story() -> None:
        ours, far = guard(), guard()
        grant = await granted(ours, ADA, TTL)
        owner = server.nodes[only(server)].owner
        await ours.release(grant, to="ben")
        assert server.kinds("Delete") == 0, "both in one step"
        assert server.children(PATH) == []
        assert (server.data(NEXT), server.nodes[NEXT].owner) == ("ben", owner)
        assert await ours.acquire(ADA, 7.0) == HeldBy("ben", 0, 7.0)
        assert NEXT in server.nodes, "asking again leaves it there"
        assert (await granted(far, BEN, TTL)).token > grant.token
        assert NEXT not in server.nodes
        assert server.kinds("Transaction") == 1

    virtually(story())


def test_whom_it_was_kept_for_and_did_not_come_has_lost_it(server: Server) -> None:
    async def story() -> None:
        ours = guard()
        grant = await granted(ours, ADA, TTL)
        await ours.release(grant, to="ben")
        await asyncio.sleep(TTL - 0.1)
        assert await ours.acquire(ADA, TTL) == HeldBy("ben", 0, TTL)
        await asyncio.sleep(0.2)
        await granted(ours, ADA, TTL)

    virtually(story())


def test_without_to_nobody_is_favoured_and_the_session_goes_on(server: Server) -> None:
    async def story() -> None:
        ours = guard()
        grant = await granted(ours, ADA, TTL)
        await ours.release(grant)
        assert NEXT not in server.nodes
        await granted(ours, ADA, TTL)
        assert server.nodes[only(server)].owner == 1

    virtually(story())


@pytest.mark.parametrize("error", [None, exc.NodeExists()])
def test_where_somebody_is_favoured_already_the_lease_is_given_back_all_the_same(
    server: Server, error: exc.ResponseError | None
) -> None:
    async def story() -> None:
        ours = guard()
        grant = await granted(ours, ADA, TTL)
        server.create(NEXT, "cid", FOREIGN)
        server.on("Transaction", lambda: error)
        await ours.release(grant, to="ben")
        assert server.children(PATH) == []
        assert server.data(NEXT) == "cid"

    virtually(story())


@pytest.mark.parametrize("error", [None, exc.NoNode()])
def test_nothing_is_left_for_others_by_who_held_no_more(
    server: Server, error: exc.ResponseError | None
) -> None:
    async def story() -> None:
        ours = guard()
        grant = await granted(ours, ADA, TTL)
        node = only(server)

        def vanish() -> object:
            server.delete(node)
            return error

        server.on("Transaction", vanish)
        await ours.release(grant, to="ben")
        assert NEXT not in server.nodes

    virtually(story())


def test_who_closes_holds_no_more(server: Server) -> None:
    async def story() -> None:
        ours = guard()
        grant = await granted(ours, ADA, TTL)
        await ours.close()
        with pytest.raises(NotGranted):
            await ours.renew(grant, TTL)

    virtually(story())


# What goes wrong


@pytest.mark.parametrize(
    "ask",
    [
        lambda ours, grant: ours.renew(grant, TTL),
        lambda ours, grant: ours.release(grant),
        lambda ours, grant: ours.acquire(BEN, TTL),
        lambda ours, grant: ours.recover(10_000),
        lambda ours, grant: ours.identity(),
    ],
)
def test_what_a_server_refuses_is_told(
    server: Server, ask: Callable[[ZooKeeperGuard, Grant], Awaitable[object]]
) -> None:
    async def story() -> None:
        ours = guard()
        grant = await granted(ours, ADA, TTL)
        server.on("Sync", exc.ZKSystemError)
        with pytest.raises(
            Unreachable, match=r"^ZooKeeper at zookeeper://h refuses: ZKSystemError"
        ):
            await ask(ours, grant)

    virtually(story())


def test_a_server_that_grants_less_than_asked_grants_nothing(server: Server) -> None:
    async def story() -> None:
        ours = guard()
        server.bounds = (500, 4_000)
        with pytest.raises(Unreachable, match=r"^a server of ZooKeeper grants only 4 s$"):
            await ours.acquire(ADA, TTL)
        assert PATH not in server.nodes
        await granted(ours, ADA, 4.0)

    virtually(story())


def test_a_base_that_is_no_number_is_told_of(server: Server) -> None:
    async def story() -> None:
        server.create(BASE, "many")
        with pytest.raises(Unreachable, match=rf"node {BASE} in ZooKeeper is not a guard's"):
            await guard().acquire(ADA, TTL)
        server.nodes[BASE].data = None
        with pytest.raises(Unreachable, match=r"is not a guard's: b''"):
            await guard().acquire(ADA, TTL)

    virtually(story())


@pytest.mark.parametrize("raw, shown", [(None, ""), (b"\xff", "�")])
def test_names_of_strangers_may_be_anything(server: Server, raw: bytes, shown: str) -> None:
    async def story() -> None:
        node = server.stand(PATH, "")
        server.nodes[f"{PATH}/{node}"].data = raw
        answer = await guard().acquire(ADA, TTL)
        assert isinstance(answer, HeldBy)
        assert answer.holder == shown

    virtually(story())
